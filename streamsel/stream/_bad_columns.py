"""Detection of columns with missing values, constant and rare columns; imputation of means.

If missing values are kept, only the observed values of a column are checked for variation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsel._kernels.gaps import fill_gaps, find_gaps, zero_gaps
from streamsel._utils.sparse import is_sparse
from streamsel.stream._blocks import columns_per_block

# Dtypes of columns that the kernels read.
_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def stored_values(values: Any, j: int) -> Any:
    """Return the stored values of column j."""
    if is_sparse(values):
        return values.data[values.indptr[j] : values.indptr[j + 1]]
    return values[:, j]


def observed_values(values: Any, j: int) -> Any:
    """Return the values of column j that are not NaN."""
    column = values[:, [j]].toarray()[:, 0] if is_sparse(values) else values[:, j]
    return column[column == column]  # noqa: PLR0124


def describe_missing(finite: Any, n: int) -> str:
    """Describe how many of n values are missing, by a mask of the finite stored values."""
    n_missing = int(finite.size - finite.sum())
    text = f"{n_missing} of {n} values {'is' if n_missing == 1 else 'are'} missing or infinite"
    if finite.size == n:
        text += f", the first in row {int(np.argmin(finite))}"
    return text


def columns_with_missing(values: Any) -> Any:
    """Return the indices of the columns with a NaN or an infinity."""
    if _is_contiguous(values):
        return np.flatnonzero(_gaps_and_values(values)[0])
    data = values.data if is_sparse(values) else values
    none = np.empty(0, dtype=np.intp)
    if data.dtype.kind != "f" or not data.size:
        return none
    # The sum is finite only without NaN and infinity; an overflow only costs the exact check.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(data.sum()):
            return none
    if is_sparse(values):
        entries = np.flatnonzero(~np.isfinite(data))
        return np.unique(np.searchsorted(values.indptr, entries, side="right") - 1)
    return np.flatnonzero(~np.isfinite(values).all(axis=0))


def _is_contiguous(values: Any) -> bool:
    """Return whether the columns of an array are floats of a usual size, each contiguous."""
    return not is_sparse(values) and values.dtype in _FLOATS and values.flags.f_contiguous


def _gaps_and_values(values: Any) -> tuple[Any, Any]:
    """Return which contiguous columns have a gap, and which have a finite value."""
    has_gap, has_value = np.empty((2, values.shape[1]), dtype=np.bool_)
    find_gaps(values.T, has_gap, has_value)
    return has_gap, has_value


def all_non_finite(values: Any, columns: Any) -> Any:
    """Return a mask of the given columns that have no finite value."""
    if _is_contiguous(values):
        return ~_gaps_and_values(values)[1][columns]
    if not is_sparse(values):
        return ~np.isfinite(values.T[columns]).any(axis=1)
    # Values that are not stored are zeros, which are finite.
    stored = [stored_values(values, j) for j in columns]
    full = values.shape[0]
    return np.array([x.size == full and not np.isfinite(x).any() for x in stored], dtype=bool)


def impute_means(values: Any, columns: Any) -> tuple[Any, int]:
    """Copy the values, with the non-finite ones of some columns replaced by the column mean.

    Returns
    -------
    The copy, and the number of replaced values.
    """
    if is_sparse(values):
        filled, n_filled = values.copy(), 0
        for j in columns:
            column = stored_values(filled, j)  # a view
            gaps = ~np.isfinite(column)
            column[gaps] = _mean_of_finite(column, values.shape[0])
            n_filled += int(gaps.sum())
        return filled, n_filled
    dtype = values.dtype if values.dtype in _FLOATS else np.float64
    filled = values.astype(dtype, order="F")
    n, n_filled = values.shape[0], 0
    step = columns_per_block(n)
    for start in range(0, len(columns), step):
        indices = columns[start : start + step]
        zeroed = np.empty((len(indices), n), dtype)
        n_gaps = np.empty(len(indices), np.intp)
        zero_gaps(filled.T, indices, zeroed, n_gaps)
        with np.errstate(over="ignore", invalid="ignore"):
            means = zeroed.sum(axis=1, dtype=np.float64) / (n - n_gaps)
        for k in np.flatnonzero(~np.isfinite(means)):
            means[k] = _mean_of_finite(filled[:, indices[k]], n)
        fill_gaps(filled.T, indices, means.astype(dtype))
        n_filled += int(n_gaps.sum())
    return filled, n_filled


def _mean_of_finite(stored: Any, n: int) -> Any:
    """Return the mean of the finite values of a column of n values, NaN if there is none."""
    finite = stored[np.isfinite(stored)]
    n_finite = n - (stored.size - finite.size)
    if not n_finite:
        return np.nan
    scale = np.abs(finite, dtype=np.float64).max(initial=0.0) or 1.0
    # Scaled, so that the sum of very large values does not overflow.
    return scale * (np.sum(finite / scale, dtype=np.float64) / n_finite)


def constant_columns(values: Any) -> Any:
    """Return the indices of the columns whose values are all equal."""
    if is_sparse(values):
        return _constant_sparse_columns(values)
    constant = np.flatnonzero(values[0] == values[-1])
    # Most columns vary in the first rows: compare few rows first, then more rows of fewer columns.
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
        # Empty columns have no data, so that a filled column ends where the next filled one starts.
        starts = values.indptr[filled]
        low = np.minimum.reduceat(values.data, starts)
        high = np.maximum.reduceat(values.data, starts)
        constant[filled] = (low == high) & ((stored[filled] == n) | (low == 0))
    return np.flatnonzero(constant)


def constant_among_observed(values: Any) -> Any:
    """Return the columns with missing values whose observed values are all equal."""
    observed = ((j, observed_values(values, j)) for j in columns_with_missing(values))
    return np.array([j for j, x in observed if (x == x[0]).all()], dtype=np.intp)


def rare_among_observed(values: Any, min_count: int) -> Any:
    """Return the columns with missing values whose observed values are rare (`rare_columns`)."""
    observed = ((j, observed_values(values, j)) for j in columns_with_missing(values))
    return np.array([j for j, x in observed if _mode(x)[1] < min_count], dtype=np.intp)


def _mode(column: Any) -> tuple[Any, int]:
    """Return the most frequent value of a column, and the number of values that differ from it."""
    distinct, counts = np.unique(column, return_counts=True)
    mode = counts.argmax()
    return distinct[mode], int(column.size - counts[mode])


def rare_columns(values: Any, min_count: int) -> Any:
    """Return the columns with fewer than `min_count` values other than the most frequent one."""
    if not is_sparse(values):
        return _rare_dense_columns(values, min_count)
    stored = np.diff(np.concatenate(([0], np.cumsum(values.data != 0)))[values.indptr])
    rare = stored < min_count
    # With few zeros, another value may be the most frequent.
    dense = np.flatnonzero(values.shape[0] - stored < min_count)
    if dense.size:
        rare[dense[_rare_dense_columns(values[:, dense].toarray(), min_count)]] = True
    return np.flatnonzero(rare)


def _rare_dense_columns(values: Any, min_count: int) -> Any:
    rare = np.arange(values.shape[1])
    n = 0
    # If min_count of the first n >= 2 min_count rows differ from their median, at least as many
    # differ from any value: a majority value is the median, and without one half of the rows differ
    # from it.
    while n < values.shape[0] and rare.size:
        n = min(4 * max(n, min_count), values.shape[0])
        head = values[:n, rare]
        rare = rare[(head != _lower_median(head)).sum(axis=0) < min_count]
    return rare


def _lower_median(values: Any) -> Any:
    """Return the lower median of every column, which is the majority value if there is one."""
    middle = (values.shape[0] - 1) // 2
    return np.partition(values, middle, axis=0)[middle]


def describe_rare(values: Any, j: int) -> str:
    """Describe how many values of column j differ from its most frequent value."""
    column = observed_values(values, j)
    mode, n_differing = _mode(column)
    return f"{n_differing} of {len(column)} values differ from {mode.item()}"


def describe_constant(values: Any, j: int) -> str:
    """Describe the value of the constant column j."""
    return f"every value is {observed_values(values, j)[0].item()}"
