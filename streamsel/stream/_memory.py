"""Streams of columns in memory: (name, values) pairs, data frames, and sparse matrices."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from streamsel._utils.in_memory import not_in_memory_error
from streamsel._utils.sparse import expect_consistent_sparse, is_sparse
from streamsel.data.chunks import Block
from streamsel.data.names import check_names
from streamsel.params import parameter_repr
from streamsel.serialization.json_values import is_iterable_collection
from streamsel.stream._arrow import table_stream
from streamsel.stream._blocks import (
    BLOCK_BYTES,
    BLOCK_DTYPES,
    MAX_COLUMNS,
    columns_per_block,
    csc_columns,
    gather_blocks,
    storable,
)
from streamsel.stream._stream import ColumnStream, indexed_stream

if TYPE_CHECKING:
    from collections.abc import Sequence


# Columns of a generator in a block, at most: they may be expensive to make, and a consumer may stop
# after a block.
_MAX_GENERATED = 256


def iter_columns(
    pairs: Iterable[tuple[Hashable, Any]] | Callable[[], Iterable[tuple[Hashable, Any]]],
    n_rows: int | None = None,
    n_columns: int | None = None,
) -> ColumnStream:
    """Stream columns from an iterable of (name, values), such as a generator.

    Parameters
    ----------
    pairs
        Iterable of (name, values), or a function without arguments that returns one. Values are
        an array-like of shape (n,), or a scipy.sparse column (n, 1). A function, a list and any
        other iterable that is not its own iterator can be read more than once; a generator cannot.
    n_rows
        Number of observations, if known.
    n_columns
        Number of columns, if known, for progress bars.

    Raises
    ------
    TypeError
        If `pairs` cannot be iterated; while reading, if an item is not a pair.
    ValueError
        While reading, if the values of a column are not one-dimensional.

    Notes
    -----
    Columns are copied into blocks of at most 256 columns, or about 4 MiB. If an item is invalid or
    the generator fails, the columns before it are yielded first. Column lengths are checked by the
    learner.

    Examples
    --------
    >>> import numpy as np
    >>> def powers():
    ...     for k in range(1, 4):
    ...         yield f"x^{k}", np.array([1.0, 2.0, 3.0]) ** k
    >>> stream = iter_columns(powers)
    >>> stream.reiterable
    True
    >>> dict(stream)["x^2"]
    array([1., 4., 9.])
    """
    if callable(pairs):
        return ColumnStream(
            lambda: gather_blocks(_checked_pairs(_call(pairs)), _MAX_GENERATED),
            n_rows=n_rows,
            n_columns=n_columns,
        )
    if not is_iterable_collection(pairs):
        raise TypeError(f"Expected an iterable of (name, values). Got: {type(pairs).__name__}.")
    return ColumnStream(
        lambda: gather_blocks(_checked_pairs(pairs), _MAX_GENERATED),
        n_rows=n_rows,
        n_columns=n_columns,
        reiterable=iter(pairs) is not pairs,
    )


def _call(pairs: Callable[[], Any]) -> Iterable[tuple[Hashable, Any]]:
    returned: Iterable[tuple[Hashable, Any]] = pairs()
    if not is_iterable_collection(returned):
        raise TypeError(
            f"Expected pairs to return an iterable of (name, values). Got: a function that "
            f"returned {parameter_repr(returned)}."
        )
    return returned


def _checked_pairs(pairs: Iterable[tuple[Hashable, Any]]) -> Iterator[tuple[Hashable, Any]]:
    """Validate the pairs of a user; yield (name, array) or (name, CSC column)."""
    for position, item in enumerate(pairs):
        if not isinstance(item, tuple) or len(item) != 2 or isinstance(item, Block):
            hint = "\nHint: numpy.asarray(X) of rows of numbers." if type(item) is list else ""
            raise TypeError(
                f"Expected a pair (name, values) as item {position} of the stream. "
                f"Got: {type(item).__name__}.{hint}"
            )
        name, values = item
        if isinstance(values, np.ma.MaskedArray):
            values = np.ma.filled(values.astype(np.float64), np.nan)
        if is_sparse(values):
            yield name, _sparse_column(name, values)
            continue
        if type(values) is not np.ndarray:
            try:
                values = np.asarray(values)
            except ValueError as error:
                raise ValueError(
                    f"Expected one value per observation in column {name!r}. Got: {error}."
                ) from error
        if values.ndim != 1:
            raise ValueError(
                f"Expected one-dimensional values in column {name!r}. Got: shape {values.shape}."
            )
        yield name, values


def _sparse_column(name: Hashable, values: Any) -> Any:
    expect_consistent_sparse(values)
    if values.ndim == 1:
        values = values.reshape(-1, 1)
    if values.shape[1] != 1:
        raise ValueError(
            f"Expected a sparse column of shape (n, 1) for {name!r}. Got: shape {values.shape}."
        )
    column = values.tocsc()
    if not column.has_canonical_format:
        column = column.copy()
        column.sum_duplicates()
    return column


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
    are passed on as object columns, which the learner rejects with the column's name; categories
    are labels, also if they are numbers. [`encode`](stream.md#streamsel.stream.encode) turns text,
    categories and dates into columns of numbers, as `learn_columns` does with a frame.

    Examples
    --------
    >>> import polars as pl
    >>> stream = iter_frame(pl.DataFrame({"a": [1.5, None], "b": [True, False]}))
    >>> for name, values in stream:
    ...     print(name, values)
    a [1.5 nan]
    b [1 0]
    """
    import narwhals as nw  # it takes 50 ms to import, which streams of files do not need

    native = nw.to_native(df, pass_through=True)
    if nw.dependencies.is_pyarrow_table(native):
        return table_stream(native)
    frame = eager_frame(native, "df")
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
                yield from gather_blocks(zip(names[a:b], columns, strict=True))
            a = b

    def fetch(positions: list[int]) -> list[Any]:
        return [_convert(frame, j, j + 1, kinds[j])[:, 0] for j in positions]

    return indexed_stream(names, n, read, fetch)


def eager_frame(native: Any, what: str) -> Any:
    """Return a frame for narwhals, or any other object as it is; TypeError if it is lazy."""
    import narwhals as nw

    frame = nw.from_native(native, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise not_in_memory_error(f"a frame {what}", native)
    return frame


def is_frame(X: Any) -> bool:
    """Return whether narwhals supports X as a data frame, eager or lazy."""
    import narwhals as nw

    native = nw.to_native(X, pass_through=True)
    return isinstance(nw.from_native(native, pass_through=True), (nw.DataFrame, nw.LazyFrame))


def columns_of_objects(df: Any) -> Any:
    """Return the columns of a frame that are not numeric by dtype, as a frame; None if lazy."""
    import narwhals as nw

    frame = nw.from_native(nw.to_native(df, pass_through=True))
    if not isinstance(frame, nw.DataFrame):
        return None
    indices = [j for j, kind in enumerate(_column_kinds(frame)) if kind.dtype is None]
    return frame[:, indices].to_native()


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
    import narwhals as nw

    if dtype == nw.Boolean:
        return _Kind(np.dtype(np.uint8))
    if not dtype.is_numeric():
        return _Kind(None)
    if dtype.is_decimal() or dtype in (nw.Int128, nw.UInt128):
        return _Kind(np.dtype(np.float64), cast=True)
    found = np.dtype(str(dtype).lower())
    return _Kind(found if found in BLOCK_DTYPES else np.dtype(np.float64))


def _convert(frame: Any, a: int, b: int, kind: _Kind) -> npt.NDArray[Any]:
    """Copy the columns a, ..., b - 1 of the frame, all of one kind, to a matrix."""
    import narwhals as nw

    if kind.dtype is None:
        series = frame[:, a]
        column: npt.NDArray[Any] = series.to_numpy()
        if series.dtype in (nw.Categorical, nw.Enum):
            column = _labels(series, column.astype(object))
        if column.ndim > 1:  # numpy has expanded nested values
            column = np.fromiter(series.to_list(), dtype=object, count=len(series))
        return storable(column).reshape(-1, 1)
    if not kind.cast:
        values: npt.NDArray[Any] = frame[:, a:b].to_numpy()
        if values.dtype.kind == "f" and kind.dtype.kind != "f":
            return values.astype(np.float64, order="F")
        if values.dtype.kind in "biuf":
            return np.asfortranarray(storable(values))
        # Booleans with nulls are objects.
    return np.array([frame[:, j].cast(nw.Float64).to_numpy() for j in range(a, b)]).T


def _labels(series: Any, column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return categories as texts: numeric categories are labels, not quantities."""
    accessor: Any = getattr(series.to_native(), "cat", None)
    # Only pandas, and libraries with its interface, have categories that are not texts.
    categories = list(getattr(accessor, "categories", ()))
    if all(isinstance(category, str) for category in categories):
        return column
    # The code of a missing value is -1.
    texts = np.array([*map(str, categories), None], dtype=object)
    labels: npt.NDArray[Any] = texts[accessor.codes.to_numpy()]
    return labels


def iter_sparse(X: Any, names: Sequence[Hashable] | None = None) -> ColumnStream:
    """Stream the columns of a scipy.sparse matrix without making them dense.

    Parameters
    ----------
    X
        Matrix or array of scipy.sparse of shape (n, p), observations by columns, preferably CSC.
        float64, float32, int8 and uint8 keep their dtype, bool becomes uint8, other numbers become
        float64.
    names
        One distinct hashable for each column; 0, 1, ..., p - 1 by default.

    Raises
    ------
    TypeError
        If X is not sparse.
    ValueError
        If X is not two-dimensional, or there are not p distinct names.

    Notes
    -----
    The blocks of a CSC matrix are views of its entries. A matrix of another format is converted to
    CSC once, when the function is called; a matrix with repeated or unsorted row indices is copied
    and brought to canonical format. This is checked once per matrix, at the cost of one pass over
    its entries; scipy caches the result.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> stream = iter_sparse(sp.csc_array([[0.0, 2.0], [3.0, 0.0]]), names=["a", "b"])
    >>> for name, column in stream:
    ...     print(name, column.toarray().ravel())
    a [0. 3.]
    b [2. 0.]
    """
    if not is_sparse(X):
        raise TypeError(f"Expected a matrix X of scipy.sparse. Got: {type(X).__name__}.")
    if X.ndim != 2:
        raise ValueError(
            "Expected a two-dimensional matrix, observations by columns. "
            f"Got: {X.ndim} dimensions, shape {X.shape}."
        )
    expect_consistent_sparse(X)
    matrix = X.tocsc()
    if not matrix.has_canonical_format:
        matrix = matrix.copy() if matrix is X else matrix
        matrix.sum_duplicates()
    n, p = matrix.shape
    all_names = check_names(names, p)
    viewable = matrix.dtype in BLOCK_DTYPES or matrix.dtype.kind == "b"
    max_entries = BLOCK_BYTES // 8  # of a converted block

    def part(a: int, b: int) -> Any:
        columns = csc_columns(matrix, a, b)
        if matrix.dtype not in BLOCK_DTYPES:
            columns.data = storable(columns.data)
        return columns

    def read(start: int) -> Iterator[Block]:
        a = start
        while a < p:
            b = min(p, a + MAX_COLUMNS)
            if not viewable:
                ends = matrix.indptr[a + 1 : b + 1] - matrix.indptr[a]
                b = a + max(1, int(np.searchsorted(ends, max_entries, side="right")))
            yield Block(all_names[a:b], part(a, b))
            a = b

    def fetch(positions: list[int]) -> list[Any]:
        return [part(j, j + 1) for j in positions]

    return indexed_stream(all_names, n, read, fetch)
