"""Loadings of all columns, or of the largest, by reading the columns again."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamsel.columns import Chunk, SparseChunk, Stats
from streamsel.extraction._canonical_ridge import as_long, besides, regressed, without
from streamsel.held.gram_and_pool import GramAndPool
from streamsel.held.loadings import Loadings
from streamsel.held.operand import Dense, Operand, Sparse
from streamsel.held.part import Floats, Places
from streamsel.held.same import ROUGH, Learnt, unlike_before
from streamsel.held.waiting import Stored
from streamsel.stream import ColumnStream

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
    scales
        One a weighting: what columns are weighted by is multiplied by these; the squares are added.
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
    scales: Floats
    probe: Floats
    of_probe: Floats
    hidden: Floats | None = None


class Kept(NamedTuple):
    """Columns whose loadings are kept.

    Parameters
    ----------
    names, means, deviations, scale
        (s,) of them, and what they are multiplied by.
    weighted, loadings
        (s, n) what comes of it, and its products with α, (s, q).
    """

    names: list[Hashable]
    means: Floats
    deviations: Floats
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


class LoadingsFound:
    """The columns of the largest loadings, of those that were read.

    Parameters
    ----------
    shape
        Observations, none where they are not kept, and components, (n, q).
    probe
        (n, k) as `Again` has it.
    limit
        How many columns are kept.

    Attributes
    ----------
    n_read, seen
        How many columns were read, and the names among them that are held.
    of_probe
        (n, k) what they make of the probe.
    let_go
        Whether there are columns that are not kept.
    """

    def __init__(self, shape: tuple[int, int], probe: Floats, limit: int) -> None:
        n, q = shape
        none = np.empty(0)
        self.n_read, self.seen = 0, set[Hashable]()
        self.of_probe, self.let_go = np.zeros_like(probe), False
        self._limit, self._least = limit, -1.0
        self._kept = [Kept([], none, none, none, np.empty((0, n)), np.empty((0, q)))]

    def large(self, loadings: Floats) -> Places:
        """Return which columns are to be kept, by their loadings, (b, q); note the rest."""
        sizes = _sizes(loadings)
        large = np.flatnonzero(sizes > self._least)
        large = large[_largest(sizes[large], self._limit)]
        self.let_go |= large.size < len(loadings)
        return large

    def keep(self, kept: Kept) -> None:
        """Keep columns, behind those kept; the largest of both where they are too many."""
        self._kept.append(kept)
        if sum(len(kept.names) for kept in self._kept) >= 2 * self._limit:
            self.cut_back()

    def cut_back(self) -> None:
        """Keep no more than are asked for."""
        kept = self.kept()
        if len(kept.names) <= self._limit:
            return
        sizes = _sizes(kept.loadings)
        largest = _largest(sizes, self._limit)
        self.let_go = True
        self._least = float(sizes[largest].min(initial=np.inf))
        self._kept = [kept.some(largest)]

    def kept(self) -> Kept:
        """Return the columns that are kept."""
        self._kept = [Kept.together(self._kept)]
        return self._kept[0]

    def merge(self, other: LoadingsFound) -> None:
        """Take in what was found in the columns that come right after."""
        self.n_read += other.n_read
        self.seen |= other.seen
        self.of_probe = self.of_probe + other.of_probe
        self.let_go |= other.let_go
        self.keep(other.kept())
        self.cut_back()


class LoadingsReading:
    """Reads columns again, and keeps those of the largest loadings.

    With α what turns weighted columns into loadings, those of a column x of length 1 that counts
    with D are D · D xᵀα. Where not all can be kept the largest D xᵀα are, and what these miss of
    the components is regressed on them.

    Parameters
    ----------
    model
        One of the same parameters and target that has learnt nothing.
    again
        What the first reading found.
    given
        (d, n) the span of the covariates; None where there are none.
    learnt
        What tells whether these are the columns of the first reading.
    limit
        How many variables are kept.
    observed
        Whether their observations are too: what is regressed on them, or taken out, needs these.
    """

    def __init__(
        self,
        model: Any,
        again: Again,
        given: Floats | None,
        learnt: Learnt,
        limit: int,
        *,
        observed: bool,
    ) -> None:
        self._model, self._learnt, self._limit = model, learnt, limit
        self._observed = observed
        self._shape, self._scales = again.scores.shape, again.scales
        # Without the covariates, of which columns are not freed as long as they are sparse.
        self._duals, self._probe = (_left(V, given) for V in (again.duals, again.probe))

    def read(
        self, stream: ColumnStream, arrival: int = 0, sink: Sink | None = None
    ) -> LoadingsFound:
        """Return what is found in the columns of a part, in any order.

        Parameters
        ----------
        stream
            The columns.
        arrival
            How many columns come before them, which does not matter.
        sink
            Who is told the loadings of all columns, as they come.
        """
        del arrival
        n, q = self._shape
        found = LoadingsFound((n if self._observed else 0, q), self._probe, self._limit)
        held: GramAndPool = self._model._new_columns(n)
        for chunk, stats in self._model._scanned(stream):
            found.seen |= self._learnt.check(chunk.names, stats)
            found.n_read += len(chunk.names)
            self._look(chunk, stats, held, found, sink)
        found.cut_back()
        return found

    def _look(
        self,
        chunk: Chunk,
        stats: Stats,
        held: GramAndPool,
        found: LoadingsFound,
        sink: Sink | None,
    ) -> None:
        """Read the columns of a chunk."""
        scale: Floats = np.linalg.norm(held.weights(stats) * self._scales, axis=1)
        length = np.sqrt(held.left(stats))
        places = np.flatnonzero(scale)
        step = _SPARSE if isinstance(chunk, SparseChunk) else max(1, _PIECE // (8 * chunk.n))

        def weigh(piece: Places) -> Floats:
            units = held.units_of(chunk, stats, piece)
            units *= (scale * length)[piece, None]
            return units

        for start in range(0, places.size, step):
            piece = places[start : start + step]
            names = [chunk.names[place] for place in piece.tolist()]
            means, factors = stats.mean[piece], scale[piece]
            deviations = np.sqrt(stats.m2[piece] / chunk.n)
            dense = None
            if isinstance(chunk, SparseChunk):
                stored = Stored.of(chunk, stats, piece, factors, np.ones((piece.size, 1)))
                loadings = self._loadings_of(Sparse(stored, chunk.n), found)
            else:
                dense = weigh(piece)
                loadings = self._loadings_of(Dense(dense, 1), found)
            if sink is not None:
                sink(names, means, loadings * factors[:, None])
            large = found.large(loadings)
            if large.size:
                weighted = np.empty((large.size, 0))
                if self._observed:
                    weighted = weigh(piece[large]) if dense is None else dense[large]
                names = [names[place] for place in large.tolist()]
                own = (means[large], deviations[large], factors[large])
                found.keep(Kept(names, *own, weighted, loadings[large]))

    def _loadings_of(self, columns: Operand, found: LoadingsFound) -> Floats:
        """Return the products of columns with α; note what they make of the probe."""
        if self._probe.size:
            found.of_probe += columns.along(columns.onto(self._probe))
        return columns.onto(self._duals)


def loadings_of(
    found: LoadingsFound, again: Again, given: Floats | None, learnt: Learnt
) -> Loadings:
    """Return the loadings of what was read; ValueError where that is not what was learnt."""
    learnt.expect_all(found.n_read, found.seen)
    before = again.of_probe
    least = ROUGH * np.abs(before).max(initial=0.0)
    if not np.allclose(_left(found.of_probe, given), before, rtol=0.0, atol=least):
        raise unlike_before("columns of other values")
    found.cut_back()
    names, means, deviations, scale, weighted, loadings = found.kept()
    if found.let_go:
        scores = again.scores
        missed = scores - weighted.T @ loadings
        others = besides(again.trace, weighted)
        loadings = loadings + regressed(weighted, missed, again.n, others)
        loadings = as_long(loadings, weighted, scores)
    if again.hidden is not None:
        loadings = without(loadings, weighted @ again.hidden)
    return Loadings(names, means, loadings * scale[:, None], deviations)


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
