"""Products of base columns, and their moments as matrix products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from streamsel._kernels.products import moments_of_products
from streamsel._utils.sparse import as_dense
from streamsel._utils.system import run_in_threads
from streamsel.data.generated import GeneratedMoments, parts_of_width
from streamsel.data.names import expect_distinct_names
from streamsel.stream._blocks import BLOCK_DTYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from streamsel.stream._stream import ColumnStream

Floats = npt.NDArray[np.float64]
# A product is represented by the indices of its factors, ascending. A prefix has all but the last.
Factors = tuple[int, ...]

# Rows of a left operand, and rows and columns of a right operand: 8 MB.
_LEFT_ROWS, TILE_ROWS, _TILE_COLUMNS = 128, 2048, 512
# A product of values in this range, and its square, neither overflow nor underflow.
_SMALLEST, _LARGEST = 1e-70, 1e70
# Integers up to this are exact in float32.
_EXACT_FLOAT32 = 1 << 24


class BaseColumns:
    """Base columns, whose products are generated.

    Parameters
    ----------
    names
        One name per column.
    X
        (d, n) columns as rows, of a dtype that blocks hold.

    Attributes
    ----------
    index_of
        Name -> index.
    """

    def __init__(self, names: list[Hashable], X: npt.NDArray[Any]) -> None:
        expect_distinct_names(names)
        X.flags.writeable = False
        self.names, self.X = names, X
        self.index_of = {name: j for j, name in enumerate(names)}

    @classmethod
    def read(cls, stream: ColumnStream) -> BaseColumns:
        """Return the columns of a stream, which must be real numbers."""
        names: list[Hashable] = []
        parts: list[npt.NDArray[Any]] = []
        for block in stream.blocks():
            values = as_dense(block.values)
            if values.dtype.kind not in "biuf":
                raise TypeError(
                    f"Expected base columns of real numbers. Got: column {block.names[0]!r} of "
                    f"{'text or other objects' if values.dtype == object else values.dtype}.\n"
                    "Hint: encode(X) makes columns of numbers of text, categories and dates; "
                    "X.without(names) drops columns."
                )
            if parts and values.shape[0] != parts[0].shape[1]:
                raise ValueError(
                    f"Expected {parts[0].shape[1]} values in column {block.names[0]!r}. "
                    f"Got: {values.shape[0]}."
                )
            names.extend(block.names)
            dtype = values.dtype if values.dtype in BLOCK_DTYPES else np.dtype(np.float64)
            parts.append(np.array(values.T, dtype=dtype, order="C"))
        if not parts:
            raise ValueError("Expected at least one base column. Got: none.")
        return cls(names, parts[0] if len(parts) == 1 else np.concatenate(parts))


class Ranges(NamedTuple):
    """Ranges of the absolute values of columns.

    Parameters
    ----------
    smallest, largest
        (d,) the smallest absolute value that is not 0, and the largest one; not finite if a value
        of the column is not.
    """

    smallest: Floats
    largest: Floats

    @classmethod
    def of(cls, columns: Iterable[npt.NDArray[Any]], d: int) -> Ranges:
        """Return the ranges of d columns."""
        found = cls(np.empty(d), np.empty(d))
        for j, x in enumerate(columns):
            absolute = np.abs(x.astype(np.float64))
            found.largest[j] = absolute.max(initial=0.0)
            found.smallest[j] = absolute.min(where=absolute > 0.0, initial=np.inf)
        return found

    def are_safe(self, prefixes: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
        """Return whether products of prefixes (t, g) with safe columns can be squared, (t,).

        They then neither overflow nor underflow.
        """
        smallest, largest = self.smallest[prefixes], self.largest[prefixes]
        with np.errstate(all="ignore"):
            of_product = _are_safe(smallest.prod(axis=1), largest.prod(axis=1))
        found: npt.NDArray[np.bool_] = of_product & _are_safe(smallest, largest).all(axis=1)
        return found


def _are_safe(smallest: Floats, largest: Floats) -> npt.NDArray[np.bool_]:
    """Return which ranges of values are safe; not those of NaN and infinity."""
    return (smallest >= _SMALLEST) & (largest <= _LARGEST)


class Products:
    """Formula of the products of columns.

    Parameters
    ----------
    base
        The base columns.
    degree
        Number of factors.
    """

    def __init__(self, base: BaseColumns, degree: int) -> None:
        self.base = base
        self._ranges = Ranges.of(base.X, len(base.X))
        self._sums_dtype: type = np.float64
        # Sums of integers that fit into float32 are exact there, and take less time.
        if base.X.dtype.kind in "iu":
            largest = max(1.0, float(self._ranges.largest.max()))
            if base.X.shape[1] * largest ** (2 * degree) < _EXACT_FLOAT32:
                self._sums_dtype = np.float32

    @np.errstate(all="ignore")
    def make(self, prefix: Factors, last: npt.NDArray[np.intp], out: Floats) -> None:
        """Fill `out` (k, n) with the products of a prefix with some last factors, ascending."""
        np.multiply(at_indices(self.base.X, last), self._prefix(prefix), out=out)

    def products(self, prefix: Factors, last: range, V: Floats) -> Floats:
        """Return the inner products, (k, q), of products of a prefix with rows V (q, n)."""
        found = np.zeros((len(last), len(V)))
        for rows in parts_of_width(V.shape[1], TILE_ROWS):
            weighted = V[:, rows] * self._prefix(prefix, rows)
            right = self.base.X[last.start : last.stop, rows]
            found += right.astype(np.float64, copy=False) @ weighted.T
        return found

    def moments(
        self,
        prefixes: Sequence[Factors],
        first: npt.NDArray[np.intp],
        Y: Floats,
        n_jobs: int,
    ) -> GeneratedMoments:
        """Return the moments of the products of prefixes with all factors from `first` (t,) on."""
        (d, n), c = self.base.X.shape, len(Y)
        ends = np.cumsum(d - first)
        size = int(ends[-1])
        # Means are not large, where moments are accurate.
        mean, mean_error, m2 = np.empty(size), np.zeros(size), np.empty(size)
        cxy, is_accurate = np.empty((size, c)), np.empty(size, dtype=np.bool_)
        safe = self._ranges.are_safe(np.array(prefixes))
        factor_safe = self._ranges.are_safe(np.arange(d)[:, None])
        for rows in parts_of_width(len(prefixes), max(8, _LEFT_ROWS // (1 + c))):
            start = int(first[rows].min())
            moments_of_products(
                *self._sums(prefixes[rows], start, Y, n_jobs),
                *(first[rows], ends[rows] - d + first[rows], start, n),
                *(safe[rows], factor_safe, mean, m2, cxy, is_accurate),
            )
        return GeneratedMoments(mean, mean_error, m2, cxy, is_accurate)

    def _sums(
        self, prefixes: Sequence[Factors], start: int, Y: Floats, n_jobs: int
    ) -> tuple[Floats, Floats, Floats]:
        """Return sums of products, of their squares, and of products with Y, by prefix and factor.

        Tiles of the operands are fixed: no bit of the sums depends on the number of threads.
        """
        X, t, c = self.base.X, len(prefixes), len(Y)
        width, dtype = len(X) - start, self._sums_dtype
        sums, squares = np.zeros((t, width)), np.zeros((t, width))
        targets = np.zeros((c * t, width))

        @np.errstate(all="ignore")
        def add_rows(rows: slice) -> None:
            W = np.array([self._prefix(prefix, rows) for prefix in prefixes])
            WY = (Y[:, None, rows] * W).reshape(c * t, W.shape[1])
            left: npt.NDArray[Any] = W.astype(dtype)
            left_squares: npt.NDArray[Any] = np.square(W).astype(dtype)

            @np.errstate(all="ignore")
            def add_tile(tile: slice) -> None:
                columns = slice(start + tile.start, start + tile.stop)
                right: npt.NDArray[Any] = X[columns, rows].astype(dtype)
                sums[:, tile] += left @ right.T
                if c:
                    targets[:, tile] += WY @ right.astype(np.float64, copy=False).T
                np.square(right, out=right)
                squares[:, tile] += left_squares @ right.T

            run_over_tiles(add_tile, width, n_jobs)

        for rows in parts_of_width(X.shape[1], TILE_ROWS):
            add_rows(rows)
        return sums, squares, targets.reshape(c, t, width)

    def _prefix(self, factors: Factors, rows: slice = slice(None)) -> Floats:
        """Return the product of some columns, in some rows."""
        w = self.base.X[factors[0], rows].astype(np.float64)
        for j in factors[1:]:
            w *= self.base.X[j, rows]
        return w


def run_over_tiles(add_tile: Callable[[slice], None], width: int, n_jobs: int) -> None:
    """Run a function for fixed tiles of `width` columns, in threads."""
    tiles = list(parts_of_width(width, _TILE_COLUMNS))

    def add_tiles(which: slice) -> None:
        for tile in tiles[which]:
            add_tile(tile)

    run_in_threads(add_tiles, len(tiles), max(1, min(n_jobs, len(tiles))))


def at_indices(X: npt.NDArray[Any], indices: npt.NDArray[np.intp]) -> npt.NDArray[Any]:
    """Return some rows of X, as a view if they are consecutive."""
    first, last = int(indices[0]), int(indices[-1])
    return X[first : last + 1] if last - first == indices.size - 1 else X[indices]
