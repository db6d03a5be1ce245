"""Similarity of two sets of variables: kernel alignment (CKA) and canonical correlations.

The measures are of finite observations, centred and scaled by powers of two.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel.serialization.json_values import as_array

Floats = NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)
# Variation within this many roundings of the mean counts as none, as in the learners.
ROUNDINGS = 8.0 * EPS


def as_matrix(values: Any, what: str) -> Floats:
    """Return observations as an (n, p) float64 array; one variable may be of shape (n,).

    Parameters
    ----------
    values
        An array, a nested sequence, a series, or a frame supported by narwhals.
    what
        The name of the argument, for error messages.

    Raises
    ------
    ValueError
        For missing or infinite values, fewer than 2 rows, or no columns.
    TypeError
        For values that are not real numbers, and for a sparse matrix.
    """
    if hasattr(values, "toarray"):
        raise TypeError(
            f"Expected a dense array or a frame as {what}. Got: a sparse matrix.\n"
            f"Hint: {what}.toarray(), if it fits into memory."
        )
    array = as_numbers(values, what)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[0] < 2 or array.shape[1] < 1:
        raise ValueError(
            f"Expected {what} of shape (n, p), at least 2 rows and 1 column. Got: shape "
            f"{np.shape(values)}."
        )
    finite = np.isfinite(array)
    if not finite.all():
        row, column = np.argwhere(~finite)[0].tolist()
        raise ValueError(
            f"Expected finite numbers in {what}. Got: {array[row, column]} in row {row}, column "
            f"{column}.\nHint: impute missing values, or drop the row or the column."
        )
    return array


def as_numbers(values: Any, what: str) -> Floats:
    """Return an array or a frame as float64, NaN for null; raise TypeError for other values."""
    if not isinstance(values, np.ndarray | list | tuple):
        # Imported late: this module imports the compiled kernels, which arrays do not need.
        from streamsel.base.frame_columns import as_frame
        from streamsel.base.row_input import read_frame

        if as_frame(values) is not None:
            return read_frame(values)[1]
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    array = as_array(values, what)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"Expected real numbers as {what}. Got: values of type {array.dtype}.")
    return array.astype(np.float64, copy=False)


def as_pair(A: Any, B: Any, names: tuple[str, str]) -> tuple[Floats, Floats]:
    """Return two sets of variables of the same observations as matrices, or raise an error."""
    A, B = as_matrix(A, names[0]), as_matrix(B, names[1])
    if len(A) != len(B):
        raise ValueError(
            f"Expected as many rows in {names[0]} as in {names[1]}. Got: {len(A)} and {len(B)}.\n"
            "Hint: both must hold the same observations, in the same order."
        )
    return A, B


def expect_variation(C: Floats, what: str) -> None:
    """Raise ValueError if a centred matrix is 0."""
    if not C.any():
        raise ValueError(
            f"Expected a column that varies in {what}. Got: {C.shape[1]} constant ones."
        )


def centred_columns(X: Floats) -> tuple[Floats, NDArray[np.int32]]:
    """Centre every column, and scale it by a power of two.

    Returns
    -------
    C, (n, p), and exponents e, (p,): the deviations of column j from its mean are C[:, j] 2**e[j],
    the largest of C[:, j] between 1/2 and 1. A column that varies by no more than rounding is 0.
    """
    # Scaling by powers of two costs no digits, and squares neither overflow nor vanish.
    exponents = _exponents(X)
    C = np.ldexp(X, -exponents)
    mean = C.mean(axis=0)
    C -= mean
    # With a large offset, the rounding error of the mean is large compared with the deviations.
    C -= C.mean(axis=0)
    C[:, np.linalg.norm(C, axis=0) <= ROUNDINGS * np.abs(mean) * np.sqrt(len(C))] = 0.0
    own = _exponents(C)
    return np.ldexp(C, -own, out=C), exponents + own


def centred(X: Floats) -> Floats:
    """Centre the columns, and divide all of them by the power of two that makes the largest 1."""
    C, exponents = centred_columns(X)
    varying = C.any(axis=0)
    if varying.any():
        np.ldexp(C, exponents - exponents[varying].max(), out=C)
    return C


def columns_of_unit_norm(X: Floats, what: str) -> tuple[Floats, Floats]:
    """Centre the columns that vary, and divide each by its norm.

    Returns
    -------
    The columns, and for each the norm of the error that rounding of X itself may cause.

    Raises
    ------
    ValueError
        If none varies.
    """
    C, exponents = centred_columns(X)
    expect_variation(C, what)
    varying = C.any(axis=0)
    C = C[:, varying]
    norms = np.linalg.norm(C, axis=0)
    scale_change = _exponents(X)[varying] - exponents[varying]
    return C / norms, np.ldexp(EPS * np.sqrt(len(C)), scale_change) / norms


def _exponents(X: Floats) -> NDArray[np.int32]:
    """Return e for every column: 2**(e - 1) <= its largest absolute value < 2**e."""
    exponents: NDArray[np.int32] = np.frexp(np.abs(X).max(axis=0))[1]
    return exponents


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
        Pass labels as indicator columns.

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
    C, rounding = columns_of_unit_norm(X, what)
    U, s, _ = np.linalg.svd(C, full_matrices=False)
    # Singular values within the error of the decomposition, or of rounding in the data, count as 0.
    tolerance = s[0] * max(C.shape) * EPS + np.linalg.norm(rounding)
    return U[:, s > tolerance]
