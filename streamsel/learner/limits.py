"""Guard the state of a model against concurrent use, overflow and interrupts.

Three events can end learning although the input is valid: another thread, values beyond float64,
and an exception at any line, such as the KeyboardInterrupt of Ctrl-C. This module prevents them
from leaving the model in an inconsistent state.
"""

from __future__ import annotations

import functools
import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any, Protocol, TypeVar

import numpy as np

from streamsel.learner.forks import follow_forks

Value = TypeVar("Value")

# Raised by NumPy, SciPy and Python if a square, or a quotient of squares, exceeds float64.
_OVERFLOW_ERRORS = (np.linalg.LinAlgError, ArithmeticError)


def _overflow_error(error: BaseException) -> ValueError:
    """Return the error for values that exceed the range or precision of float64."""
    return ValueError(
        "Expected variables whose products are within the range and precision of float64. Got: "
        f"products that are not ({error}).\n"
        "Hint: rescale the variables to similar magnitudes, near 1."
    )


@contextmanager
def told_if_beyond() -> Iterator[None]:
    """Convert exceptions caused by values beyond float64 to an informative ValueError."""
    try:
        yield
    except _OVERFLOW_ERRORS as error:
        raise _overflow_error(error) from error


class PendingChange(Protocol):
    """A change in progress, which can be rolled back or completed."""

    # Whether it will be completed, and may be while the call that began it is still running.
    goes_on: bool

    def settle(self) -> None:
        """Roll the change back, or complete it; further calls have no effect."""


class Turn:
    """Lock that lets one thread at a time train a model; a copy of the model has its own.

    A call that learns holds the lock, for a row, a frame or a block of columns; `session` is the
    thread that learns a stream of blocks. A thread that makes a copy waits for the lock, and the
    next call that learns gives way to it: neither sees an inconsistent state, or delays the other
    for long. A second thread that tries to learn raises RuntimeError.

    Attributes
    ----------
    lock
        Held by the thread that learns or copies. `with` acquires and releases it in one step each,
        so no exception at any line can leave it locked.
    unfinished
        The change in progress, if any.
    session
        The thread that learns a stream, also between its blocks; None if there is none.
    gate, asked
        Held by the thread that waits for the lock, to make a copy or to fork; and whether a thread
        waits.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.is_locked = self.lock.locked
        self.gate = threading.Lock()
        self.asked = False
        self.unfinished: PendingChange | None = None
        self.session: int | None = None
        follow_forks(self)

    def __reduce__(self) -> tuple[type[Turn], tuple[()]]:
        # River copies all attributes of a transformer, and a lock cannot be copied.
        return Turn, ()

    def take(self) -> None:
        """Reject a second thread, give way to copies, and settle an unfinished change.

        Called by `learning` if any of these may be necessary.
        """
        outer = sys._getframe(2)
        if self.is_locked() and _is_among(outer, self, _HOLDING):
            raise _nested_call_error()
        if self.asked and not _is_among(outer, None, _HOLDING):
            with self.gate: self.asked = False  # fmt: skip # noqa: E701 (see `learning`)
        if self._is_learnt_by_another():
            raise _concurrent_use_error()
        self.settle()

    def is_mine(self) -> bool:
        """Whether this thread learns or copies already, so that this is a nested call."""
        return (self.is_locked() or self.gate.locked()) and _is_below(self)

    def _is_learnt_by_another(self) -> bool:
        me = threading.get_ident()
        if self.session in (None, me) and not self.is_locked():
            return False
        others = _frames_by_thread()
        others.pop(me, None)
        session = None if self.session is None else others.get(self.session)
        if session is not None and _is_among(session, self, _IN_SESSION):
            return True
        return self.is_locked() and any(
            _is_among(frame, self, _LEARNING) for frame in others.values()
        )

    def settle(self) -> None:
        """Roll back, or complete, a change that an exception has interrupted."""
        if self.unfinished is not None:
            with self.lock: self.settle_now()  # fmt: skip # noqa: E701 (see `learning`)

    def settle_now(self) -> None:
        """Settle the unfinished change; the lock is held by the caller."""
        if self.unfinished is not None:
            self.unfinished.settle()
            self.unfinished = None

    def still(self, read: Callable[[], Value], *, is_copy: bool = False) -> Value:
        """Return the result of a function that reads the state while the model does not learn.

        Parameters
        ----------
        read
            The function.
        is_copy
            Whether it changes nothing, unlike a function that caches results on the model.

        Raises
        ------
        RuntimeError
            For a call by the thread that is learning, such as one from a signal handler; unless the
            function makes a copy, and the change in progress can be completed.
        """
        if not self.is_mine():
            return copying(self, read)
        if _is_among(sys._getframe(), self, _LEARNING):
            if not is_copy or not (self.unfinished is None or self.unfinished.goes_on):
                raise _nested_call_error()
            if self.unfinished is not None:
                self.unfinished.settle()
        return read()

    def forget_threads(self) -> None:
        """Forget the other threads of the process, which do not exist after a fork."""
        if self.session != threading.get_ident():
            self.session = None


def learning(
    turn: Turn,
    learn: Callable[..., Value],
    *args: Any,
) -> Value:
    """Call a function that learns, completely or not at all, in one thread at a time.

    A change that takes more than one step is noted as `Turn.unfinished` by the function before it
    begins.
    """
    if turn.asked or turn.session is not None or turn.unfinished is not None or turn.is_locked():
        turn.take()
    try:
        # On one line: a trace function, which may raise at any line, is not called in between.
        with turn.lock: return learn(*args)  # fmt: skip # noqa: E701
    except BaseException as error:
        turn.settle()
        if isinstance(error, _OVERFLOW_ERRORS):
            raise _overflow_error(error) from error
        raise


def copying(turn: Turn, read: Callable[[], Value]) -> Value:
    """Return the result of a function that reads the state while the model does not learn."""
    with turn.gate: return _asking(turn, read)  # fmt: skip # noqa: E701 (see `learning`)


def _asking(turn: Turn, read: Callable[[], Value]) -> Value:
    """Return the result of a function, before the next call that learns; the gate is held."""
    turn.asked = True
    try:
        with turn.lock: return _settled(turn, read)  # fmt: skip # noqa: E701
    finally:
        turn.asked = False


def _settled(turn: Turn, read: Callable[[], Value]) -> Value:
    """Return the result of a function, after settling any unfinished change."""
    turn.settle_now()
    return read()


def in_session(turn: Turn, learn: Callable[..., Value], *args: Any) -> Value:
    """Learn a stream of blocks: other threads may copy, but not learn, between blocks."""
    before = turn.session
    turn.session = threading.get_ident()
    try:
        return learn(*args)
    finally:
        turn.session = before


def _frames_by_thread() -> dict[int, FrameType]:
    """Return the current frame of every thread.

    Some versions of Python 3.11 hold a lock meanwhile that finalizers wait for, such as those of
    `threading.local` (CPython issue 106883): a garbage collection would deadlock.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames()
    finally:
        if was_enabled:
            gc.enable()


_IN_SESSION = frozenset({in_session.__code__})
_LEARNING = frozenset({learning.__code__})
_HOLDING = _LEARNING | {copying.__code__}


def _is_below(turn: Turn | None) -> bool:
    """Whether this thread learns or copies, guarded by a given lock, or by any (None)."""
    return _is_among(sys._getframe(1), turn, _HOLDING)


def _is_among(frame: FrameType | None, turn: Turn | None, codes: frozenset[CodeType]) -> bool:
    """Whether a frame or one of its callers runs some code, for a given lock or any (None)."""
    while frame is not None:
        if frame.f_code in codes and (turn is None or frame.f_locals["turn"] is turn):
            return True
        frame = frame.f_back
    return False


def _concurrent_use_error() -> RuntimeError:
    return RuntimeError(
        "Expected one thread at a time to train a model. Got: two.\n"
        "Hint: hold a lock around the calls; or train one model per thread, "
        "and merge them."
    )


def _nested_call_error() -> RuntimeError:
    return RuntimeError(
        "Expected a model that is not learning. Got: a nested call, such as one from a signal "
        "handler.\nHint: set a flag in the handler, and check it between two calls."
    )


def while_still(read: Callable[[Any], Value]) -> Callable[[Any], Value]:
    """Decorate a method that reads the state, so that it waits while the model learns."""

    @functools.wraps(read)
    def waiting(self: Any) -> Value:
        turn: Turn = self._at_work
        return turn.still(functools.partial(read, self))

    return waiting
