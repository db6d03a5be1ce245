"""Bounded pools of columns, certified from the first pass on, or from the second."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Self

import numpy as np

from streamsel.data.columns import Chunk, Stats
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
from streamsel.state.base import Floats, Indices, VariableTable
from streamsel.state.pool.candidate_solution import MINUS_FLOAT_MAX, BoolArray, CandidateSolution
from streamsel.state.pool.partitioned import PartitionedPool
from streamsel.state.pool.pool import Picks, Pool, SamplePool


class CertifiedPool(PartitionedPool, SamplePool):
    """A pool of at most twice `limit` columns with their observations, for a staged solution."""

    @property
    def complete(self) -> bool:
        """Whether no variable was ever discarded."""
        return not self.has_discarded

    @property
    def irrelevant_below(self) -> float:
        """The relevance below which a column is discarded: none, as it does not decide."""
        return MINUS_FLOAT_MAX

    # Merge, and files

    def merge(self, other: Self, arrived: int) -> None:
        """Add all variables of another pool, which arrived after `arrived` columns."""
        self._copy_before_write()
        if not len(other.table):
            return
        if not len(self.table):
            state = other.to_state()
            arrival = state["table"]["arrival"] + arrived
            self.set_state(state | {"table": state["table"] | {"arrival": arrival}})
            self.unchanged_since = np.where(
                self.unchanged_since > 0, self.unchanged_since + arrived, 0
            )
            return
        offsets = [(self, 0), (other, arrived)]
        parts = [
            part._stage_records_by_key(offset) for part, offset in offsets if part.has_discarded
        ]
        rows = {field: other.table[field] for field in other.table.fields}
        rows["arrival"] = rows["arrival"] + arrived
        self.table.append(other.table.index_of, **rows)
        self._sort_by_arrival()
        self.seen, self.total = 0, None
        self.has_discarded |= other.has_discarded
        self.score_upper_bound = max(self.score_upper_bound, other.score_upper_bound)
        self.solution = self._latest_solution = None
        if not self.has_discarded and len(self.table) < self.room:
            return
        self.solution = plan = self.method._candidate_solution(self, None, 0)
        # A stage continues if both parts knew it; a part that discarded nothing has all.
        size = len(plan.keys)
        self.unchanged_since = np.full(size, arrived + 1, dtype=np.int64)
        self.best_discarded, self.eviction_thresholds = (
            np.full(size, MINUS_FLOAT_MAX),
            np.full(size, MINUS_FLOAT_MAX),
        )
        for s, key in enumerate(plan.keys):
            shared = [part[key] for part in parts if key in part]
            if not parts:
                self.unchanged_since[s] = 0
            elif len(shared) == len(parts):
                self.unchanged_since[s], self.best_discarded[s], self.eviction_thresholds[s] = map(
                    max, zip(*shared, strict=True)
                )
        self._solved_at, self._n_solved = 0, len(self.table)
        if len(self.table) >= 2 * self.limit:
            self._cut()

    def _stage_records_by_key(self, after: int) -> dict[Hashable, tuple[int, float, float]]:
        """Return the record of each stage by key, with arrivals shifted by `after`.

        That is `unchanged_since`, `best_discarded` and `eviction_thresholds`. The first is 0 for a
        stage that has seen all columns.
        """
        plan = self.latest_solution()
        since, lost, floors = self._stage_records(plan, 1)
        if self.total is not None:
            since = np.where(self.seen - since >= self.total, 0, 1)
        since = np.where(since > 0, since + after, 0)
        known = zip(since.tolist(), lost.tolist(), floors.tolist(), strict=True)
        return dict(zip(plan.keys, known, strict=True))

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        return {
            "table": self.table.to_state(),
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
        n, table = state["n_solved"], state["table"]
        if n > length_in(table, "names"):
            raise ValueError(f"Expected at most {len(table['names'])} solved variables. Got: {n}.")
        fields = self.table.fields
        known = {field: table[field][:n] for field in ("names", *fields)}
        self.table = VariableTable.from_state(known, fields)
        self.seen, self.total = state["seen"], state["total"]
        self.has_discarded, self.score_upper_bound = (
            state["has_discarded"],
            state["score_upper_bound"],
        )
        self._n_solved, self._solved_at = n, state["solved_at"]
        self.solution = self._latest_solution = None
        if state["solution"] is not None:
            self.solution = self.method._solution_from_state(self, state["solution"])
        rest = {field: table[field][n:] for field in ("names", *fields)}
        others = VariableTable.from_state(rest, fields)
        self.table.append(others.names, **{field: others[field] for field in fields})
        # A pool that has discarded nothing yet has more room.
        self._expect_fewer_than(2 * self.limit if self.has_discarded else self.room)
        size = 0 if self.solution is None else len(self.solution.keys)
        expect_shapes(state, best_discarded=(size,), eviction_thresholds=(size,))
        expect(state, unchanged_since=ArrayKind((size,), np.int64, minimum=0))
        self.unchanged_since, self.best_discarded, self.eviction_thresholds = (
            state["unchanged_since"],
            state["best_discarded"],
            state["eviction_thresholds"],
        )


class TwoPhasePool(PartitionedPool):
    """A pool filled as by `Pool` in the first pass, and by a staged solution afterwards."""

    def admit(
        self,
        chunk: Chunk,
        stats: Stats,
        first_arrival: int,
        indices: Indices | None = None,
        noted: Mapping[str, Floats] = {},
    ) -> None:
        """Learn the columns of a chunk, in order, as `Pool` does."""
        if self.total is None:
            Pool.admit(self, chunk, stats, first_arrival, indices, noted)
        else:
            super().admit(chunk, stats, first_arrival, indices, noted)

    def _record_discarded(self, stats: Stats, indices: Indices) -> None:
        super()._record_discarded(stats, indices)
        self.max_discarded_bound = self.score_upper_bound

    def _set_score_bound(self, bound: float) -> None:
        super()._set_score_bound(bound)
        # Columns were discarded, possibly only useless ones.
        self.max_discarded_bound = max(bound, 0.0)

    def count_certified(self, picks: Picks) -> int:
        """Return how many leading picks no discarded column can have changed."""
        if self.total is None:
            return Pool.count_certified(self, picks)
        return super().count_certified(picks)

    def begin_pass(self, total: int) -> None:
        """Start the next pass over the same columns."""
        self._copy_before_write()
        if self.total is None:
            # The pool's cache of its last cut is not a staged solution.
            self.has_discarded, self.score_upper_bound, self.solution = (
                not self.complete,
                self.max_discarded_bound,
                None,
            )
        super().begin_pass(total)

    def merge(self, other: Self, arrived: int) -> None:
        """Add all variables of another pool, which arrived after `arrived` columns."""
        self._copy_before_write()
        # A proof over the columns of one does not hold over those of both.
        self.seen, self.total, self.solution = 0, None, None
        Pool.merge(self, other, arrived)

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        return Pool.to_state(self) | {"stages": self._stages_to_state()}

    def _stages_to_state(self) -> dict[str, Any] | None:
        if self.total is None or self.solution is None:
            return None
        # Which stages have seen all columns; the rest of the proof follows from it.
        full = self.seen - self.unchanged_since >= self.total
        return {
            "solution": self.solution.to_state(),
            "complete_stages": full,
            "best_discarded": self.best_discarded,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""
        Pool.set_state(self, state)
        stages = state.get("stages")
        if stages is not None:
            plan = self.method._solution_from_state(self, stages.get("solution"))
            size = len(plan.keys)
            expect(
                stages,
                complete_stages=ArrayKind((size,), np.bool_),
                best_discarded=ArrayKind((size,)),
            )
            self._restore_solution(plan, stages["complete_stages"], stages["best_discarded"])

    def _restore_solution(self, plan: CandidateSolution, full: BoolArray, lost: Floats) -> None:
        """Adopt a candidate solution; the stages in `full` have seen all columns."""
        self.has_discarded, self.score_upper_bound = not self.complete, self.max_discarded_bound
        self.solution, self._n_solved = plan, len(self.table)
        self.total = self.seen = 1
        self.unchanged_since = np.where(full, 0, 1)
        self.best_discarded, self.eviction_thresholds = lost, lost


class TwoPhaseSamplePool(TwoPhasePool, SamplePool):
    """A `TwoPhasePool` that also keeps the observations of its variables."""
