"""What the numbers of a saved state can be: lengths, relevances and products that data have.

A file may have been edited and sealed again. What is checked here holds of every state that was
learnt, whatever the data; the bounds leave room for rounding, which changes the last digits, and
more of them where a column hardly varies about a large mean.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel._jit.rows import LARGEST

Floats = NDArray[np.float64]

# Of a squared length that is 1, and of a relevance that is at most 1.
_SHORT, _LONG = 0.5, 2.0
_MOST_RELEVANT = 1.01
# What a product may have above the two squares that bound it, as a part of them; and of the largest
# square: what is left of a difference of two that are equal.
_OVER, _ROUNDING = 1.01, 1e-9
# What a large mean adds to a product with values whose sum is 0 but for rounding, as a part of it.
_OF_MEAN = 1e-12
# What rounding takes from a mean, as a part of it.
_LOST = 1e-6
# Of two numbers that are multiplied; of a sum of many of these; and of a sum of products.
_FACTOR, _MANY, _SUM = 2.0 * LARGEST, 1e6 * LARGEST, 1e308


def expect_bounded(what: str, *arrays: Any) -> None:
    """Refuse numbers whose products are not finite."""
    for array in arrays:
        if not (np.abs(array) <= _FACTOR).all():
            raise ValueError(f"Expected {what} whose products are finite. Got: others.")


def expect_totals(what: str, *arrays: Any) -> None:
    """Refuse sums of numbers that are not bounded as these are."""
    for array in arrays:
        if not (np.abs(array) <= _MANY).all():
            raise ValueError(f"Expected {what} that are sums of values. Got: others.")


def expect_sums(what: str, *arrays: Any) -> None:
    """Refuse sums of products that no values have which can be multiplied."""
    for array in arrays:
        if not (np.abs(array) <= _SUM).all():
            raise ValueError(f"Expected {what} that are sums of products. Got: others.")


def expect_units(units: Floats) -> None:
    """Refuse rows that are not of length 1, as observations are held; or of 0, of what is void."""
    with np.errstate(over="ignore"):
        squares = np.einsum("ij,ij->i", units, units)
    if not ((squares == 0.0) | ((squares >= _SHORT) & (squares <= _LONG))).all():
        raise ValueError("Expected observations of length 1. Got: others.")


def expect_relevances(relevances: Any, *, least: float = 0.0) -> None:
    """Refuse relevances above 1, or below 0 where they have no sign."""
    bounds = least * _MOST_RELEVANT, _MOST_RELEVANT
    if not ((relevances >= bounds[0]) & (relevances <= bounds[1])).all():
        raise ValueError(f"Expected relevances from {least:g} to 1. Got: others.")


def expect_products(S: Floats, what: str = "variables") -> None:
    """Refuse a matrix of inner products that breaks the inequality of Cauchy and Schwarz."""
    expect_sums(f"products of {what}", S)
    squares = S.diagonal()
    lengths = np.sqrt(np.maximum(squares, 0.0))
    expect_within(S, lengths * lengths[:, None], squares)


def expect_factors(factors: Floats) -> None:
    """Refuse weightings of columns, one a row, of which the largest is not 1."""
    expect_between("factors", factors, 0.0, _MOST_RELEVANT)
    if len(factors) and not (factors.max(axis=1) >= 1.0 / _MOST_RELEVANT).all():
        raise ValueError("Expected factors of which one is 1. Got: others.")


def expect_within(products: Any, bounds: Any, squares: Any) -> None:
    """Refuse products above these bounds, or squares below 0, but for rounding."""
    over = np.abs(products) > _OVER * bounds + _ROUNDING * np.abs(squares).max(initial=0.0)
    if over.any():
        raise ValueError("Expected products no larger than their squares. Got: others.")
    expect_squares(squares)


def expect_squares(squares: Any) -> None:
    """Refuse sums of squares below 0, but for rounding."""
    if (squares < -_ROUNDING * np.abs(squares).max(initial=0.0)).any():
        raise ValueError("Expected sums of squares of 0 or more. Got: others.")


def expect_explained(m2: Floats, mean: Floats, cxy: Floats, squares: Floats) -> None:
    """Refuse products of variables with targets, (p, c), that are beyond what their squares bound.

    A relevance does not show it: where it would be above 1 it is taken for 1.
    """
    lengths = np.sqrt(np.maximum(m2, 0.0)) + _OF_MEAN * np.abs(mean)
    bounds = lengths[:, None] * np.sqrt(squares)
    rounding = _ROUNDING * bounds.max(axis=0, initial=0.0)
    if not (np.abs(cxy) <= _OVER * bounds + rounding).all():
        raise ValueError("Expected products no larger than their squares. Got: others.")


def expect_weights(total: float, unit: float, squares: float, rows: int) -> None:
    """Refuse weights that no rows have.

    Parameters
    ----------
    total, squares
        The sum of their weights, and of their squares.
    unit
        The weight of a row that comes now.
    rows
        How many rows there were.
    """
    with np.errstate(all="ignore"):
        now = np.float64(total) / np.float64(unit)
        effective = np.square(np.float64(total)) / np.float64(squares)
    # Rows of weight 0 are rows; of equal weights as many tell as there are, and of others fewer.
    fits = 1e-150 <= now <= 1e150 and 0.99 <= effective <= 1.01 * rows + 1.0
    if not fits and (total or squares or not 0.0 < unit < np.inf):
        raise ValueError(f"Expected weights of {rows} rows. Got: others.")


def expect_means(means: Any, lost: Any, spread: Any) -> None:
    """Refuse means that values cannot have, and more than rounding takes from them.

    Parameters
    ----------
    means, lost
        What a sum over values came to, and what rounding took from it.
    spread
        How far the values are from their means, all together.
    """
    expect_bounded("means", means)
    if not (np.abs(lost) <= _LOST * (np.abs(means) + spread)).all():
        raise ValueError("Expected what rounding takes from means. Got: more.")


def expect_between(what: str, values: Any, least: float, most: float) -> None:
    """Refuse a number, or an array of them, out of an interval."""
    found = np.asarray(values)
    if not ((found >= least) & (found <= most)).all():
        raise ValueError(f"Expected {what} from {least:g} to {most:g}. Got: others.")
