"""Loadings of all columns, or of the largest, in a second pass over the columns."""

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

# Bytes of dense columns that are weighted at a time.
_BATCH_BYTES = 4 << 20
# Number of sparse columns that are multiplied at a time, without conversion to dense ones.
_SPARSE_BATCH = 4096

# Receives the loadings of columns: names, means, and weights (b, q).
Sink = Callable[[Sequence[Hashable], Floats, Floats], None]


class Again(NamedTuple):
    """The quantities needed for a second pass.

    Parameters
    ----------
    duals, scores
        (n, q) α, which maps weighted columns to loadings, and the scores of the components.
    n
        Number of observations minus the rank of the covariates.
    trace
        Sum of squares of all weighted columns.
    scales
        Factor of each weighting of the columns; the squares are added.
    probe, of_probe
        (n, k) random vectors, and their products with the Gram matrix, to verify that the columns
        are the same.
    hidden
        (n, r) directions that components must be orthogonal to; None for none.
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
        (s,) names, means, standard deviations and weights of the columns.
    weighted, loadings
        (s, n) the weighted columns, and their products with α, (s, q).
    """

    names: list[Hashable]
    means: Floats
    deviations: Floats
    scale: Floats
    weighted: Floats
    loadings: Floats

    def some(self, places: Places) -> Kept:
        """Return a subset, by indices."""
        names = [self.names[index] for index in places.tolist()]
        return Kept(names, *(array[places] for array in self[1:]))

    @classmethod
    def together(cls, pieces: Sequence[Kept]) -> Kept:
        """Return the concatenation of several sets."""
        names, *arrays = zip(*pieces, strict=True)
        return cls(list(itertools.chain(*names)), *map(np.concatenate, arrays))


class LoadingsFound:
    """The columns of the largest loadings, among those of one part.

    Parameters
    ----------
    shape
        Observations, 0 if they are not kept, and components, (n, q).
    probe
        (n, k) as in `Again`.
    limit
        Maximum number of columns kept.

    Attributes
    ----------
    n_read, seen
        Number of columns, and the names among them that the pool holds.
    of_probe
        (n, k) product of their Gram matrix with the probe.
    let_go
        Whether columns were discarded.
    """

    def __init__(self, shape: tuple[int, int], probe: Floats, limit: int) -> None:
        n, q = shape
        none = np.empty(0)
        self.n_read, self.seen = 0, set[Hashable]()
        self.of_probe, self.let_go = np.zeros_like(probe), False
        self._limit, self._min_size = limit, -1.0
        self._kept = [Kept([], none, none, none, np.empty((0, n)), np.empty((0, q)))]

    def large(self, loadings: Floats) -> Places:
        """Return the indices of the columns to keep, by their loadings, (b, q)."""
        sizes = _sizes(loadings)
        large = np.flatnonzero(sizes > self._min_size)
        large = large[_largest(sizes[large], self._limit)]
        self.let_go |= large.size < len(loadings)
        return large

    def keep(self, kept: Kept) -> None:
        """Add columns, and discard the smallest once there are too many."""
        self._kept.append(kept)
        if sum(len(kept.names) for kept in self._kept) >= 2 * self._limit:
            self.cut_back()

    def cut_back(self) -> None:
        """Discard all but the `limit` largest."""
        kept = self.kept()
        if len(kept.names) <= self._limit:
            return
        sizes = _sizes(kept.loadings)
        largest = _largest(sizes, self._limit)
        self.let_go = True
        self._min_size = float(sizes[largest].min(initial=np.inf))
        self._kept = [kept.some(largest)]

    def kept(self) -> Kept:
        """Return the columns that are kept."""
        self._kept = [Kept.together(self._kept)]
        return self._kept[0]

    def merge(self, other: LoadingsFound) -> None:
        """Add the result for the columns that come directly after."""
        self.n_read += other.n_read
        self.seen |= other.seen
        self.of_probe = self.of_probe + other.of_probe
        self.let_go |= other.let_go
        self.keep(other.kept())
        self.cut_back()


class LoadingsReading:
    """A second pass over columns, which keeps those of the largest loadings.

    α maps weighted columns to loadings: those of a column x of length 1 and weight D are D · D xᵀα.
    If not all can be kept, the columns of the largest D xᵀα are, and the residual of the components
    is regressed on them.

    Parameters
    ----------
    model
        An empty model with the same parameters and target.
    again
        The quantities from the first pass.
    given
        (d, n) basis of the covariates; None if there are none.
    learnt
        Verifies that the columns are those of the first pass.
    limit
        Maximum number of variables kept.
    observed
        Whether to keep their observations, which regression and projection need.
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
        # Covariates are projected out of the duals, as sparse columns remain unprojected.
        self._duals, self._probe = (_residual(V, given) for V in (again.duals, again.probe))

    def read(
        self, stream: ColumnStream, arrival: int = 0, sink: Sink | None = None
    ) -> LoadingsFound:
        """Return the result for the columns of a part, in any order.

        Parameters
        ----------
        stream
            The columns.
        arrival
            Number of columns before them; unused.
        sink
            Receives the loadings of all columns, as they arrive.
        """
        del arrival
        n, q = self._shape
        found = LoadingsFound((n if self._observed else 0, q), self._probe, self._limit)
        held: GramAndPool = self._model._new_columns(n)
        for chunk, stats in self._model._scanned(stream):
            found.seen |= self._learnt.check(chunk.names, stats)
            found.n_read += len(chunk.names)
            self._add_chunk(chunk, stats, held, found, sink)
        found.cut_back()
        return found

    def _add_chunk(
        self,
        chunk: Chunk,
        stats: Stats,
        held: GramAndPool,
        found: LoadingsFound,
        sink: Sink | None,
    ) -> None:
        scale: Floats = np.linalg.norm(held.weights(stats) * self._scales, axis=1)
        length = np.sqrt(held.left(stats))
        indices = np.flatnonzero(scale)
        step = (
            _SPARSE_BATCH
            if isinstance(chunk, SparseChunk)
            else max(1, _BATCH_BYTES // (8 * chunk.n))
        )

        def weigh(batch: Places) -> Floats:
            units = held.units_of(chunk, stats, batch)
            units *= (scale * length)[batch, None]
            return units

        for start in range(0, indices.size, step):
            batch = indices[start : start + step]
            names = [chunk.names[index] for index in batch.tolist()]
            means, factors = stats.mean[batch], scale[batch]
            deviations = np.sqrt(stats.m2[batch] / chunk.n)
            dense = None
            if isinstance(chunk, SparseChunk):
                stored = Stored.of(chunk, stats, batch, factors, np.ones((batch.size, 1)))
                loadings = self._loadings_of(Sparse(stored, chunk.n), found)
            else:
                dense = weigh(batch)
                loadings = self._loadings_of(Dense(dense, 1), found)
            if sink is not None:
                sink(names, means, loadings * factors[:, None])
            large = found.large(loadings)
            if large.size:
                weighted = np.empty((large.size, 0))
                if self._observed:
                    weighted = weigh(batch[large]) if dense is None else dense[large]
                names = [names[index] for index in large.tolist()]
                moments = (means[large], deviations[large], factors[large])
                found.keep(Kept(names, *moments, weighted, loadings[large]))

    def _loadings_of(self, columns: Operand, found: LoadingsFound) -> Floats:
        """Return the products of columns with α; add their image of the probe to `found`."""
        if self._probe.size:
            found.of_probe += columns.along(columns.onto(self._probe))
        return columns.onto(self._duals)


def loadings_of(
    found: LoadingsFound, again: Again, given: Floats | None, learnt: Learnt
) -> Loadings:
    """Return the loadings; ValueError if the columns are not those that were learnt."""
    learnt.expect_all(found.n_read, found.seen)
    expected = again.of_probe
    tolerance = ROUGH * np.abs(expected).max(initial=0.0)
    if not np.allclose(_residual(found.of_probe, given), expected, rtol=0.0, atol=tolerance):
        raise unlike_before("columns of other values")
    found.cut_back()
    names, means, deviations, scale, weighted, loadings = found.kept()
    if found.let_go:
        scores = again.scores
        residual = scores - weighted.T @ loadings
        others = besides(again.trace, weighted)
        loadings = loadings + regressed(weighted, residual, again.n, others)
        loadings = as_long(loadings, weighted, scores)
    if again.hidden is not None:
        loadings = without(loadings, weighted @ again.hidden)
    return Loadings(names, means, loadings * scale[:, None], deviations)


def _residual(V: Floats, given: Floats | None) -> Floats:
    """Return V, (n, k), with the covariates projected out."""
    return V if given is None else V - given.T @ (given @ V)


def _largest(sizes: Floats, limit: int) -> Places:
    return np.sort(np.argsort(-sizes, kind="stable")[:limit])


def _sizes(loadings: Floats) -> Floats:
    sizes: Floats = np.square(loadings).sum(axis=1)
    return sizes
