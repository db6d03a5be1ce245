"""The greedy of mRMR: what a variable tells of the target, against what the picks have told.

Of two variables that tell as much the one that has less in common with the picks is next.
"""

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

# What quotients have in common with a pick is at least this.
FLOOR = 0.001
# What a score is made of is known to this, relatively, and to that.
_RELATIVE, _ABSOLUTE = 1e-12, 1e-14
# F is infinite where the target explains a variable in full, and rounding where it nearly does.
_PERFECT = math.sqrt(1.0 - 1e-9)
# Observations are looked at in pieces of about this many numbers.
_PIECE = 1 << 18


def _uncertain(value: Any) -> Any:
    return _RELATIVE * value + _ABSOLUTE


class Relevance(NamedTuple):
    """What a variable tells of the target.

    Parameters
    ----------
    is_f
        Whether it is the F statistic of what was found; otherwise that itself.
    nothing
        Found no more than this a variable tells nothing.
    n, rank
        F: how many observations there are, and the rank of the target.
    """

    is_f: bool
    nothing: float
    n: float = 0.0
    rank: int = 1

    def of(self, found: Floats) -> Floats:
        """Return what variables tell; -inf where it is nothing."""
        told = found
        if self.is_f:
            told = f_statistic(np.minimum(found, _PERFECT), self.n, self.rank)
        return np.where(found > self.nothing, told, -np.inf)

    def slack(self, found: Floats) -> Floats:
        """Return how far that is known."""
        slack: Floats = _uncertain(np.maximum(found, 0.0))
        if self.is_f:
            r = np.clip(found, self.nothing, _PERFECT)
            slack = 2.0 * f_statistic(r, self.n, self.rank) * slack / r / (1.0 - r * r)
        return slack


class Trade(NamedTuple):
    """The form of a score: a quotient, or a difference.

    Parameters
    ----------
    beta
        As `_jit.redundancy.fold` has it.
    """

    beta: float

    @property
    def floor(self) -> float:
        """What a variable has in common with a pick at least."""
        return FLOOR if self.beta < 0.0 else 0.0

    def scores(self, rel: Floats, total: Floats, s: int) -> Floats:
        """Return scores after s picks: of what is told, and the sum of what is in common."""
        if s == 0:
            return rel
        if self.beta < 0.0:
            return rel * s / total
        return rel - (total / s if math.isnan(self.beta) else self.beta * total)

    def tolerance(self, slack: Any, score: Any, total: Any, s: int) -> float:
        """Return how far a score is known."""
        if s == 0:
            return float(slack)
        mean = total / s
        red = _uncertain(mean)
        if self.beta < 0.0:
            return float((slack + score * red) / mean)
        return float(slack + (red if math.isnan(self.beta) else self.beta * s * red))


class Informations(Products):
    """Rows of the matrix of mutual information of a pool's variables, of which the bins are known.

    Parameters
    ----------
    codes
        (p, n) the bin of every observation.
    n_bins
        How many there are.
    before, origin, most
        As `Products` has them.
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
    """Return codes from 0 to n_codes - 1 in few bytes."""
    return codes.astype(np.uint8 if n_codes <= 1 << 8 else np.int32)


def codes_of_columns(X: Floats, n_bins: int) -> Narrow:
    """Return the bin of every value of columns, one a row."""
    step = max(1, _PIECE // X.shape[1])
    starts = range(0, max(1, len(X)), step)
    parts = (bins_of(X[start : start + step], n_bins, "frequency") for start in starts)
    return np.concatenate([narrow(part, n_bins) for part in parts])


def shared(codes: Narrow, others: Narrow, n_codes: int, n_others: int) -> Floats:
    """Return the (b, q) mutual information of columns, (b, n), and others, (q, n), in bins."""
    found = np.empty((len(codes), len(others)))
    information(codes, np.ascontiguousarray(others.T), n_codes, n_others, found)
    return found


def greedy(
    rel: Floats,
    slack: Floats,
    trade: Trade,
    k: int,
    row: Callable[[int, Callable[[], Places]], Floats],
    forced: Sequence[int] = (),
) -> tuple[Picks, list[float]]:
    """Pick up to k variables; return them, and how far the score of each is known.

    Parameters
    ----------
    rel, slack
        (p,) what variables tell of the target, -inf for who is out of the running, and how far it
        is known.
    trade
        The form of a score.
    row
        Of one variable and of who is likely to be next after it: what all have in common with it,
        whatever its sign.
    forced
        The picks, where they are known.
    """
    picks, tolerance = Picks([], [], []), list[float]()
    total, free = np.zeros(rel.size), rel.copy()
    while len(picks.places) < (len(forced) or k):
        s = len(picks.places)
        scores = trade.scores(free, total, s)
        highest = int(np.argmax(scores)) if scores.size else -1
        if highest < 0 or scores[highest] == -np.inf:
            break
        known = trade.tolerance(slack[highest], scores[highest], total[highest], s)
        j = forced[s] if forced else int(np.argmax(scores >= scores[highest] - known))
        picks.places.append(j)
        picks.scores.append(float(scores[j]))
        picks.rounds.append(0)
        tolerance.append(trade.tolerance(slack[j], scores[j], total[j], s))
        free[j] = -np.inf
        if s + 1 < k:
            total += np.maximum(np.abs(row(j, partial(_best, scores))), trade.floor)
    return picks, tolerance


def _best(scores: Floats) -> Places:
    most = min(TOGETHER, scores.size)
    return np.argpartition(-scores, most - 1)[:most]
