"""What ProjSe makes of the variables that are held: coordinates, or kernels with one another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streamsel._jit.cholesky import factor, outdo_in_kernel
from streamsel._jit.deflate import direction, outdo
from streamsel.columns import Chunk, Stats
from streamsel.held.part import Floats, Held, Places
from streamsel.held.pool import TIE, SamplePool, units
from streamsel.held.table import Table
from streamsel.selection._greedy import CoordinateDeflation, Deflation, GramDeflation
from streamsel.target.kernels import VariableKernel

Bools = NDArray[np.bool_]

# Observations are looked at in pieces of about this many numbers.
_PIECE = 1 << 18


class Prefixes(Protocol):
    """A round's picks, to score all other variables under every prefix of them at once."""

    def outdo(
        self, vectors: Floats, m2: Floats, barred: Bools, highest: Floats, who: Places
    ) -> None:
        """Note which variable, if any, has a higher score than all before under each prefix.

        Parameters
        ----------
        vectors, m2
            What `Candidates.vectors` tell of the variables, and their sums of squares.
        barred
            Which are out of the running.
        highest, who
            As in `_jit.deflate.outdo`.
        """


class CoordinatePrefixes:
    """Prefixes of picks of which the coordinates G are known."""

    def __init__(self, G: Floats) -> None:
        self._Q = np.empty(G.shape)
        for s in range(len(G)):
            direction(G, self._Q[:s], s, self._Q[s])

    def outdo(
        self, vectors: Floats, m2: Floats, barred: Bools, highest: Floats, who: Places
    ) -> None:
        """Note which variable, if any, has a higher score than all before under each prefix."""
        del m2
        whole = np.einsum("ij,ij->i", vectors, vectors)
        outdo(vectors, whole, barred, self._Q, TIE, highest, who)


class KernelPrefixes:
    """Prefixes of picks of which the observations and the sums of squares are known."""

    def __init__(self, unit: Floats, m2: Floats, kernel: VariableKernel) -> None:
        self._unit, self._m2, self._kernel = unit, m2, kernel
        self._L = np.zeros((len(unit), len(unit)))
        factor(self._of(unit, m2), self._L)

    def _of(self, unit: Floats, m2: Floats) -> Floats:
        n = unit.shape[1]
        return self._kernel.of_cosine(unit @ self._unit.T, m2, self._m2, n)

    def outdo(
        self, vectors: Floats, m2: Floats, barred: Bools, highest: Floats, who: Places
    ) -> None:
        """Note which variable, if any, has a higher score than all before under each prefix."""
        outdo_in_kernel(self._of(vectors, m2), self._L, barred, TIE, highest, who)


class Candidates(Protocol):
    """Variables that may be selected, in order of arrival."""

    def relevance2(self, rows: Mapping[str, Floats]) -> Floats:
        """Return the squared relevance of each of these rows of a table."""

    def vectors(self, chunk: Chunk, stats: Stats) -> Iterator[tuple[slice, Floats]]:
        """Yield what `Prefixes` ask of the columns of a chunk, one a row, and of which it is."""

    def deflation(self) -> Deflation:
        """Return the candidates for a greedy."""

    def prefixes(self, picks: Sequence[int]) -> Prefixes:
        """Return the prefixes of a round's picks, to score other variables under."""

    @property
    def rank(self) -> int:
        """Most directions that a round can have."""


class MomentCandidates:
    """Variables with a target: everything ProjSe needs of them is m2 and cxy.

    Parameters
    ----------
    held
        The variables; the target space turns their moments into coordinates.
    """

    def __init__(self, held: Held) -> None:
        assert held.space is not None  # noqa: S101
        self._held = held
        self._space = held.space

    def relevance2(self, rows: Mapping[str, Floats]) -> Floats:
        """Return the squared relevance of each of these rows of a table."""
        G = self._space.coordinates(rows["m2"], rows["cxy"])
        relevance2: Floats = np.einsum("ij,ij->i", G, G)
        return relevance2

    def vectors(self, chunk: Chunk, stats: Stats) -> Iterator[tuple[slice, Floats]]:
        """Yield the coordinates of the columns of a chunk."""
        yield slice(0, len(chunk.names)), self._space.coordinates(stats.m2, stats.cxy)

    def deflation(self) -> CoordinateDeflation:
        """Return the candidates for a greedy."""
        stats = self._held.stats()
        return CoordinateDeflation(self._space.coordinates(stats.m2, stats.cxy))

    def prefixes(self, picks: Sequence[int]) -> CoordinatePrefixes:
        """Return the prefixes of a round's picks, to score other variables under."""
        mine = self._held.stats(np.asarray(picks, dtype=np.intp))
        return CoordinatePrefixes(self._space.coordinates(mine.m2, mine.cxy))

    @property
    def rank(self) -> int:
        """Most directions that a round can have."""
        return self._space.rank


class SampleCandidates:
    """Variables without a target: they explain each other, which takes their samples.

    Parameters
    ----------
    held
        The variables.
    kernel
        The kernel between them.
    """

    def __init__(self, held: SamplePool, kernel: VariableKernel) -> None:
        self._held = held
        self._kernel = kernel

    def relevance2(self, rows: Mapping[str, Floats]) -> Floats:
        """Return ones: without a target every variable explains itself in full."""
        return np.ones(rows["m2"].size)

    def vectors(self, chunk: Chunk, stats: Stats) -> Iterator[tuple[slice, Floats]]:
        """Yield the observations of the columns of a chunk, centred and of length 1."""
        size = stats.m2.size
        step = max(1, _PIECE // chunk.n)
        for start in range(0, size, step):
            part = slice(start, min(start + step, size))
            yield part, units(chunk, stats, np.arange(part.start, part.stop))

    def deflation(self) -> GramDeflation:
        """Return the candidates for a greedy."""
        held, m2 = self._held, self._held.stats().m2

        def gram_column(j: int) -> Floats:
            cosine = held.products(j)
            return self._kernel.of_cosine(cosine[:, None], m2, m2[j : j + 1], held.n)[:, 0]

        return GramDeflation(len(held.names), gram_column)

    def prefixes(self, picks: Sequence[int]) -> KernelPrefixes:
        """Return the prefixes of a round's picks, to score other variables under."""
        mine = np.asarray(picks, dtype=np.intp)
        return KernelPrefixes(self._held.samples(mine), self._held.stats(mine).m2, self._kernel)

    @property
    def rank(self) -> int:
        """Most directions that a round can have: without a target it is not known."""
        return np.iinfo(np.int64).max


def copied_rows(table: Table, places: Sequence[int]) -> dict[str, Any]:
    """Return copies of a few rows of a table, by field, without their arrival."""
    mine = np.asarray(places, dtype=np.intp)
    return {field: table[field][mine].copy() for field in table.fields if field != "arrival"}
