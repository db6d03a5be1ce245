"""Stream of polynomial features: products of base columns."""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from streamsel import params
from streamsel._utils.sparse import is_sparse
from streamsel.data.columns import Block
from streamsel.params import parameter_repr
from streamsel.stream._blocks import columns_per_block
from streamsel.stream._coerce import as_stream
from streamsel.stream._stream import ColumnStream

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

# A product is represented by the indices of its factors, ascending.
_Factors = tuple[int, ...]


def iter_polynomials(
    source: Any, degree: int = 2, *, interaction_only: bool = False
) -> ColumnStream:
    """Stream polynomial features: the products of base columns up to a degree.

    Parameters
    ----------
    source
        The base columns: any input that `as_stream` accepts, of real numbers.
    degree
        Maximum number of factors of a product, at least 1.
    interaction_only
        Whether the factors of a product are distinct, without powers.

    Raises
    ------
    ValueError
        If `degree` is not a positive integer, or the base columns differ in length.
    TypeError
        If a base column does not consist of real numbers; the message names it.

    Notes
    -----
    The d base columns are read when the function is called, and kept in memory as float64. The
    C(d + degree, degree) - 1 products are computed lazily in blocks of about 4 MiB, with one
    multiplication per entry. They are ordered by degree, then by their factors, as in
    scikit-learn's `PolynomialFeatures`. The name of a product is the tuple of the names of its
    factors; a base column keeps its name.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> stream = iter_polynomials(as_stream(X, names=["a", "b"]), degree=2)
    >>> for name, values in stream:
    ...     print(name, values)
    a [1. 3.]
    b [2. 4.]
    ('a', 'a') [1. 9.]
    ('a', 'b') [ 2. 12.]
    ('b', 'b') [ 4. 16.]
    """
    if isinstance(degree, bool) or not isinstance(degree, int) or degree < 1:
        raise ValueError(
            f"Expected degree to be an int in the range [1, inf). Got: {parameter_repr(degree)}."
        )
    rules = {"interaction_only": params.FlagRule()}
    params.check("iter_polynomials", rules, {"interaction_only": interaction_only})
    names, base = _read_base(as_stream(source))
    d, n = base.shape
    sizes = [comb(d, g) if interaction_only else comb(d + g - 1, g) for g in range(1, degree + 1)]

    def blocks() -> Iterator[Block]:
        width = columns_per_block(n)
        rows = np.empty((width, n))
        factors: list[_Factors] = []
        for prefix, product in _prefixes(base, degree, interaction_only=interaction_only):
            first = prefix[-1] + interaction_only if prefix else 0
            while first < d:
                filled = len(factors)
                stop = min(d, first + width - filled)
                slab = rows[filled : filled + stop - first]
                np.multiply(base[first:stop], product, out=slab)
                factors.extend([(*prefix, j) for j in range(first, stop)])
                first = stop
                if len(factors) == width:
                    yield Block(_name(factors, names), rows.T)
                    rows, factors = np.empty((width, n)), []
        if factors:
            yield Block(_name(factors, names), rows[: len(factors)].T)

    return ColumnStream(blocks, n_rows=n, n_columns=sum(sizes))


def _prefixes(
    base: npt.NDArray[np.float64], degree: int, *, interaction_only: bool
) -> Iterator[tuple[_Factors, npt.NDArray[np.float64]]]:
    """Yield the factors except the last of all products up to a degree, with their product."""
    d, n = base.shape
    choose = combinations if interaction_only else combinations_with_replacement
    for length in range(degree):
        # products[i] is the product of the first i factors; a prefix shares most of them with the
        # previous one.
        products = [np.ones(n)] * (length + 1)
        before: _Factors = (-1,) * length
        for prefix in choose(range(d), length):
            i = next((i for i in range(length) if prefix[i] != before[i]), length)
            for k in range(i, length):
                products[k + 1] = products[k] * base[prefix[k]]
            before = prefix
            yield prefix, products[-1]


def _read_base(stream: ColumnStream) -> tuple[list[Hashable], npt.NDArray[np.float64]]:
    names: list[Hashable] = []
    parts: list[npt.NDArray[np.float64]] = []
    for block in stream.blocks():
        values = block.values.toarray() if is_sparse(block.values) else block.values
        if values.dtype.kind not in "biuf":
            raise TypeError(
                f"Expected base columns of real numbers. Got: column {block.names[0]!r} of "
                f"{'text or other objects' if values.dtype == object else values.dtype}."
            )
        if parts and values.shape[0] != parts[0].shape[1]:
            raise ValueError(
                f"Expected {parts[0].shape[1]} values in column {block.names[0]!r}. "
                f"Got: {values.shape[0]}."
            )
        names.extend(block.names)
        parts.append(np.ascontiguousarray(values.T, dtype=np.float64))
    if not parts:
        raise ValueError("Expected at least one base column. Got: none.")
    return names, np.concatenate(parts)


def _name(factors: list[_Factors], names: list[Hashable]) -> list[Hashable]:
    return [
        names[indices[0]] if len(indices) == 1 else tuple([names[j] for j in indices])
        for indices in factors
    ]
