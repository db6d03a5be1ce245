"""Logarithm of the upper tail of the beta distribution, where the probability underflows."""

from __future__ import annotations

import numpy as np

from streamsel._kernels.compile import kernel

_TINY = 1e-300
_MAX_TERMS = 10_000
_MAX_STEPS = 100


@kernel()
def _log_lower(y: float, a: float, b: float, log_beta: float) -> float:
    """Return log I_y(a, b), the regularised incomplete beta function, for y below a / (a + b).

    By its continued fraction (Lentz's algorithm; Press et al. 2007, section 6.4).
    """
    if y <= 0.0:
        return -np.inf
    c, d = 1.0, 1.0 - (a + b) * y / (a + 1.0)
    d = 1.0 / (d if np.abs(d) > _TINY else _TINY)
    fraction = d
    for m in range(1, _MAX_TERMS):
        for part in range(2):
            if part == 0:
                step = m * (b - m) * y / ((a + 2 * m - 1.0) * (a + 2 * m))
            else:
                step = -(a + m) * (a + b + m) * y / ((a + 2 * m) * (a + 2 * m + 1.0))
            d = 1.0 + step * d
            d = 1.0 / (d if np.abs(d) > _TINY else _TINY)
            c = 1.0 + step / c
            c = c if np.abs(c) > _TINY else _TINY
            factor = c * d
            fraction *= factor
        if np.abs(factor - 1.0) <= 1e-16:
            break
    return a * np.log(y) + b * np.log1p(-y) - np.log(a) - log_beta + np.log(fraction)


@kernel()
def log_upper_tails(
    rest: np.ndarray, a: np.ndarray, b: np.ndarray, log_beta: np.ndarray, out: np.ndarray
) -> None:
    """Fill out with log P(X > 1 - rest) for X ~ Beta(a, b), for tails above the mean.

    Parameters
    ----------
    rest
        (p,) 1 minus the values.
    a, b, log_beta
        (p,) parameters, and log B(a, b).
    out
        (p,) filled.
    """
    for j in range(out.size):
        out[j] = _log_lower(rest[j], b[j], a[j], log_beta[j])


@kernel()
def rests_of_log_tails(
    log_p: np.ndarray, a: float, b: float, log_beta: float, out: np.ndarray
) -> None:
    """Fill out with 1 - x for the values x with log P(X > x) = log_p, X ~ Beta(a, b).

    By Newton's method on log(1 - x): log P is a concave increasing function of it.

    Parameters
    ----------
    log_p
        (p,) logarithms of small probabilities.
    a, b, log_beta
        Parameters, and log B(a, b).
    out
        (p,) filled.
    """
    for j in range(out.size):
        # The first term of the series is a lower bound of log P if a <= 1, and near it otherwise.
        t = min((log_p[j] + log_beta + np.log(b)) / b, -1e-12)
        for _ in range(_MAX_STEPS):
            y = np.exp(t)
            value = _log_lower(y, b, a, log_beta)
            density = b * t + (a - 1.0) * np.log1p(-y) - log_beta
            step = (log_p[j] - value) / np.exp(density - value)
            step = min(max(step, -1.0), 1.0)
            t = min(t + step, -1e-15)
            if np.abs(step) <= 1e-15 * max(1.0, np.abs(t)):
                break
        out[j] = np.exp(t)
