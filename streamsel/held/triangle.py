"""The lower triangle of a symmetric matrix, in tiles that BLAS adds products to."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel._jit.blas import add_product, add_square
from streamsel.held.part import Floats
from streamsel.threads import in_threads

# Tiles have so many rows, and up to so many columns; rows of BLAS's own tiles divide the last.
_TALL, _WIDE, _EVEN = 512, 1024, 64


class Tiles(NamedTuple):
    """Where the parts of a lower triangle stand in one array.

    Parameters
    ----------
    bands
        First row and last of each band of tiles, which ends with its diagonal tile.
    all
        Rows and columns of every tile, first and last; the largest come first.
    starts
        (n,) where rows start.
    """

    bands: list[tuple[int, int]]
    all: list[tuple[int, int, int, int]]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, n: int, *, whole: bool = False) -> Tiles:
        """Return the tiles of n rows, each band as wide as it must be, or as the whole matrix."""
        count = -(-n // _TALL)
        edges = [min(n, -(-n * i // (count * _EVEN)) * _EVEN) for i in range(count + 1)]
        bands = list(pairwise(edges))
        tiles = [
            (top, bottom, left, min(left + _WIDE, top))
            for top, bottom in bands
            for left in range(0, top, _WIDE)
        ]
        tiles.sort(key=lambda tile: (tile[1] - tile[0]) * (tile[2] - tile[3]))
        tiles += [(top, bottom, top, bottom) for top, bottom in bands]
        widths = np.repeat([n if whole else bottom for _, bottom in bands], np.diff(edges))
        return cls(bands, tiles, np.append(0, np.cumsum(widths)[:-1]))

    def band(self, flat: Floats, top: int, bottom: int) -> Floats:
        """Return a band, up to its diagonal tile, as a view."""
        rows = bottom - top
        end = flat.size if bottom == len(self.starts) else self.starts[bottom]
        view: Floats = flat[self.starts[top] : end].reshape(rows, -1)
        return view[:, :bottom]

    def add_products(self, X: Floats, flat: Floats, n_jobs: int) -> None:
        """Add XᵀX to the triangle; X is (b, n), C-contiguous."""
        # Whoever is done takes the next.
        waiting = iter(self.all)

        def add(_: slice) -> None:
            for top, bottom, left, right in waiting:
                out = self.band(flat, top, bottom)[:, left:right]
                if left == top:
                    add_square(X[:, top:bottom], out)
                else:
                    add_product(X[:, top:bottom], X[:, left:right], out)

        in_threads(add, n_jobs, n_jobs)

    @property
    def size(self) -> int:
        """How many numbers they take, where bands are as wide as they must be."""
        return sum((bottom - top) * bottom for top, bottom in self.bands)
