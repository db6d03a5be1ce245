"""Lasso codes of many variables on a few components."""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel

# Of what the slope must exceed for a weight to leave 0 more than this part is not rounding.
_EDGE = 1.0 + 1e-9
# A round in which no weight moves by more than this part of the largest is the last.
_STILL = 1e-14
_ROUNDS = 2000


@kernel()
def lasso_codes(G: np.ndarray, C: np.ndarray, bar: float, W: np.ndarray) -> None:
    """Put in every row w of W what minimises ½ wᵀGw - cᵀw + bar |w|, c the row of C.

    Parameters
    ----------
    G
        (q, q) inner products of the components; one that has none of itself is not used.
    C
        (b, q) inner products of the variables with them.
    bar
        What is asked of a weight's slope.
    W
        (b, q), zero to begin with.
    """
    b, q = C.shape
    left = np.empty(q)
    for i in range(b):
        w = W[i]
        left[:] = C[i]
        for _ in range(_ROUNDS):
            moved, largest = 0.0, 0.0
            for k in range(q):
                g, before = G[k, k], w[k]
                if g <= 0.0 or (before == 0.0 and np.abs(left[k]) <= bar * _EDGE):
                    continue
                whole = left[k] + g * before
                after = max(np.abs(whole) - bar, 0.0) / g
                if whole < 0.0:
                    after = -after
                step = after - before
                if step != 0.0:
                    w[k] = after
                    for m in range(q):
                        left[m] -= step * G[k, m]
                moved = max(moved, np.abs(step))
                largest = max(largest, np.abs(after))
            if moved <= _STILL * largest:
                break
