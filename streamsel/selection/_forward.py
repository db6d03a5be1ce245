"""Greedy forward selection in the pool of a `Certifier`, and from products only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamsel._kernels.stepwise import (
    fold_forward_scores,
    fold_swap_scores,
    forward_scores_of_samples,
    swap_scores_of_samples,
)
from streamsel.data.chunks import Chunk, Stats
from streamsel.selection._forward_steps import (
    INACCURATE_RESIDUAL,
    MIN_RESIDUAL,
    ProductSteps,
    SampleSteps,
    Swap,
    append_pick,
    in_greedy_order,
    tolerance,
)
from streamsel.state.base import Floats, Indices, VariableState
from streamsel.state.correlations import MIN_BLOCK, CorrelationCache, correlate_columns
from streamsel.state.pool.candidate_solution import (
    GreedySolution,
    StagedSolver,
    picks_from_state,
    previous_indices,
)
from streamsel.state.pool.pool import Picks, Pool


class ForwardSolution(GreedySolution):
    """Picks of forward selection in a pool, and scores of other columns under their prefixes.

    Exchanges of picks are further stages.

    Parameters
    ----------
    pool
        The pool.
    solver
        The parameters.
    before
        The previous candidate solution, to continue from.
    n_certified
        Number of its stages that are certified.
    given, exchanged
        The picks, and the variable that each exchange puts in, if known.
    """

    def __init__(
        self,
        pool: Pool,
        solver: ForwardSolver,
        before: ForwardSolution | None = None,
        n_certified: int | None = None,
        given: Sequence[int] = (),
        exchanged: Sequence[int] = (),
    ) -> None:
        self._pool, self._ridge = pool, solver.ridge
        self.G = pool.coordinates()
        picks, known = Picks([], [], []), list(exchanged)
        if before is None:
            self._steps = self._new_steps(solver.k, CorrelationCache(self._unit))
        else:
            origin = previous_indices(pool.table["arrival"], before)
            max_rows = 2 * solver.k + MIN_BLOCK
            products = CorrelationCache(self._unit, before._steps.products, origin, max_rows)
            self._steps = self._new_steps(solver.k, products)
            known = self._go_on(before, origin, n_certified or 0, picks)
        steps, n_swapped = self._steps, min(solver.k, solver.n_swapped)
        for j in given:
            append_pick(picks, j, steps.take(j, len(picks.indices), len(picks.indices)))
        if not given:
            steps.pick(n_swapped, picks)
        super().__init__(pool, picks, solver.k)
        # The picks before they are exchanged.
        self._made = picks._replace(indices=[*picks.indices], scores=[*picks.scores])
        # Exchanges reflect the directions.
        q = len(picks.indices)
        self._V, self._L = steps.V[:q].copy(), steps.left.L[:q, :q].copy()
        self._T, self._C = steps.left.T[:, :q].copy(), steps.left.C[:q].copy()
        swaps = steps.swap(picks.indices, solver.swaps, known) if q == n_swapped else []
        self._exchange(swaps)
        if solver.k > n_swapped:
            steps.pick(solver.k, self.picks)
        self.tolerance = tolerance(self.thresholds, self._ridge)
        steps.close()

    @property
    def _unit(self) -> Floats:
        """The pool's samples; read from the pool, whose older tables must not be kept alive."""
        return self._pool.table["unit"]

    def _new_steps(self, k: int, products: CorrelationCache) -> SampleSteps:
        return SampleSteps(self._unit, self.G, k, self._ridge, self._pool.basis, products)

    def _go_on(
        self, before: ForwardSolution, origin: Indices, n_certified: int, picks: Picks
    ) -> list[int]:
        """Reuse the previous picks, up to the first that a new variable may beat.

        Return what the certified exchanges put in.
        """
        added = np.flatnonzero(origin < 0)
        n_picks = len(before._made.indices)
        T = np.empty((origin.size, n_picks))
        T[origin >= 0] = before._T[origin[origin >= 0]]
        T[added] = self._unit[added] @ before._V.T
        stop, S = n_picks, before._n_pick_stages
        if added.size:
            scores = before._pick_scores(
                self.G[added], T[added], lambda near: self._unit[added[near]]
            )
            # A margin suffices: the greedy picks again from here.
            beaten = scores >= (before.thresholds - 2.0 * before.tolerance)[:S]
            first = int(np.argmax(np.append(beaten.any(axis=0), True)))
            stop = min(n_picks, max(n_certified, first))
        index_of, left = self._pool.index_of, self._steps.left
        for s in range(stop):
            j = index_of[before.names[before._made.indices[s]]]
            self._steps.V[s], left.C[s] = before._V[s], before._C[s]
            left.L[s, : s + 1] = before._L[s, : s + 1]
            left.record_pick(s, j, T[:, s])
            append_pick(picks, j, before._made.scores[s])
        known = before._swaps[: max(0, n_certified - S)]
        return [index_of[before.names[swap.after]] for swap in known]

    def _exchange(self, swaps: Sequence[Swap]) -> None:
        """Add exchanges of the picks as stages, and put the selected variables in order."""
        pool, self._swaps, self._n_pick_stages = self._pool, swaps, len(self.keys)
        if not swaps:
            return
        members, arrivals = list(self._made.indices), pool.table["arrival"]
        keys, incumbents = [*self.keys], []
        for swap in swaps:
            members[swap.position] = swap.after
            others = [j for j in members if j != swap.after]
            keys.append(frozenset(self.names[j] for j in others))
            # The pick that is taken out returns if it ties with others.
            incumbents.append(-1 if swap.products is None else int(arrivals[swap.after]))
        self.keys = keys
        self.thresholds = np.append(self.thresholds, [swap.gain for swap in swaps])
        self.incumbent_arrivals = np.append(self.incumbent_arrivals, incumbents)
        self.pinned = np.unique([*self._made.indices, *(swap.after for swap in swaps)])
        if sorted(members) != sorted(self._made.indices):
            members = sorted(members)
            units = self._unit[members]
            steps = SampleSteps(
                units,
                self.G[members],
                len(members),
                self._ridge,
                pool.basis,
                CorrelationCache(units),
            )
            self.picks = in_greedy_order(steps, members)

    def _pick_scores(self, G: Floats, T: Floats, observed: Callable[[Indices], Floats]) -> Floats:
        """Return the (p, S) scores of variables under the stages of the picks.

        Parameters
        ----------
        G, T
            Their target coordinates, and products with the directions of the picks.
        observed
            Returns the observations of some of them.
        """
        scores = np.empty((len(G), self._n_pick_stages))
        is_near = fold_forward_scores(G, T, self._C, self._ridge, *self._residual_limits, scores)
        indices = np.flatnonzero(is_near)
        if indices.size:
            exact = np.empty((indices.size, self._n_pick_stages))
            forward_scores_of_samples(
                observed(indices), self._V, self._pool.basis, self._residual_limits[0], exact
            )
            scores[indices] = exact
        return scores

    def _swap_scores(
        self, G: Floats, T: Floats, N: Floats, observed: Callable[[Indices], Floats]
    ) -> Floats:
        """Return the (p, S) scores of variables under the exchanges; N are products with new ones.

        The other parameters are those of `_pick_scores`.
        """
        swaps = self._swaps
        is_new = np.array([swap.products is not None for swap in swaps])
        replaced = np.where(is_new, np.cumsum(is_new) - 1, -1)
        reflections, restored, removed = (
            np.array([getattr(swap, field) for swap in swaps])
            for field in ("reflection", "restored", "removed")
        )
        scores = np.empty((len(G), len(swaps)))
        is_near = fold_swap_scores(
            G,
            T,
            self._C,
            reflections,
            restored,
            removed,
            replaced,
            N,
            self._ridge,
            *self._residual_limits,
            scores,
        )
        indices = np.flatnonzero(is_near)
        if indices.size:
            out, into = (
                np.array([getattr(swap, field) for swap in swaps])
                for field in ("direction_out", "direction_in")
            )
            exact = np.empty((indices.size, len(swaps)))
            swap_scores_of_samples(
                observed(indices),
                self._V,
                out,
                into,
                self._pool.basis,
                self._residual_limits[0],
                exact,
            )
            scores[indices] = exact
        return scores

    @property
    def _residual_limits(self) -> tuple[float, float]:
        """The squared residuals below which a variable is excluded, and inaccurate."""
        return (MIN_RESIDUAL, INACCURATE_RESIDUAL) if self._ridge == 0.0 else (-np.inf, -np.inf)

    def scores(self) -> Floats:
        """Return the (p, S) scores of the pool's variables; -inf for those picked or excluded."""
        members = list(self._made.indices)
        # Rounding errors of products found in steps depend on earlier pools, which no file has.
        T = self._unit @ self._V.T
        scores = self._pick_scores(self.G, T, lambda near: self._unit[near])
        for s, j in enumerate(members):
            scores[j, s + 1 :] = -np.inf
        if self._swaps:
            new = [swap.products for swap in self._swaps if swap.products is not None]
            N = np.array(new).reshape(len(new), len(self.G)).T
            found = self._swap_scores(
                self.G, T, np.ascontiguousarray(N), lambda near: self._unit[near]
            )
            for s, swap in enumerate(self._swaps):
                members[swap.position] = swap.after
                found[[j for j in members if j != swap.after], s] = -np.inf
            scores = np.hstack([scores, found])
        return scores

    def scores_of(self, chunk: Chunk, stats: Stats, indices: Indices) -> Floats:
        """Return the (b, S) scores of columns of a chunk."""
        pool, q = self._pool, len(self._V)
        assert pool.space is not None  # noqa: S101
        G = pool.space.coordinates(stats.m2[indices], stats.cxy[indices])
        used = self._V if self._swaps else self._V[: self._n_pick_stages - 1]
        new = [swap.direction_in for swap in self._swaps if swap.products is not None]
        V = np.vstack([used, *(v for v in new if v is not None)])
        T = correlate_columns(chunk, stats, indices, V, pool.adjusted_squares(stats, indices))

        def observed(near: Indices) -> Floats:
            return pool.unit_rows_of(chunk, stats, indices[near])

        scores = self._pick_scores(G, T, observed)
        if self._swaps:
            N = np.ascontiguousarray(T[:, q:])
            scores = np.hstack([scores, self._swap_scores(G, T[:, :q], N, observed)])
        return scores

    def count_picks(self, n_stages: int) -> int:
        """Return how many picks belong to so many leading stages; all or none if exchanged."""
        if self._swaps:
            return len(self.picks.indices) if n_stages == len(self.keys) else 0
        return super().count_picks(n_stages)

    def to_state(self) -> dict[str, Any]:
        """Return the picks, and the variables that exchanges put in, by name."""
        return {
            "picks": [self.names[j] for j in self._made.indices],
            "exchanged": [self.names[swap.after] for swap in self._swaps],
        }


@dataclass(frozen=True, eq=False)
class ForwardSolver(StagedSolver):
    """Solver of forward selection in the pool of a `Certifier`.

    Parameters
    ----------
    k, ridge
        Number of picks wanted, and the ridge.
    swaps
        Maximum number of sweeps in which picks are exchanged.
    n_swapped
        Number of picks after which they are exchanged; fewer if fewer are found. Later picks are
        added after the exchange.
    """

    k: int
    ridge: float
    swaps: int
    n_swapped: int

    def solve(
        self, pool: Pool, before: ForwardSolution | None, n_certified: int | None
    ) -> ForwardSolution:
        """Return the candidate solution for the variables of a pool."""
        return ForwardSolution(pool, self, before, n_certified)

    def restore(self, pool: Pool, saved: dict[str, Any]) -> ForwardSolution:
        """Return the candidate solution that `ForwardSolution.to_state` saved."""
        given = picks_from_state(pool, saved)
        exchanged = [pool.index_of[name] for name in saved["exchanged"]]
        members = list(given)
        for s, j in enumerate(exchanged):
            i = s % len(members) if members else 0
            if not members or j in members[:i] + members[i + 1 :]:
                raise ValueError(
                    f"Expected exchanges of one variable at a time. Got: {saved['exchanged']!r}."
                )
            members[i] = j
        return ForwardSolution(pool, self, given=given, exchanged=exchanged)


def select_from_correlations(
    view: VariableState, k: int, ridge: float, swaps: int, n_swapped: int
) -> Picks:
    """Return the picks of forward selection from the correlations of the tracked variables.

    Parameters
    ----------
    view
        The variables.
    k, ridge, swaps, n_swapped
        As in `ForwardSolver`.
    """
    G, picks = view.coordinates(), Picks([], [], [])
    steps = ProductSteps(G, k, ridge, view.products)
    n_swapped = min(k, n_swapped)
    steps.pick(n_swapped, picks)
    if len(picks.indices) == n_swapped:
        members = list(picks.indices)
        for swap in steps.swap(members, swaps):
            members[swap.position] = swap.after
        members = sorted(members)
        if members != sorted(picks.indices):
            among = ProductSteps(
                G[members], len(members), ridge, lambda j: view.products(members[j])[members]
            )
            picks = in_greedy_order(among, members)
        steps.pick(k, picks)
    return picks
