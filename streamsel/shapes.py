"""Whether what a saved state says can be: kinds, sizes and ranges, before anything goes by it."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

# Beyond it a count is no longer what it is as a float, in which some are taken further.
_MOST = 2**53


class Kind(Protocol):
    """What something in a state must be; its text says so."""

    def admits(self, value: Any) -> bool:
        """Whether the value is of this kind."""


class Count(NamedTuple):
    """An int from `least` on, of what can have been counted."""

    least: int = 0

    def admits(self, value: Any) -> bool:
        """Whether the value is of this kind."""
        return type(value) is int and self.least <= value <= _MOST

    def __str__(self) -> str:
        return f"an int from {self.least} on"


class Number(NamedTuple):
    """A finite float, or an int that stands for one, from `least` on."""

    least: float = -math.inf

    def admits(self, value: Any) -> bool:
        """Whether the value is of this kind."""
        return type(value) in (int, float) and self.least <= value and abs(value) < math.inf

    def __str__(self) -> str:
        return "a finite number" + ("" if self.least == -math.inf else f" from {self.least:g} on")


class ListOf(NamedTuple):
    """A list of so many values of a kind."""

    size: int
    each: Kind

    def admits(self, value: Any) -> bool:
        """Whether the value is of this kind."""
        return type(value) is list and len(value) == self.size and all(map(self.each.admits, value))

    def __str__(self) -> str:
        return f"a list of {self.size}, each {self.each}"


class Flag(NamedTuple):
    """True or False."""

    def admits(self, value: Any) -> bool:
        """Whether the value is of this kind."""
        return type(value) is bool

    def __str__(self) -> str:
        return "True or False"


class Text(NamedTuple):
    """A text."""

    def admits(self, value: Any) -> bool:
        """Whether the value is of this kind."""
        return type(value) is str

    def __str__(self) -> str:
        return "a text"


class Names(NamedTuple):
    """A list of distinct names; if there are any, `among` those held."""

    among: Any = None

    def admits(self, value: Any) -> bool:
        """Whether the value is of this kind."""
        if type(value) is not list:
            return False
        try:
            distinct = {*value}
        except TypeError:  # of what cannot be hashed
            return False
        plain = set(map(type, distinct)) <= {str, int}
        if len(distinct) < len(value) or not (plain or all(name == name for name in distinct)):  # noqa: PLR0124
            return False
        return self.among is None or bool(self.among.keys() >= distinct)

    def __str__(self) -> str:
        return f"a list of distinct names{'' if self.among is None else ' of variables held'}"


class Array(NamedTuple):
    """An array of one type and shape, from `least` on and below `below`."""

    shape: tuple[int, ...]
    dtype: type = np.float64
    least: float = -math.inf
    below: float = math.inf

    def admits(self, value: Any) -> bool:
        """Whether the value is of this kind."""
        if not isinstance(value, np.ndarray) or value.dtype != self.dtype:
            return False
        if value.shape != self.shape:
            return False
        low = self.least > -math.inf and value.size and not value.min() >= self.least
        high = self.below < math.inf and value.size and not value.max() < self.below
        return not low and not high

    def __str__(self) -> str:
        bounds = "" if self.least == -math.inf else f" from {self.least:g} on"
        bounds += "" if self.below == math.inf else f", below {self.below:g}"
        return f"{np.dtype(self.dtype)} of shape {self.shape}{bounds}"


class Maybe(NamedTuple):
    """What another kind is, or None."""

    kind: Kind

    def admits(self, value: Any) -> bool:
        """Whether the value is of this kind."""
        return value is None or self.kind.admits(value)

    def __str__(self) -> str:
        return f"{self.kind}, or None"


def expect(state: Any, **kinds: Kind) -> None:
    """Raise ValueError for what a state lacks, or what is not of the kind that it must be.

    Whatever a file says may have been written by anybody, and compiled loops go where they are
    told: what is an index, a size or a count must be known to be one before it is used.
    """
    if type(state) is not dict:
        raise ValueError(f"Expected a dict of {', '.join(kinds)}. Got: {reprlib.repr(state)}.")
    for name, kind in kinds.items():
        if name not in state:
            raise ValueError(f"Expected {name}: {kind}. Got: nothing of that name.")
        if not kind.admits(state[name]):
            raise ValueError(f"Expected {name}: {kind}. Got: {_shown(state[name])}.")


def expect_shapes(state: dict[str, Any], **shapes: tuple[int, ...]) -> None:
    """Raise ValueError for what is not an array of floats of a shape that fits the others'."""
    expect(state, **{name: Array(shape) for name, shape in shapes.items()})


def expect_finite(state: dict[str, Any]) -> None:
    """Raise ValueError for a number in a state that is not finite: no learner leaves one."""
    for name, value in state.items():
        if isinstance(value, dict):
            expect_finite(value)
        elif isinstance(value, float | np.ndarray) and not np.isfinite(value).all():
            raise ValueError(f"Expected finite numbers in {name}. Got: others.")


def rows_of(state: Mapping[str, Any], name: str) -> int:
    """Return the length of an array, or of a list, whatever else it is found to be."""
    value = state.get(name)
    if not isinstance(value, list | np.ndarray) or (
        isinstance(value, np.ndarray) and not value.ndim
    ):
        raise ValueError(f"Expected rows of {name}. Got: {_shown(value)}.")
    return len(value)


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    return reprlib.repr(value)
