"""Joint moments of components and candidate variables, updated by single rows."""

from __future__ import annotations

import numpy as np

from streamsel._kernels.compile import kernel

# Indices in the counts of `row_moments.learn_row`, repeated here because a cached kernel would not
# be recompiled after a change in another file.
STEP, KEEP = 4, 5


@kernel()
def learn_joint(
    row_counts: np.ndarray,
    values: np.ndarray,
    indices: np.ndarray,
    tracked_index: np.ndarray,
    s: int,
    shift: np.ndarray,
    B: np.ndarray,
    candidates: np.ndarray,
    weight: float,
    counts: np.ndarray,
    mean: np.ndarray,
    J: np.ndarray,
    age: np.ndarray,
    before: np.ndarray,
) -> None:
    """Add a row to the joint moments of components z = Bᵀ x and of candidates.

    Parameters
    ----------
    row_counts
        The counts of `row_moments.learn_row`: nothing is done unless it is this kernel's turn.
    values, indices
        (m,) values of the row, NaN if missing, and the state indices of their variables.
    tracked_index
        (index in the state) -> index among the tracked variables, -1 for one that is not tracked.
    s
        Number of tracked variables; their arrays, and those of the candidates, may be longer.
    shift
        (s,) subtracted from the values of each tracked variable; replaces a missing value.
    B, candidates
        (s, q) loadings, and the indices of the h candidates among the tracked variables.
    weight
        Weight of the row, compared with 1 for any other.
    counts
        (2,) the weight of all rows, in units of the newest row's, and their number.
    mean, J
        (q + h,), (q + h, q + h) means and sums of products of the q components and h candidates.
    age, before
        (h,) for each candidate, the weights of the rows since it became one, and of those before.
    """
    if row_counts[STEP] != 0.0:
        return
    q = B.shape[1]
    # The row has weight 1: the weights of the rows before it are divided by its weight.
    keep = row_counts[KEEP] / weight
    n = counts[0] * keep
    x, d = np.empty(s), np.zeros(mean.size)
    for i in range(s):
        x[i] = -shift[i]
    for i in range(values.size):
        t = tracked_index[indices[i]]
        if t >= 0:
            x[t] = 0.0 if np.isnan(values[i]) else values[i] - shift[t]
    total = n + 1.0
    for i in range(s):
        for k in range(q):
            d[k] += B[i, k] * x[i]
    for k in range(candidates.size):
        d[q + k] = x[candidates[k]]
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
        for k in range(candidates.size):
            age[k] *= weight
            before[k] *= weight
    row_counts[STEP] = 1.0
