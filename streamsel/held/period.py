"""Joint moments over a period: of variables and targets that were watched in all of its rows."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from streamsel._jit.period import learn_products
from streamsel.held.part import Floats, Part, Places
from streamsel.held.possible import (
    expect_between,
    expect_bounded,
    expect_products,
    expect_weights,
    expect_within,
)
from streamsel.shapes import Array, Count, ListOf, Names, Number, expect, expect_shapes, rows_of

# When the weight of a row has grown to this, all are divided by it: a power of two rounds nothing.
_HEAVY = 1024.0
# Rows that wait for one matrix product, and numbers that are made ready for one.
_WAITING = 64
_AT_ONCE = 1 << 17
_ROWS_AT_ONCE = 512
# Of the weight of all rows no more than this is rounding.
_NEXT_TO_NOTHING = 1e-9
# Before so many rows levels are not worth a look.
_FIRST_LOOK = 8


class Period(Part):
    """Weighted sums of products of columns with one another, over rows that had all of them.

    The columns are the targets, the variables, and, of each variable that was not observed in some
    row, a third kind: 1 in these rows and 0 in others. With z a variable about its shift, 0 where
    it was not observed, g that column and μ = Σz / (n - Σg) the mean, z - μ + μg is what the
    variable is about its mean, with the mean where it was not observed; and all its products follow
    from those of z and g.

    The shift of a variable is 0 unless its mean is larger than its spread: so an absent variable,
    which is 0, costs nothing, except where it is nearly always there; and yet no digits are lost.

    Parameters
    ----------
    keep
        What part of its weight a row keeps with every later one.

    Attributes
    ----------
    n, unit, squares
        The weight of all rows, that of the newest, and the sum of the squared weights.
    rows
        Rows learnt.
    slots
        The variables: name -> column.
    gaps
        Those that were not observed in some row: name -> the column that says so.
    targets
        The (c,) columns of the targets.
    shift, sums, S
        As in `_jit.period.learn_products`, with room for more columns.
    """

    def __init__(self, keep: float) -> None:
        self.keep = keep
        self.n, self.unit, self.squares = 0.0, 1.0, 0.0
        self.rows = 0
        self.size = 0
        self.slots: dict[Hashable, int] = {}
        self.gaps: dict[Hashable, int] = {}
        self.targets: Places = np.zeros(0, dtype=np.intp)
        self.shift: Floats = np.zeros(0)
        self.sums: Floats = np.zeros(0)
        self.S: Floats = np.zeros((0, 0))
        # Rows of many values, and their weights, that are added when there are enough.
        self.waiting: Floats = np.zeros((_WAITING, 0))
        self.weights: list[float] = []
        self.next_look = _FIRST_LOOK
        # Slot among the moments -> column, and that of its gaps.
        self._place: Places = np.zeros(0, dtype=np.intp)
        self._gap: Places = np.zeros(0, dtype=np.intp)

    @property
    def names(self) -> list[Hashable]:
        """The variables, in order of arrival."""
        return list(self.slots)

    # Columns

    def _more(self, count: int) -> range:
        """Return so many new columns, which were 0 in all rows."""
        start, stop = self.size, self.size + count
        if stop > len(self.S):
            room = max(stop, 2 * len(self.S), 16)
            S, shift, sums = np.zeros((room, room)), np.zeros(room), np.zeros(room)
            waiting = np.zeros((_WAITING, room))
            S[:start, :start] = self.S[:start, :start]
            shift[:start], sums[:start] = self.shift[:start], self.sums[:start]
            waiting[:, :start] = self.waiting[:, :start]
            self.S, self.shift, self.sums, self.waiting = S, shift, sums, waiting
        self.size = stop
        return range(start, stop)

    def add_targets(self, count: int) -> None:
        """Take up target columns that are new; before this row they were 0."""
        self.targets = np.append(self.targets, np.array(self._more(count), dtype=np.intp))

    def add(self, names: Sequence[Hashable]) -> None:
        """Take up variables that were 0 in all rows."""
        self.slots.update(zip(names, self._more(len(names)), strict=True))

    def add_gaps(self, names: Iterable[Hashable]) -> None:
        """Take up columns that say where these variables were not observed; so far they were."""
        new = [name for name in names if name in self.slots and name not in self.gaps]
        self.gaps.update(zip(new, self._more(len(new)), strict=True))

    def keep_only(self, names: AbstractSet[Hashable]) -> None:
        """Drop all variables but these."""
        if self.slots.keys() <= names:
            return
        self.add_waiting()
        for columns in (self.slots, self.gaps):
            for name in [name for name in columns if name not in names]:
                del columns[name]
        held = np.sort([*self.targets.tolist(), *self.slots.values(), *self.gaps.values()])
        held = held.astype(np.intp)
        self.S = np.ascontiguousarray(self.S[np.ix_(held, held)])
        self.shift, self.sums, self.size = self.shift[held], self.sums[held], held.size
        self.waiting = np.zeros((_WAITING, held.size))
        now = {before: column for column, before in enumerate(held.tolist())}
        self.slots = {name: now[column] for name, column in self.slots.items()}
        self.gaps = {name: now[column] for name, column in self.gaps.items()}
        self.targets = np.array([now[column] for column in self.targets.tolist()], dtype=np.intp)

    def forget_places(self) -> None:
        """Forget where the variables stand among all that are tracked."""
        self._place = self._gap = np.zeros(0, dtype=np.intp)

    def find_places(self, names: Sequence[Hashable]) -> None:
        """Note where the variables stand among these, of which the first are known already."""
        new = names[self._place.size :]
        place = np.array([self.slots.get(name, -1) for name in new], dtype=np.intp)
        gap = np.array([self.gaps.get(name, -1) for name in new], dtype=np.intp)
        self._place = np.append(self._place, place)
        self._gap = np.append(self._gap, gap)

    # Learning

    def begin(
        self, names: Sequence[Hashable], mean: Floats, products: Floats, c: int, n: int
    ) -> None:
        """Go on from n rows which came as columns: c targets, and then these variables.

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

    def learn_one(
        self,
        values: Floats,
        places: Places,
        y: Floats,
        names: Sequence[Hashable],
        weight: float = 1.0,
    ) -> None:
        """Learn a row: values, NaN where not observed, their places among names, and targets."""
        unit = self.unit / self.keep if self.rows else 1.0
        w = unit * weight
        first = len(self.weights)
        further = (y, self.targets, w, self.n)
        found = self._learn_row(values, places, *further, first)
        if found < 0:
            self._note_gaps(places[np.isnan(values)], names)
            found = self._learn_row(values, places, *further, first)
        if found:
            self.weights.append(w)
            if first + 1 == _WAITING:
                self.add_waiting()
        self._passed(1, unit, w, w * w)

    def _learn_row(self, values: Floats, places: Places, *further: Any) -> int:
        *target, first = further
        state = (self.size, self.shift, self.sums, self.S, self.waiting, first)
        return int(learn_products(values, places, self._place, self._gap, *target, *state))

    def add_waiting(self) -> None:
        """Add the rows that wait."""
        if self.weights:
            q, size = len(self.weights), self.size
            self.S[:size, :size] += _products(self.waiting[:q, :size], np.array(self.weights))
            self.weights = []

    def _note_gaps(self, places: Places, names: Sequence[Hashable]) -> None:
        self.add_gaps([names[place] for place in np.sort(places).tolist()])
        self.forget_places()
        self.find_places(names)

    def learn_many(
        self,
        X: Floats,
        places: Places,
        Y: Floats,
        names: Sequence[Hashable],
        weights: Floats | None = None,
    ) -> None:
        """Learn rows, (b, m), of these weights, and targets, (b, c), by matrix products."""
        # A sum shows what was not observed.
        lacking = np.isnan(X.sum(axis=0))
        if lacking.any():
            self._note_gaps(places[lacking], names)
        step = max(_ROWS_AT_ONCE, _AT_ONCE // max(1, X.shape[1] + Y.shape[1]))
        for start in range(0, len(X), step):
            rows = slice(start, start + step)
            of_rows = None if weights is None else weights[rows]
            self._learn_block(X[rows], places, Y[rows], of_rows)

    def _learn_block(self, X: Floats, places: Places, Y: Floats, weights: Floats | None) -> None:
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
        self._find_levels(X, at, gap, Y)
        Z, columns = self._about_shifts(X, at, gap, Y)
        self.sums[columns] += w @ Z
        self.S[columns[:, None], columns] += (
            _products(Z, w) if self.keep < 1.0 or weights is not None else Z.T @ Z
        )
        self._passed(len(X), unit, float(w.sum()), float(w @ w))

    def _about_shifts(self, X: Floats, at: Places, gap: Places, Y: Floats) -> tuple[Floats, Places]:
        """Return what rows are in the columns in which they are not 0, and these columns."""
        holes = np.flatnonzero(gap >= 0)
        # Who is absent here has 0 in all these rows.
        absent = self.shift[: self.size] != 0.0
        absent[at] = absent[self.targets] = False
        rest = np.flatnonzero(absent)
        columns = np.concatenate([at, self.targets, gap[holes], rest])
        Z = np.empty((len(X), columns.size))
        m, c = at.size, self.targets.size
        np.subtract(X, self.shift[at], out=Z[:, :m])
        np.subtract(Y, self.shift[self.targets], out=Z[:, m : m + c])
        if holes.size:
            lacking = np.isnan(X[:, holes])
            Z[:, holes] = np.where(lacking, 0.0, Z[:, holes])
            Z[:, m + c : m + c + holes.size] = lacking
        Z[:, m + c + holes.size :] = -self.shift[rest]
        return Z, columns

    def _find_levels(self, X: Floats, at: Places, gap: Places, Y: Floats) -> None:
        """Let the shift of who was never observed be about where its values are."""
        known = np.where(gap >= 0, self.sums[gap], 0.0) if gap.size else np.zeros(0)
        new = (self.sums[at] == 0.0) & (self.n - known <= _NEXT_TO_NOTHING * self.n)
        if new.any():
            mine = X[:, new]
            seen = ~np.isnan(mine)
            total = np.where(seen, mine, 0.0).sum(axis=0)
            self.shift[at[new]] = total / np.maximum(seen.sum(axis=0), 1)
        if self.n == 0.0:
            self.shift[self.targets] = Y.mean(axis=0)

    def _passed(self, rows: int, unit: float, weight: float, squares: float) -> None:
        self.rows += rows
        self.unit = unit
        self.n += weight
        self.squares += squares
        if unit > _HEAVY:
            self.rescale(2.0 ** -math.frexp(unit)[1])
            self.find_shifts()
        if self.rows >= self.next_look:
            self.next_look = 2 * self.rows
            self.find_shifts()

    def rescale(self, factor: float) -> None:
        """Multiply all weights by a factor."""
        self.add_waiting()
        self.unit *= factor
        self.n *= factor
        self.squares *= factor * factor
        self.sums *= factor
        self.S *= factor

    # Levels

    def observed(self) -> tuple[Places, Places, Floats, Floats]:
        """Return columns of targets and variables, of their gaps, weights observed, and means.

        The means are about the shift.
        """
        own = np.array([*self.targets.tolist(), *self.slots.values()], dtype=np.intp)
        gap = np.full(own.size, -1, dtype=np.intp)
        if self.gaps:
            gap[len(self.targets) :] = [self.gaps.get(name, -1) for name in self.slots]
        seen = self.n - np.where(gap >= 0, self.sums[gap], 0.0)
        none = seen <= _NEXT_TO_NOTHING * self.n
        seen[none] = 0.0
        mean = np.where(none, 0.0, self.sums[own] / np.where(none, 1.0, seen))
        return own, gap, seen, mean

    def find_shifts(self) -> None:
        """Let the shift be the mean where that is larger than the spread, else 0."""
        self.add_waiting()
        own, gap, seen, mean = self.observed()
        square = self.squares_of(own) - seen * mean * mean
        variance = np.maximum(square, 0.0) / np.where(seen > 0.0, seen, 1.0)
        level = self.shift[own] + mean
        wanted = np.where(np.abs(level) > np.sqrt(variance), level, 0.0)
        moves = ((wanted == 0.0) != (self.shift[own] == 0.0)) | (np.abs(mean) > np.sqrt(variance))
        moves &= (wanted != self.shift[own]) & (seen > 0.0)
        self.move(own[moves], gap[moves], wanted[moves])

    def move(self, own: Places, gap: Places, shift: Floats) -> None:
        """Let variables, whose gaps are in these columns, have other shifts."""
        if not own.size:
            return
        d = shift - self.shift[own]
        size = self.size
        S, sums = self.S[:size, :size], self.sums[:size]
        lacking = np.flatnonzero(gap >= 0)
        apart = np.broadcast_to(sums, (own.size, size)).copy()
        apart[lacking] -= S[gap[lacking]]
        weight = np.full(own.size, self.n)
        weight[lacking] -= sums[gap[lacking]]
        S[own] -= d[:, None] * apart
        sums[own] -= d * weight
        apart = np.broadcast_to(sums, (own.size, size)).copy()
        apart[lacking] -= S[:, gap[lacking]].T
        S[:, own] -= (d[:, None] * apart).T
        self.shift[own] = shift

    def columns(self, some: Places) -> Floats:
        """Return columns of the sums of products, a copy, with the rows that wait."""
        found: Floats = self.S[: self.size, some]
        if self.weights:
            Z = self.waiting[: len(self.weights), : self.size]
            found += _weighted(Z, np.array(self.weights)).T @ Z[:, some]
        return found

    def squares_of(self, own: Places) -> Floats:
        """Return the sums of squares of columns, with the rows that wait."""
        found: Floats = self.S[own, own]
        if self.weights:
            Z = self.waiting[: len(self.weights), own]
            found += np.array(self.weights) @ np.square(Z)
        return found

    def expect_possible(self) -> None:
        """Raise ValueError for numbers that no data lead to: a file may hold any."""
        size, weights = self.size, np.array(self.weights)
        expect_weights(self.n, self.unit, self.squares, self.rows)
        expect_between("weights", weights, 0.0, 1e300)
        expect_bounded("values", self.shift[:size], self.waiting[: len(weights), :size])
        S, sums = self.S[:size, :size], self.sums[:size]
        expect_products(S)
        # The square of a sum is no more than the sum of squares times that of weights.
        expect_within(sums, np.sqrt(np.abs(S.diagonal()) * self.n), S.diagonal())

    # Files

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs: arrays, and values that JSON can hold."""
        size, q = self.size, len(self.weights)
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
            "waiting_weights": np.array(self.weights),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Take up what `to_state` returned, into a fresh part made of the same parameters."""
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
        if q >= _WAITING or c < 0 or not np.array_equal(np.sort(columns), np.arange(size)):
            raise ValueError("Expected joint moments of distinct variables. Got: others.")
        self._more(size)
        own = columns.tolist()
        self.targets = columns[:c].astype(np.intp)
        self.slots = dict(zip(names, own[c : c + len(names)], strict=True))
        self.gaps = dict(zip(gappy, own[c + len(names) :], strict=True))
        self.shift[:size], self.sums[:size] = state["shift"], state["sums"]
        self.S[:size, :size], self.waiting[:q, :size] = state["S"], state["waiting"]
        self.weights = state["waiting_weights"].tolist()


def _weighted(Z: Floats, weights: Floats) -> Floats:
    return weights[:, None] * Z


def _products(Z: Floats, weights: Floats) -> Floats:
    """Return the sums of products of all columns: of one array with itself, half the work."""
    root = _weighted(Z, np.sqrt(weights))
    products: Floats = root.T @ root
    return products
