"""Dependence of observations on earlier ones: autocorrelation, autoregression, lagged products."""

from __future__ import annotations

import math

import numpy as np

from streamsel._kernels.compile import kernel


@kernel(reordered_sums=True)
def fill_lagged_products(
    centred: np.ndarray, lengths: np.ndarray, lags: np.ndarray, out: np.ndarray
) -> None:
    """Fill the mean product of centred observations that are some lags apart.

    Parameters
    ----------
    centred
        (b, t) series minus their means, one per row.
    lengths
        (b,) observations of each series.
    lags
        (k,) lags, 0 or more.
    out
        (k, b) filled; NaN for a lag that is not shorter than the series.
    """
    for i in range(lengths.size):
        x = centred[i, : lengths[i]]
        for k in range(lags.size):
            lag = lags[k]
            if lag >= x.size:
                out[k, i] = np.nan
                continue
            earlier, later = x[: x.size - lag], x[lag:]
            total = 0.0
            for t in range(later.size):
                total += earlier[t] * later[t]
            out[k, i] = total / later.size


@kernel()
def fill_partial_correlations(correlations: np.ndarray, out: np.ndarray) -> None:
    """Fill partial autocorrelations by the recursion of Levinson and Durbin.

    Parameters
    ----------
    correlations
        (k + 1, b) autocorrelations at the lags 0, ..., k.
    out
        (k + 1, b) filled: 1 at lag 0.
    """
    k, b = correlations.shape[0] - 1, correlations.shape[1]
    phi, before = np.empty(k + 1), np.empty(k + 1)
    for i in range(b):
        r = correlations[:, i]
        out[0, i] = 1.0
        error = r[0]
        for m in range(1, k + 1):
            total = r[m]
            for j in range(1, m):
                total -= before[j] * r[m - j]
            phi[m] = total / error
            for j in range(1, m):
                phi[j] = before[j] - phi[m] * before[m - j]
            error *= 1.0 - phi[m] * phi[m]
            before[: m + 1] = phi[: m + 1]
            out[m, i] = phi[m]


@kernel()
def fill_lagged_cubes(series: np.ndarray, lengths: np.ndarray, lag: int, out: np.ndarray) -> None:
    """Fill means of products of three observations.

    Parameters
    ----------
    series, lengths
        (b, t) and (b,), one series per row.
    lag
        Distance of the observations x, y and z.
    out
        (2, b) filled: the means of x y z and of z² y - y x²; 0 for a series that is too short.
    """
    for i in range(lengths.size):
        x = series[i]
        count = lengths[i] - 2 * lag
        product = asymmetry = 0.0
        for t in range(count):
            first, second, third = x[t], x[t + lag], x[t + 2 * lag]
            product += first * second * third
            asymmetry += (third * third - first * first) * second
        out[0, i] = product / count if count > 0 else 0.0
        out[1, i] = asymmetry / count if count > 0 else 0.0


@kernel()
def fill_autoregression(
    scaled: np.ndarray, lengths: np.ndarray, order: int, out: np.ndarray
) -> None:
    """Fill the triangular factors of the regressions of series on their own past.

    The regressors are 1 and the observations 1, ..., `order` earlier. Modified Gram-Schmidt is as
    accurate for least squares as Householder's QR if the target is the last column.

    Parameters
    ----------
    scaled
        (b, t) series of mean 0 and variance 1, one per row.
    lengths
        (b,) observations of each series.
    order
        Number of lags.
    out
        (b, order + 2, order + 2) filled: upper triangular factors of regressors and target; 0 for a
        series with fewer observations to explain than regressors.
    """
    size = order + 2
    columns = np.empty((size, max(0, scaled.shape[1] - order)))
    for i in range(lengths.size):
        R = out[i]
        R[:] = 0.0
        n = lengths[i] - order
        if n < order + 1:
            continue
        x = scaled[i]
        columns[0, :n] = 1.0
        for lag in range(1, order + 1):
            columns[lag, :n] = x[order - lag : order - lag + n]
        columns[order + 1, :n] = x[order : order + n]
        for j in range(size):
            q = columns[j, :n]
            norm = math.sqrt(_dot(q, q))
            R[j, j] = norm
            if norm == 0.0:
                continue
            for t in range(n):
                q[t] /= norm
            for k in range(j + 1, size):
                other = columns[k, :n]
                product = _dot(q, other)
                R[j, k] = product
                for t in range(n):
                    other[t] -= product * q[t]


@kernel(reordered_sums=True)
def _dot(x: np.ndarray, y: np.ndarray) -> float:
    total = 0.0
    for t in range(x.size):
        total += x[t] * y[t]
    return total
