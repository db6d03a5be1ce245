"""Inputs and attributes of the estimators beyond X and y: weights, covariates, AnnData, scores."""

import pickle

import anndata
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.feature_selection import f_classif, f_regression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import streamsel
import streamsel.sklearn
from streamsel import registry
from streamsel.sklearn import PCA, PLS, ForwardSelection, Lasso, ProjSe, SelectKBest
from tests.conformance.modes import OF_ROWS
from tests.sklearn_checks import few

RNG = np.random.default_rng(0)
N, P = 60, 12
X = np.abs(RNG.normal(size=(N, P)) + 3.0)
Y = X[:, 3] - X[:, 7] + 0.1 * RNG.normal(size=N)
CLASSES = np.searchsorted(np.quantile(Y, [0.3, 0.7]), Y)
AGE, BATCH = RNG.normal(size=N), np.array([*"aab"])[RNG.integers(3, size=N)]
NAMES = registry.names()


def test_a_stream_of_columns_is_refused():
    selector = ForwardSelection(3)
    with pytest.raises(TypeError, match=r"Got: \w*Stream\.\nHint: pass the data themselves"):
        selector.fit(streamsel.stream.iter_array(X), Y)
    with pytest.raises(TypeError, match="Hint: pass the data themselves"):
        PCA(2).fit(X).transform(streamsel.stream.iter_array(X))


@pytest.mark.parametrize("estimator", [ForwardSelection(3), PCA(2)])
def test_a_table_of_pyarrow_is_a_frame(estimator):
    frame = pd.DataFrame(X, columns=[f"v{j}" for j in range(P)])
    table = pa.Table.from_pandas(frame)
    expected, found = clone(estimator).fit(frame, Y), clone(estimator).fit(table, Y)
    np.testing.assert_array_equal(found.feature_names_in_, expected.feature_names_in_)
    np.testing.assert_array_equal(found.transform(table), expected.transform(frame))
    np.testing.assert_array_equal(found.get_feature_names_out(), expected.get_feature_names_out())


# ------------------------------------------------------------------------------- scores of all


@pytest.mark.parametrize("load", [load_breast_cancer, load_diabetes])
def test_scores_and_p_values_equal_scikit_learn(load):
    X, y = load(return_X_y=True)
    X = np.c_[X, np.full(len(X), 7.0)]  # scikit-learn warns of this column, and returns NaN
    ours = SelectKBest(4).fit(X, y)
    F, p = (f_classif if load is load_breast_cancer else f_regression)(X[:, :-1], y)
    np.testing.assert_allclose(ours.scores_[:-1], F, rtol=1e-8)
    np.testing.assert_allclose(ours.pvalues_[:-1], p, rtol=1e-6)
    assert np.isnan(ours.scores_[-1])
    assert np.isnan(ours.pvalues_[-1])
    np.testing.assert_array_equal(
        ours.get_support(indices=True), np.sort(np.argsort(-F, kind="stable")[:4])
    )
    best = ours.learner_.selected
    assert [ours.scores_[j] for j in best] == [*ours.learner_.scores.values()]
    assert [ours.pvalues_[j] for j in best] == [*ours.learner_.p_values.values()]


@pytest.mark.parametrize("score", ["correlation", "f", "t", "mutual_info"])
def test_scores_are_those_of_the_features_whatever_their_names(score):
    frame = pd.DataFrame(X).rename(columns=lambda j: f"v{j}")
    plain = SelectKBest(3, score_func=score).fit(X, Y)
    named = SelectKBest(3, score_func=score).fit(frame, Y)
    np.testing.assert_array_equal(plain.scores_, named.scores_)
    np.testing.assert_array_equal(plain.pvalues_, named.pvalues_)
    assert plain.scores_.argmax() in (3, 7) or score == "mutual_info"
    # Equal mutual information may differ by rounding.
    order = np.argsort(-plain.scores_.round(12), kind="stable").tolist()
    assert SelectKBest("all", score_func=score).fit(X, Y).learner_.selected == order


def test_missing_scores_are_explained():
    pooled = SelectKBest(2, max_candidates=3).fit(X, Y)
    assert not hasattr(pooled, "scores_")
    for name in ("scores_", "pvalues_"):
        with pytest.raises(
            AttributeError, match=rf"'{name}'. Got: a pool with max_candidates=3(?s:.)*Hint"
        ):
            getattr(pooled, name)
    whole = SelectKBest(2, max_candidates=P).fit(X, Y)  # no column was discarded
    np.testing.assert_array_equal(whole.scores_, SelectKBest(2).fit(X, Y).scores_)
    margin = SelectKBest(2, score_func="margin").fit(X, CLASSES)
    assert margin.scores_.shape == (P,)
    with pytest.raises(AttributeError, match=r"'pvalues_'. Got: score_func='margin'(?s:.)*Hint"):
        _ = margin.pvalues_


def test_a_search_over_k_and_all():
    pipeline = make_pipeline(StandardScaler(), SelectKBest(), Lasso(alpha=0.01))
    search = GridSearchCV(pipeline, {"selectkbest__k": [1, np.int64(4), "all"]}, cv=3).fit(X, Y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert SelectKBest("all").fit_transform(X, Y).shape == X.shape
    assert {3, 7} <= {*SelectKBest(fdr=0.05).fit(X, Y).get_support(indices=True)} < {*range(P)}


# ------------------------------------------------------------------------------------- weights


@pytest.mark.parametrize("name", ["ProjSe", "MRMR", "PCA", "SOSPCA", "SelectKBest"])
def test_weights_are_those_of_the_learner(name):
    weights = RNG.integers(0, 4, size=N)
    found = few(name).fit(X, Y, sample_weight=pd.Series(weights))
    learner = registry.fetch(name)
    learner = learner(2)
    learner.learn_target(Y if learner._is_supervised else None, weights=weights)
    learner.learn_columns(X)
    assert found.learner_.relevance == learner.relevance
    repeated = few(name).fit(np.repeat(X, weights, axis=0), np.repeat(Y, weights))
    np.testing.assert_allclose(found.transform(X), repeated.transform(X), atol=1e-8)


@pytest.mark.parametrize("y", [pd.Series([*"ab"] * 29 + [None] * 2), np.append(Y[:-1], np.nan)])
def test_rows_without_a_target(y):
    with pytest.raises(ValueError, match=r"\nHint: with rows = pandas\.notna\(y\), fit\(X\[rows\]"):
        ForwardSelection(k=2).fit(X, y)


def test_weights_of_another_length():
    for estimator in (PCA(2), ProjSe(2)):
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            estimator.fit(X, Y, sample_weight=np.ones(N - 1))


# ---------------------------------------------------------------------------------- covariates


@pytest.mark.parametrize("name", [name for name in NAMES if registry.fetch(name)._is_supervised])
def test_covariates_of_fit_are_those_of_the_learner(name):
    y = CLASSES if name == "Discriminant" else Y
    frame = pd.DataFrame({"age": AGE, "batch": BATCH})
    found = few(name).fit(X, y, covariates=frame)
    learner = found.learner_.clone()
    # Learners by windows of rows do not support covariates on rows.
    assert learner.covariates == (None if learner._by_window else ("age", "batch"))
    learner.learn_target(y, frame)
    learner.learn_columns(X)
    assert found.learner_.relevance == learner.relevance
    if name in registry.names("extractor"):
        return
    arrays = few(name).fit(X, y, covariates=np.c_[AGE, BATCH == "b"])
    assert arrays.learner_.selected == found.learner_.selected
    assert arrays.learner_.covariates is None


def test_covariates_change_what_is_selected():
    y = 5.0 * AGE + 0.3 * X[:, 1] + 0.05 * RNG.normal(size=N)
    data = X + 0.0
    data[:, 9] += AGE
    assert SelectKBest(1).fit(data, y).get_support(indices=True).tolist() == [9]
    found = SelectKBest(1).fit(data, y, covariates=AGE)
    assert found.get_support(indices=True).tolist() == [1]
    among = SelectKBest(1, covariates=[12]).fit(np.c_[data, AGE], y)
    assert among.get_support(indices=True).tolist() == [1]
    np.testing.assert_allclose(among.scores_[:12], found.scores_)
    assert np.isnan(among.scores_[12])
    with pytest.raises(
        ValueError, match=r"Expected covariates in fit, or as the parameter(?s:.)*Hint"
    ):
        SelectKBest(1, covariates=[3]).fit(data, y, covariates=AGE)


def test_covariates_and_weights_are_split_with_folds():
    weights = RNG.integers(1, 4, size=N)
    search = GridSearchCV(Lasso(), {"k": [1, 2]}, cv=3).fit(X, Y, sample_weight=weights)
    assert search.best_estimator_.learner_._target.row_transform is not None
    pipeline = make_pipeline(StandardScaler(), ProjSe(2)).fit(X, Y, projse__covariates=AGE)
    assert pipeline[-1].learner_._target.is_covariate.sum() == 1
    with sklearn.config_context(enable_metadata_routing=True):
        routed = make_pipeline(
            ProjSe(2).set_fit_request(covariates=True, sample_weight=True),
            Lasso(alpha=0.01).set_fit_request(covariates=False, sample_weight=True),
        )
        scores = cross_val_score(routed, X, Y, cv=3, params={"covariates": AGE})
        routed.fit(X, Y, covariates=AGE, sample_weight=weights)
    assert all(step.learner_._target.row_transform is not None for step in (routed[0], routed[1]))
    assert scores.min() > 0.8


# ------------------------------------------------------------------------------------ to River


@pytest.mark.parametrize("name", NAMES)
def test_row_parameters_are_set_for_river(name):
    y = CLASSES if name == "Discriminant" else Y
    found = few(name).fit(X, y)
    before = pickle.dumps(found.learner_)
    allowed = OF_ROWS & found.learner_._get_params().keys()
    asked = {"refresh_factor": 1.5, "warm_up": 7, "max_features": 50, "window_size": 30}
    asked = {key: value for key, value in asked.items() if key in allowed}
    model, plain = found.to_river(**asked), found.to_river()
    for key, value in asked.items():
        assert getattr(model, key) == value
        assert not hasattr(found, key)
    assert plain._get_params() == found.learner_._get_params()
    assert model.relevance == plain.relevance == found.learner_.relevance
    for i in range(35):
        for one in (model, plain):
            x = dict(enumerate(X[i].tolist()))
            target = () if not one._is_supervised else (int(y[i]) if y is CLASSES else float(y[i]),)
            one.learn_one(x, *target)
    assert model.n_rows == plain.n_rows == N + 35
    assert pickle.dumps(found.learner_) == before
    with pytest.raises(TypeError, match=r"Expected row parameters(?s:.)*n_jobs(?s:.)*Hint"):
        found.to_river(n_jobs=2)


def test_fading_factor_applies_in_river():
    found = ProjSe(2).fit(X, Y)
    fading, steady = found.to_river(fading_factor=0.1), found.to_river()
    direct = streamsel.ProjSe(2, fading_factor=0.1)
    direct.learn_target(Y)
    direct.learn_columns(X)
    for x in X:
        row = dict(enumerate(x.tolist()))
        for model in (fading, steady, direct):
            model.learn_one(row, row[0])
    assert fading.selected[0] == 0
    assert fading.relevance == direct.relevance
    assert fading.relevance != steady.relevance
    with pytest.raises(ValueError, match="Expected fading_factor of ProjSe"):
        found.to_river(fading_factor=2.0)
    with pytest.raises(TypeError, match="fading_factor"):
        ProjSe(2, fading_factor=0.1)


def test_missing_values_of_new_rows_are_imputed():
    imputing = ProjSe(2).fit(X, Y).to_river(missing="mean")
    row = imputing.transform_one(dict.fromkeys(range(X.shape[1])))
    assert row == pytest.approx({j: X[:, j].mean() for j in imputing.selected})
    with pytest.raises(TypeError, match="missing"):
        ProjSe(2, missing="mean")


@pytest.mark.parametrize("name", ["ProjSe", "PCA"])
def test_the_hint_for_a_missing_value_is_about_scikit_learn(name):
    gaps = X.copy()
    gaps[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"in column 1\.(?s:.)*SimpleImputer") as refused:
        few(name).fit(gaps, Y)
    assert "stream.clean" not in str(refused.value)


def test_more_variables_than_the_default_bound_on_rows():
    """By default the column phase allows any k, and rows are bounded only once they start."""
    data = RNG.normal(size=(20, 1100))
    found = ForwardSelection(1000).fit(data, data[:, :5].sum(axis=1))
    assert found.to_river().max_features is None


# ------------------------------------------------------------------------------------- AnnData


@pytest.fixture(name="adata", params=["dense", "csr", "backed"])
def annotated(request, tmp_path):
    values = X.astype(np.float32)
    values = sparse.csr_matrix(values) if request.param == "csr" else values
    obs = pd.DataFrame(
        {"response": Y, "kind": np.array([*"abc"])[CLASSES], "age": AGE},
        index=[f"cell{i}" for i in range(N)],
    )
    var = pd.DataFrame(index=[f"gene{j}" for j in range(P)])
    data = anndata.AnnData(values, obs=obs, var=var)
    if request.param == "backed":
        data.write_h5ad(tmp_path / "cells.h5ad")
        data = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    return data


@pytest.mark.parametrize(
    "estimator", [ProjSe(3), SelectKBest(3), Lasso(3), PLS(2), PCA(2)], ids=repr
)
def test_anndata_equals_the_frame_of_its_matrix(adata, estimator):
    frame = pd.DataFrame(X.astype(np.float32), columns=adata.var_names)
    expected = clone(estimator).fit(frame, Y)
    found = clone(estimator).fit(adata, "response")
    assert found.feature_names_in_.tolist() == adata.var_names.tolist()
    assert found.n_features_in_ == P
    Z = found.transform(adata)
    Z = Z.toarray() if sparse.issparse(Z) else Z
    assert Z.dtype == np.float32 or adata.isbacked
    np.testing.assert_allclose(Z, np.asarray(expected.transform(frame)), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(clone(estimator).fit(adata, Y).transform(frame), Z, atol=1e-5)
    assert found.get_feature_names_out().tolist() == expected.get_feature_names_out().tolist()
    if hasattr(found, "predict"):
        np.testing.assert_allclose(found.predict(adata), expected.predict(frame), rtol=1e-5)
    if not sparse.issparse(found.transform(adata)):
        shown = found.set_output(transform="pandas").transform(adata)
        assert shown.columns.tolist() == found.get_feature_names_out().tolist()
        np.testing.assert_allclose(shown, Z, atol=1e-6)


def test_y_may_be_a_column_of_obs(adata):
    found = Lasso(3).fit(adata, "response", covariates=adata.obs[["age"]])
    assert found.learner_.covariates == ("age",)
    classes = SelectKBest(2, target_type="class").fit(adata, "kind")
    np.testing.assert_array_equal(
        classes.support_, SelectKBest(2).fit(X.astype(np.float32), CLASSES).support_
    )
    with pytest.raises(
        ValueError, match=r"column of obs as y. Got: 'respons'(?s:.)*Hint: response"
    ):
        ProjSe(2).fit(adata, "respons")
    with pytest.raises(ValueError, match=r"Expected an array of targets(?s:.)*AnnData"):
        ProjSe(2).fit(X, "response")


def test_other_variables_are_refused(adata):
    found = PCA(2).fit(adata)
    expected = found.transform(adata)
    other = adata.to_memory()[:, ::-1]
    for bad in (other, other[:, 2:]):
        with pytest.raises(ValueError, match=r"variables of fit, in the same order(?s:.)*Hint"):
            found.transform(bad)
    again = other.copy()[:, found.feature_names_in_]
    np.testing.assert_allclose(found.transform(again), expected, atol=1e-6)
