"""Streams of the columns of Zarr arrays."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

from streamsel.data.names import check_names
from streamsel.params import type_name
from streamsel.stream._chunked import DenseMatrix, matrix_stream, store_errors
from streamsel.stream._parts import Stamp, cached_reader, split_columns
from streamsel.stream._stream import ColumnStream

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence


_KIND = "Zarr array"


def iter_zarr(array: Any, names: Sequence[Hashable] | None = None) -> ColumnStream:
    """Stream the columns of a two-dimensional Zarr array that may exceed memory.

    Parameters
    ----------
    array
        A `zarr.Array` of shape (n, p), observations by columns, or the path or URL of one, in
        Zarr format 2 or 3; the path of an array in a group is ``group.zarr/name``.
    names
        One distinct hashable for each column; 0, 1, ..., p - 1 by default.

    Raises
    ------
    FileNotFoundError
        If there is no such array.
    ValueError
        If it is a group, not two-dimensional, not numeric, or its chunks are too large; if there
        are not p distinct names.
    TypeError
        If `array` is of any other type.
    ImportError
        If zarr is not installed: ``pip install "streamsel[zarr]"``.

    Notes
    -----
    Reading a column decodes all chunks that contain a part of it. Each read therefore covers
    complete columns of chunks: about 16 MiB, or a single column of chunks if that is larger. Chunks
    with all rows and some columns are best. If a column of chunks exceeds 32 MiB and a row of
    chunks is smaller, as with chunks of few rows and all columns, the array is transposed once, at
    the first read: its rows are read in order, 32 MiB at a time, and a transposed copy of the whole
    array is written to a temporary file, in the directory that `tempfile` chooses (TMPDIR). If
    neither fits into 256 MiB, the array is refused.

    In the Zarr format an absent chunk has the array's fill value, usually 0. A chunk that was lost,
    for example by an incomplete copy of a directory, cannot be distinguished from it.

    Dtypes are those of `iter_array`. An array in a directory, accessible to other processes, can be
    split into parts.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import zarr
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data = np.array([[1.0, 2.0], [3.0, 4.0]])
    ...     array = zarr.create_array(f"{folder}/x.zarr", data=data, chunks=(2, 1))
    ...     for name, values in iter_zarr(f"{folder}/x.zarr", names=["a", "b"]):
    ...         print(name, values)
    a [1. 3.]
    b [2. 4.]
    """
    if not isinstance(array, (str, os.PathLike)):
        if not isinstance(array, _zarr().Array):
            raise TypeError(
                f"Expected a zarr.Array, or the path or URL of one. Got: {type_name(array)}.\n"
                "Hint: use streamsel.stream.iter_array for NumPy arrays, iter_sparse for SciPy."
            )
        matrix = DenseMatrix(array, str(array.store_path))
        return matrix_stream(matrix, check_names(names, matrix.shape[1]), 0, _KIND)
    path = array
    stamp = Stamp.of(path)
    matrix = _open(path)
    all_names = check_names(names, matrix.shape[1])

    def opener(a: int, b: int) -> partial[ColumnStream]:
        return partial(_zarr_part, stamp.path, all_names[a:b], a)

    p = matrix.shape[1]
    size = max(1, matrix.n_bytes // max(1, p))
    cut = partial(split_columns, path, (stamp,), range(0, (p + 1) * size, size), opener)
    return matrix_stream(matrix, all_names, 0, _KIND, cut)


def _zarr_part(path: str, names: Sequence[Hashable], first: int) -> ColumnStream:
    return matrix_stream(cached_reader(_open, path), names, first, _KIND)


def _zarr() -> Any:
    try:
        import zarr
    except ModuleNotFoundError as error:
        raise ImportError('Zarr arrays need zarr. Hint: pip install "streamsel[zarr]".') from error
    return zarr


def _open(path: str | os.PathLike[str]) -> DenseMatrix:
    zarr = _zarr()
    with store_errors(_KIND, path):
        opened = zarr.open(os.fspath(path), mode="r")
    if not isinstance(opened, zarr.Array):
        arrays = ", ".join(f"{name} {a.shape}" for name, a in sorted(opened.arrays())[:5])
        raise ValueError(  # noqa: TRY004 (the content of the path is wrong, not its type)
            f"Expected a Zarr array. Got: {os.fspath(path)!r}, a group"
            + (f" with {arrays}.\nHint: open one of them by its path." if arrays else ".")
        )
    return DenseMatrix(opened, path)
