"""Guard the state of a model against concurrent use, forks, overflow and interrupts.

Three events can end learning although the input is valid: another thread, values beyond float64,
and an exception at any line, such as the KeyboardInterrupt of Ctrl-C. This module prevents them
from leaving the model in an inconsistent state.
"""

from __future__ import annotations

import functools
import gc
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import CodeType, FrameType
from typing import Any, Protocol, TypeVar

import numpy as np


class ForkGuard(Protocol):
    """The lock of a model.

    Attributes
    ----------
    copy_lock
        Locked by the thread that waits for `lock`, which has priority over the next call that
        learns.
    lock
        Locked by the thread that learns.
    copy_requested
        Whether a thread waits.
    """

    copy_lock: threading.Lock
    lock: threading.Lock
    copy_requested: bool

    def is_held_by_this_thread(self) -> bool:
        """Whether this thread holds the lock, or the copy lock."""

    def forget_threads(self) -> None:
        """Forget the other threads of the process, which do not exist after a fork."""


# Changed and read in single steps, as other threads may access it at any time.
_guards: dict[int, weakref.ref[ForkGuard]] = {}
# Locked from before a fork until after it, in the parent and in the child.
_forking = threading.Lock()
# Guards whose copy lock the forking thread holds; and the first of these, whose lock it holds too.
_held_copy_locks: list[ForkGuard] = []
_held_locks: list[ForkGuard] = []


def register_fork_guard(guard: ForkGuard) -> None:
    """Register a guard, so that forks wait for it as long as it exists."""
    key = id(guard)
    # The callback runs no Python code, so it cannot be interrupted.
    _guards[key] = weakref.ref(guard, partial(_guards.pop, key))


def _before_fork() -> None:
    """Wait until no model is learning, and block further learning until after the fork."""
    _forking.acquire()
    while True:
        closed, busy = _acquire_copy_locks(), _try_acquire_locks()
        if busy is not None:
            # Hold no lock while waiting, as the thread that learns may wait for one of them.
            with busy.lock:
                pass
        elif not closed:
            return


def _acquire_copy_locks() -> bool:
    """Make further calls that learn wait; return whether there were new guards."""
    seen = {id(guard) for guard in _held_copy_locks}
    guards = [ref() for ref in list(_guards.values())]
    new = [guard for guard in guards if guard is not None and id(guard) not in seen]
    new = [guard for guard in new if not guard.is_held_by_this_thread()]
    for guard in new:
        guard.copy_lock.acquire()
        guard.copy_requested = True
        _held_copy_locks.append(guard)
    return bool(new)


def _try_acquire_locks() -> ForkGuard | None:
    """Acquire all locks, or none; return a guard whose lock is not available."""
    for guard in _held_copy_locks[len(_held_locks) :]:
        if not guard.lock.acquire(blocking=False):
            while _held_locks:
                _held_locks.pop().lock.release()
            return guard
        _held_locks.append(guard)
    return None


def _after_fork() -> None:
    """Release all locks and copy locks."""
    while _held_locks:
        _held_locks.pop().lock.release()
    while _held_copy_locks:
        guard = _held_copy_locks.pop()
        guard.copy_requested = False
        guard.copy_lock.release()
    _forking.release()


def _after_fork_in_child() -> None:
    """Drop references to other threads, then release all locks."""
    for ref in list(_guards.values()):
        guard = ref()
        if guard is not None:
            guard.forget_threads()
    _after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child
    )


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
def overflow_errors() -> Iterator[None]:
    """Convert exceptions caused by values beyond float64 to an informative ValueError."""
    try:
        yield
    except _OVERFLOW_ERRORS as error:
        raise _overflow_error(error) from error


class PendingChange(Protocol):
    """A change in progress, which can be rolled back or completed."""

    # Whether it is completed, not rolled back, even while the call that began it is running.
    completes_forward: bool

    def settle(self) -> None:
        """Roll the change back, or complete it; further calls have no effect."""


class SingleThreadGuard:
    """Lock that lets one thread at a time train a model; a copy of the model has its own.

    A call that learns holds the lock, for a row, a frame or a block of columns; `session` is the
    thread that learns a stream of blocks. A thread that makes a copy waits for the lock, and the
    next call that learns gives way to it: neither sees an inconsistent state, or delays the other
    for long. A second thread that tries to learn raises RuntimeError.

    Attributes
    ----------
    lock
        Locked by the thread that learns or copies. `with` acquires and releases it in one step
        each, so no exception at any line can leave it locked.
    copy_lock, copy_requested
        Lock of the thread that waits for `lock`, to make a copy or to fork; and whether a thread
        waits.
    pending_change
        The change in progress, if any.
    session
        The thread that learns a stream, also between its blocks; None if there is none.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.is_locked = self.lock.locked
        self.copy_lock = threading.Lock()
        self.copy_requested = False
        self.pending_change: PendingChange | None = None
        self.session: int | None = None
        register_fork_guard(self)

    def __reduce__(self) -> tuple[type[SingleThreadGuard], tuple[()]]:
        # River copies all attributes of a transformer, and a lock cannot be copied.
        return SingleThreadGuard, ()

    def enter(self) -> None:
        """Reject a second thread, give way to copies, and settle an unfinished change.

        Called by `learn_exclusively` if any of these may be necessary.
        """
        outer = sys._getframe(2)
        if self.is_locked() and _is_among(outer, self, _HOLDING):
            raise _nested_call_error()
        if self.copy_requested and not _is_among(outer, None, _HOLDING):
            with self.copy_lock: self.copy_requested = False  # fmt: skip # noqa: E701 (see `learn_exclusively`)
        if self._is_learnt_by_another():
            raise _concurrent_use_error()
        self.resolve()

    def is_held_by_this_thread(self) -> bool:
        """Whether this thread learns or copies already, so that this is a nested call."""
        return (self.is_locked() or self.copy_lock.locked()) and _is_nested(self)

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

    def resolve(self) -> None:
        """Roll back, or complete, a change that an exception has interrupted."""
        if self.pending_change is not None:
            with self.lock: self.resolve_locked()  # fmt: skip # noqa: E701 (see `learn_exclusively`)

    def resolve_locked(self) -> None:
        """Settle the unfinished change; the caller has acquired the lock."""
        if self.pending_change is not None:
            self.pending_change.settle()
            self.pending_change = None

    def call_when_idle(self, read: Callable[[], Value], *, is_copy: bool = False) -> Value:
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
        if not self.is_held_by_this_thread():
            return read_exclusively(self, read)
        if _is_among(sys._getframe(), self, _LEARNING):
            if not is_copy or not (
                self.pending_change is None or self.pending_change.completes_forward
            ):
                raise _nested_call_error()
            if self.pending_change is not None:
                self.pending_change.settle()
        return read()

    def forget_threads(self) -> None:
        """Forget the other threads of the process, which do not exist after a fork."""
        if self.session != threading.get_ident():
            self.session = None


def learn_exclusively(
    guard: SingleThreadGuard,
    learn: Callable[..., Value],
    *args: Any,
) -> Value:
    """Call a function that learns, completely or not at all, in one thread at a time.

    A change that takes more than one step is recorded as `SingleThreadGuard.pending_change` by
    the function before it begins.
    """
    if (
        guard.copy_requested
        or guard.session is not None
        or guard.pending_change is not None
        or guard.is_locked()
    ):
        guard.enter()
    try:
        # On one line: a trace function, which may raise at any line, is not called in between.
        with guard.lock: return learn(*args)  # fmt: skip # noqa: E701
    except BaseException as error:
        guard.resolve()
        if isinstance(error, _OVERFLOW_ERRORS):
            raise _overflow_error(error) from error
        raise


def read_exclusively(guard: SingleThreadGuard, read: Callable[[], Value]) -> Value:
    """Return the result of a function that reads the state while the model does not learn."""
    with guard.copy_lock: return _read_with_request(guard, read)  # fmt: skip # noqa: E701 (see `learn_exclusively`)


def _read_with_request(guard: SingleThreadGuard, read: Callable[[], Value]) -> Value:
    """Return the result of a function before the next call that learns, under `copy_lock`."""
    guard.copy_requested = True
    try:
        with guard.lock: return _read_after_settling(guard, read)  # fmt: skip # noqa: E701
    finally:
        guard.copy_requested = False


def _read_after_settling(guard: SingleThreadGuard, read: Callable[[], Value]) -> Value:
    """Return the result of a function, after settling any unfinished change."""
    guard.resolve_locked()
    return read()


def stream_session(guard: SingleThreadGuard, learn: Callable[..., Value], *args: Any) -> Value:
    """Learn a stream of blocks: other threads may copy, but not learn, between blocks."""
    before = guard.session
    guard.session = threading.get_ident()
    try:
        return learn(*args)
    finally:
        guard.session = before


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


_IN_SESSION = frozenset({stream_session.__code__})
_LEARNING = frozenset({learn_exclusively.__code__})
_HOLDING = _LEARNING | {read_exclusively.__code__}


def _is_nested(guard: SingleThreadGuard | None) -> bool:
    """Whether this thread learns or copies, guarded by a given lock, or by any (None)."""
    return _is_among(sys._getframe(1), guard, _HOLDING)


def _is_among(
    frame: FrameType | None, guard: SingleThreadGuard | None, codes: frozenset[CodeType]
) -> bool:
    """Whether a frame or one of its callers runs some code, for a given lock or any (None)."""
    while frame is not None:
        if frame.f_code in codes and (guard is None or frame.f_locals["guard"] is guard):
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


def reads_consistently(read: Callable[[Any], Value]) -> Callable[[Any], Value]:
    """Decorate a method that reads the state, so that it waits while the model learns."""

    @functools.wraps(read)
    def waiting(self: Any) -> Value:
        guard: SingleThreadGuard = self._guard
        return guard.call_when_idle(functools.partial(read, self))

    return waiting
