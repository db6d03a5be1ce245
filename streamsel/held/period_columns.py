"""Sums of products of columns about shifts, and buffered rows to be added to them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from streamsel._jit import period as loops
from streamsel.held.counts import count
from streamsel.held.part import Floats, Part, Places

# Buffered rows per matrix product.
WAITING = 64
# Fraction of the weight of all rows that may be rounding.
NEXT_TO_NOTHING = 1e-9
# Rows before the first update of the shifts.
_FIRST_LOOK = 8


class Columns(Part):
    """The columns of an aligned window, and the weighted sums of their products.

    Parameters and attributes are those of `Period`.
    """

    changing = (
        *("counts", "size", "slots", "gaps", "targets", "shift", "sums", "S", "waiting"),
        *("next_look", "_place", "_gap", "_ready"),
    )

    n: float = count(loops.WEIGHT)
    unit: float = count(loops.UNIT)
    squares: float = count(loops.SQUARES)
    rows: int = count(loops.ROWS, int)
    n_waiting: int = count(loops.WAITING, int)
    _next: int = count(loops.NEXT, int)

    def __init__(self, keep: float) -> None:
        self.keep = keep
        self.counts: Floats = np.zeros(loops.WEIGHTS + WAITING)
        self.unit = 1.0
        self.size = 0
        self.slots: dict[Hashable, int] = {}
        self.gaps: dict[Hashable, int] = {}
        self.targets: Places = np.zeros(0, dtype=np.intp)
        self.shift: Floats = np.zeros(0)
        self.sums: Floats = np.zeros(0)
        self.S: Floats = np.zeros((0, 0))
        # Buffer of rows with many values, which are added when it is full.
        self.waiting: Floats = np.zeros((WAITING, 0))
        # Products of the buffered rows, if these must be added before the next row.
        self._ready: Floats | None = None
        self.next_look = _FIRST_LOOK
        # Index in `moments.table` -> column, and column of the missing indicator.
        self._place: Places = np.zeros(0, dtype=np.intp)
        self._gap: Places = np.zeros(0, dtype=np.intp)

    @property
    def names(self) -> list[Hashable]:
        """The variables, in order of arrival."""
        return list(self.slots)

    @property
    def weights(self) -> Floats:
        """The weights of the buffered rows."""
        return self.counts[loops.WEIGHTS : loops.WEIGHTS + self.n_waiting]

    # Columns

    def _more(self, count: int) -> range:
        """Return the indices of new columns, which were 0 in all rows."""
        start, stop = self.size, self.size + count
        if stop > len(self.S):
            room = max(stop, 2 * len(self.S), 16)
            S, shift, sums = np.zeros((room, room)), np.zeros(room), np.zeros(room)
            waiting = np.zeros((WAITING, room))
            S[:start, :start] = self.S[:start, :start]
            shift[:start], sums[:start] = self.shift[:start], self.sums[:start]
            waiting[:, :start] = self.waiting[:, :start]
            self.S, self.shift, self.sums, self.waiting = S, shift, sums, waiting
        self.size = stop
        return range(start, stop)

    def add_targets(self, count: int) -> None:
        """Add new target columns, which were 0 before this row."""
        self.targets = np.append(self.targets, np.array(self._more(count), dtype=np.intp))

    def add(self, names: Sequence[Hashable]) -> None:
        """Add variables that were 0 in all rows."""
        self.slots.update(zip(names, self._more(len(names)), strict=True))

    def add_gaps(self, names: Iterable[Hashable]) -> None:
        """Add missing indicators of variables that were never missing so far."""
        new = [name for name in names if name in self.slots and name not in self.gaps]
        self.gaps.update(zip(new, self._more(len(new)), strict=True))

    def keep_only(self, names: AbstractSet[Hashable]) -> None:
        """Drop all variables but these."""
        if self.slots.keys() <= names:
            return
        self.add_waiting()
        slots, gaps = (
            {name: column for name, column in columns.items() if name in names}
            for columns in (self.slots, self.gaps)
        )
        kept = np.sort([*self.targets.tolist(), *slots.values(), *gaps.values()])
        kept = kept.astype(np.intp)
        self.S = np.ascontiguousarray(self.S[np.ix_(kept, kept)])
        self.shift, self.sums, self.size = self.shift[kept], self.sums[kept], kept.size
        self.waiting = np.zeros((WAITING, kept.size))
        new_index = {before: column for column, before in enumerate(kept.tolist())}
        self.slots = {name: new_index[column] for name, column in slots.items()}
        self.gaps = {name: new_index[column] for name, column in gaps.items()}
        self.targets = np.array(
            [new_index[column] for column in self.targets.tolist()], dtype=np.intp
        )

    def forget_places(self) -> None:
        """Clear the map from indices in `moments.table` to columns."""
        self._place = self._gap = np.zeros(0, dtype=np.intp)

    def find_places(self, names: Sequence[Hashable]) -> None:
        """Extend the map from indices to columns by names, the first of which it has already."""
        new = names[self._place.size :]
        place = np.array([self.slots.get(name, -1) for name in new], dtype=np.intp)
        gap = np.array([self.gaps.get(name, -1) for name in new], dtype=np.intp)
        self._place = np.append(self._place, place)
        self._gap = np.append(self._gap, gap)

    def has_gaps_for(self, places: Places) -> bool:
        """Return whether every variable at these indices has a missing indicator or no column."""
        return bool(((self._gap[places] >= 0) | (self._place[places] < 0)).all())

    def note_gaps(self, lacking: Places, names: Sequence[Hashable]) -> None:
        """Add missing indicators of the variables at indices `lacking` of the names."""
        before = len(self.gaps)
        self.add_gaps([names[index] for index in np.sort(lacking).tolist()])
        if len(self.gaps) > before:
            self.forget_places()
            self.find_places(names)

    # Buffered rows

    def _waited(self) -> Floats:
        """Return the sums of products of the buffered rows."""
        return products_of(self.waiting[: self.n_waiting, : self.size], self.weights)

    def add_waiting(self) -> None:
        """Add the buffered rows."""
        if self.n_waiting:
            size, S = self.size, self.S.copy()
            S[:size, :size] += self._waited()
            self.S = S
            self.n_waiting = 0

    def rescale(self, factor: float) -> None:
        """Multiply all weights by a factor."""
        self.add_waiting()
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

    def observed(self) -> tuple[Places, Places, Floats, Floats]:
        """Return columns of targets and variables, their missing indicators, weights, and means.

        The weights are those of the rows that observed them; the means are about the shift.
        """
        own = np.array([*self.targets.tolist(), *self.slots.values()], dtype=np.intp)
        gap = np.full(own.size, -1, dtype=np.intp)
        if self.gaps:
            gap[len(self.targets) :] = [self.gaps.get(name, -1) for name in self.slots]
        seen = self.n - np.where(gap >= 0, self.sums[gap], 0.0)
        none = seen <= NEXT_TO_NOTHING * self.n
        seen[none] = 0.0
        mean = np.where(none, 0.0, self.sums[own] / np.where(none, 1.0, seen))
        return own, gap, seen, mean

    def find_shifts(self) -> None:
        """Set each shift to the mean if that is larger than the spread, else to 0."""
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
        """Change the shifts of columns `own`, whose missing indicators are `gap`."""
        if not own.size:
            return
        self.detach()
        d = shift - self.shift[own]
        size = self.size
        S, sums = self.S[:size, :size], self.sums[:size]
        have_gaps = np.flatnonzero(gap >= 0)
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

    def columns(self, some: Places) -> Floats:
        """Return a copy of columns of the sums of products, with the buffered rows."""
        found: Floats = self.S[: self.size, some]
        if self.n_waiting:
            Z = self.waiting[: self.n_waiting, : self.size]
            found += _weighted(Z, self.weights).T @ Z[:, some]
        return found

    def squares_of(self, own: Places) -> Floats:
        """Return the sums of squares of columns, with the buffered rows."""
        found: Floats = self.S[own, own]
        if self.n_waiting:
            found += self.weights @ np.square(self.waiting[: self.n_waiting, own])
        return found


def _weighted(Z: Floats, weights: Floats) -> Floats:
    return weights[:, None] * Z


def products_of(Z: Floats, weights: Floats) -> Floats:
    """Return the weighted sums of products of all columns, at half the cost of two arrays."""
    root = _weighted(Z, np.sqrt(weights))
    products: Floats = root.T @ root
    return products
