"""None and NaN in transforms of selectors: passed on, or replaced by means."""

import importlib
import math

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from streamsel import SelectKBest
from streamsel.base.selector import Selector
from tests.conformance.modes import COLUMN_MODES, build, learnt, over, sampled, target_of
from tests.conformance.rowwise import BY_WINDOW, ROW_MODES, learn_one, stream, taught
from tests.copies import COPIES

NAN = float("nan")
FRAMES = ("pandas", "polars", "pyarrow")


def selectors(modes):
    return {name: mode for name, mode in modes.items() if issubclass(mode.cls, Selector)}


OF_MOMENTS = {name: mode for name, mode in selectors(ROW_MODES).items() if name not in BY_WINDOW}


def means(rows, fading):
    """Return the means of variables over rows; absent values are 0, missing ones are excluded."""
    found = {}
    for name in {name for x, _ in rows for name in x}:
        values = np.array([x.get(name, 0.0) for x, _ in rows], dtype=float)
        weights = (1.0 - fading) ** np.arange(len(rows))[::-1]
        seen = ~np.isnan(values)
        found[name] = float(weights[seen] @ values[seen] / weights[seen].sum())
    return found


@over(OF_MOMENTS)
def test_imputation_by_means_of_learnt_rows(mode):
    model, rows = build(mode, missing="mean"), stream(mode, 60)
    for i, (x, y) in enumerate(rows):
        if i % 7 == 3:
            x["b"] = NAN if i % 2 else None
        if i % 5 == 2:
            del x["c"]
        learn_one(model, x, y)
        if i % 13 == 12:
            expected = means(rows[: i + 1], mode.params.get("fading_factor", 0.0))
            found = model.transform_one(dict.fromkeys("abcdef"))
            plain = model.transform_one(dict.fromkeys("abcdef", 9.5))
            assert list(found) == list(plain)
            assert set(plain.values()) == {9.5}
            tracked = model._moments.index_of
            if mode.params.get("max_features"):  # over the rows since a variable's return
                stats = model._moments.stats().mean
                expected = {name: stats[index] for name, index in tracked.items()}
            for name, value in found.items():
                wanted = expected[name] if name in tracked else 0.0
                assert value == pytest.approx(wanted, rel=1e-9, abs=1e-12)


@sampled(selectors(BY_WINDOW))
def test_imputation_by_means_of_the_last_window(mode):
    model, size = build(mode, missing="mean"), build(mode)._window_size
    rows = stream(mode, 2 * size + 3)
    taught(model, rows)
    expected = means(rows[size : 2 * size], 0.0)
    tracked = model._columns.index_of
    for name, value in model.transform_one(dict.fromkeys("abcdef", NAN)).items():
        assert value == pytest.approx(expected[name] if name in tracked else 0.0, rel=1e-9)


@over(selectors(COLUMN_MODES))
def test_imputation_by_means_of_columns(mode):
    rng = np.random.default_rng(5)
    X = np.asfortranarray(rng.normal(size=(30, 8)) + np.arange(8.0))
    names = [f"v{j}" for j in range(8)]
    model = learnt(mode, X, target_of(mode, X), names, missing="mean")
    expected = dict(zip(names, X.mean(axis=0).tolist(), strict=True))
    found = model.transform_one(dict.fromkeys(names, NAN))
    assert found
    for name, value in found.items():
        assert value == pytest.approx(expected[name], rel=1e-12)
    # Rows that are learnt later count as well.
    if mode not in ROW_MODES.values() or mode in BY_WINDOW.values():
        return
    learn_one(
        model,
        dict(zip(names, X[0].tolist(), strict=True)),
        target_of(mode, X)[0].item() if model._is_supervised else None,
    )
    tracked = model._moments.index_of
    for name, value in model.transform_one(dict.fromkeys(names, NAN)).items():
        wanted = np.append(X, X[:1], axis=0)[:, names.index(name)]
        if not mode.params.get("fading_factor") and name in tracked:
            assert value == pytest.approx(wanted.mean(), rel=1e-12)


@over(selectors(ROW_MODES))
def test_missing_values_are_passed_through(mode):
    assert build(mode).missing == "pass"
    model = taught(build(mode), stream(mode, 60))
    found = model.transform_one({name: NAN if name in "abc" else None for name in "abcdef"})
    assert all(value is None or math.isnan(value) for value in found.values())


@sampled(selectors(ROW_MODES))
def test_imputation_by_zero_before_learning(mode):
    model = build(mode, missing="mean")
    assert model.transform_one({"a": None, "b": NAN, "c": 2.0}) == {"a": 0.0, "b": 0.0, "c": 2.0}
    found = model.transform_many(pd.DataFrame({"a": [1.0, NAN], "b": [3, 4]}))
    assert found.to_dict("list") == {"a": [1.0, 0.0], "b": [3, 4]}


@sampled(selectors(ROW_MODES))
def test_copies_impute_like_the_original(mode, tmp_path):
    model = taught(build(mode, missing="mean"), stream(mode, 60))
    row = dict.fromkeys("abcdef", NAN)
    for copied in COPIES.values():
        assert copied(model, tmp_path).transform_one(row) == model.transform_one(row)


@pytest.fixture(name="model", scope="module")
def a_model():
    rng = np.random.default_rng(1)
    model = SelectKBest(k=3, missing="mean")
    X = rng.normal(size=(40, 5)) + np.arange(5.0)
    model.learn_target(X[:, 0] + X[:, 1])
    model.learn_columns(X, list("abcde"))
    return model


@pytest.mark.parametrize("library", FRAMES)
def test_frames_are_imputed(model, library):
    table = {name: [1.0, NAN, 3.0, 4.0] for name in "abcde"}
    module = importlib.import_module(library)
    X = module.table(table) if library == "pyarrow" else module.DataFrame(table)
    before = nw.from_native(X).to_numpy().copy()
    found = model.transform_many(X)
    assert type(found) is type(X)
    expected = [
        [*model.transform_one(dict(zip("abcde", row, strict=True))).values()]
        for row in before.tolist()
    ]
    np.testing.assert_array_equal(nw.from_native(found).to_numpy(), expected)
    np.testing.assert_array_equal(nw.from_native(X).to_numpy(), before)


@pytest.mark.slow
def test_nulls_of_integer_columns_are_imputed():
    model = SelectKBest(k=1, missing="mean")
    found = model.transform_many(pl.DataFrame({"a": [1, None, 3], "b": ["x", None, "z"]}))
    assert found["a"].to_list() == [1.0, 0.0, 3.0]
    assert found["b"].to_list() == ["x", None, "z"]


@pytest.mark.parametrize("container", [np.asarray, sp.csc_array, sp.csr_array])
def test_arrays_are_imputed(container):
    rng = np.random.default_rng(1)
    model = SelectKBest(k=3, missing="mean")
    X = rng.normal(size=(40, 5)) + np.arange(5.0)
    model.learn_target(X[:, 0] + X[:, 1])
    model.learn_columns(X)
    rows = np.array([[1.0, NAN, 0.0, 2.0, NAN], [NAN, 1.0, NAN, 0.0, 0.0]])
    found = model.transform_many(container(rows))
    expected = [[*model.transform_one(dict(enumerate(row))).values()] for row in rows.tolist()]
    np.testing.assert_array_equal(found, expected)
    fresh = SelectKBest(k=3, missing="mean").transform_many(container(rows))
    fresh = fresh.toarray() if hasattr(fresh, "toarray") else fresh
    np.testing.assert_array_equal(fresh, np.nan_to_num(rows))


def test_other_values_of_missing_are_refused():
    with pytest.raises(ValueError, match=r"missing[\s\S]*'pass'[\s\S]*'mean'"):
        SelectKBest(k=1, missing="median")
