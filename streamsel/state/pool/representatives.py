"""A bounded pool of representative columns, weighted by those that they represent."""

from __future__ import annotations

import copy
import math
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import blas

from streamsel._utils.numeric import TIE_RTOL, argsort_by_relevance
from streamsel.data.chunks import Chunk, Stats
from streamsel.serialization.invariants import expect_between
from streamsel.serialization.schema import ArrayKind, BoolKind, FloatKind, expect
from streamsel.state.base import Floats, Indices, VariableTable
from streamsel.state.histogram import RelevanceCounts
from streamsel.state.pool.pool import Pool
from streamsel.targets.space import TargetSpace

# A residual below this part of the largest is zero.
_ZERO_TOL = 1e-10
# A relevance up to this is rounding.
_MIN_RELEVANCE = 1e-12
# Number of pivots per update of the residual matrix.
_BLOCK = 64
# A variable that shares more than this part of its variance with a kept one is represented by it.
_REPRESENTED_SHARE = 0.98


class RepresentativeSet(NamedTuple):
    """The variables that are kept as representatives.

    Parameters
    ----------
    indices
        Their indices, ascending.
    weight
        The weight of each from now on.
    threshold
        The residual of the last pivot: a variable whose squared relevance is not above it would not
        have been a pivot. If others were added after the pivots, the least squared relevance of
        these.
    """

    indices: Indices
    weight: Floats
    threshold: float


def select_representatives(
    R: Floats, squares: Floats, weights: Floats, limit: int
) -> RepresentativeSet:
    """Select the variables that represent all of them.

    The first are the pivots of a Cholesky factorisation: each has the largest residual, weighted by
    weight and relevance, given those before it. When no residual is left, the most relevant
    variables follow, except those similar to a kept one. A discarded variable adds the share of its
    weight that they have in common to the most similar kept variable.

    Parameters
    ----------
    R
        (m, m) correlations.
    squares
        (m,) squared relevances.
    weights
        (m,) current weight of each.
    limit
        Largest number of variables to keep.
    """
    w = np.sqrt(weights * squares)
    kept, threshold = _pivots(np.asfortranarray(w[:, None] * R * w), limit)
    squared_R = np.square(R)
    if len(kept) < limit:
        further = _further(squared_R, squares, kept, limit)
        kept += further
        threshold = float(squares[further].min()) if len(kept) == limit else 0.0
    indices = np.sort(np.array(kept, dtype=np.intp))
    is_discarded = np.ones(weights.size, dtype=np.bool_)
    is_discarded[indices] = False
    similarity = squared_R[np.ix_(is_discarded, indices)]
    nearest = _first_of_largest(similarity)
    new_weights = weights[indices]
    np.add.at(
        new_weights,
        nearest,
        weights[is_discarded] * np.square(similarity[np.arange(nearest.size), nearest]),
    )
    return RepresentativeSet(indices, new_weights, threshold)


def _pivots(A: Floats, limit: int) -> tuple[list[int], float]:
    """Return the first pivots of a matrix, and the residual of the last; A is overwritten.

    The matrix is updated once per block of pivots, by one matrix product; the row of a pivot is
    corrected for the earlier pivots of its block when it is used.
    """
    residual = A.diagonal().copy()
    zero = _ZERO_TOL * float(residual.max())
    rows = np.empty((limit, len(A)))
    picks: list[int] = []
    last_residual = 0.0
    while len(picks) < limit:
        first = len(picks)
        for s in range(first, min(first + _BLOCK, limit)):
            pivot = int(residual.argmax())
            pivot = int((residual >= residual[pivot] * (1.0 - TIE_RTOL)).argmax())
            if residual[pivot] <= zero:
                return picks, last_residual
            last_residual = float(residual[pivot])
            # Only the lower triangle is updated.
            row = np.append(A[pivot, :pivot], A[pivot:, pivot])
            rows[s] = row - rows[first:s, pivot] @ rows[first:s]
            rows[s] /= math.sqrt(last_residual)
            residual -= np.square(rows[s])
            residual[pivot] = -1.0
            picks.append(pivot)
        new = rows[first : len(picks)].T
        A = blas.dsyrk(-1.0, new, beta=1.0, c=A, lower=1, overwrite_c=1)
    return picks, last_residual


def _further(squared_R: Floats, squares: Floats, kept: list[int], limit: int) -> list[int]:
    """Return the most relevant of the others, none similar to another kept one."""
    nearest = squared_R[:, kept].max(axis=1, initial=0.0)
    nearest[kept] = 1.0
    found: list[int] = []
    for j in argsort_by_relevance(squares).tolist():
        if len(kept) + len(found) == limit:
            break
        if nearest[j] <= _REPRESENTED_SHARE:
            found.append(j)
            np.maximum(nearest, squared_R[j], out=nearest)
    return found


def _first_of_largest(values: Floats) -> Indices:
    """Return the index of the largest value in the last axis; the first of equal ones."""
    largest = values.max(axis=-1, keepdims=True)
    first: Indices = (values >= largest * (1.0 - TIE_RTOL)).argmax(axis=-1)
    return first


class Representatives(Pool):
    """Pool of at most twice `limit` columns with their observations, each with a weight.

    A sufficiently relevant column enters with weight 1. When the pool holds twice the limit it is
    cut back (`select_representatives`). The weight of a kept column thus counts the similar columns
    that arrived, not only itself.

    Parameters
    ----------
    space, n, limit, target_rows
        As in `Pool`.
    least
        The relevance from which columns are counted.

    Attributes
    ----------
    threshold
        A column whose squared relevance is not above this is discarded.
    histogram
        Histogram of the relevances of all columns, from `least` on.
    has_discarded
        Whether a column related to the target was discarded.
    """

    def __init__(
        self,
        space: TargetSpace | None,
        n: int,
        limit: int,
        least: float,
        target_rows: Floats | None = None,
    ) -> None:
        super().__init__(space, n, limit, samples=True, target_rows=target_rows)
        self.limit: int = limit
        self.threshold = 0.0
        self.histogram = RelevanceCounts(least)
        self.has_discarded = False

    def _fields(self) -> dict[str, tuple[int, ...]]:
        return super()._fields() | {"weight": ()}

    def rows_of(self, chunk: Chunk, stats: Stats, indices: Indices | None) -> dict[str, Floats]:
        """Return the table rows of these columns of a chunk; None for all with moments."""
        rows = super().rows_of(chunk, stats, indices)
        return rows | {"weight": np.ones(len(rows["m2"]))}

    @property
    def complete(self) -> bool:
        """Whether no variable was ever discarded."""
        return not self.has_discarded

    @property
    def irrelevant_below(self) -> float:
        """The relevance below which a column is discarded without being counted."""
        return self._ignored_below

    @property
    def _ignored_below(self) -> float:
        return min(math.sqrt(self.threshold), self.histogram.least)

    # Learning

    def admit(self, chunk: Chunk, stats: Stats, first_arrival: int, *_: Any, **__: Any) -> None:
        """Learn the columns of a chunk, in order."""
        assert self._space is not None  # noqa: S101
        relevance = self._space.relevance(stats.m2, stats.cxy)
        if relevance.max(initial=0.0) <= self._ignored_below:
            return
        self._copy_before_write()
        self.histogram.add(relevance)
        squares = np.where(relevance > _MIN_RELEVANCE, np.square(relevance), 0.0)
        indices = self._above_threshold(squares, np.flatnonzero(squares))
        while indices.size:
            room = 2 * self.limit - len(self.table)
            self.append(chunk, stats, first_arrival, indices[:room])
            indices = indices[room:]
            self.cut_back()
            indices = self._above_threshold(squares, indices)

    def _above_threshold(self, squares: Floats, indices: Indices) -> Indices:
        above = squares[indices] > self.threshold * (1.0 + TIE_RTOL)
        self.has_discarded |= not above.all()
        return indices[above]

    def cut_back(self) -> None:
        """Cut the pool back to its limit if it holds twice as many."""
        if len(self.table) < 2 * self.limit:
            return
        unit = self.table["unit"]
        kept = select_representatives(
            unit @ unit.T, np.square(self.relevance()), self.table["weight"], self.limit
        )
        self.table.keep(kept.indices)
        self.table["weight"][:] = kept.weight
        self.threshold, self.has_discarded = max(self.threshold, kept.threshold), True

    def merge(self, other: Self, arrived: int) -> None:
        """Add all variables of another pool, which arrived after `arrived` columns."""
        self.append_all(other.table, arrived)
        self.threshold, self.has_discarded = (
            max(self.threshold, other.threshold),
            self.has_discarded or other.has_discarded,
        )
        self.histogram.merge(other.histogram)
        self.cut_back()

    def expect_valid(self) -> None:
        """Raise ValueError for values that no data can produce, as a file may hold."""
        super().expect_valid()
        # Its own weight, and that of others.
        expect_between("weights of representatives", self.table["weight"], 0.99, 2.0**53)

    # Undo, copies, files

    def _copied(self) -> dict[str, Any]:
        return super()._copied() | {"histogram": copy.copy(self.histogram)}

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        return {
            "table": self.table.to_state(),
            "threshold": self.threshold,
            "has_discarded": self.has_discarded,
            "histogram": self.histogram.counts,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""
        size = self.histogram.counts.shape
        expect(
            state,
            threshold=FloatKind(0.0),
            has_discarded=BoolKind(),
            histogram=ArrayKind(size, np.int64, minimum=0),
        )
        self.table = VariableTable.from_state(state["table"], self.table.fields)
        self.expect_fewer_than(2 * self.limit)
        self.threshold, self.has_discarded = state["threshold"], state["has_discarded"]
        self.histogram.counts = state["histogram"]
