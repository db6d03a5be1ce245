"""Features of a series from their formulas, one at a time; NaN if undefined."""

import itertools
import math

import numpy as np

MAX_CONDITION = 1e7


def features(x, wanted):
    """Return the value of every requested (feature, parameters) for a series x.

    It is None if it depends on rounding: the formula is ill-conditioned or discontinuous there.
    """
    x = np.asarray(x, dtype=float)
    with np.errstate(all="ignore"):
        return [FORMULAS[feature](x, **parameters) for feature, parameters in wanted]


def mean(x):
    return np.nan if x.size == 0 else x[0] if np.ptp(x) == 0 else math.fsum(x) / x.size


def variance(x):
    return np.nan if x.size == 0 else math.fsum((x - mean(x)) ** 2) / x.size


def deviation(x):
    return math.sqrt(variance(x)) if x.size else np.nan


def moment(x, power):
    """Return the bias-corrected skewness G1 (power 3) or excess kurtosis G2 (power 4)."""
    n = x.size
    if n < power:
        return 0.0 if n and np.ptp(x) == 0 else np.nan
    if np.ptp(x) == 0:
        return 0.0
    g = math.fsum((x - mean(x)) ** power) / n / variance(x) ** (power / 2)
    if power == 3:
        return g * math.sqrt(n * (n - 1)) / (n - 2)
    return (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * (g - 3) + 6)


def variation_coefficient(x):
    if x.size == 0 or abs(mean(x)) <= 1e-15 * np.abs(x).max():
        return np.nan
    return deviation(x) / mean(x)


def over_range(number, x):
    return number / np.ptp(x) if x.size and np.ptp(x) > 0 else np.nan


def location(x, extreme, *, last):
    if x.size == 0:
        return np.nan
    at = np.flatnonzero(x == extreme(x))
    return (at[-1] + 1) / x.size if last else at[0] / x.size


def has_tie(values, others, tolerance=1e-12):
    """Return whether rounding may decide the order of any two numbers."""
    gap = np.abs(values - others)
    return bool(np.any((gap > 0) & (gap < tolerance * np.maximum(1.0, np.abs(others)))))


def relative_to_mean(x, value):
    """Return `value(x, mean)`."""
    if x.size == 0:
        return np.nan
    return None if has_tie(x, mean(x)) else value(x, mean(x))


def ratio_beyond_r_sigma(x, r):
    if x.size == 0:
        return np.nan
    distance, limit = np.abs(x - mean(x)), r * deviation(x)
    return None if has_tie(distance, limit) else np.mean(distance > limit)


def longest(is_true):
    return max((len([*run]) for value, run in itertools.groupby(is_true) if value), default=0)


def of_any(x, value):
    return value(x) if x.size else np.nan


def quantile(x, q):
    return np.quantile(x, q) if x.size else np.nan


def repeats(x):
    values, counts = np.unique(x, return_counts=True)
    return values, counts, counts > 1


def mean_n_absolute_max(x, number_of_maxima):
    if x.size <= number_of_maxima:
        return np.nan
    return np.mean(np.sort(np.abs(x))[-number_of_maxima:])


def binned_entropy(x, max_bins):
    if x.size == 0:
        return np.nan
    counts, _ = np.histogram(x, bins=max_bins)
    shares = counts[counts > 0] / x.size
    return -np.sum(shares * np.log(shares))


def benford_correlation(x):
    digits = np.array([int(np.format_float_scientific(abs(value))[0]) for value in x])
    shares = [np.mean(digits == d) if x.size else 0.0 for d in range(1, 10)]
    if np.ptp(shares) == 0:
        return np.nan
    return np.corrcoef(shares, np.log10(1 + 1 / np.arange(1, 10)))[0, 1]


def cid_ce(x, normalize):
    if normalize:
        if x.size == 0:
            return np.nan
        x = (x - mean(x)) / deviation(x) if np.ptp(x) > 0 else np.zeros(x.size)
    return np.sqrt(np.sum(np.diff(x) ** 2)) if x.size else np.nan


def change_quantiles(x, f_agg, isabs, qh, ql):
    if x.size == 0:
        return np.nan
    low, high = np.quantile(x, [ql, qh])
    if not low < high:
        return 0.0
    pairs = [(a, b) for a, b in itertools.pairwise(x) if low <= a <= high and low <= b <= high]
    changes = np.array([abs(b - a) if isabs else b - a for a, b in pairs])
    return {"mean": np.mean, "var": np.var}[f_agg](changes) if pairs else 0.0


def autocorrelation(x, lag):
    if lag >= x.size or np.ptp(x) == 0:
        return np.nan
    d = x - mean(x)
    return np.sum(d[: x.size - lag] * d[lag:]) / (x.size - lag) / variance(x)


def agg_autocorrelation(x, f_agg, maxlag):
    found = [autocorrelation(x, lag) for lag in range(1, min(maxlag, x.size - 1) + 1)]
    return {"mean": np.mean, "median": np.median, "var": np.var}[f_agg](found) if found else np.nan


def partial_autocorrelation(x, lag):
    """Return the last coefficient of the Yule-Walker equations; None if ill-conditioned."""
    if lag >= x.size // 2 or np.ptp(x) == 0:
        return np.nan
    if lag == 0:
        return 1.0
    r = np.array([autocorrelation(x, k) for k in range(lag + 1)])
    for size in range(1, lag + 1):  # each size is a step of the recursion
        R = r[np.abs(np.subtract.outer(np.arange(size), np.arange(size)))]
        if np.linalg.cond(R) > MAX_CONDITION:
            return None
    return np.linalg.solve(R, r[1:])[-1]


def ar_coefficient(x, coeff, k):
    """Return a coefficient of the autoregression; None if it is ill-conditioned."""
    n = x.size - k
    if n < k + 1 or np.ptp(x) == 0 or coeff > k:
        return np.nan
    A = np.array([[1.0, *x[t - k : t][::-1]] for t in range(k, x.size)])
    if np.linalg.cond(A / np.linalg.norm(A, axis=0)) > MAX_CONDITION:
        return None
    return np.linalg.lstsq(A, x[k:], rcond=None)[0][coeff]


def c3(x, lag):
    a, b, c = x[: -2 * lag], x[lag:-lag], x[2 * lag :]
    return np.mean(c * b * a) if x.size > 2 * lag else 0.0


def time_reversal_asymmetry_statistic(x, lag):
    a, b, c = x[: -2 * lag], x[lag:-lag], x[2 * lag :]
    return np.mean(c * c * b - b * a * a) if x.size > 2 * lag else 0.0


def regression(y):
    """Return the regression of y on 0, 1, ..., n - 1."""
    from scipy import stats

    n = y.size
    if n < 2:
        return dict.fromkeys(("slope", "intercept", "rvalue", "stderr", "pvalue"), np.nan)
    t = np.arange(n) - (n - 1) / 2
    if np.ptp(y) == 0:
        return {"slope": 0.0, "intercept": y[0], "rvalue": 0.0, "stderr": 0.0, "pvalue": 1.0}
    slope = np.sum(t * y) / np.sum(t * t)
    residuals = y - y.mean() - slope * t
    r = np.clip(np.corrcoef(t, y)[0, 1], -1.0, 1.0)
    error = np.sqrt(np.sum(residuals**2) / (n - 2) / np.sum(t * t)) if n > 2 else 0.0
    p = 2 * stats.t.sf(abs(slope) / error, n - 2) if error > 0 else float(slope == 0)
    return {
        "slope": slope,
        "intercept": y.mean() - slope * (n - 1) / 2,
        "rvalue": r,
        "stderr": error,
        "pvalue": p,
    }


def agg_linear_trend(x, attr, chunk_len, f_agg):
    if chunk_len >= x.size:
        return np.nan
    chunks = [x[start : start + chunk_len] for start in range(0, x.size, chunk_len)]
    aggregate = {"max": np.max, "min": np.min, "mean": mean, "var": variance}[f_agg]
    return regression(np.array([aggregate(chunk) for chunk in chunks]))[attr]


def segment(x, statistic, num_segments, segment_focus):
    if segment_focus >= num_segments:
        return np.nan
    part = np.array_split(x, num_segments)[segment_focus]
    if statistic == "energy":
        return np.sum(part**2) / np.sum(x**2) if np.any(x) else np.nan
    return {"mean": mean, "deviation": deviation, "slope": lambda y: regression(y)["slope"]}[
        statistic
    ](part)


def index_mass_quantile(x, q):
    if not np.any(x):
        return np.nan
    shares = np.cumsum(np.abs(x)) / np.cumsum(np.abs(x))[-1]
    return (np.argmax(shares >= q) + 1) / x.size


def number_peaks(x, n):
    return sum(
        all(x[t] > x[t - s] and x[t] > x[t + s] for s in range(1, n + 1))
        for t in range(n, x.size - n)
    )


def permutation_entropy(x, dimension, tau):
    orders = [
        tuple(np.argsort(x[s : s + dimension], kind="stable"))
        for s in range(0, x.size - dimension + 1, tau)
    ]
    if not orders:
        return np.nan
    shares = np.unique(orders, axis=0, return_counts=True)[1] / len(orders)
    return -np.sum(shares * np.log(shares))


def lempel_ziv_complexity(x, bins):
    if x.size == 0:
        return np.nan
    symbols = np.searchsorted(np.linspace(x.min(), x.max(), bins + 1)[1:], x)
    words, word = set(), ()
    for symbol in symbols.tolist():
        word = (*word, symbol)
        if word not in words:
            words.add(word)
            word = ()
    return len(words) / x.size


def fft_coefficient(x, attr, coeff):
    if coeff > x.size // 2 or x.size == 0:
        return np.nan
    t = np.arange(x.size)
    value = np.sum(x * np.exp(-2j * np.pi * (coeff * t % x.size) / x.size))
    if attr == "angle":
        is_rounding = abs(value) <= 1e-13 * np.abs(x).max() * x.size
        return None if is_rounding else np.degrees(np.angle(value))
    return {"real": value.real, "imag": value.imag, "abs": abs(value)}[attr]


def spectral(x, aggtype):
    if not np.any(x):
        return np.nan
    size = np.array([fft_coefficient(x, "abs", k) for k in range(x.size // 2 + 1)])
    share, k = size / size.sum(), np.arange(size.size)
    centroid = np.sum(share * k)
    if aggtype == "centroid":
        return centroid
    spread = np.sum(share * (k - centroid) ** 2)
    if aggtype == "variance":
        return spread
    if abs(spread - 0.5) < 1e-9:
        return None
    power = {"skew": 3, "kurtosis": 4}[aggtype]
    standardized = np.sum(share * (k - centroid) ** power) / spread ** (power / 2)
    return standardized if spread > 0.5 else np.nan


def welch(x):
    """Return frequencies and density, from windows of 256 that overlap by half."""
    length = min(x.size, 256)
    window = np.sin(np.pi * np.arange(length) / length) ** 2 if length > 1 else np.ones(1)
    starts = range(0, x.size - length + 1, length - length // 2)
    parts = [x[s : s + length] - mean(x[s : s + length]) for s in starts]
    powers = [np.abs(np.fft.rfft(part * window)) ** 2 / np.sum(window**2) for part in parts]
    density = np.mean(powers, axis=0)
    density[1 : (length + 1) // 2] *= 2
    return np.fft.rfftfreq(length), density


def spkt_welch_density(x, coeff):
    if x.size == 0:
        return np.nan
    density = welch(x)[1]
    return density[coeff] if coeff < density.size else np.nan


def welch_power_share(x, high, low):
    if x.size < 2 or np.ptp(x) == 0:
        return np.nan
    frequencies, density = welch(x)
    return np.sum(density[(low < frequencies) & (frequencies <= high)]) / np.sum(density[1:])


def fourier_entropy(x, bins):
    if x.size < 2 or np.ptp(x) == 0:
        return np.nan
    density = welch(x)[1]
    share = density / density.max()
    position = bins * (share - share.min()) / max(np.ptp(share), 1e-300)
    if np.any(np.abs(position - np.arange(1, bins)[:, None]) < 1e-9):
        return None
    return binned_entropy(share, bins)


FORMULAS = {
    "length": lambda x: x.size,
    "sum_values": math.fsum,
    "mean": mean,
    "variance": variance,
    "standard_deviation": deviation,
    "skewness": lambda x: moment(x, 3),
    "kurtosis": lambda x: moment(x, 4),
    "abs_energy": lambda x: np.sum(x**2),
    "root_mean_square": lambda x: of_any(x, lambda x: np.sqrt(np.mean(x**2))),
    "variation_coefficient": variation_coefficient,
    "minimum": lambda x: of_any(x, np.min),
    "maximum": lambda x: of_any(x, np.max),
    "absolute_maximum": lambda x: of_any(x, lambda x: np.max(np.abs(x))),
    "standard_deviation_over_range": lambda x: over_range(deviation(x), x),
    "mean_minus_median_over_range": lambda x: of_any(
        x, lambda x: over_range(mean(x) - np.median(x), x)
    ),
    "first_location_of_maximum": lambda x: location(x, np.max, last=False),
    "last_location_of_maximum": lambda x: location(x, np.max, last=True),
    "first_location_of_minimum": lambda x: location(x, np.min, last=False),
    "last_location_of_minimum": lambda x: location(x, np.min, last=True),
    "has_duplicate_max": lambda x: of_any(x, lambda x: np.sum(x == x.max()) > 1),
    "has_duplicate_min": lambda x: of_any(x, lambda x: np.sum(x == x.min()) > 1),
    "has_duplicate": lambda x: np.unique(x).size < x.size,
    "count_above_mean": lambda x: relative_to_mean(x, lambda x, m: np.sum(x > m)),
    "count_below_mean": lambda x: relative_to_mean(x, lambda x, m: np.sum(x < m)),
    "longest_strike_above_mean": lambda x: relative_to_mean(x, lambda x, m: longest(x > m)),
    "longest_strike_below_mean": lambda x: relative_to_mean(x, lambda x, m: longest(x < m)),
    "absolute_sum_of_changes": lambda x: np.sum(np.abs(np.diff(x))),
    "mean_abs_change": lambda x: np.mean(np.abs(np.diff(x))) if x.size > 1 else np.nan,
    "mean_change": lambda x: np.mean(np.diff(x)) if x.size > 1 else np.nan,
    "mean_second_derivative_central": lambda x: (
        np.mean((x[2:] - 2 * x[1:-1] + x[:-2]) / 2) if x.size > 2 else np.nan
    ),
    "median": lambda x: of_any(x, np.median),
    "quantile": quantile,
    "mean_n_absolute_max": mean_n_absolute_max,
    "ratio_beyond_r_sigma": ratio_beyond_r_sigma,
    "value_count": lambda x, value: np.sum(x == value),
    "range_count": lambda x, **ends: np.sum((x >= ends["min"]) & (x < ends["max"])),
    "count_above": lambda x, t: of_any(x, lambda x: np.mean(x >= t)),
    "count_below": lambda x, t: of_any(x, lambda x: np.mean(x <= t)),
    "percentage_of_reoccurring_values_to_all_values": lambda x: of_any(
        x, lambda x: np.mean(repeats(x)[2])
    ),
    "percentage_of_reoccurring_datapoints_to_all_datapoints": lambda x: of_any(
        x, lambda x: np.sum(repeats(x)[1] * repeats(x)[2]) / x.size
    ),
    "sum_of_reoccurring_values": lambda x: np.sum(repeats(x)[0] * repeats(x)[2]),
    "sum_of_reoccurring_data_points": lambda x: np.sum(
        repeats(x)[0] * repeats(x)[1] * repeats(x)[2]
    ),
    "ratio_value_number_to_time_series_length": lambda x: of_any(
        x, lambda x: np.unique(x).size / x.size
    ),
    "binned_entropy": binned_entropy,
    "benford_correlation": benford_correlation,
    "cid_ce": cid_ce,
    "number_crossing_m": lambda x, m: sum((a > m) != (b > m) for a, b in itertools.pairwise(x)),
    "change_quantiles": change_quantiles,
    "autocorrelation": autocorrelation,
    "agg_autocorrelation": agg_autocorrelation,
    "partial_autocorrelation": partial_autocorrelation,
    "ar_coefficient": ar_coefficient,
    "c3": c3,
    "time_reversal_asymmetry_statistic": time_reversal_asymmetry_statistic,
    "linear_trend": lambda x, attr: regression(x)[attr],
    "agg_linear_trend": agg_linear_trend,
    "energy_ratio_by_chunks": lambda x, **which: segment(x, "energy", **which),
    "segment_mean": lambda x, **which: segment(x, "mean", **which),
    "segment_standard_deviation": lambda x, **which: segment(x, "deviation", **which),
    "segment_slope": lambda x, **which: segment(x, "slope", **which),
    "index_mass_quantile": index_mass_quantile,
    "number_peaks": number_peaks,
    "permutation_entropy": permutation_entropy,
    "lempel_ziv_complexity": lempel_ziv_complexity,
    "fft_coefficient": fft_coefficient,
    "fft_aggregated": spectral,
    "spectral_kurtosis": lambda x: spectral(x, "kurtosis"),
    "spkt_welch_density": spkt_welch_density,
    "welch_power_share": welch_power_share,
    "fourier_entropy": fourier_entropy,
}
