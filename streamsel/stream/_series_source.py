"""Series in memory: long frames with an identifier and a time, arrays, and lists of arrays."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from streamsel._utils.text import spelling_hint
from streamsel.serialization.json_values import as_array
from streamsel.stream._memory import eager_frame
from streamsel.stream._series_batch import Floats

Starts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SeriesSource:
    """Series of one or more value columns.

    Attributes
    ----------
    columns
        Names of the value columns.
    n
        Number of series.
    n_observations
        Largest number of observations of a value column.
    read
        Returns the observations of all series of the value column with this index, one series after
        another, and (n + 1,) where they start.
    row_metadata
        The identifiers of the series, by the name of their column.
    """

    columns: list[str]
    n: int
    n_observations: int
    read: Callable[[int], tuple[Floats, Starts]]
    row_metadata: Mapping[str, Any] = field(default_factory=dict)


def open_series(
    series: Any, id_column: Hashable, time_column: Hashable, values: Sequence[Hashable] | None
) -> SeriesSource:
    """Return the series in a long frame, an array, or a list of arrays."""
    if isinstance(series, (np.ndarray, list, tuple)):
        for name, value in (("id", id_column), ("time", time_column)):
            if value is not None:
                raise TypeError(
                    f"Expected {name} only with a frame. Got: {name}={value!r} with series in "
                    f"{'an array' if isinstance(series, np.ndarray) else 'a list'}."
                )
        return _open_arrays(series, values)
    frame = eager_frame(nw.to_native(series, pass_through=True), "of series")
    if not isinstance(frame, nw.DataFrame):
        raise TypeError(
            "Expected series as a long data frame, an array of shape (n, t) or (n, channels, t), "
            f"or a list of arrays. Got: {type(series).__name__}."
        )
    return _open_frame(frame, id_column, time_column, values)


# Frames


def _open_frame(
    frame: nw.DataFrame[Any],
    id_column: Hashable,
    time_column: Hashable,
    values: Sequence[Hashable] | None,
) -> SeriesSource:
    if id_column is None:
        raise TypeError(
            "Expected id, the name of the column that identifies the series. Got: None."
        )
    keys = {"id": id_column} | ({} if time_column is None else {"time": time_column})
    if values is None:
        values = [name for name in frame.columns if name not in keys.values()]
    titles = _distinct_titles(values)
    ids, starts, order = _sorted_series(
        *(_column(frame, title, name).alias(title) for title, name in keys.items())
    )
    columns = [_column(frame, "values", name) for name in values]
    for name, column in zip(values, columns, strict=True):
        if not (column.dtype.is_numeric() or column.dtype == nw.Boolean):
            raise TypeError(
                f"Expected value columns of numbers. Got: column {name!r} of {column.dtype}.\n"
                "Hint: values=[...] lists the columns whose features are computed."
            )

    def read(j: int) -> tuple[Floats, Starts]:
        column = columns[j]
        found = column.cast(nw.Float64).to_numpy()
        found = np.asarray(found if order is None else found[order], dtype=np.float64)
        return _without_missing(found, starts, titles[j], ids)

    return SeriesSource(titles, ids.size, len(frame), read, {str(id_column): ids})


def _column(frame: nw.DataFrame[Any], title: str, name: Hashable) -> nw.Series[Any]:
    """Return a column of the frame, which a parameter names."""
    names: list[Hashable] = list(frame.columns)
    if name not in names:
        hint = spelling_hint(str(name), map(str, names))
        raise ValueError(
            f"Expected {title} to name a column of the frame. Got: {name!r}.\nHint: {hint}"
        )
    return frame[:, names.index(name)]


def _sorted_series(
    *keys: nw.Series[Any],
) -> tuple[npt.NDArray[Any], Starts, npt.NDArray[np.int64] | None]:
    """Return identifiers, where their series start, and the order of the rows by id and time.

    The order is None if the rows are in this order; equal times keep that of the frame.
    """
    for key in keys:
        is_missing = key.is_null().any() or (key.dtype.is_float() and key.is_nan().any())
        if is_missing:
            raise ValueError(f"Expected {key.name} without missing values. Got: some are missing.")
    ids = keys[0]
    if ids.dtype in (nw.Categorical, nw.Enum):  # these may be sorted by their codes
        ids = ids.cast(nw.String)
    table = ids.to_frame().with_columns(*keys[1:]).with_row_index("row")
    order = table.sort(*(key.name for key in keys), "row")["row"].to_numpy().astype(np.int64)
    counts = table.group_by("id").agg(nw.len().alias("count")).sort("id")
    if not len(counts):
        raise ValueError("Expected at least one series. Got: a frame without rows.")
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts["count"].to_numpy(), out=starts[1:])
    is_sorted = bool((order == np.arange(order.size)).all())
    return counts["id"].to_numpy(), starts, None if is_sorted else order


# Arrays


def _open_arrays(series: Any, values: Sequence[Hashable] | None) -> SeriesSource:
    if isinstance(series, np.ndarray) and series.dtype != object:
        if series.ndim not in (2, 3):
            raise ValueError(
                f"Expected series of shape (n, t) or (n, channels, t). Got: shape {series.shape}."
            )
        parts: Any = series
    else:
        parts = [as_array(one, "series") for one in series]
    if len(parts) == 0:
        raise ValueError("Expected at least one series. Got: none.")
    shapes = {one.shape[:-1] for one in parts}
    if len(shapes) != 1 or parts[0].ndim not in (1, 2):
        raise ValueError(
            "Expected series of shape (t,) or (channels, t), with the same channels. "
            f"Got: shapes {', '.join(str(one.shape) for one in parts[:3])}, ..."
        )
    for one in parts:
        if one.dtype.kind not in "biuf":
            raise TypeError(f"Expected series of real numbers. Got: {one.dtype}.")
    is_flat = parts[0].ndim == 1
    n_channels = 1 if is_flat else parts[0].shape[0]
    if values is None:
        values = ["value"] if is_flat else [f"channel_{j}" for j in range(n_channels)]
    titles = _distinct_titles(values)
    if len(titles) != n_channels:
        raise ValueError(
            f"Expected values to name {n_channels} channels. Got: {len(titles)} names."
        )
    starts = np.zeros(len(parts) + 1, dtype=np.int64)
    np.cumsum([one.shape[-1] for one in parts], out=starts[1:])

    def read(j: int) -> tuple[Floats, Starts]:
        if isinstance(parts, np.ndarray):  # a view, if it has one channel
            channel = parts if is_flat else parts[:, j]
            found = np.ascontiguousarray(channel, dtype=np.float64).reshape(-1)
        else:
            channels = [one if is_flat else one[j] for one in parts]
            found = np.concatenate(channels, dtype=np.float64)
        return _without_missing(found, starts, titles[j], np.arange(len(parts)))

    return SeriesSource(titles, len(parts), int(starts[-1]), read)


# Both


def _distinct_titles(values: Sequence[Hashable]) -> list[str]:
    if isinstance(values, str):
        raise TypeError(
            f"Expected values to be a list. Got: {values!r}.\nHint: write [{values!r}]."
        )
    titles = [str(name) for name in values]
    if not titles:
        raise ValueError("Expected at least one value column. Got: none.")
    if len(set(titles)) < len(titles):
        raise ValueError(f"Expected distinct names of value columns. Got: {titles}.")
    return titles


def _without_missing(
    values: Floats, starts: Starts, title: str, ids: npt.NDArray[Any]
) -> tuple[Floats, Starts]:
    """Return the series without their missing observations; refuse infinite ones."""
    is_finite = np.isfinite(values)
    if is_finite.all():
        return values, starts
    is_present = ~np.isnan(values)
    if (is_finite != is_present).any():
        index = int(np.flatnonzero(is_finite != is_present)[0])
        series = ids.tolist()[np.searchsorted(starts, index, side="right") - 1]
        raise ValueError(
            f"Expected finite values in column {title!r}. Got: {values[index]} in "
            f"series {series!r}."
        )
    before = np.zeros(values.size + 1, dtype=np.int64)
    np.cumsum(is_present, out=before[1:])
    return values[is_present], before[starts]
