"""Parts of a source: Dask arrays in columns, Dask frames in rows, and files or matrices."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from streamsel.data.names import check_names
from streamsel.distributed._tree import TreeLeaf
from streamsel.stream import ColumnStream, as_stream


def is_dask_array(source: Any) -> bool:
    """Whether this is a dask array."""
    return _of_dask(source) and hasattr(type(source), "numblocks")


def is_dask_frame(source: Any) -> bool:
    """Whether this is a dask frame."""
    return _of_dask(source) and hasattr(type(source), "columns")


def _of_dask(source: Any) -> bool:
    """Whether this is a collection or a Delayed of Dask, without importing Dask.

    An instance of Delayed has every attribute; only its class shows what it is.
    """
    return hasattr(type(source), "__dask_graph__")


@dataclass(frozen=True)
class ColumnLeaf:
    """A block of columns of a dask array: a part whose values are passed to its task.

    Parameters
    ----------
    array
        The unique name of the array.
    start, stop
        The range of its columns.
    names
        The names of the columns.
    n_bytes
        Their total size.
    """

    array: str
    start: int
    stop: int
    names: Sequence[Hashable]
    n_bytes: int

    @property
    def key(self) -> str:
        """The unique key of the part."""
        return f"{self.array}-{self.start}-{self.stop}"

    def __str__(self) -> str:
        return f"columns {self.start:,} to {self.stop - 1:,} of the dask array"

    def open(self, values: Any) -> ColumnStream:
        """Return the columns of a computed block as a stream."""
        return as_stream(values, self.names)


@dataclass(frozen=True)
class RowLeaf:
    """A partition of a dask frame.

    Parameters
    ----------
    frame
        The unique name of the frame.
    number
        The number of the partition, from 0.
    target
        The target column, or columns; None for none.
    """

    frame: str
    number: int
    target: Any

    @property
    def key(self) -> str:
        """The unique key of the part."""
        return f"{self.frame}-{self.number}-{self.target!r}"

    def __str__(self) -> str:
        return f"partition {self.number:,} of the dask frame"

    def split(self, frame: Any) -> tuple[Any, ...]:
        """Return the features, and the target if there is one."""
        if self.target is None:
            return (frame,)
        several = isinstance(self.target, list)
        return frame.drop(columns=self.target if several else [self.target]), frame[self.target]


def array_leaves(array: Any, names: Sequence[Hashable] | None) -> list[TreeLeaf]:
    """Return the blocks of an array, (n, p), which must consist of whole columns."""
    if array.ndim != 2:
        raise ValueError(f"Expected a dask array of shape (n, p). Got: shape {array.shape}.")
    if array.numblocks[0] != 1:
        raise ValueError(
            "Expected chunks of whole columns, (n, b). Got: columns cut into "
            f"{array.numblocks[0]} chunks.\nHint: array.rechunk({{0: -1}})."
        )
    n, p = array.shape
    if array.dtype.kind not in "biufO":
        raise TypeError(f"Expected a dask array of real numbers. Got: dtype {array.dtype}.")
    if math.isnan(n) or math.isnan(p):
        raise ValueError(
            f"Expected a dask array of known shape. Got: {array.shape}.\n"
            "Hint: array.compute_chunk_sizes() finds it."
        )
    column_names = check_names(names, p)
    edges = np.cumsum([0, *array.chunks[1]]).tolist()
    blocks = array.to_delayed()[0]
    return [
        TreeLeaf(
            ColumnLeaf(
                array.name, start, stop, column_names[start:stop], n * size * array.dtype.itemsize
            ),
            block=block,
        )
        for (start, stop), size, block in zip(pairwise(edges), array.chunks[1], blocks, strict=True)
    ]


def frame_leaves(frame: Any, target: Any) -> list[TreeLeaf]:
    """Return the partitions of a frame, some of whose columns are the target."""
    target_names = target if isinstance(target, list) else [] if target is None else [target]
    for name in target_names:
        if not isinstance(name, Hashable) or name not in frame.columns:
            raise ValueError(
                f"Expected y to be a column of the dask frame. Got: {name!r}.\n"
                f"Hint: its columns are {', '.join(map(repr, list(frame.columns)[:5]))}, ..."
            )
    return [
        TreeLeaf(RowLeaf(frame._name, number, target), block=block)
        for number, block in enumerate(frame.to_delayed())
    ]


def split_source(
    source: Any, parts: int | None, names: Sequence[Hashable] | None
) -> list[TreeLeaf]:
    """Return the parts of a source of columns, in order.

    Raises
    ------
    TypeError, ValueError
        For a source without parts, and for an array that is chunked along its rows.
    """
    if is_dask_array(source):
        _expect(parts is None, "parts=None, since the chunks of a dask array are its parts", parts)
        return array_leaves(source, names)
    _expect(names is None, "names=None, since names are for dask arrays", names)
    if isinstance(source, ColumnStream):
        return [TreeLeaf(part) for part in source.split(parts)]
    if isinstance(source, list | tuple) and all(map(_is_part, source)):
        _expect(parts is None, "parts=None, since the source is a list of parts", parts)
        return [TreeLeaf(part) for part in source]
    of_dask = _of_dask(source) or (isinstance(source, list | tuple) and any(map(_of_dask, source)))
    hint = (
        "da.concatenate of da.from_delayed(value, (n, b), dtype), one per block, with axis=1, is "
        "a dask array."
        if of_dask
        else "learn_columns is faster for an array in memory; iter_npy and iter_parquet read files "
        "in parts."
    )
    raise TypeError(
        "Expected a ColumnStream, a list of its parts, a dask array or a dask frame. Got: "
        f"{_type_text(source)}.\nHint: {hint}"
    )


def n_rows_of(source: Any) -> int | None:
    """Return the number of rows of a source of columns; None if it must be read to count them."""
    if is_dask_array(source):
        return int(source.shape[0])
    return source.n_rows if isinstance(source, ColumnStream) else None


def _is_part(value: Any) -> bool:
    return not _of_dask(value) and all(hasattr(value, name) for name in ("open", "key", "n_bytes"))


def _type_text(source: Any) -> str:
    """Return the type of a source; of a list, with the types of its values."""
    name = type(source).__name__
    if not isinstance(source, list | tuple):
        return name
    return f"{name} of {', '.join(sorted({type(value).__name__ for value in source}))}"


def _expect(condition: bool, expected: str, got: Any) -> None:
    if not condition:
        raise ValueError(f"Expected {expected}. Got: {got!r}.")
