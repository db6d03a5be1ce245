"""Validation of a loaded state: types, sizes and ranges, before they are used."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

# Larger counts are not exact as floats, and some are converted to floats.
_MAX_COUNT = 2**53


class SchemaKind(Protocol):
    """A type of value in a state; its `str` describes it for messages."""

    def admits(self, value: Any) -> bool:
        """Whether the value is valid."""


class CountKind(NamedTuple):
    """An int of at least `minimum`, and at most 2**53."""

    minimum: int = 0

    def admits(self, value: Any) -> bool:
        """Whether the value is valid."""
        return type(value) is int and self.minimum <= value <= _MAX_COUNT

    def __str__(self) -> str:
        return f"an int >= {self.minimum}"


class FloatKind(NamedTuple):
    """A finite float, or an int in its place, of at least `minimum`."""

    minimum: float = -math.inf

    def admits(self, value: Any) -> bool:
        """Whether the value is valid."""
        return type(value) in (int, float) and self.minimum <= value and abs(value) < math.inf

    def __str__(self) -> str:
        return "a finite number" + ("" if self.minimum == -math.inf else f" >= {self.minimum:g}")


class ListKind(NamedTuple):
    """A list of `size` values of one kind."""

    size: int
    each: SchemaKind

    def admits(self, value: Any) -> bool:
        """Whether the value is valid."""
        return type(value) is list and len(value) == self.size and all(map(self.each.admits, value))

    def __str__(self) -> str:
        return f"a list of length {self.size}, each {self.each}"


class BoolKind(NamedTuple):
    """True or False."""

    def admits(self, value: Any) -> bool:
        """Whether the value is valid."""
        return type(value) is bool

    def __str__(self) -> str:
        return "True or False"


class StringKind(NamedTuple):
    """A string."""

    def admits(self, value: Any) -> bool:
        """Whether the value is valid."""
        return type(value) is str

    def __str__(self) -> str:
        return "a string"


class NamesKind(NamedTuple):
    """A list of distinct names; all of them keys of `names`, if given."""

    names: Any = None

    def admits(self, value: Any) -> bool:
        """Whether the value is valid."""
        if type(value) is not list:
            return False
        try:
            distinct = {*value}
        except TypeError:  # not hashable
            return False
        plain = set(map(type, distinct)) <= {str, int}
        if len(distinct) < len(value) or not (plain or all(name == name for name in distinct)):  # noqa: PLR0124
            return False
        return self.names is None or bool(self.names.keys() >= distinct)

    def __str__(self) -> str:
        return f"a list of distinct names{'' if self.names is None else ' of tracked variables'}"


class ArrayKind(NamedTuple):
    """An array of one type and shape, with values in [`minimum`, `below`)."""

    shape: tuple[int, ...]
    dtype: type = np.float64
    minimum: float = -math.inf
    below: float = math.inf

    def admits(self, value: Any) -> bool:
        """Whether the value is valid."""
        if not isinstance(value, np.ndarray) or value.dtype != self.dtype:
            return False
        if value.shape != self.shape:
            return False
        low = self.minimum > -math.inf and value.size and not value.min() >= self.minimum
        high = self.below < math.inf and value.size and not value.max() < self.below
        return not low and not high

    def __str__(self) -> str:
        bounds = "" if self.minimum == -math.inf else f", >= {self.minimum:g}"
        bounds += "" if self.below == math.inf else f", < {self.below:g}"
        return f"{np.dtype(self.dtype)} of shape {self.shape}{bounds}"


class OptionalKind(NamedTuple):
    """A value of another kind, or None."""

    kind: SchemaKind

    def admits(self, value: Any) -> bool:
        """Whether the value is valid."""
        return value is None or self.kind.admits(value)

    def __str__(self) -> str:
        return f"{self.kind}, or None"


def expect(state: Any, **kinds: SchemaKind) -> None:
    """Raise ValueError for an entry of a state that is missing or invalid.

    A file may have been written by anyone, and compiled loops do not check bounds: indices, sizes
    and counts must be validated before they are used.
    """
    if type(state) is not dict:
        raise ValueError(f"Expected a dict of {', '.join(kinds)}. Got: {reprlib.repr(state)}.")
    for name, kind in kinds.items():
        if name not in state:
            raise ValueError(f"Expected {name}: {kind}. Got: no such key.")
        if not kind.admits(state[name]):
            raise ValueError(f"Expected {name}: {kind}. Got: {_shown(state[name])}.")


def expect_shapes(state: dict[str, Any], **shapes: tuple[int, ...]) -> None:
    """Raise ValueError for an entry that is not a float array of the expected shape."""
    expect(state, **{name: ArrayKind(shape) for name, shape in shapes.items()})


def expect_finite(state: dict[str, Any]) -> None:
    """Raise ValueError for a non-finite number in a state: learners never produce one."""
    for name, value in state.items():
        if isinstance(value, dict):
            expect_finite(value)
        elif isinstance(value, float | np.ndarray) and not np.isfinite(value).all():
            raise ValueError(f"Expected finite numbers in {name}. Got: NaN or infinity.")


def length_in(state: Mapping[str, Any], name: str) -> int:
    """Return the length of an array or a list of a state, before it is validated further."""
    value = state.get(name)
    if not isinstance(value, list | np.ndarray) or (
        isinstance(value, np.ndarray) and not value.ndim
    ):
        raise ValueError(f"Expected an array or a list of {name}. Got: {_shown(value)}.")
    return len(value)


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    return reprlib.repr(value)
