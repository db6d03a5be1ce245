"""Columns on their way into a state that takes them in so many at a time."""

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

# Of a column that stores more than this part of its values all are centred.
_DENSE = 0.15
# Fewer numbers than this are not worth waking threads for.
_WORTH_THREADS = 1 << 18


class Inflow(Part):
    """Columns wait, the dense ones centred in a panel and the sparse ones as they are stored.

    They are taken in after a fixed number of columns, or of values stored: how the stream is cut
    changes no bit of what comes of it. Nothing but what waits is known here.

    Parameters
    ----------
    n
        Number of observations.
    q
        Number of weightings.
    n_jobs
        Number of threads; the bits do not depend on it.
    width
        How many dense columns are taken in at once.
    """

    def __init__(self, n: int, q: int, n_jobs: int, width: int) -> None:
        self.n, self.q, self.n_jobs, self.width = n, q, n_jobs, width
        # Rows are only added to a panel, and other arrays replaced, if anything else may hold them.
        self._panel, self._filled = Panel(n, q, width), 0
        self._stored: tuple[Stored, ...] = ()
        # What of the room of sparse columns they take.
        self._n_stored = 0

    @abc.abstractmethod
    def _take_panel(self) -> None:
        """Take in the dense columns that wait."""

    @abc.abstractmethod
    def _take_stored(self) -> None:
        """Take in the sparse columns that wait."""

    @property
    @abc.abstractmethod
    def _room(self) -> int:
        """How much room sparse columns have to wait."""

    @abc.abstractmethod
    def _room_for(self, sizes: Places) -> Places:
        """Return what room sparse columns take that store so many values."""

    def add(self, chunk: Chunk, stats: Stats, weights: Floats) -> None:
        """Add columns of a chunk.

        Parameters
        ----------
        chunk, stats
            The columns, and the moments of the first of them, or of all.
        weights
            (b, q) of as many; a column of weight 0 is left out.
        """
        roots = np.sqrt(weights)
        largest = roots.max(axis=1, initial=0.0)
        places = np.flatnonzero(largest)
        if not places.size:
            return
        scale = largest[places]
        factors = roots[places] / scale[:, None]
        if isinstance(chunk, DenseChunk):
            self._add_centred(chunk, stats, places, scale, factors)
            return
        sizes = (chunk.indptr[1:] - chunk.indptr[:-1])[places]
        is_dense = sizes > _DENSE * self.n
        for part in self._parts(is_dense, np.where(is_dense, 0, self._room_for(sizes))):
            dense, sparse = part[is_dense[part]], part[~is_dense[part]]
            self._add_centred(chunk, stats, places[dense], scale[dense], factors[dense])
            if sparse.size:
                columns = (places[sparse], scale[sparse], factors[sparse])
                self._await(Stored.of(chunk, stats, *columns))

    def _add_centred(
        self, chunk: Chunk, stats: Stats, places: Places, scale: Floats, factors: Floats
    ) -> None:
        start = 0
        while start < places.size:
            part = slice(start, start + self.width - self._filled)
            to = self._claim(factors[part])
            self._center(chunk, stats, places[part], scale[part], to)
            self._take_what_is_full()
            start = part.stop

    def _parts(self, is_dense: NDArray[np.bool_], room: Places) -> Iterator[Places]:
        """Cut columns where what waits will have to be taken in."""
        in_panel, stored = np.cumsum(is_dense), np.cumsum(room)
        start, panel_before, stored_before = 0, 0, 0
        while start < is_dense.size:
            full = np.searchsorted(in_panel, panel_before + self.width - self._filled)
            full_too = np.searchsorted(stored, stored_before + self._room - self._n_stored)
            stop = min(int(full) + 1, int(full_too) + 1, is_dense.size)
            yield np.arange(start, stop)
            start, panel_before, stored_before = stop, in_panel[stop - 1], stored[stop - 1]

    def _claim(self, factors: Floats) -> Floats:
        """Return rows of the panel to fill, which has room for them."""
        if self._filled != self._panel.used:
            self._panel = self._panel.upto(self._filled)
        rows = slice(self._filled, self._filled + len(factors))
        self._panel.factors[rows] = factors
        self._panel.used = self._filled = rows.stop
        claimed: Floats = self._panel.values[rows]
        return claimed

    def _center(
        self, chunk: Chunk, stats: Stats, places: Places, scale: Floats, to: Floats
    ) -> None:
        stats = chunk.about(stats)

        def center_part(part: slice) -> None:
            at = (places[part], stats.mean, stats.low, scale[part], to[part])
            if isinstance(chunk, DenseChunk):
                center(chunk.X, *at)
            else:
                center_stored(chunk.data, chunk.indices, chunk.indptr, *at)

        n_jobs = effective_jobs(self.n_jobs)
        in_threads(center_part, len(to), n_jobs if to.size >= _WORTH_THREADS else 1)

    def _await(self, stored: Stored) -> None:
        self._n_stored += int(self._room_for(np.diff(stored.ends)).sum())
        # Put together like with like: however many pieces come, few wait.
        while self._stored and self._stored[-1].means.size <= stored.means.size:
            stored = Stored.together((self._stored[-1], stored), self.q)
            self._stored = self._stored[:-1]
        self._stored = (*self._stored, stored)
        self._take_what_is_full()

    def _drop_what_waits(self) -> None:
        # What others hold of the panel stays.
        self._filled, self._stored, self._n_stored = 0, (), 0

    def _take_what_is_full(self) -> None:
        if self._filled == self.width:
            self._take_panel()
            if self._panel.is_shared:
                self._panel = Panel(self.n, self.q, self.width)
            self._panel.used = self._filled = 0
        if self._n_stored >= self._room:
            self._take_stored()
            self._stored, self._n_stored = (), 0

    def merge(self, other: Self) -> None:
        """Add what another one of the same parameters was given."""
        panel, start = other._panel, 0
        while start < other._filled:
            rows = slice(start, min(other._filled, start + self.width - self._filled))
            self._claim(panel.factors[rows])[:] = panel.values[rows]
            self._take_what_is_full()
            start = rows.stop
        if other._stored:
            self._await(Stored.together(other._stored, self.q))

    # Undo, copies, files

    def _copied(self) -> dict[str, Any]:
        # Nothing is copied here, but by whoever changes it.
        self._panel.is_shared = True
        return dict(vars(self))

    def snapshot(self) -> Restore:
        """Return what brings this one back to what it is now, as often as it is asked."""
        saved = self._copied()
        return lambda: vars(self).update(saved)

    def as_of_now(self) -> Callable[[], Inflow]:
        """Return what gives this one back as it is now, as often as it is asked."""
        saved = self._copied()

        def restored() -> Inflow:
            state = type(self).__new__(type(self))
            vars(state).update(saved)
            return state

        return restored

    def _waiting_trace(self) -> float:
        """Return the sum of squares of the columns that wait, centred, of the first weighting."""
        rows = slice(self._filled)
        squares = np.square(self._panel.values[rows]).sum(axis=1)
        found = float(squares @ np.square(self._panel.factors[rows, 0]))
        for stored in self._stored:
            columns = np.repeat(np.arange(stored.means.size), np.diff(stored.ends))
            squares = np.bincount(columns, np.square(stored.values), stored.means.size)
            squares -= self.n * np.square(stored.means)
            found += float(squares @ np.square(stored.factors[:, 0]))
        return found

    def expect_possible(self) -> None:
        """Raise ValueError for numbers that no data lead to: a file may hold any."""
        expect_bounded("columns", self._panel.values[: self._filled])
        expect_factors(self._panel.factors[: self._filled])
        for stored in self._stored:
            expect_bounded("columns", stored.values, stored.means)
            expect_factors(stored.factors)

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs: arrays, and values that JSON can hold."""
        waiting = slice(self._filled)
        return {
            "waiting": self._panel.values[waiting],
            "factors": self._panel.factors[waiting],
            "stored": Stored.together(self._stored, self.q)._asdict(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Take up what `to_state` returned, into a fresh part made of the same parameters."""
        n, q = self.n, self.q
        m = rows_of(state, "waiting")
        expect_shapes(state, waiting=(m, n), factors=(m, q))
        expect_finite(state)
        stored = Stored.from_state(state["stored"], n, q)
        b = stored.means.size
        if m >= self.width:
            raise ValueError(f"Expected fewer than {self.width} columns that wait. Got: {m}.")
        self._claim(state["factors"])[:] = state["waiting"]
        if b:
            self._await(stored)
