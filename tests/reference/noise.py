"""The relevance of pure noise: relevance² ~ Beta(r/2, (n−1−r)/2) under no association."""

import numpy as np
from scipy import stats


def floor(n, r, p, level=0.05):
    """Return the relevance that the best of p noise columns exceeds with probability `level`."""
    if r >= n - 1:  # the target spans the whole space: every column is fully relevant
        return 1.0
    return np.sqrt(stats.beta.isf(level / p, r / 2, (n - 1 - r) / 2))
