"""The greedy of ProjSe: pick the variable that the projector keeps most of, then project it away.

 P₀ projects on the target space, P_{s+1} = P_s less the direction P_s x of the pick, and the score
of x is ‖P_s x‖² / ‖x‖². Scores only fall as the projector shrinks. The greedy itself is `greedy`;
what it deflates is either coordinates (column-pivoted Gram-Schmidt) or a kernel matrix whose
columns are made when they are needed (pivoted Cholesky). Both are the same method: K = G Gᵀ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from streamsel._jit.deflate import direction, run, run_singly
from streamsel.held.part import Floats
from streamsel.held.pool import NO_PICKS, SPENT, TIE, Picks

# To look for the best so often takes longer than to sort all.
_WORTH_SORTING = 64


class Deflation(Protocol):
    """Candidates under a projector that loses one direction a pick."""

    @property
    def size(self) -> int:
        """Number of candidates."""

    @property
    def directions(self) -> int:
        """Number of directions taken out of the projector since the last restart."""

    def restart(self) -> None:
        """Give the projector back all directions."""

    def run(self, limit: int) -> tuple[list[int], list[float]]:
        """Take the best free candidate, the earliest among equals, and again, up to the limit.

        Ends early where the projector keeps nothing of any candidate. Returns them and their
        scores.
        """

    def take(self, j: int) -> float:
        """Take candidate j, and its direction out of the projector; return its score."""


def greedy(
    deflation: Deflation,
    k: int,
    *,
    restart: bool,
    forced: Picks = NO_PICKS,
) -> Picks:
    """Pick up to k candidates.

    Parameters
    ----------
    deflation
        The candidates, none taken yet.
    k
        Most picks.
    restart
        Whether to go on, when the projector keeps nothing of any candidate, with a new round: with
        the whole projector, over the candidates not yet picked.
    forced
        The first picks, where they are known.

    Returns
    -------
    The picks, fewer than k where candidates run out or nothing more is relevant.
    """
    if restart and isinstance(deflation, CoordinateDeflation) and deflation.single:
        places, scores = deflation.run_singly(k)
        return Picks(places, scores, list(range(len(places))))
    picks = Picks([], [], [])
    this_round = 0
    for j, number in zip(forced.places[:k], forced.rounds, strict=False):
        if number != this_round:
            deflation.restart()
            this_round = number
        picks.places.append(j)
        picks.scores.append(deflation.take(j))
        picks.rounds.append(number)
    while len(picks.places) < k:
        places, scores = deflation.run(k - len(picks.places))
        picks.places.extend(places)
        picks.scores.extend(scores)
        picks.rounds.extend([this_round] * len(places))
        if not restart or deflation.directions == 0:
            break
        deflation.restart()
        this_round += 1
    return picks


class CoordinateDeflation:
    """Candidates given by coordinates g: P_s takes the picked directions out of them, lazily.

    A score that was computed under an earlier projector bounds the score now, so only candidates
    whose bound reaches the best score are brought up to date (Minoux 1978).

    Parameters
    ----------
    G
        (p, r) coordinates in the target space, of unit length in feature space.
    """

    def __init__(self, G: Floats) -> None:
        p, r = G.shape
        self.size = p
        self._G = G
        # In a space of one direction a round is one pick.
        self.single = r == 1
        self._whole = np.square(G[:, 0]) if self.single else np.einsum("ij,ij->i", G, G)
        self._Q = np.empty((r, r))
        self._taken = np.zeros(p, dtype=np.bool_)
        self.directions = 0
        # Scores so far, and how many directions they reckon with; made when a round begins.
        self._round: tuple[Floats, NDArray[np.int64]] | None = None

    def restart(self) -> None:
        """Give the projector back all directions."""
        self.directions = 0
        self._round = None

    def run_singly(self, limit: int) -> tuple[list[int], list[float]]:
        """Take up to the limit, a round each, where a round is one pick."""
        limit = min(limit, self.size)
        if limit > _WORTH_SORTING:
            ranked = _ranked(self._whole, limit)
            if ranked is not None:
                return ranked
        places, scores = np.empty(limit, dtype=np.int64), np.empty(limit)
        n = run_singly(self._whole.copy(), TIE, SPENT, places, scores)
        return places[:n].tolist(), scores[:n].tolist()

    def run(self, limit: int) -> tuple[list[int], list[float]]:
        """Take the best free candidate, the earliest among equals, and again, up to the limit."""
        limit = min(limit, self.size)
        places, scores = np.empty(limit, dtype=np.int64), np.empty(limit)
        if self._round is None:
            bound = np.where(self._taken, -1.0, self._whole)
            self._round = bound, np.zeros(self.size, dtype=np.int64)
        state = (self._G, *self._round, self._Q, self.directions)
        n = run(*state, TIE, SPENT, places, scores)
        self._taken[places[:n]] = True
        self.directions += n
        return places[:n].tolist(), scores[:n].tolist()

    def take(self, j: int) -> float:
        """Take candidate j, and its direction out of the projector; return its score."""
        self._taken[j] = True
        if self._round is not None:
            self._round[0][j] = -1.0
        Q = self._Q
        score = direction(self._G, Q[: self.directions], j, Q[self.directions])
        self.directions += 1
        return float(score)


def _ranked(scores: Floats, limit: int) -> tuple[list[int], list[float]] | None:
    """Return the best, in order, and their scores; of equal ones the first in place goes first.

    None where who is equal to whom depends on who goes first.
    """
    order = np.argsort(-scores)
    found = scores[order]
    found = found[: np.count_nonzero(found > SPENT)]
    ends = np.flatnonzero(np.append(found[1:] < found[:-1] * (1.0 - TIE), found[:1] > 0.0))
    starts = np.append(0, ends + 1)[:-1]
    if (found[ends] < found[starts] * (1.0 - TIE)).any():
        return None
    equals = np.repeat(np.arange(ends.size), ends - starts + 1)
    places = np.sort(equals * scores.size + order[: found.size])[:limit] % max(1, scores.size)
    return places.tolist(), scores[places].tolist()


class GramDeflation:
    """Candidates given by their normalised kernel matrix, a column of it made at every pick.

    Parameters
    ----------
    size
        Number p of candidates.
    gram_column
        j -> (p,) the kernel of candidate j with all of them; every candidate's with itself is 1.
    """

    def __init__(self, size: int, gram_column: Callable[[int], Floats]) -> None:
        self.size = size
        self._gram_column = gram_column
        self._taken = np.zeros(size, dtype=np.bool_)
        self._scores = np.ones(size)
        # Rows of the pivoted Cholesky factor: coordinates of all candidates along each direction.
        self._T = np.empty((0, size))
        self.directions = 0

    def restart(self) -> None:
        """Give the projector back all directions."""
        self.directions = 0
        self._scores = np.ones(self.size)

    def run(self, limit: int) -> tuple[list[int], list[float]]:
        """Take the best free candidate, the earliest among equals, and again, up to the limit."""
        limit = min(limit, self.size)
        places: list[int] = []
        scores: list[float] = []
        while len(places) < limit:
            free = np.where(self._taken, -np.inf, self._scores)
            highest = free.max(initial=-np.inf)
            if highest <= SPENT:
                break
            places.append(int(np.argmax(free >= highest * (1.0 - TIE))))
            scores.append(self.take(places[-1]))
        return places, scores

    def take(self, j: int) -> float:
        """Take candidate j, and its direction out of the projector; return its score."""
        self._taken[j] = True
        score = float(self._scores[j])
        s = self.directions
        if s == self._T.shape[0]:
            grown = np.empty((max(8, 2 * s), self.size))
            grown[:s] = self._T[:s]
            self._T = grown
        T = self._T[:s]
        row = (self._gram_column(j) - T[:, j] @ T) / np.sqrt(score)
        self._T[s] = row
        self._scores -= row * row
        self.directions += 1
        return score
