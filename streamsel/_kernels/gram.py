"""Gram matrices: centred and scaled columns, and sparse products."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamsel._kernels.compile import kernel

Floats = NDArray[np.float64]


@kernel()
def center(
    X: np.ndarray,
    indices: np.ndarray,
    mean: np.ndarray,
    low: np.ndarray,
    scale: np.ndarray,
    out: np.ndarray,
) -> None:
    """Fill out (m, n) with some of the rows of X (b, n), centred and scaled.

    Parameters
    ----------
    X
        (b, n) columns as rows.
    indices
        (m,) indices of the rows.
    mean, low
        (b,) means of all rows, and the rounding errors of these.
    scale
        (m,) factors.
    out
        (m, n) filled.
    """
    for k in range(indices.size):
        x, to = X[indices[k]], out[k]
        high, low_part, factor = mean[indices[k]], low[indices[k]], scale[k]
        for i in range(x.size):
            to[i] = ((np.float64(x[i]) - high) - low_part) * factor


@kernel()
def fill_units(
    X: np.ndarray,
    indices: np.ndarray,
    mean: np.ndarray,
    low: np.ndarray,
    length: np.ndarray,
    out: np.ndarray,
) -> None:
    """Fill out (m, n) with some of the rows of X (b, n), centred and divided by their lengths.

    Parameters
    ----------
    X
        (b, n) columns as rows.
    indices
        (m,) indices of the rows.
    mean, low, length
        (m,) means of these rows, the rounding errors of the means, and the lengths.
    out
        (m, n) filled.
    """
    for k in range(indices.size):
        x, to = X[indices[k]], out[k]
        high, low_part, divisor = mean[k], low[k], length[k]
        for i in range(x.size):
            to[i] = ((np.float64(x[i]) - high) - low_part) / divisor


@kernel()
def fill_stored_units(
    data: np.ndarray,
    rows: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    mean: np.ndarray,
    low: np.ndarray,
    length: np.ndarray,
    out: np.ndarray,
) -> None:
    """Fill out as `fill_units` does, from the arrays of a CSC matrix."""
    for k in range(indices.size):
        j, to = indices[k], out[k]
        high, low_part, divisor = mean[k], low[k], length[k]
        zero = ((0.0 - high) - low_part) / divisor
        for i in range(to.size):
            to[i] = zero
        for e in range(indptr[j], indptr[j + 1]):
            to[rows[e]] = ((np.float64(data[e]) - high) - low_part) / divisor


@kernel()
def center_stored(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    columns: np.ndarray,
    mean: np.ndarray,
    low: np.ndarray,
    scale: np.ndarray,
    out: np.ndarray,
) -> None:
    """Fill out as `center` does, from the arrays of a CSC matrix."""
    for k in range(columns.size):
        j = columns[k]
        to, high, low_part, factor = out[k], mean[j], low[j], scale[k]
        zero = (-high - low_part) * factor
        for i in range(to.size):
            to[i] = zero
        for e in range(indptr[j], indptr[j + 1]):
            to[indices[e]] = ((np.float64(data[e]) - high) - low_part) * factor


@kernel()
def gather_stored(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    columns: np.ndarray,
    scale: np.ndarray,
    values: np.ndarray,
    rows: np.ndarray,
) -> None:
    """Fill values and rows with the stored entries of some columns of a CSC matrix, scaled."""
    position = 0
    for k in range(columns.size):
        for e in range(indptr[columns[k]], indptr[columns[k] + 1]):
            values[position] = np.float64(data[e]) * scale[k]
            rows[position] = indices[e]
            position += 1


@kernel()
def add_sparse_products(
    values: np.ndarray,
    rows: np.ndarray,
    ends: np.ndarray,
    weight: np.ndarray,
    entry: np.ndarray,
    column: np.ndarray,
    indptr: np.ndarray,
    first: int,
    stop: int,
    starts: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add the products of sparse columns to the rows `first` to `stop` of a lower triangle.

    Row by row, so that one row of the triangle stays in the cache while the stored entries are
    read.

    Parameters
    ----------
    values, rows, ends
        The arrays of a CSC matrix, its row indices ascending within a column.
    weight
        (b,) weights of its columns.
    entry, column, indptr
        By rows: the indices in `values` of the entries of a row, and their columns.
    first, stop
        Rows of the triangle to add to.
    starts
        (n,) the start of each row of the triangle in `out`.
    out
        The triangle, row by row; increased.
    """
    for i in range(first, stop):
        start = starts[i]
        for k in range(indptr[i], indptr[i + 1]):
            e, j = entry[k], column[k]
            x = values[e] * weight[j]
            for other in range(ends[j], e + 1):
                out[start + rows[other]] += x * values[other]
