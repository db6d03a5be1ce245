"""Candidate Lasso path over a pool: one stage per alpha."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from streamsel._utils.numeric import argsort_by_relevance
from streamsel.data.chunks import Chunk, Stats
from streamsel.selection._lasso_losses import LogisticLoss, SampledSquaredLoss
from streamsel.selection._lasso_path import (
    DUPLICATE_CORRELATION,
    KKT_RTOL,
    NO_PATH,
    NO_VARIABLES,
    LassoPath,
    LassoPenalty,
    LassoSolution,
    SampledProblem,
    alpha_scale,
    n_requested_in,
    pinned_limit,
    solve_path,
)
from streamsel.serialization.schema import ArrayKind, BoolKind, expect, expect_shapes, length_in
from streamsel.state.base import Floats, Indices
from streamsel.state.correlations import correlate_columns
from streamsel.state.pool.candidate_solution import CandidateSolution, IntArray, StagedSolver
from streamsel.state.pool.pool import NO_PICKS, TIE_RTOL, Picks, Pool

# Relative tolerance of equal coefficients.
_COEFFICIENT_RTOL = 1e-9


class PathSolution(CandidateSolution):
    """Solutions over a pool; a column's score is its absolute gradient relative to its threshold.

    Parameters
    ----------
    pool
        The pool.
    problem, penalty
        The loss over its variables, and the penalty.
    path
        The solutions.
    k
        Number of variables wanted.

    Attributes
    ----------
    is_rough
        Whether it has only some of the alphas, enough to rank columns for the pool.
    """

    ordered: ClassVar[bool] = False

    def __init__(
        self,
        pool: Pool,
        problem: SampledProblem,
        penalty: LassoPenalty,
        path: LassoPath,
        k: int,
    ) -> None:
        self._pool, self._scale = pool, penalty.scale
        # Whether only the first of identical columns may be active.
        self._only_first_copies = penalty.l1_ratio == 1.0
        self.path, self.is_rough = path, penalty.is_thinned
        self.names, self.arrivals = list(pool.names), pool.table["arrival"].copy()
        self.picks = rank_by_entry(path, k)
        found = path.solutions
        size = max(1, len(found))
        self.incumbent_arrivals = np.full(size, -1, dtype=np.int64)
        self.tolerance = np.full(size, TIE_RTOL)
        self.pinned = path.active()
        if not found:
            # One stage is open for the first variable that correlates with the target.
            self.keys, self.thresholds, self._scale = [None], np.full(1, NO_VARIABLES), True
            self.tolerance[:] = 0.0
            empty = LassoSolution(0.0, self.pinned, np.zeros(0), problem.intercept)
            self._V = problem.residuals([empty]) / np.sqrt(pool.n)
            return
        self.keys = [self._key(solution) for solution in found]
        self.thresholds = np.full(size, 1.0 + KKT_RTOL)
        if penalty.alphas is None:
            # The start of the grid must be more accurate than the solutions on it.
            self.thresholds[0] = 1.0
            gradients = np.where(
                problem.varies, np.abs(problem.gradient_at_zero) / problem.weights, 0.0
            )
            self.pinned = np.union1d(self.pinned, [int(np.argmax(gradients))])
        thresholds = alpha_scale(problem, penalty) * np.array([one.alpha for one in found])
        self._V = problem.residuals(found) / thresholds[:, None]

    def _key(self, found: LassoSolution) -> tuple[Any, ...]:
        active = tuple([self.names[j] for j in found.indices.tolist()])
        return found.alpha, active, (found.values > 0.0).tobytes()

    def scores(self) -> Floats:
        """Return the (p, S) scores of the pool's variables; -inf for active ones."""
        pool = self._pool
        scores = self._relative(pool.table["unit"] @ self._V.T, pool.adjusted_squares(pool.stats()))
        for s, found in enumerate(self.path.solutions):
            scores[found.indices, s] = -np.inf
        return scores

    def scores_of(self, chunk: Chunk, stats: Stats, indices: Indices) -> Floats:
        """Return the (b, S) scores of columns of a chunk."""
        left = self._pool.adjusted_squares(stats, indices)
        return self._relative(correlate_columns(chunk, stats, indices, self._V, left), left)

    def _relative(self, products: Floats, left: Floats) -> Floats:
        np.abs(products, out=products)
        products *= np.sqrt(self._pool.n) if self._scale else np.sqrt(left)[:, None]
        return products

    def duplicated_incumbents(
        self, chunk: Chunk, stats: Stats, indices: Indices, arrivals: Indices, scores: Floats
    ) -> IntArray:
        """Return the latest active variable that each column duplicates and precedes, (b,).

        By arrival; -1 for a column that duplicates none.
        """
        found = np.full(indices.size, -1, dtype=np.int64)
        candidates = self._possible_copies(scores)
        if candidates.size:
            units = self._pool.unit_rows_of(chunk, stats, indices[candidates])
            found[candidates] = self._copied(units, arrivals[candidates])
        return found

    def _possible_copies(self, scores: Floats) -> Indices:
        """Return the columns that reach the active variables' scores, and may duplicate one."""
        return np.flatnonzero((scores >= 1.0 - KKT_RTOL).any(axis=1) & self._only_first_copies)

    def _copied(self, units: Floats, arrivals: Floats | Indices) -> IntArray:
        arrivals_now = self._pool.table["arrival"]
        active = np.flatnonzero(np.isin(arrivals_now, self.arrivals[self.path.active()]))
        if not active.size:
            return np.full(len(units), -1, dtype=np.int64)
        copies = np.abs(units @ self._pool.table["unit"][active].T) >= DUPLICATE_CORRELATION
        copies &= arrivals[:, None] < arrivals_now[active]
        originals: IntArray = np.where(copies, arrivals_now[active].astype(np.int64), -1).max(
            axis=1
        )
        return originals

    def still_valid(self) -> tuple[list[LassoSolution], list[bool]]:
        """Return the solutions, and which of them no later variable violates.

        Both are empty if a later variable duplicates an active one and precedes it.
        """
        pool = self._pool
        added = np.flatnonzero(~np.isin(pool.table["arrival"], self.arrivals))
        left = pool.adjusted_squares(pool.stats(added))
        scores = self._relative(pool.table["unit"][added] @ self._V.T, left)
        candidates = added[self._possible_copies(scores)]
        if (
            self._copied(pool.table["unit"][candidates], pool.table["arrival"][candidates]) >= 0
        ).any():
            return [], []
        largest = scores.max(axis=0, initial=0.0)
        return self.solutions(), (largest <= 1.0 + KKT_RTOL).tolist()

    def current_path(self) -> LassoPath:
        """Return the path with current indices of the pool."""
        weights = np.full(len(self._pool.names), self._pool.n**-0.5)
        if not self._scale:
            weights = 1.0 / np.sqrt(self._pool.adjusted_squares(self._pool.stats()))
        return self.path._replace(solutions=self.solutions(), weights=weights)

    def solutions(self) -> list[LassoSolution]:
        """Return the solutions with current indices of the pool."""
        arrivals_now = self._pool.table["arrival"]
        order = np.argsort(arrivals_now)
        active = self.path.active()
        indices = order[np.searchsorted(arrivals_now[order], self.arrivals[active])]
        index_of = np.zeros(len(self.names), dtype=np.intp)
        index_of[active] = indices
        return [found._replace(indices=index_of[found.indices]) for found in self.path.solutions]

    def to_state(self) -> dict[str, Any]:
        """Return the solutions by name."""
        found = self.path.solutions
        return {
            "names": [self.names[j] for one in found for j in one.indices.tolist()],
            "sizes": np.array([one.indices.size for one in found], dtype=np.int64),
            "values": np.concatenate([np.zeros(0), *(one.values for one in found)]),
            "alphas": np.array([one.alpha for one in found]),
            "levels": np.array([one.intercept for one in found]),
            "path_truncated": self.path.path_truncated,
            "is_rough": self.is_rough,
        }


def rank_by_entry(path: LassoPath, k: int) -> Picks:
    """Return the first k variables of a path's last solution, in order of entry.

    Ties are ordered by descending absolute coefficient, then by arrival.
    """
    found = path.solutions
    if not found or not found[-1].indices.size:
        return Picks([], [], [])
    indices, weight = found[-1].indices, np.abs(found[-1].values) * path.weights[found[-1].indices]
    entered = np.full(indices.size, len(found), dtype=np.intp)
    for s in range(len(found) - 1, -1, -1):
        entered[np.isin(indices, found[s].indices, assume_unique=True)] = s
    order: list[int] = []
    for s in np.unique(entered).tolist():
        members = np.flatnonzero(entered == s)
        relative_weight = weight[members] / weight[members].max() * (TIE_RTOL / _COEFFICIENT_RTOL)
        order += members[argsort_by_relevance(relative_weight)].tolist()
    order = order[:k]
    rounds = entered[order].tolist()
    return Picks(indices[order].tolist(), [found[s].alpha for s in rounds], rounds)


@dataclass(frozen=True, eq=False)
class LassoSolver(StagedSolver):
    """Solver of the path in the pool of a `Certifier`.

    Parameters
    ----------
    k
        Number of variables wanted; None for all of the path.
    penalty
        The penalty.
    classes
        (n,) 0 or 1, for the logistic loss; None for least squares.
    """

    k: int | None
    penalty: LassoPenalty
    classes: Floats | None

    def problem(self, pool: Pool) -> SampledProblem:
        """Return the loss over the variables of a pool."""
        if self.classes is not None:
            return LogisticLoss(pool, self.penalty, self.classes)
        target = pool.basis[0] if len(pool.basis) else np.zeros(pool.n)
        return SampledSquaredLoss(pool, self.penalty, target)

    def solve(
        self, pool: Pool, before: PathSolution | None, n_certified: int | None
    ) -> PathSolution:
        """Return the current path of a pool, reusing still valid solutions of the previous one."""
        penalty = self.penalty
        limit, is_full = pinned_limit(pool)
        solutions: list[LassoSolution] = []
        is_valid: list[bool] = []
        if n_certified is not None and before is not None:
            # A certified solution remains one over all variables, and is kept.
            solutions, is_valid = before.still_valid()
        elif is_full:
            # In the first pass solutions change too often to certify anything.
            penalty = penalty.thinned()
        problem = self.problem(pool)
        path = solve_path(problem, penalty, self.k, limit, solutions, is_valid)
        return PathSolution(pool, problem, penalty, path, n_requested_in(pool, self.k))

    def restore(self, pool: Pool, saved: dict[str, Any]) -> PathSolution:
        """Return the candidate solution that `PathSolution.to_state` saved."""
        size = length_in(saved, "alphas")
        expect_shapes(saved, alphas=(size,), levels=(size,), values=(length_in(saved, "names"),))
        expect(
            saved,
            sizes=ArrayKind((size,), np.int64, minimum=0),
            path_truncated=BoolKind(),
            is_rough=BoolKind(),
        )
        if saved["sizes"].sum() != len(saved["names"]):
            raise ValueError(
                "Expected as many names as the solutions have variables. Got: "
                f"{len(saved['names'])} and {saved['sizes'].sum()}."
            )
        indices = np.array([pool.index_of[name] for name in saved["names"]], dtype=np.intp)
        ends = np.cumsum(saved["sizes"])[:-1]
        parts = zip(
            saved["alphas"].tolist(),
            np.split(indices, ends),
            np.split(saved["values"], ends),
            saved["levels"].tolist(),
            strict=True,
        )
        problem, path = self.problem(pool), NO_PATH
        if size:
            solutions = [LassoSolution(*part) for part in parts]
            path = LassoPath(solutions, problem.weights, problem.norm, saved["path_truncated"])
        penalty = self.penalty._replace(is_thinned=saved["is_rough"])
        return PathSolution(pool, problem, penalty, path, n_requested_in(pool, self.k))

    def picks(self, pool: Pool, k: int) -> Picks:
        """Return k picks among the variables of a pool."""
        if not pool.names:
            return NO_PICKS
        n_variables = None if self.k is None else k
        return rank_by_entry(solve_path(self.problem(pool), self.penalty, n_variables), k)
