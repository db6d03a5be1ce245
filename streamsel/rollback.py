"""Snapshots of a state in memory: what brings it back to what it was, without a copy of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

Restore = Callable[[], None]


def snapshot(state: Any, names: Iterable[str]) -> Restore:
    """Return what brings some attributes of an object back to what they are now.

    It may be called as often as one likes. Nothing is copied but references, so that a snapshot
    costs a microsecond whatever the size. That is enough for an object that replaces what it holds,
    or adds behind the end of its dicts, lists and tables. Before anything else is changed in place
    it has to be replaced by a copy.
    """
    saved = [(name, getattr(state, name)) for name in names]
    sizes = []
    parts = []
    for _, value in saved:
        kind = type(value)
        if kind is dict or kind is list:
            sizes.append((value, len(value)))
        elif isinstance(value, Rollback):
            parts.append(value.snapshot())

    def restore() -> None:
        for value, size in sizes:
            _cut_back(value, size)
        for name, value in saved:
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

    def snapshot(self) -> Restore:
        """Return what brings the object back to what it is now."""
        return snapshot(self, self.changing)
