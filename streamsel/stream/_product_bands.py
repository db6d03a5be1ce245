"""Products of base columns as generated columns, in bands of consecutive products."""

from __future__ import annotations

from bisect import bisect_right
from itertools import combinations, combinations_with_replacement, islice, pairwise
from math import comb
from typing import TYPE_CHECKING, Any, Protocol, overload

import numpy as np
import numpy.typing as npt

from streamsel.data.chunks import Block
from streamsel.data.generated import (
    GeneratedColumns,
    GeneratedMoments,
    MomentsCache,
    parts_of_width,
)
from streamsel.data.names import LazyNames
from streamsel.stream._adjusted_products import AdjustedProducts
from streamsel.stream._blocks import columns_per_block
from streamsel.stream._products import Products
from streamsel.stream._stream import ColumnStream, raise_unknown_names

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from streamsel.stream._products import BaseColumns, Factors, Floats

# Most products in a band, and fewest prefixes: enough for matrix products at full speed.
_BAND_PRODUCTS, _MIN_PREFIXES = 1 << 18, 8


class Formula(Protocol):
    """Formula of columns that a prefix of factors and a last factor determine; see `Products`."""

    base: BaseColumns

    def make(self, prefix: Factors, last: npt.NDArray[np.intp], out: Floats) -> None:
        """Fill `out` (k, n) with the columns of a prefix and some last factors, ascending."""

    def products(self, prefix: Factors, last: range, V: Floats) -> Floats:
        """Return the inner products, (k, q), of columns of a prefix with rows V (q, n)."""

    def moments(
        self,
        prefixes: Sequence[Factors],
        first: npt.NDArray[np.intp],
        Y: Floats,
        n_jobs: int,
    ) -> GeneratedMoments:
        """Return the moments of the columns of prefixes and all factors from `first` (t,) on."""


class ProductNames(LazyNames):
    """Names of the products of a band: tuples of the names of the factors.

    Parameters
    ----------
    band
        The band.
    which
        The products.
    """

    def __init__(self, band: ProductBand, which: range) -> None:
        self._band, self._which = band, which

    def __len__(self) -> int:
        return len(self._which)

    @overload
    def __getitem__(self, index: int) -> Hashable: ...

    @overload
    def __getitem__(self, index: slice) -> ProductNames: ...

    def __getitem__(self, index: int | slice) -> Hashable | ProductNames:
        if isinstance(index, slice):
            return ProductNames(self._band, self._which[index])
        names = self._band.names
        return tuple([names[j] for j in self._band.factors(self._which[index])])

    def __iter__(self) -> Iterator[Hashable]:
        names = self._band.names
        for prefix, last in self._band.runs(self._which.start, self._which.stop):
            prefix_names = tuple([names[j] for j in prefix])
            for j in last:
                yield (*prefix_names, names[j])

    def find(self, name: Hashable) -> int | None:
        """Return the index of a name, None if it is not among these."""
        found = self._band.find(name)
        return None if found is None or found not in self._which else self._which.index(found)


class ProductBand:
    """The products of some prefixes with all their last factors, in order.

    Parameters
    ----------
    formula
        Computes the columns.
    prefixes
        All factors but the last.
    is_distinct
        Whether the factors of a product are distinct.
    """

    def __init__(self, formula: Formula, prefixes: list[Factors], *, is_distinct: bool) -> None:
        self.formula, self.names = formula, formula.base.names
        self._prefixes, self._d = prefixes, len(self.names)
        self._first = np.array([prefix[-1] + is_distinct for prefix in prefixes])
        ends = np.cumsum(self._d - self._first)
        self._offsets, self.size = ends - (self._d - self._first), int(ends[-1])
        self._offset_list: list[int] = self._offsets.tolist()
        self._row_of = {
            tuple([self.names[j] for j in prefix]): row for row, prefix in enumerate(prefixes)
        }
        self._moments = MomentsCache()

    def factors(self, index: int) -> Factors:
        """Return the factors of a product."""
        row = bisect_right(self._offset_list, index) - 1
        return (*self._prefixes[row], int(self._first[row]) + index - self._offset_list[row])

    def runs(self, start: int, stop: int) -> Iterator[tuple[Factors, range]]:
        """Yield the prefixes and the last factors of consecutive products."""
        row = bisect_right(self._offset_list, start) - 1
        while start < stop:
            j = int(self._first[row]) + start - self._offset_list[row]
            end = min(self._d, j + stop - start)
            # The last prefix of distinct factors has no product.
            if end > j:
                yield self._prefixes[row], range(j, end)
            start, row = start + max(0, end - j), row + 1

    def find(self, name: Hashable) -> int | None:
        """Return the index of the product of this name, None if it is not in the band."""
        if not isinstance(name, tuple) or (row := self._row_of.get(name[:-1])) is None:
            return None
        last, first = self.formula.base.index_of.get(name[-1], -1), int(self._first[row])
        return self._offset_list[row] + last - first if last >= first else None

    def columns(self, indices: npt.NDArray[np.intp]) -> Floats:
        """Make the products at `indices`, one per row."""
        out = np.empty((indices.size, self.formula.base.X.shape[1]))
        rows = np.searchsorted(self._offsets, indices, side="right") - 1
        last = indices - self._offsets[rows] + self._first[rows]
        edges = np.flatnonzero(np.diff(rows, prepend=-1, append=-1))
        for start, stop in pairwise(edges.tolist()):
            self.formula.make(self._prefixes[rows[start]], last[start:stop], out[start:stop])
        return out

    def moments(self, Y: Floats, n_jobs: int) -> GeneratedMoments:
        """Return the moments of all products, which are cached."""
        return self._moments.of(
            Y, lambda: self.formula.moments(self._prefixes, self._first, Y, n_jobs)
        )


class ProductColumns(GeneratedColumns):
    """Consecutive products of a band.

    Parameters
    ----------
    band
        The band.
    which
        The products.
    """

    def __init__(self, band: ProductBand, which: range) -> None:
        self._band, self._which = band, which
        self.shape = band.formula.base.X.shape[1], len(which)

    def moments(self, Y: Floats, n_jobs: int = 1) -> GeneratedMoments:
        """Return the moments of all columns."""
        which = slice(self._which.start, self._which.stop)
        return self._band.moments(Y, n_jobs).part(which)

    def products(self, V: Floats) -> Floats:
        """Return the inner products of all columns with the rows of V (q, n), (b, q)."""
        formula, runs = self._band.formula, self._band.runs(self._which.start, self._which.stop)
        return np.concatenate([formula.products(prefix, last, V) for prefix, last in runs])

    def columns(self, indices: npt.NDArray[np.intp]) -> Floats:
        """Make the columns at `indices`, one per row, (k, n)."""
        return self._band.columns(indices + self._which.start)

    def part(self, which: slice) -> ProductColumns:
        """Return consecutive columns, without making them."""
        return ProductColumns(self._band, self._which[which])


def product_stream(
    base: BaseColumns,
    degrees: Sequence[int],
    *,
    is_distinct: bool,
    adjusted: bool = False,
) -> ColumnStream:
    """Stream the products of these numbers of base columns; those of one are the base columns.

    `adjusted`, for products of two columns, removes the part that these explain linearly.
    """
    names, (d, n) = base.names, base.X.shape
    sizes = [comb(d, g) if is_distinct else comb(d + g - 1, g) for g in degrees]
    formulas: list[Formula] = [
        AdjustedProducts(base) if adjusted else Products(base, degree) for degree in degrees
    ]

    def read(skip: int) -> Iterator[Block]:
        for degree, size, of_degree in zip(degrees, sizes, formulas, strict=True):
            if skip < size and degree == 1:
                for part in parts_of_width(d - skip, columns_per_block(n)):
                    columns = slice(skip + part.start, skip + part.stop)
                    yield Block(names[columns], base.X[columns].astype(np.float64).T)
            elif skip < size:
                yield from _bands(of_degree, degree, is_distinct=is_distinct, skip=skip)
            skip = max(0, skip - size)

    def take(requested: Sequence[Hashable]) -> dict[Hashable, Any]:
        found, unknown = {}, []
        for name in requested:
            factors = _factors_of(name, base, degrees, is_distinct=is_distinct)
            if factors is None:
                unknown.append(name)
            elif len(factors) == 1:
                found[name] = base.X[factors[0]].astype(np.float64)
            else:
                out = np.empty((1, n))
                of_degree = formulas[degrees.index(len(factors))]
                of_degree.make(factors[:-1], np.array(factors[-1:]), out)
                found[name] = out[0]
        if unknown:
            raise_unknown_names(unknown, (name for block in read(0) for name in block.names))
        return found

    return ColumnStream(
        lambda: read(0), n_rows=n, n_columns=sum(sizes), take=take, blocks_from=read
    )


def _bands(formula: Formula, degree: int, *, is_distinct: bool, skip: int) -> Iterator[Block]:
    """Yield the products in bands, without the first `skip`, on which bands do not depend."""
    d = len(formula.base.names)
    choose = combinations if is_distinct else combinations_with_replacement
    prefixes = choose(range(d), degree - 1)
    while some := list(islice(prefixes, max(_BAND_PRODUCTS // d, _MIN_PREFIXES))):
        size = sum(d - is_distinct - prefix[-1] for prefix in some)
        if skip < size:
            band = ProductBand(formula, some, is_distinct=is_distinct)
            which = range(skip, size)
            yield Block(ProductNames(band, which), ProductColumns(band, which))
        skip = max(0, skip - size)


def _factors_of(
    name: Hashable, base: BaseColumns, degrees: Sequence[int], *, is_distinct: bool
) -> Factors | None:
    """Return the factors of the product of this name; None if there is none."""
    if 1 in degrees and name in base.index_of:
        return (base.index_of[name],)
    if type(name) is not tuple or len(name) < 2 or len(name) not in degrees:
        return None
    found = tuple([base.index_of.get(factor, -1) for factor in name])
    ascending = all(i < j or (i == j and not is_distinct) for i, j in pairwise(found))
    return found if ascending and found[0] >= 0 else None
