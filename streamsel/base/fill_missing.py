"""Replace missing values of rows by numbers, such as the mean."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel.base.frame_columns import as_frame
from streamsel.base.row_input import read_frame
from streamsel.targets.encoding import is_missing

Floats = NDArray[np.float64]
# Maps the name of a variable to the number that replaces its missing values.
Fill = Callable[[Hashable], float]


def fill_row(row: dict[Hashable, Any], fill: Fill) -> dict[Hashable, Any]:
    """Replace None and NaN in a row by numbers, in place; return the row."""
    for name, value in row.items():
        if type(value) is float:
            if value != value:  # noqa: PLR0124 (NaN: a third of the time of math.isnan)
                row[name] = fill(name)
        elif is_missing(value):
            row[name] = fill(name)
    return row


def fill_rows(X: Any, names: Sequence[Hashable] | None, fill: Fill) -> Any:
    """Return rows whose missing values are replaced by numbers.

    Parameters
    ----------
    X
        A frame, an array or a sparse matrix.
    names
        The names of an array's columns; None if they are numbered from 0.
    fill
        Returns the replacement for a missing value.

    Returns
    -------
    Rows of the same type. A column with missing values becomes float64; columns without them, and
    non-numeric ones, are unchanged.
    """
    frame = as_frame(X)
    if frame is not None:
        return _fill_frame(X, frame, fill)
    if hasattr(X, "toarray"):
        return _fill_stored(X, names, fill)
    if X.dtype.kind not in "fO":
        return X
    X = np.array(X, dtype=np.float64)
    missing = np.isnan(X)
    for j in np.flatnonzero(missing.any(axis=0)).tolist():
        X[missing[:, j], j] = fill(j if names is None else names[j])
    return X


def _fill_frame(X: Any, frame: Any, fill: Fill) -> Any:
    """Fill a frame; return one of the same library."""
    replaced = {}
    for j, name in enumerate(frame.columns):
        values = _column_numbers(frame[:, [j]])
        missing = None if values is None else np.isnan(values)
        if values is not None and missing is not None and missing.any():
            values[missing] = fill(name)
            replaced[j] = values
    if not replaced:
        return X
    if hasattr(X, "isetitem"):  # pandas, whose labels may be any objects
        X = X.copy(deep=False)
        for j, values in replaced.items():
            X.isetitem(j, values)
        return X
    import narwhals.stable.v2 as nw

    names, kind = frame.columns, frame.implementation
    series = [nw.new_series(names[j], v, nw.Float64, backend=kind) for j, v in replaced.items()]
    return frame.with_columns(*series).to_native()


def _column_numbers(column: Any) -> Any:
    """Return a column's values, NaN where missing; None if none is missing or it is not numeric."""
    series = column[:, 0]
    if series.dtype.is_integer() and not series.null_count():
        return None
    try:
        return np.array(read_frame(column.to_native())[1][:, 0])
    except (TypeError, ValueError):
        return None


def _fill_stored(X: Any, names: Sequence[Hashable] | None, fill: Fill) -> Any:
    """Fill a sparse matrix; return one of the same format."""
    filled = X.tocsc(copy=True)
    for position in np.flatnonzero(np.isnan(filled.data)).tolist():
        j = int(np.searchsorted(filled.indptr, position, side="right")) - 1
        filled.data[position] = fill(j if names is None else names[j])
    return filled.asformat(X.format)
