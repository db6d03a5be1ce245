"""Streams of the columns of delimited text with one observation per line (CSV)."""

from __future__ import annotations

import csv
import itertools
import os
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from streamsel.data.chunks import Block
from streamsel.data.names import expect_distinct_names
from streamsel.params import parameter_repr
from streamsel.stream._blocks import BLOCK_BYTES, columns_per_block
from streamsel.stream._csv_by_variable import block_dtype, open_csv_by_variable
from streamsel.stream._csv_layout import find_numerals
from streamsel.stream._numerals import ReadOptions, check_na_values
from streamsel.stream._parts import Stamp, cached_reader, split_columns
from streamsel.stream._stream import ColumnStream, indexed_stream
from streamsel.stream._text_cells import (
    CELL_BYTES,
    FIRST_BYTES,
    NumberParser,
    count_cells,
    find_delimiter,
    line_bound,
    null_byte_message,
    numbered_lines,
    open_text,
    set_line_bound,
    split_cells,
    text_errors,
)
from streamsel.stream._transpose import disk_space_errors, temporary_file

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from streamsel.stream._csv_by_variable import OnBad
    from streamsel.stream._numerals import Decimal, NaValues
    from streamsel.stream._parts import Cut

# Bytes of rows transposed at a time: with more, a column is read from fewer pieces.
_TILE_BYTES = 2 * BLOCK_BYTES
# Size of the temporary file, for error messages.
_SIZE = "8 bytes per cell"


def iter_csv(
    path: str | os.PathLike[str],
    *,
    orientation: Literal["samples", "variables"] = "samples",
    delimiter: str | None = None,
    decimal: Decimal | None = None,
    na_values: NaValues = None,
    header: bool | None = None,
    dtype: npt.DTypeLike = np.float64,
    on_bad: OnBad | None = None,
) -> ColumnStream:
    r"""Stream the columns of a text file (CSV): one observation or one variable per line.

    Parameters
    ----------
    path
        Text file in UTF-8, plain or gzipped, or its URL.
    orientation
        Content of a line: "samples", one observation under a header with the names; "variables",
        the name of one variable, then its n values, as in many gene expression and genotype
        matrices.
    delimiter
        One character; by default the first of tab, comma and semicolon that is in the first line.
    decimal
        The decimal mark, "." or ",". By default a comma if the first lines contain numbers that
        are valid only with a decimal comma, and none valid only with a point: `1,5` or `1.304,25`
        between semicolons or tabs, but not `1,304`.
    na_values
        Cells that denote a missing value, texts or numbers, in addition to the usual ones.
    header
        variables: whether the first line has the names of the observations. By default true if its
        cells after the first are not all numbers.
    dtype
        variables: dtype of the columns: float64, float32, int8 or uint8.
    on_bad
        variables: handling of a line with a cell that is not a number or does not fit `dtype`. By
        default it raises ValueError. A function is called as ``on_bad(name, reason, message)``, and
        the line is excluded unless it returns True. "pass" and True yield the line as other sources
        do: as an object column of its texts, which the learner rejects with its name, or in
        float64.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        For `header`, `dtype` or `on_bad` with samples. If the file is empty, has no line below the
        header, a name occurs twice in the header, or a line has more or fewer cells than the header
        or a null byte in a cell; the message gives the line number. For variables, errors in a line
        are raised while reading.
    OSError
        If the temporary file cannot be written.

    Notes
    -----
    **Variables.** About 4 MiB of columns are read at a time. `take` parses only the requested
    lines, and stops at the last of them; it parses all lines if a name is not found. A header may
    lack the cell above the names.

    **Samples.** Any column requires a pass over the whole file. The file is therefore read once,
    when the function is called, and transposed to a temporary file of 8 bytes per cell, in the
    directory that `tempfile` chooses (set by TMPDIR); it is deleted together with the stream.
    Memory: tens of megabytes, or a few lines if these are longer, plus the distinct texts of text
    columns.

    Empty cells, NA, N/A, NaN, null, None and #N/A in any case are NaN, and so is a dash among
    numbers. Thousands separators (`1,304.25`, `1 304`) are read if the column uses them
    consistently and a comma cannot be a decimal mark. A column with any other cell is passed on
    as an object column of its texts, None where missing, which the learner rejects with its name;
    if its first text comes late in the file, the file is read twice. Blank lines are skipped.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "x.csv")
    ...     _ = path.write_text("a,b,kind\n1,2.5,x\n,3.5,y\n")
    ...     stream = iter_csv(path)
    >>> for name, values in stream:
    ...     print(name, values)
    a [ 1. nan]
    b [2.5 3.5]
    kind ['x' 'y']

    One variable per line:

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "genes.tsv")
    ...     _ = path.write_text("gene\ts1\ts2\nTP53\t1.5\t2\nEGFR\tNA\t4\n")
    ...     for name, values in iter_csv(path, orientation="variables"):
    ...         print(name, values)
    TP53 [1.5 2. ]
    EGFR [nan 4.]
    """
    if not isinstance(orientation, str) or orientation not in ("samples", "variables"):
        raise ValueError(
            "Expected orientation to be 'samples' or 'variables'. Got: "
            f"{parameter_repr(orientation)}."
        )
    if orientation == "variables":
        options = ReadOptions(delimiter, decimal, check_na_values(na_values))
        return open_csv_by_variable(path, options, on_bad, header, dtype)
    if header is not None or on_bad is not None or block_dtype(dtype) != np.float64:
        raise ValueError(
            "Expected header, dtype and on_bad with orientation='variables' only. Got: "
            "orientation='samples'."
        )
    return open_csv(path, ReadOptions(delimiter, decimal, check_na_values(na_values)))


def open_csv(path: str | os.PathLike[str], options: ReadOptions) -> ColumnStream:
    """Stream the columns of a text file, as `iter_csv` does."""
    stamp = Stamp.of(path)
    transposed = _TransposedCsv(path, options)
    p = len(transposed.names)
    cut = csv_splitter(path, stamp, options, p, 8 * transposed.n_rows * p)
    return _csv_stream(transposed, 0, p, cut)


def csv_splitter(
    path: str | os.PathLike[str], stamp: Stamp, options: ReadOptions, p: int, n_bytes: int
) -> Cut:
    """Return the splitter of a file of p columns and about `n_bytes` bytes."""

    def opener(a: int, b: int) -> partial[ColumnStream]:
        return partial(_csv_part, stamp.path, options, a, b)

    size = max(1, n_bytes // max(1, p))
    return partial(split_columns, path, (stamp,), range(0, (p + 1) * size, size), opener)


def _csv_part(path: str, options: ReadOptions, first: int, end: int) -> ColumnStream:
    return _csv_stream(cached_reader(_TransposedCsv, path, options), first, end)


def _csv_stream(
    transposed: _TransposedCsv, first: int, end: int, cut: Cut | None = None
) -> ColumnStream:
    n = transposed.n_rows

    def read(start: int) -> Iterator[Block]:
        width = columns_per_block(n)
        a = first + start
        while a < end:
            b = a + 1
            while (
                b < min(a + width, end)
                and a not in transposed.decoded
                and b not in transposed.decoded
            ):
                b += 1
            yield Block(transposed.names[a:b], transposed.columns(a, b))
            a = b

    def fetch(positions: list[int]) -> list[npt.NDArray[Any]]:
        columns = (first + j for j in positions)
        return [transposed.columns(j, j + 1)[:, 0] for j in columns]

    return indexed_stream(transposed.names[first:end], n, read, fetch, cut)


class _TransposedCsv:
    """The cells of a text file, transposed in a temporary file.

    Parameters
    ----------
    path
        The text file.
    options
        Read options.

    Notes
    -----
    The temporary file is a sequence of tiles, each a few transposed rows of the text file, so that
    it is written sequentially for any number of rows. Texts are stored as codes.
    """

    def __init__(self, path: str | os.PathLike[str], options: ReadOptions) -> None:
        self._path = path
        # index of a text column -> its texts -> their codes
        self._codes: dict[int, dict[str, int]] = {}
        self._tile_rows: list[int] = []
        self._file_lock = threading.Lock()
        self._file = temporary_file(self, path, _SIZE)
        with open_text(path) as file, text_errors(path):
            lines = numbered_lines(file, path)
            self.names, self._delimiter = _read_header(lines, path, options.delimiter)
            set_line_bound(file, len(self.names))
            self._numerals = find_numerals(path, self._delimiter, options)
            found_late = self._write_tiles(lines)
        self.n_rows = sum(self._tile_rows)
        if self.n_rows == 0:
            raise ValueError(
                f"Expected one line per observation. Got: only a header in {os.fspath(path)!r}."
            )
        if found_late:
            self._write_texts_again(found_late)
        with disk_space_errors(path, _SIZE):
            self._file.flush()
        self.decoded = {j: self._decoded(codes) for j, codes in self._codes.items()}
        self._codes.clear()

    def _decoded(self, codes: dict[str, int]) -> npt.NDArray[Any]:
        """Return the values of the codes of a column: texts, or numbers with separators."""
        numbers = self._numerals.numbers(codes)
        # The last entry is for NaN, which is not a code.
        if numbers is not None:
            return np.append(numbers, np.nan)
        return np.array([*codes, None], dtype=object)

    def columns(self, a: int, b: int) -> npt.NDArray[Any]:
        """Return the columns a, ..., b - 1: numbers, or one column of text."""
        out = np.empty((b - a, self.n_rows))
        row = 0
        for rows, offset in self._tiles():
            # Several threads may read parts of the stream.
            with self._file_lock:
                self._file.seek(offset + a * rows * 8)
                tile = np.frombuffer(self._file.read((b - a) * rows * 8))
            out[:, row : row + rows] = tile.reshape(b - a, rows)
            row += rows
        if a not in self.decoded:
            return out.T
        values = self.decoded[a]
        codes = np.nan_to_num(out[0], nan=len(values) - 1).astype(np.intp)
        column: npt.NDArray[Any] = values[codes].reshape(-1, 1)
        return column

    def _tiles(self) -> Iterator[tuple[int, int]]:
        """Yield (rows, offset in the temporary file) of every tile."""
        offset = 0
        for rows in self._tile_rows:
            yield rows, offset
            offset += rows * len(self.names) * 8

    def _batches(self, lines: Iterator[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
        """Yield the numbered lines of each tile."""
        p = len(self.names)
        joined = _join_quoted_lines(lines, self._path)
        height = max(1, _TILE_BYTES // (8 * p))
        while numbered := list(itertools.islice(joined, height)):
            for number, line in numbered:
                found = count_cells(line, self._delimiter)
                if found != p:
                    raise ValueError(
                        null_byte_message(line, self._path, f"line {number}")
                        or f"Expected {p} cells in line {number} of {os.fspath(self._path)!r}, "
                        f"as in its header. Got: {found}."
                    )
            yield numbered

    def _write_tiles(self, lines: Iterator[tuple[int, str]]) -> list[int]:
        """Write all tiles; return the columns whose first text comes after the first tile."""
        parser = NumberParser(self._delimiter, self._numerals)
        found_late: list[int] = []
        for batch in self._batches(lines):
            new = self._parse(batch, parser)
            if self._tile_rows:
                found_late += new
            self._tile_rows.append(len(batch))
        return found_late

    def _parse(self, numbered: Sequence[tuple[int, str]], parser: NumberParser) -> list[int]:
        """Write a tile; return the columns that are found to be text in it."""
        p = len(self.names)
        batch = [line for _, line in numbered]
        tile = np.empty((p, len(batch)))
        new = []
        if not self._tile_rows:
            # Most text columns have text in the first line.
            new = self._find_texts(numbered[:1])
        for _ in range(2):
            used = [j for j in range(p) if j not in self._codes]
            numbers = parser.parse(batch, p, usecols=used if len(used) < p else None)
            if numbers is not None:
                tile[used] = numbers.T
                break
            new += self._find_texts(numbered)
        else:
            for i, line in enumerate(batch):
                cells = split_cells(line, self._delimiter)
                tile[used, i] = [self._numerals.number(cells[j]) for j in used]
        if self._codes:
            for i, line in enumerate(batch):
                cells = split_cells(line, self._delimiter)
                for j in self._codes:
                    tile[j, i] = self._code(j, cells[j])
        with disk_space_errors(self._path, _SIZE):
            self._file.write(tile.data)
        return new

    def _find_texts(self, numbered: Sequence[tuple[int, str]]) -> list[int]:
        """Register the columns with a non-numeric cell in these lines; return the new ones."""
        new = []
        for number, line in numbered:
            for j, cell in enumerate(split_cells(line, self._delimiter)):
                if j not in self._codes and self._numerals.number(cell) is None:
                    where = f"line {number}, column {j + 1} ({self.names[j]!r})"
                    if null := null_byte_message(cell, self._path, where):
                        raise ValueError(null)
                    self._codes[j] = {}
                    new.append(j)
        return new

    def _code(self, column: int, cell: str) -> float:
        """Return the code of a text, NaN for a missing one."""
        text = cell.strip()
        if self._numerals.is_missing(text):
            return np.nan
        codes = self._codes[column]
        return codes.setdefault(text, len(codes))

    def _write_texts_again(self, columns: list[int]) -> None:
        """Rewrite, as texts, the columns that were first assumed to be numbers."""
        for j in columns:
            self._codes[j] = {}
        longest = line_bound(len(self.names))
        with open_text(self._path, other=longest) as file, text_errors(self._path):
            lines = numbered_lines(file, self._path)
            next(_join_quoted_lines(lines, self._path))
            for batch, (rows, offset) in zip(self._batches(lines), self._tiles(), strict=True):
                cells = [split_cells(line, self._delimiter) for _, line in batch]
                for j in columns:
                    codes = np.array([self._code(j, row[j]) for row in cells], dtype=float)
                    with disk_space_errors(self._path, _SIZE):
                        self._file.seek(offset + j * rows * 8)
                        self._file.write(codes.data)


def read_raw_cells(
    path: str | os.PathLike[str], options: ReadOptions, name: Hashable
) -> list[str | None] | None:
    """Return the raw cells of a column, None for a missing one; None without the column."""
    with open_text(path) as file, text_errors(path):
        lines = numbered_lines(file, path)
        names, delimiter = _read_header(lines, path, options.delimiter)
        if name not in names:
            return None
        j, numerals = names.index(name), find_numerals(path, delimiter, options)
        set_line_bound(file, len(names))
        cells = (split_cells(line, delimiter)[j] for _, line in _join_quoted_lines(lines, path))
        return [None if numerals.is_missing(cell) else cell for cell in cells]


def read_column_names(path: str | os.PathLike[str], delimiter: str | None) -> list[Hashable]:
    """Return the column names, reading only the header."""
    with open_text(path) as file, text_errors(path):
        return _read_header(numbered_lines(file, path), path, delimiter)[0]


def first_record(path: str | os.PathLike[str]) -> str:
    """Return the first line, joined with those after it if quotes contain its end; "" if none."""
    with open_text(path) as file, text_errors(path):
        return next(_join_quoted_lines(numbered_lines(file, path), path), (0, ""))[1]


def _read_header(
    lines: Iterator[tuple[int, str]], path: str | os.PathLike[str], delimiter: str | None
) -> tuple[list[Hashable], str]:
    """Return the names in the first line, and the delimiter."""
    header = next(_join_quoted_lines(lines, path), None)
    if header is None:
        raise ValueError(
            f"Expected a header and one line per observation. Got: the empty file "
            f"{os.fspath(path)!r}."
        )
    delimiter = find_delimiter(header[1], delimiter)
    names: list[Hashable] = [cell.strip() for cell in split_cells(header[1], delimiter)]
    expect_distinct_names(names)
    return names, delimiter


def _join_quoted_lines(
    lines: Iterator[tuple[int, str]], path: str | os.PathLike[str]
) -> Iterator[tuple[int, str]]:
    """Join lines that are split by a line ending inside quotes."""
    for number, line in lines:
        if line.count('"') % 2 == 0:
            yield number, line
            continue
        parts, is_open, since, length = [line], True, 0, len(line)
        while is_open:
            text = next(lines, (0, None))[1]
            # Beyond the longest cell that the csv module accepts, do not look for the quote.
            if text is None or since > csv.field_size_limit() or length > FIRST_BYTES:
                raise ValueError(
                    f"Expected closing quotes. Got: line {number} of {os.fspath(path)!r}, whose "
                    "quotes are not closed in the rest of the file."
                )
            parts.append(text)
            since = 0 if '"' in text else since + len(text)
            # The overhead of a Python object is about CELL_BYTES.
            length += len(text) + CELL_BYTES
            is_open ^= text.count('"') % 2 == 1
        yield number, "\n".join(parts)
