"""Chatterjee's correlation of sorted columns.

Every column is computed by the same instructions at any position in a block.
"""

from __future__ import annotations

import numpy as np

from streamsel._kernels.compile import kernel


@kernel()
def _mean_distance(a: np.ndarray, b: np.ndarray) -> float:
    """Return the mean absolute difference of the values of two ascending arrays."""
    total = below = 0.0
    i = 0
    sum_a = 0.0
    for k in range(a.size):
        sum_a += a[k]
    for k in range(b.size):
        while i < a.size and a[i] <= b[k]:
            below += a[i]
            i += 1
        total += i * b[k] - below + (sum_a - below) - (a.size - i) * b[k]
    return total / (np.float64(a.size) * b.size)


@kernel()
def chatterjee(
    values: np.ndarray,
    order: np.ndarray,
    ranks: np.ndarray,
    scale: float,
    out: np.ndarray,
    weights: np.ndarray,
) -> None:
    """Fill Chatterjee's correlations, averaged over all orders of equal values.

    The average is 1 - scale Σ a_ij |r_i - r_j|, summed over pairs of samples: in a block of t equal
    values a_ij = 2 / t, between neighbouring blocks 1 / (t t'), for others 0.

    Parameters
    ----------
    values, order
        (b, n) columns as rows, each ascending, and the original indices; those of equal values
        are ascending.
    ranks
        (n,) number of target values not above that of each sample, ascending: samples are in the
        order of the target.
    scale
        Factor of the sum.
    out
        (b,) filled.
    weights
        (4, b) filled: the trace of A², the trace of A³, the sum of 1 / t of the first and the
        last block, and the sum of a_ij³ over pairs. A is the symmetric matrix of a_ij.
    """
    b, n = values.shape
    sorted_ranks = np.empty(n)
    for j in range(b):
        x, sample = values[j], order[j]
        for i in range(n):
            sorted_ranks[i] = ranks[sample[i]]
        total = squares = cubes = thirds = 0.0
        first = last = 0.0
        start = previous = 0
        while start < n:
            stop = start + 1
            while stop < n and x[stop] == x[start]:
                stop += 1
            size = stop - start
            # Eigenvalues of a block: `diagonal` for the constant vector, -2 / t for contrasts.
            reciprocal = 1.0 / size
            diagonal = 2.0 - 2.0 * reciprocal
            squares += 2.0 * diagonal
            cubes += diagonal**3 - 8.0 * (size - 1) * reciprocal**3
            thirds += 4.0 * (size - 1) * reciprocal**2
            if size > 1:
                # The sum within the block: 2 / t times the differences of its pairs.
                within = 0.0
                for i in range(size):
                    within += (2 * i - size + 1) * sorted_ranks[start + i]
                total += 2.0 * within / size
            if start:
                squares += 2.0 * reciprocal * last
                thirds += (reciprocal * last) ** 2
                cubes += 3.0 * (diagonal + (2.0 - 2.0 * last)) * reciprocal * last
                if size == 1 and start - previous == 1:
                    total += abs(sorted_ranks[start] - sorted_ranks[previous])
                else:
                    total += _mean_distance(sorted_ranks[previous:start], sorted_ranks[start:stop])
            else:
                first = reciprocal
            last = reciprocal
            previous, start = start, stop
        out[j] = 1.0 - scale * total
        weights[0, j], weights[1, j] = squares, cubes
        weights[2, j], weights[3, j] = first + last, thirds


@kernel()
def fill_sorted_zeros(
    values: np.ndarray,
    order: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    sorted_values: np.ndarray,
    sorted_order: np.ndarray,
) -> None:
    """Fill sorted dense columns from sorted stored values of sparse columns.

    Parameters
    ----------
    values, order
        The stored values of each column, ascending, and their indices within the column.
    indices, indptr
        Rows of the stored values, ascending within a column, and (b + 1,) where columns start.
    sorted_values, sorted_order
        (b, n) filled: the values of each column, ascending, and their rows; those of equal values
        are ascending.
    """
    n = sorted_values.shape[1]
    is_zero = np.ones(n, np.bool_)
    for j in range(indptr.size - 1):
        start, stop = indptr[j], indptr[j + 1]
        for i in range(start, stop):
            if values[i] != 0.0:
                is_zero[indices[start + order[i]]] = False
        position = 0
        i = start
        while i < stop and values[i] < 0.0:
            sorted_values[j, position], sorted_order[j, position] = (
                values[i],
                indices[start + order[i]],
            )
            position += 1
            i += 1
        for row in range(n):
            if is_zero[row]:
                sorted_values[j, position], sorted_order[j, position] = 0.0, row
                position += 1
            is_zero[row] = True
        while i < stop:
            if values[i] != 0.0:
                sorted_values[j, position], sorted_order[j, position] = (
                    values[i],
                    indices[start + order[i]],
                )
                position += 1
            i += 1
