"""What a reading of some of the columns found, under every stage of a plan that does not change.

 Of a greedy's stage the first one not proven is decided by it: who is best there is among those
kept. So every reading of all columns proves one stage more at least.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from streamsel.held.known import unlike_before
from streamsel.held.part import Floats, Places
from streamsel.held.plan import LEAST, Bools, Plan, Whole
from streamsel.held.pool import TIE
from streamsel.held.stages import in_turn

# Scores that are at most so many tolerances below the best may be equal to it.
_NEAR = 4.0
# Of equal scores those that differ by less than this part of that are the same number.
_GRAINS = 256
# Of next to nothing more is rounding.
_ROUGH, _TINY = 1e-2, np.finfo(float).tiny


class Asked(NamedTuple):
    """What is asked of the columns that are not held.

    Parameters
    ----------
    sought
        (S,) the stages for which columns are looked for.
    bars, tolerance, holders
        (S,) as the plan has them.
    floors
        (S,) a column that beats nobody is kept if its score is above one of these.
    limit
        How many columns are kept, if not more must be.
    """

    sought: Bools
    bars: Floats
    tolerance: Floats
    holders: Whole
    floors: Floats
    limit: int

    @classmethod
    def under(cls, plan: Plan, sought: Bools, floors: Floats, limit: int) -> Asked:
        """Return what is asked under a plan."""
        return cls(sought, plan.bars, plan.tolerance, plan.holders, floors, limit)

    def beats(self, scores: Floats, arrivals: Places) -> Bools:
        """Return under which stages columns beat who stands there, (b, S)."""
        earlier = (arrivals[:, None] < self.holders) & (scores >= self.bars - self.tolerance)
        beats = ((scores > self.bars + self.tolerance) | earlier) & self.sought
        return np.asarray(beats)

    def eligible(self, scores: Floats, arrivals: Places) -> Bools:
        """Return which columns are worth keeping, (b,)."""
        above = (scores > self.floors + self.tolerance) & self.sought
        return np.asarray((above | self.beats(scores, arrivals)).any(axis=1))

    def decisive(self, scored: Scored, arrivals: Places) -> Bools:
        """Return who must be kept, (p,): the best under every stage, and the first of its equals.

        Where equal scores are known by rounding only, a few of them: each is above all before it.
        """
        scores = scored.scores
        must = np.zeros(len(scores), dtype=np.bool_)
        beats = self.beats(scores, arrivals)
        for s in np.flatnonzero(beats.any(axis=0)).tolist():
            places = np.flatnonzero(beats[:, s])
            found = scores[places, s]
            highest = float(found.max())
            size = max(abs(highest), _ROUGH * np.sqrt(abs(highest)))
            window = _NEAR * max(float(self.tolerance[s]), TIE * size, _TINY)
            near = places[found >= highest - window]
            # In steps of a grain, each step by its first.
            grain = np.maximum.accumulate(np.floor((scores[near, s] - highest) * _GRAINS / window))
            must[near[np.diff(grain, prepend=-np.inf) > 0.0]] = True
            must[near[np.argmax(scores[near, s])]] = True
        of_whom, first = np.unique(scored.copied, return_index=True)
        must[first[of_whom >= 0]] = True
        return must


class Scored(NamedTuple):
    """What columns score.

    Parameters
    ----------
    scores
        (b, S) under every stage.
    bounds
        (b,) what no later score of theirs can be above.
    copied
        (b,) whose copies they are that came before, as `Plan.copied` says.
    """

    scores: Floats
    bounds: Floats
    copied: Whole

    def some(self, places: Places | Bools) -> Scored:
        """Return what some of them score."""
        return Scored(self.scores[places], self.bounds[places], self.copied[places])

    def with_(self, other: Scored) -> Scored:
        """Return what these and others behind them score."""
        scores = np.concatenate([self.scores, other.scores])
        bounds = np.append(self.bounds, other.bounds)
        return Scored(scores, bounds, np.append(self.copied, other.copied))


class StageFound:
    """The columns worth keeping of those that were read, and the best scores of all others.

    Parameters
    ----------
    asked
        What is asked.
    first
        How many columns come before those that are read.
    fields
        What is kept of a column, and the shape of each.

    Attributes
    ----------
    n_read
        How many columns were read.
    names, rows
        The columns that are kept, in order of arrival, and what a pool's table keeps of them.
    lost
        (S,) the best score under every stage of a column that is not.
    ceiling
        What no later score of such a column can be above.
    """

    def __init__(self, asked: Asked, first: int, fields: Mapping[str, tuple[int, ...]]) -> None:
        self.asked, self.first, self.n_read = asked, first, 0
        self.names: list[Hashable] = []
        self.rows = {field: np.empty((0, *shape)) for field, shape in fields.items()}
        self.lost: Floats = np.full(asked.bars.size, LEAST)
        self.ceiling = LEAST
        none = np.empty(0)
        self._scored = Scored(np.empty((0, asked.bars.size)), none, none.astype(np.int64))

    def lose(self, scored: Scored) -> None:
        """Note columns that are not kept."""
        if scored.bounds.size:
            self.lost = np.maximum(self.lost, scored.scores.max(axis=0))
            self.ceiling = max(self.ceiling, float(scored.bounds.max()))

    def keep(self, names: Sequence[Hashable], rows: Mapping[str, Floats], scored: Scored) -> None:
        """Keep columns, behind those kept; the best of both where they are too many."""
        self.names += names
        self.rows = {
            field: np.concatenate([mine, rows[field]]) for field, mine in self.rows.items()
        }
        self._scored = self._scored.with_(scored)
        if len(self.names) >= 2 * self.asked.limit:
            self.cut_back()

    def cut_back(self) -> None:
        """Keep no more than are asked for, and who must be kept."""
        asked, arrivals = self.asked, self.rows["arrival"].astype(np.intp)
        if len(self.names) <= asked.limit:
            return
        must = asked.decisive(self._scored, arrivals)
        stays = in_turn(self._scored.scores[:, asked.sought], must, asked.limit)
        self.lose(self._scored.some(~stays))
        self.names = [name for name, stay in zip(self.names, stays.tolist(), strict=True) if stay]
        self.rows = {field: mine[stays] for field, mine in self.rows.items()}
        self._scored = self._scored.some(stays)

    def merge(self, other: StageFound) -> None:
        """Take in what was found in the columns that come right after."""
        stop = self.first + self.n_read
        if other.first != stop:
            raise unlike_before(f"the columns from {other.first} on, after the first {stop}")
        self.n_read += other.n_read
        self.lost = np.maximum(self.lost, other.lost)
        self.ceiling = max(self.ceiling, other.ceiling)
        self.keep(other.names, other.rows, other._scored)
        self.cut_back()
