"""Buffers of columns for a state that processes them in batches."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from streamsel._jit.gram import center, center_stored
from streamsel.columns import Chunk, DenseChunk, Stats
from streamsel.held.part import Floats, Part, Places
from streamsel.held.possible import expect_bounded, expect_factors
from streamsel.held.waiting import Panel, Stored
from streamsel.rollback import Restore
from streamsel.shapes import expect_finite, expect_shapes, rows_of
from streamsel.threads import effective_jobs, in_threads

# A column with more than this share of its values stored is centred as a dense one.
_DENSE_SHARE = 0.15
# Below this many numbers, threads cost more than they save.
_MIN_THREADED_SIZE = 1 << 18


class Inflow(Part):
    """Base of states that buffer columns: dense ones centred in a panel, sparse ones as stored.

    Buffers are flushed after a fixed number of columns, or of stored values, so the result does not
    depend, to the last bit, on how the stream is cut. This class only knows the buffered columns.

    Parameters
    ----------
    n
        Number of observations.
    q
        Number of weightings.
    n_jobs
        Number of threads; the bits do not depend on it.
    width
        Number of dense columns in a batch.
    """

    def __init__(self, n: int, q: int, n_jobs: int, width: int) -> None:
        self.n, self.q, self.n_jobs, self.width = n, q, n_jobs, width
        # Shared arrays are replaced; rows are only ever appended to a shared panel.
        self._panel, self._filled = Panel(n, q, width), 0
        self._stored: tuple[Stored, ...] = ()
        # Part of the sparse buffer's capacity in use.
        self._n_stored = 0

    @abc.abstractmethod
    def _take_panel(self) -> None:
        """Process the buffered dense columns."""

    @abc.abstractmethod
    def _take_stored(self) -> None:
        """Process the buffered sparse columns."""

    @property
    @abc.abstractmethod
    def _room(self) -> int:
        """The capacity of the sparse buffer."""

    @abc.abstractmethod
    def _room_for(self, sizes: Places) -> Places:
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
        is_dense = sizes > _DENSE_SHARE * self.n
        for part in self._parts(is_dense, np.where(is_dense, 0, self._room_for(sizes))):
            dense, sparse = part[is_dense[part]], part[~is_dense[part]]
            self._add_centred(chunk, stats, indices[dense], scale[dense], factors[dense])
            if sparse.size:
                columns = (indices[sparse], scale[sparse], factors[sparse])
                self._buffer_stored(Stored.of(chunk, stats, *columns))

    def _add_centred(
        self, chunk: Chunk, stats: Stats, indices: Places, scale: Floats, factors: Floats
    ) -> None:
        start = 0
        while start < indices.size:
            part = slice(start, start + self.width - self._filled)
            out = self._claim(factors[part])
            self._center(chunk, stats, indices[part], scale[part], out)
            self._flush_full()
            start = part.stop

    def _parts(self, is_dense: NDArray[np.bool_], room: Places) -> Iterator[Places]:
        """Split columns where a buffer has to be flushed."""
        in_panel, stored = np.cumsum(is_dense), np.cumsum(room)
        start, panel_before, stored_before = 0, 0, 0
        while start < is_dense.size:
            panel_full = np.searchsorted(in_panel, panel_before + self.width - self._filled)
            stored_full = np.searchsorted(stored, stored_before + self._room - self._n_stored)
            stop = min(int(panel_full) + 1, int(stored_full) + 1, is_dense.size)
            yield np.arange(start, stop)
            start, panel_before, stored_before = stop, in_panel[stop - 1], stored[stop - 1]

    def _claim(self, factors: Floats) -> Floats:
        """Return rows of the panel to fill; the caller ensures that it has room for them."""
        if self._filled != self._panel.used:
            self._panel = self._panel.upto(self._filled)
        rows = slice(self._filled, self._filled + len(factors))
        self._panel.factors[rows] = factors
        self._panel.used = self._filled = rows.stop
        claimed: Floats = self._panel.values[rows]
        return claimed

    def _center(
        self, chunk: Chunk, stats: Stats, indices: Places, scale: Floats, out: Floats
    ) -> None:
        stats = chunk.about(stats)

        def center_part(part: slice) -> None:
            arguments = (indices[part], stats.mean, stats.low, scale[part], out[part])
            if isinstance(chunk, DenseChunk):
                center(chunk.X, *arguments)
            else:
                center_stored(chunk.data, chunk.indices, chunk.indptr, *arguments)

        n_jobs = effective_jobs(self.n_jobs)
        in_threads(center_part, len(out), n_jobs if out.size >= _MIN_THREADED_SIZE else 1)

    def _buffer_stored(self, stored: Stored) -> None:
        self._n_stored += int(self._room_for(np.diff(stored.ends)).sum())
        # Merge pieces of similar size: the buffer stays short however many arrive.
        while self._stored and self._stored[-1].means.size <= stored.means.size:
            stored = Stored.together((self._stored[-1], stored), self.q)
            self._stored = self._stored[:-1]
        self._stored = (*self._stored, stored)
        self._flush_full()

    def _drop_what_waits(self) -> None:
        # The panel may be shared, so its rows are not cleared.
        self._filled, self._stored, self._n_stored = 0, (), 0

    def _flush_full(self) -> None:
        if self._filled == self.width:
            self._take_panel()
            if self._panel.is_shared:
                self._panel = Panel(self.n, self.q, self.width)
            self._panel.used = self._filled = 0
        if self._n_stored >= self._room:
            self._take_stored()
            self._stored, self._n_stored = (), 0

    def merge(self, other: Self) -> None:
        """Add the columns of another state with the same parameters."""
        panel, start = other._panel, 0
        while start < other._filled:
            rows = slice(start, min(other._filled, start + self.width - self._filled))
            self._claim(panel.factors[rows])[:] = panel.values[rows]
            self._flush_full()
            start = rows.stop
        if other._stored:
            self._buffer_stored(Stored.together(other._stored, self.q))

    # Undo, copies, files

    def _copied(self) -> dict[str, Any]:
        # Arrays are copied only when they change.
        self._panel.is_shared = True
        return dict(vars(self))

    def snapshot(self) -> Restore:
        """Return a function that restores the current state, any number of times."""
        saved = self._copied()
        return lambda: vars(self).update(saved)

    def as_of_now(self) -> Callable[[], Inflow]:
        """Return a function that creates a copy of the current state, any number of times."""
        saved = self._copied()

        def restored() -> Inflow:
            state = type(self).__new__(type(self))
            vars(state).update(saved)
            return state

        return restored

    def _waiting_trace(self) -> float:
        """Return the sum of squares of the buffered centred columns, with the first weighting."""
        rows = slice(self._filled)
        squares = np.square(self._panel.values[rows]).sum(axis=1)
        total = float(squares @ np.square(self._panel.factors[rows, 0]))
        for stored in self._stored:
            columns = np.repeat(np.arange(stored.means.size), np.diff(stored.ends))
            squares = np.bincount(columns, np.square(stored.values), stored.means.size)
            squares -= self.n * np.square(stored.means)
            total += float(squares @ np.square(stored.factors[:, 0]))
        return total

    def expect_possible(self) -> None:
        """Raise ValueError for values that no data can produce, as a file may hold."""
        expect_bounded("columns", self._panel.values[: self._filled])
        expect_factors(self._panel.factors[: self._filled])
        for stored in self._stored:
            expect_bounded("columns", stored.values, stored.means)
            expect_factors(stored.factors)

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        buffered = slice(self._filled)
        return {
            "waiting": self._panel.values[buffered],
            "factors": self._panel.factors[buffered],
            "stored": Stored.together(self._stored, self.q)._asdict(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""
        n, q = self.n, self.q
        m = rows_of(state, "waiting")
        expect_shapes(state, waiting=(m, n), factors=(m, q))
        expect_finite(state)
        stored = Stored.from_state(state["stored"], n, q)
        b = stored.means.size
        if m >= self.width:
            raise ValueError(f"Expected fewer than {self.width} buffered columns. Got: {m}.")
        self._claim(state["factors"])[:] = state["waiting"]
        if b:
            self._buffer_stored(stored)
