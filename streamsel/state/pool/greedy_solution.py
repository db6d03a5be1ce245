"""Candidate solution whose stages are the picks of a greedy, each depending on those before."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsel.state.base import Floats
from streamsel.state.pool.candidate_solution import CandidateSolution
from streamsel.state.pool.certified import CertifiedPool
from streamsel.state.pool.pool import TIE_RTOL, ZERO_TOL, Picks


class GreedySolution(CandidateSolution):
    """Picks, thresholds and incumbents of a greedy; subclasses add the scores of other columns.

    Parameters
    ----------
    pool
        The pool it is made of.
    picks
        The picks.
    k
        Number of picks wanted: if there are fewer, one more stage is open for a column with a
        score.
    nothing
        A score of at most this is not picked.
    """

    def __init__(
        self, pool: CertifiedPool, picks: Picks, k: int, nothing: float = ZERO_TOL
    ) -> None:
        self.names, self.arrivals = list(pool.names), pool.table["arrival"].copy()
        self.picks = picks
        selected = [self.names[j] for j in picks.indices]
        size = min(k, len(selected) + 1)
        self.keys = [tuple(selected[:s]) for s in range(size)]
        self.thresholds: Floats = np.full(size, nothing)
        self.thresholds[: len(selected)] = picks.scores
        self.incumbent_arrivals = np.full(size, -1, dtype=np.int64)
        self.incumbent_arrivals[: len(selected)] = pool.table["arrival"][picks.indices]
        self.tolerance: Floats = TIE_RTOL * np.abs(self.thresholds)
        self.pinned = np.array(picks.indices, dtype=np.intp)

    def to_state(self) -> dict[str, Any]:
        """Return the picks by name."""
        return {"picks": [self.names[j] for j in self.picks.indices]}


def picks_from_state(pool: CertifiedPool, state: dict[str, Any]) -> list[int]:
    """Return the picks in a state of `GreedySolution.to_state`, as indices of the pool."""
    return [pool.index_of[name] for name in state["picks"]]
