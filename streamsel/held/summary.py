"""Statistics over all columns of a stream, in memory that does not grow with their number."""

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

# Number of columns whose relevance is stored.
MOST_POINTS = 500


class StreamSummary(Rollback):
    """Statistics over all columns that a model has learnt, for reports and tests.

    Parameters
    ----------
    permuted
        The permuted targets; None for none.

    Attributes
    ----------
    first
        Relevances of the first 500 columns, -1 for one that does not vary. Replaced, never changed.
    histogram
        Counts of columns by arrival and relevance.
    sample
        Estimates of the columns' kurtosis and correlations.
    null
        Null distribution from the permuted targets; None without permutations.
    simple_until
        Before this arrival, a column that changes nothing else is only counted in the histogram.
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
        """Count columns of these relevances, after `arrived` others."""
        stop = arrived + stats.m2.size
        if stop > self.simple_until:
            self.sample.add(chunk, stats, arrived, target.weights)
            if self.null is not None:
                self.null.add(chunk, stats, space, relevance, arrived)
            if arrived < MOST_POINTS:
                self.first = np.append(self.first, np.maximum(relevance, -1.0))[:MOST_POINTS]
            self._update_simple_until(stop)
        self.histogram.add(relevance, arrived)

    def _update_simple_until(self, arrived: int) -> None:
        self.simple_until = arrived
        if self.null is None and arrived >= MOST_POINTS:
            self.simple_until = next_sampled(arrived)

    def merge(self, other: StreamSummary, arrived: int, size: int) -> None:
        """Add the counts of another, `size` columns that arrived after `arrived` of mine."""
        if arrived < MOST_POINTS:
            self.first = np.append(self.first, other.first)[:MOST_POINTS]
        self.histogram.merge(other.histogram, arrived, size)
        self.sample.merge(other.sample)
        if self.null is not None and other.null is not None:
            self.null.merge(other.null, arrived)
        self._update_simple_until(arrived + size)

    # Copies, files

    def copy(self) -> Self:
        """Return a copy that later counts do not change."""
        other = copy.copy(self)
        other.histogram, other.sample = self.histogram.copy(), copy.copy(self.sample)
        other.null = copy.copy(self.null)
        return other

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        state: dict[str, Any] = {"first": self.first, "histogram": self.histogram.to_state()}
        state["sample"] = self.sample.to_state()
        return state if self.null is None else state | {"null": self.null.to_state()}

    def set_state(self, state: dict[str, Any], arrived: int) -> None:
        """Restore the state that `to_state` returned after `arrived` columns."""
        size = min(arrived, MOST_POINTS)
        expect(state, first=Array((size,), least=-1.0, below=1.0 + 1e-6))
        self.first = np.array(state["first"])
        self.histogram = Histogram.restored(state["histogram"], arrived)
        self.sample.set_state(state["sample"], arrived)
        if self.null is not None:
            self.null.set_state(state["null"])
        self._update_simple_until(arrived)
