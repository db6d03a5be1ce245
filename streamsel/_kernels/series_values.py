"""Statistics of the values of series, one series per row, padded at its end.

A statistic that is undefined for a series is NaN. The mean of a constant series is its value, and
its variance 0, exactly: rounding would make them an almost constant series of noise.
"""

from __future__ import annotations

import math

import numpy as np

from streamsel._kernels.compile import kernel

# Rows of the table that `fill_statistics` fills.
STATISTICS = (
    "length",
    "sum_values",
    "mean",
    "variance",
    "standard_deviation",
    "skewness",
    "kurtosis",
    "abs_energy",
    "root_mean_square",
    "variation_coefficient",
    "minimum",
    "maximum",
    "absolute_maximum",
    "standard_deviation_over_range",
    "first_location_of_maximum",
    "last_location_of_maximum",
    "first_location_of_minimum",
    "last_location_of_minimum",
    "has_duplicate_max",
    "has_duplicate_min",
    "count_above_mean",
    "count_below_mean",
    "longest_strike_above_mean",
    "longest_strike_below_mean",
    "absolute_sum_of_changes",
    "mean_abs_change",
    "mean_change",
    "mean_second_derivative_central",
    "change_norm",
    "change_norm_over_standard_deviation",
)
# A mean below this share of the largest absolute value is rounding.
ROUNDING = 1e-15
MEAN = 2
STANDARD_DEVIATION = 4
MINIMUM = 10
MAXIMUM = 11


@kernel()
def fill_statistics(series: np.ndarray, lengths: np.ndarray, out: np.ndarray) -> None:
    """Fill all statistics of values, in the order of `STATISTICS`.

    Parameters
    ----------
    series
        (b, t) one series per row.
    lengths
        (b,) observations of each series.
    out
        (30, b) filled.
    """
    for i in range(lengths.size):
        n = lengths[i]
        x, found = series[i], out[:, i]
        found[:] = np.nan
        found[0], found[1], found[7] = n, 0.0, 0.0
        if n > 0:
            _extremes(x, n, found)
            _moments(x, n, found)
            _about_mean(x, n, found)
            _changes(x, n, found)


@kernel()
def _extremes(x: np.ndarray, n: int, found: np.ndarray) -> None:
    low = high = x[0]
    first_low = last_low = first_high = last_high = 0
    n_low = n_high = 1
    for t in range(1, n):
        if x[t] >= high:
            if x[t] > high:
                high, first_high, n_high = x[t], t, 0
            last_high = t
            n_high += 1
        if x[t] <= low:
            if x[t] < low:
                low, first_low, n_low = x[t], t, 0
            last_low = t
            n_low += 1
    found[10], found[11] = low, high
    found[12] = max(abs(low), abs(high))
    found[14], found[15] = first_high / n, (last_high + 1) / n
    found[16], found[17] = first_low / n, (last_low + 1) / n
    found[18], found[19] = min(n_high - 1, 1), min(n_low - 1, 1)


@kernel()
def _moments(x: np.ndarray, n: int, found: np.ndarray) -> None:
    total = energy = 0.0
    for t in range(n):
        total += x[t]
        energy += x[t] * x[t]
    mean = total / n
    rest = 0.0
    for t in range(n):
        rest += x[t] - mean
    mean = x[0] if found[10] == found[11] else mean + rest / n
    m2 = m3 = m4 = 0.0
    for t in range(n):
        d = x[t] - mean
        m2 += d * d
        m3 += d * d * d
        m4 += d * d * d * d
    deviation = math.sqrt(m2 / n)
    found[1], found[2], found[3], found[4] = total, mean, m2 / n, deviation
    if m2 == 0.0:
        found[5] = found[6] = 0.0
    if n >= 3 and m2 > 0.0:
        found[5] = n * math.sqrt(n - 1.0) / (n - 2.0) * m3 / (m2 * math.sqrt(m2))
    if n >= 4 and m2 > 0.0:
        ratio = n * (n + 1.0) * (n - 1.0) * m4 / (m2 * m2) - 3.0 * (n - 1.0) ** 2
        found[6] = ratio / ((n - 2.0) * (n - 3.0))
    found[7], found[8] = energy, math.sqrt(energy / n)
    if abs(mean) > ROUNDING * found[12]:
        found[9] = deviation / mean
    if found[11] > found[10]:
        found[13] = deviation / (found[11] - found[10])


@kernel()
def _about_mean(x: np.ndarray, n: int, found: np.ndarray) -> None:
    mean = found[2]
    n_above = n_below = above = below = longest_above = longest_below = 0
    for t in range(n):
        above = above + 1 if x[t] > mean else 0
        below = below + 1 if x[t] < mean else 0
        n_above += above > 0
        n_below += below > 0
        longest_above = max(longest_above, above)
        longest_below = max(longest_below, below)
    found[20], found[21], found[22], found[23] = n_above, n_below, longest_above, longest_below


@kernel()
def _changes(x: np.ndarray, n: int, found: np.ndarray) -> None:
    total = squares = 0.0
    for t in range(1, n):
        d = x[t] - x[t - 1]
        total += abs(d)
        squares += d * d
    norm = math.sqrt(squares)
    found[24] = total
    if n > 1:
        found[25], found[26] = total / (n - 1), (x[n - 1] - x[0]) / (n - 1)
    if n > 2:
        found[27] = (x[n - 1] - x[n - 2] - x[1] + x[0]) / (2.0 * (n - 2))
    found[28] = norm
    found[29] = norm / found[4] if found[4] > 0.0 else 0.0


@kernel()
def fill_repeats(ordered: np.ndarray, lengths: np.ndarray, out: np.ndarray) -> None:
    """Count the values that occur more than once.

    Parameters
    ----------
    ordered
        (b, t) ascending values of each series.
    lengths
        (b,) observations of each series.
    out
        (5, b) filled: distinct values, those that repeat, their sum; observations of a value that
        repeats, their sum.
    """
    for i in range(lengths.size):
        x, n = ordered[i], lengths[i]
        out[:, i] = 0.0
        start = 0
        for t in range(1, n + 1):
            if t < n and x[t] == x[start]:
                continue
            out[0, i] += 1.0
            count = t - start
            if count > 1:
                out[1, i] += 1.0
                out[2, i] += x[start]
                out[3, i] += count
                out[4, i] += count * x[start]
            start = t


@kernel()
def fill_largest_magnitudes(
    ordered: np.ndarray, lengths: np.ndarray, count: int, out: np.ndarray
) -> None:
    """Fill out (b,) with the mean of the `count` largest absolute values of ascending series."""
    for i in range(lengths.size):
        x = ordered[i]
        low, high = 0, lengths[i] - 1
        if high < count:
            out[i] = np.nan
            continue
        total = 0.0
        for _ in range(count):
            if -x[low] > x[high]:
                total -= x[low]
                low += 1
            else:
                total += abs(x[high])
                high -= 1
        out[i] = total / count


@kernel()
def fill_corridor_changes(
    series: np.ndarray, lengths: np.ndarray, low: np.ndarray, high: np.ndarray, out: np.ndarray
) -> None:
    """Fill mean and variance of the changes between values inside a corridor.

    Parameters
    ----------
    series, lengths
        (b, t) and (b,), one series per row.
    low, high
        (b,) ends of the corridor of each series, which belong to it.
    out
        (4, b) filled: mean and variance of the changes, then of their absolute values; 0 if there
        are none.
    """
    for i in range(lengths.size):
        x, lowest, highest = series[i], low[i], high[i]
        out[:, i] = 0.0
        if not lowest < highest:
            continue
        count, total, distance = 0, 0.0, 0.0
        before = False
        for t in range(lengths[i]):
            inside = lowest <= x[t] <= highest
            if inside and before:
                count += 1
                total += x[t] - x[t - 1]
                distance += abs(x[t] - x[t - 1])
            before = inside
        if count == 0:
            continue
        mean, mean_distance = total / count, distance / count
        squares = distance_squares = 0.0
        before = False
        for t in range(lengths[i]):
            inside = lowest <= x[t] <= highest
            if inside and before:
                d = x[t] - x[t - 1]
                squares += (d - mean) ** 2
                distance_squares += (abs(d) - mean_distance) ** 2
            before = inside
        out[0, i], out[1, i] = mean, squares / count
        out[2, i], out[3, i] = mean_distance, distance_squares / count


@kernel()
def fill_digit_correlation(series: np.ndarray, lengths: np.ndarray, out: np.ndarray) -> None:
    """Fill out (b,) with the correlation of the shares of leading digits with Benford's law."""
    law, counts = np.empty(9), np.empty(9)
    for j in range(9):
        law[j] = math.log10(1.0 + 1.0 / (j + 1))
    law -= law.mean()
    for i in range(lengths.size):
        counts[:] = 0.0
        for t in range(lengths[i]):
            value = abs(series[i, t])
            if value > 0.0:
                counts[_leading_digit(value) - 1] += 1.0
        shares = counts - counts.mean()
        norm = math.sqrt((shares * shares).sum() * (law * law).sum())
        out[i] = (shares * law).sum() / norm if norm > 0.0 else np.nan


@kernel()
def _leading_digit(value: float) -> int:
    if value < 1e-290:
        value *= 1e100  # a power of ten below would be infinite
    power = math.floor(math.log10(value))
    # Multiplication by a power of ten is exact more often than division.
    lead = value * 10.0**-power if power < 0 else value / 10.0**power
    digit = int(lead * (1.0 + 4e-16))
    # The logarithm may be rounded up to a whole number, or down from one.
    return 1 if digit > 9 else 9 if digit < 1 else digit
