"""A bounded pool of the most relevant columns, and the representatives of all of them."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from streamsel.data.chunks import Chunk, Stats
from streamsel.serialization.invariants import expect_between
from streamsel.serialization.schema import ArrayKind, BoolKind, FloatKind, expect
from streamsel.state.base import Floats
from streamsel.state.histogram import RelevanceCounts
from streamsel.state.pool.pool import Pool
from streamsel.state.pool.representatives import RepresentativeSet, select_representatives
from streamsel.targets.space import TargetSpace

# A relevance up to this is rounding.
_MIN_RELEVANCE = 1e-12


class RelevancePool(Pool):
    """Pool of at most twice `limit` of the most relevant columns, with their observations.

    Only their relevance decides which columns are kept, so a column costs only its copy.
    Correlations are computed when the representatives of all columns, `limit` of them, are needed.

    Parameters
    ----------
    space, n, limit, target_rows
        As in `Pool`.
    min_counted_relevance
        The relevance from which columns are counted.

    Attributes
    ----------
    histogram
        Histogram of the relevances of all columns, from `min_counted_relevance` on.
    """

    def __init__(
        self,
        space: TargetSpace,
        n: int,
        limit: int,
        min_counted_relevance: float,
        target_rows: Floats | None = None,
    ) -> None:
        weight = {"weight": ()}
        super().__init__(
            space, n, limit, samples=True, extra_fields=weight, target_rows=target_rows
        )
        self.limit: int = limit
        self.admission_threshold = _MIN_RELEVANCE
        self.histogram = RelevanceCounts(min_counted_relevance)

    @property
    def complete(self) -> bool:
        """Whether no variable related to the target was ever discarded."""
        return self.max_discarded_bound <= _MIN_RELEVANCE

    def admit(
        self,
        chunk: Chunk,
        stats: Stats,
        first_arrival: int,
        extra: Mapping[str, Floats] = {},
    ) -> None:
        """Learn the columns of a chunk, in order."""
        del extra
        assert self._space is not None  # noqa: S101
        relevance = self._space.relevance(stats.m2, stats.cxy)
        if relevance.max(initial=0.0) > self.histogram.min_relevance:
            self._copy_before_write()
            self.histogram.add(relevance)
        super().admit(chunk, stats, first_arrival, {"weight": np.ones(relevance.size)})

    def representatives(self) -> RepresentativeSet:
        """Return the variables that represent all of them, at most `limit`."""
        weights = self.table["weight"]
        if len(self.table) <= self.limit:
            return RepresentativeSet(np.arange(len(self.table)), weights.copy(), 0.0)
        unit = self.table["unit"]
        return select_representatives(
            unit @ unit.T, np.square(self.relevance()), weights, self.limit
        )

    def carried(self) -> Self:
        """Return a pool of the representatives."""
        kept = self.representatives()
        if kept.indices.size == len(self.table):
            return self
        pool = copy.copy(self)
        pool._open, pool.table = None, copy.copy(self.table)
        pool.table.keep(kept.indices)
        pool.table["weight"][:] = kept.weight
        pool.max_discarded_bound = 1.0
        return pool

    def merge(self, other: Self, arrived: int) -> None:
        """Add all variables of another pool, which arrived after `arrived` columns."""
        self._copy_before_write()
        self.histogram.merge(other.histogram)
        super().merge(other, arrived)

    def expect_valid(self) -> None:
        """Raise ValueError for values that no data can produce, as a file may hold."""
        super().expect_valid()
        # A weight counts the column itself, 1, and shares of others.
        expect_between("weights of representatives", self.table["weight"], 0.99, 2.0**53)

    # Undo, copies, files

    def _copied(self) -> dict[str, Any]:
        return super()._copied() | {"histogram": copy.copy(self.histogram)}

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        return super().to_state() | {"histogram": self.histogram.counts}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""
        if "has_discarded" in state:
            state = _of_representatives(state)
        super().set_state(state)
        expect(state, histogram=ArrayKind(self.histogram.counts.shape, np.int64, minimum=0))
        self.histogram.counts = state["histogram"]


def _of_representatives(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of representatives in a file of an earlier version as that of this pool."""
    expect(state, threshold=FloatKind(0.0), has_discarded=BoolKind())
    threshold = max(_MIN_RELEVANCE, math.sqrt(state["threshold"]))
    return state | {
        "admission_threshold": threshold,
        "max_discarded_bound": 1.0 if state["has_discarded"] else -1.0,
    }
