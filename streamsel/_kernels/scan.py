"""First and second moments of columns, and products with the target, in one pass.

Every column is computed by the same instructions at any position in a block, so its moments are
bit-identical however the stream is divided. Columns are transposed, one per row, C-contiguous and
read-only.
"""

from __future__ import annotations

import numpy as np

from streamsel._kernels.compile import kernel

# Rows per tile with several targets: three columns of a tile stay in the second-level cache.
_TILE = 4096
# Columns, a multiple of three, that use a tile of Y before the next one is loaded.
_GROUP_COLUMNS = 48
# Unused numbers before an array that a loop of reordered sums writes. LLVM compiles such a loop
# twice, the second time for arrays within a few registers of each other, with another order of the
# sum: without padding, results would depend on memory addresses.
_UNUSED = 64
# The distance between the four columns that are summed together.
_COLUMN_DISTANCE = 31
# If less than this fraction of the sum of squares is left after cancellation, the column is summed
# again about its mean.
_CANCELLATION_RTOL = 1e-3
# Error bound of `relevance_upper_bound`: sums in another order differ by far less.
_UPPER_BOUND_ERROR = 1e-6
# Error bound of a relevance that is only counted: from the order of sums alone.
_SUM_ERROR = 1e-9
# Relevances are counted by octaves below 1, each with `BINS_PER_OCTAVE` equal bins.
OCTAVES, BINS_PER_OCTAVE = 12, 16
BINS = OCTAVES * BINS_PER_OCTAVE
# The bit of a float64 at which the number of its bin begins, and that number for the first bin.
_BIN_SHIFT, _FIRST = 48, (1023 - OCTAVES) * BINS_PER_OCTAVE
# Variation within this fraction of the mean is a rounding error.
ROUNDING_RTOL = 8.0 * 2.220446049250313e-16
# A sum of squares below this has lost digits to underflow.
UNDERFLOW = 1e-305
# With a mean above this the rounding error exceeds an underflow.
SMALL = 1e-138


@kernel()
def variation(m2: float, mean: float, n: int) -> float:
    """Return m2, or zero if it is within rounding of the mean or underflows."""
    rounding = ROUNDING_RTOL * abs(mean)
    if m2 <= n * rounding * rounding or m2 < UNDERFLOW:
        return 0.0
    return m2


@kernel()
def _checked_variation(v: float, mean: float, n: int, x: np.ndarray) -> float:
    """Return `variation`, or NaN if the column varies by too little to be represented in m2.

    x has the stored values of the column; all others are 0.
    """
    m2 = variation(v, mean, n)
    if m2 == 0.0 and abs(mean) < SMALL:
        first = np.float64(x[0]) if x.size == n else 0.0
        # The column is nearly always constant, which is a fast check.
        others = 0
        for i in range(x.size):
            others += np.float64(x[i]) != first
        for i in range(x.size if others else 0):
            if abs(np.float64(x[i]) - first) > ROUNDING_RTOL * abs(mean):
                return np.nan
    return m2


@kernel()
def _two_sum(a: float, b: float) -> tuple[float, float]:
    """Return a + b, rounded, and its rounding error (Knuth). Its sums must not be reordered."""
    whole = a + b
    from_b = whole - a
    return whole, (a - (whole - from_b)) + (b - from_b)


@kernel(reordered_sums=True)
def _about(
    x: np.ndarray, shift: float, Y: np.ndarray, cxy: np.ndarray
) -> tuple[float, float, float]:
    """Sum one column again about a shift near its mean; fill cxy, return (mean, low, m2)."""
    n = x.shape[0]
    s = 0.0
    ss = 0.0
    for i in range(n):
        d = np.float64(x[i]) - shift
        s += d
        ss += d * d
    for k in range(min(cxy.shape[0], Y.shape[0])):
        a = 0.0
        for i in range(n):
            a += (np.float64(x[i]) - shift) * Y[k, i]
        cxy[k] = a
    mean, low = _two_sum(shift, s / n)
    return mean, low, ss - s * s / n


@kernel(reordered_sums=True)
def _sums_of_four(
    x0: np.ndarray,
    x1: np.ndarray,
    x2: np.ndarray,
    x3: np.ndarray,
    y: np.ndarray,
    out: np.ndarray,
) -> None:
    """Fill out (4, 3) with the sums, the sums of squares and the products with y of four columns.

    Each is about its column's first value. The loop is unrolled by hand, so that the twelve sums
    stay in registers and y is loaded once for four columns.
    """
    shift0, shift1 = np.float64(x0[0]), np.float64(x1[0])
    shift2, shift3 = np.float64(x2[0]), np.float64(x3[0])
    s0 = 0.0
    s1 = 0.0
    s2 = 0.0
    s3 = 0.0
    ss0 = 0.0
    ss1 = 0.0
    ss2 = 0.0
    ss3 = 0.0
    a0 = 0.0
    a1 = 0.0
    a2 = 0.0
    a3 = 0.0
    for i in range(y.size):
        d0 = np.float64(x0[i]) - shift0
        d1 = np.float64(x1[i]) - shift1
        d2 = np.float64(x2[i]) - shift2
        d3 = np.float64(x3[i]) - shift3
        s0 += d0
        s1 += d1
        s2 += d2
        s3 += d3
        ss0 += d0 * d0
        ss1 += d1 * d1
        ss2 += d2 * d2
        ss3 += d3 * d3
        a0 += d0 * y[i]
        a1 += d1 * y[i]
        a2 += d2 * y[i]
        a3 += d3 * y[i]
    out[0, 0], out[0, 1], out[0, 2] = s0, ss0, a0
    out[1, 0], out[1, 1], out[1, 2] = s1, ss1, a1
    out[2, 0], out[2, 1], out[2, 2] = s2, ss2, a2
    out[3, 0], out[3, 1], out[3, 2] = s3, ss3, a3


@kernel()
def _scan_one_target(
    X: np.ndarray,
    Y: np.ndarray,
    mean: np.ndarray,
    low: np.ndarray,
    m2: np.ndarray,
    cxy: np.ndarray,
) -> None:
    """Fill the moments with one target column, four columns at a time, at memory bandwidth.

    The four are some distance apart, so that each is read sequentially over many columns, which
    suits the hardware prefetcher. The first column pads an incomplete group, so that every column
    is computed by the same instructions.
    """
    b, n = X.shape
    sums = np.empty((4, 3))
    for start in range(0, b, 4 * _COLUMN_DISTANCE):
        stop = min(start + 4 * _COLUMN_DISTANCE, b)
        distance = -(-(stop - start) // 4)
        for first in range(start, start + distance):
            second, third, fourth = first + distance, first + 2 * distance, first + 3 * distance
            _sums_of_four(
                X[first],
                X[second if second < stop else first],
                X[third if third < stop else first],
                X[fourth if fourth < stop else first],
                Y[0],
                sums,
            )
            for u in range(4):
                j = first + u * distance
                if j < stop:
                    s = sums[u, 0]
                    ss = sums[u, 1]
                    mean[j], low[j] = _two_sum(np.float64(X[j, 0]), s / n)
                    v = ss - s * s / n
                    cxy[j, 0] = sums[u, 2]
                    if v < _CANCELLATION_RTOL * ss:
                        mean[j], low[j], v = _about(X[j], mean[j], Y, cxy[j])
                    if cxy.shape[1] == 2:
                        cxy[j, 1] = -cxy[j, 0]
                    m2[j] = _checked_variation(v, mean[j], n, X[j])


@kernel(reordered_sums=True)
def _dots(D: np.ndarray, Y: np.ndarray, k: int, start: int, size: int, out: np.ndarray) -> None:
    """Add to out (3, c') the dot products of three columns with targets k to k + 3.

    The loop is unrolled by hand, so that the twelve sums, three columns and a target stay in
    sixteen registers: seven loads for twelve products, where one column with one target takes two
    loads for one.
    """
    d0, d1, d2 = D[0, :size], D[1, :size], D[2, :size]
    t0, t1 = Y[k, start : start + size], Y[k + 1, start : start + size]
    t2, t3 = Y[k + 2, start : start + size], Y[k + 3, start : start + size]
    a00 = 0.0
    a01 = 0.0
    a02 = 0.0
    a03 = 0.0
    a10 = 0.0
    a11 = 0.0
    a12 = 0.0
    a13 = 0.0
    a20 = 0.0
    a21 = 0.0
    a22 = 0.0
    a23 = 0.0
    for i in range(size):
        x0, x1, x2 = d0[i], d1[i], d2[i]
        y0, y1, y2, y3 = t0[i], t1[i], t2[i], t3[i]
        a00 += x0 * y0
        a10 += x1 * y0
        a20 += x2 * y0
        a01 += x0 * y1
        a11 += x1 * y1
        a21 += x2 * y1
        a02 += x0 * y2
        a12 += x1 * y2
        a22 += x2 * y2
        a03 += x0 * y3
        a13 += x1 * y3
        a23 += x2 * y3
    out[0, k + 0] += a00
    out[0, k + 1] += a01
    out[0, k + 2] += a02
    out[0, k + 3] += a03
    out[1, k + 0] += a10
    out[1, k + 1] += a11
    out[1, k + 2] += a12
    out[1, k + 3] += a13
    out[2, k + 0] += a20
    out[2, k + 1] += a21
    out[2, k + 2] += a22
    out[2, k + 3] += a23


@kernel(reordered_sums=True)
def _centre(x: np.ndarray, shift: float, d: np.ndarray, sums: np.ndarray) -> None:
    """Fill d with x about its shift, and add its sum and sum of squares to sums (2,)."""
    s = 0.0
    ss = 0.0
    for i in range(x.size):
        v = np.float64(x[i]) - shift
        d[i] = v
        s += v
        ss += v * v
    sums[0] += s
    sums[1] += ss


@kernel()
def _scan_many_targets(
    X: np.ndarray,
    Y: np.ndarray,
    mean: np.ndarray,
    low: np.ndarray,
    m2: np.ndarray,
    cxy: np.ndarray,
) -> None:
    """Fill the moments with several target columns, three columns and four targets at a time.

    The last column pads an incomplete group, so that every column is computed by the same
    instructions.
    """
    b, n = X.shape
    tile = min(_TILE, n)
    unused = _UNUSED // tile + 1
    D = np.empty((unused + 3, tile))[unused:]
    dots = np.empty((_GROUP_COLUMNS, Y.shape[0]))
    sums = np.empty((_GROUP_COLUMNS, 2))
    for first in range(0, b, _GROUP_COLUMNS):
        last = min(first + _GROUP_COLUMNS, b)
        dots[:] = 0.0
        sums[:] = 0.0
        for start in range(0, n, _TILE):
            size = min(_TILE, n - start)
            for j in range(0, last - first, 3):
                for u in range(3):
                    x = X[min(first + j + u, last - 1)]
                    shift = np.float64(x[0])
                    _centre(x[start : start + size], shift, D[u, :size], sums[j + u])
                for k in range(0, Y.shape[0], 4):
                    _dots(D, Y, k, start, size, dots[j : j + 3])
        for j in range(first, last):
            s, ss = sums[j - first]
            mean[j], low[j] = _two_sum(np.float64(X[j, 0]), s / n)
            v = ss - s * s / n
            for k in range(cxy.shape[1]):
                cxy[j, k] = dots[j - first, k]
            if v < _CANCELLATION_RTOL * ss:
                mean[j], low[j], v = _about(X[j], mean[j], Y, cxy[j])
            m2[j] = _checked_variation(v, mean[j], n, X[j])


@kernel()
def scan_dense(
    X: np.ndarray,
    Y: np.ndarray,
    mean: np.ndarray,
    low: np.ndarray,
    m2: np.ndarray,
    cxy: np.ndarray,
) -> None:
    """Fill the moments of dense columns.

    Parameters
    ----------
    X
        (b, n) columns as rows, float64, float32, int8 or uint8, read in place.
    Y
        (c', n) centred target columns; one, or padded with zero rows to a multiple of four. One is
        enough for two classes, c = 2: the second is the first, negated.
    mean, low, m2, cxy
        (b,), (b,), (b,), (b, c) filled; low is the rounding error of the mean. m2 is 0.0 for a
        constant column, and not finite if a value is not, or the squares overflow or underflow.
    """
    if Y.shape[0] == 1:
        _scan_one_target(X, Y, mean, low, m2, cxy)
    else:
        _scan_many_targets(X, Y, mean, low, m2, cxy)


@kernel()
def _bin(bits: int) -> int:
    """Return the bin of the relevance with these bits; BINS for a negative one.

    The bin is given by the exponent and leading digits. The first one has all smaller values too,
    and the last one 1.
    """
    index = (bits >> _BIN_SHIFT) - _FIRST
    # min and max would take longer.
    index = BINS - 1 if index >= BINS else index
    index = 0 if index < 0 else index  # noqa: FURB136
    return BINS if bits < 0 else index


@kernel()
def count_relevances(
    relevance: np.ndarray, before: int, step: int, rows: np.ndarray, last: np.ndarray
) -> int:
    """Count relevances (p,) by arrival and relevance; negative ones are not counted.

    Parameters
    ----------
    relevance
        (p,) relevances.
    before
        How many columns of the last bin of arrival came before these.
    step
        How many columns a bin of arrival has.
    rows
        (a, b) filled: the full bins of arrival.
    last
        (b,) the last bin of arrival; updated.

    Returns
    -------
    How many bins of arrival are full.
    """
    bits = relevance.view(np.int64)
    cells = np.zeros(BINS + 1, dtype=np.int64)
    for k in range(BINS):
        cells[k] = last[k]
    row = 0
    start = min(bits.size, step - before)
    for j in range(start):
        cells[np.uint64(_bin(bits[j]))] += 1
    while start < bits.size:
        for k in range(BINS):
            rows[row, k] = cells[k]
            cells[k] = 0
        row += 1
        stop = min(bits.size, start + step)
        for j in range(start, stop):
            cells[np.uint64(_bin(bits[j]))] += 1
        start = stop
    for k in range(BINS):
        last[k] = cells[k]
    return row


@kernel(reordered_sums=True)
def relevance_upper_bound(x: np.ndarray, Y: np.ndarray, W: np.ndarray) -> float:
    """Return an upper bound of the relevance of one column, about `_UPPER_BOUND_ERROR` above it.

    Infinity if a full scan is needed: for a column that is constant, nearly so, or not finite.

    Parameters
    ----------
    x
        (n,) the column.
    Y, W
        (c', n) centred target columns, and (r, c) the weights of their space.
    """
    n = x.shape[0]
    shift = x[0]
    s = 0.0
    ss = 0.0
    for i in range(n):
        d = x[i] - shift
        s += d
        ss += d * d
    v = ss - s * s / n
    if not (_CANCELLATION_RTOL * ss <= v < np.inf and ss > UNDERFLOW / _CANCELLATION_RTOL):
        return np.inf
    if variation(0.5 * v, shift + s / n, n) == 0.0:
        return np.inf
    cxy = np.empty(W.shape[1])
    for k in range(cxy.size):
        y = Y[k]
        a = 0.0
        for i in range(n):
            a += (x[i] - shift) * y[i]
        cxy[k] = a
    square = 0.0
    for row in W:
        a = 0.0
        for k in range(cxy.size):
            a += row[k] * cxy[k]
        square += a * a
    return np.sqrt(square / v) + _UPPER_BOUND_ERROR


@kernel()
def relevance_bin_if_below(x: np.ndarray, Y: np.ndarray, W: np.ndarray, threshold: float) -> int:
    """Return the bin of the relevance of a column if it is clearly below a threshold.

    -1 if either is uncertain; x, Y and W are as in `relevance_upper_bound`.
    """
    bound = relevance_upper_bound(x, Y, W)
    if not bound < threshold:
        return -1
    relevance = bound - _UPPER_BOUND_ERROR
    lowest_bin = _bin(np.float64(max(0.0, relevance - _SUM_ERROR)).view(np.int64))
    return (
        lowest_bin if _bin(np.float64(relevance + _SUM_ERROR).view(np.int64)) == lowest_bin else -1
    )


@kernel(reordered_sums=True)
def _rescan_as_dense(
    data: np.ndarray,
    indices: np.ndarray,
    start: int,
    stop: int,
    Y: np.ndarray,
    mean: float,
    cxy: np.ndarray,
) -> tuple[float, float, float]:
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
    low: np.ndarray,
    m2: np.ndarray,
    cxy: np.ndarray,
) -> bool:
    # Unsigned indices save numba a check for negative ones, which takes a third of the time.
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
        mean[j], low[j] = s / n, 0.0
        v = ss - s * s / n
        if v < _CANCELLATION_RTOL * ss:
            mean[j], low[j], v = _rescan_as_dense(data, indices, start, stop, Y, mean[j], cxy[j])
        if cxy.shape[1] == 2:
            cxy[j, 1] = -cxy[j, 0]
        m2[j] = _checked_variation(v, mean[j], n, data[start:stop])
    return True


@kernel(reordered_sums=True)
def _sparse_many_targets(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    Y: np.ndarray,
    YT: np.ndarray,
    mean: np.ndarray,
    low: np.ndarray,
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
        mean[j], low[j] = s / n, 0.0
        v = ss - s * s / n
        if v < _CANCELLATION_RTOL * ss:
            mean[j], low[j], v = _rescan_as_dense(data, indices, start, stop, Y, mean[j], cxy[j])
        m2[j] = _checked_variation(v, mean[j], n, data[start:stop])
    return True


@kernel()
def scan_sparse(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    Y: np.ndarray,
    YT: np.ndarray,
    mean: np.ndarray,
    low: np.ndarray,
    m2: np.ndarray,
    cxy: np.ndarray,
) -> bool:
    """Fill the moments of sparse columns, in time proportional to the stored values.

    Parameters
    ----------
    data, indices, indptr
        CSC arrays; indptr may start anywhere. Row indices must ascend strictly within a column.
    Y, YT
        The centred target (c', n), as in `scan_dense`, and its transpose (n, c'), both
        C-contiguous.
    mean, low, m2, cxy
        As in `scan_dense`.

    Returns
    -------
    Whether every row index was in range and in order; if not, the results are invalid.
    """
    if Y.shape[0] == 1:
        return _sparse_one_target(data, indices, indptr, Y, mean, low, m2, cxy)
    return _sparse_many_targets(data, indices, indptr, Y, YT, mean, low, m2, cxy)
