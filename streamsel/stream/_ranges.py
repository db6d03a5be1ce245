"""Byte ranges of a text file that consist of complete lines."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, BinaryIO, TextIO

from streamsel.stream._line_bound import FIRST_BYTES, BoundedLines, LineBound
from streamsel.stream._remote import open_binary

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_CHUNK_BYTES = 2**16


def open_range(path: str | os.PathLike[str], start: int, end: int, other: int) -> TextIO:
    """Open the bytes start, ..., end - 1 of a text file, which are complete lines.

    As in `open_text`, lines have any ending and bounded length; a byte order mark is dropped.
    """
    raw = _Range(open_binary(path, anywhere=True), start, end)
    # After the first line the code of a byte order mark is an ordinary character.
    encoding = "utf-8" if start else "utf-8-sig"
    bound = LineBound(path, FIRST_BYTES, other, start)
    return io.TextIOWrapper(BoundedLines(io.BufferedReader(raw), bound), encoding=encoding)


class _Range(io.RawIOBase):
    """A byte range of a file."""

    def __init__(self, file: BinaryIO, start: int, end: int) -> None:
        self._file = file
        self._n_remaining = end - file.seek(start)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer)
        data = self._file.read(min(len(view), self._n_remaining))
        view[: len(data)] = data
        self._n_remaining -= len(data)
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def line_start(file: BinaryIO, position: int) -> int:
    """Return the start of the first line that begins at this byte or later."""
    if position == 0:
        return 0
    # If a line ends one byte before, the next begins at this byte.
    position -= 1
    file.seek(position)
    while piece := file.read(_CHUNK_BYTES):
        found = [index for index in (piece.find(b"\n"), piece.find(b"\r")) if index >= 0]
        if found:
            position += min(found) + 1
            file.seek(position - 1)
            return position + (file.read(2) == b"\r\n")
        position += len(piece)
    return position


def start_after(file: BinaryIO, first_line: int, n: int) -> int:
    """Return the start of the line that follows n non-blank lines from line `first_line` on."""
    position, end = 0, file.seek(0, os.SEEK_END)
    number = 1
    while position < end and (number < first_line or n):
        following = line_start(file, position + 1)
        if number >= first_line:
            file.seek(position)
            # A text longer than the bound on lines is not blank.
            size = min(following - position, FIRST_BYTES)
            n -= bool(file.read(size).strip(b" \r\n"))
        position, number = following, number + 1
    return position
