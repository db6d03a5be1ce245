"""Reweighting of columns, so that unweighted products are weighted ones."""

from __future__ import annotations

import numpy as np

from streamsel._kernels.compile import kernel

# As in `scan`: padding before `out`, so that the order of sums does not depend on other memory.
PADDING = 64


@kernel(reordered_sums=True)
def rotate_weighted(
    X: np.ndarray,
    shift_row: int,
    root: np.ndarray,
    v: np.ndarray,
    out: np.ndarray,
    shifts: np.ndarray,
    mean: np.ndarray,
) -> None:
    """Fill out with columns, one per row, times root, reflected, and centred.

    Parameters
    ----------
    X
        (b, n) columns, contiguous and read-only.
    shift_row
        The row whose value is subtracted from all others first, for accuracy.
    root
        (n,) square roots of weights of mean 1.
    v
        (n,) the reflection is x - (x·v) v.
    out
        (b, n) filled.
    shifts, mean
        (b,) filled with the values of that row, and the weighted means about them.
    """
    for j in range(X.shape[0]):
        x, to = X[j], out[j]
        shift = np.float64(x[shift_row])
        total = 0.0
        projection = 0.0
        for i in range(x.size):
            d = (np.float64(x[i]) - shift) * root[i]
            to[i] = d
            total += d * root[i]
            projection += d * v[i]
        level = total / x.size
        for i in range(x.size):
            to[i] = (to[i] - projection * v[i]) - level
        shifts[j], mean[j] = shift, level
