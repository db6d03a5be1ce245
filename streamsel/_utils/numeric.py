"""Numerical helpers: order under ties, ranks, exact sums, leading axes, symmetric matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Relevances that differ by less are tied, so that rounding errors do not decide.
TIE_RTOL = 1e-12


def argsort_by_relevance(relevance: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the indices that sort relevances in descending order; ties keep their order."""
    # Constant variables have -inf, whose differences are NaN.
    relevance = np.maximum(relevance, -2.0)
    order = np.argsort(-relevance)
    falls = np.diff(relevance[order], prepend=relevance[order[:1]]) < -TIE_RTOL
    # Both sorts are of single numbers, for which NumPy uses SIMD.
    ranked = np.sort(np.cumsum(falls) * order.size + order)
    return ranked % max(1, order.size)


def two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return a + b, rounded, and its rounding error (Knuth)."""
    whole = a + b
    from_b = whole - a
    return whole, (a - (whole - from_b)) + (b - from_b)


def leading_axes(products: Floats, rank: int) -> Floats:
    """Return the (m, k) map of vectors to their leading axes, given their inner products (m, m).

    k is at most `rank`, and axes within rounding are dropped.
    """
    from scipy.linalg import eigh

    m = len(products)
    d, W = eigh(products, subset_by_index=[max(0, m - rank), m - 1])
    W = W[:, d > m * np.finfo(float).eps * d[-1]]
    to_axes: Floats = W[:, ::-1]
    return to_axes


# Rows that are mirrored at once.
_MIRRORED_ROWS = 64


def mirror(A: Floats) -> None:
    """Copy the lower triangle of a square matrix to the upper one."""
    for top in range(0, len(A), _MIRRORED_ROWS):
        rows = slice(top, top + _MIRRORED_ROWS)
        square = np.tril(A[rows, rows])
        A[rows, rows] = square + np.tril(square, -1).T
        A[rows, rows.stop :] = A[rows.stop :, rows].T


def mid_ranks(values: NDArray[Any]) -> NDArray[np.int32]:
    """Return the ranks of values, (n,), as 2 r - (n + 1) with r the mid-rank from 1 to n."""
    _, index, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: NDArray[np.int32] = (2 * np.cumsum(counts) - counts - values.size).astype(np.int32)
    return ranks[index]
