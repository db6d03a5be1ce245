"""Roll back, or complete, updates that are interrupted by an exception at any line.

Two mechanisms bring an interrupted model to a consistent state. `UndoLog` restores the state before
the update from a snapshot of references, which costs a few microseconds. `PendingRow` completes the
update of a row by steps that cannot fail. Nearly all rows have no new names and use
`PendingRow`, at no extra cost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from streamsel._utils.rollback import Read, Restore, attribute_reader, snapshot
from streamsel.base.guard import (
    SingleThreadGuard,
    learn_exclusively,
    overflow_errors,
    stream_session,
)
from streamsel.params import rules_of
from streamsel.state.base import Floats, Indices
from streamsel.state.moments.moments import Moments
from streamsel.state.moments.row_extension import RowExtension, Steps, run_steps

Value = TypeVar("Value")
Errors = type[BaseException] | tuple[type[BaseException], ...]


class Transactional(Protocol):
    """A model whose updates are applied completely or not at all."""

    _guard: SingleThreadGuard

    def _invalidate(self) -> None: ...

    def _clear_row_cache(self) -> None: ...


class UndoLog:
    """Restores a model to its current state, any number of times.

    Parameters
    ----------
    model
        A learner. It may replace or append to its state, as `rollback.snapshot` describes; any
        other change must be registered before (`add_restore`).
    """

    completes_forward = False

    def __init__(self, model: Transactional) -> None:
        self._model = model
        self._restores: list[Restore] = [snapshot(model, *_changing(model))]

    def add_restore(self, restore: Restore) -> None:
        """Register the rollback of a change that the snapshot does not cover, before making it."""
        self._restores.append(restore)

    def settle(self) -> None:
        """Restore the model."""
        for restore in reversed(self._restores):
            restore()
        self._model._clear_row_cache()
        self._model._invalidate()


# Class of learners -> the attributes that change during learning, and a function that reads them.
_attributes: dict[type, tuple[tuple[str, ...], Read]] = {}


def _changing(model: Transactional) -> tuple[tuple[str, ...], Read]:
    kind = type(model)
    if kind not in _attributes:
        constant = {*rules_of(kind), "_guard"}
        names = tuple(name for name in vars(model) if name not in constant)
        _attributes[kind] = names, attribute_reader(names)
    return _attributes[kind]


class PendingRow:
    """The remaining steps of a row already added to the moments; one object per model."""

    completes_forward = True

    extension: RowExtension
    of_row: tuple[Floats, Indices, Floats, Moments, float]

    def __reduce__(self) -> tuple[type[PendingRow], tuple[()]]:
        # A copy has no remaining steps.
        return PendingRow, ()

    def settle(self) -> None:
        """Complete the row; completed steps are not repeated."""
        self.extension.learn_one(*self.of_row)


class PendingRows:
    """The remaining steps of rows that have no new names and cannot be rejected.

    Parameters
    ----------
    moments, steps
        The moments, and the steps of learning the rows: first that of the moments, then others that
        detect whether they are completed.
    """

    completes_forward = True

    def __init__(self, moments: Moments, steps: Steps) -> None:
        self._moments, self._steps = moments, steps
        self._before = moments.rows

    def settle(self) -> None:
        """Complete the rows; completed steps are not repeated."""
        first = self._moments.rows != self._before
        run_steps(self._steps[first:])


def learn_atomically(model: Transactional, learn: Callable[..., Value], *args: Any) -> Value:
    """Call a function that learns, and roll back its changes to the model if it raises."""
    result: Value = learn_exclusively(model._guard, with_rollback, model, learn, *args)
    return result


def with_rollback(model: Transactional, learn: Callable[..., Value], *args: Any) -> Value:
    """Do the same as `learn_atomically`, if this thread holds the lock already."""
    guard = model._guard
    if guard.pending_change is not None and not guard.pending_change.completes_forward:
        return learn(*args)  # covered by the rollback of the outer call
    guard.pending_change = UndoLog(model)
    result = learn(*args)
    guard.pending_change = None
    return result


def register_restore(model: Transactional, restore: Restore | None) -> None:
    """Register the rollback of a change that the snapshot does not cover, before making it."""
    pending = model._guard.pending_change
    if restore is not None and isinstance(pending, UndoLog):
        pending.add_restore(restore)


def learn_in_session(
    model: Transactional, errors: Errors, learn: Callable[..., Value], *args: Any
) -> Value:
    """Learn a stream, block by block, and roll all of it back on any of these errors.

    No other thread can learn before the end; copies are made between two blocks.
    """
    guard = model._guard
    undo = learn_exclusively(guard, UndoLog, model)
    try:
        with overflow_errors():
            return stream_session(guard, learn, *args)
    except errors:
        guard.pending_change = undo
        guard.resolve()
        raise
