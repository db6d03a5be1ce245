"""What is counted of all columns that pass, in memory that does not grow with their number."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np

from streamsel.columns import Chunk, Stats
from streamsel.held.column_sample import ColumnSample, next_sampled
from streamsel.held.histogram import Histogram
from streamsel.held.part import Floats
from streamsel.held.permutations import PermutationNull
from streamsel.rollback import Rollback
from streamsel.shapes import Array, expect
from streamsel.target.permuted import PermutedTarget
from streamsel.target.space import TargetSpace
from streamsel.target.target import Target

# Of so many columns each is known.
MOST_POINTS = 500


class StreamSummary(Rollback):
    """Counts of all columns that a model has learnt: what reports and tests need to know of them.

    Parameters
    ----------
    permuted
        The permuted targets; None for none.

    Attributes
    ----------
    first
        Relevances of the first 500 columns, -1 for one that does not vary. Replaced, never changed.
    histogram
        When columns came, and how relevant they were.
    sample
        How heavy their tails are, and how much they correlate.
    null
        What permuted targets are explained by; None without permutations.
    simple_until
        Before this arrival a column that changes nothing else is counted by the histogram alone.
    """

    changing = ("first", "histogram", "sample", "null", "simple_until")

    def __init__(self, permuted: PermutedTarget | None = None) -> None:
        self.first: Floats = np.empty(0)
        self.histogram = Histogram()
        self.sample = ColumnSample()
        self.null = None if permuted is None else PermutationNull(permuted)
        self.simple_until = 0

    def add(
        self,
        chunk: Chunk,
        stats: Stats,
        target: Target,
        space: TargetSpace,
        relevance: Floats,
        arrived: int,
    ) -> None:
        """Count columns of these relevances, as arrived after so many."""
        stop = arrived + stats.m2.size
        if stop > self.simple_until:
            self.sample.add(chunk, stats, arrived, target.weights)
            if self.null is not None:
                self.null.add(chunk, stats, space, relevance, arrived)
            if arrived < MOST_POINTS:
                self.first = np.append(self.first, np.maximum(relevance, -1.0))[:MOST_POINTS]
            self._follow(stop)
        self.histogram.add(relevance, arrived)

    def _follow(self, arrived: int) -> None:
        """Note until when columns are counted by the histogram alone."""
        self.simple_until = arrived
        if self.null is None and arrived >= MOST_POINTS:
            self.simple_until = next_sampled(arrived)

    def merge(self, other: StreamSummary, arrived: int, size: int) -> None:
        """Count the columns of another too, so many, as arrived after so many of mine."""
        if arrived < MOST_POINTS:
            self.first = np.append(self.first, other.first)[:MOST_POINTS]
        self.histogram.merge(other.histogram, arrived, size)
        self.sample.merge(other.sample)
        if self.null is not None and other.null is not None:
            self.null.merge(other.null, arrived)
        self._follow(arrived + size)

    # Copies, files

    def copy(self) -> Self:
        """Return a copy that shares nothing with what is counted later."""
        other = copy.copy(self)
        other.histogram, other.sample = self.histogram.copy(), copy.copy(self.sample)
        other.null = copy.copy(self.null)
        return other

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs."""
        state: dict[str, Any] = {"first": self.first, "histogram": self.histogram.to_state()}
        state["sample"] = self.sample.to_state()
        return state if self.null is None else state | {"null": self.null.to_state()}

    def set_state(self, state: dict[str, Any], arrived: int) -> None:
        """Take up what `to_state` returned when so many columns had arrived."""
        size = min(arrived, MOST_POINTS)
        expect(state, first=Array((size,), least=-1.0, below=1.0 + 1e-6))
        self.first = np.array(state["first"])
        self.histogram = Histogram.restored(state["histogram"], arrived)
        self.sample.set_state(state["sample"], arrived)
        if self.null is not None:
            self.null.set_state(state["null"])
        self._follow(arrived)
