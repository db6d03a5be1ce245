"""A bounded pool that the method fills in the first pass, and that certifies in later passes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from streamsel.columns import Chunk, Stats
from streamsel.held.in_parts import InParts
from streamsel.held.part import Floats, Places
from streamsel.held.plan import LEAST, Bools, Plan
from streamsel.held.pool import Picks, Pool, SamplePool
from streamsel.shapes import Array, expect


class SievedPool(InParts):
    """A pool filled as by `Pool` in the first pass, and by a staged solution afterwards."""

    def admit(
        self,
        chunk: Chunk,
        stats: Stats,
        first_arrival: int,
        places: Places | None = None,
        noted: Mapping[str, Floats] = {},
    ) -> None:
        """Learn the columns of a chunk, in order, as `Pool` does."""
        if self.total is None:
            Pool.admit(self, chunk, stats, first_arrival, places, noted)
        else:
            super().admit(chunk, stats, first_arrival, places, noted)

    def _lose(self, stats: Stats, places: Places) -> None:
        super()._lose(stats, places)
        self.discarded = self.ceiling

    def _let_go_below(self, ceiling: float) -> None:
        super()._let_go_below(ceiling)
        # Columns were discarded, possibly only useless ones.
        self.discarded = max(ceiling, 0.0)

    def certified(self, picks: Picks) -> int:
        """Return how many leading picks no discarded column can have changed."""
        if self.total is None:
            return Pool.certified(self, picks)
        return super().certified(picks)

    def begin_again(self, total: int) -> None:
        """Start the next pass over the same columns."""
        self._changes()
        if self.total is None:
            # The pool's cache of its last cut is not a staged solution.
            self.let_go, self.ceiling, self.plan = not self.complete, self.discarded, None
        super().begin_again(total)

    def merge(self, other: Self, arrived: int) -> None:
        """Add all variables of another pool, which arrived after `arrived` columns."""
        self._changes()
        # A proof over the columns of one does not hold over those of both.
        self.seen, self.total, self.plan = 0, None, None
        Pool.merge(self, other, arrived)

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        return Pool.to_state(self) | {"stages": self._stages_to_state()}

    def _stages_to_state(self) -> dict[str, Any] | None:
        if self.total is None or self.plan is None:
            return None
        # Which stages have seen all columns; the rest of the proof follows from it.
        full = self.seen - self.since >= self.total
        return {"plan": self.plan.to_state(), "full": full, "lost": self.lost}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""
        Pool.set_state(self, state)
        if "known" in state:
            self._restore_proven_picks(state)
        stages = state.get("stages")
        if stages is not None:
            plan = self.method._restored_plan(self, stages.get("plan"))
            size = len(plan.keys)
            expect(stages, full=Array((size,), np.bool_), lost=Array((size,)))
            self._restore_solution(plan, stages["full"], stages["lost"])

    def _restore_proven_picks(self, state: dict[str, Any]) -> None:
        """Restore proven picks from a file of version 0.4 or before, if all picks are proven."""
        proven = {state["table"]["names"][j] for j in state["known"][0]}
        self.table.keep(np.argsort(self.table["arrival"], kind="stable"))
        plan = self.method._plan(self, None, 0)
        if proven and proven == {self.names[j] for j in plan.picks.places}:
            size = len(plan.keys)
            self._restore_solution(plan, np.ones(size, dtype=np.bool_), np.full(size, LEAST))

    def _restore_solution(self, plan: Plan, full: Bools, lost: Floats) -> None:
        """Adopt a candidate solution; the stages in `full` have seen all columns."""
        self.let_go, self.ceiling = not self.complete, self.discarded
        self.plan, self._n_known = plan, len(self.table)
        self.total = self.seen = 1
        self.since = np.where(full, 0, 1)
        self.lost, self.floors = lost, lost


class SievedSamples(SievedPool, SamplePool):
    """A `SievedPool` that also keeps the observations of its variables."""
