"""Univariate scores of columns, as functions of relevance or of the values of a column."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from streamsel._kernels.contingency import mutual_info
from streamsel._kernels.sorting import sort_columns
from streamsel._kernels.univariate import bin_by_rank, bin_by_width, margin, misclassification
from streamsel.base.null import f_statistic
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


class BinnedTarget(NamedTuple):
    """Target of scores that need samples, and how columns are compared with it.

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
    def of(cls, target: Target, n_bins: int, binning: str, n_outliers: int) -> Self:
        """Return a target with at most `n_bins` bins of its own, and of each column."""
        codes = target_codes(target, n_bins_of_target(target.n, n_bins), binning)
        return cls(*codes, n_bins_of_columns(codes, n_bins), binning, n_outliers)


# Scores from relevance, and the number of observations, rank and scale of `Freedom`.


def correlation(
    relevance: Floats,
    n: float,  # noqa: ARG001
    rank: int,  # noqa: ARG001
    scale: float | None = None,  # noqa: ARG001
) -> Floats:
    """Return the relevance itself."""
    return relevance


def t_statistic(relevance: Floats, n: float, rank: int, scale: float | None = None) -> Floats:
    """Return the absolute t or z statistics, for a target of rank 1."""
    return np.sqrt(f_statistic(relevance, n, rank, scale))


# Scores from the values of columns, one per row, as the kernels return them.


def score_mutual_information(X: Floats, target: BinnedTarget) -> list[Floats]:
    """Return mutual information minus its mean, the statistic and its degrees of freedom."""
    found = [np.zeros(len(X)) for _ in range(3)]
    bins = bin_columns(X, target.n_bins, target.binning)
    mutual_info(bins, target.codes, target.n_bins, target.n_codes, *found)
    return found


def score_misclassification(X: Floats, target: BinnedTarget) -> list[Floats]:
    """Return the error rate of the best threshold."""
    found = np.zeros(len(X))
    misclassification(*_sorted(X), target.codes, target.n_codes, found)
    return [found]


def score_margin(X: Floats, target: BinnedTarget) -> list[Floats]:
    """Return the smallest distance between values of different classes."""
    found = np.zeros(len(X))
    margin(*_sorted(X), target.codes, target.n_codes, target.n_outliers, found)
    return [found]


def accuracy(error: Floats) -> Floats:
    """Return the share of correct classifications."""
    return 1.0 - error


class TargetKind(NamedTuple):
    """Targets that a score supports: any of these kinds.

    Parameters
    ----------
    name
        Their name, for errors.
    numeric, classes
        Largest number of numeric columns, and of classes.
    """

    name: str
    numeric: float
    classes: float

    def includes(self, c: int, *, is_class: bool) -> bool:
        """Return whether a target of c columns is one."""
        return c <= (self.classes if is_class else self.numeric)


class MomentScore(NamedTuple):
    """Univariate score that is a function of the relevance.

    Parameters
    ----------
    meaning
        Definition of the score, for reports.
    targets
        The targets that it supports.
    of_relevance
        Returns the scores from relevance and `Freedom`.
    """

    meaning: str
    targets: TargetKind
    of_relevance: Callable[[Floats, float, int, float | None], Floats]
    fields: tuple[str, ...] = ()
    has_p_values: bool = True


class SampleScore(NamedTuple):
    """Univariate score that needs the values of a column.

    Parameters
    ----------
    meaning, targets
        As in `MomentScore`.
    of_columns
        Returns the fields of columns, (b, n).
    strength
        Returns a non-negative strength with the ranking of the score; larger is better.
    fields
        Names of the fields kept for a column in addition to its moments; the first is the score.
    has_p_values
        Whether the fields have a statistic, and degrees of freedom.
    """

    meaning: str
    targets: TargetKind
    of_columns: Callable[[Floats, BinnedTarget], list[Floats]]
    strength: Callable[[Floats], Floats]
    fields: tuple[str, ...] = ("score",)
    has_p_values: bool = False

    def of_chunk(self, chunk: Chunk, size: int, target: BinnedTarget) -> dict[str, Floats]:
        """Return the fields, (size,) each, of the first columns of a chunk."""
        fields = {name: np.zeros(size) for name in self.fields}
        step = max(1, _BATCH_NUMBERS // chunk.n)
        for start in range(0, size, step):
            part = slice(start, min(start + step, size))
            found = self.of_columns(chunk.columns(np.arange(part.start, part.stop)), target)
            for values, of_part in zip(fields.values(), found, strict=True):
                values[part] = of_part
        return fields


_ANY = TargetKind("any target", math.inf, math.inf)
_CLASSES = TargetKind("classes", 0, math.inf)

SCORES: dict[str, MomentScore | SampleScore] = {
    "correlation": MomentScore("relevance", _ANY, correlation),
    "f": MomentScore("F statistic", _ANY, f_statistic),
    "t": MomentScore(
        "absolute t statistic", TargetKind("one numeric target or two classes", 1, 2), t_statistic
    ),
    "mutual_info": SampleScore(
        "mutual information in nats, minus its mean under independence",
        TargetKind("one numeric target or classes", 1, math.inf),
        score_mutual_information,
        np.exp,
        ("score", "statistic", "dof"),
        has_p_values=True,
    ),
    "misclassification": SampleScore(
        "error rate of the best threshold, from 0 to 1; smaller is better",
        _CLASSES,
        score_misclassification,
        accuracy,
    ),
    "margin": SampleScore(
        "smallest distance between values of different classes, in standard deviations",
        _CLASSES,
        score_margin,
        np.positive,
    ),
}

# Meanings of the scores of a GLM's score test.
GLM_MEANINGS = {
    "correlation": "relevance",
    "f": "chi-squared statistic of the score test",
    "t": "absolute z statistic of the score test",
}


def mutual_information_p_values(statistic: Floats, dof: Floats) -> Floats:
    """Return p-values of mutual information; 1 with 0 degrees of freedom."""
    from scipy.special import chdtrc

    result: Floats = np.where(dof == 1.0, statistic, chdtrc(np.maximum(dof, 1.0), statistic))
    result[dof == 0.0] = 1.0
    return result


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
