"""Candidate solution whose stages are the picks of a greedy, each depending on those before."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsel.held.part import Floats
from streamsel.held.plan import Plan
from streamsel.held.pool import SPENT, TIE, Picks
from streamsel.held.stage_pool import StagePool


class GreedyPlan(Plan):
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

    def __init__(self, pool: StagePool, picks: Picks, k: int, nothing: float = SPENT) -> None:
        self.names, self.arrivals = list(pool.names), pool.table["arrival"].copy()
        self.picks = picks
        selected = [self.names[j] for j in picks.places]
        size = min(k, len(selected) + 1)
        self.keys = [tuple(selected[:s]) for s in range(size)]
        self.bars: Floats = np.full(size, nothing)
        self.bars[: len(selected)] = picks.scores
        self.holders = np.full(size, -1, dtype=np.int64)
        self.holders[: len(selected)] = pool.table["arrival"][picks.places]
        self.tolerance: Floats = TIE * np.abs(self.bars)
        self.must_stay = np.array(picks.places, dtype=np.intp)

    def to_state(self) -> dict[str, Any]:
        """Return the picks by name."""
        return {"picks": [self.names[j] for j in self.picks.places]}


def picked(pool: StagePool, state: dict[str, Any]) -> list[int]:
    """Return the picks in a state of `GreedyPlan.to_state`, as indices of the pool."""
    return [pool.slots[name] for name in state["picks"]]
