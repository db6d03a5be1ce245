"""Columns of the usual text file, which holds one observation a line."""

from __future__ import annotations

import csv
import itertools
import os
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from streamsel.columns import Block
from streamsel.stream._base import ColumnStream, check_distinct, indexed_stream
from streamsel.stream._blocks import BLOCK_BYTES, columns_per_block
from streamsel.stream._cells import (
    NumberParser,
    count_cells,
    find_delimiter,
    null_in,
    numbered_lines,
    open_text,
    split_cells,
    text_of,
)
from streamsel.stream._decimal import find_numerals
from streamsel.stream._line_bound import CELL_BYTES, FIRST_BYTES, expect_cells, line_bound
from streamsel.stream._numerals import check_na_values
from streamsel.stream._read_options import ReadOptions
from streamsel.stream._split import Stamp, kept_open, parts_of_columns
from streamsel.stream._temporary import room_for, temporary_file

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from streamsel.stream._read_options import Decimal, NaValues
    from streamsel.stream._split import Cut, Part

# Rows turned at a time: the more, the fewer the pieces that a column is read from.
_TILE_BYTES = 2 * BLOCK_BYTES
# Of the temporary file.
_SIZE = "8 bytes a cell"


def iter_csv(
    path: str | os.PathLike[str],
    *,
    delimiter: str | None = None,
    decimal: Decimal | None = None,
    na_values: NaValues = None,
) -> ColumnStream:
    r"""Stream the columns of a text file that holds one observation a line, and names in the first.

    Parameters
    ----------
    path
        Text file in UTF-8, plain or gzipped, or its URL.
    delimiter
        One character; by default the first of tab, comma and semicolon that is in the first line.
    decimal
        The decimal mark, "." or ",". By default a comma if the first lines have numbers that only a
        comma can be the mark of, and none for a point: `1,5` or `1.304,25` between semicolons or
        tabs, but not `1,304`.
    na_values
        Cells that stand for a missing value, texts or numbers, besides the usual ones.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is empty, has no line below the header, a name occurs twice in the header, or a
        line has more or fewer cells than the header, or a null byte in a cell: it gives the line's
        number.
    OSError
        If the temporary file cannot be written.

    Notes
    -----
    A column can only be had by reading the whole file. So it is read once, now, and its numbers
    are written by columns to a temporary file of 8 bytes a cell, in the directory that `tempfile`
    chooses (set by TMPDIR); it goes when the stream does. Memory: some ten megabytes, or a few
    lines where they are longer, and the distinct texts of the columns of text.

    Empty cells, NA, N/A, NaN, null, None and #N/A in any case are NaN, and so is a dash among
    numbers. Separators of thousands (`1,304.25`, `1 304`) are read where a column is consistent
    about them, and where a comma cannot be a decimal one. A column with any other cell is passed on
    as an object column of its texts, None where missing, for the learner to refuse by name; if its
    first text comes late in the file, the file is read once more. Blank lines are skipped.

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
    """
    return open_csv(path, ReadOptions(delimiter, decimal, check_na_values(na_values)))


def open_csv(path: str | os.PathLike[str], options: ReadOptions) -> ColumnStream:
    """Stream the columns of a text, as `iter_csv` does it."""
    stamp = Stamp.of(path)
    turned = _Turned(path, options)
    p = len(turned.names)
    cut = cut_csv(path, stamp, options, p, 8 * turned.n_rows * p)
    return _csv_stream(turned, 0, p, cut)


def cut_csv(
    path: str | os.PathLike[str], stamp: Stamp, options: ReadOptions, p: int, n_bytes: int
) -> Cut:
    """Return what cuts a file of p columns and about so many bytes into parts."""

    def how(a: int, b: int) -> partial[ColumnStream]:
        return partial(_csv_part, stamp.path, options, a, b)

    def cut(parts: int | None, start: int) -> list[Part]:
        size = max(1, n_bytes // p)
        return parts_of_columns(path, stamp, range(0, (p + 1) * size, size), how, parts, start)

    return cut


def _csv_part(path: str, options: ReadOptions, first: int, end: int) -> ColumnStream:
    return _csv_stream(kept_open(_Turned, path, options), first, end)


def _csv_stream(turned: _Turned, first: int, end: int, cut: Cut | None = None) -> ColumnStream:
    n = turned.n_rows

    def read(start: int) -> Iterator[Block]:
        width = columns_per_block(n)
        a = first + start
        while a < end:
            b = a + 1
            while b < min(a + width, end) and a not in turned.decoded and b not in turned.decoded:
                b += 1
            yield Block(turned.names[a:b], turned.columns(a, b))
            a = b

    def fetch(positions: list[int]) -> list[npt.NDArray[Any]]:
        places = (first + j for j in positions)
        return [turned.columns(j, j + 1)[:, 0] for j in places]

    return indexed_stream(turned.names[first:end], n, read, fetch, cut)


class _Turned:
    """The cells of a text file by columns, in a temporary file.

    Parameters
    ----------
    path
        The text file.
    options
        How it is to be read.

    Notes
    -----
    The temporary file is a sequence of tiles, each a few rows of the text file by columns, so
    that it is written from start to end whatever the number of rows. Texts are stored as codes.
    """

    def __init__(self, path: str | os.PathLike[str], options: ReadOptions) -> None:
        self._path = path
        # position of a column of text -> its texts -> their codes
        self._codes: dict[int, dict[str, int]] = {}
        self._tile_rows: list[int] = []
        self._one_at_a_time = threading.Lock()
        self._file = temporary_file(self, path, _SIZE)
        with open_text(path) as file, text_of(path):
            lines = numbered_lines(file, path)
            self.names, self._delimiter = _read_header(lines, path, options.delimiter)
            expect_cells(file, len(self.names))
            self._numerals = find_numerals(path, self._delimiter, options)
            found_late = self._write_tiles(lines)
        self.n_rows = sum(self._tile_rows)
        if self.n_rows == 0:
            raise ValueError(
                f"Expected a line for each observation, got: nothing but a header in "
                f"{os.fspath(path)!r}."
            )
        if found_late:
            self._write_texts_again(found_late)
        with room_for(path, _SIZE):
            self._file.flush()
        self.decoded = {j: self._decoded(codes) for j, codes in self._codes.items()}
        self._codes.clear()

    def _decoded(self, codes: dict[str, int]) -> npt.NDArray[Any]:
        """Return what the codes of a column stand for: texts, or numbers with separators."""
        numbers = self._numerals.numbers(codes)
        # A NaN is no code: the last entry stands for it.
        if numbers is not None:
            return np.append(numbers, np.nan)
        return np.array([*codes, None], dtype=object)

    def columns(self, a: int, b: int) -> npt.NDArray[Any]:
        """Return the columns a, ..., b - 1: numbers, or one column of text."""
        out = np.empty((b - a, self.n_rows))
        row = 0
        for rows, offset in self._tiles():
            # Several parts may be read at once.
            with self._one_at_a_time:
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
        """Yield the lines of one tile after the other, with their numbers."""
        p = len(self.names)
        joined = _joined(lines, self._path)
        height = max(1, _TILE_BYTES // (8 * p))
        while numbered := list(itertools.islice(joined, height)):
            for number, line in numbered:
                found = count_cells(line, self._delimiter)
                if found != p:
                    raise ValueError(
                        null_in(line, self._path, f"line {number}")
                        or f"Expected {p} cells in line {number} of {os.fspath(self._path)!r}, "
                        f"as in its header, got: {found}."
                    )
            yield numbered

    def _write_tiles(self, lines: Iterator[tuple[int, str]]) -> list[int]:
        """Write all tiles; return the columns that turned out to be text after the first."""
        parser = NumberParser(self._delimiter, self._numerals)
        found_late: list[int] = []
        for batch in self._batches(lines):
            new = self._parse(batch, parser)
            if self._tile_rows:
                found_late += new
            self._tile_rows.append(len(batch))
        return found_late

    def _parse(self, numbered: Sequence[tuple[int, str]], parser: NumberParser) -> list[int]:
        """Write a tile; return the columns that are now known to be text."""
        p = len(self.names)
        batch = [line for _, line in numbered]
        tile = np.empty((p, len(batch)))
        new = []
        if not self._tile_rows:
            # Most columns of text show it in the first line.
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
        with room_for(self._path, _SIZE):
            self._file.write(tile.data)
        return new

    def _find_texts(self, numbered: Sequence[tuple[int, str]]) -> list[int]:
        """Note the columns with a cell in these lines that is not a number; return the new ones."""
        new = []
        for number, line in numbered:
            for j, cell in enumerate(split_cells(line, self._delimiter)):
                if j not in self._codes and self._numerals.number(cell) is None:
                    where = f"line {number}, column {j + 1} ({self.names[j]!r})"
                    if null := null_in(cell, self._path, where):
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
        """Write the columns that were taken for numbers at first as texts, from the start."""
        for j in columns:
            self._codes[j] = {}
        longest = line_bound(len(self.names))
        with open_text(self._path, other=longest) as file, text_of(self._path):
            lines = numbered_lines(file, self._path)
            next(_joined(lines, self._path))
            for batch, (rows, offset) in zip(self._batches(lines), self._tiles(), strict=True):
                cells = [split_cells(line, self._delimiter) for _, line in batch]
                for j in columns:
                    codes = np.array([self._code(j, row[j]) for row in cells], dtype=float)
                    with room_for(self._path, _SIZE):
                        self._file.seek(offset + j * rows * 8)
                        self._file.write(codes.data)


def cells_of(
    path: str | os.PathLike[str], options: ReadOptions, name: Hashable
) -> list[str | None] | None:
    """Return the cells of a column as they are, None for a missing one; None without the column."""
    with open_text(path) as file, text_of(path):
        lines = numbered_lines(file, path)
        names, mark = _read_header(lines, path, options.delimiter)
        if name not in names:
            return None
        j, numerals = names.index(name), find_numerals(path, mark, options)
        expect_cells(file, len(names))
        cells = (split_cells(line, mark)[j] for _, line in _joined(lines, path))
        return [None if numerals.is_missing(cell) else cell for cell in cells]


def header_of(path: str | os.PathLike[str], delimiter: str | None) -> list[Hashable]:
    """Return the names of the columns, and read no more."""
    with open_text(path) as file, text_of(path):
        return _read_header(numbered_lines(file, path), path, delimiter)[0]


def _read_header(
    lines: Iterator[tuple[int, str]], path: str | os.PathLike[str], delimiter: str | None
) -> tuple[list[Hashable], str]:
    """Return the names in the first line, and what stands between cells."""
    header = next(_joined(lines, path), None)
    if header is None:
        raise ValueError(
            f"Expected a header and a line for each observation, got: the empty file "
            f"{os.fspath(path)!r}."
        )
    mark = find_delimiter(header[1], delimiter)
    names: list[Hashable] = [cell.strip() for cell in split_cells(header[1], mark)]
    check_distinct(names)
    return names, mark


def _joined(
    lines: Iterator[tuple[int, str]], path: str | os.PathLike[str]
) -> Iterator[tuple[int, str]]:
    """Join lines that a line ending inside quotes has split."""
    for number, line in lines:
        if line.count('"') % 2 == 0:
            yield number, line
            continue
        parts, is_open, since, length = [line], True, 0, len(line)
        while is_open:
            text = next(lines, (0, None))[1]
            # The longest cell that the module csv takes: no need to look for the quote any further.
            if text is None or since > csv.field_size_limit() or length > FIRST_BYTES:
                raise ValueError(
                    f"Expected quotes that are closed, got: line {number} of {os.fspath(path)!r}, "
                    "which opens them for the rest of the file."
                )
            parts.append(text)
            since = 0 if '"' in text else since + len(text)
            # An object of Python has as many bytes of its own.
            length += len(text) + CELL_BYTES
            is_open ^= text.count('"') % 2 == 1
        yield number, "\n".join(parts)
