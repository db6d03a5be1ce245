"""The Gram matrix of columns: what is held where every column counts and none is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from streamsel._jit.gram import center, center_stored
from streamsel.columns import Chunk, DenseChunk, Stats
from streamsel.held.part import Floats, Part, Places
from streamsel.held.triangle import Tiles
from streamsel.held.waiting import WIDTH, Panel, Stored
from streamsel.shapes import expect_finite, expect_shapes
from streamsel.threads import effective_jobs, in_threads

# Of a column that stores more than this part of its values all are centred.
_DENSE = 0.15
# Fewer numbers than this are not worth waking threads for.
_WORTH_THREADS = 1 << 18


def check_rows(n: int, most: int, hint: str) -> None:
    """Refuse more rows than a Gram matrix is to have.

    Parameters
    ----------
    n, most
        How many rows there are, and may be.
    hint
        What else serves so many rows.

    Raises
    ------
    ValueError
        Where n is above `most`.
    """
    if n > most:
        raise ValueError(
            f"Expected at most {most} rows, for a Gram matrix has as many rows and columns. Got: "
            f"{n}, a matrix of {8e-9 * n * n:.3g} GB.\nHint: {hint}"
        )


class Gram(Part):
    """K = Σ w x̃ x̃ᵀ over columns x̃, centred, for one or several weightings side by side.

    Only the lower triangle is held, in tiles. Dense columns wait in a panel and are multiplied so
    many at a time. Sparse ones wait as they are stored, and are never centred: beside Σ w x xᵀ are
    held u = Σ w m x and s = Σ w m², m the mean of x, and K = Σ w x xᵀ - u1ᵀ - 1uᵀ + s. What waits
    is multiplied after a fixed number of columns, or of values stored: how the stream is cut, and
    when K is read off, changes no bit of it.

    Parameters
    ----------
    n
        Number of observations.
    q
        Number of weightings.
    n_jobs
        Number of threads; the bits do not depend on it.

    Notes
    -----
    BLAS has threads of its own. They serve as well as those of `n_jobs`, and the two stand in each
    other's way: to use `n_jobs`, let BLAS have one (OPENBLAS_NUM_THREADS=1).

    **Cost.** n² operations a dense column and weighting, half of what the full matrix would take;
    s² / 2 for one that stores s values.

    **Memory.** q n² / 2 numbers, and as many again for each state that one can go back to and that
    was another one; a panel of 512 columns; n² for the matrix that is read off.
    """

    def __init__(self, n: int, q: int = 1, n_jobs: int = 1) -> None:
        self.n, self.q, self.n_jobs = n, q, n_jobs
        # Whatever is below is replaced, never changed in place, if anything else may hold it; the
        # triangle is read-only then.
        self._lower: Floats = np.zeros((q, Tiles.of(n).size))
        self._u: Floats = np.zeros((q, n))
        self._s: Floats = np.zeros(q)
        self._panel, self._filled = Panel(n, q), 0
        self._stored: tuple[Stored, ...] = ()
        # Values that wait in them, and columns.
        self._n_stored = 0

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
        for part in self._parts(is_dense, np.where(is_dense, 0, sizes + 1)):
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
            part = slice(start, start + WIDTH - self._filled)
            to = self._claim(factors[part])
            self._center(chunk, stats, places[part], scale[part], to)
            self._multiply_what_is_full()
            start = part.stop

    def _parts(self, is_dense: NDArray[np.bool_], sizes: Places) -> Iterator[Places]:
        """Cut columns where what waits will have to be multiplied."""
        in_panel, stored = np.cumsum(is_dense), np.cumsum(sizes)
        start, panel_before, stored_before = 0, 0, 0
        while start < is_dense.size:
            full = np.searchsorted(in_panel, panel_before + WIDTH - self._filled)
            full_too = np.searchsorted(stored, stored_before + self._most_stored - self._n_stored)
            stop = min(int(full) + 1, int(full_too) + 1, is_dense.size)
            yield np.arange(start, stop)
            start, panel_before, stored_before = stop, in_panel[stop - 1], stored[stop - 1]

    @property
    def _most_stored(self) -> int:
        """How many values wait at most, columns counted too: little beside the triangle."""
        return max(self.n, self.n * self.n // 8)

    # What waits

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
        def center_part(part: slice) -> None:
            at = (places[part], stats.mean, stats.low, scale[part], to[part])
            if isinstance(chunk, DenseChunk):
                center(chunk.X, *at)
            else:
                center_stored(chunk.data, chunk.indices, chunk.indptr, *at)

        n_jobs = effective_jobs(self.n_jobs)
        in_threads(center_part, len(to), n_jobs if to.size >= _WORTH_THREADS else 1)

    def _await(self, stored: Stored) -> None:
        self._n_stored += stored.values.size + stored.means.size
        # Put together like with like: however many pieces come, few wait.
        while self._stored and self._stored[-1].means.size <= stored.means.size:
            stored = Stored.together((self._stored[-1], stored), self.q)
            self._stored = self._stored[:-1]
        self._stored = (*self._stored, stored)
        self._multiply_what_is_full()

    def _multiply_what_is_full(self) -> None:
        if self._filled == WIDTH:
            self._add_panel(self._own_lower(), range(self.q), Tiles.of(self.n))
            if self._panel.is_shared:
                self._panel = Panel(self.n, self.q)
            self._panel.used = self._filled = 0
        if self._n_stored >= self._most_stored:
            gains = self._add_stored(self._own_lower(), range(self.q), Tiles.of(self.n))
            self._u = self._u + np.array([u for u, _ in gains])
            self._s = self._s + np.array([s for _, s in gains])
            self._stored, self._n_stored = (), 0

    def _own_lower(self) -> Floats:
        """Return the triangles, copied if anything else holds them too."""
        if not self._lower.flags.writeable:
            self._lower = self._lower.copy()
        return self._lower

    def _add_panel(self, lower: Floats, weightings: range, tiles: Tiles) -> None:
        """Add products of the dense columns that wait to triangles, one a weighting."""
        values, factors = self._panel.values[: self._filled], self._panel.factors[: self._filled]
        for flat, which in zip(lower, weightings, strict=True):
            factor = factors[:, which]
            X = values if (factor == 1.0).all() else values * factor[:, None]
            tiles.add_products(X, flat, effective_jobs(self.n_jobs))

    def _add_stored(
        self, lower: Floats, weightings: range, tiles: Tiles
    ) -> list[tuple[Floats, float]]:
        """Add products of the sparse columns that wait, not centred; return u and s of these."""
        stored = Stored.together(self._stored, self.q)
        by_row, n_jobs = stored.by_row(self.n), effective_jobs(self.n_jobs)
        for flat, which in zip(lower, weightings, strict=True):
            stored.add_products(by_row, which, flat, tiles.starts, n_jobs)
        return [stored.about_means(self.n, which) for which in weightings]

    # What it comes to

    def matrix(self, which: int = 0) -> Floats:
        """Return K of a weighting, (n, n), symmetric; the caller's to do with as they like."""
        out = np.empty((self.n, self.n))
        held, whole = Tiles.of(self.n), Tiles.of(self.n, whole=True)
        for top, bottom in held.bands:
            out[top:bottom, :bottom] = held.band(self._lower[which], top, bottom)
        one, lower = range(which, which + 1), out.reshape(1, -1)
        self._add_panel(lower, one, whole)
        u, s = self._u[which], self._s[which]
        if self._stored:
            [(more_u, more_s)] = self._add_stored(lower, one, whole)
            u, s = u + more_u, s + more_s
        for top, bottom in held.bands:
            band = out[top:bottom, :bottom]
            if s:
                band -= u[top:bottom, None]
                band -= u[:bottom]
                band += s
            out[:top, top:bottom] = band[:, :top].T
            square = band[:, top:]
            square[:] = np.tril(square) + np.tril(square, -1).T
        return out

    def merge(self, other: Self) -> None:
        """Add what another one of as many rows and weightings was given."""
        lower = self._own_lower()
        lower += other._lower
        self._u, self._s = self._u + other._u, self._s + other._s
        panel, start = other._panel, 0
        while start < other._filled:
            rows = slice(start, min(other._filled, start + WIDTH - self._filled))
            self._claim(panel.factors[rows])[:] = panel.values[rows]
            self._multiply_what_is_full()
            start = rows.stop
        if other._stored:
            self._await(Stored.together(other._stored, self.q))

    # Undo, copies, files

    def _copied(self) -> dict[str, Any]:
        # Nothing is copied here, but by whoever changes it.
        self._lower.flags.writeable = False
        self._panel.is_shared = True
        return dict(vars(self))

    def as_of_now(self) -> Callable[[], Gram]:
        """Return what gives this one back as it is now, as often as it is asked."""
        saved = self._copied()

        def restored() -> Gram:
            gram = Gram.__new__(Gram)
            vars(gram).update(saved)
            return gram

        return restored

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs: arrays, and values that JSON can hold."""
        tiles = Tiles.of(self.n)
        ends = [tiles.starts + np.arange(1, self.n + 1)]
        lower = [
            np.concatenate(
                [flat[start:end] for start, end in zip(tiles.starts, *ends, strict=True)]
            )
            for flat in self._lower
        ]
        waiting = slice(self._filled)
        return {
            "lower": np.array(lower),
            "u": self._u,
            "s": self._s,
            "waiting": self._panel.values[waiting],
            "factors": self._panel.factors[waiting],
            "stored": Stored.together(self._stored, self.q)._asdict(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Take up what `to_state` returned, into a fresh part made of the same parameters."""
        n, q = self.n, self.q
        stored = Stored(**state["stored"])
        m, b = len(state["waiting"]), len(stored.means)
        size = n * (n + 1) // 2
        expect_shapes(
            state, lower=(q, size), u=(q, n), s=(q,), waiting=(m, n), factors=(m, q)
        )  # fmt: skip
        expect_shapes(
            state["stored"],
            values=(len(stored.rows),),
            rows=(len(stored.rows),),
            ends=(b + 1,),
            means=(b,),
            factors=(b, q),
        )
        expect_finite(state)
        stored.expect_places(n)
        if m >= WIDTH:
            raise ValueError(f"Expected fewer than {WIDTH} columns that wait. Got: {m}.")
        tiles = Tiles.of(n)
        for flat, packed in zip(self._lower, state["lower"], strict=True):
            start = 0
            for i, at in enumerate(tiles.starts.tolist()):
                flat[at : at + i + 1] = packed[start : start + i + 1]
                start += i + 1
        self._u, self._s = np.asarray(state["u"]), np.asarray(state["s"])
        self._claim(np.asarray(state["factors"]))[:] = state["waiting"]
        if b:
            self._await(stored)
