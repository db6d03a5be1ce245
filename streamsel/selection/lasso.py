"""Lasso: L1 and elastic-net regularisation paths with exact pools."""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, NamedTuple, cast

import numpy as np

from streamsel import params
from streamsel.base.caching import cached_until_update
from streamsel.base.certified_selector import CertifiedSelector
from streamsel.base.joint_rows import max_joint_features
from streamsel.base.river import Supervised
from streamsel.base.selector import EVERY_COLUMN
from streamsel.params import param
from streamsel.selection._group_lasso import (
    GroupLassoProblem,
    GroupLassoSolution,
    GroupLassoSolver,
    coefficients_of_members,
)
from streamsel.selection._lasso_losses import SquaredLoss, check_family
from streamsel.selection._lasso_path import (
    NO_PATH,
    LassoPath,
    LassoPenalty,
    LassoProblem,
    path_quality,
    solve_path,
)
from streamsel.selection._lasso_solution import LassoSolver, PathSolution, rank_by_entry
from streamsel.state.base import ColumnState, VariableState
from streamsel.state.moments.aligned_view import AlignedView
from streamsel.state.moments.joint import CrossMoments
from streamsel.state.pool.certifier import Certifier
from streamsel.state.pool.group_pool import GroupPool
from streamsel.state.pool.pool import Picks
from streamsel.stream import ColumnStream
from streamsel.targets.observation import Observation
from streamsel.targets.rows import RowTarget
from streamsel.targets.target import Target

# Default of k when alphas is None.
_K = 20


class _Model(NamedTuple):
    """A solution: its coefficients on the original scale, and for variables of equal scale."""

    alpha: float
    intercept: float
    coefficients: dict[Hashable, float]
    standardized: dict[Hashable, float]


class Lasso(CertifiedSelector, Supervised):
    r"""Select variables by an L1 or elastic-net regularisation path.

    For a descending sequence of $\alpha$, from the one at which the first variable enters, the
    coefficients minimise

    $$\frac{1}{2n} \|y - Xw\|^2 + \alpha \rho \sum_j s_j |w_j|
    + \frac{\alpha (1 - \rho)}{2} \sum_j s_j^2 w_j^2,$$

    or the logistic loss for two classes, with an unpenalised intercept. $\rho = 1$ is the LASSO,
    $\rho < 1$ the elastic net. The selected variables are those of the last solution. Solutions
    agree with scikit-learn and glmnet to the precision of these packages. They hold over all
    columns, although only a bounded pool is tracked: with `exact`, further passes (two to four in
    all) certify that no discarded column violates the optimality conditions of any solution.

    Parameters
    ----------
    k
        Number of variables to select: the path ends with the first solution of at least k
        variables; if it has more, the k that entered first are selected. `"all"` computes the whole
        grid. None means 20, or, with `alphas`, all variables of the last solution.
    alphas
        Values of $\alpha$ instead of k, a number or an array-like, with scikit-learn's definition.
        None means a grid.
    l1_ratio
        Mixing parameter $\rho$ in (0, 1].
    family
        Loss: `"gaussian"`, least squares, for one numeric target. `"logistic"`: for two classes
        (labels, booleans, or two numbers such as 0 and 1); the second in order is the one
        predicted. `"auto"`: the logistic loss if columns are learnt with two classes, otherwise
        least squares; `report().target` shows it. Covariates, weights and fading require least
        squares: with them two numbers are treated as a quantity.
    n_alphas, alpha_min_ratio
        Grid size, and ratio of its last to its first value; the grid is logarithmic.
    scale
        Whether $s_j$ is the standard deviation of a variable, as in glmnet, which makes the result
        independent of units; otherwise $s_j = 1$, as in scikit-learn.
    window_size
        On rows, with the logistic family or after groups of columns: number of rows buffered before
        they are learnt as columns.

    Attributes
    ----------
    selected
        In the order in which they entered the path; ties by the largest absolute
        coefficient, then by arrival.
    scores, rounds
        The $\alpha$ at which each selected variable entered, and the index of that solution on the
        path.
    n_rows, n_columns, n_constant
        Number of rows (observations of columns, and rows learnt one by one); number of variables
        (one that returns after eviction counts again); number of constant variables, which are
        never selected.
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
    the active set, and its linear equations are then solved exactly. So solutions are those over
    all columns to rounding, in any order, and there is no tolerance to set.

    **Memory.** `max_pool_bytes`, and $n$ numbers per solution. All variables active in any solution
    must fit into the pool. Otherwise the path ends there and `path_truncated` is True; the
    certificate then refers to the shorter path, and with `exact` a warning is issued.

    **Certificate.** The first pass keeps the columns with the largest violations, under solutions
    that still change. A solution is certified once all columns were scored under it. Once the whole
    path is certified, `n_certified` counts all selected variables, and `duality_gap` and
    `kkt_violation` refer to all columns; before, they are NaN.

    **Rows.** Least squares depends only on the joint moments of a bounded vocabulary, which rows
    accumulate. The result equals that on the columns of the same rows, or of the rows since all
    variables in use were present (`n_aligned_rows`). The logistic family learns windows of rows,
    and supports neither covariates nor fading. With `family="auto"`, rows continue with it if the
    columns had two classes.

    **Groups of columns** (`learn_group`, `stream.grouped`; group Lasso): with $Q_g$ an orthonormal
    basis of a group of dimension $q_g$, scaled to standard deviations of 1, the penalty is $\alpha
    \rho \sum_g \sqrt{q_g} \|b_g\| + \frac{\alpha (1 - \rho)}{2} \sum_g \|b_g\|^2$, which for groups
    of one is that of the Lasso. `k` counts groups, `coefficients` are those of the members. Groups
    require least squares and `scale=True`; rows after groups are learnt by windows. Newton's method
    finds solutions of nearly collinear groups too. The path ends before a solution that rounding
    keeps from a relative tolerance of 1e-9, and `path_truncated` is True.

    **Missing and new features.** A column with a missing value is refused. In a row an absent
    variable is 0, and NaN or None counts as the variable's mean; a new variable counts as 0 in
    earlier rows.

    **Ties.** Solutions are not unique if columns are linearly dependent. The first of identical
    columns to arrive has the whole coefficient; with $\rho < 1$ they share it. Optimality
    conditions are checked to a relative tolerance of 1e-9.

    Transforms return the selected variables; prediction is left to the downstream model.

    References
    ----------
    [^1]: Tibshirani, R. (1996). Regression shrinkage and selection via the lasso. Journal of the
    Royal Statistical Society B 58, 267-288.

    [^2]: Friedman, J., Hastie, T. and Tibshirani, R. (2010). Regularization paths for generalized
    linear models via coordinate descent. Journal of Statistical Software 33(1).

    [^3]: Tibshirani, R. et al. (2012). Strong rules for discarding predictors in lasso-type
    problems. Journal of the Royal Statistical Society B 74, 245-266.

    [^4]: Yuan, M. and Lin, Y. (2006). Model selection and estimation in regression with grouped
    variables. Journal of the Royal Statistical Society B 68, 49-67.

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

    _row_state_type = CrossMoments

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
    max_features: int | None = max_joint_features()

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

    # The loss, which the parameter `family` sets, or the target

    def _check_target(self, c: int, *, is_class: bool) -> None:
        check_family(self.family, c, is_class=is_class, least_squares_for=self._least_squares_for)

    @property
    def _least_squares_for(self) -> str:
        """The setting that requires least squares; empty if there is none."""
        if self.fading_factor:
            return f"fading_factor={self.fading_factor!r}"
        return "" if self.covariates is None else f"covariates={self.covariates!r}"

    def _take_target(self, target: Target) -> None:
        phase = self._column_phase
        before, phase.target = phase.target, target
        try:
            # The checks depend on the loss, and the loss on the target.
            super()._take_target(target)
        except BaseException:
            phase.target = before
            raise

    def _check_columns(self, target: RowTarget, seen: Observation, rows: int) -> None:
        if seen.form == "class" and not self._by_window:
            raise ValueError(
                f"Expected a numeric target of rows, as family={self.family!r} requires. Got: "
                "a label.\nHint: family='logistic' learns rows of two classes, in windows."
            )
        super()._check_columns(target, seen, rows)

    @property
    def _is_logistic(self) -> bool:
        """Whether the loss is logistic: by the family, or else by the target."""
        if self.family != "auto":
            return self.family == "logistic"
        # The constructor reads this before the target is set.
        target = getattr(self, "_target", None)
        return target is not None and target.is_class

    @property
    def _by_window(self) -> bool:
        return self._is_logistic or super()._by_window

    @property
    def _row_target_type(self) -> str:
        any_label_is_class = self.target_type == "auto" and self.family == "logistic"
        return "class" if any_label_is_class else super()._row_target_type

    def _target_description(self) -> str | None:
        text = super()._target_description()
        is_inferred = self.family == "auto" and self._is_logistic
        return f"{text}; logistic loss" if text is not None and is_inferred else text

    # The path

    @property
    def _penalty(self) -> LassoPenalty:
        alphas = self.alphas
        if alphas is not None:
            values = alphas if isinstance(alphas, tuple) else (alphas,)
            alphas = tuple(sorted(map(float, values), reverse=True))
        return LassoPenalty(alphas, self.l1_ratio, self.n_alphas, self.alpha_min_ratio, self.scale)

    def _solver(self) -> LassoSolver:
        classes = None
        if self._is_logistic and isinstance(self._target, Target):
            classes = np.rint(self._target.columns()[:, 1])
        return LassoSolver(self._n_requested, self._penalty, classes)

    def _new_groups(self, n: int) -> ColumnState:
        for name, is_refused, expected in (
            ("family", self._is_logistic, "'gaussian'"),
            ("scale", not self.scale, "True"),
        ):
            if is_refused:
                text, value = f"{expected} with groups of columns", getattr(self, name)
                raise params.parameter_error(type(self).__name__, name, text, value)
        return self._new_group_certifier(n, GroupLassoSolver(self._n_requested, self._penalty))

    def _select(self, view: VariableState, k: int) -> Picks:
        n_requested = len(view.names) if self._n_requested is None else self._n_requested
        if self._certifier is not None and k == n_requested:
            return rank_by_entry(self._path(), k)
        return super()._select(view, k)

    def _select_on_rows(self, view: VariableState, k: int) -> Picks:
        return rank_by_entry(self._path_on_rows(view, None if self._n_requested is None else k), k)

    def _path_on_rows(self, view: VariableState, k: int | None) -> LassoPath:
        if not view.names:
            return NO_PATH
        return solve_path(SquaredLoss(view, self._penalty), self._penalty, k)

    def _learn_stream(self, stream: ColumnStream) -> None:
        super()._learn_stream(stream)
        state = self._certifier
        solution = None if state is None else cast("PathSolution | None", state.solution)
        if solution is not None and solution.path.path_truncated and not solution.is_rough:
            room = f"the pool has room for {self._pool_capacity(self.n_rows)} active variables"
            if self._group_pool is not None:
                room += ", or the next solution is not accurate"
            warnings.warn(
                f"The path ends early: {room}.\n"
                "Hint: increase max_candidates or max_pool_bytes, or select fewer (k, alphas).",
                stacklevel=2,
            )

    # Results

    def _is_certified(self, state: Certifier) -> bool:
        solution = cast("PathSolution | None", state.solution)
        is_rough = solution is not None and solution.is_rough
        return state.complete or (state.is_certified and not is_rough)

    @cached_until_update
    def _path(self) -> LassoPath:
        """Return the path over the tracked variables, by their indices."""
        view, state = self._state, self._certifier
        if view is None:
            return NO_PATH
        if state is None:
            return self._path_on_rows(view, self._n_requested)
        solution = cast("PathSolution", state.latest_solution())
        if solution.is_rough:
            # With all alphas.
            solution = cast("PathSolution", state.solver.solve(state.pool, None, None))
        return solution.current_path()

    @cached_until_update
    def _models(self) -> list[_Model]:
        """Return the solutions on the original scale of the variables."""
        view, path = self._state, self._path()
        if view is None:
            return []
        if self._group_pool is not None:
            return self._models_of_groups(self._group_pool, path)
        stats, space, models = view.stats(), view.space, []
        squares = stats.m2 if space is None else space.adjusted_squares(stats.m2, stats.cxy)
        for alpha, indices, values, level in path.solutions:
            deviations = np.sqrt(squares[indices])
            w = values * path.norm / deviations
            names = [view.names[j] for j in indices.tolist()]
            level_at_zero = level if self._is_logistic else self._mean_of_target()
            intercept = level_at_zero - float(w @ stats.mean[indices])
            scaled = w * deviations / math.sqrt(self.n_rows)
            models.append(
                _Model(
                    alpha,
                    float(intercept),
                    dict(zip(names, w.tolist(), strict=True)),
                    dict(zip(names, scaled.tolist(), strict=True)),
                )
            )
        return models

    @property
    def _group_pool(self) -> GroupPool | None:
        """The pool of groups, if columns have groups."""
        pool = None if self._certifier is None else self._certifier.pool
        return pool if isinstance(pool, GroupPool) else None

    def _models_of_groups(self, pool: GroupPool, path: LassoPath) -> list[_Model]:
        """Return the solutions on the original scale of the members of groups."""
        models = []
        for one in path.solutions:
            found = cast("GroupLassoSolution", one)
            coefficients, offset = coefficients_of_members(pool, found, path.norm)
            models.append(_Model(one.alpha, self._mean_of_target() - offset, coefficients, {}))
        return models

    def _mean_of_target(self) -> float:
        if isinstance(self._target, Target):
            return float(self._target.mean[0])
        view, moments = self._state, self._moments
        if moments is None or not isinstance(view, AlignedView):
            return math.nan
        is_covariate = moments.target.is_covariate()
        return float(view.target_means[int(np.argmin(is_covariate))])

    @property
    def path(self) -> dict[float, dict[Hashable, float]]:
        """Solutions: alpha, descending -> name -> nonzero coefficient on the original scale."""
        return {model.alpha: dict(model.coefficients) for model in self._models()}

    @property
    def coefficients(self) -> dict[Hashable, float]:
        """Coefficients of the last solution, the selected variables first: name -> coefficient.

        For groups, those of their members, in the order of the groups.
        """
        models = self._models()
        last = models[-1].coefficients if models else {}
        if self._group_pool is not None:
            return dict(last)
        first = {name: last[name] for name in self._selected()}
        return first | last

    @property
    def standardized_coefficients(self) -> dict[Hashable, float]:
        """Coefficients of the last solution for variables of standard deviation 1, by name.

        The standard deviation is that of the residual on the covariates. Empty for groups of
        columns.
        """
        models = self._models()
        return dict(models[-1].standardized) if models else {}

    @property
    def intercept(self) -> float:
        """Intercept of the last solution, with covariates at their means; NaN if there is none."""
        models = self._models()
        return models[-1].intercept if models else float("nan")

    @property
    def path_truncated(self) -> bool:
        """Whether the path ends because the pool has no room for more active variables.

        For groups, also if rounding keeps the next solution from a relative tolerance of 1e-9.
        """
        return self._path().path_truncated

    @cached_until_update
    def _quality(self) -> tuple[float, float]:
        """Return the largest duality gap and KKT violation on the path."""
        view, state, outside = self._state, self._certifier, None
        if view is None or (self._target is None and self._moments is None):
            return math.nan, math.nan
        if state is not None and not state.complete:
            if not self._is_certified(state):
                return math.nan, math.nan
            outside = state.best_discarded
        if (pool := self._group_pool) is not None:
            found = cast("list[GroupLassoSolution]", self._path().solutions)
            return GroupLassoProblem(pool, self._penalty).quality(found, outside)
        problem: LassoProblem = (
            SquaredLoss(view, self._penalty)
            if state is None
            else self._solver().problem(state.pool)
        )
        return path_quality(problem, self._penalty, self._path(), outside)

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
        state = self._certifier
        if state is None:
            return super().n_certified
        return len(self._picks().indices) if self._is_certified(state) else 0

    def _extra_report_columns(self) -> Mapping[str, Mapping[Hashable, float]]:
        if (pool := self._group_pool) is not None:
            found, path = self._path().solutions, self._path()
            one = found[-1] if found else None
            lengths = (
                {} if one is None else dict(zip(one.indices.tolist(), one.values, strict=True))
            )
            names = pool.index_of
            scale = path.norm / math.sqrt(pool.n)
            return {
                "coefficient_length": {
                    name: scale * float(lengths[names[name]]) for name in self._selected()
                }
            }
        return {"coefficient": self.coefficients}
