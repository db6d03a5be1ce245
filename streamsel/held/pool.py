"""Variables that came as columns: all of them, or a bounded pool of the best."""

from __future__ import annotations

import math
import weakref
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Self, cast

import numpy as np

from streamsel._jit.scan import UNDERFLOW
from streamsel.columns import Chunk, Stats
from streamsel.held.part import ColumnHeld, Floats, Places
from streamsel.held.possible import (
    expect_between,
    expect_bounded,
    expect_explained,
    expect_means,
    expect_sums,
    expect_units,
)
from streamsel.held.table import Table
from streamsel.shapes import Number, expect
from streamsel.target.normal_scores import NormalScores
from streamsel.target.space import TargetSpace

# Scores within this relative distance are equal, and the earlier column goes first.
TIE = 1e-12
# A score of no more than this is rounding: nothing is left of the variable.
SPENT = 1e-12
# Centres may be off by this part of a column's length.
_ROUGH = 1e-14


class Picks(NamedTuple):
    """The picks of a selection, in order: place, score when it was picked, round."""

    places: list[int]
    scores: list[float]
    rounds: list[int]

    def first(self, n: int) -> Picks:
        """Return the first n picks."""
        return Picks(self.places[:n], self.scores[:n], self.rounds[:n])


NO_PICKS = Picks([], [], [])


class Sifted(NamedTuple):
    """What is left of a pool and of columns that were offered to it.

    Parameters
    ----------
    stay
        Places in the pool that stay, ascending; None for all.
    join
        Which of the columns offered come behind them, ascending.
    discarded, floor
        As `Pool` has them.
    plan
        What the method would know of at the next cut; only as long as the pool is not cut
        otherwise.
    """

    stay: Places | None
    join: Places
    discarded: float
    floor: float
    plan: Any = None


class Method(Protocol):
    """What a pool must know of the method that it serves."""

    def _bound(self, pool: Pool, rows: Mapping[str, Floats]) -> Floats:
        """Return, for rows of the pool's table, what no score of theirs can ever be above."""

    def _sift(self, pool: Pool, chunk: Chunk, stats: Stats, places: Places) -> Sifted | None:
        """Return what is left once these columns have been offered in order, as `Pool` says.

        For methods that know a faster way than one cut after another; None for those that do not.
        """

    def _relevance_at(self, bound: float) -> float:
        """Return below which relevance the bound is below this; -inf if relevance does not say."""

    def _refill(self, pool: Pool, limit: int) -> Picks:
        """Return who stays when the pool is cut back to its limit."""

    def _round(self, pool: Pool) -> int:
        """Return how many picks a round can have."""


class Pool(ColumnHeld):
    """Moments of columns: of all of them, or of `limit` of the best, never of twice as many.

    When twice the limit are held the method says who stays. The pool is cut at a fixed number of
    admitted columns, so how the stream is cut into blocks makes no difference.

    Parameters
    ----------
    space
        The target space; None without a target.
    n
        Number of observations.
    limit
        None keeps all columns.
    noted
        Further fields of a variable, one number each, that come with it.

    Attributes
    ----------
    method
        Whom the pool serves; to be said before columns come.
    table
        `arrival`, the moments as in `columns.Stats`, and what else is noted.
    discarded
        The largest bound of a column let go; -1.0 while there is none. No score that such a column
        could have had later is above it.
    floor
        A column whose bound is not above this would not have been kept at the last cut either.
    plan
        What the method noted at the last cut, for the next; it follows from what is held, and may
        be dropped. It is replaced, and never changed.
    """

    # Whether a column that does not vary may be held: rows may go on from it.
    takes_constant = True
    # What relevances are compared with noise by, if not by the target; to be set before columns.
    scores: NormalScores | None = None

    method: Method

    def serve(self, method: Method) -> None:
        """Take this for the method that the pool serves; it holds the pool, and not the reverse."""
        self.method = cast("Method", weakref.proxy(method))

    def __init__(
        self, space: TargetSpace | None, n: int, limit: int | None, noted: Sequence[str] = ()
    ) -> None:
        super().__init__(n)
        self._space = space
        self.limit = limit
        self.table = Table(self._fields() | dict.fromkeys(noted, ()))
        self._noted = tuple(noted)
        self.discarded = -1.0
        self.floor = -1.0
        self.plan: Any = None

    def compare_by(self, scores: NormalScores | None) -> None:
        """Compare variables with noise by normal scores of the target, before columns come."""
        if scores is not None:
            self.scores = scores
            self.table = Table(self.table.fields | self._fields_of_scores())

    def _fields_of_scores(self) -> dict[str, tuple[int, ...]]:
        return {"with_scores": ()}

    def _fields(self) -> dict[str, tuple[int, ...]]:
        c = 0 if self._space is None else self._space.c
        return {"arrival": (), "mean": (), "low": (), "m2": (), "cxy": (c,)}

    def empty(self) -> Self:
        """Return a pool of the same kind, with nothing in it."""
        other = type(self)(self._space, self.n, self.limit, self._noted)
        other.method = self.method
        other.compare_by(self.scores)
        return other

    # What is held

    @property
    def complete(self) -> bool:
        """Whether no variable was ever let go."""
        return self.discarded < 0.0

    @property
    def space(self) -> TargetSpace | None:
        """The target space; None where there is no target."""
        return self._space

    def noted(self, field: str) -> Floats:
        """Return what else was noted of the variables, (p,)."""
        return self.table[field]

    def bytes_for(self, p: int) -> int:
        """Return about how many bytes this state takes once it has seen p columns."""
        numbers = sum(math.prod(shape) for shape in self.table.fields.values())
        held = p if self.most_held is None else min(p, self.most_held)
        # The table grows by doubling, and names take memory, too.
        return held * (16 * numbers + 100)

    @property
    def most_held(self) -> int | None:
        """How many columns are held at most; None for any number."""
        return None if self.limit is None else 2 * self.limit

    # Learning

    @property
    def indifferent_below(self) -> float:
        """Below which relevance a column is let go, and its bound too is nothing new."""
        least = min(self.floor, self.discarded)
        if least <= 0.0 or self._noted:
            return -math.inf
        return self.method._relevance_at(least)

    def rows_of(self, chunk: Chunk, stats: Stats, places: Places | None) -> dict[str, Floats]:
        """Return what the table keeps of these columns of a chunk; None for all with moments."""
        rows = stats._asdict()
        if places is not None:
            rows = {field: array[places] for field, array in rows.items()}
        if self.scores is not None and "with_scores" in self.table.fields:
            rows["with_scores"] = self.scores.products(chunk, places)[: stats.m2.size]
        return rows

    def noise_relevance(self, places: Places | None = None) -> Floats:
        """Return the relevances that are compared with noise: to the target's normal scores."""
        if self.scores is None or self._space is None:
            return self.relevance(places)
        stats, products = self.stats(places), self.table["with_scores"]
        left = self._space.left(stats.m2, stats.cxy)
        products = products if places is None else products[places]
        return np.abs(products) / np.sqrt(np.where(left > 0.0, left, np.inf))

    def admit(
        self,
        chunk: Chunk,
        stats: Stats,
        first_arrival: int,
        places: Places | None = None,
        noted: Mapping[str, Floats] = {},
    ) -> None:
        """Learn the columns of a chunk, in order.

        Parameters
        ----------
        chunk, stats
            The columns, and the moments of the first of them, or of all.
        first_arrival
            How many columns of the stream stood before the chunk.
        places
            Which columns that have moments, ascending; None for all that the pool has a use for: in
            a bounded one not for what does not vary, beside covariates.
        noted
            What else is noted of the columns that have moments, one number each.
        """
        all_kept = self.limit is None and self.takes_constant
        if places is None and not all_kept:
            varies = stats.m2 if self._space is None else self._space.left(stats.m2, stats.cxy)
            places = None if varies.all() else np.flatnonzero(varies)
        if self.limit is None:
            self._changes()
            self._append(chunk, stats, first_arrival, places, noted)
            return
        if places is None:
            places = np.arange(stats.m2.size)
        sifted = self.method._sift(self, chunk, stats, places)
        if sifted is None:
            self._fill(chunk, stats, first_arrival, places, noted)
        elif sifted.stay is not None or sifted.join.size or sifted.discarded > self.discarded:
            self._changes()
            if sifted.stay is not None:
                self.table.keep(sifted.stay)
            if sifted.join.size:
                self._append(chunk, stats, first_arrival, places[sifted.join], noted)
            self.discarded, self.floor = sifted.discarded, sifted.floor
            self.plan = sifted.plan

    def _fill(
        self,
        chunk: Chunk,
        stats: Stats,
        first_arrival: int,
        places: Places,
        noted: Mapping[str, Floats],
    ) -> None:
        """Admit what is eligible of these columns of a chunk, and cut back whenever it is time."""
        assert self.limit is not None  # noqa: S101
        offered = stats._asdict() | dict(noted)
        if places.size < stats.m2.size:
            offered = {field: array[places] for field, array in offered.items()}
        bound = self.method._bound(self, offered)
        # Nearly all single columns are let go, and change nothing.
        while places.size and bound.max() > min(self.floor, self.discarded):
            eligible = bound > self.floor
            room = 2 * self.limit - len(self.table)
            admitted = np.flatnonzero(eligible)[:room]
            stop = places.size if admitted.size < room else int(admitted[-1]) + 1
            lost = bound[:stop][~eligible[:stop]]
            if admitted.size or (lost.size and lost.max() > self.discarded):
                self._changes()
            self._let_go(lost)
            if admitted.size:
                self._append(chunk, stats, first_arrival, places[admitted], noted)
            places, bound = places[stop:], bound[stop:]
            self.cut_back()

    def _append(
        self,
        chunk: Chunk,
        stats: Stats,
        first_arrival: int,
        places: Places | None,
        noted: Mapping[str, Floats],
    ) -> None:
        if places is None:
            size = stats.m2.size
            names: Sequence[Hashable] = chunk.names[:size]
            arrival = np.arange(first_arrival, first_arrival + size)
        else:
            names = [chunk.names[place] for place in places.tolist()]
            arrival = first_arrival + places
            noted = {field: array[places] for field, array in noted.items()}
        rows = self.rows_of(chunk, stats, places)
        self.table.append(names, arrival=arrival, **rows, **noted)

    def cut_back(self) -> None:
        """Cut the pool back to its limit if it holds twice as many."""
        if self.limit is None or len(self.table) < 2 * self.limit:
            return
        picks = self.method._refill(self, self.limit)
        kept = np.sort(np.asarray(picks.places, dtype=np.intp))
        lost = np.ones(len(self.table), dtype=np.bool_)
        lost[kept] = False
        fields = {field: self.table[field][lost] for field in self.table.fields}
        self._let_go(self.method._bound(self, fields))
        self.floor = min(picks.scores) if len(picks.places) == self.limit else 0.0
        self.table.keep(kept)
        self.plan = None

    def _let_go(self, bound: Floats) -> None:
        if bound.size:
            self.discarded = max(self.discarded, float(bound.max()))

    def certified(self, picks: Picks) -> int:
        """Return how many leading picks no column that was let go can have changed.

        A pick is proven if all before it are and its score is above every score that a discarded
        column could have had. A round must have used up the whole rank before the next one may
        count: a discarded column could have had something left where the candidates had not.
        """
        if self.discarded <= SPENT:
            return len(picks.places)
        bar = self.discarded * (1.0 + TIE)
        in_round = 0
        for n, score in enumerate(picks.scores):
            new_round = n > 0 and picks.rounds[n] != picks.rounds[n - 1]
            if score <= bar or (new_round and in_round < self.method._round(self)):
                return n
            in_round = 1 if new_round else in_round + 1
        return len(picks.places)

    def merge(self, other: Self, arrived: int) -> None:
        """Take in all candidates of another pool, as arrived after so many columns."""
        self._changes()
        rows = {field: other.table[field] for field in other.table.fields}
        rows["arrival"] = rows["arrival"] + arrived
        self.table.append(other.table.slots, **rows)
        self.discarded = max(self.discarded, other.discarded)
        self.cut_back()

    # Undo, copies, files

    def _copied(self) -> dict[str, Any]:
        # Whatever else changes is replaced.
        return vars(self) | {"table": self.table.as_of_now()}

    def _restored(self, saved: dict[str, Any]) -> dict[str, Any]:
        return super()._restored(saved) | {"table": saved["table"]()}

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs: arrays, and values that JSON can hold."""
        return {
            "table": self.table.to_state(),
            "discarded": self.discarded,
            "floor": self.floor,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Take up what `to_state` returned, into a fresh part made of the same parameters."""
        expect(state, discarded=Number(), floor=Number())
        self.table = Table.from_state(state["table"], self.table.fields)
        self.discarded, self.floor = state["discarded"], state["floor"]
        if self.limit is not None:
            self._expect_fewer_than(2 * self.limit)

    def expect_possible(self) -> None:
        """Raise ValueError for numbers that no data lead to: a file may hold any."""
        table = self.table
        expect_sums("sums of squares", table["m2"])
        if not self.takes_constant and not (table["m2"] > 0.5 * UNDERFLOW).all():
            raise ValueError("Expected variables that vary. Got: others.")
        expect_means(table["mean"], table["low"], np.sqrt(np.abs(table["m2"])))
        expect_between("arrivals", table["arrival"], 0.0, 2.0**53)
        if np.unique(table["arrival"]).size < len(table):
            raise ValueError("Expected arrivals that differ. Got: others.")
        for field in self._noted:
            expect_bounded(field, table[field])
        if "with_scores" in table.fields:
            products = table["with_scores"][:, None]
            expect_explained(table["m2"], table["mean"], products, np.ones(1))
        if "p_value" in self._noted:
            expect_between("p-values", table["p_value"], 0.0, 1.0)

    def _expect_fewer_than(self, room: int) -> None:
        """Refuse more variables than are ever held: a pool is cut back as soon as it is full."""
        if len(self.table) >= room:
            raise ValueError(f"Expected fewer than {room} variables. Got: {len(self.table)}.")


class SamplePool(Pool):
    """A pool that keeps the observations of its variables too, centred and of length 1."""

    takes_constant = False
    offers = frozenset({"products", "samples"})

    def __init__(
        self, space: TargetSpace | None, n: int, limit: int | None, noted: Sequence[str] = ()
    ) -> None:
        super().__init__(space, n, limit, noted)
        # (r, n) orthonormal basis of the target space, and (d, n) of the covariates' span, which is
        # taken out of the observations.
        self.basis: Floats = np.zeros((0, n))
        self.given: Floats | None = None

    def follow(self, Y: Floats) -> None:
        """Take up the observations of target and covariates, (c, n), before columns come."""
        assert self._space is not None  # noqa: S101
        self.basis = self._space.weights @ Y
        self.given = self._space.given @ Y if len(self._space.given) else None

    def _fields(self) -> dict[str, tuple[int, ...]]:
        return super()._fields() | {"unit": (self.n,)}

    def rows_of(self, chunk: Chunk, stats: Stats, places: Places | None) -> dict[str, Floats]:
        """Return what the table keeps of these columns of a chunk; None for all with moments."""
        rows = super().rows_of(chunk, stats, places)
        places = np.arange(stats.m2.size) if places is None else places
        return rows | {"unit": self.units_of(chunk, stats, places)}

    def units_of(self, chunk: Chunk, stats: Stats, places: Places) -> Floats:
        """Return the observations of columns as the pool would keep them."""
        unit = units(chunk, stats, places)
        return unit if self.given is None else residuals(unit, self.given)

    def expect_possible(self) -> None:
        """Raise ValueError for numbers that no data lead to: a file may hold any."""
        super().expect_possible()
        self._expect_units()

    def _expect_units(self) -> None:
        expect_units(self.table["unit"])

    def _fields_of_scores(self) -> dict[str, tuple[int, ...]]:
        return {}  # the observations have all that is asked

    def noise_relevance(self, places: Places | None = None) -> Floats:
        """Return the relevances that are compared with noise: to the target's normal scores."""
        if self.scores is None:
            return self.relevance(places)
        unit = self.table["unit"] if places is None else self.table["unit"][places]
        found: Floats = np.abs(unit @ self.scores.Y[0])
        return found

    def samples(self, places: Places) -> Floats:
        """Return the observations of some variables, centred and of length 1, one a row."""
        return self.table["unit"][places]

    def products(self, places: Places | int) -> Floats:
        """Return the (p, s) correlations of all variables with some, or (p,) with one."""
        unit = self.table["unit"]
        return unit @ unit[places].T


def residuals(unit: Floats, given: Floats) -> Floats:
    """Return rows of length 1 without what lies in the span of others (d, n), again of length 1."""
    # Twice, for the digits of what is nearly theirs.
    for _ in range(2):
        unit = unit - (unit @ given.T) @ given
        length = np.sqrt(np.einsum("ij,ij->i", unit, unit))
        unit /= np.where(length > 0.0, length, 1.0)[:, None]
    return unit


def units(chunk: Chunk, stats: Stats, places: Places) -> Floats:
    """Return columns of a chunk, centred and of length 1, one a row; what does not vary is void."""
    unit, stats = chunk.columns(places), chunk.about(stats)
    unit -= stats.mean[places, None]
    m2, low = stats.m2[places], stats.low[places]
    # What rounding took from the means tells beside a large offset only.
    if np.any(np.abs(low) > _ROUGH * np.sqrt(m2)):
        unit -= low[:, None]
    unit /= np.sqrt(np.where(m2 > 0.0, m2, 1.0))[:, None]
    return unit
