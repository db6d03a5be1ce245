"""Roll back, or complete, updates that are interrupted by an exception at any line.

Two mechanisms bring an interrupted model to a consistent state. `Undo` restores the state before
the update from a snapshot of references, which costs a few microseconds. `Rest` completes the
update of a row by steps that cannot fail. Nearly all rows have no new names and use `Rest`, at no
extra cost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from streamsel.held.beside import Beside, Steps, take
from streamsel.held.moments import Moments
from streamsel.held.part import Floats, Places
from streamsel.learner.axis import Axis
from streamsel.learner.limits import Turn, in_session, learning, told_if_beyond
from streamsel.params import rules_of
from streamsel.rollback import Read, Restore, reader, snapshot

Value = TypeVar("Value")
Errors = type[BaseException] | tuple[type[BaseException], ...]


class Undo:
    """Restores a model to its current state, any number of times.

    Parameters
    ----------
    model
        A learner. It may replace or append to its state, as `rollback.snapshot` describes; any
        other change must be registered before (`also`).
    """

    goes_on = False

    def __init__(self, model: Undoable) -> None:
        self._model = model
        self._restores: list[Restore] = [snapshot(model, *_changing(model))]

    def also(self, restore: Restore) -> None:
        """Register the rollback of a change that the snapshot does not cover, before making it."""
        self._restores.append(restore)

    def settle(self) -> None:
        """Restore the model."""
        for restore in reversed(self._restores):
            restore()
        self._model._forget_names()
        self._model._outdate()


# Class of learners -> the attributes that change during learning, and a function that reads them.
_attributes: dict[type, tuple[tuple[str, ...], Read]] = {}


def _changing(model: Undoable) -> tuple[tuple[str, ...], Read]:
    kind = type(model)
    if kind not in _attributes:
        constant = {*rules_of(kind), "_at_work", "_door", "_rest"}
        names = tuple(name for name in vars(model) if name not in constant)
        _attributes[kind] = names, reader(names)
    return _attributes[kind]


class Rest:
    """The remaining steps of a row already added to the moments; one object per model."""

    goes_on = True

    beside: Beside
    of_row: tuple[Floats, Places, Floats, Moments, float]

    def __reduce__(self) -> tuple[type[Rest], tuple[()]]:
        # A copy has no remaining steps.
        return Rest, ()

    def settle(self) -> None:
        """Complete the row; completed steps are not repeated."""
        self.beside.learn_one(*self.of_row)


class RestOfRows:
    """The remaining steps of rows that have no new names and cannot be rejected.

    Parameters
    ----------
    moments, steps
        The moments, and the steps of learning the rows: first that of the moments, then others that
        detect whether they are completed.
    """

    goes_on = True

    def __init__(self, moments: Moments, steps: Steps) -> None:
        self._moments, self._steps = moments, steps
        self._before = moments.rows

    def settle(self) -> None:
        """Complete the rows; completed steps are not repeated."""
        first = self._moments.rows != self._before
        take(self._steps[first:])


class Undoable(Axis):
    """Base class of learners whose updates are applied completely or not at all."""

    _at_work: Turn

    def _whole(self, learn: Callable[..., Value], *args: Any) -> Value:
        """Call a function that learns, and roll back its changes if it raises."""
        found: Value = learning(self._at_work, self._undoably, learn, *args)
        return found

    def _undoably(self, learn: Callable[..., Value], *args: Any) -> Value:
        """Do the same as `_whole`, if this thread holds the lock already."""
        turn = self._at_work
        if turn.unfinished is not None and not turn.unfinished.goes_on:
            return learn(*args)  # covered by the rollback of the outer call
        turn.unfinished = Undo(self)
        found = learn(*args)
        turn.unfinished = None
        return found

    def _undo_too(self, restore: Restore | None) -> None:
        """Register the rollback of a change that the snapshot does not cover, before making it."""
        unfinished = self._at_work.unfinished
        if restore is not None and isinstance(unfinished, Undo):
            unfinished.also(restore)

    def _in_session(self, errors: Errors, learn: Callable[..., Value], *args: Any) -> Value:
        """Learn a stream, block by block, and roll all of it back on any of these errors.

        No other thread can learn before the end; copies are made between two blocks.
        """
        turn = self._at_work
        undo = learning(turn, Undo, self)
        try:
            with told_if_beyond():
                return in_session(turn, learn, *args)
        except errors:
            turn.unfinished = undo
            turn.settle()
            raise
