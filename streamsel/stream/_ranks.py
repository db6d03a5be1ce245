"""Columns replaced by their ranks, or by normal scores of their ranks."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from streamsel.data.chunks import Block, SparseChunk, group_slices
from streamsel.data.columns import bad_column_error, iter_chunks
from streamsel.data.ranks import rank_columns, rank_stored
from streamsel.stream._blocks import columns_per_block
from streamsel.stream._coerce import as_stream
from streamsel.stream._stream import ColumnStream, restricted
from streamsel.targets.target import NoTarget

if TYPE_CHECKING:
    from streamsel.stream._parts import StreamPart
    from streamsel.targets.kept_rows import KeptRows

Floats = NDArray[np.float64]


def ranks(X: Any) -> ColumnStream:
    """Replace every column by its ranks, so that learners depend on the order of values only.

    A relevance or correlation is then Spearman's rank correlation, which outliers and monotone
    transformations of a variable hardly affect. Any learner can be used; selections name the
    original variables.

    Parameters
    ----------
    X
        The columns: a `ColumnStream`, or any input that `as_stream` accepts.

    Returns
    -------
    ColumnStream
        A stream of float64 columns with the names, order and row metadata of `X`: ranks from 1 to
        n, equal values having their mean rank. It is re-readable, and can be split into parts, if
        the same holds for `X`. A sparse column remains sparse: its values are ranks minus the rank
        of 0. That constant changes neither covariances nor correlations, hence no learner that
        centres columns.

    Raises
    ------
    ValueError
        While reading: for a column with missing or infinite values, or of the wrong length.
    TypeError
        While reading: for a column that is not numeric.

    Notes
    -----
    A column of n values costs about one sort, 8 ns per value for n = 1,000; columns of small
    integers are counted in about 3 ns per value, sparse columns cost their stored values. Memory is
    that of a block. The result does not depend on the partition into blocks.

    Components and transforms of new rows would need their ranks among the rows that were learnt:
    a model of ranks receives rows in other units. `SelectKBest(score="rank")` computes p-values
    of rank tests, for classes too.

    See Also
    --------
    normal_scores : Ranks transformed to a normal distribution.

    Examples
    --------
    An outlier hides a variable from a correlation of values, but not of ranks:

    >>> import numpy as np
    >>> from streamsel import SelectKBest
    >>> from streamsel.stream import ranks
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 50))
    >>> y = X[:, 7].copy()
    >>> X[0, 7] = 1e6
    >>> model = SelectKBest(1)
    >>> model.learn_target(y)
    >>> model.learn_columns(ranks(X))
    >>> model.selected
    [7]
    """
    return _replaced(as_stream(X), is_normal=False)


def normal_scores(X: Any) -> ColumnStream:
    r"""Replace every column by van der Waerden's normal scores of its ranks.

    The scores of n values are $\Phi^{-1}((r - 1/2) / n)$, $r$ the rank from 1 to n: tests that
    assume normal distributions then hold for heavy tails and outliers, with little loss of power
    for normal columns. Equal values have their mean rank, so many of them, such as zeros of counts,
    still have one score.

    Parameters
    ----------
    X
        The columns: a `ColumnStream`, or any input that `as_stream` accepts.

    Returns
    -------
    ColumnStream
        As `ranks` returns, with scores for ranks; in sparse columns minus the score of 0.

    Raises
    ------
    ValueError, TypeError
        As `ranks` raises.

    Notes
    -----
    Cost and memory are those of `ranks`. The target's own normal scores, which p-values of a
    heavy-tailed target use automatically, have the same formula.

    See Also
    --------
    ranks : The ranks themselves.

    References
    ----------
    [^1]: van der Waerden, B. L. (1952). Order tests for the two-sample problem and their power.
    Indagationes Mathematicae 14, 453-458.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsel.stream import normal_scores
    >>> X = np.array([[0.1], [2.0], [1e9], [2.0]])
    >>> [values.round(2).tolist() for _, values in normal_scores(X)]
    [[-1.15, 0.0, 1.15, 0.0]]
    """
    return _replaced(as_stream(X), is_normal=True)


def _replaced(source: ColumnStream, *, is_normal: bool) -> ColumnStream:
    """Return the stream of the ranks, or normal scores, of the columns of another one."""
    cut, blocks_from = source._cut, source._blocks_from
    return ColumnStream(
        lambda: _blocks(source.blocks(), is_normal),
        n_rows=source.n_rows,
        n_columns=source.n_columns,
        reiterable=source.reiterable,
        take=partial(_fetch, source, is_normal),
        names=source.names,
        blocks_from=None
        if blocks_from is None
        else (lambda start: _blocks(blocks_from(start), is_normal)),
        cut=None if cut is None else partial(_parts, source, is_normal),
        row_metadata=source.row_metadata,
        column_metadata=source.column_metadata,
        # Ranks among the rows in use.
        restrict=lambda kept: _replaced(_of_rows(source, kept), is_normal=is_normal),
    )


def _of_rows(source: ColumnStream, kept: KeptRows) -> ColumnStream:
    """Return a stream of the rows in use."""
    found = restricted(source, kept)
    return ColumnStream(
        lambda: (block._replace(values=kept.select(block.values)) for block in found.blocks()),
        n_columns=source.n_columns,
        reiterable=source.reiterable,
        take=lambda names: {name: kept.select(x) for name, x in found.take(names).items()},
        names=source.names,
    )


def _parts(
    source: ColumnStream, is_normal: bool, parts: int | None, start: int
) -> list[StreamPart]:
    step = partial(_replaced, is_normal=is_normal)
    return [part.then(step, part.n_columns) for part in source.skip(start).split(parts)]


def _fetch(source: ColumnStream, is_normal: bool, names: Sequence[Hashable]) -> dict[Hashable, Any]:
    """Fetch columns by name, as the stream yields them."""
    found = {}
    for name, values in source.take(names).items():
        matrix = values.reshape(-1, 1) if values.ndim == 1 else values
        (block,) = _blocks([Block((name,), matrix)], is_normal)
        found[name] = block.values if values.ndim == 2 else block.values[:, 0]
    return found


def _blocks(blocks: Any, is_normal: bool) -> Iterator[Block]:
    for block in blocks:
        n = block.values.shape[0]
        # Row n - 1 + m has the value of the rank m, a whole number from 1 - n to n - 1.
        table = (np.arange(1.0, 2.0 * n) + 1.0) / 2.0
        if is_normal:
            from scipy.special import ndtri

            table = ndtri((table - 0.5) / n)
        step = columns_per_block(n)
        for chunk in iter_chunks(block, n):
            moments = chunk.scan(NoTarget(n), 1)
            for j in np.flatnonzero(~np.isfinite(moments.m2)).tolist():
                x = chunk.column(j)
                if not np.isfinite(x).all():
                    raise bad_column_error(chunk.names[j], x)
            for part in group_slices(len(chunk.names), step, chunk.groups):
                if isinstance(chunk, SparseChunk):
                    values = _sparse_values(chunk, part, table)
                else:
                    values = table[rank_columns(chunk.X[part]) + (n - 1)].T
                groups = None if chunk.groups is None else chunk.groups[part]
                yield Block(chunk.names[part], values, groups)


def _sparse_values(chunk: SparseChunk, part: slice, table: Floats) -> Any:
    """Return the values of stored ranks minus those of zeros, as a CSC matrix."""
    from scipy.sparse import csc_array

    found, shift = rank_stored(chunk, part), chunk.n - 1
    of_zero = np.repeat(table[found.zero_ranks + shift], np.diff(found.indptr))
    data = table[found.ranks + shift] - of_zero
    matrix = csc_array((chunk.n, found.indptr.size - 1))
    matrix.data, matrix.indices = data, found.indices
    matrix.indptr = found.indptr.astype(found.indices.dtype)
    matrix.has_canonical_format = True
    return matrix
