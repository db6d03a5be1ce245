"""Histogram of columns by arrival and relevance, with bounded memory."""

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

# Maximum number of arrival bins; their width doubles when they are full.
_MAX_ARRIVAL_BINS = 64
# (b + 1,) edges of the relevance bins: exact numbers, each about 4 % above the previous one. The
# first bin also counts all lower relevances.
EDGES: Floats = np.append(
    (2.0 ** np.arange(-OCTAVES, 0)[:, None] * (1.0 + np.arange(IN_OCTAVE) / IN_OCTAVE)).ravel(), 1.0
)


class Histogram(Rollback):
    """Number of columns by part of the stream and by relevance.

    Arrival bins have the smallest power of two as width for which 64 bins suffice. The counts
    therefore depend on the columns alone, and not on how they were cut into blocks.

    Attributes
    ----------
    step
        Columns per arrival bin.
    alone
        Columns of the last arrival bin that arrived singly, by relevance: code that discards a
        single column adds 1 here. All other data are replaced, never modified in place.
    until
        Arrival at which the last bin ends.
    """

    changing = ("_rows", "_n_full", "_last", "alone", "step", "until")

    def __init__(self) -> None:
        # The full arrival bins, with room for the others once there is one (a bin overflows at
        # 2**32 columns, in total about 10**11); and the last one, without columns that arrived
        # singly.
        self._rows: NDArray[np.uint32] = np.empty((0, BINS), dtype=np.uint32)
        self._n_full = 0
        self._last: Counts = np.zeros(BINS, dtype=np.int64)
        # A list, because changing an array element takes four times as long.
        self.alone = [0] * BINS
        self.step = self.until = 1

    @property
    def counts(self) -> Counts:
        """Number of columns by arrival and relevance, (a, b)."""
        return np.vstack([self._rows[: self._n_full], self._last + self.alone], dtype=np.int64)

    def add(self, relevance: Floats, arrived: int) -> None:
        """Count varying columns with these relevances, after `arrived` earlier columns."""
        if relevance.size:
            before = self._make_room(arrived, relevance.size)
            # Replaced, not modified: a snapshot may refer to it.
            self._last = self._last.copy()
            rows = self._rows[self._n_full :]
            self._n_full += count(relevance, before, self.step, rows, self._last)
            self.until = (self._n_full + 1) * self.step

    def move_on(self, arrived: int) -> None:
        """Begin a new arrival bin if needed, for a single column after `arrived` earlier ones."""
        if self._make_room(arrived, 1) == self.step:
            self._replace_last(np.vstack([self._last, np.zeros(BINS, dtype=np.int64)]))

    def merge(self, other: Histogram, arrived: int, size: int) -> None:
        """Add the counts of another histogram, of `size` columns, after `arrived` columns.

        An arrival bin of the other that straddles two bins is counted in the first.
        """
        if size:
            before, theirs = self._make_room(arrived, size), other.counts
            counts = np.zeros(((before + size - 1) // self.step + 1, BINS), dtype=np.int64)
            counts[0] = self._last
            np.add.at(counts, (before + other.step * np.arange(len(theirs))) // self.step, theirs)
            self._replace_last(counts)

    def _make_room(self, arrived: int, size: int) -> int:
        """Reserve bins for `size` more columns; return how many columns the last bin has seen."""
        if arrived + size > self.until and any(self.alone):
            self._last, self.alone = self._last + self.alone, [0] * BINS
        while arrived + size > _MAX_ARRIVAL_BINS * self.step:
            self._merge_pairs()
        if arrived + size > self.until and not len(self._rows):
            self._rows = np.empty((_MAX_ARRIVAL_BINS, BINS), dtype=np.uint32)
        return arrived - self._n_full * self.step

    def _merge_pairs(self) -> None:
        """Merge pairs of adjacent arrival bins."""
        n, half, rows = self._n_full, self._n_full // 2, self._rows
        if n % 2:
            self._last = rows[n - 1] + self._last
        if n:  # not in place, because a snapshot may refer to the array
            self._rows = np.empty_like(rows)
            np.add(rows[: 2 * half : 2], rows[1 : 2 * half : 2], out=self._rows[:half])
        self._n_full, self.step = half, 2 * self.step
        self.until = (half + 1) * self.step

    def _replace_last(self, counts: Counts) -> None:
        """Replace the last arrival bin by these bins."""
        self._rows[self._n_full : self._n_full + len(counts) - 1] = counts[:-1]
        self._n_full += len(counts) - 1
        self._last = counts[-1]
        self.until = (self._n_full + 1) * self.step

    # Copies, files

    def copy(self) -> Self:
        """Return an independent copy."""
        other = copy.copy(self)
        other._rows, other.alone = self._rows.copy(), [*self.alone]
        return other

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file: small integers, from the first nonempty bin on."""
        counts = self.counts
        first = int(np.argmax(counts.any(axis=0)))
        return {
            "first": first,
            "counts": counts[:, first:].astype(np.min_scalar_type(int(counts.max()))),
        }

    @classmethod
    def restored(cls, state: dict[str, Any], arrived: int) -> Self:
        """Return the histogram of which `to_state` returned this, after `arrived` columns."""
        found = cls()
        found._make_room(0, arrived)
        expect(state, first=Count())
        counts = state.get("counts")
        if not isinstance(counts, np.ndarray) or counts.dtype.kind != "u":
            raise ValueError("Expected counts of columns as unsigned integers. Got: others.")
        counts = counts.astype(np.int64)
        shape = (max(1, -(-arrived // found.step)), BINS - state["first"])
        expect({"counts": counts}, counts=Array(shape, np.int64, 0, arrived + 1))
        if counts.sum(dtype=np.float64) > arrived:
            raise ValueError(f"Expected counts of at most {arrived} columns. Got: more.")
        found._replace_last(np.pad(counts, [(0, 0), (state["first"], 0)]))
        return found
