"""The relevance that noise reaches by chance: with many columns and few rows it is high."""

from __future__ import annotations

import math


def noise_floor(n: float, r: int, p: int, level: float) -> float:
    """Return the relevance that the best of p columns of noise exceeds with at most this chance.

    Parameters
    ----------
    n, r
        Observations, and rank of the target.
    p
        Columns seen.
    level
        The chance.

    Notes
    -----
    Of n Gaussian observations without association relevance² ~ Beta(r/2, (n - 1 - r)/2), so the
    largest of p is below the 1 - level/p quantile with chance at least 1 - level (Bonferroni).
    """
    if n - 1 <= r:
        # The target space is all there is: every column is explained in full.
        return 1.0
    from scipy.special import betainccinv

    return math.sqrt(betainccinv(r / 2.0, (n - 1 - r) / 2.0, level / max(1, p)))
