"""Temporary files with the transposed columns of a file."""

from __future__ import annotations

import os
import tempfile
import weakref
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def temporary_file(owner: object, path: str | os.PathLike[str], size: str) -> IO[bytes]:
    """Open a temporary file that is deleted together with its owner.

    Parameters
    ----------
    owner
        The object that reads it.
    path
        The file whose columns it will hold.
    size
        Description of the space it takes, for the error message.
    """
    # Unnamed if the system supports it: then it is deleted even if the process is killed.
    with room_for(path, size):
        file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  the finalizer closes it
    weakref.finalize(owner, _close, file)
    return file


@contextmanager
def room_for(path: str | os.PathLike[str], size: str) -> Iterator[None]:
    """Add a hint to the OSError if the temporary file for the columns of a file is not writable."""
    try:
        yield
    except OSError as error:
        raise OSError(
            error.errno,
            f"Expected room for a temporary file with the columns of {os.fspath(path)!r}. "
            f"Got: {error.strerror}.\nHint: set TMPDIR to a directory with room for {size}.",
        ) from error


def _close(file: IO[bytes]) -> None:
    # Closing flushes data that did not fit.
    with suppress(OSError):
        file.close()
