"""The target of one row: a number, a label, or several of these under names."""

from __future__ import annotations

import decimal
import math
import numbers
from collections.abc import Hashable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from streamsel._jit.rows import LARGEST
from streamsel.params import shown
from streamsel.target.encode import is_missing

# The form of what learns without a target.
NO_TARGET = "none"


class Observation(NamedTuple):
    """The target of a row, or of many.

    Parameters
    ----------
    form
        "number", "class" or "several"; `NO_TARGET` without one.
    first
        Target column -> value in the (first) row; a row's that is 0 may be left out.
    kinds, given_kinds
        Of several targets, and of covariates: name -> whether it is labels, and has a column a
        label.
    """

    form: str
    first: Mapping[Hashable, float]
    kinds: Mapping[Hashable, bool] = MappingProxyType({})
    given_kinds: Mapping[Hashable, bool] = MappingProxyType({})


def label_of(value: Any) -> Hashable:
    """Return a label, an int for a whole number; refuse what is missing or cannot be hashed."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if is_missing(value):
        raise no_target(value)
    if not isinstance(value, Hashable):
        raise TypeError(f"Expected a label that can be hashed. Got: {shown(value)}.")
    return value


def not_whole(value: Any) -> TypeError:
    """Return the error for a number that is not whole where whole numbers are labels."""
    return TypeError(
        f"Expected a whole number as the label, as in the columns learnt. Got: {shown(value)}.\n"
        "Hint: those were taken as classes; target='numeric' takes them, and rows, as a quantity."
    )


def number_of(value: Any) -> float:
    """Return a number as a float; refuse what is missing, not finite or no number."""
    if value is None:
        raise no_target(value)
    if not isinstance(value, numbers.Real | decimal.Decimal | np.bool_):
        raise TypeError(
            f"Expected a number, a label or a dict of targets. Got: {shown(value)}.\n"
            "Hint: several targets of one row are a dict: name -> value."
        )
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not abs(number) <= LARGEST:
        raise no_target(number)
    return number


def no_target(value: Any) -> ValueError:
    """Return the error for a target that is missing or not finite."""
    return ValueError(
        f"Expected a target, finite and not missing, with every row. Got: {value!r}.\n"
        "Hint: transform rows whose target is not known; learn those whose target is."
    )
