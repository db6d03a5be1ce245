"""Columns buffered until there are enough of them to multiply."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel._jit.gram import add_stored, gather
from streamsel.columns import SparseChunk, Stats
from streamsel.held.part import Floats, Places
from streamsel.shapes import Array, expect, expect_shapes, rows_of
from streamsel.threads import in_threads


class Panel:
    """Buffered dense columns, one per row, centred and scaled.

    A panel may be shared by a state and its snapshots: rows are only appended after the used ones,
    by the owner that uses all of them.
    """

    def __init__(self, n: int, q: int, width: int) -> None:
        self.values: Floats = np.zeros((width, n))
        self.factors: Floats = np.zeros((width, q))
        self.used = 0
        self.is_shared = False

    def upto(self, size: int) -> Panel:
        """Return a copy in which only the first rows are used."""
        width, n = self.values.shape
        panel = Panel(n, self.factors.shape[1], width)
        panel.values[:size], panel.factors[:size] = self.values[:size], self.factors[:size]
        panel.used = size
        return panel


class ByRow(NamedTuple):
    """Positions of each row's values among those of sparse columns, and their columns."""

    entries: NDArray[np.int64]
    columns: NDArray[np.int32]
    indptr: NDArray[np.int32]


class Stored(NamedTuple):
    """Buffered sparse columns, scaled.

    Parameters
    ----------
    values, rows, ends
        The parts of a CSC matrix.
    means
        (b,) the means of the columns, scaled too.
    factors
        (b, q).
    """

    values: Floats
    rows: NDArray[np.int32]
    ends: NDArray[np.int64]
    means: Floats
    factors: Floats

    @classmethod
    def of(
        cls, chunk: SparseChunk, stats: Stats, places: Places, scale: Floats, factors: Floats
    ) -> Stored:
        """Return some columns of a chunk."""
        sizes = chunk.indptr[places + 1] - chunk.indptr[places]
        ends = np.append(0, np.cumsum(sizes, dtype=np.int64))
        values, rows = np.empty(ends[-1]), np.empty(ends[-1], dtype=np.int32)
        gather(chunk.data, chunk.indices, chunk.indptr, places, scale, values, rows)
        means = stats.mean[places] * scale + stats.low[places] * scale
        return cls(values, rows, ends, means, factors)

    @classmethod
    def together(cls, pieces: tuple[Stored, ...], q: int) -> Stored:
        """Concatenate pieces of q weightings into one."""
        none = (np.zeros(0), np.zeros(0, np.int32), np.zeros(1, np.int64))
        pieces = (cls(*none, np.zeros(0), np.zeros((0, q))), *pieces)
        sizes = np.concatenate([np.diff(piece.ends) for piece in pieces])
        values, rows, _, means, factors = map(np.concatenate, zip(*pieces, strict=True))
        return cls(values, rows, np.append(0, np.cumsum(sizes)), means, factors)

    def by_row(self, n: int) -> ByRow:
        """Return the positions of the values of each of n rows."""
        from scipy.sparse import csc_array

        entries, shape = np.arange(self.values.size), (n, self.means.size)
        by_row = csc_array((entries, self.rows, self.ends), shape=shape).tocsr()
        return ByRow(by_row.data, by_row.indices, by_row.indptr)

    def add_products(
        self, by_row: ByRow, which: int, flat: Floats, starts: NDArray[np.int64], n_jobs: int
    ) -> None:
        """Add Σ w x xᵀ of a weighting to a triangle whose rows start at `starts`."""
        weight, edges = self.factors[:, which] ** 2, np.array([0, starts.size])
        if n_jobs > 1:
            # Equal work per thread.
            work = np.cumsum(by_row.entries - self.ends[by_row.columns] + 1)
            work = np.append(0, work)[by_row.indptr]
            edges = np.searchsorted(work, np.linspace(0, work[-1], n_jobs + 1))
            edges[0], edges[-1] = 0, starts.size

        def add(part: slice) -> None:
            csc = (self.values, self.rows, self.ends, weight)
            add_stored(*csc, *by_row, edges[part.start], edges[part.stop], starts, flat)

        in_threads(add, n_jobs, n_jobs)

    def about_means(self, n: int, which: int) -> tuple[Floats, float]:
        """Return Σ w m x, (n,), and Σ w m² of a weighting, m the mean of x."""
        means = self.factors[:, which] ** 2 * self.means
        terms = np.repeat(means, np.diff(self.ends)) * self.values
        u = np.bincount(self.rows, terms, minlength=n)
        return u.astype(np.float64, copy=False), float((means * self.means).sum())

    @classmethod
    def from_state(cls, state: dict[str, Any], n: int, q: int) -> Stored:
        """Return the columns of n rows in a file; indices are checked before use."""
        b, size = rows_of(state, "means"), rows_of(state, "rows")
        expect_shapes(state, values=(size,), means=(b,), factors=(b, q))
        expect(state, rows=Array((size,), np.int32, least=0, below=n))
        expect(state, ends=Array((b + 1,), np.int64, least=0, below=size + 1))
        stored = cls(*(state[name] for name in cls._fields))
        if stored.ends[0] != 0 or stored.ends[-1] != size or (np.diff(stored.ends) < 0).any():
            raise ValueError("Expected consecutive sparse columns. Got: column ends out of order.")
        return stored
