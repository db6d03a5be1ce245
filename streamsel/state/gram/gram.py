"""The Gram matrix of all columns, in tiles of its lower triangle; no column is kept."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from streamsel._kernels.lapack import add_product, add_square
from streamsel._utils.numeric import mirror
from streamsel._utils.system import effective_jobs, run_in_threads
from streamsel.serialization.invariants import expect_sums, expect_within
from streamsel.serialization.schema import expect_shapes
from streamsel.state.base import Floats, Indices
from streamsel.state.gram.buffers import BufferedAccumulator, SparseBuffer

# Default of the maximum number of observations for which a Gram matrix is kept.
MAX_GRAM_ROWS = 15_000
# Rows of a tile, its largest number of columns, and a multiple of BLAS's own tile size.
_TILE_ROWS, _TILE_COLUMNS, _MULTIPLE = 512, 1024, 64
# Up to this many rows one tile is faster than several.
_SINGLE_TILE_ROWS = 1024


class TiledTriangle(NamedTuple):
    """Layout of the tiles of a lower triangle in one array.

    Parameters
    ----------
    bands
        First and last row of each band of tiles, which ends with its diagonal tile.
    all
        First and last row, and first and last column, of every tile; the largest come first.
    row_offsets
        (n,) offsets of the rows.
    """

    bands: list[tuple[int, int]]
    all: list[tuple[int, int, int, int]]
    row_offsets: NDArray[np.int64]

    @classmethod
    def of(cls, n: int, *, whole: bool = False) -> TiledTriangle:
        """Return the tiles of n rows; bands end at the diagonal tile, or span all columns."""
        count = 1 if n <= _SINGLE_TILE_ROWS else -(-n // _TILE_ROWS)
        edges = [min(n, -(-n * i // (count * _MULTIPLE)) * _MULTIPLE) for i in range(count + 1)]
        bands = list(pairwise(edges))
        tiles = [
            (top, bottom, left, min(left + _TILE_COLUMNS, top))
            for top, bottom in bands
            for left in range(0, top, _TILE_COLUMNS)
        ]
        tiles.sort(key=lambda tile: (tile[1] - tile[0]) * (tile[2] - tile[3]))
        tiles += [(top, bottom, top, bottom) for top, bottom in bands]
        widths = np.repeat([n if whole else bottom for _, bottom in bands], np.diff(edges))
        return cls(bands, tiles, np.append(0, np.cumsum(widths)[:-1]))

    def band(self, flat: Floats, top: int, bottom: int) -> Floats:
        """Return a view of a band, up to its diagonal tile."""
        rows = bottom - top
        end = flat.size if bottom == len(self.row_offsets) else self.row_offsets[bottom]
        view: Floats = flat[self.row_offsets[top] : end].reshape(rows, -1)
        return view[:, :bottom]

    def add_products(self, X: Floats, triangles: Sequence[Floats], n_jobs: int) -> None:
        """Add XᵀX to the sum of one or several triangles; each takes at most `WIDTH` rows of X.

        X is (b, n), C-contiguous.
        """
        parts = zip(range(0, len(X), WIDTH), triangles, strict=False)
        # Each thread takes the next tile when it is done.
        remaining = iter([(X[i : i + WIDTH], flat, tile) for i, flat in parts for tile in self.all])

        def add(_: slice) -> None:
            for rows, flat, (top, bottom, left, right) in remaining:
                out = self.band(flat, top, bottom)[:, left:right]
                if left == top:
                    add_square(rows[:, top:bottom], out)
                else:
                    add_product(rows[:, top:bottom], rows[:, left:right], out)

        run_in_threads(add, n_jobs, n_jobs)

    @property
    def size(self) -> int:
        """The number of values, if bands end at their diagonal tile."""
        return sum((bottom - top) * bottom for top, bottom in self.bands)


# Number of dense columns that are multiplied at once.
WIDTH = 512


def _count_triangles(n: int) -> int:
    """Return the number of triangles whose sum is K; two give two threads work with one tile."""
    return 2 if n <= _SINGLE_TILE_ROWS else 1


def check_rows(n: int, max_rows: int, hint: str) -> None:
    """Raise ValueError if there are too many rows for a Gram matrix.

    Parameters
    ----------
    n, max_rows
        Number of rows, and the largest number allowed.
    hint
        An alternative for this many rows.

    Raises
    ------
    ValueError
        If n is above `max_rows`.
    """
    if n > max_rows:
        raise ValueError(
            f"Expected at most {max_rows} rows, because a Gram matrix is n x n. Got: {n}, a matrix "
            f"of {8e-9 * n * n:.3g} GB.\nHint: {hint}"
        )


class Gram(BufferedAccumulator):
    """Gram matrix K = Σ w x̃ x̃ᵀ over centred columns x̃, for one or several weightings.

    Only the lower triangle is stored, in tiles; with few rows as the sum of two triangles, one for
    each half of a batch. Dense columns are buffered in a panel and multiplied in batches. Sparse
    columns are buffered as stored and never centred: the state also has u = Σ w m x and s = Σ w m²,
    m the mean of x, and K = Σ w x xᵀ - u1ᵀ - 1uᵀ + s. Buffers are flushed after a fixed number of
    columns, or of stored values, so the result does not depend, to the last bit, on how the stream
    is cut or on when K is read.

    Parameters
    ----------
    n
        Number of observations.
    q
        Number of weightings.
    n_jobs
        Number of threads; it does not change the result.

    Notes
    -----
    BLAS has threads of its own, which compete with those of `n_jobs` and are as fast. To use
    `n_jobs`, limit BLAS to one thread (OPENBLAS_NUM_THREADS=1).

    **Cost.** n² operations per dense column and weighting, half as many as for the full matrix;
    s² / 2 for a sparse one with s stored values.

    **Memory.** q n² / 2 numbers, twice as many up to 1,024 rows, and as many for each different
    state that an undo can restore; a panel of 512 columns, or 1,024; n² for the matrix returned by
    `matrix`.
    """

    # Number of axes that replace the matrix; None keeps the matrix.
    rank: int | None = None

    def __init__(self, n: int, q: int = 1, n_jobs: int = 1) -> None:
        parts = _count_triangles(n)
        super().__init__(n, q, n_jobs, WIDTH * parts)
        # If an attribute below may be shared, it is replaced and not changed in place; a shared
        # triangle is read-only.
        self._lower: Floats = np.zeros((parts, q, TiledTriangle.of(n).size))
        self._u: Floats = np.zeros((q, n))
        self._s: Floats = np.zeros(q)

    @property
    def _sparse_capacity(self) -> int:
        """The capacity of the sparse buffer, in values plus columns: small against the triangle."""
        return max(self.n, self.n * self.n // 8)

    def _sparse_use(self, sizes: Indices) -> Indices:
        return sizes + 1

    def _flush_dense(self) -> None:
        tiles, n_jobs = TiledTriangle.of(self.n), effective_jobs(self.n_jobs)
        lower = self._own_lower()
        for which in range(self.q):
            tiles.add_products(self._weighted_panel(which), [*lower[:, which]], n_jobs)

    def _flush_sparse(self) -> None:
        lower = self._own_lower()[0]
        gains = self._add_stored([*lower], range(self.q), TiledTriangle.of(self.n))
        self._u = self._u + np.array([u for u, _ in gains])
        self._s = self._s + np.array([s for _, s in gains])

    def _all_triangles(self) -> Floats:
        """Return all triangles, as a view: first one per weighting, then the second ones."""
        return self._lower.reshape(-1, self._lower.shape[-1])

    def _own_lower(self) -> Floats:
        """Return the triangles, copied first if they are shared."""
        if not self._lower.flags.writeable:
            self._lower = self._lower.copy()
        return self._lower

    def _weighted_panel(self, which: int) -> Floats:
        """Return the buffered dense columns, times the roots of their weights."""
        rows = slice(self._n_buffered)
        values, factors = self._panel.values[rows], self._panel.factors[rows, which]
        return values if (factors == 1.0).all() else values * factors[:, None]

    def _add_stored(
        self, lower: Sequence[Floats], weightings: range, tiles: TiledTriangle
    ) -> list[tuple[Floats, float]]:
        """Add products of the buffered sparse columns to one triangle per weighting.

        They are not centred; return their u and s.
        """
        stored = SparseBuffer.concatenate(self._stored, self.q)
        by_row, n_jobs = stored.by_row(self.n), effective_jobs(self.n_jobs)
        for flat, which in zip(lower, weightings, strict=True):
            stored.add_products(by_row, which, flat, tiles.row_offsets, n_jobs)
        return [stored.mean_products(self.n, which) for which in weightings]

    def track_exactly(self, V: Floats) -> None:
        """Do nothing: K V is exact for all directions V, (n, k)."""

    # Results

    def matrix(self, which: int = 0) -> Floats:
        """Return K of a weighting as a new symmetric (n, n) array."""
        out = np.empty((self.n, self.n))
        flat = out.reshape(-1)
        tiles, whole = TiledTriangle.of(self.n), TiledTriangle.of(self.n, whole=True)
        for top, bottom in tiles.bands:
            bands = [tiles.band(part, top, bottom) for part in self._lower[:, which]]
            np.add(bands[0], bands[-1] if len(bands) > 1 else 0.0, out=out[top:bottom, :bottom])
        panel = self._weighted_panel(which)
        for start in range(0, len(panel), WIDTH):
            part = panel[start : start + WIDTH]
            whole.add_products(part, [flat], effective_jobs(self.n_jobs))
        u, s = self._u[which], self._s[which]
        if self._stored:
            [(more_u, more_s)] = self._add_stored([flat], range(which, which + 1), whole)
            u, s = u + more_u, s + more_s
        if s:
            for top, bottom in tiles.bands:
                band = out[top:bottom, :bottom]
                band -= u[top:bottom, None]
                band -= u[:bottom]
                band += s
        mirror(out)
        return out

    def merge(self, other: Self) -> None:
        """Add the columns of another state with as many rows and weightings."""
        lower = self._own_lower()
        lower += other._lower
        self._u, self._s = self._u + other._u, self._s + other._s
        super().merge(other)

    def trace(self) -> float:
        """Return the sum of squares of all centred columns, with the first weighting."""
        diagonal = self._lower[:, 0, TiledTriangle.of(self.n).row_offsets + np.arange(self.n)]
        total = float(diagonal.sum() - 2.0 * self._u[0].sum() + self.n * self._s[0])
        return total + self._buffered_trace()

    def expect_valid(self) -> None:
        """Raise ValueError for values that no data can produce, as a file may hold."""
        super().expect_valid()
        expect_sums("sums of columns", self._u, self._s)
        starts = TiledTriangle.of(self.n).row_offsets
        diagonal = starts + np.arange(self.n)
        for flat in self._all_triangles():
            expect_sums("products", flat)
            squares = flat[diagonal]
            lengths = np.sqrt(np.maximum(squares, 0.0))
            for i, start in enumerate(starts.tolist()):
                expect_within(flat[start : start + i + 1], lengths[i] * lengths[: i + 1], squares)

    # Undo, copies, files

    def _copied(self) -> dict[str, Any]:
        self._lower.flags.writeable = False
        return super()._copied()

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        tiles = TiledTriangle.of(self.n)
        ends = [tiles.row_offsets + np.arange(1, self.n + 1)]
        lower = [
            np.concatenate(
                [flat[start:end] for start, end in zip(tiles.row_offsets, *ends, strict=True)]
            )
            for flat in self._all_triangles()
        ]
        return {
            "lower": np.array(lower),
            "n_triangles": len(self._lower),
            "u": self._u,
            "s": self._s,
            **super().to_state(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""
        n, q = self.n, self.q
        size = n * (n + 1) // 2
        # Files of earlier versions have one triangle per weighting.
        parts = state.get("n_triangles", 1)
        if parts not in (1, len(self._lower)):
            raise ValueError(f"Expected {len(self._lower)} triangles. Got: {parts!r}.")
        expect_shapes(state, lower=(parts * q, size), u=(q, n), s=(q,))
        tiles = TiledTriangle.of(n)
        for flat, packed in zip(self._all_triangles(), state["lower"], strict=False):
            start = 0
            for i, row_start in enumerate(tiles.row_offsets.tolist()):
                flat[row_start : row_start + i + 1] = packed[start : start + i + 1]
                start += i + 1
        self._u, self._s = np.asarray(state["u"]), np.asarray(state["s"])
        super().set_state(state)
