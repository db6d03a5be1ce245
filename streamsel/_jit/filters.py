"""What scores of columns that need the samples are made of: the best cut, and bins.

Every column is scored by the same instructions wherever it stands in a block. Columns arrive
transposed, one a row, C-contiguous, finite; they may be read-only. What varies by rounding alone
varies here: leaving such columns out is the caller's business.
"""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel


@kernel()
def misclassification(
    values: np.ndarray, order: np.ndarray, codes: np.ndarray, n_classes: int, out: np.ndarray
) -> None:
    """Error of the best threshold with the best class on each side: 0 to 1, fewer is better.

    Thresholds lie between distinct values; none at all, and one class for all, counts too.

    Parameters
    ----------
    values, order
        (b, n) columns as rows, each ascending, and the samples that its values come from.
    codes
        (n,) class of each sample, in 0 to n_classes - 1; classes may be empty.
    out
        (b,) filled.
    """
    b, n = values.shape
    here, beyond = np.empty(n, np.int64), np.empty(n, np.int64)
    left, right = np.empty(n_classes, np.int64), np.empty(n_classes, np.int64)
    for j in range(b):
        x, place = values[j], order[j]
        for c in range(n_classes):
            left[c] = right[c] = 0
        # How often the commonest class occurs up to here, and from here on: both only grow. In one
        # loop, for each count waits for the last.
        most_left = most_right = 0
        for i in range(n):
            c = codes[place[i]]
            left[c] += 1
            most_left = max(most_left, left[c])
            here[i] = most_left
            c = codes[place[n - 1 - i]]
            right[c] += 1
            most_right = max(most_right, right[c])
            beyond[n - 1 - i] = most_right
        correct = most_left
        for i in range(n - 1):
            if x[i] < x[i + 1]:
                correct = max(correct, here[i] + beyond[i + 1])
        out[j] = (n - correct) / n


@kernel()
def bin_by_rank(values: np.ndarray, order: np.ndarray, n_bins: int, bins: np.ndarray) -> None:
    """Cut each column into bins of equal frequency.

    A value of mid-rank m (so many samples are less, and half of those that equal it) is in bin
    floor(n_bins * m / n): equal values share a bin, and whatever varies has two bins or more.

    Parameters
    ----------
    values, order
        (b, n) columns as rows, each ascending, and the samples that its values come from.
    n_bins
        At least 2.
    bins
        (b, n) filled, by sample; some of the bins may be empty.
    """
    n = values.shape[1]
    for j in range(values.shape[0]):
        x, place = values[j], order[j]
        b = 0
        start = 0
        while start < n:
            stop = start + 1
            while stop < n and x[stop] == x[start]:
                stop += 1
            # start values are less than these, n - stop are greater.
            while (start + stop) * n_bins >= (b + 1) * 2 * n:
                b += 1
            for i in range(start, stop):
                bins[j, place[i]] = b
            start = stop


@kernel()
def _range(x: np.ndarray) -> tuple[float, float]:
    """Return the smallest and the largest value; two strands, for each minimum waits for the last.

    Not vectorised by itself: that takes leave to ignore NaN.
    """
    low = odd_low = high = odd_high = x[x.size - 1]
    for i in range(1, x.size, 2):
        a, b = x[i - 1], x[i]
        low, odd_low = min(low, a), min(odd_low, b)
        high, odd_high = max(high, a), max(odd_high, b)
    return min(low, odd_low), max(high, odd_high)


@kernel()
def bin_by_width(X: np.ndarray, n_bins: int, bins: np.ndarray) -> None:
    """Cut each column into bins of equal width.

    A value is in bin floor(n_bins * (x - min) / (max - min)), the maximum in the last.

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
