"""Transposition of sparse matrices: columns out of rows, a few neighbouring columns at a time."""

from __future__ import annotations

import numpy as np

from streamsel._kernels.compile import kernel


@kernel()
def count_entries(columns: np.ndarray, ends: np.ndarray, counts: np.ndarray) -> bool:
    """Count the entries of every column; return whether the columns of every row increase.

    Parameters
    ----------
    columns
        (m,) the column of every entry; numbers outside 0 to p - 1 are not counted, and make the
        result False.
    ends
        (r + 1,) the first entry of every row, and the end.
    counts
        (p,) is added to.
    """
    p, increases = counts.size, True
    for row in range(ends.size - 1):
        before = -1
        for i in range(ends[row], ends[row + 1]):
            j = columns[i]
            increases &= before < j < p
            before = j
            if 0 <= j < p:
                counts[j] += 1
    return increases


@kernel()
def seek_column(columns: np.ndarray, ends: np.ndarray, first: int, positions: np.ndarray) -> None:
    """Find where the entries from a column on begin in every row.

    Parameters
    ----------
    columns, ends
        As in `count_entries`; the columns of a row increase.
    first
        The column.
    positions
        (r,) is overwritten.
    """
    for row in range(positions.size):
        low, high = ends[row], ends[row + 1]
        while low < high:
            middle = (low + high) // 2
            if columns[middle] < first:
                low = middle + 1
            else:
                high = middle
        positions[row] = low


@kernel()
def take_columns(
    given: np.ndarray,
    columns: np.ndarray,
    ends: np.ndarray,
    window: tuple[int, int],
    positions: np.ndarray,
    free: np.ndarray,
    values: np.ndarray,
    rows: np.ndarray,
) -> None:
    """Copy the entries of neighbouring columns.

    Parameters
    ----------
    given
        (m,) values.
    columns, ends
        As in `seek_column`.
    window
        The first column, and the one after the last.
    positions
        (r,) the first of these entries in every row, is advanced to the first after them.
    free
        (b,) where the entries of each column go, is overwritten.
    values, rows
        Values and rows by column, are overwritten.
    """
    first, end = window
    for row in range(positions.size):
        # Unsigned: for other indices numba checks whether they count from the end.
        i, stop = np.uint64(positions[row]), np.uint64(ends[row + 1])
        while i < stop and columns[i] < end:
            j = np.uint64(columns[i] - first)
            k = np.uint64(free[j])
            values[k], rows[k] = given[i], row
            free[j] = k + np.uint64(1)
            i += np.uint64(1)
        positions[row] = i


@kernel()
def append_columns(
    given: np.ndarray,
    given_rows: np.ndarray,
    ends: np.ndarray,
    first_row: int,
    free: np.ndarray,
    values: np.ndarray,
    rows: np.ndarray,
) -> None:
    """Append entries of further rows to columns.

    Parameters
    ----------
    given, given_rows
        (m,) values, and their rows relative to `first_row`, by column.
    ends
        (b + 1,) the first entry of every column, and the end, relative to any offset.
    first_row
        Number of the first of these rows.
    free, values, rows
        As in `take_columns`; `free` is advanced.
    """
    for j in range(ends.size - 1):
        # Unsigned, as in `take_columns`.
        k = np.uint64(free[j])
        for i in range(np.uint64(ends[j] - ends[0]), np.uint64(ends[j + 1] - ends[0])):
            values[k], rows[k] = given[i], first_row + given_rows[i]
            k += np.uint64(1)
        free[j] = k
