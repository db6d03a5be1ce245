"""Bound on the length of text lines: an endless line is refused before it fills memory."""

from __future__ import annotations

import io
import os
from typing import BinaryIO, TextIO

# A line of unknown width, such as one value of a list.
LINE_BYTES = 4 * 2**20
# A cell of a table: a number takes at most 25 bytes, a name rarely more than this.
CELL_BYTES = 64
# The first line of a table, of unknown width: a million cells.
FIRST_BYTES = 2**20 * CELL_BYTES
_CHUNK_BYTES = 2**16


def line_bound(n_cells: int) -> int:
    """Return the maximum number of bytes of a line of `n_cells` cells."""
    return max(LINE_BYTES, n_cells * CELL_BYTES)


class LineBound:
    """Limit on the length of lines: raises ValueError as soon as a line exceeds it.

    Parameters
    ----------
    path
        The file, for the error message.
    first, other
        Maximum number of bytes of the first line, and of every other line.
    start
        Offset of the first byte in the file.
    """

    def __init__(
        self, path: str | os.PathLike[str], first: int, other: int, start: int = 0
    ) -> None:
        self.path, self.other = path, other
        self._first = first
        self._length, self._n_read = 0, start

    def check(self, data: bytes) -> None:
        """Check the next bytes of the file."""
        # A line that ends in these bytes is already in memory: only one that continues matters.
        end = max(data.rfind(b"\n"), data.rfind(b"\r"))
        self._n_read += len(data)
        self._length = len(data) - end - 1 if end >= 0 else self._length + len(data)
        begins = self._n_read - self._length
        limit = self.other if begins else self._first
        if self._length > limit:
            which = f"the line after byte {begins:,}" if begins else "the first line"
            raise ValueError(
                f"Expected lines of at most {limit / 2**20:.3g} MiB. Got: {which} of "
                f"{os.fspath(self.path)!r}, which is longer.\nHint: check that it is text with "
                "line endings; write tables with longer lines as Parquet."
            )


def expect_cells(file: TextIO, n_cells: int) -> None:
    """Set the bound of the following lines by the number of cells in the first."""
    assert isinstance(file.buffer, BoundedLines)  # noqa: S101
    file.buffer.bound.other = line_bound(n_cells)


class BoundedLines(io.BufferedIOBase):
    """The bytes of a text file, with a bound on the length of its lines.

    Parameters
    ----------
    file
        The text file.
    bound
        The bound.
    """

    def __init__(self, file: BinaryIO | io.BufferedIOBase, bound: LineBound) -> None:
        self._file, self.bound = file, bound

    @property
    def name(self) -> str | os.PathLike[str]:
        """The file's path."""
        return self.bound.path

    def readable(self) -> bool:
        """Return True: bytes can be read."""
        return True

    def read1(self, size: int = -1) -> bytes:
        """Read and return the next bytes, with at most one read of the file."""
        data: bytes = self._file.read1(max(size, _CHUNK_BYTES))  # type: ignore[union-attr]
        self.bound.check(data)
        return data

    def close(self) -> None:
        """Close the text file."""
        self._file.close()
        super().close()
