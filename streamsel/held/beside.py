"""What learns rows beside the moments of the variables, for methods that need more than these."""

from __future__ import annotations

import abc
from collections.abc import Collection, Hashable
from typing import ClassVar, Literal, Self

from streamsel.held.moments import Moments
from streamsel.held.part import Floats, Part, Places

Along = Literal["columns", "rows"]


class Beside(Part):
    """A state that sees every row after the moments have, and may change at fixed rows."""

    # What it knows of the variables beyond their moments, where hooks are handed what it holds.
    offers: ClassVar[frozenset[str]] = frozenset()
    # How models can be merged that have learnt rows.
    merges_along: ClassVar[frozenset[Along]] = frozenset({"columns", "rows"})

    @abc.abstractmethod
    def take_up(self, names: list[Hashable], moments: Moments) -> None:
        """Note variables that come for the first time with the next row; others may have moved."""

    @abc.abstractmethod
    def learn_one(
        self, values: Floats, slots: Places, y: Floats, moments: Moments, w: float
    ) -> None:
        """Learn a row of weight w: values, NaN where not observed, their slots, and targets."""

    @abc.abstractmethod
    def learn_many(
        self, X: Floats, slots: Places, Y: Floats, moments: Moments, w: Floats | None
    ) -> None:
        """Learn rows, (b, m), and their targets, (b, c), as many as `until_refresh` allows.

        They weigh w, (b,), or 1 each.
        """

    @abc.abstractmethod
    def until_refresh(self, moments: Moments) -> int:
        """Return how many rows may be learnt before `refresh` must be asked, at least 1."""

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
