"""Whether the numbers of a text have a point or a comma in them."""

from __future__ import annotations

import csv
import os
import re
import zlib
from contextlib import suppress
from gzip import BadGzipFile
from typing import TYPE_CHECKING, Literal

from streamsel.params import shown
from streamsel.stream._cells import open_text, split_cells, to_number

if TYPE_CHECKING:
    from collections.abc import Iterable

Decimal = Literal[".", ","]

# So many characters behind the first line are looked at, and of that itself.
_HEAD = 2**18
# With three digits behind it a comma may set off thousands.
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
_LISTED = re.compile(r"[\d,.\s]+")


def find_decimal(path: str | os.PathLike[str], delimiter: str, decimal: str | None) -> str:
    """Return the decimal mark asked for, or else what the first lines of a text say.

    Parameters
    ----------
    path
        The text.
    delimiter
        Between its cells: a comma is no decimal mark beside it.
    decimal
        "." or ",", None to find out.

    Raises
    ------
    ValueError
        For another mark, or one that is the delimiter.
    """
    if decimal is not None:
        if decimal not in (".", ",") or decimal == delimiter:
            raise ValueError(
                f"Expected decimal to be '.' or ',', and not the delimiter. Got: {shown(decimal)}, "
                f"and cells of {os.fspath(path)!r} with {delimiter!r} between.\n"
                "Hint: give the delimiter."
            )
        return decimal
    if delimiter == ",":
        return "."
    lines = [line for line in _first_lines(path) if "," in line or "." in line]
    if not any("," in line for line in lines):
        return "."
    return decimal_of(cell for line in lines for cell in _cells(line, delimiter))


def decimal_of(cells: Iterable[str]) -> str:
    """Return "," if that is in some of the cells, and they are numbers by it; "." otherwise.

    Where some are numbers with a point in them, lists such as 1,2,3, or where all may be thousands,
    a comma is none.

    Examples
    --------
    >>> decimal_of(["1,5", "2", "label", "-0,25E-3"])
    ','
    >>> decimal_of(["1,500", "12,250"])
    '.'
    >>> decimal_of(["1,5", "2.5"])
    '.'
    """
    n_commas = n_thousands = 0
    for cell in cells:
        text = cell.strip()
        if "," in text:
            if to_number(text, ",") is not None:
                n_commas += 1
                n_thousands += _THOUSANDS.fullmatch(text) is not None
            elif _LISTED.fullmatch(text):
                return "."
        elif "." in text and to_number(text) is not None:
            return "."
    return "," if n_commas > n_thousands else "."


def _first_lines(path: str | os.PathLike[str]) -> list[str]:
    """Return the first lines of a text, or the beginning of long ones."""
    lines, size = [], 0
    with open_text(path) as file, suppress(EOFError, UnicodeDecodeError, zlib.error, BadGzipFile):
        # What is damaged is not for us to say: columns before it may be read.
        lines.append(file.readline()[:_HEAD])
        while size < _HEAD and (line := file.readline(_HEAD - size)):
            lines.append(line)
            size += len(line)
    return lines


def _cells(line: str, delimiter: str) -> list[str]:
    if not line.endswith("\n"):
        line = line.rpartition(delimiter)[0] or line  # the last cell may be cut in two
    try:
        return split_cells(line, delimiter)
    except csv.Error:
        return []  # a quote that is open: reading it all says so
