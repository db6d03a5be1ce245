"""Null distribution of relevance, from permuted targets, over all columns."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel._kernels.permutations import BINS, BINS_PER_OCTAVE, OCTAVES, squared_relevances
from streamsel._utils.rollback import Rollback
from streamsel.data.chunks import Chunk, SparseChunk, Stats
from streamsel.serialization.schema import ArrayKind, CountKind, expect, length_in
from streamsel.state.base import Floats, Indices
from streamsel.state.pool.pool import unit_columns
from streamsel.targets.permutations import Bases, PermutedTarget
from streamsel.targets.space import TargetSpace

# Number of most relevant columns for which the step-down procedure is exact.
N_LEADERS = 64
# Permuted statistics within this relative distance of an observed one are equal: columns with few
# distinct values have exact ties, which rounding would break.
_TIE_RTOL = 1e-9
# Upper bound of a squared relevance, including rounding.
_MAX_SQUARE = 1.0 + 1e-6
# Values per tile of columns.
_TILE = 1 << 19
# Density below which a sparse column is not made dense.
_SPARSE = 0.1


class Leaders(NamedTuple):
    """The most relevant columns in descending order; of equal ones the earliest first.

    Parameters
    ----------
    squares
        (l,) squared relevances.
    arrivals
        (l,) number of columns before each.
    permuted
        (l, B) squared relevances under the permuted targets.
    """

    squares: Floats
    arrivals: Floats
    permuted: Floats

    def best(self) -> Indices:
        """Return the order of the best of these, at most `N_LEADERS`."""
        return np.lexsort((self.arrivals, -self.squares))[:N_LEADERS]

    def take(self, indices: Indices) -> Leaders:
        """Return some of them."""
        return Leaders(*(array[indices] for array in self))

    def joined(self, other: Leaders) -> Leaders:
        """Return these and others."""
        return Leaders(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))


class PermutationNull(Rollback):
    """Null distribution from permuted targets, over all columns: maxima, and a histogram.

    Under permutation b the statistic of a column is its relevance to the b-th permuted target.
    Stored are its maximum over all columns (Westfall and Young 1993), its values for the most
    relevant columns, which the step-down procedure excludes one by one, and a histogram of all its
    values.

    Parameters
    ----------
    permuted
        The permuted targets.

    Attributes
    ----------
    leaders
        The most relevant columns. Replaced, never modified, as are the following.
    maxima
        (B,) the largest squared relevance of all other columns, by permutation.
    counts
        (BINS,) histogram of squared relevances over all columns and permutations.
    n_tests
        Columns that vary.

    Notes
    -----
    Cost is 2 n B r operations per column; memory is O(B) and 64 B numbers.
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
        """The number of permutations."""
        return self._permuted.n_permutations

    # Learning

    def add(
        self, chunk: Chunk, stats: Stats, space: TargetSpace, relevance: Floats, arrived: int
    ) -> None:
        """Count columns of a chunk with these relevances, after `arrived` earlier columns."""
        varies = np.flatnonzero(relevance >= 0.0)
        if not varies.size:
            return
        squares = np.square(relevance[varies])
        leading = self._find_leaders(squares, arrived + varies)
        found = np.empty((leading.size, self.n_permutations))
        maxima, counts = self.maxima.copy(), self.counts.copy()
        adjusted = space.adjusted_squares(stats.m2, stats.cxy)
        step = max(16, _TILE // chunk.n)
        for start in range(0, varies.size, step):
            tile = slice(start, start + step)
            in_part = np.flatnonzero((leading >= tile.start) & (leading < tile.stop))
            columns = _Columns(chunk, stats, adjusted, varies[tile])
            for bases in self._permuted.bases():
                values = columns.squared(bases, counts)
                within = slice(bases.start, bases.stop)
                found[in_part, within] = values[leading[in_part] - start]
                values[leading[in_part] - start] = 0.0
                np.maximum(maxima[within], values.max(axis=0), out=maxima[within])
        self.counts, self.n_tests = counts, self.n_tests + varies.size
        arrivals = (arrived + varies[leading]).astype(np.float64)
        self._add_leaders(Leaders(squares[leading], arrivals, found), maxima)

    def _find_leaders(self, squares: Floats, arrivals: Indices) -> Indices:
        """Return the indices of columns that join the leaders, ascending."""
        have = self.leaders.squares.size
        if have == N_LEADERS and not squares.max() > self.leaders.squares[-1]:
            return np.empty(0, dtype=np.intp)
        both = np.append(self.leaders.squares, squares)
        order = np.lexsort((np.append(self.leaders.arrivals, arrivals), -both))[:N_LEADERS]
        return np.sort(order[order >= have]) - have

    def _add_leaders(self, new: Leaders, maxima: Floats) -> None:
        """Add columns to the leaders; those that drop out are added to the maxima."""
        if new.squares.size:
            both = self.leaders.joined(new)
            order = both.best()
            self.leaders = both.take(order)
            rest = np.ones(both.squares.size, dtype=np.bool_)
            rest[order] = False
            maxima = np.maximum(maxima, both.permuted[rest].max(axis=0, initial=0.0))
        self.maxima = maxima

    def merge(self, other: PermutationNull, arrived: int) -> None:
        """Add the columns of another null of the same permutations, after `arrived` columns."""
        theirs = other.leaders._replace(arrivals=other.leaders.arrivals + arrived)
        self._add_leaders(theirs, np.maximum(self.maxima, other.maxima))
        self.counts = self.counts + other.counts
        self.n_tests += other.n_tests

    # Results

    def quantile(self, level: float) -> float:
        """Return the relevance above which an adjusted p-value is at most this level.

        1 if there are too few permutations for that: the smallest p-value is 1 / (B + 1).
        """
        largest = np.maximum(self.maxima, self.leaders.permuted.max(axis=0, initial=0.0))
        allowed = math.floor(level * (self.n_permutations + 1) * (1.0 + _TIE_RTOL)) - 1
        if allowed < 0:
            return 1.0
        return min(1.0, math.sqrt(np.sort(largest)[::-1][allowed] * (1.0 + _TIE_RTOL)))

    def adjusted(self, relevance: Floats) -> Floats:
        """Return p-values adjusted for all columns, (p,), of columns with these relevances.

        By the step-down procedure: a column is compared with the maxima over itself and all less
        relevant columns.
        """
        squares, leaders = np.square(np.maximum(relevance, 0.0)), self.leaders
        # (l + 1, B): maxima over the i-th leader and all columns after it.
        over = np.vstack([leaders.permuted, self.maxima])
        over = np.maximum.accumulate(over[::-1])[::-1]
        p = np.array([self._share(over[i], s) for i, s in enumerate(leaders.squares.tolist())])
        p = np.maximum.accumulate(p) if p.size else p
        found = np.empty(squares.size)
        for j, s in enumerate(squares.tolist()):
            rank = int(np.count_nonzero(leaders.squares > s * (1.0 + _TIE_RTOL)))
            if rank < p.size and leaders.squares[rank] >= s * (1.0 - _TIE_RTOL):
                found[j] = p[rank]
            else:
                found[j] = max(p[rank - 1] if rank else 0.0, self._share(over[rank], s))
        return found

    def _share(self, permuted: Floats, square: float) -> float:
        """Return (1 + the number of permuted values at least as large) / (B + 1)."""
        n_above = np.count_nonzero(permuted >= square * (1.0 - _TIE_RTOL))
        return float(n_above + 1) / (self.n_permutations + 1)

    def p_values(self, relevance: Floats) -> Floats:
        """Return the share of all permuted statistics at least as large as each of these.

        Accurate to a bin of the histogram, at most 0.8 % of the square, and never too small.
        """
        above = np.append(np.cumsum(self.counts[::-1])[::-1], 0)
        squares = np.square(np.maximum(relevance, 0.0)) * (1.0 - _TIE_RTOL)
        bins = np.searchsorted(EDGES, squares, side="right") - 1
        found: Floats = (1.0 + above[np.maximum(bins, 0)]) / (1.0 + self.counts.sum())
        return found

    # Files

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file."""
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
        """Restore the state from `to_state`, for the same permutations."""
        B, n = self.n_permutations, min(length_in(state, "squares"), N_LEADERS)
        shapes = {"squares": (n,), "permuted": (n, B), "maxima": (B,)}
        expect(
            state,
            **{name: ArrayKind(shapes[name], minimum=0.0, below=_MAX_SQUARE) for name in shapes},
        )
        expect(state, arrivals=ArrayKind((n,), minimum=0.0, below=2.0**53))
        expect(state, n_tests=CountKind(n), first=CountKind())
        max_count = state["n_tests"] * B + 1
        first = min(state["first"], BINS - 1)
        expect(state, counts=ArrayKind((BINS - first,), np.int64, 0, max_count))
        if state["counts"].sum(dtype=np.float64) != state["n_tests"] * B:
            raise ValueError(
                "Expected one statistic per column and permutation. Got: another number."
            )
        if not (np.diff(state["squares"]) <= 0.0).all():
            raise ValueError("Expected the most relevant columns first. Got: another order.")
        self.leaders = Leaders(*(np.array(state[name]) for name in Leaders._fields))
        self.maxima, self.counts = np.array(state["maxima"]), np.pad(state["counts"], (first, 0))
        self.n_tests = state["n_tests"]


# (BINS,) lower edges of the bins of squared relevance; smaller values are in the first bin.
EDGES: Floats = (
    2.0 ** np.arange(-OCTAVES, 0)[:, None] * (1.0 + np.arange(BINS_PER_OCTAVE) / BINS_PER_OCTAVE)
).ravel()


class _Columns:
    """Columns of a chunk, adjusted for covariates and of length 1.

    Parameters
    ----------
    chunk, stats
        The columns, and the moments of the first of them.
    adjusted
        (b,) sums of squares, adjusted for covariates.
    indices
        Indices of the columns to use; these vary.
    """

    def __init__(self, chunk: Chunk, stats: Stats, adjusted: Floats, indices: Indices) -> None:
        self._sparse: Any = None
        if isinstance(chunk, SparseChunk) and chunk.density(indices) < _SPARSE:
            self._sparse = chunk.rows(indices)
            self._scale = 1.0 / np.sqrt(adjusted[indices])
            return
        self._unit = unit_columns(chunk, stats, indices)
        m2 = stats.m2[indices]
        if not np.array_equal(m2, adjusted[indices]):
            self._unit *= np.sqrt(m2 / adjusted[indices])[:, None]

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
