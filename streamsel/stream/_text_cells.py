"""Delimited text: opening, bounds on its lines, splitting into cells, conversion to numbers."""

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

from streamsel._utils.system import out_of_memory
from streamsel.stream._numerals import USUAL_MISSING, Numerals, is_grouped, to_number
from streamsel.stream._remote import open_binary

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# A line of unknown width, such as one value of a list.
LINE_BYTES = 4 * 2**20
# A cell of a table: a number takes at most 25 bytes, a name rarely more than this.
CELL_BYTES = 64
# The first line of a table, of unknown width: a million cells.
FIRST_BYTES = 2**20 * CELL_BYTES
_CHUNK_BYTES = 2**16
# Uncompressed bytes of a gzipped file that are buffered.
_GZIP_BYTES = 2**17


def line_bound(n_cells: int) -> int:
    """Return the maximum number of bytes of a line of `n_cells` cells."""
    return max(LINE_BYTES, n_cells * CELL_BYTES)


class LineBound:
    """Limit on the length of lines: raises ValueError as soon as a line exceeds it.

    Parameters
    ----------
    path
        The file, for the error message.
    first, other
        Maximum number of bytes of the first line, and of every other line.
    start
        Offset of the first byte in the file.
    """

    def __init__(
        self, path: str | os.PathLike[str], first: int, other: int, start: int = 0
    ) -> None:
        self.path, self.other = path, other
        self._first = first
        self._length, self._n_read = 0, start

    def check(self, data: bytes) -> None:
        """Check the next bytes of the file."""
        # A line that ends in these bytes is already in memory: only one that continues matters.
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
                "line endings; write tables with longer lines as Parquet."
            )


def set_line_bound(file: TextIO, n_cells: int) -> None:
    """Set the bound of the following lines by the number of cells in the first."""
    assert isinstance(file.buffer, BoundedLines)  # noqa: S101
    file.buffer.bound.other = line_bound(n_cells)


class BoundedLines(io.BufferedIOBase):
    """The bytes of a text file, with a bound on the length of its lines.

    Parameters
    ----------
    file
        The text file.
    bound
        The bound.
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
        """Read and return the next bytes, with at most one read of the file."""
        data: bytes = self._file.read1(max(size, _CHUNK_BYTES))  # type: ignore[union-attr]
        self.bound.check(data)
        return data

    def close(self) -> None:
        """Close the text file."""
        self._file.close()
        super().close()


# Fewer cells than this do not justify the import of pyarrow.
_MIN_ARROW_CELLS = 2**17
# Cells converted by pyarrow at a time, a few megabytes with their texts.
_ARROW_CELLS = 2**16
# Characters of a line from which on numpy is faster.
_LONG_LINE = 4096
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
DEFAULT_NUMERALS = Numerals()
# Byte order marks of UTF-16.
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def open_text(
    path: str | os.PathLike[str], longest: int = FIRST_BYTES, other: int | None = None
) -> TextIO:
    """Open a text file, plain or gzipped, with any line ending; a byte order mark is dropped.

    Parameters
    ----------
    path
        The file.
    longest
        Maximum number of bytes of the first line, and of all others if `other` is None: reading a
        longer line raises ValueError.
    other
        Maximum number of bytes of the other lines.
    """
    bound = LineBound(path, longest, longest if other is None else other)
    return io.TextIOWrapper(BoundedLines(open_unzipped(path), bound), encoding="utf-8-sig")


def open_unzipped(path: str | os.PathLike[str], *, anywhere: bool = False) -> BinaryIO:
    """Open a file, plain or gzipped, for its uncompressed bytes.

    Parameters
    ----------
    path
        The file.
    anywhere
        Whether random access is needed if it is plain; a gzipped file is always read from its
        beginning.
    """
    if is_zipped(path):
        return io.BufferedReader(_ClosingGzipFile(open_binary(path)), _GZIP_BYTES)
    return open_binary(path, anywhere=anywhere)


class _ClosingGzipFile(gzip.GzipFile):
    """A gzip file that also closes the underlying file."""

    def __init__(self, file: BinaryIO) -> None:
        self._raw_file = file
        super().__init__(fileobj=file, mode="rb")

    def close(self) -> None:
        super().close()
        self._raw_file.close()


def is_zipped(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is gzipped, by its first bytes."""
    with open_binary(path) as file:
        return file.read(2) == b"\x1f\x8b"


@contextmanager
def text_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Convert errors in reading and parsing a text file to messages with its path."""
    try:
        yield
    except UnicodeDecodeError as error:
        encoding = "utf-16" if error.object[:2] in _UTF16_MARKS else "latin1"
        raise ValueError(
            f"Expected text in UTF-8. Got: {os.fspath(path)!r}, with the invalid byte "
            f"0x{error.object[error.start]:02x}.\n"
            f"Hint: convert it, such as by iconv -f {encoding} -t utf-8."
        ) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(
            f"Expected a complete gzip file. Got: {os.fspath(path)!r} ({error})."
        ) from error
    except csv.Error as error:
        raise ValueError(
            "Expected cells that are either completely quoted or unquoted. Got: invalid quotes in "
            f"{os.fspath(path)!r} ({error})."
        ) from error
    except MemoryError as error:
        raise out_of_memory(path, error) or error from error


def numbered_lines(file: TextIO, path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """Yield (line number, line) of all non-blank lines, without the line ending."""
    with text_errors(path):
        for number, line in enumerate(file, start=1):
            text = line.rstrip("\n")
            if text.strip(" "):
                yield number, text


def null_byte_message(cell: str, path: str | os.PathLike[str], where: str) -> str:
    """Return the error message for a cell with a null byte, "" for a valid cell."""
    if "\0" not in cell:
        return ""
    return (
        f"Expected text. Got: a null byte in {where} of {os.fspath(path)!r}.\nHint: the file is "
        "damaged or in UTF-16; convert the latter, such as by iconv -f utf-16 -t utf-8."
    )


def find_delimiter(line: str, delimiter: str | None, likely: str = "") -> str:
    """Return `delimiter`, or by default infer it from a line.

    The default is the first of `likely`, tab, comma and semicolon that is in the line, ignoring
    quoted text.
    """
    if delimiter is None:
        unquoted = _QUOTED.sub("", line)
        if "," in unquoted:
            for mark in "\t;":
                if mark in unquoted and _has_decimal_commas(unquoted, mark):
                    return mark
        return next((mark for mark in f"{likely}\t,;" if mark in unquoted), likely or ",")
    if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n':
        raise ValueError(f"Expected a delimiter of one character. Got: {delimiter!r}.")
    return delimiter


def _has_decimal_commas(line: str, delimiter: str) -> bool:
    """Return whether a line is a name followed by numbers, some with a decimal comma."""
    cells = line.split(delimiter)[1:]
    return any("," in cell for cell in cells) and all(
        to_number(cell, ",") is not None or is_grouped(cell, ",") for cell in cells
    )


def split_cells(line: str, delimiter: str) -> list[str]:
    """Split a line into its cells, without quotes."""
    if '"' in line:
        return next(csv.reader([line], delimiter=delimiter))
    return line.split(delimiter)


def count_cells(line: str, delimiter: str) -> int:
    """Return the number of cells of a line."""
    if '"' in line:
        return len(split_cells(line, delimiter))
    if len(line) > _LONG_LINE and delimiter.isascii():
        # Three times as fast as str.count; in UTF-8 an ASCII byte occurs only as its character.
        is_mark = np.frombuffer(line.encode(), np.uint8) == ord(delimiter)
        return int(np.count_nonzero(is_mark)) + 1
    return line.count(delimiter) + 1


@functools.cache
def _arrow() -> _Arrow | None:
    try:
        import pyarrow as pa
        import pyarrow.compute
    except ImportError:
        return None
    return _Arrow(pa)


class _Arrow:
    """Parser of lines of numeric cells by pyarrow.

    It uses the system allocator, as that of pyarrow retains tens of megabytes.
    """

    def __init__(self, pa: Any) -> None:
        self._pa = pa
        self._pool = {"memory_pool": pa.system_memory_pool()}

    def numbers(
        self,
        lines: Sequence[str],
        delimiter: str,
        n_cells: int,
        usecols: Sequence[int] | None,
        missing: Sequence[str],
    ) -> npt.NDArray[np.float64] | None:
        """Return the numbers, one row per line, or None if a cell cannot be parsed."""
        pa = self._pa
        out = np.empty((len(lines), n_cells if usecols is None else len(usecols)))
        step = max(1, _ARROW_CELLS // n_cells)
        has_missing = False
        for a in range(0, len(lines), step):
            rows = out[a : a + step]
            texts = pa.array(lines[a : a + step], **self._pool)
            cells = pa.compute.split_pattern(texts, delimiter, **self._pool).values
            if usecols is not None:
                indices = np.add.outer(n_cells * np.arange(len(rows)), usecols).ravel()
                cells = pa.compute.take(cells, pa.array(indices), **self._pool)
            # After the first missing value they are always replaced: a failed cast takes time.
            numbers = None if has_missing else self._cast(cells)
            if numbers is None:
                has_missing = True
                numbers = self._cast(self._without_missing(cells, missing))
            if numbers is None:
                return None
            rows[:] = numbers.to_numpy(zero_copy_only=False).reshape(rows.shape)
        return out

    def _cast(self, cells: Any) -> Any:
        """Return an array of numbers, None if a cell is not a number."""
        try:
            return self._pa.compute.cast(cells, self._pa.float64(), **self._pool)
        except self._pa.ArrowInvalid:
            return None

    def _without_missing(self, cells: Any, missing: Sequence[str]) -> Any:
        compute = self._pa.compute
        stripped = compute.ascii_trim_whitespace(cells, **self._pool)
        is_missing = compute.is_in(stripped, self._pa.array(missing), **self._pool)
        return compute.if_else(is_missing, None, stripped, **self._pool)


class NumberParser:
    """Fast parser of lines with the same number of cells into rows of numbers.

    Parameters
    ----------
    delimiter
        Delimiter of the cells.
    numerals
        Number format. Numbers with thousands separators are not parsed.

    Notes
    -----
    pyarrow is tried first if it is installed, as it takes a quarter of the time. It reads every
    number as Python does, and lines that it rejects are parsed by numpy.

    `numpy.loadtxt` over many lines is the fastest method with numpy alone (0.2 µs per cell;
    splitting and converting each line takes two to three times as long), but it does not support
    missing values: after its first failure they are replaced by "nan" beforehand.
    """

    def __init__(self, delimiter: str, numerals: Numerals = DEFAULT_NUMERALS) -> None:
        self._delimiter = delimiter
        self._has_commas = numerals.decimal == ","
        self._missing = [*USUAL_MISSING, *numerals.na_values]
        if self._has_commas:  # lines are searched after commas are replaced by points
            self._missing = [text.replace(",", ".") for text in self._missing]
        self._missing_cells = [f"{delimiter}{text}{delimiter}" for text in self._missing]
        self._missing_numbers = sorted(numerals.missing_numbers)
        self._replace_missing = False

    def parse(
        self, lines: Sequence[str], n_cells: int, usecols: Sequence[int] | None = None
    ) -> npt.NDArray[np.float64] | None:
        """Return the numbers, one row per line, or None if a cell cannot be parsed.

        Parameters
        ----------
        lines
            Lines of `n_cells` cells each.
        n_cells
            Number of cells of each line.
        usecols
            Indices of the cells to parse, all by default.
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
            len(lines) * n_used >= _MIN_ARROW_CELLS
            and (arrow := _arrow())
            # Quotes may contain a delimiter; and Arrow parses "nan(x)" as NaN.
            and not any('"' in line or "(" in line for line in lines)
            and (found := arrow.numbers(lines, self._delimiter, n_cells, usecols, self._missing))
            is not None
        ):
            return found
        for replace_missing in (False, True):
            if replace_missing < self._replace_missing:
                continue
            if replace_missing:
                lines = [self._with_nan(line) for line in lines]
            if not all(map(str.strip, lines)):
                continue  # loadtxt would skip a blank line
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
                self._replace_missing = replace_missing
                return numbers
        return None

    def _with_nan(self, line: str) -> str:
        """Replace the missing values of a line by "nan"."""
        mark = self._delimiter
        line = f"{mark}{self._unquoted(line)}{mark}"
        for cell in self._missing_cells:
            if cell in line:
                # Twice, as adjacent cells share a delimiter and one pass replaces only the first.
                line = line.replace(cell, f"{mark}nan{mark}").replace(cell, f"{mark}nan{mark}")
        return line[1:-1]

    def _with_points(self, line: str) -> str:
        """Replace decimal commas of a line by points, and cells with points by a text."""
        if "." not in line and '"' not in line:
            return line.replace(",", ".")
        special = (".", self._delimiter, '"', "\n")
        return self._delimiter.join(
            "text" if any(mark in cell for mark in special) else cell.replace(",", ".")
            for cell in split_cells(line, self._delimiter)
        )

    def _unquoted(self, line: str) -> str:
        """Remove the quotes of a line, and replace cells that need them by a text."""
        if '"' not in line:
            return line
        special = (self._delimiter, '"', "\n")
        cells = split_cells(line, self._delimiter)
        plain = ["text" if any(mark in cell for mark in special) else cell for cell in cells]
        return self._delimiter.join(plain)
