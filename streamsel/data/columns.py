"""Input validation of all columns.

Every source and every array passes through here and becomes a chunk: dense columns as contiguous
rows of a type that the compiled loops read in place, or the three arrays of a sparse matrix. The
loops therefore handle only four number types and two layouts, and nothing later validates again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel._kernels.scan import SMALL, UNDERFLOW
from streamsel._utils.sparse import expect_consistent_sparse
from streamsel.data.chunks import (
    GATHERED_BYTES,
    Block,
    Chunk,
    DenseChunk,
    GeneratedChunk,
    SparseChunk,
    Stats,
    TransformedChunk,
    group_slices,
)
from streamsel.data.generated import GeneratedColumns, parts_of_width
from streamsel.params import parameter_repr
from streamsel.serialization.json_values import as_array
from streamsel.targets.kept_rows import KeptRows
from streamsel.targets.row_transform import RowTransform

Floats = NDArray[np.float64]

# Types that loops read in place; others are converted to float64, this many bytes at a time.
_NATIVE_DTYPES = frozenset(np.dtype(t) for t in (np.float64, np.float32, np.int8, np.uint8))
_CONVERTED_BYTES = 2 << 20
# The moments of this many columns fit into the cache.
_MIN_CHUNK_COLUMNS = 8192
# Largest size in bytes of the columns of a generated chunk, if code makes all of them at once, and
# largest number of columns: more would save little time.
_GENERATED_BYTES = 64 << 20
_MAX_GENERATED_COLUMNS = 8192
# Chunks grow from this size: nearly all columns are made until a bounded pool is full.
_FIRST_GENERATED_COLUMNS = 512


def made_blocks(block: Block) -> Iterator[Block]:
    """Yield a block whose columns are made if they are generated, in parts of bounded size.

    Groups are not divided: a block of groups is one part.
    """
    names, values, groups = block
    if not isinstance(values, GeneratedColumns):
        yield block
        return
    n, size = values.shape
    width = max(1, size if groups is not None else GATHERED_BYTES // (8 * max(1, n)))
    for part in parts_of_width(size, width):
        yield Block(list(names[part]), values.make(part), groups)


def iter_chunks(
    block: Block,
    n_rows: int,
    row_transform: RowTransform | None = None,
    kept: KeptRows | None = None,
    n_jobs: int = 1,
) -> Iterator[Chunk]:
    """Validate a block; yield its columns as chunks that the compiled loops can read.

    Parameters
    ----------
    block
        Names and an (n, b) array, sparse matrix, or generated columns.
    n_rows
        The number of observations of the target.
    row_transform
        Transformation of the rows, by weights or relatedness; None for none. With one, columns are
        copied in batches, sparse ones as dense, and generated ones are made.
    kept
        The rows that have a target; None for all. Columns have one value for every row, or for
        every row in `kept` if the others were dropped before.
    n_jobs
        Number of threads that transform columns.

    Raises
    ------
    ValueError
        If the shape is not (n_rows, number of names).
    TypeError
        If the values are not real numbers.
    """
    if isinstance(block.values, GeneratedColumns):
        are_rows_kept = kept is None or block.values.shape[0] == n_rows
        if row_transform is None and block.groups is None and are_rows_kept:
            return _generated(block, n_rows)
        return (
            chunk
            for made in made_blocks(block)
            for chunk in iter_chunks(made, n_rows, row_transform, kept, n_jobs)
        )
    found = _chunks(block, n_rows) if kept is None else _of_kept(block, n_rows, kept)
    if block.groups is not None and any(group is not None for group in block.groups):
        found = _grouped(found, block.groups)
    return found if row_transform is None else _transformed(found, row_transform, n_jobs)


def _grouped(found: Iterator[Chunk], groups: Sequence[Hashable]) -> Iterator[Chunk]:
    """Yield the chunks of a block with the groups of their columns."""
    start = 0
    for chunk in found:
        stop = start + len(chunk.names)
        chunk.groups = groups[start:stop]
        start = stop
        yield chunk


def _generated(block: Block, n_rows: int) -> Iterator[Chunk]:
    names, values = block.names, block.values
    shape = _shape_of(block)
    if shape[0] != n_rows:
        raise wrong_length_error(names, shape[0], n_rows)
    max_width = min(max(1, _GENERATED_BYTES // (8 * max(1, n_rows))), _MAX_GENERATED_COLUMNS)
    start, width = 0, min(max_width, _FIRST_GENERATED_COLUMNS)
    while start < shape[1]:
        part = slice(start, start + width)
        yield GeneratedChunk(names[part], values.part(part))
        start, width = part.stop, min(2 * width, max_width)


def _transformed(
    found: Iterator[Chunk], row_transform: RowTransform, n_jobs: int
) -> Iterator[Chunk]:
    for chunk in found:
        itemsize = chunk.X.itemsize if isinstance(chunk, DenseChunk) else 8
        # A block gathered from single columns is not split.
        step = max(1, GATHERED_BYTES // (itemsize * chunk.n))
        for which in group_slices(len(chunk.names), step, chunk.groups):
            transformed = TransformedChunk(chunk.part(which), row_transform, n_jobs)
            transformed.groups = None if chunk.groups is None else chunk.groups[which]
            yield transformed


def _of_kept(block: Block, n_rows: int, kept: KeptRows) -> Iterator[Chunk]:
    """Yield the columns of the kept rows only, in copies, in batches."""
    names, values = block.names, block.values
    shape = _shape_of(block)
    if shape[0] == n_rows:
        yield from _chunks(block, n_rows)
        return
    if shape[0] != kept.n:
        raise wrong_length_error(names, shape[0], kept.n)
    if hasattr(values, "toarray"):
        chunk = _sparse(names, values)
        chunk.check_indices()
        yield SparseChunk(names, *kept.sparse(chunk.data, chunk.indices, chunk.indptr), n_rows)
        return
    # A block gathered from single columns is not split: names must not repeat in it.
    step = max(1, GATHERED_BYTES // (values.itemsize * n_rows))
    for part in group_slices(shape[1], step, block.groups):
        groups = None if block.groups is None else block.groups[part]
        yield from _chunks(Block(names[part], kept.dense(values.T[part]).T, groups), n_rows)


def _shape_of(block: Block) -> tuple[int, int]:
    names, values = block.names, block.values
    shape = getattr(values, "shape", None)
    if shape is None or len(shape) != 2 or shape[1] != len(names):
        raise ValueError(
            f"Expected a block of shape (n, {len(names)}), one column per name. Got: shape {shape}."
        )
    return shape[0], shape[1]


def _chunks(block: Block, n_rows: int) -> Iterator[Chunk]:
    names, values = block.names, block.values
    shape = _shape_of(block)
    if shape[0] != n_rows:
        raise wrong_length_error(names, shape[0], n_rows)
    if hasattr(values, "toarray"):
        yield _sparse(names, values)
        return
    if values.dtype == np.bool_:
        values = values.view(np.uint8)
    if values.dtype in _NATIVE_DTYPES and values.flags.f_contiguous:
        # A block gathered from single columns is not split: names must not repeat in it.
        width = max(_MIN_CHUNK_COLUMNS, GATHERED_BYTES // (values.itemsize * max(1, n_rows)))
        for part in group_slices(shape[1], width, block.groups):
            yield DenseChunk(names[part], values.T[part])
        return
    step = max(1, _CONVERTED_BYTES // (8 * max(1, n_rows)))
    for part in group_slices(shape[1], step, block.groups):
        yield DenseChunk(names[part], _numbers(values[:, part].T, names[part]))


def single_column(
    name: Hashable,
    values: Any,
    n_rows: int,
    row_transform: RowTransform | None = None,
    kept: KeptRows | None = None,
) -> Chunk:
    """Validate one column of n observations, dense or sparse; raise as `iter_chunks` does."""
    chunk = _column(name, values, n_rows, kept)
    return chunk if row_transform is None else TransformedChunk(chunk, row_transform)


def _column(name: Hashable, values: Any, n_rows: int, kept: KeptRows | None) -> Chunk:
    if hasattr(values, "toarray"):
        expect_consistent_sparse(values)
        if values.ndim == 1:
            values = values.reshape(-1, 1)
        if values.shape[1] != 1:
            raise _not_a_column(name, values.shape)
        return next(iter_chunks(Block((name,), values), n_rows, None, kept))
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    array = (
        values
        if type(values) is np.ndarray
        else as_array(values, f"values of {parameter_repr(name)}")
    )
    if array.ndim != 1:
        raise _not_a_column(name, array.shape)
    if kept is not None and array.shape[0] == kept.n:
        array = array.take(kept.index)
    if array.shape[0] != n_rows:
        raise wrong_length_error((name,), array.shape[0], n_rows if kept is None else kept.n)
    if array.dtype not in _NATIVE_DTYPES or not array.flags.c_contiguous:
        array = _numbers(array[None, :], (name,))[0]
    return DenseChunk((name,), array[None, :])


def observed_moments(chunk: Chunk, stats: Stats) -> Stats:
    """Return the moments of columns from their observed values, where others are NaN.

    A column with an infinite value, or with nothing observed, keeps its non-finite moments.
    """
    for j in np.flatnonzero(~np.isfinite(stats.m2)).tolist():
        x = chunk.column(j)
        observed = ~np.isnan(x)
        if observed.all() or not observed.any() or np.isinf(x).any():
            continue
        x = x[observed]
        mean = x.mean()
        centred = x - mean
        low = centred.mean()
        # The variance of a constant column is 0, whatever the rounding error.
        with np.errstate(over="ignore"):
            m2 = 0.0 if x.min() == x.max() else float(np.square(centred - low).sum())
        if m2 < UNDERFLOW and abs(mean) < SMALL and x.min() < x.max():
            m2 = np.nan
        stats.mean[j], stats.mean_error[j], stats.m2[j] = mean, low, m2
    return stats


def bad_column_error(name: Hashable, x: Floats, kept: KeptRows | None = None) -> ValueError:
    """Return the error for a column with non-finite moments: its bad values and their first row.

    If rows were dropped, `kept` has the original numbers of the rows of x.
    """
    bad = np.flatnonzero(~np.isfinite(x))
    if bad.size == 0:
        largest = float(np.abs(x).max())
        fit = "fit into float64" if largest > 1.0 else "do not underflow to 0 in float64"
        return ValueError(
            f"Expected values whose squares {fit} in column {parameter_repr(name)}. "
            f"Got: values up to {largest:.3g}.\n"
            "Hint: divide all columns by the same number; that keeps their relative scale."
        )
    what = "missing (NaN)" if np.isnan(x[bad]).all() else "NaN or infinite"
    row = bad[0] if kept is None else kept.index[bad[0]]
    return ValueError(
        f"Expected finite numbers in column {parameter_repr(name)}. "
        f"Got: {bad.size} of {x.size} values {what}, the first in row {row}.\n"
        "Hint: impute them, or drop the column; streamsel.stream.clean does either."
    )


def _sparse(names: Sequence[Hashable], matrix: Any) -> SparseChunk:
    # The indices of CSC columns are checked when the columns are summed.
    expect_consistent_sparse(matrix, indices=matrix.format != "csc")
    if matrix.format != "csc":
        matrix = matrix.tocsc()
    data = matrix.data
    if data.dtype not in _NATIVE_DTYPES:
        data = _numbers(data, names)
    return SparseChunk(names, data, matrix.indices, matrix.indptr, matrix.shape[0])


def _numbers(values: NDArray[Any], names: Sequence[Hashable]) -> NDArray[Any]:
    """Return the values as a contiguous array of a type that is read in place."""
    if values.dtype in _NATIVE_DTYPES:
        return np.ascontiguousarray(values)
    if values.dtype.kind in "biuf":
        return np.ascontiguousarray(values, dtype=np.float64)
    if values.dtype.kind == "O" and not any(
        isinstance(v, str | bytes | complex | np.complexfloating) for v in values.flat
    ):
        try:
            return np.ascontiguousarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            pass
    what = {"c": "complex numbers", "U": "text", "S": "bytes", "M": "dates", "m": "time spans"}.get(
        values.dtype.kind, "values that are not numbers"
    )
    if values.dtype.kind == "O" and any(isinstance(v, str) for v in values.flat):
        what = "text"
    which = _columns_text(names)
    example = f" like {parameter_repr(values.flat[0])}" if values.size else ""
    raise TypeError(
        f"Expected real numbers in {which}. Got: {what}{example}.\n"
        "Hint: encode categories as indicator columns, or drop the column."
    )


def _columns_text(names: Sequence[Hashable]) -> str:
    first = parameter_repr(names[0])
    return (
        f"column {first}" if len(names) == 1 else f"columns {first} to {parameter_repr(names[-1])}"
    )


def wrong_length_error(names: Sequence[Hashable], n: int, n_rows: int) -> ValueError:
    """Return the error for columns of n values where the target has n_rows."""
    which = _columns_text(names)
    return ValueError(
        f"Expected {n_rows} values, as the target has, in {which}. Got: {n}.\n"
        "Hint: a column has one value for every observation of the target."
    )


def _not_a_column(name: Hashable, shape: tuple[int, ...]) -> ValueError:
    return ValueError(
        f"Expected a column of shape (n,) for {parameter_repr(name)}. Got: shape {shape}.\n"
        "Hint: learn_columns takes several columns at once."
    )
