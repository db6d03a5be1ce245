"""What learns rows beside the moments of the variables, for methods that need more than these."""

from __future__ import annotations

import abc
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, ClassVar, Literal, Self

from streamsel._jit.rows import STEP
from streamsel.held.moments import Moments
from streamsel.held.part import Floats, Part, Places
from streamsel.rollback import Restore

Along = Literal["columns", "rows"]

# More rows than there are.
ENDLESS = 1 << 62


# A function and what it is called with; and some that are called one after the other.
Step = tuple[Callable[..., object], tuple[Any, ...]]
Steps = Sequence[Step]


class Beside(Part):
    """A state that sees every row after the moments have, and may change at fixed rows.

    A row is learnt in steps that cannot fail, of which that of the moments is the first. Each looks
    whether it is its turn, by a number that the moments count up. So code that finds a row half
    learnt calls `learn_one` again: what was not done is done, and nothing is done twice. All that
    can fail comes before: `make_ready` where a row brings something new, and `prepare_one`.
    """

    # What it knows of the variables beyond their moments, where hooks are handed what it holds.
    offers: ClassVar[frozenset[str]] = frozenset()
    # How models can be merged that have learnt rows.
    merges_along: ClassVar[frozenset[Along]] = frozenset({"columns", "rows"})
    # Whether `prepare_one` has to be called before a row, and whether targets are asked for.
    prepares: bool = False
    asks_for_targets: bool = False

    @abc.abstractmethod
    def take_up(self, names: list[Hashable], moments: Moments) -> None:
        """Note variables that come for the first time with the next row; others may have moved."""

    @property
    def takes_gaps(self) -> bool:
        """Whether it is ready for all rows with values that were not observed."""
        return True

    def is_ready_for(self, X: Floats, slots: Places) -> bool:  # noqa: ARG002
        """Whether rows, (b, m), can be learnt without `make_ready`."""
        return True

    def make_ready(self, X: Floats, slots: Places, moments: Moments) -> None:
        """Take up what rows, (b, m), bring for the first time."""

    def prepare_one(
        self, values: Floats, slots: Places, y: Floats, moments: Moments, w: float
    ) -> None:
        """Do what can fail of learning a row, and change nothing that a copy or a file shows."""

    @abc.abstractmethod
    def learn_one(
        self, values: Floats, slots: Places, y: Floats, moments: Moments, w: float
    ) -> None:
        """Learn a row of weight w: values, NaN where not observed, their slots, and targets.

        The moments have learnt it. Nothing is done where it was learnt already.
        """

    @abc.abstractmethod
    def prepare_many(
        self, X: Floats, slots: Places, Y: Floats, moments: Moments, w: Floats | None
    ) -> Steps:
        """Return the steps of learning rows, (b, m), and their targets, (b, c).

        They weigh w, (b,), or 1 each, and are no more than `rows_at_once`. Each step sees whether
        it was done already.
        """

    def rows_at_once(self, width: int) -> int:  # noqa: ARG002
        """Return how many rows, of so many variables and targets, can be learnt at once."""
        return ENDLESS

    def learn_many(
        self, X: Floats, slots: Places, Y: Floats, moments: Moments, w: Floats | None
    ) -> None:
        """Learn rows, (b, m), and their targets, (b, c), as many as `until_refresh` allows.

        The moments have learnt them.
        """
        size = self.rows_at_once(X.shape[1] + Y.shape[1])
        for start in range(0, len(X), size):
            rows = slice(start, start + size)
            moments.counts[STEP] = 0.0
            of_rows = None if w is None else w[rows]
            take(self.prepare_many(X[rows], slots, Y[rows], moments, of_rows))

    def saved(self, slots: Places) -> Restore | None:  # noqa: ARG002
        """Return what undoes a row of these variables; None where `snapshot` is enough.

        Asked before `prepare_one`.
        """
        return None

    def detach(self) -> None:
        """Replace what loops write into by copies, so that a snapshot keeps it as it is."""

    @abc.abstractmethod
    def until_refresh(self, moments: Moments) -> int:
        """Return how many rows may be learnt before `refresh` must be asked, at least 1."""

    def until_due(self, moments: Moments) -> float:
        """Return how many rows may be learnt before there is more to do than to learn them."""
        return self.until_refresh(moments)

    def is_due(self, moments: Moments) -> bool:
        """Whether there is more to do after the next row than to learn it: `refresh_if_due`."""
        return self.until_refresh(moments) <= 1

    @abc.abstractmethod
    def refresh_if_due(self, moments: Moments) -> None:
        """Decide, after as many rows, what is decided then."""

    def expect_possible(self) -> None:
        """Raise ValueError for numbers that no data lead to: a file may hold any."""

    def check(self, moments: Moments) -> None:
        """Refuse what a file says, if it is not about these moments."""

    @abc.abstractmethod
    def protected(self) -> Collection[Hashable]:
        """Return the names that must not be let go."""

    @abc.abstractmethod
    def merging(self, theirs: Self, along: Along) -> None:
        """Note whom to protect, before room is made for the variables that were merged."""

    @abc.abstractmethod
    def merged(self, theirs: Self, along: Along, moments: Moments, others: Moments) -> None:
        """Go on after the moments of the others were merged into those of the variables."""


def take(steps: Steps) -> None:
    """Do what is left of these steps."""
    for step, arguments in steps:
        step(*arguments)


def put(state: Part, moments: Moments, attributes: dict[str, Any]) -> Steps:
    """Return the one step of letting a state have these attributes from here on."""
    return ((_put, (state, moments.counts, attributes)),)


def _put(state: Part, counts: Floats, attributes: dict[str, Any]) -> None:
    if counts[STEP] == 0.0:
        for name, value in attributes.items():
            setattr(state, name, value)
        counts[STEP] = 1.0
