"""AlphaInvesting: streamwise selection (Zhou, Foster, Stine, Ungar 2006)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from streamsel import params
from streamsel.held.decided import Decided, Offer
from streamsel.held.part import Floats, Places
from streamsel.learner.noise import chance
from streamsel.learner.on_arrival import OnArrival
from streamsel.params import param
from streamsel.target.target import Target

# Columns are looked at in pieces of about so many numbers, and at first of so many columns.
_PIECE, _FEW = 1 << 18, 32
# Less than this part of a square is rounding.
_SPENT = 1e-10
# With less left than this, or so little of it unexplained, a product of a block is too coarse.
_UNSURE = 1e-4


class AlphaInvesting(OnArrival):
    r"""Streamwise selection: a column is added if it tells more than those added before it.

    Every column is tested once, when it comes: does it explain anything of the target that the
    selected have not explained? A test is paid for out of a *wealth*, and a discovery pays back:
    with $w_i$ the wealth before the $i$-th test, the column is added if its p-value is below
    $\alpha_i = w_i / 2i$; then $w_{i+1} = w_i - \alpha_i + \text{payout}$, otherwise $w_{i+1} =
    w_i - \alpha_i$. A stream of noise goes on and on and is tested ever more strictly; one that
    keeps giving is tested more generously.

    Parameters
    ----------
    wealth
        The wealth before the first test, $w_1$. The smaller, the stricter.
    payout
        What a column that is added pays.
    max_candidates
        Most variables to select; None for any number. Once there are as many nothing more is
        tested, and memory is constant.

    Raises
    ------
    ValueError
        For a parameter out of its range, and where two models that have both learnt columns are to
        be merged: what either decided depends on what came before.

    Notes
    -----
    **The test.** With $S$ the columns selected so far and $R^2$ the share of what $S$ leaves of a
    column that lies in the span of what $S$ leaves of the target, of rank $r$: $F =
    \frac{R^2}{1 - R^2} \frac{m}{r}$, $m = n - 1 - |S| - r$, is the F statistic of the target in a
    regression of the column on $S$ and the target, of $r$ and $m$ degrees of freedom. For one
    numeric target it is the square of the usual t of the column in a regression of the target on
    it and $S$. Covariates count as selected. Where $m \leq 0$ nothing can be told, and p is 1.

    **Which columns are tests.** A column that does not vary is none, and costs no wealth. One that
    the selected explain in full, as a copy of one of them, has p = 1.

    **Cost.** A column costs its products with the target and with the $|S|$ selected, a matrix
    product for many at once.

    **Memory.** $O(n |S|)$, and $O(n c)$ for the target.

    **Order.** What is selected depends on the order of the columns, and the first tests are
    generous: by the defaults, which are the authors', one column of noise in four is taken where it
    is the first. Of 5,000 columns of noise and 100 observations the defaults kept 0.85 on average,
    in 35 of 100 streams any; with `wealth=0.05, payout=0.05` it was 0.04, in 4 of them.

    **Rows.** By windows: `window_size` rows are gathered, and decided on as columns from the
    beginning. The answer is that of the last full window, and before there is one everything
    passes. Windows know no covariates and no fading.

    **Missing and new features.** A column with a missing value is refused. In a row of a window a
    variable that is absent is 0, one that is NaN or None counts as if it had its mean.

    References
    ----------
    [^1]: Zhou, J., Foster, D. P., Stine, R. A. and Ungar, L. H. (2006). Streamwise feature
    selection. Journal of Machine Learning Research 7, 1861-1885.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsel import AlphaInvesting

    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(200, 1000))
    >>> X[:, 500] = X[:, 100] + 0.1 * rng.normal(size=200)
    >>> y = X[:, 100] + 2.0 * X[:, 700] + rng.normal(size=200)

    >>> model = AlphaInvesting(wealth=0.05)
    >>> model.learn_target(y)
    >>> model.learn_columns(X)
    >>> model.selected
    [100, 700]
    >>> max(model.p_values.values()) < 1e-6
    True
    """

    wealth: float = param(params.Real(0.0, open=True, below=1.0), default=0.5, kw_only=False)
    payout: float = param(params.Real(0.0, open=True, below=1.0), default=0.5)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"window_size": 20}
        yield {"wealth": 0.1, "payout": 0.2, "window_size": 30, "max_features": 4}

    @property
    def _score_meaning(self) -> str:
        return "relevance of the variable, given those accepted before it"

    def _remembered(self) -> dict[str, float]:
        return {"tests": 0.0, "wealth": float(self.wealth)}

    def _decide(self, held: Decided, offer: Offer) -> None:
        places, size = offer.places, _FEW
        while places.size and not held.is_full:
            piece = places[:size]
            decided = self._decide_some(held, offer, piece)
            places = places[decided:]
            # What was looked at behind a column that is added must be looked at again.
            all_refused = decided == piece.size
            size = min(2 * size, max(_FEW, _PIECE // offer.chunk.n)) if all_refused else _FEW

    def _decide_some(self, held: Decided, offer: Offer, places: Places) -> int:
        """Decide on these columns, up to the first that is added; return how many."""
        given = self._given_selected(held)
        tests, wealth = held.memory["tests"], held.memory["wealth"]
        # As they are while none is added.
        number = tests + np.arange(1, places.size + 1)
        spent = 1.0 - 0.5 / number
        wealths = np.cumprod(np.concatenate([[wealth], spent]))
        alphas = 0.5 * wealths[:-1] / number
        for i in given.promising(held, offer, places, alphas):
            x = held.units(offer, places[i : i + 1])[0]
            relevance, p_value = given.test(held, x)
            if p_value < alphas[i]:
                held.accept(offer, int(places[i]), score=relevance, p_value=p_value)
                held.plan = given.with_another(x)
                held.remember(tests=number[i], wealth=wealths[i] - alphas[i] + self.payout)
                return int(i) + 1
        held.remember(tests=number[-1], wealth=wealths[-1])
        return places.size

    def _given_selected(self, held: Decided) -> _Given:
        if held.plan is None:
            assert isinstance(self._target, Target)  # noqa: S101
            assert held.space is not None  # noqa: S101
            U = held.space.weights @ self._target.Y[: self._target.c]
            given = _Given(U, 0, U)
            for unit in held.table["unit"]:
                given = given.with_another(unit)
            held.plan = given
        found: _Given = held.plan
        return found


class _Given(NamedTuple):
    """What is asked given the selected variables.

    Parameters
    ----------
    probes
        (s + r, n) orthonormal rows: a basis of them, and one of what they leave of the target.
    size
        The number s of variables.
    target
        (r', n) an orthonormal basis of the target space.
    """

    probes: Floats
    size: int
    target: Floats

    @property
    def rank(self) -> int:
        """Dimension r of what is left of the target."""
        return len(self.probes) - self.size

    def with_another(self, x: Floats) -> _Given:
        """Return what is asked given one variable more, of which something is left."""
        rest = _rest(x, self.probes[: self.size])
        basis = np.vstack([self.probes[: self.size], rest / math.sqrt(rest @ rest)])
        left = _rest(self.target, basis)
        squares, turned = np.linalg.eigh(left @ left.T)
        stays = squares > _SPENT
        left = (turned[:, stays] / np.sqrt(squares[stays])).T @ left
        return _Given(np.vstack([basis, left]), len(basis), self.target)

    def _freedom(self, held: Decided) -> tuple[float, int]:
        """Return observations, less what is given, and the rank of what is left of the target."""
        assert held.space is not None  # noqa: S101
        return held.space.effective_rows - len(held.space.given) - self.size, self.rank

    def test(self, held: Decided, x: Floats) -> tuple[float, float]:
        """Return relevance and p-value of a variable, (n,), centred and of length 1."""
        rest = _rest(x, self.probes[: self.size])
        square = float(rest @ rest)
        if square < _SPENT:
            return 0.0, 1.0
        share = float(np.square(self.probes[self.size :] @ rest).sum()) / square
        # Of what is explained in full the rest is rounding.
        relevance = np.array([math.sqrt(share) if share < 1.0 - _SPENT else 1.0])
        return float(relevance[0]), float(chance(relevance, *self._freedom(held))[0])

    def promising(self, held: Decided, offer: Offer, places: Places, alphas: Floats) -> Places:
        """Return which of some columns may have a p-value below its alpha; no other has.

        Parameters
        ----------
        alphas
            One a column, descending.
        """
        n, r = self._freedom(held)
        if not r or n - 1 <= r:
            return np.zeros(0, dtype=np.intp)
        if self.size:
            products = held.units(offer, places) @ self.probes.T
            np.square(products, out=products)
            left = 1.0 - products[:, :-r].sum(axis=1)
            explained = products[:, -r:].sum(axis=1)
        else:
            assert held.space is not None  # noqa: S101
            stats = offer.stats
            left = np.ones(places.size)
            explained = held.space.relevance(stats.m2[places], stats.cxy[places]) ** 2
        from scipy.special import betainccinv

        # Nearly all are let go at the first glance, with some room for rounding.
        bar = betainccinv(0.5 * r, 0.5 * (n - 1 - r), min(1.0, 2.0 * float(alphas[0])))
        bar = min(float(bar), 1.0 - _UNSURE)
        found = np.flatnonzero((explained >= bar * left) | (left < _UNSURE))
        left, explained = left[found], explained[found]
        unsure = (left < _UNSURE) | (left - explained < _UNSURE * left)
        square = np.where(unsure, 1.0, explained / np.where(unsure, 1.0, left))
        return found[chance(np.sqrt(square), n, r) <= 2.0 * alphas[found]]


def _rest(X: Floats, basis: Floats) -> Floats:
    """Return what an orthonormal basis, one a row, leaves of vectors, one a row."""
    # Twice, for once is not exact where little is left.
    for _ in range(2):
        X = X - (X @ basis.T) @ basis
    return X
