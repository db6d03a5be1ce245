"""Stream of polynomial features: products of base columns."""

from __future__ import annotations

from typing import Any

from streamsel import params
from streamsel.params import parameter_repr
from streamsel.stream._coerce import as_stream
from streamsel.stream._product_bands import product_stream
from streamsel.stream._products import BaseColumns
from streamsel.stream._stream import ColumnStream


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
    The d base columns are read when the function is called, and kept in memory in their own type.
    The C(d + degree, degree) - 1 columns are ordered by degree, then by their factors, as in
    scikit-learn's `PolynomialFeatures`. The name of a product is the tuple of the names of its
    factors; a base column keeps its name. Products are computed as by `iter_interactions`: if a
    learner needs only moments, columns are not made; otherwise they are made in blocks of about 4
    MiB, with one multiplication per entry.

    See Also
    --------
    iter_interactions : the products of distinct columns only.

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
    rules = {"interaction_only": params.FlagRule()}
    params.check("iter_polynomials", rules, {"interaction_only": interaction_only})
    if isinstance(degree, bool) or not isinstance(degree, int) or degree < 1:
        raise ValueError(
            f"Expected degree to be an int in the range [1, inf). Got: {parameter_repr(degree)}."
        )
    base = BaseColumns.read(as_stream(source))
    return product_stream(base, range(1, degree + 1), is_distinct=interaction_only)
