"""Backward elimination: variables are removed from an inverse one by one."""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel


@kernel()
def eliminate(
    inverse: np.ndarray,
    B: np.ndarray,
    variables: np.ndarray,
    tie: float,
    cancellation_tol: float,
    costs: np.ndarray,
) -> int:
    """Remove variables, each time the one with the lowest cost; return how many are left.

    Parameters
    ----------
    inverse
        (p, p), of which the lower triangle is read: the inverse of C; overwritten.
    B
        (r, p) the coefficients, one row per target; overwritten.
    variables
        (p,) numbers of the variables; on return those left, then those removed, the last removed
        first.
    tie
        Costs within this of the lowest are equal: of these the variable with the largest number is
        removed.
    cancellation_tol
        Elimination stops when a diagonal element of the inverse falls below this fraction of its
        original value, since cancellation has left no accurate digits of that row.
    costs
        (p,) filled with the cost of each removal, in the order of `variables`.
    """
    m = variables.size
    cost, v, diagonal = np.empty(m), np.empty(m), np.empty(m)
    for i in range(m):
        diagonal[i] = inverse[i, i]
    is_accurate = True
    while is_accurate and m > 0:
        least = np.inf
        for i in range(m):
            square = 0.0
            for t in range(B.shape[0]):
                square += B[t, i] * B[t, i]
            cost[i] = square / inverse[i, i]
            least = min(least, cost[i])
        j = -1
        for i in range(m):
            if cost[i] <= least + tie and (j < 0 or variables[i] > variables[j]):
                j = i
        m -= 1
        # Save its column, and move the last variable to its index.
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
        variables[j], variables[m] = variables[m], variables[j]
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
            if row[i] < cancellation_tol * diagonal[i]:
                is_accurate = False
    return m


@kernel(reordered_sums=True)
def independent(C: np.ndarray, least: float) -> np.ndarray:
    """Return which variables are linearly independent of those before them, (p,).

    Parameters
    ----------
    C
        (p, p) inner products of the variables.
    least
        The smallest squared residual that counts as non-zero.
    """
    p = len(C)
    is_independent = np.zeros(p, dtype=np.bool_)
    # Rows of the Cholesky factor, with columns for the independent variables.
    L = np.empty((p, p))
    kept = np.empty(p, dtype=np.intp)
    rank = 0
    for j in range(p):
        residual = C[j, j]
        for s in range(rank):
            i = kept[s]
            product = C[j, i]
            for h in range(s):
                product -= L[j, h] * L[i, h]
            L[j, s] = product / L[i, s]
            residual -= L[j, s] * L[j, s]
        if residual >= least:
            L[j, rank] = np.sqrt(residual)
            kept[rank] = j
            rank += 1
            is_independent[j] = True
    return is_independent
