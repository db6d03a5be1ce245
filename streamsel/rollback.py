"""Snapshots of a state in memory: what brings it back to what it was, without a copy of it."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

Restore = Callable[[], None]


Read = Callable[[Any], tuple[Any, ...]]

# Of these a snapshot keeps no more than the reference.
_PLAIN = frozenset({int, float, bool, str, tuple, type(None), np.ndarray})


def reader(names: tuple[str, ...]) -> Read:
    """Return what reads these attributes of an object."""
    if len(names) < 2:
        return lambda state: tuple(getattr(state, name) for name in names)
    read: Read = operator.attrgetter(*names)
    return read


def snapshot(state: Any, names: tuple[str, ...], read: Read) -> Restore:
    """Return what brings some attributes of an object back to what they are now.

    It may be called as often as one likes. Nothing is copied but references, so that a snapshot
    costs a microsecond whatever the size. That is enough for an object that replaces what it holds,
    or adds behind the end of its dicts, lists and tables. Before anything else is changed in place
    it has to be replaced by a copy.

    Parameters
    ----------
    state
        The object.
    names, read
        The attributes, and what reads them (`reader`).
    """
    values = read(state)
    sizes = []
    parts = []
    for value in values:
        kind = type(value)
        if kind in _PLAIN:
            continue
        if kind is dict or kind is list:
            sizes.append((value, len(value)))
        elif isinstance(value, Rollback):
            parts.append(value.snapshot())

    def restore() -> None:
        for value, size in sizes:
            _cut_back(value, size)
        for name, value in zip(names, values, strict=True):
            setattr(state, name, value)
        for part in parts:
            part()

    return restore


def _cut_back(value: dict[Any, Any] | list[Any], size: int) -> None:
    """Drop what was added last, until so many are left."""
    if isinstance(value, list):
        del value[size:]
        return
    while len(value) > size:
        value.popitem()


class Rollback:
    """An object that changes only as `snapshot` allows, or says here what else it needs.

    Attributes
    ----------
    changing
        The attributes that change. They are named, for Python is slower at the attributes of an
        object whose `__dict__` was looked at.
    """

    changing: ClassVar[tuple[str, ...]]
    _read: ClassVar[Read]

    def __init_subclass__(cls, **further: Any) -> None:
        super().__init_subclass__(**further)
        if hasattr(cls, "changing"):
            cls._read = staticmethod(reader(cls.changing))

    def snapshot(self) -> Restore:
        """Return what brings the object back to what it is now."""
        return snapshot(self, self.changing, type(self)._read)
