"""The losses of the LASSO: squares, from correlations or from observations, and the logistic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import expit, xlogy

from streamsel.held.part import Floats, Held, Places
from streamsel.selection._lasso_path import Penalty, Problem, Sampled, Solution, together
from streamsel.selection._quadratic import settle

# Newton's steps, and how often one may be halved.
_STEPS, _HALVINGS = 100, 40
# By what part of its bar a slope may be off.
_CLOSE = 1e-11
# The least curvature of an observation: one that is foretold with certainty has none.
_FLAT = 1e-12


class Squares(Problem):
    """½‖e - Ub‖², with e the target of length 1: all of it follows from correlations."""

    empty_loss = 0.5

    def __init__(self, held: Held, penalty: Penalty) -> None:
        super().__init__(held, penalty)
        self._held: Any = held
        space, stats = held.space, held.stats()
        assert space is not None  # noqa: S101
        self.norm = float(np.sqrt(space.square))
        self.start = np.zeros(self.b.size)
        if space.rank:
            self.start = space.coordinates(stats.m2, stats.cxy)[:, 0]
        # Of those looked at so far: their places in order, where in it each is, and correlations.
        self._looked = np.zeros(0, dtype=np.intp)
        self._at = np.full(self.b.size, -1)
        self._rows: Floats = np.zeros((0, self.b.size))
        # The work without copies, and its correlations.
        self._W, self._Q = self.work, np.zeros((0, 0))

    def use(self, places: Places) -> None:
        """Let these, ascending, be the work."""
        self.work = places
        new = places[self._at[places] < 0]
        if new.size:
            self._at[new] = np.arange(self._looked.size, self._looked.size + new.size)
            self._look_at(new)
            self._looked = np.concatenate([self._looked, new])
        Q = self._correlations(places)
        Q[np.diag_indices(places.size)] = 1.0
        apart = self.without_copies(places, Q)
        if apart.size < places.size:
            places, Q = places[apart], Q[np.ix_(apart, apart)]
        self._W, self._Q = places, Q

    def _look_at(self, places: Places) -> None:
        """Fetch the correlations of further variables."""
        self._rows = _with_room(self._rows, self._looked.size + places.size)
        rows = slice(self._looked.size, self._looked.size + places.size)
        self._rows[rows] = self._held.products(places).T

    def _correlations(self, places: Places) -> Floats:
        found: Floats = self._rows[self._at[places][:, None], places]
        return found

    def lower(self, bar: Floats, ridge: Floats, edge: Floats) -> None:
        """Find the best coefficients of the work, for these weights, (p,)."""
        W = self._W
        if W.size:
            self.b[W] = settle(self._Q, self.start[W], bar[W], ridge[W], edge[W], self.b[W])

    def slopes_of(self, found: Sequence[Solution]) -> Floats:
        """Return minus the slopes of the loss along all coefficients, at solutions, (S, p)."""
        active, B = _weights_of(found)
        slopes: Floats = self.start - B @ self._rows[self._at[active]]
        return slopes

    def _of_rest(self) -> tuple[float, float]:
        """Return the products of the residuals with the target, and with themselves."""
        b, a = self.b[self._W], self.start[self._W]
        with_target = 1.0 - float(a @ b)
        return with_target, max(0.0, with_target - float((a - self._Q @ b) @ b))

    def loss(self) -> float:
        """Return the loss of the coefficients as they are."""
        return 0.5 * self._of_rest()[1]

    def dual(self, shrunk: float) -> float:
        """Return the dual of the loss at its own dual point, times `shrunk`."""
        with_target, square = self._of_rest()
        return shrunk * with_target - 0.5 * shrunk * shrunk * square


class SampledSquares(Squares, Sampled):
    """The same from the observations, which are fewer than correlations.

    Parameters
    ----------
    held, penalty
        As `Problem` has them.
    target
        (n,) e.
    """

    def __init__(self, held: Any, penalty: Penalty, target: Floats) -> None:
        super().__init__(held, penalty)
        self._all, self._target = held.table["unit"], target
        self._U: Floats = np.zeros((0, target.size))
        self._C: Floats = np.zeros((0, 0))

    def _look_at(self, places: Places) -> None:
        """Fetch the correlations of further variables with those looked at."""
        size, grown = self._looked.size, self._looked.size + places.size
        self._U = _with_room(self._U, grown)
        if grown > len(self._C):
            C = np.empty((len(self._U), len(self._U)))
            C[:size, :size] = self._C[:size, :size]
            self._C = C
        self._U[size:grown] = self._all[places]
        self._C[size:grown, :grown] = self._U[size:grown] @ self._U[:grown].T
        self._C[:size, size:grown] = self._C[size:grown, :size].T

    def _correlations(self, places: Places) -> Floats:
        at = self._at[places]
        found: Floats = self._C[at[:, None], at]
        return found

    def slopes_of(self, found: Sequence[Solution]) -> Floats:
        """Return minus the slopes of the loss along all coefficients, at solutions, (S, p)."""
        slopes: Floats = self.rests(found) @ self._all.T
        return slopes

    def rests(self, found: Sequence[Solution]) -> Floats:
        """Return the residuals of solutions, (S, n), whose products with variables are slopes."""
        active, B = _weights_of(found)
        rests: Floats = self._target - B @ self._all[active]
        return rests


def _weights_of(found: Sequence[Solution]) -> tuple[Places, Floats]:
    """Return who is active in any of some solutions, (q,), and all their coefficients, (S, q)."""
    active = together(found)
    B = np.zeros((len(found), active.size))
    for row, one in zip(B, found, strict=True):
        row[np.searchsorted(active, one.places)] = one.values
    return active, B


def _with_room(array: Floats, size: int) -> Floats:
    """Return an array of at least so many rows, with these first."""
    if size <= len(array):
        return array
    grown = np.empty((max(size, 2 * len(array), 64), array.shape[1]))
    grown[: len(array)] = array
    return grown


class Logistic(Sampled):
    """Σ log(1 + exp(η)) - yη, with η = level + Ub and y in {0, 1}: it takes the observations.

    Parameters
    ----------
    held, penalty
        As `Problem` has them.
    y
        (n,) 0 or 1.
    """

    norm = 1.0

    def __init__(self, held: Any, penalty: Penalty, y: Floats) -> None:
        super().__init__(held, penalty)
        self._all, self._y = held.table["unit"], y
        part = float(y.mean())
        self.level = float(np.log(part / (1.0 - part)))
        self.start = self._all @ (y - part)
        self.empty_loss = -y.size * float(xlogy(part, part) + xlogy(1.0 - part, 1.0 - part))
        self._W, self._U = self.work, self._all[self.work]

    def use(self, places: Places) -> None:
        """Let these, ascending, be the work."""
        U = self._all[places]
        apart = self.without_copies(places, U @ U.T)
        self.work, self._W, self._U = places, places[apart], U[apart]

    def _eta(self) -> Floats:
        found: Floats = self.level + self.b[self._W] @ self._U
        return found

    def _rest(self) -> Floats:
        rest: Floats = self._y - expit(self._eta())
        return rest

    def lower(self, bar: Floats, ridge: Floats, edge: Floats) -> None:
        """Find the best coefficients of the work, for these weights, (p,): Newton's steps."""
        W, U = self._W, self._U
        weights = bar[W], ridge[W], edge[W]
        for _ in range(_STEPS):
            b, eta = self.b[W], self._eta()
            chance = expit(eta)
            rest = self._y - chance
            slopes = U @ rest
            if _is_low(b, slopes, float(rest.mean()), *weights):
                return
            v = np.maximum(chance * (1.0 - chance), _FLAT)
            total, level, along = v.sum(), rest.sum(), U @ v
            # The intercept goes where it is best for the coefficients.
            Q = (U * v) @ U.T - along[:, None] * along / total
            after = settle(Q, slopes - along * (level / total) + Q @ b, *weights, b)
            of_level = (level - along @ (after - b)) / total
            way = of_level + (after - b) @ U
            far = self._how_far(eta, way, b, after, *weights[:2])
            self.b[W] = after if far == 1.0 else b + far * (after - b)
            self.level += far * of_level

    def _how_far(
        self, eta: Floats, way: Floats, b: Floats, after: Floats, bar: Floats, ridge: Floats
    ) -> float:
        """Return how much of a step to take: all of it, or half as often as it takes to go down."""

        def reached(far: float) -> float:
            at = b + far * (after - b)
            penalty = bar @ np.abs(at) + 0.5 * (ridge * at) @ at
            return self._loss_at(eta + far * way) + float(penalty)

        before, far = reached(0.0), 1.0
        for _ in range(_HALVINGS):
            # Rounding must not keep the last steps from being taken.
            if reached(far) <= before * (1.0 + 1e-13):
                break
            far *= 0.5
        return far

    def slopes_of(self, found: Sequence[Solution]) -> Floats:
        """Return minus the slopes of the loss along all coefficients, at solutions, (S, p)."""
        slopes: Floats = self.rests(found) @ self._all.T
        return slopes

    def rests(self, found: Sequence[Solution]) -> Floats:
        """Return the residuals of solutions, (S, n), whose products with variables are slopes."""
        active, B = _weights_of(found)
        levels = np.array([one.level for one in found])
        rests: Floats = self._y - expit(B @ self._all[active] + levels[:, None])
        return rests

    def _loss_at(self, eta: Floats) -> float:
        return float(np.logaddexp(0.0, eta).sum() - self._y @ eta)

    def loss(self) -> float:
        """Return the loss of the coefficients as they are."""
        return self._loss_at(self._eta())

    def dual(self, shrunk: float) -> float:
        """Return the dual of the loss at its own dual point, times `shrunk`."""
        left = np.clip(self._y - shrunk * self._rest(), 0.0, 1.0)
        return -float(xlogy(left, left).sum() + xlogy(1.0 - left, 1.0 - left).sum())


def _is_low(
    b: Floats, slopes: Floats, level: float, bar: Floats, ridge: Floats, edge: Floats
) -> bool:
    """Whether these are slopes of the lowest point."""
    still = b == 0.0
    off = np.abs(slopes - ridge * b - bar * np.sign(b))[~still]
    return bool(
        abs(level) <= _CLOSE
        and (np.abs(slopes[still]) <= edge[still]).all()
        and (off <= _CLOSE * bar[~still] + 1e-13).all()
    )
