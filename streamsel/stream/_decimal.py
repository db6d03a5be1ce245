"""How the numbers of a text are written, by its first lines."""

from __future__ import annotations

import csv
import os
import re
import zlib
from contextlib import suppress
from gzip import BadGzipFile
from typing import TYPE_CHECKING

from streamsel.params import shown
from streamsel.stream._cells import open_text, split_cells
from streamsel.stream._numerals import Numerals, is_grouped, to_number
from streamsel.stream._read_options import AS_FOUND, ReadOptions

if TYPE_CHECKING:
    from collections.abc import Iterable

# So many characters behind the first line are looked at, and of that itself.
_HEAD = 2**18
_LISTED = re.compile(r"[\d,.\s]+")
# Most numbers with a mark are of these; the second may have a separator of thousands for it.
_PLAIN = re.compile(r"[+-]?[0-9]+([,.])[0-9]*(?:[eE][+-]?[0-9]+)?")
_EITHER = re.compile(r"[+-]?[1-9][0-9]{0,2}[,.][0-9]{3}")


def find_numerals(
    path: str | os.PathLike[str], delimiter: str, options: ReadOptions = AS_FOUND
) -> Numerals:
    """Return how numbers are written, as asked for, or else as the first lines of a text show.

    Parameters
    ----------
    path
        The text.
    delimiter
        Between its cells: a comma is then no decimal mark.
    options
        What was asked for.

    Raises
    ------
    ValueError
        For a decimal mark other than "." and ",", or one that is the delimiter.
    """
    decimal, na_values = options.decimal, options.na_values
    if decimal is not None:
        if decimal not in (".", ",") or decimal == delimiter:
            raise ValueError(
                f"Expected decimal to be '.' or ',', and not the delimiter. Got: {shown(decimal)}, "
                f"and cells of {os.fspath(path)!r} with {delimiter!r} between.\n"
                "Hint: give the delimiter."
            )
        return Numerals(decimal, na_values=na_values)
    if delimiter == ",":
        return Numerals(na_values=na_values)
    lines = [line for line in _first_lines(path) if "," in line or "." in line]
    cells = (cell for line in lines for cell in _cells(line, delimiter))
    if not any("," in line for line in lines):
        # The first number with a point is enough to tell what a comma further on is.
        return Numerals(is_sure=any(_marks_of(c) == "." for c in cells), na_values=na_values)
    return numerals_of(cells, options)


def numerals_of(cells: Iterable[str], options: ReadOptions = AS_FOUND) -> Numerals:
    """Return how the numbers among some cells are written.

    The decimal mark is a comma where that of some numbers can only be a comma, and of none a point.
    Where every comma may set off thousands, or numbers differ, it is a point, and not sure to be.

    Examples
    --------
    >>> numerals_of(["1,5", "2", "label", "-0,25E-3"]).decimal
    ','
    >>> numerals_of(["1.304,25"]).decimal, numerals_of(["1,304.25"]).decimal
    (',', '.')
    >>> numerals_of(["1,304", "12,250"])
    Numerals(decimal='.', is_sure=False, na_values=())
    >>> numerals_of(["1,304", "0.5"])
    Numerals(decimal='.', is_sure=True, na_values=())
    >>> numerals_of(["1,5", "2.5"]).decimal
    '.'
    """
    na_values = options.na_values
    if options.decimal is not None:
        return Numerals(options.decimal, na_values=na_values)
    found = {_marks_of(cell) for cell in cells} & {",", ".", "list"}
    if found == {","}:
        return Numerals(",", na_values=na_values)
    return Numerals(is_sure=found == {"."}, na_values=na_values)


def _marks_of(cell: str) -> str:
    """Return the decimal mark that a number has for certain, "list" for several of them."""
    has_comma, has_point = "," in cell, "." in cell
    if not (has_comma or has_point):
        return ""
    text = cell.strip()
    if plain := _PLAIN.fullmatch(text):
        return "" if _EITHER.fullmatch(text) else plain[1]
    for mark, is_there, other in ((",", has_comma, "."), (".", has_point, ",")):
        if is_grouped(text, mark) and not is_grouped(text, other):
            # 1.304,25, or 1.304.250; what has one separator, and nothing behind it, has either.
            return mark if is_there or text.count(other) > 1 else ""
        if is_there and not is_grouped(text, other) and to_number(text, mark) is not None:
            return mark
    return "list" if has_comma and _LISTED.fullmatch(text) and to_number(text) is None else ""


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
