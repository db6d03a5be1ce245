"""State of SOSPCA on columns: components, their loadings and moments."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from streamsel._kernels.relevance import (
    add_above_threshold,
    append_component,
    next_above_threshold,
    rotate_and_drop,
)
from streamsel._utils.numeric import TIE_RTOL
from streamsel.data.chunks import Chunk, Stats
from streamsel.serialization.invariants import (
    expect_between,
    expect_bounded,
    expect_products,
    expect_relevances,
    expect_sums,
)
from streamsel.serialization.schema import NamesKind, expect, expect_shapes, length_in
from streamsel.state.base import ColumnState, Floats, Indices, VariableTable
from streamsel.targets.space import TargetSpace

# A rotated component has no variance if it is below this part of the pair's smaller variance.
VARIANCE_TOL = 1e-14
# Maximum number of columns added in one call. The threshold rises with each, so that copies of
# further columns would often be useless.
_BATCH_COLUMNS = 16
# Below every relevance, also signed ones.
_NO_THRESHOLD = -2.0


class SOSPCAState(ColumnState):
    """Components, their loadings and their moments, rotated together in closed form.

    Parameters
    ----------
    n_components
        Maximum number of components; a new one is added before one is dropped.
    n
        Rows.
    space
        The target space.
    jacobi
        Whether to decorrelate exactly.
    signed
        Whether relevance has a sign.

    Attributes
    ----------
    count
        Number of components, which have the first indices in every array.
    Z
        (q + 1, n) scores of the training rows, z_k in the paper.
    Mzz, Czy
        (q + 1, q + 1) inner products of the components, (q + 1, c) of components and target.
    relevances, arrival
        (q + 1,) relevances of the components, and their order of arrival.
    table
        The support, variables with a loading: their moments, as in `columns.Stats`, and `B`, their
        rows of the paper's B, (q + 1,) each.
    """

    def __init__(
        self, n_components: int, n: int, space: TargetSpace, *, jacobi: bool, signed: bool
    ) -> None:
        super().__init__(n)
        self.n_components = n_components
        self._space = space
        self.jacobi = jacobi
        self.signed = signed
        self.count = 0
        self._threshold = _NO_THRESHOLD
        self._allocate(n_components + 1)

    def _allocate(self, size: int) -> None:
        c = self._space.c
        self.Z: Floats = np.zeros((size, self.n))
        self.Mzz: Floats = np.zeros((size, size))
        self.Czy: Floats = np.zeros((size, c))
        self.relevances: Floats = np.zeros(size)
        self.arrival: Floats = np.zeros(size)
        self.table = VariableTable(
            {"mean": (), "mean_error": (), "m2": (), "cxy": (c,), "B": (size,)}
        )

    # State

    @property
    def complete(self) -> bool:
        """Whether no variable was ever evicted: False, as nearly all are rejected."""
        return False

    @property
    def space(self) -> TargetSpace:
        """The target space."""
        return self._space

    # Learning

    @property
    def irrelevant_below(self) -> float:
        """The relevance up to which a column is rejected; -2 while there is room."""
        return self._threshold

    @property
    def exact_from(self) -> float:
        """The relevance from which moments must be exact: that of a column that may be kept."""
        return self.irrelevant_below

    def admit(self, chunk: Chunk, stats: Stats, first_arrival: int) -> None:
        """Add the columns of a chunk that are more relevant than the weakest component."""
        del first_arrival
        relevance = self._space.relevance(stats.m2, stats.cxy, signed=self.signed)
        indices, start = np.empty(_BATCH_COLUMNS, dtype=np.intp), 0
        while start < relevance.size:
            found, start = next_above_threshold(relevance, start, self._threshold, indices)
            if found:
                self._add_columns(chunk, stats, indices[:found], relevance[indices[:found]])

    def _add_columns(self, chunk: Chunk, stats: Stats, indices: Indices, relevance: Floats) -> None:
        """Add columns above the threshold, which rises with each of them."""
        self._copy_before_write()
        support = self.table
        support.reserve(indices.size)
        mean, low, m2, cxy = (array[indices] for array in stats)
        about = chunk.with_array_means(stats).mean[indices]
        state = (
            self.Z,
            self.Mzz,
            self.Czy,
            support.with_capacity("B"),
            support.with_capacity("mean"),
        )
        new = (
            chunk.columns(indices),
            about,
            m2,
            cxy,
            relevance,
            self._threshold,
            self.n_components,
        )
        joined = np.empty(indices.size, dtype=np.bool_)
        self.count, unloaded, self._threshold = add_above_threshold(
            *(*state, self.relevances, self.arrival, self.count, len(support), *new),
            *(*self._options, joined),
        )
        names = [chunk.names[j] for j in indices[joined].tolist()]
        new_rows = slice(len(support), len(support) + len(names))
        for field, values in (("mean", mean), ("mean_error", low), ("m2", m2), ("cxy", cxy)):
            support.with_capacity(field)[new_rows] = values[joined]
        support.name_rows(names)
        if unloaded:
            self._drop_unloaded()

    @property
    def _options(self) -> tuple[Floats, Floats, bool, bool, float, float]:
        space = self._space
        return space.weights, space.covariate_map, self.jacobi, self.signed, TIE_RTOL, VARIANCE_TOL

    def _rotate_and_drop(self) -> None:
        """Rotate the two least relevant components and drop the lesser (section 2.2 of the paper).

        The survivor keeps the lower index and the last component takes the other, so that no third
        component changes its index: downstream models see the same variable under the same name.
        """
        arrays = (self.Z, self.Mzz, self.Czy, self.table["B"], self.relevances, self.arrival)
        unloaded = rotate_and_drop(*arrays, self.count, *self._options, True)
        self.count -= 1
        if unloaded:
            self._drop_unloaded()

    def _drop_unloaded(self) -> None:
        self.table.keep(np.flatnonzero(self.table["B"].any(axis=1)))

    def _update_threshold(self) -> None:
        """Set the relevance that a column must exceed."""
        self._threshold = _NO_THRESHOLD
        if self.count == self.n_components:
            self._threshold = float(self.relevances[: self.count].min()) + TIE_RTOL

    def merge(self, other: Self, arrived: int) -> None:
        """Add the components of another model, then rotate and drop until q remain."""
        del arrived
        if not other.count:
            return
        self._copy_before_write()
        count = self.count
        if not count:
            self._set_arrays(other.to_state())
            self._update_threshold()
            return
        self._resize(max(count + other.count, self.n_components + 1))
        B = np.zeros((len(other.table), len(self.Z)))
        B[:, count : count + other.count] = other.table["B"][:, : other.count]
        self.table.append(other.table.names, **other.stats()._asdict(), B=B)
        offset = self.arrival[:count].max() + 1.0
        for k in range(other.count):
            m2 = float(other.Mzz[k, k])
            append_component(
                self.Z, self.Mzz, self.Czy, other.Z[k], 0.0, m2, other.Czy[k], self.count
            )
            self.relevances[self.count] = other.relevances[k]
            self.arrival[self.count] = offset + other.arrival[k]
            self.count += 1
        while self.count > self.n_components:
            self._rotate_and_drop()
        self._resize(self.n_components + 1)
        self._update_threshold()

    def _resize(self, size: int) -> None:
        """Change the number of components that the arrays have room for."""
        if size == len(self.Z):
            return
        state = self.to_state()
        self._allocate(size)
        self._set_arrays(state)

    def expect_valid(self) -> None:
        """Raise ValueError for values that no data can produce, as in a corrupt file."""
        m = self.count
        expect_relevances(self.relevances[:m], minimum=-1.0 if self.signed else 0.0)
        expect_between("arrivals", self.arrival[:m], 0.0, 2.0**53)
        expect_bounded("components", self.Z[:m], self.table["B"])
        expect_products(self.Mzz[:m, :m], "components")
        expect_sums("products", self.Czy[:m])

    # Undo, copies, files

    def _copied(self) -> dict[str, Any]:
        arrays = ("Z", "Mzz", "Czy", "relevances", "arrival", "table")
        return vars(self) | {name: vars(self)[name].copy() for name in arrays}

    def to_state(self) -> dict[str, Any]:
        """Return the state as arrays and JSON-compatible values."""
        m, support = self.count, self.table.to_state()
        return {
            "Z": self.Z[:m],
            "Mzz": self.Mzz[:m, :m],
            "Czy": self.Czy[:m],
            "relevance": self.relevances[:m],
            "arrival": self.arrival[:m],
            "support": support | {"B": self.table["B"][:, :m]},
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state that `to_state` returned."""
        m = length_in(state, "Z")
        c = self._space.c
        expect_shapes(state, Z=(m, self.n), Mzz=(m, m), Czy=(m, c), relevance=(m,), arrival=(m,))
        expect(state["support"], names=NamesKind())
        expect_shapes(state["support"], B=(len(state["support"]["names"]), m))
        if m > self.n_components:
            raise ValueError(f"Expected at most {self.n_components} components. Got: {m}.")
        self._set_arrays(state)
        self._update_threshold()

    def _set_arrays(self, state: dict[str, Any]) -> None:
        self.count = m = len(state["Z"])
        self.Z[:m] = state["Z"]
        self.Mzz[:m, :m] = state["Mzz"]
        self.Czy[:m] = state["Czy"]
        self.relevances[:m] = state["relevance"]
        self.arrival[:m] = state["arrival"]
        B = np.zeros((len(state["support"]["names"]), len(self.Z)))
        B[:, :m] = state["support"]["B"]
        self.table = VariableTable.from_state(state["support"] | {"B": B}, self.table.fields)
