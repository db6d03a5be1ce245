"""Values of a row that were not observed, filled in."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from streamsel.rows import as_frame, read_frame
from streamsel.target.encode import is_missing

# Returns what replaces a missing value of a variable of this name.
Fill = Callable[[Hashable], float]


def fill_row(row: dict[Hashable, Any], fill: Fill) -> dict[Hashable, Any]:
    """Put numbers in the place of None and NaN; the row is changed, and returned."""
    for name, value in row.items():
        if type(value) is float:
            if value != value:  # noqa: PLR0124 (NaN: a third of the time of math.isnan)
                row[name] = fill(name)
        elif is_missing(value):
            row[name] = fill(name)
    return row


def fill_rows(X: Any, names: Sequence[Hashable] | None, fill: Fill) -> Any:
    """Return rows with numbers in the place of missing values; columns without are left.

    Parameters
    ----------
    X
        A frame, or an array or sparse matrix.
    names
        Of the columns of an array; None where they are numbered from 0.
    fill
        Returns what replaces a missing value.

    Returns
    -------
    Rows of the same kind. A column in which values were missing is of float64; what is no number is
    left.
    """
    frame = as_frame(X)
    if frame is not None:
        return _fill_frame(X, frame, fill)
    if hasattr(X, "toarray"):
        return _fill_stored(X, names, fill)
    if X.dtype.kind not in "fO":
        return X
    X = np.array(X, dtype=np.float64)
    lacking = np.isnan(X)
    for j in np.flatnonzero(lacking.any(axis=0)).tolist():
        X[lacking[:, j], j] = fill(j if names is None else names[j])
    return X


def _fill_frame(X: Any, frame: Any, fill: Fill) -> Any:
    """Return a frame of the same library."""
    replaced = {}
    for j, name in enumerate(frame.columns):
        values = _numbers(frame[:, [j]])
        lacking = None if values is None else np.isnan(values)
        if values is not None and lacking is not None and lacking.any():
            values[lacking] = fill(name)
            replaced[j] = values
    if not replaced:
        return X
    if hasattr(X, "isetitem"):  # pandas, where any object may be a label
        X = X.copy(deep=False)
        for j, values in replaced.items():
            X.isetitem(j, values)
        return X
    import narwhals.stable.v2 as nw

    names, kind = frame.columns, frame.implementation
    series = [nw.new_series(names[j], v, nw.Float64, backend=kind) for j, v in replaced.items()]
    return frame.with_columns(*series).to_native()


def _numbers(column: Any) -> Any:
    """Return the values of a column, NaN where missing; None where it has none, or no numbers."""
    series = column[:, 0]
    if series.dtype.is_integer() and not series.null_count():
        return None
    try:
        return np.array(read_frame(column.to_native())[1][:, 0])
    except (TypeError, ValueError):
        return None


def _fill_stored(X: Any, names: Sequence[Hashable] | None, fill: Fill) -> Any:
    """Return a sparse matrix of the same format."""
    filled = X.tocsc(copy=True)
    for at in np.flatnonzero(np.isnan(filled.data)).tolist():
        j = int(np.searchsorted(filled.indptr, at, side="right")) - 1
        filled.data[at] = fill(j if names is None else names[j])
    return filled.asformat(X.format)
