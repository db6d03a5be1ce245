"""Compute cross products of two sources of the same columns, over different rows."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from streamsel.data.chunks import Chunk, Stats
from streamsel.data.columns import bad_column_error, iter_chunks
from streamsel.state.base import Floats
from streamsel.state.source_check import PassVerifier
from streamsel.stream import ColumnStream
from streamsel.targets.target import NoTarget

# Size in bytes of the columns that are multiplied at once.
_BATCH_BYTES = 4 << 20


class CrossProducts(NamedTuple):
    """Inner products of new rows with those learnt, over all columns.

    Parameters
    ----------
    products
        (m, n) inner products of the new rows with those learnt.
    squares, learnt
        (m,) and (n,) squared norms of the new rows, and of those learnt.
    """

    products: Floats
    squares: Floats
    learnt: Floats


def cross_products(
    learnt: ColumnStream, new: ColumnStream, n: int, unit: float, same: PassVerifier
) -> CrossProducts:
    """Return the cross products of two sources, centred by the means of the columns learnt.

    Parameters
    ----------
    learnt, new
        The columns that were learnt, of n rows, and the same columns of new rows.
    n
        Number of rows learnt.
    unit
        Divisor of all values.
    same
        Verifies that these are the columns that were learnt.

    Raises
    ------
    ValueError, TypeError
        For invalid columns, and for columns that differ between the two sources.
    """
    products: Floats = np.zeros((new.n_rows or 0, n))
    squares, own, first = np.zeros(len(products)), np.zeros(n), True
    for names, values, stats, new_values in _side_by_side(learnt, new, n):
        same.check(names, stats)
        mine, theirs = (_centred(part, stats, unit) for part in (values, new_values))
        if first:
            products, squares = np.zeros((theirs.shape[1], n)), np.zeros(theirs.shape[1])
        products += theirs.T @ mine
        squares += np.einsum("ij,ij->j", theirs, theirs)
        own += np.einsum("ij,ij->j", mine, mine)
        first = False
    same.check_complete()
    return CrossProducts(products, squares, own)


def _centred(values: Floats, stats: Stats, unit: float) -> Floats:
    values -= stats.mean[:, None]
    values -= stats.mean_error[:, None]
    values /= unit
    return values


def _side_by_side(
    learnt: ColumnStream, new: ColumnStream, n: int
) -> Iterator[tuple[Sequence[Hashable], Floats, Stats, Floats]]:
    """Yield names, columns learnt (one per row), their moments, and the columns of new rows."""
    mine, theirs = _Cursor(learnt, n), _Cursor(new, None)
    while mine.advance() & theirs.advance():
        step = max(1, _BATCH_BYTES // (8 * (mine.chunk.n + theirs.chunk.n)))
        b = min(step, mine.left, theirs.left)
        names, new_names = mine.names(b), theirs.names(b)
        if names != new_names:
            j = next(j for j, name in enumerate(names) if name != new_names[j])
            raise _columns_differ_error(f"{names[j]!r} and {new_names[j]!r}")
        values, stats = mine.take(b)
        yield names, values, stats, theirs.take(b)[0]
    if mine.is_over != theirs.is_over:
        raise _columns_differ_error(
            f"more columns in {'the new rows' if mine.is_over else 'the rows learnt'}"
        )


class _Cursor:
    """Cursor in a source of columns.

    Parameters
    ----------
    stream
        The source.
    n
        Its number of rows; None for that of the first block.
    """

    chunk: Chunk

    def __init__(self, stream: ColumnStream, n: int | None) -> None:
        self._chunks = self._read(stream, n)
        self._stats = Stats(*(np.zeros(0) for _ in Stats._fields))
        self._position = 0
        self.left, self.is_over = 0, False

    @staticmethod
    def _read(stream: ColumnStream, n: int | None) -> Iterator[tuple[Chunk, Stats]]:
        for block in stream.blocks():
            n = block.values.shape[0] if n is None else n
            for chunk in iter_chunks(block, n):
                stats = chunk.scan(NoTarget(n), 1)
                bad = np.flatnonzero(~np.isfinite(stats.m2))
                if bad.size:
                    raise bad_column_error(chunk.names[bad[0]], chunk.column(int(bad[0])))
                yield chunk, stats

    def advance(self) -> bool:
        """Go to the next chunk if the current one is used up; return False at the end."""
        while not self.left and not self.is_over:
            found = next(self._chunks, None)
            if found is None:
                self.is_over = True
            else:
                self.chunk, self._stats = found
                self._position, self.left = 0, len(self.chunk.names)
        return not self.is_over

    def names(self, b: int) -> Sequence[Hashable]:
        """Return the names of the next columns."""
        return list(self.chunk.names[self._position : self._position + b])

    def take(self, b: int) -> tuple[Floats, Stats]:
        """Return the next columns, one per row, and their moments."""
        indices = np.arange(self._position, self._position + b)
        self._position, self.left = self._position + b, self.left - b
        return self.chunk.columns(indices), Stats(*(array[indices] for array in self._stats))


def _columns_differ_error(got: str) -> ValueError:
    return ValueError(
        f"Expected the same columns in both sources, in the same order. Got: {got}.\n"
        "Hint: both are read in parallel, once; names must be equal."
    )
