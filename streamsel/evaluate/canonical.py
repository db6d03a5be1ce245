"""Canonical correlations between two sets of variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsel.evaluate._matrices import (
    EPS,
    Floats,
    as_pair,
    unit_columns,
)


def canonical_correlations(A: Any, B: Any) -> Floats:
    r"""Return the canonical correlations between two sets of variables.

    The first is the largest correlation that a linear combination of the columns of A has with one
    of the columns of B; each further one is the largest among the combinations uncorrelated with
    those before[^1]. Their sum measures how much two views, or two selections, share.

    Parameters
    ----------
    A, B
        (n, p) and (n, q) observations in the same order, as arrays or frames; (n,) is one variable.

    Returns
    -------
    Array of shape (min(rank A, rank B),): correlations in [0, 1], descending.

    Raises
    ------
    ValueError
        For NaN or infinite values, different numbers of rows, or a set of constant variables.
    TypeError
        For values that are not real numbers, and for a sparse matrix.

    Notes
    -----
    The correlations are the cosines of the principal angles between the spans of the centred
    columns: the singular values of $U_A^T U_B$, with orthonormal bases from singular value
    decompositions, which lose no digits as $A^T A$ would[^2]. They are invariant to offsets and
    scales of the columns. Constant columns and combinations of others, up to rounding, do not count
    towards the rank.

    If rank A + rank B exceeds n - 1, the two spans intersect: the excess is the number of
    correlations that are 1 for any data.

    Time is $O(n (p^2 + q^2))$, p and q at most n each; memory is twice that of A and B.

    References
    ----------
    [^1]: Hotelling, H. (1936). Relations between two sets of variates. Biometrika 28, 321–377.

    [^2]: Björck, Å. and Golub, G. H. (1973). Numerical methods for computing angles between linear
    subspaces. Mathematics of Computation 27, 579–594.

    Examples
    --------
    Two views share one hidden cause, and each has noise of its own:

    >>> import numpy as np
    >>> from streamsel.evaluate import canonical_correlations
    >>> rng = np.random.default_rng(0)
    >>> cause = rng.standard_normal((1_000, 1))
    >>> A = cause + rng.standard_normal((1_000, 3))
    >>> B = cause + rng.standard_normal((1_000, 2))
    >>> canonical_correlations(A, B).round(2)
    array([0.71, 0.04])
    """
    A, B = as_pair(A, B, ("A", "B"))
    cosines = np.linalg.svd(_basis(A, "A").T @ _basis(B, "B"), compute_uv=False)
    return np.clip(cosines, 0.0, 1.0)


def _basis(X: Floats, what: str) -> Floats:
    """Return an orthonormal basis of the span of the centred columns."""
    C, rounding = unit_columns(X, what)
    U, s, _ = np.linalg.svd(C, full_matrices=False)
    # Singular values within the error of the decomposition, or of rounding in the data, count as 0.
    tolerance = s[0] * max(C.shape) * EPS + np.linalg.norm(rounding)
    return U[:, s > tolerance]
