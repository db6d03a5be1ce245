"""Optional import of pyarrow, and its errors."""

from __future__ import annotations

import functools
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from streamsel.memory import out_of_memory

if TYPE_CHECKING:
    from collections.abc import Iterator


@functools.cache
def pyarrow() -> Any:
    """Import pyarrow with its file formats; raise ImportError with a hint if it is missing."""
    try:
        import pyarrow as pa
        import pyarrow.ipc
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        raise ImportError(
            'Parquet and Arrow files need pyarrow. Hint: pip install "streamsel[io]".'
        ) from error
    return pa


@contextmanager
def reading(kind: str, path: str | os.PathLike[str]) -> Iterator[None]:
    """Convert errors of Arrow to a ValueError with the path; system errors pass unchanged."""
    pa = pyarrow()
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        if (lack := out_of_memory(path, error)) is not None:
            raise lack from error
        if getattr(error, "errno", None) is not None:
            raise
        raise not_a_file(kind, path, error) from error


def not_a_file(kind: str, path: str | os.PathLike[str], reason: object) -> ValueError:
    """Return the error for a damaged file, or one of another format."""
    got = f"{os.fspath(path)!r} ({reason})"
    return ValueError(f"Expected a complete {kind} file. Got: {got}.")
