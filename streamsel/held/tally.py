"""Histogram of the relevance of columns, with bounded memory."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from streamsel.held.part import Floats

_BINS = 4096


class Tally:
    """Number of columns by relevance, above a minimum.

    Parameters
    ----------
    least
        Columns of lower relevance are not counted.

    Attributes
    ----------
    counts
        (4096,) columns by relevance: those of at least i / 4096 and less than (i + 1) / 4096.
        Replaced, never modified.
    """

    def __init__(self, least: float) -> None:
        self.least = least
        self.counts: NDArray[np.int64] = np.zeros(_BINS, dtype=np.int64)

    def add(self, relevance: Floats) -> None:
        """Count columns with these relevances."""
        counted = relevance[relevance >= self.least]
        if counted.size:
            bins = np.minimum((counted * _BINS).astype(np.intp), _BINS - 1)
            self.counts = self.counts + np.bincount(bins, minlength=_BINS)

    def above(self, relevance: float) -> int:
        """Return how many columns were more relevant than this, to 1 / 4096."""
        return int(self.counts[math.ceil(relevance * _BINS) :].sum())

    def merge(self, other: Tally) -> None:
        """Add the counts of another."""
        self.counts = self.counts + other.counts
