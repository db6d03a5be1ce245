"""Pruning by its definition: every column against the last few that were kept."""

import numpy as np


def kept(X, threshold, window):
    """Return the places of the columns kept."""
    last, places = [], []
    for j, x in enumerate(X.T):
        z = x - x.mean()
        length = np.linalg.norm(z)
        if length > 0:
            if any(abs(z @ other) / length >= threshold - 1e-12 for other in last[-window:]):
                continue
            last.append(z / length)
        places.append(j)
    return places
