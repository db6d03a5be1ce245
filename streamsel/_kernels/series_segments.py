"""Trends of series, of aggregates of their chunks, and statistics of their segments."""

from __future__ import annotations

import math

import numpy as np

from streamsel._kernels.compile import kernel

# Attributes of a regression on 0, 1, ..., n - 1, and aggregates of a chunk.
ATTRIBUTES = ("slope", "intercept", "rvalue", "stderr")
AGGREGATES = ("max", "min", "mean", "var")
# Statistics of a segment.
SEGMENT = ("energy", "mean", "standard_deviation", "slope")


@kernel()
def fill_trends(series: np.ndarray, lengths: np.ndarray, out: np.ndarray) -> None:
    """Fill the regressions of series on 0, 1, ..., n - 1.

    Parameters
    ----------
    series, lengths
        (b, t) and (b,), one series per row.
    out
        (4, b) filled: `ATTRIBUTES`; NaN for fewer than two observations.
    """
    for i in range(lengths.size):
        _regress(series[i, : lengths[i]], out[:, i])


@kernel()
def fill_chunk_trends(series: np.ndarray, lengths: np.ndarray, chunk: int, out: np.ndarray) -> None:
    """Fill the regressions of aggregates of chunks on the number of the chunk.

    Parameters
    ----------
    series, lengths
        (b, t) and (b,), one series per row.
    chunk
        Observations in a chunk; the last one may have fewer.
    out
        (4, 4, b) filled: for each of `AGGREGATES` its `ATTRIBUTES`; NaN for a single chunk.
    """
    aggregates = np.empty((4, -(-series.shape[1] // chunk)))
    for i in range(lengths.size):
        n = lengths[i]
        if chunk >= n:
            out[:, :, i] = np.nan
            continue
        m = 0
        for start in range(0, n, chunk):
            _aggregate(series[i, start : min(n, start + chunk)], aggregates[:, m])
            m += 1
        for a in range(4):
            _regress(aggregates[a, :m], out[a, :, i])


@kernel()
def _aggregate(x: np.ndarray, found: np.ndarray) -> None:
    low = high = x[0]
    total = 0.0
    for t in range(x.size):
        low, high = min(low, x[t]), max(high, x[t])
        total += x[t]
    mean = x[0] if low == high else total / x.size
    squares = 0.0
    for t in range(x.size):
        squares += (x[t] - mean) ** 2
    found[0], found[1], found[2], found[3] = high, low, mean, squares / x.size


@kernel()
def _regress(y: np.ndarray, found: np.ndarray) -> None:
    """Fill found (4,) with the `ATTRIBUTES` of the regression of y on 0, 1, ..., n - 1."""
    n = y.size
    if n < 2:
        found[:] = np.nan
        return
    low = high = y[0]
    total = 0.0
    for t in range(n):
        low, high = min(low, y[t]), max(high, y[t])
        total += y[t]
    if low == high:
        found[0], found[1], found[2], found[3] = 0.0, low, 0.0, 0.0
        return
    mean, middle = total / n, (n - 1) / 2.0
    products = squares = 0.0
    for t in range(n):
        d = y[t] - mean
        products += (t - middle) * d
        squares += d * d
    spread = n * (n * float(n) - 1.0) / 12.0
    slope = products / spread
    r = products / math.sqrt(spread * squares)
    r = max(-1.0, min(1.0, r))
    found[0], found[1], found[2], found[3] = slope, mean - slope * middle, r, 0.0
    if n > 2:
        rest = 0.0
        for t in range(n):
            rest += (y[t] - mean - slope * (t - middle)) ** 2
        found[3] = math.sqrt(rest / spread / (n - 2))


@kernel()
def fill_segments(
    series: np.ndarray, lengths: np.ndarray, n_segments: int, out: np.ndarray
) -> None:
    """Fill statistics of the consecutive segments that a series is divided into.

    Parameters
    ----------
    series, lengths
        (b, t) and (b,), one series per row.
    n_segments
        Number of segments; their lengths differ by one at most, and longer ones come first.
    out
        (4, n_segments, b) filled: `SEGMENT`, the energy as a share of that of the series; NaN where
        it is undefined.
    """
    aggregates, trend = np.empty(4), np.empty(4)
    for i in range(lengths.size):
        n = lengths[i]
        energy = 0.0
        for t in range(n):
            energy += series[i, t] * series[i, t]
        start = 0
        for s in range(n_segments):
            stop = start + n // n_segments + (s < n % n_segments)
            x = series[i, start:stop]
            part = 0.0
            for t in range(x.size):
                part += x[t] * x[t]
            out[0, s, i] = part / energy if energy > 0.0 else np.nan
            out[1:, s, i] = np.nan
            if x.size:
                _aggregate(x, aggregates)
                _regress(x, trend)
                out[1, s, i], out[2, s, i] = aggregates[2], math.sqrt(aggregates[3])
                out[3, s, i] = trend[0]
            start = stop


@kernel()
def fill_cumulative_shares(
    series: np.ndarray, lengths: np.ndarray, shares: np.ndarray, out: np.ndarray
) -> None:
    """Fill where the cumulative sum of absolute values reaches shares of its total.

    Parameters
    ----------
    series, lengths
        (b, t) and (b,), one series per row.
    shares
        (q,) shares of the total, ascending.
    out
        (q, b) filled: number of observations up to there, over all; NaN if all values are 0.
    """
    for i in range(lengths.size):
        n = lengths[i]
        total = 0.0
        for t in range(n):
            total += abs(series[i, t])
        out[:, i] = np.nan
        if total == 0.0:
            continue
        q = 0
        sum_so_far = 0.0
        for t in range(n):
            sum_so_far += abs(series[i, t])
            while q < shares.size and sum_so_far / total >= shares[q]:
                out[q, i] = (t + 1) / n
                q += 1
