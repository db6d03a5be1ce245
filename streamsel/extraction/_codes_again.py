"""Loadings of all columns, or of the largest, by coding the columns in a second pass."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

from streamsel.columns import Chunk, Stats
from streamsel.held.factorised import Factorised
from streamsel.held.loadings import Loadings
from streamsel.held.part import Floats
from streamsel.held.same import Same

# Bytes of columns that are coded at a time.
_BATCH_BYTES = 4 << 20


class CodesAgain:
    """Codes columns in a second pass, and keeps those of the largest loadings.

    Parameters
    ----------
    held
        The state after the first pass.
    loadings_of
        Maps columns, given as centred rows, (b, n), to their loadings, (b, q).
    same
        Verifies that the columns are those of the first pass.
    limit
        Maximum number of variables kept.
    """

    def __init__(
        self,
        held: Factorised,
        loadings_of: Callable[[Floats], Floats],
        same: Same,
        limit: int,
    ) -> None:
        self.held, self._loadings_of, self.limit = held, loadings_of, limit
        self._same = same
        self._min_size = 0.0
        self._names: list[Hashable] = []
        # Means and standard deviations.
        self._moments: Floats = np.empty((0, 2))
        self._loadings: Floats | None = None

    def read(self, chunk: Chunk, stats: Stats) -> None:
        """Code the columns of a chunk."""
        self._same.check(chunk.names, stats)
        indices = np.flatnonzero(stats.m2)
        step = max(1, _BATCH_BYTES // (8 * chunk.n))
        for start in range(0, indices.size, step):
            batch = indices[start : start + step]
            length = np.sqrt(stats.m2[batch])[:, None]
            loadings = self._loadings_of(self.held.units_of(chunk, stats, batch) * length)
            large = np.flatnonzero(_sizes(loadings) > self._min_size)
            self._names += [chunk.names[index] for index in batch[large].tolist()]
            deviations = np.sqrt(stats.m2[batch[large]] / chunk.n)
            own = np.column_stack([stats.mean[batch[large]], deviations])
            self._moments = np.concatenate([self._moments, own])
            previous = loadings[:0] if self._loadings is None else self._loadings
            self._loadings = np.concatenate([previous, loadings[large]])
            if len(self._names) >= 2 * self.limit:
                self._keep_largest()

    def _keep_largest(self) -> None:
        assert self._loadings is not None  # noqa: S101
        sizes = _sizes(self._loadings)
        largest = np.sort(np.argsort(-sizes, kind="stable")[: self.limit])
        self._min_size = float(sizes[largest].min(initial=np.inf))
        self._names = [self._names[index] for index in largest.tolist()]
        self._moments, self._loadings = self._moments[largest], self._loadings[largest]

    def found(self) -> Loadings:
        """Return the loadings; ValueError if the columns are not those that were learnt."""
        self._same.end()
        if len(self._names) > self.limit:
            self._keep_largest()
        assert self._loadings is not None  # noqa: S101
        means, deviations = self._moments.T
        return Loadings(self._names, means, self._loadings, deviations)


def _sizes(loadings: Floats) -> Floats:
    sizes: Floats = np.square(loadings).sum(axis=1)
    return sizes
