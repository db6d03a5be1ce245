"""Sample of columns that estimates the tails and the mean correlation of all columns."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel._jit.shape import take_shapes
from streamsel.columns import Chunk, Stats
from streamsel.hashing import NameHash
from streamsel.held.part import Floats, Places
from streamsel.held.possible import expect_between
from streamsel.rollback import Rollback
from streamsel.shapes import Array, Count, Number, expect
from streamsel.target.weights import Weights

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

    def add(self, chunk: Chunk, stats: Stats, arrived: int, weights: Weights | None) -> None:
        """Add the sampled columns of a chunk that arrived after `arrived` columns."""
        arrivals, steps = sampled(arrived, arrived + stats.m2.size)
        if not arrivals.size:
            return
        indices = arrivals - arrived
        X = chunk.observations(indices)
        if weights is not None:
            X[:, weights.w == 0.0] = 0.0
        steps[stats.m2[indices] == 0.0] = 0.0
        keys = _keys_of([chunk.names[index] for index in indices.tolist()], arrivals)
        counts, sums = self.counts.copy(), self.sums.copy()
        self.weight2 += take_shapes(
            *(X, indices, steps, keys, (stats.mean, stats.m2), _rows(chunk.n, weights)),
            *(_LAYOUT, (counts, sums)),
        )
        self.counts, self.sums, self.n = counts, sums, chunk.n

    def mean_squared_correlation(self) -> float:
        """Return the mean squared correlation of two different columns; 0 if unknown.

        From E (s·t)² = Σ w_i w_j ρ_ij² for sums s and t with independent signs, minus the expected
        value for unrelated columns with this many rows and 48 numbers. Accurate to about 40 %.
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
        expect(state, counts=Array((_BINS,), least=0.0, below=max_weight), n=Count())
        expect(state, sums=Array((_SUMS, _SUM_LENGTH), least=-max_weight, below=max_weight))
        # The sum of squares of non-negative numbers is at most the square of their sum.
        expect(state, weight2=Number(0.0))
        expect_between(
            "squares of weights", state["weight2"], 0.0, 1.01 * state["counts"].sum() ** 2
        )
        self.counts, self.sums = np.array(state["counts"]), np.array(state["sums"])
        self.weight2, self.n = float(state["weight2"]), state["n"]


def sampled(start: int, stop: int) -> tuple[Places, Floats]:
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


def _rows(n: int, weights: Weights | None) -> Floats:
    """Return the weights of the rows, and their square roots with random signs, (2, n)."""
    rows = _equal_rows(n)
    return rows if weights is None else rows * np.array([weights.w, np.sqrt(weights.w)])


@functools.lru_cache(maxsize=2)
def _equal_rows(n: int) -> Floats:
    return np.array([np.ones(n), np.random.default_rng(0).choice((-1.0, 1.0), n)])


def _keys_of(names: Sequence[Hashable], arrivals: Places) -> NDArray[np.uint64]:
    """Return 64 random bits for each column: a hash of its name."""
    try:
        return _HASH(names)
    except TypeError:  # a name whose hash differs between processes
        return _HASH(arrivals.tolist())
