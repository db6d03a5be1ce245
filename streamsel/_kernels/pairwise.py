"""Moments of columns over their observed values, where others are NaN."""

from __future__ import annotations

import math

import numpy as np

from streamsel._kernels.compile import kernel


@kernel()
def observed_products(
    X: np.ndarray,
    Y: np.ndarray,
    count: np.ndarray,
    mean: np.ndarray,
    low: np.ndarray,
    m2: np.ndarray,
    y_sum: np.ndarray,
    cxy: np.ndarray,
    cyy: np.ndarray,
) -> None:
    """Fill the moments of columns and targets over the observed rows of each column.

    Each column is computed alone, in order, so that its moments do not depend on the block.

    Parameters
    ----------
    X
        (b, n) columns as rows, float64; NaN is missing.
    Y
        (c, n) target columns.
    count, mean, low, m2
        (b,) filled: observed values, their mean and its rounding error, and the sum of squares
        about it. m2 is NaN for a column with an infinite value or none observed.
    y_sum, cxy
        (b, c) filled: sums of the targets, and centred products with them.
    cyy
        (b, c, c) filled with the centred products of the targets, or (b, 0, 0) to leave these out.
    """
    n, c = X.shape[1], Y.shape[0]
    y_mean = np.empty(c)
    for j in range(X.shape[0]):
        x = X[j]
        size = 0
        shift = 0.0
        total = 0.0
        finite = True
        lowest = math.inf
        highest = -math.inf
        y_sum[j] = 0.0
        for i in range(n):
            if not math.isnan(x[i]):
                if size == 0:
                    shift = x[i]
                    finite = math.isfinite(shift)
                size += 1
                total += x[i] - shift
                finite = finite and math.isfinite(x[i])
                lowest = min(lowest, x[i])
                highest = max(highest, x[i])
                for k in range(c):
                    y_sum[j, k] += Y[k, i]
        count[j] = size
        cxy[j] = 0.0
        cyy[j] = 0.0
        if size == 0 or not finite:
            mean[j], low[j], m2[j] = math.nan, math.nan, math.nan
            continue
        offset = total / size
        mean[j] = shift + offset
        low[j] = offset - (mean[j] - shift)
        for k in range(c):
            y_mean[k] = y_sum[j, k] / size
        squares = 0.0
        for i in range(n):
            if math.isnan(x[i]):
                continue
            d = (x[i] - shift) - offset
            squares += d * d
            for k in range(c):
                cxy[j, k] += d * (Y[k, i] - y_mean[k])
            for k in range(cyy.shape[1]):
                for h in range(k + 1):
                    cyy[j, k, h] += (Y[k, i] - y_mean[k]) * (Y[h, i] - y_mean[h])
        m2[j] = squares if lowest < highest else 0.0
        for k in range(cyy.shape[1]):
            for h in range(k):
                cyy[j, h, k] = cyy[j, k, h]
