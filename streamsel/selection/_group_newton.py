"""Minimum of the group Lasso over the coefficients of a few groups, by Newton's method."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack

from streamsel.selection._lasso_path import KKT_RTOL
from streamsel.state.base import Floats, Indices
from streamsel.state.pool.group_table import starts_of

# Error of the optimality conditions relative to the penalty; rounding may leave one up to KKT_RTOL.
_RTOL = 1e-11
# Newton steps in single precision, and with scales, and halvings of one of these.
_NEWTON_STEPS, _SCALE_STEPS, _MAX_HALVINGS = 20, 100, 30
# Scales up to this part of the largest are 0 if they decrease.
_ZERO_SCALE = 1e-12
# Errors of the objective relative to its largest term, and of the diagonal of a Hessian.
_OBJECTIVE_RTOL, _HESSIAN_RTOL = 1e-15, 1e-14
# Decrease of the objective relative to that of its linear approximation (Armijo).
_MIN_DECREASE = 1e-4


class GroupQuadratic(NamedTuple):
    """Objective ½ bᵀKb - aᵀb + Σ threshold ‖b_g‖ + ½ ridge ‖b‖².

    Parameters
    ----------
    K, a
        (s, s) and (s,) the quadratic form; the blocks of one group are the identity.
    sizes, threshold
        (p,) numbers of coefficients of the groups, and penalties of their lengths.
    ridge
        The ridge penalty.
    """

    K: Floats
    a: Floats
    sizes: Indices
    threshold: Floats
    ridge: float

    def lengths(self, values: Floats) -> Floats:
        """Return the lengths of the groups' parts of (s,), (p,)."""
        starts = starts_of(self.sizes)
        found: Floats = np.sqrt(np.add.reduceat(values * values, starts[:-1]))
        return found

    def among(self, groups: Indices, rows: Indices) -> GroupQuadratic:
        """Return the objective of some groups, with these coefficients; the others are 0."""
        K, a = self.K[np.ix_(rows, rows)], self.a[rows]
        return GroupQuadratic(K, a, self.sizes[groups], self.threshold[groups], self.ridge)


def stationary_point(problem: GroupQuadratic, b: Floats) -> Floats | None:
    """Return the minimum over coefficients of groups that all differ from 0; None if not found.

    By Newton's method from b. A factorisation of the Hessian in single precision serves as long as
    it halves the error. It fails if a group tends to 0, or the groups are nearly collinear.
    """
    K, a, sizes, threshold, ridge = problem
    starts, penalty = starts_of(sizes), np.repeat(threshold, sizes)
    L: Any = None
    before = np.inf
    for _ in range(_NEWTON_STEPS):
        length = problem.lengths(b)
        lengths = np.repeat(length, sizes)
        error = K @ b - a + ridge * b + penalty * (b / lengths)
        largest = float(np.abs(error).max())
        if largest <= _RTOL * penalty.min():
            return b
        if L is None or largest > 0.5 * before:
            H = K.astype(np.float32)
            H[np.diag_indices(b.size)] += (ridge + penalty / lengths).astype(np.float32)
            for g in range(sizes.size):
                part = slice(starts[g], starts[g + 1])
                unit = b[part] / length[g]
                H[part, part] -= (threshold[g] / length[g] * np.outer(unit, unit)).astype("f4")
            # Transposed, in the order of LAPACK, as it is symmetric.
            L, info = lapack.spotrf(H.T, lower=1, clean=0, overwrite_a=1)
            if info:
                return None
        before = largest
        step, _ = lapack.spotrs(L, error.astype(np.float32), lower=1)
        moved = b - step
        if not (problem.lengths(moved) > 0.1 * length).all():
            return None
        b = moved
    return None


class _Scales:
    """Objective minimised over the coefficients, as a function of the scales of groups.

    As t ‖b‖ is the minimum of t (‖b‖² / e + e) / 2 over e ≥ 0, the objective is a minimum over a
    scale e of each group too. For given scales it is quadratic in the coefficients. The minimum
    over these is a smooth and convex function of the scales, and its linear equations are
    well-conditioned, however close to collinear the groups are.

    Parameters
    ----------
    problem
        The objective.
    scales
        (p,) the scales, at least 0.

    Attributes
    ----------
    value, slope
        The minimum, and its derivatives by the scales, (p,).
    b
        (s,) the coefficients.
    error
        Largest error of the optimality conditions relative to the penalty.
    """

    def __init__(self, problem: GroupQuadratic, scales: Floats) -> None:
        K, a, sizes, t, ridge = problem
        self._problem, self.scales = problem, scales
        self._total = t + ridge * scales
        root = np.repeat(np.sqrt(scales / self._total), sizes)
        A = K * root * root[:, None]
        A[np.diag_indices(a.size)] += 1.0
        self._root = root
        self._L, _ = lapack.dpotrf(A.T, lower=1, clean=0, overwrite_a=1)
        self.b: Floats = root * lapack.dpotrs(self._L, root * a, lower=1)[0]
        self._gradient = a - K @ self.b
        self._length = problem.lengths(self._gradient)
        ratio = self._length / self._total
        penalties = 0.5 * float(t @ scales)
        products = 0.5 * float(a @ self.b)
        self.value, self.rounding = penalties - products, _OBJECTIVE_RTOL * (penalties + products)
        self.slope: Floats = 0.5 * t * (1.0 - ratio * ratio)
        error = np.where(scales > 0.0, np.abs(ratio - 1.0), ratio - 1.0)
        self.error = max(0.0, float(error.max()))

    def hessian(self) -> Floats:
        """Return the second derivatives by the scales, (p, p)."""
        K, _, sizes, t, ridge = self._problem
        U = np.zeros((sizes.sum(), sizes.size))
        U[np.arange(len(U)), np.repeat(np.arange(sizes.size), sizes)] = self._gradient
        KU = K @ U
        half = lapack.dtrtrs(self._L, self._root[:, None] * KU, lower=1)[0]
        change = t / self._total**2
        H: Floats = (U.T @ KU - half.T @ half) * change * change[:, None]
        H[np.diag_indices(sizes.size)] += t * ridge * self._length**2 / self._total**3
        return H

    def step(self) -> Floats:
        """Return the Newton step of scales that may change; the others decrease to 0."""
        smallest = _ZERO_SCALE * float(self.scales.max())
        is_zero = (self.scales <= smallest) & (self.slope > 0.0)
        free = np.flatnonzero(~is_zero)
        found = -self.scales
        H = self.hessian()[np.ix_(free, free)]
        # Nearly collinear groups make the Hessian singular up to rounding.
        damping = _HESSIAN_RTOL * float(np.trace(H))
        for _ in range(_MAX_HALVINGS):
            H[np.diag_indices(free.size)] += damping
            L, info = lapack.dpotrf(H, lower=1)
            if not info:
                found[free] = -lapack.dpotrs(L, self.slope[free], lower=1)[0]
                break
            damping *= 10.0
        return found

    def after(self, step: Floats) -> _Scales | None:
        """Return the scales after the longest step that decreases the objective; None if none."""
        for _ in range(_MAX_HALVINGS):
            scales = np.maximum(self.scales + step, 0.0)
            found = _Scales(self._problem, scales)
            decrease = float(self.slope @ (self.scales - scales))
            if found.value <= self.value - _MIN_DECREASE * decrease + self.rounding:
                return found
            step = 0.5 * step
        return None


def minimum_over_scales(problem: GroupQuadratic, b: Floats) -> tuple[Floats, bool]:
    """Return the minimum over coefficients that may be 0, and whether it is accurate.

    By Newton's method for the scales of groups, from those of b, projected on those of at least 0
    (Bertsekas 1982). It converges however close to collinear the groups are.
    """
    best = now = _Scales(problem, problem.lengths(b))
    for _ in range(_SCALE_STEPS):
        if now.error <= _RTOL:
            break
        following = now.after(now.step())
        if following is None:
            break
        now = following
        if now.error < best.error or now.value < best.value - best.rounding:
            best = now
    return best.b, best.error <= KKT_RTOL
