"""Histograms of the relevance of columns, in total or by arrival, with bounded memory."""

from __future__ import annotations

import copy
import math
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from streamsel._kernels.scan import BINS, BINS_PER_OCTAVE, OCTAVES, count_relevances
from streamsel._utils.rollback import Rollback
from streamsel.serialization.schema import ArrayKind, CountKind, expect
from streamsel.state.base import Floats

Counts = NDArray[np.int64]

# Maximum number of arrival bins; their width doubles when they are full.
_MAX_ARRIVAL_BINS = 64
# (b + 1,) edges of the relevance bins: exact numbers, each about 4 % above the previous one. The
# first bin also counts all lower relevances.
EDGES: Floats = np.append(
    (
        2.0 ** np.arange(-OCTAVES, 0)[:, None]
        * (1.0 + np.arange(BINS_PER_OCTAVE) / BINS_PER_OCTAVE)
    ).ravel(),
    1.0,
)


class RelevanceHistogram(Rollback):
    """Number of columns by arrival bin and by relevance.

    Arrival bins have the smallest power of two as width for which 64 bins suffice. The counts
    therefore depend on the columns alone, and not on how they were cut into blocks.

    Attributes
    ----------
    bin_width
        Columns per arrival bin.
    singles
        Columns of the last arrival bin that arrived singly, by relevance: code that discards a
        single column adds 1 here. All other data are replaced, never modified in place.
    last_bin_end
        Arrival at which the last bin ends.
    """

    changing = ("_full_bins", "_n_full", "_last", "singles", "bin_width", "last_bin_end")

    def __init__(self) -> None:
        # The full arrival bins, with room for the others once there is one (a bin overflows at
        # 2**32 columns, in total about 10**11); and the last one, without columns that arrived
        # singly.
        self._full_bins: NDArray[np.uint32] = np.empty((0, BINS), dtype=np.uint32)
        self._n_full = 0
        self._last: Counts = np.zeros(BINS, dtype=np.int64)
        # A list, because changing an array element takes four times as long.
        self.singles = [0] * BINS
        self.bin_width = self.last_bin_end = 1

    @property
    def counts(self) -> Counts:
        """Number of columns by arrival and relevance, (a, b)."""
        return np.vstack(
            [self._full_bins[: self._n_full], self._last + self.singles], dtype=np.int64
        )

    def add(self, relevance: Floats, arrived: int) -> None:
        """Count varying columns with these relevances, after `arrived` earlier columns."""
        if relevance.size:
            before = self._make_room(arrived, relevance.size)
            # Replaced, not modified: a snapshot may refer to it.
            self._last = self._last.copy()
            rows = self._full_bins[self._n_full :]
            self._n_full += count_relevances(relevance, before, self.bin_width, rows, self._last)
            self.last_bin_end = (self._n_full + 1) * self.bin_width

    def start_bin(self, arrived: int) -> None:
        """Begin a new arrival bin if needed, for a single column after `arrived` earlier ones."""
        if self._make_room(arrived, 1) == self.bin_width:
            self._replace_last(np.vstack([self._last, np.zeros(BINS, dtype=np.int64)]))

    def merge(self, other: RelevanceHistogram, arrived: int, size: int) -> None:
        """Add the counts of another histogram, of `size` columns, after `arrived` columns.

        An arrival bin of the other that straddles two bins is counted in the first.
        """
        if size:
            before, theirs = self._make_room(arrived, size), other.counts
            counts = np.zeros(((before + size - 1) // self.bin_width + 1, BINS), dtype=np.int64)
            counts[0] = self._last
            np.add.at(
                counts,
                (before + other.bin_width * np.arange(len(theirs))) // self.bin_width,
                theirs,
            )
            self._replace_last(counts)

    def _make_room(self, arrived: int, size: int) -> int:
        """Reserve bins for `size` more columns; return how many columns the last bin has seen."""
        if arrived + size > self.last_bin_end and any(self.singles):
            self._last, self.singles = self._last + self.singles, [0] * BINS
        while arrived + size > _MAX_ARRIVAL_BINS * self.bin_width:
            self._merge_pairs()
        if arrived + size > self.last_bin_end and not len(self._full_bins):
            self._full_bins = np.empty((_MAX_ARRIVAL_BINS, BINS), dtype=np.uint32)
        return arrived - self._n_full * self.bin_width

    def _merge_pairs(self) -> None:
        """Merge pairs of adjacent arrival bins."""
        n, half, rows = self._n_full, self._n_full // 2, self._full_bins
        if n % 2:
            self._last = rows[n - 1] + self._last
        if n:  # not in place, because a snapshot may refer to the array
            self._full_bins = np.empty_like(rows)
            np.add(rows[: 2 * half : 2], rows[1 : 2 * half : 2], out=self._full_bins[:half])
        self._n_full, self.bin_width = half, 2 * self.bin_width
        self.last_bin_end = (half + 1) * self.bin_width

    def _replace_last(self, counts: Counts) -> None:
        """Replace the last arrival bin by these bins."""
        self._full_bins[self._n_full : self._n_full + len(counts) - 1] = counts[:-1]
        self._n_full += len(counts) - 1
        self._last = counts[-1]
        self.last_bin_end = (self._n_full + 1) * self.bin_width

    # Copies, files

    def copy(self) -> Self:
        """Return an independent copy."""
        other = copy.copy(self)
        other._full_bins, other.singles = self._full_bins.copy(), [*self.singles]
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
        """Return the histogram from the result of `to_state`, after `arrived` columns."""
        histogram = cls()
        histogram._make_room(0, arrived)
        expect(state, first=CountKind())
        counts = state.get("counts")
        if not isinstance(counts, np.ndarray) or counts.dtype.kind != "u":
            raise ValueError("Expected counts of columns as unsigned integers. Got: others.")
        counts = counts.astype(np.int64)
        shape = (max(1, -(-arrived // histogram.bin_width)), BINS - state["first"])
        expect({"counts": counts}, counts=ArrayKind(shape, np.int64, 0, arrived + 1))
        if counts.sum(dtype=np.float64) > arrived:
            raise ValueError(f"Expected counts of at most {arrived} columns. Got: more.")
        histogram._replace_last(np.pad(counts, [(0, 0), (state["first"], 0)]))
        return histogram


_BINS = 4096


class RelevanceCounts:
    """Number of columns by relevance, above a minimum.

    Parameters
    ----------
    min_relevance
        Columns of lower relevance are not counted.

    Attributes
    ----------
    counts
        (4096,) columns by relevance: those of at least i / 4096 and less than (i + 1) / 4096.
        Replaced, never modified.
    """

    def __init__(self, min_relevance: float) -> None:
        self.min_relevance = min_relevance
        self.counts: NDArray[np.int64] = np.zeros(_BINS, dtype=np.int64)

    def add(self, relevance: Floats) -> None:
        """Count columns with these relevances."""
        counted = relevance[relevance >= self.min_relevance]
        if counted.size:
            bins = np.minimum((counted * _BINS).astype(np.intp), _BINS - 1)
            self.counts = self.counts + np.bincount(bins, minlength=_BINS)

    def above(self, relevance: float) -> int:
        """Return how many columns were more relevant than this, to 1 / 4096."""
        return int(self.counts[math.ceil(relevance * _BINS) :].sum())

    def merge(self, other: RelevanceCounts) -> None:
        """Add the counts of another."""
        self.counts = self.counts + other.counts
