"""Orthonormal bases of the spans of many small groups of columns."""

from __future__ import annotations

import numpy as np

from streamsel._kernels.compile import kernel


@kernel(reordered_sums=True)
def _dot(a: np.ndarray, b: np.ndarray) -> float:
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@kernel(reordered_sums=True)
def _dots_of_four(
    x: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray
) -> tuple[float, float, float, float]:
    """Return the dot products of x with four vectors; x is loaded once."""
    s0 = 0.0
    s1 = 0.0
    s2 = 0.0
    s3 = 0.0
    for i in range(x.size):
        s0 += x[i] * a[i]
        s1 += x[i] * b[i]
        s2 += x[i] * c[i]
        s3 += x[i] * d[i]
    return s0, s1, s2, s3


@kernel()
def group_products(X: np.ndarray, starts: np.ndarray, largest: int, out: np.ndarray) -> None:
    """Fill the inner products of the columns of each group.

    Parameters
    ----------
    X
        (b, n) columns, one per row.
    starts
        (g + 1,) index of the first column of each group, and b.
    largest
        Groups of more columns are left out.
    out
        Filled: the (m, m) products of each group of m columns, one group after the other.
    """
    offset = 0
    for g in range(starts.size - 1):
        first, m = starts[g], starts[g + 1] - starts[g]
        for i in range(m if m <= largest else 0):
            x, j = X[first + i], 0
            while j + 3 <= i:
                four = _dots_of_four(
                    x, X[first + j], X[first + j + 1], X[first + j + 2], X[first + j + 3]
                )
                for k in range(4):
                    out[offset + i * m + j + k] = four[k]
                j += 4
            while j <= i:
                out[offset + i * m + j] = _dot(x, X[first + j])
                j += 1
            for j in range(i):
                out[offset + j * m + i] = out[offset + i * m + j]
        offset += m * m


@kernel()
def sparse_group_products(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    starts: np.ndarray,
    means: np.ndarray,
    n: int,
    out: np.ndarray,
) -> None:
    """Fill the inner products of the centred columns of each group, in time of stored values.

    Parameters
    ----------
    data, indices, indptr
        The columns in CSC format.
    starts, out
        As in `group_products`.
    means
        (b,) means of the columns.
    n
        Number of rows.
    """
    dense = np.zeros(n)
    offset = 0
    for g in range(starts.size - 1):
        first, m = starts[g], starts[g + 1] - starts[g]
        for i in range(m):
            a = first + i
            for t in range(indptr[a], indptr[a + 1]):
                dense[indices[t]] = data[t]
            for j in range(i, m):
                b = first + j
                total = 0.0
                for t in range(indptr[b], indptr[b + 1]):
                    total += dense[indices[t]] * data[t]
                total -= n * means[a] * means[b]
                out[offset + i * m + j] = total
                out[offset + j * m + i] = total
            for t in range(indptr[a], indptr[a + 1]):
                dense[indices[t]] = 0.0
        offset += m * m


@kernel()
def scale_products(R: np.ndarray, starts: np.ndarray, scale: np.ndarray, A: np.ndarray) -> None:
    """Turn the inner products of each group's columns into correlations given covariates, in place.

    Parameters
    ----------
    R, starts
        As in `factor_groups`.
    scale
        (b,) factors of the columns; 0 for one that does not vary.
    A
        (b, d) coordinates of the scaled columns in the covariates' span.
    """
    offset = 0
    for g in range(starts.size - 1):
        first, m = starts[g], starts[g + 1] - starts[g]
        for i in range(m):
            for j in range(m):
                total = R[offset + i * m + j] * scale[first + i] * scale[first + j]
                for k in range(A.shape[1]):
                    total -= A[first + i, k] * A[first + j, k]
                R[offset + i * m + j] = total
            R[offset + i * m + i] = 1.0 if scale[first + i] > 0.0 else 0.0
        offset += m * m


@kernel()
def factor_groups(
    R: np.ndarray,
    starts: np.ndarray,
    G: np.ndarray,
    tolerance: float,
    rank: np.ndarray,
    order: np.ndarray,
    C: np.ndarray,
    weights: np.ndarray,
) -> int:
    """Orthonormalise each group by pivoted Cholesky of its correlations; return all ranks' sum.

    Axis s of a group is column `order[s]` without the part that the axes before it explain, of
    length 1. A column whose residual square is at most `tolerance` adds no axis.

    Parameters
    ----------
    R
        The (m, m) inner products of each group's columns of length 1, one group after the other;
        those of a column of length 0 are 0. Overwritten.
    starts
        (g + 1,) index of the first column of each group, and their number.
    G
        (b, r) coordinates of the columns.
    tolerance
        Largest residual square that counts as 0.
    rank
        (g,) filled: the number of axes of each group.
    order
        (b,) filled: the columns of the axes, by index, one group after the other.
    C
        (b, r) filled: the coordinates of the axes, one group after the other.
    weights
        Filled with the weights of a group's columns in each of its axes, (rank, m), one group
        after the other, unless of size 0.
    """
    r = G.shape[1]
    offset, axis, weight_offset = 0, 0, 0
    for g in range(starts.size - 1):
        first, m = starts[g], starts[g + 1] - starts[g]
        left = np.empty(m)
        L = np.zeros((m, m))
        for i in range(m):
            left[i] = R[offset + i * m + i]
        first_axis = axis
        for s in range(m):
            pivot = 0
            for i in range(1, m):
                if left[i] > left[pivot]:
                    pivot = i
            if not left[pivot] > tolerance:
                break
            root = np.sqrt(left[pivot])
            for i in range(m):
                total = R[offset + i * m + pivot]
                for t in range(s):
                    total -= L[i, t] * L[pivot, t]
                L[i, s] = total / root
            L[pivot, s] = root
            for i in range(m):
                left[i] -= L[i, s] * L[i, s]
            for t in range(s + 1):
                left[order[first_axis + t] - first if t < s else pivot] = -1.0
            order[axis] = first + pivot
            for k in range(r):
                total = G[first + pivot, k]
                for t in range(s):
                    total -= L[pivot, t] * C[first_axis + t, k]
                C[axis, k] = total / root
            if weights.size:
                row = weight_offset + s * m
                for i in range(m):
                    total = 1.0 if i == pivot else 0.0
                    for t in range(s):
                        total -= L[pivot, t] * weights[weight_offset + t * m + i]
                    weights[row + i] = total / root
            axis += 1
        rank[g] = axis - first_axis
        offset += m * m
        weight_offset += (axis - first_axis) * m
    return axis


@kernel()
def orthonormalize_rows(
    X: np.ndarray, order: np.ndarray, axis_starts: np.ndarray, largest: int, Q: np.ndarray
) -> None:
    """Fill Q with the axes of groups, by Gram-Schmidt of their columns in a given order, twice.

    Parameters
    ----------
    X
        (b, n) columns, one per row.
    order, axis_starts
        (a,) the column of each axis, and (g + 1,) the first axis of each group, and a.
    largest
        Groups of more axes are left out.
    Q
        (a, n) filled.
    """
    n = X.shape[1]
    for g in range(axis_starts.size - 1):
        first, last = axis_starts[g], axis_starts[g + 1]
        for s in range(first, last if last - first <= largest else first):
            q, x = Q[s], X[order[s]]
            for i in range(n):
                q[i] = x[i]
            for _ in range(2):
                for t in range(first, s):
                    other = Q[t]
                    dot = _dot(other, q)
                    for i in range(n):
                        q[i] -= dot * other[i]
                root = np.sqrt(_dot(q, q))
                for i in range(n):
                    q[i] /= root


@kernel()
def squares_of_groups(C: np.ndarray, axis_starts: np.ndarray, out: np.ndarray) -> None:
    """Fill out (g,) with the sums of squares of each group's rows of C (a, r)."""
    for g in range(out.size):
        total = 0.0
        for s in range(axis_starts[g], axis_starts[g + 1]):
            for k in range(C.shape[1]):
                total += C[s, k] * C[s, k]
        out[g] = total
