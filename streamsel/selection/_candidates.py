"""What ProjSe keeps of a variable: its moments, or, without a target, its samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streamsel._jit.deflate import direction
from streamsel.columns import Chunk, Stats
from streamsel.kernels import VariableKernel
from streamsel.selection._greedy import CoordinateDeflation, Deflation, GramDeflation
from streamsel.table import Table
from streamsel.target import TargetSpace

Floats = NDArray[np.float64]
Places = NDArray[np.intp]


class Candidates(Protocol):
    """Variables that may be selected, in order of arrival."""

    table: Table
    # Whether a column that does not vary may be held.
    takes_constant: bool

    def empty(self) -> Candidates:
        """Return candidates of the same kind, none yet."""

    def rows(self, chunk: Chunk, stats: Stats, places: Places | None) -> dict[str, Floats]:
        """Return what the table keeps of these columns of a chunk; None for all with moments."""

    def relevance2(self, rows: dict[str, Floats]) -> Floats:
        """Return the squared relevance of each of these rows of the table."""

    def deflation(self) -> Deflation:
        """Return the candidates for a greedy."""

    def prefix_scores(self, rows: dict[str, Floats], picks: Sequence[int]) -> Floats:
        """Return each row's score under every prefix of a round's picks, (b, len(picks) + 1)."""

    @property
    def rank(self) -> int:
        """Most directions that a round can have."""


class MomentCandidates:
    """Variables with a target: everything ProjSe needs of them is m2 and cxy.

    Parameters
    ----------
    space
        The target space, which turns moments into coordinates.
    """

    takes_constant = True

    def __init__(self, space: TargetSpace) -> None:
        self._space = space
        self.table = Table({"arrival": (), "mean": (), "low": (), "m2": (), "cxy": (space.c,)})

    def empty(self) -> MomentCandidates:
        """Return candidates of the same kind, none yet."""
        return MomentCandidates(self._space)

    def rows(self, chunk: Chunk, stats: Stats, places: Places | None) -> dict[str, Floats]:
        """Return what the table keeps of these columns of a chunk; None for all with moments."""
        del chunk
        if places is None:
            return stats._asdict()
        return {field: array[places] for field, array in stats._asdict().items()}

    def relevance2(self, rows: dict[str, Floats]) -> Floats:
        """Return the squared relevance of each of these rows of the table."""
        G = self._space.coordinates(rows["m2"], rows["cxy"])
        relevance2: Floats = np.einsum("ij,ij->i", G, G)
        return relevance2

    def deflation(self) -> CoordinateDeflation:
        """Return the candidates for a greedy."""
        return CoordinateDeflation(self._space.coordinates(self.table["m2"], self.table["cxy"]))

    def prefix_scores(self, rows: dict[str, Floats], picks: Sequence[int]) -> Floats:
        """Return each row's score under every prefix of a round's picks, (b, len(picks) + 1)."""
        R = self._space.coordinates(rows["m2"], rows["cxy"])
        mine = np.asarray(picks, dtype=np.intp)
        G = self._space.coordinates(self.table["m2"][mine], self.table["cxy"][mine])
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
    kernel
        The kernel between variables.
    n
        Number of observations.
    """

    takes_constant = False

    def __init__(self, kernel: VariableKernel, n: int) -> None:
        self._kernel = kernel
        self._n = n
        self.table = Table({"arrival": (), "mean": (), "m2": (), "unit": (n,)})

    def empty(self) -> SampleCandidates:
        """Return candidates of the same kind, none yet."""
        return SampleCandidates(self._kernel, self._n)

    def rows(self, chunk: Chunk, stats: Stats, places: Places | None) -> dict[str, Floats]:
        """Return the columns' centred samples, of length 1, and their moments; None for all."""
        if places is None:
            places = np.arange(stats.m2.size)
        mean, m2 = stats.mean[places], stats.m2[places]
        unit = chunk.columns(places)
        unit -= mean[:, None]
        unit /= np.sqrt(m2)[:, None]
        return {"mean": mean, "m2": m2, "unit": unit}

    def relevance2(self, rows: dict[str, Floats]) -> Floats:
        """Return ones: without a target every variable explains itself in full."""
        return np.ones(rows["m2"].size)

    def deflation(self) -> GramDeflation:
        """Return the candidates for a greedy."""
        unit, m2 = self.table["unit"], self.table["m2"]

        def gram_column(j: int) -> Floats:
            cosine = unit @ unit[j]
            return self._kernel.of_cosine(cosine[:, None], m2, m2[j : j + 1], self._n)[:, 0]

        return GramDeflation(len(self.table), gram_column)

    def prefix_scores(self, rows: dict[str, Floats], picks: Sequence[int]) -> Floats:
        """Return each row's score under every prefix of a round's picks, (b, len(picks) + 1)."""
        mine = np.asarray(picks, dtype=np.intp)
        unit, m2 = self.table["unit"][mine], self.table["m2"][mine]
        both = np.concatenate([unit, rows["unit"]])
        squares = np.concatenate([m2, rows["m2"]])
        K = self._kernel.of_cosine(both @ unit.T, squares, m2, self._n)
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
