"""Conditions that end the learning of columns, such as those of an endless generator."""

from __future__ import annotations

import hashlib
import numbers
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from streamsel.data.chunks import Block
from streamsel.params import parameter_repr
from streamsel.stream.inputs import split_block

if TYPE_CHECKING:
    from streamsel.base.learner import Learner

Until = str | int | Callable[[Any], object]
# Names of conditions.
CERTIFIED, BUDGET = "certified", "budget"
# Conditions other than a number of columns are checked after every so many columns.
CHECK_INTERVAL = 1000
# An error budget is spent when the level of the next test is below this share of it.
MIN_LEVEL = 1e-6

_OTHER_CONDITIONS = (
    "Hint: until=n ends after n columns that do not change the selection, a function of the model "
    "when it returns True."
)


class StopCondition:
    """A condition that is checked between columns.

    It is checked after certain numbers of columns, where blocks are cut, so that the result does
    not depend on how the columns are divided into blocks.

    Parameters
    ----------
    until
        The condition, as in `learn_columns`.
    model
        The learner.
    saved
        `state` of the condition of an earlier run that is continued.

    Attributes
    ----------
    is_met
        Whether the condition was met at its last check.

    Raises
    ------
    ValueError, TypeError
        For a condition that does not exist, or does not apply to the learner.
    """

    def __init__(self, until: Any, model: Learner, saved: list[Any] | None = None) -> None:
        self._model = model
        self._check = _condition(until, model)
        self.text = until if isinstance(until, str) else "a function"
        self._interval, self._signature = CHECK_INTERVAL, ""
        self._checked_at = model.n_columns // CHECK_INTERVAL * CHECK_INTERVAL
        if isinstance(until, numbers.Integral):
            self._interval, self.text = int(until), f"{until:,} columns without a change"
            self._checked_at, self._signature = saved or (model.n_columns, _signature(model))
        self.is_met = False
        # Number of columns of a pass, once it was ended.
        self._n_columns: int | None = None

    @property
    def state(self) -> list[Any]:
        """Number of columns at the last check, and a digest of the variables in use at it."""
        return [self._checked_at, self._signature]

    def note(self) -> None:
        """Note in the model whether it has stopped because of this condition."""
        phase = self._model._column_phase
        text = self.text if self.is_met else None
        phase.source = phase.source.with_stop(text, phase.n_columns)
        self._model._invalidate()

    def cut(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Yield blocks that end where the condition is checked; stop where it was met.

        The consumer has learnt a block, and called `update`, before it requests the next one. A
        pass that learns nothing, such as one for relatedness, or a further pass, is not checked. A
        pass after one that was ended has as many columns as that one.
        """
        model, position = self._model, 0
        before, learns = model.n_columns, True
        for block in blocks:
            rest: Block | None = block
            while rest is not None:
                width = len(rest.names)
                if self._n_columns is not None:
                    width = self._n_columns - position
                elif learns:
                    width = self._checked_at + self._interval - model.n_columns
                part, rest = split_block(rest, max(1, width))
                yield part
                learns = learns and model.n_columns > before
                position += len(part.names)
                if self.is_met and self._n_columns is None:
                    self._n_columns = position
                if position == self._n_columns:
                    return

    def update(self) -> None:
        """Check the condition if enough columns were learnt since the last check."""
        n_columns = self._model.n_columns
        if self.is_met or n_columns < self._checked_at + self._interval:
            return
        if self._check is None:
            signature = _signature(self._model)
            self.is_met, self._signature = signature == self._signature, signature
            self._checked_at = n_columns
        else:
            self.is_met = bool(self._check())
            self._checked_at = n_columns // self._interval * self._interval


def _condition(until: Any, model: Learner) -> Callable[[], object] | None:
    """Return a function that checks a condition; None for a number of columns."""
    name = type(model).__name__
    if isinstance(until, numbers.Integral) and until is not True and int(until) >= 1:
        if model._used_variables() is None:
            raise ValueError(
                f"Expected until to be a function: every column changes the components of {name}. "
                f"Got: {parameter_repr(until)}.\n"
                "Hint: until=lambda model: model.n_columns >= 10_000."
            )
        return None
    if isinstance(until, str) and until == CERTIFIED:
        if model._uncertifiable_reason is not None:
            raise ValueError(
                f'Expected a learner of k variables and a target for until="{CERTIFIED}". Got: '
                f"{name}, {model._uncertifiable_reason}.\n{_OTHER_CONDITIONS}"
            )
        return model._is_all_certified
    if isinstance(until, str) and until == BUDGET:
        if model._level_left() is None:
            raise ValueError(
                f'Expected AlphaInvesting or OnlineFDR for until="{BUDGET}". Got: {name}, which '
                f"has no error budget.\n{_OTHER_CONDITIONS}"
            )
        return lambda: (model._level_left() or 0.0) < MIN_LEVEL
    if callable(until):
        return lambda: until(model)
    raise ValueError(
        f'Expected until to be "{CERTIFIED}", "{BUDGET}", a number of columns of at least 1, or a '
        f"function of the model. Got: {parameter_repr(until)}."
    )


def _signature(model: Learner) -> str:
    """Return a digest of the names of the variables that results use, in any order."""
    names = sorted(map(repr, model._used_variables() or ()))
    return hashlib.sha256("\n".join(names).encode(errors="surrogatepass")).hexdigest()
