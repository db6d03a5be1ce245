"""Transposition of matrices that are stored by rows, once, to a temporary file."""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from streamsel._utils.sparse import expect_consistent_sparse

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


class TransposedSparse:
    """Sparse matrix, transposed in a temporary file of its size.

    Parameters
    ----------
    path
        The source, for error messages.
    tiles
        Consecutive groups of rows, each a CSR matrix of shape (r, p).
    n_columns
        The number of columns p.

    Attributes
    ----------
    ends
        (p + 1,) cumulative number of entries before each column; the last is the total.
    """

    def __init__(self, path: str | os.PathLike[str], tiles: Iterable[Any], n_columns: int) -> None:
        self.ends = np.zeros(n_columns + 1, dtype=np.int64)
        self.n_rows = 0
        # (first row, indptr of the columns, offset of the values, offset of the indices) of every
        # tile.
        self._tiles: list[tuple[int, npt.NDArray[Any], int, int]] = []
        self._dtype: np.dtype[Any] = np.dtype(np.float64)
        self._file_lock = threading.Lock()
        self._file = temporary_file(self, path, _SIZE)
        for tile in tiles:
            expect_consistent_sparse(tile)
            columns = tile.tocsc()
            columns.sum_duplicates()
            self._dtype = columns.dtype
            with disk_space_errors(path, _SIZE):
                values = self._file.tell()
                self._file.write(columns.data.data)
                indices = self._file.tell()
                self._file.write(columns.indices.astype(np.int32).data)
            self._tiles.append((self.n_rows, columns.indptr, values, indices))
            self.ends += columns.indptr
            self.n_rows += tile.shape[0]
        with disk_space_errors(path, _SIZE):
            self._file.flush()

    def columns(self, a: int, b: int) -> Any:
        """Return the columns a, ..., b - 1 as a CSC matrix."""
        from scipy.sparse import csc_array

        indptr = self.ends[a : b + 1] - self.ends[a]
        data = np.empty(indptr[-1], self._dtype)
        indices = np.empty(indptr[-1], np.int32)
        filled = indptr[:-1].copy()
        for first_row, ends, values, row_indices in self._tiles:
            start, stop = int(ends[a]), int(ends[b])
            lengths = np.diff(ends[a : b + 1]).astype(np.int64)
            # The entries of a tile follow those of the same column in the tiles before.
            target = np.repeat(filled - ends[a:b] + start, lengths) + np.arange(stop - start)
            data[target] = self._read(values, start, stop, self._dtype)
            indices[target] = self._read(row_indices, start, stop, np.dtype(np.int32)) + first_row
            filled += lengths
        matrix = csc_array((data, indices, indptr), shape=(self.n_rows, b - a))
        matrix.has_canonical_format = True
        return matrix

    def _read(self, offset: int, start: int, stop: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        with self._file_lock:
            self._file.seek(offset + start * dtype.itemsize)
            return np.frombuffer(self._file.read((stop - start) * dtype.itemsize), dtype)
