"""Variables that are accepted or refused on arrival, and the memory of the accepting method."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, Self, cast

import numpy as np

from streamsel.data.columns import Chunk, Stats
from streamsel.serialization.schema import FloatKind, expect
from streamsel.state.base import Floats, Indices, VariableTable
from streamsel.state.pool.pool import Picks, Pool, SamplePool
from streamsel.targets.space import TargetSpace


class ColumnBatch(NamedTuple):
    """Columns of a chunk to be decided on, in order.

    Parameters
    ----------
    chunk, stats
        The columns, and the moments of all of them or of the first ones.
    first_arrival
        Number of columns of the stream before the chunk.
    indices
        Indices of the columns that vary after adjustment for covariates, ascending; constant
        columns are never offered.
    """

    chunk: Chunk
    stats: Stats
    first_arrival: int
    indices: Indices

    @property
    def moments(self) -> tuple[Floats, Floats]:
        """Sums of squares (b,), and products with the target (b, c), of the offered columns."""
        return self.stats.m2[self.indices], self.stats.cxy[self.indices]


class AcceptPolicy(Protocol):
    """Protocol of a method that decides on arrival."""

    def _accept(self, held: Any, offer: ColumnBatch) -> None:
        """Accept some of the offered columns, in order, and update the memory."""

    def _refusal_cutoff(self, held: Any) -> float:
        """Return the relevance below which a column is refused and leaves the memory unchanged."""


class AcceptedColumns(Pool):
    """Variables that a method has accepted on arrival.

    Refused columns are discarded, and accepted ones are final: a decision depends on the earlier
    columns only. Two models of different columns cannot be merged, because each has decided without
    the columns of the other.

    Parameters
    ----------
    space, n
        As in `Pool`.
    limit
        Maximum number of variables; None for no limit. At the limit no more decisions are made.
    noted
        As in `Pool`.
    remembered
        Memory of the method before the first column.

    Attributes
    ----------
    memory
        Memory of the method: name -> number. `remember` updates it.
    solution
        Result that the method derived from the variables and can derive again: dropped whenever
        these change, and not part of a copy or a file.
    """

    why_not_mergeable = "a decision on arrival depends on all earlier columns"

    def __init__(
        self,
        space: TargetSpace | None,
        n: int,
        limit: int | None,
        noted: tuple[str, ...] = (),
        remembered: Mapping[str, float] = {},
    ) -> None:
        super().__init__(space, n, limit, noted)
        self.memory: dict[str, float] = dict(remembered)

    @property
    def complete(self) -> bool:
        """False: refused columns are not recorded."""
        return False

    @property
    def is_full(self) -> bool:
        """Whether the limit is reached."""
        return self.limit is not None and len(self.table) >= self.limit

    @property
    def irrelevant_below(self) -> float:
        """The relevance below which a column changes nothing: inf once the limit is reached."""
        return math.inf if self.is_full else cast("AcceptPolicy", self.method)._refusal_cutoff(self)

    # Learning

    def admit(
        self,
        chunk: Chunk,
        stats: Stats,
        first_arrival: int,
        indices: Indices | None = None,
        noted: Mapping[str, Floats] = {},
    ) -> None:
        """Let the method decide on the columns of a chunk, in order."""
        del indices, noted
        if self.is_full:
            return
        varies = (
            stats.m2 if self._space is None else self._space.adjusted_squares(stats.m2, stats.cxy)
        )
        offered = np.flatnonzero(varies)
        if offered.size:
            decider = cast("AcceptPolicy", self.method)
            decider._accept(self, ColumnBatch(chunk, stats, first_arrival, offered))

    def accept(self, offer: ColumnBatch, index: int, **noted: float) -> None:
        """Add a column of a chunk, with a number for each further field."""
        self._copy_before_write()
        self.solution = None
        rows = {field: np.array([value]) for field, value in noted.items()}
        indices = np.array([index], dtype=np.intp)
        rows |= self.rows_of(offer.chunk, offer.stats, indices)
        arrival = np.array([offer.first_arrival + index])
        self.table.append([offer.chunk.names[index]], arrival=arrival, **rows)

    def drop(self, indices: Indices) -> None:
        """Discard accepted variables permanently."""
        self._copy_before_write()
        self.solution = None
        is_kept = np.ones(len(self.table), dtype=np.bool_)
        is_kept[indices] = False
        self.table.keep(np.flatnonzero(is_kept))

    def remember(self, **numbers: float) -> None:
        """Store these numbers in the memory."""
        self._copy_before_write()
        self.memory |= {name: float(value) for name, value in numbers.items()}

    def count_certified(self, picks: Picks) -> int:
        """Return the number of picks: all are final."""
        return len(picks.indices)

    def merge(self, other: Self, arrived: int) -> None:
        """Copy the decisions of another model; raise ValueError if columns were learnt here."""
        if arrived:
            raise ValueError(
                "Expected a model that has learnt no columns yet to merge into. Got: one that "
                f"has decided on {arrived} columns.\n"
                f"Hint: {self.why_not_mergeable}; learn one stream after the other with one model."
            )
        self._copy_before_write()
        self.table, self.memory, self.solution = other.table.copy(), dict(other.memory), None

    # Undo, copies, files

    def _copied(self) -> dict[str, Any]:
        return super()._copied() | {"memory": dict(self.memory)}

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        return {"table": self.table.to_state(), "memory": dict(self.memory)}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""
        memory = state["memory"]
        expect(memory, **dict.fromkeys(self.memory, FloatKind()))
        if memory.keys() != self.memory.keys() or {*map(type, memory.values())} - {float}:
            raise ValueError(
                f"Expected memory of the numbers {list(self.memory)}. Got: {memory!r}."
            )
        self.table = VariableTable.from_state(state["table"], self.table.fields)
        self.memory = dict(memory)


class AcceptedSamples(AcceptedColumns, SamplePool):
    """Accepted variables with their observations, `unit`: centred, adjusted, and of length 1."""

    def units(self, offer: ColumnBatch, indices: Indices) -> Floats:
        """Return columns of a chunk in the form of `unit`, one per row."""
        return self.unit_rows_of(offer.chunk, offer.stats, indices)
