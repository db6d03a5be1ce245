"""Greedy forward selection, from samples in stages or from products only.

With R = λ(λI + Σ x xᵀ)⁻¹ over the picks, the next is the variable of the largest ‖UᵀR x‖² / (λ +
xᵀR x). R = I - Σ v vᵀ, where each pick adds the direction v = R x / √(λ + xᵀR x); so a variable
requires only its coordinates g = Uᵀx and the products t = vᵀx: UᵀR x = g - Σ (Uᵀv) t and
xᵀR x = 1 - Σ t².
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamsel._kernels.stepwise import (
    fold_forward_scores,
    forward_scores_of_samples,
    remove_direction,
)
from streamsel.data.columns import Chunk, Stats
from streamsel.state.base import Floats, Indices, VariableState
from streamsel.state.correlations import MIN_BLOCK, CorrelationCache, correlate_columns
from streamsel.state.pool.candidate_solution import (
    GreedySolution,
    StagedSolver,
    picks_from_state,
    previous_indices,
)
from streamsel.state.pool.pool import TIE_RTOL, ZERO_TOL, Picks, Pool

# Without a ridge a variable with a smaller squared residual is excluded; the second value applies
# without samples to recompute the residual.
_MIN_RESIDUAL = 1e-10
_MIN_RESIDUAL_OF_PRODUCTS = 1e-6
# Error bounds of the root of a score: the first divided by the root of the ridge, by which rounding
# errors are divided; the second without a ridge, for the smallest residual. If the picks leave one
# direction of the observations all scores are equal, and the first variable is picked.
_ROUNDING, _ROUGH = 1e-14, 1e-9
# Below this squared residual 1 - Σ t² is inaccurate.
_INACCURATE_RESIDUAL = 1e-4
# Below this squared residual of a pick, products with its direction derived from others are.
_INACCURATE_PRODUCTS = 1e-2


def tolerance(scores: Any, ridge: float) -> Any:
    """Return the difference up to which scores are ties."""
    scores = np.maximum(scores, 0.0)
    rough = min(_ROUGH, _ROUNDING / np.sqrt(ridge)) if ridge > 0.0 else _ROUGH
    return np.maximum(TIE_RTOL * scores, rough * np.sqrt(scores))


def earliest_of_best(scores: Floats, ridge: float) -> int:
    """Return the first index whose score ties with the highest."""
    highest = scores.max()
    return int(np.argmax(scores >= highest - tolerance(highest, ridge)))


class Residuals:
    """Residuals of variables given the picks.

    Parameters
    ----------
    G
        (p, r) target coordinates of the variables.
    k, ridge
        Maximum number of picks, and the ridge.
    least
        Without a ridge a variable with a smaller squared residual is excluded.

    Attributes
    ----------
    T, C
        (p, k) products with the directions of the picks, and (k, r) coordinates of these.
    """

    def __init__(self, G: Floats, k: int, ridge: float, least: float = _MIN_RESIDUAL) -> None:
        self.ridge = ridge
        self._least = least if ridge == 0.0 else -np.inf
        self._A, self.squared_residuals = G.copy(), np.ones(len(G))
        self._square: Floats = np.einsum("ij,ij->i", G, G)
        self._is_picked = np.zeros(len(G), dtype=np.bool_)
        self.T, self.C = np.empty((len(G), k)), np.empty((k, G.shape[1]))

    def inaccurate(self) -> Indices:
        """Return the variables whose residual is so small that samples are needed to compute it."""
        if self.ridge > 0.0:
            return np.empty(0, dtype=np.intp)
        return np.flatnonzero(
            (self.squared_residuals < _INACCURATE_RESIDUAL)
            & (self.squared_residuals >= _MIN_RESIDUAL)
            & ~self._is_picked
        )

    def set_residuals(self, indices: Indices, residuals: Floats, basis: Floats) -> None:
        """Set the residuals of variables, (m, n), computed from samples instead of products."""
        self.squared_residuals[indices] = np.einsum("ij,ij->i", residuals, residuals)
        self._A[indices] = residuals @ basis.T
        self._square[indices] = np.einsum("ij,ij->i", self._A[indices], self._A[indices])

    def scores(self) -> Floats:
        """Return the score of every variable; -inf for those picked or excluded."""
        is_excluded = self._is_picked | (self.squared_residuals < self._least)
        size = np.where(is_excluded, 1.0, self.ridge + self.squared_residuals)
        return np.where(is_excluded, -np.inf, self._square / size)

    def norm_of(self, j: int) -> float:
        """Return √(λ + xᵀR x) of a variable."""
        return float(np.sqrt(self.ridge + max(self.squared_residuals[j], 0.0)))

    def pick(self, s: int, j: int, t: Floats) -> None:
        """Pick variable j as number s, given the products of all with its direction."""
        self.C[s] = self._A[j] / self.norm_of(j)
        self.record_pick(s, j, t)

    def record_pick(self, s: int, j: int, t: Floats) -> None:
        """Record a pick whose direction has its coordinates already."""
        self.T[:, s] = t
        self._is_picked[j] = True
        remove_direction(
            self._square, self.squared_residuals, self._A, np.ascontiguousarray(t), self.C[s]
        )


def select_from_correlations(view: VariableState, k: int, ridge: float) -> Picks:
    """Return the picks of forward selection from the correlations of the tracked variables."""
    residuals = Residuals(view.coordinates(), k, ridge, _MIN_RESIDUAL_OF_PRODUCTS)
    picks = Picks([], [], [])
    for s in range(min(k, len(view.names))):
        scores = residuals.scores()
        j = earliest_of_best(scores, ridge)
        if scores[j] <= ZERO_TOL:
            break
        T = residuals.T[:, :s]
        t = (view.products(j) - T @ T[j]) / residuals.norm_of(j)
        _append(picks, j, float(scores[j]))
        residuals.pick(s, j, t)
    return picks


def _append(picks: Picks, j: int, score: float) -> None:
    picks.indices.append(j)
    picks.scores.append(score)
    picks.rounds.append(0)


class ForwardSolution(GreedySolution):
    """Picks of forward selection in a pool, and scores of other columns under their prefixes.

    Parameters
    ----------
    pool
        The pool.
    k, ridge
        Number of picks, and the ridge.
    before
        The previous candidate solution, to continue from.
    n_certified
        Number of its picks that are certified.
    given
        The picks, if known.
    """

    def __init__(
        self,
        pool: Pool,
        k: int,
        ridge: float,
        before: ForwardSolution | None = None,
        n_certified: int | None = None,
        given: Sequence[int] = (),
    ) -> None:
        self._pool, self._ridge = pool, ridge
        self.G = pool.coordinates()
        self._left = Residuals(self.G, k, ridge)
        self.V = np.empty((k, pool.n))
        picks = Picks([], [], [])
        if before is None:
            self._products = CorrelationCache(self._unit)
        else:
            origin = previous_indices(pool.table["arrival"], before)
            most = 2 * k + MIN_BLOCK
            self._products = CorrelationCache(self._unit, before._products, origin, most)
            self._go_on(before, origin, n_certified or 0, picks)
        for j in given:
            self._take(j, picks)
        while len(picks.indices) < min(k, len(self.G)) and not given:
            scores = self._scores_now(len(picks.indices))
            j = earliest_of_best(scores, ridge)
            if scores[j] <= ZERO_TOL:
                break
            self._take(j, picks)
        self._products.close()
        super().__init__(pool, picks, k)
        self.tolerance = tolerance(self.thresholds, ridge)

    @property
    def _unit(self) -> Floats:
        """The pool's samples; read from the pool, whose older tables must not be kept alive."""
        return self._pool.table["unit"]

    def _go_on(
        self, before: ForwardSolution, origin: Indices, n_certified: int, picks: Picks
    ) -> None:
        """Reuse the previous picks, up to the first that a new variable may beat."""
        added = np.flatnonzero(origin < 0)
        S, V = len(before.keys), before.V
        n_picks = len(before.picks.indices)
        T = np.empty((origin.size, n_picks))
        T[origin >= 0] = before._left.T[origin[origin >= 0], :n_picks]
        T[added] = self._unit[added] @ V[:n_picks].T
        stop = n_picks
        if added.size:
            directions = V, before._left.C
            scores = self._scores_under(
                self.G[added], T[added], directions, S, lambda near: self._unit[added[near]]
            )
            # A margin suffices: the greedy picks again from here.
            beaten = (scores >= before.thresholds - 2.0 * before.tolerance).any(axis=0)
            stop = min(n_picks, max(n_certified, int(np.argmax(np.append(beaten, True)))))
        index_of = self._pool.index_of
        for s in range(stop):
            j = index_of[before.names[before.picks.indices[s]]]
            self.V[s], self._left.C[s] = V[s], before._left.C[s]
            self._left.record_pick(s, j, T[:, s])
            _append(picks, j, before.picks.scores[s])

    def _scores_now(self, s: int) -> Floats:
        inaccurate = self._left.inaccurate()
        if inaccurate.size:
            residuals, V = self._unit[inaccurate], self.V[:s]
            for _ in range(2):
                residuals = residuals - (residuals @ V.T) @ V
            self._left.set_residuals(inaccurate, residuals, self._pool.basis)
        return self._left.scores()

    def _take(self, j: int, picks: Picks) -> None:
        """Pick a variable: compute its direction, and the products of all with it.

        Direction and score depend on the picks only, not on how they were found.
        """
        s = len(picks.indices)
        V, T, x, residuals = self.V[:s], self._left.T[:, :s], self._unit[j], self._left
        t = V @ x
        v = x - t @ V
        if self._ridge == 0.0:
            v -= (V @ v) @ V
            residual, a = float(v @ v), self._pool.basis @ v
        else:
            residual, a = max(1.0 - float(t @ t), 0.0), self.G[j] - t @ residuals.C[:s]
        size = np.sqrt(self._ridge + residual)
        self.V[s], residuals.C[s] = v / size, a / size
        if self._ridge > 0.0 or residual > _INACCURATE_PRODUCTS:
            products = (self._products.of(j, self._likely_picks) - T @ T[j]) / size
        else:
            products = self._unit @ self.V[s]
        residuals.record_pick(s, j, products)
        _append(picks, j, float(a @ a) / (self._ridge + residual))

    def _likely_picks(self) -> Indices:
        """Return the likely next picks."""
        scores = self._left.scores()
        size = min(MIN_BLOCK, scores.size)
        return np.argpartition(-scores, size - 1)[:size]

    def _scores_under(
        self,
        G: Floats,
        T: Floats,
        directions: tuple[Floats, Floats],
        S: int,
        observed: Callable[[Indices], Floats],
    ) -> Floats:
        """Return the (p, S) scores of variables under the stages of some directions (V, C)."""
        V, C = directions
        scores = np.empty((len(G), S))
        excluded_below, inaccurate_below = (
            (_MIN_RESIDUAL, _INACCURATE_RESIDUAL) if self._ridge == 0.0 else (-np.inf, -np.inf)
        )
        is_near = fold_forward_scores(
            G, T, C, self._ridge, excluded_below, inaccurate_below, scores
        )
        indices = np.flatnonzero(is_near)
        if indices.size:
            exact = np.empty((indices.size, S))
            forward_scores_of_samples(observed(indices), V, self._pool.basis, excluded_below, exact)
            scores[indices] = exact
        return scores

    def scores(self) -> Floats:
        """Return the (p, S) scores of the pool's variables; -inf for those picked or excluded."""
        directions = self.V, self._left.C
        scores = self._scores_under(
            self.G, self._left.T, directions, len(self.keys), lambda near: self._unit[near]
        )
        for s, j in enumerate(self.picks.indices):
            scores[j, s + 1 :] = -np.inf
        return scores

    def scores_of(self, chunk: Chunk, stats: Stats, indices: Indices) -> Floats:
        """Return the (b, S) scores of columns of a chunk."""
        pool, S = self._pool, len(self.keys)
        assert pool.space is not None  # noqa: S101
        G = pool.space.coordinates(stats.m2[indices], stats.cxy[indices])
        V = self.V[: S - 1]
        T = correlate_columns(chunk, stats, indices, V, pool.adjusted_squares(stats, indices))

        def observed(near: Indices) -> Floats:
            return pool.unit_rows_of(chunk, stats, indices[near])

        return self._scores_under(G, T, (V, self._left.C), S, observed)


@dataclass(frozen=True, eq=False)
class ForwardSolver(StagedSolver):
    """Solver of forward selection in the pool of a `Certifier`.

    Parameters
    ----------
    k, ridge
        Number of picks wanted, and the ridge.
    """

    k: int
    ridge: float

    def solve(
        self, pool: Pool, before: ForwardSolution | None, n_certified: int | None
    ) -> ForwardSolution:
        """Return the candidate solution for the variables of a pool."""
        return ForwardSolution(pool, self.k, self.ridge, before, n_certified)

    def restore(self, pool: Pool, saved: dict[str, Any]) -> ForwardSolution:
        """Return the candidate solution that `ForwardSolution.to_state` saved."""
        return ForwardSolution(pool, self.k, self.ridge, given=picks_from_state(pool, saved))
