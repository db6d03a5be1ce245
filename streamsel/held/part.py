"""What every state is: something that can be undone, copied, and kept in a file."""

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

# A state that keeps no columns takes about so many numbers an observation.
_SMALL = 64

Floats = NDArray[np.float64]
Places = NDArray[np.intp]


class Mark:
    """A state as it was.

    Parameters
    ----------
    saved
        The attributes that the state had; None while it has not changed since.
    """

    def __init__(self, saved: dict[str, Any] | None = None) -> None:
        self.saved = saved


class Part(Rollback, abc.ABC):
    """A state: nothing else may hold what a learner has learnt.

    Undo, pickling, copies, files and the hand-over from columns to rows go through it.
    """

    @abc.abstractmethod
    def to_state(self) -> dict[str, Any]:
        """Return what a file needs: arrays, and values that JSON can hold."""

    @abc.abstractmethod
    def set_state(self, state: dict[str, Any]) -> None:
        """Take up what `to_state` returned, into a fresh part made of the same parameters."""


class Held(Part):
    """Variables that went by, and what is known of them."""

    # What a state of this kind knows of its variables beyond their moments; a hook that asks for
    # more than its learner keeps is refused when its class is defined.
    offers: ClassVar[frozenset[str]] = frozenset()

    # The variables, a row each.
    table: Table

    def expect_possible(self) -> None:
        """Raise ValueError for numbers that no data lead to: a file may hold any."""

    @property
    def slots(self) -> Mapping[Hashable, int]:
        """Name -> place, in order of arrival; not to be changed."""
        return self.table.slots

    @property
    def names(self) -> list[Hashable]:
        """Names in order of arrival; not to be changed."""
        return self.table.names

    @property
    @abc.abstractmethod
    def complete(self) -> bool:
        """Whether no variable was ever let go."""

    @property
    @abc.abstractmethod
    def space(self) -> TargetSpace | None:
        """The target space; None where there is no target."""

    @property
    @abc.abstractmethod
    def n(self) -> float:
        """Observations, or the weight of the rows."""

    @abc.abstractmethod
    def stats(self, places: Places | None = None) -> Stats:
        """Return the moments of variables, of all if places is None."""

    def noted(self, field: str) -> Floats:
        """Return what else was noted of the variables as they came, (p,)."""
        raise KeyError(field)

    def relevance(self, places: Places | None = None) -> Floats:
        """Return relevances; without a target every variable explains itself in full."""
        stats = self.stats(places)
        if self.space is None:
            return np.ones(stats.m2.size)
        return self.space.relevance(stats.m2, stats.cxy)

    def noise_relevance(self, places: Places | None = None) -> Floats:
        """Return the relevances that are compared with noise: to the target's normal scores.

        Where the target's own distribution is used, these are the relevances.
        """
        return self.relevance(places)

    def coordinates(self, places: Places | None = None) -> Floats:
        """Return the (p, r) coordinates of variables in the target space."""
        assert self.space is not None  # noqa: S101
        stats = self.stats(places)
        return self.space.coordinates(stats.m2, stats.cxy)


class ColumnHeld(Held):
    """Variables that came as columns, each with all its observations.

    A mark is set at every block, and hardly any block is undone or changes a state at all. So a
    state of this kind says when it is about to change, `self._changes()`; what is marked is then
    copied, once, and never where nothing changes.
    """

    # Why two of a kind, of other columns, cannot be put together without reading these again; ""
    # where they can.
    why_apart: ClassVar[str] = ""

    _open: Mark | None = None

    def __init__(self, n: int) -> None:
        self._n = n

    @property
    def n(self) -> int:
        """Observations of every variable."""
        return self._n

    def stats(self, places: Places | None = None) -> Stats:
        """Return the moments of variables, of all if places is None."""
        arrays = (self.table[field] for field in Stats._fields)
        return Stats(*arrays if places is None else (array[places] for array in arrays))

    def snapshot(self) -> Restore:
        """Return what brings the state back to what it is now."""
        if self._open is None:
            self._open = Mark()
        return functools.partial(self._rewind, self._open)

    def _rewind(self, mark: Mark) -> None:
        """Undo what was learnt since the mark, which may be rewound to again."""
        if mark.saved is not None:
            restored = self._restored(mark.saved)
            vars(self).clear()
            vars(self).update(restored)
        self._open = mark
        mark.saved = None

    def _copied(self) -> dict[str, Any]:
        """Return the attributes, none of which the state shares with what it does later."""
        return copy.deepcopy(vars(self))

    def _restored(self, saved: dict[str, Any]) -> dict[str, Any]:
        """Return the attributes of which `_copied` returned what was saved."""
        return saved

    def _changes(self) -> None:
        """Note that the state is about to change."""
        if self._open is not None:
            mark, self._open = self._open, None
            mark.saved = self._copied()

    def bytes_for(self, p: int) -> int:  # noqa: ARG002
        """Return about how many bytes this state takes once it has seen p columns."""
        return _SMALL * 8 * math.ceil(self.n)

    @property
    def indifferent_below(self) -> float:
        """Below which relevance a column changes nothing here; -inf where any may."""
        return -math.inf

    @abc.abstractmethod
    def admit(self, chunk: Chunk, stats: Stats, first_arrival: int) -> None:
        """Learn the columns of a chunk, in order, as many as stats has.

        Parameters
        ----------
        chunk, stats
            The columns, and the moments of the first of them, or of all.
        first_arrival
            How many columns of the stream stood before the chunk.
        """

    @abc.abstractmethod
    def merge(self, other: Self, arrived: int) -> None:
        """Take in other variables of the same rows, as arrived after so many columns.

        A state that does not merge takes over those of another as long as nothing has arrived, and
        raises ValueError after.
        """
