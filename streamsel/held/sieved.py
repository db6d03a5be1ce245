"""A bounded pool that its method fills in the first reading, and that then reads in a circle."""

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
    """Moments of the best columns, as `Pool` finds them; from the second reading on with stages."""

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
        # Columns were let go, be it of ones that are good for nothing.
        self.discarded = max(ceiling, 0.0)

    def certified(self, picks: Picks) -> int:
        """Return how many leading picks no column that was let go can have changed."""
        if self.total is None:
            return Pool.certified(self, picks)
        return super().certified(picks)

    def begin_again(self, total: int) -> None:
        """Go on with the next reading of the same columns."""
        self._changes()
        if self.total is None:
            # What the pool noted of its last cut is no plan of stages.
            self.let_go, self.ceiling, self.plan = not self.complete, self.discarded, None
        super().begin_again(total)

    def merge(self, other: Self, arrived: int) -> None:
        """Take in all candidates of another pool, as arrived after so many columns."""
        self._changes()
        # What was proven over the columns of one is not over those of both.
        self.seen, self.total, self.plan = 0, None, None
        Pool.merge(self, other, arrived)

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs: arrays, and values that JSON can hold."""
        return Pool.to_state(self) | {"stages": self._stages_to_state()}

    def _stages_to_state(self) -> dict[str, Any] | None:
        if self.total is None or self.plan is None:
            return None
        # Under which stages all columns were seen; what else is proven follows from it.
        full = self.seen - self.since >= self.total
        return {"plan": self.plan.to_state(), "full": full, "lost": self.lost}

    def set_state(self, state: dict[str, Any]) -> None:
        """Take up what `to_state` returned, into a fresh part made of the same parameters."""
        Pool.set_state(self, state)
        if "known" in state:
            self._set_known(state)
        stages = state.get("stages")
        if stages is not None:
            plan = self.method._restored_plan(self, stages.get("plan"))
            size = len(plan.keys)
            expect(stages, full=Array((size,), np.bool_), lost=Array((size,)))
            self._stand_by(plan, stages["full"], stages["lost"])

    def _set_known(self, state: dict[str, Any]) -> None:
        """Take up which picks a file of version 0.4 or before says are proven, if all are."""
        known = {state["table"]["names"][place] for place in state["known"][0]}
        self.table.keep(np.argsort(self.table["arrival"], kind="stable"))
        plan = self.method._plan(self, None, 0)
        if known and known == {self.names[j] for j in plan.picks.places}:
            size = len(plan.keys)
            self._stand_by(plan, np.ones(size, dtype=np.bool_), np.full(size, LEAST))

    def _stand_by(self, plan: Plan, full: Bools, lost: Floats) -> None:
        """Go on with a plan under some stages of which all columns were seen; no more is read."""
        self.let_go, self.ceiling = not self.complete, self.discarded
        self.plan, self._n_known = plan, len(self.table)
        self.total = self.seen = 1
        self.since = np.where(full, 0, 1)
        self.lost, self.floors = lost, lost


class SievedSamples(SievedPool, SamplePool):
    """A `SievedPool` that keeps the observations of its variables too."""
