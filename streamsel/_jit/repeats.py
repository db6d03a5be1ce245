"""Near-duplicates of recently kept columns."""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel


@kernel()
def keep_first(C: np.ndarray, window: int, threshold: float, kept: np.ndarray) -> None:
    """Go through columns in order; keep those that are not near-duplicates of the last few kept.

    Parameters
    ----------
    C
        (b, w + b) correlations of b columns with w kept before them and with themselves.
    window
        The number of last kept columns to compare with.
    threshold
        The absolute correlation from which on a column is a near-duplicate.
    kept
        (w + b,) filled from w on; those before are True, the most recent last.
    """
    b = C.shape[0]
    w = kept.shape[0] - b
    for j in range(b):
        n_compared = 0
        kept[w + j] = True
        for i in range(w + j - 1, -1, -1):
            if not kept[i]:
                continue
            n_compared += 1
            if n_compared > window:
                break
            if abs(C[j, i]) >= threshold:
                kept[w + j] = False
                break
