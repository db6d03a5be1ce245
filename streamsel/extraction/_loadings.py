"""Second pass for loadings: the largest are kept in memory, or all are written to a file."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from streamsel._utils.optional import import_pyarrow
from streamsel.data.chunks import Chunk, SparseChunk, Stats
from streamsel.extraction._regressed_loadings import (
    project_out,
    regress_scores,
    rescale_loadings,
    residual_trace,
)
from streamsel.serialization.atomic import atomic_write
from streamsel.state.base import Floats, Indices, StoredLoadings
from streamsel.state.gram.buffers import (
    CenteredColumns,
    DenseCentered,
    SparseBuffer,
    SparseCentered,
)
from streamsel.state.gram.pooled import GramState
from streamsel.state.gram.view import residual
from streamsel.state.pool.pool import residuals, unit_columns
from streamsel.state.source_check import PASS_RTOL, LearntColumns, source_changed_error
from streamsel.stream import ColumnStream

# Bytes of dense columns that are weighted at a time.
_BATCH_BYTES = 4 << 20
# Number of sparse columns that are multiplied at a time, without conversion to dense ones.
_SPARSE_BATCH = 4096

# Validates the columns of a stream, and returns them with their moments.
Scan = Callable[[ColumnStream], Iterator[tuple[Chunk, Stats]]]
# Receives the loadings of columns: names, means, and weights (b, q).
LoadingsWriter = Callable[[Sequence[Hashable], Floats, Floats], None]


class LoadingsRequest(NamedTuple):
    """The quantities needed for a second pass.

    Parameters
    ----------
    duals, scores
        (n, q) α, which maps weighted columns to loadings, and the scores of the components.
    n
        Number of observations minus the rank of the covariates.
    trace
        Sum of squares of all weighted columns.
    scales
        Factor of each weighting of the columns; the squares are added.
    probes, gram_times_probes
        (n, k) random vectors, and their products with the Gram matrix, to verify that the columns
        are the same.
    excluded_directions
        (n, r) directions that components must be orthogonal to; None for none.
    """

    duals: Floats
    scores: Floats
    n: float
    trace: float
    scales: Floats
    probes: Floats
    gram_times_probes: Floats
    excluded_directions: Floats | None = None


class TopLoadings(NamedTuple):
    """Columns whose loadings are kept.

    Parameters
    ----------
    names, means, deviations, scale
        (s,) names, means, standard deviations and weights of the columns.
    weighted, loadings
        (s, n) the weighted columns, and their products with α, (s, q).
    """

    names: list[Hashable]
    means: Floats
    deviations: Floats
    scale: Floats
    weighted: Floats
    loadings: Floats

    def take(self, indices: Indices) -> TopLoadings:
        """Return a subset, by indices."""
        names = [self.names[index] for index in indices.tolist()]
        return TopLoadings(names, *(array[indices] for array in self[1:]))

    @classmethod
    def concatenate(cls, pieces: Sequence[TopLoadings]) -> TopLoadings:
        """Return the concatenation of several sets."""
        names, *arrays = zip(*pieces, strict=True)
        return cls(list(itertools.chain(*names)), *map(np.concatenate, arrays))


class LoadingsPassResult:
    """The columns with the largest loadings in one part.

    Parameters
    ----------
    shape
        Observations, 0 if they are not kept, and components, (n, q).
    probe
        (n, k) `probes` of `LoadingsRequest`.
    limit
        Maximum number of columns kept.
    min_size
        The sum of squares of loadings that a column must exceed.

    Attributes
    ----------
    n_read, pool_names
        Number of columns, and the names of those that are in the pool.
    gram_times_probe
        (n, k) product of their Gram matrix with the probe.
    has_discarded
        Whether columns were discarded.
    """

    def __init__(
        self, shape: tuple[int, int], probe: Floats, limit: int, *, min_size: float = -1.0
    ) -> None:
        n, q = shape
        none = np.empty(0)
        self.n_read, self.pool_names = 0, set[Hashable]()
        self.gram_times_probe, self.has_discarded = np.zeros_like(probe), False
        self._limit, self._min_size = limit, min_size
        self._kept = [TopLoadings([], none, none, none, np.empty((0, n)), np.empty((0, q)))]

    def select_large(self, loadings: Floats) -> Indices:
        """Return the indices of the columns to keep, by their loadings, (b, q)."""
        sizes = _sizes(loadings)
        large = np.flatnonzero(sizes > self._min_size)
        large = large[_largest(sizes[large], self._limit)]
        self.has_discarded |= large.size < len(loadings)
        return large

    def add(self, kept: TopLoadings) -> None:
        """Add columns, and discard the smallest once there are too many."""
        self._kept.append(kept)
        if sum(len(kept.names) for kept in self._kept) >= 2 * self._limit:
            self.discard_smallest()

    def discard_smallest(self) -> None:
        """Discard all but the `limit` largest."""
        kept = self.columns()
        if len(kept.names) <= self._limit:
            return
        sizes = _sizes(kept.loadings)
        largest = _largest(sizes, self._limit)
        self.has_discarded = True
        self._min_size = float(sizes[largest].min(initial=np.inf))
        self._kept = [kept.take(largest)]

    def columns(self) -> TopLoadings:
        """Return the columns that are kept."""
        self._kept = [TopLoadings.concatenate(self._kept)]
        return self._kept[0]

    def merge(self, other: LoadingsPassResult) -> None:
        """Add the result for the columns that come directly after."""
        self.n_read += other.n_read
        self.pool_names |= other.pool_names
        self.gram_times_probe = self.gram_times_probe + other.gram_times_probe
        self.has_discarded |= other.has_discarded
        self.add(other.columns())
        self.discard_smallest()


class LoadingsPass:
    """A second pass over columns, which keeps those with the largest loadings.

    α maps weighted columns to loadings: those of a column x of length 1 and weight D are D · D xᵀα.
    If not all can be kept, the columns of the largest D xᵀα are, and the residual of the components
    is regressed on them.

    Parameters
    ----------
    scan
        Validates the columns of a stream, and returns them with their moments.
    state
        The state after the first pass; only its weights and covariates are kept.
    request
        The quantities from the first pass.
    learnt
        Check that the columns are those of the first pass.
    limit
        Maximum number of variables kept.
    observed
        Whether to keep their observations, which regression and projection need.
    """

    def __init__(
        self,
        scan: Scan,
        state: GramState[Any],
        request: LoadingsRequest,
        learnt: LearntColumns,
        limit: int,
        *,
        observed: bool,
    ) -> None:
        self._scan, self._learnt, self._limit = scan, learnt, limit
        self._observed = observed
        self._weights, self._covariate_basis = state.weights, state.pool.covariate_basis
        self._shape, self._scales = request.scores.shape, request.scales
        # Covariates are projected out of the duals, as sparse columns remain unprojected.
        self._duals, self._probe = (
            residual(V, self._covariate_basis) for V in (request.duals, request.probes)
        )

    def read(
        self, stream: ColumnStream, arrival: int = 0, sink: LoadingsWriter | None = None
    ) -> LoadingsPassResult:
        """Return the result for the columns of a part, in any order.

        Parameters
        ----------
        stream
            The columns.
        arrival
            Number of columns before them; unused.
        sink
            Receives the loadings of all columns, as they arrive.
        """
        del arrival
        n, q = self._shape
        result = LoadingsPassResult((n if self._observed else 0, q), self._probe, self._limit)
        for chunk, stats in self._scan(stream):
            result.pool_names |= self._learnt.check(chunk.names, stats)
            result.n_read += len(chunk.names)
            self._add_chunk(chunk, stats, result, sink)
        result.discard_smallest()
        return result

    def _add_chunk(
        self,
        chunk: Chunk,
        stats: Stats,
        result: LoadingsPassResult,
        sink: LoadingsWriter | None,
    ) -> None:
        scale: Floats = np.linalg.norm(self._weights.factors(stats) * self._scales, axis=1)
        length = np.sqrt(self._weights.squares(stats))
        indices = np.flatnonzero(scale)
        step = (
            _SPARSE_BATCH
            if isinstance(chunk, SparseChunk)
            else max(1, _BATCH_BYTES // (8 * chunk.n))
        )

        def weigh(batch: Indices) -> Floats:
            units = unit_columns(chunk, stats, batch)
            if self._covariate_basis is not None:
                units = residuals(units, self._covariate_basis)
            units *= (scale * length)[batch, None]
            return units

        for start in range(0, indices.size, step):
            batch = indices[start : start + step]
            names = [chunk.names[index] for index in batch.tolist()]
            means, factors = stats.mean[batch], scale[batch]
            deviations = np.sqrt(stats.m2[batch] / chunk.n)
            dense = None
            if isinstance(chunk, SparseChunk):
                stored = SparseBuffer.of(chunk, stats, batch, factors, np.ones((batch.size, 1)))
                loadings = self._loadings_of(SparseCentered(stored, chunk.n), result)
            else:
                dense = weigh(batch)
                loadings = self._loadings_of(DenseCentered(dense, 1), result)
            if sink is not None:
                sink(names, means, loadings * factors[:, None])
            large = result.select_large(loadings)
            if large.size:
                weighted = np.empty((large.size, 0))
                if self._observed:
                    weighted = weigh(batch[large]) if dense is None else dense[large]
                names = [names[index] for index in large.tolist()]
                moments = (means[large], deviations[large], factors[large])
                result.add(TopLoadings(names, *moments, weighted, loadings[large]))

    def _loadings_of(self, columns: CenteredColumns, result: LoadingsPassResult) -> Floats:
        """Return the products of columns with α; update the Gram-probe product of `result`."""
        if self._probe.size:
            result.gram_times_probe += columns.matmul(columns.rmatmul(self._probe))
        return columns.rmatmul(self._duals)


def collect_loadings(
    result: LoadingsPassResult,
    request: LoadingsRequest,
    covariate_basis: Floats | None,
    learnt: LearntColumns,
) -> StoredLoadings:
    """Return the loadings; ValueError if the columns are not those that were learnt."""
    learnt.check_complete(result.n_read, result.pool_names)
    expected = request.gram_times_probes
    tolerance = PASS_RTOL * np.abs(expected).max(initial=0.0)
    if not np.allclose(
        residual(result.gram_times_probe, covariate_basis), expected, rtol=0.0, atol=tolerance
    ):
        raise source_changed_error("columns with other values")
    result.discard_smallest()
    names, means, deviations, scale, weighted, loadings = result.columns()
    if result.has_discarded:
        scores = request.scores
        left = scores - weighted.T @ loadings
        others = residual_trace(request.trace, weighted)
        loadings = loadings + regress_scores(weighted, left, request.n, others)
        loadings = rescale_loadings(loadings, weighted, scores)
    if request.excluded_directions is not None:
        loadings = project_out(loadings, weighted @ request.excluded_directions)
    return StoredLoadings(names, means, loadings * scale[:, None], deviations)


def _largest(sizes: Floats, limit: int) -> Indices:
    return np.sort(np.argsort(-sizes, kind="stable")[:limit])


def _sizes(loadings: Floats) -> Floats:
    sizes: Floats = np.square(loadings).sum(axis=1)
    return sizes


@contextmanager
def loadings_file(to: str | Path, components: Sequence[str]) -> Iterator[LoadingsWriter]:
    """Open a file for loadings and yield a function that writes them; an error removes the file.

    Parameters
    ----------
    to
        Path of the file, with suffix .csv or .parquet.
    components
        Names of the components: the header of their columns.

    Raises
    ------
    ValueError
        For any other suffix.
    """
    path = Path(to)
    kinds = {".csv": _to_csv, ".parquet": _to_parquet}
    if path.suffix not in kinds:
        raise ValueError(
            f"Expected a path with suffix {' or '.join(kinds)}. Got: {path.name!r}.\n"
            "Hint: learn_loadings(X, to='loadings.csv')."
        )
    with (
        atomic_write(path) as part,
        kinds[path.suffix](part, ["name", "mean", *components]) as sink,
    ):
        yield sink


@contextmanager
def _to_csv(path: Path, header: list[str]) -> Iterator[LoadingsWriter]:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)

        def write(names: Sequence[Hashable], means: Floats, weights: Floats) -> None:
            rows = zip(names, means.tolist(), weights.tolist(), strict=True)
            writer.writerows([name, mean, *row] for name, mean, row in rows)

        yield write


@contextmanager
def _to_parquet(path: Path, header: list[str]) -> Iterator[LoadingsWriter]:
    pa = import_pyarrow()
    kinds = [pa.string()] + [pa.float64()] * (len(header) - 1)
    schema = pa.schema(list(zip(header, kinds, strict=True)))
    with pa.parquet.ParquetWriter(path, schema) as writer:

        def write(names: Sequence[Hashable], means: Floats, weights: Floats) -> None:
            columns: list[Any] = [[str(name) for name in names], means, *weights.T]
            arrays = [pa.array(column) for column in columns]
            writer.write_batch(pa.record_batch(arrays, names=header))

        yield write
