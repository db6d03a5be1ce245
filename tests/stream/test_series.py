"""Streams of features of series: forms of input, names, and dependence on rows."""

import tracemalloc
from pathlib import Path

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsel import ForwardSelection
from streamsel.stream import _series, iter_series_features

FORMS = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "pyarrow": lambda frame: pl.from_pandas(frame).to_arrow(),
    "narwhals": nw.from_native,
}
SOME = ["a__mean", 'b__fft_coefficient__attr_"abs"__coeff_1', "a__autocorrelation__lag_2"]


def long_frame(series, ids, rng=None):
    """Return a frame of series with two value columns, shuffled if `rng` is given."""
    parts = [
        pd.DataFrame({"unit": name, "when": np.arange(len(x)) / 2, "a": x, "b": x[::-1] ** 2})
        for name, x in zip(ids, series, strict=True)
    ]
    frame = pd.concat(parts, ignore_index=True)
    return frame if rng is None else frame.sample(frac=1.0, random_state=0, ignore_index=True)


def assert_same(one, other):
    """Check that the columns are bit-identical."""
    one, other = dict(one), dict(other)
    assert list(one) == list(other)
    for name, values in one.items():
        np.testing.assert_array_equal(values, other[name], name)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("ids", [["x", "z", "y"], [3, 1, 2]])
def test_rows_of_a_frame_may_be_in_any_order(rng, form, ids):
    series = [rng.normal(size=n) for n in (12, 30, 7)]
    frame = FORMS[form](long_frame(series, ids, rng))
    stream = iter_series_features(frame, id="unit", time="when")
    assert stream.row_metadata["unit"].tolist() == sorted(ids)
    ordered = [x for _, x in sorted(zip(ids, series, strict=True), key=lambda pair: pair[0])]
    arrays = [np.array([x, x[::-1] ** 2]) for x in ordered]
    assert_same(stream, iter_series_features(arrays, values=["a", "b"]))
    assert (stream.n_rows, stream.n_columns) == (3, 2 * 722)


def test_equal_times_keep_the_order_of_the_frame(rng):
    x = rng.normal(size=40)
    frame = pl.DataFrame({"unit": 1, "when": np.arange(40) // 3, "a": x})
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=0).sort("when", maintain_order=True)
    found = iter_series_features(shuffled, id="unit", time="when")
    assert_same(found, iter_series_features([shuffled["a"].to_numpy()], values=["a"]))


@pytest.mark.parametrize("form", FORMS)
def test_missing_values_are_absent_observations(rng, form):
    frame = long_frame([rng.normal(size=20), rng.normal(size=9)], ["u", "v"])
    frame["flag"] = pd.array(np.arange(29) % 3 == 0, dtype="boolean")
    frame.loc[[3, 19, 25], "a"] = np.nan
    frame.loc[20:, "b"] = np.nan
    frame.loc[4, "flag"] = None
    names = [f"{column}__length" for column in ("a", "b", "flag")]
    stream = iter_series_features(FORMS[form](frame), id="unit", time="when")
    assert {name: x.tolist() for name, x in stream.take(names).items()} == {
        "a__length": [18, 8],
        "b__length": [20, 0],
        "flag__length": [19, 9],
    }
    whole = iter_series_features(FORMS[form](frame[frame["a"].notna()]), id="unit", values=["a"])
    assert_same(iter_series_features(FORMS[form](frame), id="unit", values=["a"]), whole)


def test_arrays_of_every_shape(rng):
    X = rng.normal(size=(5, 3, 20))
    names = ["channel_0", "channel_1", "channel_2"]
    stream = dict(iter_series_features(X))
    assert_same(stream, iter_series_features(list(X)))
    for j, name in enumerate(names):
        own = {key: x for key, x in stream.items() if key.startswith(f"{name}__")}
        assert_same(own, iter_series_features(X[:, j], values=[name]))
    padded = X[:, 0].copy()
    padded[1, 12:] = np.nan
    ragged = [x[np.isfinite(x)] for x in padded]
    assert_same(iter_series_features(padded), iter_series_features(ragged))
    counts = np.arange(12, dtype=np.uint8).reshape(2, 6)
    assert_same(iter_series_features(counts), iter_series_features(counts.astype(float)))


@pytest.mark.slow
@settings(max_examples=15)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=8), st.integers(0, 2**31))
def test_features_do_not_depend_on_other_series(lengths, seed):
    rng = np.random.default_rng(seed)
    series = [rng.integers(-9, 9, size=n) / 4 for n in lengths]
    together = dict(iter_series_features(series))
    for i, x in enumerate(series):
        alone = dict(iter_series_features([x]))
        assert {name: values[0] for name, values in alone.items()} == {
            name: values[i] for name, values in together.items()
        }


def test_features_of_a_long_series_among_many(rng):
    """Features of a series do not depend on the other series, which may be in other batches."""
    series = [rng.normal(size=n).cumsum() for n in (700, 257, 256, 700, 64, 64)]
    series += [rng.normal(size=64) for _ in range(1500)]
    names = iter_series_features(series).names
    together = iter_series_features(series, features=names[::3])
    found = {name: values[:6] for name, values in together}
    for i in range(6):
        alone = dict(iter_series_features([series[i]], features=names[::3]))
        assert {name: values[0] for name, values in alone.items()} == {
            name: values[i] for name, values in found.items()
        }


def test_blocks_and_parts_give_the_same_features(rng, monkeypatch):
    frame = long_frame([rng.normal(size=n) for n in (30, 12, 25)], "xyz")
    whole = dict(iter_series_features(frame, id="unit"))
    monkeypatch.setattr(_series, "BLOCK_BYTES", 8 * 3 * 50)
    stream = iter_series_features(frame, id="unit")
    assert max(len(block.names) for block in stream.blocks()) == 50
    assert_same(stream, whole)
    assert_same(stream.skip(1000), {name: whole[name] for name in stream.names[1000:]})
    few = list(rng.permutation(stream.names)[:120])
    assert_same(stream.take(few), {name: whole[name] for name in few})
    assert_same(iter_series_features(frame, id="unit", features=few), stream.take(few))


def test_only_requested_features_are_computed(rng, monkeypatch):
    computed = []
    monkeypatch.setattr(
        _series,
        "FEATURES",
        {
            name: feature._replace(
                compute=lambda batch, wanted, name=name, feature=feature: (
                    computed.append((name, len(wanted))) or feature.compute(batch, wanted)
                )
            )
            for name, feature in _series.FEATURES.items()
        },
    )
    stream = iter_series_features(long_frame([rng.normal(size=30)], "x"), id="unit", features=SOME)
    assert list(stream.take(SOME[:2])) == SOME[:2]
    assert computed == [("mean", 1), ("fft_coefficient", 1)]


def test_a_model_of_features_transforms_new_series(rng):
    """A model transforms new series, on rows and as columns, from the names of its features."""
    n, speed = 120, rng.integers(1, 4, size=120)
    phase = rng.uniform(0, 6, size=(n, 1))
    waves = np.sin(speed[:, None] * np.arange(64) / 5 + phase) + 0.3 * rng.normal(size=(n, 64))
    old, new = slice(0, 80), slice(80, None)
    model = ForwardSelection(3)
    model.learn_target(speed[old].astype(str))
    model.learn_columns(iter_series_features(waves[old]))
    assert len(model.selected) == 3
    stream = iter_series_features(waves[new], features=model.selected)
    table = pd.DataFrame(dict(stream))
    assert list(model.transform_many(table)) == model.selected
    learnt = np.array([*iter_series_features(waves[old]).take(model.selected).values()]).T
    nearest = [np.argmin(np.abs(learnt - row).sum(axis=1)) for row in table.to_numpy()]
    assert np.mean(speed[old][nearest] == speed[new]) > 0.9


def test_column_names_may_resemble_features():
    frame = pl.DataFrame({"unit": [1, 1], "a": [1.0, 2.0], "a__mean": [5.0, 7.0]})
    names = ["a__mean__mean", "a__mean", "a__length"]
    found = iter_series_features(frame, id="unit", features=names)
    assert {name: x.tolist() for name, x in found} == {
        "a__mean__mean": [6.0],
        "a__mean": [1.5],
        "a__length": [2.0],
    }
    assert dict(iter_series_features(frame, id="unit", features=[])) == {}


LONG = pl.DataFrame({"unit": ["u", "u", "v"], "when": [1, 2, 1], "a": [1.0, 2.0, 3.0]})


@pytest.mark.parametrize(
    ("error", "match", "call"),
    [
        (TypeError, "column that identifies", lambda: iter_series_features(LONG)),
        (ValueError, "did you mean unit", lambda: iter_series_features(LONG, id="uni")),
        (ValueError, "Expected time", lambda: iter_series_features(LONG, id="unit", time="t")),
        (TypeError, "'when' of String", lambda: iter_series_features(
            LONG.cast({"when": pl.String}), id="unit")),
        (TypeError, "write \\['a'\\]", lambda: iter_series_features(LONG, id="unit", values="a")),
        (ValueError, "one value", lambda: iter_series_features(LONG, id="unit", values=[])),
        (ValueError, "distinct names", lambda: iter_series_features(
            LONG, id="unit", values=["a", "a"])),
        (ValueError, "id without missing", lambda: iter_series_features(
            LONG.with_columns(unit=pl.Series([None, "u", "v"])), id="unit")),
        (ValueError, "time without missing", lambda: iter_series_features(
            LONG.with_columns(when=pl.Series([np.nan, 1, 2])), id="unit", time="when")),
        (ValueError, "without rows", lambda: iter_series_features(LONG.clear(), id="unit")),
        (TypeError, "call .collect", lambda: iter_series_features(LONG.lazy(), id="unit")),
        (TypeError, "a long data frame", lambda: iter_series_features({"a": 1})),
        (TypeError, "id only with a frame", lambda: iter_series_features(np.eye(3), id="unit")),
        (ValueError, "shape \\(n, t\\)", lambda: iter_series_features(np.zeros(3))),
        (ValueError, "at least one series", lambda: iter_series_features([])),
        (ValueError, "same channels", lambda: iter_series_features([np.eye(2), np.eye(3)])),
        (ValueError, "3 channels", lambda: iter_series_features([np.eye(3)], values=["x"])),
        (TypeError, "real numbers", lambda: iter_series_features(np.eye(2) * 1j)),
        (ValueError, "distinct column names", lambda: iter_series_features(
            np.eye(2), features=["value__mean", "value__mean"])),
        (TypeError, "sequence of names", lambda: iter_series_features(
            np.eye(2), features="value__mean")),
    ],
)  # fmt: skip
def test_bad_input_is_refused(error, match, call):
    with pytest.raises(error, match=match):
        call()


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("value__quantil__q_0.1", "did you mean 'value__quantile__q_0.1'"),
        ("value__quantile__q_1.1", "did you mean 'value__quantile__q_0.1'"),
        ("value__quantile__q_0.10", "did you mean"),
        ("value__quantile", "did you mean"),
        ("value__mean__lag_1", "did you mean"),
        ("value__fft_coefficient__attr_abs__coeff_1", "did you mean"),
        ("value__cid_ce__normalize_true", "did you mean 'value__cid_ce__normalize_True'"),
        ("other__mean", "did you mean 'value__mean'"),
        (7, "such as 'value__length'; the value columns are 'value'"),
    ],
)
def test_unknown_features_are_refused(name, hint):
    with pytest.raises(ValueError, match=hint):
        iter_series_features(np.eye(4), features=["value__mean", name])


def test_infinite_values_are_reported_by_name():
    frame = LONG.with_columns(a=pl.Series([1.0, 2.0, -np.inf]))
    with pytest.raises(ValueError, match=r"column 'a'\. Got: -inf in series 'v'"):
        dict(iter_series_features(frame, id="unit"))


@pytest.mark.slow
def test_memory_of_a_pass_is_one_block(rng):
    n, length = 20_000, 25
    X = rng.normal(size=(n, length))
    stream = iter_series_features(X)
    dict(iter_series_features(X[:5]))
    tracemalloc.start()
    try:
        for _ in stream.blocks():
            pass
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3 * 4 * 2**20 + 4 * 2**20  # two blocks, and one batch with its features
    assert 8 * n * stream.n_columns > 100 * 2**20


def test_every_feature_is_documented():
    page = (Path(__file__).parents[2] / "docs" / "pages" / "time_series.md").read_text("utf-8")
    assert [name for name in _series.FEATURES if f"`{name}`" not in page] == []
    assert f"{len(iter_series_features(np.eye(2)).names)} features" in page


def test_invalid_series_are_refused():
    with pytest.raises(ValueError, match="Expected series that form an array"):
        iter_series_features([[1.0, [2.0, 3.0]]])
