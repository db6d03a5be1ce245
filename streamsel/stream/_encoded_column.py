"""Encoding of a column that is not numeric: its kind, its columns of numbers, and their names."""

from __future__ import annotations

import datetime as dt
import decimal
import numbers
import re
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from streamsel.data.chunks import Block
from streamsel.stream._blocks import storable
from streamsel.stream._dates import (
    SUFFIXES,
    date_numbers,
    duration_numbers,
    parse_dates,
    time_numbers,
)
from streamsel.stream._numerals import CellMessage, diagnose_non_numeric
from streamsel.stream._one_hot import one_hot
from streamsel.targets.encoding import is_missing

# The label of a missing value; River's `OneHotEncoder` names the indicator of None so.
_MISSING_LABEL = str(None)
# Kinds of columns that are encoded.
CATEGORIES, DATES, TIMES, DURATIONS = "categories", "dates", "times", "durations"

_NUMBERS_OF: dict[str, Callable[[Sequence[Any]], Mapping[str, npt.NDArray[np.float64]]]] = {
    DATES: date_numbers,
    TIMES: time_numbers,
    DURATIONS: duration_numbers,
}
_TYPES = ((dt.date, DATES), (dt.time, TIMES), (dt.timedelta, DURATIONS))
_NUMBER_TYPES = (numbers.Number, decimal.Decimal, np.bool_)
_LABEL_TYPES = (str, numbers.Real, decimal.Decimal, np.bool_)
_BOOLEAN_LABELS = frozenset(map(str, (False, True, None)))
# The beginning of texts that are dates, times or durations.
_DATE = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}(?!\d)|\d{1,2}:\d\d|-?\d+ days?\b")
# Length of the texts that messages quote.
_QUOTED = 40


class EncodedColumn(NamedTuple):
    """A column as columns of numbers.

    Parameters
    ----------
    kind
        Original kind, such as "dates".
    block
        Its columns of numbers.
    """

    kind: str
    block: Block


class RejectedColumn(NamedTuple):
    """A column that cannot be encoded.

    Parameters
    ----------
    reason, detail
        The reason in one word, as in `clean`, and the detail.
    """

    reason: str
    detail: str


def encode_column(
    name: Hashable, values: npt.NDArray[Any], max_categories: int, *, groups: bool
) -> EncodedColumn | RejectedColumn | None:
    """Encode a column of objects, (n,); return None if these are numbers already.

    Parameters
    ----------
    name, values
        The column.
    max_categories
        Maximum number of categories, and at most half the number of rows.
    groups
        Whether the indicators of a column are a group.
    """
    kind, listed = _kind_of(values.tolist())
    if kind is None or isinstance(kind, RejectedColumn):
        return kind
    if kind in _NUMBERS_OF:
        found = _NUMBERS_OF[kind](listed)
        return EncodedColumn(
            kind, Block([f"{name}_{end}" for end in found], np.array([*found.values()]).T)
        )
    max_texts = min(max_categories, len(listed) // 2)
    text_of = _texts_of(listed, max_texts)
    # The values of categories are few; of others, the reason depends on all.
    why = diagnose_non_numeric(listed if text_of is None else list(text_of))
    if why.reason != "text":
        row = why.position if text_of is None else listed.index(list(text_of)[why.position])
        cell = str(listed[row])[:_QUOTED]
        return RejectedColumn(why.reason, CellMessage(f"{cell!r} in row {row}, {why.detail}", cell))
    if text_of is None:
        quoted = _quoted(next(value for value in listed if value is not None))
        detail = f"more than {max_texts:,} categories in {len(listed):,} rows, such as {quoted}"
        return RejectedColumn("text", detail)
    names, indicators = one_hot(name, list(map(text_of.__getitem__, listed)))
    return EncodedColumn(kind, Block(names, indicators, [name] * len(names) if groups else None))


def holds_numbers(values: npt.NDArray[Any]) -> bool:
    """Return whether objects are numbers, or all missing."""
    return _kind_of(values.tolist())[0] is None


def columns_ending(
    name: Hashable, values: npt.NDArray[Any], ends: Collection[str]
) -> dict[str, npt.NDArray[Any]]:
    """Return the columns of numbers that encode a column, by suffix of their names.

    A value has the same numbers as in any other column of that name, whatever the other values.

    Parameters
    ----------
    name, values
        The column, (n,).
    ends
        Labels, or suffixes of the names of encoded dates.

    Returns
    -------
    Arrays (n,), without those that the column cannot have: every text may be a label, but numbers
    have no labels except those of booleans. A label that does not occur is 0 in every row.

    Raises
    ------
    ValueError
        If the numbers of dates are requested of dates that are written otherwise than in ISO 8601.
    """
    if values.dtype.kind in "biuf":
        if _MISSING_LABEL not in ends and not _BOOLEAN_LABELS.issuperset(ends):
            return {}
        kind, listed = None, values.tolist()
    else:
        kind, listed = _kind_of(storable(values).tolist())
    if isinstance(kind, RejectedColumn):
        return {}
    if kind is None:
        labels = _labels_of_numbers(listed, ends, is_object=values.dtype.kind == "O")
        if labels is None:
            return {}
        listed = labels
    elif kind == CATEGORIES:
        kind, listed = _parsed_dates(name, listed, ends)
    if kind == DATES:
        found = date_numbers(listed, keeps_clock=True)
    elif kind in _NUMBERS_OF:
        found = {**_NUMBERS_OF[kind](listed)}
    else:
        text_of = _texts_of(listed, len(listed)) or {}
        texts = list(map(text_of.__getitem__, listed))
        found = {end: np.array([text == end for text in texts], dtype=np.uint8) for end in ends}
        if all(value is None for value in listed):
            # A missing date is NaN.
            found |= {end: np.full(len(listed), np.nan) for end in SUFFIXES.intersection(ends)}
    return {end: found[end] for end in ends if end in found}


def _labels_of_numbers(
    listed: list[Any], ends: Collection[str], *, is_object: bool
) -> list[bool | None] | None:
    """Return numbers as labels, if they are booleans or all missing; None if they have no labels.

    Text files have booleans as text. Without a value in any row, text is an object column of None
    or, as pandas reads files, a column of NaN: the second is one of numbers unless a missing label
    is requested.
    """
    present = [None if is_missing(value) else value for value in listed]
    if all(value is None for value in present):
        return present if is_object or _MISSING_LABEL in ends else None
    if not _BOOLEAN_LABELS.issuperset(ends) or any(value not in (None, 0, 1) for value in present):
        return None
    return [None if value is None else bool(value) for value in present]


def _parsed_dates(
    name: Hashable, listed: list[Any], ends: Collection[str]
) -> tuple[str, list[Any]]:
    """Return the kind and the values of a column of labels: dates, if their numbers are requested.

    Text files have dates as text.
    """
    first = next(value for value in listed if value is not None)
    suffixes = SUFFIXES.intersection(ends)
    if not suffixes or not isinstance(first, str) or _DATE.match(first) is None:
        return CATEGORIES, listed
    try:
        parsed: list[Any] = [*parse_dates(listed)]
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"Expected dates in column {name!r}, as {name}_{min(suffixes)} is a number of dates. "
            f"Got: text such as {_quoted(first)}.\nHint: convert it to dates, or write them as in "
            "ISO 8601 (2024-03-30)."
        ) from error
    is_time = any(isinstance(value, dt.time) for value in parsed)
    return TIMES if is_time else DATES, parsed


def _kind_of(listed: list[Any]) -> tuple[str | RejectedColumn | None, list[Any]]:
    """Return what a column holds, and its values with None for missing ones.

    None in place of a kind for numbers, and if all values are missing.
    """
    types = set(map(type, listed))
    if types & {float, decimal.Decimal} or any(map(_may_be_missing, types)):
        listed = [None if is_missing(value) else value for value in listed]
        types = set(map(type, listed))
    types.discard(type(None))
    if all(issubclass(one, _NUMBER_TYPES) for one in types):
        return None, listed
    for parent, kind in _TYPES:
        if all(issubclass(one, parent) for one in types):
            return kind, listed
    if not all(issubclass(one, _LABEL_TYPES) for one in types):
        label_types = (*_LABEL_TYPES, type(None))
        row = next(row for row, value in enumerate(listed) if not isinstance(value, label_types))
        what = type(listed[row]).__name__
        detail = f"{_quoted(listed[row])} in row {row}, of type {what}"
        return RejectedColumn("text", detail), listed
    return CATEGORIES, listed


def _may_be_missing(one: type) -> bool:
    return one is not type(None) and one.__name__ in ("NAType", "NaTType")


def _texts_of(listed: list[Any], max_texts: int) -> dict[Any, str] | None:
    """Return the text of each distinct label; None if more than `max_texts` texts are different."""
    text_of: dict[Any, str] = {}
    texts: set[str] = set()
    for value in dict.fromkeys(listed):
        text = text_of[value] = _MISSING_LABEL if value is None else str(value)
        texts.add(text)
        if len(texts) > max_texts:
            return None
    return text_of


def _quoted(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}..."
