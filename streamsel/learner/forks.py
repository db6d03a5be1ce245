"""Make `os.fork` safe: a child process gets consistent models, and locks that are released.

`os.fork` copies the memory as it is at that moment, and only the calling thread. A lock held by
another thread would never be released, and a change by another thread would remain incomplete. The
fork therefore waits until no model is learning, as `logging` waits for a message.
"""

from __future__ import annotations

import os
import threading
import weakref
from functools import partial
from typing import Protocol


class Guard(Protocol):
    """The lock of a model.

    Attributes
    ----------
    gate
        Held by the thread that waits for the lock, and gets it before the next call that learns.
    asked
        Whether a thread waits.
    lock
        Held by the thread that learns.
    """

    gate: threading.Lock
    lock: threading.Lock
    asked: bool

    def is_mine(self) -> bool:
        """Whether this thread holds the lock, or the gate."""

    def forget_threads(self) -> None:
        """Forget the other threads of the process, which do not exist after a fork."""


# Changed and read in single steps, as other threads may access it at any time.
_guards: dict[int, weakref.ref[Guard]] = {}
# Held from before a fork until after it, in the parent and in the child.
_forking = threading.Lock()
# Acquired by the forking thread: gates, and the locks of a leading part of these.
_closed_gates: list[Guard] = []
_held_locks: list[Guard] = []


def follow_forks(guard: Guard) -> None:
    """Register a guard, so that forks wait for it as long as it exists."""
    key = id(guard)
    # The callback runs no Python code, so it cannot be interrupted.
    _guards[key] = weakref.ref(guard, partial(_guards.pop, key))


def _before() -> None:
    """Wait until no model is learning, and keep it so."""
    _forking.acquire()
    while True:
        closed, busy = _close_gates(), _take_locks()
        if busy is not None:
            # Hold no lock while waiting, as the thread that learns may wait for one of them.
            with busy.lock:
                pass
        elif not closed:
            return


def _close_gates() -> bool:
    """Make further calls that learn wait; return whether there were new guards."""
    seen = {id(guard) for guard in _closed_gates}
    guards = [ref() for ref in list(_guards.values())]
    new = [guard for guard in guards if guard is not None and id(guard) not in seen]
    new = [guard for guard in new if not guard.is_mine()]
    for guard in new:
        guard.gate.acquire()
        guard.asked = True
        _closed_gates.append(guard)
    return bool(new)


def _take_locks() -> Guard | None:
    """Acquire all locks, or none; return a guard whose lock is not available."""
    for guard in _closed_gates[len(_held_locks) :]:
        if not guard.lock.acquire(blocking=False):
            while _held_locks:
                _held_locks.pop().lock.release()
            return guard
        _held_locks.append(guard)
    return None


def _after() -> None:
    """Release all locks and gates."""
    while _held_locks:
        _held_locks.pop().lock.release()
    while _closed_gates:
        guard = _closed_gates.pop()
        guard.asked = False
        guard.gate.release()
    _forking.release()


def _in_child() -> None:
    """Drop references to other threads, then release all locks."""
    for ref in list(_guards.values()):
        guard = ref()
        if guard is not None:
            guard.forget_threads()
    _after()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_in_child)
