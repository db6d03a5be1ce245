"""Rows: the only door by which frames and dicts of features come in."""

from __future__ import annotations

import decimal
import numbers
import operator
import struct
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel._jit.rows import LARGEST, any_beyond
from streamsel.names import first_bad_name, why_bad_name
from streamsel.sparse import expect_whole
from streamsel.stream import ColumnStream
from streamsel.target.encode import is_missing

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
_Pack = Callable[..., None]

_NO_PLACES: Places = np.empty(0, dtype=np.intp)
_NO_VALUES: Floats = np.empty(0)


class RowDoor:
    """Rows and frames to arrays; remembers the names of those before, for most have the same.

    Testing 1,000 names against those of the row before costs a fifth of reading their values;
    looking each of them up costs twice as much.
    """

    def __init__(self) -> None:
        self.forget()
        # The columns of the pandas frame before, and their names.
        self._index: tuple[Any, list[Hashable]] = (None, [])

    def __reduce__(self) -> tuple[type[RowDoor], tuple[()]]:
        # A copy remembers nothing.
        return RowDoor, ()

    def forget(self) -> None:
        """Forget the row before: names have moved."""
        self._names: list[Hashable] | None = None
        # The places of these names, and how values are read when they come again, and where to.
        self._row: tuple[Places, _Pack | None, Floats] = (_NO_PLACES, None, _NO_VALUES)

    def _remember(self, names: list[Hashable], places: Places) -> None:
        # An exception that comes in between leaves no names with the places of others.
        self._names = None
        self._row = (places, None, _NO_VALUES)
        self._names = names

    def places(self, names: list[Hashable], slots: Mapping[Hashable, int]) -> Places | None:
        """Return the place of every feature, or None if one is not held."""
        if names == self._names:
            return self._row[0]
        try:
            places = np.fromiter(map(slots.__getitem__, names), np.intp, len(names))
        except KeyError:
            return None
        self._remember(names, places)
        return places

    def again(self, x: Any) -> tuple[Floats, Places] | None:
        """Return the values, until the next row, and places of a row with the names of the last.

        None for a row of other names, or in another order, and for what is not all real numbers.
        """
        before = self._names
        if before is None or not isinstance(x, dict) or len(x) != len(before):
            return None
        places, pack_into, values = self._row
        if pack_into is None:
            pack: _Pack = struct.Struct(f"{len(x)}d").pack_into
            pack_into, values = pack, np.empty(len(x))
            self._row = (places, pack_into, values)
        try:
            # A third of the time of np.array; and it refuses text, which np.fromiter would parse.
            pack_into(values, 0, *x.values())
        except struct.error:
            return None
        names = list(x)
        if names != before:
            return None
        # The very same strings are compared faster than equal ones, of a frame, say.
        self._names = names
        return values, places

    def names_of(self, columns: Any) -> list[Hashable]:
        """Return the names of a pandas frame's columns; raise ValueError if they cannot be that."""
        # Columns never change, and a part of a frame has a view of them.
        index, names = self._index
        if index is None or not columns.is_(index):
            names = columns.tolist()
            _expect_names(names)
            self._index = (columns, names)
        return names


def read_some(x: Mapping[Hashable, Any], names: Iterable[Hashable]) -> Floats:
    """Return the values of some features of a row, 0 for one that it lacks."""
    names = list(names)
    # What is more than a dict may answer for a name that it lacks; one name gives no tuple.
    if type(x) is dict and len(x) >= len(names) > 1:
        values = np.empty(len(names))
        try:
            # A third of the time of asking for one after another.
            found = operator.itemgetter(*names)(x)
            struct.pack_into(f"{len(names)}d", values.data, 0, *found)
        except (KeyError, struct.error):
            pass
        else:
            return values
    if not isinstance(x, Mapping):
        raise no_row(x)
    return read_values({name: x.get(name, 0.0) for name in names})


def no_row(x: Any) -> TypeError:
    """Return the error for what is no row."""
    return TypeError(
        f"Expected a row as a dict of features. Got: {type(x).__name__}.\n"
        "Hint: learn_many takes a frame of rows, learn_columns takes columns."
    )


def read_values(x: Any) -> Floats:
    """Return the values of a row as float64; None becomes NaN.

    Raises
    ------
    TypeError
        For what is no dict of real numbers.
    """
    if not isinstance(x, Mapping):
        raise no_row(x)
    values = np.empty(len(x))
    try:
        struct.pack_into(f"{len(x)}d", values.data, 0, *x.values())
    except struct.error:
        return read_strictly(x)
    return values


def read_strictly(x: Mapping[Hashable, Any]) -> Floats:
    """Return what `read_values` does; refuse what has the makings of a number but is none.

    Ten times slower, it is for rows with names that are new.
    """
    return np.array([_as_float(name, value) for name, value in x.items()], dtype=np.float64)


def _as_float(name: Hashable, value: Any) -> float:
    """Return a value as a float, NaN if it is missing; raise, naming it, if it is no number."""
    if is_missing(value):
        return np.nan
    real = isinstance(value, numbers.Real | decimal.Decimal | np.bool_)
    if not real or isinstance(value, np.timedelta64):
        raise TypeError(
            f"Expected a real number in {name!r}. Got: {value!r}.\n"
            "Hint: select the numbers first, or turn text into numbers: "
            "compose.SelectType(int, float), preprocessing.OneHotEncoder()."
        )
    try:
        return float(value)
    except OverflowError:
        raise why_bad(name, np.inf) from None


def first_bad(values: Floats) -> int | None:
    """Return the place of the first value of a row that is infinite or too large, if any."""
    bad = np.flatnonzero(np.abs(values) > LARGEST)
    return int(bad[0]) if bad.size else None


def why_bad(name: Hashable, value: Any, row: int | None = None) -> ValueError:
    """Return the error for a value that is infinite or too large."""
    where = f"{name!r}" + ("" if row is None else f", row {row}")
    return ValueError(
        f"Expected a finite number, not beyond 1e152, in {where}. Got: {float(value)}.\n"
        "Hint: NaN stands for what was not observed; divide what is so large by its scale."
    )


def in_canonical_order(names: Iterable[Hashable]) -> list[Hashable]:
    """Return names sorted by type and name, whatever order a dict or a frame had them in."""
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
        For infinite values, columns that are not numbers or stand twice, and what is no frame.
    """
    names, values = _read_any(X, RowDoor())
    refuse_infinite(names, values)
    return names, values


def refuse_infinite(names: Sequence[Hashable], values: Floats) -> None:
    """Raise where one of the values, (n, p), is infinite or too large."""
    if not (values.flags.c_contiguous or values.flags.f_contiguous):
        values = np.ascontiguousarray(values)
    flat = values.ravel("K").view()
    flat.flags.writeable = False
    if any_beyond(flat):
        row, column = np.argwhere(np.abs(values) > LARGEST)[0].tolist()
        raise why_bad(names[column], values[row, column], row)


def _read_any(X: Any, door: RowDoor) -> tuple[list[Hashable], Floats]:
    """Return what `read_frame` does, infinite values too."""
    names: list[Hashable]
    if isinstance(X, np.ndarray) and X.ndim == 2:
        names, values = list(range(X.shape[1])), _array_numbers(X)
    elif _is_pandas(X) and X.shape[1]:
        names = door.names_of(X.columns)
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
    bad = first_bad_name(names, {})
    if bad is not None:
        raise why_bad_name(names[bad])


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


def read_beside(
    X: Any, covariates: Sequence[Hashable], door: RowDoor
) -> tuple[list[Hashable], Floats, dict[Hashable, Any] | None]:
    """Return what `read_frame` does of all columns but the covariates, and these: name -> values.

    A covariate that has no column is 0; without covariates there are none of them, but None. Then
    infinite values are returned too: who sums them notices.
    """
    if not covariates:
        return *_read_any(X, door), None
    frame = as_frame(X)
    if frame is None:
        names, values = read_frame(X)
        places = {name: names.index(name) for name in covariates if name in names}
        found: dict[Hashable, Any] = {name: values[:, j] for name, j in places.items()}
    else:
        at, columns = positions(frame, covariates)
        places = {covariates[i]: j for i, j in zip(at, columns, strict=True)}
        rest = [j for j in range(len(frame.columns)) if j not in columns]
        found = {name: frame[:, j].to_native() for name, j in places.items()}
        names, values = read_frame(frame[:, rest].to_native())
        values = values if rest else np.empty((len(frame), 0))
    zeros = np.zeros(len(values))
    beside = {name: found.get(name, zeros) for name in covariates}
    if frame is not None:
        return names, values, beside
    rest = [j for j in range(len(names)) if j not in places.values()]
    return [names[j] for j in rest], values[:, rest], beside


def as_frame(X: Any) -> Any:
    """Return X as a narwhals DataFrame, or None if it is no frame that narwhals knows."""
    if isinstance(X, np.ndarray):
        return None
    import narwhals.stable.v2 as nw

    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise TypeError(
            "Expected a frame in memory. Got: a lazy frame.\nHint: call .collect() on it first."
        )
    return frame if isinstance(frame, nw.DataFrame) else None


def positions(frame: Any, names: Sequence[Hashable]) -> tuple[list[int], list[int]]:
    """Return which of the names a frame has, and where: by position, for pandas has any labels."""
    columns = frame.columns
    # One by one pandas takes a microsecond over a name.
    columns = columns.tolist() if hasattr(columns, "tolist") else columns
    place = {name: j for j, name in enumerate(columns)}
    found = [i for i, name in enumerate(names) if name in place]
    return found, [place[names[i]] for i in found]


def columns_of(X: Any, names: Sequence[Hashable]) -> tuple[list[int], Any] | None:
    """Return which of the names a frame has, and a frame of these columns, of the same library.

    None for what is no frame. The cost does not grow with the other columns, but for their names.
    """
    if _is_pandas(X) and X.columns.is_unique:
        found, places = positions(X, names)
        return found, X.take(places, axis=1)
    frame = as_frame(X)
    if frame is None:
        return None
    found, places = positions(frame, names)
    return found, frame[:, places].to_native()


def _is_pandas(X: Any) -> bool:
    """Whether X is a frame of pandas, which is asked itself.

    What narwhals asks of 1,000 columns of one takes longer than to learn 100 rows of them.
    """
    from narwhals.dependencies import is_pandas_dataframe

    return is_pandas_dataframe(X)


def _frame_numbers(X: Any) -> Floats:
    """Return the columns of a frame as float64; a null becomes NaN."""
    if _is_pandas(X) and _all_numbers(X.dtypes.tolist()):
        values: Floats = X.to_numpy(dtype=np.float64, na_value=np.nan)
        return values
    return _numbers(as_frame(X))


def _numbers(frame: Any) -> Floats:
    """Return the columns of a narwhals frame as float64; a null becomes NaN."""
    from river.utils.dataframe import to_numpy

    # To ask narwhals for one type after another takes longer than to read the numbers.
    if _all_numbers(list(getattr(frame.to_native(), "dtypes", ()))):
        return to_numpy(frame)
    dtypes = list(frame.schema.values())
    odd = [not dtype.is_numeric() and str(dtype) != "Boolean" for dtype in dtypes]
    if not any(odd):
        return to_numpy(frame)
    values = np.empty((len(frame), len(odd)))
    for j, name in enumerate(frame.columns):
        if odd[j]:
            # Objects may all be numbers, or missing.
            values[:, j] = [_as_float(name, value) for value in frame[:, j]]
        else:
            values[:, j] = to_numpy(frame[:, [j]])[:, 0]
    return values


def _all_numbers(dtypes: list[Any]) -> bool:
    """Whether these types of columns, one at least, of pandas or polars, are all of numbers."""
    distinct = set(dtypes)
    return bool(distinct) and all(
        dtype.kind in "biuf" if hasattr(dtype, "kind") else dtype.is_numeric() for dtype in distinct
    )


def gather(X: Any, names: Sequence[Hashable]) -> Floats:
    """Return the columns of these names, in this order, as a float64 array (n, len(names)).

    Parameters
    ----------
    X
        An (n, p) array or sparse matrix, whose columns are named 0 to p - 1, a frame, or a
        ColumnStream.
    names
        The columns wanted. In a frame one that is not there counts as 0, as in a row.

    Raises
    ------
    ValueError
        Where an array, a matrix or a stream lacks one of them.
    """
    held = columns_of(X, names)
    if held is not None:
        found, part = held
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
        # As numbers: a column named True is number 1, and no mask.
        places = [int(name) for name in names]  # type: ignore[call-overload]
        if hasattr(X, "toarray"):
            expect_whole(X)
            return np.asarray(X.tocsc()[:, places].toarray(), dtype=np.float64)
        return np.asarray(X[:, places], dtype=np.float64)
    else:
        raise TypeError(
            "Expected a frame, an array, a sparse matrix or a ColumnStream. Got: "
            f"{type(X).__name__}.\nHint: transform_one takes a dict of features."
        )
    dense = [np.ravel(p.toarray()) if hasattr(p, "toarray") else np.asarray(p) for p in parts]
    n = X.n_rows if not dense else dense[0].size
    return np.column_stack(dense).astype(np.float64) if dense else np.zeros((n or 0, 0))
