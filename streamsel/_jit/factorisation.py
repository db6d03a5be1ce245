"""Lasso codes of many variables on a few components."""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel

# Of what the slope must exceed for a weight to leave 0 more than this part is not rounding.
_EDGE = 1.0 + 1e-9
# A round in which no weight moves by more than this part of the largest is the last.
_STILL = 1e-14
_ROUNDS = 2000


@kernel()
def lasso_codes(G: np.ndarray, C: np.ndarray, bar: float, W: np.ndarray) -> None:
    """Put in every row w of W what minimises ½ wᵀGw - cᵀw + bar |w|, c the row of C.

    Parameters
    ----------
    G
        (q, q) inner products of the components; one that has none of itself is not used.
    C
        (b, q) inner products of the variables with them.
    bar
        What is asked of a weight's slope.
    W
        (b, q), zero to begin with.
    """
    b, q = C.shape
    left = np.empty(q)
    for i in range(b):
        w = W[i]
        left[:] = C[i]
        for _ in range(_ROUNDS):
            moved, largest = 0.0, 0.0
            for k in range(q):
                g, before = G[k, k], w[k]
                if g <= 0.0 or (before == 0.0 and np.abs(left[k]) <= bar * _EDGE):
                    continue
                whole = left[k] + g * before
                after = max(np.abs(whole) - bar, 0.0) / g
                if whole < 0.0:
                    after = -after
                step = after - before
                if step != 0.0:
                    w[k] = after
                    for m in range(q):
                        left[m] -= step * G[k, m]
                moved = max(moved, np.abs(step))
                largest = max(largest, np.abs(after))
            if moved <= _STILL * largest:
                break


@kernel()
def _median(a: np.ndarray) -> float:
    """Return the median of values of which none is below 0.

    A bar is sought, by halves, that as many are above as are not: to count takes no branches.
    """
    n, k = a.size, a.size // 2
    low, high = 0.0, a.max()
    bar = 0.5 * high
    while low < bar < high:
        count = 0
        for i in range(n):
            count += a[i] <= bar
        if count == k:
            below, above = 0.0, np.inf
            for i in range(n):
                if a[i] <= bar:
                    below = max(below, a[i])
                else:
                    above = min(above, a[i])
            return 0.5 * (below + above) if n % 2 == 0 else above
        if count < k:
            low = bar
        else:
            high = bar
        bar = 0.5 * (low + high)
    # Several are equal there.
    found = 0.0
    for i in range(n):
        if a[i] <= high:
            found = max(found, a[i])
    return found


@kernel(reordered_sums=True)
def _fit(x: np.ndarray, off: np.ndarray, D: np.ndarray, P: np.ndarray, left: np.ndarray) -> None:
    """Leave of a column what components do not make of it, which were fitted without outliers."""
    n = x.size
    mean = 0.0
    for i in range(n):
        mean += x[i] - off[i]
    mean /= n
    for i in range(n):
        left[i] = x[i] - mean
    for k in range(len(D)):
        w = 0.0
        for i in range(n):
            w += P[k, i] * (x[i] - off[i] - mean)
        for i in range(n):
            left[i] -= w * D[k, i]


@kernel()
def find_outliers(
    X: np.ndarray,
    D: np.ndarray,
    P: np.ndarray,
    threshold: float,
    least: float,
    rounds: int,
    off: np.ndarray,
) -> None:
    """Find what values of columns are off by, beyond a threshold, and beside their components.

    A column's components are fitted to what is left of it without its outliers, and these are
    found beside its components; a few times. What is typical of a column is told by the first two.

    Parameters
    ----------
    X
        (b, n) columns, a row each.
    D, P
        (q, n) components, and what gives a centred column's codes on them.
    threshold, least
        In multiples of the median of what is left of a column, and the least that this is.
    rounds
        How many times.
    off
        (b, n) zero to begin with.
    """
    left, sizes = np.empty(X.shape[1]), np.empty(X.shape[1])
    for j in range(len(X)):
        bar = 0.0
        for turn in range(rounds):
            _fit(X[j], off[j], D, P, left)
            if turn < 2:
                for i in range(left.size):
                    sizes[i] = np.abs(left[i])
                bar = threshold * max(_median(sizes), least)
            for i in range(left.size):
                off[j, i] = left[i] - min(max(left[i], -bar), bar)
