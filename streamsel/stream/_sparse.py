"""Streams of the columns of sparse matrices in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel.columns import Block
from streamsel.sparse import expect_whole
from streamsel.stream._base import ColumnStream, check_names, indexed_stream
from streamsel.stream._blocks import (
    BLOCK_BYTES,
    KEPT_DTYPES,
    MAX_COLUMNS,
    csc_columns,
    is_sparse,
    stored,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence


def iter_sparse(X: Any, names: Sequence[Hashable] | None = None) -> ColumnStream:
    """Stream the columns of a scipy.sparse matrix without making them dense.

    Parameters
    ----------
    X
        Matrix or array of scipy.sparse of shape (n, p), observations by columns, preferably CSC.
        float64, float32, int8 and uint8 keep their dtype, bool becomes uint8, other numbers become
        float64.
    names
        One distinct hashable for each column; 0, 1, ..., p - 1 by default.

    Raises
    ------
    TypeError
        If X is not sparse.
    ValueError
        If X is not two-dimensional, or there are not p distinct names.

    Notes
    -----
    The blocks of a CSC matrix are views of its entries. A matrix of another format is converted to
    CSC once, when the function is called; a matrix with repeated or unsorted row indices is copied
    and brought to canonical format. This is checked once per matrix, at the cost of one pass over
    its entries; scipy caches the result.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> stream = iter_sparse(sp.csc_array([[0.0, 2.0], [3.0, 0.0]]), names=["a", "b"])
    >>> for name, column in stream:
    ...     print(name, column.toarray().ravel())
    a [0. 3.]
    b [2. 0.]
    """
    if not is_sparse(X):
        raise TypeError(f"Expected a matrix X of scipy.sparse. Got: {type(X).__name__}.")
    if X.ndim != 2:
        raise ValueError(
            "Expected a two-dimensional matrix, observations by columns. "
            f"Got: {X.ndim} dimensions, shape {X.shape}."
        )
    expect_whole(X)
    matrix = X.tocsc()
    if not matrix.has_canonical_format:
        matrix = matrix.copy() if matrix is X else matrix
        matrix.sum_duplicates()
    n, p = matrix.shape
    all_names = check_names(names, p)
    viewable = matrix.dtype in KEPT_DTYPES or matrix.dtype.kind == "b"
    max_entries = BLOCK_BYTES // 8  # of a converted block

    def part(a: int, b: int) -> Any:
        columns = csc_columns(matrix, a, b)
        if matrix.dtype not in KEPT_DTYPES:
            columns.data = stored(columns.data)
        return columns

    def read(start: int) -> Iterator[Block]:
        a = start
        while a < p:
            b = min(p, a + MAX_COLUMNS)
            if not viewable:
                ends = matrix.indptr[a + 1 : b + 1] - matrix.indptr[a]
                b = a + max(1, int(np.searchsorted(ends, max_entries, side="right")))
            yield Block(all_names[a:b], part(a, b))
            a = b

    def fetch(positions: list[int]) -> list[Any]:
        return [part(j, j + 1) for j in positions]

    return indexed_stream(all_names, n, read, fetch)
