"""Joint moments of components and candidates, a row at a time."""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel


@kernel()
def learn_joint(
    values: np.ndarray,
    slots: np.ndarray,
    place: np.ndarray,
    shift: np.ndarray,
    B: np.ndarray,
    at: np.ndarray,
    keep: float,
    n: float,
    mean: np.ndarray,
    J: np.ndarray,
) -> None:
    """Add a row of weight 1 to the moments of components z = Bᵀ x and of candidates, jointly.

    Parameters
    ----------
    values, slots
        (m,) values of the row, NaN where not observed, and the slots of their variables.
    place
        Slot -> place among the watched variables, -1 for one that is not watched.
    shift
        (s,) of each watched variable, what is taken off it; stands for a value not observed, too.
    B, at
        (s, q) loadings, and which h of the watched are candidates.
    keep, n
        What part of their weight the earlier rows keep, and what weight that leaves them.
    mean, J
        (q + h,), (q + h, q + h) means and sums of products of the q components and h candidates.
    """
    s, q = B.shape
    x = np.empty(shift.size)
    for i in range(x.size):
        x[i] = -shift[i]
    for i in range(values.size):
        t = place[slots[i]]
        if t >= 0:
            x[t] = 0.0 if np.isnan(values[i]) else values[i] - shift[t]
    total = n + 1.0
    d = np.empty(mean.size)
    for k in range(mean.size):
        if k < q:
            z = 0.0
            for i in range(s):
                z += B[i, k] * x[i]
        else:
            z = x[at[k - q]]
        d[k] = z - mean[k]
        mean[k] += d[k] / total
    f = n / total
    for k in range(mean.size):
        e = f * d[k]
        for t in range(mean.size):
            J[k, t] = keep * J[k, t] + e * d[t]
