"""The relevance that noise reaches by chance: with many columns and few rows it is high."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from streamsel.learner.report import Density

Floats = NDArray[np.float64]

# Of fewer columns the median statistic says little.
_MANY = 1000


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


def inflation(density: Density, n: float, r: int) -> float | None:
    """Return the median test statistic of all columns, in units of its median under the null.

    As a statistic of one degree of freedom: λ = χ²₁(median p-value) / 0.4549 (Devlin and Roeder
    1999). None for fewer than 1,000 columns, where chance moves it too far, and without a null law.

    Parameters
    ----------
    density
        Where the columns lie; within a bin they are taken to be spread evenly.
    n, r
        Observations, and rank of the target.
    """
    columns = np.cumsum(density.counts.sum(axis=0))
    if columns[-1] <= _MANY or density.null is None:
        return None
    from scipy.special import chdtri

    median = np.interp(0.5 * columns[-1], np.append(0, columns), density.edges)
    p_value = float(chance(np.array([median]), n, r)[0])
    return float(chdtri(1, p_value) / chdtri(1, 0.5)) if p_value else None


def chance_above(floor: float, n: float, r: int, target: float, columns: Floats) -> Floats:
    """Return the chance that a column without association is above a floor, given its tails.

    Under permutations relevance² has the mean r / (n - 1) of the Beta law and a variance that the
    excess kurtoses of column and target change by their product / n³ (Pitman 1937). A Beta law of
    this mean and variance stands in for it.

    Parameters
    ----------
    floor
        A relevance.
    n, r
        Observations, and rank of the target.
    target
        Excess kurtosis of the target, as `TargetSpace` columns have it: n Σ h² - r(r + 2), h the
        squared norms of the rows of an orthonormal basis.
    columns
        (b,) excess kurtoses of columns.
    """
    from scipy.special import betaincc

    mean = r / (n - 1.0)
    variance = 2.0 * mean * (1.0 - mean) / (n + 1.0) + target * columns / n**3
    variance = np.clip(variance, 1e-3 * mean**2 / n, 0.999 * mean * (1.0 - mean))
    size = mean * (1.0 - mean) / variance - 1.0
    found: Floats = betaincc(mean * size, (1.0 - mean) * size, floor**2)
    return found
