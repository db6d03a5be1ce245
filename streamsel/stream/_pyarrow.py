"""pyarrow, where it is installed."""

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
    """Return pyarrow, with its files; say how to install it where it is absent."""
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
    """Name the file in what Arrow says of it; what the system says passes."""
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
    """Return the error for a file of another kind, or one that is damaged."""
    return ValueError(f"Expected a whole file of kind {kind}, got: {os.fspath(path)!r} ({reason}).")
