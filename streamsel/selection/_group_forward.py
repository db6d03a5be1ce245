"""Greedy forward selection of groups of columns, from orthonormal bases of their spans.

With R = λ(λI + Σ QQᵀ)⁻¹ over the picks, the next is the group of the largest
tr UᵀR Q (λI + QᵀR Q)⁻¹ QᵀR U / q, the decrease of the penalised squared error by the group, per
degree of freedom q. R = I - VᵀV, where each pick adds the directions V = L⁻¹ QᵀR, LLᵀ = λI + QᵀR Q.
A group of one has the score of its column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamsel._kernels.group_selection import (
    forward_scores_of_groups,
    gains_of_groups,
    remove_directions,
)
from streamsel.selection._forward_steps import earliest_of_best, tolerance
from streamsel.state.base import Floats, Indices
from streamsel.state.pool.candidate_solution import (
    GreedySolution,
    StagedSolver,
    picks_from_state,
)
from streamsel.state.pool.group_chunk import GroupChunk
from streamsel.state.pool.group_pool import GroupPool
from streamsel.state.pool.group_table import starts_of
from streamsel.state.pool.pool import ZERO_TOL, Picks

# Without a ridge a direction of a group with a smaller squared residual is explained by the picks.
_MIN_RESIDUAL = 1e-8


class GroupForwardSolution(GreedySolution):
    """Picks of forward selection among the groups of a pool, and scores under their prefixes.

    Parameters
    ----------
    pool
        The pool.
    k, ridge
        Number of picks, and the ridge.
    given
        The picks, if known.
    """

    def __init__(self, pool: GroupPool, k: int, ridge: float, given: Sequence[int] = ()) -> None:
        self._pool, self._ridge = pool, ridge
        table = pool.table
        self._C, self._starts = table.ragged_rows("coordinates"), table.starts("unit")
        # Directions of the picks, their coordinates, and products of all axes with them.
        self._V: Floats = np.empty((0, int(pool.n)))
        self._D: Floats = np.empty((0, self._C.shape[1]))
        self._T: Floats = np.empty((len(self._C), 0))
        self._stages = [0]
        # Coordinates, and inner products within each group, of the axes' residuals on the picks.
        ranks = np.diff(self._starts)
        self._A: Floats = self._C.copy()
        self._M: Floats = np.concatenate(
            [np.zeros(0), *(np.eye(q).ravel() for q in ranks.tolist())]
        )
        picks = Picks([], [], [])
        for j in given:
            self._take(j, picks)
        while len(picks.indices) < min(k, len(pool.names)) and not given:
            scores = np.empty(ranks.size)
            gains_of_groups(self._A, self._M, self._starts, ridge, self._zero_tol, scores)
            scores[picks.indices] = -np.inf
            j = earliest_of_best(scores, ridge)
            if scores[j] <= ZERO_TOL:
                break
            self._take(j, picks)
        super().__init__(pool, picks, k)
        self.tolerance = tolerance(self.thresholds, ridge)

    def _take(self, j: int, picks: Picks) -> None:
        """Pick a group: compute its directions, and the products of all axes with them."""
        rows = slice(self._starts[j], self._starts[j + 1])
        Q, T, C = self._pool.table.ragged_rows("unit"), self._T[rows], self._C[rows]
        residual = Q[rows] - T @ self._V
        if self._ridge > 0.0:
            from scipy.linalg import lapack  # selection without groups does without

            L, _ = lapack.dpotrf((1.0 + self._ridge) * np.eye(len(T)) - T @ T.T, lower=1)
            inverse, _ = lapack.dtrtri(L, lower=1)
            new = np.tril(inverse)
            directions, coordinates = new @ residual, new @ (C - T @ self._D)
            size = len(T)
        else:
            # Twice, for the accuracy of groups that lie nearly in the span of the picks.
            residual -= (residual @ self._V.T) @ self._V
            squares, axes = np.linalg.eigh(residual @ residual.T)
            left = squares > _MIN_RESIDUAL
            directions = (axes[:, left] / np.sqrt(squares[left])).T @ residual
            coordinates = directions @ self._pool.basis.T
            size = int(left.sum())
        products = Q @ directions.T
        self._A -= products @ coordinates
        remove_directions(self._M, products, self._starts)
        self._V = np.vstack([self._V, directions])
        self._D = np.vstack([self._D, coordinates])
        self._T = np.hstack([self._T, products])
        self._stages.append(len(self._V))
        picks.indices.append(j)
        picks.scores.append(float(np.square(coordinates).sum()) / max(size, 1))
        picks.rounds.append(0)

    def _scores_under(self, C: Floats, T: Floats, starts: Indices, stages: Sequence[int]) -> Floats:
        """Return the (p, S) scores of groups, given the number of directions of each stage."""
        scores = np.empty((starts.size - 1, len(stages)))
        inputs = C, T, self._D, starts, np.array(stages)
        forward_scores_of_groups(*inputs, self._ridge, self._zero_tol, scores)
        return scores

    @property
    def _zero_tol(self) -> float:
        """Residual square up to which a direction is explained by the picks."""
        return 0.0 if self._ridge > 0.0 else _MIN_RESIDUAL

    def scores(self) -> Floats:
        """Return the (p, S) scores of the pool's groups; -inf for those picked or excluded."""
        stages = self._stages[: len(self.keys)]
        scores = self._scores_under(self._C, self._T, self._starts, stages)
        for s, j in enumerate(self.picks.indices):
            scores[j, s + 1 :] = -np.inf
        return scores

    def scores_of(self, chunk: Any, stats: Any, indices: Indices) -> Floats:  # noqa: ARG002
        """Return the (b, S) scores of groups of a chunk."""
        groups: GroupChunk = chunk
        stages = self._stages[: len(self.keys)]
        _, axes, _ = groups.ragged_indices(indices)
        starts = starts_of(np.diff(groups.axis_starts)[indices])
        T = groups.samples[axes] @ self._V[: stages[-1]].T
        return self._scores_under(groups.coordinates[axes], T, starts, stages)


@dataclass(frozen=True, eq=False)
class GroupForwardSolver(StagedSolver):
    """Solver of forward selection among the groups of a pool.

    Parameters
    ----------
    k, ridge
        Number of picks wanted, and the ridge.
    """

    k: int
    ridge: float

    def solve(self, pool: Any, before: Any, n_certified: int | None) -> GroupForwardSolution:  # noqa: ARG002
        """Return the candidate solution for the groups of a pool."""
        return GroupForwardSolution(pool, self.k, self.ridge)

    def restore(self, pool: Any, saved: dict[str, Any]) -> GroupForwardSolution:
        """Return the candidate solution that `GroupForwardSolution.to_state` saved."""
        return GroupForwardSolution(pool, self.k, self.ridge, picks_from_state(pool, saved))
