"""Parts of a stream: small descriptions that another process can open and read."""

from __future__ import annotations

import functools
import hashlib
import os
import stat
from bisect import bisect_left
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from streamsel import params
from streamsel.stream._remote import is_url, version_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from streamsel.stream._stream import ColumnStream

    Cut = Callable[[int | None, int], list["StreamPart"]]

# Bytes read per part. The same on every machine, as results may depend on the limits of the parts.
PART_BYTES = 128 * 10**6


class Stamp(NamedTuple):
    """State of a file, or of all files of a folder, by which a change is detected."""

    path: str
    size: int
    changed: int | str

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Stamp:
        """Return the current state of a file."""
        if is_url(path):
            return cls(str(path), *version_of(str(path)))
        where = Path(path).absolute()
        try:
            found = where.stat()
        except ValueError as error:  # characters that no path can have
            raise ValueError(f"Expected the path of a file. Got: {path!r} ({error}).") from error
        if stat.S_ISDIR(found.st_mode):
            return cls(str(where), *_size_and_time(str(where)))
        return cls(str(where), found.st_size, found.st_mtime_ns)

    def check(self) -> None:
        """Raise ValueError if the file has changed."""
        now = Stamp.of(self.path)
        if now != self:
            raise ValueError(
                f"Expected {self.path!r} to be unchanged since it was split ({self.size:,} bytes, "
                f"{_time(self.changed)}). Got: {now.size:,} bytes, {_time(now.changed)}.\n"
                "Hint: open the file again, and split the new stream."
            )


def _size_and_time(folder: str) -> tuple[int, int]:
    size = changed = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            found = entry.stat()
            n_bytes, time = found.st_size, found.st_mtime_ns
            if entry.is_dir():
                n_bytes, time = _size_and_time(entry.path)
            size, changed = size + n_bytes, max(changed, time)
    return size, changed


@dataclass(frozen=True, eq=False, repr=False)
class StreamPart:
    """Description of some columns of a stream that any process can open and read.

    Parts are made by `ColumnStream.split`. A part is small, can be pickled, and holds no values:
    it describes the files, the columns and the read options. Two parts of the same columns of the
    same files are equal.

    Attributes
    ----------
    n_columns
        Number of columns, None if unknown before reading (of text).
    n_bytes
        Approximate number of bytes that are read.
    where
        Description of the columns and the file.
    files
        State of the files: path, size in bytes, and time of the last change in nanoseconds.
    how
        Function that opens the columns.

    Examples
    --------
    >>> import pathlib, pickle, tempfile
    >>> import numpy as np
    >>> from streamsel.stream import iter_npy
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "x.npy")
    ...     np.save(path, np.arange(12.0).reshape(2, 6))
    ...     parts = iter_npy(path).split(3)
    ...     sent = pickle.loads(pickle.dumps(parts[1]))
    ...     for name, values in sent.open():
    ...         print(name, values)
    2 [2. 8.]
    3 [3. 9.]
    """

    n_columns: int | None
    n_bytes: int
    where: str
    files: tuple[Stamp, ...]
    how: Callable[[], ColumnStream]

    def open(self) -> ColumnStream:
        """Open the columns of this part, with their names in the whole stream.

        Returns
        -------
        A re-readable stream.

        Raises
        ------
        FileNotFoundError
            If a file no longer exists.
        ValueError
            If a file has changed since the stream was split.
        """
        for file in self.files:
            file.check()
        return self.how()

    def then(
        self, step: Callable[[ColumnStream], ColumnStream], n_columns: int | None
    ) -> StreamPart:
        """Return the part with a transformation that is applied when it is opened.

        Parameters
        ----------
        step
            Function from the opened stream to another one; it must be picklable.
        n_columns
            Number of columns of the resulting stream, None if unknown.
        """
        return replace(self, how=functools.partial(_then, self.how, step), n_columns=n_columns)

    @functools.cached_property
    def key(self) -> str:
        """Digest of the files, the columns and the read options."""
        text = f"{self.files!r} {_describe_call(self.how)}"
        return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()

    def __str__(self) -> str:
        return self.where

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.where}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StreamPart) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def check_parts(parts: int | None) -> None:
    """Raise ValueError if `parts` is not a valid number of parts."""
    params.check("split", {"parts": params.IntRule(1, optional=True)}, {"parts": parts})


def n_parts(n_bytes: int, parts: int | None) -> int:
    """Return the number of parts for `n_bytes` bytes; by default of about `PART_BYTES` each."""
    return max(1, round(n_bytes / PART_BYTES)) if parts is None else parts


def n_pieces(n_bytes: int) -> int:
    """Return the number of pieces of one of several files, if the number of parts is not given.

    Every process that reads a piece opens the file, which takes a fifth of the time to read a wide
    Parquet file: files of up to two parts are not cut.
    """
    return 1 if n_bytes <= 2 * PART_BYTES else n_parts(n_bytes, None)


def split_columns(
    path: str | os.PathLike[str],
    files: tuple[Stamp, ...],
    before: Sequence[int],
    how: Callable[[int, int], Callable[[], ColumnStream]],
    parts: int | None,
    start: int,
) -> list[StreamPart]:
    """Cut the columns of a file, from index `start` on, into parts of about equally many bytes.

    Parameters
    ----------
    path
        The file, as the user wrote its path.
    files
        States of the file, and of others that belong to it, when its columns were counted.
    before
        Cumulative number of bytes before each column; the last entry is the total.
    how
        Returns a function that opens the columns a, ..., b - 1, also in another process.
    parts
        Maximum number of parts; None for parts of about `PART_BYTES` each.
    start
        Index of the first column.
    """
    end = len(before) - 1
    start = min(start, end)
    first, n_bytes = before[start], before[end] - before[start]
    n_requested = min(n_parts(n_bytes, parts), end - start)
    edges = {start, end}
    edges |= {
        bisect_left(before, first + n_bytes * i // n_requested, start)
        for i in range(1, n_requested)
    }
    return [
        StreamPart(
            b - a,
            before[b] - before[a],
            f"{_describe_range('column', a, b)} of {os.fspath(path)}",
            files,
            how(a, b),
        )
        for a, b in pairwise(sorted(edges))
    ]


def _describe_range(unit: str, a: int, b: int) -> str:
    return f"{unit} {a:,}" if b - a == 1 else f"{unit}s {a:,} to {b - 1:,}"


def split_without(
    cut: Cut,
    names: Sequence[Hashable] | None,
    excluded: frozenset[Hashable],
    parts: int | None,
    start: int,
) -> list[StreamPart]:
    """Cut a stream into parts without the columns of some names.

    Parameters
    ----------
    cut
        Makes parts of all columns.
    names
        Names of all columns, None if unknown before reading.
    excluded
        Names of the columns to exclude.
    parts
        Maximum number of parts.
    start
        Index of the first column, among those that remain.
    """
    if names is None:
        if start:
            raise ValueError(
                "Expected skip before without, as the names of the stream are unknown before "
                "reading. Got: stream.without(names).skip(n).\n"
                "Hint: use stream.skip(n).without(names)."
            )
        step = methodcaller("without", sorted(excluded, key=repr))
        return [part.then(step, None) for part in cut(parts, 0)]
    dropped = [j for j, name in enumerate(names) if name in excluded]
    for j in dropped:
        start += j <= start
    result = []
    for part in cut(parts, start):
        n_columns = part.n_columns or 0
        inside = dropped[bisect_left(dropped, start) : bisect_left(dropped, start + n_columns)]
        start += n_columns
        if not inside:
            result.append(part)
        elif len(inside) < n_columns:
            step = methodcaller("without", [names[j] for j in inside])
            result.append(part.then(step, n_columns - len(inside)))
    return result


def cached_reader(kind: Callable[..., Any], path: str, *args: Any) -> Any:
    """Return `kind(path, *args)`, cached so that the parts read by a process open a file once."""
    return _kept_open(kind, Stamp.of(path), *args)


# A small cache, as the footer of a wide file takes gigabytes and the parts of a file are read
# consecutively.
@functools.lru_cache(maxsize=2)
def _kept_open(kind: Callable[..., Any], file: Stamp, *args: Any) -> Any:
    return kind(file.path, *args)


def _then(
    how: Callable[[], ColumnStream], step: Callable[[ColumnStream], ColumnStream]
) -> ColumnStream:
    return step(how())


def _describe_call(value: Any) -> str:
    """Return a text of a function and its arguments that is the same in every process."""
    if isinstance(value, StreamPart):
        return value.key
    if isinstance(value, tuple):
        return f"({', '.join(map(_describe_call, value))})"
    if isinstance(value, functools.partial):
        named = (f"{name}={_describe_call(item)}" for name, item in sorted(value.keywords.items()))
        args = ", ".join([*map(_describe_call, value.args), *named])
        return f"{_describe_call(value.func)}({args})"
    if hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return repr(value)


def _time(changed: int | str) -> str:
    from datetime import UTC, datetime

    if isinstance(changed, str):
        return f"version {changed}"
    return "changed " + datetime.fromtimestamp(changed / 1e9, UTC).isoformat(" ", "microseconds")
