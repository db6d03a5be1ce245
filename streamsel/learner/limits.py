"""What ends learning though the input is good: another thread, and numbers beyond float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from threading import RLock

# What NumPy, SciPy and Python raise where a square, or a quotient of squares, is beyond float64.
_BEYOND = (np.linalg.LinAlgError, ArithmeticError)


def _beyond(error: Exception) -> ValueError:
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
    except _BEYOND as error:
        raise _beyond(error) from error


@contextmanager
def one_thread(lock: RLock) -> Iterator[None]:
    """Refuse a second thread, which would find a state that is changed halfway."""
    _take(lock)
    try:
        yield
    finally:
        lock.release()


def alone(lock: RLock, learn: Callable[[Any, Any], None], x: Any, y: Any) -> None:
    """Learn what a row or many rows say, by one thread: both of the above, without their time."""
    _take(lock)
    try:
        learn(x, y)
    except _BEYOND as error:
        raise _beyond(error) from error
    finally:
        lock.release()


def _take(lock: RLock) -> None:
    if not lock.acquire(blocking=False):
        raise RuntimeError(
            "Expected one thread at a time to let a model learn. Got: two.\n"
            "Hint: hold a lock around the calls; or let each thread learn a model of its own, and "
            "put them together by merge."
        )
