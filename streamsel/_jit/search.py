"""The search for the next columns worth a second look."""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel


@kernel()
def next_above(
    values: np.ndarray, start: int, threshold: float, places: np.ndarray
) -> tuple[int, int]:
    """Fill places with the next ones, from `start` on, whose value is above the threshold.

    Returns
    -------
    How many were found, and where to go on when they fill the room.
    """
    found = 0
    for j in range(start, values.shape[0]):
        if values[j] > threshold:
            places[found] = j
            found += 1
            if found == places.shape[0]:
                return found, j + 1
    return found, values.shape[0]
