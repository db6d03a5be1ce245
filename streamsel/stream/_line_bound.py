"""Text whose lines are of bounded length: one without an end is refused before it fills memory."""

from __future__ import annotations

import io
import os
from typing import BinaryIO, TextIO

# A line of which nothing is known, such as one value of a list.
LINE_BYTES = 4 * 2**20
# A cell of a table: a number takes 25 bytes at most, a name rarely more than this.
CELL_BYTES = 64
# The first line of a table, which shows how many cells there are: a million.
FIRST_BYTES = 2**20 * CELL_BYTES
_AT_A_TIME = 2**16


def line_bound(n_cells: int) -> int:
    """Return how many bytes a line of so many cells may have."""
    return max(LINE_BYTES, n_cells * CELL_BYTES)


class LineBound:
    """Raises ValueError as soon as a line is longer than it may be.

    Parameters
    ----------
    path
        The file, for the error.
    first, other
        How many bytes the first line may have, and every other line.
    start
        Where in the file these bytes begin.
    """

    def __init__(
        self, path: str | os.PathLike[str], first: int, other: int, start: int = 0
    ) -> None:
        self.path, self.other = path, other
        self._first = first
        self._length, self._n_read = 0, start

    def check(self, data: bytes) -> None:
        """Take note of the bytes that come next."""
        # A line that ends in these bytes is in memory already: only one that goes on matters.
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
                "line endings; longer lines of a table can be written as Parquet."
            )


def expect_cells(file: TextIO, n_cells: int) -> None:
    """Bound the lines of a text that come next, now that the first has shown how wide they are."""
    assert isinstance(file.buffer, BoundedLines)  # noqa: S101
    file.buffer.bound.other = line_bound(n_cells)


class BoundedLines(io.BufferedIOBase):
    """The bytes of a text file, until a line is longer than it may be.

    Parameters
    ----------
    file
        The text file.
    bound
        What its lines may be.
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
        """Return the next bytes, at least as many as are at hand at once."""
        data: bytes = self._file.read1(max(size, _AT_A_TIME))  # type: ignore[union-attr]
        self.bound.check(data)
        return data

    def close(self) -> None:
        """Close the text file."""
        self._file.close()
        super().close()
