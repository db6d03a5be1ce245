"""Forks: a child process goes on with whole models, and with locks that will be released.

`os.fork` copies the memory as it is at that moment, and of the threads only the one that called.
What another thread had locked would stay locked for ever, and what it was about to change would
stay half changed. So the fork waits until no model learns, as that of `logging` does for a message.
"""

from __future__ import annotations

import os
import threading
import weakref
from functools import partial
from typing import Protocol


class Guard(Protocol):
    """What a model is locked by.

    Attributes
    ----------
    gate
        Held by the thread that waits for the lock, and is to have it before the next call that
        learns.
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
        """Forget the other threads of the process, which are gone."""


# Changed in one step each, and read in one: another thread may do so at any time.
_known: dict[int, weakref.ref[Guard]] = {}
# Held from before a fork to after it, in the parent and in the child.
_forking = threading.Lock()
# What the thread that forks has taken: gates, and, of the first of these, locks.
_gates: list[Guard] = []
_locks: list[Guard] = []


def follow_forks(guard: Guard) -> None:
    """Let forks wait for a model, as long as it exists."""
    key = id(guard)
    # What removes it is no Python: nothing can interrupt that.
    _known[key] = weakref.ref(guard, partial(_known.pop, key))


def _before() -> None:
    """Wait until nothing is learnt, and keep it so."""
    _forking.acquire()
    while True:
        closed, busy = _close_gates(), _take_locks()
        if busy is not None:
            # With no lock in hand, for one that learns may wait for another.
            with busy.lock:
                pass
        elif not closed:
            return


def _close_gates() -> bool:
    """Let calls that learn wait before they begin; return whether there are some more that will."""
    seen = {id(guard) for guard in _gates}
    guards = [ref() for ref in list(_known.values())]
    new = [guard for guard in guards if guard is not None and id(guard) not in seen]
    new = [guard for guard in new if not guard.is_mine()]
    for guard in new:
        guard.gate.acquire()
        guard.asked = True
        _gates.append(guard)
    return bool(new)


def _take_locks() -> Guard | None:
    """Take all locks, or none of them; return which of them could not be taken."""
    for guard in _gates[len(_locks) :]:
        if not guard.lock.acquire(blocking=False):
            while _locks:
                _locks.pop().lock.release()
            return guard
        _locks.append(guard)
    return None


def _after() -> None:
    """Let the others go on."""
    while _locks:
        _locks.pop().lock.release()
    while _gates:
        guard = _gates.pop()
        guard.asked = False
        guard.gate.release()
    _forking.release()


def _in_child() -> None:
    """Go on as the only thread."""
    for ref in list(_known.values()):
        guard = ref()
        if guard is not None:
            guard.forget_threads()
    _after()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_in_child)
