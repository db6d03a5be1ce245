"""Columns on their way into a Gram matrix: centred and scaled, dense or as they are stored."""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel


@kernel()
def center(
    X: np.ndarray,
    places: np.ndarray,
    mean: np.ndarray,
    low: np.ndarray,
    scale: np.ndarray,
    out: np.ndarray,
) -> None:
    """Fill out (m, n) with some of the rows of X (b, n), centred and scaled.

    Parameters
    ----------
    places
        (m,) which rows.
    mean, low
        (b,) their means, and what rounding took from these.
    scale
        (m,).
    """
    for k in range(places.size):
        x, to = X[places[k]], out[k]
        high, rest, factor = mean[places[k]], low[places[k]], scale[k]
        for i in range(x.size):
            to[i] = ((np.float64(x[i]) - high) - rest) * factor


@kernel()
def center_stored(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    places: np.ndarray,
    mean: np.ndarray,
    low: np.ndarray,
    scale: np.ndarray,
    out: np.ndarray,
) -> None:
    """Fill out as `center` does, from the parts of a CSC matrix."""
    for k in range(places.size):
        j = places[k]
        to, high, rest, factor = out[k], mean[j], low[j], scale[k]
        nothing = (-high - rest) * factor
        for i in range(to.size):
            to[i] = nothing
        for e in range(indptr[j], indptr[j + 1]):
            to[indices[e]] = ((np.float64(data[e]) - high) - rest) * factor


@kernel()
def gather(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    places: np.ndarray,
    scale: np.ndarray,
    values: np.ndarray,
    rows: np.ndarray,
) -> None:
    """Fill values and rows with what some columns of a CSC matrix store, scaled."""
    at = 0
    for k in range(places.size):
        for e in range(indptr[places[k]], indptr[places[k] + 1]):
            values[at] = np.float64(data[e]) * scale[k]
            rows[at] = indices[e]
            at += 1


@kernel()
def add_stored(
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

    Row by row: one row of it stays in the cache while what the columns store goes by.

    Parameters
    ----------
    values, rows, ends
        The parts of a CSC matrix, its row indices ascending within a column.
    weight
        (b,) of its columns.
    entry, column, indptr
        By rows: where in `values` the entries of a row stand, and in which columns.
    starts
        (n,) where the rows of the triangle start in `out`.
    """
    for i in range(first, stop):
        start = starts[i]
        for k in range(indptr[i], indptr[i + 1]):
            e, j = entry[k], column[k]
            x = values[e] * weight[j]
            for other in range(ends[j], e + 1):
                out[start + rows[other]] += x * values[other]
