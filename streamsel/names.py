"""Validation of variable names: hashable, equal to themselves, and distinct."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from streamsel.params import shown


def first_bad_name(names: Sequence[Hashable], held: Mapping[Hashable, int]) -> int | None:
    """Return the index of the first invalid name, or None if all are valid.

    A name is invalid if it cannot be hashed, is not equal to itself, or occurs earlier in `names`
    or in `held`, the known names.
    """
    if isinstance(names, range):
        if len(held) < len(names):
            indices = [names.index(h) for h in held if type(h) is int and h in names]
            # Known names such as True, 2.0 and NumPy's integers can equal an int of the range.
            others = [h for h in held if type(h) is not int and type(h) is not str]
            reals = [float(h) for h in others if isinstance(h, int | float | np.number | np.bool_)]
            whole = [int(h) for h in reals if h.is_integer()]
            indices += [names.index(h) for h in whole if h in names]
        elif held.keys().isdisjoint(names):
            return None
        else:
            indices = [i for i, name in enumerate(names) if name in held]
        return min(indices, default=None)
    try:
        distinct = set(names)
        # Fast path: str and int, as nearly all names are, equal themselves.
        valid = set(map(type, distinct)) <= {str, int} or all(map(_equals_itself, distinct))
        if valid and len(distinct) == len(names) and held.keys().isdisjoint(names):
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
    """Whether a name is hashable; `isinstance(name, Hashable)` is wrong for a tuple of lists."""
    try:
        hash(name)
    except (TypeError, RecursionError):
        return False
    return True


def _equals_itself(name: Any) -> bool:
    """Whether a name can be looked up: NaN, also in a tuple, is not equal to itself."""
    try:
        if isinstance(name, tuple):
            return all(map(_equals_itself, name))
        return bool(name == name)  # noqa: PLR0124
    except (TypeError, RecursionError):  # pandas.NA has no truth value
        return False


def why_bad_name(name: Any) -> Exception:
    """Return the error for an invalid or repeated name."""
    if not _can_be_hashed(name):
        return TypeError(
            f"Expected names that can be hashed. Got: {shown(name)}.\n"
            "Hint: tuples are hashable, lists are not."
        )
    if not _equals_itself(name):
        return ValueError(
            f"Expected names that equal themselves. Got: {shown(name)}.\n"
            "Hint: give the column a name; NaN is not equal to itself."
        )
    return ValueError(
        f"Expected a new name for every column. Got: {shown(name)} again.\n"
        "Hint: a variable is learnt once; give every column a name of its own."
    )
