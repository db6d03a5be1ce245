"""Mid-ranks of columns, their sums by class, and rank correlations.

A rank is stored as 2 r - (n + 1), with r the mid-rank from 1 to n: an integer of mean 0, which has
no rounding error. The ranks a + 1 to b of equal values are a + b - n. Every column is computed by
the same instructions at any position in a block.
"""

from __future__ import annotations

import numpy as np

from streamsel._kernels.compile import kernel

# Integers beyond this magnitude are sorted as floats.
_MAX_INTEGER = 2**31
# Integers are counted if their range is below the number of values plus this.
_MIN_RANGE = 256


@kernel()
def _integer_range(x: np.ndarray, zeros: int) -> tuple[int, int]:
    """Return the smallest value and the size of the range of small integers; size 0 for others.

    Parameters
    ----------
    x
        (n,) values, of any numeric type.
    zeros
        Number of further values that are 0.
    """
    low = high = 0
    for i in range(x.size):
        value = np.float64(x[i])
        if not (-_MAX_INTEGER < value < _MAX_INTEGER):
            return 0, 0
        number = int(value)
        if number != value:
            return 0, 0
        if i == 0 and zeros == 0:
            low = high = number
        low, high = min(low, number), max(high, number)
    size = high - low + 1
    return (low, size) if size < x.size + _MIN_RANGE else (0, 0)


@kernel()
def _rank_integers(x: np.ndarray, low: int, counts: np.ndarray, zeros: int, out: np.ndarray) -> int:
    """Fill the ranks of small integers; return that of the further zeros.

    Parameters
    ----------
    x
        (m,) integers, from low to low + counts.size - 1, of any numeric type.
    low
        The smallest one, or 0 if that is smaller and there are zeros.
    counts
        Buffer for all possible integers.
    zeros
        Number of further values that are 0.
    out
        (m,) filled.
    """
    n = x.size + zeros
    counts[:] = 0
    for i in range(x.size):
        counts[np.int64(x[i]) - low] += 1
    if zeros:
        counts[-low] += zeros
    start = 0
    for v in range(counts.size):
        stop = start + counts[v]
        counts[v] = start + stop - n
        start = stop
    for i in range(x.size):
        out[i] = counts[np.int64(x[i]) - low]
    return counts[-low] if zeros else 0


@kernel()
def _rank_sorted(values: np.ndarray, order: np.ndarray, zeros: int, out: np.ndarray) -> int:
    """Fill the ranks of sorted values; return that of the further zeros.

    Parameters
    ----------
    values, order
        (m,) values, ascending, and their indices in the column.
    zeros
        Number of further values that are 0.
    out
        (m,) filled.
    """
    m = values.size
    n = m + zeros
    zero_rank = 0
    # Number of smaller values, apart from those at lower indices.
    before = 0
    is_beyond = zeros == 0
    start = 0
    while start < m:
        value = values[start]
        stop = start + 1
        while stop < m and values[stop] == value:
            stop += 1
        more = 0
        if not is_beyond and value >= 0.0:
            is_beyond = True
            if value == 0.0:
                more = zeros
                zero_rank = 2 * start + (stop - start) + zeros - n
            else:
                before = zeros
                zero_rank = 2 * start + zeros - n
        rank = 2 * (start + before) + (stop - start) + more - n
        for i in range(start, stop):
            out[order[i]] = rank
        before += more
        start = stop
    return zero_rank if is_beyond else 2 * m + zeros - n


@kernel()
def rank_integers(X: np.ndarray, ranks: np.ndarray, is_ranked: np.ndarray) -> None:
    """Fill the ranks of the columns of small integers.

    Parameters
    ----------
    X
        (b, n) columns as rows, of any numeric type; read-only.
    ranks
        (b, n) filled for those columns.
    is_ranked
        (b,) filled: whether a column consists of small integers.
    """
    b, n = X.shape
    counts = np.empty(n + _MIN_RANGE, np.int64)
    for j in range(b):
        low, size = _integer_range(X[j], 0)
        is_ranked[j] = size > 0
        if size:
            _rank_integers(X[j], low, counts[:size], 0, ranks[j])


@kernel()
def rank_sorted(
    values: np.ndarray, order: np.ndarray, columns: np.ndarray, ranks: np.ndarray
) -> None:
    """Fill the ranks of sorted columns.

    Parameters
    ----------
    values, order
        (s, n) columns as rows, each ascending, and the original indices.
    columns
        (s,) indices of the columns.
    ranks
        (b, n) filled at these indices, by sample.
    """
    for i in range(columns.size):
        _rank_sorted(values[i], order[i], 0, ranks[columns[i]])


@kernel()
def rank_stored_integers(
    data: np.ndarray,
    indptr: np.ndarray,
    n: int,
    ranks: np.ndarray,
    zero_ranks: np.ndarray,
    is_ranked: np.ndarray,
) -> None:
    """Do the same as `rank_integers`, for sparse columns.

    Parameters
    ----------
    data, indptr
        Arrays of a CSC matrix of n rows: stored values, and (b + 1,) where columns start.
    n
        Number of rows.
    ranks
        Filled with the ranks of the stored values.
    zero_ranks
        (b,) filled with the ranks of the values that are not stored; 0 if all are.
    is_ranked
        (b,) filled: whether a column consists of small integers.
    """
    counts = np.empty(n + _MIN_RANGE, np.int64)
    for j in range(indptr.size - 1):
        start, stop = indptr[j], indptr[j + 1]
        zeros = n - (stop - start)
        low, size = _integer_range(data[start:stop], zeros)
        is_ranked[j] = size > 0
        if size:
            zero_ranks[j] = _rank_integers(
                data[start:stop], low, counts[:size], zeros, ranks[start:stop]
            )


@kernel()
def rank_stored_sorted(
    values: np.ndarray,
    order: np.ndarray,
    indptr: np.ndarray,
    n: int,
    columns: np.ndarray,
    ranks: np.ndarray,
    zero_ranks: np.ndarray,
) -> None:
    """Do the same as `rank_sorted`, for sparse columns.

    Parameters
    ----------
    values, order
        The stored values of each column, ascending, and their indices within the column.
    indptr
        (b + 1,) where columns start.
    n
        Number of rows.
    columns
        Indices of the columns to rank.
    ranks, zero_ranks
        Filled as by `rank_stored_integers`, for these columns.
    """
    for j in columns:
        stored = slice(indptr[j], indptr[j + 1])
        zeros = n - (indptr[j + 1] - indptr[j])
        zero_ranks[j] = _rank_sorted(values[stored], order[stored], zeros, ranks[stored])


@kernel()
def sum_by_class(
    ranks: np.ndarray, codes: np.ndarray, sums: np.ndarray, squares: np.ndarray
) -> None:
    """Fill the sums of ranks by class, and the sums of squares.

    Parameters
    ----------
    ranks
        (b, n) ranks.
    codes
        (n,) class of each sample.
    sums
        (b, C) filled.
    squares
        (b,) filled.
    """
    for j in range(ranks.shape[0]):
        of_class = sums[j]
        of_class[:] = 0
        total = 0.0
        for i in range(codes.size):
            rank = np.int64(ranks[j, i])
            of_class[codes[i]] += rank
            total += np.float64(rank) * rank
        squares[j] = total


@kernel()
def sum_stored_by_class(
    ranks: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    zero_ranks: np.ndarray,
    codes: np.ndarray,
    sizes: np.ndarray,
    sums: np.ndarray,
    squares: np.ndarray,
) -> None:
    """Do the same as `sum_by_class`, for sparse columns.

    Parameters
    ----------
    ranks
        Ranks of the stored values.
    indices, indptr
        Their rows, and (b + 1,) where columns start.
    zero_ranks
        (b,) ranks of the values that are not stored.
    codes, sizes
        (n,) class of each sample, and (C,) number of samples of each class.
    sums, squares
        (b, C) and (b,) filled.
    """
    for j in range(indptr.size - 1):
        of_class, zero_rank = sums[j], zero_ranks[j]
        for c in range(sizes.size):
            of_class[c] = zero_rank * sizes[c]
        total = 0.0
        for i in range(indptr[j], indptr[j + 1]):
            rank = np.int64(ranks[i])
            of_class[codes[indices[i]]] += rank - zero_rank
            total += np.float64(rank) * rank
        zeros = codes.size - (indptr[j + 1] - indptr[j])
        squares[j] = total + zeros * (np.float64(zero_rank) * zero_rank)


@kernel()
def kruskal_wallis(
    sums: np.ndarray, squares: np.ndarray, sizes: np.ndarray, out: np.ndarray
) -> None:
    """Fill the Kruskal-Wallis statistic with tie correction; 0 for a constant column.

    Parameters
    ----------
    sums, squares
        From `sum_by_class`.
    sizes
        (C,) number of samples of each class; some may be 0.
    out
        (b,) filled.
    """
    n = sizes.sum()
    for j in range(squares.size):
        between = 0.0
        for c in range(sizes.size):
            if sizes[c]:
                between += np.float64(sums[j, c]) * sums[j, c] / sizes[c]
        out[j] = (n - 1) * between / squares[j] if squares[j] else 0.0


@kernel()
def rank_correlations(
    ranks: np.ndarray, target: np.ndarray, out: np.ndarray, kurtosis: np.ndarray
) -> None:
    """Fill Spearman's rank correlations with a target, and kurtoses; 0 for a constant column.

    Parameters
    ----------
    ranks
        (b, n) ranks.
    target
        (n,) ranks of the target.
    out
        (b,) filled.
    kurtosis
        (b,) filled with the excess kurtoses of the ranks.
    """
    yy = 0.0
    for i in range(target.size):
        yy += np.float64(target[i]) * target[i]
    for j in range(ranks.shape[0]):
        xx = xy = fourth = 0.0
        for i in range(target.size):
            rank = np.float64(ranks[j, i])
            square = rank * rank
            xx += square
            fourth += square * square
            xy += rank * target[i]
        out[j] = xy / np.sqrt(xx * yy) if xx else 0.0
        kurtosis[j] = target.size * fourth / (xx * xx) - 3.0 if xx else 0.0


@kernel()
def stored_rank_correlations(
    ranks: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    zero_ranks: np.ndarray,
    target: np.ndarray,
    out: np.ndarray,
    kurtosis: np.ndarray,
) -> None:
    """Do the same as `rank_correlations`, for the sparse columns of `sum_stored_by_class`."""
    yy = 0.0
    for i in range(target.size):
        yy += np.float64(target[i]) * target[i]
    for j in range(indptr.size - 1):
        zero_rank = np.float64(zero_ranks[j])
        xx = (target.size - (indptr[j + 1] - indptr[j])) * (zero_rank * zero_rank)
        fourth = xx * (zero_rank * zero_rank)
        xy = 0.0
        for i in range(indptr[j], indptr[j + 1]):
            rank = np.float64(ranks[i])
            square = rank * rank
            xx += square
            fourth += square * square
            # The ranks of the target have mean 0.
            xy += (rank - zero_rank) * target[indices[i]]
        out[j] = xy / np.sqrt(xx * yy) if xx else 0.0
        kurtosis[j] = target.size * fourth / (xx * xx) - 3.0 if xx else 0.0
