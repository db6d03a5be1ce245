"""The search for the next column worth a second look."""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel


@kernel()
def first_above(values: np.ndarray, start: int, threshold: float) -> int:
    """Return the first place from `start` on whose value is above the threshold, or the length."""
    for j in range(start, values.shape[0]):
        if values[j] > threshold:
            return j
    return values.shape[0]
