"""Ctrl-C between blocks: never in the middle of learning one."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType, TracebackType


class Interrupts:
    """Turns SIGINT and SIGTERM into KeyboardInterrupt where that can do no harm.

    While data are awaited a signal interrupts at once. While a block is learnt, inside
    `learning()`, it waits for the end of the block, which is some milliseconds away, so that a
    model and the number of columns it has learnt always agree.

    Attributes
    ----------
    exit_code
        128 + the signal's number, as shells have it: 130 for Ctrl-C.
    """

    def __init__(self) -> None:
        self.exit_code = 128 + signal.SIGINT
        self._learning = False
        self._pending = False
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
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
    def learning(self) -> Iterator[None]:
        """Hold signals back until the end."""
        self._learning = True
        try:
            yield
        finally:
            self._learning = False
        if self._pending:
            raise KeyboardInterrupt

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        self.exit_code = 128 + number
        self._pending = True
        if not self._learning:
            raise KeyboardInterrupt
