"""Inference of the number format of a text file from its first lines."""

from __future__ import annotations

import csv
import os
import re
import zlib
from contextlib import suppress
from gzip import BadGzipFile
from typing import TYPE_CHECKING

from streamsel.params import parameter_repr
from streamsel.stream._numerals import (
    DEFAULT_READ_OPTIONS,
    Numerals,
    ReadOptions,
    is_grouped,
    to_number,
)
from streamsel.stream._text_cells import open_text, split_cells

if TYPE_CHECKING:
    from collections.abc import Iterable

# Characters inspected of the first line, and of the lines after it.
_HEAD = 2**18
_LISTED = re.compile(r"[\d,.\s]+")
# Most numbers with a mark match the first; the mark of the second may separate thousands.
_PLAIN = re.compile(r"[+-]?[0-9]+([,.])[0-9]*(?:[eE][+-]?[0-9]+)?")
_AMBIGUOUS = re.compile(r"[+-]?[1-9][0-9]{0,2}[,.][0-9]{3}")


def find_numerals(
    path: str | os.PathLike[str], delimiter: str, options: ReadOptions = DEFAULT_READ_OPTIONS
) -> Numerals:
    """Return the number format of a text file, from the options or inferred from its first lines.

    Parameters
    ----------
    path
        The text file.
    delimiter
        Delimiter of its cells; if it is a comma, the decimal mark is not.
    options
        Read options.

    Raises
    ------
    ValueError
        If the decimal mark is neither "." nor ",", or is the delimiter.
    """
    decimal, na_values = options.decimal, options.na_values
    if decimal is not None:
        if decimal not in (".", ",") or decimal == delimiter:
            raise ValueError(
                "Expected decimal to be '.' or ',', and not the delimiter. Got: "
                f"{parameter_repr(decimal)}, and the delimiter {delimiter!r} in "
                f"{os.fspath(path)!r}.\n"
                "Hint: pass the delimiter."
            )
        return Numerals(decimal, na_values=na_values)
    if delimiter == ",":
        return Numerals(na_values=na_values)
    lines = [line for line in _first_lines(path) if "," in line or "." in line]
    cells = (cell for line in lines for cell in _cells(line, delimiter))
    if not any("," in line for line in lines):
        # One number with a decimal point determines the role of a comma further on.
        return Numerals(is_sure=any(_mark_in(c) == "." for c in cells), na_values=na_values)
    return numerals_of(cells, options)


def numerals_of(cells: Iterable[str], options: ReadOptions = DEFAULT_READ_OPTIONS) -> Numerals:
    """Infer the number format of some cells.

    The decimal mark is a comma if some numbers are valid only with a decimal comma, and none only
    with a point. If every comma may separate thousands, or numbers differ, the mark is a point, and
    marked as not certain.

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
    found = {_mark_in(cell) for cell in cells} & {",", ".", "list"}
    if found == {","}:
        return Numerals(",", na_values=na_values)
    return Numerals(is_sure=found == {"."}, na_values=na_values)


def _mark_in(cell: str) -> str:
    """Return the decimal mark of a number, "" if not certain, "list" for several numbers."""
    has_comma, has_point = "," in cell, "." in cell
    if not (has_comma or has_point):
        return ""
    text = cell.strip()
    if plain := _PLAIN.fullmatch(text):
        return "" if _AMBIGUOUS.fullmatch(text) else plain[1]
    for mark, is_there, other in ((",", has_comma, "."), (".", has_point, ",")):
        if is_grouped(text, mark) and not is_grouped(text, other):
            # 1.304,25, or 1.304.250; a single separator without decimals is ambiguous.
            return mark if is_there or text.count(other) > 1 else ""
        if is_there and not is_grouped(text, other) and to_number(text, mark) is not None:
            return mark
    return "list" if has_comma and _LISTED.fullmatch(text) and to_number(text) is None else ""


def _first_lines(path: str | os.PathLike[str]) -> list[str]:
    """Return the first lines of a text file, the long ones truncated."""
    lines, size = [], 0
    with open_text(path) as file, suppress(EOFError, UnicodeDecodeError, zlib.error, BadGzipFile):
        # Damage is reported by the reader, which can first yield the columns before it.
        lines.append(file.readline()[:_HEAD])
        while size < _HEAD and (line := file.readline(_HEAD - size)):
            lines.append(line)
            size += len(line)
    return lines


def _cells(line: str, delimiter: str) -> list[str]:
    if not line.endswith("\n"):
        line = line.rpartition(delimiter)[0] or line  # the last cell may be truncated
    try:
        return split_cells(line, delimiter)
    except csv.Error:
        return []  # an unclosed quote, which is reported when the line is read
