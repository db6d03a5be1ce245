"""Scores of `SelectKBest` that depend on the order of the values only."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from streamsel._kernels.chatterjee import chatterjee, fill_sorted_zeros
from streamsel._kernels.ranks import (
    kruskal_wallis,
    rank_correlations,
    stored_rank_correlations,
    sum_by_class,
    sum_stored_by_class,
)
from streamsel._kernels.sorting import sort_stored
from streamsel.base.report import ResultWarning
from streamsel.data.chunks import Chunk, DenseChunk, SparseChunk
from streamsel.data.ranks import SortedColumns, rank_columns, rank_stored
from streamsel.selection._spearman import MAX_EXACT_ROWS, rank_kurtosis, spearman_p_values
from streamsel.state.base import Floats
from streamsel.targets.target import Target

Codes = NDArray[np.int64]

# Below this skewness a distribution counts as normal.
_MIN_SKEWNESS = 0.01
# Maximum number of levels that ranks are rounded to for the skewness of their distances.
_MAX_LEVELS = 256
# With a smaller class p-values of columns with equal values are too small in the tails: at 0.001 up
# to 1.4 times as many as expected with this share, 5 times with 10 %.
_MIN_CLASS_SHARE = 0.25
# Rounding errors of counts, and of sums of squares relative to their terms.
_COUNT_ATOL, _SQUARES_RTOL = 1e-6, 1e-12


class RankedTarget(NamedTuple):
    """Target of rank scores.

    Parameters
    ----------
    codes, sizes
        (n,) class of each observation, and (C,) number of observations of each class; empty for a
        numeric target.
    ranks
        (n,) ranks of a numeric target, as `rank_columns` returns them; empty for classes.
    """

    codes: Codes
    sizes: Codes
    ranks: NDArray[np.int32]

    @classmethod
    def of(cls, target: Target, options: object) -> Self:  # noqa: ARG003
        """Return the classes, or the ranks, of a target."""
        none = np.zeros(0, dtype=np.int64)
        if not target.is_class:
            return cls(none, none, target.ranks())
        Y = target.columns()
        codes = np.argmax(Y, axis=1)
        return cls(codes, np.bincount(codes, minlength=Y.shape[1]), np.zeros(0, dtype=np.int32))


def rank_sums(chunk: Chunk, part: slice, target: RankedTarget) -> tuple[Codes, Floats]:
    """Return the sums of ranks by class, (b, C), and the sums of squared ranks, (b,).

    Ranks are those of `rank_columns`.
    """
    b = part.stop - part.start
    sums, squares = np.empty((b, target.sizes.size), dtype=np.int64), np.empty(b)
    if isinstance(chunk, SparseChunk):
        found = rank_stored(chunk, part)
        sum_stored_by_class(*found, target.codes, target.sizes, sums, squares)
    else:
        sum_by_class(rank_columns(chunk.X[part]), target.codes, sums, squares)
    return sums, squares


def score_ranks(chunk: Chunk, part: slice, target: RankedTarget) -> list[Floats]:
    """Return Spearman's rank correlation or the Kruskal-Wallis statistic, and the p-value."""
    if target.sizes.size:
        return kruskal_wallis_test(*rank_sums(chunk, part, target), target.sizes)
    ranks, (rho, kurtosis) = None, np.empty((2, part.stop - part.start))
    if isinstance(chunk, SparseChunk) and target.ranks.size > MAX_EXACT_ROWS:
        stored_rank_correlations(*rank_stored(chunk, part), target.ranks, rho, kurtosis)
    else:
        if isinstance(chunk, SparseChunk):
            ranks = rank_columns(chunk.columns(np.arange(part.start, part.stop)))
        else:
            ranks = rank_columns(chunk.X[part])
        rank_correlations(ranks, target.ranks, rho, kurtosis)
    return [rho, spearman_p_values(rho, kurtosis, target.ranks, ranks)]


def compare_classes(chunk: Chunk, part: slice, target: RankedTarget) -> list[Floats]:
    """Return the Kruskal-Wallis test, the statistics of each class against the rest, and ties."""
    sums, squares = rank_sums(chunk, part, target)
    n, others = target.codes.size, target.codes.size - target.sizes
    # Twice the standard deviation of a rank sum is the root of these products.
    products = (target.sizes * others) * (squares / (n * (n - 1.0)))[:, None]
    z = np.divide(sums, np.sqrt(products), out=np.zeros(sums.shape), where=products > 0.0)
    ties = 3.0 * squares / (n * (n * float(n) - 1.0))
    return [*kruskal_wallis_test(sums, squares, target.sizes), z, ties]


def kruskal_wallis_test(sums: Codes, squares: Floats, sizes: Codes) -> list[Floats]:
    """Return the Kruskal-Wallis statistics, and their p-values from χ²."""
    from scipy.special import chdtrc

    found = np.empty(squares.size)
    kruskal_wallis(sums, squares, sizes, found)
    return [found, chdtrc(max(np.count_nonzero(sizes) - 1, 1), found)]


class OrderedTarget(NamedTuple):
    """Target of Chatterjee's correlation.

    Parameters
    ----------
    order, position
        (n,) observations in the order of the target, and the inverse permutation.
    ranks
        (n,) number of observations not above each one, ascending.
    scale
        n / (2 Σ l (n - l)), l the number of observations not below each one.
    deviation
        Standard deviation of the correlation with an independent column of distinct values.
    spread, tilt
        Parts of the variance of Σ a_ij |r_i - r_j|, i and j in the order of a random permutation,
        for weights with equal sums of rows, and for other ones.
    is_distinct
        Whether all targets differ.
    skewness
        Skewness of the centred -|r_i - r_j| of two random observations; 0 for distinct targets.
    runs
        (n,) p-values of distinct values by the number of changes between two different targets; of
        other targets empty.
    """

    order: NDArray[np.intp]
    position: NDArray[np.intp]
    ranks: Floats
    scale: float
    deviation: float
    spread: float
    tilt: float
    is_distinct: bool
    skewness: float
    runs: Floats

    @classmethod
    def of(cls, target: Target, options: object) -> Self:  # noqa: ARG003
        """Return the order of the observations by a numeric target, or by two classes."""
        y = target.ranks()
        order = np.argsort(y, kind="stable")
        position = np.empty_like(order)
        position[order] = np.arange(y.size)
        ascending = y[order]
        ranks = np.searchsorted(ascending, ascending, side="right").astype(np.float64)
        above = y.size - np.searchsorted(ascending, ascending, side="left").astype(np.float64)
        scale = y.size / (2.0 * float(above @ (y.size - above)))
        deviation, parts = _deviation_of_xi(ranks, above), _permutation_variance(ranks)
        _, counts = np.unique(ranks, return_counts=True)
        is_distinct = counts.size == ranks.size
        skewness = 0.0 if is_distinct else _skewness_of_distances(ranks)
        runs = _run_probabilities(*counts.tolist()) if counts.size == 2 else np.zeros(0)
        return cls(order, position, ranks, scale, deviation, *parts, is_distinct, skewness, runs)


def _deviation_of_xi(ranks: Floats, above: Floats) -> float:
    """Return the asymptotic standard deviation under independence (Chatterjee 2021, section 2)."""
    n = ranks.size
    if (np.diff(ranks) > 0.0).all():
        return math.sqrt(0.4 / n)
    i = np.arange(1, n + 1)
    u = ranks / n
    v = np.cumsum(u) / n
    a = float(((2 * n - 2 * i + 1) * u**2).sum()) / n**2
    b = float(((v + (n - i) / n * u) ** 2).sum()) / n
    c = float(((2 * n - 2 * i + 1) * u).sum()) / n**2
    d = float(above @ (n - above)) / n**3
    return math.sqrt(max(a - 2.0 * b + c**2, 0.0) / n) / d


def _permutation_variance(ranks: Floats) -> tuple[float, float]:
    """Return the factors of the exact permutation variance of Σ a_ij |r_i - r_j|; 0 for n < 4.

    A symmetric matrix with a diagonal of 0 is the sum of a constant, a part u_i + u_j, and a part
    whose rows sum to 0. Permutations map these parts to themselves and mix all directions in each,
    of n (n - 3) / 2 and n - 1 dimensions. The variance is therefore that of a random direction.
    """
    n = ranks.size
    if n < 4:
        return 0.0, 0.0
    i = np.arange(n)
    below = np.cumsum(ranks) - ranks
    rows = (2 * i - n) * ranks + ranks.sum() - 2.0 * below
    squares = 2.0 * n * float(np.square(ranks - ranks.mean()).sum())
    centred = squares - 2.0 * float(rows @ rows) / (n - 2) + rows.sum() ** 2 / ((n - 1) * (n - 2))
    centred = centred if centred > _SQUARES_RTOL * squares else 0.0
    deviations = float(np.square(rows - rows.mean()).sum())
    return 2.0 * centred / (n * (n - 3.0)), 4.0 * deviations / ((n - 2.0) ** 2 * (n - 1.0))


def _skewness_of_distances(ranks: Floats) -> float:
    """Return the skewness of -|r_i - r_j| without its means by row, i and j drawn at random.

    More ranks than `_MAX_LEVELS` are rounded to that many levels.
    """
    step = max(1.0, ranks.size / _MAX_LEVELS)
    levels, counts = np.unique(np.ceil(ranks / step), return_counts=True)
    share = counts / ranks.size
    distances = np.abs(levels[:, None] - levels)
    means = distances @ share
    centred = means[:, None] + means - distances - share @ means
    variance = float(share @ np.square(centred) @ share)
    return float(share @ centred**3 @ share) / variance**1.5 if variance else 0.0


def _run_probabilities(first: int, second: int) -> Floats:
    """Return the probabilities of at most i changes, i < n, in a random order of two classes.

    Source: Wald, A. and Wolfowitz, J. (1940). On a test whether two samples are from the same
    population. Annals of Mathematical Statistics 11, 147-162.
    """
    from scipy.special import betaln

    def log_choose(n: int, k: Floats) -> Floats:
        inside = (k >= 0) & (k <= n)
        k = np.where(inside, k, 0)
        return np.where(inside, -np.log1p(n) - betaln(n - k + 1.0, k + 1.0), -np.inf)

    n = first + second
    # A class of size m is in h runs in choose(m - 1, h - 1) ways; i changes make i + 1 runs.
    runs = np.arange(1.0, n + 1.0)
    fewer, more = runs // 2, runs - runs // 2
    a = log_choose(first - 1, fewer - 1) + log_choose(second - 1, more - 1)
    b = log_choose(first - 1, more - 1) + log_choose(second - 1, fewer - 1)
    total = log_choose(n, np.array([float(first)]))
    found: Floats = np.minimum(np.cumsum(np.exp(np.logaddexp(a, b) - total)), 1.0)
    return found


def warning_of_xi(target: Target) -> ResultWarning | None:
    """Return a warning if p-values of Chatterjee's correlation may be too small with ties."""
    _, counts = np.unique(target.ranks(), return_counts=True)
    share = counts.min() / target.n
    if counts.size != 2 or share >= _MIN_CLASS_SHARE:
        return None
    return ResultWarning(
        "unequal_classes",
        f"The smaller class has {share:.0%} of the rows: p-values of xi are exact for variables of "
        "distinct values, but several times too small in the tails for others. Hint: confirm these "
        "variables with score='rank' (--score rank)",
    )


def warning_of_ranks(target: Target) -> ResultWarning | None:
    """Return a warning if p-values of Spearman's correlation may be too small with ties."""
    if target.is_class or target.n <= MAX_EXACT_ROWS or rank_kurtosis(target.ranks()) <= 0.0:
        return None
    return ResultWarning(
        "rare_values",
        "Most values of the target are equal: p-values of rank correlations are several times too "
        "small below 0.001 for variables with rare values. Hint: confirm these variables with "
        "score='mutual_info' (--score mutual_info)",
    )


def score_xi(chunk: Chunk, part: slice, target: OrderedTarget) -> list[Floats]:
    """Return Chatterjee's correlations, and their one-sided p-values."""
    b = part.stop - part.start
    found, weights = np.empty(b), np.empty((4, b))
    columns = _sorted_in_order(chunk, part, target)
    chatterjee(*columns, target.ranks, target.scale, found, weights)
    return [found, _p_values_of_xi(found, weights, target)]


def _p_values_of_xi(xi: Floats, weights: Floats, target: OrderedTarget) -> Floats:
    """Return one-sided p-values: exact, normal, or with equal values Pearson III.

    Of two different targets and distinct values they are exact, those of the number of runs. Of
    distinct targets and values they are asymptotic. Otherwise the variance is that of permutations;
    for distinct targets the asymptotic one is multiplied by the ratio of permutation variances with
    equal values and without. The leading term is a sum over pairs of weights times the centred
    distances of targets, whose skewness follows from the traces of A² and A³ (as if the distances
    were products), and from the cubes of weights and distances.
    """
    from scipy.special import gammaincc, ndtr

    n = target.ranks.size
    normal: Floats = ndtr(-xi / target.deviation)
    squares, cubes, ends, thirds = weights
    has_ties = squares != 2.0 * (n - 1.0)
    if target.runs.size:
        distance = n - target.ranks[0]
        changes = np.rint((1.0 - xi) / (target.scale * distance)).astype(np.intp)
        normal = target.runs[np.clip(changes, 0, n - 1)]
    if not target.spread:
        return normal
    # Squares of the part of A whose rows sum to 0, and of the deviations of its sums of rows.
    centred = squares - 2.0 * (4.0 * n - 8.0 + ends) / (n - 2.0) + 4.0 * (n - 1.0) / (n - 2.0)
    centred = np.maximum(centred, 0.0)
    spread = target.spread * centred
    variance = spread + target.tilt * np.maximum(ends - 4.0 / n, 0.0)
    distinct = 2.0 * (n - 1.0) - 2.0 * (4.0 * n - 6.0) / (n - 2.0) + 4.0 * (n - 1.0) / (n - 2.0)
    distinct = target.spread * distinct + target.tilt * (2.0 - 4.0 / n)
    varies = np.where(variance > 0.0, variance, np.inf)
    if target.is_distinct:
        z = xi / target.deviation * np.sqrt(distinct / varies)
    else:
        z = 2.0 * xi / (target.scale * np.sqrt(varies))
    size = np.sqrt(2.0 * variance / target.spread)
    size = np.where(size > 0.0, size, np.inf)
    skewness = 8.0 * (np.maximum(cubes - 8.0, 0.0) + target.skewness * thirds) / size**3
    is_skew = skewness > _MIN_SKEWNESS
    shape = np.where(is_skew, 4.0 / np.where(is_skew, skewness, 1.0) ** 2, 1.0)
    skew: Floats = gammaincc(shape, np.maximum(shape + z * np.sqrt(shape), 0.0))
    is_exact = ~has_ties & (target.is_distinct or bool(target.runs.size))
    return np.where(is_exact, normal, np.where(is_skew, skew, ndtr(-z)))


def _sorted_in_order(chunk: Chunk, part: slice, target: OrderedTarget) -> SortedColumns:
    """Return sorted columns, and positions in the order of the target, which orders ties."""
    if isinstance(chunk, DenseChunk):
        # Adding 0.0 turns -0.0 into 0.0, which is sorted with it.
        return SortedColumns.of(np.take(chunk.X[part], target.order, axis=1) + np.float64(0.0))
    from scipy.sparse import csc_array

    start, stop = chunk.indptr[part.start], chunk.indptr[part.stop]
    indptr = chunk.indptr[part.start : part.stop + 1].astype(np.int64) - start
    indices = target.position[chunk.indices[start:stop]]
    b = indptr.size - 1
    arrays = (chunk.data[start:stop].astype(np.float64), indices, indptr)
    stored = csc_array(arrays, shape=(chunk.n, b))
    stored.sort_indices()
    indptr = stored.indptr.astype(np.int64)
    values, order = np.empty(stored.data.size), np.empty(stored.data.size, dtype=np.int64)
    sort_stored(stored.data, indptr, np.arange(b), values, order)
    found = SortedColumns(np.empty((b, chunk.n)), np.empty((b, chunk.n), dtype=np.int64))
    fill_sorted_zeros(values, order, stored.indices.astype(np.int64), indptr, *found)
    return found
