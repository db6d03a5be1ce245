"""Conditional independence of a column and the target by definition, from least-squares residuals.

A residual below 1e-10 of a sum of squares counts as zero, and zero is independent of everything.
"""

import math

import numpy as np
from scipy import stats

from tests.reference import target

SPENT = 1e-10


def space(y, kind):
    """Return an orthonormal basis of the target."""
    return target.basis(target.numbers(y, kind))


def is_independent(x, U, given, alpha):
    """Return whether a column is independent of the target given others; None if undecidable.

    Parameters
    ----------
    x, given
    Columns, centred and of length 1.
    U
    (n, r) orthonormal basis of the target.
    """
    n, r = U.shape
    s = len(given)
    if (n - s - 3 if r == 1 else n - 1 - s - r) < 1:
        return None
    for i, other in enumerate(given):
        if square(residual(other, given[:i])) <= SPENT:
            return None  # the set is equivalent to a smaller one
    left = residual(x, given)
    if square(left) <= SPENT:
        return True
    directions, singular, _ = np.linalg.svd(residual(U, given), full_matrices=False)
    directions = directions[:, singular**2 > SPENT]
    if not directions.size:
        return True
    rho = correlation(left, directions)
    return bool(p_value(rho, n - s, r, directions.shape[1]) >= alpha - 1e-12)


def correlation(x, directions):
    """Return the multiple correlation of a column with orthonormal directions."""
    return min(1.0, math.sqrt(square(directions.T @ x) / square(x)))


def p_value(rho, n, r, q=None):
    """Return the p-value of a correlation with q of r directions, given n rows."""
    q = r if q is None else q
    if n <= (3 if r == 1 else q + 1):
        return 1.0
    if rho**2 > 1 - SPENT:
        return 0.0
    if r == 1:  # Fisher's z
        return 2 * stats.norm.sf(math.atanh(rho) * math.sqrt(n - 3))
    return stats.beta.sf(rho**2, q / 2, (n - 1 - q) / 2)


def residual(v, given):
    """Return the least-squares residual of a vector, or of the columns of a matrix."""
    if given:
        S = np.column_stack(given)
        for _ in range(2):
            v = v - S @ np.linalg.lstsq(S, v, rcond=None)[0]
    return v


def square(x):
    return float(x @ x)
