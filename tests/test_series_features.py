"""Every feature of series against its formula, with few data, to run without compilation too."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsel.stream import iter_series_features
from streamsel.stream._series_catalogue import default_requests, parse_request
from tests.reference import series as reference

NAMES = dict(default_requests(["value"]))
WANTED = [(request.feature, request.parameters) for request in NAMES.values()]
# Parameters other than the defaults, some of them undefined for every series.
OTHERS = [
    "value__quantile__q_0.25",
    "value__autocorrelation__lag_0",
    "value__autocorrelation__lag_13",
    "value__partial_autocorrelation__lag_0",
    "value__partial_autocorrelation__lag_11",
    'value__agg_autocorrelation__f_agg_"median"__maxlag_3',
    "value__ar_coefficient__coeff_2__k_2",
    "value__ar_coefficient__coeff_3__k_2",
    'value__agg_linear_trend__attr_"slope"__chunk_len_1__f_agg_"mean"',
    'value__change_quantiles__f_agg_"var"__isabs_True__qh_0.9__ql_0.1',
    'value__change_quantiles__f_agg_"mean"__isabs_False__qh_0.1__ql_0.9',
    "value__segment_slope__num_segments_3__segment_focus_2",
    "value__segment_mean__num_segments_3__segment_focus_3",
    "value__energy_ratio_by_chunks__num_segments_1__segment_focus_0",
    "value__permutation_entropy__dimension_2__tau_3",
    "value__lempel_ziv_complexity__bins_1",
    'value__fft_coefficient__attr_"abs"__coeff_120',
    "value__welch_power_share__high_0.5__low_0.0",
    "value__mean_n_absolute_max__number_of_maxima_2",
    "value__number_peaks__n_2",
    "value__c3__lag_7",
]


def assert_formulas(series, stream, wanted):
    """Compare columns with formulas; undefined values are 0, ill-conditioned ones are skipped."""
    columns = dict(stream)
    for i, x in enumerate(series):
        expected = reference.features(x, wanted)
        for j, (name, found) in enumerate(columns.items()):
            value = expected[j]
            if value is None:
                continue
            gap = found[i] - np.nan_to_num(value, nan=0.0, posinf=0.0, neginf=0.0)
            if wanted[j][1].get("attr") == "angle":
                gap = (gap + 180.0) % 360.0 - 180.0
            scale = max(1.0, np.abs(x).max(initial=0.0))
            assert abs(gap) <= 1e-7 * max(scale, abs(value)), (name, x, found[i], value)


@pytest.mark.slow
@settings(max_examples=20)
@given(
    st.lists(
        st.lists(st.integers(-3, 3), max_size=40)
        | st.lists(st.floats(-100.0, 100.0).map(lambda value: round(value, 2)), max_size=30),
        min_size=1,
        max_size=3,
    )
)
def test_features_equal_their_formulas(series):
    """Features equal their formulas, for integers with ties and for decimals."""
    series = [np.array(x, dtype=float) for x in series]
    assert_formulas(series, iter_series_features(series), WANTED)


def test_features_of_long_series_equal_their_formulas(rng):
    series = [np.cumsum(rng.normal(size=n)) for n in (101, 256, 257, 300, 513)]
    series += [np.full(120, 0.1), 1e6 + rng.normal(size=60), np.sin(np.arange(60) / 3) * 1e-8]
    series += [np.tile([0.0, 1.0], 60), np.arange(130.0) ** 2]
    assert_formulas(series, iter_series_features(series), WANTED)


def test_any_parameter_can_be_requested(rng):
    series = [rng.normal(size=n) for n in (0, 1, 3, 14, 30)]
    stream = iter_series_features(series, features=OTHERS)
    assert stream.names == OTHERS
    requests = [parse_request(name, ["value"]) for name in OTHERS]
    wanted = [(request.feature, request.parameters) for request in requests]
    assert_formulas(series, stream, wanted)


@pytest.mark.slow
def test_a_real_dataset(dataset):
    X = dataset("crop")[0][::1000].astype(float)
    assert_formulas(X, iter_series_features(X), WANTED)


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_unitless_features_ignore_scale(rng, scale):
    x = np.cumsum(rng.normal(size=60))
    names = ["skewness", "autocorrelation__lag_3", "partial_autocorrelation__lag_4"]
    names += ["ar_coefficient__coeff_3__k_10", "standard_deviation_over_range"]
    names += ['fft_aggregated__aggtype_"variance"', "fourier_entropy__bins_5"]
    names = [f"value__{name}" for name in names]
    plain = iter_series_features([x], features=names).take(names)
    scaled = iter_series_features([scale * x], features=names).take(names)
    for name in names:
        assert scaled[name] == pytest.approx(plain[name], rel=1e-9), name
