"""Scores of columns that bin or sort their values: mutual information, thresholds and margins."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from streamsel._kernels.contingency import mutual_info
from streamsel._kernels.univariate import bin_by_rank, bin_by_width, margin, misclassification
from streamsel.data.chunks import Chunk
from streamsel.data.ranks import SortedColumns
from streamsel.state.base import Floats
from streamsel.targets.target import Target

Codes = NDArray[np.int64]

# Target count of observations per cell of the contingency table: smaller cells lose power for
# smooth dependence, larger ones for other dependence.
_PER_CELL = 8
# Two bins only detect a difference of medians.
_MIN_BINS = 3


def target_codes(target: Target, n_bins: int, binning: str) -> tuple[Codes, int]:
    """Return the class or bin of every observation, and the number of codes."""
    Y = target.columns()
    if target.is_class:
        return np.argmax(Y, axis=1), Y.shape[1]
    if binning == "frequency":
        values = target.ranks().astype(np.float64)
    else:
        # Undo the rounding errors of centring: a whole number may be the edge of a bin.
        values = np.round(Y[:, 0], 12 - int(np.ceil(np.log10(np.ptp(Y)))))
    bins = bin_columns(values[None], n_bins, binning)[0]
    occupied, codes = np.unique(bins, return_inverse=True)
    return codes, occupied.size


def n_bins_of_target(n: int, n_bins: int) -> int:
    """Return the number of bins of a numeric target of n observations, at most n_bins."""
    return min(max(math.isqrt(n // _PER_CELL), 2), n_bins)


def n_bins_of_columns(codes: tuple[Codes, int], n_bins: int) -> int:
    """Return the number of bins of columns, given the codes of the target, at most n_bins.

    The cells of a class then hold about `_PER_CELL` observations. Class sizes are averaged by their
    harmonic mean, which also determines the mean of the information under independence.
    """
    sizes = np.bincount(codes[0])
    size = np.count_nonzero(sizes) / np.sum(1.0 / sizes[sizes > 0])
    return min(max(int(size) // _PER_CELL, _MIN_BINS), n_bins)


def bin_columns(X: Floats, n_bins: int, binning: str) -> Codes:
    """Return the bin of every value of columns, one per row."""
    bins = np.empty(X.shape, dtype=np.int64)
    if binning == "width":
        bin_by_width(X, n_bins, bins)
    else:
        bin_by_rank(*SortedColumns.of(X), n_bins, bins)
    return bins


def _values(chunk: Chunk, part: slice) -> Floats:
    """Return a slice of the columns of a chunk as dense float64, one per row."""
    return chunk.columns(np.arange(part.start, part.stop))


class ScoreOptions(NamedTuple):
    """Parameters of `SelectKBest` that scores depend on."""

    n_bins: int
    binning: str
    n_outliers: int


class BinnedTarget(NamedTuple):
    """Target of scores that bin it, and how columns are compared with it.

    Parameters
    ----------
    codes, n_codes
        Class or bin of each observation, and their number, from `target_codes`.
    n_bins, binning
        Number of bins of columns, and how they are made.
    n_outliers
        Number of smallest margins to ignore.
    """

    codes: Codes
    n_codes: int
    n_bins: int
    binning: str
    n_outliers: int

    @classmethod
    def of(cls, target: Target, options: ScoreOptions) -> Self:
        """Return a target with at most `n_bins` bins of its own, and of each column."""
        n_bins, binning, n_outliers = options
        codes = target_codes(target, n_bins_of_target(target.n, n_bins), binning)
        return cls(*codes, n_bins_of_columns(codes, n_bins), binning, n_outliers)


# Scores from the values of columns, as the kernels return them.


def score_mutual_information(chunk: Chunk, part: slice, target: BinnedTarget) -> list[Floats]:
    """Return mutual information minus its mean, the statistic and its degrees of freedom."""
    bins = bin_columns(_values(chunk, part), target.n_bins, target.binning)
    found = [np.zeros(len(bins)) for _ in range(3)]
    mutual_info(bins, target.codes, target.n_bins, target.n_codes, *found)
    return found


def score_misclassification(chunk: Chunk, part: slice, target: BinnedTarget) -> list[Floats]:
    """Return the error rate of the best threshold."""
    values, order = SortedColumns.of(_values(chunk, part))
    found = np.zeros(len(values))
    misclassification(values, order, target.codes, target.n_codes, found)
    return [found]


def score_margin(chunk: Chunk, part: slice, target: BinnedTarget) -> list[Floats]:
    """Return the smallest distance between values of different classes."""
    values, order = SortedColumns.of(_values(chunk, part))
    found = np.zeros(len(values))
    margin(values, order, target.codes, target.n_codes, target.n_outliers, found)
    return [found]


def mutual_information_p_values(statistic: Floats, dof: Floats) -> Floats:
    """Return p-values of mutual information; 1 with 0 degrees of freedom."""
    from scipy.special import chdtrc

    result: Floats = np.where(dof == 1.0, statistic, chdtrc(np.maximum(dof, 1.0), statistic))
    result[dof == 0.0] = 1.0
    return result


def accuracy(error: Floats) -> Floats:
    """Return the share of correct classifications."""
    return 1.0 - error
