"""Columns in the forms that compiled loops read, and their moments.

Dense columns are contiguous rows of a type that the loops read in place, sparse ones the three
arrays of a matrix; transformed columns are dense. Generated columns are made only if their values
are required.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel._kernels.scan import ROUNDING_RTOL, scan_dense, scan_sparse
from streamsel._utils.numeric import two_sum
from streamsel._utils.system import run_in_threads
from streamsel.data.generated import GeneratedColumns, parts_of_width
from streamsel.targets.row_transform import RowTransform
from streamsel.targets.target import NoTarget, Target

Floats = NDArray[np.float64]

# Largest size in bytes of columns that are gathered, transformed or made at once.
GATHERED_BYTES = 4 << 20
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
        """Return the untransformed observations of the columns at `indices`, one column per row."""
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
        """Return `stats` with the means of the arrays that this chunk stores."""
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
        starts = self.indptr[indices].astype(np.intp)
        sizes = self.indptr[indices + 1] - starts
        # The positions of all stored values, column by column.
        skipped = starts - (np.cumsum(sizes) - sizes)
        stored = np.arange(sizes.sum()) + np.repeat(skipped, sizes)
        X[np.repeat(np.arange(len(indices)), sizes), self.indices[stored]] = self.data[stored]
        return X

    def observations(self, indices: NDArray[np.intp]) -> Floats:
        """Return the untransformed observations of the columns at `indices`, one column per row."""
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
        """Return `stats` with the means of the arrays that this chunk stores."""
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
        """Return the untransformed observations of the columns at `indices`, one column per row."""
        names = [self.names[j] for j in indices.tolist()]
        X, transformed = self._part.columns(indices), self.columns(indices)
        return self._row_transform.observations(X, transformed, self._mean[indices], names)

    def column(self, j: int) -> Floats:
        """Return a copy of one original column as float64, (n,)."""
        return self._part.column(j)

    def with_array_means(self, stats: Stats) -> Stats:
        """Return `stats` with the means of the arrays that this chunk stores."""
        b = stats.mean.size
        return stats._replace(
            mean=stats.mean - self._mean[:b], mean_error=stats.mean_error - self._low[:b]
        )


class GeneratedChunk(DenseChunk):
    """Columns whose moments are computed without making them.

    A column whose moments would be inaccurate is made and scanned, and so are the columns at the
    indices that `exact` is called with: their moments are bit-identical to those of a dense column.

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
        """Return `stats`, with moments at `indices` computed from the columns when made."""
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
        width = max(1, GATHERED_BYTES // (8 * self.n))
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
