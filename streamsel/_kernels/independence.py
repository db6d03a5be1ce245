"""Conditional independence of a variable and the target, given small sets of other variables.

The inputs are the correlations C of the variables, and their coordinates G in the target space. For
a conditioning set S, the last row of the Cholesky factor of (S, target, x) gives the association of
x and the target that S does not explain.

The cost is cubic in the dimension of the target. If S and the target are not nearly collinear, the
association is also the sum of two shares minus a third: the share of x that the target explains,
the share of its residual that the residuals M = C - G Gᵀ of S explain, and the share of x that S
explains. This form is used unless rounding might change the decision.
"""

from __future__ import annotations

import numpy as np

from streamsel._kernels.compile import kernel

# Residual variances below this, of a variable or a direction of the target, are rounding errors.
_ZERO_TOL = 1e-10
# Residuals given the target are used from `_MIN_DIMENSIONS` of the target on, if
# - the squared residuals of their factor, and that of x, exceed `_MIN_RESIDUAL`,
# - the trace of the inverse times the size is below `_MAX_TRACE`, and
# - the result differs from its critical value by more than `_MIN_GAP`.
# Then rounding errors are below 1e-7, and no direction of the target is explained.
_MIN_DIMENSIONS, _MIN_RESIDUAL, _MAX_TRACE, _MIN_GAP = 3, 1e-4, 1e4, 1e-6


@kernel()
def _factor(C: np.ndarray, S: np.ndarray, start: int, size: int, L: np.ndarray) -> int:
    """Fill rows `start` to `size` of L for the variables S; return the first dependent row."""
    for i in range(start, size):
        residual = 1.0
        for k in range(i):
            a = C[S[i], S[k]]
            for t in range(k):
                a -= L[i, t] * L[k, t]
            a /= L[k, k]
            L[i, k] = a
            residual -= a * a
        if residual <= _ZERO_TOL:
            return i
        L[i, i] = np.sqrt(residual)
    return size


@kernel()
def _conditional_relevance(
    C: np.ndarray,
    G: np.ndarray,
    S: np.ndarray,
    size: int,
    x: int,
    L: np.ndarray,
    T: np.ndarray,
) -> tuple[float, int]:
    """Return the squared relevance of x given S, and the rank of the target's residual given S.

    L has the factor of S; its last row, and T, are buffers for x and the target.
    """
    row = L[-1]
    residual = 1.0
    for k in range(size):
        a = C[x, S[k]]
        for t in range(k):
            a -= row[t] * L[k, t]
        a /= L[k, k]
        row[k] = a
        residual -= a * a
    if residual <= _ZERO_TOL:
        return 0.0, 0
    rank = 0
    explained = 0.0
    for u in range(G.shape[1]):
        target = T[rank]
        target_residual = 1.0
        for k in range(size):
            a = G[S[k], u]
            for t in range(k):
                a -= target[t] * L[k, t]
            a /= L[k, k]
            target[k] = a
            target_residual -= a * a
        for q in range(rank):
            a = 0.0
            for t in range(size + q):
                a -= target[t] * T[q, t]
            a /= T[q, size + q]
            target[size + q] = a
            target_residual -= a * a
        if target_residual <= _ZERO_TOL:
            continue
        target[size + rank] = np.sqrt(target_residual)
        a = G[x, u]
        for t in range(size + rank):
            a -= target[t] * row[t]
        a /= target[size + rank]
        row[size + rank] = a
        explained += a * a
        rank += 1
    return explained / residual, rank


@kernel()
def _factor_residuals(M: np.ndarray, S: np.ndarray, start: int, size: int, K: np.ndarray) -> int:
    """Fill rows `start` to `size` of K, the factor of M for the variables S, as `_factor` does."""
    for i in range(start, size):
        residual = M[S[i], S[i]]
        for k in range(i):
            a = M[S[i], S[k]]
            for t in range(k):
                a -= K[i, t] * K[k, t]
            a /= K[k, k]
            K[i, k] = a
            residual -= a * a
        if residual <= _MIN_RESIDUAL:
            return i
        K[i, i] = np.sqrt(residual)
    return size


@kernel()
def _trace_of_inverse(K: np.ndarray, size: int, W: np.ndarray) -> float:
    """Return the trace of (K Kᵀ)⁻¹, from the inverse of K, which fills W."""
    trace = 0.0
    for j in range(size):
        for i in range(j, size):
            a = 1.0 if i == j else 0.0
            for k in range(j, i):
                a -= K[i, k] * W[k, j]
            W[i, j] = a / K[i, i]
            trace += W[i, j] * W[i, j]
    return trace


@kernel()
def _relevance_by_residuals(
    C: np.ndarray,
    M: np.ndarray,
    S: np.ndarray,
    size: int,
    x: int,
    L: np.ndarray,
    K: np.ndarray,
) -> float:
    """Return the squared relevance of x given S; NaN if x is nearly explained by S.

    L and K have the factors of S in C and M; their last rows are buffers for x.
    """
    row, residual_row = L[-1], K[-1]
    residual, explained = 1.0, 1.0 - M[x, x]
    for k in range(size):
        a, b = C[x, S[k]], M[x, S[k]]
        for t in range(k):
            a -= row[t] * L[k, t]
            b -= residual_row[t] * K[k, t]
        a /= L[k, k]
        b /= K[k, k]
        row[k], residual_row[k] = a, b
        residual -= a * a
        explained += b * b - a * a
    return explained / residual if residual > _MIN_RESIDUAL else np.nan


@kernel()
def is_separated(
    C: np.ndarray,
    G: np.ndarray,
    M: np.ndarray,
    x: int,
    candidates: np.ndarray,
    required: int,
    critical_values: np.ndarray,
) -> bool:
    """Return whether variable x is independent of the target given some of the others.

    Parameters
    ----------
    C, G
        (m, m) correlations of all variables, and their (m, r) coordinates in the target space.
    M
        (m, m) C - G Gᵀ.
    x
        Index of the variable.
    candidates
        Indices of the variables that may be in the conditioning set.
    required
        Index of a variable that is in every conditioning set, and not in `candidates`; -1 for none.
    critical_values
        (d + 1, r + 1) the squared relevance up to which a variable counts as independent, by the
        size of the conditioning set, up to d, and the rank of the target's residual.
    """
    max_size = critical_values.shape[0] - 1
    r = G.shape[1]
    L = np.empty((max_size + 1, max_size + r))
    T = np.empty((r, max_size + r))
    K, W = np.empty((max_size + 1, max_size)), np.empty((max_size, max_size))
    S = np.empty(max_size, dtype=np.int64)
    combination = np.empty(max_size, dtype=np.int64)
    fixed = 1 if required >= 0 else 0
    # Test small sets first: one variable nearly always suffices.
    for size in range(1, max_size + 1):
        free = size - fixed
        if free > candidates.shape[0]:
            break
        if fixed:
            S[0] = required
        for i in range(free):
            combination[i] = i
            S[fixed + i] = candidates[i]
        start = n_rows = 0
        while True:
            stop = _factor(C, S, start, size, L)
            last = free - 1
            if stop == size:
                relevance2 = np.nan
                if r >= _MIN_DIMENSIONS:
                    n_rows = _factor_residuals(M, S, min(start, n_rows), size, K)
                    if n_rows == size and size * _trace_of_inverse(K, size, W) < _MAX_TRACE:
                        relevance2 = _relevance_by_residuals(C, M, S, size, x, L, K)
                rank = r
                if not abs(relevance2 - critical_values[size, r]) > _MIN_GAP:
                    relevance2, rank = _conditional_relevance(C, G, S, size, x, L, T)
                if relevance2 <= critical_values[size, rank]:
                    return True
            else:
                n_rows = min(n_rows, start)
                # All sets with this collinear prefix are degenerate: skip them.
                last = stop - fixed
            while last >= 0 and combination[last] == candidates.shape[0] - free + last:
                last -= 1
            if last < 0:
                break
            combination[last] += 1
            S[fixed + last] = candidates[combination[last]]
            for i in range(last + 1, free):
                combination[i] = combination[i - 1] + 1
                S[fixed + i] = candidates[combination[i]]
            start = fixed + last
    return False


@kernel()
def update_kept(
    C: np.ndarray,
    G: np.ndarray,
    M: np.ndarray,
    critical_values: np.ndarray,
    fast: bool,
    is_kept: np.ndarray,
) -> None:
    """Fill is_kept (m,): whether no small set of others separates a variable from the target.

    The last variable is new, and the others were tested against each other before. If `fast` the
    new one is tested first, and the others only if it is kept; otherwise it is tested last.

    Parameters
    ----------
    C, G, M, critical_values
        As in `is_separated`.
    fast
        Whether to test the new variable first.
    is_kept
        (m,) filled.
    """
    new = C.shape[0] - 1
    is_kept[:] = True
    if fast:
        is_kept[new] = not is_separated(C, G, M, new, np.arange(new), -1, critical_values)
        if not is_kept[new]:
            return
    for x in range(new):
        is_kept[x] = is_kept[new] = False
        candidates = np.flatnonzero(is_kept)
        is_kept[new] = True
        is_kept[x] = not is_separated(C, G, M, x, candidates, new, critical_values)
    if not fast:
        is_kept[new] = False
        is_kept[new] = not is_separated(C, G, M, new, np.flatnonzero(is_kept), -1, critical_values)
