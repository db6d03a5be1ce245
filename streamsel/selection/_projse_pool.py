"""Rank the columns of ProjSe's pool: in rounds, as its greedy picks them.

A cut of the pool continues from the picks of the last one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel._kernels.gram_schmidt import cut_pool
from streamsel._kernels.pivoted_cholesky import refill_by_cholesky
from streamsel.data.chunks import Chunk, Stats
from streamsel.selection._projse import deflation_of, greedy_projse, squared_relevance_of_rows
from streamsel.state.base import Floats, Indices
from streamsel.state.pool.pool import TIE_RTOL, ZERO_TOL, EvictionResult, Picks, Pool, unit_columns
from streamsel.targets.kernels import VariableKernel
from streamsel.targets.space import TargetSpace

Trace = tuple[NDArray[Any], ...]

_NONE = np.empty(0, dtype=np.intp)


class ProjSeRanking(NamedTuple):
    """Ranking of the columns of a pool by the picks of ProjSe.

    Parameters
    ----------
    kernel
        The kernel between variables.
    """

    kernel: VariableKernel

    def upper_bound(self, pool: Pool, rows: Mapping[str, Floats]) -> Floats:
        """Return the squared relevances: scores only fall."""
        return squared_relevance_of_rows(pool, rows)

    def relevance_cutoff(self, bound: float) -> float:
        """Return the relevance of this square."""
        return math.sqrt(bound)

    def keep_best(self, pool: Pool, limit: int) -> Picks:
        """Return the picks in rounds: the most relevant alone would drop the rarer directions."""
        return greedy_projse(deflation_of(pool, self.kernel), limit, restart=True)

    def max_round_size(self, pool: Pool) -> int:
        """Return the rank of the target, which the picks of a round exhaust."""
        return np.iinfo(np.int64).max if pool.space is None else pool.space.rank

    def batch_update(
        self, pool: Pool, chunk: Chunk, stats: Stats, indices: Indices
    ) -> EvictionResult | None:
        """Return the update of a pool by columns of a chunk."""
        limit, space = pool.limit, pool.space
        if limit is None:
            return None
        if space is None:
            return filter_samples(pool, limit, self.kernel, chunk, stats, indices)
        # In one dimension the admission threshold rises so fast that the pool is rarely cut.
        if space.rank == 1:
            return None
        m2, cxy = stats.m2, stats.cxy
        if indices.size < m2.size:
            m2, cxy = m2[indices], cxy[indices]
        return filter_coordinates(pool, space, limit, space.coordinates(m2, cxy))


class CutState(NamedTuple):
    """State of the greedy at the last cut.

    Parameters
    ----------
    G
        (m, r) coordinates of the kept candidates, in the pool's order.
    picks
        Its picks, as in `refill_by_deflation`.
    n_picks
        Their number.
    """

    G: Floats
    picks: Trace
    n_picks: int


def empty_trace_arrays(m: int, r: int) -> Trace:
    """Return buffers for m picks of r coordinates, as in `refill_by_deflation`."""
    return np.empty(m, dtype=np.int64), np.empty(m), np.empty(m, dtype=np.int64), np.empty((m, r))


def initial_state(limit: int, r: int) -> CutState:
    """Return the state before any cut."""
    return CutState(np.empty((0, r)), empty_trace_arrays(limit, r), 0)


def filter_coordinates(pool: Pool, space: TargetSpace, limit: int, batch: Floats) -> EvictionResult:
    """Return the update of a pool by a batch of variables, given by their coordinates."""
    size = len(pool.table)
    bounds: Floats = np.einsum("ij,ij->i", batch, batch)
    if bounds.size and bounds.max() <= pool.admission_threshold:
        discarded = max(pool.max_discarded_bound, float(bounds.max()))
        return EvictionResult(None, _NONE, discarded, pool.admission_threshold, pool.cut_state)
    eligible = bounds > pool.admission_threshold
    if size + np.count_nonzero(eligible) < 2 * limit:
        discarded = max(pool.max_discarded_bound, float(bounds[~eligible].max(initial=-1.0)))
        return EvictionResult(
            None, np.flatnonzero(eligible), discarded, pool.admission_threshold, pool.cut_state
        )
    r = space.rank
    state = initial_state(limit, r) if pool.cut_state is None else pool.cut_state
    n_at_last_cut = len(state.G)
    capacity = max(2 * limit, size + 1)
    G, whole, origin = (
        np.empty((capacity, r)),
        np.empty(capacity),
        np.empty(capacity, dtype=np.int64),
    )
    stats = pool.stats(np.arange(n_at_last_cut, size))
    G[:n_at_last_cut], G[n_at_last_cut:size] = state.G, space.coordinates(stats.m2, stats.cxy)
    whole[:size] = np.einsum("ij,ij->i", G[:size], G[:size])
    picks = tuple(array.copy() for array in state.picks)
    candidates = (G, whole, origin, size, n_at_last_cut, batch, bounds)
    progress = (picks, state.n_picks, limit, pool.max_discarded_bound, pool.admission_threshold)
    n_left, n_at_last_cut, n_picks, discarded, threshold = cut_pool(
        *candidates, *progress, TIE_RTOL, ZERO_TOL
    )
    n_stayed = np.searchsorted(origin[:n_left], size)
    join = origin[n_stayed:n_left] - size
    new_state = CutState(G[:n_at_last_cut].copy(), picks, n_picks)
    return EvictionResult(origin[:n_stayed], join, discarded, threshold, new_state)


class ProjSeSampleFilter:
    """Pool of variables that explain each other, filled and cut back.

    Parameters
    ----------
    pool
        The pool, which is not changed.
    limit
        Its limit.
    kernel
        The kernel between variables.
    """

    def __init__(self, pool: Pool, limit: int, kernel: VariableKernel) -> None:
        self._limit, self._kernel = limit, kernel
        self._n = int(pool.n)
        state = initial_state(limit, limit) if pool.cut_state is None else pool.cut_state
        self._picks = tuple(array.copy() for array in state.picks)
        self._n_picks = state.n_picks
        self._n_at_last_cut = len(state.G)
        self.size = self._n_before = len(pool.table)
        capacity = max(2 * limit, self.size + 1)
        self._K, self._unit = np.zeros((capacity, capacity)), np.empty((capacity, self._n))
        self._K[: self._n_at_last_cut, : self._n_at_last_cut] = state.G[:, : self._n_at_last_cut]
        self._m2, self._origin = np.empty(capacity), np.arange(capacity)
        self._unit[: self.size] = pool.table["unit"]
        self._m2[: self.size] = pool.table["m2"]
        self.discarded, self.threshold = pool.max_discarded_bound, pool.admission_threshold

    def add(self, chunk: Chunk, stats: Stats, indices: Indices) -> None:
        """Admit columns of a chunk in order, cutting the pool at twice the limit."""
        start = 0
        # Without a target every variable has relevance 1.
        while start < indices.size and self.threshold < 1.0:
            stop = min(start + max(1, 2 * self._limit - self.size), indices.size)
            admitted = indices[start:stop]
            rows = slice(self.size, self.size + admitted.size)
            self._unit[rows], self._m2[rows] = (
                unit_columns(chunk, stats, admitted),
                stats.m2[admitted],
            )
            self._origin[rows] = self._n_before + np.arange(start, stop)
            self.size, start = rows.stop, stop
            if self.size >= 2 * self._limit:
                self._cut()
        if start < indices.size:
            self.discarded = max(self.discarded, 1.0)

    def _cut(self) -> None:
        K, unit, m2, p, n_at_last_cut = (
            self._K,
            self._unit,
            self._m2,
            self.size,
            self._n_at_last_cut,
        )
        cosine = unit[n_at_last_cut:p] @ unit[:p].T
        K[n_at_last_cut:p, :p] = self._kernel.of_cosine(
            cosine, m2[n_at_last_cut:p], m2[:p], self._n
        )
        K[:n_at_last_cut, n_at_last_cut:p] = K[n_at_last_cut:p, :n_at_last_cut].T
        is_kept, is_new = np.zeros(p, dtype=np.bool_), np.arange(p) >= n_at_last_cut
        limit = self._limit
        order, L = np.empty(limit, dtype=np.int64), np.empty((limit, limit))
        picks = empty_trace_arrays(limit, limit)
        n = refill_by_cholesky(
            K, is_kept, is_new, order, L, self._picks, self._n_picks, picks, TIE_RTOL, ZERO_TOL
        )
        self.threshold = float(picks[1].min(initial=1.0)) if n == limit else 0.0
        kept = np.flatnonzero(is_kept)
        if kept.size < p:
            self.discarded = max(self.discarded, 1.0)
        new_index = np.cumsum(is_kept) - 1
        picks[0][:n] = new_index[picks[0][:n]]
        self._picks, self._n_picks, self.size, self._n_at_last_cut = picks, n, kept.size, kept.size
        for array in (unit, m2, self._origin):
            array[: kept.size] = array[kept]
        K[: kept.size, : kept.size] = K[np.ix_(kept, kept)]

    def result(self) -> EvictionResult:
        """Return the update of the pool."""
        stayed = int(np.searchsorted(self._origin[: self.size], self._n_before))
        stay, join = self._origin[:stayed].copy(), self._origin[stayed : self.size] - self._n_before
        gram = self._K[: self._n_at_last_cut, : self._n_at_last_cut].copy()
        state = CutState(gram, self._picks, self._n_picks)
        return EvictionResult(stay, join, self.discarded, self.threshold, state)


def filter_samples(
    pool: Pool, limit: int, kernel: VariableKernel, chunk: Chunk, stats: Stats, indices: Indices
) -> EvictionResult:
    """Return the update of a pool of samples by columns of a chunk."""
    if len(pool.table) + indices.size < 2 * limit and pool.admission_threshold < 1.0:
        return EvictionResult(
            None,
            np.arange(indices.size),
            pool.max_discarded_bound,
            pool.admission_threshold,
            pool.cut_state,
        )
    sample_filter = ProjSeSampleFilter(pool, limit, kernel)
    sample_filter.add(chunk, stats, indices)
    return sample_filter.result()
