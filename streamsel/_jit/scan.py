"""First and second moments of columns, of themselves and with the target, in one pass.

 Every column is computed by the same instructions wherever it stands in a block, so its moments
have the same bits however the stream is cut. Columns arrive transposed, one a row, C-contiguous and
read-only.
"""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel

# Of several targets so many rows at a time: three columns of a tile stay in the second-level cache.
_TILE = 4096
# So many columns, a multiple of three, pass a tile of Y before the next one is fetched.
_GROUP = 48
# Numbers, to which nothing is written, before an array that a loop of reordered sums writes. LLVM
# compiles such a loop twice, the second for arrays that are within a few registers of each other,
# with another order of the sum: results would depend on where memory happens to be free.
_UNUSED = 64
# How many columns apart stand the four that are summed together.
_APART = 31
# Where more than this part of the sum of squares cancels, the column is summed again about its
# mean.
_CANCELLED = 1e-3
# By so much a glance at a column may err: sums in another order differ by far less.
_CLEARLY = 1e-6
# Of what is counted by its relevance a glance may err by far less: in an order of sums alone.
_SUMS = 1e-9
# Relevances are counted by octaves, halves of halves of 1, each in so many equal bins.
OCTAVES, IN_OCTAVE = 12, 16
BINS = OCTAVES * IN_OCTAVE
# After so many bits of a float its bin begins, and which number the first bin has there.
_DIGITS, _FIRST = 48, (1023 - OCTAVES) * IN_OCTAVE
# Variation within this many roundings of the mean is no variation.
ROUNDINGS = 8.0 * 2.220446049250313e-16
# Below this a sum of squares has lost digits to underflow.
UNDERFLOW = 1e-305
# About a mean above this rounding is larger than what underflows.
SMALL = 1e-138


@kernel()
def variation(m2: float, mean: float, n: int) -> float:
    """Return m2, or zero where it is no more than rounding of the mean or underflow."""
    rounding = ROUNDINGS * abs(mean)
    if m2 <= n * rounding * rounding or m2 < UNDERFLOW:
        return 0.0
    return m2


@kernel()
def _seen(v: float, mean: float, n: int, x: np.ndarray) -> float:
    """Return `variation`, and NaN where the column varies by too little for it to be seen.

    x is what is stored of the column; all that is not is 0.
    """
    m2 = variation(v, mean, n)
    if m2 == 0.0 and abs(mean) < SMALL:
        first = np.float64(x[0]) if x.size == n else 0.0
        # Nearly always one value again and again, which is counted at the speed of the cache.
        others = 0
        for i in range(x.size):
            others += np.float64(x[i]) != first
        for i in range(x.size if others else 0):
            if abs(np.float64(x[i]) - first) > ROUNDINGS * abs(mean):
                return np.nan
    return m2


@kernel()
def _two_sum(a: float, b: float) -> tuple[float, float]:
    """Return a + b, rounded, and what rounding took away (Knuth). Its sums keep their order."""
    whole = a + b
    mine = whole - a
    return whole, (a - (whole - mine)) + (b - mine)


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

    Each about its own first value. Written out, so that the twelve sums stay in registers and y is
    loaded once for four columns.
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
    """One target column: four columns at a time, at the speed of memory.

    The four stand some way apart. So each is read on and on, as the processor likes to fetch ahead;
    four neighbours would be four short starts. The first stands in for any that is missing, so that
    every column meets the very same instructions.
    """
    b, n = X.shape
    sums = np.empty((4, 3))
    for start in range(0, b, 4 * _APART):
        stop = min(start + 4 * _APART, b)
        apart = -(-(stop - start) // 4)
        for first in range(start, start + apart):
            second, third, fourth = first + apart, first + 2 * apart, first + 3 * apart
            _sums_of_four(
                X[first],
                X[second if second < stop else first],
                X[third if third < stop else first],
                X[fourth if fourth < stop else first],
                Y[0],
                sums,
            )
            for u in range(4):
                j = first + u * apart
                if j < stop:
                    s = sums[u, 0]
                    ss = sums[u, 1]
                    mean[j], low[j] = _two_sum(np.float64(X[j, 0]), s / n)
                    v = ss - s * s / n
                    cxy[j, 0] = sums[u, 2]
                    if v < _CANCELLED * ss:
                        mean[j], low[j], v = _about(X[j], mean[j], Y, cxy[j])
                    if cxy.shape[1] == 2:
                        cxy[j, 1] = -cxy[j, 0]
                    m2[j] = _seen(v, mean[j], n, X[j])


@kernel(reordered_sums=True)
def _dots(D: np.ndarray, Y: np.ndarray, k: int, start: int, size: int, out: np.ndarray) -> None:
    """Add to out (3, c') the dot products of three columns with targets k to k + 3.

    Written out, so that the twelve sums stay in registers, with three columns and a target beside
    them in the sixteen that a processor has: seven loads for twelve products, where one column
    against one target takes two loads for one.
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
    """Fill d with x about its shift, and add to sums (2,) its sum and sum of squares."""
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
    """Several target columns: three columns against four targets at a time, as matrix products do.

    Where fewer than three columns are left the last one stands in for the missing, so that every
    column meets the very same instructions.
    """
    b, n = X.shape
    tile = min(_TILE, n)
    unused = _UNUSED // tile + 1
    D = np.empty((unused + 3, tile))[unused:]
    dots = np.empty((_GROUP, Y.shape[0]))
    sums = np.empty((_GROUP, 2))
    for first in range(0, b, _GROUP):
        last = min(first + _GROUP, b)
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
            if v < _CANCELLED * ss:
                mean[j], low[j], v = _about(X[j], mean[j], Y, cxy[j])
            m2[j] = _seen(v, mean[j], n, X[j])


@kernel()
def scan_dense(
    X: np.ndarray,
    Y: np.ndarray,
    mean: np.ndarray,
    low: np.ndarray,
    m2: np.ndarray,
    cxy: np.ndarray,
) -> None:
    """Moments of dense columns.

    Parameters
    ----------
    X
        (b, n) columns as rows, float64, float32, int8 or uint8, read in place.
    Y
        (c', n) centred target columns; one, or zero rows up to a multiple of four. One is enough
        for two classes, c = 2: the second is the first, negated.
    mean, low, m2, cxy
        (b,), (b,), (b,), (b, c) filled; low is what rounding took from the mean. m2 is 0.0 for a
        constant column, not finite where a value is not finite, or the squares overflow or vanish.
    """
    if Y.shape[0] == 1:
        _scan_one_target(X, Y, mean, low, m2, cxy)
    else:
        _scan_many_targets(X, Y, mean, low, m2, cxy)


@kernel()
def _bin(bits: int) -> int:
    """Return in which bin the relevance with these bits is counted: one past all for one below 0.

    Bins are told apart by exponent and leading digits. The first one takes all that is less than
    its edge, and the last one 1 too.
    """
    found = (bits >> _DIGITS) - _FIRST
    # min and max would take longer.
    found = BINS - 1 if found >= BINS else found
    found = 0 if found < 0 else found  # noqa: FURB136
    return BINS if bits < 0 else found


@kernel()
def count(relevance: np.ndarray, before: int, step: int, rows: np.ndarray, last: np.ndarray) -> int:
    """Count relevances (p,) by arrival and relevance; below 0 none is counted.

    Parameters
    ----------
    before
        How many columns of the last bin of arrival came before these.
    step
        How many columns a bin of arrival has.
    rows
        (a, b) filled: the bins of arrival that are full.
    last
        (b,) the last bin of arrival, and then what is the last one.

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
def glance(x: np.ndarray, Y: np.ndarray, W: np.ndarray) -> float:
    """Return what the relevance of one column is surely below, by no more than `_CLEARLY`.

    Infinity where that takes a closer look: what varies hardly or not at all, or is not finite.

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
    if not (_CANCELLED * ss <= v < np.inf and ss > UNDERFLOW / _CANCELLED):
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
    return np.sqrt(square / v) + _CLEARLY


@kernel()
def glance_below(x: np.ndarray, Y: np.ndarray, W: np.ndarray, bar: float) -> int:
    """Return in which bin the relevance of a column is counted, if it is surely below a bar.

    -1 where either takes a closer look; x, Y and W are as in `glance`.
    """
    found = glance(x, Y, W)
    if not found < bar:
        return -1
    relevance = found - _CLEARLY
    least = _bin(np.float64(max(0.0, relevance - _SUMS)).view(np.int64))
    return least if _bin(np.float64(relevance + _SUMS).view(np.int64)) == least else -1


@kernel(reordered_sums=True)
def _dense_again(
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
        mean[j], low[j] = s / n, 0.0
        v = ss - s * s / n
        if v < _CANCELLED * ss:
            mean[j], low[j], v = _dense_again(data, indices, start, stop, Y, mean[j], cxy[j])
        if cxy.shape[1] == 2:
            cxy[j, 1] = -cxy[j, 0]
        m2[j] = _seen(v, mean[j], n, data[start:stop])
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
        if v < _CANCELLED * ss:
            mean[j], low[j], v = _dense_again(data, indices, start, stop, Y, mean[j], cxy[j])
        m2[j] = _seen(v, mean[j], n, data[start:stop])
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
    """Moments of sparse columns, in time proportional to what they store.

    Parameters
    ----------
    data, indices, indptr
        CSC parts; indptr may start anywhere. Row indices must ascend strictly within a column.
    Y, YT
        The centred target (c', n), as `scan_dense` has it, and its transpose (n, c'), both
        C-contiguous.
    mean, low, m2, cxy
        As in `scan_dense`.

    Returns
    -------
    Whether every row index was in range and in order; if not, what was filled is void.
    """
    if Y.shape[0] == 1:
        return _sparse_one_target(data, indices, indptr, Y, mean, low, m2, cxy)
    return _sparse_many_targets(data, indices, indptr, Y, YT, mean, low, m2, cxy)
