"""Loadings of all columns, or of the largest, by reading the columns again."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np

from streamsel.columns import Chunk, SparseChunk, Stats
from streamsel.extraction._canonical_ridge import as_long, besides, regressed, without
from streamsel.held.gram_and_pool import GramAndPool
from streamsel.held.loadings import Loadings
from streamsel.held.operand import Dense, Operand, Sparse
from streamsel.held.part import Floats, Places
from streamsel.held.same import ROUGH, Same, unlike_before
from streamsel.held.waiting import Stored

# Bytes of columns that are weighted at once.
_PIECE = 4 << 20
# Sparse columns are, so many at once, multiplied as they are stored.
_SPARSE = 4096

# Who is told the loadings of columns: names, means, and weights (b, q).
Sink = Callable[[Sequence[Hashable], Floats, Floats], None]


class Again(NamedTuple):
    """What columns are read again for.

    Parameters
    ----------
    duals, scores
        (n, q) what turns weighted columns into loadings, α, and what the components are.
    n
        Observations less the covariates.
    trace
        The sum of the squares of all columns, weighted.
    weigh
        What centred columns of such moments are multiplied by, (b,); 0 for what is left out.
    probe, of_probe
        (n, k) vectors, and what the inner products of the observations make of them: whether the
        columns are the same ones is told by these.
    hidden
        (n, r) what components are to have no part in; None where they may be anything.
    """

    duals: Floats
    scores: Floats
    n: float
    trace: float
    weigh: Callable[[Stats], Floats]
    probe: Floats
    of_probe: Floats
    hidden: Floats | None = None


class Kept(NamedTuple):
    """Columns whose loadings are kept.

    Parameters
    ----------
    names, means, scale
        (s,) of them, and what they are multiplied by.
    weighted, loadings
        (s, n) what comes of it, and its products with α, (s, q).
    """

    names: list[Hashable]
    means: Floats
    scale: Floats
    weighted: Floats
    loadings: Floats

    def some(self, places: Places) -> Kept:
        """Return some of them."""
        names = [self.names[place] for place in places.tolist()]
        return Kept(names, *(array[places] for array in self[1:]))

    @classmethod
    def together(cls, pieces: Sequence[Kept]) -> Kept:
        """Return pieces as one."""
        names, *arrays = zip(*pieces, strict=True)
        return cls(list(itertools.chain(*names)), *map(np.concatenate, arrays))


class SecondReading:
    """Reads columns again, and keeps those of the largest loadings.

    With α what turns weighted columns into loadings, those of a column x of length 1 that counts
    with D are D · D xᵀα. Where not all can be kept the largest D xᵀα are, and what these miss of
    the components is regressed on them.

    Parameters
    ----------
    held, again
        What the first reading found.
    same
        What tells whether these are the columns of the first reading.
    limit
        How many variables are kept.
    sink
        Who is told the loadings of all columns, as they come.
    """

    def __init__(
        self, held: GramAndPool, again: Again, same: Same, limit: int, sink: Sink | None = None
    ) -> None:
        self.held, self.again, self.limit, self._sink = held, again, limit, sink
        self._same = same
        # What the columns read make of the probe.
        self._of_probe = np.zeros_like(again.probe)
        self._least, self._let_go = -1.0, False
        # Without the covariates, of which columns are not freed as long as they are sparse.
        self._duals, self._probe = (_left(V, held.given) for V in (again.duals, again.probe))
        none = np.empty(0)
        q = again.scores.shape[1]
        self._kept = [Kept([], none, none, np.empty((0, held.n)), np.empty((0, q)))]

    def read(self, chunk: Chunk, stats: Stats) -> None:
        """Read the columns of a chunk."""
        self._same.check(chunk.names, stats)
        scale = self.again.weigh(stats)
        length = np.sqrt(self.held.left(stats))
        places = np.flatnonzero(scale)
        step = _SPARSE if isinstance(chunk, SparseChunk) else max(1, _PIECE // (8 * chunk.n))

        def weigh(piece: Places) -> Floats:
            units = self.held.units_of(chunk, stats, piece)
            units *= (scale * length)[piece, None]
            return units

        for start in range(0, places.size, step):
            piece = places[start : start + step]
            names = [chunk.names[place] for place in piece.tolist()]
            means, factors = stats.mean[piece], scale[piece]
            dense = None
            if isinstance(chunk, SparseChunk):
                ones = np.ones((piece.size, 1))
                stored = Stored.of(chunk, stats, piece, factors, ones)
                loadings = self._loadings_of(Sparse(stored, chunk.n))
            else:
                dense = weigh(piece)
                loadings = self._loadings_of(Dense(dense, 1))
            if self._sink is not None:
                self._sink(names, means, loadings * factors[:, None])
            sizes = _sizes(loadings)
            large = np.flatnonzero(sizes > self._least)
            large = large[_largest(sizes[large], self.limit)]
            self._let_go |= large.size < piece.size
            if large.size:
                weighted = weigh(piece[large]) if dense is None else dense[large]
                names = [names[place] for place in large.tolist()]
                self._keep(Kept(names, means[large], factors[large], weighted, loadings[large]))

    def _loadings_of(self, columns: Operand) -> Floats:
        """Return the products of columns with α; note what they make of the probe."""
        if self._probe.size:
            self._of_probe += columns.along(columns.onto(self._probe))
        return columns.onto(self._duals)

    def _keep(self, kept: Kept) -> None:
        self._kept.append(kept)
        if sum(len(kept.names) for kept in self._kept) >= 2 * self.limit:
            self._cut_back()

    def _cut_back(self) -> None:
        kept = Kept.together(self._kept)
        sizes = _sizes(kept.loadings)
        largest = _largest(sizes, self.limit)
        self._let_go |= largest.size < len(kept.names)
        self._least = float(sizes[largest].min(initial=np.inf))
        self._kept = [kept.some(largest)]

    def found(self) -> Loadings:
        """Return the loadings of what was read; ValueError where that is not what was learnt."""
        self._same.end()
        before = self.again.of_probe
        least = ROUGH * np.abs(before).max(initial=0.0)
        if not np.allclose(_left(self._of_probe, self.held.given), before, rtol=0.0, atol=least):
            raise unlike_before("columns of other values")
        if sum(len(kept.names) for kept in self._kept) > self.limit:
            self._cut_back()
        names, means, scale, weighted, loadings = Kept.together(self._kept)
        if self._let_go:
            scores = self.again.scores
            missed = scores - weighted.T @ loadings
            others = besides(self.again.trace, weighted)
            loadings = loadings + regressed(weighted, missed, self.again.n, others)
            loadings = as_long(loadings, weighted, scores)
        if self.again.hidden is not None:
            loadings = without(loadings, weighted @ self.again.hidden)
        return Loadings(names, means, loadings * scale[:, None])


def _left(V: Floats, given: Floats | None) -> Floats:
    """Return what covariates leave of V, (n, k)."""
    return V if given is None else V - given.T @ (given @ V)


def _largest(sizes: Floats, limit: int) -> Places:
    """Return the places of the largest, in ascending order."""
    return np.sort(np.argsort(-sizes, kind="stable")[:limit])


def _sizes(loadings: Floats) -> Floats:
    """Return the squared length of each row."""
    sizes: Floats = np.square(loadings).sum(axis=1)
    return sizes
