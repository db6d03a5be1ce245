"""Who nearly repeats one of the last few that were kept."""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel


@kernel()
def keep_first(C: np.ndarray, window: int, bar: float, kept: np.ndarray) -> None:
    """Go through columns in order and keep those that repeat none of the last few kept.

    Parameters
    ----------
    C
        (b, w + b) correlations of b columns with w kept before them and with themselves.
    window
        How many of the last kept are asked.
    bar
        An absolute correlation of this or more is a repetition.
    kept
        (w + b,) filled from w on; those before are kept, the last of them last.
    """
    b = C.shape[0]
    w = kept.shape[0] - b
    for j in range(b):
        asked = 0
        kept[w + j] = True
        for i in range(w + j - 1, -1, -1):
            if not kept[i]:
                continue
            asked += 1
            if asked > window:
                break
            if abs(C[j, i]) >= bar:
                kept[w + j] = False
                break
