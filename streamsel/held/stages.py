"""Cyclic passes over the columns, until a staged solution is proven.

For each stage, the state has the best score of a discarded column since that stage last changed. A
stage is proven if it has seen all columns, or if none was discarded.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

import numpy as np

from streamsel.columns import Chunk, Stats
from streamsel.held.correlations import pieces
from streamsel.held.known import Known, unlike_before
from streamsel.held.part import Floats, Places
from streamsel.held.plan import LEAST, Bools, Plan, Planner, Whole, leading
from streamsel.held.pool import Picks, Pool
from streamsel.target.space import TargetSpace

_ALL = slice(None)
# Number of columns scored at once directly after a new solution.
_MIN_BATCH = 64


class Circle(Pool):
    """A pool of at most twice `limit` columns, filled by cyclic passes over the columns.

    Attributes
    ----------
    room
        Number of columns held before any is discarded, at least twice the limit.
    seen
        Columns seen in all passes; 0 in the first.
    total
        Columns of the source; None in the first pass.
    let_go
        Whether a column that may be selected was discarded.
    ceiling
        Upper bound of all later scores of discarded columns.
    since, lost, floors
        (S,) per stage: number of columns seen when it last changed; best score of a column
        discarded since; best score discarded at the last cut.
    """

    method: Planner
    plan: Plan | None

    def __init__(
        self, space: TargetSpace | None, n: int, limit: int, noted: Sequence[str] = ()
    ) -> None:
        super().__init__(space, n, limit, noted)
        self.limit: int = limit
        self.room = 2 * limit
        self.seen = 0
        self.total: int | None = None
        self.let_go = False
        self.ceiling = LEAST
        self.since: Whole = np.zeros(0, dtype=np.int64)
        self.lost: Floats = np.zeros(0)
        self.floors: Floats = np.zeros(0)
        self._planned_at = 0
        # Number of columns to score before the solution is likely to change.
        self._reach = _MIN_BATCH
        # Number of pool columns that the solution accounts for, and a solution with all of them.
        self._n_known = 0
        self._latest: Plan | None = None

    @property
    def most_held(self) -> int:
        """The maximum number of variables at any time."""
        return self.room

    def left(self, stats: Stats, places: Places | slice = _ALL) -> Floats:
        """Return the sums of squares of columns after adjusting for the covariates."""
        m2 = stats.m2[places]
        return m2 if self._space is None else self._space.left(m2, stats.cxy[places])

    # Learning

    def admit(
        self,
        chunk: Chunk,
        stats: Stats,
        first_arrival: int,
        places: Places | None = None,
        noted: Mapping[str, Floats] = {},
    ) -> None:
        """Learn the columns of a chunk, in order, as `Pool` does."""
        start = first_arrival if self.total is None else self.seen
        if places is None:
            places = np.flatnonzero(self.left(stats) > 0.0)
        if places.size or self.total is not None:
            self._changes()
        if self.total is not None:
            Known.of(self.table).expect(chunk, stats, first_arrival)
        while self.plan is None and places.size:
            places = self._fill_first(chunk, stats, first_arrival, places, noted)
        for piece in pieces(places, chunk.n):
            rest = piece
            while rest.size:
                # A new solution changes the pool and the columns left to see.
                new = rest[: self._reach]
                new = new[new < self.until_settled - start]
                if not new.size:
                    break
                stop = self._look_at(chunk, stats, first_arrival, new, noted, start)
                rest = rest[np.searchsorted(rest, stop) :]
        if self.total is not None:
            self.seen = int(min(start + stats.m2.size, self.until_settled))

    def _look_at(
        self,
        chunk: Chunk,
        stats: Stats,
        first_arrival: int,
        indices: Places,
        noted: Mapping[str, Floats],
        start: int,
    ) -> int:
        """Score columns until the solution changes; return the index where that happens."""
        new = indices
        if self.total is not None:
            new = indices[~Known.of(self.table).among(first_arrival + indices)]
        stop = int(indices[-1]) + 1
        if new.size:
            after = self._score_and_keep(chunk, stats, first_arrival, new, noted, start)
            if after <= new[-1]:
                stop = after
        # Columns after one that changes the solution are scored again.
        self._reach = 2 * self._reach if stop > indices[-1] else _MIN_BATCH
        return stop

    def _fill_first(
        self,
        chunk: Chunk,
        stats: Stats,
        first_arrival: int,
        indices: Places,
        noted: Mapping[str, Floats],
    ) -> Places:
        """Keep columns until the pool is full for the first time; return the rest."""
        room = self.room - len(self.table)
        taken = indices[:room]
        self._append(chunk, stats, first_arrival, taken, noted)
        if len(self.table) >= self.room:
            # Nothing was discarded before.
            self._replan(0)
            self._cut()
        return indices[room:]

    def _score_and_keep(
        self,
        chunk: Chunk,
        stats: Stats,
        first_arrival: int,
        indices: Places,
        noted: Mapping[str, Floats],
        start: int,
    ) -> int:
        """Score columns, keep or discard each; return the index where the solution changes."""
        plan = self.plan
        assert plan is not None  # noqa: S101
        scores = plan.scores_of(chunk, stats, indices, noted)
        sought = self._sought(plan)
        above = self.floors + plan.tolerance
        beats = (scores > plan.bars + plan.tolerance) & sought
        if self.total is not None:
            earlier = (first_arrival + indices)[:, None] < plan.holders
            beats |= earlier & (scores >= plan.bars - plan.tolerance) & sought
        beats_any = np.asarray(beats.any(axis=1))
        if self.total is not None:
            beats_any |= plan.copied(chunk, stats, indices, first_arrival + indices, scores) >= 0
        eligible = ((scores > above) & sought).any(axis=1) | beats_any
        stop, is_due = self._until_solve(eligible, beats_any)
        discarded = scores[:stop][~eligible[:stop]]
        if discarded.size:
            self.let_go = True
            self.lost = np.maximum(self.lost, discarded.max(axis=0))
            self._lose(stats, indices[:stop][~eligible[:stop]])
        kept = indices[:stop][eligible[:stop]]
        if kept.size:
            self._append(chunk, stats, first_arrival, kept, noted)
        after = int(indices[stop - 1]) + 1
        if is_due:
            # The last column may beat a stage that was just proven with it.
            self._replan(start + after, leading(~sought))
            if len(self.table) >= 2 * self.limit:
                self._cut()
        return after

    def _append(
        self,
        chunk: Chunk,
        stats: Stats,
        first_arrival: int,
        places: Places | None,
        noted: Mapping[str, Floats],
    ) -> None:
        if self.total is not None and places is not None:
            repeated = [name for j in places.tolist() if (name := chunk.names[j]) in self.slots]
            if repeated:
                raise unlike_before(f"{repeated[0]!r} as the name of two columns")
        self._latest = None
        super()._append(chunk, stats, first_arrival, places, noted)

    def _until_solve(self, eligible: Bools, beats: Bools) -> tuple[int, bool]:
        """Return how many columns to take before solving again, and whether that is then due."""
        stop, is_due = eligible.size, False
        room = 2 * self.limit - len(self.table)
        indices = np.flatnonzero(eligible)
        if indices.size >= room:
            stop, is_due = int(indices[room - 1]) + 1, True
        # From the second pass on, a solution known to be wrong is replaced at once.
        if self.total is not None and beats[:stop].any():
            stop, is_due = int(np.argmax(beats)) + 1, True
        return stop, is_due

    def _lose(self, stats: Stats, places: Places) -> None:
        rows = {field: array[places] for field, array in stats._asdict().items()}
        bound = self.method._ceiling(self, rows)
        self.ceiling = max(self.ceiling, float(bound.max(initial=LEAST)))

    # Candidate solutions

    def _replan(self, seen: int, n_proven: int = 0) -> None:
        """Solve again with all columns in the pool; `n_proven` stages are proven."""
        self._put_in_order()
        plan = self.method._plan(self, self.plan, n_proven)
        self.since, self.lost, self.floors = self._as_planned(plan, seen)
        self.plan, self._planned_at, self._n_known = plan, seen, len(self.table)

    def _put_in_order(self) -> None:
        """Sort the variables by arrival: an early one may be added late in a later pass."""
        arrival = self.table["arrival"]
        if (np.diff(arrival) < 0.0).any():
            self.table.keep(np.argsort(arrival))

    def _as_planned(self, plan: Plan, seen: int) -> tuple[Whole, Floats, Floats]:
        """Return since, lost and floors for the stages of a solution made after `seen` columns."""
        size, before = len(plan.keys), self.plan
        # If no column was discarded, every stage has seen all of them.
        since = np.full(size, seen if self.let_go else 0, dtype=np.int64)
        lost, floors = np.full(size, LEAST), np.full(size, LEAST)
        for s in range(0 if before is None else min(size, len(before.keys))):
            assert before is not None  # noqa: S101
            if plan.goes_on(before, s, float(self.lost[s])):
                since[s], lost[s], floors[s] = self.since[s], self.lost[s], self.floors[s]
        return since, lost, floors

    def latest(self) -> Plan:
        """Return a solution with all columns in the pool; decisions about columns do not change."""
        # From the second pass on, the solution is updated by every column that beats it.
        if self.plan is not None and (self.total is not None or len(self.table) == self._n_known):
            return self.plan
        if self._latest is None:
            self._latest = self.method._plan(self, self.plan, 0)
        return self._latest

    def answer(self) -> Picks:
        """Return the picks with all columns in the pool, as current indices."""
        plan = self.latest()
        picks, slots = plan.picks, self.slots
        return picks._replace(places=[slots[plan.names[j]] for j in picks.places])

    def _cut(self) -> None:
        """Keep the pinned columns, then the r-th best of every unproven stage, r = 1, 2, ..."""
        plan = self.plan
        assert plan is not None  # noqa: S101
        scores = plan.scores()
        is_kept = np.zeros(len(self.table), dtype=np.bool_)
        is_kept[plan.must_stay] = True
        is_kept = in_turn(scores[:, self._sought(plan)], is_kept, self.limit)
        discarded = np.flatnonzero(~is_kept)
        if discarded.size:
            self.let_go = True
            self.floors = np.maximum(scores[discarded].max(axis=0), LEAST)
            self.lost = np.maximum(self.lost, self.floors)
            self._lose(self.stats(), discarded)
            self.table.keep(np.flatnonzero(is_kept))
            self._n_known = len(self.table)

    # Proofs

    def _proven_by(self, plan: Plan) -> Bools:
        """Return which stages of a solution are proven, (S,)."""
        since, lost = self.since, self.lost
        if plan is not self.plan:
            since, lost, _ = self._as_planned(plan, 1)
        in_full = since == 0 if self.total is None else self.seen - since >= self.total
        proven = self._proven_if(plan, in_full, lost)
        return np.logical_and.accumulate(proven) if plan.ordered else proven

    def _proven_if(self, plan: Plan, full: Bools, lost: Floats) -> Bools:
        """Return which stages are proven, (S,), if those in `full` have seen all columns."""
        bounding = plan.bounding(full)
        bound = np.maximum(lost, np.where(bounding >= 0, lost[bounding], self.ceiling))
        proven: Bools = full | (plan.bars - plan.tolerance > bound)
        return proven

    def _sought(self, plan: Plan) -> Bools:
        """Return the stages for which columns are still sought, (S,); all in the first pass."""
        if self.total is None:
            return np.ones(len(plan.keys), dtype=np.bool_)
        return ~self._proven_by(plan)

    @property
    def until_settled(self) -> float:
        """Return the number of columns that must be seen to prove the whole answer."""
        if self.total is None or self.plan is None:
            return np.inf
        plan, ends = self.plan, self.since + self.total
        times = np.unique(np.append(ends[ends > self._planned_at], self._planned_at))

        def is_open_at(time: np.int64) -> bool:
            return not self._proven_if(plan, ends <= time, self.lost).all()

        # The set of proven stages only grows with the number of columns.
        first = bisect_left(times, True, key=lambda time: not is_open_at(time))
        return float(times[first])

    def proven(self) -> Bools:
        """Return which stages are proven, (S,); none before the first solution."""
        return np.zeros(0, dtype=np.bool_) if self.plan is None else self._proven_by(self.plan)

    def certified(self, picks: Picks) -> int:
        """Return how many leading picks no discarded column can have changed."""
        if not self.let_go:
            return len(picks.places)
        plan = self.latest()
        return min(len(picks.places), plan.n_picked(leading(self._proven_by(plan))))

    def begin_again(self, total: int) -> None:
        """Start the next pass over the same columns."""
        self._changes()
        if self.total is None:
            self._replan(total)
            self.total = self.seen = total

    @property
    def settled(self) -> bool:
        """Whether the whole answer is proven."""
        return not self.let_go or bool(self.proven().all())


def in_turn(scores: Floats, stays: Bools, limit: int) -> Bools:
    """Return which columns to keep: the required ones, then the r-th best of every stage.

    r = 1, 2, ..., until the limit is reached.

    Parameters
    ----------
    scores
        (p, S) in order of arrival; not finite for ineligible columns.
    stays
        (p,) columns that must be kept.
    limit
        Number of columns to keep, unless more are required.
    """
    order, finite = _ranked(scores)
    turns = order[finite & ~stays[order]]
    # Each column by its first turn: the last assignment to an index wins.
    turn = np.full(len(stays), turns.size)
    turn[turns[::-1]] = np.arange(turns.size)[::-1]
    room = max(0, limit - int(stays.sum()))
    added = np.argsort(turn)[:room]
    stays = stays.copy()
    stays[added[turn[added] < turns.size]] = True
    return stays


def _ranked(scores: Floats) -> tuple[Places, Bools]:
    """Return the r-th best column of every stage, (p, S), and whether its score is finite, (p, S).

    Scores are compared as float32, so that scores differing by rounding are equal, and the earlier
    column comes first.
    """
    with np.errstate(over="ignore"):
        bits = np.ascontiguousarray(-scores.T, dtype=np.float32).view(np.uint32)
    # Map the bits so that they sort as the numbers do.
    bits = np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31)).astype(np.uint64)
    ranked = np.sort((bits << np.uint64(32)) | np.arange(len(scores), dtype=np.uint64), axis=1)
    order = (ranked & np.uint64(0xFFFFFFFF)).astype(np.intp).T
    return order, np.isfinite(np.take_along_axis(scores, order, axis=0))
