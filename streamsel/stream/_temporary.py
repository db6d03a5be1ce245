"""Temporary files of what can only be had by reading a whole file."""

from __future__ import annotations

import os
import tempfile
import weakref
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def temporary_file(owner: object, path: str | os.PathLike[str], size: str) -> IO[bytes]:
    """Open a temporary file that goes when its owner does.

    Parameters
    ----------
    owner
        Who reads it.
    path
        The file whose columns it will hold.
    size
        How much room it takes, for the error.
    """
    # Nameless where the system allows: it goes with the last reference, whatever happens.
    with room_for(path, size):
        file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  the finalizer closes it
    weakref.finalize(owner, _close, file)
    return file


@contextmanager
def room_for(path: str | os.PathLike[str], size: str) -> Iterator[None]:
    """Say what to do where the temporary file of the columns of a file cannot be written."""
    try:
        yield
    except OSError as error:
        raise OSError(
            error.errno,
            f"Expected room for a temporary file with the columns of {os.fspath(path)!r}, "
            f"got: {error.strerror}. Hint: set TMPDIR to a directory with room for {size}.",
        ) from error


def _close(file: IO[bytes]) -> None:
    # What did not fit into the file then does not now.
    with suppress(OSError):
        file.close()
