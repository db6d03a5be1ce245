"""Lasso: the variables of a linear model most of whose coefficients are 0."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from streamsel import params
from streamsel.held.common import Common
from streamsel.held.part import Held
from streamsel.held.pool import Picks
from streamsel.held.stage_pool import StagePool
from streamsel.learner.cached import until_learnt
from streamsel.learner.river import Supervised
from streamsel.learner.selector import ALL
from streamsel.learner.staged import Staged
from streamsel.params import param
from streamsel.selection._lasso_family import ByFamily
from streamsel.selection._lasso_losses import Logistic, SampledSquares, Squares
from streamsel.selection._lasso_path import NO_PATH, Path, Penalty, Problem, Sampled, quality, solve
from streamsel.selection._lasso_plan import PathPlan, planned, ranked, restored
from streamsel.stream import ColumnStream
from streamsel.target.target import Target

# So many are selected where neither k nor alphas are given.
_K = 20


class _Model(NamedTuple):
    """A solution, of variables as they are."""

    alpha: float
    intercept: float
    coefficients: dict[Hashable, float]


class Lasso(ByFamily, Staged[PathPlan], Supervised):
    r"""LASSO: the variables of a linear model most of whose coefficients are 0.

    For one $\alpha$ after another, from the one at which the first variable enters downwards, the
    coefficients minimise

    $$\frac{1}{2n} \|y - Xw\|^2 + \alpha \rho \sum_j s_j |w_j|
    + \frac{\alpha (1 - \rho)}{2} \sum_j s_j^2 w_j^2,$$

    or the logistic loss for two classes, with an intercept that costs nothing. With $\rho = 1$ that
    is the LASSO, below it the elastic net. The selected variables are those of the last solution.
    The solutions are those of scikit-learn and glmnet to the digits that these give, and they are
    over all columns, of which a bounded pool is held: with `exact` the source is read again, two to
    four times, until no column that was let go violates the conditions of any solution.

    Parameters
    ----------
    k
        The path ends with the first solution of at least so many variables; of more, those are
        selected that entered first. `"all"` computes the whole grid. None for 20, or, where
        `alphas` are given, for all variables of their last solution.
    alphas
        Instead of k: the $\alpha$, a number or an array-like of them, as scikit-learn has them.
        None for a grid.
    l1_ratio
        $\rho$, in (0, 1].
    family
        `"gaussian"`: least squares, for one numeric target. `"logistic"`: for two classes (labels,
        booleans, or two numbers such as 0 and 1); the second in order is the one predicted.
        `"auto"` takes least squares for a numeric target, and the logistic loss for two classes of
        columns; `report().target` shows it. Covariates, weights and fading need least squares: with
        them two numbers are taken as a quantity.
    n_alphas, alpha_min_ratio
        The grid: so many, evenly on a logarithmic scale, down to this part of the first.
    scale
        Whether $s_j$ is the standard deviation of a variable, as in glmnet, so that units do not
        matter; 1 otherwise, as in scikit-learn.
    window_size
        On rows, for the logistic family: how many are gathered before they are learnt, as columns.

    Attributes
    ----------
    selected
        In the order in which they entered the path; of those that entered at once the one of the
        largest coefficient first, then the first to arrive.
    scores, rounds
        The $\alpha$ at which each of them entered, and its place on the path.
    n_rows, n_columns, n_constant
        Rows seen, as observations of the columns or one by one; variables seen, one that comes back
        after it was let go counted again; those among them that do not vary, which are never
        selected.
    n_passes
        How often the columns were read: 1, or more where `exact` had to read them again.

    Raises
    ------
    ValueError
        For a parameter out of its range, and, when it comes, for a target that the family does not
        take.

    Notes
    -----
    **Cost.** A column costs one pass over it and, once the pool was full, its products with the
    residuals of all solutions: one matrix product for all columns of a block. A path over a pool of
    $p$ variables, at most $s$ of them active, costs $O(n p)$ and $O(s^3)$ a solution. Coordinate
    descent finds who is active; the equations that hold then are solved exactly, so that solutions
    are those of all columns to rounding, whatever the order, and no tolerance is to be set.

    **Memory.** `max_pool_bytes`, and $n$ numbers a solution. All variables that are active in any
    solution must fit: where they do not the path ends there, and `is_cut_short` says so (what is
    proven then is the shorter path); with
    `exact` there is a warning too.

    **Certificate.** The first reading keeps the columns that violate most, under solutions that
    still move. A solution is proven once all columns were seen under it; `n_certified` says so when
    the whole path is. `gap` and `kkt` are over all columns then, and NaN before.

    **Rows.** Least squares is a function of the joint moments of a bounded vocabulary, which rows
    accumulate: the answer is that on the columns of the same rows, or of those since all variables
    in use were there (`n_rows_used`). The logistic family learns windows of rows, and knows no
    covariates and no fading; with `family="auto"` it goes on with rows where columns had two
    classes.

    **Missing and new features.** A column with a missing value is refused. In a row a variable that
    is absent is 0, one that is NaN or None counts as if it had its mean; a new variable was 0
    before.

    **Ties.** Solutions are not unique where columns depend on one another. Of copies the first to
    arrive has the whole coefficient; with $\rho < 1$ they share it. Conditions are taken as kept
    within a part of 1e-9.

    Transforms keep the variables; to predict is the business of what stands behind.

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
    Three of a thousand variables make the target:

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

    They are found before their coefficients are what they were made with, for these are shrunk:

    >>> [round(w, 2) for w in model.coefficients.values()]
    [2.05, -1.14, 0.04]

    At a smaller alpha they are nearer:

    >>> model = Lasso(alphas=(0.3, 0.1))
    >>> model.learn_target(y)
    >>> model.learn_columns(X)
    >>> [(alpha, len(found)) for alpha, found in model.path.items()]
    [(0.3, 3), (0.1, 3)]
    >>> round(model.coefficients[110], 2), round(model.intercept, 2)
    (2.9, 5.02)

    With room for 32 columns only the answer is the same, proven over all:

    >>> pooled = Lasso(alphas=(0.3, 0.1), max_candidates=32, exact=True)
    >>> pooled.learn_target(y)
    >>> pooled.learn_columns(X)
    >>> pooled.selected == model.selected, pooled.n_certified, pooled.n_passes
    (True, 3, 2.0)
    >>> pooled.gap < 1e-9, pooled.kkt < 1e-9
    (True, True)
    """

    # The active sets of a whole path, and what may enter them, are many.
    _few_are_enough = False

    k: int | str | None = param(
        params.NamedOr(params.Choice((ALL,)), (params.Whole(1, optional=True),)),
        default=None,
        kw_only=False,
        default_text=f"{_K}, or as many as alphas select",
    )
    alphas: float | tuple[float, ...] | None = param(
        params.Several(params.Real(0.0, open=True), optional=True), default=None
    )
    l1_ratio: float = param(params.Real(0.0, open=True), default=1.0)
    family: str = param(params.Choice(("auto", "gaussian", "logistic")), default="auto")
    n_alphas: int = param(params.Whole(2, below=params.MANY), default=100)
    alpha_min_ratio: float = param(params.Real(0.0, open=True, below=1.0), default=1e-3)
    scale: bool = param(params.Flag(), default=True)
    window_size: int = param(params.Whole(2), default=200)

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
            raise ValueError(
                f"The 'l1_ratio' parameter of {type(self).__name__} must be a float in the range "
                f"(0.0, 1.0]. Got {self.l1_ratio!r} instead."
            )
        if self.k is not None and self.alphas is not None:
            raise ValueError(
                f"Expected k or alphas, not both. Got k={self.k!r} and alphas={self.alphas!r} "
                "instead.\nHint: leave out k, and all variables of the last solution are selected."
            )

    @property
    def _asked(self) -> int | None:
        return _K if self.k is None and self.alphas is None else super()._asked

    # The path

    @property
    def _penalty(self) -> Penalty:
        alphas = self.alphas
        if alphas is not None:
            given = alphas if isinstance(alphas, tuple) else (alphas,)
            alphas = tuple(sorted(map(float, given), reverse=True))
        return Penalty(alphas, self.l1_ratio, self.n_alphas, self.alpha_min_ratio, self.scale)

    def _problem(self, held: Held) -> Problem:
        if isinstance(held, StagePool):
            return self._sampled(held)
        return Squares(held, self._penalty)

    def _sampled(self, pool: StagePool) -> Sampled:
        if self._is_logistic:
            assert isinstance(self._target, Target)  # noqa: S101
            return Logistic(pool, self._penalty, np.rint(self._target.columns()[:, 1]))
        target = pool.basis[0] if len(pool.basis) else np.zeros(pool.n)
        return SampledSquares(pool, self._penalty, target)

    def _path_of(self, held: Held, k: int | None) -> Path:
        if not held.names:
            return NO_PATH
        return solve(self._problem(held), self._penalty, k)

    def _select(self, held: Any, k: int) -> Picks:
        if isinstance(held, StagePool) and held is self._columns and k == self._wanted(held):
            return ranked(self._path(), k)
        return ranked(self._path_of(held, None if self._asked is None else k), k)

    def _wanted(self, held: Held) -> int:
        return len(held.names) if self._asked is None else self._asked

    def _plan(self, pool: StagePool, before: PathPlan | None, n_proven: int) -> PathPlan:
        # A solution that is proven still is one of all variables, and so stays.
        del n_proven
        return planned(pool, self._sampled(pool), self._penalty, self._asked, before)

    def _restored_plan(self, pool: StagePool, state: dict[str, Any]) -> PathPlan:
        wanted = self._wanted(pool)
        return restored(pool, self._sampled(pool), self._penalty, wanted, state)

    def _learn_stream(self, stream: ColumnStream) -> None:
        super()._learn_stream(stream)
        pool = self._columns
        plan = pool.plan if isinstance(pool, StagePool) else None
        if isinstance(plan, PathPlan) and plan.path.is_cut_short and not plan.is_rough:
            assert isinstance(pool, StagePool)  # noqa: S101
            warnings.warn(
                f"The path ends early: the pool has room for {pool.limit} active variables.\n"
                "Hint: a larger max_candidates or max_pool_bytes, or fewer variables (k, alphas).",
                stacklevel=2,
            )

    # What was found

    def _plan_of(self, pool: StagePool) -> PathPlan:
        """Return the plan of a pool, with all alphas."""
        plan = pool.latest()
        assert isinstance(plan, PathPlan)  # noqa: S101
        if not plan.is_rough:
            return plan
        return planned(pool, self._sampled(pool), self._penalty, self._asked, None)

    def _is_proven(self, pool: StagePool) -> bool:
        return pool.complete or (pool.settled and not self._is_rough(pool))

    def _is_rough(self, pool: StagePool) -> bool:
        return isinstance(pool.plan, PathPlan) and pool.plan.is_rough

    @until_learnt
    def _path(self) -> Path:
        """Return the path over what is held, with its places."""
        held = self._held
        if held is None:
            return NO_PATH
        if isinstance(held, StagePool):
            return self._plan_of(held).path_now()
        return self._path_of(held, self._asked)

    @until_learnt
    def _models(self) -> list[_Model]:
        """Return the solutions, of variables as they are."""
        held, path = self._held, self._path()
        if held is None:
            return []
        stats, space, models = held.stats(), held.space, []
        left = stats.m2 if space is None else space.left(stats.m2, stats.cxy)
        for alpha, places, values, level in path.solutions:
            w = values * path.norm / np.sqrt(left[places])
            names = [held.names[j] for j in places.tolist()]
            start = level if self._is_logistic else self._mean_of_target()
            intercept = start - float(w @ stats.mean[places])
            models.append(
                _Model(alpha, float(intercept), dict(zip(names, w.tolist(), strict=True)))
            )
        return models

    def _mean_of_target(self) -> float:
        held = self._held
        if isinstance(held, Common):
            assert self._moments is not None  # noqa: S101
            is_given = self._moments.target.is_given()
            return float(held.target_means[int(np.argmin(is_given))])
        assert isinstance(self._target, Target)  # noqa: S101
        return float(self._target.mean[0])

    @property
    def path(self) -> dict[float, dict[Hashable, float]]:
        """Solutions: alpha, descending -> name -> coefficient of a variable as it is, if not 0."""
        return {model.alpha: dict(model.coefficients) for model in self._models()}

    @property
    def coefficients(self) -> dict[Hashable, float]:
        """Coefficients of the last solution, the selected first: name -> coefficient."""
        models = self._models()
        last = models[-1].coefficients if models else {}
        first = {name: last[name] for name in self._selected()}
        return first | last

    @property
    def intercept(self) -> float:
        """Intercept of the last solution, with covariates at their means; NaN without one."""
        models = self._models()
        return models[-1].intercept if models else float("nan")

    @property
    def is_cut_short(self) -> bool:
        """Whether the path ends because the pool has no room for more active variables."""
        return self._path().is_cut_short

    @until_learnt
    def _quality(self) -> tuple[float, float]:
        """Return the largest gap of all solutions, and the largest violation of the conditions."""
        held, outside = self._held, None
        if held is None or (self._target is None and self._moments is None):
            return float("nan"), float("nan")
        if isinstance(held, StagePool) and not held.complete:
            if not self._is_proven(held):
                return float("nan"), float("nan")
            outside = held.lost
        return quality(self._problem(held), self._penalty, self._path(), outside)

    @property
    def gap(self) -> float:
        """Largest duality gap on the path, over all columns, as part of the empty model's loss.

        NaN as long as columns were let go that are not proven to change nothing.
        """
        return self._quality()[0]

    @property
    def kkt(self) -> float:
        """Largest violation of the conditions of optimality, over all columns, as part of the bar.

        NaN as long as columns were let go that are not proven to change nothing.
        """
        return self._quality()[1]

    @property
    def n_certified(self) -> int:
        """How many picks are proven those over all columns: all, once every solution is."""
        held = self._held
        if isinstance(held, StagePool):
            return len(self._picks().places) if self._is_proven(held) else 0
        return super().n_certified

    def _told(self) -> Mapping[str, Mapping[Hashable, float]]:
        return {"coefficient": self.coefficients}
