"""BLAS routines that add a product to part of a matrix, in place.

NumPy would allocate each product and add it afterwards. These are the routines that SciPy exports
to compiled code; called through ctypes, they release the GIL.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np
from numba.extending import get_cython_function_address
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_ONE = ctypes.c_double(1.0)


@functools.cache
def _routine(name: str, n_arguments: int) -> Any:
    """Return a BLAS routine, all of whose arguments are pointers."""
    address = get_cython_function_address("scipy.linalg.cython_blas", name)
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n_arguments)(address)


def _integers(*numbers: int) -> list[Any]:
    return [ctypes.byref(ctypes.c_int(number)) for number in numbers]


def _row_stride(array: Floats) -> int:
    """Return the distance between the starts of two rows, in numbers."""
    return array.strides[0] // 8


# BLAS is column-major: it sees a matrix with contiguous rows as its transpose.


def add_square(A: Floats, out: Floats) -> None:
    """Add AᵀA to the lower triangle of out (t, t); A is (w, t); the rows of both are contiguous."""
    w, t = A.shape
    size, depth, stride_a, stride_out = _integers(t, w, _row_stride(A), _row_stride(out))
    one = ctypes.byref(_ONE)
    _routine("dsyrk", 10)(
        b"U", b"N", size, depth, one, A.ctypes.data, stride_a, one, out.ctypes.data, stride_out
    )


def add_product(A: Floats, B: Floats, out: Floats) -> None:
    """Add AᵀB to out (t, s); A is (w, t), B (w, s); the rows of all are contiguous."""
    w, t = A.shape
    columns, rows, depth, stride_a, stride_b, stride_out = _integers(
        B.shape[1], t, w, _row_stride(A), _row_stride(B), _row_stride(out)
    )
    one = ctypes.byref(_ONE)
    _routine("dgemm", 13)(
        *(b"N", b"T", columns, rows, depth, one, B.ctypes.data, stride_b, A.ctypes.data, stride_a),
        *(one, out.ctypes.data, stride_out),
    )
