"""All or nothing: what is learnt is learnt whole, whatever exception comes at whatever line.

Two things can bring a model that was interrupted out of the state in between. `Undo` brings it back
to where it was before: a snapshot of references, which costs some microseconds. `Rest` brings it to
where it would be after: what is left of a row are a few steps that cannot fail. So nearly all rows,
which bring nothing new, cost nothing more than they did.
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
    """What brings a model back to what it is now, as often as it is asked.

    Parameters
    ----------
    model
        A learner. It may replace what it holds, or add to it, as `rollback.snapshot` says; who
        changes it otherwise says so before (`also`).
    """

    goes_on = False

    def __init__(self, model: Undoable) -> None:
        self._model = model
        self._restores: list[Restore] = [snapshot(model, *_changing(model))]

    def also(self, restore: Restore) -> None:
        """Note what undoes a change that is about to be made, and that a snapshot does not see."""
        self._restores.append(restore)

    def settle(self) -> None:
        """Bring the model back."""
        for restore in reversed(self._restores):
            restore()
        self._model._forget_names()
        self._model._outdate()


# Class of learners -> the attributes that change as one learns, and what reads them.
_attributes: dict[type, tuple[tuple[str, ...], Read]] = {}


def _changing(model: Undoable) -> tuple[tuple[str, ...], Read]:
    kind = type(model)
    if kind not in _attributes:
        constant = {*rules_of(kind), "_at_work", "_door", "_rest"}
        names = tuple(name for name in vars(model) if name not in constant)
        _attributes[kind] = names, reader(names)
    return _attributes[kind]


class Rest:
    """What is left to do of a row that the moments have learnt; one for all rows of a model."""

    goes_on = True

    beside: Beside
    of_row: tuple[Floats, Places, Floats, Moments, float]

    def __reduce__(self) -> tuple[type[Rest], tuple[()]]:
        # A copy has nothing left to do.
        return Rest, ()

    def settle(self) -> None:
        """Do it; nothing is done twice."""
        self.beside.learn_one(*self.of_row)


class RestOfRows:
    """What is left to do of rows that bring nothing new any more, and that nothing can refuse.

    Parameters
    ----------
    moments, steps
        The moments, and the steps of learning the rows: that of the moments, and others which see
        whether they were done.
    """

    goes_on = True

    def __init__(self, moments: Moments, steps: Steps) -> None:
        self._moments, self._steps = moments, steps
        self._before = moments.rows

    def settle(self) -> None:
        """Do it; nothing is done twice."""
        first = self._moments.rows != self._before
        take(self._steps[first:])


class Undoable(Axis):
    """A learner that learns what it learns whole, or not at all."""

    _at_work: Turn

    def _whole(self, learn: Callable[..., Value], *args: Any) -> Value:
        """Learn something, and undo it all if an exception comes."""
        found: Value = learning(self._at_work, self._undoably, learn, *args)
        return found

    def _undoably(self, learn: Callable[..., Value], *args: Any) -> Value:
        """Do as `_whole`, where this thread has been let in."""
        turn = self._at_work
        if turn.unfinished is not None and not turn.unfinished.goes_on:
            return learn(*args)  # the call that has begun undoes that too
        turn.unfinished = Undo(self)
        found = learn(*args)
        turn.unfinished = None
        return found

    def _undo_too(self, restore: Restore | None) -> None:
        """Note what undoes a change that is about to be made, and that a snapshot does not see."""
        unfinished = self._at_work.unfinished
        if restore is not None and isinstance(unfinished, Undo):
            unfinished.also(restore)

    def _in_session(self, errors: Errors, learn: Callable[..., Value], *args: Any) -> Value:
        """Learn a stream, block by block, and undo it all if one of these errors comes.

        No other thread learns before its end; copies wait for the end of a block.
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
