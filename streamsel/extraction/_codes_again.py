"""Loadings of all columns, or of the largest, by coding the columns again."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

from streamsel.columns import Chunk, Stats
from streamsel.held.factorised import Factorised
from streamsel.held.loadings import Loadings
from streamsel.held.part import Floats
from streamsel.held.same import Same

# Bytes of columns that are coded at once.
_PIECE = 4 << 20


class CodesAgain:
    """Reads columns again, and keeps those of the largest loadings.

    Parameters
    ----------
    held
        What the first reading found.
    loadings_of
        Columns, (b, n), a row each, centred -> their loadings, (b, q).
    same
        What tells whether these are the columns of the first reading.
    limit
        How many variables are kept.
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
        self._least = 0.0
        self._names: list[Hashable] = []
        # Means and standard deviations.
        self._moments: Floats = np.empty((0, 2))
        self._loadings: Floats | None = None

    def read(self, chunk: Chunk, stats: Stats) -> None:
        """Read the columns of a chunk."""
        self._same.check(chunk.names, stats)
        places = np.flatnonzero(stats.m2)
        step = max(1, _PIECE // (8 * chunk.n))
        for start in range(0, places.size, step):
            piece = places[start : start + step]
            length = np.sqrt(stats.m2[piece])[:, None]
            loadings = self._loadings_of(self.held.units_of(chunk, stats, piece) * length)
            large = np.flatnonzero(_sizes(loadings) > self._least)
            self._names += [chunk.names[place] for place in piece[large].tolist()]
            deviations = np.sqrt(stats.m2[piece[large]] / chunk.n)
            own = np.column_stack([stats.mean[piece[large]], deviations])
            self._moments = np.concatenate([self._moments, own])
            before = loadings[:0] if self._loadings is None else self._loadings
            self._loadings = np.concatenate([before, loadings[large]])
            if len(self._names) >= 2 * self.limit:
                self._cut_back()

    def _cut_back(self) -> None:
        assert self._loadings is not None  # noqa: S101
        sizes = _sizes(self._loadings)
        largest = np.sort(np.argsort(-sizes, kind="stable")[: self.limit])
        self._least = float(sizes[largest].min(initial=np.inf))
        self._names = [self._names[place] for place in largest.tolist()]
        self._moments, self._loadings = self._moments[largest], self._loadings[largest]

    def found(self) -> Loadings:
        """Return the loadings of what was read; ValueError where that is not what was learnt."""
        self._same.end()
        if len(self._names) > self.limit:
            self._cut_back()
        assert self._loadings is not None  # noqa: S101
        means, deviations = self._moments.T
        return Loadings(self._names, means, self._loadings, deviations)


def _sizes(loadings: Floats) -> Floats:
    """Return the squared length of each row."""
    sizes: Floats = np.square(loadings).sum(axis=1)
    return sizes
