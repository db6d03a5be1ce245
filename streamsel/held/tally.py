"""How relevant columns were that went by: a histogram that does not grow."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from streamsel.held.part import Floats

_BINS = 4096


class Tally:
    """How many columns had which relevance, from a least one on.

    Parameters
    ----------
    least
        What is less relevant is not counted.

    Attributes
    ----------
    counts
        (4096,) columns by relevance: those of at least i / 4096 and less than (i + 1) / 4096. It is
        replaced, and never changed.
    """

    def __init__(self, least: float) -> None:
        self.least = least
        self.counts: NDArray[np.int64] = np.zeros(_BINS, dtype=np.int64)

    def add(self, relevance: Floats) -> None:
        """Count columns of these relevances."""
        counted = relevance[relevance >= self.least]
        if counted.size:
            bins = np.minimum((counted * _BINS).astype(np.intp), _BINS - 1)
            self.counts = self.counts + np.bincount(bins, minlength=_BINS)

    def above(self, relevance: float) -> int:
        """Return how many were more relevant than this, to 1 / 4096."""
        return int(self.counts[math.ceil(relevance * _BINS) :].sum())

    def merge(self, other: Tally) -> None:
        """Count those of another too."""
        self.counts = self.counts + other.counts
