"""Mid-ranks of columns, dense or sparse."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel._kernels.ranks import (
    rank_integers,
    rank_sorted,
    rank_stored_integers,
    rank_stored_sorted,
)
from streamsel._kernels.sorting import sort_columns, sort_stored
from streamsel.data.chunks import SparseChunk

Floats = NDArray[np.float64]


class SortedColumns(NamedTuple):
    """Sorted values of columns, (b, n), and their original indices."""

    values: Floats
    order: NDArray[np.int64]

    @classmethod
    def of(cls, X: Floats) -> SortedColumns:
        """Sort columns, one per row; equal values keep their order."""
        found = cls(np.empty(X.shape), np.empty(X.shape, dtype=np.int64))
        sort_columns(X, *found)
        return found


class StoredRanks(NamedTuple):
    """Ranks of the values of sparse columns.

    Parameters
    ----------
    ranks
        Ranks of the stored values.
    indices, indptr
        Their rows, and (b + 1,) where columns start.
    zero_ranks
        (b,) ranks of the values that are not stored.
    """

    ranks: NDArray[np.int32]
    indices: NDArray[Any]
    indptr: NDArray[np.int64]
    zero_ranks: NDArray[np.int64]


def rank_columns(X: NDArray[Any]) -> NDArray[np.int32]:
    """Return the ranks of dense columns, (b, n), as 2 r - (n + 1) with r the mid-rank from 1 to n.

    Small integers are counted, other columns are sorted.

    Parameters
    ----------
    X
        (b, n) columns as rows, finite, of a type that is read in place.
    """
    X = X.view()
    X.flags.writeable = False
    ranks, is_ranked = np.empty(X.shape, dtype=np.int32), np.empty(len(X), dtype=np.bool_)
    rank_integers(X, ranks, is_ranked)
    others = np.flatnonzero(~is_ranked)
    if others.size:
        rank_sorted(*SortedColumns.of(np.asarray(X[others], dtype=np.float64)), others, ranks)
    return ranks


def rank_stored(chunk: SparseChunk, part: slice) -> StoredRanks:
    """Return the ranks of a slice of the columns of a sparse chunk, as `rank_columns` does."""
    start, stop = chunk.indptr[part.start], chunk.indptr[part.stop]
    indptr = chunk.indptr[part.start : part.stop + 1].astype(np.int64) - start
    data, b = chunk.data[start:stop], indptr.size - 1
    ranks, zero_ranks = np.empty(data.size, dtype=np.int32), np.zeros(b, dtype=np.int64)
    is_ranked = np.empty(b, dtype=np.bool_)
    rank_stored_integers(data, indptr, chunk.n, ranks, zero_ranks, is_ranked)
    others = np.flatnonzero(~is_ranked)
    if others.size:
        values, order = np.empty(data.size), np.empty(data.size, dtype=np.int64)
        sort_stored(data.astype(np.float64), indptr, others, values, order)
        rank_stored_sorted(values, order, indptr, chunk.n, others, ranks, zero_ranks)
    return StoredRanks(ranks, chunk.indices[start:stop], indptr, zero_ranks)
