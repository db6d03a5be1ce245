"""Certifier of groups of columns, whose pool is bounded by the memory of their axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsel.serialization.schema import CountKind, expect
from streamsel.state.base import ColumnState, Indices
from streamsel.state.pool.candidate_solution import StagedSolver
from streamsel.state.pool.certifier import Certifier
from streamsel.state.pool.group_pool import GroupPool


class GroupCertifier(Certifier):
    """A certifier whose pool has groups; it is full when their axes are as many as `room`.

    Half of the groups that fill it are kept at every later cut, unless a limit is given.

    Parameters
    ----------
    pool, solver
        As in `Certifier`; the limit of the pool counts groups.
    room
        Number of axes kept before any group is discarded; 0 if the limit is given.
    min_groups
        Minimum number of groups that are kept.
    """

    def __init__(self, pool: GroupPool, solver: StagedSolver, room: int, min_groups: int) -> None:
        super().__init__(pool, solver, 0)
        self._n_axes, self._min_groups = room, min_groups
        if room:
            # Until the pool is full, the number of groups does not matter.
            self.limit = self.pool.limit = self.room = int(np.iinfo(np.int32).max)

    def _fill_pool(self, chunk: Any, stats: Any, first_arrival: int, indices: Indices) -> Indices:
        """Keep groups until the pool is full for the first time; return the rest."""
        if not self._n_axes or self.has_discarded:
            return super()._fill_pool(chunk, stats, first_arrival, indices)
        before = float(self.pool.table["rank"].sum())
        n_axes = before + np.cumsum(stats.rank[indices])
        n_groups = len(self.names) + np.arange(1, indices.size + 1)
        fits = (n_axes <= self._n_axes) | (n_groups <= 2 * self._min_groups)
        room = int(np.argmin(np.append(fits, False)))
        self._append(chunk, stats, first_arrival, indices[:room])
        if room < indices.size:
            self.pool._copy_before_write()
            self.limit = self.pool.limit = max(self._min_groups, len(self.names) // 2)
            self.room = len(self.names)
            self.cut_back(self.solve_again(0))
        return indices[room:]

    def adopt_columns(self, state: ColumnState) -> None:
        """Learn the columns that a certifier keeps, each as a group of one, and its solution."""
        super().adopt_columns(state)
        if not isinstance(state, Certifier) or state.solution is None:
            return
        self.limit = self.pool.limit = state.limit
        self.room = state.room
        self.seen, self.total = state.seen, state.total
        if state.has_discarded:
            self.set_bound(state.score_upper_bound)
        table, n = self.pool.table, state._n_solved
        self.pool.replace_table(table.part(0, n))
        self.solution = self.solver.restore_of_columns(self.pool, state.solution.to_state())
        self._n_solved, self._solved_at = n, state._solved_at
        self.unchanged_since = state.unchanged_since
        self.best_discarded = state.best_discarded
        self.eviction_thresholds = state.eviction_thresholds
        self.pool.append_all(table.part(n, len(table)), 0)

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        return super().to_state() | {"limit": self.limit, "room": self.room}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""
        expect(state, limit=CountKind(1), room=CountKind(1))
        self.limit = self.pool.limit = state["limit"]
        self.room = state["room"]
        super().set_state(state)
