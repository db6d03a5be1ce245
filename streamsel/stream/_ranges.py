"""Ranges of the bytes of a text file that hold whole lines."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, BinaryIO, TextIO

from streamsel.stream._line_bound import FIRST_BYTES, BoundedLines, LineBound
from streamsel.stream._remote import open_binary

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_AT_A_TIME = 2**16


def open_range(path: str | os.PathLike[str], start: int, end: int, other: int) -> TextIO:
    """Open the bytes start, ..., end - 1 of a text file, which hold whole lines.

    As `open_text` does it: with any line ending, of bounded length, and without a byte order mark.
    """
    raw = _Range(open_binary(path, anywhere=True), start, end)
    # Behind the first line it is no mark, but a character like others.
    encoding = "utf-8" if start else "utf-8-sig"
    bound = LineBound(path, FIRST_BYTES, other, start)
    return io.TextIOWrapper(BoundedLines(io.BufferedReader(raw), bound), encoding=encoding)


class _Range(io.RawIOBase):
    """Some of the bytes of a file."""

    def __init__(self, file: BinaryIO, start: int, end: int) -> None:
        self._file = file
        self._left = end - file.seek(start)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer)
        data = self._file.read(min(len(view), self._left))
        view[: len(data)] = data
        self._left -= len(data)
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def line_start(file: BinaryIO, position: int) -> int:
    """Return where the first line begins that does not begin before this byte."""
    if position == 0:
        return 0
    # Where a line ends one byte before, the next begins here.
    position -= 1
    file.seek(position)
    while piece := file.read(_AT_A_TIME):
        found = [place for place in (piece.find(b"\n"), piece.find(b"\r")) if place >= 0]
        if found:
            position += min(found) + 1
            file.seek(position - 1)
            return position + (file.read(2) == b"\r\n")
        position += len(piece)
    return position


def start_after(file: BinaryIO, first_line: int, n: int) -> int:
    """Return where a line begins: the first with this number or a higher after n not blank."""
    position, end = 0, file.seek(0, os.SEEK_END)
    number = 1
    while position < end and (number < first_line or n):
        following = line_start(file, position + 1)
        if number >= first_line:
            file.seek(position)
            # What is longer than any line is not blank.
            size = min(following - position, FIRST_BYTES)
            n -= bool(file.read(size).strip(b" \r\n"))
        position, number = following, number + 1
    return position
