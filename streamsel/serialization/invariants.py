"""Validation of saved states: ranges that lengths, relevances and products of data can have.

A file may have been edited, and its checksum updated. The conditions hold for every learnt state,
whatever the data; the bounds leave room for rounding, which changes the last digits, and more of
them for a column that hardly varies about a large mean.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel._kernels.row_moments import MAX_ABS_VALUE

Floats = NDArray[np.float64]

# Bounds of a squared length of 1, and upper bound of a relevance of 1.
_MIN_UNIT_SQUARE, _MAX_UNIT_SQUARE = 0.5, 2.0
_MAX_RELEVANCE = 1.01
# Relative excess of a product over its bound, and rounding error of a difference of equal squares,
# relative to the largest square.
_BOUND_FACTOR, _SQUARE_RTOL = 1.01, 1e-9
# Relative effect of a large mean on its product with values that sum to 0 up to rounding.
_MEAN_EFFECT = 1e-12
# Relative rounding error of a mean.
_MEAN_RTOL = 1e-6
# Upper bounds of a factor, of a sum of many values, and of a sum of products.
MAX_FACTOR, _MAX_SUM, _MAX_PRODUCT_SUM = 2.0 * MAX_ABS_VALUE, 1e6 * MAX_ABS_VALUE, 1e308


def expect_bounded(what: str, *arrays: Any) -> None:
    """Raise ValueError for numbers whose products may not be finite."""
    for array in arrays:
        if not (np.abs(array) <= MAX_FACTOR).all():
            raise ValueError(f"Expected {what} whose products are finite. Got: larger numbers.")


def expect_totals(what: str, *arrays: Any) -> None:
    """Raise ValueError for numbers that are too large for sums of bounded values."""
    for array in arrays:
        if not (np.abs(array) <= _MAX_SUM).all():
            raise ValueError(f"Expected {what} that are sums of values. Got: larger numbers.")


def expect_sums(what: str, *arrays: Any) -> None:
    """Raise ValueError for numbers that are too large for sums of products of bounded values."""
    for array in arrays:
        if not (np.abs(array) <= _MAX_PRODUCT_SUM).all():
            raise ValueError(f"Expected {what} that are sums of products. Got: larger numbers.")


def expect_units(units: Floats) -> None:
    """Raise ValueError for rows whose length is not 1, or 0 for a constant variable."""
    with np.errstate(over="ignore"):
        squares = np.einsum("ij,ij->i", units, units)
    if not (
        (squares == 0.0) | ((squares >= _MIN_UNIT_SQUARE) & (squares <= _MAX_UNIT_SQUARE))
    ).all():
        raise ValueError("Expected observations of length 1. Got: other lengths.")


def expect_relevances(relevances: Any, *, minimum: float = 0.0) -> None:
    """Raise ValueError for relevances above 1, or below 0 where they have no sign."""
    bounds = minimum * _MAX_RELEVANCE, _MAX_RELEVANCE
    if not ((relevances >= bounds[0]) & (relevances <= bounds[1])).all():
        raise ValueError(f"Expected relevances from {minimum:g} to 1. Got: values outside.")


def expect_products(S: Floats, what: str = "variables") -> None:
    """Raise ValueError for inner products that violate the Cauchy-Schwarz inequality."""
    expect_sums(f"products of {what}", S)
    squares = S.diagonal()
    lengths = np.sqrt(np.maximum(squares, 0.0))
    expect_within(S, lengths * lengths[:, None], squares)


def expect_factors(factors: Floats) -> None:
    """Raise ValueError for weights of columns, in rows, whose maximum is not 1."""
    expect_between("factors", factors, 0.0, _MAX_RELEVANCE)
    if len(factors) and not (factors.max(axis=1) >= 1.0 / _MAX_RELEVANCE).all():
        raise ValueError("Expected factors with a maximum of 1. Got: another maximum.")


def expect_within(products: Any, bounds: Any, squares: Any) -> None:
    """Raise ValueError for products above these bounds, or squares below 0, beyond rounding."""
    over = np.abs(products) > _BOUND_FACTOR * bounds + _SQUARE_RTOL * np.abs(squares).max(
        initial=0.0
    )
    if over.any():
        raise ValueError("Expected products no larger than their squares allow. Got: larger ones.")
    expect_squares(squares)


def expect_squares(squares: Any) -> None:
    """Raise ValueError for sums of squares below 0, beyond rounding."""
    if (squares < -_SQUARE_RTOL * np.abs(squares).max(initial=0.0)).any():
        raise ValueError("Expected sums of squares of 0 or more. Got: negative ones.")


def expect_explained(m2: Floats, mean: Floats, cxy: Floats, squares: Floats) -> None:
    """Raise ValueError for products with targets, (p, c), larger than the squares allow.

    A relevance does not show this, because it is clipped at 1.
    """
    lengths = np.sqrt(np.maximum(m2, 0.0)) + _MEAN_EFFECT * np.abs(mean)
    bounds = lengths[:, None] * np.sqrt(squares)
    tolerance = _SQUARE_RTOL * bounds.max(axis=0, initial=0.0)
    if not (np.abs(cxy) <= _BOUND_FACTOR * bounds + tolerance).all():
        raise ValueError("Expected products no larger than their squares allow. Got: larger ones.")


def expect_weights(total: float, unit: float, squares: float, rows: int) -> None:
    """Raise ValueError for weights that no rows can have.

    Parameters
    ----------
    total
        The sum of their weights.
    unit
        The weight of the next row.
    squares
        The sum of their squared weights.
    rows
        Number of rows.
    """
    with np.errstate(all="ignore"):
        now = np.float64(total) / np.float64(unit)
        effective = np.square(np.float64(total)) / np.float64(squares)
    # Rows of weight 0 count as rows; the effective number of rows is at most their number.
    fits = 1e-150 <= now <= 1e150 and 0.99 <= effective <= 1.01 * rows + 1.0
    if not fits and (total or squares or not 0.0 < unit < np.inf):
        raise ValueError(f"Expected weights of {rows} rows. Got: impossible ones.")


def expect_means(means: Any, corrections: Any, spread: Any) -> None:
    """Raise ValueError for impossible means, or rounding corrections that are too large.

    Parameters
    ----------
    means, corrections
        Computed means, and their rounding corrections.
    spread
        Norm of the deviations of the values from their means.
    """
    expect_bounded("means", means)
    if not (np.abs(corrections) <= _MEAN_RTOL * (np.abs(means) + spread)).all():
        raise ValueError("Expected small rounding corrections of means. Got: larger ones.")


def expect_between(what: str, values: Any, minimum: float, maximum: float) -> None:
    """Raise ValueError for a number, or an array, that is not within an interval."""
    found = np.asarray(values)
    if not ((found >= minimum) & (found <= maximum)).all():
        raise ValueError(f"Expected {what} from {minimum:g} to {maximum:g}. Got: values outside.")
