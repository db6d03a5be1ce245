"""Steps of forward selection: scores of all variables given the picks, picks, and exchanges.

With R = λ(λI + Σ x xᵀ)⁻¹ over the picks, the next is the variable of the largest ‖UᵀR x‖² / (λ +
xᵀR x). R = I - Σ v vᵀ, where each pick adds the direction v = R x / √(λ + xᵀR x); so a variable
requires only its coordinates g = Uᵀx and the products t = vᵀx: UᵀR x = g - Σ (Uᵀv) t and
xᵀR x = 1 - Σ t².

With L of the rows (vᵀx, √(λ + xᵀR x)) of the picks, λI + XᵀX = L Lᵀ. Any rotation of the directions
leaves R unchanged. The one that turns L⁻¹eᵢ into the last axis makes the last direction that of
pick i given all others; without it R is that of the others.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from streamsel._kernels.stepwise import remove_direction
from streamsel.state.base import Floats, Indices
from streamsel.state.correlations import MIN_BLOCK, CorrelationCache
from streamsel.state.pool.pool import TIE_RTOL, ZERO_TOL, Picks

# Without a ridge a variable with a smaller squared residual is excluded; the second value applies
# without samples to recompute the residual.
MIN_RESIDUAL = 1e-10
_MIN_RESIDUAL_OF_PRODUCTS = 1e-6
# Error bounds of the root of a score: the first divided by the root of the ridge, by which rounding
# errors are divided; the second without a ridge, for the smallest residual. If the picks leave one
# direction of the observations all scores are equal, and the first variable is picked.
_ROUNDING, _ROUGH = 1e-14, 1e-9
# Below this squared residual 1 - Σ t² is inaccurate.
INACCURATE_RESIDUAL = 1e-4
# Below this squared residual of a pick, products with its direction derived from others are.
_INACCURATE_PRODUCTS = 1e-2


def tolerance(scores: Floats | float, ridge: float) -> Floats:
    """Return the difference up to which scores are ties."""
    positive = np.maximum(scores, 0.0)
    rough = min(_ROUGH, _ROUNDING / np.sqrt(ridge)) if ridge > 0.0 else _ROUGH
    return np.maximum(TIE_RTOL * positive, rough * np.sqrt(positive))


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
    min_residual
        Without a ridge a variable with a smaller squared residual is excluded.

    Attributes
    ----------
    T, C
        (p, k) products with the directions of the picks, and (k, r) coordinates of these.
    L
        (k, k) the factor of λI + XᵀX, one row per pick.
    """

    def __init__(self, G: Floats, k: int, ridge: float, min_residual: float = MIN_RESIDUAL) -> None:
        self.ridge = ridge
        self._min_residual = min_residual if ridge == 0.0 else -np.inf
        self._A, self.squared_residuals = G.copy(), np.ones(len(G))
        self._square: Floats = np.einsum("ij,ij->i", G, G)
        self._is_picked = np.zeros(len(G), dtype=np.bool_)
        self.T, self.C = np.empty((len(G), k)), np.empty((k, G.shape[1]))
        self.L = np.zeros((k, k))

    def inaccurate(self) -> Indices:
        """Return the variables whose residual is so small that samples are needed to compute it."""
        if self.ridge > 0.0:
            return np.empty(0, dtype=np.intp)
        return np.flatnonzero(
            (self.squared_residuals < INACCURATE_RESIDUAL)
            & (self.squared_residuals >= MIN_RESIDUAL)
            & ~self._is_picked
        )

    def set_residuals(self, indices: Indices, residuals: Floats, basis: Floats) -> None:
        """Set the residuals of variables, (m, n), computed from samples instead of products."""
        self.squared_residuals[indices] = np.einsum("ij,ij->i", residuals, residuals)
        self._A[indices] = residuals @ basis.T
        self._square[indices] = np.einsum("ij,ij->i", self._A[indices], self._A[indices])

    def scores(self) -> Floats:
        """Return the score of every variable; -inf for those picked or excluded."""
        is_excluded = self._is_picked | (self.squared_residuals < self._min_residual)
        size = np.where(is_excluded, 1.0, self.ridge + self.squared_residuals)
        return np.where(is_excluded, -np.inf, self._square / size)

    def norm_of(self, j: int) -> float:
        """Return √(λ + xᵀR x) of a variable."""
        return float(np.sqrt(self.ridge + max(self.squared_residuals[j], 0.0)))

    def coordinates_of(self, j: int) -> Floats:
        """Return UᵀR x of a variable."""
        found: Floats = self._A[j]
        return found

    def record_pick(self, s: int, j: int, t: Floats) -> None:
        """Record pick number s, whose direction has its coordinates, given the products with it."""
        self.T[:, s] = t
        self._is_picked[j] = True
        remove_direction(
            self._square, self.squared_residuals, self._A, np.ascontiguousarray(t), self.C[s]
        )

    def take_out(self, i: int, q: int, j: int) -> Floats:
        """Take pick i of q, variable j, out; return the (q,) reflection of the directions.

        The last direction is then that of the variable, and not part of R.
        """
        T, C, L = self.T[:, :q], self.C[:q], self.L[:q, :q]
        axis = np.linalg.solve(L, np.eye(q)[i])
        reflection: Floats = axis / np.linalg.norm(axis)
        reflection[-1] += np.copysign(1.0, reflection[-1])
        reflection /= np.linalg.norm(reflection)
        T -= np.multiply.outer(T @ (2.0 * reflection), reflection)
        C -= np.multiply.outer(2.0 * reflection, reflection @ C)
        L -= np.multiply.outer(L @ (2.0 * reflection), reflection)
        # The others have no part in it.
        L[:i, -1] = L[i + 1 :, -1] = 0.0
        t = T[:, -1]
        self._A += np.multiply.outer(t, C[-1])
        self.squared_residuals += np.square(t)
        self._square = np.einsum("ij,ij->i", self._A, self._A)
        self._is_picked[j] = False
        return reflection


class Swap(NamedTuple):
    """A stage of an exchange: a pick is taken out, and the best given the others put in.

    Parameters
    ----------
    position
        The index of the pick.
    before, after
        The variables taken out and put in.
    gain
        The score of the latter, given the others.
    reflection
        (q,) how the directions of the picks are reflected, for the last to be that of the pick.
    restored, removed
        (r,) coordinates of that direction, and of the direction of the variable put in.
    direction_out, direction_in
        (n,) the directions; None without samples.
    products
        (p,) products with the direction put in, if it is another variable's; None otherwise.
    """

    position: int
    before: int
    after: int
    gain: float
    reflection: Floats
    restored: Floats
    removed: Floats
    direction_out: Floats | None
    direction_in: Floats | None
    products: Floats | None


class ForwardSteps(abc.ABC):
    """Forward selection, one step after another.

    Parameters
    ----------
    left
        Residuals of the variables.
    """

    def __init__(self, left: Residuals) -> None:
        self.left = left

    @abc.abstractmethod
    def take(self, j: int, s: int, i: int) -> float:
        """Take variable j as number s, the pick at position i; return its score."""

    def scores(self, s: int) -> Floats:  # noqa: ARG002
        """Return the score of every variable given s picks; -inf for those picked or excluded."""
        return self.left.scores()

    @abc.abstractmethod
    def reflect(self, reflection: Floats) -> None:
        """Reflect the directions of the picks."""

    @abc.abstractmethod
    def direction(self, s: int) -> Floats | None:
        """Return direction number s, (n,); None without samples."""

    def pick(self, k: int, picks: Picks) -> None:
        """Pick variables until there are k, or none has a score."""
        while len(picks.indices) < min(k, len(self.left.T)):
            s = len(picks.indices)
            scores = self.scores(s)
            j = earliest_of_best(scores, self.left.ridge)
            if scores[j] <= ZERO_TOL:
                break
            append_pick(picks, j, self.take(j, s, s))

    def swap(self, picks: Sequence[int], n_sweeps: int, known: Sequence[int] = ()) -> list[Swap]:
        """Exchange picks, one after the other, until a sweep changes none.

        Parameters
        ----------
        picks
            The picks.
        n_sweeps
            Maximum number of sweeps.
        known
            The variables that the first exchanges put in.
        """
        members, swaps = list(picks), list[Swap]()
        for _ in range(n_sweeps):
            before = members.copy()
            for i in range(len(members)):
                after = known[len(swaps)] if len(swaps) < len(known) else None
                swaps.append(self._exchange(members, i, after))
                members[i] = swaps[-1].after
            if members == before:
                break
        return swaps

    def _exchange(self, members: Sequence[int], i: int, after: int | None) -> Swap:
        """Put the best variable given the other members at position i; `after` if it is known."""
        left, before, s = self.left, members[i], len(members) - 1
        reflection = left.take_out(i, s + 1, before)
        self.reflect(reflection)
        restored, out = left.C[s].copy(), self.direction(s)
        gain = float(restored @ restored)
        if after is None:
            scores = self.scores(s)
            scores[before] = -np.inf
            best = earliest_of_best(scores, left.ridge)
            is_better = scores[best] > gain + tolerance(scores[best], left.ridge)
            after = best if is_better else before
        if after == before:
            left.record_pick(s, before, left.T[:, s])
            return Swap(i, before, before, gain, reflection, restored, restored, out, out, None)
        gain = self.take(after, s, i)
        removed, products = left.C[s].copy(), left.T[:, s].copy()
        into = self.direction(s)
        return Swap(i, before, after, gain, reflection, restored, removed, out, into, products)


def append_pick(picks: Picks, j: int, score: float) -> None:
    """Append a pick."""
    picks.indices.append(j)
    picks.scores.append(score)
    picks.rounds.append(0)


class ProductSteps(ForwardSteps):
    """Forward selection from the correlations of variables.

    Parameters
    ----------
    G, k, ridge
        As in `Residuals`.
    products
        Returns the (p,) correlations with a variable.
    """

    def __init__(self, G: Floats, k: int, ridge: float, products: Callable[[int], Floats]) -> None:
        super().__init__(Residuals(G, k, ridge, _MIN_RESIDUAL_OF_PRODUCTS))
        self._products = products

    def reflect(self, reflection: Floats) -> None:
        """Do nothing: only products with the directions are known."""

    def direction(self, s: int) -> None:
        """Return None: only products with the directions are known."""

    def take(self, j: int, s: int, i: int) -> float:
        """Take variable j as number s, the pick at position i; return its score."""
        left = self.left
        T, norm = left.T[:, :s], left.norm_of(j)
        left.L[i, :s], left.L[i, s] = T[j], norm
        left.C[s] = left.coordinates_of(j) / norm
        left.record_pick(s, j, (self._products(j) - T @ T[j]) / norm)
        return float(left.C[s] @ left.C[s])


class SampleSteps(ForwardSteps):
    """Forward selection from the observations of variables.

    Parameters
    ----------
    units
        (p, n) the variables, centred and of length 1.
    G, k, ridge
        As in `Residuals`.
    basis
        (r, n) orthonormal basis of the target.
    products
        The correlations of the variables.

    Attributes
    ----------
    V
        (k, n) the directions of the picks.
    products
        As passed.
    """

    def __init__(
        self,
        units: Floats,
        G: Floats,
        k: int,
        ridge: float,
        basis: Floats,
        products: CorrelationCache,
    ) -> None:
        super().__init__(Residuals(G, k, ridge))
        self.V = np.empty((k, basis.shape[1]))
        self._units: Floats | None = units
        self._G, self._basis, self.products = G, basis, products

    @property
    def units(self) -> Floats:
        """The observations, until `close`."""
        assert self._units is not None  # noqa: S101
        return self._units

    def close(self) -> None:
        """Release the observations."""
        self._units = None
        self.products.close()

    def scores(self, s: int) -> Floats:
        """Return the score of every variable given s picks; -inf for those picked or excluded."""
        inaccurate = self.left.inaccurate()
        if inaccurate.size:
            residuals, V = self.units[inaccurate], self.V[:s]
            for _ in range(2):
                residuals = residuals - (residuals @ V.T) @ V
            self.left.set_residuals(inaccurate, residuals, self._basis)
        return self.left.scores()

    def reflect(self, reflection: Floats) -> None:
        """Reflect the directions of the picks."""
        V = self.V[: reflection.size]
        V -= np.multiply.outer(2.0 * reflection, reflection @ V)

    def direction(self, s: int) -> Floats:
        """Return direction number s, (n,)."""
        return np.array(self.V[s])

    def take(self, j: int, s: int, i: int) -> float:
        """Take variable j as number s, the pick at position i; return its score.

        Its direction and score depend on the picks only, not on how they were found.
        """
        left, x = self.left, self.units[j]
        V, T = self.V[:s], left.T[:, :s]
        t = V @ x
        v = x - t @ V
        if left.ridge == 0.0:
            v -= (V @ v) @ V
            residual, a = float(v @ v), self._basis @ v
        else:
            residual, a = max(1.0 - float(t @ t), 0.0), self._G[j] - t @ left.C[:s]
        size = np.sqrt(left.ridge + residual)
        self.V[s], left.C[s] = v / size, a / size
        left.L[i, :s], left.L[i, s] = t, size
        if left.ridge > 0.0 or residual > _INACCURATE_PRODUCTS:
            products = (self.products.of(j, self._likely_picks) - T @ T[j]) / size
        else:
            products = self.units @ self.V[s]
        left.record_pick(s, j, products)
        return float(a @ a) / (left.ridge + residual)

    def _likely_picks(self) -> Indices:
        """Return the likely next picks."""
        scores = self.left.scores()
        size = min(MIN_BLOCK, scores.size)
        return np.argpartition(-scores, size - 1)[:size]


def in_greedy_order(steps: ForwardSteps, members: Sequence[int]) -> Picks:
    """Return members of a set in the order of forward selection among them.

    Parameters
    ----------
    steps
        Steps of the members alone.
    members
        The variables, in order of arrival.
    """
    picks = Picks([], [], [])
    steps.pick(len(members), picks)
    # Those that the others determine, up to rounding, add nothing.
    for j in range(len(members)):
        if j not in picks.indices:
            append_pick(picks, j, 0.0)
    return picks._replace(indices=[members[j] for j in picks.indices])
