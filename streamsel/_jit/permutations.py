"""Statistics of columns under permuted targets: squares, and how many fall into which bin."""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel

# Bins of squared relevances: so many an octave, of so many octaves below 1.
IN_OCTAVE = 128
OCTAVES = 40
BINS = IN_OCTAVE * OCTAVES
# The bits of a float64 that say the octave and the part of it: exponent, and seven of the mantissa.
_SHIFT = 52 - 7
_FIRST = (1023 - OCTAVES) * IN_OCTAVE
# Statistics of discrete data, such as 1/2, lie on the edges of bins, and rounding would take them
# to either side: all are shifted by this factor, far more than rounding and far less than a bin.
_NUDGE = 1.0 + 3e-8


@kernel()
def squared_relevances(
    products: np.ndarray, rank: int, out: np.ndarray, bits: np.ndarray, counts: np.ndarray
) -> None:
    """Fill out with squared relevances, and count them by bin.

    Parameters
    ----------
    products
        (b, s * rank) inner products of b columns of length 1 with s orthonormal bases.
    out
        (b, s) filled.
    bits
        The same memory as out, as int64.
    counts
        (BINS,) counts, increased.
    """
    b, s = out.shape
    for j in range(b):
        for t in range(s):
            total = 0.0
            for k in range(rank):
                total += products[j, t * rank + k] * products[j, t * rank + k]
            out[j, t] = total * _NUDGE
        for t in range(s):
            place = (bits[j, t] >> _SHIFT) - _FIRST
            counts[min(max(place, 0), BINS - 1)] += 1
        for t in range(s):
            out[j, t] /= _NUDGE
