"""A bounded pool of columns, each of which may stand for others that are like it."""

from __future__ import annotations

import copy
import math
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import blas

from streamsel.columns import Chunk, Stats
from streamsel.held.part import Floats, Places
from streamsel.held.pool import SamplePool
from streamsel.held.possible import expect_between
from streamsel.held.table import Table
from streamsel.held.tally import Tally
from streamsel.shapes import Array, Flag, Number, expect
from streamsel.target.space import TargetSpace
from streamsel.ties import TIE, most_relevant_first

# Of a variable that the others leave less than this part of the largest, nothing is left.
_SPENT = 1e-10
# A relevance of no more is rounding.
_NONE = 1e-12
# Pivots that are taken out of a matrix by one product.
_AT_ONCE = 64
# Who shares more than this part of its variance with one that stays is represented by it.
_ALIKE = 0.98


class Kept(NamedTuple):
    """Who stays of some variables.

    Parameters
    ----------
    places
        Ascending.
    mass
        What each stands for from here on.
    bar
        What was left of the last pivot: a variable whose squared relevance is not above it would
        not have been one. Where others followed it is the least squared relevance of these.
    """

    places: Places
    mass: Floats
    bar: float


def represent(R: Floats, squares: Floats, mass: Floats, limit: int) -> Kept:
    """Return who of some variables represents all of them.

    The first are the pivots of a Cholesky factorisation: each in turn has most left, in mass and
    relevance, of what those before it do not tell. When nothing is left of anybody the most
    relevant follow, but for those that are like one that stays. Who goes leaves mass to the one
    that stays and is likest it, as much as they have in common.

    Parameters
    ----------
    R
        (m, m) correlations.
    squares
        (m,) squared relevances.
    mass
        (m,) what each stands for so far.
    limit
        How many may stay.
    """
    w = np.sqrt(mass * squares)
    stay, bar = _pivots(np.asfortranarray(w[:, None] * R * w), limit)
    alike = np.square(R)
    if len(stay) < limit:
        further = _further(alike, squares, stay, limit)
        stay += further
        bar = float(squares[further].min()) if len(stay) == limit else 0.0
    places = np.sort(np.array(stay, dtype=np.intp))
    goes = np.ones(mass.size, dtype=np.bool_)
    goes[places] = False
    heirs = alike[np.ix_(goes, places)]
    nearest = _first_of_largest(heirs)
    left = mass[places]
    np.add.at(left, nearest, mass[goes] * np.square(heirs[np.arange(nearest.size), nearest]))
    return Kept(places, left, bar)


def _pivots(A: Floats, limit: int) -> tuple[list[int], float]:
    """Return the first pivots of a matrix, and what was left of the last; A is used up.

    What is left of the matrix is brought up to date once for many pivots, by one product; from a
    pivot's row what those since then have taken is taken out when it is its turn.
    """
    left = A.diagonal().copy()
    spent = _SPENT * float(left.max())
    rows = np.empty((limit, len(A)))
    picks: list[int] = []
    last = 0.0
    while len(picks) < limit:
        first = len(picks)
        for s in range(first, min(first + _AT_ONCE, limit)):
            pivot = int(left.argmax())
            pivot = int((left >= left[pivot] * (1.0 - TIE)).argmax())
            if left[pivot] <= spent:
                return picks, last
            last = float(left[pivot])
            # Only the lower triangle is brought up to date.
            row = np.append(A[pivot, :pivot], A[pivot:, pivot])
            rows[s] = row - rows[first:s, pivot] @ rows[first:s]
            rows[s] /= math.sqrt(last)
            left -= np.square(rows[s])
            left[pivot] = -1.0
            picks.append(pivot)
        new = rows[first : len(picks)].T
        A = blas.dsyrk(-1.0, new, beta=1.0, c=A, lower=1, overwrite_c=1)
    return picks, last


def _further(alike: Floats, squares: Floats, stay: list[int], limit: int) -> list[int]:
    """Return the most relevant of the others, none like another that stays."""
    nearest = alike[:, stay].max(axis=1, initial=0.0)
    nearest[stay] = 1.0
    found: list[int] = []
    for place in most_relevant_first(squares).tolist():
        if len(stay) + len(found) == limit:
            break
        if nearest[place] <= _ALIKE:
            found.append(place)
            np.maximum(nearest, alike[place], out=nearest)
    return found


def _first_of_largest(values: Floats) -> Places:
    """Return the place of the largest in the last axis; of equal ones the first."""
    largest = values.max(axis=-1, keepdims=True)
    first: Places = (values >= largest * (1.0 - TIE)).argmax(axis=-1)
    return first


class Representatives(SamplePool):
    """At most twice `limit` columns with their observations, each with a mass.

    A column that is relevant enough comes in, with mass 1. When twice the limit are held they are
    cut back to it (`represent`): so what counts is how many columns went by that were like one that
    stays, and not only the one.

    Parameters
    ----------
    least
        The relevance from which on columns are counted.

    Attributes
    ----------
    bar
        A column whose squared relevance is not above this is let go.
    tally
        How relevant all columns were, as far as they were worth counting.
    let_go
        Whether a column was let go that has to do with the target.
    """

    def __init__(self, space: TargetSpace | None, n: int, limit: int, least: float) -> None:
        super().__init__(space, n, limit)
        self.limit: int = limit
        self.bar = 0.0
        self.tally = Tally(least)
        self.let_go = False

    def _fields(self) -> dict[str, tuple[int, ...]]:
        return super()._fields() | {"mass": ()}

    def rows_of(self, chunk: Chunk, stats: Stats, places: Places | None) -> dict[str, Floats]:
        """Return what the table keeps of these columns of a chunk; None for all with moments."""
        rows = super().rows_of(chunk, stats, places)
        return rows | {"mass": np.ones(len(rows["m2"]))}

    @property
    def complete(self) -> bool:
        """Whether no variable was ever let go."""
        return not self.let_go

    @property
    def indifferent_below(self) -> float:
        """Below which relevance a column is let go, and not even counted."""
        return self._unworthy_below

    @property
    def _unworthy_below(self) -> float:
        return min(math.sqrt(self.bar), self.tally.least)

    # Learning

    def admit(self, chunk: Chunk, stats: Stats, first_arrival: int, *_: Any, **__: Any) -> None:
        """Learn the columns of a chunk, in order."""
        assert self._space is not None  # noqa: S101
        relevance = self._space.relevance(stats.m2, stats.cxy)
        if relevance.max(initial=0.0) <= self._unworthy_below:
            return
        self._changes()
        self.tally.add(relevance)
        squares = np.where(relevance > _NONE, np.square(relevance), 0.0)
        places = self._above_bar(squares, np.flatnonzero(squares))
        while places.size:
            room = 2 * self.limit - len(self.table)
            self._append(chunk, stats, first_arrival, places[:room], {})
            places = places[room:]
            self.cut_back()
            places = self._above_bar(squares, places)

    def _above_bar(self, squares: Floats, places: Places) -> Places:
        above = squares[places] > self.bar * (1.0 + TIE)
        self.let_go |= not above.all()
        return places[above]

    def cut_back(self) -> None:
        """Cut the pool back to its limit if it holds twice as many."""
        if len(self.table) < 2 * self.limit:
            return
        unit = self.table["unit"]
        kept = represent(unit @ unit.T, np.square(self.relevance()), self.table["mass"], self.limit)
        self.table.keep(kept.places)
        self.table["mass"][:] = kept.mass
        self.bar, self.let_go = max(self.bar, kept.bar), True

    def merge(self, other: Self, arrived: int) -> None:
        """Take in all candidates of another pool, as arrived after so many columns."""
        self._changes()
        rows = {field: other.table[field] for field in other.table.fields}
        rows["arrival"] = rows["arrival"] + arrived
        self.table.append(other.table.slots, **rows)
        self.bar, self.let_go = max(self.bar, other.bar), self.let_go or other.let_go
        self.tally.merge(other.tally)
        self.cut_back()

    def expect_possible(self) -> None:
        """Raise ValueError for numbers that no data lead to: a file may hold any."""
        super().expect_possible()
        # It stands for itself, and for others.
        expect_between("masses", self.table["mass"], 0.99, 2.0**53)

    # Undo, copies, files

    def _copied(self) -> dict[str, Any]:
        return super()._copied() | {"tally": copy.copy(self.tally)}

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs: arrays, and values that JSON can hold."""
        return {
            "table": self.table.to_state(),
            "bar": self.bar,
            "let_go": self.let_go,
            "tally": self.tally.counts,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Take up what `to_state` returned, into a fresh part made of the same parameters."""
        size = self.tally.counts.shape
        expect(state, bar=Number(0.0), let_go=Flag(), tally=Array(size, np.int64, least=0))
        self.table = Table.from_state(state["table"], self.table.fields)
        self._expect_fewer_than(2 * self.limit)
        self.bar, self.let_go = state["bar"], state["let_go"]
        self.tally.counts = state["tally"]
