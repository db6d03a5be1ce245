"""Learn columns in parts, by processes without shared memory.

Each part of the columns is learnt by a clone of one prepared model that has the target
(`_learn_part`), and the clones are merged in order, in a tree of any shape. Further passes over the
source are also made part by part, as long as a pass is required:

    reading = model._next_reading()
    found = reading.read(parts[0].open(), 0)
    further = reading.read(parts[1].open(), found.n_read)
    found.merge(further)
    model._take_reading(reading, found)

Online factorisations do not support parts. `transform_beside`, and a file of all loadings
(`learn_loadings(X, to=...)`), require a single process.

Passes and their results can be sent between processes: their size is that of the answer, not that
of the columns.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, Self

from streamsel.held.part import ColumnHeld
from streamsel.learner.merging import Merging
from streamsel.stream import ColumnStream


class Found(Protocol):
    """Result of a pass over consecutive columns: of one part, or of several merged parts.

    Attributes
    ----------
    n_read
        Number of columns.
    """

    n_read: int

    def merge(self, other: Self) -> None:
        """Merge the result of the columns that follow directly."""


class Reading(Protocol):
    """A further pass over all columns."""

    def read(self, stream: ColumnStream, arrival: int) -> Any:
        """Return the result (`Found`) for the columns of a part, without changing the pass.

        Parameters
        ----------
        stream
            The columns of the part.
        arrival
            Number of columns before them.
        """


class LearnsInParts(Merging):
    """Base class of learners that can learn parts of the columns in clones, and merge these."""

    keeps: ClassVar[type[ColumnHeld]]

    def _why_not_in_parts(self) -> str | None:
        """Return why columns cannot be learnt in parts; None if they can."""
        return self.keeps.why_apart or None

    def _learn_part(self, stream: ColumnStream) -> None:
        """Learn the columns of a part as `learn_columns` does, without further passes."""
        self._refuse_after_rows()
        self._in_session(Exception if stream.rereadable else (), self._learn_once, stream)

    def _blank(self) -> Self:
        """Return a clone with the same target, which has learnt no columns."""
        twin: Self = self.clone()  # type: ignore[attr-defined]
        for name in ("_target", "_space", "_without_target"):
            setattr(twin, name, getattr(self, name))
        twin._summary = self._new_summary()
        return twin

    def _next_reading(self) -> Reading | None:
        """Return the next pass over the columns; None if no further pass is required.

        An exact selector requires passes until its answer is proven; an extractor for which
        `learn_loadings` adds results requires one pass.
        """
        return None

    def _take_reading(self, reading: Any, found: Any) -> None:
        """Update the model with the result of the next pass over all columns."""
        raise NotImplementedError
