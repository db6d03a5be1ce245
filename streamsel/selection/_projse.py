"""ProjSe's greedy: pick the variable of largest projection, then project its direction out.

P₀ projects on the target space, P_{s+1} is P_s without the direction P_s x of the pick, and the
score of x is ‖P_s x‖² / ‖x‖². Scores never rise as the projector shrinks. `greedy_projse` deflates
the candidates, either by coordinates (column-pivoted Gram-Schmidt) or by a kernel matrix whose
columns are computed on demand (pivoted Cholesky). Both are equivalent: K = G Gᵀ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from streamsel._kernels.gram_schmidt import deflation_run, pick_greedily_1d, residual_direction
from streamsel.state.base import Floats, VariableState
from streamsel.state.pool.pool import NO_PICKS, TIE_RTOL, ZERO_TOL, Picks
from streamsel.targets.kernels import VariableKernel


def squared_relevance_of_rows(state: VariableState, rows: Mapping[str, Floats]) -> Floats:
    """Return the squared relevance of rows of a table; 1 without a target."""
    if state.space is None:
        # Every variable explains itself in full.
        return np.ones(rows["m2"].size)
    G = state.space.coordinates(rows["m2"], rows["cxy"])
    found: Floats = np.einsum("ij,ij->i", G, G)
    return found


def deflation_of(
    state: VariableState, kernel: VariableKernel
) -> CoordinateDeflation | GramDeflation:
    """Return the variables of a state as candidates.

    Parameters
    ----------
    state
        The variables: their moments suffice with a target; without one they explain each other, by
        their `products`.
    kernel
        The kernel between variables.
    """
    if state.space is not None:
        return CoordinateDeflation(state.coordinates())
    m2 = state.stats().m2

    def gram_column(j: int) -> Floats:
        cosine = state.products(j)
        return kernel.of_cosine(cosine[:, None], m2, m2[j : j + 1], state.n)[:, 0]

    return GramDeflation(len(state.names), gram_column)


# With more picks sorting all scores is faster than repeated maxima.
_SORT_FROM = 64


class Deflation(Protocol):
    """Candidates under a projector that loses one direction per pick."""

    @property
    def size(self) -> int:
        """Number of candidates."""

    @property
    def directions(self) -> int:
        """Number of directions taken out of the projector since the last restart."""

    def restart(self) -> None:
        """Reset the projector to all directions."""

    def run(self, limit: int) -> tuple[list[int], list[float]]:
        """Repeatedly take the best free candidate, the earliest on ties, up to the limit.

        Stops when every candidate has a zero score. Returns the candidates and their
        scores.
        """

    def take(self, j: int) -> float:
        """Take candidate j, project its direction out, and return its score."""


def greedy_projse(
    deflation: Deflation,
    k: int,
    *,
    restart: bool,
    initial_picks: Picks = NO_PICKS,
) -> Picks:
    """Pick up to k candidates.

    Parameters
    ----------
    deflation
        The candidates, none taken yet.
    k
        Maximum number of picks.
    restart
        Whether to start a new round, with the whole projector, over the candidates not yet picked,
        when every candidate has a zero score.
    initial_picks
        The first picks, if known.

    Returns
    -------
    The picks, fewer than k if candidates run out or have zero scores.
    """
    if restart and isinstance(deflation, CoordinateDeflation) and deflation.is_one_dimensional:
        indices, scores = deflation.run_one_per_round(k)
        return Picks(indices, scores, list(range(len(indices))))
    picks = Picks([], [], [])
    this_round = 0
    for j, number in zip(initial_picks.indices[:k], initial_picks.rounds, strict=False):
        if number != this_round:
            deflation.restart()
            this_round = number
        picks.indices.append(j)
        picks.scores.append(deflation.take(j))
        picks.rounds.append(number)
    while len(picks.indices) < k:
        indices, scores = deflation.run(k - len(picks.indices))
        picks.indices.extend(indices)
        picks.scores.extend(scores)
        picks.rounds.extend([this_round] * len(indices))
        if not restart or deflation.directions == 0:
            break
        deflation.restart()
        this_round += 1
    return picks


class CoordinateDeflation:
    """Candidates given by coordinates g, from which picked directions are projected out lazily.

    A score under an earlier projector is an upper bound now, so only candidates
    whose bound reaches the best score are updated (Minoux 1978).

    Parameters
    ----------
    G
        (p, r) coordinates in the target space, of unit length in feature space.
    """

    def __init__(self, G: Floats) -> None:
        p, r = G.shape
        self.size = p
        self._G = G
        # In a space of dimension 1 a round is one pick.
        self.is_one_dimensional = r == 1
        self._whole = np.square(G[:, 0]) if self.is_one_dimensional else np.einsum("ij,ij->i", G, G)
        self._Q = np.empty((r, r))
        self._taken = np.zeros(p, dtype=np.bool_)
        self.directions = 0
        # Score bounds, and the number of directions they account for; made when a round begins.
        self._round: tuple[Floats, NDArray[np.int64]] | None = None

    def restart(self) -> None:
        """Reset the projector to all directions."""
        self.directions = 0
        self._round = None

    def run_one_per_round(self, limit: int) -> tuple[list[int], list[float]]:
        """Take up to the limit, one per round, in a space of dimension 1."""
        limit = min(limit, self.size)
        if limit > _SORT_FROM:
            ranked = _ranked(self._whole, limit)
            if ranked is not None:
                return ranked
        indices, scores = np.empty(limit, dtype=np.int64), np.empty(limit)
        n = pick_greedily_1d(self._whole.copy(), TIE_RTOL, ZERO_TOL, indices, scores)
        return indices[:n].tolist(), scores[:n].tolist()

    def run(self, limit: int) -> tuple[list[int], list[float]]:
        """Repeatedly take the best free candidate, the earliest on ties, up to the limit."""
        limit = min(limit, self.size)
        indices, scores = np.empty(limit, dtype=np.int64), np.empty(limit)
        if self._round is None:
            bound = np.where(self._taken, -1.0, self._whole)
            self._round = bound, np.zeros(self.size, dtype=np.int64)
        state = (self._G, *self._round, self._Q, self.directions)
        n = deflation_run(*state, TIE_RTOL, ZERO_TOL, indices, scores)
        self._taken[indices[:n]] = True
        self.directions += n
        return indices[:n].tolist(), scores[:n].tolist()

    def take(self, j: int) -> float:
        """Take candidate j, project its direction out, and return its score."""
        self._taken[j] = True
        if self._round is not None:
            self._round[0][j] = -1.0
        Q = self._Q
        score = residual_direction(self._G, Q[: self.directions], j, Q[self.directions])
        self.directions += 1
        return float(score)


def _ranked(scores: Floats, limit: int) -> tuple[list[int], list[float]] | None:
    """Return the candidates of highest score and their scores, ties by index.

    None if ties are not transitive, so that the result depends on the order of picks.
    """
    order = np.argsort(-scores)
    sorted_scores = scores[order]
    sorted_scores = sorted_scores[: np.count_nonzero(sorted_scores > ZERO_TOL)]
    ends = np.flatnonzero(
        np.append(
            sorted_scores[1:] < sorted_scores[:-1] * (1.0 - TIE_RTOL), sorted_scores[:1] > 0.0
        )
    )
    starts = np.append(0, ends + 1)[:-1]
    if (sorted_scores[ends] < sorted_scores[starts] * (1.0 - TIE_RTOL)).any():
        return None
    tie_groups = np.repeat(np.arange(ends.size), ends - starts + 1)
    indices = np.sort(tie_groups * scores.size + order[: sorted_scores.size])[:limit] % max(
        1, scores.size
    )
    return indices.tolist(), scores[indices].tolist()


class GramDeflation:
    """Candidates given by a normalised kernel matrix; one column of it is computed per pick.

    Parameters
    ----------
    size
        Number p of candidates.
    gram_column
        j -> (p,) kernel of candidate j with all of them; that with itself is 1.
    """

    def __init__(self, size: int, gram_column: Callable[[int], Floats]) -> None:
        self.size = size
        self._gram_column = gram_column
        self._taken = np.zeros(size, dtype=np.bool_)
        self._scores = np.ones(size)
        # Rows of the pivoted Cholesky factor: coordinates of all candidates in each direction.
        self._T = np.empty((0, size))
        self.directions = 0

    def restart(self) -> None:
        """Reset the projector to all directions."""
        self.directions = 0
        self._scores = np.ones(self.size)

    def run(self, limit: int) -> tuple[list[int], list[float]]:
        """Repeatedly take the best free candidate, the earliest on ties, up to the limit."""
        limit = min(limit, self.size)
        indices: list[int] = []
        scores: list[float] = []
        while len(indices) < limit:
            free = np.where(self._taken, -np.inf, self._scores)
            highest = free.max(initial=-np.inf)
            if highest <= ZERO_TOL:
                break
            indices.append(int(np.argmax(free >= highest * (1.0 - TIE_RTOL))))
            scores.append(self.take(indices[-1]))
        return indices, scores

    def take(self, j: int) -> float:
        """Take candidate j, project its direction out, and return its score."""
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
