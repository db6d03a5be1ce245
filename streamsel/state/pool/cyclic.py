"""Cyclic passes over the columns, until a staged solution is proven.

For each stage, the state has the best score of the columns discarded since that stage last changed.
A stage is proven if all columns were scored since then, if no column was discarded, or if its
threshold exceeds every score that a discarded column can have.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

import numpy as np

from streamsel.data.columns import Chunk, Stats
from streamsel.state.base import Floats, Indices
from streamsel.state.correlations import index_runs
from streamsel.state.pool.candidate_solution import (
    MINUS_FLOAT_MAX,
    BoolArray,
    CandidateSolution,
    IntArray,
    StagedSolver,
    count_leading_true,
)
from streamsel.state.pool.fingerprint import PoolFingerprint, pool_changed_error
from streamsel.state.pool.pool import Picks, Pool
from streamsel.targets.space import TargetSpace

_ALL = slice(None)
# Number of columns scored at once directly after a new solution.
_MIN_BATCH = 64


class CyclicPool(Pool):
    """A pool of at most twice `limit` columns, filled by cyclic passes over the columns.

    Attributes
    ----------
    room
        Number of columns kept before any is discarded, at least twice the limit.
    seen
        Columns seen in all passes; 0 in the first.
    total
        Columns of the source; None in the first pass.
    has_discarded
        Whether a column that may be selected was discarded.
    score_upper_bound
        Upper bound of all later scores of discarded columns.
    unchanged_since, best_discarded, eviction_thresholds
        (S,) per stage: number of columns seen when it last changed; best score of a column
        discarded since; best score discarded at the last cut.
    """

    method: StagedSolver
    solution: CandidateSolution | None

    def __init__(
        self, space: TargetSpace | None, n: int, limit: int, noted: Sequence[str] = ()
    ) -> None:
        super().__init__(space, n, limit, noted)
        self.limit: int = limit
        self.room = 2 * limit
        self.seen = 0
        self.total: int | None = None
        self.has_discarded = False
        self.score_upper_bound = MINUS_FLOAT_MAX
        self.unchanged_since: IntArray = np.zeros(0, dtype=np.int64)
        self.best_discarded: Floats = np.zeros(0)
        self.eviction_thresholds: Floats = np.zeros(0)
        self._solved_at = 0
        # Number of columns scored at once; doubled while the solution does not change.
        self._batch_size = _MIN_BATCH
        # Number of pool columns that the solution accounts for, and a solution with all of them.
        self._n_solved = 0
        self._latest_solution: CandidateSolution | None = None

    @property
    def max_variables(self) -> int:
        """The maximum number of variables at any time."""
        return self.room

    def adjusted_squares(self, stats: Stats, indices: Indices | slice = _ALL) -> Floats:
        """Return the sums of squares of columns after adjusting for the covariates."""
        m2 = stats.m2[indices]
        return m2 if self._space is None else self._space.adjusted_squares(m2, stats.cxy[indices])

    # Learning

    def admit(
        self,
        chunk: Chunk,
        stats: Stats,
        first_arrival: int,
        indices: Indices | None = None,
        noted: Mapping[str, Floats] = {},
    ) -> None:
        """Learn the columns of a chunk, in order."""
        start = first_arrival if self.total is None else self.seen
        if indices is None:
            indices = np.flatnonzero(self.adjusted_squares(stats) > 0.0)
        if indices.size or self.total is not None:
            self._copy_before_write()
        if self.total is not None:
            PoolFingerprint.of(self.table).expect(chunk, stats, first_arrival)
        while self.solution is None and indices.size:
            indices = self._fill_pool(chunk, stats, first_arrival, indices, noted)
        for piece in index_runs(indices, chunk.n):
            rest = piece
            while rest.size:
                # A new solution changes the pool and the columns left to score.
                new = rest[: self._batch_size]
                new = new[new < self.columns_until_certified - start]
                if not new.size:
                    break
                stop = self._score_batch(chunk, stats, first_arrival, new, noted, start)
                rest = rest[np.searchsorted(rest, stop) :]
        if self.total is not None:
            self.seen = int(min(start + stats.m2.size, self.columns_until_certified))

    def _score_batch(
        self,
        chunk: Chunk,
        stats: Stats,
        first_arrival: int,
        indices: Indices,
        noted: Mapping[str, Floats],
        start: int,
    ) -> int:
        """Score columns until the solution changes; return the index where that happens."""
        new = indices
        if self.total is not None:
            new = indices[~PoolFingerprint.of(self.table).among(first_arrival + indices)]
        stop = int(indices[-1]) + 1
        if new.size:
            after = self._score_and_keep(chunk, stats, first_arrival, new, noted, start)
            if after <= new[-1]:
                stop = after
        # Columns after one that changes the solution are scored again.
        self._batch_size = 2 * self._batch_size if stop > indices[-1] else _MIN_BATCH
        return stop

    def _fill_pool(
        self,
        chunk: Chunk,
        stats: Stats,
        first_arrival: int,
        indices: Indices,
        noted: Mapping[str, Floats],
    ) -> Indices:
        """Keep columns until the pool is full for the first time; return the rest."""
        room = self.room - len(self.table)
        taken = indices[:room]
        self._append(chunk, stats, first_arrival, taken, noted)
        if len(self.table) >= self.room:
            # Nothing was discarded before.
            self._solve_again(0)
            self._cut()
        return indices[room:]

    def _score_and_keep(
        self,
        chunk: Chunk,
        stats: Stats,
        first_arrival: int,
        indices: Indices,
        noted: Mapping[str, Floats],
        start: int,
    ) -> int:
        """Score columns, keep or discard each; return the index where the solution changes."""
        solution = self.solution
        assert solution is not None  # noqa: S101
        scores = solution.scores_of(chunk, stats, indices, noted)
        is_open = self._open_stages(solution)
        above = self.eviction_thresholds + solution.tolerance
        beats = (scores > solution.thresholds + solution.tolerance) & is_open
        if self.total is not None:
            earlier = (first_arrival + indices)[:, None] < solution.incumbent_arrivals
            beats |= earlier & (scores >= solution.thresholds - solution.tolerance) & is_open
        beats_any = np.asarray(beats.any(axis=1))
        if self.total is not None:
            beats_any |= (
                solution.duplicated_incumbents(
                    chunk, stats, indices, first_arrival + indices, scores
                )
                >= 0
            )
        eligible = ((scores > above) & is_open).any(axis=1) | beats_any
        stop, is_due = self._columns_until_solve(eligible, beats_any)
        discarded = scores[:stop][~eligible[:stop]]
        if discarded.size:
            self.has_discarded = True
            self.best_discarded = np.maximum(self.best_discarded, discarded.max(axis=0))
            self._record_discarded(stats, indices[:stop][~eligible[:stop]])
        kept = indices[:stop][eligible[:stop]]
        if kept.size:
            self._append(chunk, stats, first_arrival, kept, noted)
        after = int(indices[stop - 1]) + 1
        if is_due:
            # The last column may beat a stage that was just proven with it.
            self._solve_again(start + after, count_leading_true(~is_open))
            if len(self.table) >= 2 * self.limit:
                self._cut()
        return after

    def _append(
        self,
        chunk: Chunk,
        stats: Stats,
        first_arrival: int,
        indices: Indices | None,
        noted: Mapping[str, Floats],
    ) -> None:
        if self.total is not None and indices is not None:
            repeated = [name for j in indices.tolist() if (name := chunk.names[j]) in self.index_of]
            if repeated:
                raise pool_changed_error(f"{repeated[0]!r} as the name of two columns")
        self._latest_solution = None
        super()._append(chunk, stats, first_arrival, indices, noted)

    def _columns_until_solve(self, eligible: BoolArray, beats: BoolArray) -> tuple[int, bool]:
        """Return how many columns to take, and whether to solve again after them."""
        stop, is_due = eligible.size, False
        room = 2 * self.limit - len(self.table)
        indices = np.flatnonzero(eligible)
        if indices.size >= room:
            stop, is_due = int(indices[room - 1]) + 1, True
        # From the second pass on, a solution known to be wrong is replaced at once.
        if self.total is not None and beats[:stop].any():
            stop, is_due = int(np.argmax(beats)) + 1, True
        return stop, is_due

    def _record_discarded(self, stats: Stats, indices: Indices) -> None:
        rows = {field: array[indices] for field, array in stats._asdict().items()}
        bound = self.method._score_upper_bound(self, rows)
        self.score_upper_bound = max(
            self.score_upper_bound, float(bound.max(initial=MINUS_FLOAT_MAX))
        )

    # Candidate solutions

    def _solve_again(self, seen: int, n_proven: int = 0) -> None:
        """Solve again with all columns in the pool; `n_proven` stages are proven."""
        self._sort_by_arrival()
        solution = self.method._candidate_solution(self, self.solution, n_proven)
        self.unchanged_since, self.best_discarded, self.eviction_thresholds = self._stage_records(
            solution, seen
        )
        self.solution, self._solved_at, self._n_solved = solution, seen, len(self.table)

    def _sort_by_arrival(self) -> None:
        """Sort the variables by arrival: an early one may be added late in a later pass."""
        arrival = self.table["arrival"]
        if (np.diff(arrival) < 0.0).any():
            self.table.keep(np.argsort(arrival))

    def _stage_records(
        self, solution: CandidateSolution, seen: int
    ) -> tuple[IntArray, Floats, Floats]:
        """Return the records of the stages of a solution made after `seen` columns."""
        size, previous = len(solution.keys), self.solution
        # If no column was discarded, every stage has seen all of them.
        since = np.full(size, seen if self.has_discarded else 0, dtype=np.int64)
        best_discarded, thresholds = np.full(size, MINUS_FLOAT_MAX), np.full(size, MINUS_FLOAT_MAX)
        for s in range(0 if previous is None else min(size, len(previous.keys))):
            assert previous is not None  # noqa: S101
            if solution.carries_over(previous, s, float(self.best_discarded[s])):
                since[s], best_discarded[s], thresholds[s] = (
                    self.unchanged_since[s],
                    self.best_discarded[s],
                    self.eviction_thresholds[s],
                )
        return since, best_discarded, thresholds

    def latest_solution(self) -> CandidateSolution:
        """Return a solution with all columns in the pool; decisions about columns do not change."""
        # From the second pass on, the solution is updated by every column that beats it.
        if self.solution is not None and (
            self.total is not None or len(self.table) == self._n_solved
        ):
            return self.solution
        if self._latest_solution is None:
            self._latest_solution = self.method._candidate_solution(self, self.solution, 0)
        return self._latest_solution

    def answer(self) -> Picks:
        """Return the picks with all columns in the pool, as current indices."""
        solution = self.latest_solution()
        picks, indices = solution.picks, self.index_of
        return picks._replace(indices=[indices[solution.names[j]] for j in picks.indices])

    def _cut(self) -> None:
        """Keep the pinned columns, then the r-th best of every unproven stage, r = 1, 2, ..."""
        solution = self.solution
        assert solution is not None  # noqa: S101
        scores = solution.scores()
        is_kept = np.zeros(len(self.table), dtype=np.bool_)
        is_kept[solution.pinned] = True
        is_kept = keep_best_per_stage(scores[:, self._open_stages(solution)], is_kept, self.limit)
        discarded = np.flatnonzero(~is_kept)
        if discarded.size:
            self.has_discarded = True
            self.eviction_thresholds = np.maximum(scores[discarded].max(axis=0), MINUS_FLOAT_MAX)
            self.best_discarded = np.maximum(self.best_discarded, self.eviction_thresholds)
            self._record_discarded(self.stats(), discarded)
            self.table.keep(np.flatnonzero(is_kept))
            self._n_solved = len(self.table)

    # Proofs

    def _proven_by(self, solution: CandidateSolution) -> BoolArray:
        """Return which stages of a solution are proven, (S,)."""
        since, best_discarded = self.unchanged_since, self.best_discarded
        if solution is not self.solution:
            since, best_discarded, _ = self._stage_records(solution, 1)
        in_full = since == 0 if self.total is None else self.seen - since >= self.total
        proven = self._proven_if(solution, in_full, best_discarded)
        return np.logical_and.accumulate(proven) if solution.ordered else proven

    def _proven_if(
        self, solution: CandidateSolution, full: BoolArray, best_discarded: Floats
    ) -> BoolArray:
        """Return which stages are proven, (S,), if those in `full` have seen all columns."""
        bounding = solution.bounding_stages(full)
        bound = np.maximum(
            best_discarded,
            np.where(bounding >= 0, best_discarded[bounding], self.score_upper_bound),
        )
        proven: BoolArray = full | (solution.thresholds - solution.tolerance > bound)
        return proven

    def _open_stages(self, solution: CandidateSolution) -> BoolArray:
        """Return which stages are not yet proven, (S,); all of them in the first pass."""
        if self.total is None:
            return np.ones(len(solution.keys), dtype=np.bool_)
        return ~self._proven_by(solution)

    @property
    def columns_until_certified(self) -> float:
        """Return the number of columns that must be seen to prove the whole answer."""
        if self.total is None or self.solution is None:
            return np.inf
        solution, ends = self.solution, self.unchanged_since + self.total
        times = np.unique(np.append(ends[ends > self._solved_at], self._solved_at))

        def is_open_at(time: np.int64) -> bool:
            return not self._proven_if(solution, ends <= time, self.best_discarded).all()

        # The set of proven stages only grows with the number of columns.
        first = bisect_left(times, True, key=lambda time: not is_open_at(time))
        return float(times[first])

    def proven(self) -> BoolArray:
        """Return which stages are proven, (S,); none before the first solution."""
        return (
            np.zeros(0, dtype=np.bool_) if self.solution is None else self._proven_by(self.solution)
        )

    def count_certified(self, picks: Picks) -> int:
        """Return how many leading picks no discarded column can have changed."""
        if not self.has_discarded:
            return len(picks.indices)
        solution = self.latest_solution()
        return min(
            len(picks.indices), solution.count_picks(count_leading_true(self._proven_by(solution)))
        )

    def begin_pass(self, total: int) -> None:
        """Start the next pass over the same columns."""
        self._copy_before_write()
        if self.total is None:
            self._solve_again(total)
            self.total = self.seen = total

    @property
    def is_certified(self) -> bool:
        """Whether the whole answer is proven."""
        return not self.has_discarded or bool(self.proven().all())


def keep_best_per_stage(scores: Floats, required: BoolArray, limit: int) -> BoolArray:
    """Return which columns to keep: the required ones, then the r-th best of every stage.

    r = 1, 2, ..., until the limit is reached.

    Parameters
    ----------
    scores
        (p, S) in order of arrival; not finite for ineligible columns.
    required
        (p,) columns that must be kept.
    limit
        Number of columns to keep, unless more are required.
    """
    order, finite = _ranked(scores)
    sequence = order[finite & ~required[order]]
    # The last assignment to an index wins: each column gets its best rank in any stage.
    position = np.full(len(required), sequence.size)
    position[sequence[::-1]] = np.arange(sequence.size)[::-1]
    room = max(0, limit - int(required.sum()))
    added = np.argsort(position)[:room]
    required = required.copy()
    required[added[position[added] < sequence.size]] = True
    return required


def _ranked(scores: Floats) -> tuple[Indices, BoolArray]:
    """Return the r-th best column of every stage, (p, S), and whether its score is finite, (p, S).

    Scores are compared as float32, so that scores differing by rounding are equal, and the earlier
    column comes first.
    """
    with np.errstate(over="ignore"):
        bits = np.ascontiguousarray(-scores.T, dtype=np.float32).view(np.uint32)
    # Map the bits so that they sort as the numbers do.
    bits = np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31)).astype(np.uint64)
    ranked = np.sort((bits << np.uint64(32)) | np.arange(len(scores), dtype=np.uint64), axis=1)
    order = (ranked & np.uint64(0xFFFFFFFF)).astype(np.intp).T
    return order, np.isfinite(np.take_along_axis(scores, order, axis=0))
