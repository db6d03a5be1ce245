"""Optional imports of scikit-learn, Matplotlib and pyarrow, and their errors."""

from __future__ import annotations

import functools
import os
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from streamsel._utils.system import out_of_memory

if TYPE_CHECKING:
    from collections.abc import Iterator


def import_sklearn(module: str, what_for: str) -> Any:
    """Return a module of scikit-learn.

    Raises
    ------
    ImportError
        If it is not installed.
    """
    try:
        return import_module(f"sklearn.{module}")
    except ImportError as error:
        raise ImportError(
            f'{what_for} need scikit-learn. Hint: pip install "streamsel[evaluate]".'
        ) from error


def import_matplotlib(module: str = "") -> Any:
    """Return matplotlib, or a module of it.

    Raises
    ------
    ImportError
        If it is not installed.
    """
    try:
        return import_module(f"matplotlib.{module}".rstrip("."))
    except ImportError as error:
        raise missing_matplotlib_error() from error


def missing_matplotlib_error() -> ImportError:
    """Return the error if Matplotlib is not installed."""
    return ImportError(
        "Expected matplotlib, which plots need. Got: none.\nHint: pip install 'streamsel[plot]'."
    )


@functools.cache
def import_pyarrow() -> Any:
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
def arrow_errors(kind: str, path: str | os.PathLike[str]) -> Iterator[None]:
    """Convert errors of Arrow to a ValueError with the path; system errors pass unchanged."""
    pa = import_pyarrow()
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        if (lack := out_of_memory(path, error)) is not None:
            raise lack from error
        if getattr(error, "errno", None) is not None:
            raise
        raise damaged_file_error(kind, path, error) from error


def damaged_file_error(kind: str, path: str | os.PathLike[str], reason: object) -> ValueError:
    """Return the error for a damaged file, or one of another format."""
    got = f"{os.fspath(path)!r} ({reason})"
    return ValueError(f"Expected a complete {kind} file. Got: {got}.")
