"""Columns from iterables of (name, values): generators, lists, items of a dictionary."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

import numpy as np

from streamsel.columns import Block
from streamsel.params import shown
from streamsel.plain import is_many
from streamsel.sparse import expect_whole
from streamsel.stream._base import ColumnStream
from streamsel.stream._blocks import gather, is_sparse


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
    Columns are copied into blocks of about 4 MiB. If an item is invalid or the generator fails,
    the columns before it are yielded first. Column lengths are checked by the learner.

    Examples
    --------
    >>> import numpy as np
    >>> def powers():
    ...     for k in range(1, 4):
    ...         yield f"x^{k}", np.array([1.0, 2.0, 3.0]) ** k
    >>> stream = iter_columns(powers)
    >>> stream.rereadable
    True
    >>> dict(stream)["x^2"]
    array([1., 4., 9.])
    """
    if callable(pairs):
        return ColumnStream(
            lambda: gather(_checked_pairs(_call(pairs))), n_rows=n_rows, n_columns=n_columns
        )
    if not is_many(pairs):
        raise TypeError(f"Expected an iterable of (name, values). Got: {type(pairs).__name__}.")
    return ColumnStream(
        lambda: gather(_checked_pairs(pairs)),
        n_rows=n_rows,
        n_columns=n_columns,
        rereadable=iter(pairs) is not pairs,
    )


def _call(pairs: Callable[[], Any]) -> Iterable[tuple[Hashable, Any]]:
    returned: Iterable[tuple[Hashable, Any]] = pairs()
    if not is_many(returned):
        raise TypeError(
            f"Expected pairs to return an iterable of (name, values). Got: a function that "
            f"returned {shown(returned)}."
        )
    return returned


def _checked_pairs(pairs: Iterable[tuple[Hashable, Any]]) -> Iterator[tuple[Hashable, Any]]:
    """Validate the pairs of a user; yield (name, array) or (name, CSC column)."""
    for position, item in enumerate(pairs):
        if not isinstance(item, tuple) or len(item) != 2 or isinstance(item, Block):
            raise TypeError(
                f"Expected a pair (name, values) as item {position} of the stream. "
                f"Got: {type(item).__name__}."
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
    expect_whole(values)
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
