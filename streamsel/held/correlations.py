"""Correlations of a block's columns with a few vectors, accurate for large means too."""

from __future__ import annotations

import numpy as np

from streamsel.columns import Chunk, SparseChunk, Stats
from streamsel.held.part import Floats, Places

# A mean of this many standard deviations costs two digits of a product; columns with a larger one
# are centred first.
_LARGE_MEAN = 100.0
# Values per piece of columns.
_PIECE_VALUES = 1 << 19


def pieces(places: Places, n: int) -> list[Places]:
    """Cut indices into runs of columns, of n values each, that fit into the cache."""
    step = max(64, _PIECE_VALUES // n)
    return [places[start : start + step] for start in range(0, places.size, step)]


def correlations(chunk: Chunk, stats: Stats, places: Places, V: Floats, left: Floats) -> Floats:
    """Return products of centred columns of length 1 with vectors.

    Parameters
    ----------
    chunk, stats, places
        The columns, their moments, and the indices of those to use, (b,), ascending.
    V
        (q, n) vectors, one per row, centred and adjusted for covariates.
    left
        (b,) sums of squares of the columns, adjusted for covariates; not 0.

    Returns
    -------
    (b, q).
    """
    mean = chunk.about(stats).mean[places]
    found = _raw_products(chunk, places, V)
    # The vectors are centred up to rounding.
    found -= mean[:, None] * V.sum(axis=1)
    large = np.flatnonzero(np.abs(mean) * np.sqrt(chunk.n) > _LARGE_MEAN * np.sqrt(left))
    if large.size:
        found[large] = (chunk.columns(places[large]) - mean[large, None]) @ V.T
    found /= np.sqrt(left)[:, None]
    return found


def _raw_products(chunk: Chunk, places: Places, V: Floats) -> Floats:
    first, last = int(places[0]), int(places[-1]) + 1
    is_contiguous = last - first == places.size
    if isinstance(chunk, SparseChunk):
        from scipy.sparse import csr_array

        indptr = chunk.indptr[first : last + 1]
        stored = slice(indptr[0], indptr[-1])
        parts = (chunk.data[stored], chunk.indices[stored], indptr - indptr[0])
        found: Floats = csr_array(parts, shape=(last - first, chunk.n)) @ V.T
    else:
        found = np.asarray(chunk.X[first:last], dtype=np.float64) @ V.T
    return found if is_contiguous else found[places - first]
