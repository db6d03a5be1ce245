"""First and second moments of columns, of themselves and with the target, in one pass.

 Every column is computed by the same instructions wherever it stands in a block, so its moments
have the same bits however the stream is cut. Columns arrive transposed, one a row, C-contiguous and
read-only.
"""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel

# A Y tile of this many numbers (256 KiB) stays in the second-level cache while columns pass it.
_TILE = 32_768
# So many columns pass a tile of Y before the next one is fetched.
_GROUP = 32
# Where more than this part of the sum of squares cancels, the column is summed again about its
# mean.
_CANCELLED = 1e-3
# Variation within this many roundings of the mean is no variation.
_ROUNDINGS = 8.0 * 2.220446049250313e-16
# Below this a sum of squares has lost digits to underflow.
_UNDERFLOW = 1e-305


@kernel()
def variation(m2: float, mean: float, n: int) -> float:
    """Return m2, or zero where it is no more than rounding of the mean or underflow."""
    rounding = _ROUNDINGS * abs(mean)
    if m2 <= n * rounding * rounding or m2 < _UNDERFLOW:
        return 0.0
    return m2


@kernel(reordered_sums=True)
def _about(x: np.ndarray, shift: float, Y: np.ndarray, cxy: np.ndarray) -> tuple[float, float]:
    """Sum one column again about a shift near its mean; fill cxy, return (mean, m2)."""
    n = x.shape[0]
    s = 0.0
    ss = 0.0
    for i in range(n):
        d = np.float64(x[i]) - shift
        s += d
        ss += d * d
    for k in range(cxy.shape[0]):
        a = 0.0
        for i in range(n):
            a += (np.float64(x[i]) - shift) * Y[k, i]
        cxy[k] = a
    return shift + s / n, ss - s * s / n


@kernel(reordered_sums=True)
def _scan_one_target(
    X: np.ndarray, Y: np.ndarray, mean: np.ndarray, m2: np.ndarray, cxy: np.ndarray
) -> None:
    """One target column: three sums in one loop, at the speed of memory."""
    b, n = X.shape
    y = Y[0]
    for j in range(b):
        shift = np.float64(X[j, 0])
        s = 0.0
        ss = 0.0
        a = 0.0
        for i in range(n):
            d = np.float64(X[j, i]) - shift
            s += d
            ss += d * d
            a += d * y[i]
        mean[j] = shift + s / n
        v = ss - s * s / n
        cxy[j, 0] = a
        if v < _CANCELLED * ss:
            mean[j], v = _about(X[j], mean[j], Y, cxy[j])
        m2[j] = variation(v, mean[j], n)


@kernel(reordered_sums=True)
def _eight_dots(
    d: np.ndarray,
    e: np.ndarray,
    y0: np.ndarray,
    y1: np.ndarray,
    y2: np.ndarray,
    y3: np.ndarray,
) -> tuple[float, float, float, float, float, float, float, float]:
    """Dot products of two columns with four targets: six loads for eight sums."""
    a0 = 0.0
    a1 = 0.0
    a2 = 0.0
    a3 = 0.0
    b0 = 0.0
    b1 = 0.0
    b2 = 0.0
    b3 = 0.0
    for i in range(d.size):
        u = d[i]
        v = e[i]
        a0 += u * y0[i]
        a1 += u * y1[i]
        a2 += u * y2[i]
        a3 += u * y3[i]
        b0 += v * y0[i]
        b1 += v * y1[i]
        b2 += v * y2[i]
        b3 += v * y3[i]
    return a0, a1, a2, a3, b0, b1, b2, b3


@kernel(reordered_sums=True)
def _scan_many_targets(
    X: np.ndarray, Y: np.ndarray, mean: np.ndarray, m2: np.ndarray, cxy: np.ndarray
) -> None:
    """Several target columns: two columns against four targets at a time, as a matrix product does.

    An odd last column is paired with itself, so that it meets the very same instructions.
    """
    b, n = X.shape
    c = cxy.shape[1]
    tile = max(64, _TILE // max(1, Y.shape[0]))
    D = np.empty((2, min(tile, n)))
    dots = np.empty((_GROUP, Y.shape[0]))
    sums = np.empty((_GROUP, 2))
    for first in range(0, b, _GROUP):
        last = min(first + _GROUP, b)
        dots[:] = 0.0
        sums[:] = 0.0
        for start in range(0, n, tile):
            stop = min(start + tile, n)
            for j in range(first, last, 2):
                mate = min(j + 1, last - 1)
                for which in range(2):
                    column = mate if which else j
                    # Slices, not X[column, start + i]: the loop is vectorised only where numba need
                    # not ask whether an index is negative.
                    x = X[column, start:stop]
                    d = D[which, : x.size]
                    shift = np.float64(X[column, 0])
                    s = 0.0
                    ss = 0.0
                    for i in range(x.size):
                        v = np.float64(x[i]) - shift
                        d[i] = v
                        s += v
                        ss += v * v
                    if which == 0 or mate != j:
                        sums[column - first, 0] += s
                        sums[column - first, 1] += ss
                d = D[0, : stop - start]
                e = D[1, : stop - start]
                for k in range(0, Y.shape[0], 4):
                    four_by_two = _eight_dots(
                        d,
                        e,
                        Y[k, start:stop],
                        Y[k + 1, start:stop],
                        Y[k + 2, start:stop],
                        Y[k + 3, start:stop],
                    )
                    for t in range(4):
                        dots[j - first, k + t] += four_by_two[t]
                        if mate != j:
                            dots[mate - first, k + t] += four_by_two[4 + t]
        for j in range(first, last):
            s = sums[j - first, 0]
            ss = sums[j - first, 1]
            mean[j] = np.float64(X[j, 0]) + s / n
            v = ss - s * s / n
            cxy[j] = dots[j - first, :c]
            if v < _CANCELLED * ss:
                mean[j], v = _about(X[j], mean[j], Y, cxy[j])
            m2[j] = variation(v, mean[j], n)


@kernel()
def scan_dense(
    X: np.ndarray, Y: np.ndarray, mean: np.ndarray, m2: np.ndarray, cxy: np.ndarray
) -> None:
    """Moments of dense columns.

    Parameters
    ----------
    X
        (b, n) columns as rows, float64, float32, int8 or uint8, read in place.
    Y
        (c', n) centred target columns; one, or zero rows up to a multiple of four.
    mean, m2, cxy
        (b,), (b,), (b, c) filled. m2 is 0.0 for a constant column, not finite where a value is not
        finite or the squares overflow.
    """
    if Y.shape[0] == 1:
        _scan_one_target(X, Y, mean, m2, cxy)
    else:
        _scan_many_targets(X, Y, mean, m2, cxy)


@kernel(reordered_sums=True)
def _dense_again(
    data: np.ndarray,
    indices: np.ndarray,
    start: int,
    stop: int,
    Y: np.ndarray,
    mean: float,
    cxy: np.ndarray,
) -> tuple[float, float]:
    """Sum one sparse column again about its mean, as a dense one."""
    x = np.zeros(Y.shape[1])
    for t in range(start, stop):
        x[indices[t]] = data[t]
    return _about(x, mean, Y, cxy)


@kernel(reordered_sums=True)
def _sparse_one_target(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    Y: np.ndarray,
    mean: np.ndarray,
    m2: np.ndarray,
    cxy: np.ndarray,
) -> bool:
    # Unsigned indices: numba need not ask whether they are negative, which costs a third of the
    # time.
    n, y = np.uint64(Y.shape[1]), Y[0]
    for j in range(indptr.size - 1):
        start, stop = np.uint64(indptr[j]), np.uint64(indptr[j + 1])
        s = 0.0
        ss = 0.0
        a = 0.0
        before = np.int64(-1)
        in_order = True
        for t in range(start, stop):
            row = np.int64(indices[t])
            if row <= before:
                in_order = False
            before = row
            v = np.float64(data[t])
            s += v
            ss += v * v
            if np.uint64(row) >= n:
                return False
            a += v * y[np.uint64(row)]
        if not in_order:
            return False
        cxy[j, 0] = a
        mean[j] = s / n
        v = ss - s * s / n
        if v < _CANCELLED * ss:
            mean[j], v = _dense_again(data, indices, start, stop, Y, mean[j], cxy[j])
        m2[j] = variation(v, mean[j], n)
    return True


@kernel(reordered_sums=True)
def _sparse_many_targets(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    Y: np.ndarray,
    YT: np.ndarray,
    mean: np.ndarray,
    m2: np.ndarray,
    cxy: np.ndarray,
) -> bool:
    n, c = np.uint64(Y.shape[1]), cxy.shape[1]
    for j in range(indptr.size - 1):
        start, stop = np.uint64(indptr[j]), np.uint64(indptr[j + 1])
        s = 0.0
        ss = 0.0
        before = np.int64(-1)
        cxy[j] = 0.0
        for t in range(start, stop):
            row = np.int64(indices[t])
            if row <= before or np.uint64(row) >= n:
                return False
            before = row
            v = np.float64(data[t])
            s += v
            ss += v * v
            y = YT[np.uint64(row)]
            for k in range(c):
                cxy[j, k] += v * y[k]
        mean[j] = s / n
        v = ss - s * s / n
        if v < _CANCELLED * ss:
            mean[j], v = _dense_again(data, indices, start, stop, Y, mean[j], cxy[j])
        m2[j] = variation(v, mean[j], n)
    return True


@kernel()
def scan_sparse(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    Y: np.ndarray,
    YT: np.ndarray,
    mean: np.ndarray,
    m2: np.ndarray,
    cxy: np.ndarray,
) -> bool:
    """Moments of sparse columns, in time proportional to what they store.

    Parameters
    ----------
    data, indices, indptr
        CSC parts; indptr may start anywhere. Row indices must ascend strictly within a column.
    Y, YT
        The centred target (c', n) and its transpose (n, c'), both C-contiguous.
    mean, m2, cxy
        As in `scan_dense`.

    Returns
    -------
    Whether every row index was in range and in order; if not, what was filled is void.
    """
    if cxy.shape[1] == 1:
        return _sparse_one_target(data, indices, indptr, Y, mean, m2, cxy)
    return _sparse_many_targets(data, indices, indptr, Y, YT, mean, m2, cxy)
