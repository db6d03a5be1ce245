"""Loadings of all columns, or of the largest, by reading the columns again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np

from streamsel.columns import Chunk, Stats
from streamsel.extraction._canonical_ridge import as_long, besides, regressed, without
from streamsel.held.gram_and_pool import GramAndPool
from streamsel.held.loadings import Loadings
from streamsel.held.part import Floats

# Bytes of columns that are weighted at once.
_PIECE = 4 << 20
# What two readings of the same columns may differ by.
_ROUGH = 1e-6
_ROUNDING = 1e-12


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


class SecondReading:
    """Reads columns again, and keeps those of the largest loadings.

    With α what turns weighted columns into loadings, those of a column x of length 1 that counts
    with D are D · D xᵀα. Where not all can be kept the largest D xᵀα are, and what these miss of
    the components is regressed on them.

    Parameters
    ----------
    held, again
        What the first reading found.
    limit
        How many variables are kept.
    sink
        Who is told the loadings of all columns, as they come.
    """

    def __init__(
        self, held: GramAndPool, again: Again, limit: int, sink: Sink | None = None
    ) -> None:
        self.held, self.again, self.limit, self._sink = held, again, limit, sink
        self.n_columns = 0
        # What the columns read make of the probe, and those of the pool that are yet to come.
        self._of_probe = np.zeros_like(again.probe)
        self._missing = set(held.names)
        self._least, self._let_go = -1.0, False
        self._names: list[Hashable] = []
        # Means, what columns are multiplied by, what comes of it, and its products with α.
        self._means: Floats = np.empty(0)
        self._scale: Floats = np.empty(0)
        self._weighted: Floats = np.empty((0, held.n))
        self._loadings: Floats = np.empty((0, again.scores.shape[1]))

    def read(self, chunk: Chunk, stats: Stats) -> None:
        """Read the columns of a chunk."""
        self.n_columns += stats.m2.size
        self._check_pool(chunk, stats)
        scale = self.again.weigh(stats)
        length = np.sqrt(self.held.left(stats))
        places = np.flatnonzero(scale)
        step = max(1, _PIECE // (8 * chunk.n))
        for start in range(0, places.size, step):
            piece = places[start : start + step]
            weighted = self.held.units_of(chunk, stats, piece) * (scale * length)[piece, None]
            names = [chunk.names[place] for place in piece.tolist()]
            self._add(names, stats.mean[piece], scale[piece], weighted)

    def _check_pool(self, chunk: Chunk, stats: Stats) -> None:
        """Refuse columns that bear a name of the pool's and are others."""
        slots, space = self.held.slots, self.held.space
        for j, name in enumerate(chunk.names):
            if name in slots:
                self._missing.discard(name)
                mine = self.held.stats(np.array([slots[name]]))
                off = abs(mine.mean[0] - stats.mean[j])
                is_off = off > _ROUGH * np.sqrt(stats.m2[j]) + _ROUNDING * abs(stats.mean[j])
                is_off |= not np.isclose(mine.m2[0], stats.m2[j], rtol=_ROUGH, atol=0.0)
                if space is not None and not is_off:
                    was = space.coordinates(mine.m2, mine.cxy)
                    now = space.coordinates(stats.m2[j : j + 1], stats.cxy[j : j + 1])
                    is_off = not np.allclose(was, now, rtol=0.0, atol=_ROUGH)
                if is_off:
                    raise unlike_before(f"other values of {name!r}")

    def _add(
        self, names: Sequence[Hashable], means: Floats, scale: Floats, weighted: Floats
    ) -> None:
        loadings = weighted @ self.again.duals
        self._of_probe += weighted.T @ (weighted @ self.again.probe)
        if self._sink is not None:
            self._sink(names, means, loadings * scale[:, None])
        large = np.flatnonzero(_sizes(loadings) > self._least)
        self._let_go |= large.size < len(names)
        self._names += [names[place] for place in large.tolist()]
        self._means = np.append(self._means, means[large])
        self._scale = np.append(self._scale, scale[large])
        self._weighted = np.concatenate([self._weighted, weighted[large]])
        self._loadings = np.concatenate([self._loadings, loadings[large]])
        if len(self._names) >= 2 * self.limit:
            self._cut_back()

    def _cut_back(self) -> None:
        sizes = _sizes(self._loadings)
        largest = np.sort(np.argsort(-sizes, kind="stable")[: self.limit])
        self._let_go |= largest.size < len(self._names)
        self._least = float(sizes[largest].min(initial=np.inf))
        self._names = [self._names[place] for place in largest.tolist()]
        self._means, self._scale = self._means[largest], self._scale[largest]
        self._weighted, self._loadings = self._weighted[largest], self._loadings[largest]

    def found(self, n_columns: int) -> Loadings:
        """Return the loadings of what was read.

        Raises
        ------
        ValueError
            Where that is not what was learnt, n_columns in number.
        """
        if self.n_columns != n_columns:
            raise unlike_before(f"{self.n_columns} columns, after {n_columns}")
        if self._missing:
            raise unlike_before(f"columns without {next(iter(self._missing))!r}")
        before = self.again.of_probe
        least = _ROUGH * np.abs(before).max(initial=0.0)
        if not np.allclose(self._of_probe, before, rtol=0.0, atol=least):
            raise unlike_before("columns of other values")
        if len(self._names) > self.limit:
            self._cut_back()
        loadings = self._loadings
        if self._let_go:
            scores = self.again.scores
            missed = scores - self._weighted.T @ loadings
            others = besides(self.again.trace, self._weighted)
            loadings = loadings + regressed(self._weighted, missed, self.again.n, others)
            loadings = as_long(loadings, self._weighted, scores)
        if self.again.hidden is not None:
            loadings = without(loadings, self._weighted @ self.again.hidden)
        return Loadings(self._names, self._means, loadings * self._scale[:, None])


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
