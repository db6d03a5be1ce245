"""Who stays in a pool of which each column is worth something by itself."""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping
from typing import Any

from streamsel.columns import Chunk, Stats
from streamsel.held.part import Floats, Places
from streamsel.held.pool import Picks, Pool
from streamsel.ties import most_relevant_first

# Of worths that are all nothing.
_TINY = 1e-300


class Foremost(abc.ABC):
    """What a pool must know of a method for which those stay that are worth most."""

    @abc.abstractmethod
    def _bound(self, pool: Pool, rows: Mapping[str, Floats]) -> Floats:
        """Return what rows of the pool's table are worth."""

    def _sift(self, pool: Pool, chunk: Chunk, stats: Stats, places: Places) -> Any:  # noqa: ARG002
        """Know no faster way than one cut after another."""
        return None

    def _relevance_at(self, bound: float) -> float:  # noqa: ARG002
        """Say that relevance tells nothing of what a column is worth."""
        return -math.inf

    def _refill(self, pool: Pool, limit: int) -> Picks:
        """Return those worth most; of equal ones the first."""
        worth = self._bound(pool, {field: pool.table[field] for field in ("m2", "cxy")})
        first = most_relevant_first(worth / max(float(worth.max()), _TINY))[:limit]
        return Picks(first.tolist(), worth[first].tolist(), [0] * first.size)

    def _round(self, pool: Pool) -> int:
        """Return how many picks there can be at once: any number."""
        return len(pool.table)
