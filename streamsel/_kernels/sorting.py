"""Sorted columns, and the permutation that sorts them, in linear time.

Every column is sorted by the same instructions at any position in a block. Columns are transposed,
one per row, C-contiguous and finite; they may be read-only.
"""

from __future__ import annotations

import numpy as np

from streamsel._kernels.compile import kernel

# A key encodes a distance relative to the largest: one of 64 powers of two, and the digits.
_POWERS = 64 << 52
# A key has two digits, in bits: short ones if there are too few rows to pay for more counters.
_SHORT_BITS, _LONG_BITS = 8, 11
_MANY_ROWS = 512
# Insertion moves per value beyond which the keys are too coarse.
_MAX_MOVES = 8
# The lower half of a word is the index of a value, the upper half its key.
_INDEX_MASK = 0xFFFF_FFFF
_SIGN = np.int64(-(2**63))


@kernel()
def _sort_by_bits(
    x: np.ndarray, values: np.ndarray, order: np.ndarray, other: np.ndarray, count: np.ndarray
) -> None:
    """Do the same as `_sort`, by a radix sort over all bits of a float64."""
    n = x.size
    keys = values.view(np.int64)
    for i in range(n):
        values[i], order[i] = x[i], i
        keys[i] ^= (keys[i] >> 63) | _SIGN
    mask = (1 << _LONG_BITS) - 1
    for shift in range(0, 64, _LONG_BITS):
        for d in range(mask + 1):
            count[d] = 0
        for i in range(n):
            count[(keys[i] >> shift) & mask] += 1
        below = 0
        for d in range(mask + 1):
            count[d], below = below, below + count[d]
        for i in range(n):
            d = (keys[order[i]] >> shift) & mask
            other[count[d]] = order[i]
            count[d] += 1
        for i in range(n):
            order[i] = other[i]
    for i in range(n):
        values[i] = x[order[i]]


@kernel()
def _sort(
    x: np.ndarray, values: np.ndarray, order: np.ndarray, words: np.ndarray, counts: np.ndarray
) -> None:
    """Fill values with x in ascending order, and order with their indices in x.

    Two passes of radix sort by the first 16 or 22 bits of the distance from a typical value, so
    that neither an offset nor a long tail uses up the bits. Insertion sort corrects the few
    neighbours that are out of order; if there are many, all bits are used.

    Parameters
    ----------
    x
        (n,) the column.
    values, order
        (n,) filled.
    words, counts
        (2, n) and (2, 2**11) integer buffers.
    """
    n = x.size
    bits = _SHORT_BITS if n < _MANY_ROWS else _LONG_BITS
    mask = (1 << bits) - 1
    half = 1 << (2 * bits - 1)
    a, b, c = x[0], x[n // 2], x[n - 1]
    typical = max(min(a, b), min(max(a, b), c))
    for i in range(n):
        values[i] = x[i] - typical
    # Bits of non-negative floats, as integers, are in the order of the floats.
    keys = values.view(np.int64)
    largest = np.int64(0)
    for i in range(n):
        largest = max(largest, keys[i] & ~_SIGN)
    start = largest - (_POWERS - 1)
    packed, buffer = words[0], words[1]
    for i in range(n):
        key = max((keys[i] & ~_SIGN) - start, 0) >> (59 - 2 * bits)
        packed[i] = (half + (key ^ (keys[i] >> 63))) << 32 | i
    lower, upper = counts[0], counts[1]
    for d in range(mask + 1):
        lower[d] = upper[d] = 0
    for i in range(n):
        key = packed[i] >> 32
        lower[key & mask] += 1
        upper[key >> bits] += 1
    below_lower = 0
    below_upper = 0
    for d in range(mask + 1):
        lower[d], below_lower = below_lower, below_lower + lower[d]
        upper[d], below_upper = below_upper, below_upper + upper[d]
    for i in range(n):
        d = (packed[i] >> 32) & mask
        buffer[lower[d]] = packed[i]
        lower[d] += 1
    for i in range(n):
        d = buffer[i] >> (32 + bits)
        packed[upper[d]] = buffer[i]
        upper[d] += 1
    moves = _MAX_MOVES * n
    for i in range(n):
        index = packed[i] & _INDEX_MASK
        value = x[index]
        j = i
        while j > 0 and values[j - 1] > value and moves > 0:
            values[j], order[j] = values[j - 1], order[j - 1]
            j -= 1
            moves -= 1
        values[j], order[j] = value, index
    if moves == 0:
        _sort_by_bits(x, values, order, packed, lower)


@kernel()
def sort_columns(X: np.ndarray, values: np.ndarray, order: np.ndarray) -> None:
    """Sort every column.

    Parameters
    ----------
    X
        (b, n) columns as rows.
    values, order
        (b, n) filled: the values of each, ascending, and their original indices.
    """
    b, n = X.shape
    words, counts = np.empty((2, n), np.int64), np.empty((2, 1 << _LONG_BITS), np.int32)
    for j in range(b):
        _sort(X[j], values[j], order[j], words, counts)


@kernel()
def sort_stored(
    data: np.ndarray,
    indptr: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    order: np.ndarray,
) -> None:
    """Sort the stored values of sparse columns.

    Parameters
    ----------
    data, indptr
        float64 values, and (b + 1,) where columns start.
    columns
        Indices of the columns to sort.
    values, order
        Filled for these columns: the values of each, ascending, and their indices within it.
    """
    longest = 0
    for j in columns:
        longest = max(longest, indptr[j + 1] - indptr[j])
    words, counts = np.empty((2, longest), np.int64), np.empty((2, 1 << _LONG_BITS), np.int32)
    for j in columns:
        stored = slice(indptr[j], indptr[j + 1])
        if indptr[j + 1] > indptr[j]:
            _sort(data[stored], values[stored], order[stored], words, counts)
