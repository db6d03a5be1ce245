"""Squared and logistic loss of the Lasso."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import expit, xlogy

from streamsel.selection._active_set import solve_kkt
from streamsel.selection._lasso_path import (
    LassoPenalty,
    LassoProblem,
    LassoSolution,
    SampledProblem,
    active_union,
)
from streamsel.state.base import Floats, Indices, VariableState

# Maximum Newton steps, and halvings of one.
_MAX_STEPS, _MAX_HALVINGS = 100, 40
# Relative tolerance of the KKT conditions.
_RTOL = 1e-11
# Lower bound of an observation's curvature, which vanishes for certain predictions.
_MIN_CURVATURE = 1e-12


class SquaredLoss(LassoProblem):
    """Least squares ½‖e - Ub‖² with a target e of length 1, from correlations."""

    empty_loss = 0.5

    def __init__(self, state: VariableState, penalty: LassoPenalty) -> None:
        super().__init__(state, penalty)
        self._state: Any = state
        space, stats = state.space, state.stats()
        assert space is not None  # noqa: S101
        self.norm = float(np.sqrt(space.first_square))
        self.gradient_at_zero = np.zeros(self.b.size)
        if space.rank:
            self.gradient_at_zero = space.coordinates(stats.m2, stats.cxy)[:, 0]
        # Cached variables in order, the cache row of each variable (-1 if none), and correlations.
        self._cached = np.zeros(0, dtype=np.intp)
        self._cache_row = np.full(self.b.size, -1)
        self._rows: Floats = np.zeros((0, self.b.size))
        # The working set without duplicates, and its correlations.
        self._W, self._Q = self.working_set, np.zeros((0, 0))

    def set_working_set(self, indices: Indices) -> None:
        """Set the working set, ascending."""
        self.working_set = indices
        uncached = indices[self._cache_row[indices] < 0]
        if uncached.size:
            self._cache_row[uncached] = np.arange(
                self._cached.size, self._cached.size + uncached.size
            )
            self._cache(uncached)
            self._cached = np.concatenate([self._cached, uncached])
        Q = self._correlations(indices)
        Q[np.diag_indices(indices.size)] = 1.0
        distinct = self.without_duplicates(indices, Q)
        if distinct.size < indices.size:
            indices, Q = indices[distinct], Q[np.ix_(distinct, distinct)]
        self._W, self._Q = indices, Q

    def _cache(self, indices: Indices) -> None:
        """Cache the correlations of further variables."""
        self._rows = _with_capacity(self._rows, self._cached.size + indices.size)
        rows = slice(self._cached.size, self._cached.size + indices.size)
        self._rows[rows] = self._state.products(indices).T

    def _correlations(self, indices: Indices) -> Floats:
        found: Floats = self._rows[self._cache_row[indices][:, None], indices]
        return found

    def minimize(self, threshold: Floats, ridge: Floats, tolerance: Floats) -> None:
        """Minimise over the working set, for these penalty weights, (p,)."""
        W = self._W
        if W.size:
            self.b[W] = solve_kkt(
                self._Q, self.gradient_at_zero[W], threshold[W], ridge[W], tolerance[W], self.b[W]
            )

    def negative_gradients(self, found: Sequence[LassoSolution]) -> Floats:
        """Return the negative gradients of the loss at solutions, (S, p)."""
        active, B = _coefficients_of(found)
        slopes: Floats = self.gradient_at_zero - B @ self._rows[self._cache_row[active]]
        return slopes

    def _residual_products(self) -> tuple[float, float]:
        """Return the products of the residuals with the target, and with themselves."""
        b, a = self.b[self._W], self.gradient_at_zero[self._W]
        with_target = 1.0 - float(a @ b)
        return with_target, max(0.0, with_target - float((a - self._Q @ b) @ b))

    def loss(self) -> float:
        """Return the loss of the current coefficients."""
        return 0.5 * self._residual_products()[1]

    def dual(self, shrunk: float) -> float:
        """Return the dual objective at the current dual point times `shrunk`."""
        with_target, square = self._residual_products()
        return shrunk * with_target - 0.5 * shrunk * shrunk * square


class SampledSquaredLoss(SquaredLoss, SampledProblem):
    """Least squares from the samples, which take less memory than correlations.

    Parameters
    ----------
    state, penalty
        As in `LassoProblem`.
    target
        (n,) e.
    """

    def __init__(self, state: Any, penalty: LassoPenalty, target: Floats) -> None:
        super().__init__(state, penalty)
        self._all, self._target = state.table["unit"], target
        self._U: Floats = np.zeros((0, target.size))
        self._C: Floats = np.zeros((0, 0))

    def _cache(self, indices: Indices) -> None:
        """Cache the correlations of further variables with the cached ones."""
        size, grown = self._cached.size, self._cached.size + indices.size
        self._U = _with_capacity(self._U, grown)
        if grown > len(self._C):
            C = np.empty((len(self._U), len(self._U)))
            C[:size, :size] = self._C[:size, :size]
            self._C = C
        self._U[size:grown] = self._all[indices]
        self._C[size:grown, :grown] = self._U[size:grown] @ self._U[:grown].T
        self._C[:size, size:grown] = self._C[size:grown, :size].T

    def _correlations(self, indices: Indices) -> Floats:
        rows = self._cache_row[indices]
        found: Floats = self._C[rows[:, None], rows]
        return found

    def negative_gradients(self, found: Sequence[LassoSolution]) -> Floats:
        """Return the negative gradients of the loss at solutions, (S, p)."""
        slopes: Floats = self.residuals(found) @ self._all.T
        return slopes

    def residuals(self, found: Sequence[LassoSolution]) -> Floats:
        """Return the (S, n) residuals at solutions."""
        active, B = _coefficients_of(found)
        residuals: Floats = self._target - B @ self._all[active]
        return residuals


def _coefficients_of(found: Sequence[LassoSolution]) -> tuple[Indices, Floats]:
    """Return the variables active in any solution, (q,), and all their coefficients, (S, q)."""
    active = active_union(found)
    B = np.zeros((len(found), active.size))
    for row, one in zip(B, found, strict=True):
        row[np.searchsorted(active, one.indices)] = one.values
    return active, B


def _with_capacity(array: Floats, size: int) -> Floats:
    """Return the array, or a copy with capacity for at least `size` rows."""
    if size <= len(array):
        return array
    grown = np.empty((max(size, 2 * len(array), 64), array.shape[1]))
    grown[: len(array)] = array
    return grown


class LogisticLoss(SampledProblem):
    """Logistic loss Σ log(1 + exp(η)) - yη from the samples: η = intercept + Ub, y in {0, 1}.

    Parameters
    ----------
    state, penalty
        As in `LassoProblem`.
    y
        (n,) 0 or 1.
    """

    norm = 1.0

    def __init__(self, state: Any, penalty: LassoPenalty, y: Floats) -> None:
        super().__init__(state, penalty)
        self._all, self._y = state.table["unit"], y
        share = float(y.mean())
        self.intercept = float(np.log(share / (1.0 - share)))
        self.gradient_at_zero = self._all @ (y - share)
        self.empty_loss = -y.size * float(xlogy(share, share) + xlogy(1.0 - share, 1.0 - share))
        self._W, self._U = self.working_set, self._all[self.working_set]

    def set_working_set(self, indices: Indices) -> None:
        """Set the working set, ascending."""
        U = self._all[indices]
        distinct = self.without_duplicates(indices, U @ U.T)
        self.working_set, self._W, self._U = indices, indices[distinct], U[distinct]

    def _eta(self) -> Floats:
        found: Floats = self.intercept + self.b[self._W] @ self._U
        return found

    def _residual(self) -> Floats:
        residual: Floats = self._y - expit(self._eta())
        return residual

    def minimize(self, threshold: Floats, ridge: Floats, tolerance: Floats) -> None:
        """Minimise over the working set, for these penalty weights, (p,), by Newton steps."""
        W, U = self._W, self._U
        weights = threshold[W], ridge[W], tolerance[W]
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
            after = solve_kkt(Q, slopes - weighted_sums * (level / total) + Q @ b, *weights, b)
            intercept_step = (level - weighted_sums @ (after - b)) / total
            direction = intercept_step + (after - b) @ U
            step_size = self._step_size(eta, direction, b, after, *weights[:2])
            self.b[W] = after if step_size == 1.0 else b + step_size * (after - b)
            self.intercept += step_size * intercept_step

    def _step_size(
        self,
        eta: Floats,
        direction: Floats,
        b: Floats,
        after: Floats,
        threshold: Floats,
        ridge: Floats,
    ) -> float:
        """Return the step size: 1, halved until the objective decreases."""

        def objective(step_size: float) -> float:
            trial = b + step_size * (after - b)
            penalty = threshold @ np.abs(trial) + 0.5 * (ridge * trial) @ trial
            return self._loss_at(eta + step_size * direction) + float(penalty)

        before, step_size = objective(0.0), 1.0
        for _ in range(_MAX_HALVINGS):
            # Allow for rounding errors in the last steps.
            if objective(step_size) <= before * (1.0 + 1e-13):
                break
            step_size *= 0.5
        return step_size

    def negative_gradients(self, found: Sequence[LassoSolution]) -> Floats:
        """Return the negative gradients of the loss at solutions, (S, p)."""
        slopes: Floats = self.residuals(found) @ self._all.T
        return slopes

    def residuals(self, found: Sequence[LassoSolution]) -> Floats:
        """Return the (S, n) residuals at solutions."""
        active, B = _coefficients_of(found)
        intercepts = np.array([one.intercept for one in found])
        residuals: Floats = self._y - expit(B @ self._all[active] + intercepts[:, None])
        return residuals

    def _loss_at(self, eta: Floats) -> float:
        return float(np.logaddexp(0.0, eta).sum() - self._y @ eta)

    def loss(self) -> float:
        """Return the loss of the current coefficients."""
        return self._loss_at(self._eta())

    def dual(self, shrunk: float) -> float:
        """Return the dual objective at the current dual point times `shrunk`."""
        dual_point = np.clip(self._y - shrunk * self._residual(), 0.0, 1.0)
        return -float(
            xlogy(dual_point, dual_point).sum() + xlogy(1.0 - dual_point, 1.0 - dual_point).sum()
        )


def _is_optimal(
    b: Floats, slopes: Floats, level: float, threshold: Floats, ridge: Floats, tolerance: Floats
) -> bool:
    """Return whether coefficients with this negative gradient satisfy the KKT conditions."""
    is_zero = b == 0.0
    violation = np.abs(slopes - ridge * b - threshold * np.sign(b))[~is_zero]
    return bool(
        abs(level) <= _RTOL
        and (np.abs(slopes[is_zero]) <= tolerance[is_zero]).all()
        and (violation <= _RTOL * threshold[~is_zero] + 1e-13).all()
    )


def check_family(family: str, c: int, *, is_class: bool, least_squares_for: str) -> None:
    """Raise ValueError for a target that the family of losses does not support.

    Parameters
    ----------
    family
        As in Lasso.
    c, is_class
        Number of target columns, and whether they are classes.
    least_squares_for
        The setting that requires least squares; empty if there is none.
    """
    numeric, binary = not is_class and c == 1, is_class and c <= 2
    is_supported, expected = numeric, "one numeric target"
    if family == "logistic":
        is_supported, expected = binary, "two classes"
    elif family == "auto" and not least_squares_for:
        is_supported, expected = numeric or binary, "one numeric target or two classes"
    if is_supported:
        return
    setting = f"family={family!r}"
    if family == "auto" and least_squares_for:
        setting += f" with {least_squares_for}"
    raise ValueError(
        f"Expected {expected}, as {setting} requires. Got: {c} "
        f"{'classes' if is_class else 'numeric columns'}.\n"
        "Hint: family='logistic' requires two classes; target_type='class' treats numbers "
        "as classes, target_type='numeric' as a quantity."
    )
