"""Estimators on frames with text and dates: features are the columns of the frame."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from streamsel import sklearn as ss
from streamsel.stream import encode

N = 200
RNG = np.random.default_rng(0)
CITY, X = RNG.choice(["Oslo", "Paris", "Rome"], N), RNG.normal(size=N)
Y = (CITY == "Rome") + 0.5 * X + 0.1 * RNG.normal(size=N)
FRAME = pd.DataFrame(
    {
        "city": CITY,
        "noise": RNG.normal(size=N),
        "x": X.astype(np.float32),
        "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(RNG.integers(0, 300, N), "D"),
        "sex": RNG.choice(["f", "m"], N),
    }
)


@pytest.mark.parametrize("name", ["SelectKBest", "MRMR", "ForwardSelection", "ProjSe"])
@pytest.mark.parametrize("library", [pd.DataFrame, pl.from_pandas])
def test_text_columns_are_selected_unencoded(name, library):
    df = library(FRAME)
    selector = getattr(ss, name)(2).fit(df, Y)
    assert selector.get_support().tolist() == [True, False, True, False, False]
    assert selector.get_feature_names_out().tolist() == ["city", "x"]
    assert selector.n_features_in_ == 5
    assert np.isfinite(selector.scores_[[0, 2]]).all()
    found = selector.transform(df)
    assert type(found) is type(df)
    assert list(found.columns) == ["city", "x"]
    assert found["city"].to_list() == CITY.tolist()
    assert found["x"].dtype == df["x"].dtype
    found = clone(selector).set_output(transform="pandas").fit_transform(FRAME, Y)
    pd.testing.assert_frame_equal(found, FRAME[["city", "x"]])


def made_of(feature, names):
    return [i for i, name in enumerate(names) if name == feature or name.startswith(f"{feature}_")]


@pytest.mark.parametrize("more", [{}, {"permutations": 10}], ids=["groups", "single columns"])
def test_scores_are_those_of_the_group_or_of_the_best_column(more):
    selector = ss.SelectKBest(2, **more).fit(FRAME, Y)
    stream = encode(FRAME, groups=False)
    arrays = {name: np.ravel(x.toarray() if hasattr(x, "toarray") else x) for name, x in stream}
    numbers, names = np.column_stack([*arrays.values()]), list(arrays)
    groups = None
    if not more:
        groups = [next((f for f in ("city", "sex") if n.startswith(f)), None) for n in names]
    of_numbers = ss.SelectKBest(2, groups=groups, **more).fit(numbers, Y)
    for j, feature in enumerate(FRAME):
        made = made_of(feature, names)
        assert selector.scores_[j] == pytest.approx(np.nanmax(of_numbers.scores_[made]))
        assert selector.pvalues_[j] == pytest.approx(np.nanmin(of_numbers.pvalues_[made]))


def test_groups_of_features_must_be_of_numbers():
    with pytest.raises(ValueError, match="Expected a frame of numbers with groups"):
        ss.SelectKBest(2, groups={"x": "g"}).fit(FRAME, Y)


def test_in_a_pipeline_before_an_encoder():
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
        remainder="passthrough",
    )
    pipeline = make_pipeline(ss.ProjSe(3), encoder, Ridge())
    assert cross_val_score(pipeline, FRAME, Y).mean() > 0.9


def test_covariates_may_be_text():
    selector = ss.SelectKBest(1, covariates=("city",)).fit(FRAME, Y)
    assert selector.get_feature_names_out().tolist() == ["x"]


def test_identifiers_are_never_selected_and_cause_a_warning():
    df = FRAME.assign(id=[f"u{i}" for i in range(N)])
    with pytest.warns(UserWarning, match="(?s)'id'.*Hint: drop them, or replace them"):
        selector = ss.SelectKBest(2).fit(df, Y)
    assert selector.get_support().tolist() == [True, False, True, False, False, False]


def test_k_is_compared_with_the_columns_of_the_frame():
    with pytest.warns(UserWarning, match="greater than the number of features, 5"):
        ss.SelectKBest(6).fit(FRAME, Y)


def test_new_rows_must_be_a_frame_with_these_columns():
    selector = ss.SelectKBest(2).fit(FRAME, Y)
    with (
        pytest.raises(ValueError, match="Expected a frame"),
        pytest.warns(UserWarning, match="names"),
    ):
        selector.transform(FRAME.to_numpy())
    with pytest.raises(ValueError, match="- city"):
        selector.transform(FRAME.drop(columns="city"))


@pytest.mark.parametrize("name", ["PCA", "PLS", "Lasso"])
def test_estimators_with_weights_of_numbers_refuse_text(name):
    estimator = getattr(ss, name)(2)
    with pytest.raises(ValueError, match=rf"for {name}\. Got: .*'city'.\nHint: .*OneHotEncoder"):
        estimator.fit(FRAME, None if name == "PCA" else Y)


def test_frames_of_numbers_are_learnt_as_before():
    df = pd.DataFrame({"a": X, "b": pd.Series([1, 0] * (N // 2), dtype=object)})
    assert isinstance(ss.SelectKBest(1).fit(df, Y).transform(df), np.ndarray)
