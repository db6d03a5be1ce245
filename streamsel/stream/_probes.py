"""Random probes: columns of random numbers that compete with the columns of a source."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel import params
from streamsel.data.chunks import Block
from streamsel.data.names import PROBE, probe_number
from streamsel.stream._blocks import columns_per_block, split_block
from streamsel.stream._coerce import as_stream
from streamsel.stream._stream import ColumnStream

# Number of source columns between groups of probes: the positions of probes depend only on column
# indices, and blocks remain large enough for learners.
_GROUP_SIZE = 64


def with_probes(X: Any, per_column: int = 1, seed: int = 0) -> ColumnStream:
    """Add random probes, columns of random numbers, that compete with the columns of a source.

    When a selector selects a random probe, the remaining columns are no better than chance,
    conditional on those selected before.
    [`selected_before_probes`](evaluate.md#streamsel.evaluate.selected_before_probes) returns the
    columns selected up to there. The method works with any selector, which treats probes as
    ordinary columns.

    Parameters
    ----------
    X
        The columns: a `ColumnStream`, or any input that `as_stream` accepts.
    per_column
        Number of probes for each column of `X`, at least 1.
    seed
        Seed of the random numbers, from 0 to 2**128 - 1.

    Returns
    -------
    ColumnStream
        A stream of the columns of `X` in their order, with the probes after every 64 of them (or
        the end of a group) and after the last: columns of standard normal numbers, named
        `("probe", 0)`, `("probe", 1)` and so on. It is re-readable if `X` is.

    Raises
    ------
    ValueError
        If `per_column` or `seed` is out of range.

    Notes
    -----
    The values of a probe depend only on the seed, its number and the number of rows: they are the
    same in every pass and for any partition into blocks, and `take` generates them without reading.
    They are generated when read, and not stored. A probe costs about 4 µs plus 20 ns per row. The
    columns of `X` are passed on unchanged, without a copy.

    The selector needs room for probes in its selection: choose `k` larger than the number of
    columns expected, by about the number of false ones.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsel import ForwardSelection
    >>> from streamsel.evaluate import selected_before_probes
    >>> from streamsel.stream import with_probes
    >>> X = np.random.default_rng(0).normal(size=(100, 500))
    >>> y = X[:, 3] - X[:, 77] + X[:, 200]
    >>> model = ForwardSelection(k=6)
    >>> model.learn_target(y)
    >>> model.learn_columns(with_probes(X))
    >>> model.selected
    [77, 3, 200, ('probe', 60), 411, 222]
    >>> selected_before_probes(model.selected)
    [77, 3, 200]
    """
    params.check(
        "with_probes",
        {"per_column": params.IntRule(1), "seed": params.IntRule(0, below=2**128)},
        {"per_column": per_column, "seed": seed},
    )
    source = as_stream(X)
    n_rows, n_columns = source.n_rows, source.n_columns

    def blocks() -> Iterator[Block]:
        n = n_read = n_made = 0
        for block in source.blocks():
            n = block.values.shape[0]
            rest: Block | None = block
            while rest is not None:
                n_groups = n_read // _GROUP_SIZE
                part, rest = split_block(rest, _GROUP_SIZE - n_read % _GROUP_SIZE)
                yield part
                n_read += len(part.names)
                if n_read // _GROUP_SIZE > n_groups:
                    yield from _probe_blocks(seed, n_made, n_read * per_column, n)
                    n_made = n_read * per_column
        yield from _probe_blocks(seed, n_made, n_read * per_column, n)

    # Without the number of rows, columns are found by reading.
    fetch = None if n_rows is None else partial(_fetch, source, per_column, seed, n_rows)
    return ColumnStream(
        blocks,
        n_rows=n_rows,
        n_columns=None if n_columns is None else n_columns * (1 + per_column),
        reiterable=source.reiterable,
        take=fetch,
        row_metadata=source.row_metadata,
        column_metadata=source.column_metadata,
    )


def _fetch(
    source: ColumnStream, per_column: int, seed: int, n_rows: int, names: Sequence[Hashable]
) -> dict[Hashable, Any]:
    """Fetch columns of the source and generate probes, by name."""
    end = None if source.n_columns is None else source.n_columns * per_column
    numbers = {name: probe_number(name) for name in names}
    found: dict[Hashable, Any] = {
        name: _normal(seed, [i], n_rows)[0]
        for name, i in numbers.items()
        if i is not None and (end is None or i < end)
    }
    found |= source.take([name for name in names if name not in found])
    return {name: found[name] for name in names}


def _probe_blocks(seed: int, start: int, stop: int, n_rows: int) -> Iterator[Block]:
    """Yield the probes with numbers start, ..., stop - 1."""
    step = columns_per_block(n_rows)
    for first in range(start, stop, step):
        numbers = range(first, min(stop, first + step))
        yield Block([(PROBE, i) for i in numbers], _normal(seed, numbers, n_rows).T)


def _normal(seed: int, numbers: Sequence[int], n_rows: int) -> NDArray[np.float64]:
    """Return the probes of these numbers, one per row."""
    # The counter of Philox has four words: the draws of a probe advance only the first, and its
    # number is the last. Setting the counter takes half the time of creating a generator.
    bits = np.random.Philox(key=seed)
    generator, state = np.random.Generator(bits), bits.state
    values = np.empty((len(numbers), n_rows))
    for i, row in zip(numbers, values, strict=True):
        state["state"]["counter"][3] = i
        bits.state = state
        generator.standard_normal(out=row)
    return values
