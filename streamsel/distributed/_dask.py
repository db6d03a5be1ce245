"""Dask, where it is installed."""

from __future__ import annotations

from typing import Any


def distributed() -> Any:
    """Return dask.distributed; say how to install it where it is absent."""
    try:
        import distributed
    except ImportError as error:
        raise ImportError(
            'Work on many machines needs Dask. Hint: pip install "streamsel[dask]".'
        ) from error
    return distributed
