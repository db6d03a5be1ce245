"""Columns of small whole numbers, and one other value each, as bytes."""

from __future__ import annotations

import math

import numpy as np

from streamsel._kernels.compile import kernel

# The byte for the other value.
_OTHER = -128


@kernel()
def pack_columns(columns: np.ndarray, packed: np.ndarray, others: np.ndarray) -> bool:
    """Convert columns to bytes if no value is lost; return whether that is so.

    Parameters
    ----------
    columns
        (b, n) float32 or float64, one column per row.
    packed
        (b, n) int8, is overwritten.
    others
        (b,) the one value of each column that is not a whole number from -127 to 127, such as the
        mean of a variant in place of its gaps, or NaN; is overwritten.
    """
    for j in range(columns.shape[0]):
        has_other = False
        others[j] = 0.0
        for i in range(columns.shape[1]):
            value = columns[j, i]
            # Negative zero does not count as a whole number here.
            is_whole = -127.0 <= value <= 127.0 and value == math.floor(value)
            if is_whole and (value != 0.0 or math.copysign(1.0, value) > 0.0):
                packed[j, i] = np.int8(value)
                continue
            if not has_other:
                has_other, others[j] = True, value
            elif value != others[j] and not (math.isnan(value) and math.isnan(others[j])):
                return False
            packed[j, i] = _OTHER
    return True


@kernel()
def unpack_columns(packed: np.ndarray, others: np.ndarray, columns: np.ndarray) -> None:
    """Convert the bytes of `pack_columns` to columns, (b, n), which are overwritten."""
    for j in range(packed.shape[0]):
        for i in range(packed.shape[1]):
            byte = packed[j, i]
            columns[j, i] = others[j] if byte == _OTHER else byte
