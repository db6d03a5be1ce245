"""CSV text that reads back unchanged."""

from __future__ import annotations

import csv
from typing import IO, Any


def row_writer(file: IO[str], delimiter: str) -> Any:
    """Return a `csv.writer` whose lines end in a line feed.

    Cells with any kind of line break are quoted. Python before 3.13 does not quote a carriage
    return unless lines end with one.
    """
    return csv.writer(_UnixLines(file), delimiter=delimiter, lineterminator="\r\n")


class _UnixLines:
    """Replaces the CR LF at the end of each line by LF."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, line: str) -> int:
        return self._file.write(line[:-2] + "\n")
