"""Kernel alignment: the correlation of two Gram matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from streamsel.evaluate._matrices import (
    Floats,
    as_matrix,
    as_pair,
    centred,
    expect_variation,
)


def kernel_alignment(K: Any, L: Any) -> float:
    r"""Return the centred alignment of two kernels.

    $\langle HKH, HLH \rangle_F \,/\, (\|HKH\|_F \|HLH\|_F)$ with $H = I - 11^T/n$: the cosine
    between the two Gram matrices, once both feature spaces are centred[^1]. Also known as CKA.

    Parameters
    ----------
    K, L
        (n, n) Gram matrices of the same observations in the same order.

    Returns
    -------
    Alignment: 1 for kernels that are proportional after centring, in [0, 1] for positive
    semi-definite ones.

    Raises
    ------
    ValueError
        For NaN or infinite values, matrices that are not square or not of one size, or a kernel
        that is 0 after centring.
    TypeError
        For values that are not real numbers.

    See Also
    --------
    linear_alignment : the same for linear kernels, without a Gram matrix.

    Notes
    -----
    Time and memory are $O(n^2)$: about four matrices of that size in addition to the two.

    References
    ----------
    [^1]: Cortes, C., Mohri, M. and Rostamizadeh, A. (2012). Algorithms for learning kernels based
    on centered alignment. Journal of Machine Learning Research 13, 795–828.

    Examples
    --------
    How near is a Gaussian kernel of one variable to the ideal kernel of the classes?

    >>> import numpy as np
    >>> from streamsel.evaluate import kernel_alignment
    >>> x = np.array([0.0, 0.1, 0.3, 2.0, 2.2])
    >>> classes = np.array(["a", "a", "a", "b", "b"])
    >>> K = np.exp(-np.subtract.outer(x, x) ** 2)
    >>> kernel_alignment(K, classes[:, None] == classes)
    0.9987
    """
    K, L = _centred_gram(K, "K"), _centred_gram(L, "L")
    if len(K) != len(L):
        raise ValueError(
            f"Expected K and L of the same observations. Got: shapes {K.shape} and {L.shape}."
        )
    # Divided one by one, because the product of the norms of two kernels may underflow.
    cosine = float((K / np.linalg.norm(K) * (L / np.linalg.norm(L))).sum())
    return min(1.0, max(-1.0, cosine))


def linear_alignment(X: Any, Y: Any) -> float:
    r"""Return the centred alignment of the linear kernels of two sets of variables.

    $\|\tilde X^T \tilde Y\|_F^2 \,/\, (\|\tilde X^T \tilde X\|_F \|\tilde Y^T \tilde Y\|_F)$ with
    centred columns: `kernel_alignment(X @ X.T, Y @ Y.T)`. Also known as linear CKA[^1]. Between
    two single variables it is the square of their correlation.

    Parameters
    ----------
    X, Y
        (n, p) and (n, c) observations in the same order, as arrays or frames; (n,) is one variable.
        Labels come as indicator columns.

    Returns
    -------
    Alignment in [0, 1]. It is invariant to offsets of the columns, rotations, and a common scale;
    unlike canonical correlations, it depends on their relative scales.

    Raises
    ------
    ValueError
        For NaN or infinite values, different numbers of rows, or a set of constant variables.
    TypeError
        For values that are not real numbers, and for a sparse matrix.

    Notes
    -----
    Time is $O(n\,(p + c)^2)$, and no n×n matrix is made, unless p or c is so large that it is the
    smaller one.

    References
    ----------
    [^1]: Kornblith, S., Norouzi, M., Lee, H. and Hinton, G. (2019). Similarity of neural network
    representations revisited. ICML 2019, 3519–3529. Section 3.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsel.evaluate import linear_alignment
    >>> linear_alignment([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])  # correlation² = 27/28
    0.964286
    """
    X, Y = as_pair(X, Y, ("X", "Y"))
    X, Y = centred(X), centred(Y)
    expect_variation(X, "X")
    expect_variation(Y, "Y")
    return min(1.0, _inner(X, Y) / math.sqrt(_inner(X, X) * _inner(Y, Y)))


def _inner(A: Floats, B: Floats) -> float:
    """Return ⟨AAᵀ, BBᵀ⟩ = ‖AᵀB‖², computed from the smaller of the two kinds of matrices."""
    if A.shape[1] * B.shape[1] <= len(A) ** 2:
        return float(np.square(A.T @ B).sum())
    return max(0.0, float(((A @ A.T) * (B @ B.T)).sum()))


def _centred_gram(K: Any, what: str) -> Floats:
    """Return HKH, transposed and scaled by a power of two."""
    K = as_matrix(K, what)
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"Expected {what} of shape (n, n). Got: {K.shape}.\n"
            "Hint: linear_alignment takes the observations themselves."
        )
    C = centred(centred(K).T)
    if not C.any():
        raise ValueError(
            f"Expected a kernel that varies as {what}. Got: one that is 0 after centring."
        )
    return C
