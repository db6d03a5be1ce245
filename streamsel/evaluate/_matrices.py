"""Matrices of observations in the form that the measures need: finite, centred and scaled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel.plain import array_of

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
        from streamsel.rows import as_frame, read_frame

        if as_frame(values) is not None:
            return read_frame(values)[1]
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    array = array_of(values, what)
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


def unit_columns(X: Floats, what: str) -> tuple[Floats, Floats]:
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
