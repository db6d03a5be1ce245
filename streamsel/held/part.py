"""Base classes of states: undo, copies, and model files."""

from __future__ import annotations

import abc
import copy
import functools
import math
from collections.abc import Hashable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from streamsel.columns import Chunk, Stats
from streamsel.held.table import Table
from streamsel.rollback import Restore, Rollback
from streamsel.target.space import TargetSpace

# Approximate memory of a state without columns, in numbers per observation.
_NUMBERS_PER_OBSERVATION = 64

Floats = NDArray[np.float64]
Places = NDArray[np.intp]


class Mark:
    """Snapshot of a state.

    Parameters
    ----------
    saved
        Attributes of the state at the snapshot; None while the state has not changed since.
    """

    def __init__(self, saved: dict[str, Any] | None = None) -> None:
        self.saved = saved


class Part(Rollback, abc.ABC):
    """State of a learner: the only place of learnt quantities.

    Undo, pickling, copies, files and the switch from columns to rows operate on it.
    """

    @abc.abstractmethod
    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""

    @abc.abstractmethod
    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""


class Held(Part):
    """State of the tracked variables."""

    # Quantities that the state provides besides moments; a hook that requires others is refused
    # when its class is defined.
    offers: ClassVar[frozenset[str]] = frozenset()

    # The variables, one per row.
    table: Table

    def expect_possible(self) -> None:
        """Raise ValueError for values that no data can produce, as a file may hold."""

    @property
    def slots(self) -> Mapping[Hashable, int]:
        """Name -> index, in order of arrival; not to be modified."""
        return self.table.slots

    @property
    def names(self) -> list[Hashable]:
        """Names in order of arrival; not to be modified."""
        return self.table.names

    @property
    @abc.abstractmethod
    def complete(self) -> bool:
        """Whether no variable was ever discarded."""

    @property
    @abc.abstractmethod
    def space(self) -> TargetSpace | None:
        """The target space; None without a target."""

    @property
    @abc.abstractmethod
    def n(self) -> float:
        """Number of observations, or total weight of the rows."""

    @abc.abstractmethod
    def stats(self, places: Places | None = None) -> Stats:
        """Return the moments of variables; of all variables if `places` is None."""

    def noted(self, field: str) -> Floats:
        """Return a further field of the variables, recorded on arrival, (p,)."""
        raise KeyError(field)

    def relevance(self, places: Places | None = None) -> Floats:
        """Return relevances; 1 for every variable without a target."""
        stats = self.stats(places)
        if self.space is None:
            return np.ones(stats.m2.size)
        return self.space.relevance(stats.m2, stats.cxy)

    def noise_relevance(self, places: Places | None = None) -> Floats:
        """Return the relevances to compare with noise: those to the target's normal scores.

        They equal `relevance` where the target's own distribution is used.
        """
        return self.relevance(places)

    def coordinates(self, places: Places | None = None) -> Floats:
        """Return the (p, r) coordinates of variables in the target space."""
        assert self.space is not None  # noqa: S101
        stats = self.stats(places)
        return self.space.coordinates(stats.m2, stats.cxy)


class ColumnHeld(Held):
    """State of variables learnt as columns, each with all its observations.

    A snapshot is taken for every block, but few blocks are undone or change a state at all. A state
    therefore calls `self._changes()` before it changes; the state at the snapshot is then copied,
    once, and never if nothing changes.
    """

    # Why two states of different columns cannot be merged without another pass over these; "" if
    # they can be.
    why_apart: ClassVar[str] = ""

    _open: Mark | None = None

    def __init__(self, n: int) -> None:
        self._n = n

    @property
    def n(self) -> int:
        """Number of observations of every variable."""
        return self._n

    def stats(self, places: Places | None = None) -> Stats:
        """Return the moments of variables; of all variables if `places` is None."""
        arrays = (self.table[field] for field in Stats._fields)
        return Stats(*arrays if places is None else (array[places] for array in arrays))

    def snapshot(self) -> Restore:
        """Return a function that restores the current state."""
        if self._open is None:
            self._open = Mark()
        return functools.partial(self._rewind, self._open)

    def _rewind(self, mark: Mark) -> None:
        """Restore the state at a snapshot, which can be restored again."""
        if mark.saved is not None:
            restored = self._restored(mark.saved)
            vars(self).clear()
            vars(self).update(restored)
        self._open = mark
        mark.saved = None

    def _copied(self) -> dict[str, Any]:
        """Return copies of the attributes that are independent of later changes."""
        return copy.deepcopy(vars(self))

    def _restored(self, saved: dict[str, Any]) -> dict[str, Any]:
        """Return the attributes from the result of `_copied`."""
        return saved

    def _changes(self) -> None:
        """Copy the state for an open snapshot; to be called before every change."""
        if self._open is not None:
            mark, self._open = self._open, None
            mark.saved = self._copied()

    def bytes_for(self, p: int) -> int:  # noqa: ARG002
        """Return the approximate memory of this state in bytes, after p columns."""
        return _NUMBERS_PER_OBSERVATION * 8 * math.ceil(self.n)

    @property
    def indifferent_below(self) -> float:
        """The relevance below which a column changes nothing; -inf if every column may."""
        return -math.inf

    @abc.abstractmethod
    def admit(self, chunk: Chunk, stats: Stats, first_arrival: int) -> None:
        """Learn the columns of a chunk, in order: as many as stats has.

        Parameters
        ----------
        chunk, stats
            The columns, and the moments of all of them or of the first ones.
        first_arrival
            Number of columns of the stream before the chunk.
        """

    @abc.abstractmethod
    def merge(self, other: Self, arrived: int) -> None:
        """Add other variables of the same rows, which arrived after `arrived` columns.

        A state that cannot be merged copies another one while it is empty, and raises ValueError
        later.
        """
