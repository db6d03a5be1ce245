"""Passes over the columns that repeat until a staged solution is certified.

For each stage, the state has the best score of the columns discarded since that stage last changed.
A stage is certified if all columns were scored since then, if no column was discarded, or if its
threshold exceeds every score that a discarded column can have.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from typing import Any, Self

import numpy as np

from streamsel.data.chunks import Chunk, Stats
from streamsel.serialization.schema import (
    ArrayKind,
    BoolKind,
    CountKind,
    FloatKind,
    OptionalKind,
    expect,
    expect_shapes,
    length_in,
)
from streamsel.state.base import Floats, Indices
from streamsel.state.correlations import index_runs
from streamsel.state.pool.candidate_solution import (
    MINUS_FLOAT_MAX,
    BoolArray,
    CandidateSolution,
    IntArray,
    StagedSolver,
    count_leading_true,
    keep_best_per_stage,
)
from streamsel.state.pool.fingerprint import PoolFingerprint, pool_changed_error
from streamsel.state.pool.pool import Picks, Pool
from streamsel.state.pool.pooled_state import PooledState

# A pool that fills more than 1 / `_RESERVE_DIVISOR` of its room reserves the memory for all of it.
_RESERVE_DIVISOR = 8
# Number of columns scored at once directly after a new solution.
_MIN_BATCH = 64


class Certifier(PooledState):
    """A pool of at most twice its limit of columns, filled by passes until an answer is certified.

    Parameters
    ----------
    pool
        The pool, which has a limit.
    solver
        Finds the answer among the variables of the pool.
    room
        Number of columns kept before any is discarded, if more than twice the limit.

    Attributes
    ----------
    seen
        Columns seen in all passes; 0 in the first.
    total
        Columns of the source; None in the first pass.
    solution
        The candidate solution; None before the first.
    score_upper_bound
        Upper bound of all later scores of discarded columns.
    unchanged_since, best_discarded, eviction_thresholds
        (S,) per stage: number of columns seen when it last changed; best score of a column
        discarded since; best score discarded at the last cut.
    """

    def __init__(self, pool: Pool, solver: StagedSolver, room: int = 0) -> None:
        super().__init__(pool)
        if pool.limit is None:
            raise ValueError("Expected a pool with a limit. Got: one that keeps all columns.")
        self.solver, self.limit = solver, pool.limit
        self.room = max(room, 2 * pool.limit)
        self.seen = 0
        self.total: int | None = None
        self.solution: CandidateSolution | None = None
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
    def has_discarded(self) -> bool:
        """Whether a column that may be selected was discarded."""
        return not self.pool.complete

    def bytes_for(self, p: int) -> int:
        """Return the approximate memory of this state in bytes, after p columns."""
        return self.pool.bytes_per_variable * min(p, self.room)

    # Learning

    def admit(self, chunk: Chunk, stats: Stats, first_arrival: int) -> None:
        """Learn the columns of a chunk, in order."""
        start = first_arrival if self.total is None else self.seen
        indices = np.flatnonzero(self.pool.adjusted_squares(stats) > 0.0)
        if indices.size or self.total is not None:
            self._copy_before_write()
        if self.total is not None:
            PoolFingerprint.of(self.pool.table).expect(chunk, stats, first_arrival)
        if self.solution is None and indices.size:
            indices = self._fill_pool(chunk, stats, first_arrival, indices)
        for piece in index_runs(indices, chunk.n):
            rest = piece
            while rest.size:
                # A new solution changes the pool and the columns left to score.
                new = rest[: self._batch_size]
                new = new[new < self.columns_until_certified - start]
                if not new.size:
                    break
                stop = self._score_batch(chunk, stats, first_arrival, new, start)
                rest = rest[np.searchsorted(rest, stop) :]
        if self.total is not None:
            self.seen = int(min(start + stats.m2.size, self.columns_until_certified))

    def _score_batch(
        self, chunk: Chunk, stats: Stats, first_arrival: int, indices: Indices, start: int
    ) -> int:
        """Score columns until the solution changes; return the index where that happens."""
        new = indices
        if self.total is not None:
            new = indices[~PoolFingerprint.of(self.pool.table).among(first_arrival + indices)]
        stop = int(indices[-1]) + 1
        if new.size and self.solution is not None:
            after = self._score_and_keep(self.solution, chunk, stats, first_arrival, new, start)
            if after <= new[-1]:
                stop = after
        # Columns after one that changes the solution are scored again.
        self._batch_size = 2 * self._batch_size if stop > indices[-1] else _MIN_BATCH
        return stop

    def _fill_pool(
        self, chunk: Chunk, stats: Stats, first_arrival: int, indices: Indices
    ) -> Indices:
        """Keep columns until the pool is full for the first time; return the rest."""
        room = self.room - len(self.names)
        if len(self.names) + indices.size > self.room // _RESERVE_DIVISOR:
            # At once: a table that doubles is copied, and both copies are in memory.
            self.pool.table.reserve(room)
        self._append(chunk, stats, first_arrival, indices[:room])
        if len(self.names) >= self.room:
            # Nothing was discarded before.
            self.cut_back(self.solve_again(0))
        return indices[room:]

    def _score_and_keep(
        self,
        solution: CandidateSolution,
        chunk: Chunk,
        stats: Stats,
        first_arrival: int,
        indices: Indices,
        start: int,
    ) -> int:
        """Score columns, keep or discard each; return the index where the solution changes."""
        scores = solution.scores_of(chunk, stats, indices)
        is_open = self.open_stages(solution)
        above = self.eviction_thresholds + solution.tolerance
        beats = (scores > solution.thresholds + solution.tolerance) & is_open
        if self.total is not None:
            earlier = (first_arrival + indices)[:, None] < solution.incumbent_arrivals
            beats |= earlier & (scores >= solution.thresholds - solution.tolerance) & is_open
        beats_any = np.asarray(beats.any(axis=1))
        if self.total is not None:
            arrivals = first_arrival + indices
            copied = solution.duplicated_incumbents(chunk, stats, indices, arrivals, scores)
            beats_any |= copied >= 0
        eligible = ((scores > above) & is_open).any(axis=1) | beats_any
        stop, is_due = self._columns_until_solve(eligible, beats_any)
        discarded = scores[:stop][~eligible[:stop]]
        if discarded.size:
            self.best_discarded = np.maximum(self.best_discarded, discarded.max(axis=0))
            self._record_discarded(stats, indices[:stop][~eligible[:stop]])
        kept = indices[:stop][eligible[:stop]]
        if kept.size:
            self._append(chunk, stats, first_arrival, kept)
        after = int(indices[stop - 1]) + 1
        if is_due:
            # The last column may beat a stage that was just certified with it.
            solution = self.solve_again(start + after, count_leading_true(~is_open))
            if len(self.names) >= 2 * self.limit:
                self.cut_back(solution)
        return after

    def _append(self, chunk: Chunk, stats: Stats, first_arrival: int, indices: Indices) -> None:
        if self.total is not None:
            repeated = [name for j in indices.tolist() if (name := chunk.names[j]) in self.index_of]
            if repeated:
                raise pool_changed_error(f"{repeated[0]!r} as the name of two columns")
        self._latest_solution = None
        self.pool.append(chunk, stats, first_arrival, indices)

    def _columns_until_solve(self, eligible: BoolArray, beats: BoolArray) -> tuple[int, bool]:
        """Return how many columns to take, and whether to solve again after them."""
        stop, is_due = eligible.size, False
        room = 2 * self.limit - len(self.names)
        indices = np.flatnonzero(eligible)
        if indices.size >= room:
            stop, is_due = int(indices[room - 1]) + 1, True
        # From the second pass on, a solution known to be wrong is replaced at once.
        if self.total is not None and beats[:stop].any():
            stop, is_due = int(np.argmax(beats)) + 1, True
        return stop, is_due

    def _record_discarded(self, stats: Stats, indices: Indices) -> None:
        rows = {field: array[indices] for field, array in stats._asdict().items()}
        bound = self.solver.upper_bound(self.pool, rows)
        self.set_bound(max(self.score_upper_bound, float(bound.max(initial=MINUS_FLOAT_MAX))))

    def set_bound(self, bound: float) -> None:
        """Set the upper bound of later scores of discarded columns; there is at least one."""
        self.score_upper_bound = bound
        # The columns may all be useless.
        self.pool.set_max_discarded_bound(max(bound, 0.0))

    # Candidate solutions

    def solve_again(self, seen: int, n_certified: int = 0) -> CandidateSolution:
        """Solve again with all columns in the pool; `n_certified` stages are certified."""
        # An early column may be added late in a later pass.
        arrival = self.pool.table["arrival"]
        if (np.diff(arrival) < 0.0).any():
            self.pool.keep(np.argsort(arrival))
        solution = self._solve(n_certified)
        self.unchanged_since, self.best_discarded, self.eviction_thresholds = self._stage_records(
            solution, seen
        )
        self.solution, self._solved_at, self._n_solved = solution, seen, len(self.names)
        self._latest_solution = None
        return solution

    def _solve(self, n_certified: int = 0) -> CandidateSolution:
        known = None if self.total is None else n_certified
        return self.solver.solve(self.pool, self.solution, known)

    def _stage_records(
        self, solution: CandidateSolution, seen: int
    ) -> tuple[IntArray, Floats, Floats]:
        """Return the records of the stages of a solution made after `seen` columns."""
        size, previous = len(solution.keys), self.solution
        # If no column was discarded, every stage has seen all of them.
        since = np.full(size, seen if self.has_discarded else 0, dtype=np.int64)
        best_discarded, thresholds = np.full(size, MINUS_FLOAT_MAX), np.full(size, MINUS_FLOAT_MAX)
        if previous is not None:
            for s in range(min(size, len(previous.keys))):
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
            self.total is not None or len(self.names) == self._n_solved
        ):
            return self.solution
        if self._latest_solution is None:
            self._latest_solution = self._solve()
        return self._latest_solution

    def picks(self, k: int) -> Picks:
        """Return k picks among all columns in the pool."""
        if k != self.solver.k:
            return self.solver.picks(self.pool, k)
        solution = self.latest_solution()
        picks, indices = solution.picks, self.index_of
        return picks._replace(indices=[indices[solution.names[j]] for j in picks.indices])

    def cut_back(self, solution: CandidateSolution) -> None:
        """Keep the pinned columns, then the r-th best of every open stage, r = 1, 2, ..."""
        scores = solution.scores()
        is_kept = np.zeros(len(self.names), dtype=np.bool_)
        is_kept[solution.pinned] = True
        is_kept = keep_best_per_stage(scores[:, self.open_stages(solution)], is_kept, self.limit)
        discarded = np.flatnonzero(~is_kept)
        if discarded.size:
            self.eviction_thresholds = np.maximum(scores[discarded].max(axis=0), MINUS_FLOAT_MAX)
            self.best_discarded = np.maximum(self.best_discarded, self.eviction_thresholds)
            self._record_discarded(self.stats(), discarded)
            self.pool.keep(np.flatnonzero(is_kept))
            self._n_solved = len(self.names)

    # Certificates

    def _certified_by(self, solution: CandidateSolution) -> BoolArray:
        """Return which stages of a solution are certified, (S,)."""
        since, best_discarded = self.unchanged_since, self.best_discarded
        if solution is not self.solution:
            since, best_discarded, _ = self._stage_records(solution, 1)
        in_full = since == 0 if self.total is None else self.seen - since >= self.total
        certified = self._certified_if(solution, in_full, best_discarded)
        return np.logical_and.accumulate(certified) if solution.ordered else certified

    def _certified_if(
        self, solution: CandidateSolution, full: BoolArray, best_discarded: Floats
    ) -> BoolArray:
        """Return which stages are certified, (S,), if those in `full` have seen all columns."""
        bounding = solution.bounding_stages(full)
        bound = np.maximum(
            best_discarded,
            np.where(bounding >= 0, best_discarded[bounding], self.score_upper_bound),
        )
        certified: BoolArray = full | (solution.thresholds - solution.tolerance > bound)
        return certified

    def open_stages(self, solution: CandidateSolution) -> BoolArray:
        """Return which stages are not yet certified, (S,); all of them in the first pass."""
        if self.total is None:
            return np.ones(len(solution.keys), dtype=np.bool_)
        return ~self._certified_by(solution)

    @property
    def columns_until_certified(self) -> float:
        """Return the number of columns that must be seen to certify the whole answer."""
        if self.total is None or self.solution is None:
            return np.inf
        solution, ends = self.solution, self.unchanged_since + self.total
        times = np.unique(np.append(ends[ends > self._solved_at], self._solved_at))

        def is_open_at(time: np.int64) -> bool:
            return not self._certified_if(solution, ends <= time, self.best_discarded).all()

        # The set of certified stages only grows with the number of columns.
        first = bisect_left(times, True, key=lambda time: not is_open_at(time))
        return float(times[first])

    def count_certified(self, scores: Sequence[float], rounds: Sequence[int]) -> int:  # noqa: ARG002
        """Return how many leading picks no discarded column can have changed."""
        if not self.has_discarded:
            return len(scores)
        solution = self.latest_solution()
        n_stages = count_leading_true(self._certified_by(solution))
        return min(len(scores), solution.count_picks(n_stages))

    def begin_pass(self, total: int) -> None:
        """Start the next pass over the same columns."""
        self._copy_before_write()
        if self.total is None:
            self.solve_again(total)
            self.total = self.seen = total

    def set_total(self, total: int) -> None:
        """Set the number of columns, which may be unknown before a pass ends.

        Certified stages stay certified, the others start over.
        """
        if self.total is not None and self.total != total:
            self._copy_before_write()
            full = self.seen - self.unchanged_since >= self.total
            self.unchanged_since = np.where(full, 0, total)
            self.seen = self.total = total

    def record_pass(self, best_discarded: Floats, bound: float) -> None:
        """Record a pass in which all discarded columns were scored under all stages."""
        self._copy_before_write()
        self.seen += self.total or 0
        self.best_discarded = np.maximum(best_discarded, MINUS_FLOAT_MAX)
        self.set_bound(max(bound, MINUS_FLOAT_MAX))

    @property
    def is_certified(self) -> bool:
        """Whether the whole answer is certified."""
        if not self.has_discarded:
            return True
        return self.solution is not None and bool(self._certified_by(self.solution).all())

    @property
    def irrelevant_below(self) -> float:
        """The relevance below which a column is discarded: -FLOAT_MAX, as it does not decide."""
        return MINUS_FLOAT_MAX

    # Merge, and files

    def merge(self, other: Self, arrived: int) -> None:
        """Add all variables of another state, which arrived after `arrived` columns."""
        self._copy_before_write()
        if not len(other.names):
            return
        if not len(self.names):
            state = other.to_state()
            arrival = state["table"]["arrival"] + arrived
            self.set_state(state | {"table": state["table"] | {"arrival": arrival}})
            self.unchanged_since = np.where(
                self.unchanged_since > 0, self.unchanged_since + arrived, 0
            )
            return
        parts = [
            part._stage_records_by_key(offset)
            for part, offset in ((self, 0), (other, arrived))
            if part.has_discarded
        ]
        self.pool.append_all(other.pool.table, arrived)
        self.seen, self.total = 0, None
        if other.has_discarded:
            self.set_bound(max(self.score_upper_bound, other.score_upper_bound))
        self.solution = self._latest_solution = None
        if not self.has_discarded and len(self.names) < self.room:
            return
        solution = self.solve_again(0)
        # A stage keeps its record if each part that discarded columns has one for it.
        size = len(solution.keys)
        self.unchanged_since = np.full(size, arrived + 1, dtype=np.int64)
        for s, key in enumerate(solution.keys):
            shared = [part[key] for part in parts if key in part]
            if not parts:
                self.unchanged_since[s] = 0
            elif len(shared) == len(parts):
                self.unchanged_since[s], self.best_discarded[s], self.eviction_thresholds[s] = map(
                    max, zip(*shared, strict=True)
                )
        if len(self.names) >= 2 * self.limit:
            self.cut_back(solution)

    def _stage_records_by_key(self, after: int) -> dict[Hashable, tuple[int, float, float]]:
        """Return the record of each stage by key, with arrivals shifted by `after`.

        That is `unchanged_since`, `best_discarded` and `eviction_thresholds`. The first is 0 for a
        stage that has seen all columns.
        """
        solution = self.latest_solution()
        since, best_discarded, thresholds = self._stage_records(solution, 1)
        if self.total is not None:
            since = np.where(self.seen - since >= self.total, 0, 1)
        since = np.where(since > 0, since + after, 0)
        records = zip(since.tolist(), best_discarded.tolist(), thresholds.tolist(), strict=True)
        return dict(zip(solution.keys, records, strict=True))

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        return {
            "table": self.pool.table.to_state(),
            "seen": self.seen,
            "total": self.total,
            "has_discarded": self.has_discarded,
            "score_upper_bound": self.score_upper_bound,
            "unchanged_since": self.unchanged_since,
            "best_discarded": self.best_discarded,
            "eviction_thresholds": self.eviction_thresholds,
            "n_solved": self._n_solved,
            "solved_at": self._solved_at,
            "solution": None if self.solution is None else self.solution.to_state(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""
        expect(
            state,
            seen=CountKind(),
            total=OptionalKind(CountKind()),
            has_discarded=BoolKind(),
            score_upper_bound=FloatKind(),
        )
        expect(state, n_solved=CountKind(), solved_at=CountKind())
        n, table, pool = state["n_solved"], state["table"], self.pool
        if n > length_in(table, "names"):
            raise ValueError(f"Expected at most {len(table['names'])} solved variables. Got: {n}.")
        whole = pool.table.restored(table)
        pool.replace_table(whole.part(0, n))
        self.seen, self.total = state["seen"], state["total"]
        self.score_upper_bound = state["score_upper_bound"]
        if state["has_discarded"]:
            self.set_bound(self.score_upper_bound)
        self._n_solved, self._solved_at = n, state["solved_at"]
        self.solution = self._latest_solution = None
        if state["solution"] is not None:
            self.solution = self.solver.restore(pool, state["solution"])
        pool.append_all(whole.part(n, len(whole)), 0)
        # A pool that has discarded nothing yet has more room.
        pool.expect_fewer_than(2 * self.limit if self.has_discarded else self.room)
        size = 0 if self.solution is None else len(self.solution.keys)
        expect_shapes(state, best_discarded=(size,), eviction_thresholds=(size,))
        expect(state, unchanged_since=ArrayKind((size,), np.int64, minimum=0))
        self.unchanged_since, self.best_discarded, self.eviction_thresholds = (
            state["unchanged_since"],
            state["best_discarded"],
            state["eviction_thresholds"],
        )
