"""Matrices of observations as the measures need them: finite, centred, of a harmless scale."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel.plain import array_of

Floats = NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)
# Variation within this many roundings of the mean is no variation, as for the learners.
ROUNDINGS = 8.0 * EPS


def as_matrix(values: Any, what: str) -> Floats:
    """Return observations as an (n, p) float64 array; one variable may come as (n,).

    Parameters
    ----------
    values
        An array, a nested sequence, a series, or a frame that narwhals knows.
    what
        The name of the argument, for the errors.

    Raises
    ------
    ValueError
        For missing or infinite values, and where there are not n >= 2 rows and p >= 1 columns.
    TypeError
        For what is not real numbers, and for a sparse matrix.
    """
    if hasattr(values, "toarray"):
        raise TypeError(
            f"Expected a dense array or a frame as {what}, got: a sparse matrix.\n"
            f"Hint: {what}.toarray(), where it fits into memory."
        )
    array = as_numbers(values, what)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[0] < 2 or array.shape[1] < 1:
        raise ValueError(
            f"Expected {what} of shape (n, p), at least 2 rows and 1 column, got: shape "
            f"{np.shape(values)}."
        )
    finite = np.isfinite(array)
    if not finite.all():
        row, column = np.argwhere(~finite)[0].tolist()
        raise ValueError(
            f"Expected finite numbers in {what}, got: {array[row, column]} in row {row}, column "
            f"{column}.\nHint: fill in what is missing, or leave the row or the column out."
        )
    return array


def as_numbers(values: Any, what: str) -> Floats:
    """Return an array or a frame as float64, NaN where null; raise TypeError for other things."""
    if not isinstance(values, np.ndarray | list | tuple):
        # Behind this door stand the compiled kernels: an array need not wait for them.
        from streamsel.rows import as_frame, read_frame

        if as_frame(values) is not None:
            return read_frame(values)[1]
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    array = array_of(values, what)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"Expected real numbers as {what}, got: values of type {array.dtype}.")
    return array.astype(np.float64, copy=False)


def as_pair(A: Any, B: Any, names: tuple[str, str]) -> tuple[Floats, Floats]:
    """Return two sets of variables of the same observations; raise as `as_matrix`, by name."""
    A, B = as_matrix(A, names[0]), as_matrix(B, names[1])
    if len(A) != len(B):
        raise ValueError(
            f"Expected as many rows in {names[0]} as in {names[1]}, got: {len(A)} and {len(B)}.\n"
            "Hint: both are of the same observations, in the same order."
        )
    return A, B


def expect_variation(C: Floats, what: str) -> None:
    """Raise ValueError where all of a centred matrix is 0."""
    if not C.any():
        raise ValueError(
            f"Expected a column that varies in {what}, got: {C.shape[1]} constant ones."
        )


def centred_columns(X: Floats) -> tuple[Floats, NDArray[np.int32]]:
    """Centre every column on a scale of its own.

    Returns
    -------
    C, (n, p), and exponents e, (p,): the deviations of column j from its mean are C[:, j] 2**e[j],
    the largest of C[:, j] between 1/2 and 1. A column that varies by no more than rounding is 0.
    """
    # Powers of two: to scale by them costs no digit, and no square overflows or vanishes.
    exponents = _exponents(X)
    C = np.ldexp(X, -exponents)
    mean = C.mean(axis=0)
    C -= mean
    # Where the offset is large, what rounding took from the mean is large beside the deviations.
    C -= C.mean(axis=0)
    C[:, np.linalg.norm(C, axis=0) <= ROUNDINGS * np.abs(mean) * np.sqrt(len(C))] = 0.0
    own = _exponents(C)
    return np.ldexp(C, -own, out=C), exponents + own


def centred(X: Floats) -> Floats:
    """Centre the columns, and divide all of them by one power of two that makes the largest 1."""
    C, exponents = centred_columns(X)
    varying = C.any(axis=0)
    if varying.any():
        np.ldexp(C, exponents - exponents[varying].max(), out=C)
    return C


def unit_columns(X: Floats, what: str) -> tuple[Floats, Floats]:
    """Centre the columns that vary, and divide each by its norm.

    Returns
    -------
    The columns, and what rounding of X itself may have changed of each: a norm.

    Raises
    ------
    ValueError
        Where none varies.
    """
    C, exponents = centred_columns(X)
    expect_variation(C, what)
    varying = C.any(axis=0)
    C = C[:, varying]
    norms = np.linalg.norm(C, axis=0)
    lost = _exponents(X)[varying] - exponents[varying]
    return C / norms, np.ldexp(EPS * np.sqrt(len(C)), lost) / norms


def _exponents(X: Floats) -> NDArray[np.int32]:
    """Return e for every column: 2**(e - 1) <= its largest number < 2**e."""
    exponents: NDArray[np.int32] = np.frexp(np.abs(X).max(axis=0))[1]
    return exponents
