"""What ProjSe makes of the variables that are held: coordinates, or kernels with one another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from streamsel._jit.deflate import direction
from streamsel.held.part import Floats, Held
from streamsel.held.pool import SamplePool
from streamsel.held.table import Table
from streamsel.selection._greedy import CoordinateDeflation, Deflation, GramDeflation
from streamsel.target.kernels import VariableKernel


class Candidates(Protocol):
    """Variables that may be selected, in order of arrival."""

    def relevance2(self, rows: Mapping[str, Floats]) -> Floats:
        """Return the squared relevance of each of these rows of a table."""

    def deflation(self) -> Deflation:
        """Return the candidates for a greedy."""

    def prefix_scores(self, rows: Mapping[str, Floats], picks: Sequence[int]) -> Floats:
        """Return each row's score under every prefix of a round's picks, (b, len(picks) + 1)."""

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

    def deflation(self) -> CoordinateDeflation:
        """Return the candidates for a greedy."""
        stats = self._held.stats()
        return CoordinateDeflation(self._space.coordinates(stats.m2, stats.cxy))

    def prefix_scores(self, rows: Mapping[str, Floats], picks: Sequence[int]) -> Floats:
        """Return each row's score under every prefix of a round's picks, (b, len(picks) + 1)."""
        R = self._space.coordinates(rows["m2"], rows["cxy"])
        mine = self._held.stats(np.asarray(picks, dtype=np.intp))
        G = self._space.coordinates(mine.m2, mine.cxy)
        Q = np.empty((len(picks), self.rank))
        scores = np.empty((R.shape[0], len(picks) + 1))
        scores[:, 0] = np.einsum("ij,ij->i", R, R)
        for s in range(len(picks)):
            direction(G, Q[:s], s, Q[s])
            R -= np.outer(R @ Q[s], Q[s])
            scores[:, s + 1] = np.einsum("ij,ij->i", R, R)
        return scores

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

    def deflation(self) -> GramDeflation:
        """Return the candidates for a greedy."""
        held, m2 = self._held, self._held.stats().m2

        def gram_column(j: int) -> Floats:
            cosine = held.products(j)
            return self._kernel.of_cosine(cosine[:, None], m2, m2[j : j + 1], held.n)[:, 0]

        return GramDeflation(len(held.names), gram_column)

    def prefix_scores(self, rows: Mapping[str, Floats], picks: Sequence[int]) -> Floats:
        """Return each row's score under every prefix of a round's picks, (b, len(picks) + 1)."""
        mine = np.asarray(picks, dtype=np.intp)
        unit, m2 = self._held.samples(mine), self._held.stats(mine).m2
        both = np.concatenate([unit, rows["unit"]])
        squares = np.concatenate([m2, rows["m2"]])
        K = self._kernel.of_cosine(both @ unit.T, squares, m2, self._held.n)
        s = len(picks)
        T = np.empty((both.shape[0], s))
        scores = np.ones((both.shape[0], s + 1))
        for i in range(s):
            T[:, i] = (K[:, i] - T[:, :i] @ T[i, :i]) / np.sqrt(scores[i, i])
            scores[:, i + 1] = scores[:, i] - T[:, i] ** 2
        return scores[s:]

    @property
    def rank(self) -> int:
        """Most directions that a round can have: without a target it is not known."""
        return np.iinfo(np.int64).max


def copied_rows(table: Table, places: Sequence[int]) -> dict[str, Any]:
    """Return copies of a few rows of a table, by field, without their arrival."""
    mine = np.asarray(places, dtype=np.intp)
    return {field: table[field][mine].copy() for field in table.fields if field != "arrival"}
