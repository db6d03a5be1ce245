"""What ends learning though the input is good: another thread, and numbers beyond float64."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from threading import RLock

# What NumPy, SciPy and Python raise where a square, or a quotient of squares, is beyond float64.
BEYOND = (np.linalg.LinAlgError, ArithmeticError)


def beyond(error: Exception) -> ValueError:
    """Return the error for numbers that a method cannot go on with."""
    return ValueError(
        "Expected variables whose products with one another float64 can tell apart. Got: others "
        f"({error}).\n"
        "Hint: give the variables scales that are nearer to one another, and to 1."
    )


@contextmanager
def told_if_beyond() -> Iterator[None]:
    """Say of numbers beyond float64 what they are."""
    try:
        yield
    except BEYOND as error:
        raise beyond(error) from error


@contextmanager
def one_thread(lock: RLock) -> Iterator[None]:
    """Refuse a second thread, which would find a state that is changed halfway."""
    if not lock.acquire(blocking=False):
        raise two_threads()
    try:
        yield
    finally:
        lock.release()


def two_threads() -> RuntimeError:
    """Return the error for a model that two threads let learn at once."""
    return RuntimeError(
        "Expected one thread at a time to let a model learn. Got: two.\n"
        "Hint: hold a lock around the calls; or let each thread learn a model of its own, and put "
        "them together by merge."
    )
