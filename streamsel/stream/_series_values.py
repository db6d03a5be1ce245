"""Features of the values of series, whatever their order: moments, quantiles, counts, entropy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from streamsel._kernels.series_patterns import fill_binned_entropy
from streamsel._kernels.series_values import (
    MAXIMUM,
    MEAN,
    MINIMUM,
    STATISTICS,
    fill_digit_correlation,
    fill_largest_magnitudes,
)
from streamsel.params import FloatRule, IntRule
from streamsel.stream._series_batch import Floats, Parameters, SeriesBatch, SeriesFeature, each

_ANY = FloatRule(-np.inf, open=True)
_SHARE = FloatRule(0.0, below=1.0, closed=True)
_TENTHS = [{"q": q} for q in (0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9)]


def _statistic(name: str) -> SeriesFeature:
    row = STATISTICS.index(name)
    return SeriesFeature(
        lambda batch, parameter_sets: _repeated(batch.statistics[row], parameter_sets)
    )


def _repeated(row: Floats, parameter_sets: Sequence[Parameters]) -> Floats:
    """Return a feature without parameters, as often as it is wanted."""
    return np.repeat(row[None], len(parameter_sets), axis=0)


def _mean_minus_median_over_range(batch: SeriesBatch) -> Floats:
    found = batch.statistics
    difference: Floats = found[MEAN] - batch.quantiles([0.5])[0]
    difference /= found[MAXIMUM] - found[MINIMUM]
    return difference


def _quantile(batch: SeriesBatch, parameter_sets: Sequence[Parameters]) -> Floats:
    return batch.quantiles([parameters["q"] for parameters in parameter_sets])


def _mean_n_absolute_max(batch: SeriesBatch, number_of_maxima: int) -> Floats:
    out = np.empty(batch.lengths.size)
    fill_largest_magnitudes(batch.ordered, batch.lengths, number_of_maxima, out)
    return out


def _ratio_beyond_r_sigma(batch: SeriesBatch, r: float) -> Floats:
    beyond = np.abs(batch.centred) > r * batch.deviations[:, None]
    return _count(beyond) / batch.lengths


def _value_count(batch: SeriesBatch, value: float) -> Floats:
    return _count(batch.series == value)


def _range_count(batch: SeriesBatch, *, max: float, min: float) -> Floats:  # noqa: A002
    return _count((batch.series >= min) & (batch.series < max))


def _count(is_counted: npt.NDArray[np.bool_]) -> Floats:
    counts: Floats = is_counted.sum(axis=1, dtype=np.float64)
    return counts


def _count_above(batch: SeriesBatch, t: float) -> Floats:
    return _count(batch.series >= t) / batch.lengths


def _count_below(batch: SeriesBatch, t: float) -> Floats:
    return _count(batch.series <= t) / batch.lengths


def _binned_entropy(batch: SeriesBatch, max_bins: int) -> Floats:
    out = np.empty(batch.lengths.size)
    fill_binned_entropy(batch.series, batch.lengths, max_bins, out)
    return out


def _benford_correlation(batch: SeriesBatch) -> Floats:
    out = np.empty(batch.lengths.size)
    fill_digit_correlation(batch.series, batch.lengths, out)
    return out


VALUE_FEATURES = {
    **{name: _statistic(name) for name in STATISTICS if not name.startswith("change_norm")},
    "median": SeriesFeature(each(lambda batch: batch.quantiles([0.5])[0])),
    "mean_minus_median_over_range": SeriesFeature(each(_mean_minus_median_over_range)),
    "quantile": SeriesFeature(_quantile, {"q": _SHARE}, _TENTHS),
    "mean_n_absolute_max": SeriesFeature(
        each(_mean_n_absolute_max),
        {"number_of_maxima": IntRule(1)},
        [{"number_of_maxima": 7}],
    ),
    "ratio_beyond_r_sigma": SeriesFeature(
        each(_ratio_beyond_r_sigma),
        {"r": FloatRule(0.0)},
        [{"r": r} for r in (0.5, 1, 1.5, 2, 2.5, 3, 5, 6, 7, 10)],
    ),
    "value_count": SeriesFeature(
        each(_value_count), {"value": _ANY}, [{"value": value} for value in (0, 1, -1)]
    ),
    "range_count": SeriesFeature(
        each(_range_count),
        {"max": _ANY, "min": _ANY},
        [{"max": 1, "min": -1}, {"max": 0, "min": -1e12}, {"max": 1e12, "min": 0}],
    ),
    "count_above": SeriesFeature(each(_count_above), {"t": _ANY}, [{"t": 0}]),
    "count_below": SeriesFeature(each(_count_below), {"t": _ANY}, [{"t": 0}]),
    "has_duplicate": SeriesFeature(each(lambda batch: 1.0 * (batch.repeats[1] > 0.0))),
    "percentage_of_reoccurring_values_to_all_values": SeriesFeature(
        each(lambda batch: batch.repeats[1] / batch.repeats[0])
    ),
    "percentage_of_reoccurring_datapoints_to_all_datapoints": SeriesFeature(
        each(lambda batch: batch.repeats[3] / batch.lengths)
    ),
    "sum_of_reoccurring_values": SeriesFeature(each(lambda batch: batch.repeats[2])),
    "sum_of_reoccurring_data_points": SeriesFeature(each(lambda batch: batch.repeats[4])),
    "ratio_value_number_to_time_series_length": SeriesFeature(
        each(lambda batch: batch.repeats[0] / batch.lengths)
    ),
    "binned_entropy": SeriesFeature(
        each(_binned_entropy), {"max_bins": IntRule(1, below=10_001)}, [{"max_bins": 10}]
    ),
    "benford_correlation": SeriesFeature(each(_benford_correlation)),
}
