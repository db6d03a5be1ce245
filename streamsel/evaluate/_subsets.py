"""Subsets of the rows of a stream of columns."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel.columns import Block
from streamsel.stream import ColumnStream

Rows = NDArray[np.intp]


def rows_of(stream: ColumnStream, rows: Rows) -> ColumnStream:
    """Return the same columns of some rows; every pass over them is a pass over the stream."""

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
    """Repeated selection of rows from the values of a block.

    Parameters
    ----------
    values
        (n, b), an array or a sparse matrix.
    """

    def __init__(self, values: Any) -> None:
        self._is_sparse = hasattr(values, "tocsr")
        # Rows are selected from a matrix by rows, which is made once; columns stay contiguous.
        self._values = values.tocsr() if self._is_sparse else values.T

    def of(self, rows: Rows) -> Any:
        """Return these rows, in a layout with contiguous columns."""
        if self._is_sparse:
            return self._values[rows].tocsc()
        return np.take(self._values, rows, axis=1).T
