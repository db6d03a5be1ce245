"""Tables as text, that read back as they were."""

from __future__ import annotations

import csv
from typing import IO, Any


def row_writer(file: IO[str], delimiter: str) -> Any:
    """Return a `csv.writer` of lines that end as Unix ends them.

    Cells with any kind of line break are quoted. Left to itself Python before 3.13 does not quote a
    carriage return unless lines end with one.
    """
    return csv.writer(_UnixLines(file), delimiter=delimiter, lineterminator="\r\n")


class _UnixLines:
    """Takes lines, one at a time, that end in a carriage return and a line feed."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, line: str) -> int:
        return self._file.write(line[:-2] + "\n")
