"""Losses of the Lasso: least squares, from correlations or samples, and the logistic loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import expit, xlogy

from streamsel.held.part import Floats, Held, Places
from streamsel.selection._lasso_path import Penalty, Problem, Sampled, Solution, together
from streamsel.selection._quadratic import settle

# Maximum Newton steps, and halvings of one.
_MAX_STEPS, _MAX_HALVINGS = 100, 40
# Relative tolerance of the KKT conditions.
_RTOL = 1e-11
# Lower bound of an observation's curvature, which vanishes for certain predictions.
_MIN_CURVATURE = 1e-12


class Squares(Problem):
    """Least squares ½‖e - Ub‖² with a target e of length 1, from correlations."""

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
        # Cached variables in order, the cache row of each variable (-1 if none), and correlations.
        self._cached = np.zeros(0, dtype=np.intp)
        self._at = np.full(self.b.size, -1)
        self._rows: Floats = np.zeros((0, self.b.size))
        # The working set without duplicates, and its correlations.
        self._W, self._Q = self.work, np.zeros((0, 0))

    def use(self, places: Places) -> None:
        """Set the working set, ascending."""
        self.work = places
        uncached = places[self._at[places] < 0]
        if uncached.size:
            self._at[uncached] = np.arange(self._cached.size, self._cached.size + uncached.size)
            self._look_at(uncached)
            self._cached = np.concatenate([self._cached, uncached])
        Q = self._correlations(places)
        Q[np.diag_indices(places.size)] = 1.0
        distinct = self.without_copies(places, Q)
        if distinct.size < places.size:
            places, Q = places[distinct], Q[np.ix_(distinct, distinct)]
        self._W, self._Q = places, Q

    def _look_at(self, places: Places) -> None:
        """Cache the correlations of further variables."""
        self._rows = _with_capacity(self._rows, self._cached.size + places.size)
        rows = slice(self._cached.size, self._cached.size + places.size)
        self._rows[rows] = self._held.products(places).T

    def _correlations(self, places: Places) -> Floats:
        found: Floats = self._rows[self._at[places][:, None], places]
        return found

    def lower(self, bar: Floats, ridge: Floats, edge: Floats) -> None:
        """Minimise over the working set, for these penalty weights, (p,)."""
        W = self._W
        if W.size:
            self.b[W] = settle(self._Q, self.start[W], bar[W], ridge[W], edge[W], self.b[W])

    def slopes_of(self, found: Sequence[Solution]) -> Floats:
        """Return the negative gradients of the loss at solutions, (S, p)."""
        active, B = _coefficients_of(found)
        slopes: Floats = self.start - B @ self._rows[self._at[active]]
        return slopes

    def _residual_products(self) -> tuple[float, float]:
        """Return the products of the residuals with the target, and with themselves."""
        b, a = self.b[self._W], self.start[self._W]
        with_target = 1.0 - float(a @ b)
        return with_target, max(0.0, with_target - float((a - self._Q @ b) @ b))

    def loss(self) -> float:
        """Return the loss of the current coefficients."""
        return 0.5 * self._residual_products()[1]

    def dual(self, shrunk: float) -> float:
        """Return the dual objective at the current dual point times `shrunk`."""
        with_target, square = self._residual_products()
        return shrunk * with_target - 0.5 * shrunk * shrunk * square


class SampledSquares(Squares, Sampled):
    """Least squares from the samples, which take less memory than correlations.

    Parameters
    ----------
    held, penalty
        As in `Problem`.
    target
        (n,) e.
    """

    def __init__(self, held: Any, penalty: Penalty, target: Floats) -> None:
        super().__init__(held, penalty)
        self._all, self._target = held.table["unit"], target
        self._U: Floats = np.zeros((0, target.size))
        self._C: Floats = np.zeros((0, 0))

    def _look_at(self, places: Places) -> None:
        """Cache the correlations of further variables with the cached ones."""
        size, grown = self._cached.size, self._cached.size + places.size
        self._U = _with_capacity(self._U, grown)
        if grown > len(self._C):
            C = np.empty((len(self._U), len(self._U)))
            C[:size, :size] = self._C[:size, :size]
            self._C = C
        self._U[size:grown] = self._all[places]
        self._C[size:grown, :grown] = self._U[size:grown] @ self._U[:grown].T
        self._C[:size, size:grown] = self._C[size:grown, :size].T

    def _correlations(self, places: Places) -> Floats:
        rows = self._at[places]
        found: Floats = self._C[rows[:, None], rows]
        return found

    def slopes_of(self, found: Sequence[Solution]) -> Floats:
        """Return the negative gradients of the loss at solutions, (S, p)."""
        slopes: Floats = self.rests(found) @ self._all.T
        return slopes

    def rests(self, found: Sequence[Solution]) -> Floats:
        """Return the (S, n) residuals at solutions; their products with variables are slopes."""
        active, B = _coefficients_of(found)
        residuals: Floats = self._target - B @ self._all[active]
        return residuals


def _coefficients_of(found: Sequence[Solution]) -> tuple[Places, Floats]:
    """Return the variables active in any solution, (q,), and all their coefficients, (S, q)."""
    active = together(found)
    B = np.zeros((len(found), active.size))
    for row, one in zip(B, found, strict=True):
        row[np.searchsorted(active, one.places)] = one.values
    return active, B


def _with_capacity(array: Floats, size: int) -> Floats:
    """Return the array, or a copy with capacity for at least `size` rows."""
    if size <= len(array):
        return array
    grown = np.empty((max(size, 2 * len(array), 64), array.shape[1]))
    grown[: len(array)] = array
    return grown


class Logistic(Sampled):
    """Logistic loss Σ log(1 + exp(η)) - yη with η = level + Ub and y in {0, 1}, from the samples.

    Parameters
    ----------
    held, penalty
        As in `Problem`.
    y
        (n,) 0 or 1.
    """

    norm = 1.0

    def __init__(self, held: Any, penalty: Penalty, y: Floats) -> None:
        super().__init__(held, penalty)
        self._all, self._y = held.table["unit"], y
        share = float(y.mean())
        self.level = float(np.log(share / (1.0 - share)))
        self.start = self._all @ (y - share)
        self.empty_loss = -y.size * float(xlogy(share, share) + xlogy(1.0 - share, 1.0 - share))
        self._W, self._U = self.work, self._all[self.work]

    def use(self, places: Places) -> None:
        """Set the working set, ascending."""
        U = self._all[places]
        distinct = self.without_copies(places, U @ U.T)
        self.work, self._W, self._U = places, places[distinct], U[distinct]

    def _eta(self) -> Floats:
        found: Floats = self.level + self.b[self._W] @ self._U
        return found

    def _rest(self) -> Floats:
        residual: Floats = self._y - expit(self._eta())
        return residual

    def lower(self, bar: Floats, ridge: Floats, edge: Floats) -> None:
        """Minimise over the working set, for these penalty weights, (p,), by Newton steps."""
        W, U = self._W, self._U
        weights = bar[W], ridge[W], edge[W]
        for _ in range(_MAX_STEPS):
            b, eta = self.b[W], self._eta()
            probability = expit(eta)
            residual = self._y - probability
            slopes = U @ residual
            if _is_optimal(b, slopes, float(residual.mean()), *weights):
                return
            v = np.maximum(probability * (1.0 - probability), _MIN_CURVATURE)
            total, level, weighted_sums = v.sum(), residual.sum(), U @ v
            # The intercept is eliminated: it is optimal given the coefficients.
            Q = (U * v) @ U.T - weighted_sums[:, None] * weighted_sums / total
            after = settle(Q, slopes - weighted_sums * (level / total) + Q @ b, *weights, b)
            level_step = (level - weighted_sums @ (after - b)) / total
            direction = level_step + (after - b) @ U
            step_size = self._step_size(eta, direction, b, after, *weights[:2])
            self.b[W] = after if step_size == 1.0 else b + step_size * (after - b)
            self.level += step_size * level_step

    def _step_size(
        self, eta: Floats, direction: Floats, b: Floats, after: Floats, bar: Floats, ridge: Floats
    ) -> float:
        """Return the step size: 1, halved until the objective decreases."""

        def objective(step_size: float) -> float:
            trial = b + step_size * (after - b)
            penalty = bar @ np.abs(trial) + 0.5 * (ridge * trial) @ trial
            return self._loss_at(eta + step_size * direction) + float(penalty)

        before, step_size = objective(0.0), 1.0
        for _ in range(_MAX_HALVINGS):
            # Allow for rounding errors in the last steps.
            if objective(step_size) <= before * (1.0 + 1e-13):
                break
            step_size *= 0.5
        return step_size

    def slopes_of(self, found: Sequence[Solution]) -> Floats:
        """Return the negative gradients of the loss at solutions, (S, p)."""
        slopes: Floats = self.rests(found) @ self._all.T
        return slopes

    def rests(self, found: Sequence[Solution]) -> Floats:
        """Return the (S, n) residuals at solutions; their products with variables are slopes."""
        active, B = _coefficients_of(found)
        levels = np.array([one.level for one in found])
        rests: Floats = self._y - expit(B @ self._all[active] + levels[:, None])
        return rests

    def _loss_at(self, eta: Floats) -> float:
        return float(np.logaddexp(0.0, eta).sum() - self._y @ eta)

    def loss(self) -> float:
        """Return the loss of the current coefficients."""
        return self._loss_at(self._eta())

    def dual(self, shrunk: float) -> float:
        """Return the dual objective at the current dual point times `shrunk`."""
        dual_point = np.clip(self._y - shrunk * self._rest(), 0.0, 1.0)
        return -float(
            xlogy(dual_point, dual_point).sum() + xlogy(1.0 - dual_point, 1.0 - dual_point).sum()
        )


def _is_optimal(
    b: Floats, slopes: Floats, level: float, bar: Floats, ridge: Floats, edge: Floats
) -> bool:
    """Return whether coefficients with this negative gradient satisfy the KKT conditions."""
    is_zero = b == 0.0
    violation = np.abs(slopes - ridge * b - bar * np.sign(b))[~is_zero]
    return bool(
        abs(level) <= _RTOL
        and (np.abs(slopes[is_zero]) <= edge[is_zero]).all()
        and (violation <= _RTOL * bar[~is_zero] + 1e-13).all()
    )
