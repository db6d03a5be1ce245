"""Row weights: River's argument w."""

import numpy as np
import pandas as pd
import pytest
from river import compose, linear_model

import streamsel
from streamsel import (
    PCA,
    SOSPCA,
    ForwardSelection,
    ProjSe,
    RandomProjection,
    SelectKBest,
    SparsePCA,
)
from streamsel.state.moments.row_subspace import RowSubspace
from tests.conformance.modes import MODES, close, data, fresh, over, same, shown

# Functions of the exact moments of all rows.
EXACT = ["ProjSe", "ForwardSelection", "BackwardElimination", "MRMR", "Lasso", "SelectKBest"]
EXACT += ["RidgeComponents", "PCA", "PLS", "Discriminant", "SupervisedPCA", "RankedPCA"]
EXACT_MODES = {
    name: mode
    for name, mode in MODES.items()
    if mode.learner in EXACT
    and not {"max_features", "fading_factor", "max_loadings", "exact"} & mode.params.keys()
    and not fresh(mode, data(mode, p=8)[1])._by_window
    and (mode.has_target or not mode.cls._is_supervised)
}


def rows_of(X):
    return [dict(enumerate(x)) for x in X.tolist()]


def one_by_one(model, X, y, w):
    for i, x in enumerate(rows_of(X)):
        seen = () if y is None else (y[i].item() if np.ndim(y[i]) == 0 else dict(enumerate(y[i])),)
        model.learn_one(x, *seen, w=w[i])
    return model


@over(EXACT_MODES)
def test_weighted_rows_equal_weighted_columns(mode):
    X, y = data(mode, n=40, p=8)
    w = np.random.default_rng(2).exponential(size=40)
    w /= w.mean()
    columns = fresh(mode, y)
    columns.learn_target(y, weights=w)
    columns.learn_columns(X)
    seen = () if y is None else (y,)
    rows = fresh(mode, None) if not mode.cls._is_supervised else mode.cls(**mode.params)
    rows.learn_many(X, *seen, w=w)
    assert rows._significance.n == pytest.approx(w.sum() ** 2 / (w @ w)) if seen else True
    for name in ("relevance", "selected", "scores", "p_values"):
        if hasattr(rows, name):
            close(getattr(rows, name), getattr(columns, name), 1e-7)


def by_moments():
    return {
        name: mode
        for name, mode in MODES.items()
        if not fresh(mode, data(mode, p=8)[1])._by_window
        and (mode.has_target or not mode.cls._is_supervised)
        and not mode.by_name
    }


@over(by_moments())
def test_single_rows_equal_frames(mode):
    X, y = data(mode, n=60, p=8)
    w = np.random.default_rng(3).choice([0.0, 0.25, 1.0, 5.0], size=60)
    one, many = (mode.cls(**mode.params) for _ in range(2))
    one_by_one(one, X, y, w)
    many.learn_many(X, *(() if y is None else (y,)), w=w)
    assert one.n_rows == many.n_rows == np.count_nonzero(w)
    found, expected = shown(one), shown(many)
    for name, value in expected.items():
        close(found[name], value, 1e-6)
    if hasattr(one, "transform_many"):
        np.testing.assert_allclose(one.transform_many(X), many.transform_many(X), atol=1e-6)


@pytest.mark.parametrize("make", [lambda: SOSPCA(2), lambda: SparsePCA(2), lambda: ProjSe(k=2)])
def test_double_weight_equals_the_row_twice(make):
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(50, 6)), rng.normal(size=50)
    weighs, twice = make(), make()
    seen = (y,) if weighs._is_supervised else ()
    # Refreshes depend on the number of rows: none is in between.
    weighs.learn_many(X, *seen)
    twice.learn_many(X, *seen)
    x, value = {j: 3.0 - j for j in range(6)}, (2.0,) * len(seen)
    weighs.learn_one(x, *value, w=2.0)
    for _ in range(2):
        twice.learn_one(x, *value)
    assert weighs.n_rows == 51
    stats = zip(weighs._moments.stats(), twice._moments.stats(), strict=True)
    for mine, theirs in stats:
        np.testing.assert_allclose(mine, theirs, atol=1e-12)
    assert weighs._moments.total == twice._moments.total
    alongside, other = weighs._row_extension, twice._row_extension
    for name in ("J", "mean", "n", "code_products", "codes", "batch"):
        if hasattr(alongside, name):
            np.testing.assert_allclose(getattr(alongside, name), getattr(other, name), atol=1e-10)


@pytest.mark.parametrize("keep", [1.0, 0.9])
def test_axes_of_weighted_rows(keep):
    X = np.random.default_rng(5).normal(size=(30, 6))
    w = np.random.default_rng(6).integers(1, 4, size=30)
    indices = np.arange(6)
    weighs = RowSubspace(6, keep)
    weighs.learn(X, indices, 6, w.astype(float))
    found = weighs.with_buffer(6)
    faded = w * keep ** np.arange(29.0, -1.0, -1.0)
    mean = faded @ X / faded.sum()
    np.testing.assert_allclose(found.mean, mean, atol=1e-12)
    np.testing.assert_allclose(
        found.axes @ found.axes.T, (faded * (X - mean).T) @ (X - mean), atol=1e-9
    )


def test_files_keep_weights_of_buffered_rows(tmp_path):
    X = np.random.default_rng(7).normal(size=(45, 12))
    w = np.random.default_rng(8).exponential(size=45)
    model = PCA(2, max_features=5)
    model.learn_many(X, w=w)
    streamsel.save(model, tmp_path / "model")
    same(streamsel.load(tmp_path / "model"), model)


def test_pipelines_pass_weights():
    rng = np.random.default_rng(9)
    X, y, w = rng.normal(size=(80, 5)), rng.normal(size=80), rng.exponential(size=80)
    pipeline = compose.Pipeline(ProjSe(k=2), linear_model.LinearRegression())
    alone = ProjSe(k=2)
    for x, value, weight in zip(rows_of(X), y.tolist(), w.tolist(), strict=True):
        pipeline.learn_one(x, value, w=weight)
        alone.learn_one(x, value, w=weight)
    assert pipeline["ProjSe"].relevance == alone.relevance
    plain = ProjSe(k=2)
    plain.learn_many(X, y)
    assert plain.relevance != alone.relevance


def test_weights_may_be_a_number_a_list_or_a_series():
    rng = np.random.default_rng(10)
    X, y, w = rng.normal(size=(20, 4)), rng.normal(size=20), rng.exponential(size=20)
    expected = SelectKBest(k=4)
    expected.learn_many(X, y, w=w)
    for form in (w.tolist(), pd.Series(w, index=range(5, 25))):
        model = SelectKBest(k=4)
        model.learn_many(X, y, w=form)
        assert model.relevance == expected.relevance
    one, all_two = SelectKBest(k=4), SelectKBest(k=4)
    one.learn_many(X, y)
    all_two.learn_many(X, y, w=2)
    assert all_two.relevance == pytest.approx(one.relevance)
    assert all_two.noise_floor() == pytest.approx(one.noise_floor())


@pytest.mark.parametrize("w", [-1.0, np.nan, np.inf, 1e200, "a", None])
def test_invalid_weights_are_refused(w):
    for model in (ProjSe(k=1), RandomProjection(2)):
        y = (1.0,) if model._is_supervised else ()
        with pytest.raises((ValueError, TypeError), match="eight"):
            model.learn_one({"a": 1.0}, *y, w=w)
        with pytest.raises((ValueError, TypeError), match="eight"):
            model.learn_many(np.ones((2, 2)), *(np.ones(2) for _ in y), w=[1.0, w])
        assert not model.n_rows
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        ProjSe(k=1).learn_many(np.ones((2, 2)), np.ones(2), w=np.ones(3))


def test_windows_refuse_weights():
    for model in (SelectKBest(k=1, score="mutual_info"), streamsel.OSFS(), streamsel.KernelPCA(2)):
        y = (1.0,) if model._is_supervised else ()
        model.learn_one({"a": 1.0}, *y, w=1.0)
        with pytest.raises(ValueError, match="Expected rows of weight 1"):
            model.learn_one({"a": 2.0}, *y, w=2.0)
        with pytest.raises(ValueError, match="Expected rows of weight 1"):
            model.learn_many(np.ones((2, 2)), *(np.ones(2) for _ in y), w=[1.0, 2.0])
        assert model.n_rows == 1


def test_fading_does_not_depend_on_weights():
    model = ForwardSelection(k=2, fading_factor=0.1)
    rng = np.random.default_rng(11)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    w = rng.exponential(size=30)
    model.learn_many(X, y, w=w)
    faded = w * 0.9 ** np.arange(29.0, -1.0, -1.0)
    columns = learnt_by_weight(X, y, faded)
    for name, relevance in columns.relevance.items():
        assert model.relevance.get(name, relevance) == pytest.approx(relevance)
    assert model.noise_floor() == pytest.approx(columns.noise_floor())


def learnt_by_weight(X, y, w):
    model = SelectKBest(k=3)
    model.learn_target(y, weights=w)
    model.learn_columns(X)
    return model


@pytest.mark.parametrize("cls", [streamsel.PCA, RandomProjection, streamsel.KernelPCA])
def test_targets_are_not_used_as_weights(cls):
    model = cls(2)
    x, X = {"a": 1.0, "b": 2.0, "c": 4.0}, np.ones((3, 3))
    for call in (
        lambda: model.learn_one(x, 3.0),
        lambda: model.learn_one(x, "spam"),
        lambda: model.learn_one(x, None, 3.0),
        lambda: model.learn_many(X, np.ones(3)),
        lambda: model.learn_many(X, pd.Series([1, 2, 3])),
    ):
        with pytest.raises(ValueError, match=r"no target: \w+ learns without one[\s\S]*w=2\.0"):
            call()
    assert model.n_rows == 0
    model.learn_one(x, w=1.0)
    assert model.n_rows == 1
    # A pipeline passes on named arguments.
    pipeline = compose.Pipeline(cls(2), linear_model.LinearRegression())
    pipeline.learn_one(x, 3.0, w=1.0)
    assert pipeline[cls.__name__].n_rows == 1
