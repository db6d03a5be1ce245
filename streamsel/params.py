"""Parameters declared as data, so that every learner refuses a wrong one in the same words."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from typing import Any, NamedTuple


class Whole(NamedTuple):
    """An int not below `low`; None too if `optional`."""

    low: int
    optional: bool = False

    def admits(self, value: Any) -> bool:
        """Whether the value keeps the rule."""
        if value is None:
            return self.optional
        return (
            isinstance(value, numbers.Integral)
            and not isinstance(value, bool)
            and int(value) >= self.low
        )

    def __str__(self) -> str:
        return f"an int in the range [{self.low}, inf){' or None' if self.optional else ''}"


class Real(NamedTuple):
    """A finite number from `low` (not itself, if `open`) to `below`; None too if `optional`."""

    low: float
    open: bool = False
    optional: bool = False
    below: float = math.inf

    def admits(self, value: Any) -> bool:
        """Whether the value keeps the rule."""
        if value is None:
            return self.optional
        if not isinstance(value, numbers.Real) or isinstance(value, bool):
            return False
        number = float(value)
        above = number > self.low if self.open else number >= self.low
        return above and number < self.below

    def __str__(self) -> str:
        bracket = "(" if self.open else "["
        return (
            f"a float in the range {bracket}{self.low}, {self.below})"
            f"{' or None' if self.optional else ''}"
        )


class Jobs(NamedTuple):
    """A number of threads: an int but 0; negative counts from all cores."""

    def admits(self, value: Any) -> bool:
        """Whether the value keeps the rule."""
        return isinstance(value, numbers.Integral) and not isinstance(value, bool) and value != 0

    def __str__(self) -> str:
        return "an int other than 0 (-1 for all cores)"


class Choice(NamedTuple):
    """One of a few strings."""

    options: tuple[str, ...]

    def admits(self, value: Any) -> bool:
        """Whether the value keeps the rule."""
        return isinstance(value, str) and value in self.options

    def __str__(self) -> str:
        return f"one of {', '.join(map(repr, self.options))}"


class Flag(NamedTuple):
    """True or False."""

    def admits(self, value: Any) -> bool:
        """Whether the value keeps the rule."""
        return isinstance(value, bool)

    def __str__(self) -> str:
        return "True or False"


Rule = Whole | Real | Jobs | Choice | Flag


def check(owner: str, rules: Mapping[str, Rule], values: Mapping[str, Any]) -> None:
    """Raise ValueError for the first parameter that its rule does not admit."""
    for name, rule in rules.items():
        if not rule.admits(values[name]):
            raise ValueError(
                f"The {name!r} parameter of {owner} must be {rule}. Got {values[name]!r} instead."
            )
