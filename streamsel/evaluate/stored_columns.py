"""A copy of the columns of a stream in memory, for further passes over them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel._kernels.packing import pack_columns, unpack_columns
from streamsel._utils.sparse import as_dense, is_sparse
from streamsel.data.chunks import Block
from streamsel.stream import ColumnStream

_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


class _PackedColumns(NamedTuple):
    """Columns of small whole numbers, and one other value each.

    Parameters
    ----------
    packed, others
        As in `pack_columns`.
    """

    packed: NDArray[np.int8]
    others: NDArray[Any]

    @property
    def nbytes(self) -> int:
        """Their size in bytes."""
        return self.packed.nbytes + self.others.nbytes

    def columns(self, part: slice) -> NDArray[Any]:
        """Return some of the columns, (n, b)."""
        packed, others = self.packed[part], self.others[part]
        columns = np.empty(packed.shape, others.dtype)
        unpack_columns(packed, others, columns)
        return columns.T


def _stored(values: Any) -> Any:
    """Return a copy of the values of a block, as bytes where they can be restored from these."""
    if is_sparse(values):
        return values.copy()
    if values.dtype in _FLOATS and values.flags.f_contiguous:
        packed = np.empty(values.T.shape, np.int8)
        others = np.empty(values.shape[1], values.dtype)
        if pack_columns(values.T, packed, others):
            return _PackedColumns(packed, others)
    return values.copy(order="F")


def _restored(stored: Any, part: slice = slice(None)) -> Any:
    """Return some columns of the result of `_stored`."""
    return stored.columns(part) if isinstance(stored, _PackedColumns) else stored[:, part]


def _width(stored: Any) -> int:
    is_packed = isinstance(stored, _PackedColumns)
    return len(stored.others) if is_packed else int(stored.shape[1])


def _size(stored: Any) -> int:
    if is_sparse(stored):
        return int(stored.data.nbytes + stored.indices.nbytes + stored.indptr.nbytes)
    return int(stored.nbytes)


def stored_size(block: Block) -> int:
    """Return the bytes that a copy of a block takes."""
    return _size(_stored(block.values))


def first_in_groups(block: Block, seen: set[Hashable]) -> NDArray[np.bool_] | None:
    """Return which columns of a block are not in `seen`, and add them; None without groups.

    Only a column in groups can come several times: once for each of its groups.
    """
    if block.groups is None:
        return None
    is_new = np.zeros(len(block.names), np.bool_)
    for j, name in enumerate(block.names):
        is_new[j] = name not in seen
        seen.add(name)
    return is_new


class StoredColumns:
    """Copy of all columns, unless they take too much memory.

    Columns of small whole numbers, such as allele counts, with at most one other value, such as an
    imputed mean, take a byte per value; other columns take as much as in their blocks.

    Parameters
    ----------
    limit
        Largest size of the copy, in bytes.

    Attributes
    ----------
    n_bytes
        Size of all columns, stored or not, in bytes.
    n_columns
        Number of all columns, stored or not.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._blocks: list[Block] | None = []
        self.n_bytes = self.n_columns = 0

    def record(self, block: Block) -> None:
        """Store a copy of a block, or drop all blocks above the limit."""
        self.n_columns += block.values.shape[1]
        if self._blocks is None:
            self.n_bytes += _size(block.values)
            return
        stored = _stored(block.values)
        self.n_bytes += _size(stored)
        self._blocks.append(Block(list(block.names), stored, block.groups))
        if self.n_bytes > self._limit:
            self._blocks = None

    @property
    def n_stored(self) -> int:
        """The number of stored columns: all of them, or none."""
        return self.n_columns if self._blocks else 0

    @property
    def is_complete(self) -> bool:
        """Whether all columns are stored."""
        return self._blocks is not None

    def blocks(self) -> Iterator[Block]:
        """Yield the columns in their order."""
        for block in self._blocks or ():
            yield block._replace(values=_restored(block.values))

    def pieces(self, size: int) -> Iterator[NDArray[np.float64]]:
        """Yield the columns as dense float64 arrays (n, b) of up to `size` numbers, or a column.

        A column in several groups comes once.
        """
        seen: set[Hashable] = set()
        for block in self._blocks or ():
            stored, is_new = block.values, first_in_groups(block, seen)
            n, p = _restored(stored, slice(0, 0)).shape[0], _width(stored)
            step = max(1, size // max(1, n))
            for a in range(0, p, step):
                piece = np.asarray(as_dense(_restored(stored, slice(a, a + step))), np.float64)
                yield piece if is_new is None else piece[:, is_new[a : a + step]]

    def stream(self) -> ColumnStream | None:
        """Return the columns; None if they are not stored."""
        if not self._blocks:
            return None
        blocks = self._blocks
        positions = {
            name: (i, j) for i, block in enumerate(blocks) for j, name in enumerate(block.names)
        }

        def take(names: Any) -> dict[Hashable, Any]:
            found = {}
            for name in names:
                i, j = positions[name]
                found[name] = np.ravel(as_dense(_restored(blocks[i].values, slice(j, j + 1))))
            return found

        n = _restored(blocks[0].values, slice(0, 0)).shape[0]
        return ColumnStream(self.blocks, n_rows=n, names=list(positions), take=take)
