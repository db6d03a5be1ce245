"""Columns and blocks of columns: input validation of all columns.

Every source and every array passes through here and becomes a chunk: dense columns as contiguous
rows of a type that the compiled loops read in place, or the three arrays of a sparse matrix. The
loops therefore handle only four number types and two layouts, and nothing later validates again.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel._kernels.scan import ROUNDING_RTOL, SMALL, UNDERFLOW, scan_dense, scan_sparse
from streamsel._utils.numeric import two_sum
from streamsel._utils.sparse import expect_consistent_sparse
from streamsel._utils.system import run_in_threads
from streamsel.data.generated import GeneratedColumns, parts_of_width
from streamsel.params import parameter_repr
from streamsel.serialization.json_values import as_array
from streamsel.targets.kept_rows import KeptRows
from streamsel.targets.row_transform import RowTransform
from streamsel.targets.target import NoTarget, Target

Floats = NDArray[np.float64]

# Types that loops read in place; others are converted to float64, this many bytes at a time.
_NATIVE_DTYPES = frozenset(np.dtype(t) for t in (np.float64, np.float32, np.int8, np.uint8))
_CONVERTED_BYTES = 2 << 20
# The moments of this many columns fit into the cache.
_MIN_CHUNK_COLUMNS = 8192
# Largest size in bytes of a block that was gathered from single columns.
_GATHERED_BYTES = 4 << 20
# Largest size in bytes of the columns of a generated chunk, if code makes all of them at once, and
# largest number of columns: more would save little time.
_GENERATED_BYTES = 64 << 20
_MAX_GENERATED_COLUMNS = 8192
# Chunks grow from this size: nearly all columns are made until a bounded pool is full.
_FIRST_GENERATED_COLUMNS = 512
# Fewer numbers than this are scanned in one thread: waking others takes longer.
_MIN_SIZE_FOR_THREADS = 1 << 18


class Block(NamedTuple):
    """Several columns at once.

    Parameters
    ----------
    names
        One hashable name per column.
    values
        The columns: an array of shape (n, b), preferably Fortran-contiguous, a `scipy.sparse`
        CSC matrix, or `GeneratedColumns`. A non-numeric column is a block of its own, an (n, 1)
        object array.
    groups
        The name of the group of each column: adjacent columns of equal names are selected
        together, or not at all, and are never divided between blocks. None for a column that is
        its own group, and for a block without groups.
    """

    names: Sequence[Hashable]
    values: Any
    groups: Sequence[Hashable] | None = None


class Stats(NamedTuple):
    """Moments of columns: means (b,), sums of squares (b,), products with the target (b, c).

    `mean_error` (b,) is the rounding error of the means, which later rows need for exact updates
    where the offset is large (1e9, for instance).
    """

    mean: Floats
    mean_error: Floats
    m2: Floats
    cxy: Floats


class DenseChunk:
    """Validated dense columns.

    Parameters
    ----------
    names
        One name per column.
    X
        (b, n) columns as rows, C-contiguous, of a type that is read in place. It is a view of the
        caller's array and is made read-only, since numba would compile again for a writable array.

    Attributes
    ----------
    groups
        As in `Block`; None if no column has a group.
    """

    groups: Sequence[Hashable] | None = None

    def __init__(self, names: Sequence[Hashable], X: NDArray[Any]) -> None:
        self.names = names
        self.n = X.shape[1]
        X.flags.writeable = False
        self.X = X

    def scan(self, target: Target | NoTarget, n_jobs: int) -> Stats:
        """Compute the moments of every column with itself and the target, in one pass."""
        b = self.X.shape[0]
        stats = Stats(np.empty(b), np.empty(b), np.empty(b), np.empty((b, target.c)))
        if n_jobs == 1 or self.X.size < _MIN_SIZE_FOR_THREADS:
            scan_dense(self.X, target.scan_rows, *stats)
            return stats

        def scan_part(part: slice) -> None:
            scan_dense(self.X[part], target.scan_rows, *(array[part] for array in stats))

        run_in_threads(scan_part, b, n_jobs)
        return stats

    def columns(self, indices: NDArray[np.intp]) -> Floats:
        """Return a copy of the columns at `indices` as float64, one per row."""
        return np.asarray(self.X[indices], dtype=np.float64)

    def observations(self, indices: NDArray[np.intp]) -> Floats:
        """Return the columns at `indices` as `RowTransform.observations` does, one per row."""
        return self.columns(indices)

    def column(self, j: int) -> Floats:
        """Return a copy of one column as float64, (n,)."""
        column: Floats = self.X[j].astype(np.float64)
        return column

    def subset(self, indices: NDArray[np.intp]) -> DenseChunk:
        """Return a copy of the columns at `indices`, without names."""
        return DenseChunk((), self.columns(indices))

    def part(self, which: slice) -> DenseChunk:
        """Return a slice of consecutive columns."""
        return DenseChunk(self.names[which], self.X[which])

    def with_array_means(self, stats: Stats) -> Stats:
        """Return `stats` with the means that the arrays of this chunk have."""
        return stats

    def exact(self, stats: Stats, indices: NDArray[np.intp]) -> Stats:  # noqa: ARG002
        """Return the moments of the columns at `indices` from their values: `stats` itself."""
        return stats


class SparseChunk:
    """Validated sparse columns.

    Parameters
    ----------
    names
        One name per column.
    data, indices, indptr
        The arrays of a CSC matrix.
    n
        Number of rows.

    Attributes
    ----------
    groups
        As in `Block`; None if no column has a group.
    """

    groups: Sequence[Hashable] | None = None

    def __init__(
        self,
        names: Sequence[Hashable],
        data: NDArray[Any],
        indices: NDArray[Any],
        indptr: NDArray[Any],
        n: int,
    ) -> None:
        self.names = names
        self.n = n
        self.data, self.indices, self.indptr = data.view(), indices.view(), indptr.view()
        for array in (self.data, self.indices, self.indptr):
            array.flags.writeable = False

    def scan(self, target: Target | NoTarget, n_jobs: int) -> Stats:
        """Compute the moments of every column, in time proportional to the stored values."""
        b = self.indptr.size - 1
        stats = Stats(np.empty(b), np.empty(b), np.empty(b), np.empty((b, target.c)))
        Y, in_order = target.scan_rows, True
        YT = target.YT if Y is target.Y else Y.T

        def scan_part(part: slice) -> None:
            nonlocal in_order
            indptr = self.indptr[part.start : part.stop + 1]
            arrays = (array[part] for array in stats)
            if not scan_sparse(self.data, self.indices, indptr, Y, YT, *arrays):
                in_order = False

        if n_jobs == 1 or self.indptr[-1] - self.indptr[0] < _MIN_SIZE_FOR_THREADS:
            scan_part(slice(0, b))
        else:
            run_in_threads(scan_part, b, n_jobs)
        if in_order:
            return stats
        self.sum_duplicates()
        return self.scan(target, n_jobs)

    def columns(self, indices: NDArray[np.intp]) -> Floats:
        """Return the columns at `indices` as dense float64, one per row."""
        X = np.zeros((len(indices), self.n))
        for row, j in zip(X, indices.tolist(), strict=True):
            stored = slice(self.indptr[j], self.indptr[j + 1])
            row[self.indices[stored]] = self.data[stored]
        return X

    def observations(self, indices: NDArray[np.intp]) -> Floats:
        """Return the columns at `indices` as `RowTransform.observations` does, one per row."""
        return self.columns(indices)

    def column(self, j: int) -> Floats:
        """Return one column as dense float64, (n,)."""
        x: Floats = self.columns(np.array([j]))[0]
        return x

    def subset(self, indices: NDArray[np.intp]) -> DenseChunk:
        """Return a dense copy of the columns at `indices`, without names."""
        return DenseChunk((), self.columns(indices))

    def part(self, which: slice) -> SparseChunk:
        """Return a slice of consecutive columns."""
        names = self.names[which]
        indptr = self.indptr[which.start : which.start + len(names) + 1]
        return SparseChunk(names, self.data, self.indices, indptr, self.n)

    def with_array_means(self, stats: Stats) -> Stats:
        """Return `stats` with the means that the arrays of this chunk have."""
        return stats

    def exact(self, stats: Stats, indices: NDArray[np.intp]) -> Stats:  # noqa: ARG002
        """Return the moments of the columns at `indices` from their values: `stats` itself."""
        return stats

    def density(self, indices: NDArray[np.intp]) -> float:
        """Return the fraction of stored values in the columns at `indices`."""
        stored = self.indptr[indices + 1] - self.indptr[indices]
        return float(stored.sum()) / max(1, indices.size * self.n)

    def rows(self, indices: NDArray[np.intp]) -> Any:
        """Return the columns at `indices` as the rows of a SciPy matrix."""
        from scipy.sparse import csr_array

        parts = (self.data, self.indices, self.indptr)
        return csr_array(parts, shape=(self.indptr.size - 1, self.n))[indices]

    def check_indices(self) -> None:
        """Raise ValueError for row indices out of range."""
        indices = self.indices[self.indptr[0] : self.indptr[-1]]
        if indices.size and (indices.min() < 0 or indices.max() >= self.n):
            raise ValueError(
                f"Expected row indices from 0 to {self.n - 1} in a sparse block. Got: "
                f"{indices.min()} to {indices.max()}."
            )

    def sum_duplicates(self) -> None:
        """Sort row indices and sum duplicates, as scipy does, in a copy."""
        from scipy.sparse import csc_array

        self.check_indices()
        stored = slice(self.indptr[0], self.indptr[-1])
        indices = self.indices[stored]
        parts = (self.data[stored].copy(), indices.copy(), self.indptr - self.indptr[0])
        matrix = csc_array(parts, shape=(self.n, self.indptr.size - 1))
        matrix.sum_duplicates()
        self.data, self.indices, self.indptr = matrix.data, matrix.indices, matrix.indptr


class TransformedChunk(DenseChunk):
    """Columns whose rows are transformed, so that unweighted products are weighted ones.

    Parameters
    ----------
    part
        The original columns.
    row_transform
        The transformation.
    n_jobs
        Number of threads.
    """

    def __init__(self, part: Chunk, row_transform: RowTransform, n_jobs: int = 1) -> None:
        self._part, self._row_transform = part, row_transform
        if isinstance(part, DenseChunk):
            X = part.X
        else:
            part.sum_duplicates()
            X = part.columns(np.arange(len(part.names)))
        X, self._mean, self._low = row_transform.transform(X, part.names, n_jobs)
        super().__init__(part.names, X)

    def scan(self, target: Target | NoTarget, n_jobs: int) -> Stats:
        """Compute the moments of every transformed column with itself and the target."""
        stats = super().scan(target, n_jobs)
        with np.errstate(all="ignore"):
            mean, low = two_sum(self._mean, stats.mean)
            rounding = self.n * np.square(ROUNDING_RTOL * mean)
        stats.m2[stats.m2 <= rounding] = 0.0
        return stats._replace(mean=mean, mean_error=low + (self._low + stats.mean_error))

    def observations(self, indices: NDArray[np.intp]) -> Floats:
        """Return the columns at `indices` as `RowTransform.observations` does, one per row."""
        names = [self.names[j] for j in indices.tolist()]
        X, transformed = self._part.columns(indices), self.columns(indices)
        return self._row_transform.observations(X, transformed, self._mean[indices], names)

    def column(self, j: int) -> Floats:
        """Return a copy of one original column as float64, (n,)."""
        return self._part.column(j)

    def with_array_means(self, stats: Stats) -> Stats:
        """Return `stats` with the means that the arrays of this chunk have."""
        b = stats.mean.size
        return stats._replace(
            mean=stats.mean - self._mean[:b], mean_error=stats.mean_error - self._low[:b]
        )


class GeneratedChunk(DenseChunk):
    """Columns whose moments are computed without making them.

    A column whose moments would be inaccurate is made and scanned, and so are the columns at the
    indices that `exact` is called with: their moments have the bits of a dense column.

    Parameters
    ----------
    names
        One name per column.
    generated
        The columns.
    """

    def __init__(self, names: Sequence[Hashable], generated: GeneratedColumns) -> None:
        self.names, self._generated = names, generated
        self.n = generated.shape[0]
        self._target: Target | NoTarget | None = None
        # Which columns have the moments of made columns.
        self._is_exact = np.zeros(generated.shape[1], dtype=np.bool_)

    @functools.cached_property
    def X(self) -> NDArray[Any]:  # type: ignore[override]
        """All columns as rows, for code that reads dense columns in place."""
        X = self.columns(np.arange(len(self._is_exact)))
        X.flags.writeable = False
        return X

    def scan(self, target: Target | NoTarget, n_jobs: int) -> Stats:
        """Compute the moments of every column with itself and the target."""
        found = self._generated.moments(target.scan_rows, n_jobs)
        cxy = found.cxy[:, : target.c].copy()
        if cxy.shape[1] < target.c:
            # The second of two classes is the first, negated.
            cxy = np.hstack([cxy, -cxy])
        stats = Stats(found.mean.copy(), found.mean_error.copy(), found.m2.copy(), cxy)
        inaccurate = np.flatnonzero(~found.is_accurate)
        self._scan_made(inaccurate, stats, target, n_jobs)
        # The first scan is with the learner's target.
        if self._target is None:
            self._target = target
            self._is_exact[inaccurate] = True
        return stats

    def exact(self, stats: Stats, indices: NDArray[np.intp]) -> Stats:
        """Return moments, those of the columns at `indices` from the columns when made."""
        indices = indices[~self._is_exact[indices]]
        if not indices.size or self._target is None:
            return stats
        stats = Stats(*(array.copy() for array in stats))
        self._scan_made(indices, stats, self._target, 1)
        self._is_exact[indices] = True
        return stats

    def _scan_made(
        self, indices: NDArray[np.intp], stats: Stats, target: Target | NoTarget, n_jobs: int
    ) -> None:
        """Make columns in batches, and replace their moments by those of the scan."""
        width = max(1, _GATHERED_BYTES // (8 * self.n))
        for part in parts_of_width(indices.size, width):
            made = DenseChunk((), self._generated.columns(indices[part]))
            for array, of_part in zip(stats, made.scan(target, n_jobs), strict=True):
                array[indices[part]] = of_part

    def products(self, indices: NDArray[np.intp], V: Floats) -> Floats:
        """Return the inner products of the columns at `indices`, ascending, with rows V (q, n)."""
        first, last = int(indices[0]), int(indices[-1]) + 1
        if indices.size < (last - first) // 4:
            return self.columns(indices) @ V.T
        found = self._generated.part(slice(first, last)).products(V)
        return found if indices.size == last - first else found[indices - first]

    def columns(self, indices: NDArray[np.intp]) -> Floats:
        """Make the columns at `indices` as float64, one per row."""
        return self._generated.columns(indices)

    def column(self, j: int) -> Floats:
        """Make one column as float64, (n,)."""
        x: Floats = self.columns(np.array([j]))[0]
        return x

    def part(self, which: slice) -> GeneratedChunk:
        """Return a slice of consecutive columns."""
        return GeneratedChunk(self.names[which], self._generated.part(which))


Chunk = DenseChunk | SparseChunk


def made_blocks(block: Block) -> Iterator[Block]:
    """Yield a block whose columns are made if they are generated, in parts of bounded size.

    Groups are not divided: a block of groups is one part.
    """
    names, values, groups = block
    if not isinstance(values, GeneratedColumns):
        yield block
        return
    n, size = values.shape
    width = max(1, size if groups is not None else _GATHERED_BYTES // (8 * max(1, n)))
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


def group_starts(groups: Sequence[Hashable] | None, b: int) -> NDArray[np.intp]:
    """Return the indices of the first columns of the groups of b columns, and b."""
    if groups is None:
        return np.arange(b + 1)
    first = [j for j in range(b) if not j or groups[j] is None or groups[j] != groups[j - 1]]
    return np.array([*first, b], dtype=np.intp)


def group_slices(b: int, step: int, groups: Sequence[Hashable] | None) -> Iterator[slice]:
    """Yield slices of about `step` of b columns, which divide no group."""
    if groups is None:
        yield from (slice(start, min(start + step, b)) for start in range(0, b, step))
        return
    starts, first = group_starts(groups, b), 0
    while first < b:
        last = int(starts[min(int(np.searchsorted(starts, first + step)), starts.size - 1)])
        yield slice(first, last)
        first = last


def _generated(block: Block, n_rows: int) -> Iterator[Chunk]:
    names, values = block.names, block.values
    shape = _shape_of(block)
    if shape[0] != n_rows:
        raise wrong_length_error(names, shape[0], n_rows)
    most = min(max(1, _GENERATED_BYTES // (8 * max(1, n_rows))), _MAX_GENERATED_COLUMNS)
    start, width = 0, min(most, _FIRST_GENERATED_COLUMNS)
    while start < shape[1]:
        part = slice(start, start + width)
        yield GeneratedChunk(names[part], values.part(part))
        start, width = part.stop, min(2 * width, most)


def _transformed(
    found: Iterator[Chunk], row_transform: RowTransform, n_jobs: int
) -> Iterator[Chunk]:
    for chunk in found:
        itemsize = chunk.X.itemsize if isinstance(chunk, DenseChunk) else 8
        # A block gathered from single columns is not split.
        step = max(1, _GATHERED_BYTES // (itemsize * chunk.n))
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
    step = max(1, _GATHERED_BYTES // (values.itemsize * n_rows))
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
        width = max(_MIN_CHUNK_COLUMNS, _GATHERED_BYTES // (values.itemsize * max(1, n_rows)))
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
            f"Expected values whose squares {fit} in column {name!r}. Got: values up to "
            f"{largest:.3g}.\n"
            "Hint: divide all columns by the same number; that keeps their relative scale."
        )
    what = "missing (NaN)" if np.isnan(x[bad]).all() else "NaN or infinite"
    row = bad[0] if kept is None else kept.index[bad[0]]
    return ValueError(
        f"Expected finite numbers in column {name!r}. Got: {bad.size} of {x.size} values {what}, "
        f"the first in row {row}.\n"
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
    which = f"column {names[0]!r}" if len(names) == 1 else f"columns {names[0]!r} to {names[-1]!r}"
    example = f" like {values.flat[0]!r}" if values.size else ""
    raise TypeError(
        f"Expected real numbers in {which}. Got: {what}{example}.\n"
        "Hint: encode categories as indicator columns, or drop the column."
    )


def wrong_length_error(names: Sequence[Hashable], n: int, n_rows: int) -> ValueError:
    """Return the error for columns of n values where the target has n_rows."""
    which = f"column {names[0]!r}" if len(names) == 1 else f"columns {names[0]!r} to {names[-1]!r}"
    return ValueError(
        f"Expected {n_rows} values, as the target has, in {which}. Got: {n}.\n"
        "Hint: a column has one value for every observation of the target."
    )


def _not_a_column(name: Hashable, shape: tuple[int, ...]) -> ValueError:
    return ValueError(
        f"Expected a column of shape (n,) for {name!r}. Got: shape {shape}.\n"
        "Hint: learn_columns takes several columns at once."
    )
