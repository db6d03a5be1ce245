"""Pruning of columns that are highly correlated with a preceding one."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel import params
from streamsel._kernels.sorting import drop_near_duplicates
from streamsel._utils.numeric import TIE_RTOL
from streamsel.data.columns import Block, iter_chunks
from streamsel.stream._blocks import columns_per_block, drop_columns
from streamsel.stream._coerce import as_stream
from streamsel.stream._stream import ColumnStream
from streamsel.targets.target import NoTarget

Floats = NDArray[np.float64]

# Minimum number of columns compared at a time, for efficient matrix products.
_MIN_BATCH = 128
_THRESHOLD = params.FloatRule(0.0, open=True)


def prune(X: Any, threshold: float = 0.95, window: int = 100) -> Pruned:
    """Exclude the columns that are highly correlated with one of the last kept columns.

    A column is excluded if its absolute correlation with one of the last `window` kept columns is
    at least `threshold`. If neighbours are correlated, such as variants along a genome (linkage
    disequilibrium), pixels, or sensor measurements, this keeps the first of each run as its
    representative.

    Parameters
    ----------
    X
        The columns: a `ColumnStream`, or any input that `as_stream` accepts.
    threshold
        Correlation in (0, 1]; 1 excludes exact copies, up to scale, sign and offset. A threshold on
        $r^2$ must be converted by a square root: 0.2 corresponds to 0.447.
    window
        Number of kept columns that a new one is compared with, at least 1.

    Returns
    -------
    Pruned
        A stream of the kept columns, re-readable if `X` is, that counts the excluded ones. Its
        `n_columns` is known after a complete pass.

    Raises
    ------
    ValueError
        If `threshold` or `window` is out of range. While reading: a column of the wrong length.

    Notes
    -----
    A column costs O(n window), in matrix products, and memory is O(n window), for any number of
    columns. The result does not depend on the partition into blocks; correlations within 1e-12 of
    the threshold count as reaching it.

    Columns without a correlation are kept and not compared: constant ones, those with missing
    values, and non-numeric ones. Apply [`clean`](stream.md#streamsel.stream.clean) first to
    exclude them.

    `skip` repeats the comparison from the first column, so that it yields the rest of the same
    stream. `take` fetches columns from the source, including excluded ones.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsel.stream import iter_array, prune
    >>> rng = np.random.default_rng(0)
    >>> walk = np.cumsum(rng.normal(size=(200, 50)), axis=1)  # each column resembles the last
    >>> few = prune(iter_array(walk), threshold=0.8)
    >>> [name for name, _ in few]
    [0, 1, 3, 6, 11, 19, 34]
    >>> few.n_read, few.n_pruned
    (50, 43)
    """
    return Pruned(as_stream(X), threshold, window)


class Pruned(ColumnStream):
    """The stream that `prune` returns.

    Attributes
    ----------
    n_read
        Number of columns read from the source, including excluded ones; columns of a second pass
        are not counted again.
    last_read
        Name of the last of them, None before the first.
    n_pruned
        Number of excluded columns.
    """

    def __init__(self, stream: ColumnStream, threshold: float, window: int) -> None:
        params.check("prune", {"threshold": _THRESHOLD}, {"threshold": threshold})
        params.check("prune", {"window": params.IntRule(1)}, {"window": window})
        if threshold > 1.0:
            raise ValueError(
                f"Expected threshold, a correlation, to be at most 1. Got: {threshold!r}."
            )
        super().__init__(
            self._pruned,
            n_rows=stream.n_rows,
            reiterable=stream.reiterable,
            take=stream.take,
            row_metadata=stream.row_metadata,
            column_metadata=stream.column_metadata,
        )
        self._source = stream
        self._min_correlation = threshold - TIE_RTOL
        self._window = window
        self.n_read = 0
        self.last_read: Hashable = None
        self.n_pruned = 0

    def _pruned(self) -> Iterator[Block]:
        position = 0
        n, recent = self._source.n_rows, np.empty((0, 0))
        for block in self._source.blocks():
            n = block.values.shape[0] if n is None else n
            recent = recent if len(recent) else np.empty((0, n))
            dropped: list[int] = []
            if block.values.dtype.kind in "biuf":
                recent, dropped = self._compare(block, n, recent)
            # A second pass excludes the same columns, which are not counted again.
            if position >= self.n_read:
                self.n_read, self.last_read = position + len(block.names), block.names[-1]
                self.n_pruned += len(dropped)
            position += len(block.names)
            if len(dropped) < len(block.names):
                yield from drop_columns(block, dropped)

    def _compare(self, block: Block, n: int, recent: Floats) -> tuple[Floats, list[int]]:
        """Return the last kept columns, including those of the block, and the indices to drop."""
        dropped: list[int] = []
        start = 0
        step = min(max(self._window, _MIN_BATCH), columns_per_block(n))
        for chunk in iter_chunks(block, n):
            mean, _, m2, _ = chunk.scan(NoTarget(n), 1)
            compared = np.flatnonzero(np.isfinite(m2) & (m2 > 0.0))
            for first in range(0, compared.size, step):
                indices = compared[first : first + step]
                unit = chunk.columns(indices)
                unit -= mean[indices, None]
                unit /= np.sqrt(m2[indices])[:, None]
                both = np.concatenate((recent, unit))
                kept = np.ones(len(both), dtype=np.bool_)
                drop_near_duplicates(unit @ both.T, self._window, self._min_correlation, kept)
                dropped += (start + indices[~kept[len(recent) :]]).tolist()
                recent = both[np.flatnonzero(kept)[-self._window :]]
            start += m2.size
        return recent, dropped
