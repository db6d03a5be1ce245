"""Group Lasso path over the groups of a pool (Yuan and Lin 2006).

With y centred, and Q_g an orthonormal basis of the span of group g, of dimension q_g, scaled so
that every column has a standard deviation of 1, the coefficients minimise

    1/(2n) ‖y - Σ Q_g b_g‖² + α ρ Σ √q_g ‖b_g‖ + α (1 - ρ)/2 Σ ‖b_g‖².

For groups of one this is the Lasso of standardised columns. Here the bases are of length 1, and y
is divided by its length, `norm`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from streamsel._kernels.group_bases import squares_of_groups
from streamsel._kernels.group_selection import group_descent
from streamsel.selection._group_newton import (
    GroupQuadratic,
    minimum_over_scales,
    stationary_point,
)
from streamsel.selection._lasso_path import (
    KKT_RTOL,
    NO_PATH,
    NO_VARIABLES,
    LassoPath,
    LassoPenalty,
    alpha_scale,
    n_requested_in,
    pinned_limit,
)
from streamsel.selection._lasso_solution import rank_by_entry
from streamsel.serialization.schema import ArrayKind, BoolKind, expect, expect_shapes, length_in
from streamsel.state.base import Floats, Indices
from streamsel.state.pool.candidate_solution import CandidateSolution, StagedSolver
from streamsel.state.pool.group_chunk import GroupChunk
from streamsel.state.pool.group_pool import GroupPool
from streamsel.state.pool.group_table import rows_of_groups, starts_of
from streamsel.state.pool.pool import NO_PICKS, TIE_RTOL, Picks

# Rounding error of gradients, which are of order 1.
_ROUNDING = 1e-14
# Rounds of descent before each use of Newton's method, and maximum number of its uses.
_ROUNDS, _MAX_ITER = 10, 200


class GroupLassoSolution(NamedTuple):
    """Minimiser of loss and penalty for one alpha.

    Parameters
    ----------
    alpha, indices
        The alpha, and the groups with coefficients, ascending.
    values
        Lengths of their coefficients.
    intercept
        0.
    coefficients
        Their coefficients, group by group.
    """

    alpha: float
    indices: Indices
    values: Floats
    intercept: float
    coefficients: Floats


class GroupLassoProblem:
    """Least squares ½‖u - Qᵀb‖² with a target u of length 1, and the penalty of groups.

    Parameters
    ----------
    pool
        The pool.
    penalty
        The penalty.

    Attributes
    ----------
    n, norm, weights
        Number of observations; divisor of the coefficients; (p,) penalty weights √(q/n).
    gradient_at_zero
        (a,) products of the axes with the target.
    """

    def __init__(self, pool: GroupPool, penalty: LassoPenalty) -> None:
        space = pool.space
        assert space is not None  # noqa: S101
        self._penalty = penalty
        self.n, self.norm = float(pool.n), float(np.sqrt(space.first_square))
        self.Q, self.starts = pool.table.ragged_rows("unit"), pool.table.starts("unit")
        self.rank = np.diff(self.starts)
        self.weights: Floats = np.sqrt(self.rank / self.n)
        self._target = pool.basis[0] if len(pool.basis) else np.zeros(pool.n)
        self.gradient_at_zero: Floats = self.Q @ self._target

    def threshold(self, alpha: float) -> Floats:
        """Return the length of a group's gradient up to which its coefficients are 0, (p,)."""
        return alpha * alpha_scale(self, self._penalty) * self.weights

    def ridge(self, alpha: float) -> float:
        """Return the weight of the squared coefficients."""
        return alpha * (1.0 - self._penalty.l1_ratio)

    def lengths(self, gradient: Floats) -> Floats:
        """Return the lengths of the groups' parts of (a,) or (a, S), (p,) or (p, S)."""
        found = np.empty((self.rank.size, 1 if gradient.ndim == 1 else gradient.shape[1]))
        columns = gradient.reshape(len(gradient), -1)
        for s in range(found.shape[1]):
            squares = np.empty(self.rank.size)
            squares_of_groups(np.ascontiguousarray(columns[:, s : s + 1]), self.starts, squares)
            found[:, s] = np.sqrt(squares)
        return found[:, 0] if gradient.ndim == 1 else found

    def first_alpha(self) -> float:
        """Return the alpha at which the first group enters."""
        lengths = self.lengths(self.gradient_at_zero)
        ratios = lengths / np.where(self.rank > 0, self.weights, np.inf)
        return float(ratios.max(initial=0.0)) / alpha_scale(self, self._penalty)

    def residual(self, one: GroupLassoSolution) -> Floats:
        """Return the (n,) residual at a solution."""
        rows = rows_of_groups(self.starts, one.indices)
        found: Floats = self._target - one.coefficients @ self.Q[rows]
        return found

    def quality(
        self, found: Sequence[GroupLassoSolution], outside: Floats | None
    ) -> tuple[float, float]:
        """Return the largest duality gap and KKT violation, as `path_quality` does."""
        gap = violation = 0.0
        for s, one in enumerate(found):
            residual, threshold = self.residual(one), self.threshold(one.alpha)
            ridge, rows = self.ridge(one.alpha), rows_of_groups(self.starts, one.indices)
            gradient = self.Q @ residual
            gradient[rows] -= ridge * one.coefficients
            varies = self.rank > 0
            largest = float((self.lengths(gradient)[varies] / threshold[varies]).max())
            if outside is not None:
                largest = max(largest, float(outside[s]))
            signs = one.coefficients / np.repeat(one.values, self.rank[one.indices])
            gradient[rows] -= np.repeat(threshold[one.indices], self.rank[one.indices]) * signs
            shortfall = self.lengths(gradient)[one.indices] / threshold[one.indices]
            violation = max(violation, largest - 1.0, float(shortfall.max(initial=0.0)))
            square = float(residual @ residual)
            squares = ridge * float(one.coefficients @ one.coefficients)
            primal = 0.5 * (square + squares) + float(threshold[one.indices] @ one.values)
            shrunk = 1.0 / max(1.0, largest)
            dual = shrunk * float(residual @ self._target)
            gap = max(gap, primal - dual + 0.5 * shrunk * shrunk * (square + squares))
        return 2.0 * gap, violation


class _WorkingSet:
    """Groups whose coefficients may differ from 0, with the inner products of their axes."""

    def __init__(self, problem: GroupLassoProblem) -> None:
        self._problem = problem
        self.groups: Indices = np.zeros(0, dtype=np.intp)
        self._rows: Indices = np.zeros(0, dtype=np.intp)
        self._K: Floats = np.zeros((0, 0))
        self.b: Floats = np.zeros(0)

    def extend(self, groups: Indices) -> None:
        """Add groups, with coefficients of 0."""
        problem = self._problem
        new = rows_of_groups(problem.starts, groups)
        cross = problem.Q[new] @ problem.Q[np.concatenate([self._rows, new])].T
        K = np.empty((self._rows.size + new.size,) * 2)
        K[: self._rows.size, : self._rows.size] = self._K
        K[self._rows.size :], K[:, self._rows.size :] = cross, cross.T
        self.groups, self._rows = np.append(self.groups, groups), np.append(self._rows, new)
        self._K, self.b = K, np.append(self.b, np.zeros(new.size))

    @property
    def rank(self) -> Any:
        """Dimensions of all groups of the problem."""
        return self._problem.rank

    @property
    def weights(self) -> Floats:
        """Penalty weights of all groups of the problem."""
        return self._problem.weights

    def start(self, one: GroupLassoSolution) -> None:
        """Set the coefficients to those of a solution, whose groups are added if necessary."""
        new = np.setdiff1d(one.indices, self.groups)
        if new.size:
            self.extend(new)
        values = np.zeros(len(self._problem.Q))
        values[rows_of_groups(self._problem.starts, one.indices)] = one.coefficients
        self.b = values[self._rows]

    def minimize(self, alpha: float) -> bool:
        """Minimise over the coefficients; return whether the minimum was found."""
        problem = self._problem
        quadratic = GroupQuadratic(
            self._K,
            problem.gradient_at_zero[self._rows],
            problem.rank[self.groups],
            problem.threshold(alpha)[self.groups],
            problem.ridge(alpha),
        )
        K, a, sizes, threshold, ridge = quadratic
        starts = starts_of(sizes)
        for _ in range(_MAX_ITER):
            slope = a - K @ self.b
            moved = group_descent(K, starts, threshold, ridge, _ROUNDS, _ROUNDING, self.b, slope)
            if moved <= _ROUNDING or self._newton(quadratic):
                return True
        return False

    def _newton(self, quadratic: GroupQuadratic) -> bool:
        """Move to the minimum over the active groups; return whether it is that over all groups."""
        lengths, threshold = quadratic.lengths(self.b), quadratic.threshold
        active = np.flatnonzero(lengths)
        if active.size:
            rows = rows_of_groups(starts_of(quadratic.sizes), active)
            among = quadratic.among(active, rows)
            b, is_accurate = stationary_point(among, self.b[rows]), True
            if b is None:
                b, is_accurate = minimum_over_scales(among, self.b[rows])
            self.b[rows] = b
            if not is_accurate:
                return False
        norms = quadratic.lengths(quadratic.a - quadratic.K @ self.b)
        is_outside = quadratic.lengths(self.b) == 0.0
        too_long = norms > threshold * (1.0 + KKT_RTOL) + _ROUNDING
        return not (is_outside & too_long).any()

    def solution(self, alpha: float) -> GroupLassoSolution:
        """Return the coefficients that differ from 0, with the groups in ascending order."""
        problem = self._problem
        values = np.zeros(len(problem.Q))
        values[self._rows] = self.b
        lengths = problem.lengths(values)
        indices = np.flatnonzero(lengths)
        coefficients = values[rows_of_groups(problem.starts, indices)]
        return GroupLassoSolution(alpha, indices, lengths[indices], 0.0, coefficients)


def solve_group_path(
    problem: GroupLassoProblem,
    penalty: LassoPenalty,
    k: int | None,
    limit: int | None = None,
    before: Mapping[float, GroupLassoSolution] = {},
) -> LassoPath:
    """Return the solutions for a descending sequence of alphas, as `solve_path` does.

    Parameters
    ----------
    problem, penalty
        Loss and penalty.
    k, limit
        The path ends with the first solution of at least k groups, and before more than `limit` are
        active on it; None for no limits. It also ends before a minimum that was not found.
    before
        Earlier solutions by alpha, to start from.
    """
    first = problem.first_alpha()
    if first * alpha_scale(problem, penalty) * problem.n**-0.5 <= NO_VARIABLES:
        return NO_PATH
    solutions: list[Any] = []
    working, seen = _WorkingSet(problem), np.zeros(0, dtype=np.intp)
    lengths, last, truncated = problem.lengths(problem.gradient_at_zero), first, False
    for alpha in penalty.grid(first):
        threshold = problem.threshold(alpha)
        # Groups with such gradients will probably enter (sequential strong rule).
        _extend(working, lengths, min(2.0 - last / alpha, 1.0) * threshold)
        if alpha in before:
            working.start(before[alpha])
        while True:
            is_minimum = working.minimize(alpha)
            one = working.solution(alpha)
            lengths = problem.lengths(problem.Q @ problem.residual(one))
            longest = threshold * (1.0 + KKT_RTOL) + _ROUNDING
            if not is_minimum or not _extend(working, lengths, longest):
                break
        seen = np.union1d(seen, one.indices)
        truncated = not is_minimum or (limit is not None and seen.size > limit)
        if truncated:
            break
        solutions.append(one)
        last = alpha
        if k is not None and one.indices.size >= k:
            break
    weights = np.full(problem.rank.size, problem.n**-0.5)
    return LassoPath(solutions, weights, problem.norm, truncated)


def _extend(working: _WorkingSet, lengths: Floats, thresholds: Floats) -> bool:
    """Add the groups with longer gradients to the working set; return whether there are any."""
    is_outside = working.rank > 0
    is_outside[working.groups] = False
    is_new = is_outside & (lengths > thresholds)
    if not is_new.any():
        return False
    # Copies are added together, so that the first of them is used.
    ratios = lengths / np.where(is_outside, working.weights, np.inf)
    working.extend(np.flatnonzero(is_outside & (ratios >= ratios[is_new].min() * (1.0 - KKT_RTOL))))
    return True


class GroupPathSolution(CandidateSolution):
    """Solutions over a pool; a group's score is its gradient's length relative to its threshold.

    Parameters
    ----------
    pool
        The pool.
    problem, penalty, path
        The loss over its groups, the penalty, and the solutions.
    k
        Number of groups wanted.

    Attributes
    ----------
    is_rough
        Whether it has only some of the alphas, enough to rank groups for the pool.
    """

    ordered: ClassVar[bool] = False

    def __init__(
        self,
        pool: GroupPool,
        problem: GroupLassoProblem,
        penalty: LassoPenalty,
        path: LassoPath,
        k: int,
    ) -> None:
        self._pool, self.path, self.is_rough = pool, path, penalty.is_thinned
        self.names, self.arrivals = list(pool.names), pool.table["arrival"].copy()
        self.picks = rank_by_entry(path, k)
        found: Sequence[Any] = path.solutions
        size = max(1, len(found))
        self.incumbent_arrivals = np.full(size, -1, dtype=np.int64)
        self.tolerance, self.pinned = np.full(size, TIE_RTOL), path.active()
        if not found:
            # One stage is open for the first group that correlates with the target.
            self.keys, self.thresholds = [None], np.full(1, NO_VARIABLES)
            self.tolerance[:] = 0.0
            self._V = problem._target[None] / np.sqrt(problem.n)
            return
        self.keys = [
            (one.alpha, tuple([self.names[j] for j in one.indices.tolist()])) for one in found
        ]
        self.thresholds = np.full(size, 1.0 + KKT_RTOL)
        if penalty.alphas is None:
            # The start of the grid must be more accurate than the solutions on it.
            self.thresholds[0] = 1.0
            ratios = problem.lengths(problem.gradient_at_zero) / np.where(
                problem.rank > 0, problem.weights, np.inf
            )
            self.pinned = np.union1d(self.pinned, [int(np.argmax(ratios))])
        scales = alpha_scale(problem, penalty) * np.array([one.alpha for one in found])
        self._V = np.array([problem.residual(one) for one in found]) / scales[:, None]

    def _scores_of_axes(self, samples: Floats, starts: Indices) -> Floats:
        """Return the (g, S) scores of groups with these axes."""
        products, ranks = samples @ self._V.T, np.diff(starts)
        scores = np.zeros((ranks.size, len(self._V)))
        squares = np.empty(ranks.size)
        for s in range(len(self._V)):
            squares_of_groups(np.ascontiguousarray(products[:, s : s + 1]), starts, squares)
            scores[:, s] = np.sqrt(squares * self._pool.n / np.maximum(ranks, 1))
        return scores

    def scores(self) -> Floats:
        """Return the (p, S) scores of the pool's groups; -inf for active ones."""
        table = self._pool.table
        scores = self._scores_of_axes(table.ragged_rows("unit"), table.starts("unit"))
        for s, found in enumerate(self.path.solutions):
            scores[found.indices, s] = -np.inf
        return scores

    def scores_of(self, chunk: Any, stats: Any, indices: Indices) -> Floats:  # noqa: ARG002
        """Return the (b, S) scores of groups of a chunk."""
        groups: GroupChunk = chunk
        _, axes, _ = groups.ragged_indices(indices)
        return self._scores_of_axes(
            groups.samples[axes], starts_of(np.diff(groups.axis_starts)[indices])
        )

    def current_path(self) -> LassoPath:
        """Return the path with current indices of the pool."""
        weights = np.full(len(self._pool.names), self._pool.n**-0.5)
        return self.path._replace(solutions=self.solutions(), weights=weights)

    def solutions(self) -> list[Any]:
        """Return the solutions with current indices of the pool."""
        arrivals = self._pool.table["arrival"]
        order = np.argsort(arrivals)
        active = self.path.active()
        index_of = np.zeros(len(self.names), dtype=np.intp)
        index_of[active] = order[np.searchsorted(arrivals[order], self.arrivals[active])]
        return [one._replace(indices=index_of[one.indices]) for one in self.path.solutions]

    def to_state(self) -> dict[str, Any]:
        """Return the solutions by name."""
        found: Sequence[Any] = self.path.solutions
        return {
            "names": [self.names[j] for one in found for j in one.indices.tolist()],
            "sizes": np.array([one.indices.size for one in found], dtype=np.int64),
            "coefficients": np.concatenate([np.zeros(0), *(one.coefficients for one in found)]),
            "alphas": np.array([one.alpha for one in found]),
            "path_truncated": self.path.path_truncated,
            "is_rough": self.is_rough,
        }


@dataclass(frozen=True, eq=False)
class GroupLassoSolver(StagedSolver):
    """Solver of the path among the groups of a pool.

    Parameters
    ----------
    k
        Number of groups wanted; None for all of the path.
    penalty
        The penalty.
    """

    k: int | None
    penalty: LassoPenalty

    def solve(self, pool: Any, before: Any, n_certified: int | None) -> GroupPathSolution:
        """Return the current path of a pool, starting from the solutions of the previous one."""
        penalty = self.penalty
        limit, is_full = pinned_limit(pool)
        known: dict[float, GroupLassoSolution] = {}
        if n_certified is not None and before is not None:
            known = {one.alpha: one for one in before.solutions()}
        elif is_full:
            # In the first pass solutions change too often to certify anything.
            penalty = penalty.thinned()
        problem = GroupLassoProblem(pool, penalty)
        path = solve_group_path(problem, penalty, self.k, limit, known)
        return GroupPathSolution(pool, problem, penalty, path, n_requested_in(pool, self.k))

    def restore(self, pool: Any, saved: dict[str, Any]) -> GroupPathSolution:
        """Return the candidate solution that `GroupPathSolution.to_state` saved."""
        size, n_names = length_in(saved, "alphas"), length_in(saved, "names")
        expect_shapes(saved, alphas=(size,))
        expect(
            saved,
            sizes=ArrayKind((size,), np.int64, minimum=0),
            path_truncated=BoolKind(),
            is_rough=BoolKind(),
        )
        if saved["sizes"].sum() != n_names:
            raise ValueError(f"Expected {saved['sizes'].sum()} names. Got: {n_names}.")
        penalty = self.penalty._replace(is_thinned=saved["is_rough"])
        problem, path = GroupLassoProblem(pool, penalty), NO_PATH
        indices = np.array([pool.index_of[name] for name in saved["names"]], dtype=np.intp)
        ranks = problem.rank[indices]
        expect_shapes(saved, coefficients=(int(ranks.sum()),))
        if size:
            solutions: list[Any] = []
            firsts = starts_of(ranks)
            for alpha, (start, stop) in zip(
                saved["alphas"].tolist(),
                pairwise(starts_of(saved["sizes"]).tolist()),
                strict=True,
            ):
                b = saved["coefficients"][firsts[start] : firsts[stop]]
                lengths = np.sqrt(np.add.reduceat(b * b, firsts[start:stop] - firsts[start]))
                lengths = lengths if stop > start else np.zeros(0)
                solutions.append(GroupLassoSolution(alpha, indices[start:stop], lengths, 0.0, b))
            weights = np.full(problem.rank.size, problem.n**-0.5)
            path = LassoPath(solutions, weights, problem.norm, saved["path_truncated"])
        return GroupPathSolution(pool, problem, penalty, path, n_requested_in(pool, self.k))

    def restore_of_columns(self, pool: Any, saved: dict[str, Any]) -> GroupPathSolution:
        """Return a saved path of single columns as one of groups of one."""
        return self.restore(pool, saved | {"coefficients": saved["values"]})

    def picks(self, pool: Any, k: int) -> Picks:
        """Return k picks among the groups of a pool."""
        if not pool.names:
            return NO_PICKS
        problem = GroupLassoProblem(pool, self.penalty)
        n_groups = None if self.k is None else k
        return rank_by_entry(solve_group_path(problem, self.penalty, n_groups), k)


def coefficients_of_members(
    pool: GroupPool, one: GroupLassoSolution, norm: float
) -> tuple[dict[Hashable, float], float]:
    """Return the coefficients of the members of active groups, and the sum of these times means.

    Both are on the original scale; those of a column in several groups are added up.
    """
    table = pool.table
    weights, means = table.ragged_rows("weights"), table.ragged_rows("mean")
    starts, members = table.starts("weights"), table.starts("mean")
    found: dict[Hashable, float] = {}
    offset, first = 0.0, 0
    for j, names in zip(one.indices.tolist(), pool.members_of(one.indices.tolist()), strict=True):
        size = len(names)
        W = weights[starts[j] : starts[j + 1]].reshape(-1, size)
        w = norm * one.coefficients[first : first + len(W)] @ W
        first += len(W)
        offset += float(w @ means[members[j] : members[j + 1]])
        for name, value in zip(names, w.tolist(), strict=True):
            found[name] = found.get(name, 0.0) + value
    return found, offset
