"""Joint moments of components and candidates, a row at a time."""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel

# Places in what `_jit.rows.learn_row` counts, as named there: a kernel that was cached would not
# follow a change in another file.
STEP, KEEP = 4, 5


@kernel()
def learn_joint(
    of_all: np.ndarray,
    values: np.ndarray,
    slots: np.ndarray,
    place: np.ndarray,
    s: int,
    shift: np.ndarray,
    B: np.ndarray,
    at: np.ndarray,
    weight: float,
    counts: np.ndarray,
    mean: np.ndarray,
    J: np.ndarray,
    age: np.ndarray,
    before: np.ndarray,
) -> None:
    """Add a row to the moments of components z = Bᵀ x and of candidates, jointly.

    Parameters
    ----------
    of_all
        What `_jit.rows.learn_row` counts: nothing is done unless it is the turn of this loop.
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
    weight
        How much the row counts, compared with 1 for any other.
    counts
        (2,) the weight of all rows, of which the newest has 1, and how many they are.
    mean, J
        (q + h,), (q + h, q + h) means and sums of products of the q components and h candidates.
    age, before
        (h,) of each candidate, the weights of the rows since it became one and before.
    """
    if of_all[STEP] != 0.0:
        return
    q = B.shape[1]
    # The row is taken for one of weight 1: what was before it is as much lighter.
    keep = of_all[KEEP] / weight
    n = counts[0] * keep
    x, d = np.empty(s), np.zeros(mean.size)
    for i in range(s):
        x[i] = -shift[i]
    for i in range(values.size):
        t = place[slots[i]]
        if t >= 0:
            x[t] = 0.0 if np.isnan(values[i]) else values[i] - shift[t]
    total = n + 1.0
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
    counts[0] = total
    counts[1] += 1.0
    if weight != 1.0:
        counts[0] *= weight
        for k in range(mean.size):
            for t in range(mean.size):
                J[k, t] *= weight
        for k in range(at.size):
            age[k] *= weight
            before[k] *= weight
    of_all[STEP] = 1.0
