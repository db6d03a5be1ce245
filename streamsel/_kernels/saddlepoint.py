"""Saddlepoint approximation of the score test of a logistic or Poisson null model.

The score S = Σ g (Y - μ) of a column g has the cumulant function K(t) = Σ log(1 - μ + μ e^{gt}) - t
Σ gμ for two classes, and Σ μ (e^{gt} - 1 - gt) for counts. Each column is computed alone, in order,
so that its p-value does not depend on the block.
"""

from __future__ import annotations

import math

import numpy as np

from streamsel._kernels.compile import kernel

_MAX_ITERATIONS = 200
_TOLERANCE = 1e-10
# A score this close to its largest value, relative to it, is the largest value.
_EXTREME_RTOL = 1e-9


@kernel()
def _slope(
    g: np.ndarray, sign: float, mean: np.ndarray, binary: bool, t: float
) -> tuple[float, float]:
    """Return K'(t) and K''(t) of the score of the column times `sign`."""
    first = 0.0
    second = 0.0
    for i in range(g.size):
        x = sign * g[i]
        if binary:
            p = mean[i] / (mean[i] + (1.0 - mean[i]) * math.exp(-x * t))
            first += x * (p - mean[i])
            second += x * x * p * (1.0 - p)
        else:
            first += mean[i] * x * math.expm1(x * t)
            second += mean[i] * x * x * math.exp(x * t)
    return first, second


@kernel()
def _cumulant(g: np.ndarray, sign: float, mean: np.ndarray, binary: bool, t: float) -> float:
    """Return K(t) of the score of the column times `sign`."""
    total = 0.0
    for i in range(g.size):
        a = sign * g[i] * t
        if not binary:
            total += mean[i] * (math.expm1(a) - a)
        elif a > 30.0:
            total += a * (1.0 - mean[i]) + math.log(mean[i] + (1.0 - mean[i]) * math.exp(-a))
        else:
            total += math.log1p(mean[i] * math.expm1(a)) - a * mean[i]
    return total


@kernel()
def _largest(g: np.ndarray, sign: float, mean: np.ndarray, binary: bool) -> tuple[float, float]:
    """Return the largest score of the column times `sign`, and the log of its probability."""
    largest = 0.0
    log_p = 0.0
    for i in range(g.size):
        x = sign * g[i]
        if x < 0.0:
            largest -= x * mean[i]
            log_p += math.log1p(-mean[i]) if binary else -mean[i]
        elif x > 0.0:
            if not binary:
                return math.inf, 0.0
            largest += x * (1.0 - mean[i])
            log_p += math.log(mean[i])
    return largest, log_p


@kernel()
def _upper_tail(g: np.ndarray, sign: float, mean: np.ndarray, binary: bool, q: float) -> float:
    """Return the probability that the score of the column times `sign` is at least q > 0.

    By the normal tail of r* = w + log(v / w) / w (Barndorff-Nielsen); NaN without a saddlepoint.
    """
    largest, log_p = _largest(g, sign, mean, binary)
    if q > largest * (1.0 + _EXTREME_RTOL):
        return 0.0
    if q >= largest * (1.0 - _EXTREME_RTOL):
        return math.exp(log_p)
    low = 0.0
    high = math.inf
    t = q
    second = math.nan
    for _ in range(_MAX_ITERATIONS):
        first, second = _slope(g, sign, mean, binary, t)
        if first < q:
            low = t
        else:
            high = t
        after = t + (q - first) / second if second > 0.0 else math.nan
        if not low < after < high:
            after = 2.0 * t if high == math.inf else 0.5 * (low + high)
        if abs(after - t) <= _TOLERANCE * t:
            break
        t = after
    else:
        return math.nan
    squared = 2.0 * (t * q - _cumulant(g, sign, mean, binary, t))
    if not (squared > 0.0 and second > 0.0):
        return math.nan
    w = math.sqrt(squared)
    return 0.5 * math.erfc((w + math.log(t * math.sqrt(second) / w) / w) / math.sqrt(2.0))


@kernel()
def saddlepoint_p_values(
    X: np.ndarray,
    root: np.ndarray,
    basis: np.ndarray,
    mean: np.ndarray,
    residual: np.ndarray,
    binary: bool,
    out: np.ndarray,
) -> None:
    """Fill the two-sided p-values of the score tests of columns.

    Parameters
    ----------
    X
        (b, n) columns as rows, float64.
    root
        (n,) square roots of the variance function at the means; 0 for an observation to leave out.
    basis
        (d, n) orthonormal basis of the intercept and the covariates, each times `root`.
    mean, residual
        (n,) means of the null model, and target minus means.
    binary
        Whether the target has two classes, instead of counts.
    out
        (b,) filled; the p-value of the normal distribution if there is no saddlepoint, and 1 for a
        column that the covariates explain.
    """
    n = X.shape[1]
    g = np.empty(n)
    for j in range(X.shape[0]):
        shift = X[j, 0]
        before = 0.0
        for i in range(n):
            g[i] = (X[j, i] - shift) * root[i]
            before += g[i] * g[i]
        for k in range(basis.shape[0]):
            product = 0.0
            for i in range(n):
                product += basis[k, i] * g[i]
            for i in range(n):
                g[i] -= product * basis[k, i]
        variance = 0.0
        for i in range(n):
            variance += g[i] * g[i]
        if variance <= 1e-12 * before:
            out[j] = 1.0
            continue
        length = math.sqrt(variance)
        z = 0.0
        for i in range(n):
            g[i] = g[i] / (root[i] * length) if root[i] > 0.0 else 0.0
            z += g[i] * residual[i]
        sign = 1.0 if z > 0.0 else -1.0
        p = math.nan
        if z != 0.0:
            p = _upper_tail(g, sign, mean, binary, abs(z))
            p += _upper_tail(g, -sign, mean, binary, abs(z))
        out[j] = min(p, 1.0) if p == p else math.erfc(abs(z) / math.sqrt(2.0))  # noqa: PLR0124
