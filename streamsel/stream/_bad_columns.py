"""Which columns of a block have missing values, none that vary, or too few; and means for gaps.

Where gaps are kept, what was observed between them is what varies, or does not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from streamsel.stream._blocks import columns_per_block


def stored_values(values: Any, j: int) -> Any:
    """Return the stored values of column j."""
    if sparse.issparse(values):
        return values.data[values.indptr[j] : values.indptr[j + 1]]
    return values[:, j]


def observed_values(values: Any, j: int) -> Any:
    """Return the values of column j, but for those that are NaN."""
    column = values[:, [j]].toarray()[:, 0] if sparse.issparse(values) else values[:, j]
    return column[column == column]  # noqa: PLR0124


def count_missing(finite: Any, n: int) -> str:
    """Say how many of n values are missing, given which of those stored are finite."""
    n_missing = int(finite.size - finite.sum())
    text = f"{n_missing} of {n} values {'is' if n_missing == 1 else 'are'} missing or infinite"
    if finite.size == n:
        text += f", the first in row {int(np.argmin(finite))}"
    return text


def columns_with_missing(values: Any) -> Any:
    """Find the columns with a NaN or an infinity among their values."""
    data = values.data if sparse.issparse(values) else values
    none = np.empty(0, dtype=np.intp)
    if data.dtype.kind != "f" or not data.size:
        return none
    # One sum meets every NaN and infinity; one that merely overflows only costs the second look.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(data.sum()):
            return none
    if sparse.issparse(values):
        where = np.flatnonzero(~np.isfinite(data))
        return np.unique(np.searchsorted(values.indptr, where, side="right") - 1)
    return np.flatnonzero(~np.isfinite(values).all(axis=0))


def without_finite(values: Any, columns: Any) -> Any:
    """Tell of each of some columns whether none of its values is finite."""
    if not sparse.issparse(values):
        return ~np.isfinite(values.T[columns]).any(axis=1)
    # The values that are not stored are zeros: never missing.
    stored = [stored_values(values, j) for j in columns]
    full = values.shape[0]
    return np.array([x.size == full and not np.isfinite(x).any() for x in stored], dtype=bool)


def filled_in(values: Any, columns: Any) -> tuple[Any, int]:
    """Copy the values with the mean of a column's finite values in place of its others.

    Returns
    -------
    The copy, and how many values were replaced.
    """
    n_filled = 0
    if sparse.issparse(values):
        filled = values.copy()
        for j in columns:
            column = stored_values(filled, j)  # a view
            gaps = ~np.isfinite(column)
            column[gaps] = _mean_of_finite(column, values.shape[0])
            n_filled += int(gaps.sum())
        return filled, n_filled
    filled = values.copy(order="F")
    step = columns_per_block(values.shape[0])
    for start in range(0, len(columns), step):
        places = columns[start : start + step]
        rows = filled.T[places]
        finite = np.isfinite(rows)
        with np.errstate(over="ignore", invalid="ignore"):
            sums = np.where(finite, rows, 0).sum(axis=1, dtype=np.float64)
            means = sums / finite.sum(axis=1)
        for k in np.flatnonzero(~np.isfinite(means)):
            means[k] = _mean_of_finite(rows[k], rows.shape[1])
        gaps = np.flatnonzero(~finite)
        rows.reshape(-1)[gaps] = means[gaps // rows.shape[1]]
        filled.T[places] = rows
        n_filled += gaps.size
    return filled, n_filled


def _mean_of_finite(stored: Any, n: int) -> Any:
    """Return the mean of the finite ones of n values, given those stored; NaN if there is none."""
    seen = stored[np.isfinite(stored)]
    n_finite = n - (stored.size - seen.size)
    if not n_finite:
        return np.nan
    scale = np.abs(seen, dtype=np.float64).max(initial=0.0) or 1.0
    # Scaled, so that the sum of values as large as the dtype holds does not overflow.
    return scale * (np.sum(seen / scale, dtype=np.float64) / n_finite)


def constant_columns(values: Any) -> Any:
    """Find the columns whose values are all the same."""
    if sparse.issparse(values):
        return _constant_sparse_columns(values)
    constant = np.flatnonzero(values[0] == values[-1])
    # Most columns part at once: few rows first, then ever more of them over ever fewer columns.
    low, high = 1, 4
    while low < values.shape[0] and constant.size:
        same = (values[low:high, constant] == values[0, constant]).all(axis=0)
        constant = constant[same]
        low, high = high, 4 * high
    return constant


def _constant_sparse_columns(values: Any) -> Any:
    n = values.shape[0]
    stored = np.diff(values.indptr)
    constant = stored == 0
    filled = np.flatnonzero(stored)
    if filled.size:
        # Empty columns hold no data, so that the start of one filled column ends the one before it.
        starts = values.indptr[filled]
        low = np.minimum.reduceat(values.data, starts)
        high = np.maximum.reduceat(values.data, starts)
        constant[filled] = (low == high) & ((stored[filled] == n) | (low == 0))
    return np.flatnonzero(constant)


def constant_between_gaps(values: Any) -> Any:
    """Find the columns with gaps of which all that was observed is the same."""
    between = ((j, observed_values(values, j)) for j in columns_with_missing(values))
    return np.array([j for j, x in between if (x == x[0]).all()], dtype=np.intp)


def rare_between_gaps(values: Any, min_count: int) -> Any:
    """Find the columns with gaps that `rare_columns` would find, were they what was observed."""
    between = ((j, observed_values(values, j)) for j in columns_with_missing(values))
    return np.array([j for j, x in between if _differing(x)[1] < min_count], dtype=np.intp)


def _differing(column: Any) -> tuple[Any, int]:
    """Return the most frequent value of a column, and how many others there are."""
    found, counts = np.unique(column, return_counts=True)
    most = counts.argmax()
    return found[most], int(column.size - counts[most])


def rare_columns(values: Any, min_count: int) -> Any:
    """Find the columns that differ from their most frequent value in fewer rows than this."""
    if not sparse.issparse(values):
        return _rare_dense_columns(values, min_count)
    stored = np.diff(np.concatenate(([0], np.cumsum(values.data != 0)))[values.indptr])
    rare = stored < min_count
    # Hardly a zero: another value may be the most frequent.
    full = np.flatnonzero(values.shape[0] - stored < min_count)
    if full.size:
        rare[full[_rare_dense_columns(values[:, full].toarray(), min_count)]] = True
    return np.flatnonzero(rare)


def _rare_dense_columns(values: Any, min_count: int) -> Any:
    rare = np.arange(values.shape[1])
    n = 0
    # Of 2 min_count rows or more, that many differ from their median: so do they from any value.
    while n < values.shape[0] and rare.size:
        n = min(4 * max(n, min_count), values.shape[0])
        some = values[:n, rare]
        rare = rare[(some != _middle(some)).sum(axis=0) < min_count]
    return rare


def _middle(values: Any) -> Any:
    """Return the lower median of every column: the value that most rows have, if there is one."""
    middle = (values.shape[0] - 1) // 2
    return np.partition(values, middle, axis=0)[middle]


def tell_differing(values: Any, j: int) -> str:
    """Say how many values of column j differ from the one that most rows have."""
    column = observed_values(values, j)
    common, differing = _differing(column)
    return f"{differing} of {len(column)} values differ from {common.item()}"


def tell_value(values: Any, j: int) -> str:
    """Say what every value of column j is, which is constant."""
    return f"every value is {observed_values(values, j)[0].item()}"
