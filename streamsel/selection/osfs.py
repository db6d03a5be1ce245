"""OSFS: what stays dependent on the target, whichever few of the others are given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from streamsel import params
from streamsel._jit.independence import review
from streamsel.held.decided import Decided, Offer
from streamsel.held.part import Floats
from streamsel.learner.on_arrival import OnArrival
from streamsel.params import param
from streamsel.selection._independence import bars, freedom, least_relevance, p_value


class OSFS(OnArrival):
    r"""What depends on the target, whichever few of the other variables are given.

    Online streaming feature selection: a variable that comes is accepted if it correlates with the
    target, and still does once any few of those accepted are given. Whoever is accepted is asked
    again as others come, and goes as soon as some of them, together, say all that it says. What is
    left aims at the target's Markov blanket: its causes, its effects, and the other causes of
    these, where the world is a linear one.

    Parameters
    ----------
    alpha
        Level of every single test: the chance that a variable that is independent passes it.
    depth
        How many variables at most are given at a time.
    fast
        True (Fast-OSFS) asks the newcomer first; the others are asked about the newcomer only if it
        stays. False (OSFS) asks the others first: a newcomer can then displace what says the same,
        even if it is refused itself.

    Attributes
    ----------
    scores, p_values
        Relevance of each variable selected, and the chance of noise to be as relevant: of the first
        of its tests, with nothing given.

    Raises
    ------
    ValueError
        For a parameter out of its range.

    Notes
    -----
    **The test** of one numeric target or two classes is Fisher's: of the partial correlation $\rho$
    given $s$ variables, $\operatorname{atanh}(\rho) \sqrt{n - s - 3}$ is standard normal if there
    is none. Several target columns or classes are tested together, by the F test of what they
    explain of the variable beyond the $s$ given. A variable of which those given leave less than
    1e-10 says nothing new. Sets that are too large for the observations are not asked about.

    **Noise.** Each variable that is independent has the chance `alpha` to pass the first test, and
    the later ones refuse most of those that do: of 5,000 columns of noise, $n = 500$, about 10
    stay (9 with `fast=False`), where `SAOLA` keeps about 40.

    **Order** matters: what was refused is not asked again, so that a variable that tells only
    together with a later one is lost.

    **Cost.** A column costs its products with the target, and nearly all are refused by those; of
    the others each costs its products with the $h$ variables held, and $O(h^d)$ sets of up to $d$ =
    `depth` of them, each some ten numbers; the h variables held cost as much together if it is
    accepted.

    **Memory.** $O(n)$ for each variable held, and $h^2$.

    **Rows** are gathered by windows, each learnt as columns, in the order of names: the answer is
    that of the last full window, and before there is one everything passes.

    **Missing and new features.** A column with a missing value is refused. In a row what is absent
    is 0, and what is NaN or None has the mean of the window.

    References
    ----------
    [^1]: Wu, X., Yu, K., Ding, W., Wang, H. and Zhu, X. (2013). Online feature selection with
    streaming features. IEEE Transactions on Pattern Analysis and Machine Intelligence 35,
    1178-1192.

    Examples
    --------
    A cause, what it causes and what that causes: once the middle of the chain is there, the first
    says nothing of the last.

    >>> import numpy as np
    >>> from streamsel import OSFS

    >>> rng = np.random.default_rng(0)
    >>> cause = rng.normal(size=500)
    >>> middle = cause + rng.normal(size=500)
    >>> y = middle + rng.normal(size=500)

    >>> model = OSFS()
    >>> model.learn_target(y)
    >>> model.learn_column("cause", cause)
    >>> model.selected
    ['cause']
    >>> model.learn_column("middle", middle)
    >>> model.learn_column("copy", -middle)
    >>> model.selected
    ['middle']

    Two that each tell of a part stay, among a thousand that tell nothing:

    >>> X = rng.normal(size=(500, 1000))
    >>> y = X[:, 300] + X[:, 700] + rng.normal(size=500)
    >>> model = OSFS(alpha=0.001)
    >>> model.learn_target(y)
    >>> model.learn_columns(X)
    >>> model.selected
    [300, 700]
    """

    alpha: float = param(params.Real(0.0, open=True, below=1.0), default=0.01, kw_only=False)
    depth: int = param(params.Whole(1), default=3)
    fast: bool = param(params.Flag(), default=True)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"window_size": 20}
        yield {"alpha": 0.1, "depth": 2, "fast": False, "window_size": 30, "max_features": 4}

    def _refuses_below(self, held: Decided) -> float:
        n, r = freedom(held)
        return least_relevance(bars(n, r, self.depth, self.alpha))

    def _decide(self, held: Decided, offer: Offer) -> None:
        assert held.space is not None  # noqa: S101
        n, r = freedom(held)
        up_to = bars(n, r, self.depth, self.alpha)
        m2, cxy = offer.moments
        found = held.space.relevance(m2, cxy)
        for i in np.flatnonzero(found > least_relevance(up_to)):
            if held.is_full:
                return
            place = offer.places[i]
            C, G = _joined(held, held.units(offer, place[None])[0])
            G[-1] = held.space.coordinates(m2[i, None], cxy[i, None])
            stays = np.empty(len(C), dtype=np.bool_)
            review(C, G, up_to, self.fast, stays)
            if stays[-1]:
                score = float(found[i])
                held.accept(offer, int(place), score=score, p_value=p_value(score, n, r))
            if not stays[:-1].all():
                held.drop(np.flatnonzero(~stays[:-1]))
            held.plan = C[np.ix_(stays, stays)], G[stays]


def _joined(held: Decided, x: Floats) -> tuple[Floats, Floats]:
    """Return correlations and coordinates of those held and, last, of x, whose coordinates lack."""
    assert held.space is not None  # noqa: S101
    unit = held.table["unit"]
    if held.plan is None:
        held.plan = unit @ unit.T, held.coordinates()
    h = len(unit)
    C, G = np.ones((h + 1, h + 1)), np.empty((h + 1, held.space.rank))
    C[:h, :h], G[:h] = held.plan
    C[h, :h] = C[:h, h] = unit @ x
    return C, G
