"""A plan whose stages are the picks of a greedy: what scores under each depends on those before."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsel.held.part import Floats
from streamsel.held.plan import Plan
from streamsel.held.pool import SPENT, TIE, Picks
from streamsel.held.stage_pool import StagePool


class GreedyPlan(Plan):
    """Picks, and who stands where: what a method adds is how others score.

    Parameters
    ----------
    pool
        What it is made of.
    picks
        The picks.
    k
        How many are asked for: where there are fewer, one more stage waits for who is worth it.
    nothing
        A score of no more than this is not worth a pick.
    """

    def __init__(self, pool: StagePool, picks: Picks, k: int, nothing: float = SPENT) -> None:
        self.names, self.arrivals = list(pool.names), pool.table["arrival"].copy()
        self.picks = picks
        chosen = [self.names[j] for j in picks.places]
        size = min(k, len(chosen) + 1)
        self.keys = [tuple(chosen[:s]) for s in range(size)]
        self.bars: Floats = np.full(size, nothing)
        self.bars[: len(chosen)] = picks.scores
        self.holders = np.full(size, -1, dtype=np.int64)
        self.holders[: len(chosen)] = pool.table["arrival"][picks.places]
        self.tolerance: Floats = TIE * np.abs(self.bars)
        self.must_stay = np.array(picks.places, dtype=np.intp)

    def to_state(self) -> dict[str, Any]:
        """Return the picks by name."""
        return {"picks": [self.names[j] for j in self.picks.places]}


def picked(pool: StagePool, state: dict[str, Any]) -> list[int]:
    """Return the picks that `GreedyPlan.to_state` described, as places of the pool."""
    return [pool.slots[name] for name in state["picks"]]
