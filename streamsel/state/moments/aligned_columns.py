"""Sums of products of columns about shifts, and buffered rows to be added to them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from streamsel._kernels import aligned_moments as loops
from streamsel.state.base import Floats, Indices, State, counter

# Largest number of buffered rows, and the number that one matrix product adds. Refreshes are after
# 20, 40, 80, ... rows: with a multiple of 16, most products would begin together with a refresh.
BUFFER_ROWS, PRODUCT_ROWS = 64, 60
# Fraction of the weight of all rows that may be rounding.
WEIGHT_RTOL = 1e-9
# Shifts of at least 1 / `_WIDE_SHARE` of the columns are updated in blocks of rows.
_WIDE_SHARE, _ROWS_OF_BLOCK = 8, 32
# Rows before the first update of the shifts.
_FIRST_SHIFT_UPDATE = 8


class AlignedColumns(State):
    """The columns of an aligned window, and the weighted sums of their products.

    Parameters and attributes are those of `AlignedMoments`.
    """

    changing = (
        *(
            "counts",
            "size",
            "index_of",
            "missing_columns",
            "targets",
            "shift",
            "sums",
            "S",
            "buffer",
        ),
        *("next_shift_update", "_column_of", "_missing_column_of", "_pending_products"),
    )

    n: float = counter(loops.WEIGHT)
    unit: float = counter(loops.UNIT)
    squares: float = counter(loops.SQUARES)
    rows: int = counter(loops.ROWS, int)
    n_buffered: int = counter(loops.N_BUFFERED, int)
    _next: int = counter(loops.NEXT_MODE, int)

    def __init__(self, keep: float) -> None:
        self.keep = keep
        self.counts: Floats = np.zeros(loops.BUFFERED_WEIGHTS + BUFFER_ROWS)
        self.unit = 1.0
        self.size = 0
        self.index_of: dict[Hashable, int] = {}
        self.missing_columns: dict[Hashable, int] = {}
        self.targets: Indices = np.zeros(0, dtype=np.intp)
        self.shift: Floats = np.zeros(0)
        self.sums: Floats = np.zeros(0)
        self.S: Floats = np.zeros((0, 0))
        # Buffer of rows with many values, which are added when it is full.
        self.buffer: Floats = np.zeros((BUFFER_ROWS, 0))
        # Products of the buffered rows, if these must be added before the next row.
        self._pending_products: Floats | None = None
        self.next_shift_update = _FIRST_SHIFT_UPDATE
        # Index in `moments.table` -> column, and column of the missing indicator.
        self._column_of: Indices = np.zeros(0, dtype=np.intp)
        self._missing_column_of: Indices = np.zeros(0, dtype=np.intp)

    @property
    def names(self) -> list[Hashable]:
        """The variables, in order of arrival."""
        return list(self.index_of)

    @property
    def weights(self) -> Floats:
        """The weights of the buffered rows."""
        return self.counts[loops.BUFFERED_WEIGHTS : loops.BUFFERED_WEIGHTS + self.n_buffered]

    # Columns

    def _add_zero_columns(self, count: int) -> range:
        """Return the indices of new columns, which were 0 in all rows."""
        start, stop = self.size, self.size + count
        if stop > len(self.S):
            room = max(stop, 2 * len(self.S), 16)
            S, shift, sums = np.zeros((room, room)), np.zeros(room), np.zeros(room)
            waiting = np.zeros((BUFFER_ROWS, room))
            S[:start, :start] = self.S[:start, :start]
            shift[:start], sums[:start] = self.shift[:start], self.sums[:start]
            waiting[:, :start] = self.buffer[:, :start]
            self.S, self.shift, self.sums, self.buffer = S, shift, sums, waiting
        self.size = stop
        return range(start, stop)

    def add_targets(self, count: int) -> None:
        """Add new target columns, which were 0 before this row."""
        self.targets = np.append(
            self.targets, np.array(self._add_zero_columns(count), dtype=np.intp)
        )

    def add(self, names: Sequence[Hashable]) -> None:
        """Add variables that were 0 in all rows."""
        self.index_of.update(zip(names, self._add_zero_columns(len(names)), strict=True))

    def add_missing_columns(self, names: Iterable[Hashable]) -> None:
        """Add missing indicators of variables that were never missing so far."""
        new = [name for name in names if name in self.index_of and name not in self.missing_columns]
        self.missing_columns.update(zip(new, self._add_zero_columns(len(new)), strict=True))

    def keep_only(self, names: AbstractSet[Hashable]) -> None:
        """Drop all variables but these."""
        if self.index_of.keys() <= names:
            return
        self.flush_buffer()
        index_of, gaps = (
            {name: column for name, column in columns.items() if name in names}
            for columns in (self.index_of, self.missing_columns)
        )
        kept = np.sort([*self.targets.tolist(), *index_of.values(), *gaps.values()])
        kept = kept.astype(np.intp)
        self.S = np.ascontiguousarray(self.S[np.ix_(kept, kept)])
        self.shift, self.sums, self.size = self.shift[kept], self.sums[kept], kept.size
        self.buffer = np.zeros((BUFFER_ROWS, kept.size))
        new_index = {before: column for column, before in enumerate(kept.tolist())}
        self.index_of = {name: new_index[column] for name, column in index_of.items()}
        self.missing_columns = {name: new_index[column] for name, column in gaps.items()}
        self.targets = np.array(
            [new_index[column] for column in self.targets.tolist()], dtype=np.intp
        )

    def clear_indices(self) -> None:
        """Clear the map from indices in `moments.table` to columns."""
        self._column_of = self._missing_column_of = np.zeros(0, dtype=np.intp)

    def extend_indices(self, names: Sequence[Hashable]) -> None:
        """Extend the map from indices to columns by those names that it does not have yet."""
        new = names[self._column_of.size :]
        index = np.array([self.index_of.get(name, -1) for name in new], dtype=np.intp)
        gap = np.array([self.missing_columns.get(name, -1) for name in new], dtype=np.intp)
        self._column_of = np.append(self._column_of, index)
        self._missing_column_of = np.append(self._missing_column_of, gap)

    def has_missing_columns(self, indices: Indices) -> bool:
        """Return whether every variable at these indices has a missing indicator or no column."""
        return bool(
            ((self._missing_column_of[indices] >= 0) | (self._column_of[indices] < 0)).all()
        )

    def note_missing(self, missing: Indices, names: Sequence[Hashable]) -> None:
        """Add missing indicators of the variables at indices `missing` of the names."""
        before = len(self.missing_columns)
        self.add_missing_columns([names[index] for index in np.sort(missing).tolist()])
        if len(self.missing_columns) > before:
            self.clear_indices()
            self.extend_indices(names)

    # Buffered rows

    def _buffered_products(self) -> Floats:
        """Return the sums of products of the buffered rows."""
        return products_of(self.buffer[: self.n_buffered, : self.size], self.weights)

    def flush_buffer(self) -> None:
        """Add the buffered rows."""
        if self.n_buffered:
            products, size = self._buffered_products(), self.size
            if size == len(self.S):
                products += self.S
                self.S = products
            else:
                S = self.S.copy()
                S[:size, :size] += products
                self.S = S
            self.n_buffered = 0

    def rescale(self, factor: float) -> None:
        """Multiply all weights by a factor."""
        self.flush_buffer()
        self.unit *= factor
        self.n *= factor
        self.squares *= factor * factor
        self.sums = self.sums * factor
        self.S = self.S * factor

    def detach(self) -> None:
        """Copy the arrays that compiled loops write into, so that a snapshot keeps the old ones."""
        self.counts, self.S = self.counts.copy(), self.S.copy()
        self.shift, self.sums = self.shift.copy(), self.sums.copy()

    # Shifts

    def observed(self) -> tuple[Indices, Indices, Floats, Floats]:
        """Return columns of targets and variables, their missing indicators, weights, and means.

        The weights are those of the rows that observed them; the means are about the shift.
        """
        own = np.array([*self.targets.tolist(), *self.index_of.values()], dtype=np.intp)
        gap = np.full(own.size, -1, dtype=np.intp)
        if self.missing_columns:
            gap[len(self.targets) :] = [
                self.missing_columns.get(name, -1) for name in self.index_of
            ]
        seen = self.n - np.where(gap >= 0, self.sums[gap], 0.0)
        none = seen <= WEIGHT_RTOL * self.n
        seen[none] = 0.0
        mean = np.where(none, 0.0, self.sums[own] / np.where(none, 1.0, seen))
        return own, gap, seen, mean

    def update_shifts(self) -> None:
        """Set each shift to the mean if that is larger than the spread, else to 0."""
        if self.n_buffered < self.rows:  # otherwise the buffered rows are changed
            self.flush_buffer()
        own, gap, seen, mean = self.observed()
        square = self.squares_of(own) - seen * mean * mean
        variance = np.maximum(square, 0.0) / np.where(seen > 0.0, seen, 1.0)
        level = self.shift[own] + mean
        new_shift = np.where(np.abs(level) > np.sqrt(variance), level, 0.0)
        moves = ((new_shift == 0.0) != (self.shift[own] == 0.0)) | (
            np.abs(mean) > np.sqrt(variance)
        )
        moves &= (new_shift != self.shift[own]) & (seen > 0.0)
        self.set_shifts(own[moves], gap[moves], new_shift[moves])

    def set_shifts(self, own: Indices, gap: Indices, shift: Floats) -> None:
        """Change the shifts of columns `own`, whose missing indicators are `gap`.

        Either all rows are buffered, or none.
        """
        if not own.size:
            return
        d = shift - self.shift[own]
        if self.n_buffered:
            self._move_buffered(own, gap, d, shift)
            return
        size = self.size
        have_gaps = np.flatnonzero(gap >= 0)
        if not have_gaps.size and _WIDE_SHARE * own.size >= size:
            self._move_shifts(own, d, shift)
            return
        self.detach()
        S, sums = self.S[:size, :size], self.sums[:size]
        change = np.broadcast_to(sums, (own.size, size)).copy()
        change[have_gaps] -= S[gap[have_gaps]]
        weight = np.full(own.size, self.n)
        weight[have_gaps] -= sums[gap[have_gaps]]
        S[own] -= d[:, None] * change
        sums[own] -= d * weight
        change = np.broadcast_to(sums, (own.size, size)).copy()
        change[have_gaps] -= S[:, gap[have_gaps]].T
        S[:, own] -= (d[:, None] * change).T
        self.shift[own] = shift

    def _move_buffered(self, own: Indices, gap: Indices, d: Floats, shift: Floats) -> None:
        """Change the shifts of columns by d in the buffered rows."""
        # Arrays are replaced, so that a snapshot keeps the old ones.
        buffer, sums, shifts = self.buffer.copy(), self.sums.copy(), self.shift.copy()
        rows = buffer[: self.n_buffered]
        moves = np.broadcast_to(d, (len(rows), own.size)).copy()
        have_gaps = np.flatnonzero(gap >= 0)
        moves[:, have_gaps] *= rows[:, gap[have_gaps]] == 0.0
        rows[:, own] -= moves
        sums[own] -= self.weights @ moves
        shifts[own] = shift
        self.buffer, self.sums, self.shift = buffer, sums, shifts

    def _move_shifts(self, own: Indices, d: Floats, shift: Floats) -> None:
        """Change the shifts of many columns by d, without missing values: by blocks of rows."""
        size = self.size
        moves = np.zeros(size)
        moves[own] = d
        sums, shifts = self.sums.copy(), self.shift.copy()
        sums[:size] -= moves * self.n
        shifts[own] = shift
        # Arrays are replaced, so that a snapshot keeps the old ones.
        S = np.empty_like(self.S) if size == len(self.S) else np.zeros_like(self.S)
        before, after = self.sums[:size], sums[:size]
        for start in range(0, size, _ROWS_OF_BLOCK):
            rows = slice(start, min(start + _ROWS_OF_BLOCK, size))
            block = S[rows, :size]
            np.multiply(moves[rows, None], before, out=block)
            np.subtract(self.S[rows, :size], block, out=block)
            block -= after[rows, None] * moves
        self.counts, self.S = self.counts.copy(), S
        self.sums, self.shift = sums, shifts

    def columns(self, some: Indices | slice) -> Floats:
        """Return a copy of columns of the sums of products, with the buffered rows."""
        found: Floats = self.S[: self.size, some]
        are_all = False
        if isinstance(some, slice):
            found, are_all = found.copy(), found.shape[1] == self.size
        if self.n_buffered and are_all:
            found += self._buffered_products()
        elif self.n_buffered:
            Z = self.buffer[: self.n_buffered, : self.size]
            found += Z.T @ _weighted(Z[:, some], self.weights)
        return found

    def column(self, j: int) -> Floats:
        """Return a copy of one column of the sums of products, with the buffered rows."""
        found: Floats = self.S[: self.size, j].copy()
        if self.n_buffered:
            Z = self.buffer[: self.n_buffered, : self.size]
            found += (self.weights * Z[:, j]) @ Z
        return found

    def squares_of(self, own: Indices) -> Floats:
        """Return the sums of squares of columns, with the buffered rows."""
        found: Floats = self.S[own, own]
        if self.n_buffered:
            found += self.weights @ np.square(self.buffer[: self.n_buffered, own])
        return found


def as_slice(indices: Indices) -> Indices | slice:
    """Return consecutive indices as a slice, whose values are copied several times faster."""
    if not indices.size or indices[-1] - indices[0] != indices.size - 1:
        return indices
    if (indices[1:] <= indices[:-1]).any():
        return indices
    return slice(int(indices[0]), int(indices[-1]) + 1)


def _weighted(Z: Floats, weights: Floats) -> Floats:
    return weights[:, None] * Z


def products_of(Z: Floats, weights: Floats) -> Floats:
    """Return weighted sums of products of all columns, at half the cost of a general product."""
    root = _weighted(Z, np.sqrt(weights))
    products: Floats = root.T @ root
    return products
