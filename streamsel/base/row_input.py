"""Read rows, dicts and frames of features, as arrays."""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel._kernels.row_moments import MAX_ABS_VALUE, any_too_large
from streamsel.base.frame_columns import (
    as_frame,
    frame_numbers,
    is_pandas,
    locate_columns,
    numbers_of,
)
from streamsel.base.row_values import as_float, bad_value_error
from streamsel.data.names import bad_name_error, first_invalid_name

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
    elif is_pandas(X) and X.shape[1]:
        names = reader.names_of(X.columns)
        values = frame_numbers(X)
    else:
        frame = as_frame(X)
        if frame is None:
            raise TypeError(
                f"Expected a frame, or an array of shape (n, p). Got: {type(X).__name__}.\n"
                "Hint: learn_one takes a dict of features."
            )
        names = list(frame.columns)
        _expect_names(names)
        values = numbers_of(frame) if names else np.empty((len(frame), 0))
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
        values = np.array([[as_float(j, v) for j, v in enumerate(row)] for row in X])
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
