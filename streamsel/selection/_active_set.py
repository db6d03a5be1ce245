"""Exact minimum of a quadratic form with an L1 penalty, over a few variables."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from streamsel._kernels.lasso import coordinate_descent
from streamsel.state.base import Floats, Indices

# A variable with a smaller relative residual given others is linearly dependent on them.
_DEPENDENT = 1e-13
# Maximum alternations of coordinate descent and exact solution.
_MAX_ITER = 60
# Coordinate descent stops after this many rounds with unchanged signs, and after this many rounds.
_STABLE_ROUNDS, _MAX_ROUNDS = 1, 100
# Maximum coefficients set to 0 by an exact solution before the descent continues.
_MAX_DROPPED = 4


def solve_kkt(
    Q: Floats, a: Floats, threshold: Floats, ridge: Floats, tolerance: Floats, b: Floats
) -> Floats:
    """Return the b that minimises ½ bᵀQb - aᵀb + Σ threshold·|b| + ½ Σ ridge b².

    Coordinate descent finds the active set and its signs, and the linear equations that then hold
    give the coefficients to rounding.

    Parameters
    ----------
    Q, a
        (s, s) and (s,) the form; its diagonal is positive.
    threshold, ridge
        (s,) weights of the absolute values and of the squares.
    tolerance
        (s,) largest absolute gradient at a zero coefficient: `threshold` plus a tolerance for
        rounding.
    b
        (s,) start.
    """
    b = b.copy()
    for iteration in range(_MAX_ITER):
        residual = a - Q @ b
        coordinate_descent(
            Q, threshold, ridge, tolerance, _STABLE_ROUNDS + iteration, _MAX_ROUNDS, b, residual
        )
        is_solved = _solve(Q, a, threshold, ridge, b)
        residual = a - Q @ b
        if is_solved and (np.abs(residual[b == 0.0]) <= tolerance[b == 0.0]).all():
            break
    return b


def _solve(Q: Floats, a: Floats, threshold: Floats, ridge: Floats, b: Floats) -> bool:
    """Move b to the minimum under its signs; return whether it was reached.

    Coefficients that would change sign become 0, at most a few.
    """
    for _ in range(_MAX_DROPPED):
        active = np.flatnonzero(b)
        if not active.size:
            return True
        values, signs = b[active], np.sign(b[active])
        H = Q[np.ix_(active, active)]
        H[np.diag_indices(active.size)] += ridge[active]
        L, info = lapack.dpotrf(H, lower=1)
        reliable = active.size if info == 0 else info - 1
        is_dependent = np.diag(L)[:reliable] ** 2 <= _DEPENDENT * np.diag(H)[:reliable]
        dependent = int(np.argmax(is_dependent)) if is_dependent.any() else reliable
        if dependent < active.size:
            direction = _null_direction(H, L, dependent)
            slope = direction @ (threshold[active] * signs + H @ values - a[active])
            if abs(slope) <= 1e-10 * (np.abs(direction) @ threshold[active]):
                # The form is constant in this direction: the last variable leaves.
                slope = signs[dependent]
            direction *= -np.sign(slope)
        else:
            solution, _ = lapack.dpotrs(L, a[active] - threshold[active] * signs, lower=1)
            if (solution * signs > 0.0).all():
                b[active] = solution
                return True
            direction = solution - values
        _step(b, active, direction)
    return False


def _null_direction(H: Floats, L: Floats, j: int) -> Floats:
    """Return a null direction of the form: variable j minus its regression on the earlier ones."""
    direction = np.zeros(len(H))
    direction[j] = 1.0
    if j:
        regression, _ = lapack.dpotrs(np.ascontiguousarray(L[:j, :j]), H[:j, j].copy(), lower=1)
        direction[:j] = -regression
    return direction


def _step(b: Floats, active: Indices, direction: Floats) -> None:
    """Move along a direction until the first coefficient is 0."""
    values = b[active]
    is_shrinking = direction * np.sign(values) < 0.0
    distance = np.full(values.size, np.inf)
    distance[is_shrinking] = -values[is_shrinking] / direction[is_shrinking]
    first = distance.min()
    if first < np.inf:
        b[active] = np.where(distance <= first, 0.0, values + first * direction)
