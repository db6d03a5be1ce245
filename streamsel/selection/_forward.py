"""The greedy of forward selection: over variables with samples, in stages, or with products alone.

 With R = λ(λI + Σ x xᵀ)⁻¹ over the picks, the next is the variable of the largest ‖UᵀR x‖² / (λ +
xᵀR x). R = I - Σ v vᵀ, where each pick adds the direction v = R x / √(λ + xᵀR x); so all that is
needed of a variable are its coordinates g = Uᵀx and the products t = vᵀx: UᵀR x = g - Σ (Uᵀv) t and
xᵀR x = 1 - Σ t².
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from streamsel._jit.forward import fold, step, unfold
from streamsel.columns import Chunk, Stats
from streamsel.held.correlations import correlations
from streamsel.held.part import Floats, Places
from streamsel.held.plan import origin_of
from streamsel.held.pool import SPENT, TIE, Picks
from streamsel.held.products import TOGETHER, Products
from streamsel.held.stage_pool import StagePool
from streamsel.selection._greedy_plan import GreedyPlan

# Without a ridge a variable of which less is left is spent; and where the observations are not at
# hand to compute again what is left.
_LEFT = 1e-10
_LEFT_OF_PRODUCTS = 1e-6
# The root of a score is known to the first over the root of the ridge, for rounding is divided by
# that; and to the second without a ridge, for the least that may be left of a variable. Where the
# picks leave one direction of the observations all scores are equal, and the first goes first.
_ROUNDING, _ROUGH = 1e-14, 1e-9
# Where less is left rounding would have its share in 1 - Σ t².
_NEAR = 1e-4
# And where less is left of a pick, in products with its direction that are made from others.
_THIN = 1e-2


def tolerance(scores: Any, ridge: float) -> Any:
    """Return how far scores may differ and still be equal."""
    scores = np.maximum(scores, 0.0)
    rough = min(_ROUGH, _ROUNDING / np.sqrt(ridge)) if ridge > 0.0 else _ROUGH
    return np.maximum(TIE * scores, rough * np.sqrt(scores))


def earliest_of_best(scores: Floats, ridge: float) -> int:
    """Return the first place whose score equals the highest."""
    highest = scores.max()
    return int(np.argmax(scores >= highest - tolerance(highest, ridge)))


class Left:
    """What the picks leave of variables.

    Parameters
    ----------
    G
        (p, r) their coordinates.
    k, ridge
        Most picks, and the ridge.
    least
        Without a ridge a variable of which less is left is spent.

    Attributes
    ----------
    T, C
        (p, k) products with the directions of the picks, and (k, r) coordinates of these.
    """

    def __init__(self, G: Floats, k: int, ridge: float, least: float = _LEFT) -> None:
        self.ridge = ridge
        self._least = least if ridge == 0.0 else -np.inf
        self._A, self.left = G.copy(), np.ones(len(G))
        self._square: Floats = np.einsum("ij,ij->i", G, G)
        self._is_picked = np.zeros(len(G), dtype=np.bool_)
        self.T, self.C = np.empty((len(G), k)), np.empty((k, G.shape[1]))

    def near(self) -> Places:
        """Return of which variables so little is left that their samples must tell how much."""
        if self.ridge > 0.0:
            return np.empty(0, dtype=np.intp)
        return np.flatnonzero((self.left < _NEAR) & (self.left >= _LEFT) & ~self._is_picked)

    def correct(self, places: Places, rest: Floats, basis: Floats) -> None:
        """Take what is left of variables, (m, n), for what the products say of them."""
        self.left[places] = np.einsum("ij,ij->i", rest, rest)
        self._A[places] = rest @ basis.T
        self._square[places] = np.einsum("ij,ij->i", self._A[places], self._A[places])

    def scores(self) -> Floats:
        """Return the score of every variable; -inf for those picked or spent."""
        out = self._is_picked | (self.left < self._least)
        size = np.where(out, 1.0, self.ridge + self.left)
        return np.where(out, -np.inf, self._square / size)

    def size_of(self, j: int) -> float:
        """Return √(λ + xᵀR x) of a variable."""
        return float(np.sqrt(self.ridge + max(self.left[j], 0.0)))

    def take(self, s: int, j: int, t: Floats) -> None:
        """Take variable j for pick s, with the products of all with its direction."""
        self.C[s] = self._A[j] / self.size_of(j)
        self.go_by(s, j, t)

    def go_by(self, s: int, j: int, t: Floats) -> None:
        """Take a pick whose direction has its coordinates already."""
        self.T[:, s] = t
        self._is_picked[j] = True
        step(self._square, self.left, self._A, np.ascontiguousarray(t), self.C[s])


def from_products(held: Any, k: int, ridge: float) -> Picks:
    """Return the picks of forward selection from the correlations of what is held."""
    left = Left(held.coordinates(), k, ridge, _LEFT_OF_PRODUCTS)
    picks = Picks([], [], [])
    for s in range(min(k, len(held.names))):
        scores = left.scores()
        j = earliest_of_best(scores, ridge)
        if scores[j] <= SPENT:
            break
        T = left.T[:, :s]
        t = (held.products(j) - T @ T[j]) / left.size_of(j)
        _note(picks, j, float(scores[j]))
        left.take(s, j, t)
    return picks


def _note(picks: Picks, j: int, score: float) -> None:
    picks.places.append(j)
    picks.scores.append(score)
    picks.rounds.append(0)


class ForwardPlan(GreedyPlan):
    """Picks of forward selection in a pool, and what other columns score under their prefixes.

    Parameters
    ----------
    pool
        The pool.
    k, ridge
        How many picks, and the ridge.
    before
        A plan to go on from.
    n_proven
        How many of its picks are proven.
    given
        The picks, where they are known.
    """

    def __init__(
        self,
        pool: StagePool,
        k: int,
        ridge: float,
        before: ForwardPlan | None = None,
        n_proven: int = 0,
        given: Sequence[int] = (),
    ) -> None:
        self._pool, self._ridge = pool, ridge
        self.G = pool.coordinates()
        self._left = Left(self.G, k, ridge)
        self.V = np.empty((k, pool.n))
        picks = Picks([], [], [])
        if before is None:
            self._products = Products(self._unit)
        else:
            origin = origin_of(pool.table["arrival"], before)
            most = 2 * k + TOGETHER
            self._products = Products(self._unit, before._products, origin, most)
            self._go_on(before, origin, n_proven, picks)
        for j in given:
            self._take(j, picks)
        while len(picks.places) < min(k, len(self.G)) and not given:
            scores = self._scores_now(len(picks.places))
            j = earliest_of_best(scores, ridge)
            if scores[j] <= SPENT:
                break
            self._take(j, picks)
        self._products.close()
        super().__init__(pool, picks, k)
        self.tolerance = tolerance(self.bars, ridge)

    @property
    def _unit(self) -> Floats:
        """The pool's observations; a plan does not keep those of a pool that was cut since."""
        return self._pool.table["unit"]

    def _go_on(self, before: ForwardPlan, origin: Places, n_proven: int, picks: Picks) -> None:
        """Take the picks of a plan before, up to the first that a new variable may beat."""
        new = np.flatnonzero(origin < 0)
        S, V = len(before.keys), before.V
        known = len(before.picks.places)
        T = np.empty((origin.size, known))
        T[origin >= 0] = before._left.T[origin[origin >= 0], :known]
        T[new] = self._unit[new] @ V[:known].T
        stop = known
        if new.size:
            directions = V, before._left.C
            scores = self._scores_under(
                self.G[new], T[new], directions, S, lambda near: self._unit[new[near]]
            )
            # Whether it really is better the greedy will see.
            beaten = (scores >= before.bars - 2.0 * before.tolerance).any(axis=0)
            stop = min(known, max(n_proven, int(np.argmax(np.append(beaten, True)))))
        places = self._pool.slots
        for s in range(stop):
            j = places[before.names[before.picks.places[s]]]
            self.V[s], self._left.C[s] = V[s], before._left.C[s]
            self._left.go_by(s, j, T[:, s])
            _note(picks, j, before.picks.scores[s])

    def _scores_now(self, s: int) -> Floats:
        near = self._left.near()
        if near.size:
            rest, V = self._unit[near], self.V[:s]
            for _ in range(2):
                rest = rest - (rest @ V.T) @ V
            self._left.correct(near, rest, self._pool.basis)
        return self._left.scores()

    def _take(self, j: int, picks: Picks) -> None:
        """Pick a variable: make its direction, and the products of all with it.

        Direction and score are made of the picks alone, so that the way to them leaves no trace.
        """
        s = len(picks.places)
        V, T, x, left = self.V[:s], self._left.T[:, :s], self._unit[j], self._left
        t = V @ x
        v = x - t @ V
        if self._ridge == 0.0:
            v -= (V @ v) @ V
            rest, a = float(v @ v), self._pool.basis @ v
        else:
            rest, a = max(1.0 - float(t @ t), 0.0), self.G[j] - t @ left.C[:s]
        size = np.sqrt(self._ridge + rest)
        self.V[s], left.C[s] = v / size, a / size
        if self._ridge > 0.0 or rest > _THIN:
            along = (self._products.of(j, self._likely) - T @ T[j]) / size
        else:
            along = self._unit @ self.V[s]
        left.go_by(s, j, along)
        _note(picks, j, float(a @ a) / (self._ridge + rest))

    def _likely(self) -> Places:
        """Return who is likely to be among the next picks."""
        scores = self._left.scores()
        most = min(TOGETHER, scores.size)
        return np.argpartition(-scores, most - 1)[:most]

    def _scores_under(
        self,
        G: Floats,
        T: Floats,
        directions: tuple[Floats, Floats],
        S: int,
        observed: Callable[[Places], Floats],
    ) -> Floats:
        """Return the (p, S) scores of variables under the stages of some directions (V, C)."""
        V, C = directions
        scores = np.empty((len(G), S))
        spent, near = (_LEFT, _NEAR) if self._ridge == 0.0 else (-np.inf, -np.inf)
        is_near = fold(G, T, C, self._ridge, spent, near, scores)
        places = np.flatnonzero(is_near)
        if places.size:
            exact = np.empty((places.size, S))
            unfold(observed(places), V, self._pool.basis, spent, exact)
            scores[places] = exact
        return scores

    def scores(self) -> Floats:
        """Return the (p, S) scores of the pool's variables; -inf for who is picked or spent."""
        directions = self.V, self._left.C
        scores = self._scores_under(
            self.G, self._left.T, directions, len(self.keys), lambda near: self._unit[near]
        )
        for s, j in enumerate(self.picks.places):
            scores[j, s + 1 :] = -np.inf
        return scores

    def scores_of(
        self, chunk: Chunk, stats: Stats, places: Places, noted: Mapping[str, Floats]
    ) -> Floats:
        """Return the (b, S) scores of columns of a chunk."""
        del noted
        pool, S = self._pool, len(self.keys)
        assert pool.space is not None  # noqa: S101
        G = pool.space.coordinates(stats.m2[places], stats.cxy[places])
        V = self.V[: S - 1]
        T = correlations(chunk, stats, places, V, pool.left(stats, places))

        def observed(near: Places) -> Floats:
            return pool.units_of(chunk, stats, places[near])

        return self._scores_under(G, T, (V, self._left.C), S, observed)
