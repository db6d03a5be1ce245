"""Gaps of dense columns, which are values that are NaN or infinite: count, zero, fill."""

from __future__ import annotations

import numpy as np

from streamsel._kernels.compile import kernel


@kernel()
def find_gaps(columns: np.ndarray, has_gap: np.ndarray, has_value: np.ndarray) -> None:
    """Find the columns that have a gap, and those that have a finite value.

    Parameters
    ----------
    columns
        (b, n) float32 or float64, one column per row, C-contiguous.
    has_gap, has_value
        (b,) are overwritten.
    """
    for j in range(columns.shape[0]):
        any_gap, any_value = False, False
        for i in range(columns.shape[1]):
            is_finite = np.isfinite(columns[j, i])
            any_gap |= not is_finite
            any_value |= is_finite
        has_gap[j], has_value[j] = any_gap, any_value


@kernel()
def zero_gaps(
    columns: np.ndarray, indices: np.ndarray, zeroed: np.ndarray, n_gaps: np.ndarray
) -> None:
    """Copy columns, as in `find_gaps`, with zeros in their gaps, and count these.

    Parameters
    ----------
    indices
        (m,) the columns.
    zeroed, n_gaps
        (m, n) and (m,) are overwritten.
    """
    for k in range(indices.size):
        j, found = indices[k], 0
        for i in range(columns.shape[1]):
            value = columns[j, i]
            is_finite = np.isfinite(value)
            zeroed[k, i] = value if is_finite else 0.0
            found += not is_finite
        n_gaps[k] = found


@kernel()
def fill_gaps(columns: np.ndarray, indices: np.ndarray, filling: np.ndarray) -> None:
    """Fill the gaps of columns in place.

    Parameters
    ----------
    columns, indices
        As in `zero_gaps`.
    filling
        (m,) the value for each column.
    """
    for k in range(indices.size):
        j = indices[k]
        for i in range(columns.shape[1]):
            value = columns[j, i]
            columns[j, i] = value if np.isfinite(value) else filling[k]
