"""One online factorisation of columns: a few components, and what they are refined by."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from streamsel.columns import Chunk, Stats
from streamsel.held.fit import Code, Fit, begin, learn
from streamsel.held.loadings import Loadings
from streamsel.held.part import Floats
from streamsel.held.pool import SamplePool
from streamsel.held.possible import expect_between, expect_bounded
from streamsel.held.waiting import Panel
from streamsel.shapes import Array, Count, Flag, Names, expect, expect_shapes


class Factorised(SamplePool):
    """x ≈ D w for every column x: the n x q components D, and what refines them by further columns.

    Columns wait in a panel, and are gone over so many at a time: how the stream is cut, and when
    the components are read off, changes no bit of them. The order of the columns does. Beside the
    components is a pool of the columns that vary most, of which new rows can be made.

    Parameters
    ----------
    n
        Number of observations.
    limit
        How many columns the pool keeps; twice as many at most.
    q
        Number of components; no more than n - 1 are.
    width
        How many columns wait until they are gone over.
    seed
        Which components to begin with.
    code
        What the method makes of a column.

    Attributes
    ----------
    fit
        The components, and what is known of the columns that were gone over.
    loadings
        Those of all columns, or of the largest: from a second reading, for as long as no further
        column comes.
    """

    why_apart = "what an online factorisation finds depends on all that came before"

    def __init__(self, n: int, limit: int, q: int, width: int, seed: int, code: Code) -> None:
        super().__init__(None, n, limit)
        self.limit: int = limit
        self.width, self.seed, self.code = width, seed, code
        # Whatever is below is replaced, never changed in place.
        self.fit = begin(n, min(q, n - 1), seed)
        self.loadings: Loadings | None = None
        self._panel, self._filled = Panel(n, 0, width), 0
        self._is_cut = False

    @property
    def complete(self) -> bool:
        """Whether the pool never let a variable go."""
        return not self._is_cut

    @property
    def indifferent_below(self) -> float:
        """Below which relevance a column changes nothing: none, for all columns count."""
        return -np.inf

    # Learning

    def admit(self, chunk: Chunk, stats: Stats, first_arrival: int, *_: Any, **__: Any) -> None:
        """Learn the columns of a chunk, in order."""
        places = np.flatnonzero(stats.m2)
        if not places.size:
            return
        self._changes()
        self.loadings = None
        start = 0
        while start < places.size:
            room = min(self.width - self._filled, 2 * self.limit - len(self.table))
            some = places[start : start + room]
            units = self.units_of(chunk, stats, some)
            self._await(units * np.sqrt(stats.m2[some])[:, None])
            self._keep(chunk, stats, first_arrival, some, units)
            start += room

    def _keep(
        self, chunk: Chunk, stats: Stats, first_arrival: int, places: Any, units: Floats
    ) -> None:
        """Take columns into the pool, and cut it back when it is full."""
        fields = {name: array[places] for name, array in stats._asdict().items()}
        names = [chunk.names[place] for place in places.tolist()]
        self.table.append(names, arrival=first_arrival + places, unit=units, **fields)
        if len(self.table) == 2 * self.limit:
            largest = np.argsort(-self.table["m2"], kind="stable")[: self.limit]
            self.table.keep(np.sort(largest))
            self._is_cut = True

    def _await(self, values: Floats) -> None:
        """Let columns wait, no more than there is room for; go over them when it is full."""
        if self._filled != self._panel.used:
            self._panel = self._panel.upto(self._filled)
        stop = self._filled + len(values)
        self._panel.values[self._filled : stop] = values
        self._panel.used = self._filled = stop
        if stop == self.width:
            self.fit = learn(self.fit, self._panel.values, self.code, self.seed)
            if self._panel.is_shared:
                self._panel = Panel(self.n, 0, self.width)
            self._panel.used = self._filled = 0

    def found(self) -> Fit:
        """Return what the components are, those that wait gone over too."""
        if not self._filled:
            return self.fit
        return learn(self.fit, self._panel.values[: self._filled], self.code, self.seed)

    def kept(self) -> Floats:
        """Return the columns of the pool, (p, n), a row each, centred; NaN where not observed."""
        kept: Floats = self.table["unit"] * np.sqrt(self.table["m2"])[:, None]
        return kept

    def take(self, loadings: Loadings) -> None:
        """Take up what a second reading found."""
        self._changes()
        self.loadings = loadings

    def merge(self, other: Self, arrived: int) -> None:
        """Take over what another has learnt, where nothing was learnt here; refuse otherwise."""
        if arrived:
            raise ValueError(
                "Expected a model that has learnt no columns yet to merge into. Got: one that has "
                f"made components of {arrived}, without those of the other.\n"
                f"Hint: {self.why_apart}; learn one stream after the other with one model."
            )
        self._changes()
        self.set_state(other.to_state())

    def expect_possible(self) -> None:
        """Raise ValueError for numbers that no data lead to: a file may hold any."""
        super().expect_possible()
        waiting = np.nan_to_num(self._panel.values[: self._filled])
        expect_bounded("columns", waiting)
        if not (np.square(waiting).sum(axis=1) > 0.0).all():
            raise ValueError("Expected columns that vary. Got: others.")
        self.fit.expect_possible()
        if self.loadings is not None:
            self.loadings.expect_possible()

    def _expect_units(self) -> None:
        # Where a column has gaps some of its length 1 is not known.
        expect_between("observations", np.nan_to_num(self.table["unit"]), -2.0, 2.0)

    # Undo, copies, files

    def _copied(self) -> dict[str, Any]:
        self._panel.is_shared = True
        return super()._copied()

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs: arrays, and values that JSON can hold."""
        waiting, table = self._panel.values[: self._filled], self.table.to_state()
        state = {
            "table": table,
            "fit": self.fit._asdict(),
            "waiting": waiting,
            "filled": self._filled,
            "let_go": self._is_cut,
        }
        if self.code.takes_missing:
            # NaN says that a value was not observed; what is kept in a file is finite.
            state["lacking"] = np.isnan(waiting)
            state["waiting"] = np.nan_to_num(waiting, nan=0.0)
            state["table"] = table | {"unit": np.nan_to_num(table["unit"], nan=0.0)}
            state["gaps"] = np.isnan(table["unit"])
        return state if self.loadings is None else state | {"loadings": self.loadings._asdict()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Take up what `to_state` returned, into a fresh part made of the same parameters."""
        expect(state, filled=Count(), let_go=Flag())
        expect(state["table"], names=Names())
        expect_shapes(state, waiting=(state["filled"], self.n))
        table, waiting = dict(state["table"]), np.array(state["waiting"])
        m, p = len(waiting), len(table["names"])
        if m >= self.width:
            raise ValueError(f"Expected fewer than {self.width} columns that wait. Got: {m}.")
        if self.code.takes_missing:
            gaps = {"lacking": Array((m, self.n), np.bool_), "gaps": Array((p, self.n), np.bool_)}
            expect(state, **gaps)
            expect_shapes(table, unit=(p, self.n))
            waiting[state["lacking"]] = np.nan
            table["unit"] = np.where(state["gaps"], np.nan, table["unit"])
        super().set_state({"table": table, "discarded": -1.0, "floor": -1.0})
        self.fit = Fit.from_state(state["fit"], self.n, self.fit.D.shape[1])
        self.loadings = Loadings.from_state(state["loadings"]) if "loadings" in state else None
        self._is_cut = state["let_go"]
        self._panel = Panel(self.n, 0, self.width)
        self._panel.values[:m] = waiting
        self._panel.used = self._filled = m
