"""Excess kurtosis of columns, and random sums of columns."""

from __future__ import annotations

import numpy as np

from streamsel._kernels.compile import kernel

# As in `scan`: padding, so that the order of a sum does not depend on neighbouring memory.
_UNUSED = 64


@kernel(reordered_sums=True)
def add_shape_statistics(
    X: np.ndarray,
    indices: np.ndarray,
    weights: np.ndarray,
    keys: np.ndarray,
    moments: tuple[np.ndarray, np.ndarray],
    rows: np.ndarray,
    layout: tuple[float, float],
    state: tuple[np.ndarray, np.ndarray],
) -> float:
    """Count columns by kurtosis, add them to random sums; return the sum of squared weights.

    Parameters
    ----------
    X
        (b, n) columns, one per row; NaN for a missing value.
    indices
        (b,) indices of their moments.
    weights
        (b,) their weights; 0 for a constant column.
    keys
        (b,) random bits: the signs with which a column enters the sums.
    moments
        Means and sums of squares, weighted.
    rows
        (2, n) weights of mean 1, and their roots with random signs.
    layout
        An offset added to a kurtosis, and the number of bins per octave of its logarithm.
    state
        (BINS,) counts by kurtosis, and (s, m) sums, s at most 64, of columns of length 1, in which
        every m-th row is added up.
    """
    mean, m2 = moments
    counts, sums = state
    offset, in_octave = layout
    s, m = sums.shape
    n = X.shape[1]
    folded = np.empty(_UNUSED + m)[_UNUSED:]
    d = np.empty(_UNUSED + m)[_UNUSED:]
    weight2 = 0.0
    for j in range(X.shape[0]):
        if weights[j] == 0.0:
            continue
        x, middle, scale = X[j], mean[indices[j]], 1.0 / np.sqrt(m2[indices[j]])
        fourth_moment = 0.0
        folded[:] = 0.0
        for start in range(0, n, m):
            # Slices, and a loop of its own for the sum: otherwise LLVM does not vectorise this.
            stop = min(start + m, n)
            part, weight, sign = x[start:stop], rows[0, start:stop], rows[1, start:stop]
            for k in range(stop - start):
                value = (part[k] - middle) * scale
                # A missing value counts as the mean.
                d[k] = 0.0 if np.isnan(value) else value
                folded[k] += sign[k] * d[k]
            for k in range(stop - start):
                square = d[k] * d[k]
                fourth_moment += weight[k] * square * square
        bin_index = int(in_octave * np.log2(max(n * fourth_moment - 3.0, -2.0) + offset))
        counts[min(bin_index, counts.size - 1)] += weights[j]
        root = np.sqrt(weights[j])
        for t in range(s):
            signed = root if (keys[j] >> np.uint64(t)) & np.uint64(1) else -root
            for k in range(m):
                sums[t, k] += signed * folded[k]
        weight2 += weights[j] * weights[j]
    return weight2
