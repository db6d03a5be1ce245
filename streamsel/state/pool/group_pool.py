"""Pool of groups of columns: all of them, or a bounded number of the best."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from streamsel.data.chunks import Chunk, Stats
from streamsel.serialization.invariants import (
    expect_between,
    expect_bounded,
    expect_sums,
    expect_units,
)
from streamsel.state.base import ColumnState, Floats, Indices
from streamsel.state.pool.group_chunk import GroupBuilder, GroupChunk, GroupStats
from streamsel.state.pool.group_table import RANK, SIZE, GroupTable, RaggedField
from streamsel.state.pool.pool import Pool, Ranking, TopRanked
from streamsel.state.pool.pooled_state import PooledState
from streamsel.targets.group_test import GroupTest
from streamsel.targets.normal_scores import NormalScores
from streamsel.targets.space import TargetSpace


def relevance_of_groups(pool: Pool, rows: Mapping[str, Floats]) -> Floats:  # noqa: ARG001
    """Return the relevances of rows of a table of groups."""
    return rows["relevance"]


MOST_RELEVANT_GROUPS = TopRanked(relevance_of_groups, relative_ties=False)


class GroupPool(Pool):
    """Pool whose variables are groups of columns; a single column is a group of one.

    It is filled with `GroupChunk` and `GroupStats` in place of columns and their moments, as
    `iter_groups` makes them. A group has the relevance of a single column with the same p-value.

    Parameters
    ----------
    space, n, limit, ranking, samples, normal_scores, target_rows
        As in `Pool`; `samples` are the axes of the groups, orthonormal bases Q of their spans. The
        limit counts groups.
    coordinates
        Whether to store the coordinates UᵀQ of the axes.

    Attributes
    ----------
    table
        The fields of `GroupStats` and `arrival`; ragged: `mean` of the members, `coordinates`,
        `unit` (the axes) and `weights` of members in the axes.
    """

    is_grouped = True

    def __init__(
        self,
        space: TargetSpace,
        n: int,
        limit: int | None,
        ranking: Ranking = MOST_RELEVANT_GROUPS,
        *,
        coordinates: bool = False,
        samples: bool = False,
        normal_scores: NormalScores | None = None,
        target_rows: Floats | None = None,
    ) -> None:
        super().__init__(
            space,
            n,
            limit,
            ranking,
            samples=samples,
            normal_scores=normal_scores,
            target_rows=target_rows,
        )
        # Rows are learnt by windows, in which a constant group may vary.
        self.accepts_constant = True
        ragged = {"mean": RaggedField((SIZE,), ())}
        if coordinates or samples:
            ragged["coordinates"] = RaggedField((RANK,), (space.rank,))
        if samples:
            ragged["unit"] = RaggedField((RANK,), (n,))
            ragged["weights"] = RaggedField((RANK, SIZE), ())
        self.table: GroupTable = GroupTable(self._fields(), ragged)
        self._builder = GroupBuilder(
            space, samples, normal_scores, self.basis, self.covariate_basis
        )

    def _fields(self) -> dict[str, tuple[int, ...]]:
        return dict.fromkeys(("arrival", *GroupStats._fields), ())

    # Contents

    @property
    def test(self) -> GroupTest:
        """The null distribution of the traces of groups."""
        return GroupTest.of(self._builder.space)

    def stats(self, indices: Indices | None = None) -> Any:
        """Return the statistics of groups, a `GroupStats`; of all groups if `indices` is None."""
        arrays = (self.table[field] for field in GroupStats._fields)
        return GroupStats(*arrays if indices is None else (array[indices] for array in arrays))

    def relevance(self, indices: Indices | None = None) -> Floats:
        """Return the relevances of single variables with the groups' p-values; -inf if constant."""
        stats: GroupStats = self.stats(indices)
        return np.where(stats.rank > 0.0, stats.relevance, -np.inf)

    def noise_relevance(self, indices: Indices | None = None) -> Floats:
        """Return the relevances to compare with noise: those to the target's normal scores."""
        found: Floats = self.stats(indices).noise_relevance
        return found

    def members_of(self, indices: Sequence[int]) -> list[list[Hashable]]:
        """Return the names of the members of some groups."""
        return self.table.members_of(indices)

    def means_of_members(self) -> dict[Hashable, float]:
        """Return the means of the members of all groups by name."""
        means = self.table.ragged_rows("mean").tolist()
        return dict(zip(self.table.members, means, strict=True))

    @property
    def has_products(self) -> bool:
        """Whether correlations of variables are available: groups have none."""
        return False

    # Learning

    def iter_groups(self, chunk: Chunk, stats: Stats) -> Iterator[tuple[Any, Any]]:
        """Yield the groups of columns of a chunk, as many as `stats` has, in place of these."""
        return self._builder.iter_groups(chunk, stats)

    @property
    def irrelevant_below(self) -> float:
        """The relevance below which a column changes nothing: -inf, as every group is counted."""
        return -np.inf

    def adjusted_squares(self, stats: Any, indices: Indices | slice = slice(None)) -> Floats:
        """Return the dimensions of groups: those of dimension 0 do not vary."""
        found: Floats = stats.rank[indices]
        return found

    def rows_of(
        self,
        chunk: Any,
        stats: Any,
        indices: Indices | None,
        out: Floats | None = None,  # noqa: ARG002 (a group has several rows of observations)
    ) -> dict[str, Any]:
        """Return the table rows of some groups; None for all."""
        groups: GroupChunk = chunk
        every = np.arange(len(groups.names)) if indices is None else indices
        rows: dict[str, Any] = {field: array[every] for field, array in stats._asdict().items()}
        members, axes, weights = groups.ragged_indices(every)
        rows["members"] = [groups.members[j] for j in members.tolist()]
        rows["mean"] = groups.mean[members]
        if "coordinates" in self.table.ragged:
            rows["coordinates"] = groups.coordinates[axes]
        if self.has_samples:
            rows |= {"unit": groups.samples[axes], "weights": groups.weights[weights]}
        return rows

    def adopt_columns(self, state: ColumnState) -> None:
        """Learn the columns that a pool keeps, each as a group of one.

        A group of one has the score of its column, so the bounds of discarded columns hold.
        """
        pool = state.pool if isinstance(state, PooledState) else state
        assert isinstance(pool, Pool)  # noqa: S101
        space, table, stats = self._builder.space, pool.table, pool.stats()
        left = space.adjusted_squares(stats.m2, stats.cxy)
        varies = left > 0.0
        rank, length = varies.astype(np.float64), np.sqrt(np.where(varies, left, 1.0))
        rows: dict[str, Any] = {"arrival": table["arrival"], "mean": stats.mean + stats.mean_error}
        relevance = np.maximum(space.relevance(stats.m2, stats.cxy), 0.0)
        trace = np.square(relevance)
        noise = relevance
        if self.normal_scores is not None:
            noise = np.where(varies, pool.noise_relevance(), 0.0)
        found = GroupStats(left, np.ones(rank.size), rank, trace, relevance, noise)
        if "coordinates" in self.table.ragged:
            rows["coordinates"] = space.coordinates(stats.m2, stats.cxy)[varies]
        if self.has_samples:
            rows |= {"unit": table["unit"][varies], "weights": 1.0 / length[varies]}
        self._copy_before_write()
        self.table.append(pool.names, members=pool.names, **found._asdict(), **rows)
        self.max_discarded_bound = pool.max_discarded_bound
        self.admission_threshold = pool.admission_threshold

    # Files

    def expect_valid(self) -> None:
        """Raise ValueError for values that no data can produce, as a file may hold."""
        table, stats = self.table, self.stats()
        expect_sums("sums of squares", table["m2"])
        expect_bounded("means", table.ragged_rows("mean"))
        expect_between("arrivals", table["arrival"], 0.0, 2.0**53)
        if np.unique(table["arrival"]).size < len(table):
            raise ValueError("Expected arrivals that differ. Got: equal ones.")
        space = self._builder.space
        max_trace = 1.01 * np.minimum(stats.rank, space.rank)
        if not ((stats.trace >= 0.0) & (stats.trace <= max_trace)).all():
            raise ValueError("Expected traces of at most the dimension of a group. Got: larger.")
        for values in (stats.relevance, stats.noise_relevance):
            expect_between("relevances", values, 0.0, 1.01)
        if "coordinates" in table.ragged:
            expect_between("coordinates", table.ragged_rows("coordinates"), -1.01, 1.01)
        if self.has_samples:
            expect_units(table.ragged_rows("unit"))
            expect_bounded("weights", table.ragged_rows("weights"))
