"""Text files: number format, layout of one variable per line, names in lines, and byte ranges.

A byte range consists of complete lines, for a reader of a part of the file.
"""

from __future__ import annotations

import csv
import io
import itertools
import os
import re
import zlib
from contextlib import suppress
from gzip import BadGzipFile
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, TextIO

from streamsel.params import parameter_repr
from streamsel.stream._numerals import (
    DEFAULT_READ_OPTIONS,
    Numerals,
    ReadOptions,
    is_grouped,
    to_number,
)
from streamsel.stream._remote import open_binary
from streamsel.stream._text_cells import (
    DEFAULT_NUMERALS,
    FIRST_BYTES,
    BoundedLines,
    LineBound,
    count_cells,
    find_delimiter,
    line_bound,
    null_byte_message,
    numbered_lines,
    open_text,
    split_cells,
    text_errors,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from _typeshed import WriteableBuffer


_CHUNK_BYTES = 2**16
# Characters inspected of the first line, and of the lines after it.
_HEAD = 2**18
_LISTED = re.compile(r"[\d,.\s]+")
# Most numbers with a mark match the first; the mark of the second may separate thousands.
_PLAIN = re.compile(r"[+-]?[0-9]+([,.])[0-9]*(?:[eE][+-]?[0-9]+)?")
_AMBIGUOUS = re.compile(r"[+-]?[1-9][0-9]{0,2}[,.][0-9]{3}")


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


def start_of_line(file: BinaryIO, first_line: int, n: int) -> int:
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


_QUOTED = re.compile(r'"((?:[^"]|"")*)"')


class Layout(NamedTuple):
    """Layout of a text file, or of a part of it, as inferred from its first lines.

    Parameters
    ----------
    path
        The file.
    delimiter
        Delimiter of the cells.
    n_rows
        Values in every line.
    first_line
        Number of the first line of values.
    row_names
        Names of the observations in the header, None without a header.
    numerals
        Number format.
    start, end
        First byte of a part, and first byte after it; lines are numbered within the part.
    """

    path: str | os.PathLike[str]
    delimiter: str
    n_rows: int
    first_line: int
    row_names: list[str] | None
    numerals: Numerals = DEFAULT_NUMERALS
    start: int = 0
    end: int | None = None

    def open(self) -> TextIO:
        """Open the file, or its part."""
        longest = line_bound(self.n_rows + 1)
        if self.end is None:
            return open_text(self.path, other=longest)
        return open_range(self.path, self.start, self.end, longest)

    def line(self, number: int) -> str:
        """Return the position of a line, for messages."""
        return f"line {number} after byte {self.start:,}" if self.start else f"line {number}"

    def where(self, cell: int) -> str:
        """Return the position of a cell of the values, for messages."""
        if self.row_names is None:
            return f"column {cell + 2}"
        return f"column {cell + 2} ({self.row_names[cell]!r})"


class Line(NamedTuple):
    """A line of values: its number, the variable's name, and the text of the cells after it."""

    number: int
    name: str
    cells: str


def find_layout(
    path: str | os.PathLike[str],
    options: ReadOptions,
    header: bool | None = None,
    numerals: Numerals | None = None,
) -> Layout:
    """Infer the layout from the first two lines; `numerals` is the number format, if known."""
    with text_errors(path), open_text(path) as file:
        lines = list(itertools.islice(numbered_lines(file, path), 2))
        if not lines:
            raise ValueError(
                f"Expected one line per variable. Got: the empty file {os.fspath(path)!r}."
            )
        delimiter = find_delimiter(lines[0][1], options.delimiter)
        numerals = numerals or find_numerals(path, delimiter, options)
        first = split_cells(lines[0][1], delimiter)
        if header is None:
            header = not all(map(numerals.may_be_number, first[1:]))
        if header and len(lines) < 2:
            raise ValueError(
                f"Expected one line per variable. Got: only a header in {os.fspath(path)!r}."
            )
        number, line = lines[1] if header else lines[0]
        n_rows = count_cells(line, delimiter) - 1
        if n_rows == 0:
            hint = "pass the delimiter"
            if line.startswith('"') and not _QUOTED.match(line):
                hint = "a variable is one line: remove the line breaks inside quotes"
            raise ValueError(
                f"Expected a name and values separated by {delimiter!r}. Got: {line[:40]!r} in "
                f"line {number} of {os.fspath(path)!r}.\nHint: {hint}."
            )
        row_names = None
        if header:
            row_names = first if len(first) == n_rows else first[1:]
            if len(row_names) != n_rows:
                raise ValueError(
                    f"Expected {len(row_names)} values in line {number}, as the header of "
                    f"{os.fspath(path)!r} has. Got: {n_rows}."
                )
        return Layout(path, delimiter, n_rows, number, row_names, numerals)


def split_name(text: str, delimiter: str) -> tuple[str, str]:
    """Split a line into the name at its start and the rest, which begins with the delimiter."""
    quoted = _QUOTED.match(text)
    if quoted:
        return quoted[1].replace('""', '"').strip(), text[quoted.end() :]
    name = text.partition(delimiter)[0]
    return name.strip(), text[len(name) :]


def split_names(
    lines: Iterator[tuple[int, str]], layout: Layout
) -> Iterator[tuple[Line, str | None]]:
    """Yield (line, None), or (line, message) if a line differs in length from the first."""
    for number, text in lines:
        name, rest = split_name(text, layout.delimiter)
        cells = rest[1:]
        found = count_cells(cells, layout.delimiter) if rest else 0
        message = None
        if found != layout.n_rows:
            where = layout.line(number)
            message = null_byte_message(text, layout.path, where) or (
                f"Expected {layout.n_rows} values in {where} of {os.fspath(layout.path)!r}. "
                f"Got: {found}."
            )
        yield Line(number, name, cells), message


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
    for mark, has_mark, other in ((",", has_comma, "."), (".", has_point, ",")):
        if is_grouped(text, mark) and not is_grouped(text, other):
            # 1.304,25, or 1.304.250; a single separator without decimals is ambiguous.
            return mark if has_mark or text.count(other) > 1 else ""
        if has_mark and not is_grouped(text, other) and to_number(text, mark) is not None:
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
