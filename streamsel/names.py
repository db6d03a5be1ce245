"""Names of variables: whatever can be hashed, equals itself and is not there yet."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from streamsel.params import shown


def first_bad_name(names: Sequence[Hashable], held: Mapping[Hashable, int]) -> int | None:
    """Return the place of the first name that cannot be one, or is one already, if any.

    That is one that cannot be hashed, is not equal to itself, or stands before it or among those
    held.
    """
    if isinstance(names, range):
        if len(held) < len(names):
            places = [names.index(h) for h in held if type(h) is int and h in names]
            # True, 2.0 and NumPy's integers equal an int of the range.
            others = [h for h in held if type(h) is not int and type(h) is not str]
            reals = [float(h) for h in others if isinstance(h, int | float | np.number | np.bool_)]
            whole = [int(h) for h in reals if h.is_integer()]
            places += [names.index(h) for h in whole if h in names]
        elif held.keys().isdisjoint(names):
            return None
        else:
            places = [i for i, name in enumerate(names) if name in held]
        return min(places, default=None)
    try:
        distinct = set(names)
        # Text and whole numbers, as nearly all names are, equal themselves.
        plain = set(map(type, distinct)) <= {str, int} or all(map(_equals_itself, distinct))
        if plain and len(distinct) == len(names) and held.keys().isdisjoint(names):
            return None
    except (TypeError, RecursionError):
        return next(i for i, name in enumerate(names) if not _can_be_hashed(name))
    seen: set[Hashable] = set()
    for i, name in enumerate(names):
        if name in held or name in seen or not _equals_itself(name):
            return i
        seen.add(name)
    return None


def _can_be_hashed(name: Any) -> bool:
    """Whether a name can be one: a tuple of lists looks as if it could."""
    try:
        hash(name)
    except (TypeError, RecursionError):
        return False
    return True


def _equals_itself(name: Any) -> bool:
    """Whether a name can be found again: NaN, in a tuple too, is not equal to itself."""
    try:
        if isinstance(name, tuple):
            return all(map(_equals_itself, name))
        return bool(name == name)  # noqa: PLR0124
    except (TypeError, RecursionError):  # pandas' NA does not tell
        return False


def why_bad_name(name: Any) -> Exception:
    """Return the error for a name that cannot be one, or is one already."""
    if not _can_be_hashed(name):
        return TypeError(
            f"Expected names that can be hashed. Got: {shown(name)}.\n"
            "Hint: tuples can be, lists cannot."
        )
    if not _equals_itself(name):
        return ValueError(
            f"Expected names that equal themselves. Got: {shown(name)}.\n"
            "Hint: name the column that has none; NaN is never found again."
        )
    return ValueError(
        f"Expected a new name for every column. Got: {shown(name)} again.\n"
        "Hint: a variable is learnt once; give the columns names of their own."
    )
