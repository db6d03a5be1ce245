"""Define a snapshot that another thread computes while the learner goes on learning rows."""

from __future__ import annotations

import contextvars
import os
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Self

from streamsel.serialization.schema import CountKind, expect

# Longest wait of a row for the computation; the last row waits for the result.
_SECONDS_PER_ROW = 0.003


def _in_background(compute: Callable[[], Any]) -> Future[Any]:
    """Return the future of a result, computed at once where no thread can be started."""
    run = contextvars.copy_context().run
    executor = ThreadPoolExecutor(1, thread_name_prefix="streamsel-refresh")
    try:
        return executor.submit(run, compute)
    except RuntimeError:
        return _computed(compute)
    finally:
        executor.shutdown(wait=False)


def _computed(compute: Callable[[], Any]) -> Future[Any]:
    """Return the finished future of a result."""
    future: Future[Any] = Future()
    try:
        future.set_result(compute())
    except Exception as error:  # noqa: BLE001 (the caller of `result` gets it)
        future.set_exception(error)
    return future


class PendingSnapshot:
    """The next snapshot, computed from the rows so far, and the row from which it is in use.

    That row is known in advance: the time that the computation takes does not affect any result.
    The rows in between wait a little each, so that the last one need not wait for all of it.

    Parameters
    ----------
    compute
        Returns the snapshot; it may be called in any thread, and again.
    started_at, next_due
        Row number of the refresh, and of the next one.
    run
        Returns the future of the snapshot.

    Attributes
    ----------
    started_at, next_due
        The parameters.
    """

    def __init__(
        self,
        compute: Callable[[], Any],
        started_at: int,
        next_due: int,
        run: Callable[[Callable[[], Any]], Future[Any]] = _in_background,
    ) -> None:
        self.started_at, self.next_due = started_at, next_due
        self._compute = compute
        self._started, self._process = time.monotonic(), os.getpid()
        self._future = run(compute)

    def __deepcopy__(self, memo: object) -> Self:
        # A snapshot does not change, and its thread cannot be copied.
        return self

    def wait(self, rows: int) -> None:
        """Wait until the computation ends, or the time allotted to the rows so far is over."""
        share = (rows - self.started_at) * _SECONDS_PER_ROW
        wait([self._future], max(0.0, self._started + share - time.monotonic()))

    def result(self) -> Any:
        """Return the snapshot, or raise the error that prevents it."""
        return self._finished().result()

    @property
    def has_failed(self) -> bool:
        """Whether an error prevents the snapshot; waits for the computation."""
        return self._finished().exception() is not None

    def _finished(self) -> Future[Any]:
        if not self._future.done() and os.getpid() != self._process:
            # The thread was not copied by the fork.
            self._future = _computed(self._compute)
        wait([self._future])
        return self._future

    # Files

    def to_state(self, write: Callable[[Any], Any]) -> dict[str, Any]:
        """Return the state for a model file; `write` returns that of the snapshot."""
        rows = {"started_at": self.started_at, "next_due": self.next_due}
        return rows | {"snapshot": write(self.result())}

    @classmethod
    def from_state(cls, state: dict[str, Any], read: Callable[[Any], Any]) -> Self:
        """Restore the object from `to_state`; `read` returns the snapshot."""
        expect(state, started_at=CountKind(), next_due=CountKind())
        snapshot = read(state["snapshot"])
        return cls(lambda: snapshot, state["started_at"], state["next_due"], _computed)
