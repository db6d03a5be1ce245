"""Locks that prevent two runs from writing the same output at the same time."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from streamsel.cli._errors import CommandError
from streamsel.cli._unchanged import utc

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Longest file name, in bytes, that is part of the lock's name; longer ones are hashed.
_MAX_NAME_BYTES = 60


@contextmanager
def reserved(outputs: Mapping[str, str | None]) -> Iterator[None]:
    """Prevent other runs from writing the same files.

    The locks are advisory and end with the process, however it ends. On Windows, and on file
    systems without locks, nothing is locked.

    Parameters
    ----------
    outputs
        Paths by option; None if not given.

    Raises
    ------
    CommandError
        For a file that another run is writing, with that run.
    """
    with ExitStack() as stack:
        for option, path in outputs.items():
            if path is not None and sys.platform != "win32":
                stack.enter_context(_locked(option, path))
        yield


def lock_of(path: str) -> Path:
    """Return the lock file of a path."""
    target = Path(os.path.realpath(path))
    name = target.name
    if len(os.fsencode(name)) > _MAX_NAME_BYTES:
        name = hashlib.sha256(os.fsencode(name)).hexdigest()[:_MAX_NAME_BYTES]
    return target.with_name(f".lock-{name}")


@contextmanager
def _locked(option: str, path: str) -> Iterator[None]:
    lock = lock_of(path)
    opened = _open_locked(lock, f"{option} {path}")
    try:
        if opened is not None:
            with suppress(OSError):
                os.truncate(opened, 0)
                os.write(opened, _run_description().encode())
        yield
    finally:
        if opened is not None:
            # Removed before unlocking, as it may then belong to another run.
            lock.unlink(missing_ok=True)
            os.close(opened)


def _open_locked(lock: Path, what: str) -> int | None:
    """Open and lock a lock file; None if that is not possible."""
    while True:
        try:
            opened = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError:
            return None
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            other = os.read(opened, 1000).decode(errors="replace").strip()
            os.close(opened)
            raise CommandError(
                f"{what}: another run is writing this file{other and f' ({other})'}. Hint: "
                "wait for it to end, or use another file"
            ) from None
        except OSError:  # a file system without locks
            os.close(opened)
            lock.unlink(missing_ok=True)
            return None
        # Meanwhile its owner may have removed it and another run created it again.
        with suppress(OSError):
            if os.path.samestat(os.fstat(opened), lock.stat()):
                return opened
        os.close(opened)


def _run_description() -> str:
    return f"process {os.getpid()} on {platform.node()}, since {utc(time.time())}"
