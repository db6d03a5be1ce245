"""Features of the course of series: changes, dependence, trends, segments, patterns of order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import numpy.typing as npt

from streamsel._kernels.series_dependence import (
    fill_autoregression,
    fill_lagged_cubes,
    fill_partial_correlations,
)
from streamsel._kernels.series_patterns import fill_lempel_ziv, fill_order_entropy, fill_peaks
from streamsel._kernels.series_segments import (
    AGGREGATES,
    ATTRIBUTES,
    SEGMENT,
    fill_chunk_trends,
    fill_cumulative_shares,
    fill_segments,
    fill_trends,
)
from streamsel._kernels.series_values import MEAN, STATISTICS, fill_corridor_changes
from streamsel.params import ChoiceRule, FlagRule, FloatRule, IntRule
from streamsel.stream._series_batch import Floats, Parameters, SeriesBatch, SeriesFeature, each

_SHARE = FloatRule(0.0, below=1.0, closed=True)
_LAG = IntRule(1)
_ORDER = IntRule(1, below=51)
_COUNT = IntRule(1, below=10_001)


# Changes


def _cid_ce(batch: SeriesBatch, *, normalize: bool) -> Floats:
    over_deviation = "_over_standard_deviation" if normalize else ""
    row: Floats = batch.statistics[STATISTICS.index(f"change_norm{over_deviation}")]
    return row


def _number_crossing_m(batch: SeriesBatch, m: float) -> Floats:
    above = batch.series > m
    t = np.arange(1, batch.series.shape[1])
    crosses = (above[:, 1:] != above[:, :-1]) & (t < batch.lengths[:, None])
    counts: Floats = crosses.sum(axis=1, dtype=np.float64)
    return counts


def _change_quantiles(batch: SeriesBatch, parameter_sets: Sequence[Parameters]) -> Floats:
    out = np.empty((len(parameter_sets), batch.lengths.size))
    found: dict[tuple[float, float], Floats] = {}
    for row, parameters in zip(out, parameter_sets, strict=True):
        low, high = corridor = (parameters["ql"], parameters["qh"])
        if corridor not in found:
            found[corridor] = np.zeros((4, batch.lengths.size))
            if low < high:
                ends = batch.quantiles(corridor)
                fill_corridor_changes(batch.series, batch.lengths, *ends, found[corridor])
        row[:] = found[corridor][2 * parameters["isabs"] + (parameters["f_agg"] == "var")]
    return out


# Dependence


def _autocorrelation(batch: SeriesBatch, parameter_sets: Sequence[Parameters]) -> Floats:
    return batch.autocorrelations([parameters["lag"] for parameters in parameter_sets])


def _agg_autocorrelation(batch: SeriesBatch, f_agg: str, maxlag: int) -> Floats:
    # One series per row, its undefined lags at the end: the sums are the same in any batch.
    found = np.ascontiguousarray(batch.autocorrelations(list(range(1, maxlag + 1))).T)
    found.sort(axis=1)
    count = (~np.isnan(found)).sum(axis=1)
    mean: Floats = np.nansum(found, axis=1) / count
    if f_agg == "mean":
        return mean
    if f_agg == "var":
        variance: Floats = np.nansum(np.square(found - mean[:, None]), axis=1) / count
        return variance
    rows, last = np.arange(count.size), np.maximum(count - 1, 0)
    median: Floats = 0.5 * (found[rows, last // 2] + found[rows, count // 2])
    return median


def _partial_autocorrelation(batch: SeriesBatch, parameter_sets: Sequence[Parameters]) -> Floats:
    lags = np.array([parameters["lag"] for parameters in parameter_sets])
    correlations = batch.autocorrelations(list(range(lags.max() + 1)))
    out = np.empty_like(correlations)
    fill_partial_correlations(correlations, out)
    # Estimates at lags from half of the length on are refused by statistical programs, too.
    found: Floats = np.where(lags[:, None] < batch.lengths // 2, out[lags], np.nan)
    return found


def _lagged_cubes(row: int) -> SeriesFeature:
    def one(batch: SeriesBatch, lag: int) -> Floats:
        out = np.empty((2, batch.lengths.size))
        fill_lagged_cubes(batch.series, batch.lengths, lag, out)
        found: Floats = out[row]
        return found

    return SeriesFeature(each(one), {"lag": _LAG}, [{"lag": lag} for lag in (1, 2, 3)])


def _ar_coefficient(batch: SeriesBatch, parameter_sets: Sequence[Parameters]) -> Floats:
    out = np.full((len(parameter_sets), batch.lengths.size), np.nan)
    found: dict[int, Floats] = {}
    for row, parameters in zip(out, parameter_sets, strict=True):
        order = parameters["k"]
        if order not in found:
            found[order] = _autoregression(batch, order)
        if parameters["coeff"] <= order:
            row[:] = found[order][parameters["coeff"]]
    return out


def _autoregression(batch: SeriesBatch, order: int) -> Floats:
    """Return (order + 1, b) intercepts and coefficients by least squares; NaN if undefined.

    Of several solutions it is that of minimum norm, in standard deviations of the regressors.
    """
    deviations, means = batch.deviations, batch.statistics[MEAN]
    b = batch.lengths.size
    R = np.empty((b, order + 2, order + 2))
    scaled = batch.centred / deviations[:, None]
    fill_autoregression(scaled, batch.lengths, order, R)
    is_defined = np.isfinite(R).all(axis=(1, 2)) & (R[:, 0, 0] > 0.0)
    R = R[is_defined]
    regressors, target = R[:, :-1, :-1], R[:, :-1, -1]
    norms = np.sqrt(np.square(regressors).sum(axis=1))
    norms[norms == 0.0] = 1.0
    U, s, Vt = np.linalg.svd(regressors / norms[:, None, :])
    tolerance = np.finfo(np.float64).eps * batch.lengths[is_defined] * s[:, 0]
    inverse = np.divide(1.0, s, out=np.zeros_like(s), where=s > tolerance[:, None])
    # Sums in a fixed order: a series has the same coefficients in any batch.
    rotated = (U * target[:, :, None]).sum(axis=1) * inverse
    solution = (Vt * rotated[:, :, None]).sum(axis=1) / norms
    found = np.full((order + 1, b), np.nan)
    found[:, is_defined] = solution.T
    past = solution[:, 1:].sum(axis=1)
    found[0, is_defined] *= deviations[is_defined]
    found[0, is_defined] += means[is_defined] * (1.0 - past)
    return found


# Trends and segments


def _trends(batch: SeriesBatch) -> dict[str, Floats]:
    out = np.empty((len(ATTRIBUTES), batch.lengths.size))
    fill_trends(batch.series, batch.lengths, out)
    return dict(zip(ATTRIBUTES, out, strict=True))


def _linear_trend(batch: SeriesBatch, parameter_sets: Sequence[Parameters]) -> Floats:
    found = _trends(batch)
    if any(parameters["attr"] == "pvalue" for parameters in parameter_sets):
        found["pvalue"] = _p_value(found["rvalue"], batch.lengths - 2)
    return np.array([found[parameters["attr"]] for parameters in parameter_sets])


def _p_value(r: Floats, freedom: npt.NDArray[np.int64]) -> Floats:
    """Return the p-value of a correlation by the t distribution; of two observations 0 or 1."""
    from scipy.special import stdtr

    tiny = 1e-20  # a finite t for r = 1
    t = np.abs(r) * np.sqrt(freedom / ((1.0 - np.abs(r) + tiny) * (1.0 + np.abs(r))))
    p: Floats = np.where(freedom > 0, 2.0 * stdtr(freedom, -t), np.where(r == 0.0, 1.0, 0.0))
    return np.where(np.isnan(r), np.nan, p)


def _agg_linear_trend(batch: SeriesBatch, parameter_sets: Sequence[Parameters]) -> Floats:
    found: dict[int, Floats] = {}
    out = np.empty((len(parameter_sets), batch.lengths.size))
    for row, parameters in zip(out, parameter_sets, strict=True):
        chunk = parameters["chunk_len"]
        if chunk not in found:
            found[chunk] = np.empty((len(AGGREGATES), len(ATTRIBUTES), batch.lengths.size))
            fill_chunk_trends(batch.series, batch.lengths, chunk, found[chunk])
        aggregate = AGGREGATES.index(parameters["f_agg"])
        row[:] = found[chunk][aggregate, ATTRIBUTES.index(parameters["attr"])]
    return out


def _segments(statistic: str, sizes: Sequence[int]) -> SeriesFeature:
    """Return the feature that is a statistic of a segment, of some numbers of segments."""
    row = SEGMENT.index(statistic)

    def compute(batch: SeriesBatch, parameter_sets: Sequence[Parameters]) -> Floats:
        found: dict[int, Floats] = {}
        out = np.full((len(parameter_sets), batch.lengths.size), np.nan)
        for one, parameters in zip(out, parameter_sets, strict=True):
            size, focus = parameters["num_segments"], parameters["segment_focus"]
            if size not in found:
                found[size] = np.empty((len(SEGMENT), size, batch.lengths.size))
                fill_segments(batch.series, batch.lengths, size, found[size])
            if focus < size:
                one[:] = found[size][row, focus]
        return out

    rules = {"num_segments": IntRule(1, below=101), "segment_focus": IntRule(0)}
    defaults = [{"num_segments": n, "segment_focus": i} for n in sizes for i in range(n)]
    return SeriesFeature(compute, rules, defaults)


def _index_mass_quantile(batch: SeriesBatch, parameter_sets: Sequence[Parameters]) -> Floats:
    shares, rows = np.unique(
        [parameters["q"] for parameters in parameter_sets], return_inverse=True
    )
    out = np.empty((shares.size, batch.lengths.size))
    fill_cumulative_shares(batch.series, batch.lengths, shares, out)
    return out[rows]


# Patterns


def _number_peaks(batch: SeriesBatch, parameter_sets: Sequence[Parameters]) -> Floats:
    supports = np.array([parameters["n"] for parameters in parameter_sets])
    out = np.empty((supports.size, batch.lengths.size))
    fill_peaks(batch.series, batch.lengths, supports, out)
    return out


def _permutation_entropy(batch: SeriesBatch, dimension: int, tau: int) -> Floats:
    out = np.empty(batch.lengths.size)
    fill_order_entropy(batch.series, batch.lengths, dimension, tau, out)
    return out


def _lempel_ziv_complexity(batch: SeriesBatch, bins: int) -> Floats:
    out = np.empty(batch.lengths.size)
    fill_lempel_ziv(batch.series, batch.lengths, bins, out)
    return out


_FIFTHS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)

DYNAMIC_FEATURES = {
    "cid_ce": SeriesFeature(
        each(_cid_ce), {"normalize": FlagRule()}, [{"normalize": True}, {"normalize": False}]
    ),
    "number_crossing_m": SeriesFeature(
        each(_number_crossing_m),
        {"m": FloatRule(-np.inf, open=True)},
        [{"m": m} for m in (0, -1, 1)],
    ),
    "change_quantiles": SeriesFeature(
        _change_quantiles,
        {
            "f_agg": ChoiceRule(("mean", "var")),
            "isabs": FlagRule(),
            "qh": _SHARE,
            "ql": _SHARE,
        },
        [
            {"f_agg": f_agg, "isabs": isabs, "qh": qh, "ql": ql}
            for ql, qh in product(_FIFTHS, _FIFTHS)
            if ql < qh
            for isabs, f_agg in product((False, True), ("mean", "var"))
        ],
    ),
    "autocorrelation": SeriesFeature(
        _autocorrelation,
        {"lag": IntRule(0)},
        [{"lag": lag} for lag in (*range(1, 11), 12, 15, 20, 24, 30, 40)],
    ),
    "agg_autocorrelation": SeriesFeature(
        each(_agg_autocorrelation),
        {"f_agg": ChoiceRule(("mean", "median", "var")), "maxlag": IntRule(1, below=1001)},
        [{"f_agg": f_agg, "maxlag": 40} for f_agg in ("mean", "median", "var")],
    ),
    "partial_autocorrelation": SeriesFeature(
        _partial_autocorrelation,
        {"lag": IntRule(0, below=1001)},
        [{"lag": lag} for lag in range(1, 10)],
    ),
    "c3": _lagged_cubes(0),
    "time_reversal_asymmetry_statistic": _lagged_cubes(1),
    "ar_coefficient": SeriesFeature(
        _ar_coefficient,
        {"coeff": IntRule(0), "k": _ORDER},
        [{"coeff": coeff, "k": 10} for coeff in range(11)],
    ),
    "linear_trend": SeriesFeature(
        _linear_trend,
        {"attr": ChoiceRule((*ATTRIBUTES, "pvalue"))},
        [{"attr": attr} for attr in ("pvalue", "rvalue", "intercept", "slope", "stderr")],
    ),
    "agg_linear_trend": SeriesFeature(
        _agg_linear_trend,
        {
            "attr": ChoiceRule(ATTRIBUTES),
            "chunk_len": IntRule(1),
            "f_agg": ChoiceRule(AGGREGATES),
        },
        [
            {"attr": attr, "chunk_len": chunk_len, "f_agg": f_agg}
            for chunk_len, f_agg, attr in product((5, 10, 50), AGGREGATES, ATTRIBUTES)
        ],
    ),
    "energy_ratio_by_chunks": _segments("energy", (10,)),
    "segment_mean": _segments("mean", (5, 10)),
    "segment_standard_deviation": _segments("standard_deviation", (5, 10)),
    "segment_slope": _segments("slope", (5, 10)),
    "index_mass_quantile": SeriesFeature(
        _index_mass_quantile,
        {"q": _SHARE},
        [{"q": q} for q in (0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9)],
    ),
    "number_peaks": SeriesFeature(
        _number_peaks, {"n": IntRule(1)}, [{"n": n} for n in (1, 3, 5, 10, 50)]
    ),
    "permutation_entropy": SeriesFeature(
        each(_permutation_entropy),
        {"dimension": IntRule(2, below=9), "tau": IntRule(1)},
        [{"dimension": dimension, "tau": 1} for dimension in range(3, 8)],
    ),
    "lempel_ziv_complexity": SeriesFeature(
        each(_lempel_ziv_complexity), {"bins": _COUNT}, [{"bins": n} for n in (2, 3, 5, 10, 100)]
    ),
}
