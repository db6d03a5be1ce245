"""BLAS and LAPACK by pointers: products into triangles, factors, reductions to tridiagonal form.

`scipy.linalg.blas` and `scipy.linalg.lapack` keep the GIL, so that `n_jobs` would not help (other
threads waited for 1.0 s during a product of 3,000 x 3,000 matrices; here 0.005 s). They copy each
tile (10 MB). `out += A.T @ B` of NumPy differs in the last bits.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np
from numba.extending import get_cython_function_address
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@functools.cache
def _routine(library: str, name: str, n_arguments: int) -> Any:
    """Return a routine of `cython_blas` or `cython_lapack`, all of whose arguments are pointers."""
    address = get_cython_function_address(f"scipy.linalg.{library}", name)
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n_arguments)(address)


def _integers(*numbers: int) -> list[Any]:
    """Return pointers to integers."""
    return [ctypes.byref(ctypes.c_int(number)) for number in numbers]


_ONE, _ZERO = ctypes.c_double(1.0), ctypes.c_double(0.0)


def _row_stride(array: Floats) -> int:
    """Return the distance between the starts of two rows, in numbers."""
    return array.strides[0] // 8


# BLAS is column-major: it sees a matrix with contiguous rows as its transpose.


def add_square(A: Floats, out: Floats, factor: float = 1.0) -> None:
    """Add AᵀA times a factor to the lower triangle of out (t, t); A is (w, t).

    The rows of both are contiguous.
    """
    w, t = A.shape
    size, depth, stride_a, stride_out = _integers(t, w, _row_stride(A), _row_stride(out))
    alpha, one = ctypes.byref(ctypes.c_double(factor)), ctypes.byref(_ONE)
    _routine("cython_blas", "dsyrk", 10)(
        b"U", b"N", size, depth, alpha, A.ctypes.data, stride_a, one, out.ctypes.data, stride_out
    )


def add_product(A: Floats, B: Floats, out: Floats) -> None:
    """Add AᵀB to out (t, s); A is (w, t), B (w, s); the rows of all are contiguous."""
    w, t = A.shape
    columns, rows, depth, stride_a, stride_b, stride_out = _integers(
        B.shape[1], t, w, _row_stride(A), _row_stride(B), _row_stride(out)
    )
    one = ctypes.byref(_ONE)
    _routine("cython_blas", "dgemm", 13)(
        *(b"N", b"T", columns, rows, depth, one, B.ctypes.data, stride_b, A.ctypes.data, stride_a),
        *(one, out.ctypes.data, stride_out),
    )


def fill_product(A: Floats, B: Floats, out: Floats) -> None:
    """Fill out (t, s) with AB; A is (t, w), B (w, s); the rows of all are contiguous."""
    t, w = A.shape
    columns, rows, depth, stride_a, stride_b, stride_out = _integers(
        B.shape[1], t, w, _row_stride(A), _row_stride(B), _row_stride(out)
    )
    one, zero = ctypes.byref(_ONE), ctypes.byref(_ZERO)
    _routine("cython_blas", "dgemm", 13)(
        *(b"N", b"N", columns, rows, depth, one, B.ctypes.data, stride_b, A.ctypes.data, stride_a),
        *(zero, out.ctypes.data, stride_out),
    )


def is_positive_definite(A: Floats) -> bool:
    """Return whether a symmetric matrix (n, n) has a Cholesky factor, which overwrites it.

    It is C-contiguous.
    """
    size, stride = _integers(len(A), max(1, len(A)))
    failure = ctypes.c_int(0)
    _routine("cython_lapack", "dpotrf", 5)(b"L", size, A.ctypes.data, stride, ctypes.byref(failure))
    return failure.value == 0


def pivoted_cholesky(A: Floats) -> tuple[NDArray[np.intc], int]:
    """Factor a positive semidefinite matrix (n, n) with complete pivoting; return pivots and rank.

    A is C-contiguous. The factor, PᵀAP = LLᵀ, is written into it: the rows of L are its columns.
    The pivots (n,) are indices from 1.
    """
    n = len(A)
    pivots, work = np.empty(n, dtype=np.intc), np.empty(2 * n)
    rank = ctypes.c_int(0)
    size, stride, failure = _integers(n, max(1, n), 0)
    default_tolerance = ctypes.byref(ctypes.c_double(-1.0))
    _routine("cython_lapack", "dpstrf", 9)(
        *(b"L", size, A.ctypes.data, stride, pivots.ctypes.data, ctypes.byref(rank)),
        *(default_tolerance, work.ctypes.data, failure),
    )
    return pivots, rank.value


def lower_products(L: Floats) -> Floats:
    """Return the lower triangle of LᵀL, for a lower triangular L (n, n)."""
    out = np.array(L, order="F")
    size, stride, failure = _integers(len(L), max(1, len(L)), 0)
    _routine("cython_lapack", "dlauum", 5)(b"L", size, out.ctypes.data, stride, failure)
    return out


def symmetric_product(A: Floats, v: Floats) -> Floats:
    """Return Av, (n,), for a symmetric and C-contiguous A (n, n)."""
    v, out = np.ascontiguousarray(v), np.zeros(len(A))
    size, stride, step = _integers(len(A), max(1, len(A)), 1)
    one, zero = ctypes.byref(_ONE), ctypes.byref(_ZERO)
    _routine("cython_blas", "dsymv", 10)(
        *(b"U", size, one, A.ctypes.data, stride, v.ctypes.data, step),
        *(zero, out.ctypes.data, step),
    )
    return out


# Columns of a block of a reduction to tridiagonal form.
_BLOCK = 32
# Numbers in the work space of LAPACK for a block of reflectors.
_REFLECTOR_ROOM = 64 * 65


def tridiagonalize(A: Floats) -> tuple[Floats, Floats, Floats]:
    """Reduce a symmetric matrix (n, n) to tridiagonal form, A = QTQᵀ.

    Returns the diagonal (n,) and the off-diagonal (n - 1,) of T, and the scales of the reflectors
    whose product is Q. A is C-contiguous; the reflectors are written into it.
    """
    n = len(A)
    diagonal, off_diagonal, scales = np.empty(n), np.empty(max(0, n - 1)), np.empty(max(0, n - 1))
    work = np.empty(max(1, _BLOCK * n))
    size, stride, room, failure = _integers(n, max(1, n), work.size, 0)
    arrays = (array.ctypes.data for array in (diagonal, off_diagonal, scales, work))
    _routine("cython_lapack", "dsytrd", 10)(
        b"L", size, A.ctypes.data, stride, *arrays, room, failure
    )
    return diagonal, off_diagonal, scales


def tridiagonal_eigenpairs(
    diagonal: Floats, off_diagonal: Floats, first: int, last: int
) -> tuple[Floats, Floats]:
    """Return the eigenvalues from index `first` to `last`, ascending, and their vectors, (n, k).

    The matrix has these entries, (n,) and (n - 1,). The results are those of
    `scipy.linalg.eigh_tridiagonal`.
    """
    n, k = diagonal.size, last - first + 1
    values, vectors = np.empty(n), np.empty((k, n)).T
    work, integers = np.empty(5 * n), np.empty(3 * n, dtype=np.intc)
    blocks, splits = np.empty(n, dtype=np.intc), np.empty(n, dtype=np.intc)
    diagonal, off_diagonal = np.ascontiguousarray(diagonal), np.ascontiguousarray(off_diagonal)
    arrays = diagonal.ctypes.data, off_diagonal.ctypes.data
    found, failure = ctypes.c_int(0), ctypes.c_int(0)
    size, lowest, highest, n_splits = _integers(n, first + 1, last + 1, 0)
    zero, n_found, info = ctypes.byref(_ZERO), ctypes.byref(found), ctypes.byref(failure)
    _routine("cython_lapack", "dstebz", 18)(
        *(b"I", b"B", size, zero, zero, lowest, highest, zero, *arrays, n_found, n_splits),
        *(values.ctypes.data, blocks.ctypes.data, splits.ctypes.data),
        *(work.ctypes.data, integers.ctypes.data, info),
    )
    if not failure.value:
        unconverged = np.empty(k, dtype=np.intc)
        _routine("cython_lapack", "dstein", 13)(
            *(size, *arrays, n_found, values.ctypes.data, blocks.ctypes.data, splits.ctypes.data),
            *(vectors.ctypes.data, size, work.ctypes.data, integers.ctypes.data),
            *(unconverged.ctypes.data, info),
        )
    if failure.value:
        raise np.linalg.LinAlgError("Eigenvalues of a tridiagonal matrix did not converge.")
    order = np.argsort(values[:k])
    return values[:k][order], vectors[:, order]


def multiply_by_reflectors(A: Floats, scales: Floats, V: Floats, *, transposed: bool) -> Floats:
    """Return QV or QᵀV, for V (n, k) and the reflectors that `tridiagonalize` wrote into A."""
    out = np.array(V, order="F")
    n, k = out.shape
    work = np.empty(_BLOCK * max(1, k) + _REFLECTOR_ROOM)
    rows, columns, stride, room, failure = _integers(n, k, max(1, n), work.size, 0)
    how = (b"L", b"L", b"T" if transposed else b"N", rows, columns, A.ctypes.data, stride)
    arrays = (scales.ctypes.data, out.ctypes.data, stride, work.ctypes.data, room, failure)
    _routine("cython_lapack", "dormtr", 13)(*how, *arrays)
    return out
