"""Score tests of logistic and Poisson regressions, with dense matrices; saddlepoint p-values."""

import itertools

import numpy as np
from scipy import optimize, stats

VARIANCE = {"binary": lambda mean: mean * (1.0 - mean), "count": lambda mean: mean}
INVERSE = {"binary": lambda eta: 1.0 / (1.0 + np.exp(-eta)), "count": np.exp}


def null_means(family, y, Z=None):
    """Return the means of the maximum likelihood fit to an intercept and covariates Z (n, d)."""
    D = np.ones((len(y), 1)) if Z is None else np.column_stack([np.ones(len(y)), Z])
    beta = np.zeros(D.shape[1])
    for _ in range(100):
        mean = INVERSE[family](D @ beta)
        W = np.diag(VARIANCE[family](mean))
        beta = beta + np.linalg.solve(D.T @ W @ D, D.T @ (y - mean))
    return INVERSE[family](D @ beta)


def adjusted(family, x, mean, Z=None):
    """Return the weighted residual of x on an intercept and Z."""
    D = np.ones((len(x), 1)) if Z is None else np.column_stack([np.ones(len(x)), Z])
    W = np.diag(VARIANCE[family](mean))
    return x - D @ np.linalg.solve(D.T @ W @ D, D.T @ W @ x)


def score_test(family, x, y, Z=None):
    """Return U² / V, with V = xᵀWx - xᵀWZ (ZᵀWZ)⁻¹ ZᵀWx."""
    mean = null_means(family, y, Z)
    g = adjusted(family, x, mean, Z)
    return (x @ (y - mean)) ** 2 / (g @ (VARIANCE[family](mean) * g))


def cumulants(family, g, mean, t):
    """Return K(t), K'(t) and K''(t) of Σ g (Y - mean)."""
    if family == "binary":
        p = mean * np.exp(g * t) / (1.0 - mean + mean * np.exp(g * t))
        return (
            np.log(1.0 - mean + mean * np.exp(g * t)).sum() - t * (g @ mean),
            g @ (p - mean),
            np.square(g) @ (p * (1.0 - p)),
        )
    e = np.exp(g * t)
    return mean @ (e - 1.0 - g * t), (mean * g) @ (e - 1.0), (mean * g * g) @ e


def saddlepoint_tail(family, g, mean, q):
    """Return the probability of a score beyond q, on its side of 0."""
    g, q = np.sign(q) * g, abs(q)
    high = 1.0
    while cumulants(family, g, mean, high)[1] < q:
        high *= 2.0
        if high > 1e4:
            return 0.0
    t = optimize.brentq(lambda t: cumulants(family, g, mean, t)[1] - q, 0.0, high, xtol=1e-14)
    K, _, second = cumulants(family, g, mean, t)
    w, v = np.sqrt(2.0 * (t * q - K)), t * np.sqrt(second)
    return stats.norm.sf(w + np.log(v / w) / w)


def saddlepoint_p_value(family, x, y, Z=None):
    """Return the two-sided p-value: the sum of both tails."""
    mean = null_means(family, y, Z)
    g = adjusted(family, x, mean, Z)
    g = g / np.sqrt(g @ (VARIANCE[family](mean) * g))
    q = g @ (y - mean)
    return saddlepoint_tail(family, g, mean, q) + saddlepoint_tail(family, g, mean, -q)


def exact_p_value(g, mean, q):
    """Return the probability that |Σ g (Y - mean)| >= |q|, over all Y of independent classes."""
    total = 0.0
    for y in itertools.product((0.0, 1.0), repeat=len(g)):
        if abs(g @ (np.array(y) - mean)) >= abs(q) * (1.0 - 1e-12):
            total += np.prod(np.where(np.array(y) > 0.0, mean, 1.0 - mean))
    return total
