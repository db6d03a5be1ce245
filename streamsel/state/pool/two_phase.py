"""A pool filled by its own ranking in the first pass, and by a staged solution afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from streamsel.data.chunks import Chunk, Stats
from streamsel.serialization.schema import ArrayKind, expect
from streamsel.state.pool.certifier import Certifier
from streamsel.state.pool.pool import Picks


class TwoPhaseCertifier(Certifier):
    """A certifier whose pool is filled by its own ranking in the first pass."""

    @property
    def irrelevant_below(self) -> float:
        """The relevance below which a column is discarded and no bound changes."""
        return self.pool.irrelevant_below

    @property
    def exact_from(self) -> float:
        """The relevance from which moments must be exact in the first pass."""
        return self.pool.exact_from if self.total is None else super().exact_from

    def admit(self, chunk: Chunk, stats: Stats, first_arrival: int) -> None:
        """Learn the columns of a chunk, in order."""
        if self.total is None:
            self.pool.admit(chunk, stats, first_arrival)
        else:
            super().admit(chunk, stats, first_arrival)

    def picks(self, k: int) -> Picks:
        """Return k picks among all columns in the pool."""
        return self.solver.picks(self.pool, k) if self.total is None else super().picks(k)

    def count_certified(self, scores: Sequence[float], rounds: Sequence[int]) -> int:
        """Return how many leading picks no discarded column can have changed."""
        if self.total is None:
            return self.pool.count_certified(scores, rounds)
        return super().count_certified(scores, rounds)

    def begin_pass(self, total: int) -> None:
        """Start the next pass over the same columns."""
        self._copy_before_write()
        if self.total is None:
            self.score_upper_bound = self.pool.max_discarded_bound
        super().begin_pass(total)

    def merge(self, other: Self, arrived: int) -> None:
        """Add all variables of another state, which arrived after `arrived` columns."""
        self._copy_before_write()
        # A certificate over the columns of one does not hold over those of both.
        self.seen, self.total, self.solution = 0, None, None
        self.pool.merge(other.pool, arrived)

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        return self.pool.to_state() | {"stages": self._stages_to_state()}

    def _stages_to_state(self) -> dict[str, Any] | None:
        if self.total is None or self.solution is None:
            return None
        # Flags of stages that have seen all columns; the rest of the certificate follows.
        full = self.seen - self.unchanged_since >= self.total
        return {
            "solution": self.solution.to_state(),
            "complete_stages": full,
            "best_discarded": self.best_discarded,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""
        self.pool.set_state(state)
        stages = state.get("stages")
        if stages is None:
            return
        solution = self.solver.restore(self.pool, stages.get("solution"))
        size = len(solution.keys)
        expect(
            stages, complete_stages=ArrayKind((size,), np.bool_), best_discarded=ArrayKind((size,))
        )
        self.score_upper_bound = self.pool.max_discarded_bound
        self.solution, self._n_solved = solution, len(self.names)
        self.total = self.seen = 1
        self.unchanged_since = np.where(stages["complete_stages"], 0, 1)
        self.best_discarded = self.eviction_thresholds = stages["best_discarded"]
