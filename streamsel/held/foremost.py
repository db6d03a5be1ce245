"""Pool methods that score each column by itself and keep the columns with the top scores."""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping
from typing import Any

from streamsel.columns import Chunk, Stats
from streamsel.held.part import Floats, Places
from streamsel.held.pool import Picks, Pool
from streamsel.ties import most_relevant_first

# Scale of scores that are all 0.
_TINY = 1e-300


class Foremost(abc.ABC):
    """Base of pool methods that keep the columns with the largest individual scores."""

    @abc.abstractmethod
    def _bound(self, pool: Pool, rows: Mapping[str, Floats]) -> Floats:
        """Return the scores of rows of the pool's table."""

    def _sift(self, pool: Pool, chunk: Chunk, stats: Stats, places: Places) -> Any:  # noqa: ARG002
        """Return None: there is no faster way than repeated cuts."""
        return None

    def _relevance_at(self, bound: float) -> float:  # noqa: ARG002
        """Return -inf: relevance does not bound the score."""
        return -math.inf

    def _refill(self, pool: Pool, limit: int) -> Picks:
        """Return the columns with the largest scores; of equal ones the earliest."""
        scores = self._bound(pool, {field: pool.table[field] for field in ("m2", "cxy")})
        first = most_relevant_first(scores / max(float(scores.max()), _TINY))[:limit]
        return Picks(first.tolist(), scores[first].tolist(), [0] * first.size)

    def _round(self, pool: Pool) -> int:
        """Return the maximum number of picks per round: any number."""
        return len(pool.table)
