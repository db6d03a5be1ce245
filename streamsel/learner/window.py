"""A tumbling window: rows kept until there are enough, then swept as columns.

What serves, on rows, every method whose criterion is no function of moments.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np

from streamsel.held.part import Floats, Part, Places
from streamsel.held.possible import expect_bounded
from streamsel.held.table import padded
from streamsel.names import first_bad_name, why_bad_name
from streamsel.rows import (
    first_bad,
    in_canonical_order,
    read_frame,
    read_strictly,
    read_values,
    why_bad,
)
from streamsel.shapes import Array, Count, Names, expect, expect_shapes, rows_of
from streamsel.target.observed import NO_TARGET, Observation
from streamsel.target.rows import RowTarget, unequal
from streamsel.target.target import Target


class Said(NamedTuple):
    """What rows say of the target: an observation, and its columns by name, (b,) each."""

    seen: Observation
    columns: dict[Hashable, Floats]


class Window(Part):
    """The rows since the last sweep.

    Parameters
    ----------
    size
        Rows that make it full.
    target
        The target's names and form; None without a target.
    max_features
        Most variables of a window; None for all. Those that come first have the places.

    Attributes
    ----------
    before, count, rows
        Rows seen before this window, in it, and both.
    slots
        Its variables: name -> column of `X`.
    X, Y
        (size, p) values, NaN where not observed, and (size, c) columns of the target.
    """

    changing = ("target", "before", "count", "slots", "_names", "_among", "_places", "X", "Y")

    def __init__(self, size: int, target: RowTarget | None, max_features: int | None) -> None:
        self.size = size
        self.target = target
        self.max_features = max_features
        self.before = self.count = 0
        self.empty()

    @property
    def rows(self) -> int:
        """Rows seen, in this window and before it."""
        return self.before + self.count

    def empty(self) -> None:
        """Begin with another window, with none of the rows."""
        self.before, self.count = self.rows, 0
        self.slots: dict[Hashable, int] = {}
        # The names of the last row, and where those stand that have a place: in it, and in X.
        self._names: list[Hashable] = []
        self._among: Places = np.zeros(0, dtype=np.intp)
        self._places: Places = np.zeros(0, dtype=np.intp)
        self.X: Floats = np.zeros((self.size, 0))
        self.Y: Floats = np.zeros((self.size, 0 if self.target is None else len(self.target)))

    @property
    def is_full(self) -> bool:
        """Whether there are as many rows as make it full."""
        return self.count == self.size

    def read_one(self, x: Any, y: Any) -> tuple[list[Hashable], Floats, Said]:
        """Return names, values (1, m), and what a row says of the target; change nothing."""
        seen = Observation(NO_TARGET, {}) if self.target is None else self.target.one(y)
        values, names = read_values(x), list(x)
        if names != self._names:
            values, unfit = read_strictly(x), first_bad_name(names, {})
            if unfit is not None:
                raise why_bad_name(names[unfit])
        bad = first_bad(values)
        if bad is not None:
            raise why_bad(names[bad], values[bad])
        columns = {name: np.array([value]) for name, value in seen.first.items()}
        return names, values[None], Said(seen, columns)

    def read_many(self, X: Any, y: Any) -> tuple[list[Hashable], Floats, Said]:
        """Return names, values (b, m), and what rows say of the target; change nothing."""
        names, values = read_frame(X)
        if self.target is None or not len(values):
            return names, values, Said(Observation(NO_TARGET, {}), {})
        seen, encoded = self.target.many(y)
        if len(encoded.columns) != len(values):
            raise unequal(len(values), len(encoded.columns))
        columns = zip(encoded.names, encoded.columns.T, strict=True)
        return names, values, Said(seen, dict(columns))

    def has_room_for(self, names: list[Hashable], values: Floats, said: Said) -> bool:
        """Whether rows leave the window with room for more, and bring nothing new."""
        if self.count + len(values) >= self.size or names != self._names:
            return False
        target = self.target
        if target is None:
            return True
        return target.form is not None and said.columns.keys() <= target.slots.keys()

    def take(self, names: list[Hashable], values: Floats, said: Said, start: int) -> int:
        """Take rows from `start` on, up to where the window is full; return where that is."""
        stop = min(len(values), start + self.size - self.count)
        if names != self._names:
            self._take_up(names)
        if self.target is not None:
            self.target.admit(said.seen)
            if len(self.target) > self.Y.shape[1]:
                self.Y = padded(self.Y.T, len(self.target)).T
        self.add(values, said, slice(start, stop))
        return stop

    def add(self, values: Floats, said: Said, rows: slice) -> None:
        """Take rows for which there is room, and which bring nothing new: all, or none of them."""
        mine = slice(self.count, self.count + rows.stop - rows.start)
        # Rows that were not taken in the end may have left something here.
        self.X[mine] = 0.0
        self.X[mine, self._places] = values[rows, self._among]
        if self.target is not None:
            self.Y[mine] = 0.0
            for name, column in said.columns.items():
                self.Y[mine, self.target.slots[name]] = column[rows]
        self.count = mine.stop

    def _take_up(self, names: list[Hashable]) -> None:
        """Give variables a place, and note those of a row: most rows name the same."""
        for name in in_canonical_order(name for name in names if name not in self.slots):
            if self.max_features is None or len(self.slots) < self.max_features:
                self.slots[name] = len(self.slots)
        if len(self.slots) > self.X.shape[1]:
            self.X = padded(self.X.T, max(len(self.slots), 2 * self.X.shape[1])).T
        among = [j for j, name in enumerate(names) if name in self.slots]
        self._among = np.array(among, dtype=np.intp)
        self._places = np.array([self.slots[names[j]] for j in among], dtype=np.intp)
        self._names = names

    def columns(self) -> tuple[list[Hashable], Floats, Target | None]:
        """Return names and values of the variables, (size, p), and the target.

        What was not observed is the mean of what was.

        Raises
        ------
        ValueError
            Where the target does not vary in the window.
        """
        X = self.X[:, : len(self.slots)].copy()
        lacking = np.isnan(X)
        if lacking.any():
            counts = (~lacking).sum(axis=0)
            means = np.where(lacking, 0.0, X).sum(axis=0) / np.maximum(counts, 1)
            X[lacking] = np.broadcast_to(means, X.shape)[lacking]
        if self.target is None:
            return list(self.slots), X, None
        is_class = self.target.form == "class"
        target = Target.of_columns(self.Y.copy(), list(self.target.slots), is_class=is_class)
        return list(self.slots), X, target

    # Files

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs: arrays, and values that JSON can hold."""
        # NaN says that a value was not observed; what is kept in a file is finite.
        X = self.X[: self.count, : len(self.slots)]
        return {
            "rows": self.rows,
            "names": list(self.slots),
            "X": np.nan_to_num(X, nan=0.0),
            "lacking": np.isnan(X),
            "Y": self.Y[: self.count],
            "target": None if self.target is None else self.target.to_state(),
        }

    def expect_possible(self) -> None:
        """Raise ValueError for numbers that no data lead to: a file may hold any."""
        expect_bounded("values", np.nan_to_num(self.X[: self.count]), self.Y[: self.count])

    def set_state(self, state: dict[str, Any]) -> None:
        """Take up what `to_state` returned, into a fresh part made of the same parameters."""
        told = state["target"]
        if self.target is not None:
            self.target.set_state(told)
            self.target.doubt_no_more()
        self.empty()
        expect(state, rows=Count(), names=Names())
        self.count = rows_of(state, "X")
        self.before = state["rows"] - self.count
        if self.before < 0:
            raise ValueError(f"Expected at least {self.count} rows. Got: {state['rows']}.")
        shape = (self.count, len(state["names"]))
        expect_shapes(state, X=shape, Y=(self.count, self.Y.shape[1]))
        expect(state, lacking=Array(shape, np.bool_))
        if self.count >= self.size:
            raise ValueError(f"Expected fewer than {self.size} rows. Got: {self.count}.")
        self.slots = {name: j for j, name in enumerate(state["names"])}
        self.X = np.zeros((self.size, shape[1]))
        self.X[: self.count] = np.where(state["lacking"], np.nan, state["X"])
        self.Y[: self.count] = state["Y"]
