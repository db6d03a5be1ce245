"""Search for the next candidates above a threshold."""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel


@kernel()
def next_above(
    values: np.ndarray, start: int, threshold: float, indices: np.ndarray
) -> tuple[int, int]:
    """Fill `indices` with the next ones, from `start` on, whose value is above the threshold.

    Returns
    -------
    How many were found, and the index at which to continue when `indices` is full.
    """
    found = 0
    for j in range(start, values.shape[0]):
        if values[j] > threshold:
            indices[found] = j
            found += 1
            if found == indices.shape[0]:
                return found, j + 1
    return found, values.shape[0]
