"""ProjSe's candidate solutions in stages: the picks, and scores of other columns under each.

 A round that did not use the whole rank ends with one more stage, which requires all remaining
 scores
to be zero. So does a solution with fewer picks than wanted, with the whole projector, if restarts
are allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel._jit import cholesky, deflate
from streamsel.columns import Chunk, Stats
from streamsel.held.correlations import correlations
from streamsel.held.part import Floats, Places
from streamsel.held.plan import Plan, origin_of
from streamsel.held.pool import SPENT, TIE, Picks
from streamsel.held.sieved import SievedPool, SievedSamples
from streamsel.selection._greedy import CoordinateDeflation, greedy
from streamsel.selection._sifting import room_for
from streamsel.target.kernels import VariableKernel

Bools = NDArray[np.bool_]

# Scores are differences: the error of a small score is relative to this times its root.
_ROUGH = 1e-2


class CoveringPlan(Plan):
    """Picks of ProjSe in a pool.

    Parameters
    ----------
    pool
        The pool.
    picks
        The picks.
    k, restart
        Number of picks wanted, and whether further rounds are allowed.
    rank
        Maximum number of picks per round.

    Attributes
    ----------
    steps, begins
        (S,) index of the pick at each stage, -1 for none, and whether a round begins there.
    """

    def __init__(self, pool: SievedPool, picks: Picks, k: int, rank: int, *, restart: bool) -> None:
        self.names, self.arrivals = list(pool.names), pool.table["arrival"].copy()
        self.picks = picks
        steps, begins = _stages(picks.rounds, k, rank, restart=restart)
        self.steps, self.begins = np.array(steps, dtype=np.int64), np.array(begins, dtype=np.bool_)
        self._round = np.maximum.accumulate(np.where(begins, np.arange(len(steps)), 0))
        self.keys = []
        for step, begin in zip(steps, begins, strict=True):
            if begin:
                selected: tuple[Any, ...] = ()
            self.keys.append(selected)
            if step >= 0:
                selected = (*selected, self.names[picks.places[step]])
        arrival = pool.table["arrival"][picks.places].astype(np.int64)
        has_pick = self.steps >= 0
        self.bars: Floats = np.full(len(steps), SPENT)
        self.bars[has_pick] = picks.scores
        self.holders = np.full(len(steps), -1, dtype=np.int64)
        self.holders[has_pick] = arrival
        self.tolerance: Floats = TIE * np.maximum(self.bars, _ROUGH * np.sqrt(self.bars))
        self.must_stay = np.array(picks.places, dtype=np.intp)

    def bounding(self, full: Bools) -> Places:
        """Return for each stage the complete stage whose scores bound its own, (S,); -1 if none.

        Scores fall within a round, and are nowhere above those of the first stage.
        """
        latest = np.maximum.accumulate(np.where(full, np.arange(full.size), -1))
        return np.where(latest >= self._round, latest, 0 if full[0] else -1)

    def goes_on(self, before: Plan, s: int, lost: float) -> bool:
        """Return whether results under a stage of the previous solution carry over to this one.

        If an earlier round has taken the incumbent, a discarded variable may beat the new one.
        """
        if not super().goes_on(before, s, lost):
            return False
        threshold, previous = self.bars[s], before.bars[s]
        is_lower = threshold < previous or (
            threshold == previous and self.holders[s] > before.holders[s]
        )
        return not is_lower or threshold - self.tolerance[s] > lost

    def n_picked(self, n_stages: int) -> int:
        """Return the number of picks in the leading stages."""
        return int(np.count_nonzero(self.steps[:n_stages] >= 0))

    def to_state(self) -> dict[str, Any]:
        """Return the picks by name."""
        names = [self.names[j] for j in self.picks.places]
        return {"picks": names, "scores": self.picks.scores, "rounds": self.picks.rounds}

    def _without_picked(self, scores: Floats) -> Floats:
        for s, step in enumerate(self.steps.tolist()):
            if step >= 0:
                scores[self.picks.places[step], s + 1 :] = -np.inf
        return scores


def _stages(rounds: list[int], k: int, rank: int, *, restart: bool) -> tuple[list[int], list[bool]]:
    """Return the pick at every stage, -1 for none, and whether a round begins there."""
    steps: list[int] = []
    begins: list[bool] = []
    in_round = rank
    for i, number in enumerate(rounds):
        is_new = i == 0 or number != rounds[i - 1]
        if is_new and in_round < rank:
            steps.append(-1)
            begins.append(False)
        in_round = 1 if is_new else in_round + 1
        steps.append(i)
        begins.append(is_new)
    if len(rounds) < k:
        if in_round < rank:
            steps.append(-1)
            begins.append(False)
        if restart or not rounds:
            steps.append(-1)
            begins.append(True)
    return steps, begins


def restored(pool: SievedPool, state: dict[str, Any]) -> Picks:
    """Return the picks in a state of `CoveringPlan.to_state`, as indices of the pool."""
    return Picks([pool.slots[name] for name in state["picks"]], state["scores"], state["rounds"])


def _certified_picks(pool: SievedPool, before: CoveringPlan | None, n_proven: int) -> Picks:
    """Return the certified picks of the previous solution, as indices of the pool."""
    if before is None:
        return Picks([], [], [])
    picks, slots = before.picks.first(before.n_picked(n_proven)), pool.slots
    return picks._replace(places=[slots[before.names[j]] for j in picks.places])


class CoordinatePlan(CoveringPlan):
    """Picks among variables with coordinates in a target space.

    Parameters
    ----------
    pool, k, restart
        As in `CoveringPlan`.
    before, n_proven
        The previous solution, and the number of its leading stages that are certified.
    given
        The picks, if known.
    """

    def __init__(
        self,
        pool: SievedPool,
        k: int,
        before: CoveringPlan | None = None,
        n_proven: int = 0,
        given: Picks | None = None,
        *,
        restart: bool,
    ) -> None:
        assert pool.space is not None  # noqa: S101
        self._space = pool.space
        self._G = pool.coordinates()
        if given is None:
            certified = _certified_picks(pool, before, n_proven)
            given = greedy(CoordinateDeflation(self._G), k, restart=restart, forced=certified)
        super().__init__(pool, given, k, self._space.rank, restart=restart)
        self._Q = np.empty((len(given.places), self._space.rank))
        first = 0
        for i, j in enumerate(given.places):
            first = i if i and given.rounds[i] != given.rounds[i - 1] else first
            deflate.direction(self._G, self._Q[first:i], j, self._Q[i])

    def _scored(self, G: Floats) -> Floats:
        scores = np.empty((len(G), len(self.keys)))
        deflate.fold(G, self._Q, self.steps, self.begins, scores)
        return scores

    def scores(self) -> Floats:
        """Return the (p, S) scores of the pool's variables; -inf for those already picked."""
        return self._without_picked(self._scored(self._G))

    def scores_of(
        self, chunk: Chunk, stats: Stats, places: Places, noted: Mapping[str, Floats]
    ) -> Floats:
        """Return the (b, S) scores of columns of a chunk."""
        del chunk, noted
        return self._scored(self._space.coordinates(stats.m2[places], stats.cxy[places]))


class KernelPlan(CoveringPlan):
    """Picks among variables that explain each other.

    Parameters
    ----------
    pool, k, restart
        As in `CoveringPlan`.
    kernel
        The kernel between variables.
    before, given
        As in `CoordinatePlan`.
    """

    def __init__(
        self,
        pool: SievedSamples,
        k: int,
        kernel: VariableKernel,
        before: KernelPlan | None = None,
        given: Picks | None = None,
        *,
        restart: bool,
    ) -> None:
        m2, unit = pool.stats().m2, pool.table["unit"]
        names = list(pool.names)
        origin = origin_of(pool.table["arrival"], before)
        added = np.flatnonzero(origin < 0)
        # (p, p) kernels between all variables of the pool.
        self.gram: Floats = np.empty((len(names), len(names)))
        if before is not None:
            # Rows and columns of new variables are overwritten below.
            self.gram = before.gram.take(origin, axis=0, mode="clip").take(
                origin, axis=1, mode="clip"
            )
        self.gram[added] = kernel.of_cosine(unit[added] @ unit.T, m2[added], m2, pool.n)
        self.gram[:, added] = self.gram[added].T
        self._kernel = kernel
        self._as_picked = room_for(k, k)
        if given is None:
            given = self._picked(k, before, pool, origin < 0, restart=restart)
        super().__init__(pool, given, k, int(np.iinfo(np.int64).max), restart=restart)
        indices = np.array(given.places, dtype=np.intp)
        self._V, self._m2 = unit[indices], m2[indices]
        self._L = np.zeros((indices.size, indices.size))
        rounds = np.array(given.rounds)
        for number in np.unique(rounds):
            first, last = np.flatnonzero(rounds == number)[[0, -1]]
            part = slice(first, last + 1)
            cholesky.factor(self.gram[np.ix_(indices[part], indices[part])], self._L[part, part])

    def _picked(
        self,
        k: int,
        before: KernelPlan | None,
        pool: SievedSamples,
        is_new: Bools,
        *,
        restart: bool,
    ) -> Picks:
        """Pick again from the first pick that a new variable may beat."""
        previous, n_previous = room_for(k, k), 0
        if before is not None:
            previous, n_previous = before._as_picked, len(before.picks.places)
            indices = previous[0].copy()
            for i, j in enumerate(before.picks.places):
                indices[i] = pool.slots[before.names[j]]
            previous = indices, *previous[1:]
        current = self._as_picked
        taken = np.zeros(is_new.size, dtype=np.bool_)
        factor = np.empty(k, dtype=np.int64), np.empty((k, k))
        n = cholesky.refill(
            self.gram, taken, is_new.copy(), *factor, previous, n_previous, current, TIE, SPENT
        )
        indices, scores, rounds = (array[:n].tolist() for array in current[:3])
        return Picks(indices, scores, rounds).first(n if restart else rounds.count(0))

    def _scored(self, K: Floats) -> Floats:
        scores = np.empty((len(K), len(self.keys)))
        cholesky.fold(K, self._L, self.steps, self.begins, scores)
        return scores

    def scores(self) -> Floats:
        """Return the (p, S) scores of the pool's variables; -inf for those already picked."""
        return self._without_picked(self._scored(self.gram[:, self.picks.places]))

    def scores_of(
        self, chunk: Chunk, stats: Stats, places: Places, noted: Mapping[str, Floats]
    ) -> Floats:
        """Return the (b, S) scores of columns of a chunk."""
        del noted
        m2 = stats.m2[places]
        cosine = correlations(chunk, stats, places, self._V, m2)
        return self._scored(self._kernel.of_cosine(cosine, m2, self._m2, chunk.n))
