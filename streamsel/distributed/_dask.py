"""Import of Dask."""

from __future__ import annotations

from typing import Any


def distributed() -> Any:
    """Return dask.distributed; if it is absent, the ImportError says how to install it."""
    try:
        import distributed
    except ImportError as error:
        raise ImportError(
            'Distributed learning needs Dask. Hint: pip install "streamsel[dask]".'
        ) from error
    return distributed
