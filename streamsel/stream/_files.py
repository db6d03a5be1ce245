"""Many files as one stream: their columns side by side."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Never

import numpy as np

from streamsel.params import shown
from streamsel.plain import is_many
from streamsel.stream._arrays import iter_npy
from streamsel.stream._base import ColumnStream
from streamsel.stream._beside import beside_of, calling_rows
from streamsel.stream._csv import cut_csv, header_of
from streamsel.stream._formats import delimiter_of, file_format, open_columns
from streamsel.stream._lines import check_skip, count_variables, take_some
from streamsel.stream._numerals import check_na_values
from streamsel.stream._read_options import AS_FOUND, ReadOptions
from streamsel.stream._remote import files_like, is_url
from streamsel.stream._split import Part, Stamp, n_parts, together
from streamsel.stream._zarr import iter_zarr

if TYPE_CHECKING:
    from streamsel.columns import Block
    from streamsel.stream._lines import OnBad
    from streamsel.stream._read_options import Decimal, NaValues
    from streamsel.stream._split import Cut

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
    """Stream the columns of many files, side by side, as if they were one table.

    Parameters
    ----------
    paths
        Files, in the order in which their columns come; or a pattern such as
        ``"data/part-*.parquet"``, whose files come by name, with numbers in their order: part-2
        before part-10. Two stars stand for any folders. URLs may be among them, or be the pattern,
        with stars.
    orientation
        What a line of a text file is: "samples", below a header that names the columns, or
        "variables", behind its name. Text needs it.
    delimiter
        Of text files, one character; by default each file's suffix and first line say.
    decimal
        Of text files, "." or ","; by default each file's first lines say, as in `iter_lines`.
    na_values
        Of text files: cells that stand for a missing value, besides the usual ones.
    on_bad
        Of text files with one variable a line, as in `iter_lines`: what becomes of one with a cell
        that is not a number.
    ids
        A column that says what the rows are called, and may be in several files (not of text): it
        must be the same in all that have it, and is no column of the stream but stands in
        `beside`. Of one file it is a column.

    Returns
    -------
    ColumnStream
        Re-readable. It knows `names` and `n_columns` unless there is text with one variable a line.

    Raises
    ------
    FileNotFoundError
        If there is no such file, or no file of this pattern.
    ValueError
        If a file is not what it should be; two files differ in the number of rows, or in what the
        rows are called, or have a column of the same name. Of text this may be found only while
        reading.

    Notes
    -----
    Formats are told by suffix, or else by the first bytes: Parquet, Arrow IPC, `.npy`, `.bed`,
    `.h5ad`, Zarr, text; they may be mixed. Each file is looked into once, now, and closed; one file
    at a time is open while reading, and the last text with one sample a line stays as the temporary
    file that it was turned into. A file that has changed by then is refused. Memory is that of the
    file that is open, and the names of all columns; where there is text with one variable a line,
    12 bytes a column.

    The columns of `.npy` files have no names. They are numbered on from each such file to the next,
    as those of one array made of all by `numpy.hstack` would be.

    `take` opens only files that have one of the columns, and reads text with one variable a line
    until all are found. `split` makes parts of about equally many bytes: a large file is cut, small
    ones go together.

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
    """Stream the columns of files, as `iter_files` does it."""
    if len(found) == 1:
        return open_columns(found[0], orientation, options, on_bad)
    members: list[_Member] = []
    n_numbered = 0
    # Who looks at the first block, and then reads, is not to turn a text twice.
    turned = lru_cache(maxsize=1)(open_columns)
    for path in found:
        member = _look_into(path, n_numbered, orientation, options, on_bad, turned)
        if ids is not None and member.cut is None and ids in (member.names or ()):
            member = calling_rows(member, ids)
        n_numbered += len(member.names) if isinstance(member.names, range) else 0
        members.append(member)
        _check_rows(members[:-1], member)
    return Files(members, on_bad)


def paths_of(paths: Paths) -> list[str]:
    """Return the files that are meant by a list of them, or by a pattern.

    Raises
    ------
    FileNotFoundError
        If there is no file of this pattern.
    ValueError
        For an empty list.
    """
    if not isinstance(paths, (str, os.PathLike)):
        if not is_many(paths):
            raise TypeError(f"Expected a list of files, or a pattern. Got: {shown(paths)}.")
        listed = [os.fspath(path) for path in paths]
        if not listed:
            raise ValueError("Expected at least one file. Got: none.")
        return listed
    pattern = os.fspath(paths)
    if is_url(pattern):
        # A question mark begins a query.
        return _some(pattern, files_like(pattern)) if "*" in pattern else [pattern]
    if not glob.has_magic(pattern) or Path(pattern).exists():
        return [pattern]
    return _some(pattern, glob.glob(pattern, recursive=True))  # noqa: PTH207 (as the user has them)


def _some(pattern: str, found: Sequence[str]) -> list[str]:
    """Return the files that were found of a pattern in their order, if there are any."""
    if not found:
        raise FileNotFoundError(
            f"Expected files of the pattern {pattern!r}. Got: none.\nHint: ls says what there is."
        )
    return sorted(found, key=_natural)


def _natural(path: str) -> tuple[list[str | int], str]:
    """Order by name, numbers by their size."""
    pieces = re.split(r"(\d+)", path)
    return [int(piece) if i % 2 else piece for i, piece in enumerate(pieces)], path


class _Member(NamedTuple):
    """One of the files.

    Parameters
    ----------
    path
        The file.
    stamp
        As it was when it was looked into.
    n_rows
        None if only reading it all would tell.
    n_bytes
        About how many are read.
    names
        Of its columns; None if only reading it all would tell.
    read
        Opens it.
    cut
        Cuts it into parts, if there is a cheaper way than to open it.
    options, on_bad
        How it is read.
    beside
        What it says of the rows.
    """

    path: str
    stamp: Stamp
    n_rows: int | None
    n_bytes: int
    names: Sequence[Hashable] | None
    read: Callable[[], ColumnStream]
    cut: Cut | None = None
    options: ReadOptions = AS_FOUND
    on_bad: OnBad | None = None
    beside: Mapping[str, Any] = MappingProxyType({})

    def open(self) -> ColumnStream:
        self.stamp.check()
        return self.read()

    def split(self, parts: int, start: int) -> list[Part]:
        if self.cut is not None:
            return self.cut(parts, start)
        return self.open().skip(start).split(parts)

    def n_columns(self) -> int:
        """Return how many columns it has; lines have to be counted."""
        return count_variables(self.path, self.options) if self.names is None else len(self.names)

    def take_some(self, wanted: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Fetch those of the columns that are there."""
        if self.names is None:
            self.stamp.check()
            return take_some(self.path, self.options, self.on_bad, wanted)
        there = set(wanted).intersection(self.names)
        return self.open().take([name for name in wanted if name in there]) if there else {}


def _look_into(
    path: str,
    first: int,
    orientation: Orientation | None,
    options: ReadOptions,
    on_bad: OnBad | None,
    turned: Callable[..., ColumnStream],
) -> _Member:
    """Open a file, see what it is, and close it; columns without names get numbers from `first`."""
    stamp = Stamp.of(path)
    if file_format(path) == "text" and orientation == "samples":
        # Only its header: to know the number of rows is to have turned it into columns.
        marked = options._replace(delimiter=delimiter_of(path, options.delimiter))
        names = header_of(path, marked.delimiter)
        read = partial(turned, path, orientation, options)
        cut = cut_csv(path, stamp, marked, len(names), stamp.size)
        return _Member(path, stamp, None, stamp.size, names, read, cut)
    read = partial(open_columns, path, orientation, options, on_bad)
    stream = read()
    if isinstance(stream.names, range):
        numbered = {"npy": iter_npy, "zarr": iter_zarr}[file_format(path)]
        read = partial(numbered, path, range(first, first + len(stream.names)))
        stream = read()
    if stream.names is None:
        options = options._replace(delimiter=delimiter_of(path, options.delimiter))
    n_bytes = sum(part.n_bytes for part in stream.split(1))
    return _Member(
        *(path, stamp, stream.n_rows, n_bytes, stream.names, read),
        options=options,
        on_bad=on_bad,
        beside=stream.beside,
    )


class Files(ColumnStream):
    """The stream that `iter_files` returns for several files."""

    def __init__(self, members: Sequence[_Member], on_bad: OnBad | None) -> None:
        names = _all_names(members)
        known = [member.n_rows for member in members if member.n_rows is not None]
        super().__init__(
            partial(_read, members, 0),
            n_rows=known[0] if known else None,
            names=names,
            take=self._fetch,
            # Which lines are left out is not known before they are parsed.
            blocks_from=None if callable(on_bad) and names is None else partial(_read, members),
            cut=partial(_cut, members, on_bad),
            beside=beside_of(members),
        )
        self._members = members

    def take_some(self, names: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Fetch those of some columns that are there, in any order."""
        found: dict[Hashable, Any] = {}
        for member in self._members:
            if len(found) < len(names):
                found |= member.take_some([name for name in names if name not in found])
        return found

    def _fetch(self, names: Sequence[Hashable]) -> dict[Hashable, Any]:
        found = self.take_some(names)
        if len(found) < len(names):
            # Reading them all says what comes close.
            return ColumnStream(partial(_read, self._members, 0)).take(names)
        return {name: found[name] for name in names}


def _all_names(members: Sequence[_Member]) -> Sequence[Hashable] | None:
    """Return the names of all columns; None where only reading tells."""
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
                    _refuse_twice(name, first[name], member)
    return names


def _read(members: Sequence[_Member], start: int) -> Iterator[Block]:
    """Yield the blocks of one file after the other, from a column on."""
    seen = None if all(member.names is not None for member in members) else _Seen(members)
    opened: list[_Member] = []
    for i, member in enumerate(members):
        if start and (n_columns := member.n_columns()) <= start:
            start -= n_columns
            continue
        stream = member.open()
        opened.append(member._replace(n_rows=stream.n_rows))
        _check_rows(opened[:1], opened[-1])
        for block in (stream.skip(start) if start else stream).blocks():
            if seen is not None:
                seen.check(block.names, i)
            yield block
        # Gone before the next file is opened.
        del stream
        start = 0


def _cut(
    members: Sequence[_Member], on_bad: OnBad | None, parts: int | None, start: int
) -> list[Part]:
    """Cut large files into pieces, and put small ones together."""
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
    wanted = n_parts(n_bytes, parts)
    pieces: list[Part] = []
    for member in rest:
        share = -(-member.n_bytes * wanted // max(1, n_bytes))  # rounded up
        pieces += member.split(max(1, share), start)
        start = 0
    return together(pieces, wanted)


def _check_rows(earlier: Sequence[_Member], member: _Member) -> None:
    """Raise ValueError if a file has another number of rows than one before it."""
    for other in earlier:
        if None not in (other.n_rows, member.n_rows) and other.n_rows != member.n_rows:
            raise ValueError(
                f"Expected as many rows in every file. Got: {other.n_rows:,} in {other.path!r}, "
                f"and {member.n_rows:,} in {member.path!r}."
            )


def _refuse_twice(name: Hashable, first: _Member, second: _Member) -> Never:
    raise ValueError(
        f"Expected distinct names of columns. Got: {name!r} in {first.path!r}, and in "
        f"{second.path!r}.\nHint: rename one of them, or leave out a file that repeats another."
    )


class _Seen:
    """Which names there were in the files before, where no list of them is kept.

    Parameters
    ----------
    members
        The files.

    Notes
    -----
    A name is known again by its hash, and then looked for in the file that had the same.
    """

    def __init__(self, members: Sequence[_Member]) -> None:
        self._members = members
        self._hashes = np.empty(0, dtype=np.int64)
        self._member_of = np.empty(0, dtype=np.int32)
        self._current = 0
        self._new: list[np.ndarray[Any, np.dtype[np.int64]]] = []

    def check(self, names: Sequence[Hashable], i: int) -> None:
        """Raise ValueError if one of these names of the i-th file was in a file before."""
        if i != self._current:
            self._next_file(i)
        hashes = np.fromiter(map(hash, names), np.int64, len(names))
        self._new.append(hashes)
        if not self._hashes.size:
            return
        places = np.minimum(np.searchsorted(self._hashes, hashes), self._hashes.size - 1)
        for j in np.flatnonzero(self._hashes[places] == hashes).tolist():
            earlier = self._members[self._member_of[places[j]]]
            if earlier.take_some([names[j]]):
                _refuse_twice(names[j], earlier, self._members[i])

    def _next_file(self, i: int) -> None:
        new = np.sort(np.concatenate(self._new)) if self._new else self._hashes[:0]
        places = np.searchsorted(self._hashes, new)
        self._hashes = np.insert(self._hashes, places, new)
        self._member_of = np.insert(self._member_of, places, self._current)
        self._current, self._new = i, []
