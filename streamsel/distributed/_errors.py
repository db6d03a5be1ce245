"""Errors of remote tasks, with the columns or rows that caused them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any


class PartError(ValueError):
    """A part of the columns or rows could not be learnt; the message names it."""


@contextmanager
def name_part(part: Any) -> Iterator[None]:
    """Turn an error into a PartError that names the part."""
    try:
        yield
    except Exception as error:
        plain = isinstance(error, OSError | TypeError | ValueError) and str(error)
        reason = str(error) if plain else f"{type(error).__name__}: {error}"
        raise PartError(f"{part}: {reason}") from error


def explain_error(error: Exception, parts: Mapping[Any, Any], address: str) -> Exception:
    """Return the error to raise for one that Dask raised.

    Parameters
    ----------
    error
        The error raised while waiting for a result.
    parts
        The parts that the pending tasks read, by key.
    address
        The address of the scheduler.
    """
    from distributed import KilledWorker

    if isinstance(error, KilledWorker):
        part = parts.get(error.task)
        activity = "merged results" if part is None else f"read {part}"
        return PartError(
            f"Expected workers to finish their tasks. Got: {error.allowed_failures + 1} that "
            f"died while they {activity}.\n"
            "Hint: a file is damaged, or a part is too large for a worker's memory; parts=N makes "
            "more and smaller parts."
        )
    if isinstance(error, CancelledError | asyncio.CancelledError | OSError):
        return scheduler_lost_error(address, error)
    return error


def scheduler_lost_error(address: str, error: BaseException) -> ConnectionError:
    """Return the error for a scheduler that no longer answers."""
    reason = " ".join(str(error).split()) or type(error).__name__
    return ConnectionError(
        f"Expected the scheduler at {address} to keep its tasks. Got: lost tasks "
        f"({reason[:200]}).\n"
        "Hint: parts merged before are in the model; continue with the parts after them."
    )


def scheduler_unreachable_error(address: str, error: BaseException) -> ConnectionError:
    """Return the error for a scheduler that does not answer."""
    reason = " ".join(str(error).split()) or "no answer"
    return ConnectionError(
        f"Expected a Dask scheduler at {address}. Got: {reason[:200]}.\n"
        "Hint: `dask scheduler` starts one and prints its address."
    )
