"""In-memory snapshots of a state: references that restore it without a copy."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

Restore = Callable[[], None]


Read = Callable[[Any], tuple[Any, ...]]

# Types whose values a snapshot keeps by reference only.
_BY_REFERENCE = frozenset({int, float, bool, str, tuple, type(None), np.ndarray})


def attribute_reader(names: tuple[str, ...]) -> Read:
    """Return a function that reads these attributes of an object."""
    if len(names) < 2:
        return lambda state: tuple(getattr(state, name) for name in names)
    read: Read = operator.attrgetter(*names)
    return read


def snapshot(state: Any, names: tuple[str, ...], read: Read) -> Restore:
    """Return a function that restores some attributes of an object to their present values.

    It may be called repeatedly. Only references are copied, so that a snapshot costs a microsecond
    whatever the size. That suffices for an object that replaces its values, or only appends to its
    dicts, lists and tuples. Anything else must be replaced by a copy before it is changed in place.

    Parameters
    ----------
    state
        The object.
    names, read
        The attributes, and the function that reads them (`attribute_reader`).
    """
    values = read(state)
    sizes = []
    parts = []
    for value in values:
        kind = type(value)
        if kind in _BY_REFERENCE:
            continue
        if kind is dict or kind is list:
            sizes.append((value, len(value)))
        elif isinstance(value, Rollback):
            parts.append(value.snapshot())

    def restore() -> None:
        for value, size in sizes:
            _truncate(value, size)
        for name, value in zip(names, values, strict=True):
            setattr(state, name, value)
        for part in parts:
            part()

    return restore


def _truncate(value: dict[Any, Any] | list[Any], size: int) -> None:
    """Truncate a dict or a list to its first `size` items."""
    if isinstance(value, list):
        del value[size:]
        return
    while len(value) > size:
        value.popitem()


class Rollback:
    """An object that `snapshot` can restore; it overrides `snapshot` if that does not suffice.

    Attributes
    ----------
    changing
        The attributes that change. They are listed because `vars(object)` makes later attribute
        access slower in Python.
    """

    changing: ClassVar[tuple[str, ...]]
    _read: ClassVar[Read]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if hasattr(cls, "changing"):
            cls._read = staticmethod(attribute_reader(cls.changing))

    def snapshot(self) -> Restore:
        """Return a function that restores the object's present state."""
        return snapshot(self, self.changing, type(self)._read)
