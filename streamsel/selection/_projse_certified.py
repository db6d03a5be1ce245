"""ProjSe in certified passes: filters that cut its pool back, and candidate solutions in stages.

A solution has the picks, and the scores of other columns at each stage. A round that did not use
the whole rank ends with one more stage, which requires all remaining scores to be zero. So does a
solution with fewer picks than wanted, with the whole projector, if restarts are allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel._kernels import gram_schmidt, pivoted_cholesky
from streamsel._kernels.gram_schmidt import cut_pool
from streamsel._kernels.pivoted_cholesky import refill_by_cholesky
from streamsel.data.columns import Chunk, Stats
from streamsel.selection._projse import CoordinateDeflation, greedy_projse
from streamsel.state.base import Floats, Indices
from streamsel.state.correlations import correlate_columns
from streamsel.state.pool.candidate_solution import CandidateSolution, previous_indices
from streamsel.state.pool.certified import TwoPhasePool, TwoPhaseSamplePool
from streamsel.state.pool.pool import TIE_RTOL, ZERO_TOL, EvictionResult, Picks, Pool, unit_columns
from streamsel.targets.kernels import VariableKernel

Bools = NDArray[np.bool_]
Greedy = tuple[NDArray[Any], ...]

_NONE = np.empty(0, dtype=np.intp)
# Scores are differences: the error of a small score is relative to this times its root.
_ROUGH = 1e-2

# Filters of the pool


class CutState(NamedTuple):
    """State of the greedy at the last cut.

    Parameters
    ----------
    G
        (m, r) coordinates of the kept candidates, in the pool's order.
    picks
        Its picks, as in `refill_by_deflation`.
    n_picks
        Their number.
    """

    G: Floats
    picks: Greedy
    n_picks: int


def empty_trace_arrays(m: int, r: int) -> Greedy:
    """Return buffers for m picks of r coordinates, as in `refill_by_deflation`."""
    return np.empty(m, dtype=np.int64), np.empty(m), np.empty(m, dtype=np.int64), np.empty((m, r))


def initial_state(limit: int, r: int) -> CutState:
    """Return the state before any cut."""
    return CutState(np.empty((0, r)), empty_trace_arrays(limit, r), 0)


def filter_coordinates(pool: Pool, limit: int, offered: Floats) -> EvictionResult:
    """Return the update of a pool after offering variables, by their coordinates."""
    space, size = pool.space, len(pool.table)
    assert space is not None  # noqa: S101
    bounds: Floats = np.einsum("ij,ij->i", offered, offered)
    if bounds.size and bounds.max() <= pool.admission_threshold:
        discarded = max(pool.max_discarded_bound, float(bounds.max()))
        return EvictionResult(None, _NONE, discarded, pool.admission_threshold, pool.solution)
    eligible = bounds > pool.admission_threshold
    if size + np.count_nonzero(eligible) < 2 * limit:
        discarded = max(pool.max_discarded_bound, float(bounds[~eligible].max(initial=-1.0)))
        return EvictionResult(
            None, np.flatnonzero(eligible), discarded, pool.admission_threshold, pool.solution
        )
    r = space.rank
    state = initial_state(limit, r) if pool.solution is None else pool.solution
    n_at_last_cut = len(state.G)
    capacity = max(2 * limit, size + 1)
    G, whole, origin = (
        np.empty((capacity, r)),
        np.empty(capacity),
        np.empty(capacity, dtype=np.int64),
    )
    stats = pool.stats(np.arange(n_at_last_cut, size))
    G[:n_at_last_cut], G[n_at_last_cut:size] = state.G, space.coordinates(stats.m2, stats.cxy)
    whole[:size] = np.einsum("ij,ij->i", G[:size], G[:size])
    picks = tuple(array.copy() for array in state.picks)
    candidates = (G, whole, origin, size, n_at_last_cut, offered, bounds)
    progress = (picks, state.n_picks, limit, pool.max_discarded_bound, pool.admission_threshold)
    n_left, n_at_last_cut, n_picks, discarded, threshold = cut_pool(
        *candidates, *progress, TIE_RTOL, ZERO_TOL
    )
    n_stayed = np.searchsorted(origin[:n_left], size)
    join = origin[n_stayed:n_left] - size
    new_state = CutState(G[:n_at_last_cut].copy(), picks, n_picks)
    return EvictionResult(origin[:n_stayed], join, discarded, threshold, new_state)


class ProjSeSampleFilter:
    """Pool of variables that explain each other, filled and cut back.

    Parameters
    ----------
    pool
        The pool, which is not changed.
    limit
        Its limit.
    kernel
        The kernel between variables.
    """

    def __init__(self, pool: Pool, limit: int, kernel: VariableKernel) -> None:
        self._limit, self._kernel = limit, kernel
        self._n = int(pool.n)
        state = initial_state(limit, limit) if pool.solution is None else pool.solution
        self._picks = tuple(array.copy() for array in state.picks)
        self._n_picks = state.n_picks
        self._n_at_last_cut = len(state.G)
        self.size = self._held = len(pool.table)
        capacity = max(2 * limit, self.size + 1)
        self._K, self._unit = np.zeros((capacity, capacity)), np.empty((capacity, self._n))
        self._K[: self._n_at_last_cut, : self._n_at_last_cut] = state.G[:, : self._n_at_last_cut]
        self._m2, self._origin = np.empty(capacity), np.arange(capacity)
        self._unit[: self.size] = pool.table["unit"]
        self._m2[: self.size] = pool.table["m2"]
        self.discarded, self.floor = pool.max_discarded_bound, pool.admission_threshold

    def add(self, chunk: Chunk, stats: Stats, indices: Indices) -> None:
        """Admit columns of a chunk in order, cutting the pool at twice the limit."""
        start = 0
        # Without a target every variable has relevance 1.
        while start < indices.size and self.floor < 1.0:
            stop = min(start + max(1, 2 * self._limit - self.size), indices.size)
            admitted = indices[start:stop]
            rows = slice(self.size, self.size + admitted.size)
            self._unit[rows], self._m2[rows] = (
                unit_columns(chunk, stats, admitted),
                stats.m2[admitted],
            )
            self._origin[rows] = self._held + np.arange(start, stop)
            self.size, start = rows.stop, stop
            if self.size >= 2 * self._limit:
                self._cut()
        if start < indices.size:
            self.discarded = max(self.discarded, 1.0)

    def _cut(self) -> None:
        K, unit, m2, p, n_at_last_cut = (
            self._K,
            self._unit,
            self._m2,
            self.size,
            self._n_at_last_cut,
        )
        cosine = unit[n_at_last_cut:p] @ unit[:p].T
        K[n_at_last_cut:p, :p] = self._kernel.of_cosine(
            cosine, m2[n_at_last_cut:p], m2[:p], self._n
        )
        K[:n_at_last_cut, n_at_last_cut:p] = K[n_at_last_cut:p, :n_at_last_cut].T
        is_kept, is_new = np.zeros(p, dtype=np.bool_), np.arange(p) >= n_at_last_cut
        limit = self._limit
        order, L = np.empty(limit, dtype=np.int64), np.empty((limit, limit))
        picks = empty_trace_arrays(limit, limit)
        n = refill_by_cholesky(
            K, is_kept, is_new, order, L, self._picks, self._n_picks, picks, TIE_RTOL, ZERO_TOL
        )
        self.floor = float(picks[1].min(initial=1.0)) if n == limit else 0.0
        kept = np.flatnonzero(is_kept)
        if kept.size < p:
            self.discarded = max(self.discarded, 1.0)
        new_index = np.cumsum(is_kept) - 1
        picks[0][:n] = new_index[picks[0][:n]]
        self._picks, self._n_picks, self.size, self._n_at_last_cut = picks, n, kept.size, kept.size
        for array in (unit, m2, self._origin):
            array[: kept.size] = array[kept]
        K[: kept.size, : kept.size] = K[np.ix_(kept, kept)]

    def result(self) -> EvictionResult:
        """Return the update of the pool."""
        stayed = int(np.searchsorted(self._origin[: self.size], self._held))
        stay, join = self._origin[:stayed].copy(), self._origin[stayed : self.size] - self._held
        gram = self._K[: self._n_at_last_cut, : self._n_at_last_cut].copy()
        state = CutState(gram, self._picks, self._n_picks)
        return EvictionResult(stay, join, self.discarded, self.floor, state)


def filter_samples(
    pool: Pool, limit: int, kernel: VariableKernel, chunk: Chunk, stats: Stats, indices: Indices
) -> EvictionResult:
    """Return the update of a pool of samples after offering columns of a chunk."""
    if len(pool.table) + indices.size < 2 * limit and pool.admission_threshold < 1.0:
        return EvictionResult(
            None,
            np.arange(indices.size),
            pool.max_discarded_bound,
            pool.admission_threshold,
            pool.solution,
        )
    sieve = ProjSeSampleFilter(pool, limit, kernel)
    sieve.add(chunk, stats, indices)
    return sieve.result()


# Candidate solutions


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

    def __init__(
        self, pool: TwoPhasePool, picks: Picks, k: int, rank: int, *, restart: bool
    ) -> None:
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

    def carries_over(self, before: CandidateSolution, s: int, lost: float) -> bool:
        """Return whether results under a stage of the previous solution carry over to this one.

        If an earlier round has taken the incumbent, a discarded variable may beat the new one.
        """
        if not super().carries_over(before, s, lost):
            return False
        threshold, previous = self.thresholds[s], before.thresholds[s]
        is_lower = threshold < previous or (
            threshold == previous and self.incumbent_arrivals[s] > before.incumbent_arrivals[s]
        )
        return not is_lower or threshold - self.tolerance[s] > lost

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


def projse_picks_from_state(pool: TwoPhasePool, state: dict[str, Any]) -> Picks:
    """Return the picks in a state of `ProjSeSolution.to_state`, as indices of the pool."""
    return Picks([pool.index_of[name] for name in state["picks"]], state["scores"], state["rounds"])


def _certified_picks(pool: TwoPhasePool, before: ProjSeSolution | None, n_proven: int) -> Picks:
    """Return the certified picks of the previous solution, as indices of the pool."""
    if before is None:
        return Picks([], [], [])
    picks, indices = before.picks.first(before.count_picks(n_proven)), pool.index_of
    return picks._replace(indices=[indices[before.names[j]] for j in picks.indices])


class CoordinateSolution(ProjSeSolution):
    """Picks among variables with coordinates in a target space.

    Parameters
    ----------
    pool, k, restart
        As in `ProjSeSolution`.
    before, n_proven
        The previous solution, and the number of its leading stages that are certified.
    given
        The picks, if known.
    """

    def __init__(
        self,
        pool: TwoPhasePool,
        k: int,
        before: ProjSeSolution | None = None,
        n_proven: int = 0,
        given: Picks | None = None,
        *,
        restart: bool,
    ) -> None:
        assert pool.space is not None  # noqa: S101
        self._space = pool.space
        self._G = pool.coordinates()
        if given is None:
            certified = _certified_picks(pool, before, n_proven)
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

    def scores_of(
        self, chunk: Chunk, stats: Stats, indices: Indices, noted: Mapping[str, Floats]
    ) -> Floats:
        """Return the (b, S) scores of columns of a chunk."""
        del chunk, noted
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
        pool: TwoPhaseSamplePool,
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
        pool: TwoPhaseSamplePool,
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

    def scores_of(
        self, chunk: Chunk, stats: Stats, indices: Indices, noted: Mapping[str, Floats]
    ) -> Floats:
        """Return the (b, S) scores of columns of a chunk."""
        del noted
        m2 = stats.m2[indices]
        cosine = correlate_columns(chunk, stats, indices, self._V, m2)
        return self._scored(self._kernel.of_cosine(cosine, m2, self._m2, chunk.n))
