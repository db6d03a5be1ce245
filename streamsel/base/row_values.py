"""Validate and convert the values of a row."""

from __future__ import annotations

import decimal
import numbers
import operator
import struct
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel._kernels.row_moments import MAX_ABS_VALUE
from streamsel.targets.encoding import is_missing

Floats = NDArray[np.float64]
_Pack = Callable[..., None]

_NO_VALUES: Floats = np.empty(0)


def read_features(x: Mapping[Hashable, Any], names: Iterable[Hashable]) -> Floats:
    """Return the values of some features of a row, 0 for absent ones."""
    names = list(names)
    # A subclass of dict may have defaults; itemgetter of one name returns no tuple.
    if type(x) is dict and len(x) >= len(names) > 1:
        values = np.empty(len(names))
        try:
            # Takes a third of the time of one look-up after another.
            selected = operator.itemgetter(*names)(x)
            struct.pack_into(f"{len(names)}d", values.data, 0, *selected)
        except (KeyError, struct.error):
            pass
        else:
            return values
    if not isinstance(x, Mapping):
        raise not_a_row_error(x)
    return read_values({name: x.get(name, 0.0) for name in names})


def not_a_row_error(x: Any) -> TypeError:
    """Return the error for an invalid type of row."""
    return TypeError(
        f"Expected a row as a dict of features. Got: {type(x).__name__}.\n"
        "Hint: learn_many takes a frame of rows, learn_columns takes columns."
    )


def read_values(x: Any) -> Floats:
    """Return the values of a row as float64, with NaN for None.

    Raises
    ------
    TypeError
        If the row is not a dict of real numbers.
    """
    if not isinstance(x, Mapping):
        raise not_a_row_error(x)
    values = np.empty(len(x))
    try:
        struct.pack_into(f"{len(x)}d", values.data, 0, *x.values())
    except struct.error:
        return read_strictly(x)
    return values


def read_strictly(x: Mapping[Hashable, Any]) -> Floats:
    """Return the same as `read_values`, but reject values that only convert to numbers.

    It is ten times slower, and used for rows with new names.
    """
    return np.array([as_float(name, value) for name, value in x.items()], dtype=np.float64)


def as_float(name: Hashable, value: Any) -> float:
    """Return a value as a float, NaN if missing; raise a TypeError that names it if not numeric."""
    if is_missing(value):
        return np.nan
    if not is_real(value):
        raise TypeError(
            f"Expected a real number in {name!r}. Got: {value!r}.\n"
            "Hint: select the numbers first, or turn text into numbers: "
            "compose.SelectType(int, float), preprocessing.OneHotEncoder()."
        )
    try:
        return float(value)
    except OverflowError:
        raise bad_value_error(name, np.inf) from None


def is_real(value: Any) -> bool:
    """Return whether a value is a real number or a boolean."""
    is_number = isinstance(value, numbers.Real | decimal.Decimal | np.bool_)
    return is_number and not isinstance(value, np.timedelta64)


def first_bad_value(values: Floats) -> int | None:
    """Return the index of the first infinite or too large value of a row, or None."""
    bad = np.flatnonzero(np.abs(values) > MAX_ABS_VALUE)
    return int(bad[0]) if bad.size else None


def bad_value_error(name: Hashable, value: Any, row: int | None = None) -> ValueError:
    """Return the error for an infinite or too large value."""
    where = f"{name!r}" + ("" if row is None else f", row {row}")
    return ValueError(
        f"Expected a finite number of at most 1e152 in {where}. Got: {float(value)}.\n"
        "Hint: use NaN for missing values; rescale variables with such large values."
    )


def not_a_number_error(name: Hashable, value: Any, row: int) -> ValueError:
    """Return the error for a value of a variable of the model that is not a number."""
    return ValueError(
        f"Expected a real number in {name!r}, row {row}. Got: {value!r:.60}.\n"
        "Hint: replace the value by a number, or by NaN if it is missing."
    )
