"""Centred copies of columns, as the operand of a product that whitens them."""

from __future__ import annotations

import numpy as np

from streamsel._kernels.compile import kernel


@kernel()
def center_about_mean(
    X: np.ndarray, mean_weights: np.ndarray, out: np.ndarray, shift: np.ndarray, mean: np.ndarray
) -> None:
    """Fill out with columns, one per row, minus their unweighted means.

    Parameters
    ----------
    X
        (b, n) columns, contiguous and read-only.
    mean_weights
        (n,) weights of the mean that is returned; their sum is 1.
    out
        (b, n) filled.
    shift, mean
        (b,) filled with the first value of a column, and its weighted mean about that value.
    """
    for j in range(X.shape[0]):
        x, to = X[j], out[j]
        # Exact for a constant column, and for a large offset.
        first = np.float64(x[0])
        total = 0.0
        for i in range(x.size):
            d = np.float64(x[i]) - first
            to[i] = d
            total += d
        level = total / x.size
        weighted = 0.0
        for i in range(x.size):
            d = to[i] - level
            to[i] = d
            weighted += mean_weights[i] * d
        shift[j], mean[j] = first, level + weighted
