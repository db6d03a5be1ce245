"""Blocks: their size and dtypes, parts of them, gathering of columns, and reading in a thread."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from streamsel._utils.sparse import is_sparse, value_bytes
from streamsel.data.chunks import Block, group_slices
from streamsel.data.generated import GeneratedColumns

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

# Bytes in a block that is read or copied: large enough to amortise the calls per block, small
# enough to stay in the processor's cache and to be negligible compared with the data.
BLOCK_BYTES = 4 * 2**20
# Columns in any block: views cost no bytes, but their names may.
MAX_COLUMNS = 65_536
# Up to this many columns are removed from a block by views of the columns between, without a copy.
_MAX_CUTS = 16
# Dtypes that learners read in place; other numbers become float64 (bool becomes uint8).
BLOCK_DTYPES = frozenset(np.dtype(name) for name in ("float64", "float32", "int8", "uint8"))


def columns_per_block(n_rows: int, itemsize: int = 8) -> int:
    """Return the number of columns in a block, for entries of `itemsize` bytes."""
    return min(MAX_COLUMNS, max(1, BLOCK_BYTES // max(1, n_rows * itemsize)))


def storable(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Convert an array to a dtype that blocks hold; return it unchanged if it has one.

    Complex numbers are unchanged and non-numeric values become an object array: the learner
    rejects them, with the column's name.
    """
    dtype = values.dtype
    if dtype in BLOCK_DTYPES or dtype.kind in "cO":
        return values
    if dtype.kind == "b":
        return values.view(np.uint8)
    if dtype.kind in "iuf":
        return values.astype(np.float64, order="F")
    if dtype.kind in "mM":
        # Python has no nanoseconds: numpy would convert them to integers.
        return values.astype(f"{dtype.kind}8[us]").astype(object)
    return values.astype(object)


def csc_columns(matrix: Any, start: int, stop: int) -> Any:
    """Return the columns start, ..., stop - 1 of a CSC matrix as views of its data.

    Slicing by scipy would copy the entries.
    """
    from scipy.sparse import csc_array

    indptr = matrix.indptr[start : stop + 1]
    first, last = indptr[0], indptr[-1]
    # The constructor would check 64-bit indices one by one, and copy them.
    part = csc_array((matrix.shape[0], stop - start), dtype=matrix.dtype)
    part.data, part.indices = matrix.data[first:last], matrix.indices[first:last]
    part.indptr = indptr - first
    # scipy caches this flag of the whole matrix; setting it here avoids a check of every entry.
    part.has_canonical_format = matrix.has_canonical_format
    return part


def drop_first(blocks: Iterable[Block], n: int) -> Iterator[Block]:
    """Yield the blocks without the first n columns."""
    for block in blocks:
        width = len(block.names)
        if n == 0:
            yield block
        elif n < width:
            yield part_of(block, n, width)
        n = max(0, n - width)


def part_of(block: Block, start: int, stop: int) -> Block:
    """Return the columns start, ..., stop - 1 of a block as views."""
    names, values, groups = block
    groups = None if groups is None else groups[start:stop]
    if is_sparse(values):
        return Block(names[start:stop], csc_columns(values, start, stop), groups)
    if isinstance(values, GeneratedColumns):
        return Block(names[start:stop], values.part(slice(start, stop)), groups)
    return Block(names[start:stop], values[:, start:stop], groups)


def split_block(block: Block, width: int) -> tuple[Block, Block | None]:
    """Split a block after its first `width` columns, or later after the end of a group.

    Returns
    -------
    The first columns, and the others; None if there are none.
    """
    stop, groups = width, block.groups
    while (
        groups is not None
        and stop < len(groups)
        and groups[stop] is not None
        and groups[stop] == groups[stop - 1]
    ):
        stop += 1
    if stop >= len(block.names):
        return block, None
    return part_of(block, 0, stop), part_of(block, stop, len(block.names))


def drop_columns(block: Block, dropped: Sequence[int]) -> Iterator[Block]:
    """Yield a block without the columns at these ascending indices, in one or more parts."""
    width = len(block.names)
    if not dropped:
        yield block
    elif len(dropped) <= _MAX_CUTS and block.groups is None:
        for start, stop in zip([-1, *dropped], [*dropped, width], strict=True):
            if stop - start > 1:
                yield part_of(block, start + 1, stop)
    else:
        # Copies of bounded size: the block may be a view that is too large to be copied at once.
        kept = np.delete(np.arange(width), dropped)
        step = columns_per_block(block.values.shape[0])
        left = None if block.groups is None else [block.groups[j] for j in kept.tolist()]
        for part in group_slices(kept.size, step, left):
            chosen = kept[part]
            if is_sparse(block.values):
                values = block.values[:, chosen]
            elif isinstance(block.values, GeneratedColumns):
                values = block.values.columns(chosen).T
            else:
                values = block.values.T[chosen].T
            of_part: Sequence[Hashable] | None = None if left is None else left[part]
            yield Block([block.names[j] for j in chosen], values, of_part)


def gather_blocks(
    pairs: Iterable[tuple[Hashable, Any]], max_columns: int = MAX_COLUMNS
) -> Iterator[Block]:
    """Collect single columns into blocks, in their order.

    Parameters
    ----------
    pairs
        (name, values): values an array (n,) of any dtype, or a CSC matrix (n, 1) in canonical
        format.
    max_columns
        Maximum number of columns in a block.

    Notes
    -----
    A change of dtype or of length ends a block. If `pairs` raises, the columns before the error are
    yielded first.
    """
    gathered: _DenseBuilder | _SparseBuilder | None = None
    iterator = iter(pairs)
    while True:
        try:
            name, values = next(iterator)
        except StopIteration:
            break
        except Exception:
            if gathered is not None:
                yield gathered.block()
            raise
        kind = _SparseBuilder if is_sparse(values) else _DenseBuilder
        if kind is _DenseBuilder:
            values = storable(values)
        if gathered is not None and not (type(gathered) is kind and gathered.fits(values)):
            yield gathered.block()
            gathered = None
        if gathered is None:
            gathered = kind(values, max_columns)
        gathered.append(name, values)
    if gathered is not None:
        yield gathered.block()


class _DenseBuilder:
    """Builder of a block of dense columns of one dtype and length."""

    def __init__(self, first: npt.NDArray[Any], max_columns: int) -> None:
        width = 1 if first.dtype == object else columns_per_block(first.size, first.itemsize)
        width = min(width, max_columns)
        self._rows = np.empty((width, first.size), dtype=first.dtype)
        self._names: list[Hashable] = []

    def fits(self, values: npt.NDArray[Any]) -> bool:
        rows = self._rows
        return (
            len(self._names) < len(rows)
            and values.dtype == rows.dtype
            and values.size == rows.shape[1]
        )

    def append(self, name: Hashable, values: npt.NDArray[Any]) -> None:
        self._rows[len(self._names)] = values
        self._names.append(name)

    def block(self) -> Block:
        return Block(self._names, self._rows[: len(self._names)].T)


class _SparseBuilder:
    """Builder of a block of sparse columns of one dtype and length."""

    def __init__(self, first: Any, max_columns: int) -> None:
        self._n_rows, self._max_columns = first.shape[0], max_columns
        self._dtype = first.dtype
        self._columns: list[Any] = []
        self._names: list[Hashable] = []
        self._n_bytes = 0

    def fits(self, values: Any) -> bool:
        return (
            self._n_bytes < BLOCK_BYTES
            and len(self._names) < self._max_columns
            and values.dtype == self._dtype
            and values.shape[0] == self._n_rows
        )

    def append(self, name: Hashable, values: Any) -> None:
        self._names.append(name)
        self._columns.append(values)
        self._n_bytes += value_bytes(values)

    def block(self) -> Block:
        from scipy.sparse import csc_array

        indptr = np.zeros(len(self._columns) + 1, dtype=np.int64)
        np.cumsum([column.data.size for column in self._columns], out=indptr[1:])
        data = storable(np.concatenate([column.data for column in self._columns]))
        indices = np.concatenate([column.indices for column in self._columns])
        matrix = csc_array((data, indices, indptr), shape=(self._n_rows, len(self._columns)))
        matrix.has_canonical_format = True
        return Block(self._names, matrix)


def prefetch(blocks: Iterator[Block]) -> Iterator[Block]:
    """Yield the blocks of a file in order, each read in a thread while the previous one is in use.

    Parameters
    ----------
    blocks
        Iterated over in a separate thread: it must not call user code, and should spend most of
        its time in code that releases Python's global lock.

    Notes
    -----
    One additional block is in memory. An error is raised after the blocks before it. The thread
    ends when the iterator is exhausted, closed or garbage-collected; it never blocks on a consumer
    that has stopped. If the process has one core, or cannot start a thread, blocks are read without
    one.
    """
    if _n_cores() == 1:
        yield from blocks
        return
    with ThreadPoolExecutor(1, thread_name_prefix="streamsel-read") as thread:
        process = os.getpid()
        try:
            following = thread.submit(next, blocks, None)
        except RuntimeError:
            # Memory may suffice without the stack of a thread.
            yield from blocks
            return
        while (block := following.result()) is not None:
            following = thread.submit(next, blocks, None)
            yield block
            if os.getpid() != process:
                # A forked process lacks its parent's threads: it would wait forever.
                raise RuntimeError(
                    "Expected an iteration that continues in the process that began it. Got: one "
                    "that continues in a forked process.\nHint: begin a new iteration there."
                )


def _n_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
