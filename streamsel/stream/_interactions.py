"""Stream of interactions: products of distinct base columns."""

from __future__ import annotations

from typing import Any

from streamsel import params
from streamsel.stream._coerce import as_stream
from streamsel.stream._product_bands import product_stream
from streamsel.stream._products import BaseColumns
from streamsel.stream._stream import ColumnStream

_RULES: dict[str, params.Rule] = {
    "degree": params.IntRule(2),
    "adjust_for_main_effects": params.FlagRule(),
}


def iter_interactions(
    source: Any, degree: int = 2, *, adjust_for_main_effects: bool = False
) -> ColumnStream:
    r"""Stream interactions: all products of two, or more, distinct base columns.

    Parameters
    ----------
    source
        The base columns: any input that `as_stream` accepts, of real numbers.
    degree
        Maximum number of factors of a product, at least 2.
    adjust_for_main_effects
        Whether a product of x and z is replaced by its residual in the regression on 1, x and z,
        so that its score is that of the interaction given the main effects. For `degree=2` only.

    Raises
    ------
    ValueError
        If `degree` is not an integer of at least 2, or is not 2 with `adjust_for_main_effects`; if
        the base columns differ in length, or two have the same name.
    TypeError
        If a base column does not consist of real numbers; the message names it.

    See Also
    --------
    iter_polynomials : the base columns too, and optionally their powers.

    Notes
    -----
    The d base columns are read when the function is called, and kept in memory in their own type:
    genotypes of one byte stay bytes. The name of a product is the tuple of the names of its
    factors. Products are ordered by degree, then by their factors.

    Most learners need only the moments of most columns, and their products with the target. These
    are matrix products of the base columns: the sums of x z y are the entries of $(X \circ y)^T X$,
    those of (x z)² of $(X \circ X)^T (X \circ X)$. No column is made for them. They take (2 + c) n
    multiplications per column, for n rows and a target of c columns (adjusted: (4 + c) n), and have
    a relative error below 1e-10. A column is made if a bounded pool (`max_candidates`) may keep it,
    so that the model is that of the columns themselves. It is also made if its sum of squares
    cancels to less than a thousandth, as with means above 20 standard deviations: centre such base
    columns. Scores other than correlations, learners that need all observations, and targets with
    weights, relatedness or missing values take the columns in blocks of 4 MiB.

    The slope of the target on an adjusted column is the coefficient of x z in the regression of the
    target on 1, x, z and x z, which `plink --epistasis` tests. The t statistic differs: the target
    is not adjusted for each pair, and the residual variance includes the variance that x and z
    explain. It equals that of the regression, up to two degrees of freedom, if they explain none,
    and is smaller otherwise. Adjust the target for known main effects by `covariates`.

    An adjusted column depends on all rows of the source. That of new rows is their residual in a
    regression of their own, which is 0 for up to three rows. For predictions, use x, z and x z.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 2.0, 0.0], [3.0, 4.0, 1.0], [2.0, 2.0, 5.0], [0.0, 1.0, 1.0]])
    >>> stream = iter_interactions(as_stream(X, names=["a", "b", "c"]))
    >>> for name, values in stream:
    ...     print(name, values)
    ('a', 'b') [ 2. 12.  4.  0.]
    ('a', 'c') [ 0.  3. 10.  0.]
    ('b', 'c') [ 0.  4. 10.  1.]
    """
    given = {"degree": degree, "adjust_for_main_effects": adjust_for_main_effects}
    params.check("iter_interactions", _RULES, given)
    if adjust_for_main_effects and degree != 2:
        raise ValueError(
            f"Expected degree=2 with adjust_for_main_effects=True. Got: degree={degree}.\n"
            "Hint: products of more columns also contain interactions of lower order."
        )
    base = BaseColumns.read(as_stream(source))
    return product_stream(
        base, range(2, degree + 1), is_distinct=True, adjusted=adjust_for_main_effects
    )
