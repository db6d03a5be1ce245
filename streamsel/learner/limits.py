"""What ends learning though the input is good, and what keeps that from leaving a model in between.

Three things can: another thread, numbers beyond float64, and an exception at any line, such as the
KeyboardInterrupt of a Ctrl-C.
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

# What NumPy, SciPy and Python raise where a square, or a quotient of squares, is beyond float64.
_BEYOND = (np.linalg.LinAlgError, ArithmeticError)


def _beyond(error: BaseException) -> ValueError:
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


class Unfinished(Protocol):
    """A change that has begun: brings the model to where it was before it, or will be after it."""

    # Whether it will be after, and may be settled while the call that began it goes on.
    goes_on: bool

    def settle(self) -> None:
        """Undo the change, or finish it; asked again, change nothing more."""


class Turn:
    """Whose turn it is to let a model learn: one thread at a time. That of a copy is its own.

    A call that learns holds the lock, for a row, a frame or a block of columns; `session` is the
    thread that learns a stream of blocks. What makes a copy waits for the lock, and a call that
    learns then lets it go first: neither sees a state in between, or keeps the other waiting for
    long. A second thread that learns is refused.

    Attributes
    ----------
    lock
        Held by the thread that learns, or copies. `with` takes and releases it in one step each:
        there is no line at which an exception would leave it locked.
    unfinished
        The change that has begun, if any.
    session
        The thread that learns a stream, also between its blocks; None for none.
    gate, asked
        Held by the thread that waits for the lock to make a copy, or to fork; and whether one
        does.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.is_locked = self.lock.locked
        self.gate = threading.Lock()
        self.asked = False
        self.unfinished: Unfinished | None = None
        self.session: int | None = None
        follow_forks(self)

    def __reduce__(self) -> tuple[type[Turn], tuple[()]]:
        # River copies all attributes of a transformer, and nothing can copy a lock.
        return Turn, ()

    def take(self) -> None:
        """Refuse a second thread, let copies go first, and settle what was left unfinished.

        Called by `learning`, when there may be a reason for any of these.
        """
        outer = sys._getframe(2)
        if self.is_locked() and _is_among(outer, self, _HOLDING):
            raise _within()
        if self.asked and not _is_among(outer, None, _HOLDING):
            with self.gate: self.asked = False  # fmt: skip # noqa: E701 (see `learning`)
        if self._is_learnt_by_another():
            raise _two_threads()
        self.settle()

    def is_mine(self) -> bool:
        """Whether this thread learns, or copies, already: it is called from within."""
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
        """Undo, or finish, a change that an exception has interrupted."""
        if self.unfinished is not None:
            with self.lock: self.settle_now()  # fmt: skip # noqa: E701 (see `learning`)

    def settle_now(self) -> None:
        """Settle it; the lock is held."""
        if self.unfinished is not None:
            self.unfinished.settle()
            self.unfinished = None

    def still(self, read: Callable[[], Value], *, is_copy: bool = False) -> Value:
        """Return what a function reads of the state, while nothing is learnt.

        Parameters
        ----------
        read
            The function.
        is_copy
            Whether it leaves nothing behind, as what is computed from the state and kept is.

        Raises
        ------
        RuntimeError
            In the midst of learning, by the same thread, as a signal handler may be; unless the
            function makes a copy, and the change that has begun can be finished.
        """
        if not self.is_mine():
            return copying(self, read)
        if _is_among(sys._getframe(), self, _LEARNING):
            if not is_copy or not (self.unfinished is None or self.unfinished.goes_on):
                raise _within()
            if self.unfinished is not None:
                self.unfinished.settle()
        return read()

    def forget_threads(self) -> None:
        """Forget the other threads of the process, which are gone."""
        if self.session != threading.get_ident():
            self.session = None


def learning(
    turn: Turn,
    learn: Callable[..., Value],
    *args: Any,
) -> Value:
    """Learn something, whole or not at all, by one thread.

    What cannot be done in one step the function notes as `Turn.unfinished` before it begins.
    """
    if turn.asked or turn.session is not None or turn.unfinished is not None or turn.is_locked():
        turn.take()
    try:
        # In one line: a trace function, which may raise at any, is not called between the two.
        with turn.lock: return learn(*args)  # fmt: skip # noqa: E701
    except BaseException as error:
        turn.settle()
        if isinstance(error, _BEYOND):
            raise _beyond(error) from error
        raise


def copying(turn: Turn, read: Callable[[], Value]) -> Value:
    """Return what a function reads of a state while nothing is learnt."""
    with turn.gate: return _asking(turn, read)  # fmt: skip # noqa: E701 (see `learning`)


def _asking(turn: Turn, read: Callable[[], Value]) -> Value:
    """Return what a function reads of a state, before the next call that learns; from the gate."""
    turn.asked = True
    try:
        with turn.lock: return _settled(turn, read)  # fmt: skip # noqa: E701
    finally:
        turn.asked = False


def _settled(turn: Turn, read: Callable[[], Value]) -> Value:
    """Return what a function reads of a state once no change of it is unfinished."""
    turn.settle_now()
    return read()


def in_session(turn: Turn, learn: Callable[..., Value], *args: Any) -> Value:
    """Learn a stream of blocks, between which no other thread learns, and copies are made."""
    before = turn.session
    turn.session = threading.get_ident()
    try:
        return learn(*args)
    finally:
        turn.session = before


def _frames_by_thread() -> dict[int, FrameType]:
    """Return what every thread runs.

    Some versions of Python 3.11 hold a lock meanwhile that finalizers wait for, such as those of
    `threading.local` (CPython issue 106883): a garbage collection would never end.
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
    """Whether this thread learns, or copies, by a turn, or by any."""
    return _is_among(sys._getframe(1), turn, _HOLDING)


def _is_among(frame: FrameType | None, turn: Turn | None, codes: frozenset[CodeType]) -> bool:
    """Whether a frame, or one that has called it, runs some code for a turn, or for any."""
    while frame is not None:
        if frame.f_code in codes and (turn is None or frame.f_locals["turn"] is turn):
            return True
        frame = frame.f_back
    return False


def _two_threads() -> RuntimeError:
    return RuntimeError(
        "Expected one thread at a time to let a model learn. Got: two.\n"
        "Hint: hold a lock around the calls; or let each thread learn a model of its own, "
        "and put them together by merge."
    )


def _within() -> RuntimeError:
    return RuntimeError(
        "Expected a model that is not in the midst of learning. Got: a call from within, such as "
        "one of a signal handler.\n"
        "Hint: let the handler set a flag, and look at it between two calls."
    )


def while_still(read: Callable[[Any], Value]) -> Callable[[Any], Value]:
    """Let a method of a learner, which reads its state, wait until nothing is learnt."""

    @functools.wraps(read)
    def waiting(self: Any) -> Value:
        turn: Turn = self._at_work
        return turn.still(functools.partial(read, self))

    return waiting
