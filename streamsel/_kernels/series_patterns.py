"""Patterns of series: entropies of values and orders, complexity, peaks."""

from __future__ import annotations

import math

import numpy as np

from streamsel._kernels.compile import kernel


@kernel()
def _fill_edges(low: float, high: float, edges: np.ndarray) -> None:
    """Fill the edges of bins of equal width from low to high, as `numpy.linspace` does."""
    step = (high - low) / (edges.size - 1)
    for j in range(edges.size):
        edges[j] = j * step + low
    edges[edges.size - 1] = high


@kernel()
def _bin_index(distance: float, width: float, n_bins: int) -> int:
    """Return the bin of a value at a distance from the lower end, up to rounding."""
    if not 0.0 < width < math.inf:
        return 0
    return min(n_bins - 1, int(distance / width * n_bins))


@kernel()
def fill_binned_entropy(
    series: np.ndarray, lengths: np.ndarray, n_bins: int, out: np.ndarray
) -> None:
    """Fill out (b,) with the entropy of the values in bins of equal width from low to high."""
    edges, counts = np.empty(n_bins + 1), np.empty(n_bins)
    for i in range(lengths.size):
        n = lengths[i]
        if n == 0:
            out[i] = np.nan
            continue
        x = series[i, :n]
        low, high = x.min(), x.max()
        _fill_edges(low, high, edges)
        counts[:] = 0.0
        for t in range(n):
            j = _bin_index(x[t] - low, high - low, n_bins)
            if j > 0 and x[t] < edges[j]:
                j -= 1
            elif j < n_bins - 1 and x[t] >= edges[j + 1]:
                j += 1
            counts[j] += 1.0
        out[i] = _entropy(counts, n)


@kernel()
def _entropy(counts: np.ndarray, total: float) -> float:
    found = 0.0
    for j in range(counts.size):
        if counts[j] > 0.0:
            share = counts[j] / total
            found -= share * math.log(share)
    return found


@kernel()
def fill_order_entropy(
    series: np.ndarray, lengths: np.ndarray, size: int, step: int, out: np.ndarray
) -> None:
    """Fill the entropy of the orders of consecutive observations.

    Parameters
    ----------
    series, lengths
        (b, t) and (b,), one series per row.
    size
        Observations in a window; of equal ones the earlier counts as smaller.
    step
        Distance of the starts of two windows.
    out
        (b,) filled; NaN for a series that is shorter than a window.
    """
    factorials = np.ones(size + 1, np.int64)
    for k in range(1, size + 1):
        factorials[k] = k * factorials[k - 1]
    counts = np.zeros(factorials[size])
    seen = np.empty(factorials[size], np.int64)
    for i in range(lengths.size):
        x = series[i]
        n_windows = n_seen = 0
        for start in range(0, lengths[i] - size + 1, step):
            code = 0
            for k in range(1, size):
                larger = 0
                for j in range(k):
                    larger += x[start + j] > x[start + k]
                code += larger * factorials[k]
            if counts[code] == 0.0:
                seen[n_seen] = code
                n_seen += 1
            counts[code] += 1.0
            n_windows += 1
        found = 0.0
        for s in range(n_seen):
            share = counts[seen[s]] / n_windows
            found -= share * math.log(share)
            counts[seen[s]] = 0.0
        out[i] = found if n_windows else np.nan


@kernel()
def fill_lempel_ziv(series: np.ndarray, lengths: np.ndarray, n_bins: int, out: np.ndarray) -> None:
    """Fill the complexity of Lempel and Ziv (1978) of series of binned values.

    Parameters
    ----------
    series, lengths
        (b, t) and (b,), one series per row.
    n_bins
        Number of bins of equal width from minimum to maximum; the upper edge belongs to a bin.
    out
        (b,) filled: number of different words that the series is divided into, from left to right,
        each the shortest one not seen before, over its length.
    """
    edges = np.empty(n_bins + 1)
    # The words are a tree: (word, next bin) -> longer word, in a hash table. A key counts if its
    # entry is stamped with the number of the series.
    size = 64
    while size < 4 * series.shape[1]:
        size *= 2
    keys, words = np.empty(size, np.int64), np.empty(size, np.int64)
    stamps = np.full(size, -1, np.int64)
    for i in range(lengths.size):
        n = lengths[i]
        if n == 0:
            out[i] = np.nan
            continue
        x = series[i, :n]
        low, high = x.min(), x.max()
        _fill_edges(low, high, edges)
        word = n_words = 0
        for t in range(n):
            j = _bin_index(x[t] - low, high - low, n_bins)
            while j > 0 and edges[j] >= x[t]:
                j -= 1
            while j < n_bins - 1 and edges[j + 1] < x[t]:
                j += 1
            key = np.int64(word) * n_bins + j
            index = (key * 0x9E3779B1 >> 7) & (size - 1)
            while stamps[index] == i and keys[index] != key:
                index = (index + 1) & (size - 1)
            if stamps[index] == i:
                word = words[index]
            else:
                n_words += 1
                stamps[index], keys[index], words[index] = i, key, n_words
                word = 0
        out[i] = n_words / n


@kernel()
def fill_peaks(
    series: np.ndarray, lengths: np.ndarray, supports: np.ndarray, out: np.ndarray
) -> None:
    """Count the observations that exceed all their neighbours on both sides.

    Parameters
    ----------
    series, lengths
        (b, t) and (b,), one series per row.
    supports
        (k,) numbers of neighbours on each side that a peak exceeds.
    out
        (k, b) filled.
    """
    max_support = supports.max()
    for i in range(lengths.size):
        x, n = series[i], lengths[i]
        out[:, i] = 0.0
        for t in range(1, n - 1):
            widest = min(max_support, t, n - 1 - t)
            width = 0
            while width < widest and x[t - width - 1] < x[t] and x[t + width + 1] < x[t]:
                width += 1
            for k in range(supports.size):
                out[k, i] += width >= supports[k]
