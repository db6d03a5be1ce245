"""Univariate statistics by definition: one ordinary least squares fit per column."""

import numpy as np
from scipy import stats


def least_squares(X, y, Z=None):
    """Return slope, standard error and p-value of every column, given mean and covariates Z."""
    n, p = X.shape
    Z = np.empty((n, 0)) if Z is None else np.reshape(Z, (n, -1))
    found = np.empty((p, 3))
    for j in range(p):
        A = np.column_stack([X[:, j], np.ones(n), Z])
        b, _, rank, _ = np.linalg.lstsq(A, y, rcond=None)
        left = n - rank
        residuals = y - A @ b
        error = np.sqrt(residuals @ residuals / left * np.linalg.pinv(A.T @ A)[0, 0])
        found[j] = b[0], error, 2 * stats.t.sf(abs(b[0] / error), left)
    return found.T


def adjusted(p_values, m, *, dependent=False):
    """Return p-values adjusted for m tests: Benjamini-Hochberg, or -Yekutieli if dependent.

    The adjusted p-value is the smallest level at which the step-up procedure rejects the test.
    """
    factor = sum(1.0 / i for i in range(1, m + 1)) if dependent else 1.0
    ranks = [np.count_nonzero(p_values <= p) for p in p_values]
    found = np.empty(len(p_values))
    for i, p in enumerate(p_values):
        pairs = zip(p_values, ranks, strict=True)
        found[i] = min(q * m * factor / rank for q, rank in pairs if q >= p)
    return np.minimum(found, 1.0)
