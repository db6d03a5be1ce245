"""Columns in order of their values, and where each value came from, in linear time.

Every column is sorted by the same instructions wherever it stands in a block. Columns arrive
transposed, one a row, C-contiguous, finite; they may be read-only.
"""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel

# A key tells a distance as part of the largest: which of so many powers of two, and the digits.
_POWERS = 64 << 52
# The key is of two digits: short ones where there are too few rows to pay for counting by long.
_SHORT, _LONG = 8, 11
_MANY_ROWS = 512
# Where neighbours in order of their keys need more moves a value than this, keys do not tell.
_MOVES = 8
# The lower half of a word is the place of a value, the upper half its key.
_PLACE = 0xFFFF_FFFF
_SIGN = np.int64(-(2**63))


@kernel()
def _sort_by_bits(
    x: np.ndarray, values: np.ndarray, order: np.ndarray, other: np.ndarray, count: np.ndarray
) -> None:
    """Do as `_sort` in as many passes of radix sort as a float64 has digits."""
    n = x.size
    keys = values.view(np.int64)
    for i in range(n):
        values[i], order[i] = x[i], i
        keys[i] ^= (keys[i] >> 63) | _SIGN
    mask = (1 << _LONG) - 1
    for shift in range(0, 64, _LONG):
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
    """Fill values with those of x, ascending, and order with the places that they come from.

    Two passes of radix sort by the first 16 or 22 bits of how far a value lies from one that is not
    extreme, so that neither an offset nor a long tail uses them up. They leave few neighbours out
    of order, and insertion puts those right; where they leave many, all bits are sorted by.

    Parameters
    ----------
    words, counts
        (2, n) and (2, 2**11) integers to work in.
    """
    n = x.size
    bits = _SHORT if n < _MANY_ROWS else _LONG
    mask = (1 << bits) - 1
    half = 1 << (2 * bits - 1)
    a, b, c = x[0], x[n // 2], x[n - 1]
    typical = max(min(a, b), min(max(a, b), c))
    for i in range(n):
        values[i] = x[i] - typical
    # Without their sign, numbers ascend with their bits as integers.
    keys = values.view(np.int64)
    largest = np.int64(0)
    for i in range(n):
        largest = max(largest, keys[i] & ~_SIGN)
    start = largest - (_POWERS - 1)
    here, there = words[0], words[1]
    for i in range(n):
        key = max((keys[i] & ~_SIGN) - start, 0) >> (59 - 2 * bits)
        here[i] = (half + (key ^ (keys[i] >> 63))) << 32 | i
    lower, upper = counts[0], counts[1]
    for d in range(mask + 1):
        lower[d] = upper[d] = 0
    for i in range(n):
        key = here[i] >> 32
        lower[key & mask] += 1
        upper[key >> bits] += 1
    below_lower = 0
    below_upper = 0
    for d in range(mask + 1):
        lower[d], below_lower = below_lower, below_lower + lower[d]
        upper[d], below_upper = below_upper, below_upper + upper[d]
    for i in range(n):
        d = (here[i] >> 32) & mask
        there[lower[d]] = here[i]
        lower[d] += 1
    for i in range(n):
        d = there[i] >> (32 + bits)
        here[upper[d]] = there[i]
        upper[d] += 1
    moves = _MOVES * n
    for i in range(n):
        place = here[i] & _PLACE
        value = x[place]
        j = i
        while j > 0 and values[j - 1] > value and moves > 0:
            values[j], order[j] = values[j - 1], order[j - 1]
            j -= 1
            moves -= 1
        values[j], order[j] = value, place
    if moves == 0:
        _sort_by_bits(x, values, order, here, lower)


@kernel()
def sort_columns(X: np.ndarray, values: np.ndarray, order: np.ndarray) -> None:
    """Sort every column.

    Parameters
    ----------
    X
        (b, n) columns as rows.
    values, order
        (b, n) filled: the values of each, ascending, and the places that they come from.
    """
    b, n = X.shape
    words, counts = np.empty((2, n), np.int64), np.empty((2, 1 << _LONG), np.int32)
    for j in range(b):
        _sort(X[j], values[j], order[j], words, counts)
