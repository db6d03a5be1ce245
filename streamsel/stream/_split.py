"""Parts of a stream: small descriptions, which another process opens and reads."""

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

    from streamsel.stream._base import ColumnStream

    Cut = Callable[[int | None, int], list["Part"]]

# Of what is read. The same on every machine: what is learnt by parts may depend on where they end.
PART_BYTES = 128 * 10**6


class Stamp(NamedTuple):
    """By what a file is known again, or all files of a folder."""

    path: str
    size: int
    changed: int | str

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Stamp:
        """Look at a file as it is now."""
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
        """Raise ValueError if it is another file by now."""
        now = Stamp.of(self.path)
        if now != self:
            raise ValueError(
                f"Expected {self.path!r} as it was when it was split ({self.size:,} bytes, "
                f"{_time(self.changed)}). Got: {now.size:,} bytes, {_time(now.changed)}.\n"
                "Hint: open it again, and split that."
            )


def _size_and_time(folder: str) -> tuple[int, int]:
    """Return how many bytes the files of a folder have, and when one of them last changed."""
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
class Part:
    """Some columns of a stream, described so that any process can open and read them.

    `ColumnStream.split` makes them. A part is small, can be pickled, and holds no values: it says
    which files there are, which columns of them, and how they are read. Two parts of the same
    columns of the same files are equal.

    Attributes
    ----------
    n_columns
        How many columns it has, None where that is not known before they are read (of text).
    n_bytes
        About how many bytes are read.
    where
        Which columns of which file.
    files
        The files as they were: path, size in bytes, and time of the last change in nanoseconds.
    how
        What opens the columns.

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
        """Open the columns of this part, under the names that they have in the whole.

        Returns
        -------
        A stream that can be read again.

        Raises
        ------
        FileNotFoundError
            If a file is no longer there.
        ValueError
            If a file has changed since the stream was split.
        """
        for file in self.files:
            file.check()
        return self.how()

    def then(self, step: Callable[[ColumnStream], ColumnStream], n_columns: int | None) -> Part:
        """Return the same part, with a step that is done when it is opened.

        Parameters
        ----------
        step
            Takes the stream that was opened and returns another; it can be pickled.
        n_columns
            How many columns that one has, None where it is not known.
        """
        return replace(self, how=functools.partial(_then, self.how, step), n_columns=n_columns)

    @functools.cached_property
    def key(self) -> str:
        """A digest of what it is: of the files, of which columns, and of how they are read."""
        told = f"{self.files!r} {_told(self.how)}"
        return hashlib.sha256(told.encode(errors="surrogatepass")).hexdigest()

    def __str__(self) -> str:
        return self.where

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.where}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Part) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def check_parts(parts: int | None) -> None:
    """Raise ValueError if this is no number of parts."""
    params.check("split", {"parts": params.Whole(1, optional=True)}, {"parts": parts})


def n_parts(n_bytes: int, parts: int | None) -> int:
    """Return into how many parts so many bytes are cut."""
    return max(1, round(n_bytes / PART_BYTES)) if parts is None else parts


def parts_of_columns(
    path: str | os.PathLike[str],
    file: Stamp,
    before: Sequence[int],
    how: Callable[[int, int], Callable[[], ColumnStream]],
    parts: int | None,
    start: int,
) -> list[Part]:
    """Cut the columns of a file from the start-th on into parts of about as many bytes.

    Parameters
    ----------
    path
        The file, as the user calls it.
    file
        As it was when its columns were counted.
    before
        How many bytes all columns before each column have, and, last, all of them.
    how
        Returns what opens the columns a, ..., b - 1, in another process too.
    parts
        How many parts there are to be, at most; None for some of a size that is the same always.
    start
        The first column that is wanted.
    """
    end = len(before) - 1
    start = min(start, end)
    first, n_bytes = before[start], before[end] - before[start]
    wanted = min(n_parts(n_bytes, parts), end - start)
    edges = {start, end}
    edges |= {bisect_left(before, first + n_bytes * i // wanted, start) for i in range(1, wanted)}
    return [
        Part(
            b - a,
            before[b] - before[a],
            f"{_places('column', a, b)} of {os.fspath(path)}",
            (file,),
            how(a, b),
        )
        for a, b in pairwise(sorted(edges))
    ]


def _places(what: str, a: int, b: int) -> str:
    """Say that the columns or bytes a, ..., b - 1 are meant."""
    return f"{what} {a:,}" if b - a == 1 else f"{what}s {a:,} to {b - 1:,}"


def together(pieces: Sequence[Part], parts: int) -> list[Part]:
    """Put neighbouring pieces together, so that they are so many parts of about as many bytes."""
    n_bytes = max(1, sum(piece.n_bytes for piece in pieces))
    groups: dict[int, list[Part]] = {}
    before = 0
    for piece in pieces:
        middle = before + piece.n_bytes // 2
        groups.setdefault(min(middle * parts // n_bytes, parts - 1), []).append(piece)
        before += piece.n_bytes
    return [_join(group) for group in groups.values()]


def _join(pieces: Sequence[Part]) -> Part:
    if len(pieces) == 1:
        return pieces[0]
    counts = [piece.n_columns for piece in pieces if piece.n_columns is not None]
    return Part(
        sum(counts) if len(counts) == len(pieces) else None,
        sum(piece.n_bytes for piece in pieces),
        f"{pieces[0].where}, to {pieces[-1].where}",
        tuple(dict.fromkeys(file for piece in pieces for file in piece.files)),
        functools.partial(_open_all, tuple(pieces)),
    )


def _open_all(pieces: Sequence[Part]) -> ColumnStream:
    from streamsel.stream._base import ColumnStream

    return ColumnStream(
        lambda: (block for piece in pieces for block in piece.open().blocks()),
        n_rows=pieces[0].open().n_rows,
    )


def cut_without(
    cut: Cut,
    names: Sequence[Hashable] | None,
    left_out: frozenset[Hashable],
    parts: int | None,
    start: int,
) -> list[Part]:
    """Cut a stream into parts without the columns of some names.

    Parameters
    ----------
    cut
        Makes parts of all columns.
    names
        Of all columns, None where they are not known before reading.
    left_out
        Names of those that are not wanted.
    parts
        How many parts there are to be, at most.
    start
        The first column that is wanted, of those that are left.
    """
    if names is None:
        if start:
            raise ValueError(
                "Expected a stream that skips columns before it leaves some out, for its names are "
                "not known before reading. Got: stream.without(names).skip(n).\n"
                "Hint: stream.skip(n).without(names)."
            )
        step = methodcaller("without", sorted(left_out, key=repr))
        return [part.then(step, None) for part in cut(parts, 0)]
    gone = [place for place, name in enumerate(names) if name in left_out]
    for place in gone:
        start += place <= start
    result = []
    for part in cut(parts, start):
        n_columns = part.n_columns or 0
        inside = gone[bisect_left(gone, start) : bisect_left(gone, start + n_columns)]
        start += n_columns
        if not inside:
            result.append(part)
        elif len(inside) < n_columns:
            step = methodcaller("without", [names[place] for place in inside])
            result.append(part.then(step, n_columns - len(inside)))
    return result


def kept_open(kind: Callable[..., Any], path: str, *args: Any) -> Any:
    """Return what a kind of file makes of this one, made once for all its parts read here."""
    return _kept_open(kind, Stamp.of(path), *args)


# Few: the footer of a wide file takes gigabytes. The parts of a file come one after the other.
@functools.lru_cache(maxsize=2)
def _kept_open(kind: Callable[..., Any], file: Stamp, *args: Any) -> Any:
    return kind(file.path, *args)


def _then(
    how: Callable[[], ColumnStream], step: Callable[[ColumnStream], ColumnStream]
) -> ColumnStream:
    return step(how())


def _told(value: Any) -> str:
    """Say what is called, with what: the same in every process."""
    if isinstance(value, Part):
        return value.key
    if isinstance(value, tuple):
        return f"({', '.join(map(_told, value))})"
    if isinstance(value, functools.partial):
        named = (f"{name}={_told(item)}" for name, item in sorted(value.keywords.items()))
        return f"{_told(value.func)}({', '.join([*map(_told, value.args), *named])})"
    if hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return repr(value)


def _time(changed: int | str) -> str:
    from datetime import UTC, datetime

    if isinstance(changed, str):
        return f"version {changed}"
    return "changed " + datetime.fromtimestamp(changed / 1e9, UTC).isoformat(" ", "microseconds")
