"""Pairs of columns whose products reach a bound."""

from __future__ import annotations

import numpy as np

from streamsel._kernels.compile import kernel


@kernel()
def mark_undismissed(
    products: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    bound: np.float32,
    rows: np.ndarray,
    columns: np.ndarray,
) -> None:
    """Mark the rows and columns of a matrix with an entry that cannot be dismissed.

    Parameters
    ----------
    products
        (a, b) products of parts of unit vectors, float32.
    left, right
        (a,) and (b,) lengths of their other parts, float32.
    bound
        An entry is dismissed if its magnitude plus the product of both lengths is below this.
    rows, columns
        (a,) and (b,) set to True where an entry is not dismissed.
    """
    for i in range(products.shape[0]):
        for j in range(products.shape[1]):
            if abs(products[i, j]) + left[i] * right[j] >= bound:
                rows[i] = columns[j] = True


@kernel()
def pairs_of_products(
    products: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    left_norm: np.ndarray,
    right_norm: np.ndarray,
    n: float,
    threshold: float,
    first: np.ndarray,
    second: np.ndarray,
    correlation: np.ndarray,
) -> int:
    """Fill in the pairs of columns of large absolute correlation; return their number.

    Parameters
    ----------
    products
        (a, b) sums of products of columns, float32, exact.
    left, right
        (a,) and (b,) sums of the columns, exact.
    left_norm, right_norm
        (a,) and (b,) lengths of the centred columns.
    n
        Number of rows.
    threshold
        Pairs of at least this absolute correlation are filled in.
    first, second, correlation
        (a * b,) filled: indices of the columns of each pair, ascending, and their correlation.
    """
    size = 0
    for i in range(products.shape[0]):
        for j in range(products.shape[1]):
            centred = n * products[i, j] - left[i] * right[j]
            scale = n * left_norm[i] * right_norm[j]
            if abs(centred) >= threshold * scale:
                first[size], second[size], correlation[size] = i, j, centred / scale
                size += 1
    return size


@kernel()
def keep_first(
    first: np.ndarray, second: np.ndarray, kept: np.ndarray, representative: np.ndarray
) -> None:
    """Discard the columns that are paired with an earlier kept one.

    Parameters
    ----------
    first, second
        Pairs of columns in ascending order, the later one of each pair first.
    kept
        (b,) which columns are kept, True at first.
    representative
        (b,) filled for discarded columns: the index of their pair with the first kept one.
    """
    for k in range(first.size):
        if kept[first[k]] and kept[second[k]]:
            kept[first[k]] = False
            representative[first[k]] = k
