"""BLAS and LAPACK by pointers: without the GIL and the copies of SciPy's wrappers."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np
from numba.extending import get_cython_function_address
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@functools.cache
def routine(library: str, name: str, n_arguments: int) -> Any:
    """Return a routine of `cython_blas` or `cython_lapack`, all of whose arguments are pointers."""
    address = get_cython_function_address(f"scipy.linalg.{library}", name)
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n_arguments)(address)


def integers(*numbers: int) -> list[Any]:
    """Return pointers to integers."""
    return [ctypes.byref(ctypes.c_int(number)) for number in numbers]


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
    size, stride, room, failure = integers(n, max(1, n), work.size, 0)
    arrays = (array.ctypes.data for array in (diagonal, off_diagonal, scales, work))
    routine("cython_lapack", "dsytrd", 10)(
        b"L", size, A.ctypes.data, stride, *arrays, room, failure
    )
    return diagonal, off_diagonal, scales


def multiply_by_reflectors(A: Floats, scales: Floats, V: Floats, *, transposed: bool) -> Floats:
    """Return QV or QᵀV, for V (n, k) and the reflectors that `tridiagonalize` wrote into A."""
    out = np.array(V, order="F")
    n, k = out.shape
    work = np.empty(_BLOCK * max(1, k) + _REFLECTOR_ROOM)
    rows, columns, stride, room, failure = integers(n, k, max(1, n), work.size, 0)
    how = (b"L", b"L", b"T" if transposed else b"N", rows, columns, A.ctypes.data, stride)
    arrays = (scales.ctypes.data, out.ctypes.data, stride, work.ctypes.data, room, failure)
    routine("cython_lapack", "dormtr", 13)(*how, *arrays)
    return out
