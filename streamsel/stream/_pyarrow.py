"""pyarrow, where it is installed."""

from __future__ import annotations

import functools
import os
from typing import Any


@functools.cache
def pyarrow() -> Any:
    """Return pyarrow, with its files; say how to install it where it is absent."""
    try:
        import pyarrow as pa
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            'Parquet and Arrow files need pyarrow. Hint: pip install "streamsel[io]".'
        ) from error
    return pa


def not_a_file(kind: str, path: str | os.PathLike[str], reason: object) -> ValueError:
    """Return the error for a file of another kind."""
    return ValueError(f"Expected a file of kind {kind}, got: {os.fspath(path)!r} ({reason}).")
