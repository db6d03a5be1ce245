"""SAOLA: of variables that say more of each other than of the target, the more relevant one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from streamsel import params
from streamsel.held.decided import Decided, Offer
from streamsel.learner.on_arrival import OnArrival
from streamsel.params import param
from streamsel.selection._independence import bars, freedom, least_relevance, p_value
from streamsel.ties import TIE


class SAOLA(OnArrival):
    r"""The relevant variables, of any two that tell more of each other than of the target only one.

    A scalable and accurate online approach: a variable that comes is compared with those accepted
    one by one. It is refused if one of them is at least as relevant, and correlates with it no less
    than it does itself with the target; and those less relevant than it go that correlate with it
    no less than with the target. What `OSFS` asks of sets of variables SAOLA asks of pairs: it
    takes the time of a product each, and leaves more of what is redundant.

    Parameters
    ----------
    alpha
        Level of the test of relevance: the chance that a variable that is independent passes it.
    delta
        Instead of alpha: the relevance that a variable must exceed.

    Attributes
    ----------
    scores, p_values
        Relevance of each variable selected, and the chance of noise to be as relevant.

    Raises
    ------
    ValueError
        For a parameter out of its range.

    Notes
    -----
    **The test** of one numeric target or two classes is Fisher's: $\operatorname{atanh}(r)
    \sqrt{n - 3}$ is standard normal if there is no correlation. Several target columns or classes
    are tested together, by the F test, and relevance is that in the space which they span.

    **Noise.** Each variable that is independent has the chance `alpha` to pass, and in noise there
    is little to be redundant with: of 5,000 columns of it, $n = 500$, about 40 stay.

    **Order** matters, for what was refused is not compared again. A newcomer that is refused
    displaces nobody; the authors' program drops those that it meets before it is refused.

    **Cost.** A column costs its products with the target, and nearly all are refused by those; the
    others cost their products with the $h$ variables held, $O(n h)$.

    **Memory.** $O(n)$ for each variable held.

    **Rows** are gathered by windows, each learnt as columns, in the order of names: the answer is
    that of the last full window, and before there is one everything passes.

    **Missing and new features.** A column with a missing value is refused. In a row what is absent
    is 0, and what is NaN or None has the mean of the window. Of variables equally relevant, within
    1e-12, the one that arrived first counts as the more relevant.

    References
    ----------
    [^1]: Yu, K., Wu, X., Ding, W. and Pei, J. (2014). Towards scalable and accurate online feature
    selection for big data. IEEE International Conference on Data Mining, 660-669.

    Examples
    --------
    Of two that measure the same the better stays, whichever comes first:

    >>> import numpy as np
    >>> from streamsel import SAOLA

    >>> rng = np.random.default_rng(0)
    >>> truth, other = rng.normal(size=(2, 300))
    >>> y = truth + other + rng.normal(size=300)

    >>> model = SAOLA()
    >>> model.learn_target(y)
    >>> model.learn_column("coarse", truth + 0.5 * rng.normal(size=300))
    >>> model.learn_column("fine", truth + 0.1 * rng.normal(size=300))
    >>> model.learn_column("other", other)
    >>> model.learn_column("noise", rng.normal(size=300))
    >>> model.selected
    ['fine', 'other']
    """

    alpha: float = param(params.Real(0.0, open=True, below=1.0), default=0.01, kw_only=False)
    delta: float | None = param(params.Real(0.0, optional=True, below=1.0), default=None)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"window_size": 20}
        yield {"delta": 0.1, "window_size": 30, "max_features": 4}

    def _refuses_below(self, held: Decided) -> float:
        if self.delta is not None:
            return self.delta
        n, r = freedom(held)
        return least_relevance(bars(n, r, 0, self.alpha))

    def _decide(self, held: Decided, offer: Offer) -> None:
        assert held.space is not None  # noqa: S101
        n, r = freedom(held)
        found = held.space.relevance(*offer.moments)
        for i in np.flatnonzero(found > self._refuses_below(held)):
            if held.is_full:
                return
            place, mine = offer.places[i], float(found[i])
            common = np.abs(held.table["unit"] @ held.units(offer, place[None])[0])
            theirs = held.noted("score")
            above = theirs >= mine - TIE
            if (common[above] >= mine - TIE).any():
                continue
            held.accept(offer, int(place), score=mine, p_value=p_value(mine, n, r))
            redundant = np.flatnonzero(~above & (common >= theirs - TIE))
            if redundant.size:
                held.drop(redundant)
