"""Distribution of the sum of products of a vector of integers with a permuted one."""

from __future__ import annotations

import numpy as np

from streamsel._kernels.compile import kernel


@kernel()
def count_products(
    values: np.ndarray, sizes: np.ndarray, others: np.ndarray, counts: np.ndarray
) -> None:
    """Count the arrangements of the first vector by the sum of its products with the second.

    Parameters
    ----------
    values, sizes
        (k,) distinct values of the first vector, at least 0, and the number of each.
    others
        (n,) the second vector, at least 0; n is the sum of `sizes`.
    counts
        (product of sizes + 1, s) zeros, filled: row i for the elements that the digits of i count,
        of the last one with all n; column s for the sum s.
    """
    k = values.size
    used = np.zeros(k, np.int64)
    counts[0, 0] = 1.0
    for row in range(counts.shape[0] - 1):
        rest, n_used = row, 0
        for v in range(k):
            used[v] = rest % (sizes[v] + 1)
            rest //= sizes[v] + 1
            n_used += used[v]
        stride = 1
        for v in range(k):
            if used[v] < sizes[v]:
                shift = values[v] * others[n_used]
                for s in range(counts.shape[1] - shift):
                    counts[row + stride, s + shift] += counts[row, s]
            stride *= sizes[v] + 1
