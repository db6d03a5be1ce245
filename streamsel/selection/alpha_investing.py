"""AlphaInvesting: streamwise feature selection (Zhou, Foster, Stine, Ungar 2006)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import numpy as np

from streamsel import params
from streamsel.base.null import marginal_p_values
from streamsel.base.streaming_selector import StreamingSelector
from streamsel.params import param
from streamsel.selection._independence import degrees_of_freedom
from streamsel.state.base import Floats, Indices
from streamsel.state.pool.accepted import AcceptedColumns, ColumnBatch
from streamsel.targets.space import TargetSpace

# Maximum numbers per batch of columns, and columns in the first batch.
_BATCH_NUMBERS, _FIRST_COLUMNS = 1 << 18, 32
# A smaller share of a sum of squares is rounding error.
_ZERO_TOL = 1e-10
# With a smaller residual, or unexplained share, block products are too inaccurate.
_UNRELIABLE = 1e-4


class AlphaInvesting(StreamingSelector):
    r"""Streamwise selection by alpha-investing: test each column given the columns selected so far.

    Every column is tested once, on arrival, for association with the target conditional on the
    selected columns. Each test spends part of a *wealth* and each discovery adds to it. With $w_i$
    the wealth before the $i$-th test, the column is selected if its p-value is below the level
    $\alpha_i = w_i / 2i$; then $w_{i+1} = w_i - \alpha_i + \text{payout}$, otherwise
    $w_{i+1} = w_i - \alpha_i$. Levels fall along a stream of noise, and rise with discoveries.

    Parameters
    ----------
    initial_wealth
        Initial wealth $w_1$; smaller is stricter.
    payout
        Wealth earned by each selected column.
    max_candidates
        Maximum number of variables to select; None for no limit. Once it is reached no column is
        tested, and memory is constant.

    Raises
    ------
    ValueError
        For a parameter out of its range, and for merging two models that have both learnt columns:
        each decision depends on the columns before.

    Notes
    -----
    **The test.** Let $S$ be the columns selected so far, and $r$ the rank of the target's residual
    given $S$. Let $R^2$ be the share of a column's residual given $S$ that this residual explains.
    Then $F = \frac{R^2}{1 - R^2} \frac{m}{r}$ with $m = n - 1 - |S| - r$ is the F statistic of the
    target in a regression of the column on $S$ and the target, with $r$ and $m$ degrees of freedom.
    For one numeric target it is the square of the column's t statistic in a regression of the
    target on the column and $S$. Covariates count as selected. With $m \leq 0$ no test is possible,
    and p is 1.

    **Which columns are tested.** A constant column is not tested, and costs no wealth. A column
    fully explained by the selected ones, such as a copy of one of them, has p = 1.

    **Cost.** A column costs its products with the target and the $|S|$ selected columns, one matrix
    product for many columns.

    **Memory.** $O(n |S|)$, and $O(n c)$ for the target.

    **Order.** The selection depends on the order of the columns. The first tests are generous: with
    the authors' defaults, a noise column that comes first is selected in one case of four. The
    table has the columns selected in 100 streams of 5,000 noise columns and 100 observations:

    | parameters | columns selected, mean | streams with any |
    |---|---|---|
    | defaults | 0.85 | 35 |
    | `initial_wealth=0.05, payout=0.05` | 0.04 | 4 |

    **Rows.** `window_size` rows are buffered; then their columns are tested from the beginning. The
    result is that of the last full window; before the first, all variables pass. Windows support
    neither covariates nor fading.

    **Missing and new features.** A column with a missing value is refused. In a row of a window an
    absent variable is 0, and NaN or None counts as the variable's mean.

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

    >>> model = AlphaInvesting(initial_wealth=0.05)
    >>> model.learn_target(y)
    >>> model.learn_columns(X)
    >>> model.selected
    [100, 700]
    >>> max(model.p_values.values()) < 1e-6
    True
    """

    initial_wealth: float = param(
        params.FloatRule(0.0, open=True, below=1.0), default=0.5, kw_only=False
    )
    payout: float = param(params.FloatRule(0.0, open=True, below=1.0), default=0.5)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"window_size": 20}
        yield {"initial_wealth": 0.1, "payout": 0.2, "window_size": 30, "max_features": 4}

    @property
    def _score_meaning(self) -> str:
        return "relevance of the variable conditional on those selected before it"

    def _initial_memory(self) -> dict[str, float]:
        return {"tests": 0.0, "wealth": float(self.initial_wealth)}

    def _policy(self) -> AlphaInvestingPolicy:
        return AlphaInvestingPolicy(self.payout)

    def _level_left(self) -> float:
        state = cast("AcceptedColumns | None", self._columns)
        if state is None:
            return 1.0
        if state.is_full or not _conditional_tests(state).rank:
            return 0.0
        level = state.memory["wealth"] / (2.0 * (state.memory["tests"] + 1.0))
        return level / self.initial_wealth


class AlphaInvestingPolicy(NamedTuple):
    """Decisions of alpha-investing on arrival; the parameter is that of AlphaInvesting."""

    payout: float

    def rejection_threshold(self, space: TargetSpace) -> float:  # noqa: ARG002
        """Return -inf: every test changes the wealth."""
        return -math.inf

    def accept(self, state: AcceptedColumns, batch: ColumnBatch) -> None:
        """Test the columns in order, and accept those below the level of their test."""
        indices, size = batch.indices, _FIRST_COLUMNS
        while indices.size and not state.is_full:
            some = indices[:size]
            n_decided = self._decide_some(state, batch, some)
            indices = indices[n_decided:]
            # Columns after a selected one must be tested again, given the new selection.
            all_rejected = n_decided == some.size
            size = (
                min(2 * size, max(_FIRST_COLUMNS, _BATCH_NUMBERS // batch.chunk.n))
                if all_rejected
                else _FIRST_COLUMNS
            )

    def _decide_some(self, state: AcceptedColumns, batch: ColumnBatch, indices: Indices) -> int:
        """Decide on these columns, up to the first that is selected; return the number decided."""
        conditional = _conditional_tests(state)
        tests, wealth = state.memory["tests"], state.memory["wealth"]
        # Number, wealth and level of each test as long as no column is selected.
        number = tests + np.arange(1, indices.size + 1)
        spent = 1.0 - 0.5 / number
        wealths = np.cumprod(np.concatenate([[wealth], spent]))
        alphas = 0.5 * wealths[:-1] / number
        for i in conditional.candidates(state, batch, indices, alphas):
            x = state.units(batch, indices[i : i + 1])[0]
            relevance, p_value = conditional.test(batch.space, x)
            if p_value < alphas[i]:
                state.accept(batch, int(indices[i]), score=relevance, p_value=p_value)
                state.derived = conditional.with_another(x)
                state.remember(tests=number[i], wealth=wealths[i] - alphas[i] + self.payout)
                return int(i) + 1
        state.remember(tests=number[-1], wealth=wealths[-1])
        return indices.size


def _conditional_tests(state: AcceptedColumns) -> _ConditionalTests:
    if state.derived is None:
        U = state.pool.basis
        conditional = _ConditionalTests(U, 0, U)
        for unit in state.pool.table["unit"]:
            conditional = conditional.with_another(unit)
        state.derived = conditional
    current: _ConditionalTests = state.derived
    return current


class _ConditionalTests(NamedTuple):
    """Tests conditional on the selected variables.

    Parameters
    ----------
    probes
        (s + r, n) orthonormal rows: a basis of the selected variables, then one of the target's
        residual.
    size
        Number s of variables.
    target
        (r', n) orthonormal basis of the target space.
    """

    probes: Floats
    size: int
    target: Floats

    @property
    def rank(self) -> int:
        """Dimension r of the target's residual."""
        return len(self.probes) - self.size

    def with_another(self, x: Floats) -> _ConditionalTests:
        """Return these tests with one more selected variable, whose residual is not 0."""
        residual = _residuals(x, self.probes[: self.size])
        basis = np.vstack([self.probes[: self.size], residual / math.sqrt(residual @ residual)])
        target_residual = _residuals(self.target, basis)
        squares, vectors = np.linalg.eigh(target_residual @ target_residual.T)
        is_kept = squares > _ZERO_TOL
        target_residual = (vectors[:, is_kept] / np.sqrt(squares[is_kept])).T @ target_residual
        return _ConditionalTests(np.vstack([basis, target_residual]), len(basis), self.target)

    def _degrees_of_freedom(self, space: TargetSpace) -> tuple[float, int]:
        """Return the residual number of observations, and the rank of the target's residual."""
        return degrees_of_freedom(space)[0] - self.size, self.rank

    def test(self, space: TargetSpace, x: Floats) -> tuple[float, float]:
        """Return relevance and p-value of a variable, (n,), centred and of length 1."""
        residual = _residuals(x, self.probes[: self.size])
        square = float(residual @ residual)
        if square < _ZERO_TOL:
            return 0.0, 1.0
        share = float(np.square(self.probes[self.size :] @ residual).sum()) / square
        # Beyond this share the unexplained part is rounding error.
        relevance = np.array([math.sqrt(share) if share < 1.0 - _ZERO_TOL else 1.0])
        return float(relevance[0]), float(
            marginal_p_values(relevance, *self._degrees_of_freedom(space))[0]
        )

    def candidates(
        self, state: AcceptedColumns, batch: ColumnBatch, indices: Indices, alphas: Floats
    ) -> Indices:
        """Return the columns that may have a p-value below their alpha; all others have none.

        Parameters
        ----------
        alphas
            One per column, descending.
        """
        n, r = self._degrees_of_freedom(batch.space)
        if not r or n - 1 <= r:
            return np.zeros(0, dtype=np.intp)
        if self.size:
            products = state.units(batch, indices) @ self.probes.T
            np.square(products, out=products)
            residual = 1.0 - products[:, :-r].sum(axis=1)
            explained = products[:, -r:].sum(axis=1)
        else:
            stats = batch.stats
            residual = np.ones(indices.size)
            explained = batch.space.relevance(stats.m2[indices], stats.cxy[indices]) ** 2
        from scipy.special import betainccinv

        # A cheap threshold at twice the first level, for rounding, discards nearly all columns.
        threshold = betainccinv(0.5 * r, 0.5 * (n - 1 - r), min(1.0, 2.0 * float(alphas[0])))
        threshold = min(float(threshold), 1.0 - _UNRELIABLE)
        candidates = np.flatnonzero((explained >= threshold * residual) | (residual < _UNRELIABLE))
        residual, explained = residual[candidates], explained[candidates]
        is_unreliable = (residual < _UNRELIABLE) | (residual - explained < _UNRELIABLE * residual)
        square = np.where(is_unreliable, 1.0, explained / np.where(is_unreliable, 1.0, residual))
        return candidates[marginal_p_values(np.sqrt(square), n, r) <= 2.0 * alphas[candidates]]


def _residuals(X: Floats, basis: Floats) -> Floats:
    """Return the residuals of vectors, one per row, after projection on an orthonormal basis."""
    # Projected twice: once is inaccurate for a small residual.
    for _ in range(2):
        X = X - (X @ basis.T) @ basis
    return X
