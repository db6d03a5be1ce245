"""Batch updates of ProjSe's bounded pool, cut back whenever it is full.

 Few of the columns since the last cut beat a pick of that cut. So the greedy checks
its picks, and picks again only from the first that is beaten.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel._jit.cholesky import refill
from streamsel._jit.deflate import sift
from streamsel.columns import Chunk, Stats
from streamsel.held.part import Floats, Places
from streamsel.held.pool import SPENT, TIE, Pool, Sifted, units
from streamsel.target.kernels import VariableKernel

_NONE = np.empty(0, dtype=np.intp)


Greedy = tuple[NDArray[Any], ...]


class CutState(NamedTuple):
    """State of the greedy at the last cut.

    Parameters
    ----------
    G
        (m, r) coordinates of the kept candidates, in the pool's order.
    picks
        Its picks, as in `_jit.deflate.refill`.
    n_picks
        Their number.
    """

    G: Floats
    picks: Greedy
    n_picks: int


def room_for(m: int, r: int) -> Greedy:
    """Return buffers for m picks of r coordinates, as in `_jit.deflate.refill`."""
    return np.empty(m, dtype=np.int64), np.empty(m), np.empty(m, dtype=np.int64), np.empty((m, r))


def initial_state(limit: int, r: int) -> CutState:
    """Return the state before any cut."""
    return CutState(np.empty((0, r)), room_for(limit, r), 0)


def sifted_coordinates(pool: Pool, limit: int, offered: Floats) -> Sifted:
    """Return the update of a pool after offering variables, by their coordinates."""
    space, size = pool.space, len(pool.table)
    assert space is not None  # noqa: S101
    bounds: Floats = np.einsum("ij,ij->i", offered, offered)
    if bounds.size and bounds.max() <= pool.floor:
        discarded = max(pool.discarded, float(bounds.max()))
        return Sifted(None, _NONE, discarded, pool.floor, pool.plan)
    eligible = bounds > pool.floor
    if size + np.count_nonzero(eligible) < 2 * limit:
        discarded = max(pool.discarded, float(bounds[~eligible].max(initial=-1.0)))
        return Sifted(None, np.flatnonzero(eligible), discarded, pool.floor, pool.plan)
    r = space.rank
    state = initial_state(limit, r) if pool.plan is None else pool.plan
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
    candidates = (G, whole, origin, size, n_at_last_cut, offered, bounds)
    progress = (picks, state.n_picks, limit, pool.discarded, pool.floor)
    n_left, n_at_last_cut, n_picks, discarded, threshold = sift(*candidates, *progress, TIE, SPENT)
    n_stayed = np.searchsorted(origin[:n_left], size)
    join = origin[n_stayed:n_left] - size
    new_state = CutState(G[:n_at_last_cut].copy(), picks, n_picks)
    return Sifted(origin[:n_stayed], join, discarded, threshold, new_state)


class SampleSieve:
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
        state = initial_state(limit, limit) if pool.plan is None else pool.plan
        self._picks = tuple(array.copy() for array in state.picks)
        self._n_picks = state.n_picks
        self._n_at_last_cut = len(state.G)
        self.size = self._held = len(pool.table)
        capacity = max(2 * limit, self.size + 1)
        self._K, self._unit = np.zeros((capacity, capacity)), np.empty((capacity, self._n))
        self._K[: self._n_at_last_cut, : self._n_at_last_cut] = state.G[:, : self._n_at_last_cut]
        self._m2, self._origin = np.empty(capacity), np.arange(capacity)
        self._unit[: self.size] = pool.table["unit"]
        self._m2[: self.size] = pool.table["m2"]
        self.discarded, self.floor = pool.discarded, pool.floor

    def offer(self, chunk: Chunk, stats: Stats, places: Places) -> None:
        """Admit columns of a chunk in order, cutting the pool at twice the limit."""
        start = 0
        # Without a target every variable has relevance 1.
        while start < places.size and self.floor < 1.0:
            stop = min(start + max(1, 2 * self._limit - self.size), places.size)
            admitted = places[start:stop]
            rows = slice(self.size, self.size + admitted.size)
            self._unit[rows], self._m2[rows] = units(chunk, stats, admitted), stats.m2[admitted]
            self._origin[rows] = self._held + np.arange(start, stop)
            self.size, start = rows.stop, stop
            if self.size >= 2 * self._limit:
                self._cut()
        if start < places.size:
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
        picks = room_for(limit, limit)
        n = refill(K, is_kept, is_new, order, L, self._picks, self._n_picks, picks, TIE, SPENT)
        self.floor = float(picks[1].min(initial=1.0)) if n == limit else 0.0
        kept = np.flatnonzero(is_kept)
        if kept.size < p:
            self.discarded = max(self.discarded, 1.0)
        new_index = np.cumsum(is_kept) - 1
        picks[0][:n] = new_index[picks[0][:n]]
        self._picks, self._n_picks, self.size, self._n_at_last_cut = picks, n, kept.size, kept.size
        for array in (unit, m2, self._origin):
            array[: kept.size] = array[kept]
        K[: kept.size, : kept.size] = K[np.ix_(kept, kept)]

    def sifted(self) -> Sifted:
        """Return the update of the pool."""
        stayed = int(np.searchsorted(self._origin[: self.size], self._held))
        stay, join = self._origin[:stayed].copy(), self._origin[stayed : self.size] - self._held
        gram = self._K[: self._n_at_last_cut, : self._n_at_last_cut].copy()
        state = CutState(gram, self._picks, self._n_picks)
        return Sifted(stay, join, self.discarded, self.floor, state)


def sifted_samples(
    pool: Pool, limit: int, kernel: VariableKernel, chunk: Chunk, stats: Stats, places: Places
) -> Sifted:
    """Return the update of a pool of samples after offering columns of a chunk."""
    if len(pool.table) + places.size < 2 * limit and pool.floor < 1.0:
        return Sifted(None, np.arange(places.size), pool.discarded, pool.floor, pool.plan)
    sieve = SampleSieve(pool, limit, kernel)
    sieve.offer(chunk, stats, places)
    return sieve.sifted()
