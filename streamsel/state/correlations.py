"""Products of columns with vectors, and rows of a correlation matrix, cached across solutions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from streamsel.data.chunks import Chunk, GeneratedChunk, SparseChunk, Stats
from streamsel.state.base import Floats, Indices

# A mean of this many standard deviations costs two digits of a product; columns with a larger one
# are centred first.
_LARGE_MEAN = 100.0
# Values per piece of columns.
_PIECE_VALUES = 1 << 19


def index_runs(indices: Indices, n: int) -> list[Indices]:
    """Cut indices into runs of columns, of n values each, that fit into the cache."""
    step = max(64, _PIECE_VALUES // n)
    return [indices[start : start + step] for start in range(0, indices.size, step)]


def correlate_columns(
    chunk: Chunk, stats: Stats, indices: Indices, V: Floats, adjusted_m2: Floats
) -> Floats:
    """Return products of centred columns of length 1 with vectors.

    Parameters
    ----------
    chunk, stats, indices
        The columns, their moments, and the indices of those to use, (b,), ascending.
    V
        (q, n) vectors, one per row, centred and adjusted for covariates.
    adjusted_m2
        (b,) sums of squares of the columns, adjusted for covariates; not 0.

    Returns
    -------
    (b, q).
    """
    mean = chunk.with_array_means(stats).mean[indices]
    found = _raw_products(chunk, indices, V)
    # The vectors are centred up to rounding.
    found -= mean[:, None] * V.sum(axis=1)
    large = np.flatnonzero(np.abs(mean) * np.sqrt(chunk.n) > _LARGE_MEAN * np.sqrt(adjusted_m2))
    if large.size:
        found[large] = (chunk.columns(indices[large]) - mean[large, None]) @ V.T
    found /= np.sqrt(adjusted_m2)[:, None]
    return found


def _raw_products(chunk: Chunk, indices: Indices, V: Floats) -> Floats:
    if isinstance(chunk, GeneratedChunk):
        return chunk.products(indices, V)
    first, last = int(indices[0]), int(indices[-1]) + 1
    is_contiguous = last - first == indices.size
    if isinstance(chunk, SparseChunk):
        from scipy.sparse import csr_array

        indptr = chunk.indptr[first : last + 1]
        stored = slice(indptr[0], indptr[-1])
        parts = (chunk.data[stored], chunk.indices[stored], indptr - indptr[0])
        found: Floats = csr_array(parts, shape=(last - first, chunk.n)) @ V.T
    else:
        found = np.asarray(chunk.X[first:last], dtype=np.float64) @ V.T
    return found if is_contiguous else found[indices - first]


# A matrix product with this many variables takes as long as three single ones.
MIN_BLOCK = 32


class CorrelationCache:
    """Cache of rows of the correlation matrix of a pool's variables, computed on request.

    Parameters
    ----------
    unit
        (p, n) the variables, one per row, centred and of length 1.
    before, origin
        A cache to take rows from, and (p,) the index of each variable there; -1 for new ones.
    max_rows
        Maximum number of rows to take from it, the latest ones.
    """

    def __init__(
        self,
        unit: Any,
        before: CorrelationCache | None = None,
        origin: Indices | None = None,
        max_rows: int = 0,
    ) -> None:
        self._unit: Any = unit
        self._rows: Floats = np.empty((0, len(unit)))
        # Index of a variable -> row.
        self._row_of: dict[int, int] = {}
        if before is not None and origin is not None:
            self._adopt_rows(unit, before, origin, max_rows)

    def _adopt_rows(
        self, unit: Any, before: CorrelationCache, origin: Indices, max_rows: int
    ) -> None:
        index_of = {previous: j for j, previous in enumerate(origin.tolist()) if previous >= 0}
        kept = [(j, row) for j, row in before._row_of.items() if j in index_of][-max_rows:]
        if not kept:
            return
        indices = [index_of[j] for j, _ in kept]
        new = np.flatnonzero(origin < 0)
        self._rows = before._rows[[row for _, row in kept]][:, origin]
        self._rows[:, new] = self._between(unit[indices], unit[new])
        self._row_of = {j: row for row, j in enumerate(indices)}

    def of(self, j: int, prefetch: Callable[[], Indices]) -> Floats:
        """Return the (p,) correlations with j; compute those of `prefetch` in the same product."""
        if j not in self._row_of:
            assert self._unit is not None  # noqa: S101
            indices = [j, *(i for i in prefetch().tolist() if i != j and i not in self._row_of)]
            size = len(self._rows)
            rows = self._between(self._unit[indices], self._unit)
            self._rows = np.vstack([self._rows, rows])
            self._row_of |= {i: size + row for row, i in enumerate(indices)}
        row: Floats = self._rows[self._row_of[j]]
        return row

    def _between(self, some: Any, right: Any) -> Floats:
        products: Floats = some @ right.T
        return products

    def close(self) -> None:
        """Release the observations; only cached rows are available afterwards."""
        self._unit = None
