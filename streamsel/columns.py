"""Columns and blocks of columns: the only door by which columns come in.

 Whatever a source or a user hands in leaves here as a chunk: dense columns, one a row, contiguous,
in a type that the compiled loops read in place; or the three arrays of a sparse matrix. So the
loops need to know four number types and two layouts, and nothing behind the door checks again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel._jit.scan import ROUNDINGS, SMALL, UNDERFLOW, scan_dense, scan_sparse
from streamsel.params import shown
from streamsel.plain import array_of
from streamsel.sparse import expect_whole
from streamsel.summation import two_sum
from streamsel.target.kept import KeptRows
from streamsel.target.target import NoTarget, Target
from streamsel.target.weights import Weights
from streamsel.threads import in_threads

Floats = NDArray[np.float64]

# Read in place; everything else is converted to float64, a piece of this many bytes at a time.
_IN_PLACE = frozenset(np.dtype(t) for t in (np.float64, np.float32, np.int8, np.uint8))
_PIECE = 2 << 20
# Of so many columns the moments stay in the cache, and in memory that is used again and again.
_WIDTH = 8192
# Blocks that were gathered from single columns have no more bytes than this.
_GATHERED = 4 << 20
# Fewer numbers than this are not worth waking threads for.
_WORTH_THREADS = 1 << 18


class Block(NamedTuple):
    """Several columns at once.

    Parameters
    ----------
    names
        One hashable name a column.
    values
        The columns: an array of shape (n, b), best Fortran-contiguous, or a `scipy.sparse` CSC
        matrix. A column that is not numeric stands in a block of its own, as an (n, 1) object
        array.
    """

    names: Sequence[Hashable]
    values: Any


class Stats(NamedTuple):
    """Moments of columns: means (b,), sums of squares (b,), products with the target (b, c).

    `low` (b,) is what rounding took from the means: with an offset of 1e9 it is what rows that come
    later need to go on exactly.
    """

    mean: Floats
    low: Floats
    m2: Floats
    cxy: Floats


class DenseChunk:
    """Dense columns behind the door.

    Parameters
    ----------
    names
        One a column.
    X
        (b, n) columns as rows, C-contiguous, of a type that is read in place. A view of the
        caller's: it is made read-only, for numba would compile a second time for an array that may
        be written.
    """

    def __init__(self, names: Sequence[Hashable], X: NDArray[Any]) -> None:
        self.names = names
        self.n = X.shape[1]
        X.flags.writeable = False
        self.X = X

    def scan(self, target: Target | NoTarget, n_jobs: int) -> Stats:
        """Compute the moments of every column with itself and the target, in one pass."""
        b = self.X.shape[0]
        stats = Stats(np.empty(b), np.empty(b), np.empty(b), np.empty((b, target.c)))
        if n_jobs == 1 or self.X.size < _WORTH_THREADS:
            scan_dense(self.X, target.scanned, *stats)
            return stats

        def scan_part(part: slice) -> None:
            scan_dense(self.X[part], target.scanned, *(array[part] for array in stats))

        in_threads(scan_part, b, n_jobs)
        return stats

    def columns(self, places: NDArray[np.intp]) -> Floats:
        """Return a copy of some columns as float64, one a row."""
        return np.asarray(self.X[places], dtype=np.float64)

    def observations(self, places: NDArray[np.intp]) -> Floats:
        """Return a copy of some columns as they came, as float64, one a row."""
        return self.columns(places)

    def column(self, j: int) -> Floats:
        """Return a copy of one column as float64, (n,)."""
        column: Floats = self.X[j].astype(np.float64)
        return column

    def subset(self, places: NDArray[np.intp]) -> DenseChunk:
        """Return a copy of some columns, without names."""
        return DenseChunk((), self.columns(places))

    def part(self, which: slice) -> DenseChunk:
        """Return some columns, which follow one another."""
        return DenseChunk(self.names[which], self.X[which])

    def about(self, stats: Stats) -> Stats:
        """Return the moments of these columns, stats, with the means that the arrays have."""
        return stats


class SparseChunk:
    """Sparse columns behind the door.

    Parameters
    ----------
    names
        One a column.
    data, indices, indptr
        The parts of a CSC matrix.
    n
        Number of rows.
    """

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
        """Compute the moments of every column, in time proportional to the values stored."""
        b = self.indptr.size - 1
        stats = Stats(np.empty(b), np.empty(b), np.empty(b), np.empty((b, target.c)))
        Y, in_order = target.scanned, True
        YT = target.YT if Y is target.Y else Y.T

        def scan_part(part: slice) -> None:
            nonlocal in_order
            indptr = self.indptr[part.start : part.stop + 1]
            arrays = (array[part] for array in stats)
            if not scan_sparse(self.data, self.indices, indptr, Y, YT, *arrays):
                in_order = False

        if n_jobs == 1 or self.indptr[-1] - self.indptr[0] < _WORTH_THREADS:
            scan_part(slice(0, b))
        else:
            in_threads(scan_part, b, n_jobs)
        if in_order:
            return stats
        self.sum_duplicates()
        return self.scan(target, n_jobs)

    def columns(self, places: NDArray[np.intp]) -> Floats:
        """Return some columns as dense float64, one a row."""
        X = np.zeros((len(places), self.n))
        for row, j in zip(X, places.tolist(), strict=True):
            stored = slice(self.indptr[j], self.indptr[j + 1])
            row[self.indices[stored]] = self.data[stored]
        return X

    def observations(self, places: NDArray[np.intp]) -> Floats:
        """Return some columns as dense float64, one a row."""
        return self.columns(places)

    def column(self, j: int) -> Floats:
        """Return one column as dense float64, (n,)."""
        x: Floats = self.columns(np.array([j]))[0]
        return x

    def subset(self, places: NDArray[np.intp]) -> DenseChunk:
        """Return a dense copy of some columns, without names."""
        return DenseChunk((), self.columns(places))

    def part(self, which: slice) -> SparseChunk:
        """Return some columns, which follow one another."""
        names = self.names[which]
        indptr = self.indptr[which.start : which.start + len(names) + 1]
        return SparseChunk(names, self.data, self.indices, indptr, self.n)

    def about(self, stats: Stats) -> Stats:
        """Return the moments of these columns, stats, with the means that the arrays have."""
        return stats

    def density(self, places: NDArray[np.intp]) -> float:
        """Return the share of values of some columns that are stored."""
        stored = self.indptr[places + 1] - self.indptr[places]
        return float(stored.sum()) / max(1, places.size * self.n)

    def rows(self, places: NDArray[np.intp]) -> Any:
        """Return some columns, one a row of a SciPy matrix."""
        from scipy.sparse import csr_array

        parts = (self.data, self.indices, self.indptr)
        return csr_array(parts, shape=(self.indptr.size - 1, self.n))[places]

    def check_indices(self) -> None:
        """Refuse row indices that are out of range."""
        indices = self.indices[self.indptr[0] : self.indptr[-1]]
        if indices.size and (indices.min() < 0 or indices.max() >= self.n):
            raise ValueError(
                f"Expected row indices from 0 to {self.n - 1} in a sparse block. Got: "
                f"{indices.min()} to {indices.max()}."
            )

    def sum_duplicates(self) -> None:
        """Put row indices in order and add up repeated ones, as scipy means them, in a copy."""
        from scipy.sparse import csc_array

        self.check_indices()
        stored = slice(self.indptr[0], self.indptr[-1])
        indices = self.indices[stored]
        parts = (self.data[stored].copy(), indices.copy(), self.indptr - self.indptr[0])
        matrix = csc_array(parts, shape=(self.n, self.indptr.size - 1))
        matrix.sum_duplicates()
        self.data, self.indices, self.indptr = matrix.data, matrix.indices, matrix.indptr


class TurnedChunk(DenseChunk):
    """Columns of observations that have weights, behind the door: equal weights see them weighted.

    Parameters
    ----------
    part
        The columns as they came.
    weights
        Of the observations.
    """

    def __init__(self, part: Chunk, weights: Weights) -> None:
        self._part = part
        if isinstance(part, DenseChunk):
            X = part.X
        else:
            part.sum_duplicates()
            X = part.columns(np.arange(len(part.names)))
        X, self._mean, self._low = weights.turned(X)
        super().__init__(part.names, X)

    def scan(self, target: Target | NoTarget, n_jobs: int) -> Stats:
        """Compute the weighted moments of every column with itself and the target."""
        stats = super().scan(target, n_jobs)
        with np.errstate(all="ignore"):
            mean, low = two_sum(self._mean, stats.mean)
            rounding = self.n * np.square(ROUNDINGS * mean)
        stats.m2[stats.m2 <= rounding] = 0.0
        return stats._replace(mean=mean, low=low + (self._low + stats.low))

    def observations(self, places: NDArray[np.intp]) -> Floats:
        """Return a copy of some columns as they came, as float64, one a row."""
        return self._part.observations(places)

    def column(self, j: int) -> Floats:
        """Return a copy of one column as it came, as float64, (n,)."""
        return self._part.column(j)

    def about(self, stats: Stats) -> Stats:
        """Return the moments of these columns, stats, with the means that the arrays have."""
        b = stats.mean.size
        return stats._replace(mean=stats.mean - self._mean[:b], low=stats.low - self._low[:b])


Chunk = DenseChunk | SparseChunk


def chunks(
    block: Block, n_rows: int, weights: Weights | None = None, kept: KeptRows | None = None
) -> Iterator[Chunk]:
    """Let a block in: yield its columns as chunks that the compiled loops can read.

    Parameters
    ----------
    block
        Names and an (n, b) array or sparse matrix.
    n_rows
        The number of observations that the target has.
    weights
        Of the observations; None where all weigh the same. With them columns are copied, sparse
        ones too, as dense ones, some at a time.
    kept
        Which rows of the columns are these observations; None for all. Columns have a value for
        every row, or, where others were left out before, for every row that counts.

    Raises
    ------
    ValueError
        Where the shape is not (n_rows, number of names).
    TypeError
        Where the values are not real numbers.
    """
    found = _chunks(block, n_rows) if kept is None else _of_kept(block, n_rows, kept)
    return found if weights is None else _turned(found, weights)


def _turned(found: Iterator[Chunk], weights: Weights) -> Iterator[Chunk]:
    for chunk in found:
        itemsize = chunk.X.itemsize if isinstance(chunk, DenseChunk) else 8
        # What was gathered stays whole.
        step = max(1, _GATHERED // (itemsize * chunk.n))
        for start in range(0, len(chunk.names), step):
            yield TurnedChunk(chunk.part(slice(start, start + step)), weights)


def _of_kept(block: Block, n_rows: int, kept: KeptRows) -> Iterator[Chunk]:
    """Yield columns of the rows that count alone, in copies, some at a time."""
    names, values = block
    shape = _shape_of(block)
    if shape[0] == n_rows:
        yield from _chunks(block, n_rows)
        return
    if shape[0] != kept.n:
        raise wrong_length(names, shape[0], kept.n)
    if hasattr(values, "toarray"):
        chunk = _sparse(names, values)
        chunk.check_indices()
        yield SparseChunk(names, *kept.sparse(chunk.data, chunk.indices, chunk.indptr), n_rows)
        return
    # What was gathered from single columns stays whole: a name must not stand twice in it.
    step = max(1, _GATHERED // (values.itemsize * n_rows))
    for start in range(0, shape[1], step):
        part = slice(start, start + step)
        yield from _chunks(Block(names[part], kept.dense(values.T[part]).T), n_rows)


def _shape_of(block: Block) -> tuple[int, int]:
    names, values = block
    shape = getattr(values, "shape", None)
    if shape is None or len(shape) != 2 or shape[1] != len(names):
        raise ValueError(
            f"Expected a block of shape (n, {len(names)}), a column a name. Got: shape {shape}."
        )
    return shape[0], shape[1]


def _chunks(block: Block, n_rows: int) -> Iterator[Chunk]:
    names, values = block
    shape = _shape_of(block)
    if shape[0] != n_rows:
        raise wrong_length(names, shape[0], n_rows)
    if hasattr(values, "toarray"):
        yield _sparse(names, values)
        return
    if values.dtype == np.bool_:
        values = values.view(np.uint8)
    if values.dtype in _IN_PLACE and values.flags.f_contiguous:
        # What was gathered from single columns stays whole: a name must not stand twice in it.
        width = max(_WIDTH, _GATHERED // (values.itemsize * max(1, n_rows)))
        for start in range(0, shape[1], width):
            part = slice(start, start + width)
            yield DenseChunk(names[part], values.T[part])
        return
    step = max(1, _PIECE // (8 * max(1, n_rows)))
    for start in range(0, shape[1], step):
        part = slice(start, start + step)
        yield DenseChunk(names[part], _numbers(values[:, part].T, names[part]))


def column(
    name: Hashable,
    values: Any,
    n_rows: int,
    weights: Weights | None = None,
    kept: KeptRows | None = None,
) -> Chunk:
    """Let one column in: n observations, dense or sparse; raise as `chunks` does."""
    chunk = _column(name, values, n_rows, kept)
    return chunk if weights is None else TurnedChunk(chunk, weights)


def _column(name: Hashable, values: Any, n_rows: int, kept: KeptRows | None) -> Chunk:
    if hasattr(values, "toarray"):
        expect_whole(values)
        if values.ndim == 1:
            values = values.reshape(-1, 1)
        if values.shape[1] != 1:
            raise _not_a_column(name, values.shape)
        return next(chunks(Block((name,), values), n_rows, None, kept))
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    array = values if type(values) is np.ndarray else array_of(values, f"values of {shown(name)}")
    if array.ndim != 1:
        raise _not_a_column(name, array.shape)
    if kept is not None and array.shape[0] == kept.n:
        array = array.take(kept.index)
    if array.shape[0] != n_rows:
        raise wrong_length((name,), array.shape[0], n_rows if kept is None else kept.n)
    if array.dtype not in _IN_PLACE or not array.flags.c_contiguous:
        array = _numbers(array[None, :], (name,))[0]
    return DenseChunk((name,), array[None, :])


def of_observed(chunk: Chunk, stats: Stats) -> Stats:
    """Return the moments of columns, of the observed values where others are NaN.

    A column with an infinite value, or with nothing observed, keeps what it has, which is not
    finite.
    """
    for j in np.flatnonzero(~np.isfinite(stats.m2)).tolist():
        x = chunk.column(j)
        seen = ~np.isnan(x)
        if seen.all() or not seen.any() or np.isinf(x).any():
            continue
        x = x[seen]
        mean = x.mean()
        left = x - mean
        low = left.mean()
        # One value again and again does not vary, whatever rounding says.
        with np.errstate(over="ignore"):
            m2 = 0.0 if x.min() == x.max() else float(np.square(left - low).sum())
        if m2 < UNDERFLOW and abs(mean) < SMALL and x.min() < x.max():
            m2 = np.nan
        stats.mean[j], stats.low[j], stats.m2[j] = mean, low, m2
    return stats


def why_bad(name: Hashable, x: Floats, kept: KeptRows | None = None) -> ValueError:
    """Return the error for a column whose moments are not finite: what is in it and where.

    Where rows were left out, `kept` has the numbers of those whose values x has.
    """
    bad = np.flatnonzero(~np.isfinite(x))
    if bad.size == 0:
        largest = float(np.abs(x).max())
        fit = "fit into float64" if largest > 1.0 else "float64 can tell from 0"
        return ValueError(
            f"Expected values whose squares {fit} in column {name!r}. Got: values up to "
            f"{largest:.3g}.\n"
            "Hint: divide all columns by the same number, so that each counts as it did."
        )
    what = "missing (NaN)" if np.isnan(x[bad]).all() else "NaN or infinite"
    row = bad[0] if kept is None else kept.index[bad[0]]
    return ValueError(
        f"Expected finite numbers in column {name!r}. Got: {bad.size} of {x.size} values {what}, "
        f"the first in row {row}.\n"
        "Hint: fill them in, or leave the column out; streamsel.stream.screen does either."
    )


def _sparse(names: Sequence[Hashable], matrix: Any) -> SparseChunk:
    # The indices of CSC columns are looked at as these are summed.
    expect_whole(matrix, indices=matrix.format != "csc")
    if matrix.format != "csc":
        matrix = matrix.tocsc()
    data = matrix.data
    if data.dtype not in _IN_PLACE:
        data = _numbers(data, names)
    return SparseChunk(names, data, matrix.indices, matrix.indptr, matrix.shape[0])


def _numbers(values: NDArray[Any], names: Sequence[Hashable]) -> NDArray[Any]:
    """Return the values as a contiguous array of a type that is read in place."""
    if values.dtype in _IN_PLACE:
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
        "Hint: turn categories into indicator columns, or leave the column out."
    )


def wrong_length(names: Sequence[Hashable], n: int, n_rows: int) -> ValueError:
    """Return what is raised for columns of n values where the target has n_rows."""
    which = f"column {names[0]!r}" if len(names) == 1 else f"columns {names[0]!r} to {names[-1]!r}"
    return ValueError(
        f"Expected {n_rows} values, as the target has, in {which}. Got: {n}.\n"
        "Hint: a column holds one value for every observation of the target."
    )


def _not_a_column(name: Hashable, shape: tuple[int, ...]) -> ValueError:
    return ValueError(
        f"Expected a column of shape (n,) for {name!r}. Got: shape {shape}.\n"
        "Hint: learn_columns takes several columns at once."
    )
