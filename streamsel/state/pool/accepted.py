"""Variables that are accepted or rejected on arrival, and the memory of the accepting policy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from streamsel.data.chunks import Chunk, Stats
from streamsel.serialization.schema import FloatKind, expect
from streamsel.state.base import Floats, Indices, VariableTable
from streamsel.state.pool.pool import Pool
from streamsel.state.pool.pooled_state import PooledState
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
        columns are not in a batch.
    space
        The target space.
    """

    chunk: Chunk
    stats: Stats
    first_arrival: int
    indices: Indices
    space: TargetSpace

    @property
    def moments(self) -> tuple[Floats, Floats]:
        """Sums of squares (b,), and products with the target (b, c), of the columns."""
        return self.stats.m2[self.indices], self.stats.cxy[self.indices]

    @property
    def relevance(self) -> Floats:
        """Relevances of the columns, (b,)."""
        return self.space.relevance(*self.moments)


class AcceptPolicy(Protocol):
    """Protocol of an object that decides on columns as they arrive."""

    def accept(self, state: AcceptedColumns, batch: ColumnBatch) -> None:
        """Accept some of the columns, in order, and update the memory.

        `state.accept`, `drop` and `remember` are the only ways to change the state. A stream may
        have millions of irrelevant columns, so rejected columns should be handled in bulk, not
        one by one in Python.
        """

    def rejection_threshold(self, space: TargetSpace) -> float:
        """Return the relevance below which a column is rejected without any other effect.

        -inf if there is none. Single columns below it are skipped by the fast path of
        `learn_column`.
        """


class AcceptedColumns(PooledState):
    """Variables that a policy has accepted on arrival.

    Rejected columns are discarded, and accepted ones are final: a decision depends on the earlier
    columns only. Two models of different columns cannot be merged, because each has decided without
    the columns of the other.

    Parameters
    ----------
    pool
        The accepted variables. Its limit is the maximum number of these, None for no limit; at the
        limit no more decisions are made.
    policy
        Decides on the columns.
    memory
        Memory of the policy before the first column: name -> number.

    Attributes
    ----------
    memory
        Memory of the policy. `remember` updates it.
    derived
        Result that the policy derived from the variables and can derive again: dropped whenever
        these change, and not part of a copy or a file.
    """

    unmergeable_reason = "a decision on arrival depends on all earlier columns"

    def __init__(self, pool: Pool, policy: AcceptPolicy, memory: Mapping[str, float] = {}) -> None:
        super().__init__(pool)
        self.policy = policy
        self.memory: dict[str, float] = dict(memory)
        self.derived: Any = None

    @property
    def complete(self) -> bool:
        """False: rejected columns are not recorded."""
        return False

    @property
    def is_full(self) -> bool:
        """Whether the limit is reached."""
        return self.pool.limit is not None and len(self.names) >= self.pool.limit

    @property
    def irrelevant_below(self) -> float:
        """The relevance below which a column changes nothing: inf once the limit is reached."""
        if self.is_full:
            return math.inf
        space = self.space
        return -math.inf if space is None else self.policy.rejection_threshold(space)

    @property
    def exact_from(self) -> float:
        """The relevance from which moments must be exact; inf if every column is tested."""
        threshold = self.irrelevant_below
        return threshold if threshold > -math.inf else super().exact_from

    # Learning

    def admit(self, chunk: Chunk, stats: Stats, first_arrival: int) -> None:
        """Let the policy decide on the columns of a chunk, in order."""
        space = self.space
        if self.is_full or space is None:
            return
        indices = np.flatnonzero(self.pool.adjusted_squares(stats))
        if indices.size:
            self.policy.accept(self, ColumnBatch(chunk, stats, first_arrival, indices, space))

    def accept(self, batch: ColumnBatch, index: int, **extra: float) -> None:
        """Add a column of a chunk, with a number for each further field."""
        self._copy_before_write()
        self.derived = None
        fields = {field: np.array([value]) for field, value in extra.items()}
        indices = np.array([index], dtype=np.intp)
        self.pool.append(batch.chunk, batch.stats, batch.first_arrival, indices, fields)

    def drop(self, indices: Indices) -> None:
        """Discard accepted variables permanently."""
        self._copy_before_write()
        self.derived = None
        is_kept = np.ones(len(self.names), dtype=np.bool_)
        is_kept[indices] = False
        self.pool.keep(np.flatnonzero(is_kept))

    def remember(self, **numbers: float) -> None:
        """Store these numbers in the memory."""
        self._copy_before_write()
        self.memory = self.memory | {name: float(value) for name, value in numbers.items()}

    def units(self, batch: ColumnBatch, indices: Indices) -> Floats:
        """Return columns of a chunk as `samples` returns variables, one per row."""
        return self.pool.unit_rows_of(batch.chunk, batch.stats, indices)

    def count_certified(self, scores: Sequence[float], rounds: Sequence[int]) -> int:  # noqa: ARG002
        """Return the number of picks: all are final."""
        return len(scores)

    def merge(self, other: Self, arrived: int) -> None:
        """Copy the decisions of another model; raise ValueError if columns were learnt here."""
        if arrived:
            raise ValueError(
                "Expected a model that has learnt no columns yet to merge into. Got: one that "
                f"has decided on {arrived} columns.\n"
                f"Hint: {self.unmergeable_reason}; learn one stream after the other with one model."
            )
        self._copy_before_write()
        self.pool.replace_table(other.pool.table.copy())
        self.memory, self.derived = dict(other.memory), None

    # Files

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        return {"table": self.pool.table.to_state(), "memory": dict(self.memory)}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""
        memory = state["memory"]
        expect(memory, **dict.fromkeys(self.memory, FloatKind()))
        if memory.keys() != self.memory.keys() or {*map(type, memory.values())} - {float}:
            raise ValueError(
                f"Expected memory of the numbers {list(self.memory)}. Got: {memory!r}."
            )
        table = VariableTable.from_state(state["table"], self.pool.table.fields)
        self.pool.replace_table(table)
        self.memory = dict(memory)
