"""Forward selection: residuals of the variables and of the target after some picks."""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel


@kernel(reordered_sums=True)
def _square(a: np.ndarray) -> float:
    total = 0.0
    for i in range(a.size):
        total += a[i] * a[i]
    return total


@kernel(reordered_sums=True)
def _dot(a: np.ndarray, b: np.ndarray) -> float:
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@kernel(reordered_sums=True)
def _subtract(a: np.ndarray, t: float, b: np.ndarray) -> None:
    for i in range(a.size):
        a[i] -= t * b[i]


@kernel()
def _ratio(square: float, residual: float, ridge: float, zero_tol: float) -> float:
    return square / (ridge + residual) if residual >= zero_tol else -np.inf


@kernel()
def fold(
    G: np.ndarray,
    T: np.ndarray,
    C: np.ndarray,
    ridge: float,
    zero_tol: float,
    near: float,
    scores: np.ndarray,
) -> np.ndarray:
    """Fill the scores of variables at each step; return which are too collinear with the picks.

    Parameters
    ----------
    G
        (p, r) coordinates in the target space.
    T
        (p, >= S - 1) products with the directions of the picks.
    C
        (>= S - 1, r) coordinates of these directions.
    ridge, zero_tol, near
        The ridge penalty; the residual variance below which a variable has no score; and the one
        below which rounding makes its score inaccurate.
    scores
        (p, S) filled.
    """
    p, S = scores.shape
    is_near = np.zeros(p, dtype=np.bool_)
    a = np.empty(G.shape[1])
    for j in range(p):
        for i in range(a.size):
            a[i] = G[j, i]
        residual = 1.0
        for s in range(S):
            scores[j, s] = _ratio(_square(a), residual, ridge, zero_tol)
            if residual < near:
                is_near[j] = True
            if s + 1 < S:
                residual -= T[j, s] * T[j, s]
                _subtract(a, T[j, s], C[s])
    return is_near


@kernel()
def step(
    square: np.ndarray,
    residual: np.ndarray,
    A: np.ndarray,
    t: np.ndarray,
    c: np.ndarray,
) -> None:
    """Remove a pick's direction from the variables' residual variances (p,) and their A, (p, r)."""
    for j in range(t.size):
        residual[j] -= t[j] * t[j]
        _subtract(A[j], t[j], c)
        square[j] = _square(A[j])


@kernel()
def unfold(
    units: np.ndarray, V: np.ndarray, U: np.ndarray, zero_tol: float, scores: np.ndarray
) -> None:
    """Fill the scores of variables at each step without a ridge, from their observations.

    Parameters
    ----------
    units
        (p, n) variables of length 1; overwritten by their residuals.
    V, U
        (>= S - 1, n) directions of the picks, and (r, n) of the target space; orthonormal.
    zero_tol, scores
        As in `fold`.
    """
    p, S = scores.shape
    for j in range(p):
        w = units[j]
        for s in range(S):
            square = 0.0
            for i in range(U.shape[0]):
                u = _dot(U[i], w)
                square += u * u
            scores[j, s] = _ratio(square, _square(w), 0.0, zero_tol)
            if s + 1 < S:
                _subtract(w, _dot(V[s], w), V[s])
