"""Stepwise regression: scores of forward selection with a ridge, and backward elimination."""

from __future__ import annotations

import numpy as np

from streamsel._kernels.compile import kernel


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
def fold_forward_scores(
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
def remove_direction(
    square: np.ndarray,
    residual: np.ndarray,
    A: np.ndarray,
    t: np.ndarray,
    c: np.ndarray,
) -> None:
    """Remove a pick's direction from residual variances (p,) and coordinates A (p, r)."""
    for j in range(t.size):
        residual[j] -= t[j] * t[j]
        _subtract(A[j], t[j], c)
        square[j] = _square(A[j])


@kernel()
def forward_scores_of_samples(
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
        As in `fold_forward_scores`.
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


@kernel()
def eliminate_backward(
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
        (p, p) the inverse of C; only its lower triangle is read. Overwritten.
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
        min_cost = np.inf
        for i in range(m):
            square = 0.0
            for t in range(B.shape[0]):
                square += B[t, i] * B[t, i]
            cost[i] = square / inverse[i, i]
            min_cost = min(min_cost, cost[i])
        j = -1
        for i in range(m):
            if cost[i] <= min_cost + tie and (j < 0 or variables[i] > variables[j]):
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
def independent_variables(C: np.ndarray, min_residual: float) -> np.ndarray:
    """Return which variables are linearly independent of those before them, (p,).

    Parameters
    ----------
    C
        (p, p) inner products of the variables.
    min_residual
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
        if residual >= min_residual:
            L[j, rank] = np.sqrt(residual)
            kept[rank] = j
            rank += 1
            is_independent[j] = True
    return is_independent


@kernel()
def fold_swap_scores(
    G: np.ndarray,
    T: np.ndarray,
    C: np.ndarray,
    reflections: np.ndarray,
    restored: np.ndarray,
    removed: np.ndarray,
    replaced: np.ndarray,
    N: np.ndarray,
    ridge: float,
    zero_tol: float,
    near: float,
    scores: np.ndarray,
) -> np.ndarray:
    """Fill the scores of variables given all picks but one, for a sequence of exchanges.

    Parameters
    ----------
    G
        (p, r) coordinates in the target space.
    T, C
        (p, k) products with the directions of the picks, and (k, r) coordinates of these.
    reflections
        (S, k) reflection of the directions at each exchange: the last is then the one taken out.
    restored, removed
        (S, r) coordinates of the directions taken out and put in.
    replaced
        (S,) the column of N with the products with the direction put in; -1 if it is the same.
    N
        (p, m) products with the new directions.
    ridge, zero_tol, near
        As in `fold_forward_scores`.
    scores
        (p, S) filled.

    Returns
    -------
    (p,) which are too collinear with the picks.
    """
    p, S = scores.shape
    k = T.shape[1]
    is_near = np.zeros(p, dtype=np.bool_)
    a, t = np.empty(G.shape[1]), np.empty(k)
    for j in range(p):
        for i in range(a.size):
            a[i] = G[j, i]
        residual = 1.0
        for s in range(k):
            t[s] = T[j, s]
            residual -= t[s] * t[s]
            _subtract(a, t[s], C[s])
        for s in range(S):
            _subtract(t, 2.0 * _dot(t, reflections[s]), reflections[s])
            x = t[k - 1]
            residual += x * x
            _subtract(a, -x, restored[s])
            scores[j, s] = _ratio(_square(a), residual, ridge, zero_tol)
            if residual < near:
                is_near[j] = True
            if replaced[s] >= 0:
                x = N[j, replaced[s]]
                t[k - 1] = x
            residual -= x * x
            _subtract(a, x, removed[s])
    return is_near


@kernel()
def swap_scores_of_samples(
    units: np.ndarray,
    V: np.ndarray,
    restored: np.ndarray,
    removed: np.ndarray,
    U: np.ndarray,
    zero_tol: float,
    scores: np.ndarray,
) -> None:
    """Fill the scores of variables given all picks but one, without a ridge, from observations.

    Parameters
    ----------
    units
        (p, n) variables of length 1.
    V
        (k, n) directions of the picks, orthonormal.
    restored, removed
        (S, n) the directions taken out and put in at each exchange.
    U
        (r, n) orthonormal basis of the target.
    zero_tol, scores
        As in `fold_swap_scores`.
    """
    p, S = scores.shape
    for j in range(p):
        x = units[j]
        w = x.copy()
        for s in range(V.shape[0]):
            _subtract(w, _dot(V[s], w), V[s])
        for s in range(S):
            _subtract(w, -_dot(restored[s], x), restored[s])
            square = 0.0
            for i in range(U.shape[0]):
                u = _dot(U[i], w)
                square += u * u
            scores[j, s] = _ratio(square, _square(w), 0.0, zero_tol)
            _subtract(w, _dot(removed[s], w), removed[s])
