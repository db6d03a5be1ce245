"""Random probes: columns of random numbers that compete with the columns of a source."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel import params
from streamsel._utils.sparse import is_sparse
from streamsel.data.chunks import Block, group_starts
from streamsel.data.names import PROBE, probe_number
from streamsel.stream._blocks import columns_per_block, part_of, split_block
from streamsel.stream._coerce import as_stream
from streamsel.stream._stream import ColumnStream, derived_restrict

# Number of source columns between probes: the positions of probes depend only on column indices,
# and blocks remain large enough for learners.
_STRETCH = 64


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
        Number of probes for each column of `X`, or each group, at least 1.
    seed
        Seed of the random numbers, from 0 to 2**128 - 1.

    Returns
    -------
    ColumnStream
        A stream of the columns of `X` in their order, with the probes after every 64 of them (or
        the end of a group) and after the last: columns of standard normal numbers, named
        `("probe", 0)`, `("probe", 1)` and so on. It is re-readable if `X` is.

        If `X` has groups (`with_probes(grouped(...))`), the probe of a group is a group of the same
        columns with their rows in another order, the same for all of them: it has as many degrees
        of freedom. It is named and numbered as other probes; its columns are `("probe", i, name)`.

    Raises
    ------
    ValueError
        If `per_column` or `seed` is out of range.

    Notes
    -----
    The values of a probe depend only on the seed, its number and the number of rows: they are the
    same in every pass and for any partition into blocks, and `take` generates them without reading.
    The values of a group's probe depend on those of the group too, and `take` fetches these.
    Probes are generated when read, and not stored. A probe costs about 4 µs plus 20 ns per row. The
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
        n_read, probes = 0, _Probes(seed, per_column)
        for block in source.blocks():
            rest: Block | None = block
            while rest is not None:
                n_stretches = n_read // _STRETCH
                part, rest = split_block(rest, _STRETCH - n_read % _STRETCH)
                probes.add(part)
                yield part
                n_read += len(part.names)
                if n_read // _STRETCH > n_stretches:
                    yield from probes.blocks()
        yield from probes.blocks()

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
        restrict=derived_restrict(
            source, lambda found: with_probes(found, per_column=per_column, seed=seed)
        ),
    )


class _Probes:
    """The probes of the columns since the last ones were made.

    Parameters
    ----------
    seed, per_column
        As in `with_probes`.
    """

    def __init__(self, seed: int, per_column: int) -> None:
        self._seed, self._per_column = seed, per_column
        self._n = self._n_rows = 0
        # Numbers of probes of single columns, and probes of groups.
        self._due: list[range | Block] = []

    def add(self, part: Block) -> None:
        """Assign numbers to the probes of some columns, and make those of their groups."""
        self._n_rows = part.values.shape[0]
        if part.groups is None:
            self._add_singles(len(part.names))
            return
        for start, stop in pairwise(group_starts(part.groups, len(part.names)).tolist()):
            if part.groups[start] is None:
                self._add_singles(1)
                continue
            group = part_of(part, start, stop)
            for _ in range(self._per_column):
                self._due.append(_permuted(group, self._seed, self._n))
                self._n += 1

    def _add_singles(self, n_columns: int) -> None:
        start, self._n = self._n, self._n + n_columns * self._per_column
        if self._due and isinstance(self._due[-1], range):
            start = self._due.pop().start  # type: ignore[union-attr]
        self._due.append(range(start, self._n))

    def blocks(self) -> Iterator[Block]:
        """Yield the probes in the order of their columns, and forget them."""
        due, self._due = self._due, []
        for probes in due:
            if isinstance(probes, range):
                yield from _probe_blocks(self._seed, probes.start, probes.stop, self._n_rows)
            else:
                yield probes


def _permuted(group: Block, seed: int, number: int) -> Block:
    """Return the probe of a group: its columns with their rows in the same random order."""
    name = PROBE, number
    permuted = _in_order(group.values, row_order(seed, number, group.values.shape[0]))
    return Block([(*name, member) for member in group.names], permuted, [name] * len(group.names))


def _in_order(values: Any, order: NDArray[np.intp]) -> Any:
    if is_sparse(values):
        return values.tocsr()[order].tocsc()
    return np.take(values.T, order, axis=-1).T


def row_order(seed: int, number: int, n_rows: int) -> NDArray[np.intp]:
    """Return a random order of the rows, by a seed and a number."""
    bits = np.random.Philox(key=seed, counter=[0, 0, 0, number])
    return np.random.Generator(bits).permutation(n_rows)


def _member(name: Hashable) -> tuple[int, Hashable] | None:
    """Return the number of the probe and the source's column of a member of a group's probe."""
    if isinstance(name, tuple) and len(name) == 3:
        number = probe_number(name[:2])
        return None if number is None else (number, name[2])
    return None


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
    members = {name: member for name in names if (member := _member(name)) is not None}
    if members:
        columns = source.take(list(dict.fromkeys(column for _, column in members.values())))
        for name, (number, column) in members.items():
            found[name] = _in_order(columns[column], row_order(seed, number, n_rows))
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
