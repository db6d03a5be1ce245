"""ProjSe on groups of columns: pick the group of largest mean projection, project its span out.

With Q an orthonormal basis of a group of dimension q, the score is ‖P_s Q‖² / q, and P_{s+1} is P_s
without the span of P_s Q. Scores never rise, and a group of one has that of its column.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from streamsel._kernels.group_selection import pick_groups_by_projection
from streamsel.data.chunks import Chunk, Stats
from streamsel.state.base import Floats, Indices
from streamsel.state.pool.group_pool import GroupPool
from streamsel.state.pool.pool import TIE_RTOL, ZERO_TOL, Picks, Pool


def mean_squared_projections(pool: Pool, rows: Mapping[str, Floats]) -> Floats:  # noqa: ARG001
    """Return ‖UᵀQ‖² / q of rows of a table of groups; 0 for constant ones."""
    return rows["trace"] / np.maximum(rows["rank"], 1.0)


def select_groups_by_projection(pool: GroupPool, k: int, *, restart: bool) -> Picks:
    """Return up to k picks of groups, as `greedy_projse` does of columns."""
    C, starts = pool.table.ragged_rows("coordinates"), pool.table.starts("coordinates")
    whole = mean_squared_projections(pool, pool.stats()._asdict())
    picks, this_round = Picks([], [], []), 0
    while len(picks.indices) < k:
        limit = min(k - len(picks.indices), whole.size)
        indices, scores = np.empty(limit, dtype=np.int64), np.empty(limit)
        bound = whole.copy()
        bound[picks.indices] = -1.0
        n = pick_groups_by_projection(C.copy(), starts, bound, TIE_RTOL, ZERO_TOL, indices, scores)
        picks.indices.extend(indices[:n].tolist())
        picks.scores.extend(scores[:n].tolist())
        picks.rounds.extend([this_round] * n)
        if not restart or not n:
            break
        this_round += 1
    return picks


class ProjSeGroupRanking(NamedTuple):
    """Ranking of the groups of a pool by the picks of ProjSe, in rounds."""

    def upper_bound(self, pool: Pool, rows: Mapping[str, Floats]) -> Floats:
        """Return the scores under the whole projector: scores only fall."""
        return mean_squared_projections(pool, rows)

    def relevance_cutoff(self, bound: float) -> float:  # noqa: ARG002
        """Return -inf: a score is not a function of the relevance."""
        return -math.inf

    def keep_best(self, pool: Pool, limit: int) -> Picks:
        """Return the picks in rounds: the most relevant alone would drop the rarer directions."""
        assert isinstance(pool, GroupPool)  # noqa: S101
        return select_groups_by_projection(pool, limit, restart=True)

    def max_round_size(self, pool: Pool) -> int:
        """Return the number of picks that exhaust the target in any case: 1 of a line."""
        is_line = pool.space is not None and pool.space.rank == 1
        return 1 if is_line else int(np.iinfo(np.int64).max)

    def batch_update(self, pool: Pool, chunk: Chunk, stats: Stats, indices: Indices) -> None:
        """Return None: there is no faster way than repeated cuts."""
