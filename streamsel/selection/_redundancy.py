"""The greedy of mRMR: relevance to the target against redundancy with the picks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel._jit.information import information
from streamsel.held.part import Floats, Places
from streamsel.held.pool import Picks
from streamsel.held.products import TOGETHER, Products
from streamsel.learner.noise import f_statistic
from streamsel.selection._sample_scores import Codes, bins_of

Narrow = NDArray[np.integer[Any]]

# Lower bound of the redundancy with a pick, for quotients.
FLOOR = 0.001
# Relative and absolute error of relevance and redundancy.
_RTOL, _ATOL = 1e-12, 1e-14
# Cap of relevance in F, which is infinite at 1 and dominated by rounding errors near 1.
_MAX_RELEVANCE = math.sqrt(1.0 - 1e-9)
# Maximum numbers per batch of columns.
_BATCH_NUMBERS = 1 << 18


def _error_bound(value: Any) -> Any:
    return _RTOL * value + _ATOL


class Relevance(NamedTuple):
    """Relevance of a variable to the target, as the criterion uses it.

    Parameters
    ----------
    is_f
        Whether to use the F statistic of the measured relevance instead of that itself.
    nothing
        A measured relevance of at most this counts as none.
    n, rank
        F: number of observations, and rank of the target.
    """

    is_f: bool
    nothing: float
    n: float = 0.0
    rank: int = 1

    def of(self, found: Floats) -> Floats:
        """Return the relevance of variables from the measured one; -inf for none."""
        relevance = found
        if self.is_f:
            relevance = f_statistic(np.minimum(found, _MAX_RELEVANCE), self.n, self.rank)
        return np.where(found > self.nothing, relevance, -np.inf)

    def slack(self, found: Floats) -> Floats:
        """Return error bounds of the relevance."""
        error: Floats = _error_bound(np.maximum(found, 0.0))
        if self.is_f:
            r = np.clip(found, self.nothing, _MAX_RELEVANCE)
            error = 2.0 * f_statistic(r, self.n, self.rank) * error / r / (1.0 - r * r)
        return error


class Trade(NamedTuple):
    """Form of the criterion: quotient or difference.

    Parameters
    ----------
    beta
        As in `_jit.redundancy.fold`.
    """

    beta: float

    @property
    def floor(self) -> float:
        """Lower bound of the redundancy of a variable with a pick."""
        return FLOOR if self.beta < 0.0 else 0.0

    def scores(self, rel: Floats, total: Floats, s: int) -> Floats:
        """Return scores after s picks, from relevances and sums of redundancies."""
        if s == 0:
            return rel
        if self.beta < 0.0:
            return rel * s / total
        return rel - (total / s if math.isnan(self.beta) else self.beta * total)

    def tolerance(self, slack: Any, score: Any, total: Any, s: int) -> float:
        """Return the error bound of a score."""
        if s == 0:
            return float(slack)
        mean = total / s
        redundancy_error = _error_bound(mean)
        if self.beta < 0.0:
            return float((slack + score * redundancy_error) / mean)
        return float(
            slack
            + (redundancy_error if math.isnan(self.beta) else self.beta * s * redundancy_error)
        )


class Informations(Products):
    """Rows of the mutual information matrix of a pool's binned variables.

    Parameters
    ----------
    codes
        (p, n) the bin of every observation.
    n_bins
        Number of bins.
    before, origin, most
        As in `Products`.
    """

    def __init__(
        self,
        codes: Narrow,
        n_bins: int,
        before: Products | None = None,
        origin: Places | None = None,
        most: int = 0,
    ) -> None:
        self._n_bins = n_bins
        super().__init__(codes, before, origin, most)

    def _between(self, some: Any, others: Any) -> Floats:
        return shared(others, some, self._n_bins, self._n_bins).T


def narrow(codes: Codes, n_codes: int) -> Narrow:
    """Return codes from 0 to n_codes - 1 as a small integer type."""
    return codes.astype(np.uint8 if n_codes <= 1 << 8 else np.int32)


def codes_of_columns(X: Floats, n_bins: int) -> Narrow:
    """Return the bin of every value of columns, one per row."""
    step = max(1, _BATCH_NUMBERS // X.shape[1])
    starts = range(0, max(1, len(X)), step)
    parts = (bins_of(X[start : start + step], n_bins, "frequency") for start in starts)
    return np.concatenate([narrow(part, n_bins) for part in parts])


def shared(codes: Narrow, others: Narrow, n_codes: int, n_others: int) -> Floats:
    """Return the (b, q) mutual information of binned columns, (b, n), and others, (q, n)."""
    result = np.empty((len(codes), len(others)))
    information(codes, np.ascontiguousarray(others.T), n_codes, n_others, result)
    return result


def greedy(
    rel: Floats,
    slack: Floats,
    trade: Trade,
    k: int,
    row: Callable[[int, Callable[[], Places]], Floats],
    forced: Sequence[int] = (),
) -> tuple[Picks, list[float]]:
    """Pick up to k variables; return them, and the error bound of each score.

    Parameters
    ----------
    rel, slack
        (p,) relevances to the target, -inf for variables that cannot be picked, and their error
        bounds.
    trade
        The form of a score.
    row
        Function of a variable and of a callable returning likely next picks: the signed
        redundancies of all variables with it.
    forced
        The picks, if known.
    """
    picks, tolerance = Picks([], [], []), list[float]()
    total, available = np.zeros(rel.size), rel.copy()
    while len(picks.places) < (len(forced) or k):
        s = len(picks.places)
        scores = trade.scores(available, total, s)
        highest = int(np.argmax(scores)) if scores.size else -1
        if highest < 0 or scores[highest] == -np.inf:
            break
        error = trade.tolerance(slack[highest], scores[highest], total[highest], s)
        j = forced[s] if forced else int(np.argmax(scores >= scores[highest] - error))
        picks.places.append(j)
        picks.scores.append(float(scores[j]))
        picks.rounds.append(0)
        tolerance.append(trade.tolerance(slack[j], scores[j], total[j], s))
        available[j] = -np.inf
        if s + 1 < k:
            total += np.maximum(np.abs(row(j, partial(_best, scores))), trade.floor)
    return picks, tolerance


def _best(scores: Floats) -> Places:
    size = min(TOGETHER, scores.size)
    return np.argpartition(-scores, size - 1)[:size]
