"""Result of a pass over some of the columns, under every stage of a fixed candidate solution.

In a greedy selection, the pass decides the first stage that is not proven: the best column there is
kept. So every pass over all columns proves at least one more stage.
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

# Scores within this many tolerances of the best may be equal to it.
_TIE_WINDOW = 4.0
# Equal scores within this fraction of the window count as one number.
_GRAINS = 256
# Relative rounding of a score near 0.
_SMALL_RTOL, _TINY = 1e-2, np.finfo(float).tiny


class Asked(NamedTuple):
    """Request for a pass: which columns to keep of those that are not in the pool.

    Parameters
    ----------
    sought
        (S,) the stages for which columns are sought.
    bars, tolerance, holders
        (S,) as in `Plan`.
    floors
        (S,) a column that beats no incumbent is kept if its score exceeds one of these.
    limit
        Number of columns to keep, unless more are required.
    """

    sought: Bools
    bars: Floats
    tolerance: Floats
    holders: Whole
    floors: Floats
    limit: int

    @classmethod
    def under(cls, plan: Plan, sought: Bools, floors: Floats, limit: int) -> Asked:
        """Return the request for a candidate solution."""
        return cls(sought, plan.bars, plan.tolerance, plan.holders, floors, limit)

    def beats(self, scores: Floats, arrivals: Places) -> Bools:
        """Return under which stages columns beat the incumbent, (b, S)."""
        earlier = (arrivals[:, None] < self.holders) & (scores >= self.bars - self.tolerance)
        beats = ((scores > self.bars + self.tolerance) | earlier) & self.sought
        return np.asarray(beats)

    def eligible(self, scores: Floats, arrivals: Places) -> Bools:
        """Return which columns are worth keeping, (b,)."""
        above = (scores > self.floors + self.tolerance) & self.sought
        return np.asarray((above | self.beats(scores, arrivals)).any(axis=1))

    def decisive(self, scored: Scored, arrivals: Places) -> Bools:
        """Return which columns must be kept, (p,): the best of every stage, first among equals.

        If equal scores are only known up to rounding, a few are kept: each exceeds all before it.
        """
        scores = scored.scores
        is_required = np.zeros(len(scores), dtype=np.bool_)
        beats = self.beats(scores, arrivals)
        for s in np.flatnonzero(beats.any(axis=0)).tolist():
            indices = np.flatnonzero(beats[:, s])
            values = scores[indices, s]
            highest = float(values.max())
            size = max(abs(highest), _SMALL_RTOL * np.sqrt(abs(highest)))
            window = _TIE_WINDOW * max(float(self.tolerance[s]), TIE * size, _TINY)
            ties = indices[values >= highest - window]
            # Keep the first column of each level.
            level = np.maximum.accumulate(np.floor((scores[ties, s] - highest) * _GRAINS / window))
            is_required[ties[np.diff(level, prepend=-np.inf) > 0.0]] = True
            is_required[ties[np.argmax(scores[ties, s])]] = True
        incumbents, first = np.unique(scored.copied, return_index=True)
        is_required[first[incumbents >= 0]] = True
        return is_required


class Scored(NamedTuple):
    """Scores of columns.

    Parameters
    ----------
    scores
        (b, S) under every stage.
    bounds
        (b,) upper bounds of all their later scores.
    copied
        (b,) arrival of the incumbent that each duplicates and precedes, as in `Plan.copied`.
    """

    scores: Floats
    bounds: Floats
    copied: Whole

    def some(self, places: Places | Bools) -> Scored:
        """Return the scores of a subset."""
        return Scored(self.scores[places], self.bounds[places], self.copied[places])

    def with_(self, other: Scored) -> Scored:
        """Return these scores followed by others."""
        scores = np.concatenate([self.scores, other.scores])
        bounds = np.append(self.bounds, other.bounds)
        return Scored(scores, bounds, np.append(self.copied, other.copied))


class StageFound:
    """The best columns of a part of a pass, and the best scores of all others.

    Parameters
    ----------
    asked
        The request.
    first
        Number of columns before the part.
    fields
        The table fields of a column, and the shape of each.

    Attributes
    ----------
    n_read
        Number of columns read.
    names, rows
        The kept columns, in order of arrival, and their rows of a pool's table.
    lost
        (S,) the best score of a discarded column under every stage.
    ceiling
        Upper bound of all later scores of discarded columns.
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
        """Record discarded columns."""
        if scored.bounds.size:
            self.lost = np.maximum(self.lost, scored.scores.max(axis=0))
            self.ceiling = max(self.ceiling, float(scored.bounds.max()))

    def keep(self, names: Sequence[Hashable], rows: Mapping[str, Floats], scored: Scored) -> None:
        """Append columns to the kept ones, and cut back if there are too many."""
        self.names += names
        self.rows = {
            field: np.concatenate([mine, rows[field]]) for field, mine in self.rows.items()
        }
        self._scored = self._scored.with_(scored)
        if len(self.names) >= 2 * self.asked.limit:
            self.cut_back()

    def cut_back(self) -> None:
        """Cut back to the limit, but keep all required columns."""
        asked, arrivals = self.asked, self.rows["arrival"].astype(np.intp)
        if len(self.names) <= asked.limit:
            return
        is_required = asked.decisive(self._scored, arrivals)
        is_kept = in_turn(self._scored.scores[:, asked.sought], is_required, asked.limit)
        self.lose(self._scored.some(~is_kept))
        self.names = [name for name, flag in zip(self.names, is_kept.tolist(), strict=True) if flag]
        self.rows = {field: mine[is_kept] for field, mine in self.rows.items()}
        self._scored = self._scored.some(is_kept)

    def merge(self, other: StageFound) -> None:
        """Add the result of the part that follows directly."""
        stop = self.first + self.n_read
        if other.first != stop:
            raise unlike_before(f"the columns from {other.first} on, after the first {stop}")
        self.n_read += other.n_read
        self.lost = np.maximum(self.lost, other.lost)
        self.ceiling = max(self.ceiling, other.ceiling)
        self.keep(other.names, other.rows, other._scored)
        self.cut_back()
