"""Read frames of rows: their columns by name, as numbers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel._utils.in_memory import is_dask, not_in_memory_error
from streamsel._utils.sparse import as_dense, expect_consistent_sparse
from streamsel.base.row_values import as_float, is_real, not_a_number_error
from streamsel.stream import ColumnStream
from streamsel.stream.inputs import encoded_columns
from streamsel.targets.encoding import is_missing

Floats = NDArray[np.float64]


def as_frame(X: Any) -> Any:
    """Return X as a narwhals DataFrame, or None if narwhals does not support its type."""
    if isinstance(X, np.ndarray):
        return None
    import narwhals.stable.v2 as nw

    frame = X if is_dask(X) else nw.from_native(X, pass_through=True)
    if is_dask(X) or isinstance(frame, nw.LazyFrame):
        raise not_in_memory_error("data", X)
    return frame if isinstance(frame, nw.DataFrame) else None


def locate_columns(frame: Any, names: Sequence[Hashable]) -> tuple[list[int], list[int]]:
    """Return the indices of those names that a frame has, and the positions of their columns."""
    columns = frame.columns
    # Iterating over a pandas Index takes a microsecond per name.
    columns = columns.tolist() if hasattr(columns, "tolist") else columns
    column_index = {name: j for j, name in enumerate(columns)}
    found = [i for i, name in enumerate(names) if name in column_index]
    return found, [column_index[names[i]] for i in found]


def frame_columns(X: Any, names: Sequence[Hashable]) -> tuple[list[int], Any] | None:
    """Return the indices of those names that a frame has, and a frame of these columns.

    The frame is of the same library. None if X is not a frame. The other columns add only
    their names to the cost. If the frame lacks a numeric column that `stream.encode` derives from
    text, categories or dates, it is computed.
    """
    if is_pandas(X) and X.columns.is_unique:
        found, indices = locate_columns(X, names)
        part = X.take(indices, axis=1)
    else:
        frame = as_frame(X)
        if frame is None:
            return None
        found, indices = locate_columns(frame, names)
        part = frame[:, indices].to_native()
    if len(found) == len(names):
        return found, part
    has = {*found}
    encoded = encoded_columns(as_frame(X), [n for i, n in enumerate(names) if i not in has])
    if not encoded:
        return found, part
    found = [i for i, name in enumerate(names) if i in has or name in encoded]
    return found, _with_columns(X, part, [names[i] for i in found], encoded)


def _with_columns(
    X: Any, part: Any, names: Sequence[Hashable], columns: Mapping[Hashable, Any]
) -> Any:
    """Return columns of a frame, and further ones, in the order of the names.

    Parameters
    ----------
    X, part
        The frame, and the part of it that has no further columns yet.
    """
    if is_pandas(part):
        for position, name in enumerate(names):
            if name in columns:
                part.insert(position, name, columns[name])
        return part
    import narwhals.stable.v2 as nw

    # Not `part`, which has no rows if it has no columns.
    frame = nw.from_native(X, eager_only=True)
    series = [
        nw.new_series(str(name), values, backend=frame.implementation)
        for name, values in columns.items()
    ]
    return frame.with_columns(*series).select([str(name) for name in names]).to_native()


def is_pandas(X: Any) -> bool:
    """Whether X is a pandas frame.

    For one with 1,000 columns, narwhals' own checks take longer than learning 100 of its rows.
    """
    from narwhals.dependencies import is_pandas_dataframe

    return is_pandas_dataframe(X)


def frame_numbers(X: Any) -> Floats:
    """Return the columns of a frame as float64, with NaN for null."""
    if is_pandas(X) and _all_numbers(X.dtypes.tolist()):
        values: Floats = X.to_numpy(dtype=np.float64, na_value=np.nan)
        return values
    return numbers_of(as_frame(X))


def numbers_of(frame: Any) -> Floats:
    """Return the columns of a narwhals frame as float64, with NaN for null."""
    from river.utils.dataframe import to_numpy

    # Fast path: narwhals takes longer to read the types than the numbers.
    if _all_numbers(list(getattr(frame.to_native(), "dtypes", ()))):
        return to_numpy(frame)
    dtypes = list(frame.schema.values())
    non_numeric = [not dtype.is_numeric() and str(dtype) != "Boolean" for dtype in dtypes]
    if not any(non_numeric):
        return to_numpy(frame)
    values = np.empty((len(frame), len(non_numeric)))
    for j, name in enumerate(frame.columns):
        if non_numeric[j]:
            # A column of objects may have only numbers and missing values.
            values[:, j] = [as_float(name, value) for value in frame[:, j]]
        else:
            values[:, j] = to_numpy(frame[:, [j]])[:, 0]
    return values


def _all_numbers(dtypes: list[Any]) -> bool:
    """Whether a non-empty list of pandas or polars column types is all numeric."""
    distinct = set(dtypes)
    return bool(distinct) and all(
        dtype.kind in "biuf" if hasattr(dtype, "kind") else dtype.is_numeric() for dtype in distinct
    )


def select_features(X: Any, names: Sequence[Hashable]) -> Floats:
    """Return the columns of these names, in this order, as a float64 array (n, len(names)).

    Parameters
    ----------
    X
        An (n, p) array or sparse matrix, whose columns are named 0 to p - 1, a frame, or a
        ColumnStream.
    names
        The columns to return. A column that a frame lacks is 0, as in a row.

    Raises
    ------
    ValueError
        If an array, a matrix or a stream lacks one of them.
    """
    subframe = frame_columns(X, names)
    if subframe is not None:
        found, part = subframe
        values = np.zeros((len(X), len(names)))
        if found:
            values[:, found] = frame_numbers(part)
        return values
    if isinstance(X, ColumnStream):
        try:
            taken = X.take(names)
        except KeyError as error:
            raise ValueError(
                f"Expected all {len(names)} variables of the model in the stream. {error.args[0]}"
            ) from error
        parts = [taken[name] for name in names]
    elif hasattr(X, "toarray") or isinstance(X, np.ndarray):
        if X.ndim != 2:
            raise ValueError(f"Expected an array of shape (n, p). Got: shape {X.shape}.")
        absent = [
            name
            for name in names
            if not (isinstance(name, int | np.integer) and 0 <= name < X.shape[1])
        ]
        if absent:
            raise ValueError(
                f"Expected the variable {absent[0]!r} of the model. Got: an array, whose "
                f"{X.shape[1]} columns are numbered from 0.\n"
                "Hint: pass a frame, where columns have names."
            )
        # As ints: True is column 1, not a mask.
        indices = [int(name) for name in names]  # type: ignore[call-overload]
        if hasattr(X, "toarray"):
            expect_consistent_sparse(X)
            return np.asarray(X.tocsc()[:, indices].toarray(), dtype=np.float64)
        return np.asarray(X[:, indices], dtype=np.float64)
    else:
        raise TypeError(
            "Expected a frame, an array, a sparse matrix or a ColumnStream. Got: "
            f"{type(X).__name__}.\nHint: transform_one takes a dict of features."
        )
    dense = [np.ravel(as_dense(part)) for part in parts]
    n = X.n_rows if not dense else dense[0].size
    if not dense:
        return np.zeros((n or 0, 0))
    try:
        return np.column_stack(dense).astype(np.float64)
    except (ValueError, TypeError):
        for name, values in zip(names, dense, strict=True):
            _expect_convertible(name, values)
        raise


def _expect_convertible(name: Hashable, values: NDArray[Any]) -> None:
    """Raise ValueError that names the first value of a column that is not a number."""
    for row, value in enumerate(values.tolist()):
        try:
            np.float64(value)
        except (ValueError, TypeError):
            raise not_a_number_error(name, value, row) from None


def refuse_text(frame: Any) -> None:
    """Raise ValueError for a value of a frame that is neither a real number nor missing."""
    frame = as_frame(frame)
    for j, name in enumerate(frame.columns):
        dtype = frame[:, j].dtype
        if dtype.is_numeric() or str(dtype) == "Boolean":
            continue
        for row, value in enumerate(frame[:, j]):
            if not is_missing(value) and not is_real(value):
                raise not_a_number_error(name, value, row)
