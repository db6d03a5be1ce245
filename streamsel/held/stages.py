"""Reading in a circle, until an answer in stages is proven.

 What was let go is remembered by the best score under each stage, since that stage last changed; a
stage under which all columns were seen, or none let go, is proven.
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
# How many columns are scored at once where the plan has just changed.
_NEAR = 64


class Circle(Pool):
    """A pool of at most twice `limit` columns, which reads them in a circle.

    Attributes
    ----------
    room
        How many columns are held before any is let go, at least twice the limit.
    seen
        Columns seen, in all readings; 0 in the first.
    total
        Columns of the source; None in the first reading.
    let_go
        Whether a column was let go that may be selected.
    ceiling
        What no later score of a column that was let go can be above.
    since, lost, floors
        (S,) of the plan's stages: after how many columns it was last changed; the best score under
        it of a column let go since; the best that was let go when the pool was last cut.
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
        # How many columns to score before one of them is likely to change the plan.
        self._reach = _NEAR
        # How many of the pool the plan knows; what the others, behind them, make of the answer.
        self._n_known = 0
        self._latest: Plan | None = None

    @property
    def most_held(self) -> int:
        """How many columns are held at most."""
        return self.room

    def left(self, stats: Stats, places: Places | slice = _ALL) -> Floats:
        """Return what the covariates leave of the sums of squares of columns."""
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
            places = self._gather(chunk, stats, first_arrival, places, noted)
        for piece in pieces(places, chunk.n):
            rest = piece
            while rest.size:
                # Who is held, and what is left to see, may be another after every plan.
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
        places: Places,
        noted: Mapping[str, Floats],
        start: int,
    ) -> int:
        """Look at columns until the next plan is due; return from which on it holds."""
        new = places
        if self.total is not None:
            new = places[~Known.of(self.table).among(first_arrival + places)]
        stop = int(places[-1]) + 1
        if new.size:
            after = self._offer(chunk, stats, first_arrival, new, noted, start)
            if after <= new[-1]:
                stop = after
        # What is scored behind a column that changes the plan is scored again.
        self._reach = 2 * self._reach if stop > places[-1] else _NEAR
        return stop

    def _gather(
        self,
        chunk: Chunk,
        stats: Stats,
        first_arrival: int,
        places: Places,
        noted: Mapping[str, Floats],
    ) -> Places:
        """Keep columns until the pool is full for the first time; return those that are left."""
        room = self.room - len(self.table)
        taken = places[:room]
        self._append(chunk, stats, first_arrival, taken, noted)
        if len(self.table) >= self.room:
            # Nothing was let go before.
            self._replan(0)
            self._cut()
        return places[room:]

    def _offer(
        self,
        chunk: Chunk,
        stats: Stats,
        first_arrival: int,
        places: Places,
        noted: Mapping[str, Floats],
        start: int,
    ) -> int:
        """Score columns under the plan, keep or let go; return from which on for the next plan."""
        plan = self.plan
        assert plan is not None  # noqa: S101
        scores = plan.scores_of(chunk, stats, places, noted)
        counts = self._sought(plan)
        above = self.floors + plan.tolerance
        beats = (scores > plan.bars + plan.tolerance) & counts
        if self.total is not None:
            earlier = (first_arrival + places)[:, None] < plan.holders
            beats |= earlier & (scores >= plan.bars - plan.tolerance) & counts
        beats_one = np.asarray(beats.any(axis=1))
        if self.total is not None:
            beats_one |= plan.copied(chunk, stats, places, first_arrival + places, scores) >= 0
        eligible = ((scores > above) & counts).any(axis=1) | beats_one
        stop, due = self._until_plan(eligible, beats_one)
        gone = scores[:stop][~eligible[:stop]]
        if gone.size:
            self.let_go = True
            self.lost = np.maximum(self.lost, gone.max(axis=0))
            self._lose(stats, places[:stop][~eligible[:stop]])
        kept = places[:stop][eligible[:stop]]
        if kept.size:
            self._append(chunk, stats, first_arrival, kept, noted)
        after = int(places[stop - 1]) + 1
        if due:
            # The last column may beat a stage that is proven with it.
            self._replan(start + after, leading(~counts))
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
            again = [name for j in places.tolist() if (name := chunk.names[j]) in self.slots]
            if again:
                raise unlike_before(f"{again[0]!r} as the name of two columns")
        self._latest = None
        super()._append(chunk, stats, first_arrival, places, noted)

    def _until_plan(self, eligible: Bools, beats: Bools) -> tuple[int, bool]:
        """Return how many columns to take before the next plan, and whether that is then due."""
        stop, due = eligible.size, False
        room = 2 * self.limit - len(self.table)
        found = np.flatnonzero(eligible)
        if found.size >= room:
            stop, due = int(found[room - 1]) + 1, True
        # From the second reading on a wrong plan is not worth following any further.
        if self.total is not None and beats[:stop].any():
            stop, due = int(np.argmax(beats)) + 1, True
        return stop, due

    def _lose(self, stats: Stats, places: Places) -> None:
        rows = {field: array[places] for field, array in stats._asdict().items()}
        bound = self.method._ceiling(self, rows)
        self.ceiling = max(self.ceiling, float(bound.max(initial=LEAST)))

    # Plans

    def _replan(self, seen: int, n_proven: int = 0) -> None:
        """Plan anew with all that is held, after so many columns; so many stages are proven."""
        self._put_in_order()
        plan = self.method._plan(self, self.plan, n_proven)
        self.since, self.lost, self.floors = self._as_planned(plan, seen)
        self.plan, self._planned_at, self._n_known = plan, seen, len(self.table)

    def _put_in_order(self) -> None:
        """Let variables stand in order of arrival, though early ones may be read again late."""
        arrival = self.table["arrival"]
        if (np.diff(arrival) < 0.0).any():
            self.table.keep(np.argsort(arrival))

    def _as_planned(self, plan: Plan, seen: int) -> tuple[Whole, Floats, Floats]:
        """Return since, lost and floors for the stages of a plan made after so many columns."""
        size, before = len(plan.keys), self.plan
        # As long as no column was let go, all were seen under any stage.
        since = np.full(size, seen if self.let_go else 0, dtype=np.int64)
        lost, floors = np.full(size, LEAST), np.full(size, LEAST)
        for s in range(0 if before is None else min(size, len(before.keys))):
            assert before is not None  # noqa: S101
            if plan.goes_on(before, s, float(self.lost[s])):
                since[s], lost[s], floors[s] = self.since[s], self.lost[s], self.floors[s]
        return since, lost, floors

    def latest(self) -> Plan:
        """Return the answer of all that is held; what is decided about columns does not change."""
        # From the second reading on the plan follows whatever beats it.
        if self.plan is not None and (self.total is not None or len(self.table) == self._n_known):
            return self.plan
        if self._latest is None:
            self._latest = self.method._plan(self, self.plan, 0)
        return self._latest

    def answer(self) -> Picks:
        """Return the answer of all that is held, as places in the pool as it is now."""
        plan = self.latest()
        picks, slots = plan.picks, self.slots
        return picks._replace(places=[slots[plan.names[j]] for j in picks.places])

    def _cut(self) -> None:
        """Keep who must stay, and then the r-th best under every unproven stage, r = 1, 2, ..."""
        plan = self.plan
        assert plan is not None  # noqa: S101
        scores = plan.scores()
        stays = np.zeros(len(self.table), dtype=np.bool_)
        stays[plan.must_stay] = True
        stays = in_turn(scores[:, self._sought(plan)], stays, self.limit)
        gone = np.flatnonzero(~stays)
        if gone.size:
            self.let_go = True
            self.floors = np.maximum(scores[gone].max(axis=0), LEAST)
            self.lost = np.maximum(self.lost, self.floors)
            self._lose(self.stats(), gone)
            self.table.keep(np.flatnonzero(stays))
            self._n_known = len(self.table)

    # What is proven

    def _proven_by(self, plan: Plan) -> Bools:
        """Return which stages of a plan are proven, (S,)."""
        since, lost = self.since, self.lost
        if plan is not self.plan:
            since, lost, _ = self._as_planned(plan, 1)
        in_full = since == 0 if self.total is None else self.seen - since >= self.total
        proven = self._proven_if(plan, in_full, lost)
        return np.logical_and.accumulate(proven) if plan.ordered else proven

    def _proven_if(self, plan: Plan, full: Bools, lost: Floats) -> Bools:
        """Return which stages are proven, if under some all columns were seen, (S,) all."""
        at = plan.bounding(full)
        bound = np.maximum(lost, np.where(at >= 0, lost[at], self.ceiling))
        proven: Bools = full | (plan.bars - plan.tolerance > bound)
        return proven

    def _sought(self, plan: Plan) -> Bools:
        """Return for which stages columns are still looked for, (S,); all in the first reading."""
        if self.total is None:
            return np.ones(len(plan.keys), dtype=np.bool_)
        return ~self._proven_by(plan)

    @property
    def until_settled(self) -> float:
        """Return how many columns must be seen for the whole answer to be proven as it is."""
        if self.total is None or self.plan is None:
            return np.inf
        plan, ends = self.plan, self.since + self.total
        times = np.unique(np.append(ends[ends > self._planned_at], self._planned_at))

        def open_at(time: np.int64) -> bool:
            return not self._proven_if(plan, ends <= time, self.lost).all()

        # The more columns were seen, the more is proven.
        first = bisect_left(times, True, key=lambda time: not open_at(time))
        return float(times[first])

    def proven(self) -> Bools:
        """Return which stages are proven, (S,); none before there is a plan."""
        return np.zeros(0, dtype=np.bool_) if self.plan is None else self._proven_by(self.plan)

    def certified(self, picks: Picks) -> int:
        """Return how many leading picks no column that was let go can have changed."""
        if not self.let_go:
            return len(picks.places)
        plan = self.latest()
        return min(len(picks.places), plan.n_picked(leading(self._proven_by(plan))))

    def begin_again(self, total: int) -> None:
        """Go on with the next reading of the same columns."""
        self._changes()
        if self.total is None:
            self._replan(total)
            self.total = self.seen = total

    @property
    def settled(self) -> bool:
        """Whether the whole answer is proven."""
        return not self.let_go or bool(self.proven().all())


def in_turn(scores: Floats, stays: Bools, limit: int) -> Bools:
    """Return who stays: who must, and the r-th best under every stage, r = 1, 2, ...

    Parameters
    ----------
    scores
        (p, S) in order of arrival; not finite for who is out of the running.
    stays
        (p,) who must stay.
    limit
        How many stay, if not more must.
    """
    order, finite = _ranked(scores)
    turns = order[finite & ~stays[order]]
    # Each by its first turn: where a place comes again the last assignment holds.
    turn = np.full(len(stays), turns.size)
    turn[turns[::-1]] = np.arange(turns.size)[::-1]
    room = max(0, limit - int(stays.sum()))
    chosen = np.argsort(turn)[:room]
    stays = stays.copy()
    stays[chosen[turn[chosen] < turns.size]] = True
    return stays


def _ranked(scores: Floats) -> tuple[Places, Bools]:
    """Return who is r-th best under every stage, (p, S) both, and whether the score is finite.

    Scores are compared as float32, so that what differs by rounding is equal, and the first goes
    first.
    """
    with np.errstate(over="ignore"):
        bits = np.ascontiguousarray(-scores.T, dtype=np.float32).view(np.uint32)
    # An order of bits that is that of the numbers.
    bits = np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31)).astype(np.uint64)
    ranked = np.sort((bits << np.uint64(32)) | np.arange(len(scores), dtype=np.uint64), axis=1)
    order = (ranked & np.uint64(0xFFFFFFFF)).astype(np.intp).T
    return order, np.isfinite(np.take_along_axis(scores, order, axis=0))
