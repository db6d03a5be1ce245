"""Groups of columns: orthonormal bases of their spans, for the groups of a chunk.

A column without a group is a group of one, named as itself. With Q an orthonormal basis of a
group's centred columns, covariates projected out, and U one of the target space, a learner receives
‖UᵀQ‖² and the dimension of Q; a method that needs more receives UᵀQ, or Q itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel._kernels.group_bases import (
    factor_groups,
    group_products,
    orthonormalize_rows,
    scale_products,
    sparse_group_products,
    squares_of_groups,
)
from streamsel.data.chunks import Chunk, SparseChunk, Stats, group_starts
from streamsel.state.base import Floats, Indices
from streamsel.state.pool.group_table import rows_of_groups, starts_of
from streamsel.state.pool.pool import residuals, unit_columns
from streamsel.targets.group_test import GroupTest
from streamsel.targets.normal_scores import NormalScores
from streamsel.targets.space import TargetSpace

# A column whose residual on the others of its group is below this fraction of its square adds
# nothing.
RANK_RTOL = 1e-10
# Values of columns that are made dense at once.
_PIECE_VALUES = 1 << 19
# Groups of more columns are factorised one by one by LAPACK.
_LARGEST = 32
# Products of sparse columns with less than this fraction of their sum of squares left after
# centring are inaccurate.
_CANCELLATION_RTOL = 1e-3
_NO_WEIGHTS: Floats = np.zeros(0)


class GroupStats(NamedTuple):
    """Statistics of groups, (g,) each.

    Parameters
    ----------
    m2, size
        Sum of squares of the members given the covariates, and their number.
    rank
        Dimension q of the span of the members; 0 for a group that is constant.
    trace
        ‖UᵀQ‖², Pillai's trace.
    relevance, noise_relevance
        Relevance of a single variable with the same p-value, to the target and to its normal
        scores; 0 for a constant group.
    """

    m2: Floats
    size: Floats
    rank: Floats
    trace: Floats
    relevance: Floats
    noise_relevance: Floats


class GroupChunk(NamedTuple):
    """Consecutive groups of a chunk, in place of its columns.

    Parameters
    ----------
    names, members
        Names of the groups, and of their members, group by group.
    n
        Number of observations.
    size_starts, axis_starts
        (g + 1,) index of the first member, and of the first axis, of each group.
    mean
        (m,) means of the members.
    coordinates
        (a, r) coordinates UᵀQ, one axis per row.
    samples
        (a, n) the axes Q, one per row; empty unless required.
    weights
        Weights of a group's centred members in its axes, (rank, size), group by group; empty unless
        samples are required.
    """

    names: list[Hashable]
    members: list[Hashable]
    n: int
    size_starts: Indices
    axis_starts: Indices
    mean: Floats
    coordinates: Floats
    samples: Floats
    weights: Floats

    def exact(self, stats: GroupStats, indices: Indices) -> GroupStats:  # noqa: ARG002
        """Return `stats` itself, as statistics of groups are computed from made columns."""
        return stats

    def ragged_indices(self, indices: Indices) -> tuple[Indices, Indices, Indices]:
        """Return the indices of the members, the axes and the weights of some groups."""
        n_weights = np.diff(self.size_starts) * np.diff(self.axis_starts)
        return (
            rows_of_groups(self.size_starts, indices),
            rows_of_groups(self.axis_starts, indices),
            rows_of_groups(starts_of(n_weights), indices),
        )


class GroupBuilder(NamedTuple):
    """Builder of the bases of groups.

    Parameters
    ----------
    space
        The target space.
    needs_samples
        Whether the axes themselves are required, and the weights of members in them.
    normal_scores
        Scores that replace the target in comparisons with noise.
    basis, covariate_basis
        (r, n) and (d, n) orthonormal bases of the target space and of the covariates' span;
        required with samples.
    """

    space: TargetSpace
    needs_samples: bool
    normal_scores: NormalScores | None
    basis: Floats
    covariate_basis: Floats | None

    def iter_groups(self, chunk: Chunk, stats: Stats) -> Iterator[tuple[GroupChunk, GroupStats]]:
        """Yield the groups of the columns that `stats` has moments of, in pieces."""
        starts = group_starts(chunk.groups, stats.m2.size)
        names = _names_of(chunk, starts)
        limit = max(1, _PIECE_VALUES // chunk.n)
        first = 0
        while first < len(names):
            last = int(np.searchsorted(starts, starts[first] + limit, side="right")) - 1
            last = min(max(last, first + 1), len(names))
            yield self._build(chunk, stats, names[first:last], starts[first : last + 1])
            first = last

    def _build(
        self, chunk: Chunk, stats: Stats, names: list[Hashable], starts: Indices
    ) -> tuple[GroupChunk, GroupStats]:
        columns = np.arange(starts[0], starts[-1])
        part = Stats(*(array[columns] for array in stats))
        left = self.space.adjusted_squares(part.m2, part.cxy)
        starts = starts - starts[0]
        G = self._coordinates(chunk, columns, part, left)
        products = np.empty(int(np.square(np.diff(starts)).sum()))
        unit, scale = self._fill_products(chunk, stats, columns, starts, left, products)
        scale_products(products, starts, scale, self._covariate_coordinates(part, left))
        rank, order = np.empty(len(names), dtype=np.intp), np.empty(columns.size, dtype=np.intp)
        C = np.empty_like(G)
        weights = np.empty(products.size) if self.needs_samples else _NO_WEIGHTS
        n_axes = factor_groups(products, starts, G, RANK_RTOL, rank, order, C, weights)
        axis_starts, C = starts_of(rank), C[:n_axes]
        samples: Floats = np.empty((0, chunk.n))
        if self.needs_samples:
            samples = _axes_of(unit, order[:n_axes], axis_starts)
            C = samples @ self.basis.T
            weights = _weights_of_members(weights, starts, rank, left)
        members = [chunk.names[j] for j in columns.tolist()]
        mean, r = part.mean + part.mean_error, self.space.rank
        coordinates = np.ascontiguousarray(C[:, :r])
        groups = GroupChunk(
            names, members, chunk.n, starts, axis_starts, mean, coordinates, samples, weights
        )
        return groups, self._stats(groups, left, C[:, r:])

    def _coordinates(self, chunk: Chunk, columns: Indices, part: Stats, left: Floats) -> Floats:
        """Return the coordinates of columns, and their products with normal scores, if any."""
        G = self.space.coordinates(part.m2, part.cxy)
        if self.normal_scores is None or self.needs_samples:
            return G
        products = self.normal_scores.products(chunk, columns)
        return np.column_stack([G, products / np.sqrt(np.where(left > 0.0, left, np.inf))])

    def _covariate_coordinates(self, part: Stats, left: Floats) -> Floats:
        if self.needs_samples or not len(self.space.covariate_map):
            return np.zeros((left.size, 0))
        length = np.sqrt(np.where(left > 0.0, left, np.inf))
        found: Floats = (part.cxy @ self.space.covariate_map.T) / length[:, None]
        return found

    def _fill_products(
        self,
        chunk: Chunk,
        stats: Stats,
        columns: Indices,
        starts: Indices,
        left: Floats,
        products: Floats,
    ) -> tuple[Floats, Floats]:
        """Fill the inner products of each group's columns; return rows, and scales of products.

        The rows are the columns of length 1 where samples are required, or were made.
        """
        varies, m2 = left > 0.0, stats.m2[columns]
        is_single = starts.size == columns.size + 1
        unit: Floats = np.empty((0, chunk.n))
        if is_single and not self.needs_samples:
            products[:] = 1.0
            return unit, varies.astype(np.float64)
        if isinstance(chunk, SparseChunk) and not self.needs_samples:
            mean = stats.mean[columns]
            if (m2 >= _CANCELLATION_RTOL * chunk.n * np.square(mean))[varies].all():
                arrays = chunk.data, chunk.indices, chunk.indptr[columns[0] : columns[-1] + 2]
                sparse_group_products(*arrays, starts, mean, chunk.n, products)
                return unit, varies / np.sqrt(np.where(varies, left, 1.0))
        unit = unit_columns(chunk, stats, columns)
        scale: Floats = np.sqrt(np.where(varies, m2 / np.where(varies, left, 1.0), 0.0))
        if self.needs_samples:
            if self.covariate_basis is not None:
                unit = residuals(unit, self.covariate_basis)
            scale = varies.astype(np.float64)
        if not is_single:
            _fill_dense(unit, starts, products)
        return unit, scale

    def _stats(self, groups: GroupChunk, left: Floats, normal: Floats) -> GroupStats:
        rank = np.diff(groups.axis_starts).astype(np.float64)
        varies, test = rank > 0.0, GroupTest.of(self.space)
        trace, relevance = np.empty(rank.size), np.zeros(rank.size)
        squares_of_groups(groups.coordinates, groups.axis_starts, trace)
        relevance[varies] = test.relevance(trace[varies], rank[varies])
        noise_relevance = relevance
        if self.normal_scores is not None:
            if self.needs_samples:
                normal = groups.samples @ self.normal_scores.Y.T
            square, noise_relevance = np.empty(rank.size), np.zeros(rank.size)
            squares_of_groups(np.ascontiguousarray(normal), groups.axis_starts, square)
            noise_relevance[varies] = test.relevance(square[varies], rank[varies])
        m2 = np.add.reduceat(left, groups.size_starts[:-1])
        size = np.diff(groups.size_starts).astype(np.float64)
        return GroupStats(m2, size, rank, trace, relevance, noise_relevance)


def _names_of(chunk: Chunk, starts: Indices) -> list[Hashable]:
    """Return the names of groups; a column without a group has its own."""
    names, groups = chunk.names, chunk.groups
    if groups is None:
        return list(names[: starts.size - 1])
    return [names[j] if (group := groups[j]) is None else group for j in starts[:-1].tolist()]


def _fill_dense(unit: Floats, starts: Indices, products: Floats) -> None:
    """Fill the inner products of each group's columns, those of large groups by BLAS."""
    group_products(unit, starts, _LARGEST, products)
    sizes = np.diff(starts)
    offsets = starts_of(np.square(sizes))
    for g in np.flatnonzero(sizes > _LARGEST).tolist():
        rows = unit[starts[g] : starts[g + 1]]
        products[offsets[g] : offsets[g + 1]] = (rows @ rows.T).ravel()


def _axes_of(unit: Floats, order: Indices, axis_starts: Indices) -> Floats:
    """Return the axes of groups, of their columns in this order, (a, n)."""
    Q: Floats = np.empty((order.size, unit.shape[1]))
    orthonormalize_rows(unit, order, axis_starts, _LARGEST, Q)
    for g in np.flatnonzero(np.diff(axis_starts) > _LARGEST).tolist():
        rows = slice(axis_starts[g], axis_starts[g + 1])
        axes, triangle = np.linalg.qr(unit[order[rows]].T)
        Q[rows] = axes.T * np.sign(triangle.diagonal())[:, None]
    return Q


def _weights_of_members(
    weights: Floats, starts: Indices, rank: NDArray[np.intp], left: Floats
) -> Floats:
    """Return the weights of centred members, from those of members of length 1."""
    size = np.diff(starts)
    weights = weights[: int((size * rank).sum())]
    # The members of a group, once for each of its axes.
    repeated = np.repeat(np.arange(size.size), rank)
    columns = rows_of_groups(starts, repeated)
    return weights / np.sqrt(np.where(left > 0.0, left, 1.0))[columns]
