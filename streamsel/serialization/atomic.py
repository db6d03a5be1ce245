"""Atomic file replacement: write a temporary file next to the target, sync it, then rename it.

`os.replace` alone neither syncs nor keeps links, owner and permissions, and a killed run leaves its
temporary file for ever. The library atomicwrites, unmaintained since 2022, syncs, but has none of
the other properties.
"""

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

if TYPE_CHECKING:
    from collections.abc import Iterator

if sys.platform != "win32":
    import fcntl


__all__ = ["atomic_write", "ensure_writable"]

# Length of the prefix of the target's name in a temporary name: every file system permits more.
_PREFIX_LENGTH = 100
# Age in seconds at which a temporary file is stale where its lock does not show it.
_STALE_AFTER_SECONDS = 24 * 3600.0
_HOST_ID = hashlib.sha256(platform.node().encode()).hexdigest()[:6]


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the path of an empty temporary file that replaces `path` when the block ends.

    A reader of `path` sees either the old or the new file, complete, even after a power failure:
    the file and its directory are synced to the disk before this returns. On any error the old file
    stays.

    Parameters
    ----------
    path
        The file to write. A symbolic link is kept: the file that it points to is replaced, and its
        permissions are kept.

    Raises
    ------
    OSError
        Before anything is written if `ensure_writable` would raise; later if the disk is full, for
        example.

    Notes
    -----
    Temporary files of killed runs next to `path` are removed. They are recognised by
    their name, and a running writer holds a lock on its own; where locks are not visible, for
    example on a network drive written by another machine, a file younger than 24 hours is kept.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     with atomic_write(f"{directory}/found.txt") as beside:
    ...         _ = beside.write_text("all of it")
    ...     Path(directory, "found.txt").read_text()
    'all of it'
    """
    target = _target(path)
    _remove_stale_files(target)
    with _temporary_file(target) as temporary:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        _copy_permissions(temporary, target)
        temporary.replace(target)
        _sync_directory(target.parent)


def ensure_writable(path: str | os.PathLike[str]) -> None:
    """Check, by creating a temporary file, that `atomic_write` can write to this path.

    Raises
    ------
    OSError
        If it cannot: the directory is missing or read-only, the name is too long, or the path is
        not a regular file.
    """
    with _temporary_file(_target(path)):
        pass


def _target(path: str | os.PathLike[str]) -> Path:
    """Return the file to replace, which is a regular file or does not exist yet."""
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
def _temporary_file(target: Path) -> Iterator[Path]:
    """Yield a new file next to the target, locked while it is written and removed at the end."""
    temporary, lock = _create_locked(target)
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
        if lock is not None:
            os.close(lock)


def _create_locked(target: Path) -> tuple[Path, int | None]:
    # The replacement of a private file must not be readable by others while it is written.
    mode = 0o666 if _mode(target) is None else 0o600
    while True:
        temporary = target.with_name(
            f".{_name_prefix(target)}.{_HOST_ID}-{secrets.token_hex(4)}.tmp"
        )
        try:
            lock = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
        except FileNotFoundError:
            raise FileNotFoundError(
                errno.ENOENT, "No such directory", os.fspath(target.parent)
            ) from None
        if sys.platform == "win32":  # an open file cannot be moved there
            os.close(lock)
            return temporary, None
        with suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Another process may have removed it as stale before it was locked.
        if os.fstat(lock).st_nlink:
            return temporary, lock
        os.close(lock)


def _name_prefix(target: Path) -> str:
    """Return the prefix of the target's name that temporary names begin with."""
    name = target.name[:_PREFIX_LENGTH]
    while len(os.fsencode(name)) > _PREFIX_LENGTH:
        name = name[:-1]
    return name


def _remove_stale_files(target: Path) -> None:
    """Remove temporary files of this target that killed runs have left."""
    ours = re.compile(rf"\.{re.escape(_name_prefix(target))}\.([0-9a-f]{{6}})-[0-9a-f]{{8}}\.tmp")
    with suppress(OSError), os.scandir(target.parent) as entries:
        for entry in entries:
            found = ours.fullmatch(entry.name)
            if found and entry.is_file(follow_symlinks=False):
                with suppress(OSError):  # locked by its writer, or removed already
                    _remove_if_stale(entry.path, here=found[1] == _HOST_ID)


def _remove_if_stale(path: str, *, here: bool) -> None:
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
    return time.time() - Path(path).stat().st_mtime > _STALE_AFTER_SECONDS


def _copy_permissions(temporary: Path, target: Path) -> None:
    """Copy owner and permissions of the target to its replacement."""
    with suppress(FileNotFoundError):
        before = target.stat()
        if sys.platform != "win32":
            with suppress(PermissionError):
                os.chown(temporary, before.st_uid, before.st_gid)
        temporary.chmod(stat.S_IMODE(before.st_mode))


def _sync_directory(directory: Path) -> None:
    """Sync a directory's entries to the disk, where the system supports it."""
    with suppress(OSError):
        opened = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
