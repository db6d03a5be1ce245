"""Frames of text, categories, dates, booleans, decimals and missing values."""

import datetime as dt
import decimal
import zoneinfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from river import compose, preprocessing

from streamsel import (
    MRMR,
    PCA,
    PLS,
    ForwardSelection,
    ProbabilisticPCA,
    ProjSe,
    RandomProjection,
    SelectKBest,
    load,
    save,
)
from streamsel.evaluate import nested_scores, subsample_stability
from streamsel.stream import encode, iter_columns, iter_frame
from tests.reference.encode import encoded

N = 120
START = dt.datetime.fromisoformat("2019-11-05 07:30")


def people(n=N, seed=0, cities=("Oslo", "Paris", "Rome", None)):
    """Return columns of a table of customers, with None for missing values."""
    rng = np.random.default_rng(seed)
    zone = zoneinfo.ZoneInfo("America/New_York")
    times = [START + dt.timedelta(hours=int(h)) for h in rng.integers(0, 9000, n)]
    return {
        "customer": [f"c{seed}{i:05d}" for i in range(n)],
        "city": [cities[i] for i in rng.integers(0, len(cities), n)],
        "plan": [("free", "pro")[i] for i in rng.integers(0, 2, n)],
        "age": [int(age) for age in rng.integers(18, 90, n)],
        "visits": [float(v) for v in rng.poisson(3.0, n)],
        "active": [bool(b) for b in rng.random(n) < 0.5],
        "balance": [decimal.Decimal(int(b)) / 100 for b in rng.integers(0, 10**6, n)],
        "joined": times,
        "seen": [t.replace(tzinfo=zone) for t in times[::-1]],
        "birthday": [(t - dt.timedelta(days=9999)).date() for t in times],
    }


COLUMNS = people()
KINDS = {
    "plan": pl.Categorical,
    "balance": pl.Decimal(10, 2),
    "seen": pl.Datetime("us", "America/New_York"),
}


def polars_frame(columns):
    return pl.DataFrame(columns, schema_overrides=KINDS)


LIBRARIES = {
    "polars": polars_frame,
    "pyarrow": lambda columns: polars_frame(columns).to_arrow(),
    "pandas": lambda columns: pd.DataFrame(
        {name: pd.Categorical(v) if name == "plan" else v for name, v in columns.items()}
    ),
    "pandas, nullable": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "pandas on pyarrow": lambda columns: polars_frame(columns).to_pandas(
        use_pyarrow_extension_array=True
    ),
}
ENCODED = ("city", "plan", "joined", "seen", "birthday")


def numbers_of(columns):
    """Return the encoded numeric columns by definition."""
    found = {}
    for name, values in columns.items():
        found |= encoded(name, values) if name in (*ENCODED, "customer") else {name: values}
    return {name: np.array(values, dtype=float) for name, values in found.items()}


EXPECTED = numbers_of(COLUMNS)
Y = EXPECTED["city_Rome"] + 0.01 * EXPECTED["age"] + 0.3 * EXPECTED["joined_day_sin"]
DETAILS = {"encoded": {"categories": 2, "dates": 3}, "not_encoded": {"text": 1}}


def learnt_by_hand(model, names=tuple(COLUMNS), y=Y):
    """Return a model that has learnt the encoded columns, with categories as groups."""
    if model._is_supervised:
        model.learn_target(y)
    for source in names:
        parts = {n: x for n, x in EXPECTED.items() if n == source or n.startswith(f"{source}_")}
        if source in ("city", "plan") and model._supports_groups():
            model.learn_group(source, np.column_stack([*parts.values()]), list(parts))
            continue
        for name, values in parts.items():
            model.learn_column(name, values)
    return model


def learnt(model, X, y=Y):
    if model._is_supervised:
        model.learn_target(y)
    model.learn_columns(X)
    return model


@pytest.fixture(params=LIBRARIES.values(), ids=LIBRARIES)
def frame(request):
    return request.param


@pytest.mark.parametrize(
    "model", [SelectKBest(6), ForwardSelection(4), MRMR(4), PCA(3, scale=True)], ids=repr
)
def test_mixed_frames_equal_their_encoding(model, frame):
    expected = learnt_by_hand(model.clone())
    with pytest.warns(
        UserWarning, match=r"1 column of 10 .* not learnt: 'customer' \(more than"
    ) as w:
        model = learnt(model.clone(), frame(COLUMNS))
    assert w[0].filename == __file__
    assert model.n_columns == len(EXPECTED)
    assert model.relevance == pytest.approx(expected.relevance)
    assert getattr(model, "members", None) == getattr(expected, "members", None)
    assert {name: model.report().details[name] for name in DETAILS} == DETAILS


def test_new_rows_of_a_frame_are_encoded_by_the_names_of_the_model(frame):
    model = learnt(SelectKBest(30), frame({n: v for n, v in COLUMNS.items() if n != "customer"}))
    assert {"city_Rome", "city_None", "plan_pro", "joined_day_sin", "age"} < {*model.in_use}
    new = people(40, 1, cities=("Rome", None, "Bern"))
    expected = numbers_of(new)
    found = model.transform_many(frame(new))
    assert type(found) is type(frame(new))
    names = list(found.column_names if isinstance(found, pa.Table) else found.columns)
    assert names == model.in_use
    for name in names:
        column = found[name]
        values = column.to_pandas() if isinstance(found, pa.Table) else column
        wanted = expected.get(name, np.zeros(40))  # a city that is absent from the new rows
        np.testing.assert_allclose(np.array(values, dtype=float), wanted, atol=1e-9)


def test_new_rows_may_have_encoded_columns_alone(frame):
    model = learnt(SelectKBest(1), frame({"city": COLUMNS["city"]}))
    assert model.selected == ["city"]
    found = model.transform_many(frame({"city": ["Rome", "Bern", "Rome", "Oslo"]}))
    Z = found.to_pandas() if isinstance(found, pa.Table) else found
    assert np.array(Z, dtype=float)[:, model.in_use.index("city_Rome")].tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize("model", [PCA(3, scale=True), PLS(2), ProbabilisticPCA(2)], ids=repr)
def test_components_of_a_frame(model, frame):
    df = frame({name: COLUMNS[name] for name in ("city", "plan", "age", "birthday")})
    model = learnt(model.clone(), df)
    if hasattr(model, "learn_loadings"):
        model.learn_loadings(df)
    Z = model.transform_many(df)
    Z = Z.to_pandas() if isinstance(Z, pa.Table) else Z
    np.testing.assert_allclose(np.array(Z, dtype=float), model.embedding, rtol=1e-6, atol=1e-6)


def test_files_by_name_are_encoded(tmp_path):
    df = polars_frame_of({name: COLUMNS[name] for name in ("city", "age", "birthday")})
    df.write_parquet(tmp_path / "x.parquet")
    model, expected = learnt(SelectKBest(3), tmp_path / "x.parquet"), learnt(SelectKBest(3), df)
    assert model.relevance == expected.relevance
    assert model.report().details == expected.report().details


def test_streams_are_not_encoded():
    df = polars_frame({"age": COLUMNS["age"], "city": COLUMNS["city"]})
    model = SelectKBest(2)
    with pytest.raises(TypeError, match=r"'city'.*text"):
        learnt(model, iter_frame(df))
    assert model.n_columns == 0
    learnt(model.clone(), encode(df))
    projection = RandomProjection(2)
    with pytest.raises(TypeError, match="'city'"):
        learnt(projection, df)


def test_columns_learnt_before_an_error_are_kept():
    def broken():
        yield "city", np.array(COLUMNS["city"], dtype=object)
        yield "age", np.array(COLUMNS["age"], dtype=float)
        yield "plan", np.array(COLUMNS["plan"], dtype=object)
        raise RuntimeError("broken")

    model = SelectKBest(3)
    with pytest.raises(RuntimeError, match="broken"):
        learnt(model, encode(iter_columns(broken())))
    assert model.n_columns == 4 + 1 + 2
    assert model.report().details["encoded"] == {"categories": 2}
    again = SelectKBest(3)
    with pytest.raises(RuntimeError, match="broken"):
        learnt(again, encode(iter_columns(broken)))  # re-iterable: rolled back
    assert again.n_columns == 0
    assert "encoded" not in again.report().details


def test_details_cover_all_sources_and_are_saved(tmp_path):
    first, second = (
        {name: COLUMNS[name] for name in names} for names in (["city"], ["plan", "seen"])
    )
    model, other = (learnt(SelectKBest(3), polars_frame_of(part)) for part in (first, second))
    model.merge(other)
    expected = {"categories": 2, "dates": 1}
    assert model.report().details["encoded"] == expected
    save(model, tmp_path / "model")
    model = load(tmp_path / "model")
    assert model.report().details["encoded"] == expected
    model.learn_one({"city_Rome": 1}, 1.0)
    assert model.report().details["encoded"] == expected


def polars_frame_of(columns):
    return pl.DataFrame(columns, schema_overrides={n: k for n, k in KINDS.items() if n in columns})


def test_evaluation_of_a_mixed_frame():
    df = pd.DataFrame({name: COLUMNS[name] for name in ("city", "plan", "age")})
    assert nested_scores(SelectKBest(2), df, Y).score().value > 0.5
    found = subsample_stability(SelectKBest(2), df, Y, n_subsamples=5)
    assert found.selected == learnt(SelectKBest(2), df).selected


FEATURES = ["city", "plan", "age", "joined"]


def dates_of_row(x):
    joined = x["joined"].replace(tzinfo=dt.UTC)
    day = (joined.hour + joined.minute / 60) / 24
    year = (joined.timetuple().tm_yday - 1 + day) / (366 if joined.year % 4 == 0 else 365)
    return {
        "joined_seconds": joined.timestamp(),
        "joined_year": joined.year,
        "joined_month": joined.month,
        "joined_weekday": joined.weekday(),
        "joined_day_of_year": joined.timetuple().tm_yday,
        "joined_hour": joined.hour,
        "joined_year_sin": np.sin(2 * np.pi * year),
        "joined_year_cos": np.cos(2 * np.pi * year),
        "joined_day_sin": np.sin(2 * np.pi * day),
        "joined_day_cos": np.cos(2 * np.pi * day),
    }


def in_pipeline(model):
    """Return a pipeline that encodes rows, with the names of encoded columns."""
    features = compose.Select("city", "plan") | preprocessing.OneHotEncoder()
    features += compose.Select("age") + compose.FuncTransformer(dates_of_row)
    return features | model


def earlier_and_later():
    """Return two parts of a table and their targets; the second has new cities."""
    parts = people(80, 2), people(60, 3, cities=("Rome", "Oslo", "Bern"))
    targets = []
    for seed, columns in enumerate(parts):
        numbers = numbers_of(columns)
        noise = np.random.default_rng(seed).normal(size=len(columns["age"]))
        targets.append(numbers["city_Rome"] + numbers["joined_day_sin"] + noise)
    return parts, targets


def test_rows_continue_single_columns_under_the_names_of_river():
    (first, later), targets = earlier_and_later()
    df = polars_frame_of({name: first[name] for name in FEATURES})
    model = learnt(SelectKBest(4), encode(df, groups=False), targets[0])
    pipeline = in_pipeline(model)
    rows = [{name: later[name][i] for name in FEATURES} for i in range(60)]
    for x, y in zip(rows, targets[1].tolist(), strict=True):
        pipeline.learn_one(x, y)
    both = polars_frame_of({name: first[name] + later[name] for name in FEATURES})
    expected = learnt(SelectKBest(4), encode(both, groups=False), np.concatenate(targets))
    learner = pipeline["SelectKBest"]
    assert learner.n_rows == 140
    assert learner.n_columns == expected.n_columns  # Bern is a new variable, 0 in earlier rows
    assert learner.relevance == pytest.approx(expected.relevance, rel=1e-6)
    learner.refresh()
    assert {*pipeline.transform_one(rows[0])} <= {*expected.selected}


def test_rows_continue_groups_in_windows_under_the_names_of_river():
    (first, later), targets = earlier_and_later()
    df = polars_frame_of({name: first[name] for name in FEATURES})
    model = learnt(SelectKBest(4, window_size=60), df, targets[0])
    assert "city" in model.selected
    pipeline = in_pipeline(model)
    rows = [{name: later[name][i] for name in FEATURES} for i in range(60)]
    assert pipeline.transform_one(rows[0]).keys() <= {*model.in_use}
    for x, y in zip(rows, targets[1].tolist(), strict=True):
        pipeline.learn_one(x, y)
    # The window is learnt as columns: for the city, the categories of its group.
    numbers = numbers_of({name: later[name] for name in FEATURES})
    expected = SelectKBest(4)
    expected.learn_target(targets[1])
    for source in ("city", "plan"):
        of_source = {n: x for n, x in numbers.items() if n.startswith(f"{source}_")}
        bern = of_source.pop("city_Bern", None)
        expected.learn_group(source, np.column_stack([*of_source.values()]), list(of_source))
        if bern is not None:
            expected.learn_column("city_Bern", bern)
    for name in numbers:
        if not name.startswith(("city", "plan")):
            expected.learn_column(name, numbers[name])
    assert pipeline["SelectKBest"].relevance == pytest.approx(expected.relevance, rel=1e-6)


@pytest.mark.parametrize("more", [{"permutations": 20}, {"fading_factor": 0.01}], ids=str)
def test_categories_are_single_columns_where_groups_are_refused(more):
    model = learnt(SelectKBest(3, **more), polars_frame_of({"city": COLUMNS["city"]}))
    assert model.selected == [*model.in_use]
    assert "city_Rome" in model.selected
    learnt(ProjSe(2), polars_frame_of({"city": COLUMNS["city"]}), None)
