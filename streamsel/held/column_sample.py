"""A sample of the columns that pass: how heavy their tails are, and how much they correlate."""

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
# Bins an octave, of kurtosis plus an offset, for an excess kurtosis is -2 or more.
_IN_OCTAVE, _BINS, _OFFSET = 8, 320, 3.0
# (BINS,) the middle of each bin.
KURTOSES: Floats = 2.0 ** ((np.arange(_BINS) + 0.5) / _IN_OCTAVE) - _OFFSET
_LAYOUT = (_OFFSET, float(_IN_OCTAVE))
# Random sums of columns, and the numbers in each.
_SUMS, _SHORT = 48, 48
_PAIRS = np.triu_indices(_SUMS, 1)
_HASH = NameHash(0, "column sample")


class ColumnSample(Rollback):
    """Kurtosis and correlation of a sample of the columns.

    Each column of the sample counts for as many as it is a sample of. Which columns are in it
    follows from their arrivals alone; their number grows with the logarithm of all.

    Attributes
    ----------
    counts
        (320,) columns by excess kurtosis. Replaced, never changed, as are the following.
    sums
        (48, 48) sums of the columns, scaled to length 1, with random signs. Their inner products
        show how much the columns correlate. Each 48th row of a column is added up, with random
        signs, which keeps inner products in expectation (Charikar et al. 2002).
    weight2
        Sum of the squared weights of the sample.
    n
        Observations of each column; 0 before the first.
    """

    changing = ("counts", "sums", "weight2", "n")

    def __init__(self) -> None:
        self.counts: Floats = np.zeros(_BINS)
        self.sums: Floats = np.zeros((_SUMS, _SHORT))
        self.weight2, self.n = 0.0, 0

    def add(self, chunk: Chunk, stats: Stats, arrived: int, weights: Weights | None) -> None:
        """Take in the columns of a chunk that are in the sample, as arrived after so many."""
        arrivals, steps = sampled(arrived, arrived + stats.m2.size)
        if not arrivals.size:
            return
        places = arrivals - arrived
        X = chunk.observations(places)
        if weights is not None:
            X[:, weights.w == 0.0] = 0.0
        steps[stats.m2[places] == 0.0] = 0.0
        keys = _keys_of([chunk.names[place] for place in places.tolist()], arrivals)
        counts, sums = self.counts.copy(), self.sums.copy()
        self.weight2 += take_shapes(
            *(X, places, steps, keys, (stats.mean, stats.m2), _rows(chunk.n, weights)),
            *(_LAYOUT, (counts, sums)),
        )
        self.counts, self.sums, self.n = counts, sums, chunk.n

    def mean_squared_correlation(self) -> float:
        """Return the mean squared correlation of two different columns; 0 if none is known.

        From E (s·t)² = Σ w_i w_j ρ_ij² for sums s and t with independent signs, less what pairs of
        unrelated columns have in so many rows, and in 48 numbers. To some 40 %.
        """
        rest = self.counts.sum() ** 2 - self.weight2
        if rest <= 0.0 or self.n < 3:
            return 0.0
        products = (self.sums @ self.sums.T)[_PAIRS]
        mean = (float(products @ products) / products.size - self.weight2) / rest
        return float(max(0.0, mean - 1.0 / (self.n - 1) - 1.0 / _SHORT))

    def merge(self, other: ColumnSample) -> None:
        """Take in another's columns, too."""
        self.counts, self.sums = self.counts + other.counts, self.sums + other.sums
        self.weight2, self.n = self.weight2 + other.weight2, max(self.n, other.n)

    # Files

    def to_state(self) -> dict[str, Any]:
        """Return what a file needs."""
        return {name: getattr(self, name) for name in self.changing}

    def set_state(self, state: dict[str, Any], arrived: int) -> None:
        """Take up what `to_state` returned, when so many columns had arrived."""
        # The last column of the sample counts for some that are yet to come.
        most = 2.0 * arrived + _FIRST
        expect(state, counts=Array((_BINS,), least=0.0, below=most), n=Count())
        expect(state, sums=Array((_SUMS, _SHORT), least=-most, below=most))
        # A sum of squares of numbers that are not negative is at most the square of their sum.
        expect(state, weight2=Number(0.0))
        expect_between(
            "squares of weights", state["weight2"], 0.0, 1.01 * state["counts"].sum() ** 2
        )
        self.counts, self.sums = np.array(state["counts"]), np.array(state["sums"])
        self.weight2, self.n = float(state["weight2"]), state["n"]


def sampled(start: int, stop: int) -> tuple[Places, Floats]:
    """Return the arrivals from start to below stop that are in the sample, and their weights."""
    level = max(0, (start // _FIRST).bit_length())
    found, steps = [], []
    while (_FIRST << level) >> 1 < stop or not level:
        step = 1 << level
        low, high = (_FIRST << level) >> 1 if level else 0, _FIRST << level
        first = max(low, -(-start // step) * step)
        found.append(np.arange(first, min(high, stop), step))
        steps.append(np.full(found[-1].size, float(step)))
        level += 1
    if len(found) == 1:
        return found[0], steps[0]
    return np.concatenate(found), np.concatenate(steps)


def next_sampled(start: int) -> int:
    """Return the first arrival, from start on, that is in the sample."""
    step = 1 << (start // _FIRST).bit_length()
    return -(-start // step) * step


def _rows(n: int, weights: Weights | None) -> Floats:
    """Return weights of the rows, and their roots with random signs, (2, n)."""
    rows = _equal_rows(n)
    return rows if weights is None else rows * np.array([weights.w, np.sqrt(weights.w)])


@functools.lru_cache(maxsize=2)
def _equal_rows(n: int) -> Floats:
    return np.array([np.ones(n), np.random.default_rng(0).choice((-1.0, 1.0), n)])


def _keys_of(names: Sequence[Hashable], arrivals: Places) -> NDArray[np.uint64]:
    """Return 64 random bits for each column: a hash of its name."""
    try:
        return _HASH(names)
    except TypeError:  # a name that another process would not know
        return _HASH(arrivals.tolist())
