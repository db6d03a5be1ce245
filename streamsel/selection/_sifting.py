"""A bounded pool of variables with coordinates, cut back again and again.

 Nearly all that came since the last cut is no match for what stood there. So the greedy goes over
its picks once more, and picks anew only from where one of them is beaten.
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


class Plan(NamedTuple):
    """The greedy as it went at a cut.

    Parameters
    ----------
    G
        (m, r) coordinates of the candidates that stayed, in the pool's order.
    picks
        Its picks, as `_jit.deflate.refill` has them.
    n_picks
        How many they are.
    """

    G: Floats
    picks: Greedy
    n_picks: int


def room_for(m: int, r: int) -> Greedy:
    """Return room for m picks of r coordinates, as `_jit.deflate.refill` has them."""
    return np.empty(m, dtype=np.int64), np.empty(m), np.empty(m, dtype=np.int64), np.empty((m, r))


def first_plan(limit: int, r: int) -> Plan:
    """Return the plan that knows nothing."""
    return Plan(np.empty((0, r)), room_for(limit, r), 0)


def sifted_coordinates(pool: Pool, limit: int, offered: Floats) -> Sifted:
    """Return what is left of a pool once variables have been offered, by their coordinates."""
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
    plan = first_plan(limit, r) if pool.plan is None else pool.plan
    fresh = len(plan.G)
    room = max(2 * limit, size + 1)
    G, whole, origin = np.empty((room, r)), np.empty(room), np.empty(room, dtype=np.int64)
    stats = pool.stats(np.arange(fresh, size))
    G[:fresh], G[fresh:size] = plan.G, space.coordinates(stats.m2, stats.cxy)
    whole[:size] = np.einsum("ij,ij->i", G[:size], G[:size])
    picks = tuple(array.copy() for array in plan.picks)
    candidates = (G, whole, origin, size, fresh, offered, bounds)
    so_far = (picks, plan.n_picks, limit, pool.discarded, pool.floor)
    left, fresh, n_picks, discarded, floor = sift(*candidates, *so_far, TIE, SPENT)
    stayed = np.searchsorted(origin[:left], size)
    join = origin[stayed:left] - size
    new = Plan(G[:fresh].copy(), picks, n_picks)
    return Sifted(origin[:stayed], join, discarded, floor, new)


class SampleSieve:
    """A pool of variables that explain each other, filled and cut back.

    Parameters
    ----------
    pool
        It is left as it is.
    limit
        Its limit.
    kernel
        The kernel between variables.
    """

    def __init__(self, pool: Pool, limit: int, kernel: VariableKernel) -> None:
        self._limit, self._kernel = limit, kernel
        self._n = int(pool.n)
        plan = first_plan(limit, limit) if pool.plan is None else pool.plan
        self._picks = tuple(array.copy() for array in plan.picks)
        self._n_picks = plan.n_picks
        self._fresh = len(plan.G)
        self.size = self._held = len(pool.table)
        room = max(2 * limit, self.size + 1)
        self._K, self._unit = np.zeros((room, room)), np.empty((room, self._n))
        self._K[: self._fresh, : self._fresh] = plan.G[:, : self._fresh]
        self._m2, self._origin = np.empty(room), np.arange(room)
        self._unit[: self.size] = pool.table["unit"]
        self._m2[: self.size] = pool.table["m2"]
        self.discarded, self.floor = pool.discarded, pool.floor

    def offer(self, chunk: Chunk, stats: Stats, places: Places) -> None:
        """Admit columns of a chunk in order, and cut back at twice the limit."""
        start = 0
        # Without a target nothing is less relevant than 1.
        while start < places.size and self.floor < 1.0:
            stop = min(start + max(1, 2 * self._limit - self.size), places.size)
            taken = places[start:stop]
            new = slice(self.size, self.size + taken.size)
            self._unit[new], self._m2[new] = units(chunk, stats, taken), stats.m2[taken]
            self._origin[new] = self._held + np.arange(start, stop)
            self.size, start = new.stop, stop
            if self.size >= 2 * self._limit:
                self._cut()
        if start < places.size:
            self.discarded = max(self.discarded, 1.0)

    def _cut(self) -> None:
        K, unit, m2, p, fresh = self._K, self._unit, self._m2, self.size, self._fresh
        cosine = unit[fresh:p] @ unit[:p].T
        K[fresh:p, :p] = self._kernel.of_cosine(cosine, m2[fresh:p], m2[:p], self._n)
        K[:fresh, fresh:p] = K[fresh:p, :fresh].T
        taken, contends = np.zeros(p, dtype=np.bool_), np.arange(p) >= fresh
        limit = self._limit
        order, L = np.empty(limit, dtype=np.int64), np.empty((limit, limit))
        now = room_for(limit, limit)
        n = refill(K, taken, contends, order, L, self._picks, self._n_picks, now, TIE, SPENT)
        self.floor = float(now[1].min(initial=1.0)) if n == limit else 0.0
        kept = np.flatnonzero(taken)
        if kept.size < p:
            self.discarded = max(self.discarded, 1.0)
        moved = np.cumsum(taken) - 1
        now[0][:n] = moved[now[0][:n]]
        self._picks, self._n_picks, self.size, self._fresh = now, n, kept.size, kept.size
        for array in (unit, m2, self._origin):
            array[: kept.size] = array[kept]
        K[: kept.size, : kept.size] = K[np.ix_(kept, kept)]

    def sifted(self) -> Sifted:
        """Return what is left."""
        stayed = int(np.searchsorted(self._origin[: self.size], self._held))
        stay, join = self._origin[:stayed].copy(), self._origin[stayed : self.size] - self._held
        gram = self._K[: self._fresh, : self._fresh].copy()
        plan = Plan(gram, self._picks, self._n_picks)
        return Sifted(stay, join, self.discarded, self.floor, plan)


def sifted_samples(
    pool: Pool, limit: int, kernel: VariableKernel, chunk: Chunk, stats: Stats, places: Places
) -> Sifted:
    """Return what is left of a pool of samples once columns of a chunk have been offered."""
    if len(pool.table) + places.size < 2 * limit and pool.floor < 1.0:
        return Sifted(None, np.arange(places.size), pool.discarded, pool.floor, pool.plan)
    sieve = SampleSieve(pool, limit, kernel)
    sieve.offer(chunk, stats, places)
    return sieve.sifted()
