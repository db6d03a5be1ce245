"""Cross-moments over an aligned window: variables and targets tracked in all of its rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from streamsel._jit import period as loops
from streamsel.held.part import Floats, Places
from streamsel.held.period_columns import NEXT_TO_NOTHING, WAITING, Columns, products_of
from streamsel.held.possible import (
    expect_between,
    expect_bounded,
    expect_products,
    expect_weights,
    expect_within,
)
from streamsel.rollback import Restore
from streamsel.shapes import Array, Count, ListOf, Names, Number, expect, expect_shapes, rows_of

# Weights are divided by a power of two, which causes no rounding, once a row weighs more.
_MAX_ROW_WEIGHT = 1024.0
# Numbers per matrix product, and minimum number of rows.
_BLOCK_SIZE = 1 << 17
_MIN_BLOCK_ROWS = 512


class Period(Columns):
    """Weighted sums of products of columns with one another, over rows that had all of them.

    The columns are the targets, the variables, and a missing indicator for each variable that was
    missing in some row: 1 in these rows and 0 in others. With z a variable about its shift, 0 where
    missing, g its indicator and μ = Σz / (n - Σg) its mean, z - μ + μg is the centred variable with
    missing values replaced by the mean; all its products follow from those of z and g.

    The shift of a variable is 0 unless its mean is larger than its spread: an absent variable,
    which is 0, costs nothing unless it is nearly always present, and no digits are lost.

    Parameters
    ----------
    keep
        Fraction of its weight that a row keeps with each later row.

    Attributes
    ----------
    counts
        The following numbers, and the number of buffered rows, in the layout of
        `_jit.period.learn_products`.
    n, unit, squares
        The weight of all rows, that of the newest, and the sum of the squared weights.
    rows
        Rows learnt.
    slots
        The variables: name -> column.
    gaps
        Variables that were missing in some row: name -> column of the missing indicator.
    targets
        The (c,) columns of the targets.
    shift, sums, S
        As in `_jit.period.learn_products`, with spare capacity for more columns.
    """

    # Learning

    def begin(
        self, names: Sequence[Hashable], mean: Floats, products: Floats, c: int, n: int
    ) -> None:
        """Continue from n rows learnt as columns: c targets, and then these variables.

        Parameters
        ----------
        mean, products
            (c + p,), (c + p, c + p) of targets and variables: means, and sums of products about
            these.
        """
        self.add_targets(c)
        self.add(names)
        self.shift[: c + len(names)] = mean
        self.S[: c + len(names), : c + len(names)] = products
        self.n = self.squares = float(n)
        self.rows, self.next_look = n, 2 * n
        self.find_shifts()

    def lacks_gap(self, values: Floats, places: Places) -> bool:
        """Return whether a variable is missing for the first time."""
        return bool(loops.lacks_gap(values, places, self._place, self._gap))

    def prepare_one(self) -> None:
        """Compute the products of the buffered rows if the buffer is full."""
        is_full = self.counts[loops.WAITING] == WAITING
        self._ready = self._waited() if is_full else None

    def learn_one(
        self,
        counters: Floats,
        step: float,
        values: Floats,
        places: Places,
        y: Floats,
        weight: float,
    ) -> None:
        """Learn a row of values, NaN if missing, and targets, unless it was learnt already.

        Parameters
        ----------
        counters, step
            Counters of the moments, and the step number at which this window learns the row. It
            takes two steps.
        values, places
            The indices refer to the names of `find_places`. A variable that is missing must have an
            indicator (`note_gaps`).
        """
        if self._ready is not None:
            loops.add_waiting(counters, step, self._ready, self.counts, self.S)
        loops.learn_products(
            counters,
            step,
            values,
            places,
            self._place,
            self._gap,
            y,
            self.targets,
            weight,
            self.counts,
            self.size,
            self.shift,
            self.sums,
            self.S,
            self.waiting,
        )

    @staticmethod
    def rows_at_once(width: int) -> int:
        """Return how many rows of so many variables and targets can be learnt at once."""
        return max(_MIN_BLOCK_ROWS, _BLOCK_SIZE // max(1, width))

    def prepare_many(
        self,
        turn: tuple[Floats, float],
        X: Floats,
        places: Places,
        Y: Floats,
        weights: Floats | None,
    ) -> tuple[Callable[..., object], tuple[Any, ...]]:
        """Return the step that learns rows, (b, m), of these weights, and targets, (b, c).

        The step runs when the step counter of the moments has the value in `turn`.
        """
        at, gap = self._place[places], self._gap[places]
        if (at < 0).any():
            X, at, gap = X[:, at >= 0], at[at >= 0], gap[at >= 0]
        w: Floats = np.ones(len(X))
        if self.keep < 1.0:
            first = self.unit / self.keep if self.rows else 1.0
            w = np.asarray(first * self.keep ** -np.arange(len(X)))
        unit = float(w[-1])
        if weights is not None:
            w = w * weights
        shift = self._levels(X, at, gap, Y)
        Z, columns = self._about_shifts(X, at, gap, Y, shift)
        weighted = self.keep < 1.0 or weights is not None
        products = np.ascontiguousarray(products_of(Z, w) if weighted else Z.T @ Z)
        sums = (columns, shift[columns], w @ Z, products)
        counted = (len(X), unit, float(w.sum()), float(w @ w))
        state = (self.counts, self.shift, self.sums, self.S)
        return loops.learn_block, (*turn, *sums, *counted, *state)

    def _about_shifts(
        self, X: Floats, at: Places, gap: Places, Y: Floats, shift: Floats
    ) -> tuple[Floats, Places]:
        """Return rows about the shifts, in the columns that are not 0, and these columns."""
        have_gaps = np.flatnonzero(gap >= 0)
        # An absent variable is 0 in all these rows.
        absent = shift[: self.size] != 0.0
        absent[at] = absent[self.targets] = False
        rest = np.flatnonzero(absent)
        columns = np.concatenate([at, self.targets, gap[have_gaps], rest])
        Z = np.empty((len(X), columns.size))
        m, c = at.size, self.targets.size
        np.subtract(X, shift[at], out=Z[:, :m])
        np.subtract(Y, shift[self.targets], out=Z[:, m : m + c])
        if have_gaps.size:
            missing = np.isnan(X[:, have_gaps])
            Z[:, have_gaps] = np.where(missing, 0.0, Z[:, have_gaps])
            Z[:, m + c : m + c + have_gaps.size] = missing
        Z[:, m + c + have_gaps.size :] = -shift[rest]
        return Z, columns

    def _levels(self, X: Floats, at: Places, gap: Places, Y: Floats) -> Floats:
        """Return the next shifts: for a new variable, the mean of its first values."""
        shift = self.shift.copy()
        known = np.where(gap >= 0, self.sums[gap], 0.0) if gap.size else np.zeros(0)
        new = (self.sums[at] == 0.0) & (self.n - known <= NEXT_TO_NOTHING * self.n)
        if new.any():
            first_values = X[:, new]
            seen = ~np.isnan(first_values)
            total = np.where(seen, first_values, 0.0).sum(axis=0)
            shift[at[new]] = total / np.maximum(seen.sum(axis=0), 1)
        if self.n == 0.0:
            shift[self.targets] = Y.mean(axis=0)
        return shift

    # Periodic maintenance

    @property
    def until_due(self) -> float:
        """The minimum number of rows before `tidy` has work to do."""
        until_look = self.next_look - self.rows
        if self.keep == 1.0:
            return until_look
        return min(
            until_look, math.floor(math.log(_MAX_ROW_WEIGHT / self.unit) / -math.log(self.keep))
        )

    @property
    def is_due(self) -> bool:
        """Whether `tidy` has work to do after the next row."""
        return self.rows + 1 >= self.next_look or self.unit / self.keep > _MAX_ROW_WEIGHT

    def tidy(self) -> None:
        """Rescale weights that have grown large, and update the shifts when it is time."""
        self._next = loops.AS_IT_IS
        if self.unit > _MAX_ROW_WEIGHT:
            self.rescale(2.0 ** -math.frexp(self.unit)[1])
            self.find_shifts()
        if self.rows >= self.next_look:
            self.next_look = 2 * self.rows
            self.find_shifts()

    def saved(self, places: Places) -> Restore:
        """Return a function that undoes the next row, of these variables, before `tidy`."""
        if self.n_waiting == WAITING:
            self.add_waiting()
        counts, shift, sums, S = self.counts, self.shift, self.sums, self.S
        before = counts.copy(), shift.copy(), sums.copy()
        of_row = self._place[places[places < self._place.size]]
        if 8 * of_row.size >= self.size:  # the row is only written into the buffer
            at, self._next = np.zeros(0, dtype=np.intp), loops.WAITS
        else:
            moved = np.flatnonzero(shift[: self.size])
            gaps = np.array([*self.gaps.values()], dtype=np.intp)
            some = [of_row[of_row >= 0], self.targets, moved, gaps]
            at, self._next = np.unique(np.concatenate(some)).astype(np.intp), loops.IS_ADDED
        block = S[at[:, None], at]

        def restore() -> None:
            for array, values in zip((counts, shift, sums), before, strict=True):
                array[:] = values
            S[at[:, None], at] = block

        return restore

    def snapshot(self) -> Restore:
        """Return a function that restores the current state."""
        restored = super().snapshot()

        def restore() -> None:
            restored()
            # Spare columns must be 0, because new columns were 0 in all rows.
            size = self.size
            self.S[size:], self.S[:, size:] = 0.0, 0.0
            self.shift[size:], self.sums[size:], self.waiting[:, size:] = 0.0, 0.0, 0.0

        return restore

    def expect_possible(self) -> None:
        """Raise ValueError for values that no data can produce, as a file may hold."""
        size, weights = self.size, self.weights
        expect_weights(self.n, self.unit, self.squares, self.rows)
        expect_between("weights", weights, 0.0, 1e300)
        expect_bounded("values", self.shift[:size], self.waiting[: len(weights), :size])
        S, sums = self.S[:size, :size], self.sums[:size]
        expect_products(S)
        # The square of a sum is at most the sum of squares times the total weight; `sums` includes
        # the buffered rows.
        squares = self.squares_of(np.arange(size))
        expect_within(sums, np.sqrt(np.abs(squares) * self.n), squares)

    # Files

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        size, q = self.size, self.n_waiting
        return {
            "weights": [self.n, self.unit, self.squares],
            "rows": self.rows,
            "next_look": self.next_look,
            "names": self.names,
            "gappy": list(self.gaps),
            "columns": np.array(
                [*self.targets.tolist(), *self.slots.values(), *self.gaps.values()], dtype=np.int64
            ),
            "shift": self.shift[:size],
            "sums": self.sums[:size],
            "S": self.S[:size, :size],
            "waiting": self.waiting[:q, :size],
            "waiting_weights": self.weights,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""
        expect(state, weights=ListOf(3, Number(0.0)), rows=Count(), next_look=Count())
        size, q = rows_of(state, "columns"), rows_of(state, "waiting")
        expect(state, columns=Array((size,), np.int64, least=0, below=size), names=Names())
        expect(state, gappy=Names(dict.fromkeys(state["names"])))
        self.n, self.unit, self.squares = state["weights"]
        self.rows, self.next_look = state["rows"], state["next_look"]
        columns = state["columns"]
        expect_shapes(
            state,
            shift=(size,), sums=(size,), S=(size, size),
            waiting=(q, size), waiting_weights=(q,),
        )  # fmt: skip
        names, gappy = state["names"], state["gappy"]
        c = size - len(names) - len(gappy)
        if q > WAITING or c < 0 or not np.array_equal(np.sort(columns), np.arange(size)):
            raise ValueError("Expected cross-moments of distinct columns. Got: others.")
        self._more(size)
        own = columns.tolist()
        self.targets = columns[:c].astype(np.intp)
        self.slots = dict(zip(names, own[c : c + len(names)], strict=True))
        self.gaps = dict(zip(gappy, own[c + len(names) :], strict=True))
        self.shift[:size], self.sums[:size] = state["shift"], state["sums"]
        self.S[:size, :size], self.waiting[:q, :size] = state["S"], state["waiting"]
        self.counts[loops.WEIGHTS : loops.WEIGHTS + q] = state["waiting_weights"]
        self.n_waiting = q
