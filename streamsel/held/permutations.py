"""The null distribution of relevance, from permuted targets, over all columns that passed."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel._jit.permutations import BINS, IN_OCTAVE, OCTAVES, squared_relevances
from streamsel.columns import Chunk, SparseChunk, Stats
from streamsel.held.part import Floats, Places
from streamsel.held.pool import units
from streamsel.rollback import Rollback
from streamsel.shapes import Array, Count, expect, rows_of
from streamsel.target.permuted import Bases, PermutedTarget
from streamsel.target.space import TargetSpace

# The step-down procedure is exact for so many of the most relevant columns.
N_LEADERS = 64
# A permuted statistic this near to an observed one, relatively, is taken for equal: columns of few
# distinct values have exact ties, which rounding would break.
_TIE = 1e-9
# What a squared relevance is below, with its rounding.
_MOST = 1.0 + 1e-6
# Products are computed for tiles of columns of so many numbers.
_TILE = 1 << 19
# A sparse column with a smaller share of stored values is not made dense.
_SPARSE = 0.1


class Leaders(NamedTuple):
    """The most relevant columns, the most relevant first, the earliest of equals.

    Parameters
    ----------
    squares
        (l,) squared relevances.
    arrivals
        (l,) how many columns came before each.
    permuted
        (l, B) squared relevances under the permuted targets.
    """

    squares: Floats
    arrivals: Floats
    permuted: Floats

    def best(self) -> Places:
        """Return the order of the best of these, as many as there may be."""
        return np.lexsort((self.arrivals, -self.squares))[:N_LEADERS]

    def take(self, places: Places) -> Leaders:
        """Return some of them."""
        return Leaders(*(array[places] for array in self))

    def joined(self, other: Leaders) -> Leaders:
        """Return these and others."""
        return Leaders(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))


class PermutationNull(Rollback):
    """What permuted targets are explained by, over all columns: maxima, and a histogram.

    Under permutation b the statistic of a column is its relevance to the b-th permuted target. Kept
    are its maximum over all columns (Westfall and Young 1993), its values for the most relevant
    columns, by which the step-down procedure excludes them, and a histogram of all its values.

    Parameters
    ----------
    permuted
        The permuted targets.

    Attributes
    ----------
    leaders
        The most relevant columns. Replaced, never changed, as are the following.
    maxima
        (B,) the largest squared relevance of all other columns, by permutation.
    counts
        (BINS,) histogram of squared relevances over all columns and permutations.
    n_tests
        Columns that vary.

    Notes
    -----
    Costs 2 n B r operations a column; memory O(B) and 64 B numbers.
    """

    changing = ("leaders", "maxima", "counts", "n_tests")

    def __init__(self, permuted: PermutedTarget) -> None:
        self._permuted = permuted
        B = permuted.n_permutations
        self.leaders = Leaders(np.empty(0), np.empty(0), np.empty((0, B)))
        self.maxima: Floats = np.zeros(B)
        self.counts: NDArray[np.int64] = np.zeros(BINS, dtype=np.int64)
        self.n_tests = 0

    @property
    def n_permutations(self) -> int:
        """How many permutations there are."""
        return self._permuted.n_permutations

    # Learning

    def add(
        self, chunk: Chunk, stats: Stats, space: TargetSpace, relevance: Floats, arrived: int
    ) -> None:
        """Count columns of a chunk, of these relevances, as arrived after so many."""
        varies = np.flatnonzero(relevance >= 0.0)
        if not varies.size:
            return
        squares = np.square(relevance[varies])
        lead = self._leading(squares, arrived + varies)
        found = np.empty((lead.size, self.n_permutations))
        maxima, counts = self.maxima.copy(), self.counts.copy()
        left = space.left(stats.m2, stats.cxy)
        step = max(16, _TILE // chunk.n)
        for start in range(0, varies.size, step):
            part = slice(start, start + step)
            mine = np.flatnonzero((lead >= part.start) & (lead < part.stop))
            columns = _Columns(chunk, stats, left, varies[part])
            for bases in self._permuted.bases():
                values = columns.squared(bases, counts)
                within = slice(bases.start, bases.stop)
                found[mine, within] = values[lead[mine] - start]
                values[lead[mine] - start] = 0.0
                np.maximum(maxima[within], values.max(axis=0), out=maxima[within])
        self.counts, self.n_tests = counts, self.n_tests + varies.size
        arrivals = (arrived + varies[lead]).astype(np.float64)
        self._lead(Leaders(squares[lead], arrivals, found), maxima)

    def _leading(self, squares: Floats, arrivals: Places) -> Places:
        """Return which of these columns are among the leaders from now on, ascending."""
        have = self.leaders.squares.size
        if have == N_LEADERS and not squares.max() > self.leaders.squares[-1]:
            return np.empty(0, dtype=np.intp)
        both = np.append(self.leaders.squares, squares)
        order = np.lexsort((np.append(self.leaders.arrivals, arrivals), -both))[:N_LEADERS]
        return np.sort(order[order >= have]) - have

    def _lead(self, new: Leaders, maxima: Floats) -> None:
        """Let columns be among the leaders; those that no longer are count for the maxima."""
        if new.squares.size:
            both = self.leaders.joined(new)
            order = both.best()
            self.leaders = both.take(order)
            rest = np.ones(both.squares.size, dtype=np.bool_)
            rest[order] = False
            maxima = np.maximum(maxima, both.permuted[rest].max(axis=0, initial=0.0))
        self.maxima = maxima

    def merge(self, other: PermutationNull, arrived: int) -> None:
        """Count the columns of another, of the same permutations, as arrived after so many."""
        theirs = other.leaders._replace(arrivals=other.leaders.arrivals + arrived)
        self._lead(theirs, np.maximum(self.maxima, other.maxima))
        self.counts = self.counts + other.counts
        self.n_tests += other.n_tests

    # What follows

    def quantile(self, level: float) -> float:
        """Return the relevance above which an adjusted p-value is at most this level.

        1 where there are too few permutations for that: 1 / (B + 1) is the least p-value.
        """
        largest = np.maximum(self.maxima, self.leaders.permuted.max(axis=0, initial=0.0))
        allowed = math.floor(level * (self.n_permutations + 1) * (1.0 + _TIE)) - 1
        if allowed < 0:
            return 1.0
        return min(1.0, math.sqrt(np.sort(largest)[::-1][allowed] * (1.0 + _TIE)))

    def adjusted(self, relevance: Floats) -> Floats:
        """Return p-values adjusted for all columns, (p,), of columns of these relevances.

        By the step-down procedure: a column is compared with the maxima over itself and all columns
        that are less relevant.
        """
        squares, leaders = np.square(np.maximum(relevance, 0.0)), self.leaders
        # (l + 1, B): maxima over the i-th leader and all columns after it.
        over = np.vstack([leaders.permuted, self.maxima])
        over = np.maximum.accumulate(over[::-1])[::-1]
        p = np.array([self._share(over[i], s) for i, s in enumerate(leaders.squares.tolist())])
        p = np.maximum.accumulate(p) if p.size else p
        found = np.empty(squares.size)
        for j, s in enumerate(squares.tolist()):
            rank = int(np.count_nonzero(leaders.squares > s * (1.0 + _TIE)))
            if rank < p.size and leaders.squares[rank] >= s * (1.0 - _TIE):
                found[j] = p[rank]
            else:
                found[j] = max(p[rank - 1] if rank else 0.0, self._share(over[rank], s))
        return found

    def _share(self, permuted: Floats, square: float) -> float:
        """Return (1 + how many are no less) / (B + 1)."""
        n_above = np.count_nonzero(permuted >= square * (1.0 - _TIE))
        return float(n_above + 1) / (self.n_permutations + 1)

    def p_values(self, relevance: Floats) -> Floats:
        """Return the share of all permuted statistics that are no less than each of these.

        To the width of a bin of the histogram, 0.8 % of the square at most, and never too small.
        """
        above = np.append(np.cumsum(self.counts[::-1])[::-1], 0)
        squares = np.square(np.maximum(relevance, 0.0)) * (1.0 - _TIE)
        bins = np.searchsorted(EDGES, squares, side="right") - 1
        found: Floats = (1.0 + above[np.maximum(bins, 0)]) / (1.0 + self.counts.sum())
        return found

    # Files

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs."""
        filled = np.flatnonzero(self.counts)
        first = int(filled[0]) if filled.size else BINS - 1
        return {
            **self.leaders._asdict(),
            "maxima": self.maxima,
            "first": first,
            "counts": self.counts[first:],
            "n_tests": self.n_tests,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Take up what `to_state` returned, into one of the same permutations."""
        B, n = self.n_permutations, min(rows_of(state, "squares"), N_LEADERS)
        shapes = {"squares": (n,), "permuted": (n, B), "maxima": (B,)}
        expect(state, **{name: Array(shapes[name], least=0.0, below=_MOST) for name in shapes})
        expect(state, arrivals=Array((n,), least=0.0, below=2.0**53))
        expect(state, n_tests=Count(n), first=Count())
        most = state["n_tests"] * B + 1
        first = min(state["first"], BINS - 1)
        expect(state, counts=Array((BINS - first,), np.int64, 0, most))
        if state["counts"].sum(dtype=np.float64) != state["n_tests"] * B:
            raise ValueError("Expected a statistic for every column and permutation. Got: others.")
        if not (np.diff(state["squares"]) <= 0.0).all():
            raise ValueError("Expected the most relevant columns first. Got: others.")
        self.leaders = Leaders(*(np.array(state[name]) for name in Leaders._fields))
        self.maxima, self.counts = np.array(state["maxima"]), np.pad(state["counts"], (first, 0))
        self.n_tests = state["n_tests"]


# (BINS,) where bins of squared relevance begin; what is less than all of them is in the first.
EDGES: Floats = (
    2.0 ** np.arange(-OCTAVES, 0)[:, None] * (1.0 + np.arange(IN_OCTAVE) / IN_OCTAVE)
).ravel()


class _Columns:
    """Some columns of a chunk, of length 1 once the covariates are taken out.

    Parameters
    ----------
    chunk, stats
        The columns, and the moments of the first of them.
    left
        (b,) sums of squares that the covariates leave.
    places
        Which columns, all of which vary.
    """

    def __init__(self, chunk: Chunk, stats: Stats, left: Floats, places: Places) -> None:
        self._sparse: Any = None
        if isinstance(chunk, SparseChunk) and chunk.density(places) < _SPARSE:
            self._sparse = chunk.rows(places)
            self._scale = 1.0 / np.sqrt(left[places])
            return
        self._unit = units(chunk, stats, places)
        m2 = stats.m2[places]
        if not np.array_equal(m2, left[places]):
            self._unit *= np.sqrt(m2 / left[places])[:, None]

    def squared(self, bases: Bases, counts: NDArray[np.int64]) -> Floats:
        """Return squared relevances, (b, s), and count them."""
        if self._sparse is None:
            products = self._unit @ bases.vectors
        else:
            products = self._sparse @ bases.vectors
            products *= self._scale[:, None]
        found = np.empty((len(products), bases.stop - bases.start))
        squared_relevances(products, bases.rank, found, found.view(np.int64), counts)
        return found
