"""Moments of many rows in one pass: of variables, their squares, and products with the target.

Sums are taken about the newest row. As it is one of the values, the difference loses at most one
rounding error per row of a sum of squares, whatever the mean of a variable.
"""

from __future__ import annotations

import numpy as np

from streamsel._kernels.compile import kernel

# Variables of a row read at a time: long contiguous reads are fast.
_TILE = 2048
# With several targets there are more sums per variable, which must stay in the cache.
_SMALL_TILE = 256
# A sum of squares below this has no missing, infinite or nearly overflowing value.
_LARGE = 1e300


@kernel()
def _pad_to_fours(rows: np.ndarray) -> np.ndarray:
    """Return rows (c, b) padded with zeros to a multiple of four."""
    c, b = rows.shape
    padded = np.zeros((c, -(-b // 4) * 4))
    for k in range(c):
        for i in range(b):
            padded[k, i] = rows[k, i]
    return padded


@kernel(reordered_sums=True)
def _total(values: np.ndarray) -> float:
    total = 0.0
    for i in range(values.size):
        total += values[i]
    return total


@kernel()
def _settle(
    w: np.ndarray, Y: np.ndarray, mean: np.ndarray, m2: np.ndarray, products: np.ndarray
) -> bool:
    """Turn sums into moments; return False if a value was missing or very large."""
    total = _total(w)
    for j in range(mean.size):
        s = mean[j]
        # The comparison is False for NaN, too.
        if not m2[j] < _LARGE:
            return False
        mean[j] = s / total
        m2[j] = max(0.0, m2[j] - s * mean[j])
    for k in range(Y.shape[0]):
        # The rounding error of a sum that is zero.
        sum_error = _total(Y[k])
        for j in range(mean.size):
            products[k, j] -= sum_error * mean[j]
    return True


@kernel()
def moments_of_rows(
    X: np.ndarray,
    w: np.ndarray,
    Y: np.ndarray,
    shift: np.ndarray,
    mean: np.ndarray,
    m2: np.ndarray,
    products: np.ndarray,
) -> bool:
    """Fill the moments over rows without missing values.

    If there are missing or very large values, the results are invalid.

    Parameters
    ----------
    X, w
        (b, m) values, and (b,) weights of the rows.
    Y
        (c, b) target columns, at least one, centred and times the weights.
    shift
        (m,) a value of each variable.
    mean, m2, products
        (m,), (m,), (c, m) filled: weighted mean about the shift, sum of squares about the mean, and
        sums of products.

    Returns
    -------
    Whether every value was observed, and lies within about 1e150 of the shift.
    """
    b, m = X.shape
    c = Y.shape[0]
    mean[:] = 0.0
    m2[:] = 0.0
    products[:] = 0.0
    tile = max(1, min(m, _TILE if c == 1 else _SMALL_TILE))
    D = np.empty((4, tile))
    weights, targets = _pad_to_fours(w.reshape(1, -1))[0], _pad_to_fours(Y)
    last = b - 1
    for start in range(0, m, tile):
        stop = min(start + tile, m)
        size = stop - start
        about, s, ss = shift[start:stop], mean[start:stop], m2[start:stop]
        d0, d1, d2, d3 = D[0, :size], D[1, :size], D[2, :size], D[3, :size]
        # Four rows at a time, so that sums are loaded and stored once for four values. The last
        # row, with weight 0, pads an incomplete group.
        for i in range(0, b, 4):
            x0, x1 = X[i, start:stop], X[min(i + 1, last), start:stop]
            x2, x3 = X[min(i + 2, last), start:stop], X[min(i + 3, last), start:stop]
            w0, w1, w2, w3 = weights[i], weights[i + 1], weights[i + 2], weights[i + 3]
            y, a = targets[0], products[0, start:stop]
            y0, y1, y2, y3 = y[i], y[i + 1], y[i + 2], y[i + 3]
            for j in range(size):
                z = about[j]
                e0, e1, e2, e3 = x0[j] - z, x1[j] - z, x2[j] - z, x3[j] - z
                f0, f1, f2, f3 = w0 * e0, w1 * e1, w2 * e2, w3 * e3
                s[j] += (f0 + f1) + (f2 + f3)
                ss[j] += (f0 * e0 + f1 * e1) + (f2 * e2 + f3 * e3)
                a[j] += (e0 * y0 + e1 * y1) + (e2 * y2 + e3 * y3)
            if c == 1:
                continue
            for j in range(size):
                z = about[j]
                d0[j], d1[j], d2[j], d3[j] = x0[j] - z, x1[j] - z, x2[j] - z, x3[j] - z
            for k in range(1, c):
                y, a = targets[k], products[k, start:stop]
                y0, y1, y2, y3 = y[i], y[i + 1], y[i + 2], y[i + 3]
                for j in range(size):
                    a[j] += (d0[j] * y0 + d1[j] * y1) + (d2[j] * y2 + d3[j] * y3)
    return _settle(w, Y, mean, m2, products)


@kernel(reordered_sums=True)
def moments_of_transposed_rows(
    X: np.ndarray,
    w: np.ndarray,
    Y: np.ndarray,
    shift: np.ndarray,
    mean: np.ndarray,
    m2: np.ndarray,
    products: np.ndarray,
) -> bool:
    """Do the same as `moments_of_rows` for X (m, b), where values of a variable are contiguous."""
    m, b = X.shape
    y = Y[0]
    for j in range(m):
        x, about = X[j], shift[j]
        s = 0.0
        ss = 0.0
        a = 0.0
        for i in range(b):
            d = x[i] - about
            f = w[i] * d
            s += f
            ss += f * d
            a += d * y[i]
        mean[j], m2[j], products[0, j] = s, ss, a
        for k in range(1, Y.shape[0]):
            z = Y[k]
            a = 0.0
            for i in range(b):
                a += (x[i] - about) * z[i]
            products[k, j] = a
    return _settle(w, Y, mean, m2, products)


@kernel()
def moments_of_observed_rows(
    X: np.ndarray,
    w: np.ndarray,
    Y: np.ndarray,
    observed: np.ndarray,
    shift: np.ndarray,
    mean: np.ndarray,
    m2: np.ndarray,
    products: np.ndarray,
    means: np.ndarray,
) -> None:
    """Fill the moments of each variable over the rows that observed it.

    Parameters
    ----------
    X, w, Y
        As in `moments_of_rows`, NaN if missing.
    observed, shift, mean, m2, products, means
        (m,), (m,), (m,), (m,), (c, m), (c, m) filled: the weight of those rows, a value, and the
        moments of `moments_of_rows` about it; the target's means over those rows.
    """
    b, m = X.shape
    observed[:] = 0.0
    mean[:] = 0.0
    m2[:] = 0.0
    products[:] = 0.0
    means[:] = 0.0
    for j in range(m):
        i = b - 1
        while i > 0 and np.isnan(X[i, j]):
            i -= 1
        shift[j] = 0.0 if np.isnan(X[i, j]) else X[i, j]
    tile = max(1, min(m, _SMALL_TILE))
    D, W = np.empty((4, tile)), np.empty((4, tile))
    weights, targets = _pad_to_fours(w.reshape(1, -1))[0], _pad_to_fours(Y)
    for start in range(0, m, tile):
        stop = min(start + tile, m)
        size = stop - start
        n, about, s, ss = observed[start:stop], shift[start:stop], mean[start:stop], m2[start:stop]
        d0, d1, d2, d3 = D[0, :size], D[1, :size], D[2, :size], D[3, :size]
        o0, o1, o2, o3 = W[0, :size], W[1, :size], W[2, :size], W[3, :size]
        for i in range(0, b, 4):
            for t in range(4):
                x, d, o, weight = X[min(i + t, b - 1), start:stop], D[t], W[t], weights[i + t]
                for j in range(size):
                    is_observed = not np.isnan(x[j])
                    d[j] = x[j] - about[j] if is_observed else 0.0
                    o[j] = 1.0 if is_observed else 0.0
                    f = weight * d[j]
                    n[j] += weight * o[j]
                    s[j] += f
                    ss[j] += f * d[j]
            for k in range(Y.shape[0]):
                y, a, level = targets[k], products[k, start:stop], means[k, start:stop]
                y0, y1, y2, y3 = y[i], y[i + 1], y[i + 2], y[i + 3]
                for j in range(size):
                    a[j] += (d0[j] * y0 + d1[j] * y1) + (d2[j] * y2 + d3[j] * y3)
                    level[j] += (o0[j] * y0 + o1[j] * y1) + (o2[j] * y2 + o3[j] * y3)
    for j in range(m):
        inverse = 1.0 / observed[j] if observed[j] > 0.0 else 0.0
        total = mean[j]
        mean[j] = total * inverse
        m2[j] = max(0.0, m2[j] - total * mean[j])
        for k in range(Y.shape[0]):
            products[k, j] -= mean[j] * means[k, j]
            means[k, j] *= inverse
