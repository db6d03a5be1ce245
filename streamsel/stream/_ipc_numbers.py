"""Columns of numbers of Arrow IPC files, read from the bytes of the file.

Arrow makes some objects for every column, which takes longer than to read a column of numbers
without nulls: that is a buffer at a known offset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel._utils.optional import import_pyarrow
from streamsel.stream._blocks import BLOCK_DTYPES
from streamsel.stream._ipc_layout import MAX_RATIO, IpcLayout

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

# Names of the codecs in the format.
_CODECS = ("lz4", "zstd")
# A compressed buffer begins with its size, or with -1 if it is stored as it is.
_SIZE = 8


class NumberColumns:
    """Columns of one numeric type, without nulls, in one record batch.

    Parameters
    ----------
    data
        The bytes of the file.
    dtype
        The type.
    n_rows
        Number of rows.
    offsets, lengths
        (p,) offset and length of the buffer of each column, inside the file.
    codec
        Name of the codec; None if buffers are not compressed.
    """

    def __init__(
        self,
        data: memoryview,
        dtype: np.dtype[Any],
        n_rows: int,
        offsets: npt.NDArray[np.int64],
        lengths: npt.NDArray[np.int64],
        codec: str | None,
    ) -> None:
        self._data, self.dtype, self.n_rows = data, dtype, n_rows
        self._offsets, self._lengths = offsets, lengths
        self._codec = None if codec is None else import_pyarrow().Codec(codec)

    @property
    def is_compressed(self) -> bool:
        """Whether columns must be decompressed."""
        return self._codec is not None

    def columns(self, fields: Sequence[int]) -> npt.NDArray[Any]:
        """Return the columns at these indices, a view of the file if they adjoin each other."""
        indices, size = np.asarray(fields), self.n_rows * self.dtype.itemsize
        offsets, lengths = self._offsets[indices], self._lengths[indices]
        if self._codec is None and (np.diff(offsets) == size).all():
            start = int(offsets[0])
            count = len(fields) * self.n_rows
            return np.frombuffer(self._data, self.dtype, count, start).reshape(-1, self.n_rows).T
        columns = np.empty((len(fields), self.n_rows), self.dtype)
        parts = zip(columns, offsets.tolist(), lengths.tolist(), strict=True)
        for column, offset, length in parts:
            column[:] = self._column(offset, length)
        return columns.T

    def _column(self, offset: int, length: int) -> npt.NDArray[Any]:
        size = self.n_rows * self.dtype.itemsize
        if self._codec is None:
            return np.frombuffer(self._data, self.dtype, self.n_rows, offset)
        start, stop = offset + _SIZE, offset + length
        declared = int.from_bytes(self._data[offset:start], "little", signed=True)
        if declared == -1 and stop - start >= size:
            return np.frombuffer(self._data, self.dtype, self.n_rows, start)
        if declared != size:
            raise ValueError(f"a column of {size} bytes declares {declared} uncompressed bytes")
        whole = self._codec.decompress(self._data[start:stop], size)
        return np.frombuffer(whole, self.dtype, self.n_rows)


def number_columns(data: memoryview, layout: IpcLayout, schema: Any) -> NumberColumns | None:
    """Return the columns of a file if they are numbers as `NumberColumns` reads them; else None.

    Parameters
    ----------
    data
        The bytes of the file.
    layout
        Its layout, which is valid.
    schema
        Its schema.
    """
    if len(layout.batches) != 1 or layout.is_big_endian or not len(schema):
        return None
    (batch,), p = layout.batches, len(schema)
    first, *others = {arrow_type.id: arrow_type for arrow_type in schema.types}.values()
    types = import_pyarrow().types
    if others or not (types.is_floating(first) or types.is_integer(first)):
        return None
    dtype, n = np.dtype(first.to_pandas_dtype()), batch.n_rows
    nodes, buffers = batch.nodes, batch.buffers
    if dtype not in BLOCK_DTYPES or n < 1 or len(nodes) != p or len(buffers) != 2 * p:
        return None
    validity, values = buffers["length"].reshape(p, 2).T
    if (nodes["length"] != n).any() or nodes["nulls"].any() or validity.any():
        return None
    codec = _CODECS[batch.codec] if batch.is_compressed else None
    # The size of each column before decompression is checked when it is read.
    smallest = int(values.min())
    limit = smallest if codec is None else (smallest - _SIZE) * MAX_RATIO
    if n * dtype.itemsize > limit:
        return None
    return NumberColumns(data, dtype, n, batch.body + buffers["offset"][1::2], values, codec)
