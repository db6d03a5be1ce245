"""Base classes of states, the table of variables, and stored loadings."""

from __future__ import annotations

import abc
import copy
import functools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from streamsel._utils.rollback import Restore, Rollback
from streamsel.data.chunks import Chunk, Stats
from streamsel.serialization.invariants import expect_between, expect_bounded
from streamsel.serialization.schema import NamesKind, expect, expect_shapes
from streamsel.targets.space import TargetSpace

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


# A table above this size reserves no spare rows.
_MAX_SPARE_BYTES = 1 << 26


class VariableTable(Rollback):
    """Named rows with one array per field; rows can be appended, truncated and selected.

    Parameters
    ----------
    fields
        Field name -> shape of one row of it. All fields are float64.
    """

    changing = ("_arrays", "_index_of", "_names", "_capacity")

    def __init__(self, fields: dict[str, tuple[int, ...]]) -> None:
        self.fields = fields
        self._arrays = {field: np.empty((0, *shape)) for field, shape in fields.items()}
        self._index_of: dict[Hashable, int] = {}
        self._names: list[Hashable] = []
        self._capacity = 0

    def __len__(self) -> int:
        return len(self._index_of)

    def __getitem__(self, field: str) -> NDArray[np.float64]:
        """Return a field as a view, one row per variable."""
        return self._arrays[field][: len(self)]

    @property
    def index_of(self) -> dict[Hashable, int]:
        """Name -> index, in order of arrival; not to be modified."""
        return self._index_of

    @property
    def names(self) -> list[Hashable]:
        """Names in order of arrival; not to be modified."""
        return self._names

    def append(self, names: Iterable[Hashable], **rows: NDArray[Any]) -> None:
        """Add rows at the end; all or nothing."""
        self.append_filled(names, "", rows)

    def append_filled(
        self, names: Iterable[Hashable], filled: str, rows: Mapping[str, NDArray[Any]]
    ) -> None:
        """Add rows at the end, with one field that was filled in place; all or nothing."""
        names = tuple(names)
        start, stop = len(self), len(self) + len(names)
        self.reserve(len(names))
        for field, array in self._arrays.items():
            if field != filled:
                array[start:stop] = rows[field]
        self.name_rows(names)

    def reserve(self, size: int) -> None:
        """Reserve capacity for `size` more rows."""
        if len(self) + size > self._capacity:
            self._grow(len(self) + size)

    def with_capacity(self, field: str) -> NDArray[np.float64]:
        """Return a field as a view, with its spare capacity."""
        return self._arrays[field]

    def all_with_capacity(self) -> Iterable[NDArray[np.float64]]:
        """Return all fields, in order, with their spare capacity."""
        return self._arrays.values()

    def name_rows(self, names: Sequence[Hashable]) -> None:
        """Name the rows after the last one, which were filled in place."""
        start = len(self._index_of)
        self._names.extend(names)
        self._index_of.update(zip(names, range(start, start + len(names)), strict=True))
        if len(self._index_of) != start + len(names):
            raise ValueError("Expected new names. Got: names that are in the table.")

    def _grow(self, size: int) -> None:
        capacity = max(size, 2 * self._capacity, 16)
        arrays = self._empty(capacity)
        for field, grown in arrays.items():
            grown[: len(self)] = self[field]
        self._arrays, self._capacity = arrays, capacity

    def _empty(self, capacity: int) -> dict[str, NDArray[np.float64]]:
        """Return arrays for so many rows, to be filled."""
        return {field: np.empty((capacity, *shape)) for field, shape in self.fields.items()}

    def detach(self) -> None:
        """Copy the arrays, so that a snapshot keeps the old ones."""
        self._arrays = {field: array.copy() for field, array in self._arrays.items()}

    def with_empty_fields(self, fields: Iterable[str]) -> VariableTable:
        """Return a replacement of this table, in which some fields are new arrays, to be filled.

        Both share their names: a row added to one is added to both.
        """
        other = VariableTable.__new__(VariableTable)
        other.fields, other._capacity = self.fields, self._capacity
        other._index_of, other._names = self._index_of, self._names
        new = {field: np.empty_like(self._arrays[field]) for field in fields}
        other._arrays = self._arrays | new
        return other

    def truncate(self, size: int) -> None:
        """Drop all rows after the first `size`."""
        while len(self._index_of) > size:
            self._index_of.popitem()
        del self._names[size:]

    def keep(self, indices: NDArray[np.intp] | Sequence[int], spare: int = 0) -> None:
        """Drop all rows but these, given in ascending order, and leave room for some more."""
        size = len(indices)
        numbers = sum(math.prod(shape) for shape in self.fields.values())
        if not spare or 8 * numbers * (size + spare) > _MAX_SPARE_BYTES:
            # Two large arrays at a time, with room for more rows, would take more memory.
            spare = 0
            self._arrays = {field: self[field][indices] for field in self.fields}
        else:
            kept = self._empty(size + spare)
            for field, array in kept.items():
                np.take(self[field], indices, axis=0, out=array[:size], mode="clip")
            self._arrays = kept
        self._capacity = size + spare
        self._names = [self._names[index] for index in indices]
        self._index_of = {name: i for i, name in enumerate(self._names)}

    def copy(self) -> VariableTable:
        """Return an independent copy."""
        other = VariableTable(self.fields)
        other._arrays = {field: self[field].copy() for field in self.fields}
        other._index_of, other._names = dict(self._index_of), list(self._names)
        other._capacity = len(self)
        return other

    def restorer(self) -> Callable[[], VariableTable]:
        """Return a function that restores the current table, if rows are only added or kept.

        Nothing is copied: new rows come after the current ones, and `keep` makes new arrays.
        """
        saved, size = copy.copy(self), len(self)

        def restored() -> VariableTable:
            saved.truncate(size)
            return saved

        return restored

    def extend(self, other: VariableTable, **replaced: NDArray[Any]) -> None:
        """Add the rows of another table, some of its fields replaced."""
        self.append(other.names, **({field: other[field] for field in self.fields} | replaced))

    def part(self, start: int, stop: int) -> VariableTable:
        """Return a copy of consecutive rows as a table."""
        other = VariableTable(self.fields)
        rows = {field: self[field][start:stop] for field in self.fields}
        other.append(self._names[start:stop], **rows)
        return other

    def to_state(self) -> dict[str, Any]:
        """Return names and arrays for a model file."""
        return {"names": list(self._names)} | {field: self[field] for field in self.fields}

    def restored(self, state: dict[str, Any]) -> VariableTable:
        """Return the table of the same fields that `to_state` described."""
        return self.from_state(state, self.fields)

    @classmethod
    def from_state(cls, state: dict[str, Any], fields: dict[str, tuple[int, ...]]) -> VariableTable:
        """Return the table that `to_state` described."""
        # `append` checks that the names are distinct.
        if type(state) is not dict or type(state.get("names")) is not list:
            expect(state, names=NamesKind())
        table = cls(fields)
        p = len(state["names"])
        expect_shapes(state, **{field: (p, *shape) for field, shape in fields.items()})
        table.append(state["names"], **{field: np.asarray(state[field]) for field in fields})
        return table


def zero_padded(array: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Return the array with zeros after its last row."""
    padded = np.zeros((size, *array.shape[1:]))
    padded[: len(array)] = array
    return padded


# Approximate memory of a state without columns, in numbers per observation.
_NUMBERS_PER_OBSERVATION = 64


class Snapshot:
    """Snapshot of a state.

    Parameters
    ----------
    saved
        Attributes of the state at the snapshot; None while the state has not changed since.
    """

    def __init__(self, saved: dict[str, Any] | None = None) -> None:
        self.saved = saved


class State(Rollback, abc.ABC):
    """State of a learner: the only place of learnt quantities.

    Undo, pickling, copies, files and the switch from columns to rows operate on it.
    """

    @abc.abstractmethod
    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""

    @abc.abstractmethod
    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""


class VariableState(State):
    """State of the tracked variables."""

    # The variables, one per row.
    table: VariableTable

    def expect_valid(self) -> None:
        """Raise ValueError for values that no data can produce, as a file may hold."""

    @property
    def index_of(self) -> Mapping[Hashable, int]:
        """Name -> index, in order of arrival; not to be modified."""
        return self.table.index_of

    @property
    def names(self) -> list[Hashable]:
        """Names in order of arrival; not to be modified."""
        return self.table.names

    @property
    @abc.abstractmethod
    def complete(self) -> bool:
        """Whether no variable was ever discarded."""

    @property
    @abc.abstractmethod
    def space(self) -> TargetSpace | None:
        """The target space; None without a target."""

    @property
    @abc.abstractmethod
    def n(self) -> float:
        """Number of observations, or total weight of the rows."""

    @property
    def effective_rows(self) -> float:
        """The effective number of rows of equal weight."""
        return float(self.n)

    @abc.abstractmethod
    def stats(self, indices: Indices | None = None) -> Stats:
        """Return the moments of variables; of all variables if `indices` is None."""

    def gram_of(self, indices: Indices, W: Floats) -> Floats:
        """Return the Gram matrix, (k, k), of combinations of variables with weights W, (m, k).

        A state of moments alone treats the variables as uncorrelated.
        """
        gram: Floats = (W.T * self.stats(indices).m2) @ W
        return gram

    @property
    def has_products(self) -> bool:
        """Whether `products` are available: states of moments alone have none."""
        return False

    def products(self, indices: Indices | int) -> Floats:
        """Return the (p, s) correlations of all variables with some, or (p,) with one."""
        raise NotImplementedError

    def count_certified(self, scores: Sequence[float], rounds: Sequence[int]) -> int:  # noqa: ARG002
        """Return how many leading picks no discarded column can have changed.

        Parameters
        ----------
        scores, rounds
            Score and round of each pick.
        """
        return len(scores) if self.complete else 0

    def arrivals(self, indices: Indices) -> Floats | None:  # noqa: ARG002
        """Return how many columns came before each variable; None where it is not known."""
        return None

    def extra_field(self, field: str) -> Floats:
        """Return a further field of the variables, recorded on arrival, (p,)."""
        raise KeyError(field)

    def relevance(self, indices: Indices | None = None) -> Floats:
        """Return relevances; 1 for every variable without a target."""
        stats = self.stats(indices)
        if self.space is None:
            return np.ones(stats.m2.size)
        return self.space.relevance(stats.m2, stats.cxy)

    def noise_relevance(self, indices: Indices | None = None) -> Floats:
        """Return the relevances to compare with noise: those to the target's normal scores.

        They equal `relevance` where the target's own distribution is used.
        """
        return self.relevance(indices)

    def coordinates(self, indices: Indices | None = None) -> Floats:
        """Return the (p, r) coordinates of variables in the target space."""
        assert self.space is not None  # noqa: S101
        stats = self.stats(indices)
        return self.space.coordinates(stats.m2, stats.cxy)


class ColumnState(VariableState):
    """State of variables learnt as columns, each with all its observations.

    A snapshot is taken for every block, but few blocks are undone or change a state at all. A state
    therefore calls `self._copy_before_write()` before it changes; the state at the snapshot is then
    copied, once, and never if nothing changes.
    """

    # Why two states of different columns cannot be merged without another pass over these; "" if
    # they can be.
    unmergeable_reason: ClassVar[str] = ""
    # Whether its variables are groups of columns.
    is_grouped: bool = False

    _open: Snapshot | None = None

    def __init__(self, n: int) -> None:
        self._n = n

    @property
    def n(self) -> int:
        """Number of observations of every variable."""
        return self._n

    @property
    def effective_rows(self) -> float:
        """The effective number of observations of equal weight."""
        return float(self.n) if self.space is None else self.space.effective_rows

    def stats(self, indices: Indices | None = None) -> Stats:
        """Return the moments of variables; of all variables if `indices` is None."""
        arrays = (self.table[field] for field in Stats._fields)
        return Stats(*arrays if indices is None else (array[indices] for array in arrays))

    def snapshot(self) -> Restore:
        """Return a function that restores the current state."""
        if self._open is None:
            self._open = Snapshot()
        return functools.partial(self._restore, self._open)

    def _restore(self, mark: Snapshot) -> None:
        """Restore the state at a snapshot, which can be restored again."""
        if mark.saved is not None:
            restored = self._restored(mark.saved)
            vars(self).clear()
            vars(self).update(restored)
        self._open = mark
        mark.saved = None

    def _copied(self) -> dict[str, Any]:
        """Return copies of the attributes that are independent of later changes."""
        return copy.deepcopy(vars(self))

    def _restored(self, saved: dict[str, Any]) -> dict[str, Any]:
        """Return the attributes from the result of `_copied`."""
        return saved

    def _copy_before_write(self) -> None:
        """Copy the state for an open snapshot; to be called before every change."""
        if self._open is not None:
            mark, self._open = self._open, None
            mark.saved = self._copied()

    def cross_products(self, indices: Indices) -> Floats:
        """Return the sums of cross products of variables, if `products` are available."""
        raise NotImplementedError

    def iter_groups(self, chunk: Chunk, stats: Stats) -> Iterator[tuple[Any, Any]]:
        """Yield the groups of columns of a chunk, as many as `stats` has, for `admit`.

        Yields
        ------
        The groups and their statistics, in place of a chunk of columns and their moments.
        """
        raise NotImplementedError

    def adopt_columns(self, state: ColumnState) -> None:
        """Learn the columns that a state keeps, each as a group of one."""
        raise NotImplementedError

    def members_of(self, indices: Sequence[int]) -> list[list[Hashable]]:
        """Return the names of the members of groups; of a single column its own name."""
        return [[self.names[j]] for j in indices]

    def means_of_members(self) -> dict[Hashable, float]:
        """Return the means of the members of all groups by name."""
        raise NotImplementedError

    def carried(self) -> Self:
        """Return the state from which rows continue: this one, or one of fewer variables."""
        return self

    def bytes_for(self, p: int) -> int:  # noqa: ARG002
        """Return the approximate memory of this state in bytes, after p columns."""
        return _NUMBERS_PER_OBSERVATION * 8 * math.ceil(self.n)

    @property
    def irrelevant_below(self) -> float:
        """The relevance below which a column changes nothing; -inf if every column may."""
        return -math.inf

    @property
    def exact_from(self) -> float:
        """The relevance from which generated columns must be made to compute their moments.

        Infinity, the default, if rounding errors of 1e-10 are immaterial.
        """
        return math.inf

    @abc.abstractmethod
    def admit(self, chunk: Chunk, stats: Stats, first_arrival: int) -> None:
        """Learn the columns of a chunk, in order: as many as stats has.

        Parameters
        ----------
        chunk, stats
            The columns, and the moments of all of them or of the first ones.
        first_arrival
            Number of columns of the stream before the chunk.
        """

    @abc.abstractmethod
    def merge(self, other: Self, arrived: int) -> None:
        """Add other variables of the same rows, which arrived after `arrived` columns.

        A state that cannot be merged copies another one while it is empty, and raises ValueError
        later.
        """


class StoredLoadings(NamedTuple):
    """Loadings that map a row to components: z = (x - means) @ weights.

    Parameters
    ----------
    names, means
        s variables in order of arrival, and the values to subtract, (s,).
    weights
        (s, q).
    deviations
        (s,) standard deviations of the variables.
    """

    names: list[Hashable]
    means: Floats
    weights: Floats
    deviations: Floats

    def expect_valid(self) -> None:
        """Raise ValueError for values that no data can produce, as a file may hold."""
        expect_bounded("loadings", self.means, self.weights)
        expect_between("standard deviations", self.deviations, 0.0, 1e300)

    def expect_components(self, q: int) -> None:
        """Raise ValueError unless these are loadings of distinct columns on q components."""
        if self.weights.shape[1] != q or len({*self.names}) < len(self.names):
            raise ValueError(
                f"Expected loadings of distinct columns on {q} components. "
                f"Got: {len(self.names)} names, {self.weights.shape[1]} components."
            )

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Return the loadings in a file, if its parts are consistent."""
        expect(state, names=NamesKind())
        s, q = len(state["names"]), np.shape(state["weights"])[-1]
        expect_shapes(state, means=(s,), weights=(s, q), deviations=(s,))
        return cls(*(state[name] for name in cls._fields))


def counter(index: int, kind: Callable[[Any], Any] = float) -> Any:
    """Return a property of a state: the number at an index of its array `counts`.

    A loop that learns a row changes these numbers together with all others, so that no exception
    can come in between. Setting one replaces the array, because a snapshot may refer to it.
    """

    def get(self: Any) -> Any:
        return kind(self.counts[index])

    def put(self: Any, value: Any) -> None:
        counts = self.counts.copy()
        counts[index] = value
        self.counts = counts

    return property(get, put)
