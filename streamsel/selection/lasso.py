"""Lasso: L1 and elastic-net regularisation paths with exact pools."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from streamsel import params
from streamsel.base.caching import cached_until_update
from streamsel.base.certified_selector import CertifiedSelector
from streamsel.base.river import Supervised
from streamsel.base.selector import EVERY_COLUMN
from streamsel.params import param
from streamsel.selection._lasso_losses import (
    LogisticLoss,
    LossFamily,
    SampledSquaredLoss,
    SquaredLoss,
)
from streamsel.selection._lasso_path import (
    NO_PATH,
    LassoPath,
    LassoPenalty,
    LassoProblem,
    SampledProblem,
    path_quality,
    solve_path,
)
from streamsel.selection._lasso_solution import (
    PathSolution,
    path_from_state,
    rank_by_entry,
    solve_pool_path,
)
from streamsel.state.base import VariableState
from streamsel.state.moments.aligned_view import AlignedView
from streamsel.state.pool.certified import CertifiedPool
from streamsel.state.pool.pool import Picks
from streamsel.stream import ColumnStream
from streamsel.targets.target import Target

# Default of k when alphas is None.
_K = 20


class _Model(NamedTuple):
    """A solution, with coefficients on the original scale."""

    alpha: float
    intercept: float
    coefficients: dict[Hashable, float]


class Lasso(LossFamily, CertifiedSelector[PathSolution], Supervised):
    r"""Select variables by an L1 or elastic-net regularisation path.

    For a descending sequence of $\alpha$, from the one at which the first variable enters, the
    coefficients minimise

    $$\frac{1}{2n} \|y - Xw\|^2 + \alpha \rho \sum_j s_j |w_j|
    + \frac{\alpha (1 - \rho)}{2} \sum_j s_j^2 w_j^2,$$

    or the logistic loss for two classes, with an unpenalised intercept. $\rho = 1$ is the LASSO,
    $\rho < 1$ the elastic net. The selected variables are those of the last solution.
    Solutions agree with scikit-learn and glmnet to the precision of these, and hold
    over all columns, although only a bounded pool is tracked: with `exact` further passes,
    two to four in all, certify that no discarded column violates the conditions of any solution.

    Parameters
    ----------
    k
        Number of variables to select: the path ends with the first solution of at least k; if it
        has more, the k that entered first are selected. `"all"` computes the whole grid. None means
        20, or, with `alphas`, all variables of the last solution.
    alphas
        Values of $\alpha$ instead of k, a number or an array-like, with scikit-learn's definition.
        None means a grid.
    l1_ratio
        Mixing parameter $\rho$ in (0, 1].
    family
        Loss: `"gaussian"`, least squares, for one numeric target. `"logistic"`: for two classes
        (labels, booleans, or two numbers such as 0 and 1); the second in order is the one
        predicted. `"auto"`: least squares for a numeric target, the logistic loss for two classes
        of columns; `report().target` shows it. Covariates, weights and fading require least
        squares: with them two numbers are treated as a quantity.
    n_alphas, alpha_min_ratio
        Grid size, and ratio of its last to its first value; the grid is logarithmic.
    scale
        Whether $s_j$ is the standard deviation of a variable, as in glmnet, which makes the result
        independent of units; otherwise $s_j = 1$, as in scikit-learn.
    window_size
        On rows, for the logistic family: number of rows buffered before they are learnt as columns.

    Attributes
    ----------
    selected
        In the order in which they entered the path; ties by the largest absolute
        coefficient, then by arrival.
    scores, rounds
        The $\alpha$ at which each selected variable entered, and the index of that solution on the
        path.
    n_rows, n_columns, n_constant
        Number of rows seen, as observations of the columns or one by one; of variables seen, an
        evicted one that returns counted again; of constant variables among them, which are never
        selected.
    n_passes
        Number of passes over the columns: 1, or more if `exact` needed them.

    Raises
    ------
    ValueError
        For a parameter out of its range, and, when the target arrives, for one that the family does
        not support.

    Notes
    -----
    **Cost.** One pass over each column and, once the pool was full, its products with the residuals
    of all solutions: one matrix product per block of columns. A path over a pool of $p$ variables,
    at most $s$ of them active, costs $O(n p)$ and $O(s^3)$ per solution. Coordinate descent finds
    the active set, and its linear equations are then solved exactly, so that solutions are those
    over all columns to rounding, in any order, with no tolerance to set.

    **Memory.** `max_pool_bytes`, and $n$ numbers per solution. All variables active in any
    solution must fit: otherwise the path ends there, `path_truncated` is True (the certificate
    then refers to the shorter path), and with `exact` a warning is issued.

    **Certificate.** The first pass keeps the columns with the largest violations, under solutions
    that still change. A solution is certified once all columns were scored under it; `n_certified`
    counts the selection once the whole path is. `duality_gap` and `kkt_violation` then refer to all
    columns, and are NaN before.

    **Rows.** Least squares is a function of the joint moments of a bounded vocabulary, which rows
    accumulate: the result equals that on the columns of the same rows, or of those since all
    variables in use were present (`n_aligned_rows`). The logistic family learns windows of rows,
    and supports neither covariates nor fading; with `family="auto"` rows continue with it if the
    columns had two classes.

    **Missing and new features.** A column with a missing value is refused. In a row an absent
    variable is 0, and NaN or None counts as the variable's mean; a new variable counts as 0 in
    earlier rows.

    **Ties.** Solutions are not unique if columns are linearly dependent. Of identical columns the
    first to arrive has the whole coefficient; with $\rho < 1$ they share it. Optimality conditions
    are checked to a relative tolerance of 1e-9.

    Transforms keep the variables; prediction is left to the downstream model.

    References
    ----------
    [^1]: Tibshirani, R. (1996). Regression shrinkage and selection via the lasso. Journal of the
    Royal Statistical Society B 58, 267-288.

    [^2]: Friedman, J., Hastie, T. and Tibshirani, R. (2010). Regularization paths for generalized
    linear models via coordinate descent. Journal of Statistical Software 33(1).

    [^3]: Tibshirani, R. et al. (2012). Strong rules for discarding predictors in lasso-type
    problems. Journal of the Royal Statistical Society B 74, 245-266.

    Examples
    --------
    The target is a linear function of three of a thousand variables:

    >>> import numpy as np
    >>> from streamsel import Lasso

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 1000))
    >>> y = 3.0 * X[:, 110] - 2.0 * X[:, 520] + X[:, 930] + 5.0
    >>> model = Lasso(k=3)
    >>> model.learn_target(y)
    >>> model.learn_columns(X)
    >>> model.selected
    [110, 520, 930]

    The coefficients are shrunk towards 0:

    >>> [round(w, 2) for w in model.coefficients.values()]
    [2.05, -1.14, 0.04]

    A smaller alpha shrinks them less:

    >>> model = Lasso(alphas=(0.3, 0.1))
    >>> model.learn_target(y)
    >>> model.learn_columns(X)
    >>> [(alpha, len(found)) for alpha, found in model.path.items()]
    [(0.3, 3), (0.1, 3)]
    >>> round(model.coefficients[110], 2), round(model.intercept, 2)
    (2.9, 5.02)

    A pool of 32 columns gives the same result, certified over all columns:

    >>> pooled = Lasso(alphas=(0.3, 0.1), max_candidates=32, exact=True)
    >>> pooled.learn_target(y)
    >>> pooled.learn_columns(X)
    >>> pooled.selected == model.selected, pooled.n_certified, pooled.n_passes
    (True, 3, 2.0)
    >>> pooled.duality_gap < 1e-9, pooled.kkt_violation < 1e-9
    (True, True)
    """

    # The active sets of a whole path, and their candidates, need a large pool.
    _small_pool_suffices = False

    k: int | str | None = param(
        params.ChoiceOrNumber(
            params.ChoiceRule((EVERY_COLUMN,)), (params.IntRule(1, optional=True),)
        ),
        default=None,
        kw_only=False,
        default_text=f"{_K}, or as many as alphas select",
    )
    alphas: float | tuple[float, ...] | None = param(
        params.NumberOrTuple(params.FloatRule(0.0, open=True), optional=True), default=None
    )
    l1_ratio: float = param(params.FloatRule(0.0, open=True), default=1.0)
    family: str = param(params.ChoiceRule(("auto", "gaussian", "logistic")), default="auto")
    n_alphas: int = param(params.IntRule(2, below=params.MAX_COUNT), default=100)
    alpha_min_ratio: float = param(params.FloatRule(0.0, open=True, below=1.0), default=1e-3)
    scale: bool = param(params.FlagRule(), default=True)
    window_size: int = param(params.IntRule(2), default=200)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"k": 3, "family": "gaussian"}
        yield {"k": 3, "l1_ratio": 0.5, "n_alphas": 30, "fading_factor": 0.05}
        pooled = {"k": 2, "family": "gaussian", "max_candidates": 4, "exact": True}
        yield pooled | {"max_features": 4, "grace_period": 20}

    @property
    def _score_meaning(self) -> str:
        return "penalty alpha at which the variable enters the path"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.l1_ratio > 1.0:
            expected = "a float in the range (0.0, 1.0]"
            raise params.parameter_error("Lasso", "l1_ratio", expected, self.l1_ratio)
        if self.k is not None and self.alphas is not None:
            raise ValueError(
                f"Expected k or alphas, not both. Got: k={self.k!r} and "
                f"alphas={self.alphas!r}.\n"
                "Hint: leave out k to select all variables of the last solution."
            )

    @property
    def _n_requested(self) -> int | None:
        return _K if self.k is None and self.alphas is None else super()._n_requested

    # The path

    @property
    def _penalty(self) -> LassoPenalty:
        alphas = self.alphas
        if alphas is not None:
            values = alphas if isinstance(alphas, tuple) else (alphas,)
            alphas = tuple(sorted(map(float, values), reverse=True))
        return LassoPenalty(alphas, self.l1_ratio, self.n_alphas, self.alpha_min_ratio, self.scale)

    def _problem(self, held: VariableState) -> LassoProblem:
        if isinstance(held, CertifiedPool):
            return self._sampled(held)
        return SquaredLoss(held, self._penalty)

    def _sampled(self, pool: CertifiedPool) -> SampledProblem:
        if self._is_logistic:
            assert isinstance(self._target, Target)  # noqa: S101
            return LogisticLoss(pool, self._penalty, np.rint(self._target.columns()[:, 1]))
        target = pool.basis[0] if len(pool.basis) else np.zeros(pool.n)
        return SampledSquaredLoss(pool, self._penalty, target)

    def _solve(self, held: VariableState, k: int | None) -> LassoPath:
        if not held.names:
            return NO_PATH
        return solve_path(self._problem(held), self._penalty, k)

    def _select(self, held: Any, k: int) -> Picks:
        if isinstance(held, CertifiedPool) and held is self._columns and k == self._n_wanted(held):
            return rank_by_entry(self._path(), k)
        return rank_by_entry(self._solve(held, None if self._n_requested is None else k), k)

    def _n_wanted(self, held: VariableState) -> int:
        return len(held.names) if self._n_requested is None else self._n_requested

    def _candidate_solution(
        self, pool: CertifiedPool, before: PathSolution | None, n_proven: int
    ) -> PathSolution:
        # A certified solution remains one over all variables, so `solve_pool_path` keeps it.
        del n_proven
        return solve_pool_path(pool, self._sampled(pool), self._penalty, self._n_requested, before)

    def _solution_from_state(self, pool: CertifiedPool, state: dict[str, Any]) -> PathSolution:
        wanted = self._n_wanted(pool)
        return path_from_state(pool, self._sampled(pool), self._penalty, wanted, state)

    def _learn_stream(self, stream: ColumnStream) -> None:
        super()._learn_stream(stream)
        pool = self._columns
        plan = pool.solution if isinstance(pool, CertifiedPool) else None
        if isinstance(plan, PathSolution) and plan.path.path_truncated and not plan.is_rough:
            assert isinstance(pool, CertifiedPool)  # noqa: S101
            warnings.warn(
                f"The path ends early: the pool has room for {pool.limit} active variables.\n"
                "Hint: increase max_candidates or max_pool_bytes, or select fewer (k, alphas).",
                stacklevel=2,
            )

    # Results

    def _plan_of(self, pool: CertifiedPool) -> PathSolution:
        """Return the candidate solution of a pool, with all alphas."""
        plan = pool.latest_solution()
        assert isinstance(plan, PathSolution)  # noqa: S101
        if not plan.is_rough:
            return plan
        return solve_pool_path(pool, self._sampled(pool), self._penalty, self._n_requested, None)

    def _is_proven(self, pool: CertifiedPool) -> bool:
        return pool.complete or (pool.is_certified and not self._is_rough(pool))

    def _is_rough(self, pool: CertifiedPool) -> bool:
        return isinstance(pool.solution, PathSolution) and pool.solution.is_rough

    @cached_until_update
    def _path(self) -> LassoPath:
        """Return the path over the tracked variables, by their indices."""
        held = self._state
        if held is None:
            return NO_PATH
        if isinstance(held, CertifiedPool):
            return self._plan_of(held).current_path()
        return self._solve(held, self._n_requested)

    @cached_until_update
    def _models(self) -> list[_Model]:
        """Return the solutions on the original scale of the variables."""
        held, path = self._state, self._path()
        if held is None:
            return []
        stats, space, models = held.stats(), held.space, []
        squares = stats.m2 if space is None else space.adjusted_squares(stats.m2, stats.cxy)
        for alpha, indices, values, level in path.solutions:
            w = values * path.norm / np.sqrt(squares[indices])
            names = [held.names[j] for j in indices.tolist()]
            level_at_zero = level if self._is_logistic else self._mean_of_target()
            intercept = level_at_zero - float(w @ stats.mean[indices])
            models.append(
                _Model(alpha, float(intercept), dict(zip(names, w.tolist(), strict=True)))
            )
        return models

    def _mean_of_target(self) -> float:
        held = self._state
        if isinstance(held, AlignedView):
            assert self._moments is not None  # noqa: S101
            is_given = self._moments.target.is_covariate()
            return float(held.target_means[int(np.argmin(is_given))])
        assert isinstance(self._target, Target)  # noqa: S101
        return float(self._target.mean[0])

    @property
    def path(self) -> dict[float, dict[Hashable, float]]:
        """Solutions: alpha, descending -> name -> nonzero coefficient on the original scale."""
        return {model.alpha: dict(model.coefficients) for model in self._models()}

    @property
    def coefficients(self) -> dict[Hashable, float]:
        """Coefficients of the last solution, the selected variables first: name -> coefficient."""
        models = self._models()
        last = models[-1].coefficients if models else {}
        first = {name: last[name] for name in self._selected()}
        return first | last

    @property
    def intercept(self) -> float:
        """Intercept of the last solution, with covariates at their means; NaN if there is none."""
        models = self._models()
        return models[-1].intercept if models else float("nan")

    @property
    def path_truncated(self) -> bool:
        """Whether the path ends because the pool has no room for more active variables."""
        return self._path().path_truncated

    @cached_until_update
    def _quality(self) -> tuple[float, float]:
        """Return the largest duality gap and KKT violation on the path."""
        held, outside = self._state, None
        if held is None or (self._target is None and self._moments is None):
            return float("nan"), float("nan")
        if isinstance(held, CertifiedPool) and not held.complete:
            if not self._is_proven(held):
                return float("nan"), float("nan")
            outside = held.best_discarded
        return path_quality(self._problem(held), self._penalty, self._path(), outside)

    @property
    def duality_gap(self) -> float:
        """Largest duality gap on the path, over all columns, relative to the empty model's loss.

        NaN while discarded columns are not certified to leave the path unchanged.
        """
        return self._quality()[0]

    @property
    def kkt_violation(self) -> float:
        """Largest relative violation of the KKT conditions on the path, over all columns.

        NaN while discarded columns are not certified to leave the path unchanged.
        """
        return self._quality()[1]

    @property
    def n_certified(self) -> int:
        """Number of picks certified over all columns: all, once every solution is certified."""
        held = self._state
        if isinstance(held, CertifiedPool):
            return len(self._picks().indices) if self._is_proven(held) else 0
        return super().n_certified

    def _extra_report_columns(self) -> Mapping[str, Mapping[Hashable, float]]:
        return {"coefficient": self.coefficients}
