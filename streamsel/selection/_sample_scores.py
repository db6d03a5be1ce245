"""Scores that need the observations of a variable: cuts, margins and mutual information."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamsel._jit.filters import bin_by_rank, bin_by_width, misclassification, mutual_info
from streamsel._jit.margin import margin
from streamsel._jit.sorting import sort_columns
from streamsel.columns import Chunk
from streamsel.held.part import Floats
from streamsel.target.target import Target

Codes = NDArray[np.int64]

# Columns are looked at in pieces of about this many numbers.
_PIECE = 1 << 18


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


def score_columns(
    score: str,
    chunk: Chunk,
    size: int,
    codes: tuple[Codes, int],
    n_bins: int,
    binning: str,
    n_outliers: int,
) -> dict[str, Floats]:
    """Return score and degrees of freedom, (size,), of the first columns of a chunk.

    Parameters
    ----------
    score
        "mutual_info", the only one that has degrees of freedom, "misclassification" or "margin".
    codes
        Of the target, as `codes_of` has them.
    n_bins, binning, n_outliers
        As SelectKBest has them.
    """
    found, dof = np.zeros(size), np.zeros(size)
    step = max(1, _PIECE // chunk.n)
    for start in range(0, size, step):
        part = slice(start, min(start + step, size))
        X = chunk.columns(np.arange(part.start, part.stop))
        if score == "misclassification":
            misclassification(*_sorted(X), *codes, found[part])
        elif score == "margin":
            margin(*_sorted(X), *codes, n_outliers, found[part])
        else:
            of_target, n_codes = codes
            bins = bins_of(X, n_bins, binning)
            mutual_info(bins, of_target, n_bins, n_codes, found[part], dof[part])
    return {"score": found, "dof": dof}


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
