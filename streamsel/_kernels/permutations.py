"""Statistics of columns under permuted targets: squared relevances, and their histogram."""

from __future__ import annotations

import numpy as np

from streamsel._kernels.compile import kernel

# Bins of squared relevances: `BINS_PER_OCTAVE` bins per octave, OCTAVES octaves below 1.
BINS_PER_OCTAVE = 128
OCTAVES = 40
BINS = BINS_PER_OCTAVE * OCTAVES
# The bits of a float64 that give octave and bin: the exponent, and seven bits of the mantissa.
_SHIFT = 52 - 7
_FIRST = (1023 - OCTAVES) * BINS_PER_OCTAVE
# Statistics of discrete data, such as 1/2, lie on the edges of bins, where rounding would decide
# the bin: all are multiplied by this factor, far above rounding and far below the width of a bin.
_EDGE_FACTOR = 1.0 + 3e-8


@kernel()
def squared_relevances(
    products: np.ndarray, rank: int, out: np.ndarray, bits: np.ndarray, counts: np.ndarray
) -> None:
    """Fill out with squared relevances, and count them by bin.

    Parameters
    ----------
    products
        (b, s * rank) inner products of b columns of length 1 with s orthonormal bases.
    rank
        Number of vectors of a basis.
    out
        (b, s) filled.
    bits
        The memory of out as int64.
    counts
        (BINS,) counts, increased.
    """
    b, s = out.shape
    for j in range(b):
        for t in range(s):
            total = 0.0
            for k in range(rank):
                total += products[j, t * rank + k] * products[j, t * rank + k]
            out[j, t] = total * _EDGE_FACTOR
        for t in range(s):
            bin_index = (bits[j, t] >> _SHIFT) - _FIRST
            counts[min(max(bin_index, 0), BINS - 1)] += 1
        for t in range(s):
            out[j, t] /= _EDGE_FACTOR
