"""Cells of delimited text: opening, splitting, and turning into numbers."""

from __future__ import annotations

import csv
import functools
import gzip
import io
import os
import re
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

import numpy as np
import numpy.typing as npt

from streamsel.memory import out_of_memory
from streamsel.stream._line_bound import FIRST_BYTES, BoundedLines, LineBound
from streamsel.stream._numerals import USUAL_MISSING, Numerals, is_grouped, to_number
from streamsel.stream._remote import open_binary

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Fewer cells than this are not worth the import of pyarrow; and so many are turned into numbers at
# a time, a few megabytes with their texts.
_WORTH_ARROW = 2**17
_ARROW_CELLS = 2**16
# Characters of a line that is worth a call of numpy.
_LONG_LINE = 4096
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
POINTS = Numerals()
# What text in UTF-16 begins with.
_WIDE = (b"\xff\xfe", b"\xfe\xff")


def open_text(
    path: str | os.PathLike[str], longest: int = FIRST_BYTES, other: int | None = None
) -> TextIO:
    """Open a text file, plain or gzipped, with any line ending; a byte order mark is dropped.

    Parameters
    ----------
    path
        The file.
    longest
        How many bytes its first line may have, and all others as well if `other` is None: reading
        a line that is longer raises ValueError.
    other
        How many bytes the other lines may have.
    """
    is_packed = is_zipped(path)
    file = open_binary(path)
    bound = LineBound(path, longest, longest if other is None else other)
    lines = BoundedLines(_Unzipped(file) if is_packed else file, bound)
    return io.TextIOWrapper(lines, encoding="utf-8-sig")


class _Unzipped(gzip.GzipFile):
    """What a gzipped file holds; closes that file as well."""

    def __init__(self, file: BinaryIO) -> None:
        self._packed = file
        super().__init__(fileobj=file, mode="rb")

    def close(self) -> None:
        super().close()
        self._packed.close()


def is_zipped(path: str | os.PathLike[str]) -> bool:
    """Tell whether a file is gzipped, by its first bytes."""
    with open_binary(path) as file:
        return file.read(2) == b"\x1f\x8b"


@contextmanager
def text_of(path: str | os.PathLike[str]) -> Iterator[None]:
    """Name the file in errors that are met while its text is read, and turned into numbers."""
    try:
        yield
    except UnicodeDecodeError as error:
        encoding = "utf-16" if error.object[:2] in _WIDE else "latin1"
        raise ValueError(
            f"Expected text in UTF-8, got: {os.fspath(path)!r} with the byte "
            f"0x{error.object[error.start]:02x}, which is none. "
            f"Hint: convert it, such as by iconv -f {encoding} -t utf-8."
        ) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(
            f"Expected a whole gzip file, got: {os.fspath(path)!r} ({error})."
        ) from error
    except csv.Error as error:
        raise ValueError(
            f"Expected cells that are quoted as a whole or not at all, got: others in "
            f"{os.fspath(path)!r} ({error})."
        ) from error
    except MemoryError as error:
        raise out_of_memory(path, error) or error from error


def numbered_lines(file: TextIO, path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """Yield (line number, line) of all lines that are not blank, without the line ending."""
    with text_of(path):
        for number, line in enumerate(file, start=1):
            text = line.rstrip("\n")
            if text.strip(" "):
                yield number, text


def null_in(cell: str, path: str | os.PathLike[str], where: str) -> str:
    """Return the message for a cell with a null byte, which no text has; nothing for others."""
    if "\0" not in cell:
        return ""
    return (
        f"Expected text. Got: a null byte in {where} of {os.fspath(path)!r}.\nHint: the file is "
        "damaged, or in UTF-16: convert it, such as by iconv -f utf-16 -t utf-8."
    )


def find_delimiter(line: str, delimiter: str | None, likely: str = "") -> str:
    """Return the delimiter asked for, or else the likely one or tab, comma, semicolon.

    That is the first of them that is in the line, quoted text apart.
    """
    if delimiter is None:
        bare = _QUOTED.sub("", line)
        if "," in bare:
            for mark in "\t;":
                if mark in bare and _has_decimal_commas(bare, mark):
                    return mark
        return next((mark for mark in f"{likely}\t,;" if mark in bare), likely or ",")
    if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n':
        raise ValueError(f"Expected a delimiter of one character, got: {delimiter!r}.")
    return delimiter


def _has_decimal_commas(line: str, mark: str) -> bool:
    """Tell whether a line without a header is a name and numbers, some with a decimal comma."""
    cells = line.split(mark)[1:]
    return any("," in cell for cell in cells) and all(
        to_number(cell, ",") is not None or is_grouped(cell, ",") for cell in cells
    )


def split_cells(line: str, delimiter: str) -> list[str]:
    """Split a line into its cells, and take them out of their quotes."""
    if '"' in line:
        return next(csv.reader([line], delimiter=delimiter))
    return line.split(delimiter)


def count_cells(line: str, delimiter: str) -> int:
    """Return how many cells a line has."""
    if '"' in line:
        return len(split_cells(line, delimiter))
    if len(line) > _LONG_LINE and delimiter.isascii():
        # Three times as fast as str.count; nothing of UTF-8 but the character itself is its byte.
        is_mark = np.frombuffer(line.encode(), np.uint8) == ord(delimiter)
        return int(np.count_nonzero(is_mark)) + 1
    return line.count(delimiter) + 1


@functools.cache
def _arrow() -> _Arrow | None:
    """Return what turns texts into numbers, None where pyarrow is not installed."""
    try:
        import pyarrow as pa
        import pyarrow.compute
    except ImportError:
        return None
    return _Arrow(pa)


class _Arrow:
    """Numbers from lines of cells, by pyarrow.

    Its own allocator keeps tens of megabytes for later: that of the system is asked instead.
    """

    def __init__(self, pa: Any) -> None:
        self._pa = pa
        self._in = {"memory_pool": pa.system_memory_pool()}

    def numbers(
        self,
        lines: Sequence[str],
        delimiter: str,
        n_cells: int,
        usecols: Sequence[int] | None,
        missing: Sequence[str],
    ) -> npt.NDArray[np.float64] | None:
        """Return the numbers, one row a line, or None if some cell has to be looked at."""
        pa = self._pa
        out = np.empty((len(lines), n_cells if usecols is None else len(usecols)))
        step = max(1, _ARROW_CELLS // n_cells)
        plain = True
        for a in range(0, len(lines), step):
            rows = out[a : a + step]
            texts = pa.array(lines[a : a + step], **self._in)
            cells = pa.compute.split_pattern(texts, delimiter, **self._in).values
            if usecols is not None:
                chosen = np.add.outer(n_cells * np.arange(len(rows)), usecols).ravel()
                cells = pa.compute.take(cells, pa.array(chosen), **self._in)
            # From the first missing value on they are looked for: a refusal takes time.
            numbers = self._cast(cells) if plain else None
            if numbers is None:
                plain = False
                numbers = self._cast(self._without_missing(cells, missing))
            if numbers is None:
                return None
            rows[:] = numbers.to_numpy(zero_copy_only=False).reshape(rows.shape)
        return out

    def _cast(self, cells: Any) -> Any:
        """Return an array of numbers, None where a cell is something else."""
        try:
            return self._pa.compute.cast(cells, self._pa.float64(), **self._in)
        except self._pa.ArrowInvalid:
            return None

    def _without_missing(self, cells: Any, missing: Sequence[str]) -> Any:
        compute = self._pa.compute
        bare = compute.ascii_trim_whitespace(cells, **self._in)
        is_missing = compute.is_in(bare, self._pa.array(missing), **self._in)
        return compute.if_else(is_missing, None, bare, **self._in)


class NumberParser:
    """Turns lines of the same number of cells into rows of numbers, fast.

    Parameters
    ----------
    delimiter
        Between the cells.
    numerals
        How numbers are written. Those with separators of thousands are left to be looked at.

    Notes
    -----
    Where pyarrow is installed it is asked first: it takes a quarter of the time. It reads no number
    otherwise than Python does, and what it refuses is looked at again.

    `numpy.loadtxt` over many lines is the fastest way that needs numpy alone (0.2 µs a cell; a
    split and conversion of each line takes two to three times as long), but it knows no missing
    value: they are spelt out before, from the first time that it stumbles.
    """

    def __init__(self, delimiter: str, numerals: Numerals = POINTS) -> None:
        self._delimiter = delimiter
        self._has_commas = numerals.decimal == ","
        self._missing = [*USUAL_MISSING, *numerals.na_values]
        if self._has_commas:  # as they are when they are looked for
            self._missing = [text.replace(",", ".") for text in self._missing]
        self._missing_cells = [f"{delimiter}{text}{delimiter}" for text in self._missing]
        self._missing_numbers = sorted(numerals.missing_numbers)
        self._spell_out = False

    def parse(
        self, lines: Sequence[str], n_cells: int, usecols: Sequence[int] | None = None
    ) -> npt.NDArray[np.float64] | None:
        """Return the numbers, one row a line, or None if some cell has to be looked at.

        Parameters
        ----------
        lines
            Lines of `n_cells` cells each.
        n_cells
            Cells of each line.
        usecols
            Positions of the cells to turn into numbers, all by default.
        """
        found = self._parse(lines, n_cells, usecols)
        if found is not None and self._missing_numbers:
            found[np.isin(found, self._missing_numbers)] = np.nan
        return found

    def _parse(
        self, lines: Sequence[str], n_cells: int, usecols: Sequence[int] | None
    ) -> npt.NDArray[np.float64] | None:
        n_used = n_cells if usecols is None else len(usecols)
        if self._has_commas:
            lines = [self._with_points(line) for line in lines]
        if (
            len(lines) * n_used >= _WORTH_ARROW
            and (arrow := _arrow())
            # A delimiter may stand between quotes; and Arrow takes "nan(x)" for a NaN.
            and not any('"' in line or "(" in line for line in lines)
            and (found := arrow.numbers(lines, self._delimiter, n_cells, usecols, self._missing))
            is not None
        ):
            return found
        for spell_out in (False, True):
            if spell_out < self._spell_out:
                continue
            if spell_out:
                lines = [self._with_nan(line) for line in lines]
            if not all(map(str.strip, lines)):
                continue  # loadtxt would leave the line out
            try:
                numbers = np.loadtxt(
                    lines,
                    delimiter=self._delimiter,
                    comments=None,
                    quotechar='"',
                    usecols=usecols,
                    ndmin=2,
                )
            except ValueError:
                continue
            if numbers.shape == (len(lines), n_used):
                self._spell_out = spell_out
                return numbers
        return None

    def _with_nan(self, line: str) -> str:
        """Return a line with "nan" in the cells that are usually left out."""
        mark = self._delimiter
        line = f"{mark}{self._unquoted(line)}{mark}"
        for cell in self._missing_cells:
            if cell in line:
                # Twice: of two neighbours the first pass takes one, as they share a delimiter.
                line = line.replace(cell, f"{mark}nan{mark}").replace(cell, f"{mark}nan{mark}")
        return line[1:-1]

    def _with_points(self, line: str) -> str:
        """Return a line with points for decimal commas, and for cells with points other text."""
        if "." not in line and '"' not in line:
            return line.replace(",", ".")
        special = (".", self._delimiter, '"', "\n")
        return self._delimiter.join(
            "text" if any(mark in cell for mark in special) else cell.replace(",", ".")
            for cell in split_cells(line, self._delimiter)
        )

    def _unquoted(self, line: str) -> str:
        """Return a line without quotes, and for cells that need them some other text."""
        if '"' not in line:
            return line
        special = (self._delimiter, '"', "\n")
        cells = split_cells(line, self._delimiter)
        plain = ["text" if any(mark in cell for mark in special) else cell for cell in cells]
        return self._delimiter.join(plain)
