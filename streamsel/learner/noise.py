"""The relevance that noise reaches by chance: with many columns and few rows it is high."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


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


def chance(relevance: Floats, n: float, r: int) -> Floats:
    """Return the chance of one column of noise to be as relevant, for each of these relevances.

    Parameters
    ----------
    relevance
        In [0, 1]; what is below 0 is none.
    n, r
        Observations, and rank of the target.
    """
    if n - 1 <= r or not r:
        return np.ones(relevance.size)
    from scipy.special import betaincc

    squares = np.clip(relevance, 0.0, 1.0) ** 2
    found: Floats = betaincc(r / 2.0, (n - 1 - r) / 2.0, squares)
    return found


def f_statistic(relevance: Floats, n: float, r: int) -> Floats:
    """Return r²/(1 - r²) · (n - 1 - r)/r of these relevances; see `chance`."""
    if not r:  # of a target that does not vary nothing is told
        return np.zeros(np.shape(relevance))
    squares = np.minimum(relevance, 1.0) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        found = max(n - 1.0 - r, 0.0) / r * (squares / (1.0 - squares))
    return np.nan_to_num(found, nan=0.0, posinf=np.inf)


def discoveries(p: Floats, m: int, level: float) -> NDArray[np.bool_]:
    """Return which p-values, the others of m tests being larger, are discoveries.

    At most `level` of these are false, in expectation (Benjamini and Hochberg 1995).
    """
    ranked = np.sort(p)
    below = np.flatnonzero(ranked <= level * np.arange(1, p.size + 1) / m)
    return p <= (ranked[below[-1]] if below.size else -1.0)
