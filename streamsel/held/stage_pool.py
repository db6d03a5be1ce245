"""A bounded pool of columns with their observations, certified from the first pass on."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Self

import numpy as np

from streamsel.held.in_parts import InParts
from streamsel.held.plan import LEAST
from streamsel.held.pool import SamplePool
from streamsel.held.table import Table
from streamsel.shapes import Array, Count, Flag, Maybe, Number, expect, expect_shapes, rows_of


class StagePool(InParts, SamplePool):
    """A pool of at most twice `limit` columns with their observations, for a staged solution."""

    @property
    def complete(self) -> bool:
        """Whether no variable was ever discarded."""
        return not self.let_go

    @property
    def indifferent_below(self) -> float:
        """The relevance below which a column is discarded: none, as it does not decide."""
        return LEAST

    # Merge, and files

    def merge(self, other: Self, arrived: int) -> None:
        """Add all variables of another pool, which arrived after `arrived` columns."""
        self._changes()
        if not len(other.table):
            return
        if not len(self.table):
            state = other.to_state()
            arrival = state["table"]["arrival"] + arrived
            self.set_state(state | {"table": state["table"] | {"arrival": arrival}})
            self.since = np.where(self.since > 0, self.since + arrived, 0)
            return
        offsets = [(self, 0), (other, arrived)]
        parts = [part._known(offset) for part, offset in offsets if part.let_go]
        rows = {field: other.table[field] for field in other.table.fields}
        rows["arrival"] = rows["arrival"] + arrived
        self.table.append(other.table.slots, **rows)
        self._put_in_order()
        self.seen, self.total = 0, None
        self.let_go |= other.let_go
        self.ceiling = max(self.ceiling, other.ceiling)
        self.plan = self._latest = None
        if not self.let_go and len(self.table) < self.room:
            return
        self.plan = plan = self.method._plan(self, None, 0)
        # A stage continues if both parts knew it; a part that discarded nothing knows all.
        size = len(plan.keys)
        self.since = np.full(size, arrived + 1, dtype=np.int64)
        self.lost, self.floors = np.full(size, LEAST), np.full(size, LEAST)
        for s, key in enumerate(plan.keys):
            shared = [part[key] for part in parts if key in part]
            if not parts:
                self.since[s] = 0
            elif len(shared) == len(parts):
                self.since[s], self.lost[s], self.floors[s] = map(max, zip(*shared, strict=True))
        self._planned_at, self._n_known = 0, len(self.table)
        if len(self.table) >= 2 * self.limit:
            self._cut()

    def _known(self, after: int) -> dict[Hashable, tuple[int, float, float]]:
        """Return since, lost and floor of each stage by key, with arrivals shifted by `after`.

        Since is 0 for a stage that has seen all columns.
        """
        plan = self.latest()
        since, lost, floors = self._as_planned(plan, 1)
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
            "let_go": self.let_go,
            "ceiling": self.ceiling,
            "since": self.since,
            "lost": self.lost,
            "floors": self.floors,
            "n_known": self._n_known,
            "planned_at": self._planned_at,
            "plan": None if self.plan is None else self.plan.to_state(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""
        expect(state, seen=Count(), total=Maybe(Count()), let_go=Flag(), ceiling=Number())
        expect(state, n_known=Count(), planned_at=Count())
        n, table = state["n_known"], state["table"]
        if n > rows_of(table, "names"):
            raise ValueError(f"Expected at most {len(table['names'])} solved variables. Got: {n}.")
        fields = self.table.fields
        known = {field: table[field][:n] for field in ("names", *fields)}
        self.table = Table.from_state(known, fields)
        self.seen, self.total = state["seen"], state["total"]
        self.let_go, self.ceiling = state["let_go"], state["ceiling"]
        self._n_known, self._planned_at = n, state["planned_at"]
        self.plan = self._latest = None
        if state["plan"] is not None:
            self.plan = self.method._restored_plan(self, state["plan"])
        rest = {field: table[field][n:] for field in ("names", *fields)}
        others = Table.from_state(rest, fields)
        self.table.append(others.names, **{field: others[field] for field in fields})
        # A pool that has discarded nothing yet has more room.
        self._expect_fewer_than(2 * self.limit if self.let_go else self.room)
        size = 0 if self.plan is None else len(self.plan.keys)
        expect_shapes(state, lost=(size,), floors=(size,))
        expect(state, since=Array((size,), np.int64, least=0))
        self.since, self.lost, self.floors = state["since"], state["lost"], state["floors"]
