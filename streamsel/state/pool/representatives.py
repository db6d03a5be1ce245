"""A bounded pool of representative columns, weighted by those that they represent."""

from __future__ import annotations

import copy
import math
from typing import Any, NamedTuple, Self

import numpy as np

from streamsel._kernels.lapack import add_square
from streamsel._kernels.representatives import (
    add_dissimilar,
    find_pivots,
    pass_on_weights,
    weigh,
)
from streamsel._utils.numeric import TIE_RTOL, argsort_by_relevance, mirror
from streamsel.data.chunks import Chunk, Stats
from streamsel.serialization.invariants import expect_between
from streamsel.serialization.schema import (
    ArrayKind,
    BoolKind,
    CountKind,
    FloatKind,
    expect,
    expect_shapes,
)
from streamsel.state.base import Floats, Indices, VariableTable
from streamsel.state.histogram import RelevanceCounts
from streamsel.state.pool.pool import Pool
from streamsel.targets.space import TargetSpace

# A residual below this fraction of the largest is zero.
_ZERO_TOL = 1e-10
# Rounding error of a correlation.
_RTOL = 1e-9
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
        (m, m) correlations; the lower triangle is read.
    squares
        (m,) squared relevances.
    weights
        (m,) current weight of each.
    limit
        Largest number of variables to keep.
    """
    kept, threshold = _pivots(R, np.sqrt(weights * squares), limit)
    is_kept = np.zeros(weights.size, dtype=np.bool_)
    is_kept[kept] = True
    if len(kept) < limit:
        order = argsort_by_relevance(squares)
        further = np.empty(limit - len(kept), dtype=np.intp)
        count = add_dissimilar(R, order, is_kept, further, _REPRESENTED_SHARE)
        threshold = float(squares[further].min()) if count == further.size else 0.0
    indices = np.flatnonzero(is_kept)
    new_weights = np.empty(indices.size)
    pass_on_weights(R, indices, weights, new_weights)
    return RepresentativeSet(indices, new_weights, threshold)


def _pivots(R: Floats, w: Floats, limit: int) -> tuple[Indices, float]:
    """Return the first pivots of w R w, and the residual of the last.

    The matrix is updated once per block of pivots, by one matrix product; the row of a pivot is
    corrected for the earlier pivots of its block when it is used.
    """
    A, residual = np.empty(R.shape), np.empty(w.size)
    weigh(R, w, A, residual)
    zero = _ZERO_TOL * float(residual.max())
    picks, pivots = np.empty(limit, dtype=np.intp), np.zeros(limit)
    rows = np.empty((_BLOCK, w.size))
    for first in range(0, limit, _BLOCK):
        block = slice(first, min(first + _BLOCK, limit))
        size = block.stop - first
        found = find_pivots(A, residual, zero, rows, picks[block], pivots[block])
        if found < size:
            count = first + found
            return picks[:count], float(pivots[count - 1]) if count else 0.0
        if block.stop < limit:
            add_square(rows[:size], A, -1.0)
    return picks, float(pivots[-1])


def _packed(A: Floats) -> Floats:
    """Return the lower triangle of a matrix, row by row."""
    packed: Floats = A[np.tril_indices(len(A))]
    return packed


def _unpacked(state: dict[str, Any], max_variables: int) -> Floats | None:
    """Return the correlations in a file, of at most `max_variables` variables; None for none."""
    size = state["n_correlated"]
    if size > max_variables:
        raise ValueError(
            f"Expected correlations of at most {max_variables} variables. Got: {size}."
        )
    expect_shapes(state, correlations=(size * (size + 1) // 2,))
    R = np.zeros((size, size))
    R[np.tril_indices(size)] = state["correlations"]
    return R if size else None


class Representatives(Pool):
    """Pool of at most twice `limit` columns with their observations, each with a weight.

    A sufficiently relevant column enters with weight 1. When the pool holds twice the limit it is
    cut back (`select_representatives`). The weight of a kept column thus counts the similar columns
    that arrived, not only itself.

    Parameters
    ----------
    space, n, limit, target_rows
        As in `Pool`.
    min_counted_relevance
        The relevance from which columns are counted.

    Attributes
    ----------
    threshold
        A column whose squared relevance is not above this is discarded.
    histogram
        Histogram of the relevances of all columns, from `min_counted_relevance` on.
    has_discarded
        Whether a column related to the target was discarded.
    cut_state
        Correlations of the variables that the last cut kept; only the lower triangle is valid.
    """

    def __init__(
        self,
        space: TargetSpace | None,
        n: int,
        limit: int,
        min_counted_relevance: float,
        target_rows: Floats | None = None,
    ) -> None:
        super().__init__(space, n, limit, samples=True, target_rows=target_rows)
        self.limit: int = limit
        self.threshold = 0.0
        self.histogram = RelevanceCounts(min_counted_relevance)
        self.has_discarded = False

    def _fields(self) -> dict[str, tuple[int, ...]]:
        return super()._fields() | {"weight": ()}

    def rows_of(
        self, chunk: Chunk, stats: Stats, indices: Indices | None, out: Floats | None = None
    ) -> dict[str, Floats]:
        """Return the table rows of these columns of a chunk; None for all with moments."""
        rows = super().rows_of(chunk, stats, indices, out)
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
        return min(math.sqrt(self.threshold), self.histogram.min_relevance)

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
        R = self._all_correlations()
        kept = select_representatives(
            R, np.square(self.relevance()), self.table["weight"], self.limit
        )
        self.keep(kept.indices, spare=2 * self.limit - len(kept.indices))
        self.table["weight"][:] = kept.weight
        self.cut_state = R[kept.indices[:, None], kept.indices]
        self.threshold, self.has_discarded = max(self.threshold, kept.threshold), True

    def products(self, indices: Indices | int) -> Floats:
        """Return the (p, s) correlations of all variables with some, or (p,) with one."""
        everything = np.arange(len(self.table))
        if isinstance(indices, int) or not np.array_equal(indices, everything):
            return super().products(indices)
        R = self._all_correlations()
        mirror(R)
        return R

    def _all_correlations(self) -> Floats:
        """Return the correlations of all variables; only the lower triangle is valid."""
        unit, known = self.table["unit"], self.cut_state
        if known is None:
            return unit @ unit.T
        # Variables that the last cut kept come first.
        old, new = unit[: len(known)], unit[len(known) :]
        R = np.empty((len(unit), len(unit)))
        R[: len(known), : len(known)] = known
        np.matmul(new, old.T, out=R[len(known) :, : len(known)])
        np.matmul(new, new.T, out=R[len(known) :, len(known) :])
        return R

    def merge(self, other: Self, arrived: int) -> None:
        """Add all variables of another pool, which arrived after `arrived` columns."""
        if not len(self.table):
            self.cut_state = other.cut_state
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
        # A weight counts the column itself, 1, and shares of others.
        expect_between("weights of representatives", self.table["weight"], 0.99, 2.0**53)
        if self.cut_state is not None:
            expect_between("correlations", self.cut_state, -1.0 - _RTOL, 1.0 + _RTOL)

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
            "n_correlated": 0 if self.cut_state is None else len(self.cut_state),
            "correlations": np.zeros(0) if self.cut_state is None else _packed(self.cut_state),
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
        # Files of earlier versions have no correlations. Computed again, these would have other
        # rounding errors.
        if "n_correlated" in state or "correlations" in state:
            expect(state, n_correlated=CountKind())
            self.cut_state = _unpacked(state, len(self.table))
        self.threshold, self.has_discarded = state["threshold"], state["has_discarded"]
        self.histogram.counts = state["histogram"]
