"""Compute the null distribution of relevances, and histograms of all columns to compare with."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel.base.report import Density
from streamsel.state.base import Floats
from streamsel.state.histogram import EDGES, RelevanceHistogram
from streamsel.state.moments.moments import Moments
from streamsel.state.permutation_null import PermutationNull
from streamsel.targets.space import TargetSpace

# Minimum number of columns for a reliable median statistic.
_MIN_COLUMNS = 1000


class Freedom(NamedTuple):
    """Distribution of relevances under independence.

    Parameters
    ----------
    n, rank
        Number of observations minus covariates, and rank of the target.
    chi_square_scale
        As in `TargetSpace`; None for the F test.
    """

    n: float
    rank: int
    chi_square_scale: float | None = None

    @classmethod
    def of(cls, n: float, space: TargetSpace) -> Freedom:
        """Return the distribution for n observations of a target."""
        return cls(n - len(space.covariate_map), space.rank, space.chi_square_scale)

    def relevance_of(self, p_values: Floats) -> Floats:
        """Return the relevances with these marginal p-values."""
        from scipy.special import betainccinv, chdtri

        scale, r = self.chi_square_scale, self.rank
        if scale is not None:
            squares = chdtri(r, p_values) / scale
        else:
            squares = betainccinv(r / 2.0, (self.n - 1 - r) / 2.0, p_values)
        relevance: Floats = np.sqrt(np.minimum(squares, 1.0))
        return relevance


def noise_floor(n: float, r: int, p: int, level: float, scale: float | None = None) -> float:
    """Return the relevance that the best of p noise columns exceeds with probability `level`.

    Parameters
    ----------
    n, r, scale
        As in `Freedom`.
    p
        Number of columns seen.
    level
        The probability, an upper bound.

    Notes
    -----
    For n Gaussian observations without association, relevance² ~ Beta(r/2, (n - 1 - r)/2), so the
    largest of p is below the 1 - level/p quantile with probability at least 1 - level (Bonferroni).
    """
    if n - 1 <= r:
        # The target space is the whole space: every column is explained in full.
        return 1.0
    from scipy.special import betainccinv, chdtri

    if scale is not None:
        return min(1.0, math.sqrt(float(chdtri(r, level / max(1, p))) / scale))
    return math.sqrt(betainccinv(r / 2.0, (n - 1 - r) / 2.0, level / max(1, p)))


def marginal_p_values(relevance: Floats, n: float, r: int, scale: float | None = None) -> Floats:
    """Return the marginal p-values of relevances under independence.

    Parameters
    ----------
    relevance
        In [0, 1]; values below 0 count as 0.
    n, r, scale
        As in `Freedom`.
    """
    if n - 1 <= r or not r:
        return np.ones(relevance.size)
    from scipy.special import betaincc, chdtrc

    squares = np.clip(relevance, 0.0, 1.0) ** 2
    if scale is not None:
        return np.asarray(chdtrc(r, scale * squares))
    p_values: Floats = betaincc(r / 2.0, (n - 1 - r) / 2.0, squares)
    return p_values


def f_statistic(relevance: Floats, n: float, r: int, scale: float | None = None) -> Floats:
    """Return the F statistics r²/(1 - r²) · (n - 1 - r)/r, or χ²/r, as in `marginal_p_values`."""
    if not r:  # the target is constant
        return np.zeros(np.shape(relevance))
    squares = np.minimum(relevance, 1.0) ** 2
    if scale is not None:
        return scale / r * squares
    with np.errstate(divide="ignore", invalid="ignore"):
        statistics = max(n - 1.0 - r, 0.0) / r * (squares / (1.0 - squares))
    return np.nan_to_num(statistics, nan=0.0, posinf=np.inf)


FDR_METHODS = ("bh", "by")


def fdr_discoveries(p: Floats, m: int, level: float, method: str = "bh") -> NDArray[np.bool_]:
    """Return which p-values are discoveries; the other p-values of the m tests are larger.

    The expected proportion of false discoveries is at most `level`: with "bh" for independent or
    positively dependent tests (Benjamini and Hochberg 1995), with "by" for any tests (Benjamini and
    Yekutieli 2001). "by" divides the level by 1 + 1/2 + ... + 1/m.
    """
    if method == "by":
        level /= harmonic_number(m)
    ranked = np.sort(p)
    below = np.flatnonzero(ranked <= level * np.arange(1, p.size + 1) / m)
    return p <= (ranked[below[-1]] if below.size else -1.0)


def harmonic_number(m: int) -> float:
    """Return 1 + 1/2 + ... + 1/m."""
    from scipy.special import digamma

    return float(digamma(m + 1.0)) + np.euler_gamma


def genomic_inflation(
    density: Density, n: float, r: int, scale: float | None = None
) -> float | None:
    """Return the median test statistic of all columns divided by its median under the null.

    As a statistic with one degree of freedom: λ = χ²₁(median p-value) / 0.4549 (Devlin and Roeder
    1999). None for fewer than 1,000 columns, where its variance is too large, and without a null
    distribution.

    Parameters
    ----------
    density
        Histogram of the columns; they are assumed to be uniform within a bin.
    n, r, scale
        As in `Freedom`.
    """
    columns = np.cumsum(density.counts.sum(axis=0))
    if columns[-1] <= _MIN_COLUMNS or density.null is None:
        return None
    median = np.interp(0.5 * columns[-1], np.append(0, columns), density.edges)
    return _inflation_at(float(marginal_p_values(np.array([median]), n, r, scale)[0]))


def median_inflation(p_values: Floats | None) -> float | None:
    """Return the inflation factor of p-values, as `genomic_inflation`; None if not known."""
    if p_values is None or p_values.size <= _MIN_COLUMNS:
        return None
    return _inflation_at(float(np.median(p_values)))


def _inflation_at(p_value: float) -> float | None:
    """Return the inflation factor for a median p-value; None for 0, which has no statistic."""
    from scipy.special import chdtri

    return float(chdtri(1, p_value) / chdtri(1, 0.5)) if p_value else None


def exceedance_probability(
    threshold: float | Floats, n: float, r: int, target: float, columns: Floats
) -> Floats:
    """Return the probability that unassociated columns exceed a threshold, given their kurtoses.

    Under permutations relevance² has the mean r / (n - 1) of the Beta distribution and a variance
    that the excess kurtoses of column and target change by their product / n³ (Pitman 1937). It is
    approximated by a Beta distribution with this mean and variance.

    Parameters
    ----------
    threshold
        A relevance, such as a noise floor; or (b,) one per column.
    n, r
        Number of observations, and rank of the target.
    target
        Excess kurtosis of the target, defined for the columns of `TargetSpace`: n Σ h² - r(r + 2),
        h the squared norms of the rows of an orthonormal basis.
    columns
        (b,) excess kurtoses of columns.
    """
    from scipy.special import betaincc

    mean = r / (n - 1.0)
    variance = 2.0 * mean * (1.0 - mean) / (n + 1.0) + target * columns / n**3
    variance = np.clip(variance, 1e-3 * mean**2 / n, 0.999 * mean * (1.0 - mean))
    size = mean * (1.0 - mean) / variance - 1.0
    probabilities: Floats = betaincc(mean * size, (1.0 - mean) * size, threshold**2)
    return probabilities


def build_density(
    counted: RelevanceHistogram,
    space: TargetSpace,
    n: float,
    points: Floats | None,
    permuted: PermutationNull | None = None,
) -> Density | None:
    """Return the histogram of counted columns, of n observations; None if all are constant.

    The null distribution is that of permuted targets or of Gaussian observations; None with a
    kernel that is not linear.
    """
    counts = counted.counts
    filled = np.flatnonzero(counts.any(axis=0))
    if not filled.size:
        return None
    edges = EDGES[filled[0] :].copy()
    if not filled[0]:
        # The first bin includes all lower relevances.
        edges[0] = 0.0
    null, p_values = None, None
    if permuted is not None or space.kernel.name == "linear":
        freedom = Freedom.of(n, space)

        def exceedance(relevance: Floats) -> Floats:
            if permuted is not None:
                return permuted.p_values(relevance)
            return marginal_p_values(relevance, *freedom)

        null = exceedance(edges)
        if points is not None:
            p_values = np.where(points < 0.0, np.nan, exceedance(points))
    return Density(counts[:, filled[0] :], counted.bin_width, edges, null, points, p_values)


def count_row_variables(moments: Moments) -> tuple[RelevanceHistogram, Floats] | None:
    """Return the histogram of the variables of rows, and their relevances in order.

    The order is that of the moments. None without a target, or if a variable was evicted.
    """
    if moments.space is None or not moments.complete:
        return None
    counted, stats = RelevanceHistogram(), moments.stats()
    relevance = moments.space.relevance(stats.m2, stats.cxy)
    counted.add(relevance, 0)
    return counted, np.maximum(relevance, -1.0)
