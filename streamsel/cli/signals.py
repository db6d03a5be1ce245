"""Signals that end a run: delivered between blocks, never while learning or saving."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType, TracebackType

NAMES = ("SIGINT", "SIGTERM", "SIGHUP")  # Windows has no SIGHUP
# Signals within this many seconds count as one: service managers send two at a time.
SAME_SIGNAL_SECONDS = 1.0


class Interrupted(KeyboardInterrupt):
    """Raised by a signal.

    Parameters
    ----------
    exit_code
        128 + the signal's number, as in shells: 130 for Ctrl-C.
    """

    def __init__(self, exit_code: int) -> None:
        super().__init__()
        self.exit_code = exit_code


def exit_code_of(error: KeyboardInterrupt) -> int:
    """Return the exit code of an interrupted run."""
    return error.exit_code if isinstance(error, Interrupted) else 128 + signal.SIGINT


class Interrupts:
    """Turns SIGINT, SIGTERM and SIGHUP into `Interrupted` at safe points.

    While waiting for data, a signal interrupts at once. Inside `deferred()`, while a block is
    learnt or a model is saved, it is deferred until the end of the block, so that a model and its
    number of learnt columns always agree. A signal that was ignored before (nohup) stays ignored.
    """

    def __init__(self) -> None:
        self._deferring = False
        self._ending = False
        self._pending = 0
        self._raised_at = -SAME_SIGNAL_SECONDS
        self._previous: dict[int, Any] = {}
        self._terminals: list[int] = []

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._terminals = [number for number in (1, 2) if os.isatty(number)]
            for name in NAMES:
                number = getattr(signal, name, None)
                if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                    self._previous[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Defer signals until the end of the context."""
        self._deferring = True
        try:
            yield
        finally:
            self._deferring = False
        if self._pending:
            self._interrupt()

    def ignore_signals(self) -> None:
        """Ignore further signals: the run is already being ended."""
        self._ending = True

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        if number == getattr(signal, "SIGHUP", None):
            self._leave_terminal()
        self._pending = self._pending or number
        if not self._deferring and not self._ending:
            self._interrupt()

    def _interrupt(self) -> None:
        if time.monotonic() - self._raised_at >= SAME_SIGNAL_SECONDS:
            self._raised_at = time.monotonic()
            raise Interrupted(128 + self._pending)

    def _leave_terminal(self) -> None:
        """Redirect output for a closed terminal to the null device: writing would fail."""
        for number in self._terminals:
            if not os.isatty(number):
                os.dup2(os.open(os.devnull, os.O_WRONLY), number)
