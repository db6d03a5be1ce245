"""Files written whole or not at all: beside their destination, to the disk, then moved over it."""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import re
import secrets
import stat
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["try_writing", "whole_file"]

# How much of a name a temporary one repeats: no file system takes so little.
_KEPT = 100
# How old a temporary file must be where nothing else tells whether its writer lives.
_OLD = 24 * 3600.0
_HERE = hashlib.sha256(platform.node().encode()).hexdigest()[:6]


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give the path of an empty file to write to, which takes the place of `path` at the end.

    Whoever reads `path` sees the old file or the new one, whole, even after a power failure: the
    file and its directory are on the disk when this returns. On any error the old file stands.

    Parameters
    ----------
    path
        The file to write. A link stays a link: the file that it points to is the one replaced, and
        that one's permissions are kept.

    Raises
    ------
    OSError
        Before anything is written where nothing could be, as after `try_writing`; or when the disk
        is full, for instance.

    Notes
    -----
    What runs that were killed have left beside `path` is removed. A temporary file is known by its
    name, and its writer holds a lock on it; where that cannot be seen, on a network's drive written
    by another machine for instance, a file of the last 24 hours stays.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     with whole_file(f"{directory}/found.txt") as beside:
    ...         _ = beside.write_text("all of it")
    ...     Path(directory, "found.txt").read_text()
    'all of it'
    """
    target = _target(path)
    _remove_left_over(target)
    with _beside(target) as beside:
        yield beside
        with beside.open("rb+") as file:
            os.fsync(file.fileno())
        _like(beside, target)
        beside.replace(target)
        _to_disk(target.parent)


def try_writing(path: str | os.PathLike[str]) -> None:
    """Find out now whether `whole_file` could write here: trying is the only way to know.

    Raises
    ------
    OSError
        Where it could not: no directory, a read-only one, a name that is too long, or something
        that is no file in its place.
    """
    with _beside(_target(path)):
        pass


def _target(path: str | os.PathLike[str]) -> Path:
    """Return the file that is to be replaced, which is a regular one or not there yet."""
    target = Path(os.path.realpath(path))
    mode = _mode(target)
    if mode is not None and stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if mode is not None and not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "Not a regular file", os.fspath(path))
    return target


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """Give a new file beside a target, locked as long as it is written, and gone at the end."""
    beside, lock = _new(target)
    try:
        yield beside
    finally:
        beside.unlink(missing_ok=True)
        if lock is not None:
            os.close(lock)


def _new(target: Path) -> tuple[Path, int | None]:
    # What replaces a private file must not be readable by others while it is written.
    mode = 0o666 if _mode(target) is None else 0o600
    while True:
        beside = target.with_name(f".{_kept(target)}.{_HERE}-{secrets.token_hex(4)}.tmp")
        lock = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
        if sys.platform == "win32":  # where an open file cannot be moved
            os.close(lock)
            return beside, None
        with suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Another process may have taken it for one left over before it was locked.
        if os.fstat(lock).st_nlink:
            return beside, lock
        os.close(lock)


def _kept(target: Path) -> str:
    """Return as much of a file's name as a temporary one repeats."""
    name = target.name[:_KEPT]
    while len(os.fsencode(name)) > _KEPT:
        name = name[:-1]
    return name


def _remove_left_over(target: Path) -> None:
    """Remove the temporary files of runs that were killed while they wrote to this target."""
    ours = re.compile(rf"\.{re.escape(_kept(target))}\.([0-9a-f]{{6}})-[0-9a-f]{{8}}\.tmp")
    with suppress(OSError), os.scandir(target.parent) as entries:
        for entry in entries:
            found = ours.fullmatch(entry.name)
            if found and entry.is_file(follow_symlinks=False):
                with suppress(OSError):  # somebody else's, or already gone
                    _remove_if_left_over(entry.path, here=found[1] == _HERE)


def _remove_if_left_over(path: str, *, here: bool) -> None:
    if sys.platform != "win32":
        file = os.open(path, os.O_RDWR)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if here or _is_old(path):
                Path(path).unlink()
        finally:
            os.close(file)
    elif _is_old(path):
        Path(path).unlink()


def _is_old(path: str) -> bool:
    return time.time() - Path(path).stat().st_mtime > _OLD


def _like(beside: Path, target: Path) -> None:
    """Give a file the owner and the permissions of the one that it is to replace."""
    with suppress(FileNotFoundError):
        before = target.stat()
        if sys.platform != "win32":
            with suppress(PermissionError):
                os.chown(beside, before.st_uid, before.st_gid)
        beside.chmod(stat.S_IMODE(before.st_mode))


def _to_disk(directory: Path) -> None:
    """Let a directory's entries survive a power failure, where the system knows how."""
    with suppress(OSError):
        opened = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
