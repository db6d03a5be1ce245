"""Some of the rows: of a stream of columns, and of what belongs to its rows."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel.columns import Block
from streamsel.stream import ColumnStream

Rows = NDArray[np.intp]


def picked(values: Any, rows: Rows) -> Any:
    """Return some rows of a target or covariates: arrays, sequences, frames, or a dict of them."""
    if isinstance(values, Mapping):
        return {name: picked(column, rows) for name, column in values.items()}
    if isinstance(values, np.ndarray):
        return values[rows]
    if isinstance(values, list | tuple):
        return [values[i] for i in rows.tolist()]
    import narwhals.stable.v2 as nw

    return nw.from_native(values, allow_series=True, eager_only=True)[rows].to_native()


def rows_of(stream: ColumnStream, rows: Rows) -> ColumnStream:
    """Return the same columns of some rows only; it reads the stream each time that it is read."""

    def take(names: Sequence[Hashable]) -> dict[Hashable, Any]:
        return {name: values[rows] for name, values in stream.take(names).items()}

    def blocks() -> Iterator[Block]:
        for block in stream.blocks():
            yield Block(block.names, Picker(block.values).of(rows))

    return ColumnStream(
        blocks,
        n_rows=len(rows),
        n_columns=stream.n_columns,
        rereadable=stream.rereadable,
        names=stream.names,
        take=take,
    )


class Picker:
    """Picks rows out of the values of a block, again and again.

    Parameters
    ----------
    values
        (n, b), an array or a sparse matrix.
    """

    def __init__(self, values: Any) -> None:
        self._is_sparse = hasattr(values, "tocsr")
        # Rows are picked out of a matrix by rows, made once; columns stay contiguous.
        self._values = values.tocsr() if self._is_sparse else values.T

    def of(self, rows: Rows) -> Any:
        """Return these rows, as columns that are read in place."""
        if self._is_sparse:
            return self._values[rows].tocsc()
        return np.take(self._values, rows, axis=1).T
