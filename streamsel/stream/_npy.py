"""Streams of the columns of dense arrays: in memory, and in .npy files."""

from __future__ import annotations

import errno
import os
import sys
import tokenize
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from streamsel._utils.sparse import is_sparse
from streamsel.data.chunks import Block
from streamsel.data.names import check_names
from streamsel.serialization.json_values import as_array
from streamsel.stream._blocks import (
    BLOCK_BYTES,
    BLOCK_DTYPES,
    MAX_COLUMNS,
    columns_per_block,
    storable,
)
from streamsel.stream._parts import Stamp, split_columns
from streamsel.stream._remote import local_file
from streamsel.stream._stream import ColumnStream, indexed_stream

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from streamsel.stream._parts import Cut

# In C order the entries of a column are far apart: several blocks are gathered at once, as
# otherwise each page of the file would be read once for every few columns.
_GATHERED_BYTES = 4 * BLOCK_BYTES
# The header is parsed as Python: an invalid one raises in the tokenizer, the parser or numpy.
_HEADER_ERRORS = (
    *(ValueError, TypeError, OverflowError, EOFError, OSError, MemoryError),
    *(RecursionError, SyntaxError, tokenize.TokenError),
)
# Longest header that numpy reads of an untrusted file, in bytes.
_MAX_HEADER = 10_000
# Reading one byte of a mapped file makes this many around it resident.
_READAHEAD_BYTES = 2**17


def iter_array(X: npt.ArrayLike, names: Sequence[Hashable] | None = None) -> ColumnStream:
    """Stream the columns of a two-dimensional array in memory.

    Parameters
    ----------
    X
        Array of shape (n, p), observations by columns. float64, float32, int8 and uint8 keep their
        dtype, bool becomes uint8, other numbers become float64.
    names
        One distinct hashable for each column; 0, 1, ..., p - 1 by default.

    Raises
    ------
    ValueError
        If X is not two-dimensional, or there are not p distinct names.
    TypeError
        If X is a masked, structured or sparse array.

    Notes
    -----
    A Fortran-contiguous array of those four dtypes or bool is not copied: the blocks are views of
    up to 65,536 columns. Any other array is copied in blocks of about 4 MiB, one at a time.

    Examples
    --------
    >>> import numpy as np
    >>> for name, values in iter_array(np.array([[1, 2], [3, 4]]), names=["a", "b"]):
    ...     print(name, values)
    a [1. 3.]
    b [2. 4.]
    """
    if is_sparse(X):
        raise TypeError("Expected a dense array X. Got: a sparse one.\nHint: use iter_sparse(X).")
    if isinstance(X, np.ma.MaskedArray):
        raise TypeError(
            "Expected an array X without a mask. Got: a masked array.\n"
            "Hint: X.astype(float).filled(numpy.nan) converts masked entries to NaN."
        )
    array = as_array(X, "columns")
    _check_shape_and_dtype(array.shape, array.dtype)
    n, p = array.shape
    all_names = check_names(names, p)
    viewable = array.flags.f_contiguous and (array.dtype in BLOCK_DTYPES or array.dtype.kind == "b")

    def read(start: int) -> Iterator[Block]:
        width = MAX_COLUMNS if viewable else _copied_width(n, array.dtype)
        for a in range(start, p, width):
            part = array[:, a : a + width]
            yield Block(all_names[a : a + width], np.asfortranarray(storable(part)))

    def fetch(positions: list[int]) -> list[Any]:
        return [storable(array[:, j]) for j in positions]

    return indexed_stream(all_names, n, read, fetch)


def iter_npy(path: str | os.PathLike[str], names: Sequence[Hashable] | None = None) -> ColumnStream:
    """Stream the columns of a two-dimensional array in a .npy file that may exceed memory.

    Parameters
    ----------
    path
        File written by `numpy.save`, or its URL, of shape (n, p), observations by columns.
    names
        One distinct hashable for each column; 0, 1, ..., p - 1 by default.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is not a .npy file, is truncated, holds Python objects, is not two-dimensional, or
        there are not p distinct names.

    Notes
    -----
    The file is memory-mapped one block at a time, so that resident memory does not grow with the
    file. In Fortran order (``numpy.save(path, numpy.asfortranarray(X))``) each block is a view of
    about 4 MiB. In C order the entries of a column are not contiguous: about 16 MiB of columns are
    gathered at once. Save tall arrays (n of tens of thousands or more) in Fortran order: reading is
    then many times faster.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "x.npy")
    ...     np.save(path, np.asfortranarray([[1.0, 2.0], [3.0, 4.0]]))
    ...     for name, values in iter_npy(path):
    ...         print(name, values)
    0 [1. 3.]
    1 [2. 4.]
    """
    stamp = Stamp.of(path)
    file = _NpyFile(path)
    all_names = check_names(names, file.shape[1])

    def opener(a: int, b: int) -> partial[ColumnStream]:
        return partial(_npy_part, stamp.path, all_names[a:b], a)

    n, p = file.shape
    size = max(1, n * file.dtype.itemsize)
    before = range(0, (p + 1) * size, size)
    return _npy_stream(file, all_names, 0, partial(split_columns, path, (stamp,), before, opener))


def _npy_part(path: str, names: Sequence[Hashable], first: int) -> ColumnStream:
    """Stream consecutive columns of a .npy file, from index `first` on, under these names."""
    return _npy_stream(_NpyFile(path), names, first)


def _npy_stream(
    file: _NpyFile, names: Sequence[Hashable], first: int, cut: Cut | None = None
) -> ColumnStream:
    n, end = file.shape[0], first + len(names)

    def read(start: int) -> Iterator[Block]:
        width = _copied_width(n, file.dtype)
        for a, part in file.parts(first + start, end, width):
            part_names = names[a - first : a - first + part.shape[1]]
            yield Block(part_names, np.asfortranarray(storable(part)))

    def fetch(positions: list[int]) -> list[Any]:
        columns = (file.columns(first + j, first + j + 1) for j in positions)
        return [storable(column[:, 0].copy()) for column in columns]

    return indexed_stream(names, n, read, fetch, cut)


class _NpyFile:
    """The array in a .npy file; only the requested columns are mapped."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        # The local copy of a URL is removed with this object.
        self._local = local_file(path)
        mapped = open_npy(path)
        _check_shape_and_dtype(mapped.shape, mapped.dtype)
        self._path = Path(self._local.path).resolve()
        self._offset = int(getattr(mapped, "offset", 0))
        self._fortran = bool(mapped.flags.f_contiguous)
        self.shape = mapped.shape
        self.dtype = mapped.dtype

    def parts(self, start: int, end: int, width: int) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """Yield (index of the first column, columns), at most `width` columns at a time."""
        n = self.shape[0]
        step = width
        if not self._fortran:
            step *= max(1, _GATHERED_BYTES // max(1, width * n * self.dtype.itemsize))
        for a in range(start, end, step):
            columns = self.columns(a, min(end, a + step))
            for b in range(0, columns.shape[1], width):
                yield a + b, columns[:, b : b + width]

    def columns(self, a: int, b: int) -> npt.NDArray[Any]:
        """Return the columns a, ..., b - 1: a view in Fortran order, otherwise a copy."""
        n, p = self.shape
        size = self.dtype.itemsize
        if n == 0:
            return np.empty((0, b - a), dtype=self.dtype)
        if self._fortran:
            return self._map(a * n * size, (n, b - a), "F")
        out = np.empty((n, b - a), dtype=self.dtype, order="F")
        step = max(1, BLOCK_BYTES // min(p * size, (b - a) * size + _READAHEAD_BYTES))
        for row in range(0, n, step):
            rows = self._map(row * p * size, (min(step, n - row), p), "C")
            out[row : row + step] = rows[:, a:b]
        return out

    def _map(self, offset: int, shape: tuple[int, int], order: Any) -> npt.NDArray[Any]:
        # Copy-on-write gives writable arrays, as for the other sources, and protects the file.
        mapped = np.memmap(
            self._path, self.dtype, "c", offset=self._offset + offset, shape=shape, order=order
        )
        values = np.asarray(mapped)
        check_characters(values, self._path)
        return values


def check_characters(values: npt.NDArray[Any], path: str | os.PathLike[str]) -> None:
    """Raise ValueError if a text array contains invalid code points, which numpy would accept."""
    if values.dtype.kind != "U":
        return
    code = np.dtype(np.uint32).newbyteorder(values.dtype.byteorder)
    if np.ascontiguousarray(values).view(code).max(initial=0) > sys.maxunicode:
        raise ValueError(
            f"Expected a .npy file of numbers or text. Got: {os.fspath(path)!r}, with codes that "
            "are no characters."
        )


def open_npy(path: str | os.PathLike[str]) -> Any:
    """Map a .npy file into memory."""
    file_here = local_file(path)
    with Path(file_here.path).open("rb") as file:
        start = file.read(12)
    if start.startswith(b"PK"):
        raise ValueError(
            f"Expected a .npy file. Got: the archive {os.fspath(path)!r}.\nHint: load one array of "
            "it with numpy.load and use iter_array."
        )
    # Not numpy.load, which would take other files for pickled Python objects.
    try:
        if int.from_bytes(start[8 : 10 if start[6:7] == b"\x01" else 12], "little") > _MAX_HEADER:
            raise ValueError("its header is too long")
        with np.errstate(over="ignore"):  # a shape that overflows is refused below
            mapped = np.lib.format.open_memmap(file_here.path, mode="r")
    except _HEADER_ERRORS as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise
        if "Python objects" in str(error):
            raise ValueError(
                f"Expected a .npy file of numbers. Got: {os.fspath(path)!r}, which holds Python "
                "objects."
            ) from None
        raise ValueError(
            "Expected a .npy file that numpy can map into memory. "
            f"Got: {os.fspath(path)!r} ({error})."
        ) from error
    if mapped.dtype.itemsize == 0:
        # A file of a header alone could declare any number of such columns.
        raise ValueError(
            f"Expected a .npy file of numbers. Got: {os.fspath(path)!r}, with entries of 0 bytes."
        )
    return mapped


def _check_shape_and_dtype(shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if len(shape) != 2:
        hint = "\nHint: X.reshape(-1, 1) makes it a single column." if len(shape) == 1 else ""
        raise ValueError(
            "Expected a two-dimensional array, observations by columns. "
            f"Got: {len(shape)} dimensions, shape {shape}.{hint}"
        )
    if dtype.kind == "V":
        raise TypeError(
            f"Expected an array of numbers. Got: the structured dtype {dtype}.\n"
            "Hint: numpy.lib.recfunctions.structured_to_unstructured makes columns of its fields."
        )


def _copied_width(n: int, dtype: np.dtype[Any]) -> int:
    """Return the number of columns in a copied block, 1 for non-numeric columns."""
    if dtype.kind not in "biufc":
        return 1
    return columns_per_block(n, dtype.itemsize if dtype in BLOCK_DTYPES else 8)
