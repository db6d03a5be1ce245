"""The columns of one or several files: fetch some by name, and resume after those already read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel._utils.sparse import dense_column
from streamsel._utils.text import utc_text
from streamsel.cli.errors import CommandError, missing_columns_text
from streamsel.stream import ColumnStream
from streamsel.stream.files import (
    DEFAULT_READ_OPTIONS,
    EXACT_INTEGER_LIMIT,
    MultiFileStream,
    ReadOptions,
    Stamp,
    digest,
    find_indices,
    find_numerals,
    may_be_rounded_integers,
    null_byte_message,
    numbered_lines,
    open_text,
    parse_integers,
    part_of,
    raise_unknown_names,
    read_exact_integers,
    split_cells,
    split_name,
    text_errors,
)
from streamsel.stream.formats import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from streamsel.data.chunks import Block
    from streamsel.stream.files import Fingerprint, Numerals

MAX_COMPARED = 20_000  # names compared with a misspelt one


@dataclass(frozen=True)
class Source:
    """One file of columns, or several whose columns are concatenated.

    Parameters
    ----------
    path
        Its path, for messages.
    files
        The files.
    format
        The format returned by `file_format` (that of the first of several files); if any is text,
        the content of its lines: "samples" or "variables".
    stream
        The columns.
    line_files
        Text files with one variable per line, and their delimiters.
    is_numbered
        Whether there are columns without names, such as those of .npy files.
    options
        How the files are read.
    """

    path: str
    files: Sequence[str]
    format: str
    stream: ColumnStream
    line_files: Sequence[tuple[str, str]]
    is_numbered: bool
    options: ReadOptions = DEFAULT_READ_OPTIONS

    @property
    def has_genotypes(self) -> bool:
        """Whether the columns are genotypes."""
        return self.format in FORMATS and FORMATS[self.format].genotypes

    def name(self, text: str) -> Hashable:
        """Return the name of the column that a text denotes: some columns have only numbers."""
        if not (self.is_numbered and text.isdecimal()):
            return text
        names = self.stream.names
        # Tables among the files may have column names that look like numbers.
        is_name = names is not None and not isinstance(names, range) and text in names
        return text if is_name else int(text)

    def take(self, names: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Fetch dense columns or row metadata; raise for missing names."""
        try:
            if not self.line_files:
                if self.stream.row_metadata and self.stream.names is not None:
                    find_indices([*self.stream.row_metadata, *self.stream.names], names)
                metadata = self._row_metadata_of(names)
                found = self.stream.take([name for name in names if name not in metadata])
                found = {name: dense_column(values) for name, values in found.items()}
                return {name: metadata.get(name, found.get(name)) for name in names}
            found, seen = read_from_lines(self.line_files, names, self.options)
            found |= self._take_from_other_files([name for name in names if name not in found])
            missing = [name for name in names if name not in found]
            if missing:
                raise_unknown_names(missing, seen)
            return {name: found[name] for name in names}
        except KeyError as error:
            raise CommandError(missing_columns_text(self.path, error)) from None

    def take_existing(self, names: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Fetch those of the columns that exist, dense."""
        if self.line_files:
            found = read_from_lines(self.line_files, names, self.options)[0]
            return found | self._take_from_other_files(
                [name for name in names if name not in found]
            )
        requested = set(names)
        existing = requested.intersection(
            name for name in self.stream.names or () if name in requested
        )
        found = self.stream.take([name for name in names if name in existing])
        found = {name: dense_column(values) for name, values in found.items()}
        return found | self._row_metadata_of(names)

    def exact(self, name: Hashable, values: Any) -> Any:
        """Return the exact integers of a fetched column, if they are too large for floats.

        Identifiers of 16 digits and more are such integers.
        """
        if may_be_rounded_integers(values) and str(name) not in self.stream.row_metadata:
            for path in self.files:
                found = read_exact_integers(path, name, self.format, self.options)
                if found is not None and len(found) == len(values):
                    return found
        return values

    def _row_metadata_of(self, names: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Return the row metadata of these names; columns take precedence."""
        found = [name for name in names if name in self.stream.row_metadata]
        columns = {*(self.stream.names or ())}.intersection(found) if found else ()
        return {
            str(name): self.stream.row_metadata[str(name)] for name in found if name not in columns
        }

    def _take_from_other_files(self, names: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Fetch columns from files that do not have one variable per line."""
        if (
            names
            and isinstance(self.stream, MultiFileStream)
            and len(self.files) > len(self.line_files)
        ):
            return self.stream.take_available(names)
        return {}

    def check(self, names: Sequence[str]) -> None:
        """Raise unless all these columns exist."""
        if self.stream.names is None:
            self.take([self.name(name) for name in names])
            return
        try:
            find_indices(self.stream.names, [self.name(name) for name in names])
        except KeyError as error:
            raise CommandError(missing_columns_text(self.path, error)) from None

    def fingerprint(self, given: Sequence[Any]) -> dict[str, Any]:
        """Return the fingerprint of the files before their columns are read.

        Parameters
        ----------
        given
            Target and covariates, as they were read.
        """
        found = [Stamp.of(path) for path in self.files]
        times = [one.changed for one in found if isinstance(one.changed, int)]
        return {
            "rows": self.stream.n_rows,
            "columns": self.stream.n_columns,
            "files": len(found),
            "bytes": sum(one.size for one in found),
            # A URL has no modification time.
            "modified": utc_text(max(times) / 1e9) if times else None,
            "target": _checksum(given),
        }


def _checksum(given: Sequence[Any]) -> str:
    """Return a checksum of the contents of arrays, tables and None."""
    parts: list[Any] = []
    for one in given:
        if hasattr(one, "column_names"):
            parts += [one.column_names, *(column.to_pylist() for column in one.columns)]
        else:
            parts.append(None if one is None else digest(one))
    return digest(np.array([repr(part) for part in parts], dtype=object))


def read_from_lines(
    files: Sequence[tuple[str, str]], names: Sequence[Hashable], options: ReadOptions
) -> tuple[dict[Hashable, Any], list[str]]:
    """Read some variables from files of lines; also return names of other variables there."""
    found: dict[Hashable, Any] = {}
    seen: list[str] = []
    for path, delimiter in files:
        numerals = find_numerals(path, delimiter, options)
        with open_text(path) as file, text_errors(path):
            for number, line in numbered_lines(file, path):
                if len(found) == len(set(names)):
                    return found, seen
                name, _ = split_name(line, delimiter)
                if name in names and name not in found:
                    cells = split_cells(line, delimiter)[1:]
                    found[name] = numbers_or_labels(cells, numerals)
                    if found[name].dtype == object:
                        for j, cell in enumerate(cells, start=2):
                            refuse_null(cell, path, f"line {number}, column {j}")
                if len(seen) < MAX_COMPARED:
                    seen.append(name)
    return found, seen


def numbers_or_labels(cells: Sequence[str], numerals: Numerals) -> Any:
    """Return an array of numbers if all cells are numeric, otherwise of labels; None is missing."""
    numbers = numerals.numbers(cells)
    if numbers is not None:
        exact = parse_integers(cells) if may_be_rounded_integers(numbers) else None
        return as_integers(numbers) if exact is None else exact
    texts = [None if numerals.is_missing(cell) else cell.strip() for cell in cells]
    return np.array(texts, dtype=object)


def refuse_null(cell: str, path: str, where: str) -> None:
    """Raise CommandError for a cell with a null byte."""
    if null := null_byte_message(cell, path, where):
        raise CommandError(null)


def as_integers(values: Any) -> Any:
    """Convert floats that are all whole numbers to integers: text has no types."""
    if values.ndim == 1 and values.dtype.kind == "f" and np.isfinite(values).all():
        whole = (
            values.astype(np.int64)
            if np.abs(values).max(initial=0) < EXACT_INTEGER_LIMIT
            else values
        )
        return whole if (whole == values).all() else values
    return values


def unread_columns(
    stream: ColumnStream,
    left_out: Sequence[Hashable],
    n_read: int,
    recorder: Fingerprint,
    check: Callable[[], None],
) -> ColumnStream:
    """Return the unread columns of a stream, and fingerprint the columns as they are read.

    Parameters
    ----------
    stream
        All columns of the file.
    left_out
        Names of columns that no run reads, such as the target.
    n_read
        Columns that have been read, not counting those left out.
    recorder
        Fingerprint, updated with the columns.
    check
        Called when the earlier columns, and no others, are in the fingerprint. This is immediately
        if the stream has column names, otherwise during iteration, as lines are read in order.

    Returns
    -------
    A stream whose `take` still fetches every column of the file.
    """
    kept = stream.without(left_out) if left_out else stream
    rest, start = kept, 0
    if kept.names is not None and n_read:
        recorder.add_first_columns(kept, n_read)
        check()
        rest = stream.skip(_file_position(stream.names or (), frozenset(left_out), n_read))
        rest, start = rest.without(left_out) if left_out else rest, n_read
    return ColumnStream(
        lambda: _unread(rest.blocks(), start, n_read, recorder, check),
        n_rows=stream.n_rows,
        n_columns=None if kept.n_columns is None else max(0, kept.n_columns - n_read),
        reiterable=stream.reiterable,
        take=stream.take,
        names=None if kept.names is None else kept.names[n_read:],
        cut=(kept.skip(n_read) if n_read else kept)._cut,
    )


def _file_position(names: Sequence[Hashable], left_out: frozenset[Hashable], n_read: int) -> int:
    """Return the position in the file after n_read columns that are not excluded."""
    position = n_read
    for i, name in enumerate(names):
        if i > position:
            break
        position += name in left_out
    return position


def _unread(
    blocks: Iterator[Block],
    position: int,
    n_read: int,
    recorder: Fingerprint,
    check: Callable[[], None],
) -> Iterator[Block]:
    """Yield the columns after the first n_read; the blocks start at `position`, at or before it."""
    unchecked = position < n_read
    for block in blocks:
        width = len(block.names)
        n_known = min(width, max(0, n_read - position))
        if n_known:
            recorder.add(part_of(block, 0, n_known), position)
        if unchecked and position + n_known == n_read:
            check()
            unchecked = False
        if n_known < width:
            recorder.add(block, position)
            yield part_of(block, n_known, width) if n_known else block
        position += width
    if unchecked:
        check()
