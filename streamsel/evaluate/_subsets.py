"""Some of the rows of a stream of columns."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel.columns import Block
from streamsel.stream import ColumnStream

Rows = NDArray[np.intp]


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
