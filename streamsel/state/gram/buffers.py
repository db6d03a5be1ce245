"""Buffers of dense and sparse columns, for states that process them in batches."""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from streamsel._kernels.gram import add_sparse_products, center, center_stored, gather_stored
from streamsel._utils.rollback import Restore
from streamsel._utils.system import effective_jobs, run_in_threads
from streamsel.data.chunks import Chunk, DenseChunk, GeneratedChunk, SparseChunk, Stats
from streamsel.serialization.invariants import expect_bounded, expect_factors
from streamsel.serialization.schema import (
    ArrayKind,
    expect,
    expect_finite,
    expect_shapes,
    length_in,
)
from streamsel.state.base import Floats, Indices, State


class DenseBuffer:
    """Buffered dense columns, one per row, centred and scaled.

    A panel may be shared by a state and its snapshots: rows are only appended after the used ones,
    by the owner that uses all of them.
    """

    def __init__(self, n: int, q: int, width: int) -> None:
        self.values: Floats = np.zeros((width, n))
        self.factors: Floats = np.zeros((width, q))
        self.used = 0
        self.is_shared = False

    def copy_of_first(self, size: int) -> DenseBuffer:
        """Return a copy in which only the first rows are used."""
        width, n = self.values.shape
        panel = DenseBuffer(n, self.factors.shape[1], width)
        panel.values[:size], panel.factors[:size] = self.values[:size], self.factors[:size]
        panel.used = size
        return panel


class RowIndex(NamedTuple):
    """Positions of each row's values among those of sparse columns, and their columns."""

    entries: NDArray[np.int64]
    columns: NDArray[np.int32]
    indptr: NDArray[np.int32]


class SparseBuffer(NamedTuple):
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
        cls, chunk: SparseChunk, stats: Stats, indices: Indices, scale: Floats, factors: Floats
    ) -> SparseBuffer:
        """Return some columns of a chunk."""
        sizes = chunk.indptr[indices + 1] - chunk.indptr[indices]
        ends = np.append(0, np.cumsum(sizes, dtype=np.int64))
        values, rows = np.empty(ends[-1]), np.empty(ends[-1], dtype=np.int32)
        gather_stored(chunk.data, chunk.indices, chunk.indptr, indices, scale, values, rows)
        means = stats.mean[indices] * scale + stats.mean_error[indices] * scale
        return cls(values, rows, ends, means, factors)

    @classmethod
    def concatenate(cls, pieces: tuple[SparseBuffer, ...], q: int) -> SparseBuffer:
        """Concatenate pieces of q weightings into one."""
        if len(pieces) == 1:
            return pieces[0]
        none = (np.zeros(0), np.zeros(0, np.int32), np.zeros(1, np.int64))
        pieces = (cls(*none, np.zeros(0), np.zeros((0, q))), *pieces)
        sizes = np.concatenate([np.diff(piece.ends) for piece in pieces])
        values, rows, _, means, factors = map(np.concatenate, zip(*pieces, strict=True))
        return cls(values, rows, np.append(0, np.cumsum(sizes)), means, factors)

    def batches(self, size: int) -> Iterator[SparseBuffer]:
        """Yield so many columns at a time, as views."""
        for start in range(0, self.means.size, size):
            columns = slice(start, start + size)
            ends = self.ends[start : start + size + 1]
            values = slice(ends[0], ends[-1])
            yield SparseBuffer(
                self.values[values],
                self.rows[values],
                ends - ends[0],
                self.means[columns],
                self.factors[columns],
            )

    def by_row(self, n: int) -> RowIndex:
        """Return the positions of the values of each of n rows."""
        from scipy.sparse import csc_array

        entries, shape = np.arange(self.values.size), (n, self.means.size)
        by_row = csc_array((entries, self.rows, self.ends), shape=shape).tocsr()
        return RowIndex(by_row.data, by_row.indices, by_row.indptr)

    def add_products(
        self, by_row: RowIndex, which: int, flat: Floats, starts: NDArray[np.int64], n_jobs: int
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
            add_sparse_products(*csc, *by_row, edges[part.start], edges[part.stop], starts, flat)

        run_in_threads(add, n_jobs, n_jobs)

    def mean_products(self, n: int, which: int) -> tuple[Floats, float]:
        """Return Σ w m x, (n,), and Σ w m² of a weighting, m the mean of x."""
        means = self.factors[:, which] ** 2 * self.means
        terms = np.repeat(means, np.diff(self.ends)) * self.values
        u = np.bincount(self.rows, terms, minlength=n)
        return u.astype(np.float64, copy=False), float((means * self.means).sum())

    @classmethod
    def from_state(cls, state: dict[str, Any], n: int, q: int) -> SparseBuffer:
        """Return the columns of n rows in a file; indices are checked before use."""
        b, size = length_in(state, "means"), length_in(state, "rows")
        expect_shapes(state, values=(size,), means=(b,), factors=(b, q))
        expect(state, rows=ArrayKind((size,), np.int32, minimum=0, below=n))
        expect(state, ends=ArrayKind((b + 1,), np.int64, minimum=0, below=size + 1))
        stored = cls(*(state[name] for name in cls._fields))
        if stored.ends[0] != 0 or stored.ends[-1] != size or (np.diff(stored.ends) < 0).any():
            raise ValueError("Expected consecutive sparse columns. Got: column ends out of order.")
        return stored


# Rows of a tall matrix that are multiplied at once, whatever the number of threads.
_PIECE = 4096


class CenteredColumns(Protocol):
    """A matrix of centred columns X̃, (n, b), as a factor of products."""

    def rmatmul(self, V: Floats) -> Floats:
        """Return X̃ᵀV, (b, k), for V (n, k)."""

    def matmul(self, W: Floats) -> Floats:
        """Return X̃W, (n, k), for W (b, k)."""

    def gram(self) -> Floats:
        """Return X̃ᵀX̃, (b, b)."""


class DenseCentered:
    """Columns that are already centred, one per row.

    Parameters
    ----------
    X
        (b, n), its rows contiguous.
    n_jobs
        Number of threads; it does not change the result.
    """

    def __init__(self, X: Floats, n_jobs: int) -> None:
        self.X, self.n_jobs = X, n_jobs

    def rmatmul(self, V: Floats) -> Floats:
        """Return X̃ᵀV, (b, k), for V (n, k)."""
        return sum_over_rows(lambda part: self.X[:, part] @ V[part], len(V), self.n_jobs)

    def matmul(self, W: Floats) -> Floats:
        """Return X̃W, (n, k), for W (b, k)."""
        out = np.empty((self.X.shape[1], W.shape[1]))

        def fill(part: slice) -> None:
            np.matmul(self.X[:, part].T, W, out=out[part])

        over_rows(fill, len(out), self.n_jobs)
        return out

    def gram(self) -> Floats:
        """Return X̃ᵀX̃, (b, b)."""
        X = self.X
        return sum_over_rows(lambda part: X[:, part] @ X[:, part].T, X.shape[1], self.n_jobs)


class SparseCentered:
    """Columns x as stored, which are never centred: x̃ = x - m1, m the mean of x.

    Parameters
    ----------
    stored
        The columns, of one weighting.
    n
        Number of observations.
    """

    def __init__(self, stored: SparseBuffer, n: int) -> None:
        from scipy.sparse import csr_array

        b = stored.means.size
        self.n, self.means = n, stored.means
        # Columns of a CSC matrix are the rows of its transpose as CSR.
        self.XT = csr_array((stored.values, stored.rows, stored.ends), shape=(b, n))

    def rmatmul(self, V: Floats) -> Floats:
        """Return X̃ᵀV, (b, k), for V (n, k)."""
        products: Floats = self.XT @ V
        products -= np.outer(self.means, V.sum(axis=0))
        return products

    def matmul(self, W: Floats) -> Floats:
        """Return X̃W, (n, k), for W (b, k)."""
        products: Floats = self.XT.T @ W
        products -= self.means @ W
        return products

    def gram(self) -> Floats:
        """Return X̃ᵀX̃, (b, b)."""
        products: Floats = (self.XT @ self.XT.T).toarray()
        products -= self.n * np.outer(self.means, self.means)
        return products


def over_rows(work: Callable[[slice], None], n: int, n_jobs: int) -> None:
    """Call `work` on fixed slices of n rows, in several threads."""
    pieces = [slice(start, min(n, start + _PIECE)) for start in range(0, n, _PIECE)]
    # Each thread takes the next slice when it is done.
    remaining, n_jobs = iter(pieces), min(effective_jobs(n_jobs), len(pieces))

    def work_off(_: slice) -> None:
        for part in remaining:
            work(part)

    run_in_threads(work_off, n_jobs, n_jobs)


def sum_over_rows(product: Callable[[slice], Floats], n: int, n_jobs: int) -> Floats:
    """Return the sum of `product` over fixed slices of n rows, added in order."""
    products: dict[int, Floats] = {}

    def store(part: slice) -> None:
        products[part.start] = product(part)

    over_rows(store, n, n_jobs)
    total = products[0]
    for start in range(_PIECE, n, _PIECE):
        total += products[start]
    return total


# Below this many numbers, threads cost more than they save.
_MIN_THREADED_SIZE = 1 << 18


class BufferedAccumulator(State):
    """Base of states that buffer columns: dense ones centred in a panel, sparse ones as stored.

    Buffers are flushed after a fixed number of columns, or of stored values, so the result does not
    depend, to the last bit, on how the stream is cut. This class has only the buffered columns.

    Parameters
    ----------
    n
        Number of observations.
    q
        Number of weightings.
    n_jobs
        Number of threads; it does not change the result.
    width
        Number of dense columns in a batch.
    """

    # A column with more than this share of its values stored is centred as a dense one.
    _dense_share: ClassVar[float] = 0.15

    def __init__(self, n: int, q: int, n_jobs: int, width: int) -> None:
        self.n, self.q, self.n_jobs, self.width = n, q, n_jobs, width
        # Shared arrays are replaced; rows are only ever appended to a shared panel.
        self._panel, self._n_buffered = DenseBuffer(n, q, width), 0
        self._stored: tuple[SparseBuffer, ...] = ()
        # Used capacity of the sparse buffer.
        self._n_stored = 0

    @abc.abstractmethod
    def _flush_dense(self) -> None:
        """Process the buffered dense columns."""

    @abc.abstractmethod
    def _flush_sparse(self) -> None:
        """Process the buffered sparse columns."""

    @property
    @abc.abstractmethod
    def _sparse_capacity(self) -> int:
        """The capacity of the sparse buffer."""

    @abc.abstractmethod
    def _sparse_use(self, sizes: Indices) -> Indices:
        """Return the capacity that sparse columns with these numbers of stored values use."""

    def add(self, chunk: Chunk, stats: Stats, weights: Floats) -> None:
        """Add columns of a chunk.

        Parameters
        ----------
        chunk, stats
            The columns, and the moments of all or of the first of them.
        weights
            (b, q) for as many columns; a column of weight 0 is skipped.
        """
        roots = np.sqrt(weights)
        largest = roots.max(axis=1, initial=0.0)
        indices = np.flatnonzero(largest)
        if not indices.size:
            return
        scale = largest[indices]
        factors = roots[indices] / scale[:, None]
        if isinstance(chunk, DenseChunk):
            self._add_centred(chunk, stats, indices, scale, factors)
            return
        sizes = (chunk.indptr[1:] - chunk.indptr[:-1])[indices]
        is_dense = sizes > self._dense_share * self.n
        for part in self._parts(is_dense, np.where(is_dense, 0, self._sparse_use(sizes))):
            dense, sparse = part[is_dense[part]], part[~is_dense[part]]
            self._add_centred(chunk, stats, indices[dense], scale[dense], factors[dense])
            if sparse.size:
                columns = (indices[sparse], scale[sparse], factors[sparse])
                self._buffer_stored(SparseBuffer.of(chunk, stats, *columns))

    def _add_centred(
        self, chunk: Chunk, stats: Stats, indices: Indices, scale: Floats, factors: Floats
    ) -> None:
        start = 0
        while start < indices.size:
            part = slice(start, start + self.width - self._n_buffered)
            out = self._claim(factors[part])
            self._center(chunk, stats, indices[part], scale[part], out)
            self._flush_full()
            start = part.stop

    def _parts(self, is_dense: NDArray[np.bool_], room: Indices) -> Iterator[Indices]:
        """Split columns where a buffer has to be flushed."""
        in_panel, stored = np.cumsum(is_dense), np.cumsum(room)
        start, panel_before, stored_before = 0, 0, 0
        while start < is_dense.size:
            panel_full = np.searchsorted(in_panel, panel_before + self.width - self._n_buffered)
            stored_full = np.searchsorted(
                stored, stored_before + self._sparse_capacity - self._n_stored
            )
            stop = min(int(panel_full) + 1, int(stored_full) + 1, is_dense.size)
            yield np.arange(start, stop)
            start, panel_before, stored_before = stop, in_panel[stop - 1], stored[stop - 1]

    def _claim(self, factors: Floats) -> Floats:
        """Return rows of the panel to fill; the caller ensures that it has room for them."""
        if self._n_buffered != self._panel.used:
            self._panel = self._panel.copy_of_first(self._n_buffered)
        rows = slice(self._n_buffered, self._n_buffered + len(factors))
        self._panel.factors[rows] = factors
        self._panel.used = self._n_buffered = rows.stop
        claimed: Floats = self._panel.values[rows]
        return claimed

    def _center(
        self, chunk: Chunk, stats: Stats, indices: Indices, scale: Floats, out: Floats
    ) -> None:
        stats = chunk.with_array_means(stats)
        if isinstance(chunk, GeneratedChunk):
            stats = Stats(*(array[indices] for array in stats))
            chunk, indices = chunk.subset(indices), np.arange(indices.size)

        def center_part(part: slice) -> None:
            arguments = (indices[part], stats.mean, stats.mean_error, scale[part], out[part])
            if isinstance(chunk, DenseChunk):
                center(chunk.X, *arguments)
            else:
                center_stored(chunk.data, chunk.indices, chunk.indptr, *arguments)

        n_jobs = effective_jobs(self.n_jobs)
        run_in_threads(center_part, len(out), n_jobs if out.size >= _MIN_THREADED_SIZE else 1)

    def _buffer_stored(self, stored: SparseBuffer) -> None:
        self._n_stored += int(self._sparse_use(np.diff(stored.ends)).sum())
        # Merge pieces of similar size: the buffer stays short however many arrive.
        while self._stored and self._stored[-1].means.size <= stored.means.size:
            stored = SparseBuffer.concatenate((self._stored[-1], stored), self.q)
            self._stored = self._stored[:-1]
        self._stored = (*self._stored, stored)
        self._flush_full()

    def _clear_buffers(self) -> None:
        # The panel may be shared, so its rows are not cleared.
        self._n_buffered, self._stored, self._n_stored = 0, (), 0

    def _flush_full(self) -> None:
        if self._n_buffered == self.width:
            self._flush_dense()
            if self._panel.is_shared:
                self._panel = DenseBuffer(self.n, self.q, self.width)
            self._panel.used = self._n_buffered = 0
        if self._n_stored >= self._sparse_capacity:
            self._flush_sparse()
            self._stored, self._n_stored = (), 0

    def merge(self, other: Self) -> None:
        """Add the columns of another state with the same parameters."""
        panel, start = other._panel, 0
        while start < other._n_buffered:
            rows = slice(start, min(other._n_buffered, start + self.width - self._n_buffered))
            self._claim(panel.factors[rows])[:] = panel.values[rows]
            self._flush_full()
            start = rows.stop
        if other._stored:
            self._buffer_stored(SparseBuffer.concatenate(other._stored, self.q))

    # Undo, copies, files

    def _copied(self) -> dict[str, Any]:
        # Arrays are copied only when they change.
        self._panel.is_shared = True
        return dict(vars(self))

    def snapshot(self) -> Restore:
        """Return a function that restores the current state, any number of times."""
        saved = self._copied()
        return lambda: vars(self).update(saved)

    def freeze(self) -> Callable[[], Self]:
        """Return a function that creates a copy of the current state, any number of times."""
        return functools.partial(self._from_attributes, self._copied())

    @classmethod
    def _from_attributes(cls, saved: dict[str, Any]) -> Self:
        state = cls.__new__(cls)
        vars(state).update(saved)
        return state

    def _buffered_trace(self) -> float:
        """Return the sum of squares of the buffered centred columns, with the first weighting."""
        rows = slice(self._n_buffered)
        squares = np.square(self._panel.values[rows]).sum(axis=1)
        total = float(squares @ np.square(self._panel.factors[rows, 0]))
        for stored in self._stored:
            columns = np.repeat(np.arange(stored.means.size), np.diff(stored.ends))
            squares = np.bincount(columns, np.square(stored.values), stored.means.size)
            squares -= self.n * np.square(stored.means)
            total += float(squares @ np.square(stored.factors[:, 0]))
        return total

    def expect_valid(self) -> None:
        """Raise ValueError for values that no data can produce, as a file may hold."""
        expect_bounded("columns", self._panel.values[: self._n_buffered])
        expect_factors(self._panel.factors[: self._n_buffered])
        for stored in self._stored:
            expect_bounded("columns", stored.values, stored.means)
            expect_factors(stored.factors)

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        buffered = slice(self._n_buffered)
        return {
            "buffered": self._panel.values[buffered],
            "factors": self._panel.factors[buffered],
            "stored": SparseBuffer.concatenate(self._stored, self.q)._asdict(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""
        n, q = self.n, self.q
        m = length_in(state, "buffered")
        expect_shapes(state, buffered=(m, n), factors=(m, q))
        expect_finite(state)
        stored = SparseBuffer.from_state(state["stored"], n, q)
        b = stored.means.size
        if m >= self.width:
            raise ValueError(f"Expected fewer than {self.width} buffered columns. Got: {m}.")
        self._claim(state["factors"])[:] = state["buffered"]
        if b:
            self._buffer_stored(stored)
