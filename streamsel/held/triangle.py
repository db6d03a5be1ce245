"""The lower triangle of a symmetric matrix, in tiles updated by BLAS."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel._jit.blas import add_product, add_square
from streamsel.held.part import Floats
from streamsel.threads import in_threads

# Rows of a tile, its largest number of columns, and a multiple of BLAS's own tile size.
_TILE_ROWS, _TILE_COLUMNS, _MULTIPLE = 512, 1024, 64


class Tiles(NamedTuple):
    """Layout of the tiles of a lower triangle in one array.

    Parameters
    ----------
    bands
        First and last row of each band of tiles, which ends with its diagonal tile.
    all
        First and last row, and first and last column, of every tile; the largest come first.
    starts
        (n,) offsets of the rows.
    """

    bands: list[tuple[int, int]]
    all: list[tuple[int, int, int, int]]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, n: int, *, whole: bool = False) -> Tiles:
        """Return the tiles of n rows; bands end at the diagonal tile, or span all columns."""
        count = -(-n // _TILE_ROWS)
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
        end = flat.size if bottom == len(self.starts) else self.starts[bottom]
        view: Floats = flat[self.starts[top] : end].reshape(rows, -1)
        return view[:, :bottom]

    def add_products(self, X: Floats, flat: Floats, n_jobs: int) -> None:
        """Add XᵀX to the triangle; X is (b, n), C-contiguous."""
        # Each thread takes the next tile when it is done.
        remaining = iter(self.all)

        def add(_: slice) -> None:
            for top, bottom, left, right in remaining:
                out = self.band(flat, top, bottom)[:, left:right]
                if left == top:
                    add_square(X[:, top:bottom], out)
                else:
                    add_product(X[:, top:bottom], X[:, left:right], out)

        in_threads(add, n_jobs, n_jobs)

    @property
    def size(self) -> int:
        """The number of values, if bands end at their diagonal tile."""
        return sum((bottom - top) * bottom for top, bottom in self.bands)
