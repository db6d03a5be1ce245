"""Columns turned, so that equal weights see them weighted."""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel

# As in `scan`: numbers before `out`, so that no sum depends on what is near in memory.
UNUSED = 64


@kernel(reordered_sums=True)
def turn(
    X: np.ndarray,
    at: int,
    root: np.ndarray,
    v: np.ndarray,
    out: np.ndarray,
    near: np.ndarray,
    mean: np.ndarray,
) -> None:
    """Fill out with columns, one a row, times root, reflected, and without their mean.

    Parameters
    ----------
    X
        (b, n) columns, contiguous and read-only.
    at
        The row that is taken off all others first, for the digits.
    root
        (n,) square roots of weights of mean 1.
    v
        (n,) the reflection is x - (x·v) v.
    out
        (b, n).
    near, mean
        (b,) to be filled with what the columns are in that row, and their weighted means about it.
    """
    for j in range(X.shape[0]):
        x, to = X[j], out[j]
        shift = np.float64(x[at])
        total = 0.0
        along = 0.0
        for i in range(x.size):
            d = (np.float64(x[i]) - shift) * root[i]
            to[i] = d
            total += d * root[i]
            along += d * v[i]
        level = total / x.size
        for i in range(x.size):
            to[i] = (to[i] - along * v[i]) - level
        near[j], mean[j] = shift, level
