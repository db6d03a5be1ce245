"""ProjSe in certified passes: candidate solutions in stages.

A solution has the picks, and the scores of other columns at each stage. A round that did not use
the whole rank ends with one more stage, which requires all remaining scores to be zero. So does a
solution with fewer picks than wanted, with the whole projector, if restarts are allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel._kernels import gram_schmidt, pivoted_cholesky
from streamsel.data.chunks import Chunk, Stats
from streamsel.selection._projse import (
    CoordinateDeflation,
    deflation_of,
    greedy_projse,
    squared_relevance_of_rows,
)
from streamsel.selection._projse_pool import empty_trace_arrays
from streamsel.state.base import Floats, Indices, VariableState
from streamsel.state.correlations import correlate_columns
from streamsel.state.pool.candidate_solution import (
    CandidateSolution,
    StagedSolver,
    previous_indices,
)
from streamsel.state.pool.pool import TIE_RTOL, ZERO_TOL, Picks, Pool
from streamsel.targets.kernels import VariableKernel

Bools = NDArray[np.bool_]

# Scores are differences: the error of a small score is relative to this times its root.
_ROUGH = 1e-2


class ProjSeSolution(CandidateSolution):
    """Picks of ProjSe in a pool.

    Parameters
    ----------
    pool
        The pool.
    picks
        The picks.
    k, restart
        Number of picks wanted, and whether further rounds are allowed.
    rank
        Maximum number of picks per round.

    Attributes
    ----------
    pick_at_stage, begins_round
        (S,) index of the pick at each stage, -1 for none, and whether a round begins there.
    """

    def __init__(self, pool: Pool, picks: Picks, k: int, rank: int, *, restart: bool) -> None:
        self.names, self.arrivals = list(pool.names), pool.table["arrival"].copy()
        self.picks = picks
        steps, begins = _stages(picks.rounds, k, rank, restart=restart)
        self.pick_at_stage, self.begins_round = (
            np.array(steps, dtype=np.int64),
            np.array(begins, dtype=np.bool_),
        )
        self._round = np.maximum.accumulate(np.where(begins, np.arange(len(steps)), 0))
        self.keys = []
        for step, begin in zip(steps, begins, strict=True):
            if begin:
                selected: tuple[Any, ...] = ()
            self.keys.append(selected)
            if step >= 0:
                selected = (*selected, self.names[picks.indices[step]])
        arrival = pool.table["arrival"][picks.indices].astype(np.int64)
        has_pick = self.pick_at_stage >= 0
        self.thresholds: Floats = np.full(len(steps), ZERO_TOL)
        self.thresholds[has_pick] = picks.scores
        self.incumbent_arrivals = np.full(len(steps), -1, dtype=np.int64)
        self.incumbent_arrivals[has_pick] = arrival
        self.tolerance: Floats = TIE_RTOL * np.maximum(
            self.thresholds, _ROUGH * np.sqrt(self.thresholds)
        )
        self.pinned = np.array(picks.indices, dtype=np.intp)

    def bounding_stages(self, full: Bools) -> Indices:
        """Return for each stage the complete stage whose scores bound its own, (S,); -1 if none.

        Scores fall within a round, and are nowhere above those of the first stage.
        """
        latest = np.maximum.accumulate(np.where(full, np.arange(full.size), -1))
        return np.where(latest >= self._round, latest, 0 if full[0] else -1)

    def carries_over(self, before: CandidateSolution, s: int, best_discarded: float) -> bool:
        """Return whether results under a stage of the previous solution carry over to this one.

        If an earlier round has taken the incumbent, a discarded variable may beat the new one.
        """
        if not super().carries_over(before, s, best_discarded):
            return False
        threshold, previous = self.thresholds[s], before.thresholds[s]
        is_lower = threshold < previous or (
            threshold == previous and self.incumbent_arrivals[s] > before.incumbent_arrivals[s]
        )
        return not is_lower or threshold - self.tolerance[s] > best_discarded

    def count_picks(self, n_stages: int) -> int:
        """Return the number of picks in the leading stages."""
        return int(np.count_nonzero(self.pick_at_stage[:n_stages] >= 0))

    def to_state(self) -> dict[str, Any]:
        """Return the picks by name."""
        names = [self.names[j] for j in self.picks.indices]
        return {"picks": names, "scores": self.picks.scores, "rounds": self.picks.rounds}

    def _without_picked(self, scores: Floats) -> Floats:
        for s, step in enumerate(self.pick_at_stage.tolist()):
            if step >= 0:
                scores[self.picks.indices[step], s + 1 :] = -np.inf
        return scores


def _stages(rounds: list[int], k: int, rank: int, *, restart: bool) -> tuple[list[int], list[bool]]:
    """Return the pick at every stage, -1 for none, and whether a round begins there."""
    steps: list[int] = []
    begins: list[bool] = []
    in_round = rank
    for i, number in enumerate(rounds):
        is_new = i == 0 or number != rounds[i - 1]
        if is_new and in_round < rank:
            steps.append(-1)
            begins.append(False)
        in_round = 1 if is_new else in_round + 1
        steps.append(i)
        begins.append(is_new)
    if len(rounds) < k:
        if in_round < rank:
            steps.append(-1)
            begins.append(False)
        if restart or not rounds:
            steps.append(-1)
            begins.append(True)
    return steps, begins


def projse_picks_from_state(pool: Pool, state: dict[str, Any]) -> Picks:
    """Return the picks in a state of `ProjSeSolution.to_state`, as indices of the pool."""
    return Picks([pool.index_of[name] for name in state["picks"]], state["scores"], state["rounds"])


def _certified_picks(pool: Pool, before: ProjSeSolution | None, n_certified: int | None) -> Picks:
    """Return the certified picks of the previous solution, as indices of the pool."""
    if before is None:
        return Picks([], [], [])
    picks, indices = before.picks.first(before.count_picks(n_certified or 0)), pool.index_of
    return picks._replace(indices=[indices[before.names[j]] for j in picks.indices])


class CoordinateSolution(ProjSeSolution):
    """Picks among variables with coordinates in a target space.

    Parameters
    ----------
    pool, k, restart
        As in `ProjSeSolution`.
    before, n_certified
        The previous solution, and the number of its leading stages that are certified.
    given
        The picks, if known.
    """

    def __init__(
        self,
        pool: Pool,
        k: int,
        before: ProjSeSolution | None = None,
        n_certified: int | None = None,
        given: Picks | None = None,
        *,
        restart: bool,
    ) -> None:
        assert pool.space is not None  # noqa: S101
        self._space = pool.space
        self._G = pool.coordinates()
        if given is None:
            certified = _certified_picks(pool, before, n_certified)
            given = greedy_projse(
                CoordinateDeflation(self._G), k, restart=restart, initial_picks=certified
            )
        super().__init__(pool, given, k, self._space.rank, restart=restart)
        self._Q = np.empty((len(given.indices), self._space.rank))
        first = 0
        for i, j in enumerate(given.indices):
            first = i if i and given.rounds[i] != given.rounds[i - 1] else first
            gram_schmidt.residual_direction(self._G, self._Q[first:i], j, self._Q[i])

    def _scored(self, G: Floats) -> Floats:
        scores = np.empty((len(G), len(self.keys)))
        gram_schmidt.fold_deflation(G, self._Q, self.pick_at_stage, self.begins_round, scores)
        return scores

    def scores(self) -> Floats:
        """Return the (p, S) scores of the pool's variables; -inf for those already picked."""
        return self._without_picked(self._scored(self._G))

    def scores_of(self, chunk: Chunk, stats: Stats, indices: Indices) -> Floats:
        """Return the (b, S) scores of columns of a chunk."""
        del chunk
        return self._scored(self._space.coordinates(stats.m2[indices], stats.cxy[indices]))


class KernelSolution(ProjSeSolution):
    """Picks among variables that explain each other.

    Parameters
    ----------
    pool, k, restart
        As in `ProjSeSolution`.
    kernel
        The kernel between variables.
    before, given
        As in `CoordinateSolution`.
    """

    def __init__(
        self,
        pool: Pool,
        k: int,
        kernel: VariableKernel,
        before: KernelSolution | None = None,
        given: Picks | None = None,
        *,
        restart: bool,
    ) -> None:
        m2, unit = pool.stats().m2, pool.table["unit"]
        names = list(pool.names)
        origin = previous_indices(pool.table["arrival"], before)
        added = np.flatnonzero(origin < 0)
        # (p, p) kernels between all variables of the pool.
        self.gram: Floats = np.empty((len(names), len(names)))
        if before is not None:
            # Rows and columns of new variables are overwritten below.
            self.gram = before.gram.take(origin, axis=0, mode="clip").take(
                origin, axis=1, mode="clip"
            )
        self.gram[added] = kernel.of_cosine(unit[added] @ unit.T, m2[added], m2, pool.n)
        self.gram[:, added] = self.gram[added].T
        self._kernel = kernel
        self._as_picked = empty_trace_arrays(k, k)
        if given is None:
            given = self._picked(k, before, pool, origin < 0, restart=restart)
        super().__init__(pool, given, k, int(np.iinfo(np.int64).max), restart=restart)
        indices = np.array(given.indices, dtype=np.intp)
        self._V, self._m2 = unit[indices], m2[indices]
        self._L = np.zeros((indices.size, indices.size))
        rounds = np.array(given.rounds)
        for number in np.unique(rounds):
            first, last = np.flatnonzero(rounds == number)[[0, -1]]
            part = slice(first, last + 1)
            pivoted_cholesky.factor(
                self.gram[np.ix_(indices[part], indices[part])], self._L[part, part]
            )

    def _picked(
        self,
        k: int,
        before: KernelSolution | None,
        pool: Pool,
        is_new: Bools,
        *,
        restart: bool,
    ) -> Picks:
        """Pick again from the first pick that a new variable may beat."""
        previous, n_previous = empty_trace_arrays(k, k), 0
        if before is not None:
            previous, n_previous = before._as_picked, len(before.picks.indices)
            indices = previous[0].copy()
            for i, j in enumerate(before.picks.indices):
                indices[i] = pool.index_of[before.names[j]]
            previous = indices, *previous[1:]
        current = self._as_picked
        taken = np.zeros(is_new.size, dtype=np.bool_)
        factor = np.empty(k, dtype=np.int64), np.empty((k, k))
        n = pivoted_cholesky.refill_by_cholesky(
            self.gram,
            taken,
            is_new.copy(),
            *factor,
            previous,
            n_previous,
            current,
            TIE_RTOL,
            ZERO_TOL,
        )
        indices, scores, rounds = (array[:n].tolist() for array in current[:3])
        return Picks(indices, scores, rounds).first(n if restart else rounds.count(0))

    def _scored(self, K: Floats) -> Floats:
        scores = np.empty((len(K), len(self.keys)))
        pivoted_cholesky.fold_cholesky(K, self._L, self.pick_at_stage, self.begins_round, scores)
        return scores

    def scores(self) -> Floats:
        """Return the (p, S) scores of the pool's variables; -inf for those already picked."""
        return self._without_picked(self._scored(self.gram[:, self.picks.indices]))

    def scores_of(self, chunk: Chunk, stats: Stats, indices: Indices) -> Floats:
        """Return the (b, S) scores of columns of a chunk."""
        m2 = stats.m2[indices]
        cosine = correlate_columns(chunk, stats, indices, self._V, m2)
        return self._scored(self._kernel.of_cosine(cosine, m2, self._m2, chunk.n))


@dataclass(frozen=True, eq=False)
class ProjSeSolver(StagedSolver):
    """Solver of ProjSe in the pool of a `Certifier`.

    Parameters
    ----------
    k, restart
        Number of picks wanted, and whether further rounds are allowed.
    kernel
        The kernel between variables.
    """

    k: int
    restart: bool
    kernel: VariableKernel

    def solve(self, pool: Pool, before: Any, n_certified: int | None) -> ProjSeSolution:
        """Return the candidate solution for the variables of a pool."""
        return self._solution(pool, before, n_certified)

    def restore(self, pool: Pool, saved: dict[str, Any]) -> ProjSeSolution:
        """Return the candidate solution that `ProjSeSolution.to_state` saved."""
        return self._solution(pool, given=projse_picks_from_state(pool, saved))

    def _solution(
        self,
        pool: Pool,
        before: Any = None,
        n_certified: int | None = None,
        given: Picks | None = None,
    ) -> ProjSeSolution:
        k, restart = self.k, self.restart
        if pool.space is None:
            return KernelSolution(pool, k, self.kernel, before, given, restart=restart)
        return CoordinateSolution(pool, k, before, n_certified, given, restart=restart)

    def picks(self, pool: VariableState, k: int) -> Picks:
        """Return k picks among the variables of a pool."""
        return greedy_projse(deflation_of(pool, self.kernel), k, restart=self.restart)

    def upper_bound(self, pool: Pool, rows: Mapping[str, Floats]) -> Floats:
        """Return the squared relevances: scores only fall."""
        return squared_relevance_of_rows(pool, rows)
