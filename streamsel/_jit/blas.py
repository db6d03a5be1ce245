"""BLAS where NumPy does not reach: products that are added to a part of a matrix, in place.

NumPy would make each product in memory of its own and add it after. These are the routines that
SciPy offers to compiled code; called so, they let go of Python's lock.
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
    """Return a routine of BLAS; all of its arguments are pointers."""
    address = get_cython_function_address("scipy.linalg.cython_blas", name)
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n_arguments)(address)


def _integers(*numbers: int) -> list[Any]:
    return [ctypes.byref(ctypes.c_int(number)) for number in numbers]


def _apart(array: Floats) -> int:
    """Return how many numbers lie between the starts of two rows."""
    return array.strides[0] // 8


# To BLAS a matrix whose rows are contiguous is its transpose.


def add_square(A: Floats, out: Floats) -> None:
    """Add AᵀA to the lower triangle of out (t, t); A is (w, t), the rows of both contiguous."""
    w, t = A.shape
    size, depth, of_a, of_out = _integers(t, w, _apart(A), _apart(out))
    one = ctypes.byref(_ONE)
    _routine("dsyrk", 10)(
        b"U", b"N", size, depth, one, A.ctypes.data, of_a, one, out.ctypes.data, of_out
    )


def add_product(A: Floats, B: Floats, out: Floats) -> None:
    """Add AᵀB to out (t, s); A is (w, t), B (w, s), the rows of all contiguous."""
    w, t = A.shape
    columns, rows, depth, of_a, of_b, of_out = _integers(
        B.shape[1], t, w, _apart(A), _apart(B), _apart(out)
    )
    one = ctypes.byref(_ONE)
    _routine("dgemm", 13)(
        *(b"N", b"T", columns, rows, depth, one, B.ctypes.data, of_b, A.ctypes.data, of_a),
        *(one, out.ctypes.data, of_out),
    )
