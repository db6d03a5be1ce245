"""Lasso solutions for a descending sequence of alphas, over all tracked variables."""

from __future__ import annotations

import abc
from collections.abc import Hashable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from streamsel.state.base import Floats, Indices, VariableState

# Relative excess of a gradient over its threshold that still counts as satisfied.
KKT_RTOL = 1e-9
# Rounding error of gradients, which are of order 1.
_ROUNDING = 1e-14
# Minimum batch of variables added to the working set, hardly slower than one; and maximum, or half
# of the working set if that is more.
_MIN_BATCH, _MAX_BATCH = 32, 64
# Absolute correlation from which two columns count as identical.
DUPLICATE_CORRELATION = 1.0 - 1e-14
# Number of solutions computed before their gradients are checked together.
_CHECK_TOGETHER = 8
# Thinning of the alphas on a rough path.
_THINNING = 5
# A variable with a smaller absolute correlation with the target is uncorrelated.
NO_VARIABLES = 1e-12

_NO_INDICES: Indices = np.zeros(0, dtype=np.intp)
_NO_VALUES: Floats = np.zeros(0)

Bools = NDArray[np.bool_]


class LassoPenalty(NamedTuple):
    """Penalty α n (ρ Σ d|b| + (1 - ρ)/2 Σ d²b²), and its alphas.

    Parameters
    ----------
    alphas
        Descending; None for a grid from the alpha at which the first variable enters.
    l1_ratio, n_alphas, alpha_min_ratio, scale
        As in Lasso.
    is_thinned
        Whether some of the alphas suffice.
    """

    alphas: tuple[float, ...] | None
    l1_ratio: float
    n_alphas: int
    alpha_min_ratio: float
    scale: bool
    is_thinned: bool = False

    def thinned(self) -> LassoPenalty:
        """Return the same penalty with fewer alphas, if there are many."""
        n_alphas = self.n_alphas if self.alphas is None else len(self.alphas)
        return self._replace(is_thinned=n_alphas > 2 * _THINNING)

    def grid(self, first: float) -> list[float]:
        """Return the alphas, given the one at which the first variable enters."""
        alphas = np.array(self.alphas or ())
        if self.alphas is None:
            alphas = np.geomspace(first, first * self.alpha_min_ratio, self.n_alphas)
        if self.is_thinned:
            alphas = np.append(alphas[:-1:_THINNING], alphas[-1])
        return [float(alpha) for alpha in alphas]


class LassoSolution(NamedTuple):
    """Minimiser of loss and penalty for one alpha.

    Parameters
    ----------
    alpha
        The alpha.
    indices, values
        Indices of the nonzero coefficients, ascending, and their values, for variables of length
        1 and divided by the problem's norm.
    intercept
        Intercept of the linear predictor of centred variables.
    """

    alpha: float
    indices: Indices
    values: Floats
    intercept: float


class LassoPath(NamedTuple):
    """Solutions along a path.

    Parameters
    ----------
    solutions
        One for each alpha, descending.
    weights
        (p,) penalty weights d.
    norm
        Divisor of the coefficients.
    path_truncated
        Whether it ends because the active variables exceed the limit, or because no solution for
        the next alpha was found.
    """

    solutions: list[LassoSolution]
    weights: Floats
    norm: float
    path_truncated: bool

    def active(self) -> Indices:
        """Return the variables active in any solution, ascending."""
        return active_union(self.solutions)


NO_PATH = LassoPath([], _NO_VALUES, 1.0, path_truncated=False)


def active_union(solutions: Sequence[LassoSolution]) -> Indices:
    """Return the variables active in any of some solutions, ascending."""
    return np.unique(np.concatenate([_NO_INDICES, *(found.indices for found in solutions)]))


class LassoProblem(abc.ABC):
    """Loss over the tracked variables, with current coefficients and a working set.

    Attributes
    ----------
    weights
        (p,) penalty weights d of the coefficients, for variables of length 1.
    varies
        (p,) which variables may have a coefficient.
    gradient_at_zero
        (p,) negative gradient of the loss at 0.
    norm
        Divisor of coefficients and gradients; its square is that of the loss.
    empty_loss
        Loss at 0.
    b, intercept
        (p,) coefficients, and intercept of the linear predictor of centred variables.
    working_set
        Working set: variables whose coefficients may differ from 0, ascending.
    """

    gradient_at_zero: Floats
    norm: float
    empty_loss: float

    def __init__(self, state: VariableState, penalty: LassoPenalty) -> None:
        stats, space = state.stats(), state.space
        left = stats.m2 if space is None else space.adjusted_squares(stats.m2, stats.cxy)
        self.n = float(state.n)
        self.varies = left > 0.0
        lengths = np.sqrt(np.where(self.varies, left, 1.0))
        self.weights = np.full(left.size, self.n**-0.5) if penalty.scale else 1.0 / lengths
        self.working_set, self.b, self.intercept = _NO_INDICES, np.zeros(left.size), 0.0
        self._shares_duplicates = penalty.l1_ratio < 1.0

    def without_duplicates(self, W: Indices, C: Floats) -> Indices:
        """Return which of variables W, with correlations C, do not duplicate an earlier one.

        Only the first of identical columns may be nonzero, unless the penalty has them share.
        """
        copies = np.abs(C) >= DUPLICATE_CORRELATION
        if self._shares_duplicates or np.count_nonzero(copies) == W.size:
            return np.arange(W.size)
        d = self.weights[W]
        copies &= d <= d[:, None] * (1.0 + 1e-12)
        copies = np.tril(copies, -1)
        is_copy = copies.any(axis=1)
        for j in np.flatnonzero(is_copy & (self.b[W] != 0.0)).tolist():
            first = int(np.argmax(copies[j]))
            self.b[W[first]] += np.sign(C[j, first]) * self.b[W[j]]
            self.b[W[j]] = 0.0
        return np.flatnonzero(~is_copy)

    def set_coefficients(self, indices: Indices, values: Floats, level: float) -> None:
        """Set the coefficients."""
        self.b[:] = 0.0
        self.b[indices] = values
        self.intercept = level

    @abc.abstractmethod
    def set_working_set(self, indices: Indices) -> None:
        """Set the working set, ascending."""

    @abc.abstractmethod
    def minimize(self, threshold: Floats, ridge: Floats, tolerance: Floats) -> None:
        """Minimise over the working set, for these penalty weights, (p,)."""

    @abc.abstractmethod
    def negative_gradients(self, found: Sequence[LassoSolution]) -> Floats:
        """Return the negative gradients of the loss at solutions, (S, p)."""

    @abc.abstractmethod
    def loss(self) -> float:
        """Return the loss of the current coefficients, all in the working set."""

    @abc.abstractmethod
    def dual(self, scale: float) -> float:
        """Return the dual objective at the current dual point times `scale`."""


class SampledProblem(LassoProblem):
    """Loss computed from the samples of its variables."""

    @abc.abstractmethod
    def residuals(self, found: Sequence[LassoSolution]) -> Floats:
        """Return the (S, n) residuals at solutions; their products with variables are slopes."""


class _AlphaPenalty(NamedTuple):
    """Penalty at one alpha, (p,): L1 and squared weights, and the L1 weight with tolerance."""

    alpha: float
    threshold: Floats
    ridge: Floats
    tolerance: Floats

    @classmethod
    def of(cls, alpha: float, problem: LassoProblem, penalty: LassoPenalty) -> _AlphaPenalty:
        threshold = alpha * alpha_scale(problem, penalty) * problem.weights
        ridge = problem.n * alpha * (1.0 - penalty.l1_ratio) * np.square(problem.weights)
        return cls(alpha, threshold, ridge, threshold * (1.0 + KKT_RTOL) + _ROUNDING)


class _BoundedPool(Protocol):
    """A pool of variables or groups, all of them or at most twice `limit`."""

    limit: int | None

    @property
    def names(self) -> Sequence[Hashable]:
        """The names of all that is kept."""

    @property
    def complete(self) -> bool:
        """Whether nothing was discarded."""


def pinned_limit(pool: _BoundedPool) -> tuple[int | None, bool]:
    """Return how many variables of a pool the solutions may pin, and whether the pool is full.

    Pinned variables must leave room for others when the pool is cut; None for any number.
    """
    bound = pool.limit
    is_full = bound is not None and len(pool.names) >= 2 * bound
    return None if bound is None or (pool.complete and not is_full) else 3 * bound // 2, is_full


def n_requested_in(pool: _BoundedPool, k: int | None) -> int:
    """Return how many variables of a pool are requested: k, or all if it is None."""
    return len(pool.names) if k is None else k


class ScaledLoss(Protocol):
    """A loss of n observations with coefficients divided by `norm`."""

    n: float
    norm: float


def alpha_scale(problem: ScaledLoss, penalty: LassoPenalty) -> float:
    """Return the factor that times alpha and a variable's weight gives its gradient threshold."""
    return problem.n * penalty.l1_ratio / problem.norm


def solve_path(
    problem: LassoProblem,
    penalty: LassoPenalty,
    k: int | None,
    limit: int | None = None,
    before: Sequence[LassoSolution] = (),
    is_valid: Sequence[bool] = (),
) -> LassoPath:
    """Return the solutions for a descending sequence of alphas.

    Parameters
    ----------
    problem
        The loss; its coefficients and working set are overwritten.
    penalty
        The penalty, and its alphas.
    k
        The path ends with the first solution of at least k variables; None for no limit.
    limit
        Maximum number of variables active on the whole path; with more it ends before.
    before
        Solutions of the previous path, to start from.
    is_valid
        Which of these are still solutions over all variables, if their alphas are on the path.
    """
    gradients = np.where(problem.varies, np.abs(problem.gradient_at_zero), 0.0)
    if gradients.max(initial=0.0) <= NO_VARIABLES:
        return NO_PATH
    first = float((gradients / problem.weights).max()) / alpha_scale(problem, penalty)
    alphas = penalty.grid(first)
    solutions: list[LassoSolution] = []
    slopes, last = problem.gradient_at_zero, first
    # If most have changed a new start is faster.
    alphas_before = [one.alpha for one in before]
    if 2 * sum(is_valid) > len(alphas_before) and alphas_before == alphas[: len(alphas_before)]:
        solutions = list(before)
        wrong = [s for s, valid in enumerate(is_valid) if not valid]
        slopes = _correct(problem, penalty, solutions, wrong, [one.indices for one in solutions])
        problem.set_coefficients(*solutions[-1][1:])
        last = alphas_before[-1]
    size, reason = _truncate(solutions, k, limit)
    while not reason and size < len(alphas):
        found, works = _solve_on_working_sets(
            problem, penalty, alphas[size : size + _CHECK_TOGETHER], slopes, last
        )
        slopes = _correct(problem, penalty, found, list(range(len(found))), works)
        problem.set_coefficients(*found[-1][1:])
        last = found[-1].alpha
        solutions += found
        size, reason = _truncate(solutions, k, limit)
    return LassoPath(solutions[:size], problem.weights, problem.norm, reason == "no room")


def _truncate(solutions: list[LassoSolution], k: int | None, limit: int | None) -> tuple[int, str]:
    """Return the number of leading solutions on the path, and the reason to stop, if any."""
    active = _NO_INDICES
    for s, one in enumerate(solutions):
        active = np.union1d(active, one.indices)
        if limit is not None and active.size > limit:
            return s, "no room"
        if k is not None and one.indices.size >= k:
            return s + 1, "enough"
    return len(solutions), ""


def _solve_on_working_sets(
    problem: LassoProblem, penalty: LassoPenalty, alphas: list[float], slopes: Floats, last: float
) -> tuple[list[LassoSolution], list[Indices]]:
    """Return solutions on working sets for some alphas, and these working sets.

    Starts from the current coefficients, and their gradients at the last alpha before.
    """
    solutions, works = [], []
    for alpha in alphas:
        one = _AlphaPenalty.of(alpha, problem, penalty)
        problem.set_working_set(np.flatnonzero(problem.b))
        # Variables with such gradients will probably enter (sequential strong rule).
        above = np.abs(slopes) > min(2.0 - last / alpha, 1.0) * one.threshold
        _extend_working_set(problem, above, slopes, one, _MIN_BATCH)
        problem.minimize(one.threshold, one.ridge, one.tolerance)
        solutions.append(_solution(problem, alpha))
        works.append(problem.working_set)
    return solutions, works


def _solution(problem: LassoProblem, alpha: float) -> LassoSolution:
    indices = np.flatnonzero(problem.b)
    return LassoSolution(alpha, indices, problem.b[indices], problem.intercept)


def _correct(
    problem: LassoProblem,
    penalty: LassoPenalty,
    found: list[LassoSolution],
    todo: list[int],
    works: list[Indices],
) -> Floats:
    """Turn solutions on working sets into solutions over all variables, in place.

    Parameters
    ----------
    problem, penalty
        The loss, and the penalty.
    found
        The solutions.
    todo, works
        Indices of those to check, and the working set of each.

    Returns
    -------
    The negative gradients at the last of them.
    """
    last: Floats | None = None
    while todo:
        slopes, corrected = problem.negative_gradients([found[s] for s in todo]), []
        for s, gradient in zip(todo, slopes, strict=True):
            one = _AlphaPenalty.of(found[s].alpha, problem, penalty)
            problem.working_set = works[s]
            if s == len(found) - 1:
                last = gradient
            if _extend_working_set(problem, np.abs(gradient) > one.tolerance, gradient, one, 1):
                problem.set_coefficients(*found[s][1:])
                problem.minimize(one.threshold, one.ridge, one.tolerance)
                found[s], works[s] = _solution(problem, one.alpha), problem.working_set
                corrected.append(s)
        todo = corrected
    return problem.negative_gradients(found[-1:])[0] if last is None else last


def _extend_working_set(
    problem: LassoProblem, above: Bools, slopes: Floats, one: _AlphaPenalty, min_batch: int
) -> bool:
    """Add the variables of largest gradient if any is `above`; return whether one was."""
    is_outside = problem.varies.copy()
    is_outside[problem.working_set] = False
    size = int(np.count_nonzero(is_outside & above))
    if not size:
        return False
    relative = np.where(is_outside, np.abs(slopes) / one.threshold, -1.0)
    size = min(
        max(size, min_batch),
        max(_MAX_BATCH, problem.working_set.size // 2),
        int(np.count_nonzero(is_outside)),
    )
    smallest = np.partition(relative, -size)[-size]
    # Identical columns are added together, so that the first of them is used.
    is_added = relative >= smallest * (1.0 - KKT_RTOL)
    is_added[problem.working_set] = True
    problem.set_working_set(np.flatnonzero(is_added))
    return True


def path_quality(
    problem: LassoProblem, penalty: LassoPenalty, path: LassoPath, outside: Floats | None = None
) -> tuple[float, float]:
    """Return the largest duality gap and KKT violation of a path.

    Parameters
    ----------
    problem, penalty
        The loss, whose coefficients and working set are overwritten, and the penalty.
    path
        The path.
    outside
        (S,) largest absolute gradients of discarded variables, relative to their thresholds.

    Returns
    -------
    The gap relative to the loss of the empty model; the violation relative to the threshold.
    """
    if not path.solutions:
        return 0.0, 0.0
    gap = violation = 0.0
    for s, found in enumerate(path.solutions):
        one = _AlphaPenalty.of(found.alpha, problem, penalty)
        problem.set_working_set(found.indices)
        problem.set_coefficients(*found[1:])
        b = problem.b
        gradient = problem.negative_gradients([found])[0] - one.ridge * b
        active = b != 0.0
        shortfall = (np.abs(gradient - one.threshold * np.sign(b)) / one.threshold)[active]
        largest = float((np.abs(gradient) / one.threshold)[problem.varies].max())
        if outside is not None:
            largest = max(largest, float(outside[s]))
        violation = max(violation, largest - 1.0, float(shortfall.max(initial=0.0)))
        ridge_term = 0.5 * float(one.ridge @ (b * b))
        shrinkage = 1.0 / max(1.0, largest)
        primal = problem.loss() + float(one.threshold @ np.abs(b)) + ridge_term
        gap = max(gap, primal - problem.dual(shrinkage) + shrinkage * shrinkage * ridge_term)
    return gap / problem.empty_loss, violation
