"""Transposition of matrices that are stored by rows, once, to a temporary file."""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from streamsel._kernels.transposition import (
    append_columns,
    count_entries,
    seek_column,
    take_columns,
)
from streamsel._utils.sparse import expect_consistent_sparse
from streamsel.stream._blocks import storable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt


def temporary_file(owner: object, path: str | os.PathLike[str], size: str) -> IO[bytes]:
    """Open a temporary file that is deleted together with its owner.

    Parameters
    ----------
    owner
        The object that reads it.
    path
        The file whose columns it will hold.
    size
        Description of the space it takes, for the error message.
    """
    # Unnamed if the system supports it: then it is deleted even if the process is killed.
    with disk_space_errors(path, size):
        file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  the finalizer closes it
    weakref.finalize(owner, _close, file)
    return file


@contextmanager
def disk_space_errors(path: str | os.PathLike[str], size: str) -> Iterator[None]:
    """Add a hint to the OSError if the temporary file for the columns of a file is not writable."""
    try:
        yield
    except OSError as error:
        raise OSError(
            error.errno,
            f"Expected room for a temporary file with the columns of {os.fspath(path)!r}. "
            f"Got: {error.strerror}.\nHint: set TMPDIR to a directory with room for {size}.",
        ) from error


def _close(file: IO[bytes]) -> None:
    # Closing flushes data that did not fit.
    with suppress(OSError):
        file.close()


# Bytes of rows transposed at a time: with more, a column is read from fewer pieces.
TILE_BYTES = 2**25
# Entries of neighbouring columns that are copied at once: they stay in the processor's cache.
_WINDOW_ENTRIES = 2**17
# Size of the temporary file, for error messages.
_SIZE = "all its numbers, uncompressed"


class TransposedDense:
    """Dense matrix, transposed in a temporary file.

    Parameters
    ----------
    path
        The source, for error messages.
    tiles
        Consecutive groups of rows, each of shape (r, p).
    dtype
        Dtype of the numbers.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        tiles: Iterable[npt.NDArray[Any]],
        dtype: np.dtype[Any],
    ) -> None:
        self._dtype = dtype
        # (number of rows, offset) of every tile.
        self._tiles: list[tuple[int, int]] = []
        self._file_lock = threading.Lock()
        self._file = temporary_file(self, path, _SIZE)
        for tile in tiles:
            with disk_space_errors(path, _SIZE):
                self._tiles.append((len(tile), self._file.tell()))
                self._file.write(np.ascontiguousarray(tile.T, dtype=dtype).data)
        with disk_space_errors(path, _SIZE):
            self._file.flush()

    def columns(self, a: int, b: int) -> npt.NDArray[Any]:
        """Return the columns a, ..., b - 1."""
        out = np.empty((b - a, sum(rows for rows, _ in self._tiles)), self._dtype)
        size, row = self._dtype.itemsize, 0
        for rows, offset in self._tiles:
            with self._file_lock:
                self._file.seek(offset + a * rows * size)
                tile = np.frombuffer(self._file.read((b - a) * rows * size), self._dtype)
            out[:, row : row + rows] = tile.reshape(b - a, rows)
            row += rows
        return out.T


class SparseRows:
    """Rows of a sparse matrix in memory, read by columns.

    Parameters
    ----------
    values, columns, ends
        Arrays of a CSR matrix of shape (r, p).
    n_columns
        The number of columns p.

    Attributes
    ----------
    ends
        (p + 1,) cumulative number of entries before each column; the last is the total.
    """

    def __init__(self, values: Any, columns: Any, ends: Any, n_columns: int) -> None:
        dtype = np.int32 if columns.dtype == np.int32 else np.int64
        self._rows = storable(np.asarray(values)), np.asarray(columns, dtype), ends
        counts = np.zeros(n_columns, dtype=np.int64)
        if not count_entries(*self._rows[1:], counts):
            self._rows = _with_increasing_columns(self._rows, n_columns)
            counts[:] = 0
            count_entries(*self._rows[1:], counts)
        self.dtype = self._rows[0].dtype
        self.ends = np.append(0, np.cumsum(counts))
        # A column, and its first entry of every row.
        self._position = 0, self._rows[2][:-1].copy()

    @property
    def n_rows(self) -> int:
        """The number of rows r."""
        return len(self._rows[2]) - 1

    def entries(self, a: int, b: int) -> tuple[Any, Any, Any]:
        """Return the values and rows of the columns a, ..., b - 1, and where each column begins."""
        ends = self.ends[a : b + 1] - self.ends[a]
        values, rows = np.empty(ends[-1], self.dtype), np.empty(ends[-1], np.int32)
        column, positions = self._position
        positions = positions.copy()
        if column != a:
            seek_column(*self._rows[1:], a, positions)
        take_columns(*self._rows, (a, b), positions, ends[:-1].copy(), values, rows)
        self._position = b, positions
        return values, rows, ends

    def columns(self, a: int, b: int) -> Any:
        """Return the columns a, ..., b - 1 as a CSC matrix."""
        return _columns(self.entries(a, b), self.n_rows)


def _with_increasing_columns(rows: tuple[Any, Any, Any], p: int) -> tuple[Any, Any, Any]:
    """Sort the columns of every row, and add entries of the same column; raise if out of bounds."""
    from scipy.sparse import csr_array

    matrix = csr_array(rows, shape=(len(rows[2]) - 1, p))
    expect_consistent_sparse(matrix)
    by_column = matrix.tocsc()
    by_column.sum_duplicates()
    found = by_column.tocsr()
    return found.data, found.indices, np.asarray(found.indptr, np.int64)


def _columns(entries: tuple[Any, Any, Any], n: int) -> Any:
    from scipy.sparse import csc_array

    matrix = csc_array(entries, shape=(n, len(entries[2]) - 1))
    matrix.has_canonical_format = True
    return matrix


class TransposedSparse:
    """Sparse matrix, transposed in a temporary file of its size.

    Parameters
    ----------
    path
        The source, for error messages.
    tiles
        Consecutive groups of rows.
    n_columns
        The number of columns p.

    Attributes
    ----------
    ends
        As in `SparseRows`.
    """

    def __init__(
        self, path: str | os.PathLike[str], tiles: Iterable[SparseRows], n_columns: int
    ) -> None:
        self.ends = np.zeros(n_columns + 1, dtype=np.int64)
        self.n_rows = 0
        # (first row, first entries of the columns, offset of the values, offset of the indices) of
        # every tile.
        self._tiles: list[tuple[int, npt.NDArray[Any], int, int]] = []
        self._dtype: np.dtype[Any] = np.dtype(np.float64)
        self._file_lock = threading.Lock()
        self._file = temporary_file(self, path, _SIZE)
        for tile in tiles:
            self._dtype = tile.dtype
            values, rows = np.empty(tile.ends[-1], tile.dtype), np.empty(tile.ends[-1], np.int32)
            for a, b in windows(tile.ends, _WINDOW_ENTRIES):
                part = slice(tile.ends[a], tile.ends[b])
                values[part], rows[part], _ = tile.entries(a, b)
            with disk_space_errors(path, _SIZE):
                offset = self._file.tell()
                self._file.write(values.data)
                self._tiles.append((self.n_rows, tile.ends, offset, self._file.tell()))
                self._file.write(rows.data)
            self.ends += tile.ends
            self.n_rows += tile.n_rows
        with disk_space_errors(path, _SIZE):
            self._file.flush()

    def columns(self, a: int, b: int) -> Any:
        """Return the columns a, ..., b - 1 as a CSC matrix."""
        ends = self.ends[a : b + 1] - self.ends[a]
        values, rows = np.empty(ends[-1], self._dtype), np.empty(ends[-1], np.int32)
        free = ends[:-1].copy()
        for first_row, tile_ends, values_offset, rows_offset in self._tiles:
            start, stop = int(tile_ends[a]), int(tile_ends[b])
            given = self._read(values_offset, start, stop, self._dtype)
            given_rows = self._read(rows_offset, start, stop, np.dtype(np.int32))
            append_columns(given, given_rows, tile_ends[a : b + 1], first_row, free, values, rows)
        return _columns((values, rows, ends), self.n_rows)

    def _read(self, offset: int, start: int, stop: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        with self._file_lock:
            self._file.seek(offset + start * dtype.itemsize)
            return np.frombuffer(self._file.read((stop - start) * dtype.itemsize), dtype)


def windows(ends: npt.NDArray[np.int64], size: int, start: int = 0) -> Iterator[tuple[int, int]]:
    """Yield (first, end) of neighbouring columns with up to `size` entries, or of a larger one."""
    a, p = start, len(ends) - 1
    while a < p:
        b = int(np.searchsorted(ends, ends[a] + size, side="right")) - 1
        yield a, (b := min(max(a + 1, b), p))
        a = b
