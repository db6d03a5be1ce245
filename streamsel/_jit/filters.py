"""Univariate scores that need samples: error of the best threshold, and binning.

Every column is scored by the same instructions at any position in a block. Columns are transposed,
one per row, C-contiguous and finite; they may be read-only. Variation by rounding alone counts
here: the caller must exclude such columns.
"""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel


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
        most_left = most_right = 0
        for i in range(n):
            c = codes[sample[i]]
            left[c] += 1
            most_left = max(most_left, left[c])
            correct_left[i] = most_left
            c = codes[sample[n - 1 - i]]
            right[c] += 1
            most_right = max(most_right, right[c])
            correct_right[n - 1 - i] = most_right
        correct = most_left
        for i in range(n - 1):
            if x[i] < x[i + 1]:
                correct = max(correct, correct_left[i] + correct_right[i + 1])
        out[j] = (n - correct) / n


@kernel()
def bin_by_rank(values: np.ndarray, order: np.ndarray, n_bins: int, bins: np.ndarray) -> None:
    """Bin each column with equal frequencies.

    A value of mid-rank m (the number of smaller samples plus half of the equal ones) is in bin
    floor(n_bins * m / n): equal values share a bin, and a column that varies has at least two bins.

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

    The loop is not vectorized, since that would need leave to ignore NaN.
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
