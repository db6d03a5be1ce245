"""Online factorisation of columns: a few components, and the sums that refine them."""

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
    """Online factorisation x ≈ D w of columns: n x q components D, refined by every further column.

    Columns are buffered in a panel and processed in batches of a fixed size, so the result does not
    depend, to the last bit, on how the stream is cut or on when the components are read. It does
    depend on the order of the columns. A pool keeps the columns of largest variance, from which new
    rows can be computed.

    Parameters
    ----------
    n
        Number of observations.
    limit
        Number of columns that the pool keeps; it holds at most twice as many.
    q
        Number of components; at most n - 1 are used.
    width
        Number of columns in a batch.
    seed
        Seed of the random initial components.
    code
        How the method codes a column.

    Attributes
    ----------
    fit
        The components, and the sums over the columns processed so far.
    loadings
        Loadings of all columns, or the largest ones, from a second pass; None again when another
        column arrives.
    """

    why_apart = "the result of an online factorisation depends on all earlier columns"

    def __init__(self, n: int, limit: int, q: int, width: int, seed: int, code: Code) -> None:
        super().__init__(None, n, limit)
        self.limit: int = limit
        self.width, self.seed, self.code = width, seed, code
        # The attributes below are replaced, never changed in place.
        self.fit = begin(n, min(q, n - 1), seed)
        self.loadings: Loadings | None = None
        self._panel, self._filled = Panel(n, 0, width), 0
        self._is_cut = False

    @property
    def complete(self) -> bool:
        """Whether the pool never discarded a variable."""
        return not self._is_cut

    @property
    def indifferent_below(self) -> float:
        """The relevance below which a column changes nothing: -inf, because all columns count."""
        return -np.inf

    # Learning

    def admit(self, chunk: Chunk, stats: Stats, first_arrival: int, *_: Any, **__: Any) -> None:
        """Learn the columns of a chunk, in order."""
        varying = np.flatnonzero(stats.m2)
        if not varying.size:
            return
        self._changes()
        self.loadings = None
        start = 0
        while start < varying.size:
            room = min(self.width - self._filled, 2 * self.limit - len(self.table))
            indices = varying[start : start + room]
            units = self.units_of(chunk, stats, indices)
            self._buffer(units * np.sqrt(stats.m2[indices])[:, None])
            self._keep(chunk, stats, first_arrival, indices, units)
            start += room

    def _keep(
        self, chunk: Chunk, stats: Stats, first_arrival: int, indices: Any, units: Floats
    ) -> None:
        """Add columns to the pool, and cut it back when it is full."""
        fields = {name: array[indices] for name, array in stats._asdict().items()}
        names = [chunk.names[j] for j in indices.tolist()]
        self.table.append(names, arrival=first_arrival + indices, unit=units, **fields)
        if len(self.table) == 2 * self.limit:
            largest = np.argsort(-self.table["m2"], kind="stable")[: self.limit]
            self.table.keep(np.sort(largest))
            self._is_cut = True

    def _buffer(self, values: Floats) -> None:
        """Buffer columns, at most as many as fit; process the batch when it is full."""
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
        """Return the current fit, including the buffered columns."""
        if not self._filled:
            return self.fit
        return learn(self.fit, self._panel.values[: self._filled], self.code, self.seed)

    def kept(self) -> Floats:
        """Return the columns of the pool, (p, n), one per row, centred; NaN where not observed."""
        kept: Floats = self.table["unit"] * np.sqrt(self.table["m2"])[:, None]
        return kept

    def take(self, loadings: Loadings) -> None:
        """Store the loadings that a second pass found."""
        self._changes()
        self.loadings = loadings

    def merge(self, other: Self, arrived: int) -> None:
        """Copy another state if nothing was learnt here; raise ValueError otherwise."""
        if arrived:
            raise ValueError(
                "Expected a model that has learnt no columns yet to merge into. Got: one that has "
                f"learnt {arrived} columns.\n"
                f"Hint: {self.why_apart}; learn one stream after the other with one model."
            )
        self._changes()
        self.set_state(other.to_state())

    def expect_possible(self) -> None:
        """Raise ValueError for values that no data can produce, as a file may hold."""
        super().expect_possible()
        buffered = np.nan_to_num(self._panel.values[: self._filled])
        expect_bounded("columns", buffered)
        if not (np.square(buffered).sum(axis=1) > 0.0).all():
            raise ValueError("Expected buffered columns that vary. Got: a constant column.")
        self.fit.expect_possible()
        if self.loadings is not None:
            self.loadings.expect_possible()

    def _expect_units(self) -> None:
        # The observed part of a column with missing values is shorter than 1.
        expect_between("observations", np.nan_to_num(self.table["unit"]), -2.0, 2.0)

    # Undo, copies, files

    def _copied(self) -> dict[str, Any]:
        self._panel.is_shared = True
        return super()._copied()

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        buffered, table = self._panel.values[: self._filled], self.table.to_state()
        state = {
            "table": table,
            "fit": self.fit._asdict(),
            "waiting": buffered,
            "filled": self._filled,
            "let_go": self._is_cut,
        }
        if self.code.takes_missing:
            # Arrays in a file are finite, so missing values are stored as masks.
            state["lacking"] = np.isnan(buffered)
            state["waiting"] = np.nan_to_num(buffered, nan=0.0)
            state["table"] = table | {"unit": np.nan_to_num(table["unit"], nan=0.0)}
            state["gaps"] = np.isnan(table["unit"])
        return state if self.loadings is None else state | {"loadings": self.loadings._asdict()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""
        expect(state, filled=Count(), let_go=Flag())
        expect(state["table"], names=Names())
        expect_shapes(state, waiting=(state["filled"], self.n))
        table, buffered = dict(state["table"]), np.array(state["waiting"])
        m, p = len(buffered), len(table["names"])
        if m >= self.width:
            raise ValueError(f"Expected fewer than {self.width} buffered columns. Got: {m}.")
        if self.code.takes_missing:
            gaps = {"lacking": Array((m, self.n), np.bool_), "gaps": Array((p, self.n), np.bool_)}
            expect(state, **gaps)
            expect_shapes(table, unit=(p, self.n))
            buffered[state["lacking"]] = np.nan
            table["unit"] = np.where(state["gaps"], np.nan, table["unit"])
        super().set_state({"table": table, "discarded": -1.0, "floor": -1.0})
        self.fit = Fit.from_state(state["fit"], self.n, self.fit.D.shape[1])
        self.loadings = Loadings.from_state(state["loadings"]) if "loadings" in state else None
        self._is_cut = state["let_go"]
        self._panel = Panel(self.n, 0, self.width)
        self._panel.values[:m] = buffered
        self._panel.used = self._filled = m
