"""Table of groups of columns, with several rows of some fields for each group."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel.serialization.schema import ArrayKind, expect, expect_shapes, length_in
from streamsel.state.base import Floats, Indices, VariableTable, zero_padded

# Fixed fields that count the rows of other fields: dimension of a group's span, and its columns.
RANK, SIZE = "rank", "size"
_MAX_MEMBERS = 2.0**31


class RaggedField(NamedTuple):
    """Field with a number of rows per group.

    Parameters
    ----------
    counts
        The fixed fields whose product is that number.
    shape
        Shape of one row.
    """

    counts: tuple[str, ...]
    shape: tuple[int, ...]


def starts_of(counts: NDArray[Any]) -> Indices:
    """Return the index of the first row of each group, and the total, (p + 1,)."""
    starts = np.zeros(counts.size + 1, dtype=np.intp)
    np.cumsum(counts, out=starts[1:], dtype=np.intp)
    return starts


def rows_of_groups(starts: Indices, indices: Indices) -> Indices:
    """Return the indices of all rows of some groups, group by group."""
    sizes = starts[indices + 1] - starts[indices]
    first = np.repeat(starts[indices] - starts_of(sizes)[:-1], sizes)
    found: Indices = first + np.arange(first.size)
    return found


class GroupTable(VariableTable):
    """Table of groups: fixed fields as in `VariableTable`, ragged fields, and members by name.

    Parameters
    ----------
    fields
        Fixed fields, among them `rank` and `size`.
    ragged
        Ragged fields by name; `mean` has one row per member.
    """

    def __init__(
        self, fields: dict[str, tuple[int, ...]], ragged: Mapping[str, RaggedField]
    ) -> None:
        super().__init__(fields)
        self.ragged = dict(ragged)
        self._ragged = {name: np.empty((0, *field.shape)) for name, field in ragged.items()}
        # Replaced, never modified, as a snapshot may refer to it.
        self._lengths = dict.fromkeys(ragged, 0)
        self._members: list[Hashable] = []

    def ragged_rows(self, name: str) -> Floats:
        """Return all rows of a ragged field, as a view."""
        return self._ragged[name][: self._lengths[name]]

    def starts(self, name: str) -> Indices:
        """Return the index of the first row of each group in a ragged field, and the total."""
        return starts_of(self._counts(name))

    def _counts(self, name: str) -> Floats:
        counts = np.ones(len(self))
        for field in self.ragged[name].counts:
            counts = counts * self[field]
        return counts

    @property
    def members(self) -> Sequence[Hashable]:
        """Names of the members of all groups, group by group; not to be modified."""
        return self._members

    def members_of(self, indices: Iterable[int]) -> list[list[Hashable]]:
        """Return the names of the members of some groups."""
        starts = starts_of(self[SIZE])
        return [self._members[starts[j] : starts[j + 1]] for j in indices]

    # Changes

    def append(self, names: Iterable[Hashable], **rows: Any) -> None:
        """Add groups at the end: the rows of their fields, and `members`, names of these."""
        for name in self.ragged:
            start, stop = self._lengths[name], self._lengths[name] + len(rows[name])
            array = self._ragged[name]
            if stop > len(array):
                array = zero_padded(array[:start], max(stop, 2 * len(array), 16))
                self._ragged = self._ragged | {name: array}
            array[start:stop] = rows[name]
        super().append(names, **{field: rows[field] for field in self.fields})
        self._lengths = {name: n + len(rows[name]) for name, n in self._lengths.items()}
        self._members.extend(rows["members"])

    def extend(self, other: VariableTable, **replaced: NDArray[Any]) -> None:
        """Add the rows of another table, some of its fields replaced."""
        assert isinstance(other, GroupTable)  # noqa: S101
        fixed = {field: other[field] for field in other.fields}
        ragged = {name: other.ragged_rows(name) for name in other.ragged}
        self.append(other.names, members=other.members, **(fixed | ragged | replaced))

    def truncate(self, size: int) -> None:
        """Drop all groups after the first `size`."""
        super().truncate(size)
        self._lengths = {name: int(self.starts(name)[-1]) for name in self.ragged}
        del self._members[int(self[SIZE].sum()) :]

    def keep(self, indices: NDArray[np.intp] | Sequence[int], spare: int = 0) -> None:
        """Drop all groups but these, given in ascending order, and leave room for some more."""
        indices = np.asarray(indices, dtype=np.intp)
        rows = {name: rows_of_groups(self.starts(name), indices) for name in self.ragged}
        members = rows_of_groups(starts_of(self[SIZE]), indices)
        self._ragged = {name: self._ragged[name][rows[name]] for name in self.ragged}
        self._lengths = {name: rows[name].size for name in self.ragged}
        self._members = [self._members[j] for j in members.tolist()]
        super().keep(indices, spare)

    def part(self, start: int, stop: int) -> GroupTable:
        """Return a copy of consecutive groups as a table."""
        other = GroupTable(self.fields, self.ragged)
        fixed = {field: self[field][start:stop] for field in self.fields}
        ragged = {
            name: self.ragged_rows(name)[slice(*self.starts(name)[[start, stop]].tolist())]
            for name in self.ragged
        }
        first, last = starts_of(self[SIZE])[[start, stop]].tolist()
        other.append(self.names[start:stop], members=self._members[first:last], **(fixed | ragged))
        return other

    # Files

    def to_state(self) -> dict[str, Any]:
        """Return names and arrays for a model file."""
        ragged = {name: self.ragged_rows(name) for name in self.ragged}
        return super().to_state() | ragged | {"members": list(self._members)}

    def restored(self, state: dict[str, Any]) -> GroupTable:
        """Return the table of the same fields that `to_state` described."""
        p = length_in(state, "names")
        table = GroupTable(self.fields, self.ragged)
        expect(state, size=ArrayKind((p,), minimum=1.0, below=_MAX_MEMBERS))
        expect(state, rank=ArrayKind((p,), minimum=0.0, below=_MAX_MEMBERS))
        size, rank = state[SIZE], state[RANK]
        if (size % 1.0 + rank % 1.0).any() or (rank > size).any():
            raise ValueError("Expected whole numbers of members and dimensions. Got: others.")
        if length_in(state, "members") != int(size.sum()):
            raise ValueError(
                f"Expected {int(size.sum())} names of members. Got: {len(state['members'])}."
            )
        for name, field in self.ragged.items():
            length = int(np.prod([state[count] for count in field.counts], axis=0).sum())
            expect_shapes(state, **{name: (length, *field.shape)})
        whole = VariableTable.from_state(state, self.fields)
        fixed = {field: whole[field] for field in self.fields}
        ragged = {name: np.asarray(state[name]) for name in self.ragged}
        table.append(whole.names, members=state["members"], **(fixed | ragged))
        return table
