"""When columns came, and how relevant they were: a histogram that does not grow."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from streamsel._jit.scan import BINS, IN_OCTAVE, OCTAVES, count
from streamsel.held.part import Floats
from streamsel.rollback import Rollback
from streamsel.shapes import Array, Count, expect

Counts = NDArray[np.int64]

# Most bins of arrival; they double when they are full.
_ROWS = 64
# (b + 1,) where bins of relevance begin, and the last one ends: exact numbers, each about 4 % above
# the one before. What is less relevant than all of them is in the first bin.
EDGES: Floats = np.append(
    (2.0 ** np.arange(-OCTAVES, 0)[:, None] * (1.0 + np.arange(IN_OCTAVE) / IN_OCTAVE)).ravel(), 1.0
)


class Histogram(Rollback):
    """How many columns came in which part of the stream, and had which relevance.

    Bins of arrival have the least power of two of columns with which 64 are enough. So what is
    counted depends on the columns alone, and not on how they were cut into blocks.

    Attributes
    ----------
    step
        Columns in a bin of arrival.
    alone
        Columns of the last bin of arrival that came alone, by relevance: whoever lets one go adds 1
        here. All else that is held is replaced, and never changed.
    until
        Before which arrival a column belongs there.
    """

    changing = ("_rows", "_n_full", "_last", "alone", "step", "until")

    def __init__(self) -> None:
        # The bins of arrival that are full, with room for the others once there is one (a bin of
        # 2**32 columns would take 10**11); and the last one, but for those that came alone.
        self._rows: NDArray[np.uint32] = np.empty((0, BINS), dtype=np.uint32)
        self._n_full = 0
        self._last: Counts = np.zeros(BINS, dtype=np.int64)
        # A list, for an element of an array takes four times as long to change.
        self.alone = [0] * BINS
        self.step = self.until = 1

    @property
    def counts(self) -> Counts:
        """Columns by arrival and relevance, (a, b)."""
        return np.vstack([self._rows[: self._n_full], self._last + self.alone], dtype=np.int64)

    def add(self, relevance: Floats, arrived: int) -> None:
        """Count columns of these relevances, those that vary, as arrived after so many."""
        if relevance.size:
            before = self._make_room(arrived, relevance.size)
            # Replaced, and never changed: a snapshot may know it.
            self._last = self._last.copy()
            rows = self._rows[self._n_full :]
            self._n_full += count(relevance, before, self.step, rows, self._last)
            self.until = (self._n_full + 1) * self.step

    def move_on(self, arrived: int) -> None:
        """Begin another bin of arrival, for a column that comes alone after so many."""
        if self._make_room(arrived, 1) == self.step:
            self._follow(np.vstack([self._last, np.zeros(BINS, dtype=np.int64)]))

    def merge(self, other: Histogram, arrived: int, size: int) -> None:
        """Count the columns of another too, so many, as arrived after so many of mine.

        Where its bins of arrival straddle two of mine all of it is taken to lie in the first.
        """
        if size:
            before, theirs = self._make_room(arrived, size), other.counts
            counts = np.zeros(((before + size - 1) // self.step + 1, BINS), dtype=np.int64)
            counts[0] = self._last
            np.add.at(counts, (before + other.step * np.arange(len(theirs))) // self.step, theirs)
            self._follow(counts)

    def _make_room(self, arrived: int, size: int) -> int:
        """Let there be bins for so many columns; return how many the last one has seen before."""
        if arrived + size > self.until and any(self.alone):
            self._last, self.alone = self._last + self.alone, [0] * BINS
        while arrived + size > _ROWS * self.step:
            self._fold()
        if arrived + size > self.until and not len(self._rows):
            self._rows = np.empty((_ROWS, BINS), dtype=np.uint32)
        return arrived - self._n_full * self.step

    def _fold(self) -> None:
        """Let every two bins of arrival be one."""
        n, half, rows = self._n_full, self._n_full // 2, self._rows
        if n % 2:
            self._last = rows[n - 1] + self._last
        if n:  # in other places, for a snapshot may know these
            self._rows = np.empty_like(rows)
            np.add(rows[: 2 * half : 2], rows[1 : 2 * half : 2], out=self._rows[:half])
        self._n_full, self.step = half, 2 * self.step
        self.until = (half + 1) * self.step

    def _follow(self, counts: Counts) -> None:
        """Take these for the last bin of arrival, and those that come after it."""
        self._rows[self._n_full : self._n_full + len(counts) - 1] = counts[:-1]
        self._n_full += len(counts) - 1
        self._last = counts[-1]
        self.until = (self._n_full + 1) * self.step

    # Copies, files

    def copy(self) -> Self:
        """Return a copy that shares nothing with what is counted later."""
        other = copy.copy(self)
        other._rows, other.alone = self._rows.copy(), [*self.alone]
        return other

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs: small numbers, from the first bin that is not empty on."""
        counts = self.counts
        first = int(np.argmax(counts.any(axis=0)))
        return {
            "first": first,
            "counts": counts[:, first:].astype(np.min_scalar_type(int(counts.max()))),
        }

    @classmethod
    def restored(cls, state: dict[str, Any], arrived: int) -> Self:
        """Return what `to_state` was asked of, when so many columns had arrived."""
        found = cls()
        found._make_room(0, arrived)
        expect(state, first=Count())
        counts = state.get("counts")
        if not isinstance(counts, np.ndarray) or counts.dtype.kind != "u":
            raise ValueError("Expected counts of columns. Got: none.")
        counts = counts.astype(np.int64)
        shape = (max(1, -(-arrived // found.step)), BINS - state["first"])
        expect({"counts": counts}, counts=Array(shape, np.int64, 0, arrived + 1))
        if counts.sum(dtype=np.float64) > arrived:
            raise ValueError(f"Expected counts of {arrived} columns. Got: more.")
        found._follow(np.pad(counts, [(0, 0), (state["first"], 0)]))
        return found
