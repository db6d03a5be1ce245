"""Learning in parts: what one process does, by processes that share nothing.

Each part of the columns is learnt by a clone of one prepared model that has the target
(`_learn_part`), and the clones are merged in order, in a tree of any shape. What one process would
then read its source again for is read part by part too, as often as there is something to read:

    reading = model._next_reading()
    found = reading.read(parts[0].open(), 0)
    further = reading.read(parts[1].open(), found.n_read)
    found.merge(further)
    model._take_reading(reading, found)

Online factorisations know no parts. `transform_beside`, and a file of all loadings
(`learn_loadings(X, to=...)`), take one process.

Readings, and what they find, can be sent: they are of the size of the answer, not of the columns.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, Self

from streamsel.held.part import ColumnHeld
from streamsel.learner.merging import Merging
from streamsel.stream import ColumnStream


class Found(Protocol):
    """What a reading found in columns that follow one another: a part, or some that were merged.

    Attributes
    ----------
    n_read
        How many columns there are.
    """

    n_read: int

    def merge(self, other: Self) -> None:
        """Take in what was found in the columns that come right after."""


class Reading(Protocol):
    """What all columns are to be read for, once more."""

    def read(self, stream: ColumnStream, arrival: int) -> Any:
        """Return what is found (`Found`) in the columns of a part; nothing of mine changes.

        Parameters
        ----------
        stream
            The columns of the part.
        arrival
            How many columns come before them.
        """


class LearnsInParts(Merging):
    """Learns columns in parts, each by a clone, which are then merged."""

    keeps: ClassVar[type[ColumnHeld]]

    def _why_not_in_parts(self) -> str | None:
        """Return why columns cannot be learnt in parts; None where they can."""
        return self.keeps.why_apart or None

    def _learn_part(self, stream: ColumnStream) -> None:
        """Learn the columns of a part as `learn_columns` does, and read nothing again yet."""
        self._refuse_after_rows()
        self._in_session(Exception if stream.rereadable else (), self._learn_once, stream)

    def _blank(self) -> Self:
        """Return a clone with my target, which has learnt no columns."""
        twin: Self = self.clone()  # type: ignore[attr-defined]
        for name in ("_target", "_space", "_without_target"):
            setattr(twin, name, getattr(self, name))
        twin._summary = self._new_summary()
        return twin

    def _next_reading(self) -> Reading | None:
        """Return what the columns are to be read for next; None where nothing more is to be read.

        A selector that is to be exact reads until its answer is proven; an extractor of which
        `learn_loadings` would tell more does as that does.
        """
        return None

    def _take_reading(self, reading: Any, found: Any) -> None:
        """Take up what the next reading found in all columns."""
        raise NotImplementedError
