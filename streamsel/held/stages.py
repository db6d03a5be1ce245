"""A bounded pool of columns whose answer is made exact in a few readings.

 The answer is cut into stages: the picks of a greedy one after another, or the solutions of a path.
What scores under each stage follows from the answer so far, so that it can be speculated, and every
other column scored under all stages at once. What was let go is remembered by the best score under
each stage, since that stage last changed; a stage under which all columns were seen, or none let
go, is proven.
"""

from __future__ import annotations

import abc
from bisect import bisect_left
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from streamsel.columns import Chunk, Stats
from streamsel.held.correlations import pieces
from streamsel.held.part import Floats, Places
from streamsel.held.pool import Method, Picks, Pool, SamplePool
from streamsel.held.table import Table
from streamsel.shapes import expect_shapes
from streamsel.target.space import TargetSpace

Bools = NDArray[np.bool_]
Whole = NDArray[np.int64]

# What nothing is above or below, in a state that can be kept in a file.
MOST = float(np.finfo(np.float64).max)
LEAST = -MOST

_ALL = slice(None)
# How many columns are scored at once where the plan has just changed.
_NEAR = 64


class Plan(abc.ABC):
    """A speculated answer, and what every column scores under each of its stages.

    It is made of what a pool holds at one time, and never changed.

    Attributes
    ----------
    names
        The variables of the pool it was made of, in order.
    picks
        The answer, as places among these.
    keys
        (S,) what the score under each stage depends on.
    bars
        (S,) what a column must beat under each stage: the score of who stands there.
    holders
        (S,) arrival of who stands there: an equal column that came before it beats it. -1 where
        equal ones do not.
    tolerance
        (S,) scores that differ by no more are equal.
    must_stay
        Places of those who must stay in the pool.
    ordered
        Whether a stage is proven only with all before it, as in a greedy.
    """

    ordered: ClassVar[bool] = True

    names: Sequence[Hashable]
    picks: Picks
    keys: Sequence[Hashable]
    bars: Floats
    holders: Whole
    tolerance: Floats
    must_stay: Places

    @abc.abstractmethod
    def scores(self) -> Floats:
        """Return the (p, S) scores of the pool's variables; -inf for who is out of the running."""

    @abc.abstractmethod
    def scores_of(
        self, chunk: Chunk, stats: Stats, places: Places, noted: Mapping[str, Floats]
    ) -> Floats:
        """Return the (b, S) scores of columns of a chunk, and of what was noted of them."""

    @abc.abstractmethod
    def to_state(self) -> dict[str, Any]:
        """Return what the method needs to make the plan again from the same pool."""

    def bounding(self, full: Bools) -> Places:
        """Return the stage under which no score is lower than under each, (S,); -1 where none is.

        Only of those that are full: under which all columns were seen. Where scores fall from pick
        to pick such a stage may be another one.
        """
        return np.where(full, np.arange(full.size), -1)

    def goes_on(self, before: Plan, s: int, lost: float) -> bool:
        """Return whether what was found under a stage of the plan before holds of mine.

        Parameters
        ----------
        before
            The plan before, of as many stages at least.
        s
            The stage.
        lost
            The best score under it of a column that was let go since it was last changed.
        """
        del lost
        return self.keys[s] == before.keys[s]

    def n_picked(self, n_stages: int) -> int:
        """Return how many picks stand in so many leading stages."""
        return min(len(self.picks.places), n_stages)


class Planner(Method, Protocol):
    """What a pool with stages must know of the method that it serves."""

    def _plan(self, pool: Any, before: Any, n_proven: int) -> Plan:
        """Return the answer that the pool has now; the first stages before may be proven."""

    def _restored_plan(self, pool: Any, state: dict[str, Any]) -> Plan:
        """Return the plan of a file, made from the pool's first variables."""

    def _ceiling(self, pool: Any, rows: Mapping[str, Floats]) -> Floats:
        """Return, for columns, what no score of theirs can ever be above; inf where any may be."""


class Circle(Pool):
    """A pool of at most twice `limit` columns, which reads them in a circle.

    Attributes
    ----------
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
            self._expect_as_before(chunk, stats, first_arrival)
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
        new = places[~self._is_held(first_arrival + places)]
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
        room = 2 * self.limit - len(self.table)
        taken = places[:room]
        self._append(chunk, stats, first_arrival, taken, noted)
        if len(self.table) >= 2 * self.limit:
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

    def _is_held(self, arrivals: Places) -> Bools:
        """Return which of these columns, by their arrival, ascending, are in the pool."""
        held = np.zeros(arrivals.size, dtype=np.bool_)
        if self.total is not None and arrivals.size:
            mine = self.table["arrival"].astype(np.intp)
            mine = mine[(mine >= arrivals[0]) & (mine <= arrivals[-1])]
            at = np.searchsorted(arrivals, mine)
            held[at[arrivals[at] == mine]] = True
        return held

    def _expect_as_before(self, chunk: Chunk, stats: Stats, first_arrival: int) -> None:
        """Refuse columns that are not those of the first reading, as far as they are held."""
        arrival = self.table["arrival"].astype(np.intp) - first_arrival
        mine = np.flatnonzero((arrival >= 0) & (arrival < stats.m2.size))
        at, names = arrival[mine], self.names
        for place, j in zip(at.tolist(), mine.tolist(), strict=True):
            if chunk.names[place] != names[j]:
                raise unlike_before(f"{chunk.names[place]!r} in the place of {names[j]!r}")
        same = np.isclose(stats.m2[at], self.table["m2"][mine], rtol=1e-9, atol=0.0)
        if not same.all():
            raise unlike_before(f"other values of {names[mine[np.argmin(same)]]!r}")

    # Plans

    def _replan(self, seen: int, n_proven: int = 0) -> None:
        """Plan anew with all that is held, after so many columns; so many stages are proven."""
        arrival = self.table["arrival"]
        if (np.diff(arrival) < 0.0).any():
            self.table.keep(np.argsort(arrival))
        plan = self.method._plan(self, self.plan, n_proven)
        self.since, self.lost, self.floors = self._as_planned(plan, seen)
        self.plan, self._planned_at, self._n_known = plan, seen, len(self.table)

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
        found = scores[:, self._sought(plan)]
        order, finite = _ranked(found)
        in_turn = order[finite & ~stays[order]]
        # Each by its first turn: where a place comes again the last assignment holds.
        turn = np.full(len(stays), in_turn.size)
        turn[in_turn[::-1]] = np.arange(in_turn.size)[::-1]
        room = max(0, self.limit - int(stays.sum()))
        chosen = np.argsort(turn)[:room]
        stays[chosen[turn[chosen] < in_turn.size]] = True
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


class StagePool(Circle, SamplePool):
    """A pool of at most twice `limit` columns, with their observations.

    Attributes
    ----------
    basis
        (r, n) orthonormal basis of the target space.
    """

    def __init__(
        self, space: TargetSpace | None, n: int, limit: int, noted: Sequence[str] = ()
    ) -> None:
        super().__init__(space, n, limit, noted)
        self.basis: Floats = np.zeros((0, n))

    def follow(self, Y: Floats) -> None:
        """Take up the observations of target and covariates, (c, n), before columns come."""
        super().follow(Y)
        assert self._space is not None  # noqa: S101
        self.basis = self._space.weights @ Y

    @property
    def complete(self) -> bool:
        """Whether no variable was ever let go."""
        return not self.let_go

    @property
    def indifferent_below(self) -> float:
        """Below which relevance a column is let go: relevance does not say."""
        return LEAST

    # Put together, and files

    def merge(self, other: Self, arrived: int) -> None:
        """Take in all candidates of another pool, as arrived after so many columns."""
        self._changes()
        if not len(other.table):
            return
        if not len(self.table):
            self.set_state(other.to_state())
            self.table["arrival"][:] += arrived
            self.since = np.where(self.since > 0, self.since + arrived, 0)
            return
        came = [(self, 0), (other, arrived)]
        parts = [part._known(after) for part, after in came if part.let_go]
        rows = {field: other.table[field] for field in other.table.fields}
        rows["arrival"] = rows["arrival"] + arrived
        self.table.append(other.table.slots, **rows)
        self.seen, self.total = 0, None
        self.let_go |= other.let_go
        self.ceiling = max(self.ceiling, other.ceiling)
        self.plan = self._latest = None
        if not self.let_go and len(self.table) < 2 * self.limit:
            return
        self.plan = plan = self.method._plan(self, None, 0)
        # A stage goes on where both knew it; who let nothing go knows all.
        size = len(plan.keys)
        self.since = np.full(size, arrived + 1, dtype=np.int64)
        self.lost, self.floors = np.full(size, LEAST), np.full(size, LEAST)
        for s, key in enumerate(plan.keys):
            known = [part[key] for part in parts if key in part]
            if len(known) == len(parts):
                self.since[s], self.lost[s], self.floors[s] = map(max, zip(*known, strict=True))
        self._planned_at, self._n_known = 0, len(self.table)
        if len(self.table) >= 2 * self.limit:
            self._cut()

    def _known(self, after: int) -> dict[Hashable, tuple[int, float, float]]:
        """Return since, lost and floor of each stage, by its key, as the columns come after some.

        A stage that has seen all columns has seen them since 0.
        """
        plan = self.latest()
        since, lost, floors = self._as_planned(plan, 1)
        if self.total is not None:
            since = np.where(self.seen - since >= self.total, 0, 1)
        since = np.where(since > 0, since + after, 0)
        known = zip(since.tolist(), lost.tolist(), floors.tolist(), strict=True)
        return dict(zip(plan.keys, known, strict=True))

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs: arrays, and values that JSON can hold."""
        return {
            "table": self.table.to_state(),
            "seen": self.seen,
            "total": self.total,
            "let_go": self.let_go,
            "ceiling": self.ceiling,
            "since": self.since,
            "lost": self.lost,
            "floors": self.floors,
            "n_known": self._n_known,
            "planned_at": self._planned_at,
            "plan": None if self.plan is None else self.plan.to_state(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Take up what `to_state` returned, into a fresh part made of the same parameters."""
        n, table = state["n_known"], state["table"]
        fields = self.table.fields
        known = {field: table[field][:n] for field in ("names", *fields)}
        self.table = Table.from_state(known, fields)
        self.seen, self.total = state["seen"], state["total"]
        self.let_go, self.ceiling = state["let_go"], state["ceiling"]
        self._n_known, self._planned_at = n, state["planned_at"]
        self.plan = self._latest = None
        if state["plan"] is not None:
            self.plan = self.method._restored_plan(self, state["plan"])
        rest = {field: table[field][n:] for field in ("names", *fields)}
        others = Table.from_state(rest, fields)
        self.table.append(others.names, **{field: others[field] for field in fields})
        size = 0 if self.plan is None else len(self.plan.keys)
        expect_shapes(state, since=(size,), lost=(size,), floors=(size,))
        self.since = np.asarray(state["since"], dtype=np.int64)
        self.lost, self.floors = np.asarray(state["lost"]), np.asarray(state["floors"])


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


def leading(flags: Bools) -> int:
    """Return how many flags are set before the first that is not."""
    return int(np.argmin(np.append(flags, False)))


def unlike_before(what: str) -> ValueError:
    """Return the error for a source that is not the same when it is read again."""
    return ValueError(
        "Expected the same columns in the same order at every reading, as exact=True needs. "
        f"Got: {what}.\nHint: exact=False reads once."
    )
