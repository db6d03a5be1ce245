"""ProjSe's view of the tracked variables: target coordinates, or kernels with one another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from streamsel.held.part import Floats, Held
from streamsel.held.pool import SamplePool
from streamsel.selection._greedy import CoordinateDeflation, Deflation, GramDeflation
from streamsel.target.kernels import VariableKernel


class Candidates(Protocol):
    """Variables that may be selected, in order of arrival."""

    def relevance2(self, rows: Mapping[str, Floats]) -> Floats:
        """Return the squared relevance of rows of a table."""

    def deflation(self) -> Deflation:
        """Return the candidates as input of `greedy`."""


class MomentCandidates:
    """Variables with a target, of which only m2 and cxy are needed.

    Parameters
    ----------
    held
        The variables, with a target space that maps their moments to coordinates.
    """

    def __init__(self, held: Held) -> None:
        assert held.space is not None  # noqa: S101
        self._held = held
        self._space = held.space

    def relevance2(self, rows: Mapping[str, Floats]) -> Floats:
        """Return the squared relevance of rows of a table."""
        G = self._space.coordinates(rows["m2"], rows["cxy"])
        relevance2: Floats = np.einsum("ij,ij->i", G, G)
        return relevance2

    def deflation(self) -> CoordinateDeflation:
        """Return the candidates as input of `greedy`."""
        return CoordinateDeflation(self._held.coordinates())


class SampleCandidates:
    """Variables without a target, which explain each other and need their samples.

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
        """Return the candidates as input of `greedy`."""
        held, m2 = self._held, self._held.stats().m2

        def gram_column(j: int) -> Floats:
            cosine = held.products(j)
            return self._kernel.of_cosine(cosine[:, None], m2, m2[j : j + 1], held.n)[:, 0]

        return GramDeflation(len(held.names), gram_column)
