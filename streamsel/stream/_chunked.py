"""Matrices in chunked stores, HDF5 and Zarr, read by columns."""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel._utils.sparse import expect_consistent_sparse
from streamsel._utils.system import out_of_memory
from streamsel.data.chunks import Block
from streamsel.stream._blocks import BLOCK_BYTES, MAX_COLUMNS, columns_per_block, storable
from streamsel.stream._stream import indexed_stream
from streamsel.stream._transpose import (
    TILE_BYTES,
    SparseRows,
    TransposedDense,
    TransposedSparse,
    windows,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    import numpy.typing as npt

    from streamsel.stream._parts import Cut
    from streamsel.stream._stream import ColumnStream

# Size of chunks that must be decoded together to read a column: up to the first they are decoded
# directly, beyond the second the array is refused.
_SLAB_BYTES = 8 * BLOCK_BYTES
_MAX_BYTES = 2**28
# A sparse matrix of rows up to this size is kept in memory; a larger one is transposed to a file.
_IN_MEMORY_BYTES = 2 * TILE_BYTES
# Bytes that HDF5 reads at once of an array without chunks.
_PAGE = 2**16


class DenseMatrix:
    """A two-dimensional array of HDF5 or Zarr.

    Parameters
    ----------
    array
        Array with shape, dtype and chunks that supports slicing.
    path
        Its path, for error messages.
    """

    def __init__(self, array: Any, path: str | os.PathLike[str]) -> None:
        self._array, self.path = array, path
        self.dtype = np.dtype(array.dtype)
        if len(array.shape) != 2 or self.dtype.kind not in "biuf":
            raise ValueError(
                "Expected a two-dimensional array of numbers, observations by columns. Got: shape "
                f"{array.shape} of {self.dtype} in {os.fspath(path)!r}."
            )
        n, p = self.shape = array.shape
        size = self.dtype.itemsize
        chunks = getattr(array, "chunks", None) or (1, max(1, _PAGE // size))
        # Number of rows, and of columns, that must be read together; and their sizes in bytes.
        self._height, self._width = chunks[0], min(chunks[1], max(1, p))
        rows, columns = max(self._height * p * size, TILE_BYTES), n * self._width * size
        self.n_bytes = n * p * size
        self.is_by_rows = columns > _SLAB_BYTES and self._width > 1 and rows < columns
        if min(rows, columns) > _MAX_BYTES and self._width > 1:
            raise ValueError(
                f"Expected a column or a row of chunks to fit into {_MAX_BYTES >> 20} MiB. "
                f"Got: chunks of {chunks[0]:,} by {chunks[1]:,} numbers in {os.fspath(path)!r}.\n"
                f"Hint: write the array in chunks of some columns each, such as ({n}, "
                f"{columns_per_block(n, size)})."
            )

    @cached_property
    def _transposed(self) -> TransposedDense:
        n, p = self.shape
        rows = max(1, TILE_BYTES // max(1, p * self.dtype.itemsize))
        step = self._height * max(1, rows // self._height)
        tiles = (self._array[a : a + step] for a in range(0, n, step))
        return TransposedDense(self.path, tiles, self.dtype)

    def columns(self, a: int, b: int) -> npt.NDArray[Any]:
        """Return the columns a, ..., b - 1."""
        if self.is_by_rows:
            return self._transposed.columns(a, b)
        return np.asfortranarray(self._array[:, a:b])

    def blocks(self, start: int, end: int) -> Iterator[npt.NDArray[Any]]:
        """Yield the columns start, ..., end - 1, some at a time."""
        n, size = self.shape[0], self.dtype.itemsize
        width = columns_per_block(n, size)
        step = width
        if not self.is_by_rows:
            step = self._width * max(1, 4 * BLOCK_BYTES // max(1, n * self._width * size))
        a = start
        while a < end:
            b = min(end, a + step - (0 if self.is_by_rows else a % step))
            columns = self.columns(a, b)
            for first in range(0, b - a, width):
                yield columns[:, first : first + width]
            a = b


class SparseMatrix:
    """The three arrays of a CSC or CSR matrix in HDF5 or Zarr.

    Parameters
    ----------
    group
        Mapping with the arrays "data", "indices" and "indptr".
    shape
        Shape of the matrix.
    path
        Its path, for error messages.
    by_rows
        Whether it is CSR.
    """

    def __init__(
        self, group: Any, shape: tuple[int, int], path: str | os.PathLike[str], *, by_rows: bool
    ) -> None:
        self.shape, self.is_by_rows = shape, by_rows
        self.path = path
        self._data, self._indices = group["data"], group["indices"]
        self._indptr = np.asarray(group["indptr"][:], dtype=np.int64)
        per_entry = self._data.dtype.itemsize + self._indices.dtype.itemsize
        self.n_bytes = per_entry * int(self._indptr[-1])
        self._check()

    def _check(self) -> None:
        """Raise ValueError if the three arrays are inconsistent."""
        ends, n_lines = self._indptr, self.shape[0 if self.is_by_rows else 1]
        if (
            ends.shape != (n_lines + 1,)
            or ends[0] != 0
            or (np.diff(ends) < 0).any()
            or ends[-1] != self._data.shape[0]
            or ends[-1] != self._indices.shape[0]
        ):
            raise ValueError(
                f"Expected a sparse matrix of shape {self.shape}. Got: {os.fspath(self.path)!r}, "
                "whose data, indices and indptr are inconsistent."
            )

    @cached_property
    def _transposed(self) -> SparseRows | TransposedSparse:
        if self._data.dtype.kind not in "biuf" or self._indices.dtype.kind not in "iu":
            raise ValueError(
                "Expected a sparse matrix of numbers, with integer indices. Got: "
                f"{self._data.dtype} and {self._indices.dtype} in {os.fspath(self.path)!r}."
            )
        n, p = self.shape
        if self.n_bytes <= _IN_MEMORY_BYTES:
            return SparseRows(*self._parts(0, n), p)
        size = TILE_BYTES * int(self._indptr[-1]) // self.n_bytes
        tiles = (SparseRows(*self._parts(a, b), p) for a, b in windows(self._indptr, size))
        return TransposedSparse(self.path, tiles, p)

    def _parts(self, a: int, b: int) -> tuple[Any, Any, Any]:
        start, stop = int(self._indptr[a]), int(self._indptr[b])
        ends = self._indptr[a : b + 1] - start
        return self._data[start:stop], self._indices[start:stop], ends

    def columns(self, a: int, b: int) -> Any:
        """Return the columns a, ..., b - 1 as a CSC matrix."""
        from scipy.sparse import csc_array

        if self.is_by_rows:
            return self._transposed.columns(a, b)
        matrix = csc_array(self._parts(a, b), shape=(self.shape[0], b - a))
        expect_consistent_sparse(matrix)
        matrix.sum_duplicates()
        return matrix

    def blocks(self, start: int, end: int) -> Iterator[Any]:
        """Yield the columns start, ..., end - 1, some at a time."""
        ends = self._transposed.ends if self.is_by_rows else self._indptr
        for a, b in windows(ends[: end + 1], BLOCK_BYTES // 8, start):
            for first in range(a, b, MAX_COLUMNS):
                yield self.columns(first, min(first + MAX_COLUMNS, b))


@contextmanager
def store_errors(kind: str, path: str | os.PathLike[str]) -> Iterator[None]:
    """Convert errors of libraries about a damaged or foreign file to a ValueError with the path.

    System errors, and messages of streamsel, pass unchanged.
    """
    try:
        yield
    except Exception as error:
        if (lack := out_of_memory(path, error)) is not None:
            raise lack from error
        has_path = getattr(error, "errno", None) is not None or repr(os.fspath(path)) in str(error)
        if has_path or isinstance(error, FileNotFoundError):
            raise
        got = " ".join(f"{type(error).__name__}: {error}".split())
        raise ValueError(
            f"Expected a complete {kind}. Got: {os.fspath(path)!r} ({got})."
        ) from error


def matrix_stream(
    matrix: DenseMatrix | SparseMatrix,
    names: Sequence[Hashable],
    first: int,
    kind: str,
    cut: Cut | None = None,
) -> ColumnStream:
    """Stream consecutive columns of a matrix, from index `first` on, under these names."""
    end = first + len(names)

    def read(start: int) -> Iterator[Block]:
        a = start
        with store_errors(kind, matrix.path):
            for values in matrix.blocks(first + start, end):
                b = a + values.shape[1]
                yield Block(names[a:b], _stored(values))
                a = b

    def fetch(positions: list[int]) -> Iterator[Any]:
        for j in positions:
            with store_errors(kind, matrix.path):
                values = _stored(matrix.columns(first + j, first + j + 1))
            yield values if isinstance(matrix, SparseMatrix) else values[:, 0].copy()

    return indexed_stream(names, matrix.shape[0], read, fetch, cut)


def _stored(values: Any) -> Any:
    if isinstance(values, np.ndarray):
        return storable(np.asfortranarray(values))
    values.data = storable(values.data)
    return values
