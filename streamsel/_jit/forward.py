"""Forward selection: what is left of variables, and of the target, once some are picked."""

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
def _take_off(a: np.ndarray, t: float, b: np.ndarray) -> None:
    for i in range(a.size):
        a[i] -= t * b[i]


@kernel()
def _ratio(square: float, left: float, ridge: float, spent: float) -> float:
    return square / (ridge + left) if left >= spent else -np.inf


@kernel()
def fold(
    G: np.ndarray,
    T: np.ndarray,
    C: np.ndarray,
    ridge: float,
    spent: float,
    near: float,
    scores: np.ndarray,
) -> np.ndarray:
    """Fill in what variables score under each stage; return who is too near the picks to tell.

    Parameters
    ----------
    G
        (p, r) coordinates in the target space.
    T
        (p, >= S - 1) products with the directions of the picks.
    C
        (>= S - 1, r) coordinates of these directions.
    ridge, spent, near
        The ridge; of how much is left of a variable that has nothing to say; and of how much
        rounding takes its share.
    scores
        (p, S) to be filled.
    """
    p, S = scores.shape
    is_near = np.zeros(p, dtype=np.bool_)
    a = np.empty(G.shape[1])
    for j in range(p):
        for i in range(a.size):
            a[i] = G[j, i]
        left = 1.0
        for s in range(S):
            scores[j, s] = _ratio(_square(a), left, ridge, spent)
            if left < near:
                is_near[j] = True
            if s + 1 < S:
                left -= T[j, s] * T[j, s]
                _take_off(a, T[j, s], C[s])
    return is_near


@kernel()
def step(
    square: np.ndarray,
    left: np.ndarray,
    A: np.ndarray,
    t: np.ndarray,
    c: np.ndarray,
) -> None:
    """Take a pick's direction out of what is left of variables, (p,), and of their A, (p, r)."""
    for j in range(t.size):
        left[j] -= t[j] * t[j]
        _take_off(A[j], t[j], c)
        square[j] = _square(A[j])


@kernel()
def unfold(
    units: np.ndarray, V: np.ndarray, U: np.ndarray, spent: float, scores: np.ndarray
) -> None:
    """Fill in what variables score under each stage without a ridge, from their observations.

    Parameters
    ----------
    units
        (p, n) variables, of length 1; what is left of them takes their place.
    V, U
        (>= S - 1, n) directions of the picks, and (r, n) of the target space; orthonormal.
    spent, scores
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
            scores[j, s] = _ratio(square, _square(w), 0.0, spent)
            if s + 1 < S:
                _take_off(w, _dot(V[s], w), V[s])
