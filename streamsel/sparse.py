"""Whether the parts of a sparse matrix fit one another: SciPy goes where they tell it."""

from __future__ import annotations

from typing import Any

import numpy as np


def expect_whole(matrix: Any, *, indices: bool = True) -> None:
    """Raise ValueError for a matrix of scipy.sparse whose parts point beyond what is there.

    One that was read from a damaged file, or put together by hand, may: SciPy looks at nothing, and
    reads or writes foreign memory.

    Parameters
    ----------
    matrix
        The matrix; of formats that are not made of such parts nothing is asked.
    indices
        Whether every index is looked at; if not, whoever reads them does.
    """
    form, shape = getattr(matrix, "format", None), matrix.shape
    if form in ("csc", "csr", "bsr"):
        ends, places, values = matrix.indptr, matrix.indices, matrix.data
        blocks = values.shape[1:] if form == "bsr" else (1, 1)
        lines, width = (shape[1], shape[0]) if form == "csc" else (shape[0], shape[-1])
        lines, width = (lines // blocks[0], width // blocks[1]) if len(shape) == 2 else (1, width)
        fits = (
            ends.shape == (lines + 1,)
            and ends[0] >= 0
            and bool((ends[:-1] <= ends[1:]).all())
            and ends[-1] <= min(len(places), len(values))
        )
        stored = places[ends[0] : ends[-1]] if fits else places[:0]
        if not fits or (indices and not _within(stored, width)):
            raise _unfit(matrix)
    elif form == "coo":
        of_shape = len(matrix.coords) == len(shape)
        if not of_shape or not all(
            len(places) == len(matrix.data) and _within(places, size)
            for places, size in zip(matrix.coords, shape, strict=True)
        ):
            raise _unfit(matrix)


def _within(places: np.ndarray[Any, Any], size: int) -> bool:
    return not places.size or bool(places.min() >= 0 and places.max() < size)


def _unfit(matrix: Any) -> ValueError:
    return ValueError(
        f"Expected a sparse matrix whose parts fit its shape, {matrix.shape}. Got: indices beyond "
        "it, or beyond what is stored.\n"
        "Hint: matrix.check_format() says what is wrong with it."
    )
