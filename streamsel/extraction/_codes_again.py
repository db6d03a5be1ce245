"""Loadings of all columns, or of the largest, by coding the columns again."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

from streamsel.columns import Chunk, Stats
from streamsel.held.factorised import Factorised
from streamsel.held.loadings import Loadings
from streamsel.held.part import Floats

# Bytes of columns that are coded at once.
_PIECE = 4 << 20
# What two readings of the same columns may differ by.
_ROUGH = 1e-6
_ROUNDING = 1e-12


class CodesAgain:
    """Reads columns again, and keeps those of the largest loadings.

    Parameters
    ----------
    held
        What the first reading found.
    loadings_of
        Columns, (b, n), a row each, centred -> their loadings, (b, q).
    limit
        How many variables are kept.
    """

    def __init__(
        self, held: Factorised, loadings_of: Callable[[Floats], Floats], limit: int
    ) -> None:
        self.held, self._loadings_of, self.limit = held, loadings_of, limit
        self.n_columns = 0
        self._missing = set(held.names)
        self._least = 0.0
        self._names: list[Hashable] = []
        self._means: Floats = np.empty(0)
        self._loadings: Floats | None = None

    def read(self, chunk: Chunk, stats: Stats) -> None:
        """Read the columns of a chunk."""
        self.n_columns += stats.m2.size
        self._check_pool(chunk, stats)
        places = np.flatnonzero(stats.m2)
        step = max(1, _PIECE // (8 * chunk.n))
        for start in range(0, places.size, step):
            piece = places[start : start + step]
            length = np.sqrt(stats.m2[piece])[:, None]
            loadings = self._loadings_of(self.held.units_of(chunk, stats, piece) * length)
            large = np.flatnonzero(_sizes(loadings) > self._least)
            self._names += [chunk.names[place] for place in piece[large].tolist()]
            self._means = np.append(self._means, stats.mean[piece[large]])
            before = loadings[:0] if self._loadings is None else self._loadings
            self._loadings = np.concatenate([before, loadings[large]])
            if len(self._names) >= 2 * self.limit:
                self._cut_back()

    def _check_pool(self, chunk: Chunk, stats: Stats) -> None:
        """Refuse columns that bear a name of the pool's and are others."""
        slots, table = self.held.slots, self.held.table
        for j, name in enumerate(chunk.names):
            if name in slots:
                self._missing.discard(name)
                m2, again = table["m2"][slots[name]], stats.m2[j]
                off = abs(table["mean"][slots[name]] - stats.mean[j])
                is_off = off > _ROUGH * np.sqrt(again) + _ROUNDING * abs(stats.mean[j])
                if is_off or abs(m2 - again) > _ROUGH * m2:
                    raise self.unlike_before(f"other values of {name!r}")

    def _cut_back(self) -> None:
        assert self._loadings is not None  # noqa: S101
        sizes = _sizes(self._loadings)
        largest = np.sort(np.argsort(-sizes, kind="stable")[: self.limit])
        self._least = float(sizes[largest].min(initial=np.inf))
        self._names = [self._names[place] for place in largest.tolist()]
        self._means, self._loadings = self._means[largest], self._loadings[largest]

    def found(self, n_columns: int) -> Loadings:
        """Return the loadings of what was read.

        Raises
        ------
        ValueError
            Where that is not what was learnt, n_columns in number.
        """
        if self.n_columns != n_columns:
            raise self.unlike_before(f"{self.n_columns} columns, after {n_columns}")
        if self._missing:
            raise self.unlike_before(f"columns without {next(iter(self._missing))!r}")
        if len(self._names) > self.limit:
            self._cut_back()
        assert self._loadings is not None  # noqa: S101
        return Loadings(self._names, self._means, self._loadings)

    @staticmethod
    def unlike_before(got: str) -> ValueError:
        """Return the error for columns that are not those learnt."""
        return ValueError(
            f"Expected the same columns as before. Got: {got}.\n"
            "Hint: a second reading is one of the same source, under the same names."
        )


def _sizes(loadings: Floats) -> Floats:
    """Return the squared length of each row."""
    sizes: Floats = np.square(loadings).sum(axis=1)
    return sizes
