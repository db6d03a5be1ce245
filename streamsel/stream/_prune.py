"""Pruning: leaves out columns that nearly repeat one that came shortly before."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel import params
from streamsel._jit.repeats import keep_first
from streamsel.columns import Block, chunks
from streamsel.stream._base import ColumnStream
from streamsel.stream._blocks import columns_per_block, cut_out
from streamsel.stream._convert import as_stream
from streamsel.target.target import NoTarget
from streamsel.ties import TIE

Floats = NDArray[np.float64]

# So many columns at least are compared at a time: fewer keep a matrix product waiting.
_AT_A_TIME = 128
_THRESHOLD = params.Real(0.0, open=True)


def prune(X: Any, threshold: float = 0.95, window: int = 100) -> Pruned:
    """Leave out the columns that nearly repeat one of the last few that were kept.

    A column goes if its absolute correlation with one of the last `window` kept columns is at least
    `threshold`. Where neighbours resemble each other, as variants along a genome do (linkage
    disequilibrium), pixels, or readings of a sensor, that leaves one of each run; the first comes
    to stand for all.

    Parameters
    ----------
    X
        The columns: a `ColumnStream`, or anything that `as_stream` takes.
    threshold
        In (0, 1]; 1 leaves out exact copies, up to scale, sign and offset. Thresholds are often
        told as $r^2$: for 0.2 that is 0.447.
    window
        With how many of the kept columns a new one is compared, at least 1.

    Returns
    -------
    Pruned
        A stream of the columns kept, re-readable if `X` is, that counts the others. It knows
        `n_columns` once it has been read to its end.

    Raises
    ------
    ValueError
        For a threshold or a window out of range. While reading: a column of the wrong length.

    Notes
    -----
    A column costs O(n window), in matrix products, and memory is O(n window), whatever the number
    of columns. What is left does not depend on how they are cut into blocks; correlations within
    1e-12 of the threshold reach it.

    Columns that have no correlation pass, and none is compared with them: constant ones, those with
    missing values, and what is not numeric. [`screen`](stream.md#streamsel.stream.screen) leaves
    these out; it goes first.

    `skip` compares anew from the beginning, so that what it leaves is the rest of the same stream.
    `take` fetches columns from the source, those left out as well.

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
        Columns read from the source so far, kept and left out; the columns of a second pass do not
        count again.
    last_read
        Name of the last of them, None before the first.
    n_pruned
        How many of them were left out.
    """

    def __init__(self, stream: ColumnStream, threshold: float, window: int) -> None:
        params.check("prune", {"threshold": _THRESHOLD}, {"threshold": threshold})
        params.check("prune", {"window": params.Whole(1)}, {"window": window})
        if threshold > 1.0:
            raise ValueError(
                f"Expected a threshold of at most 1, as correlations are. Got: {threshold!r}."
            )
        super().__init__(
            self._pruned,
            n_rows=stream.n_rows,
            rereadable=stream.rereadable,
            take=stream.take,
            beside=stream.beside,
        )
        self._source = stream
        self._bar = threshold - TIE
        self._window = window
        self.n_read = 0
        self.last_read: Hashable = None
        self.n_pruned = 0

    def _pruned(self) -> Iterator[Block]:
        position = 0
        n, held = self._source.n_rows, np.empty((0, 0))
        for block in self._source.blocks():
            n = block.values.shape[0] if n is None else n
            held = held if len(held) else np.empty((0, n))
            gone: list[int] = []
            if block.values.dtype.kind in "biuf":
                held, gone = self._compare(block, n, held)
            # A second pass leaves out the same columns, and none of them counts again.
            if position >= self.n_read:
                self.n_read, self.last_read = position + len(block.names), block.names[-1]
                self.n_pruned += len(gone)
            position += len(block.names)
            if len(gone) < len(block.names):
                yield from cut_out(block, gone)

    def _compare(self, block: Block, n: int, held: Floats) -> tuple[Floats, list[int]]:
        """Return the last columns kept, after these, and the places of those to leave out."""
        gone: list[int] = []
        start = 0
        step = min(max(self._window, _AT_A_TIME), columns_per_block(n))
        for chunk in chunks(block, n):
            mean, _, m2, _ = chunk.scan(NoTarget(n), 1)
            compared = np.flatnonzero(np.isfinite(m2) & (m2 > 0.0))
            for first in range(0, compared.size, step):
                places = compared[first : first + step]
                unit = chunk.columns(places)
                unit -= mean[places, None]
                unit /= np.sqrt(m2[places])[:, None]
                both = np.concatenate((held, unit))
                kept = np.ones(len(both), dtype=np.bool_)
                keep_first(unit @ both.T, self._window, self._bar, kept)
                gone += (start + places[~kept[len(held) :]]).tolist()
                held = both[np.flatnonzero(kept)[-self._window :]]
            start += m2.size
        return held, gone
