"""Outputs that one run writes at a time: a lock beside each, and an error for a second run."""

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

# How much of a name that of its lock repeats.
_KEPT = 60


@contextmanager
def reserved(outputs: Mapping[str, str | None]) -> Iterator[None]:
    """Let no other run write the same files meanwhile.

    The lock is advisory, and ends with the process, however that ends. Where the file system has no
    locks, and on Windows, nothing is locked.

    Parameters
    ----------
    outputs
        Paths by option; None where there is none.

    Raises
    ------
    CommandError
        For a file that another run writes; it names that run.
    """
    with ExitStack() as stack:
        for option, path in outputs.items():
            if path is not None and sys.platform != "win32":
                stack.enter_context(_locked(option, path))
        yield


def lock_of(path: str) -> Path:
    """Return the file that is locked while a path is written."""
    target = Path(os.path.realpath(path))
    name = target.name
    if len(os.fsencode(name)) > _KEPT:
        name = hashlib.sha256(os.fsencode(name)).hexdigest()[:_KEPT]
    return target.with_name(f".lock-{name}")


@contextmanager
def _locked(option: str, path: str) -> Iterator[None]:
    lock = lock_of(path)
    opened = _open_locked(lock, f"{option} {path}")
    try:
        if opened is not None:
            with suppress(OSError):
                os.truncate(opened, 0)
                os.write(opened, _this_run().encode())
        yield
    finally:
        if opened is not None:
            # Before it is unlocked, as then it may be the file of another run.
            lock.unlink(missing_ok=True)
            os.close(opened)


def _open_locked(lock: Path, what: str) -> int | None:
    """Return a lock file that is locked; None where that cannot be."""
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
                f"{what}: another run is writing this file{other and f' ({other})'}. "
                "Hint: wait for its end, or name another file"
            ) from None
        except OSError:  # a file system without locks
            os.close(opened)
            lock.unlink(missing_ok=True)
            return None
        # The run that had it may have removed it in between, and another made it again.
        with suppress(OSError):
            if os.path.samestat(os.fstat(opened), lock.stat()):
                return opened
        os.close(opened)


def _this_run() -> str:
    return f"process {os.getpid()} on {platform.node()}, since {utc(time.time())}"
