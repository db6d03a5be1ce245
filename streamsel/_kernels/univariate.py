"""Univariate criteria of sorted columns: misclassification, binning, and class margins.

Columns are sorted, one per row, except those that `bin_by_width` bins.
"""

from __future__ import annotations

import numpy as np

from streamsel._kernels.compile import kernel


@kernel()
def misclassification(
    values: np.ndarray, order: np.ndarray, codes: np.ndarray, n_classes: int, out: np.ndarray
) -> None:
    """Fill the error rate of the best threshold with the best class on each side: 0 to 1.

    Thresholds lie between distinct values; no threshold, with one class for all, is allowed too.

    Parameters
    ----------
    values, order
        (b, n) columns as rows, each ascending, and the samples of its values.
    codes
        (n,) class of each sample, in 0 to n_classes - 1; classes may be empty.
    n_classes
        Number of classes.
    out
        (b,) filled.
    """
    b, n = values.shape
    correct_left, correct_right = np.empty(n, np.int64), np.empty(n, np.int64)
    left, right = np.empty(n_classes, np.int64), np.empty(n_classes, np.int64)
    for j in range(b):
        x, sample = values[j], order[j]
        for c in range(n_classes):
            left[c] = right[c] = 0
        # The frequency of the most frequent class up to each sample, and from it on. Both are
        # computed in one loop, so that their dependent additions overlap.
        max_left = max_right = 0
        for i in range(n):
            c = codes[sample[i]]
            left[c] += 1
            max_left = max(max_left, left[c])
            correct_left[i] = max_left
            c = codes[sample[n - 1 - i]]
            right[c] += 1
            max_right = max(max_right, right[c])
            correct_right[n - 1 - i] = max_right
        correct = max_left
        for i in range(n - 1):
            if x[i] < x[i + 1]:
                correct = max(correct, correct_left[i] + correct_right[i + 1])
        out[j] = (n - correct) / n


@kernel()
def bin_by_rank(values: np.ndarray, order: np.ndarray, n_bins: int, bins: np.ndarray) -> None:
    """Bin each column with equal frequencies.

    A value of mid-rank m (the number of smaller samples plus half of the equal ones) is in bin
    ⌊n_bins * m / n⌋: equal values share a bin, and a column that varies has at least two bins.

    Parameters
    ----------
    values, order
        (b, n) columns as rows, each ascending, and the samples of its values.
    n_bins
        At least 2.
    bins
        (b, n) filled, by sample; some of the bins may be empty.
    """
    n = values.shape[1]
    for j in range(values.shape[0]):
        x, sample = values[j], order[j]
        b = 0
        start = 0
        while start < n:
            stop = start + 1
            while stop < n and x[stop] == x[start]:
                stop += 1
            # `start` values are smaller than these, n - stop are larger.
            while (start + stop) * n_bins >= (b + 1) * 2 * n:
                b += 1
            for i in range(start, stop):
                bins[j, sample[i]] = b
            start = stop


@kernel()
def _range(x: np.ndarray) -> tuple[float, float]:
    """Return the smallest and the largest value, each by two chains that run in parallel.

    The loop is not vectorized, since that would require ignoring NaN.
    """
    low = odd_low = high = odd_high = x[x.size - 1]
    for i in range(1, x.size, 2):
        a, b = x[i - 1], x[i]
        low, odd_low = min(low, a), min(odd_low, b)
        high, odd_high = max(high, a), max(odd_high, b)
    return min(low, odd_low), max(high, odd_high)


@kernel()
def bin_by_width(X: np.ndarray, n_bins: int, bins: np.ndarray) -> None:
    """Bin each column with equal widths.

    A value is in bin ⌊n_bins * (x - min) / (max - min)⌋, the maximum in the last.

    Parameters
    ----------
    X
        (b, n) columns as rows.
    n_bins
        At least 2.
    bins
        (b, n) filled; some of the bins may be empty.
    """
    for j in range(X.shape[0]):
        x = X[j]
        low, high = _range(x)
        for i in range(x.size):
            bins[j, i] = 0
            if low < high:
                bins[j, i] = min(np.int64(n_bins * (x[i] - low) / (high - low)), n_bins - 1)


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
    n_classes
        Number of classes.
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
            # The distance from either end to the farthest value of another class.
            last = n - 1
            while classes[last] == classes[0]:
                last -= 1
            first = 0
            while classes[first] == classes[n - 1]:
                first += 1
            d = max(x[last] - x[0], x[n - 1] - x[first])
        out[j] = d / deviation
