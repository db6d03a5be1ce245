"""Distances between classes along a column: the smallest, or an order statistic.

Columns are sorted, one per row.
"""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel


@kernel(reordered_sums=True)
def _deviation(x: np.ndarray) -> float:
    """Return the standard deviation, in two passes: about a value, then about the mean."""
    s = 0.0
    for i in range(x.size):
        s += x[i] - x[0]
    mean = x[0] + s / x.size
    s = 0.0
    ss = 0.0
    for i in range(x.size):
        d = x[i] - mean
        s += d
        ss += d * d
    return np.sqrt((ss - s * s / x.size) / x.size)


@kernel()
def _sift_down(distance: np.ndarray, begin: np.ndarray, size: int, index: int) -> None:
    """Move the entry at this index of a min-heap down to its position."""
    d, i = distance[index], begin[index]
    while True:
        child = 2 * index + 1
        if child >= size:
            break
        if child + 1 < size and distance[child + 1] < distance[child]:
            child += 1
        if distance[child] >= d:
            break
        distance[index], begin[index] = distance[child], begin[child]
        index = child
    distance[index], begin[index] = d, i


@kernel()
def _heapify(distance: np.ndarray, begin: np.ndarray, size: int) -> None:
    """Make a min-heap of the first `size` entries."""
    for index in range(size // 2 - 1, -1, -1):
        _sift_down(distance, begin, size, index)


@kernel()
def _distance(
    values: np.ndarray,
    classes: np.ndarray,
    following: np.ndarray,
    rank: int,
    distance: np.ndarray,
    begin: np.ndarray,
    end: np.ndarray,
) -> float:
    """Return the (rank + 1)-th smallest distance between values of different classes.

    Every value has a pointer to a later one of another class, and a min-heap orders these pairs by
    distance; removing the nearest pair advances its pointer.

    Parameters
    ----------
    values, classes
        (n,) values, ascending, and their classes.
    following
        (n,) for each index the next one of another class, n if there is none.
    rank
        Less than the number of such pairs.
    distance, begin, end
        (n,) buffers.
    """
    n = values.size
    if rank == 0:
        nearest = np.inf
        for i in range(n - 1):
            d = values[i + 1] - values[i]
            if d < nearest and classes[i] != classes[i + 1]:
                nearest = d
        return nearest
    # No pair of a value is nearer than its first, so the rank + 1 nearest first pairs suffice: a
    # max-heap finds them.
    size = 0
    for i in range(n):
        end[i] = following[i]
        if end[i] < n:
            d = values[end[i]] - values[i]
            if size <= rank:
                distance[size], begin[size] = -d, i
                size += 1
                if size > rank:
                    _heapify(distance, begin, size)
            elif -d > distance[0]:
                distance[0], begin[0] = -d, i
                _sift_down(distance, begin, size, 0)
    for index in range(size):
        distance[index] = -distance[index]
    _heapify(distance, begin, size)
    for _ in range(rank):
        i = begin[0]
        later = end[i] + 1
        if later < n and classes[later] == classes[i]:
            later = following[later]
        if later < n:
            end[i] = later
            distance[0] = values[later] - values[i]
        else:
            size -= 1
            distance[0], begin[0] = distance[size], begin[size]
        _sift_down(distance, begin, size, 0)
    return distance[0]


@kernel()
def margin(
    values: np.ndarray,
    order: np.ndarray,
    codes: np.ndarray,
    n_classes: int,
    n_outliers: int,
    out: np.ndarray,
) -> None:
    """Fill the class distances: the (n_outliers + 1)-th smallest over pairs of samples.

    The distances are |x_i - x_j| over the pairs of samples of different classes, in units of the
    column's (population) standard deviation. It is the largest if there are at most n_outliers
    pairs; 0.0 if there are none, or the column is constant.

    Parameters
    ----------
    values, order
        (b, n) columns as rows, each ascending, and the samples of its values.
    codes
        (n,) class of each sample, in 0 to n_classes - 1; classes may be empty.
    n_outliers
        How many pairs may be nearer.
    out
        (b,) filled.
    """
    b, n = values.shape
    begin, end = np.empty(n, np.int64), np.empty(n, np.int64)
    classes, following, distance = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
    count = np.zeros(n_classes, np.int64)
    for i in range(n):
        count[codes[i]] += 1
    pairs = n * n
    for c in range(n_classes):
        pairs -= count[c] * count[c]
    pairs //= 2
    for j in range(b):
        x, sample = values[j], order[j]
        deviation = _deviation(x)
        if pairs == 0 or deviation == 0.0:
            out[j] = 0.0
            continue
        following[n - 1] = next_other = n
        classes[n - 1] = c = codes[sample[n - 1]]
        for i in range(n - 2, -1, -1):
            code = codes[sample[i]]
            next_other = next_other if code == c else i + 1
            classes[i], following[i] = code, next_other
            c = code
        if n_outliers < pairs - 1:
            d = _distance(x, classes, following, n_outliers, distance, begin, end)
        else:
            # From either end to the farthest value of another class.
            last = n - 1
            while classes[last] == classes[0]:
                last -= 1
            first = 0
            while classes[first] == classes[n - 1]:
                first += 1
            d = max(x[last] - x[0], x[n - 1] - x[first])
        out[j] = d / deviation
