"""Cross-moments over an aligned window: variables and targets tracked in all of its rows."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from streamsel._kernels import aligned_moments as loops
from streamsel._utils.rollback import Restore
from streamsel.serialization.invariants import (
    expect_between,
    expect_bounded,
    expect_products,
    expect_weights,
    expect_within,
)
from streamsel.serialization.schema import (
    ArrayKind,
    CountKind,
    FloatKind,
    ListKind,
    NamesKind,
    expect,
    expect_shapes,
    length_in,
)
from streamsel.state.base import Floats, Indices
from streamsel.state.moments.aligned_columns import (
    BUFFER_ROWS,
    PRODUCT_ROWS,
    WEIGHT_RTOL,
    AlignedColumns,
    products_of,
)

# Weights are divided by a power of two, which causes no rounding, once a row weighs more.
_MAX_ROW_WEIGHT = 1024.0
# Numbers per matrix product, and minimum number of rows.
_BLOCK_SIZE = 1 << 17
_MIN_BLOCK_ROWS = 512


class AlignedMoments(AlignedColumns):
    """Weighted sums of products of columns with one another, over rows that had all of them.

    The columns are the targets, the variables, and a missing indicator for each variable that was
    missing in some row: 1 in these rows and 0 in others. Let z be a variable about its shift, 0
    where missing, g its indicator and μ = Σz / (n - Σg) its mean. Then z - μ + μg is the centred
    variable with missing values replaced by the mean; its products follow from those of z and g.

    The shift of a variable is its approximate mean if that exceeds its spread, to avoid
    cancellation. Otherwise it is 0, and a row in which the variable is absent costs no work.

    Parameters
    ----------
    keep
        Fraction of its weight that a row keeps with each later row.

    Attributes
    ----------
    counts
        The following numbers, and the number of buffered rows, in the layout of
        `aligned_moments.learn_products`.
    n, unit, squares
        The weight of all rows, that of the newest, and the sum of the squared weights.
    rows
        Rows learnt.
    index_of
        The variables: name -> column.
    missing_columns
        Variables that were missing in some row: name -> column of the missing indicator.
    targets
        The (c,) columns of the targets.
    shift, sums, S
        As in `aligned_moments.learn_products`, with spare capacity for more columns.
    """

    # Learning

    def begin(
        self, names: Sequence[Hashable], mean: Floats, products: Floats, c: int, n: int
    ) -> None:
        """Continue from n rows learnt as columns: c targets, and then these variables.

        Parameters
        ----------
        names
            Names of the p variables.
        mean, products
            (c + p,), (c + p, c + p) of targets and variables: means, and sums of products about
            these.
        c, n
            Number of targets, and of rows.
        """
        self.add_targets(c)
        self.add(names)
        self.shift[: c + len(names)] = mean
        self.S[: c + len(names), : c + len(names)] = products
        self.n = self.squares = float(n)
        self.rows, self.next_shift_update = n, 2 * n
        self.update_shifts()

    def has_new_missing(self, values: Floats, indices: Indices) -> bool:
        """Return whether a variable is missing for the first time."""
        return bool(
            loops.needs_missing_column(values, indices, self._column_of, self._missing_column_of)
        )

    def prepare_one(self) -> None:
        """Compute the products of the buffered rows if the buffer is full."""
        is_full = self.counts[loops.N_BUFFERED] >= PRODUCT_ROWS
        self._pending_products = self._buffered_products() if is_full else None

    def learn_one(
        self,
        counters: Floats,
        step: float,
        values: Floats,
        indices: Indices,
        y: Floats,
        weight: float,
    ) -> None:
        """Learn a row of values, NaN if missing, and targets, unless it was learnt before.

        Parameters
        ----------
        counters, step
            Counters of the moments, and the step number at which this window learns the row. It
            takes two steps.
        values, indices
            The indices refer to the names of `extend_indices`. A variable that is missing must have
            an indicator (`note_missing`).
        y
            (c,) targets.
        weight
            Weight of the row.
        """
        if self._pending_products is not None:
            loops.add_buffered(counters, step, self._pending_products, self.counts, self.S)
        loops.learn_products(
            counters,
            step,
            values,
            indices,
            self._column_of,
            self._missing_column_of,
            y,
            self.targets,
            weight,
            self.counts,
            self.size,
            self.shift,
            self.sums,
            self.S,
            self.buffer,
        )

    @staticmethod
    def rows_at_once(width: int) -> int:
        """Return how many rows of so many variables and targets can be learnt at once."""
        return max(_MIN_BLOCK_ROWS, _BLOCK_SIZE // max(1, width))

    def prepare_many(
        self,
        at_step: tuple[Floats, float],
        X: Floats,
        indices: Indices,
        Y: Floats,
        weights: Floats | None,
    ) -> tuple[Callable[..., object], tuple[Any, ...]]:
        """Return the step that learns rows, (b, m), of these weights, and targets, (b, c).

        The step runs when the step counter of the moments has the value in `at_step`.
        """
        own, gap = self._column_of[indices], self._missing_column_of[indices]
        if (own < 0).any():
            X, own, gap = X[:, own >= 0], own[own >= 0], gap[own >= 0]
        w: Floats = np.ones(len(X))
        if self.keep < 1.0:
            first = self.unit / self.keep if self.rows else 1.0
            w = np.asarray(first * self.keep ** -np.arange(len(X)))
        unit = float(w[-1])
        if weights is not None:
            w = w * weights
        shift = self._levels(X, own, gap, Y)
        Z, columns = self._about_shifts(X, own, gap, Y, shift)
        weighted = self.keep < 1.0 or weights is not None
        products = np.ascontiguousarray(products_of(Z, w) if weighted else Z.T @ Z)
        sums = (columns, shift[columns], w @ Z, products)
        counted = (len(X), unit, float(w.sum()), float(w @ w))
        state = (self.counts, self.shift, self.sums, self.S)
        return loops.learn_row_block, (*at_step, *sums, *counted, *state)

    def _about_shifts(
        self, X: Floats, own: Indices, gap: Indices, Y: Floats, shift: Floats
    ) -> tuple[Floats, Indices]:
        """Return rows about the shifts, in the columns that are not 0, and these columns."""
        have_gaps = np.flatnonzero(gap >= 0)
        # An absent variable is 0 in all these rows.
        absent = shift[: self.size] != 0.0
        absent[own] = absent[self.targets] = False
        rest = np.flatnonzero(absent)
        columns = np.concatenate([own, self.targets, gap[have_gaps], rest])
        Z = np.empty((len(X), columns.size))
        m, c = own.size, self.targets.size
        np.subtract(X, shift[own], out=Z[:, :m])
        np.subtract(Y, shift[self.targets], out=Z[:, m : m + c])
        if have_gaps.size:
            missing = np.isnan(X[:, have_gaps])
            Z[:, have_gaps] = np.where(missing, 0.0, Z[:, have_gaps])
            Z[:, m + c : m + c + have_gaps.size] = missing
        Z[:, m + c + have_gaps.size :] = -shift[rest]
        return Z, columns

    def _levels(self, X: Floats, own: Indices, gap: Indices, Y: Floats) -> Floats:
        """Return the next shifts: for a new variable, the mean of its first values."""
        shift = self.shift.copy()
        known = np.where(gap >= 0, self.sums[gap], 0.0) if gap.size else np.zeros(0)
        new = (self.sums[own] == 0.0) & (self.n - known <= WEIGHT_RTOL * self.n)
        if new.any():
            first_values = X[:, new]
            seen = ~np.isnan(first_values)
            total = np.where(seen, first_values, 0.0).sum(axis=0)
            shift[own[new]] = total / np.maximum(seen.sum(axis=0), 1)
        if self.n == 0.0:
            shift[self.targets] = Y.mean(axis=0)
        return shift

    # Periodic maintenance

    @property
    def rows_until_maintenance(self) -> float:
        """The minimum number of rows before `maintain` has work to do."""
        until_update = self.next_shift_update - self.rows
        if self.keep == 1.0:
            return until_update
        return min(
            until_update, math.floor(math.log(_MAX_ROW_WEIGHT / self.unit) / -math.log(self.keep))
        )

    @property
    def needs_maintenance(self) -> bool:
        """Whether `maintain` has work to do after the next row."""
        return self.rows + 1 >= self.next_shift_update or self.unit / self.keep > _MAX_ROW_WEIGHT

    def maintain(self) -> None:
        """Rescale weights that have grown large, and update the shifts when due."""
        self._next = loops.BY_SIZE
        if self.unit > _MAX_ROW_WEIGHT:
            self.rescale(2.0 ** -math.frexp(self.unit)[1])
            self.update_shifts()
        if self.rows >= self.next_shift_update:
            self.next_shift_update = 2 * self.rows
            self.update_shifts()

    def saved(self, indices: Indices) -> Restore:
        """Return a function that undoes the next row, of these variables, before `maintain`."""
        if self.n_buffered >= PRODUCT_ROWS:
            self.flush_buffer()
        counts, shift, sums, S = self.counts, self.shift, self.sums, self.S
        before = counts.copy(), shift.copy(), sums.copy()
        of_row = self._column_of[indices[indices < self._column_of.size]]
        if 8 * of_row.size >= self.size:  # the row is only written into the buffer
            changed, self._next = np.zeros(0, dtype=np.intp), loops.TO_BUFFER
        else:
            moved = np.flatnonzero(shift[: self.size])
            gaps = np.array([*self.missing_columns.values()], dtype=np.intp)
            some = [of_row[of_row >= 0], self.targets, moved, gaps]
            changed, self._next = np.unique(np.concatenate(some)).astype(np.intp), loops.TO_ADD
        block = S[changed[:, None], changed]

        def restore() -> None:
            for array, values in zip((counts, shift, sums), before, strict=True):
                array[:] = values
            S[changed[:, None], changed] = block

        return restore

    def snapshot(self) -> Restore:
        """Return a function that restores the current state."""
        restored = super().snapshot()

        def restore() -> None:
            restored()
            # Spare columns must be 0, because new columns were 0 in all rows.
            size = self.size
            self.S[size:], self.S[:, size:] = 0.0, 0.0
            self.shift[size:], self.sums[size:], self.buffer[:, size:] = 0.0, 0.0, 0.0

        return restore

    def expect_valid(self) -> None:
        """Raise ValueError for values that no data can produce, as in a corrupt file."""
        size, weights = self.size, self.weights
        expect_weights(self.n, self.unit, self.squares, self.rows)
        expect_between("weights", weights, 0.0, 1e300)
        expect_bounded("values", self.shift[:size], self.buffer[: len(weights), :size])
        S, sums = self.S[:size, :size], self.sums[:size]
        expect_products(S)
        # The square of a sum is at most the sum of squares times the total weight; `sums` includes
        # the buffered rows.
        squares = self.squares_of(np.arange(size))
        expect_within(sums, np.sqrt(np.abs(squares) * self.n), squares)

    # Files

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        size, q = self.size, self.n_buffered
        return {
            "weights": [self.n, self.unit, self.squares],
            "rows": self.rows,
            "next_look": self.next_shift_update,
            "names": self.names,
            "with_missing": list(self.missing_columns),
            "columns": np.array(
                [*self.targets.tolist(), *self.index_of.values(), *self.missing_columns.values()],
                dtype=np.int64,
            ),
            "shift": self.shift[:size],
            "sums": self.sums[:size],
            "S": self.S[:size, :size],
            "buffered": self.buffer[:q, :size],
            "buffered_weights": self.weights,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""
        expect(state, weights=ListKind(3, FloatKind(0.0)), rows=CountKind(), next_look=CountKind())
        size, q = length_in(state, "columns"), length_in(state, "buffered")
        expect(
            state, columns=ArrayKind((size,), np.int64, minimum=0, below=size), names=NamesKind()
        )
        expect(state, with_missing=NamesKind(dict.fromkeys(state["names"])))
        self.n, self.unit, self.squares = state["weights"]
        self.rows, self.next_shift_update = state["rows"], state["next_look"]
        columns = state["columns"]
        expect_shapes(
            state,
            shift=(size,), sums=(size,), S=(size, size),
            buffered=(q, size), buffered_weights=(q,),
        )  # fmt: skip
        names, with_gaps = state["names"], state["with_missing"]
        c = size - len(names) - len(with_gaps)
        if q > BUFFER_ROWS or c < 0 or not np.array_equal(np.sort(columns), np.arange(size)):
            raise ValueError("Expected cross-moments of distinct columns. Got: others.")
        self._add_zero_columns(size)
        own = columns.tolist()
        self.targets = columns[:c].astype(np.intp)
        self.index_of = dict(zip(names, own[c : c + len(names)], strict=True))
        self.missing_columns = dict(zip(with_gaps, own[c + len(names) :], strict=True))
        self.shift[:size], self.sums[:size] = state["shift"], state["sums"]
        self.S[:size, :size], self.buffer[:q, :size] = state["S"], state["buffered"]
        self.counts[loops.BUFFERED_WEIGHTS : loops.BUFFERED_WEIGHTS + q] = state["buffered_weights"]
        self.n_buffered = q


# A window, whether unknown variables were 0 in its rows, and the names of its model's targets.
WindowToMerge = tuple[AlignedMoments, bool, list[Hashable]]


def merge_windows(mine: WindowToMerge, theirs: WindowToMerge) -> None:
    """Add the rows of another window, for the variables in both.

    The targets of `mine` must include those of the other.
    """
    (one, one_open, targets), (other, other_open, others) = mine, theirs
    other = copy.deepcopy(other)
    one.add_targets(len(targets) - len(one.targets))
    _reorder_targets(other, others, targets)
    _align_variables(one, other, one_open=one_open, other_open=other_open)
    for window, further in ((one, other), (other, one)):
        window.add_missing_columns(further.missing_columns)
        window.flush_buffer()
    other.rescale(one.unit / other.unit)
    _align_shifts(one, other)
    my_columns, other_columns = (
        _columns(one, list(one.index_of)),
        _columns(other, list(one.index_of)),
    )
    with_gaps = list(one.missing_columns)
    my_columns = np.append(my_columns, [one.missing_columns[name] for name in with_gaps]).astype(
        np.intp
    )
    other_columns = np.append(
        other_columns, [other.missing_columns[name] for name in with_gaps]
    ).astype(np.intp)
    one.S[my_columns[:, None], my_columns] += other.S[other_columns[:, None], other_columns]
    one.sums[my_columns] += other.sums[other_columns]
    one.n += other.n
    one.squares += other.squares
    one.rows += other.rows
    one.next_shift_update = 2 * one.rows
    one.update_shifts()


def _reorder_targets(
    window: AlignedMoments, names: list[Hashable], ordered: list[Hashable]
) -> None:
    """Reorder the targets as `ordered`; new targets count as 0 in all earlier rows."""
    columns = dict(zip(names, window.targets.tolist(), strict=True))
    new = [name for name in ordered if name not in columns]
    window.add_targets(len(new))
    columns |= dict(zip(new, window.targets[len(names) :].tolist(), strict=True))
    window.targets = np.array([columns[name] for name in ordered], dtype=np.intp)


def _align_variables(
    one: AlignedMoments, other: AlignedMoments, *, one_open: bool, other_open: bool
) -> None:
    if one_open:
        one.add([name for name in other.index_of if name not in one.index_of])
    if other_open:
        other.add([name for name in one.index_of if name not in other.index_of])
    both = one.index_of.keys() & other.index_of.keys()
    one.keep_only(both)
    other.keep_only(both)


def _align_shifts(one: AlignedMoments, other: AlignedMoments) -> None:
    own, gap, seen, _ = one.observed()
    other_columns = _columns(other, list(one.index_of))
    # The shift of a variable that was never observed is arbitrary.
    new = seen == 0.0
    one.shift[own[new]] = other.shift[other_columns[new]]
    of_gaps = np.full(other_columns.size, -1, dtype=np.intp)
    with_gaps = np.flatnonzero(gap >= 0)
    names = [*([None] * len(one.targets)), *one.index_of]
    of_gaps[with_gaps] = [other.missing_columns[names[i]] for i in with_gaps.tolist()]
    other.set_shifts(other_columns, of_gaps, one.shift[own])


def _columns(window: AlignedMoments, names: list[Hashable]) -> Indices:
    """Return the columns of targets and variables."""
    columns = [*window.targets.tolist(), *(window.index_of[name] for name in names)]
    return np.array(columns, dtype=np.intp)
