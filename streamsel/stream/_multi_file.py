"""Several files as one stream: their columns concatenated, with the row metadata of the first."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Never, cast

import numpy as np

from streamsel.params import parameter_repr
from streamsel.serialization.json_values import is_iterable_collection
from streamsel.stream._csv import csv_splitter, read_column_names
from streamsel.stream._csv_by_variable import check_skip, count_variables, take_available
from streamsel.stream._formats import (
    delimiter_of,
    file_format,
    open_columns,
    read_exact_integers,
)
from streamsel.stream._grouped_parts import group_parts
from streamsel.stream._metadata import LazyMetadata, concatenated
from streamsel.stream._numerals import (
    DEFAULT_READ_OPTIONS,
    ReadOptions,
    check_na_values,
    may_be_rounded_integers,
)
from streamsel.stream._parts import Stamp, StreamPart, n_parts, n_pieces, split_without
from streamsel.stream._remote import is_url, matching_urls
from streamsel.stream._stream import ColumnStream, restricted
from streamsel.stream.formats import FORMATS

if TYPE_CHECKING:
    from streamsel.data.chunks import Block
    from streamsel.stream._csv_by_variable import OnBad
    from streamsel.stream._numerals import Decimal, NaValues
    from streamsel.stream._parts import Cut
    from streamsel.targets.kept_rows import KeptRows


def split_row_ids(member: _Member, ids: str) -> _Member:
    """Move the column `ids` of a file from its columns to its row metadata."""
    values = np.asarray(member.open().take([ids])[ids])
    if may_be_rounded_integers(values):
        exact = read_exact_integers(member.path, ids, "", DEFAULT_READ_OPTIONS)
        values = values if exact is None else exact
    return member._replace(
        names=[name for name in member.names or () if name != ids],
        read=lambda: member.read().without([ids]),
        cut=partial(split_without, member.cut, member.names, frozenset([ids])),
        row_metadata={ids: values, **member.row_metadata},
    )


def row_metadata_of(members: Sequence[_Member]) -> Mapping[str, Any]:
    """Return the row metadata of the first file with any; check that the row names agree."""
    with_metadata = [member for member in members if member.row_metadata]
    if not with_metadata:
        return {}
    first, *others = with_metadata
    id_name = next(iter(first.row_metadata))
    names = np.asarray(first.row_metadata[id_name])
    for other in others:
        if id_name not in other.row_metadata:
            continue
        found = np.asarray(other.row_metadata[id_name])
        if (differs := np.flatnonzero(found != names)).size:
            row = int(differs[0])
            raise ValueError(
                f"Expected the same {id_name} in every file. Got in row {row:,}: {names[row]!r} in "
                f"{first.path!r}, and {found[row]!r} in {other.path!r}."
            )
    return first.row_metadata


Orientation = Literal["samples", "variables"]
Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def iter_files(
    paths: Paths,
    *,
    orientation: Orientation | None = None,
    delimiter: str | None = None,
    decimal: Decimal | None = None,
    na_values: NaValues = None,
    on_bad: OnBad | None = None,
    ids: str | None = None,
) -> ColumnStream:
    """Stream the columns of several files as one table, concatenated by columns.

    Parameters
    ----------
    paths
        Files, in the order of their columns; or a pattern such as ``"data/part-*.parquet"``, whose
        files are sorted by name with numbers in numerical order: part-2 before part-10. Two stars
        match any folders. Files and patterns can be URLs.
    orientation
        The content of a line of a text file: "samples" (one sample per line, below a header with
        the column names) or "variables" (one variable per line, after its name). Required for text.
    delimiter
        Delimiter of text files, one character; by default inferred from the suffix and first line
        of each file.
    decimal
        Decimal mark of text files, "." or ","; by default inferred from the first lines of each
        file, as in `iter_csv`.
    na_values
        Cells of text files that denote a missing value, in addition to the usual ones.
    on_bad
        Handling of non-numeric cells in text files with one variable per line, as in
        `iter_csv`.
    ids
        Column with the row names, which several files (other than text) may contain: it must be
        the same in all of them, and is in `row_metadata` instead of a column of the stream. With a
        single file it is a column.

    Returns
    -------
    ColumnStream
        Re-readable; `names` and `n_columns` are known unless there is text with one variable per
        line.

    Raises
    ------
    FileNotFoundError
        If there is no such file, or no file matches the pattern.
    ValueError
        If a file is invalid; if two files differ in the number of rows or in the row names, or
        have a column of the same name. With text, some of this is detected only while reading.

    Notes
    -----
    `column_metadata` concatenates that of the files. It has the fields common to all files that
    have column metadata.

    Formats are inferred from the suffix, or else from the first bytes, and may be mixed. Each file
    is inspected once, when the function is called, and closed. While reading, one file at a time is
    open; the transposed temporary copy of the last text file with one sample per line is kept. A
    file that has changed in the meantime is refused. Memory is that of the open file plus all
    column names; with text of one variable per line, 12 bytes per column.

    The columns of `.npy` files and Zarr arrays have no names. They are numbered consecutively over
    these files, as in the array that `numpy.hstack` would make of them.

    `take` opens only files that contain one of the columns, and reads text with one variable per
    line until all are found. `split` makes parts of about equally many bytes: large files are cut,
    small ones are grouped. By default no file of up to 256 MB is cut, since each process that
    reads a part of a file opens it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import polars as pl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for i in (1, 2, 10):
    ...         path = pathlib.Path(folder, f"part-{i}.parquet")
    ...         pl.DataFrame({f"x{i}": [1.0, i], f"z{i}": [0.0, 1.0]}).write_parquet(path)
    ...     stream = iter_files(f"{folder}/part-*.parquet")
    ...     for name, values in stream.without(["z1", "z2"]):
    ...         print(name, values)
    x1 [1. 1.]
    x2 [1. 2.]
    x10 [ 1. 10.]
    z10 [0. 1.]
    """
    options = ReadOptions(delimiter, decimal, check_na_values(na_values))
    return open_files(paths_of(paths), orientation, options, on_bad, ids)


def open_files(
    found: Sequence[str],
    orientation: Orientation | None,
    options: ReadOptions,
    on_bad: OnBad | None = None,
    ids: str | None = None,
) -> ColumnStream:
    """Stream the columns of files, as `iter_files` does."""
    if len(found) == 1:
        return open_columns(found[0], orientation, options, on_bad)
    members: list[_Member] = []
    n_numbered = 0
    # Cached, so that looking at the first block and then reading transposes a text file only once.
    open_cached = lru_cache(maxsize=1)(open_columns)
    for path in found:
        member = _inspect(path, n_numbered, orientation, options, on_bad, open_cached)
        # The rows of text with one sample per line are not counted: its row names are unknown.
        if ids is not None and member.n_rows is not None and ids in (member.names or ()):
            member = split_row_ids(member, ids)
        n_numbered += len(member.names) if isinstance(member.names, range) else 0
        members.append(member)
        _check_rows(members[:-1], member)
    return MultiFileStream(members, on_bad)


def paths_of(paths: Paths) -> list[str]:
    """Return the files of a list, or those that match a pattern.

    Raises
    ------
    FileNotFoundError
        If no file matches the pattern.
    ValueError
        For an empty list.
    """
    if not isinstance(paths, (str, os.PathLike)):
        if not is_iterable_collection(paths):
            raise TypeError(
                f"Expected paths to be a list or a pattern. Got: {parameter_repr(paths)}."
            )
        listed = [os.fspath(path) for path in paths]
        if not listed:
            raise ValueError("Expected at least one file in paths. Got: none.")
        return listed
    pattern = os.fspath(paths)
    if is_url(pattern):
        # Only stars are patterns: in a URL, a question mark begins a query.
        return _sorted_files(pattern, matching_urls(pattern)) if "*" in pattern else [pattern]
    if not glob.has_magic(pattern) or Path(pattern).exists():
        return [pattern]
    # Not Path.glob, which would normalise the paths of the user.
    return _sorted_files(pattern, glob.glob(pattern, recursive=True))  # noqa: PTH207


def _sorted_files(pattern: str, found: Sequence[str]) -> list[str]:
    """Sort the files that match a pattern; raise FileNotFoundError if there are none."""
    if not found:
        raise FileNotFoundError(
            f"Expected files that match the pattern {pattern!r}. Got: none.\n"
            "Hint: list the folder with ls."
        )
    return sorted(found, key=_natural)


def _natural(path: str) -> tuple[list[str | int], str]:
    """Return a sort key: by name, with numbers in numerical order."""
    pieces = re.split(r"(\d+)", path)
    return [int(piece) if i % 2 else piece for i, piece in enumerate(pieces)], path


class _Member(NamedTuple):
    """One of the files.

    Parameters
    ----------
    path
        The file.
    stamp
        Its state when it was inspected.
    n_rows
        Number of rows, None if unknown before the whole file is read.
    n_bytes
        Approximate number of bytes that are read.
    names
        Column names, None if unknown before the whole file is read.
    read
        Opens the file.
    cut
        Cuts it into parts; it keeps no open file.
    options, on_bad
        Read options.
    row_metadata, column_metadata
        Row metadata and column metadata.
    """

    path: str
    stamp: Stamp
    n_rows: int | None
    n_bytes: int
    names: Sequence[Hashable] | None
    read: Callable[[], ColumnStream]
    cut: Cut
    options: ReadOptions = DEFAULT_READ_OPTIONS
    on_bad: OnBad | None = None
    row_metadata: Mapping[str, Any] = MappingProxyType({})
    column_metadata: Mapping[str, Any] = MappingProxyType({})

    def open(self) -> ColumnStream:
        self.stamp.check()
        return self.read()

    def split(self, parts: int, start: int) -> list[StreamPart]:
        self.stamp.check()
        return self.cut(parts, start)

    def n_columns(self) -> int:
        """Return the number of columns; of text with one variable per line, count the lines."""
        return count_variables(self.path, self.options) if self.names is None else len(self.names)

    def take_available(self, requested: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Fetch the wanted columns that the file contains."""
        if self.names is None:
            self.stamp.check()
            return take_available(self.path, self.options, self.on_bad, requested)
        present = set(requested).intersection(self.names)
        return self.open().take([name for name in requested if name in present]) if present else {}


def _inspect(
    path: str,
    first: int,
    orientation: Orientation | None,
    options: ReadOptions,
    on_bad: OnBad | None,
    open_cached: Callable[..., ColumnStream],
) -> _Member:
    """Open a file, inspect and close it; columns without names are numbered from `first`."""
    stamp = Stamp.of(path)
    if file_format(path) == "text" and orientation == "samples":
        # Read only the header: counting the rows would require transposing the file.
        with_delimiter = options._replace(delimiter=delimiter_of(path, options.delimiter))
        names = read_column_names(path, with_delimiter.delimiter)
        read = partial(open_cached, path, orientation, options)
        cut = csv_splitter(path, stamp, with_delimiter, len(names), stamp.size)
        return _Member(path, stamp, None, stamp.size, names, read, cut)
    read = partial(open_columns, path, orientation, options, on_bad)
    stream = read()
    if isinstance(stream.names, range):
        numbers = range(first, first + len(stream.names))
        read = partial(open_columns, path, orientation, options, on_bad, numbers)
        stream = read()
    if stream.names is None:
        options = options._replace(delimiter=delimiter_of(path, options.delimiter))
    if FORMATS[file_format(path)].scans:
        read = partial(_same, stream)
    n_bytes = sum(part.n_bytes for part in stream.split(1))
    cut = cast("Cut", stream._cut)  # every format of files has a splitter
    return _Member(
        *(path, stamp, stream.n_rows, n_bytes, stream.names, read, cut),
        options=options,
        on_bad=on_bad,
        row_metadata=stream.row_metadata,
        column_metadata=stream.column_metadata,
    )


def _same(stream: ColumnStream) -> ColumnStream:
    return stream


class MultiFileStream(ColumnStream):
    """The stream that `iter_files` returns for several files."""

    def __init__(self, members: Sequence[_Member], on_bad: OnBad | None) -> None:
        names = _all_names(members)
        known = [member.n_rows for member in members if member.n_rows is not None]
        super().__init__(
            partial(_read, members, 0),
            n_rows=known[0] if known else None,
            names=names,
            take=self._fetch,
            # on_bad excludes lines only when they are parsed, so that none can be skipped before.
            blocks_from=None if callable(on_bad) and names is None else partial(_read, members),
            cut=partial(_cut, members, on_bad),
            row_metadata=row_metadata_of(members),
            column_metadata=LazyMetadata(
                lambda: concatenated([member.column_metadata for member in members])
            ),
            restrict=self._of_rows,
        )
        self._members = members

    def _of_rows(self, kept: KeptRows) -> ColumnStream:
        read = partial(_read, self._members, kept=kept)
        return ColumnStream(
            partial(read, 0),
            n_rows=self.n_rows,
            names=self.names,
            blocks_from=None if self._blocks_from is None else read,
        )

    def take_available(self, names: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Fetch the named columns that the files contain, in any order."""
        found: dict[Hashable, Any] = {}
        for member in self._members:
            if len(found) < len(names):
                found |= member.take_available([name for name in names if name not in found])
        return found

    def _fetch(self, names: Sequence[Hashable]) -> dict[Hashable, Any]:
        found = self.take_available(names)
        if len(found) < len(names):
            # A full pass raises the KeyError, with similar names.
            return ColumnStream(partial(_read, self._members, 0)).take(names)
        return {name: found[name] for name in names}


def _all_names(members: Sequence[_Member]) -> Sequence[Hashable] | None:
    """Return the names of all columns, None if unknown before reading."""
    if any(member.names is None for member in members):
        return None
    if all(isinstance(member.names, range) for member in members):
        return range(sum(len(member.names or ()) for member in members))
    names = [name for member in members for name in member.names or ()]
    if len(set(names)) < len(names):
        first: dict[Hashable, _Member] = {}
        for member in members:
            for name in member.names or ():
                if first.setdefault(name, member) is not member:
                    _raise_duplicate(name, first[name], member)
    return names


def _read(members: Sequence[_Member], start: int, kept: KeptRows | None = None) -> Iterator[Block]:
    """Yield the blocks of one file after the other, from a column index on."""
    known = all(member.names is not None for member in members)
    seen = None if known else _DuplicateCheck(members)
    opened: list[_Member] = []
    for i, member in enumerate(members):
        if start and (n_columns := member.n_columns()) <= start:
            start -= n_columns
            continue
        stream = member.open()
        opened.append(member._replace(n_rows=stream.n_rows))
        _check_rows(opened[:1], opened[-1])
        stream = restricted(stream, kept)
        for block in (stream.skip(start) if start else stream).blocks():
            if seen is not None:
                seen.check(block.names, i)
            yield block
        # Freed before the next file is opened.
        del stream
        start = 0


def _cut(
    members: Sequence[_Member], on_bad: OnBad | None, parts: int | None, start: int
) -> list[StreamPart]:
    """Cut large files into pieces, and group small ones."""
    rest = list(members)
    while start and rest:
        if rest[0].names is None:
            check_skip(start, on_bad)
        n_columns = rest[0].n_columns()
        if n_columns > start:
            break
        start -= n_columns
        rest = rest[1:]
    n_bytes = sum(member.n_bytes for member in rest)
    n_requested = n_parts(n_bytes, parts)
    pieces: list[StreamPart] = []
    for member in rest:
        if parts is None:
            share = n_pieces(member.n_bytes)
        else:
            share = max(1, -(-member.n_bytes * n_requested // max(1, n_bytes)))  # rounded up
        pieces += member.split(share, start)
        start = 0
    return group_parts(pieces, n_requested)


def _check_rows(earlier: Sequence[_Member], member: _Member) -> None:
    for other in earlier:
        if None not in (other.n_rows, member.n_rows) and other.n_rows != member.n_rows:
            raise ValueError(
                f"Expected the same number of rows in every file. Got: {other.n_rows:,} in "
                f"{other.path!r}, and {member.n_rows:,} in {member.path!r}."
            )


def _raise_duplicate(name: Hashable, first: _Member, second: _Member) -> Never:
    raise ValueError(
        f"Expected distinct column names. Got: {name!r} in {first.path!r}, and in "
        f"{second.path!r}.\nHint: rename one of them, or exclude a file that repeats another."
    )


class _DuplicateCheck:
    """Detection of column names that occur in several files, without keeping all names.

    Parameters
    ----------
    members
        The files.

    Notes
    -----
    Names are compared by hash; a match is confirmed in the file that had the same hash.
    """

    def __init__(self, members: Sequence[_Member]) -> None:
        self._members = members
        self._hashes = np.empty(0, dtype=np.int64)
        self._member_of = np.empty(0, dtype=np.int32)
        self._current = 0
        self._new: list[np.ndarray[Any, np.dtype[np.int64]]] = []

    def check(self, names: Sequence[Hashable], i: int) -> None:
        """Raise ValueError if one of these names of the i-th file occurs in an earlier file."""
        if i != self._current:
            self._next_file(i)
        hashes = np.fromiter(map(hash, names), np.int64, len(names))
        self._new.append(hashes)
        if not self._hashes.size:
            return
        positions = np.minimum(np.searchsorted(self._hashes, hashes), self._hashes.size - 1)
        for j in np.flatnonzero(self._hashes[positions] == hashes).tolist():
            earlier = self._members[self._member_of[positions[j]]]
            if earlier.take_available([names[j]]):
                _raise_duplicate(names[j], earlier, self._members[i])

    def _next_file(self, i: int) -> None:
        new = np.sort(np.concatenate(self._new)) if self._new else self._hashes[:0]
        positions = np.searchsorted(self._hashes, new)
        self._hashes = np.insert(self._hashes, positions, new)
        self._member_of = np.insert(self._member_of, positions, self._current)
        self._current, self._new = i, []
