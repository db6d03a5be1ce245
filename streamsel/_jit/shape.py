"""The shape of columns: their excess kurtosis, and random sums of them."""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel

# As in `scan`: before what is summed up, so that no sum depends on what is near in memory.
_UNUSED = 64


@kernel(reordered_sums=True)
def take_shapes(
    X: np.ndarray,
    places: np.ndarray,
    steps: np.ndarray,
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
        (b, n) columns, one a row; rows of weight 0 are finite.
    places
        (b,) where their moments are.
    steps
        (b,) weight of each; 0 for one that does not vary.
    keys
        (b,) random bits: the signs with which a column enters the sums.
    moments
        Means and sums of squares, weighted.
    rows
        (2, n) weights of mean 1, and their roots with random signs.
    layout
        What is added to a kurtosis, and how many bins its logarithm has an octave.
    state
        (BINS,) counts by kurtosis, and (s, m) sums, s at most 64, of columns of length 1, every
        m-th row of which is added up.
    """
    mean, m2 = moments
    counts, sums = state
    offset, in_octave = layout
    s, m = sums.shape
    n = X.shape[1]
    short = np.empty(_UNUSED + m)[_UNUSED:]
    weight2 = 0.0
    for j in range(X.shape[0]):
        if steps[j] == 0.0:
            continue
        x, middle, scale = X[j], mean[places[j]], 1.0 / np.sqrt(m2[places[j]])
        four = 0.0
        short[:] = 0.0
        for start in range(0, n, m):
            for k in range(min(m, n - start)):
                d = (x[start + k] - middle) * scale
                square = d * d
                four += rows[0, start + k] * square * square
                short[k] += rows[1, start + k] * d
        at = int(in_octave * np.log2(max(n * four - 3.0, -2.0) + offset))
        counts[min(at, counts.size - 1)] += steps[j]
        root = np.sqrt(steps[j])
        for t in range(s):
            signed = root if (keys[j] >> np.uint64(t)) & np.uint64(1) else -root
            for k in range(m):
                sums[t, k] += signed * short[k]
        weight2 += steps[j] * steps[j]
    return weight2
