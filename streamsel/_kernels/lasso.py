"""Lasso by coordinate descent: codes of variables on components, and outliers of columns."""

from __future__ import annotations

import numpy as np

from streamsel._kernels.compile import kernel


@kernel()
def _update(
    j: int,
    Q: np.ndarray,
    penalty: np.ndarray,
    ridge: np.ndarray,
    entry_threshold: np.ndarray,
    b: np.ndarray,
    slope: np.ndarray,
) -> float:
    """Minimize over one coefficient; return how far it moved, in the norm of the form."""
    before = b[j]
    if before == 0.0 and np.abs(slope[j]) <= entry_threshold[j]:
        return 0.0
    target = slope[j] + Q[j, j] * before
    after = max(np.abs(target) - penalty[j], 0.0) / (Q[j, j] + ridge[j])
    if target < 0.0:
        after = -after
    moved = after - before
    if moved != 0.0:
        b[j] = after
        for i in range(b.size):
            slope[i] -= moved * Q[j, i]
    return np.abs(moved) * np.sqrt(Q[j, j])


@kernel()
def coordinate_descent(
    Q: np.ndarray,
    penalty: np.ndarray,
    ridge: np.ndarray,
    entry_threshold: np.ndarray,
    n_stable_rounds: int,
    rounds: int,
    b: np.ndarray,
    slope: np.ndarray,
) -> None:
    """Minimize ½ bᵀQb - aᵀb + Σ penalty |b| + ½ Σ ridge b² by coordinate descent.

    A round visits all coefficients, then a few times those that are not 0. It ends when the set of
    non-zero coefficients has not changed for `n_stable_rounds` rounds.

    Parameters
    ----------
    Q
        (s, s) the form, with a positive diagonal.
    penalty, ridge
        (s,) L1 and ridge penalties.
    entry_threshold
        (s,) a coefficient that is 0 stays 0 unless its slope exceeds this.
    n_stable_rounds, rounds
        The number of unchanged rounds before it ends, and the maximal number of rounds.
    b, slope
        (s,) the coefficients, and a - Qb; changed in place.
    """
    n_unchanged = 0
    for _ in range(rounds):
        largest_move, changed = 0.0, False
        for j in range(b.size):
            was_0 = b[j] == 0.0
            largest_move = max(
                largest_move, _update(j, Q, penalty, ridge, entry_threshold, b, slope)
            )
            changed |= was_0 != (b[j] == 0.0)
        for _ in range(4):
            largest_active_move = 0.0
            for j in range(b.size):
                if b[j] != 0.0:
                    largest_active_move = max(
                        largest_active_move,
                        _update(j, Q, penalty, ridge, entry_threshold, b, slope),
                    )
                    changed |= b[j] == 0.0
            if largest_active_move <= 0.1 * largest_move:
                break
        n_unchanged = 0 if changed else n_unchanged + 1
        if n_unchanged >= n_stable_rounds or largest_move <= 1e-14:
            return


# A slope must exceed the penalty by this factor for a weight to leave 0, because of rounding.
_ENTRY_FACTOR = 1.0 + 1e-9
# Convergence tolerance: largest step relative to the largest weight.
_STEP_RTOL = 1e-14
_MAX_ROUNDS = 2000


@kernel()
def lasso_codes(G: np.ndarray, C: np.ndarray, penalty: float, W: np.ndarray) -> None:
    """Fill every row w of W with the minimizer of ½ wᵀGw - cᵀw + penalty |w|₁, c the row of C.

    Parameters
    ----------
    G
        (q, q) inner products of the components; one of length 0 is not used.
    C
        (b, q) inner products of the variables with them.
    penalty
        The L1 penalty.
    W
        (b, q), zero on entry.
    """
    b, q = C.shape
    slope = np.empty(q)
    for i in range(b):
        w = W[i]
        slope[:] = C[i]
        for _ in range(_MAX_ROUNDS):
            largest_step, largest = 0.0, 0.0
            for k in range(q):
                g, before = G[k, k], w[k]
                if g <= 0.0 or (before == 0.0 and np.abs(slope[k]) <= penalty * _ENTRY_FACTOR):
                    continue
                target = slope[k] + g * before
                after = max(np.abs(target) - penalty, 0.0) / g
                if target < 0.0:
                    after = -after
                step = after - before
                if step != 0.0:
                    w[k] = after
                    for m in range(q):
                        slope[m] -= step * G[k, m]
                largest_step = max(largest_step, np.abs(step))
                largest = max(largest, np.abs(after))
            if largest_step <= _STEP_RTOL * largest:
                break


@kernel()
def _median(a: np.ndarray) -> float:
    """Return the median of non-negative values.

    It bisects for a threshold with half of the values on either side: counting needs no branches.
    """
    n, k = a.size, a.size // 2
    low, high = 0.0, a.max()
    threshold = 0.5 * high
    while low < threshold < high:
        count = 0
        for i in range(n):
            count += a[i] <= threshold
        if count == k:
            below, above = 0.0, np.inf
            for i in range(n):
                if a[i] <= threshold:
                    below = max(below, a[i])
                else:
                    above = min(above, a[i])
            return 0.5 * (below + above) if n % 2 == 0 else above
        if count < k:
            low = threshold
        else:
            high = threshold
        threshold = 0.5 * (low + high)
    # Several values are equal to the median.
    largest = 0.0
    for i in range(n):
        if a[i] <= high:
            largest = max(largest, a[i])
    return largest


@kernel(reordered_sums=True)
def _fit(
    x: np.ndarray, outliers: np.ndarray, D: np.ndarray, P: np.ndarray, residual: np.ndarray
) -> None:
    """Fill the residual of a column after a fit by components that ignores its outliers."""
    n = x.size
    mean = 0.0
    for i in range(n):
        mean += x[i] - outliers[i]
    mean /= n
    for i in range(n):
        residual[i] = x[i] - mean
    for k in range(len(D)):
        w = 0.0
        for i in range(n):
            w += P[k, i] * (x[i] - outliers[i] - mean)
        for i in range(n):
            residual[i] -= w * D[k, i]


@kernel()
def find_outliers(
    X: np.ndarray,
    D: np.ndarray,
    P: np.ndarray,
    threshold: float,
    min_median: float,
    rounds: int,
    outliers: np.ndarray,
) -> None:
    """Find sparse outliers of columns: residuals beyond a threshold after a fit by components.

    The fit without outliers and the detection of outliers alternate a few times. The scale of a
    column's residuals is estimated in the first two rounds.

    Parameters
    ----------
    X
        (b, n) columns, one per row.
    D, P
        (q, n) components, and the matrix that maps a centred column to its codes.
    threshold, min_median
        The threshold in multiples of the median absolute residual of a column, and the smallest
        value used for that median.
    rounds
        The number of rounds.
    outliers
        (b, n) filled with the outliers; zero on entry.
    """
    residual, sizes = np.empty(X.shape[1]), np.empty(X.shape[1])
    for j in range(len(X)):
        limit = 0.0
        for round_number in range(rounds):
            _fit(X[j], outliers[j], D, P, residual)
            if round_number < 2:
                for i in range(residual.size):
                    sizes[i] = np.abs(residual[i])
                limit = threshold * max(_median(sizes), min_median)
            for i in range(residual.size):
                outliers[j, i] = residual[i] - min(max(residual[i], -limit), limit)
