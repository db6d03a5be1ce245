"""Regression tests of learning rows."""

import copy
import warnings

import numpy as np
import pandas as pd
import pytest

from streamsel import SOSPCA, ProjSe


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_new_class_and_name_at_a_full_vocabulary(rng, kernel):
    model = ProjSe(1, kernel=kernel, max_features=3, grace_period=1)
    for i in range(20):
        model.learn_one({name: rng.normal() for name in "abc"}, "xy"[i % 2])
        _ = model.selected  # a pipeline uses it at every row
    model.learn_one({"a": 1.0, "new": 2.0}, "z")
    assert model.n_rows == 21
    assert all(0.0 <= r <= 1.0 for r in model.relevance.values())


def test_refused_first_rows_change_nothing(rng):
    X, y, late = rng.normal(size=(40, 12)), rng.normal(size=80), rng.normal(size=40).tolist()
    found = []
    for refused in (False, True):
        model = ProjSe(1, max_candidates=4)
        model.learn_target(y[:40])
        model.learn_columns(X[:, :7])
        name = list(model._columns.names)[-1]
        if refused:
            with pytest.raises(ValueError, match="inf"):
                model.learn_one({name: np.inf}, 1.0)
        model.learn_columns(X[:, 7:], names=range(7, 12))
        for v, t in zip(late, y[40:].tolist(), strict=True):
            model.learn_one({name: v}, t)
        found.append((model.relevance, model._moments.stats().m2.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["aa", "zz"])
def test_admission_does_not_depend_on_alphabetical_order(rng, name):
    model = ProjSe(5, max_features=100, grace_period=100)
    for i in range(2000):
        y = rng.normal()
        x = {f"b{i}_{j}": 1.0 for j in range(9)} | ({name: y} if i > 500 else {})
        model.learn_one(x, y)
    assert name in model.selected


@pytest.mark.parametrize("most", [20, 40])
def test_small_vocabularies_of_components_admit_new_names(rng, most):
    model = SOSPCA(2, max_features=most, grace_period=20)
    for i in range(2000):
        y = rng.normal()
        x = {f"w{i}_{j}": 1.0 for j in range(2)} | ({"good": y} if i > 500 else {})
        model.learn_one(x, y)
        assert len(model._moments.table) <= most
    assert "good" in model.loadings


def test_vocabularies_of_components_have_a_minimum_size():
    with pytest.raises(ValueError, match="max_features"):
        SOSPCA(2, max_features=2)


def test_label_targets_refuse_numbers():
    model = ProjSe(1)
    model.learn_one({"a": 1.0}, {"t": "a"})
    with pytest.raises(TypeError, match="number"):
        model.learn_one({"a": 2.0}, 3.5)


def test_targets_of_an_array_are_numbers(rng):
    model = ProjSe(1)
    model.learn_many(rng.normal(size=(4, 1)), rng.normal(size=(4, 2)))
    with pytest.raises(TypeError, match="label"):
        model.learn_one({0: 1.0}, {0: "text", 1: 2.0})
    model.learn_one({0: 1.0}, {0: True, 1: 2.0})
    assert len(model._moments.target) == 2


def test_signed_models_refuse_labels_in_a_dict():
    with pytest.raises(ValueError, match="signed"):
        SOSPCA(1, signed=True).learn_one({"a": 1.0}, {"t": "label"})


def test_booleans_after_numbers_are_numbers():
    one, many = ProjSe(1), ProjSe(1)
    for model in (one, many):
        model.learn_one({"a": 1.0}, {"p": 2.0, "q": 1.0})
    one.learn_one({"a": 2.0}, {"p": True, "q": 0.5})
    many.learn_many(pd.DataFrame({"a": [2.0]}), pd.DataFrame({"p": [True], "q": [0.5]}))
    assert one._moments.target.index_of == many._moments.target.index_of
    np.testing.assert_allclose(one._moments.target_moments, many._moments.target_moments)


def test_copies_do_not_warn_about_the_target(rng):
    model = ProjSe(1)
    for _ in range(100):
        model.learn_one({"a": rng.normal()}, rng.normal())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        copy.deepcopy(model).learn_many(rng.normal(size=(5, 1)), np.arange(5))


def test_max_features_holds_from_the_first_row_after_columns(rng):
    model = ProjSe(3, max_features=10)
    model.learn_target(rng.normal(size=30))
    model.learn_columns(rng.normal(size=(30, 100)))
    model.learn_one({0: 1.0}, 1.0)
    assert len(model._moments.table) <= 10


def test_masked_cells_are_missing(rng):
    X = np.ma.masked_array(rng.normal(size=(20, 2)), mask=False)
    X[3, 0] = 1e6
    X[3, 0] = np.ma.masked
    y = rng.normal(size=20)
    model, missing = ProjSe(2), ProjSe(2)
    model.learn_many(X, y)
    missing.learn_many(np.ma.filled(X, np.nan), y)
    assert model.relevance == missing.relevance


def test_constants_are_counted_once_in_a_merge(rng):
    X = np.column_stack([rng.normal(size=(20, 4)), np.ones(20)])
    one, other = ProjSe(2), ProjSe(2)
    for model in (one, other):
        model.learn_target(rng.normal(size=20))
        model.learn_columns(X)
    one.merge(other, along="rows")
    assert (one.n_constant, one.n_columns) == (1, 5)


@pytest.mark.parametrize(("value", "error"), [("1", TypeError), (np.inf, ValueError)])
def test_transforms_refuse_non_numeric_values(rng, value, error):
    model = SOSPCA(1, grace_period=5, warm_up=10)
    for _ in range(10):
        x = rng.normal()
        model.learn_one({"a": x}, x + rng.normal())
    with pytest.raises(error, match="'a'"):
        model.transform_one({"a": value})
    assert model.transform_one({"a": pd.NA}) == {"sospca0": 0.0}


def test_numeric_refuses_text_and_accepts_bools():
    model = ProjSe(2, target_type="numeric")
    with pytest.raises(TypeError, match="text"):
        model.learn_one({"a": 1.0}, "text")
    with pytest.raises(TypeError, match="text"):
        model.learn_one({"a": 1.0}, {"p": "text"})
    model.learn_one({"a": 1.0}, True)
    model.learn_one({"a": 3.0}, 2.5)
    with pytest.raises(TypeError, match="text"):
        model.learn_one({"a": 1.0}, "text")
    assert model.n_rows == 2
