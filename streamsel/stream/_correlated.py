"""Columns that are compared with others, and the pairs of them that are highly correlated.

Most pairs are dismissed by a part of the rows: with u and v centred and of length 1, split into
these rows and the others, |uᵀv| ≤ |u₁ᵀv₁| + ‖u₂‖ ‖v₂‖. The products u₁ᵀv₁ are in single precision,
with a bound of their rounding errors; the pairs that remain are computed in double precision. Small
integers, such as genotypes, have exact products in single precision, of all rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel._kernels.correlated_pairs import mark_undismissed, pairs_of_products
from streamsel._utils.numeric import TIE_RTOL
from streamsel._utils.sparse import is_sparse, value_bytes
from streamsel.data.chunks import Chunk, SparseChunk, Stats

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Columns compared at a time, and the bytes that they may take.
_TILE_COLUMNS, _MIN_TILE_COLUMNS, _TILE_BYTES = 128, 32, 8 << 20
# Rows converted to float64 at a time.
_ROWS = 4096
# Pairs are first compared on a subset of the rows, if there are at least this many rows, and the
# subset is at most this share of them.
_MIN_PREFILTER_ROWS, _MAX_PREFILTER_SHARE = 128, 0.8
_EPSILON_32 = 2.0**-24
# Integers are compared by all rows, unless a smaller part of them suffices to dismiss pairs: their
# products are exact in single precision below the first bound, n times these in double precision.
_SMALL_PART, _EXACT_32, _EXACT_64 = 0.4, 2.0**24, 2.0**53
# Rounding error of the squared length of a centred column.
_LENGTH_ERROR = 1e-9
# Sparse columns of a larger density, or whose mean exceeds this many standard deviations, are
# compared as dense ones: for speed, and because products would lose digits.
_MAX_DENSITY, _MAX_MEAN = 0.1, 1.0


@dataclass(frozen=True, eq=False)
class Comparison:
    """The rule by which two columns are correlated.

    Parameters
    ----------
    n
        Number of rows.
    max_correlation
        Columns are correlated if their absolute correlation is at least this, or ties with it.
    reach
        Columns whose locations differ by more are not compared.
    """

    n: int
    max_correlation: float
    reach: float = np.inf

    @property
    def threshold(self) -> float:
        """The absolute correlation from which on columns are correlated."""
        return self.max_correlation - TIE_RTOL

    @cached_property
    def prefilter_rows(self) -> Indices | None:
        """The rows by which pairs are dismissed; None if all rows are needed."""
        n, part = self.n, np.linspace(0.0, 1.0, 201)
        # Uncorrelated columns have ‖u₂‖ ‖v₂‖ ≈ 1 - part, and |u₁ᵀv₁| below 5 √(part / n).
        suffices = (1.0 - part) + 5.0 * np.sqrt(part / n) + 0.05 < self.max_correlation
        min_part = part[suffices][0] if suffices.any() else 1.0
        if n < _MIN_PREFILTER_ROWS or min_part > _MAX_PREFILTER_SHARE:
            return None
        return np.sort(np.random.default_rng(0).permutation(n)[: int(min_part * n)])

    @cached_property
    def dismissed_below(self) -> np.float32:
        """Bound of a correlation below which a pair is dismissed, rounding errors included."""
        m = 0 if self.prefilter_rows is None else self.prefilter_rows.size
        return np.float32(self.threshold - 1.01 * (m + 10) * _EPSILON_32)

    @property
    def needs_small_part(self) -> bool:
        """Whether most pairs are dismissed by so few rows that products of all take longer."""
        rows = self.prefilter_rows
        # Neighbours are seldom dismissed.
        return self.reach == np.inf and rows is not None and rows.size <= _SMALL_PART * self.n

    @property
    def columns_per_tile(self) -> int:
        """Number of columns that are compared at a time."""
        return int(np.clip(_TILE_BYTES // max(1, 8 * self.n), _MIN_TILE_COLUMNS, _TILE_COLUMNS))


@dataclass(frozen=True, eq=False)
class Tile:
    """Columns that vary, and what is needed to compare them.

    Parameters
    ----------
    rule
        When two columns are correlated.
    values
        (b, n) columns as rows: an array of a type that is read in place, or a CSR array; float64
        arrays are centred, and of length 1.
    is_exact
        Whether the values are float32 integers whose products are exact.
    mean, norm
        (b,) means, and lengths of the centred columns.
    location, index
        (b,) coordinates of the columns, and indices in the source.
    names
        Names of the columns; None if they are not needed.
    prefilter_values, rest
        (b, m) the prefilter rows of the centred columns of length 1, and the lengths (b,) of the
        other rows; None if columns are compared without a prefilter.
    """

    rule: Comparison
    values: Any
    is_exact: bool
    mean: Floats
    norm: Floats
    location: Floats
    index: Indices
    names: Sequence[Hashable] | None
    prefilter_values: NDArray[np.float32] | None
    rest: NDArray[np.float32] | None

    def __len__(self) -> int:
        return self.index.size

    @property
    def is_sparse(self) -> bool:
        """Whether the values are a sparse array."""
        return is_sparse(self.values)

    @property
    def n_bytes(self) -> int:
        """Bytes of the values, and of their prefilter rows."""
        return value_bytes(self.values) + (
            0 if self.prefilter_values is None else self.prefilter_values.nbytes
        )

    def can_join(self, other: Tile) -> bool:
        """Return whether the values of both can be in one array."""
        kinds = [(tile.is_sparse, tile.is_exact, tile.values.dtype) for tile in (self, other)]
        return kinds[0] == kinds[1]

    def units(self, indices: Indices, rows: slice = slice(None)) -> Floats:
        """Return rows of the columns at `indices`, centred and of length 1."""
        values = (self.values if indices.size == len(self) else self.values[indices])[:, rows]
        if self.is_sparse:
            values = values.toarray()
        elif values.dtype == np.float64:
            unit: Floats = values
            return unit
        return _centred_units(values, self.mean[indices], self.norm[indices])

    def subset(self, indices: Indices) -> Tile:
        """Return a copy of the columns at `indices`."""
        names = None if self.names is None else [self.names[j] for j in indices.tolist()]
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        parts: dict[str, Any] = {k: None if a is None else a[indices] for k, a in arrays.items()}
        return replace(self, names=names, **parts)


# Fields of a tile with one entry per column.
_ARRAYS = ("values", "mean", "norm", "location", "index", "prefilter_values", "rest")


def joined(tiles: Sequence[Tile]) -> Tile:
    """Return the columns of tiles that can join, one after the other."""
    first = tiles[0]
    whole: dict[str, Any] = {}
    for name in _ARRAYS:
        parts = [getattr(tile, name) for tile in tiles]
        if is_sparse(parts[0]):
            from scipy.sparse import vstack

            whole[name] = vstack(parts, format="csr")
        else:
            whole[name] = None if parts[0] is None else np.concatenate(parts)
    if first.names is not None:
        whole["names"] = [name for tile in tiles for name in tile.names or ()]
    return replace(first, **whole)


def tiles_of(
    chunk: Chunk,
    stats: Stats,
    indices: Indices,
    rule: Comparison,
    location: Floats,
    start: int,
    *,
    named: bool = False,
) -> Iterator[Tile]:
    """Yield columns of a chunk, as many as are compared at a time.

    Parameters
    ----------
    chunk, stats
        The columns, and their moments.
    indices
        The columns to compare, ascending; their sums of squares are positive.
    rule
        When two columns are correlated.
    location
        (b,) coordinates of all columns of the chunk.
    start
        Index of the first column of the chunk in the source.
    named
        Whether the tiles have names.
    """
    for first in range(0, indices.size, rule.columns_per_tile):
        part = indices[first : first + rule.columns_per_tile]
        mean, norm = stats.mean[part], np.sqrt(stats.m2[part])
        values, is_exact = _values(chunk, part, mean, norm, rule)
        prefilter_values = rest = None
        if rule.prefilter_rows is not None and not is_exact and not is_sparse(values):
            prefilter_values, rest = _prefilter(values[:, rule.prefilter_rows], mean, norm)
        names = [chunk.names[j] for j in part.tolist()] if named else None
        index = start + part
        yield Tile(
            rule, values, is_exact, mean, norm, location[part], index, names, prefilter_values, rest
        )


def _values(
    chunk: Chunk, part: Indices, mean: Floats, norm: Floats, rule: Comparison
) -> tuple[Any, bool]:
    """Return columns as the values of a tile, and whether they are integers of exact products."""
    if isinstance(chunk, SparseChunk):
        if _compared_as_sparse(chunk, part, mean, norm):
            return chunk.rows(part), False
        values: NDArray[Any] = chunk.columns(part)
    else:
        values = chunk.X[part]
    if values.dtype.kind in "iu" and not rule.needs_small_part:
        square = float(np.abs(values, dtype=np.float32).max()) ** 2
        if rule.n * square < _EXACT_32 and rule.n**2 * square < _EXACT_64:
            return values.astype(np.float32), True
    return _centred_units(values, mean, norm) if values.dtype == np.float64 else values, False


def _compared_as_sparse(chunk: SparseChunk, part: Indices, mean: Floats, norm: Floats) -> bool:
    return chunk.density(part) <= _MAX_DENSITY and bool(
        (np.abs(mean) * np.sqrt(chunk.n) <= _MAX_MEAN * norm).all()
    )


def _centred_units(values: NDArray[Any], mean: Floats, norm: Floats) -> Floats:
    unit: Floats = values - mean[:, None]
    unit /= norm[:, None]
    return unit


def _prefilter(
    values: NDArray[Any], mean: Floats, norm: Floats
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return prefilter rows of columns as parts of unit vectors, and the lengths of the rests."""
    first = values if values.dtype == np.float64 else _centred_units(values, mean, norm)
    rest = 1.0 - np.einsum("ij,ij->i", first, first) + _LENGTH_ERROR
    rest = np.sqrt(np.maximum(rest, 0.0)) * (1.0 + 4.0 * _EPSILON_32)
    return first.astype(np.float32), rest.astype(np.float32)


class Pairs(NamedTuple):
    """Correlated pairs of columns of two tiles: indices in each, ascending, and correlations."""

    first: Indices
    second: Indices
    correlation: Floats

    def at(self, which: Any) -> Pairs:
        """Return the pairs at these indices, or of a mask."""
        return Pairs(self.first[which], self.second[which], self.correlation[which])


def correlated_pairs(a: Tile, b: Tile) -> Pairs:
    """Return the pairs of columns of two tiles that are correlated, and within reach.

    For a tile with itself, these are the pairs whose first column comes after the second.
    """
    if a.is_sparse and b.is_sparse:
        found = _sparse_pairs(a, b)
    elif a.is_exact and b.is_exact:
        found = _exact_pairs(a, b)
    else:
        found = _dense_pairs(a, b)
    counts = np.abs(found.correlation) >= a.rule.threshold
    if a is b:
        counts &= found.first > found.second
    if a.rule.reach < np.inf:
        distance = a.location[found.first] - b.location[found.second]
        counts &= np.abs(distance) <= a.rule.reach
    return found.at(counts)


def _dense_pairs(a: Tile, b: Tile) -> Pairs:
    """Return pairs of columns, among them all that are correlated."""
    i, j = _undismissed(a, b)
    n = a.rule.n if i.size and j.size else 0
    C = np.zeros((i.size, j.size))
    for start in range(0, n, _ROWS):
        rows = slice(start, start + _ROWS)
        left = a.units(i, rows)
        C += left @ (left if a is b else b.units(j, rows)).T
    first, second = np.nonzero(np.abs(C) >= a.rule.threshold)
    return Pairs(i[first], j[second], C[first, second])


def _undismissed(a: Tile, b: Tile) -> tuple[Indices, Indices]:
    """Return columns of two tiles such that all other pairs are uncorrelated."""
    if a.prefilter_values is None or b.prefilter_values is None or a.rest is None or b.rest is None:
        return np.arange(len(a)), np.arange(len(b))
    products = a.prefilter_values @ b.prefilter_values.T
    if a is b:
        # Columns are not compared with themselves: NaN exceeds no bound.
        np.fill_diagonal(products, np.nan)
    i = np.zeros(len(a), dtype=np.bool_)
    j = i if a is b else np.zeros(len(b), dtype=np.bool_)
    mark_undismissed(products, a.rest, b.rest, a.rule.dismissed_below, i, j)
    return np.flatnonzero(i), np.flatnonzero(j)


def _exact_pairs(a: Tile, b: Tile) -> Pairs:
    """Return the correlated pairs of integer columns."""
    n, size = a.rule.n, len(a) * len(b)
    sums = [np.rint(n * tile.mean) for tile in (a, b)]
    found = Pairs(np.empty(size, np.intp), np.empty(size, np.intp), np.empty(size))
    products = a.values @ b.values.T
    return found.at(
        slice(
            pairs_of_products(products, *sums, a.norm, b.norm, float(n), a.rule.threshold, *found)
        )
    )


def _sparse_pairs(a: Tile, b: Tile) -> Pairs:
    """Return pairs of sparse columns, among them all that are correlated."""
    products = (a.values.astype(np.float64) @ b.values.T.astype(np.float64)).tocsr()
    # The correlation of columns without a common row is -cd, for means of c and d times √n/norm.
    c, d = (np.sqrt(tile.rule.n) * tile.mean / tile.norm for tile in (a, b))
    if np.abs(c).max() * np.abs(d).max() < a.rule.threshold:
        products.sort_indices()
        first = np.repeat(np.arange(len(a)), np.diff(products.indptr))
        second, r = products.indices.astype(np.intp), products.data
    else:
        first, second = (index.ravel() for index in np.indices((len(a), len(b))))
        r = products.toarray().ravel()
    r = r / (a.norm[first] * b.norm[second]) - c[first] * d[second]
    return Pairs(first, second, r)
