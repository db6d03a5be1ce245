"""What ends learning though the input is good: another thread, and numbers beyond float64."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

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


class Turn:
    """Whose turn it is to let a model learn: one thread at a time. That of a copy is its own."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.end = self._lock.release

    def __reduce__(self) -> tuple[type[Turn], tuple[()]]:
        # River copies all attributes of a transformer, and nothing can copy a lock.
        return Turn, ()

    def begin(self) -> None:
        """Refuse a second thread, which would find a state that is changed halfway."""
        if not self._lock.acquire(blocking=False):
            raise RuntimeError(
                "Expected one thread at a time to let a model learn. Got: two.\n"
                "Hint: hold a lock around the calls; or let each thread learn a model of its own, "
                "and put them together by merge."
            )


@contextmanager
def one_thread(turn: Turn) -> Iterator[None]:
    """Let one thread learn at a time."""
    turn.begin()
    try:
        yield
    finally:
        turn.end()


def alone(turn: Turn, learn: Callable[[Any, Any, Any], None], x: Any, y: Any, w: Any) -> None:
    """Learn what a row or many rows say, by one thread: both of the above, without their time."""
    turn.begin()
    try:
        learn(x, y, w)
    except _BEYOND as error:
        raise _beyond(error) from error
    finally:
        turn.end()
