"""What went wrong on other machines, and which columns it was about."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any


class PartError(ValueError):
    """A part of the columns, or of the rows, could not be learnt; the message says which."""


@contextmanager
def naming(part: Any) -> Iterator[None]:
    """Say of which part an error is."""
    try:
        yield
    except Exception as error:
        plain = isinstance(error, OSError | TypeError | ValueError) and str(error)
        what = str(error) if plain else f"{type(error).__name__}: {error}"
        raise PartError(f"{part}: {what}") from error


def explained(error: Exception, parts: Mapping[Any, Any], address: str) -> Exception:
    """Return the error to raise for one that came from the engine.

    Parameters
    ----------
    error
        What waiting for a result has raised.
    parts
        What the tasks in flight read, by key.
    address
        Where the scheduler is, or was.
    """
    from distributed import KilledWorker

    if isinstance(error, KilledWorker):
        part = parts.get(error.task)
        doing = "put results together" if part is None else f"read {part}"
        return PartError(
            f"Expected workers that outlive their work. Got: {error.allowed_failures + 1} that "
            f"died while they {doing}.\n"
            "Hint: a damaged file, or a part too large for a worker's memory; parts=N makes more "
            "and smaller ones."
        )
    if isinstance(error, CancelledError | asyncio.CancelledError | OSError):
        return gone(address, error)
    return error


def gone(address: str, error: BaseException) -> ConnectionError:
    """Return the error for a scheduler that does not answer any more."""
    why = " ".join(str(error).split()) or type(error).__name__
    return ConnectionError(
        f"Expected the scheduler at {address} to keep its tasks. Got: none of them any more "
        f"({why[:200]}).\n"
        "Hint: what was put together before is in the model; learn the parts behind it."
    )


def unreachable(address: str, error: BaseException) -> ConnectionError:
    """Return the error for a scheduler that does not answer."""
    why = " ".join(str(error).split()) or "nothing that speaks as one"
    return ConnectionError(
        f"Expected a Dask scheduler at {address}. Got: {why[:200]}.\n"
        "Hint: `dask scheduler` starts one, and says its address."
    )
