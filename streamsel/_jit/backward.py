"""Backward elimination: one variable after another is taken out of an inverse."""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel


@kernel()
def eliminate(
    inverse: np.ndarray,
    B: np.ndarray,
    left: np.ndarray,
    tie: float,
    worn: float,
    costs: np.ndarray,
) -> int:
    """Remove variables, each time the one that is missed least; return how many are left.

    Parameters
    ----------
    inverse
        (p, p), of which the lower triangle is read: the inverse of C, which is replaced.
    B
        (r, p) the coefficients, a row a target, which are replaced.
    left
        (p,) which variables these are; at the end who is left, and then those removed, the last
        first.
    tie
        Costs within this of the least are equal: whoever of these stands last in the order of their
        numbers goes.
    worn
        It stops where a diagonal element of the inverse has fallen below this part of what it was,
        for what is left of that row is made of cancelled digits.
    costs
        (p,) to be filled: what it cost to remove each, in the order of `left`.
    """
    m = left.size
    cost, v, diagonal = np.empty(m), np.empty(m), np.empty(m)
    for i in range(m):
        diagonal[i] = inverse[i, i]
    going = True
    while going and m > 0:
        least = np.inf
        for i in range(m):
            square = 0.0
            for t in range(B.shape[0]):
                square += B[t, i] * B[t, i]
            cost[i] = square / inverse[i, i]
            least = min(least, cost[i])
        j = -1
        for i in range(m):
            if cost[i] <= least + tie and (j < 0 or left[i] > left[j]):
                j = i
        m -= 1
        # Its column, and the last variable in its place.
        size = inverse[j, j]
        for i in range(j):
            v[i] = inverse[j, i]
            inverse[j, i] = inverse[m, i]
        for i in range(j + 1, m):
            v[i] = inverse[i, j]
            inverse[i, j] = inverse[m, i]
        v[j] = inverse[m, j]
        inverse[j, j] = inverse[m, m]
        diagonal[j] = diagonal[m]
        left[j], left[m] = left[m], left[j]
        costs[m] = cost[j]
        for t in range(B.shape[0]):
            b = B[t, j] / size
            B[t, j] = B[t, m]
            for i in range(m):
                B[t, i] -= b * v[i]
        for i in range(m):
            a = v[i] / size
            row = inverse[i]
            for h in range(i + 1):
                row[h] -= a * v[h]
            if row[i] < worn * diagonal[i]:
                going = False
    return m


@kernel(reordered_sums=True)
def independent(C: np.ndarray, least: float) -> np.ndarray:
    """Return of which variables, in order, those before them leave something, (p,).

    Parameters
    ----------
    C
        (p, p) their products.
    least
        What is less is nothing.
    """
    p = len(C)
    is_sound = np.zeros(p, dtype=np.bool_)
    # Rows of the Cholesky factor, of the sound ones' columns.
    L = np.empty((p, p))
    kept = np.empty(p, dtype=np.intp)
    rank = 0
    for j in range(p):
        left = C[j, j]
        for s in range(rank):
            i = kept[s]
            product = C[j, i]
            for h in range(s):
                product -= L[j, h] * L[i, h]
            L[j, s] = product / L[i, s]
            left -= L[j, s] * L[j, s]
        if left >= least:
            L[j, rank] = np.sqrt(left)
            kept[rank] = j
            rank += 1
            is_sound[j] = True
    return is_sound
