"""Scores that need the observations of a variable: cuts, margins and mutual information."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from streamsel._jit.contingency import mutual_info
from streamsel._jit.filters import bin_by_rank, bin_by_width, misclassification
from streamsel._jit.margin import margin
from streamsel._jit.sorting import sort_columns
from streamsel.columns import Chunk
from streamsel.held.part import Floats
from streamsel.target.target import Target

Codes = NDArray[np.int64]

# Columns are looked at in pieces of about this many numbers.
_PIECE = 1 << 18
# A cell of a table of bins is to hold so many observations: with fewer, of more bins, less of what
# varies smoothly is found, with more less of what does not.
_PER_CELL = 8
# Two bins see a difference of medians and nothing else.
_FEWEST_BINS = 3


def codes_of(target: Target, n_bins: int, binning: str) -> tuple[Codes, int]:
    """Return the class, or the bin, of every observation, and how many there are."""
    Y = target.columns()
    if target.is_class:
        return np.argmax(Y, axis=1), Y.shape[1]
    # As it came, but for what centring rounds: a whole number may stand where bins meet.
    digits = 12 - int(np.ceil(np.log10(np.ptp(Y))))
    bins = bins_of(np.round(Y, digits).T.copy(), n_bins, binning)[0]
    held, codes = np.unique(bins, return_inverse=True)
    return codes, held.size


def bins_of_target(n: int, n_bins: int) -> int:
    """Return into how many bins a numeric target of n observations is cut, n_bins at most."""
    return min(max(math.isqrt(n // _PER_CELL), 2), n_bins)


def bins_of_columns(codes: tuple[Codes, int], n_bins: int) -> int:
    """Return into how many bins columns are cut beside a target in bins, n_bins at most.

    So many that the cells of a class hold `_PER_CELL` observations; of classes of different sizes
    their harmonic mean counts, as it does for the mean of the information under independence.
    """
    sizes = np.bincount(codes[0])
    size = np.count_nonzero(sizes) / np.sum(1.0 / sizes[sizes > 0])
    return min(max(int(size) // _PER_CELL, _FEWEST_BINS), n_bins)


def score_columns(
    score: str,
    chunk: Chunk,
    size: int,
    codes: tuple[Codes, int],
    n_bins: int,
    binning: str,
    n_outliers: int,
) -> dict[str, Floats]:
    """Return what `noted` names, (size,) each, of the first columns of a chunk.

    Parameters
    ----------
    score
        "mutual_info", the only one that has p-values, "misclassification" or "margin".
    codes
        Of the target, as `codes_of` has them.
    n_bins
        Into how many bins columns are cut.
    binning, n_outliers
        As SelectKBest has them.
    """
    found = {name: np.zeros(size) for name in noted(score)}
    step = max(1, _PIECE // chunk.n)
    for start in range(0, size, step):
        part = slice(start, min(start + step, size))
        X = chunk.columns(np.arange(part.start, part.stop))
        into = [values[part] for values in found.values()]
        if score == "misclassification":
            misclassification(*_sorted(X), *codes, *into)
        elif score == "margin":
            margin(*_sorted(X), *codes, n_outliers, *into)
        else:
            of_target, n_codes = codes
            mutual_info(bins_of(X, n_bins, binning), of_target, n_bins, n_codes, *into)
    return found


def noted(score: str) -> tuple[str, ...]:
    """Return what is kept of a column beside its moments."""
    return ("score", "statistic", "dof") if score == "mutual_info" else ("score",)


def p_values(statistic: Floats, dof: Floats) -> Floats:
    """Return p-values of mutual information, from what the kernel gives; 1 without a freedom."""
    from scipy.special import chdtrc

    found: Floats = np.where(dof == 1.0, statistic, chdtrc(np.maximum(dof, 1.0), statistic))
    found[dof == 0.0] = 1.0
    return found


def strength(score: str, found: Floats) -> Floats:
    """Return what ranks as the score does, the greater the better, and 0 or more."""
    if score == "misclassification":
        return 1.0 - found
    return found if score == "margin" else np.exp(found)


def bins_of(X: Floats, n_bins: int, binning: str) -> Codes:
    """Return the bin of every value of columns, one a row."""
    bins = np.empty(X.shape, dtype=np.int64)
    if binning == "width":
        bin_by_width(X, n_bins, bins)
    else:
        bin_by_rank(*_sorted(X), n_bins, bins)
    return bins


def _sorted(X: Floats) -> tuple[Floats, Codes]:
    """Return the values of columns, one a row, in order, and where they come from."""
    values, order = np.empty(X.shape), np.empty(X.shape, dtype=np.int64)
    sort_columns(X, values, order)
    return values, order
