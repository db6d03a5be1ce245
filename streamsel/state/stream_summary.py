"""Statistics over all columns of a stream, and a sample that estimates tails and correlation."""

from __future__ import annotations

import copy
import functools
from collections.abc import Hashable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from streamsel._kernels.column_shape import add_shape_statistics
from streamsel._utils.rollback import Rollback
from streamsel.data.chunks import Chunk, Stats
from streamsel.data.names import NameHash
from streamsel.serialization.invariants import expect_between
from streamsel.serialization.schema import ArrayKind, CountKind, FloatKind, expect
from streamsel.state.base import Floats, Indices
from streamsel.state.histogram import RelevanceHistogram
from streamsel.state.permutation_null import PermutationNull
from streamsel.targets.permutations import PermutedTarget
from streamsel.targets.row_transform import RowTransform
from streamsel.targets.space import TargetSpace
from streamsel.targets.target import Target

# The first 32 columns are in the sample, then every second up to the 64th, every fourth up to the
# 128th, and so on: 32 columns, and 16 whenever their number has doubled.
_FIRST = 32
# Bins per octave of kurtosis plus an offset; excess kurtosis is at least -2.
_IN_OCTAVE, _BINS, _OFFSET = 8, 320, 3.0
# (BINS,) the midpoint of each bin.
KURTOSES: Floats = 2.0 ** ((np.arange(_BINS) + 0.5) / _IN_OCTAVE) - _OFFSET
_LAYOUT = (_OFFSET, float(_IN_OCTAVE))
# Number of random sums of columns, and length of each.
_SUMS, _SUM_LENGTH = 48, 48
# Numbers of sampled columns that are copied at once.
_BATCH_SIZE = 2**20
_PAIRS = np.triu_indices(_SUMS, 1)
_HASH = NameHash(0, "column sample")


class ColumnSample(Rollback):
    """Kurtosis and correlation of a sample of the columns.

    Each sampled column is weighted by the number of columns that it represents. Its arrival alone
    decides whether a column is sampled; the sample grows with the logarithm of their number.

    Attributes
    ----------
    counts
        (320,) columns by excess kurtosis. Replaced, never modified, as are the following.
    sums
        (48, 48) sums of the columns, scaled to length 1, with random signs. Their inner products
        show how much the columns correlate. Every 48th row of a column is added up, with random
        signs, which preserves inner products in expectation (Charikar et al. 2002).
    weight2
        Sum of the squared weights of the sample.
    n
        Observations per column; 0 before the first.
    """

    changing = ("counts", "sums", "weight2", "n")

    def __init__(self) -> None:
        self.counts: Floats = np.zeros(_BINS)
        self.sums: Floats = np.zeros((_SUMS, _SUM_LENGTH))
        self.weight2, self.n = 0.0, 0

    def add(
        self, chunk: Chunk, stats: Stats, arrived: int, row_transform: RowTransform | None
    ) -> None:
        """Add the sampled columns of a chunk that arrived after `arrived` columns."""
        arrivals, steps = sampled_arrivals(arrived, arrived + stats.m2.size)
        if not arrivals.size:
            return
        indices = arrivals - arrived
        steps[stats.m2[indices] == 0.0] = 0.0
        keys = _keys_of([chunk.names[index] for index in indices.tolist()], arrivals)
        counts, sums, weight2 = self.counts.copy(), self.sums.copy(), self.weight2
        rows, step = _rows(chunk.n, row_transform), max(1, _BATCH_SIZE // chunk.n)
        # A sample of tall columns would take more memory than the pool.
        for start in range(0, indices.size, step):
            part = slice(start, start + step)
            weight2 += add_shape_statistics(
                *(chunk.observations(indices[part]), indices[part], steps[part], keys[part]),
                *((stats.mean, stats.m2), rows, _LAYOUT, (counts, sums)),
            )
        self.counts, self.sums, self.weight2, self.n = counts, sums, weight2, chunk.n

    def mean_squared_correlation(self) -> float:
        """Return the mean squared correlation of two different columns; 0 if unknown.

        Estimated from E (s·t)² = Σ w_i w_j ρ_ij² for sums s and t with independent signs, minus the
        expected value for unrelated columns with this many rows and 48 numbers. Accurate to about
        40 %.
        """
        rest = self.counts.sum() ** 2 - self.weight2
        if rest <= 0.0 or self.n < 3:
            return 0.0
        products = (self.sums @ self.sums.T)[_PAIRS]
        mean = (float(products @ products) / products.size - self.weight2) / rest
        return float(max(0.0, mean - 1.0 / (self.n - 1) - 1.0 / _SUM_LENGTH))

    def merge(self, other: ColumnSample) -> None:
        """Add the sample of another model."""
        self.counts, self.sums = self.counts + other.counts, self.sums + other.sums
        self.weight2, self.n = self.weight2 + other.weight2, max(self.n, other.n)

    # Files

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file."""
        return {name: getattr(self, name) for name in self.changing}

    def set_state(self, state: dict[str, Any], arrived: int) -> None:
        """Restore the state from `to_state`, after `arrived` columns."""
        # The last sampled column also represents columns still to come.
        max_weight = 2.0 * arrived + _FIRST
        expect(state, counts=ArrayKind((_BINS,), minimum=0.0, below=max_weight), n=CountKind())
        expect(state, sums=ArrayKind((_SUMS, _SUM_LENGTH), minimum=-max_weight, below=max_weight))
        # The sum of squares of non-negative numbers is at most the square of their sum.
        expect(state, weight2=FloatKind(0.0))
        expect_between(
            "squares of weights", state["weight2"], 0.0, 1.01 * state["counts"].sum() ** 2
        )
        self.counts, self.sums = np.array(state["counts"]), np.array(state["sums"])
        self.weight2, self.n = float(state["weight2"]), state["n"]


def sampled_arrivals(start: int, stop: int) -> tuple[Indices, Floats]:
    """Return the sampled arrivals from `start` to below `stop`, and their weights."""
    level = max(0, (start // _FIRST).bit_length())
    arrivals, steps = [], []
    while (_FIRST << level) >> 1 < stop or not level:
        step = 1 << level
        low, high = (_FIRST << level) >> 1 if level else 0, _FIRST << level
        first = max(low, -(-start // step) * step)
        arrivals.append(np.arange(first, min(high, stop), step))
        steps.append(np.full(arrivals[-1].size, float(step)))
        level += 1
    if len(arrivals) == 1:
        return arrivals[0], steps[0]
    return np.concatenate(arrivals), np.concatenate(steps)


def next_sampled(start: int) -> int:
    """Return the first sampled arrival from `start` on."""
    step = 1 << (start // _FIRST).bit_length()
    return -(-start // step) * step


def _rows(n: int, row_transform: RowTransform | None) -> Floats:
    """Return the weights of the rows, and their square roots with random signs, (2, n)."""
    rows = _equal_rows(n)
    if row_transform is None:
        return rows
    w = row_transform.row_weights
    weighted: Floats = rows * np.array([w, np.sqrt(w)])
    return weighted


@functools.lru_cache(maxsize=2)
def _equal_rows(n: int) -> Floats:
    return np.array([np.ones(n), np.random.default_rng(0).choice((-1.0, 1.0), n)])


def _keys_of(names: Sequence[Hashable], arrivals: Indices) -> NDArray[np.uint64]:
    """Return 64 random bits for each column: a hash of its name."""
    try:
        return _HASH(names)
    except TypeError:  # a name whose hash differs between processes
        return _HASH(arrivals.tolist())


# Number of columns whose relevance is stored.
MAX_POINTS = 500


class StreamSummary(Rollback):
    """Statistics over all columns that a model has learnt, for reports and tests.

    Parameters
    ----------
    permuted
        The permuted targets; None for none.

    Attributes
    ----------
    first
        Relevances of the first 500 columns, -1 for one that does not vary. Replaced, never changed.
    histogram
        Counts of columns by arrival and relevance.
    sample
        Estimates of the columns' kurtosis and correlations.
    null
        Null distribution from the permuted targets; None without permutations.
    histogram_only_until
        Before this arrival, a column that changes nothing else is only counted in the histogram.
    """

    changing = ("first", "histogram", "sample", "null", "histogram_only_until")

    def __init__(self, permuted: PermutedTarget | None = None) -> None:
        self.first: Floats = np.empty(0)
        self.histogram = RelevanceHistogram()
        self.sample = ColumnSample()
        self.null = None if permuted is None else PermutationNull(permuted)
        self.histogram_only_until = 0

    def add(
        self,
        chunk: Chunk,
        stats: Stats,
        target: Target,
        space: TargetSpace,
        relevance: Floats,
        arrived: int,
    ) -> None:
        """Count columns of these relevances, after `arrived` others."""
        stop = arrived + stats.m2.size
        if stop > self.histogram_only_until:
            self.add_sample(chunk, stats, target, arrived)
            if self.null is not None:
                self.null.add(chunk, stats, space, relevance, arrived)
            self._add_first(relevance, arrived)
            self._update_simple_until(stop)
        self.histogram.add(relevance, arrived)

    def add_sample(self, chunk: Chunk, stats: Stats, target: Target, arrived: int) -> None:
        """Sample columns, after `arrived` others."""
        self.sample.add(chunk, stats, arrived, target.row_transform)

    def add_relevance(self, relevance: Floats, arrived: int) -> None:
        """Count groups of columns of these relevances, after `arrived` others."""
        self._add_first(relevance, arrived)
        self.histogram.add(relevance, arrived)

    def _add_first(self, relevance: Floats, arrived: int) -> None:
        if arrived < MAX_POINTS:
            self.first = np.append(self.first, np.maximum(relevance, -1.0))[:MAX_POINTS]

    def _update_simple_until(self, arrived: int) -> None:
        self.histogram_only_until = arrived
        if self.null is None and arrived >= MAX_POINTS:
            self.histogram_only_until = next_sampled(arrived)

    def merge(self, other: StreamSummary, arrived: int, size: int) -> None:
        """Add the counts of another, `size` columns or groups that arrived after `arrived`."""
        if arrived < MAX_POINTS:
            self.first = np.append(self.first, other.first)[:MAX_POINTS]
        self.histogram.merge(other.histogram, arrived, size)
        self.sample.merge(other.sample)
        if self.null is not None and other.null is not None:
            self.null.merge(other.null, arrived)
        self._update_simple_until(arrived + size)

    # Copies, files

    def copy(self) -> Self:
        """Return a copy that later counts do not change."""
        other = copy.copy(self)
        other.histogram, other.sample = self.histogram.copy(), copy.copy(self.sample)
        other.null = copy.copy(self.null)
        return other

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        state: dict[str, Any] = {"first": self.first, "histogram": self.histogram.to_state()}
        state["sample"] = self.sample.to_state()
        return state if self.null is None else state | {"null": self.null.to_state()}

    def set_state(self, state: dict[str, Any], arrived: int, n_candidates: int) -> None:
        """Restore the state that `to_state` returned after `arrived` columns.

        Parameters
        ----------
        state, arrived
            The state, and the number of columns.
        n_candidates
            Number of columns, or of groups of these.
        """
        size = min(n_candidates, MAX_POINTS)
        expect(state, first=ArrayKind((size,), minimum=-1.0, below=1.0 + 1e-6))
        self.first = np.array(state["first"])
        self.histogram = RelevanceHistogram.restored(state["histogram"], n_candidates)
        self.sample.set_state(state["sample"], arrived)
        if self.null is not None:
            self.null.set_state(state["null"])
        self._update_simple_until(arrived)
