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
    values, rows = np.empty(n + 1), np.empty(n + 1, np.int64)
    y_mean = np.empty(c)
    for j in range(X.shape[0]):
        # Without branches, which would mostly be predicted wrongly.
        size = 0
        for i in range(n):
            values[size] = X[j, i]
            rows[size] = i
            size += not math.isnan(X[j, i])
        x = values[:size]
        lowest = math.inf
        highest = -math.inf
        total = 0.0
        for i in range(size):
            total += x[i] - x[0]
            lowest = min(lowest, x[i])
            highest = max(highest, x[i])
        count[j] = size
        y_sum[j] = 0.0
        cxy[j] = 0.0
        cyy[j] = 0.0
        for k in range(c):
            for i in range(size):
                y_sum[j, k] += Y[k, rows[i]]
        if not (math.isfinite(lowest) and math.isfinite(highest)):
            mean[j], low[j], m2[j] = math.nan, math.nan, math.nan
            continue
        shift = x[0]
        offset = total / size
        mean[j] = shift + offset
        low[j] = offset - (mean[j] - shift)
        squares = 0.0
        for i in range(size):
            x[i] = (x[i] - shift) - offset
            squares += x[i] * x[i]
        m2[j] = squares if lowest < highest else 0.0
        for k in range(c):
            y_mean[k] = y_sum[j, k] / size
            product = 0.0
            for i in range(size):
                product += x[i] * (Y[k, rows[i]] - y_mean[k])
            cxy[j, k] = product
        for k in range(cyy.shape[1]):
            for h in range(k + 1):
                product = 0.0
                for i in range(size):
                    product += (Y[k, rows[i]] - y_mean[k]) * (Y[h, rows[i]] - y_mean[h])
                cyy[j, k, h] = product
                cyy[j, h, k] = product
