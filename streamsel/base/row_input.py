"""Validation and conversion of rows, dicts and frames of features; filling of missing values."""

from __future__ import annotations

import decimal
import numbers
import operator
import struct
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel._kernels.row_moments import MAX_ABS_VALUE, any_too_large
from streamsel._utils.in_memory import is_dask, not_in_memory_error
from streamsel._utils.sparse import as_dense, expect_consistent_sparse
from streamsel.data.names import bad_name_error, first_invalid_name
from streamsel.stream import ColumnStream
from streamsel.stream.inputs import encoded_columns
from streamsel.targets.encoding import is_missing

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
_Pack = Callable[..., None]

_NO_INDICES: Indices = np.empty(0, dtype=np.intp)
_NO_VALUES: Floats = np.empty(0)


class RowReader:
    """Reader of rows and frames as arrays; it caches the names of the previous row.

    Most rows have the names of the previous one. Comparing 1,000 names with them costs a fifth of
    converting their values; looking up each name costs twice as much.
    """

    def __init__(self) -> None:
        self.clear_cache()
        # The column index of the previous pandas frame, and its names.
        self._index: tuple[Any, list[Hashable]] = (None, [])

    def __reduce__(self) -> tuple[type[RowReader], tuple[()]]:
        # A copy has an empty cache.
        return RowReader, ()

    def clear_cache(self) -> None:
        """Clear the cache, since the indices of names have changed."""
        self._names: list[Hashable] | None = None
        # The indices of these names; the packing function for the next such row, and its output.
        self._row: tuple[Indices, _Pack | None, Floats] = (_NO_INDICES, None, _NO_VALUES)

    def _remember(self, names: list[Hashable], indices: Indices) -> None:
        # An exception in between must not leave names with the indices of others.
        self._names = None
        self._row = (indices, None, _NO_VALUES)
        self._names = names

    def indices_of(self, names: list[Hashable], index_of: Mapping[Hashable, int]) -> Indices | None:
        """Return the index of every feature, or None if one is not tracked."""
        if names == self._names:
            return self._row[0]
        try:
            indices = np.fromiter(map(index_of.__getitem__, names), np.intp, len(names))
        except KeyError:
            return None
        self._remember(names, indices)
        return indices

    def read_repeated(self, x: Any) -> tuple[Floats, Indices] | None:
        """Return values and indices of a row with the names of the previous one.

        The values are overwritten by the next row. None for a row with other names, or in another
        order, or with a value that is not a real number.
        """
        previous = self._names
        if previous is None or not isinstance(x, dict) or len(x) != len(previous):
            return None
        indices, pack_into, values = self._row
        if pack_into is None:
            pack: _Pack = struct.Struct(f"{len(x)}d").pack_into
            pack_into, values = pack, np.empty(len(x))
            self._row = (indices, pack_into, values)
        try:
            # Takes a third of the time of np.array; rejects text, which np.fromiter would parse.
            pack_into(values, 0, *x.values())
        except struct.error:
            return None
        names = list(x)
        if names != previous:
            return None
        # Strings that are one object compare faster than equal ones, such as those of a frame.
        self._names = names
        return values, indices

    def names_of(self, columns: Any) -> list[Hashable]:
        """Return the names of a pandas frame's columns; raise ValueError if one is invalid."""
        # An Index is immutable, and a slice of a frame has a view of it.
        index, names = self._index
        if index is None or not columns.is_(index):
            names = columns.tolist()
            _expect_names(names)
            self._index = (columns, names)
        return names


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
    return np.array([_as_float(name, value) for name, value in x.items()], dtype=np.float64)


def _as_float(name: Hashable, value: Any) -> float:
    """Return a value as a float, NaN if missing; raise a TypeError that names it if not numeric."""
    if is_missing(value):
        return np.nan
    if not _is_real(value):
        raise TypeError(
            f"Expected a real number in {name!r}. Got: {value!r}.\n"
            "Hint: select the numbers first, or turn text into numbers: "
            "compose.SelectType(int, float), preprocessing.OneHotEncoder()."
        )
    try:
        return float(value)
    except OverflowError:
        raise bad_value_error(name, np.inf) from None


def _is_real(value: Any) -> bool:
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


def in_canonical_order(names: Iterable[Hashable]) -> list[Hashable]:
    """Return names sorted by type and name, independent of the order of a dict or a frame."""
    names = list(names)
    if len(names) < 2:
        return names
    try:
        return sorted(names, key=lambda name: (type(name).__name__, name))
    except TypeError:
        return sorted(names, key=lambda name: (type(name).__name__, repr(name)))


def read_frame(X: Any) -> tuple[list[Hashable], Floats]:
    """Return the names of a frame's columns and its values, (n, p) float64, NaN where null.

    Raises
    ------
    ValueError, TypeError
        For infinite values, non-numeric or repeated columns, and if X is not a frame or an array.
    """
    names, values = _read_any(X, RowReader())
    refuse_infinite(names, values)
    return names, values


def refuse_infinite(names: Sequence[Hashable], values: Floats) -> None:
    """Raise ValueError if one of the values, (n, p), is infinite or too large."""
    if not (values.flags.c_contiguous or values.flags.f_contiguous):
        values = np.ascontiguousarray(values)
    flat = values.ravel("K").view()
    flat.flags.writeable = False
    if any_too_large(flat):
        row, column = np.argwhere(np.abs(values) > MAX_ABS_VALUE)[0].tolist()
        raise bad_value_error(names[column], values[row, column], row)


def _read_any(X: Any, reader: RowReader) -> tuple[list[Hashable], Floats]:
    """Return the same as `read_frame`, without a check for infinite values."""
    names: list[Hashable]
    if isinstance(X, np.ndarray) and X.ndim == 2:
        names, values = list(range(X.shape[1])), _array_numbers(X)
    elif _is_pandas(X) and X.shape[1]:
        names = reader.names_of(X.columns)
        values = _frame_numbers(X)
    else:
        frame = as_frame(X)
        if frame is None:
            raise TypeError(
                f"Expected a frame, or an array of shape (n, p). Got: {type(X).__name__}.\n"
                "Hint: learn_one takes a dict of features."
            )
        names = list(frame.columns)
        _expect_names(names)
        values = _numbers(frame) if names else np.empty((len(frame), 0))
    return names, values


def _expect_names(names: list[Hashable]) -> None:
    bad = first_invalid_name(names, {})
    if bad is not None:
        raise bad_name_error(names[bad])


def _array_numbers(X: NDArray[Any]) -> Floats:
    """Return an array of numbers as float64."""
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(np.float64), np.nan)
    if X.dtype.kind == "O":
        values = np.array([[_as_float(j, v) for j, v in enumerate(row)] for row in X])
        return values.reshape(X.shape)
    if X.dtype.kind not in "biuf":
        raise TypeError(f"Expected an array of real numbers. Got: dtype {X.dtype}.")
    return np.asarray(X, dtype=np.float64)


def read_frame_with_covariates(
    X: Any, covariates: Sequence[Hashable], reader: RowReader
) -> tuple[list[Hashable], Floats, dict[Hashable, Any] | None]:
    """Read a frame as `read_frame` does, without the covariates; also return {covariate: values}.

    A covariate without a column is 0. Without covariates the last item is None, and values are not
    checked for infinities: the caller detects them from its sums.
    """
    if not covariates:
        return *_read_any(X, reader), None
    frame = as_frame(X)
    if frame is None:
        names, values = read_frame(X)
        column_index = {name: names.index(name) for name in covariates if name in names}
        columns_by_name: dict[Hashable, Any] = {
            name: values[:, j] for name, j in column_index.items()
        }
    else:
        found, columns = locate_columns(frame, covariates)
        column_index = {covariates[i]: j for i, j in zip(found, columns, strict=True)}
        rest = [j for j in range(len(frame.columns)) if j not in columns]
        columns_by_name = {name: frame[:, j].to_native() for name, j in column_index.items()}
        names, values = read_frame(frame[:, rest].to_native())
        values = values if rest else np.empty((len(frame), 0))
    zeros = np.zeros(len(values))
    values_by_name = {name: columns_by_name.get(name, zeros) for name in covariates}
    if frame is not None:
        return names, values, values_by_name
    rest = [j for j in range(len(names)) if j not in column_index.values()]
    return [names[j] for j in rest], values[:, rest], values_by_name


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
    if _is_pandas(X) and X.columns.is_unique:
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
    if _is_pandas(part):
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


def _is_pandas(X: Any) -> bool:
    """Whether X is a pandas frame.

    For one with 1,000 columns, narwhals' own checks take longer than learning 100 of its rows.
    """
    from narwhals.dependencies import is_pandas_dataframe

    return is_pandas_dataframe(X)


def _frame_numbers(X: Any) -> Floats:
    """Return the columns of a frame as float64, with NaN for null."""
    if _is_pandas(X) and _all_numbers(X.dtypes.tolist()):
        values: Floats = X.to_numpy(dtype=np.float64, na_value=np.nan)
        return values
    return _numbers(as_frame(X))


def _numbers(frame: Any) -> Floats:
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
            values[:, j] = [_as_float(name, value) for value in frame[:, j]]
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
            values[:, found] = _frame_numbers(part)
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


def not_a_number_error(name: Hashable, value: Any, row: int) -> ValueError:
    """Return the error for a value of a variable of the model that is not a number."""
    return ValueError(
        f"Expected a real number in {name!r}, row {row}. Got: {value!r:.60}.\n"
        "Hint: replace the value by a number, or by NaN if it is missing."
    )


def refuse_text(frame: Any) -> None:
    """Raise ValueError for a value of a frame that is neither a real number nor missing."""
    frame = as_frame(frame)
    for j, name in enumerate(frame.columns):
        dtype = frame[:, j].dtype
        if dtype.is_numeric() or str(dtype) == "Boolean":
            continue
        for row, value in enumerate(frame[:, j]):
            if not is_missing(value) and not _is_real(value):
                raise not_a_number_error(name, value, row)


# Missing values

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
