"""Online factorisation of columns: a few components, and the sums that refine them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from streamsel.data.chunks import Chunk, Stats
from streamsel.serialization.invariants import expect_between, expect_bounded
from streamsel.serialization.schema import (
    ArrayKind,
    BoolKind,
    CountKind,
    NamesKind,
    expect,
    expect_shapes,
)
from streamsel.state.base import Floats, StoredLoadings
from streamsel.state.factorization.model import Coder, FactorModel, initial_factors, learn_factors
from streamsel.state.gram.buffers import DenseBuffer
from streamsel.state.pool.pool import Pool


class FactorizationState(Pool):
    """Online factorisation x ≈ D w of columns: n x q components D, refined by every further column.

    Columns are buffered in a panel and processed in batches of a fixed size, so the result does not
    depend, to the last bit, on how the stream is cut or on when the components are read. It does
    depend on the order of the columns. A pool keeps the columns of largest variance, to transform
    new rows.

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

    unmergeable_reason = "the result of an online factorisation depends on all earlier columns"

    def __init__(self, n: int, limit: int, q: int, width: int, seed: int, code: Coder) -> None:
        super().__init__(None, n, limit, samples=True)
        self.limit: int = limit
        self.width, self.seed, self.code = width, seed, code
        # The attributes below are replaced, never changed in place.
        self.fit = initial_factors(n, min(q, n - 1), seed)
        self.loadings: StoredLoadings | None = None
        self._panel, self._n_buffered = DenseBuffer(n, 0, width), 0
        self._is_cut = False

    @property
    def complete(self) -> bool:
        """Whether the pool never discarded a variable."""
        return not self._is_cut

    @property
    def irrelevant_below(self) -> float:
        """The relevance below which a column changes nothing: -inf, because all columns count."""
        return -np.inf

    # Learning

    def admit(self, chunk: Chunk, stats: Stats, first_arrival: int, *_: Any, **__: Any) -> None:
        """Learn the columns of a chunk, in order."""
        varying = np.flatnonzero(stats.m2)
        if not varying.size:
            return
        self._copy_before_write()
        self.loadings = None
        start = 0
        while start < varying.size:
            room = min(self.width - self._n_buffered, 2 * self.limit - len(self.table))
            indices = varying[start : start + room]
            units = self.unit_rows_of(chunk, stats, indices)
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
        if self._n_buffered != self._panel.used:
            self._panel = self._panel.copy_of_first(self._n_buffered)
        stop = self._n_buffered + len(values)
        self._panel.values[self._n_buffered : stop] = values
        self._panel.used = self._n_buffered = stop
        if stop == self.width:
            self.fit = learn_factors(self.fit, self._panel.values, self.code, self.seed)
            if self._panel.is_shared:
                self._panel = DenseBuffer(self.n, 0, self.width)
            self._panel.used = self._n_buffered = 0

    def current_fit(self) -> FactorModel:
        """Return the current fit, including the buffered columns."""
        if not self._n_buffered:
            return self.fit
        return learn_factors(self.fit, self._panel.values[: self._n_buffered], self.code, self.seed)

    def pool_columns(self) -> Floats:
        """Return the columns of the pool, (p, n), one per row, centred; NaN where not observed."""
        kept: Floats = self.table["unit"] * np.sqrt(self.table["m2"])[:, None]
        return kept

    def set_loadings(self, loadings: StoredLoadings) -> None:
        """Store the loadings that a second pass found."""
        self._copy_before_write()
        self.loadings = loadings

    def merge(self, other: Self, arrived: int) -> None:
        """Copy another state if nothing was learnt here; raise ValueError otherwise."""
        if arrived:
            raise ValueError(
                "Expected a model that has learnt no columns yet to merge into. Got: one that has "
                f"learnt {arrived} columns.\n"
                f"Hint: {self.unmergeable_reason}; learn one stream after the other with one model."
            )
        self._copy_before_write()
        self.set_state(other.to_state())

    def expect_valid(self) -> None:
        """Raise ValueError for values that no data can produce, as a file may hold."""
        super().expect_valid()
        buffered = np.nan_to_num(self._panel.values[: self._n_buffered])
        expect_bounded("columns", buffered)
        if not (np.square(buffered).sum(axis=1) > 0.0).all():
            raise ValueError("Expected buffered columns that vary. Got: a constant column.")
        self.fit.expect_valid()
        if self.loadings is not None:
            self.loadings.expect_valid()

    def _expect_units(self) -> None:
        # The observed part of a column with missing values is shorter than 1.
        expect_between("observations", np.nan_to_num(self.table["unit"]), -2.0, 2.0)

    # Undo, copies, files

    def _copied(self) -> dict[str, Any]:
        self._panel.is_shared = True
        return super()._copied()

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        buffered, table = self._panel.values[: self._n_buffered], self.table.to_state()
        state = {
            "table": table,
            "fit": self.fit._asdict(),
            "buffered": buffered,
            "n_buffered": self._n_buffered,
            "is_cut": self._is_cut,
        }
        if self.code.takes_missing:
            # Arrays in a file are finite, so missing values are stored as masks.
            state["missing"] = np.isnan(buffered)
            state["buffered"] = np.nan_to_num(buffered, nan=0.0)
            state["table"] = table | {"unit": np.nan_to_num(table["unit"], nan=0.0)}
            state["unit_missing"] = np.isnan(table["unit"])
        return state if self.loadings is None else state | {"loadings": self.loadings._asdict()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""
        expect(state, n_buffered=CountKind(), is_cut=BoolKind())
        expect(state["table"], names=NamesKind())
        expect_shapes(state, buffered=(state["n_buffered"], self.n))
        table, buffered = dict(state["table"]), np.array(state["buffered"])
        m, p = len(buffered), len(table["names"])
        if m >= self.width:
            raise ValueError(f"Expected fewer than {self.width} buffered columns. Got: {m}.")
        if self.code.takes_missing:
            gaps = {
                "missing": ArrayKind((m, self.n), np.bool_),
                "unit_missing": ArrayKind((p, self.n), np.bool_),
            }
            expect(state, **gaps)
            expect_shapes(table, unit=(p, self.n))
            buffered[state["missing"]] = np.nan
            table["unit"] = np.where(state["unit_missing"], np.nan, table["unit"])
        super().set_state(
            {"table": table, "max_discarded_bound": -1.0, "admission_threshold": -1.0}
        )
        self.fit = FactorModel.from_state(state["fit"], self.n, self.fit.D.shape[1])
        self.loadings = (
            StoredLoadings.from_state(state["loadings"]) if "loadings" in state else None
        )
        self._is_cut = state["is_cut"]
        self._panel = DenseBuffer(self.n, 0, self.width)
        self._panel.values[:m] = buffered
        self._panel.used = self._n_buffered = m
