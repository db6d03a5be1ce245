"""SOSPCA on columns: rotated components and everything that turns with them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from streamsel._jit.relevance import join, rotate_and_drop, take_up
from streamsel._jit.search import next_above
from streamsel.columns import Chunk, Stats
from streamsel.held.part import ColumnHeld, Floats, Places
from streamsel.held.possible import (
    expect_between,
    expect_bounded,
    expect_products,
    expect_relevances,
    expect_sums,
)
from streamsel.held.table import Table
from streamsel.shapes import Names, expect, expect_shapes, rows_of
from streamsel.target.space import TargetSpace
from streamsel.ties import TIE

# A rotated component with less than this part of the pair's smaller variance has none.
VANISHED = 1e-14
# So many columns above the bar join in one go. As some do the bar rises, and the rest of them were
# copied in vain.
_TOGETHER = 16
# Below every relevance, signed ones too.
_NO_BAR = -2.0


class Components(ColumnHeld):
    """Components, their loadings and their moments, all rotated together in closed form.

    Parameters
    ----------
    n_components
        How many components stay; there is room for one more, that joins before one is dropped.
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
        Components held; they stand in the first slots of every array.
    Z
        (q + 1, n) scores of the training rows, the paper's z_k.
    Mzz, Czy
        (q + 1, q + 1) sums of products of the components, (q + 1, c) of them with the target.
    relevances, arrival
        (q + 1,) of each with the target, and the order in which they came.
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
        self._bar = _NO_BAR
        self._make_room(n_components + 1)

    def _make_room(self, size: int) -> None:
        c = self._space.c
        self.Z: Floats = np.zeros((size, self.n))
        self.Mzz: Floats = np.zeros((size, size))
        self.Czy: Floats = np.zeros((size, c))
        self.relevances: Floats = np.zeros(size)
        self.arrival: Floats = np.zeros(size)
        self.table = Table({"mean": (), "low": (), "m2": (), "cxy": (c,), "B": (size,)})

    # What is held

    @property
    def complete(self) -> bool:
        """Whether no variable was ever let go: nearly all were."""
        return False

    @property
    def space(self) -> TargetSpace:
        """The target space."""
        return self._space

    # Learning

    @property
    def indifferent_below(self) -> float:
        """Below which relevance a column does not join; -2 while there is room."""
        return self._bar

    def admit(self, chunk: Chunk, stats: Stats, first_arrival: int) -> None:
        """Let the columns of a chunk join that are more relevant than the weakest component."""
        del first_arrival
        relevance = self._space.relevance(stats.m2, stats.cxy, signed=self.signed)
        places, start = np.empty(_TOGETHER, dtype=np.intp), 0
        while start < relevance.size:
            found, start = next_above(relevance, start, self._bar, places)
            if found:
                self._take_up(chunk, stats, places[:found], relevance[places[:found]])

    def _take_up(self, chunk: Chunk, stats: Stats, places: Places, relevance: Floats) -> None:
        """Let columns join that are above the bar, and go on being as those before them join."""
        self._changes()
        support = self.table
        support.make_room(places.size)
        mean, low, m2, cxy = (array[places] for array in stats)
        about = chunk.about(stats).mean[places]
        state = (self.Z, self.Mzz, self.Czy, support.with_room("B"), support.with_room("mean"))
        new = (chunk.columns(places), about, m2, cxy, relevance, self._bar, self.n_components)
        joined = np.empty(places.size, dtype=np.bool_)
        self.count, unloaded, self._bar = take_up(
            *(*state, self.relevances, self.arrival, self.count, len(support), *new),
            *(*self._options, joined),
        )
        names = [chunk.names[j] for j in places[joined].tolist()]
        new_rows = slice(len(support), len(support) + len(names))
        for field, values in (("mean", mean), ("low", low), ("m2", m2), ("cxy", cxy)):
            support.with_room(field)[new_rows] = values[joined]
        support.claim(names)
        if unloaded:
            self._forget_unloaded()

    @property
    def _options(self) -> tuple[Floats, Floats, bool, bool, float, float]:
        space = self._space
        return space.weights, space.given, self.jacobi, self.signed, TIE, VANISHED

    def _rotate_and_drop(self) -> None:
        """Rotate the two least relevant components and drop the lesser (section 2.2 of the paper).

        The survivor stays in the lower slot and the last component takes the other, so that no
        third one changes its slot: what stands behind the model in a pipeline sees the same
        variable under the same name.
        """
        arrays = (self.Z, self.Mzz, self.Czy, self.table["B"], self.relevances, self.arrival)
        unloaded = rotate_and_drop(*arrays, self.count, *self._options)
        self.count -= 1
        if unloaded:
            self._forget_unloaded()

    def _forget_unloaded(self) -> None:
        self.table.keep(np.flatnonzero(self.table["B"].any(axis=1)))

    def _raise_bar(self) -> None:
        """Note what the relevance of a column must exceed to join."""
        self._bar = _NO_BAR
        if self.count == self.n_components:
            self._bar = float(self.relevances[: self.count].min()) + TIE

    def merge(self, other: Self, arrived: int) -> None:
        """Put the components of both together, then rotate and drop until q remain."""
        del arrived
        if not other.count:
            return
        self._changes()
        mine = self.count
        if not mine:
            self._fill(other.to_state())
            self._raise_bar()
            return
        self._resize(max(mine + other.count, self.n_components + 1))
        B = np.zeros((len(other.table), len(self.Z)))
        B[:, mine : mine + other.count] = other.table["B"][:, : other.count]
        self.table.append(other.table.names, **other.stats()._asdict(), B=B)
        came = self.arrival[:mine].max() + 1.0
        for k in range(other.count):
            m2 = float(other.Mzz[k, k])
            join(self.Z, self.Mzz, self.Czy, other.Z[k], 0.0, m2, other.Czy[k], self.count)
            self.relevances[self.count] = other.relevances[k]
            self.arrival[self.count] = came + other.arrival[k]
            self.count += 1
        while self.count > self.n_components:
            self._rotate_and_drop()
        self._resize(self.n_components + 1)
        self._raise_bar()

    def _resize(self, size: int) -> None:
        """Hold as much with another number of slots, no fewer than are held."""
        if size == len(self.Z):
            return
        state = self.to_state()
        self._make_room(size)
        self._fill(state)

    def expect_possible(self) -> None:
        """Raise ValueError for numbers that no data lead to: a file may hold any."""
        m = self.count
        expect_relevances(self.relevances[:m], least=-1.0 if self.signed else 0.0)
        expect_between("arrivals", self.arrival[:m], 0.0, 2.0**53)
        expect_bounded("components", self.Z[:m], self.table["B"])
        expect_products(self.Mzz[:m, :m], "components")
        expect_sums("products", self.Czy[:m])

    # Undo, copies, files

    def _copied(self) -> dict[str, Any]:
        arrays = ("Z", "Mzz", "Czy", "relevances", "arrival", "table")
        return vars(self) | {name: vars(self)[name].copy() for name in arrays}

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs: arrays, and values that JSON can hold."""
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
        """Take up what `to_state` returned, into a fresh part made of the same parameters."""
        m = rows_of(state, "Z")
        c = self._space.c
        expect_shapes(state, Z=(m, self.n), Mzz=(m, m), Czy=(m, c), relevance=(m,), arrival=(m,))
        expect(state["support"], names=Names())
        expect_shapes(state["support"], B=(len(state["support"]["names"]), m))
        if m > self.n_components:
            raise ValueError(f"Expected at most {self.n_components} components. Got: {m}.")
        self._fill(state)
        self._raise_bar()

    def _fill(self, state: dict[str, Any]) -> None:
        self.count = m = len(state["Z"])
        self.Z[:m] = state["Z"]
        self.Mzz[:m, :m] = state["Mzz"]
        self.Czy[:m] = state["Czy"]
        self.relevances[:m] = state["relevance"]
        self.arrival[:m] = state["arrival"]
        B = np.zeros((len(state["support"]["names"]), len(self.Z)))
        B[:, :m] = state["support"]["B"]
        self.table = Table.from_state(state["support"] | {"B": B}, self.table.fields)
