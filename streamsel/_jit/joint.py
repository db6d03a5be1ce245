"""Joint moments of components and candidates, a row at a time."""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel


@kernel()
def learn_joint(
    values: np.ndarray,
    slots: np.ndarray,
    place: np.ndarray,
    s: int,
    shift: np.ndarray,
    B: np.ndarray,
    at: np.ndarray,
    keep: float,
    n: float,
    mean: np.ndarray,
    J: np.ndarray,
    age: np.ndarray,
    before: np.ndarray,
) -> None:
    """Add a row of weight 1 to the moments of components z = Bᵀ x and of candidates, jointly.

    Parameters
    ----------
    values, slots
        (m,) values of the row, NaN where not observed, and the slots of their variables.
    place
        Slot -> place among the watched variables, -1 for one that is not watched.
    s
        How many variables are watched; the arrays of what is known of them have room for more, and
        so have those of the candidates.
    shift
        (s,) of each watched variable, what is taken off it; stands for a value not observed, too.
    B, at
        (s, q) loadings, and which h of the watched are candidates.
    keep, n
        What part of their weight the earlier rows keep, and what weight that leaves them.
    mean, J
        (q + h,), (q + h, q + h) means and sums of products of the q components and h candidates.
    age, before
        (h,) of each candidate, the weights of the rows since it became one and before.
    """
    q = B.shape[1]
    x = np.empty(s)
    for i in range(s):
        x[i] = -shift[i]
    for i in range(values.size):
        t = place[slots[i]]
        if t >= 0:
            x[t] = 0.0 if np.isnan(values[i]) else values[i] - shift[t]
    total = n + 1.0
    d = np.zeros(mean.size)
    for i in range(s):
        for k in range(q):
            d[k] += B[i, k] * x[i]
    for k in range(at.size):
        d[q + k] = x[at[k]]
        age[k] = keep * age[k] + 1.0
        before[k] *= keep
    for k in range(mean.size):
        d[k] -= mean[k]
        mean[k] += d[k] / total
    f = n / total
    for k in range(mean.size):
        e = f * d[k]
        for t in range(mean.size):
            J[k, t] = keep * J[k, t] + e * d[t]
