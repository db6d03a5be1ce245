"""Streams of the columns of data frames in memory, of any library that narwhals supports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals as nw
import numpy as np
import numpy.typing as npt

from streamsel.columns import Block
from streamsel.stream._arrow import table_stream
from streamsel.stream._base import ColumnStream, indexed_stream
from streamsel.stream._blocks import KEPT_DTYPES, columns_per_block, gather, stored

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator


def iter_frame(df: Any) -> ColumnStream:
    """Stream the columns of an eager data frame in their order.

    Parameters
    ----------
    df
        Frame of pandas, polars, pyarrow, or another library that narwhals supports, with distinct
        column names. float64, float32, int8 and uint8 keep their dtype, booleans become uint8,
        other numbers (also decimals) become float64. Nulls become NaN, in a float column.

    Raises
    ------
    TypeError
        If `df` is not a data frame, or is lazy.
    ValueError
        If two columns have the same name.

    Notes
    -----
    A few megabytes of columns are converted at a time. Text, categories, dates and nested values
    are passed on as object columns, which the learner rejects with the column's name.

    Examples
    --------
    >>> import polars as pl
    >>> stream = iter_frame(pl.DataFrame({"a": [1.5, None], "b": [True, False]}))
    >>> for name, values in stream:
    ...     print(name, values)
    a [1.5 nan]
    b [1 0]
    """
    native = nw.to_native(df, pass_through=True)
    if nw.dependencies.is_pyarrow_table(native):
        return table_stream(native)
    frame = nw.from_native(native, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise TypeError(
            "Expected an eager data frame df. Got: a lazy "
            f"{type(native).__module__.partition('.')[0]}.{type(native).__name__}.\n"
            "Hint: call .collect() first."
        )
    if not isinstance(frame, nw.DataFrame):
        raise TypeError(
            f"Expected a data frame of a library that narwhals supports. Got: {type(df).__name__}."
        )
    names: list[Hashable] = list(frame.columns)
    kinds = _column_kinds(frame)
    n = len(frame)

    def read(start: int) -> Iterator[Block]:
        a = start
        while a < len(names):
            kind = kinds[a]
            width = 1 if kind.dtype is None else columns_per_block(n, kind.dtype.itemsize)
            b = a + 1
            # By identity: for numpy, None equals the dtype float64.
            while b < min(a + width, len(names)) and kinds[b] is kind:
                b += 1
            values = _convert(frame, a, b, kind)
            if kind.dtype is None or kind.dtype == values.dtype:
                yield Block(names[a:b], values)
            else:  # only the integer columns with nulls become float64
                columns = (_convert(frame, j, j + 1, kind)[:, 0] for j in range(a, b))
                yield from gather(zip(names[a:b], columns, strict=True))
            a = b

    def fetch(positions: list[int]) -> list[Any]:
        return [_convert(frame, j, j + 1, kinds[j])[:, 0] for j in positions]

    return indexed_stream(names, n, read, fetch)


def is_frame(X: Any) -> bool:
    """Return whether narwhals supports X as a data frame, eager or lazy."""
    native = nw.to_native(X, pass_through=True)
    return isinstance(nw.from_native(native, pass_through=True), (nw.DataFrame, nw.LazyFrame))


class _Kind(NamedTuple):
    """Conversion of the columns of a dtype.

    Parameters
    ----------
    dtype
        Dtype in a block, None for non-numeric columns.
    cast
        Whether the frame must convert the columns because numpy lacks their dtype.
    """

    dtype: np.dtype[Any] | None
    cast: bool = False


def _column_kinds(frame: Any) -> list[_Kind]:
    """Return the kind of every column.

    narwhals takes some microseconds to translate a dtype, so each distinct one is translated once.
    """
    native = frame.to_native()
    native_dtypes = native.dtypes if hasattr(native, "dtypes") else frame.schema.values()
    kinds: dict[Any, _Kind] = {}
    result = []
    for j, dtype in enumerate(native_dtypes):
        if dtype not in kinds:
            kinds[dtype] = _kind(frame[:, j].dtype)
        result.append(kinds[dtype])
    return result


def _kind(dtype: Any) -> _Kind:
    if dtype == nw.Boolean:
        return _Kind(np.dtype(np.uint8))
    if not dtype.is_numeric():
        return _Kind(None)
    if dtype.is_decimal() or dtype in (nw.Int128, nw.UInt128):
        return _Kind(np.dtype(np.float64), cast=True)
    found = np.dtype(str(dtype).lower())
    return _Kind(found if found in KEPT_DTYPES else np.dtype(np.float64))


def _convert(frame: Any, a: int, b: int, kind: _Kind) -> npt.NDArray[Any]:
    """Copy the columns a, ..., b - 1 of the frame, all of one kind, to a matrix."""
    if kind.dtype is None:
        series = frame[:, a]
        column: npt.NDArray[Any] = series.to_numpy()
        if series.dtype in (nw.Categorical, nw.Enum):
            column = column.astype(object)  # numeric categories are labels, not quantities
        if column.ndim > 1:  # numpy has expanded nested values
            column = np.fromiter(series.to_list(), dtype=object, count=len(series))
        return stored(column).reshape(-1, 1)
    if not kind.cast:
        values: npt.NDArray[Any] = frame[:, a:b].to_numpy()
        if values.dtype.kind == "f" and kind.dtype.kind != "f":
            return values.astype(np.float64, order="F")
        if values.dtype.kind in "biuf":
            return np.asfortranarray(stored(values))
        # Booleans with nulls are objects.
    return np.array([frame[:, j].cast(nw.Float64).to_numpy() for j in range(a, b)]).T
