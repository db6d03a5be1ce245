"""Selection of representatives: pivots of a weighted correlation matrix, and the weights passed on.

Matrices of correlations are symmetric, and only their lower triangles are read.
"""

from __future__ import annotations

import numpy as np

from streamsel._kernels.compile import kernel

# Values within this relative distance are equal, and the earlier variable comes first.
_TIE_RTOL = 1e-12


@kernel()
def _correlation(R: np.ndarray, i: int, j: int) -> float:
    return R[i, j] if i > j else R[j, i]


@kernel()
def weigh(R: np.ndarray, w: np.ndarray, A: np.ndarray, residual: np.ndarray) -> None:
    """Fill the lower triangle of A (m, m) with w R w, and its diagonal `residual`, (m,)."""
    for i in range(w.size):
        for j in range(i + 1):
            A[i, j] = w[i] * R[i, j] * w[j]
        residual[i] = A[i, i]


@kernel()
def _largest(values: np.ndarray) -> float:
    # Four running maxima do not wait for one another.
    a, b, c, d = values[0], values[0], values[0], values[0]
    whole = values.size - values.size % 4
    for j in range(0, whole, 4):
        a = max(a, values[j])
        b = max(b, values[j + 1])
        c = max(c, values[j + 2])
        d = max(d, values[j + 3])
    for j in range(whole, values.size):
        a = max(a, values[j])
    return max(a, b, c, d)


@kernel()
def find_pivots(
    A: np.ndarray,
    residual: np.ndarray,
    zero: float,
    rows: np.ndarray,
    picks: np.ndarray,
    pivots: np.ndarray,
) -> int:
    """Find further pivots of a Cholesky factorization; return their number.

    Parameters
    ----------
    A
        (m, m) the residual matrix without earlier pivots; its lower triangle is read.
    residual
        (m,) its diagonal, updated; -1 for a pivot.
    zero
        A residual up to this is zero.
    rows
        (b, m) filled with the rows of the factor.
    picks, pivots
        (b,) filled with the indices of the pivots, and with their residuals.
    """
    m = residual.size
    for s in range(picks.size):
        largest = _largest(residual)
        if not largest > zero:
            return s
        pivot = 0
        while residual[pivot] < largest * (1.0 - _TIE_RTOL):
            pivot += 1
        picks[s], pivots[s] = pivot, residual[pivot]
        row = rows[s]
        for j in range(pivot):
            row[j] = A[pivot, j]
        for j in range(pivot, m):
            row[j] = A[j, pivot]
        # Several earlier rows at once: the row is loaded and stored less often.
        t = 0
        while t + 4 <= s:
            a, b, c, d = rows[t], rows[t + 1], rows[t + 2], rows[t + 3]
            fa, fb, fc, fd = a[pivot], b[pivot], c[pivot], d[pivot]
            for j in range(m):
                row[j] -= fa * a[j] + fb * b[j] + fc * c[j] + fd * d[j]
            t += 4
        while t < s:
            a, fa = rows[t], rows[t, pivot]
            for j in range(m):
                row[j] -= fa * a[j]
            t += 1
        length = np.sqrt(residual[pivot])
        for j in range(m):
            row[j] /= length
            residual[j] -= row[j] * row[j]
        residual[pivot] = -1.0
    return picks.size


@kernel()
def add_dissimilar(
    R: np.ndarray,
    order: np.ndarray,
    is_kept: np.ndarray,
    further: np.ndarray,
    max_squared_correlation: float,
) -> int:
    """Keep further variables, none similar to another kept one; return their number.

    Parameters
    ----------
    R
        (m, m) correlations.
    order
        (m,) the variables in order of preference.
    is_kept
        (m,) whether a variable is kept; updated.
    further
        Filled with the further variables, in order, as many as there is room for.
    max_squared_correlation
        Largest squared correlation of a variable with those kept before it.
    """
    nearest = np.zeros(order.size)
    for k in range(order.size):
        if is_kept[k]:
            _raise_to_squares(R, k, nearest)
    count = 0
    for k in order:
        if count == further.size:
            break
        if not is_kept[k] and nearest[k] <= max_squared_correlation:
            further[count], is_kept[k] = k, True
            count += 1
            _raise_to_squares(R, k, nearest)
    return count


@kernel()
def _raise_to_squares(R: np.ndarray, k: int, nearest: np.ndarray) -> None:
    """Raise each variable's largest squared correlation to at least that with one variable."""
    for j in range(nearest.size):
        r = _correlation(R, j, k)
        nearest[j] = max(nearest[j], r * r)


@kernel()
def pass_on_weights(R: np.ndarray, kept: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
    """Fill out (s,) with the weights of the kept variables, and shares of those of the others.

    Parameters
    ----------
    R
        (m, m) correlations.
    kept
        (s,) indices of the kept variables, ascending.
    weights
        (m,) weights of all. Each other variable passes on its weight times the fourth power of its
        correlation to the kept one of the largest squared correlation.
    """
    for k in range(kept.size):
        out[k] = weights[kept[k]]
    squares, position = np.empty(kept.size), 0
    for i in range(weights.size):
        if position < kept.size and kept[position] == i:
            position += 1
            continue
        largest = 0.0
        for k in range(kept.size):
            r = _correlation(R, i, kept[k])
            squares[k] = r * r
            largest = max(largest, squares[k])
        for k in range(kept.size):
            if squares[k] >= largest * (1.0 - _TIE_RTOL):
                out[k] += weights[i] * (squares[k] * squares[k])
                break
