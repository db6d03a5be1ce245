"""BackwardElimination: remove the least useful variable until k are left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.linalg import lapack

from streamsel import params
from streamsel._kernels.stepwise import eliminate_backward, independent_variables
from streamsel._utils.numeric import TIE_RTOL
from streamsel.base.joint_rows import max_joint_features
from streamsel.base.river import Supervised
from streamsel.base.selector import Selector
from streamsel.params import param
from streamsel.state.base import Floats, Indices, VariableState
from streamsel.state.moments.joint import CrossMoments
from streamsel.state.pool.pool import ZERO_TOL, Picks

# A variable is dependent if its squared residual after regression on the earlier ones, plus the
# ridge, is below this. Small residuals of earlier variables amplify rounding errors, so a residual
# below 1e-8 is not accurate.
_DEPENDENCE_TOL = 1e-7
# With at least this ridge no variable is numerically dependent.
_SAFE_RIDGE = 1e-6
# The inverse is recomputed once its diagonal has fallen below this fraction of its first values.
_MIN_DIAGONAL_RATIO = 1e-4


def elimination_order(C: Floats, G: Floats, ridge: float) -> Picks:
    """Return the elimination order, last removed first, with the cost of each removal.

    Variables that are removed first, at no cost, are omitted.

    Parameters
    ----------
    C
        (p, p) correlations of the variables, in order of arrival; the ridge is added in place.
    G
        (p, r) their coordinates in the target space.
    ridge
        λ.
    """
    p, r = G.shape
    C[np.arange(p), np.arange(p)] = 1.0 + ridge
    # Without a target every removal is at no cost.
    remaining: Indices = np.arange(p if r else 0)
    if ridge < _SAFE_RIDGE and r:
        # Variables fully explained by earlier ones are removed first, at no cost.
        remaining = remaining[independent_variables(C, _DEPENDENCE_TOL)]
    m = remaining.size
    order, costs = np.empty(m, dtype=np.intp), np.empty(m)
    while m:
        current = remaining[:m]
        inverse, B = _inverse(C[np.ix_(current, current)], G[current])
        n_left = eliminate_backward(inverse, B, current, TIE_RTOL, _MIN_DIAGONAL_RATIO, costs[:m])
        order[n_left:m] = current[n_left:]
        remaining[:n_left] = np.sort(current[:n_left])
        m = n_left
    # Costs may fall again: omit only removals before the first one with a cost.
    size = int(np.max(np.flatnonzero(costs > ZERO_TOL), initial=-1)) + 1
    return Picks(order[:size].tolist(), costs[:size].tolist(), [0] * size)


def _inverse(C: Floats, G: Floats) -> tuple[Floats, Floats]:
    """Return the lower triangle of the inverse of C, and the coefficients, (r, p)."""
    # LAPACK's upper triangle, by columns, is the lower one by rows.
    factor, _ = lapack.dpotrf(C, lower=0)
    B, _ = lapack.dpotrs(factor, G, lower=0)
    inverse, _ = lapack.dpotri(factor, lower=0)
    return inverse.T, np.ascontiguousarray(B.T)


class BackwardElimination(Selector[VariableState], Supervised):
    r"""Backward elimination: repeatedly remove the least useful variable, until k are left.

    The target is regressed on all tracked variables, the variable whose removal increases the error
    least is removed, and this is repeated until k are left. Each variable is assessed jointly with
    all others, so two that are informative only together are found, unlike with forward selection.
    All candidates must be in memory: with many columns, only the most relevant are tracked, and the
    others are never assessed.

    With $X$ the variables, centred and of length 1, $U$ an orthonormal basis of the target,
    $C = X^T X + \lambda I$ and $B = C^{-1} X^T U$, each step removes the variable of the smallest
    $\|b_j\|^2 / (C^{-1})_{jj}$, the increase of the minimum of $\|U - X B\|^2 + \lambda \|B\|^2$.
    The selection is invariant to invertible linear maps of the target's columns.

    Parameters
    ----------
    k
        Number of variables to select.
    ridge
        Penalty $\lambda$, in units of a variable's sum of squares. 0 gives elimination by ordinary
        least squares, for linearly independent variables.
    max_candidates
        Number of columns kept for the elimination: the most relevant, at least k. The pool is cut
        to this number when it has twice as many. None keeps all, with unbounded time and memory.

    Attributes
    ----------
    scores
        Increase of the penalised squared error when each selected variable is removed, after all
        that follow it; the variable removed last comes first. Their sum is at most the rank of the
        target. They may fall during the elimination.

    Raises
    ------
    ValueError
        For a parameter out of its range.

    Notes
    -----
    **Cost.** A discarded column costs computing its relevance, a kept one a copy. The result costs
    $O(p^2 (n + p))$ for $p < 2m$ tracked variables: a tenth of a second for 1,000. Learning a row
    costs $O(p^2)$ for its $p$ variables, transforming one $O(k)$.

    **Memory.** $16 n m$ bytes at most for $m$ candidates, for any number of columns, and $O(p^2)$
    while a result is computed; on rows $O(p^2)$ always.

    **Exactness.** The tracked variables are the most relevant of all columns. With fewer than $2m$
    columns these are all columns that vary, and the result is that over all columns. Once a column
    was discarded nothing is certified, and `n_certified` is 0, because a column without marginal
    relevance may be useful jointly. The result is then the elimination over the $m$ to $2m$ most
    relevant columns.

    **Without a ridge** the order is not defined for linearly dependent variables: any can be
    removed at no cost. Then each variable that earlier ones explain, to 1e-7 of its square, is
    removed first. With more columns than rows only the first to arrive remain, regardless of the
    target: use a ridge, with which all are compared.

    **Rows.** The result is a function of the joint moments of the variables, which rows accumulate:
    all tracked variables enter the elimination, at most `max_features`.

    **Missing and new features.** A column with a missing value is refused. In a row an absent
    variable is 0, and NaN or None means not observed, and counts as the variable's mean; a new
    variable, class or target counts as 0 in earlier rows.

    **Ties**, within 1e-12, go to the column that arrived first. Variables removed at no cost,
    before all others, are never selected.

    References
    ----------
    [^1]: Miller, A. (2002). Subset Selection in Regression, 2nd ed. Chapman & Hall/CRC.
    [^2]: Guyon, I., Weston, J., Barnhill, S. and Vapnik, V. (2002). Gene selection for cancer
    classification using support vector machines. Machine Learning 46, 389-422.

    Examples
    --------
    The target is the difference of two gauges, both hardly correlated with it:

    >>> import numpy as np
    >>> from streamsel import BackwardElimination, ForwardSelection

    >>> rng = np.random.default_rng(0)
    >>> level, gap = 3.0 * rng.normal(size=100), rng.normal(size=100)
    >>> X = rng.normal(size=(100, 20))
    >>> X[:, 10], X[:, 15] = level + gap, level - gap
    >>> X[:, 17] = gap + rng.normal(size=100)
    >>> model = BackwardElimination(k=2, ridge=0.01)
    >>> model.learn_target(gap)
    >>> model.learn_columns(X)
    >>> model.selected, model.n_certified
    ([10, 15], 2)

    >>> forward = ForwardSelection(k=2, ridge=0.01)
    >>> forward.learn_target(gap)
    >>> forward.learn_columns(X)
    >>> 17 in forward.selected
    True
    """

    _needs_samples = True
    # The cost of removing a variable depends on the others, so relevance does not bound it.
    _bound_certifies = False

    _row_state_type = CrossMoments

    k: int = param(params.IntRule(1), default=20, kw_only=False)
    ridge: float = param(params.FloatRule(0.0), default=1.0)
    max_candidates: int | None = param(params.IntRule(1, optional=True), default=500)
    max_features: int | None = max_joint_features()

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"k": 3, "max_candidates": 6}
        yield {"k": 3, "ridge": 0.0, "fading_factor": 0.05}
        yield {"k": 2, "max_features": 4, "grace_period": 20}

    @property
    def _score_meaning(self) -> str:
        return (
            "increase of the penalized squared error when the variable is removed, after all below "
            "it"
        )

    def _select(self, view: VariableState, k: int) -> Picks:
        relevance = view.relevance()
        # A variable that is constant after adjustment for covariates has relevance -inf.
        indices = np.flatnonzero(relevance >= 0.0)
        G = view.coordinates(indices)
        picks = elimination_order(view.products(indices)[indices], G, self.ridge)
        return picks._replace(indices=indices[picks.indices].tolist()).first(k)
