"""Variables that were accepted as they came, for good, and what their method remembers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, Self, cast

import numpy as np

from streamsel.columns import Chunk, Stats
from streamsel.held.part import Floats, Places
from streamsel.held.pool import Picks, Pool, SamplePool
from streamsel.held.table import Table
from streamsel.shapes import Number, expect
from streamsel.target.space import TargetSpace


class Offer(NamedTuple):
    """Columns of a chunk that are to be decided on, in order.

    Parameters
    ----------
    chunk, stats
        The columns, and the moments of the first of them, or of all.
    first_arrival
        How many columns of the stream stood before the chunk.
    places
        Which of them vary, beside covariates too, ascending: what does not is never offered.
    """

    chunk: Chunk
    stats: Stats
    first_arrival: int
    places: Places

    @property
    def moments(self) -> tuple[Floats, Floats]:
        """Sums of squares (b,), and products with the target (b, c), of those offered."""
        return self.stats.m2[self.places], self.stats.cxy[self.places]


class Decider(Protocol):
    """What must be known of the method that decides."""

    def _decide(self, held: Any, offer: Offer) -> None:
        """Accept some of the columns offered, in order, and remember what is to be remembered."""

    def _refuses_below(self, held: Any) -> float:
        """Return below which relevance a column is refused, and leaves nothing to remember."""


class Decisions(Pool):
    """The variables that a method has accepted on arrival.

    What was not accepted is gone, and what was is not asked for again: a decision depends on the
    columns before, and on nothing after. Two models of other columns cannot be put together, for
    either has decided without the other's.

    Parameters
    ----------
    limit
        Most variables to hold; None for any number. Once there are as many, nothing is decided.
    remembered
        What the method remembers beside the variables, as it is before the first column.

    Attributes
    ----------
    memory
        What it remembers now: name -> number. `remember` changes it.
    plan
        What the method made of the variables held, and may make again: dropped whenever these
        change, and not part of a copy or a file.
    """

    why_apart = "what is decided on arrival depends on all that came before"

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
        """False: nobody knows of what was not accepted."""
        return False

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another variable."""
        return self.limit is not None and len(self.table) >= self.limit

    @property
    def indifferent_below(self) -> float:
        """Below which relevance a column changes nothing here: any, once there is no room."""
        return math.inf if self.is_full else cast("Decider", self.method)._refuses_below(self)

    # Learning

    def admit(
        self,
        chunk: Chunk,
        stats: Stats,
        first_arrival: int,
        places: Places | None = None,
        noted: Mapping[str, Floats] = {},
    ) -> None:
        """Let the method decide on the columns of a chunk, in order."""
        del places, noted
        if self.is_full:
            return
        varies = stats.m2 if self._space is None else self._space.left(stats.m2, stats.cxy)
        offered = np.flatnonzero(varies)
        if offered.size:
            decider = cast("Decider", self.method)
            decider._decide(self, Offer(chunk, stats, first_arrival, offered))

    def accept(self, offer: Offer, place: int, **noted: float) -> None:
        """Hold a column of a chunk from here on, with a number for whatever else is noted of it."""
        self._changes()
        self.plan = None
        rows = {field: np.array([value]) for field, value in noted.items()}
        places = np.array([place], dtype=np.intp)
        rows |= self.rows_of(offer.chunk, offer.stats, places)
        arrival = np.array([offer.first_arrival + place])
        self.table.append([offer.chunk.names[place]], arrival=arrival, **rows)

    def drop(self, places: Places) -> None:
        """Let some of the variables held go, for good."""
        self._changes()
        self.plan = None
        stays = np.ones(len(self.table), dtype=np.bool_)
        stays[places] = False
        self.table.keep(np.flatnonzero(stays))

    def remember(self, **numbers: float) -> None:
        """Remember these numbers from here on."""
        self._changes()
        self.memory |= {name: float(value) for name, value in numbers.items()}

    def certified(self, picks: Picks) -> int:
        """Return the number of picks: what was decided is decided."""
        return len(picks.places)

    def merge(self, other: Self, arrived: int) -> None:
        """Take over what another has decided, where nothing was learnt here; refuse otherwise."""
        if arrived:
            raise ValueError(
                "Expected a model that has learnt no columns yet to merge into. Got: one that "
                f"has decided on {arrived}, without those of the other.\n"
                f"Hint: {self.why_apart}; learn one stream after the other with one model."
            )
        self._changes()
        self.table, self.memory, self.plan = other.table.copy(), dict(other.memory), None

    # Undo, copies, files

    def _copied(self) -> dict[str, Any]:
        return super()._copied() | {"memory": dict(self.memory)}

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs: arrays, and values that JSON can hold."""
        return {"table": self.table.to_state(), "memory": dict(self.memory)}

    def set_state(self, state: dict[str, Any]) -> None:
        """Take up what `to_state` returned, into a fresh part made of the same parameters."""
        memory = state["memory"]
        expect(memory, **dict.fromkeys(self.memory, Number()))
        if memory.keys() != self.memory.keys() or {*map(type, memory.values())} - {float}:
            raise ValueError(f"Expected the numbers {list(self.memory)}. Got: {memory!r}.")
        self.table = Table.from_state(state["table"], self.table.fields)
        self.memory = dict(memory)


class Decided(Decisions, SamplePool):
    """Those with their observations, `unit`: centred, given covariates, and of length 1."""

    def units(self, offer: Offer, places: Places) -> Floats:
        """Return columns of a chunk as `unit` has them, one a row."""
        return self.units_of(offer.chunk, offer.stats, places)
