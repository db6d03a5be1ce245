"""How columns of a block go with a few vectors: one matrix product, whatever the columns' level."""

from __future__ import annotations

import numpy as np

from streamsel.columns import Chunk, SparseChunk, Stats
from streamsel.held.part import Floats, Places

# A level of so many standard deviations costs two digits of a product; above it the column is
# centred first.
_FAR = 100.0
# Columns are looked at in pieces of about this many numbers.
_PIECE = 1 << 19


def pieces(places: Places, n: int) -> list[Places]:
    """Cut places into runs of columns, of n numbers each, that stay in the cache."""
    step = max(64, _PIECE // n)
    return [places[start : start + step] for start in range(0, places.size, step)]


def correlations(chunk: Chunk, stats: Stats, places: Places, V: Floats, left: Floats) -> Floats:
    """Return products of columns, centred and of length 1, with vectors.

    Parameters
    ----------
    chunk, stats, places
        The columns, their moments, and which of them, (b,), ascending.
    V
        (q, n) the vectors, one a row, centred, and without what covariates explain.
    left
        (b,) sums of squares of the columns, or what the covariates leave of them; not 0.

    Returns
    -------
    (b, q).
    """
    mean = chunk.about(stats).mean[places]
    found = _raw_products(chunk, places, V)
    # The vectors are centred but for rounding.
    found -= mean[:, None] * V.sum(axis=1)
    far = np.flatnonzero(np.abs(mean) * np.sqrt(chunk.n) > _FAR * np.sqrt(left))
    if far.size:
        found[far] = (chunk.columns(places[far]) - mean[far, None]) @ V.T
    found /= np.sqrt(left)[:, None]
    return found


def _raw_products(chunk: Chunk, places: Places, V: Floats) -> Floats:
    first, last = int(places[0]), int(places[-1]) + 1
    of_all = last - first == places.size
    if isinstance(chunk, SparseChunk):
        from scipy.sparse import csr_array

        indptr = chunk.indptr[first : last + 1]
        stored = slice(indptr[0], indptr[-1])
        parts = (chunk.data[stored], chunk.indices[stored], indptr - indptr[0])
        found: Floats = csr_array(parts, shape=(last - first, chunk.n)) @ V.T
    else:
        found = np.asarray(chunk.X[first:last], dtype=np.float64) @ V.T
    return found if of_all else found[places - first]
