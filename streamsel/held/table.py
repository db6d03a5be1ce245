"""Rows of named variables, stored in arrays that grow by doubling."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel.rollback import Rollback
from streamsel.shapes import Names, expect, expect_shapes


class Table(Rollback):
    """Named rows with one array per field; rows can be appended, truncated and selected.

    Parameters
    ----------
    fields
        Field name -> shape of one row of it. All fields are float64.
    """

    changing = ("_arrays", "_slots", "_names", "_capacity")

    def __init__(self, fields: dict[str, tuple[int, ...]]) -> None:
        self.fields = fields
        self._arrays = {field: np.empty((0, *shape)) for field, shape in fields.items()}
        self._slots: dict[Hashable, int] = {}
        self._names: list[Hashable] = []
        self._capacity = 0

    def __len__(self) -> int:
        return len(self._slots)

    def __getitem__(self, field: str) -> NDArray[np.float64]:
        """Return a field as a view, one row per variable."""
        return self._arrays[field][: len(self)]

    @property
    def slots(self) -> dict[Hashable, int]:
        """Name -> index, in order of arrival; not to be modified."""
        return self._slots

    @property
    def names(self) -> list[Hashable]:
        """Names in order of arrival; not to be modified."""
        return self._names

    def append(self, names: Iterable[Hashable], **rows: NDArray[Any]) -> None:
        """Add rows at the end; all or nothing."""
        names = tuple(names)
        start, stop = len(self), len(self) + len(names)
        self.make_room(len(names))
        for field, array in self._arrays.items():
            array[start:stop] = rows[field]
        self.claim(names)

    def make_room(self, size: int) -> None:
        """Reserve capacity for `size` more rows."""
        if len(self) + size > self._capacity:
            self._grow(len(self) + size)

    def with_room(self, field: str) -> NDArray[np.float64]:
        """Return a field as a view, with its spare capacity."""
        return self._arrays[field]

    def rooms(self) -> Iterable[NDArray[np.float64]]:
        """Return all fields, in order, with their spare capacity."""
        return self._arrays.values()

    def claim(self, names: Sequence[Hashable]) -> None:
        """Name the rows after the last one, which were filled in place."""
        start = len(self._slots)
        self._names.extend(names)
        self._slots.update(zip(names, range(start, start + len(names)), strict=True))
        if len(self._slots) != start + len(names):
            raise ValueError("Expected new names. Got: names that are in the table.")

    def _grow(self, size: int) -> None:
        capacity = max(size, 2 * self._capacity, 16)
        arrays = {field: np.empty((capacity, *shape)) for field, shape in self.fields.items()}
        for field, grown in arrays.items():
            grown[: len(self)] = self[field]
        self._arrays, self._capacity = arrays, capacity

    def detach(self) -> None:
        """Copy the arrays, so that a snapshot keeps the old ones."""
        self._arrays = {field: array.copy() for field, array in self._arrays.items()}

    def with_new(self, fields: Iterable[str]) -> Table:
        """Return a table to replace this one, with new arrays, to be filled, in some fields.

        Both share their names: a row added to one is added to both.
        """
        other = Table.__new__(Table)
        other.fields, other._capacity = self.fields, self._capacity
        other._slots, other._names = self._slots, self._names
        new = {field: np.empty_like(self._arrays[field]) for field in fields}
        other._arrays = self._arrays | new
        return other

    def truncate(self, size: int) -> None:
        """Drop all rows after the first `size`."""
        while len(self._slots) > size:
            self._slots.popitem()
        del self._names[size:]

    def keep(self, places: NDArray[np.intp] | Sequence[int]) -> None:
        """Drop all rows but these, given in ascending order."""
        self._arrays = {field: self[field][places] for field in self.fields}
        self._capacity = len(places)
        self._names = [self._names[index] for index in places]
        self._slots = {name: i for i, name in enumerate(self._names)}

    def copy(self) -> Table:
        """Return an independent copy."""
        other = Table(self.fields)
        other._arrays = {field: self[field].copy() for field in self.fields}
        other._slots, other._names = dict(self._slots), list(self._names)
        other._capacity = len(self)
        return other

    def as_of_now(self) -> Callable[[], Table]:
        """Return a function that restores the current table, if rows are only added or kept.

        Nothing is copied: new rows come after the current ones, and `keep` makes new arrays.
        """
        saved, size = copy.copy(self), len(self)

        def restored() -> Table:
            saved.truncate(size)
            return saved

        return restored

    def to_state(self) -> dict[str, Any]:
        """Return names and arrays for a model file."""
        return {"names": list(self._names)} | {field: self[field] for field in self.fields}

    @classmethod
    def from_state(cls, state: dict[str, Any], fields: dict[str, tuple[int, ...]]) -> Table:
        """Return the table that `to_state` described."""
        # `append` checks that the names are distinct.
        if type(state) is not dict or type(state.get("names")) is not list:
            expect(state, names=Names())
        table = cls(fields)
        p = len(state["names"])
        expect_shapes(state, **{field: (p, *shape) for field, shape in fields.items()})
        table.append(state["names"], **{field: np.asarray(state[field]) for field in fields})
        return table


def padded(array: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Return the array with zeros after its last row."""
    padded = np.zeros((size, *array.shape[1:]))
    padded[: len(array)] = array
    return padded
