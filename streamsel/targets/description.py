"""One-line description of a target: classes and their sizes, or the range of a quantity."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel._utils.text import count_text

Floats = NDArray[np.float64]

# Number of classes listed by name, and of characters of a name.
_MAX_LISTED, _MAX_LENGTH = 3, 24


def describe_target(
    columns: Floats, names: Sequence[Hashable], *, is_class: bool, kinds: Mapping[Hashable, bool]
) -> str:
    """Return a description of the target.

    Parameters
    ----------
    columns
        (n, c) its columns, without covariates.
    names
        One per column.
    is_class
        Whether the columns are the indicators of one set of labels.
    kinds
        Column of a frame -> whether it had labels.

    Examples
    --------
    >>> y = np.array([0.0, 1.0, 1.0])
    >>> describe_target(np.column_stack([1.0 - y, y]), [0, 1], is_class=True, kinds={})
    '2 classes: 0 (1 row), 1 (2 rows)'
    >>> describe_target(y[:, None], [0], is_class=False, kinds={})
    'numeric, 0 to 1'
    """
    if is_class:
        return of_classes(names, columns.sum(axis=0).astype(int).tolist())
    if kinds or len(names) > 1:
        # Columns of an array have no names.
        return describe_columns(kinds) if kinds else count_text(len(names), "numeric column")
    return f"numeric, {columns.min():.6g} to {columns.max():.6g}"


def of_classes(names: Sequence[Hashable], sizes: Sequence[int] | None = None) -> str:
    """Describe classes, with the number of rows of each if known."""
    text = f"{len(names):,} class" + ("" if len(names) == 1 else "es")
    if len(names) <= _MAX_LISTED:
        rows = [""] * len(names) if sizes is None else [f" ({count_text(n, 'row')})" for n in sizes]
        listed = (_short(name) + n for name, n in zip(names, rows, strict=True))
        return f"{text}: {', '.join(listed)}"
    if sizes is None:
        return text
    low, high = min(sizes), max(sizes)
    rows_each = count_text(low, "row") if low == high else f"{low:,} to {high:,} rows"
    return f"{text}, {rows_each} each"


def describe_columns(kinds: Mapping[Hashable, bool]) -> str:
    """Describe several targets, or a named one: name -> whether it has labels."""
    numeric = [name for name, is_label in kinds.items() if not is_label]
    labels = [name for name, is_label in kinds.items() if is_label]
    parts = [f"{count_text(len(numeric), 'numeric column')} {listed(numeric)}"] if numeric else []
    parts += [f"{count_text(len(labels), 'column')} of labels {listed(labels)}"] if labels else []
    return ", ".join(parts)


def listed(names: Sequence[Hashable]) -> str:
    """Return the first names in parentheses."""
    more = ["…"] * (len(names) > _MAX_LISTED)
    return f"({', '.join([*map(_short, names[:_MAX_LISTED]), *more])})"


def of_survival(event: NDArray[Any]) -> str:
    """Describe survival times; `event` is 1 where the event was observed."""
    return f"survival, {count_text(int(event.sum()), 'event')} in {count_text(event.size, 'row')}"


def of_binary(names: Sequence[Hashable], n_positive: int, n: int) -> str:
    """Describe two classes; the second is modelled."""
    return f"binary, {_short(names[1])} in {n_positive:,} of {count_text(n, 'row')}"


def of_counts(columns: NDArray[Any]) -> str:
    """Describe counts."""
    return f"counts, {columns.min():.6g} to {columns.max():.6g}"


def _short(name: Hashable) -> str:
    text = str(name)
    return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 1]}…"
