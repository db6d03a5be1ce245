"""Univariate scores from samples: misclassification, margin and mutual information."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from streamsel._kernels.contingency import mutual_info
from streamsel._kernels.sorting import sort_columns
from streamsel._kernels.univariate import bin_by_rank, bin_by_width, margin, misclassification
from streamsel.data.columns import Chunk
from streamsel.state.base import Floats
from streamsel.targets.target import Target

Codes = NDArray[np.int64]

# Maximum numbers per batch of columns.
_BATCH_NUMBERS = 1 << 18
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
    # Undo the rounding errors of centring: a whole number may be the edge of a bin.
    digits = 12 - int(np.ceil(np.log10(np.ptp(Y))))
    bins = bin_columns(np.round(Y, digits).T.copy(), n_bins, binning)[0]
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


def score_columns(
    score: str,
    chunk: Chunk,
    size: int,
    codes: tuple[Codes, int],
    n_bins: int,
    binning: str,
    n_outliers: int,
) -> dict[str, Floats]:
    """Return the fields named by `extra_statistics`, (size,) each, of the first columns of a chunk.

    Parameters
    ----------
    score
        "mutual_info", the only one with p-values, "misclassification" or "margin".
    codes
        Those of the target, from `target_codes`.
    n_bins
        Number of bins of columns.
    binning, n_outliers
        As in SelectKBest.
    """
    fields = {name: np.zeros(size) for name in extra_statistics(score)}
    step = max(1, _BATCH_NUMBERS // chunk.n)
    for start in range(0, size, step):
        part = slice(start, min(start + step, size))
        X = chunk.columns(np.arange(part.start, part.stop))
        outputs = [values[part] for values in fields.values()]
        if score == "misclassification":
            misclassification(*_sorted(X), *codes, *outputs)
        elif score == "margin":
            margin(*_sorted(X), *codes, n_outliers, *outputs)
        else:
            target_codes, n_codes = codes
            mutual_info(bin_columns(X, n_bins, binning), target_codes, n_bins, n_codes, *outputs)
    return fields


def extra_statistics(score: str) -> tuple[str, ...]:
    """Return the names of the fields kept for a column in addition to its moments."""
    return ("score", "statistic", "dof") if score == "mutual_info" else ("score",)


def mutual_information_p_values(statistic: Floats, dof: Floats) -> Floats:
    """Return p-values of mutual information; 1 with 0 degrees of freedom."""
    from scipy.special import chdtrc

    result: Floats = np.where(dof == 1.0, statistic, chdtrc(np.maximum(dof, 1.0), statistic))
    result[dof == 0.0] = 1.0
    return result


def rank_strength(score: str, values: Floats) -> Floats:
    """Return a non-negative strength with the ranking of the score; larger is better."""
    if score == "misclassification":
        return 1.0 - values
    return values if score == "margin" else np.exp(values)


def bin_columns(X: Floats, n_bins: int, binning: str) -> Codes:
    """Return the bin of every value of columns, one per row."""
    bins = np.empty(X.shape, dtype=np.int64)
    if binning == "width":
        bin_by_width(X, n_bins, bins)
    else:
        bin_by_rank(*_sorted(X), n_bins, bins)
    return bins


def _sorted(X: Floats) -> tuple[Floats, Codes]:
    """Return the sorted values of columns, one per row, and their original indices."""
    values, order = np.empty(X.shape), np.empty(X.shape, dtype=np.int64)
    sort_columns(X, values, order)
    return values, order
