"""Sparse matrices: conversion, and validation, as SciPy does not check their index arrays."""

from __future__ import annotations

from typing import Any

import numpy as np


def expect_consistent_sparse(matrix: Any, *, indices: bool = True) -> None:
    """Raise ValueError for a scipy.sparse matrix whose index arrays are out of bounds.

    A matrix from a damaged file, or built by hand, can be invalid: SciPy does not check it and
    would read or write outside its arrays.

    Parameters
    ----------
    matrix
        The matrix; formats without index arrays are not checked.
    indices
        Whether to check every index; if not, the code that uses them must.
    """
    form, shape = getattr(matrix, "format", None), matrix.shape
    if form in ("csc", "csr", "bsr"):
        indptr, stored_at, values = matrix.indptr, matrix.indices, matrix.data
        blocks = values.shape[1:] if form == "bsr" else (1, 1)
        lines, width = (shape[1], shape[0]) if form == "csc" else (shape[0], shape[-1])
        lines, width = (lines // blocks[0], width // blocks[1]) if len(shape) == 2 else (1, width)
        fits = (
            indptr.shape == (lines + 1,)
            and indptr[0] >= 0
            and bool((indptr[:-1] <= indptr[1:]).all())
            and indptr[-1] <= min(len(stored_at), len(values))
        )
        stored = stored_at[indptr[0] : indptr[-1]] if fits else stored_at[:0]
        if not fits or (indices and not _within(stored, width)):
            raise _invalid_matrix(matrix)
    elif form == "coo":
        has_all_axes = len(matrix.coords) == len(shape)
        if not has_all_axes or not all(
            len(stored_at) == len(matrix.data) and _within(stored_at, size)
            for stored_at, size in zip(matrix.coords, shape, strict=True)
        ):
            raise _invalid_matrix(matrix)


def _within(indices: np.ndarray[Any, Any], size: int) -> bool:
    # Read as unsigned, a negative index is larger than any size: one pass suffices.
    unsigned = indices.view(f"u{indices.itemsize}") if indices.dtype.kind == "i" else indices
    return not indices.size or bool(unsigned.max() < size)


def _invalid_matrix(matrix: Any) -> ValueError:
    return ValueError(
        f"Expected a sparse matrix whose index arrays fit its shape, {matrix.shape}. Got: indices "
        "out of bounds.\n"
        "Hint: matrix.check_format() reports the error."
    )


def is_sparse(values: Any) -> bool:
    """Return whether values are a scipy.sparse array or matrix, without importing scipy."""
    return not isinstance(values, np.ndarray) and hasattr(values, "tocsc")


def as_dense(values: Any) -> Any:
    """Return a scipy.sparse array or matrix as a dense array, other values as they are."""
    return values.toarray() if is_sparse(values) else values


def dense_column(values: Any) -> Any:
    """Return a sparse column as a dense vector, other values as they are."""
    return as_dense(values).ravel() if is_sparse(values) else values


def value_bytes(values: Any) -> int:
    """Return the bytes of an array, or of the stored values of a sparse one and their indices."""
    if is_sparse(values):
        return int(values.data.nbytes + values.indices.nbytes)
    return int(values.nbytes)
