"""The target of one row: a number, a label, or a mapping of several."""

from __future__ import annotations

import decimal
import math
import numbers
from collections.abc import Hashable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from streamsel._kernels.row_moments import MAX_ABS_VALUE
from streamsel.params import parameter_repr
from streamsel.targets.encoding import is_missing

# The form of a learner without a target.
NO_TARGET = "none"


class Observation(NamedTuple):
    """The target of one row, or of many.

    Parameters
    ----------
    form
        "number", "class" or "several"; `NO_TARGET` without one.
    first
        Target column -> value in the (first) row; zeros may be omitted.
    kinds, given_kinds
        For several targets, and for covariates: name -> whether it has labels, with one column per
        label.
    """

    form: str
    first: Mapping[Hashable, float]
    kinds: Mapping[Hashable, bool] = MappingProxyType({})
    given_kinds: Mapping[Hashable, bool] = MappingProxyType({})


def label_of(value: Any) -> Hashable:
    """Return a label, an int for a whole number; raise an error if missing or unhashable."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if is_missing(value):
        raise missing_target_error(value)
    if not isinstance(value, Hashable):
        raise TypeError(f"Expected a label that can be hashed. Got: {parameter_repr(value)}.")
    return value


def not_integer_error(value: Any) -> TypeError:
    """Return the error for a non-integer where whole numbers are labels."""
    return TypeError(
        "Expected a whole number as the label, as in the columns learnt. Got: "
        f"{parameter_repr(value)}.\n"
        "Hint: the columns were treated as classes; target_type='numeric' treats them as a "
        "quantity."
    )


def number_of(value: Any) -> float:
    """Return a number as a float; raise an error if missing, not finite or not a number."""
    if value is None:
        raise missing_target_error(value)
    if not isinstance(value, numbers.Real | decimal.Decimal | np.bool_):
        raise TypeError(
            f"Expected a number, a label or a dict of targets. Got: {parameter_repr(value)}.\n"
            "Hint: pass several targets of one row as a dict: name -> value."
        )
    try:
        number = float(value)
    except OverflowError:
        raise too_large_target_error("a whole number too large for float64") from None
    if not math.isfinite(number):
        raise missing_target_error(number)
    if abs(number) > MAX_ABS_VALUE:
        raise too_large_target_error(number)
    return number


def too_large_target_error(got: Any) -> ValueError:
    """Return the error for a target that is finite, but whose square is not."""
    return ValueError(
        f"Expected a finite target of at most 1e152. Got: {got}.\n"
        "Hint: rescale the target; relevance does not depend on its scale."
    )


def missing_target_error(value: Any) -> ValueError:
    """Return the error for a target that is missing or not finite."""
    return ValueError(
        f"Expected a finite, non-missing target with every row. Got: {value!r}.\n"
        "Hint: learn rows with a target; only transform rows without one."
    )
