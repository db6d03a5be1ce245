"""Learners as scikit-learn estimators: they pass its checks, and equal the learner."""

import ast
import copy
import importlib.util
import inspect
import pickle
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import has_fit_parameter

import streamsel
import streamsel.sklearn
from streamsel import load, registry, save
from streamsel.sklearn._extractors import LinearExtractorEstimator
from tests.conformance.modes import OF_ROWS
from tests.sklearn_checks import FEW, checked, few

NAMES = registry.names()
# Learners that need a second pass for loadings of all columns.
AGAIN = [
    entry.name
    for entry in registry.LEARNERS
    if hasattr(registry.fetch(entry.name), "learn_loadings")
]
# Learners for which weights are equivalent to repeated rows.
WEIGHTED = {
    *("ProjSe", "ForwardSelection", "BackwardElimination", "MRMR", "Lasso", "SelectKBest"),
    *("SOSPCA", "PCA", "PrivateFeatures", "RankedPCA", "SupervisedPCA"),
}
RNG = np.random.default_rng(0)
X = np.abs(RNG.normal(size=(60, 12)) + 3.0)
CLASSES = RNG.integers(3, size=60)
X[:, 3] += CLASSES
X[:, 7] -= CLASSES == 1
Y = X[:, 3] - X[:, 7] + 0.1 * RNG.normal(size=60)


def target(name):
    """Return a suitable target of a learner."""
    return CLASSES if name == "Discriminant" else Y


def plain(name, X, y, names=None, **params):
    """Return the learner itself after the same columns."""
    cls = registry.fetch(name)
    learner = cls(**{key: v for key, v in FEW.items() if key in inspect.signature(cls).parameters})
    learner = learner.clone(params)
    if learner._is_supervised:
        learner.learn_target(y)
    learner.learn_columns(X, names)
    return learner


# ---------------------------------------------------------------------------- scikit-learn's checks


@pytest.mark.parametrize("name", NAMES)
def test_estimator_checks_of_scikit_learn(name):
    found = checked(name)
    skipped = {check["check_name"] for check in found if check["status"] != "passed"}
    assert len(found) > 40
    # This check needs an additional package.
    assert skipped <= {"check_array_api_input"}


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_the_column_parameters_of_the_learner(name):
    renamed = {"score": "score_func"}
    own = inspect.signature(registry.fetch(name)).parameters.values()
    cls = getattr(streamsel.sklearn, name)
    shown = list(inspect.signature(cls).parameters.values())
    expected = [
        (renamed.get(p.name, p.name), p.default, p.kind) for p in own if p.name not in OF_ROWS
    ]
    if name == "Lasso":
        expected.insert(1, ("alpha", None, inspect.Parameter.KEYWORD_ONLY))
    if registry.fetch(name)._supports_groups():
        expected.append(("groups", None, inspect.Parameter.KEYWORD_ONLY))
    assert [(p.name, p.default, p.kind) for p in shown] == expected
    documented, _, attributes = inspect.getdoc(cls).partition("\n\nAttributes\n----------\n")
    listed = _entries(documented.partition("Parameters\n----------\n")[2])
    assert sorted(listed) == sorted(p.name for p in shown)
    assert "learner_" in attributes


def _entries(section):
    """Return the names in a section of a docstring."""
    lines = [line for line in section.split("\n\n")[0].split("\n") if line[:1].strip()]
    return [name.strip() for line in lines for name in line.split(",")]


@pytest.mark.parametrize("name", NAMES)
def test_fit_has_the_arguments_that_the_learner_can_use(name):
    cls = getattr(streamsel.sklearn, name)
    arguments = [*inspect.signature(cls().fit).parameters]
    assert sorted(arguments) == sorted(_entries(inspect.getdoc(cls.fit).split("----------\n")[1]))
    assert arguments[:2] == ["X", "y"]
    assert ("covariates" in arguments) is registry.fetch(name)._is_supervised
    assert has_fit_parameter(cls(), "sample_weight") is (name in WEIGHTED)


def test_stubs_list_every_estimator():
    tree = ast.parse(inspect.getsource(streamsel.sklearn))
    (block,) = (
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    declared = {
        node.target.id: ast.unparse(node.annotation)
        for node in block.body
        if isinstance(node, ast.AnnAssign)
    }
    assert sorted(declared) == sorted(NAMES)
    for name, value in declared.items():
        assert value == f"Callable[..., {getattr(streamsel.sklearn, name).__base__.__name__}]"


def test_names_are_listed_and_unknown_ones_refused():
    assert {*NAMES} < {*dir(streamsel.sklearn)} == {*streamsel.sklearn.__all__}
    with pytest.raises(AttributeError, match="nonesuch"):
        _ = streamsel.sklearn.nonesuch


def test_missing_scikit_learn_is_reported(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    spec = importlib.util.find_spec("streamsel.sklearn")
    with pytest.raises(ImportError, match=r"streamsel\[sklearn\]"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def test_notebooks_show_estimators():
    shown = streamsel.sklearn.ProjSe(7)._repr_html_()
    assert "ProjSe" in shown
    assert "7" in shown
    assert repr(streamsel.sklearn.ProjSe(7, scale=False)) == "ProjSe(k=7, scale=False)"


# ----------------------------------------------------------------- the learner's results


@pytest.mark.parametrize("name", NAMES)
def test_results_equal_those_of_the_learner(name):
    expected = plain(name, X, target(name))
    found = few(name).fit(X, target(name))
    assert found.learner_.relevance == expected.relevance
    if name in registry.names("selector"):
        assert found.learner_.selected == expected.selected
        assert expected.selected
        assert found.get_support(indices=True).tolist() == sorted(expected.selected)
        scores = {j: found.scores_[j] for j in expected.selected}
        assert scores == expected.scores
        known = 12 if name == "SelectKBest" else len(scores)
        assert np.isfinite(found.scores_).sum() == known
        np.testing.assert_array_equal(found.transform(X), X[:, sorted(expected.selected)])
    else:
        np.testing.assert_array_equal(found.relevance_, list(expected.relevance.values()))
        Z = expected.transform_many(X)
        np.testing.assert_allclose(found.transform(X), Z[:, : found.n_components_], atol=1e-12)
        assert found.get_feature_names_out().tolist() == expected.components[: found.n_components_]
        assert found.n_components_ == 2
        assert not Z[:, 2:].any()


@pytest.mark.parametrize(
    "name",
    [n for n in NAMES if issubclass(getattr(streamsel.sklearn, n), LinearExtractorEstimator)],
)
def test_components_are_the_loadings(name):
    found = few(name).fit(X, target(name))
    weights = found.components_
    assert weights.shape == (found.n_components_, X.shape[1])
    Z = found.transform(X)
    np.testing.assert_allclose(Z - Z[0], (X - X[0]) @ weights.T, atol=1e-9)
    shown = found.learner_.loadings
    if name == "RandomProjection":  # its weights are computed from names and not stored
        return
    for j, column in enumerate(weights.T.tolist()):
        assert shown.get(j, {}) == {f"{name.lower()}{k}": w for k, w in enumerate(column) if w}


def test_nonlinear_estimators_have_no_components():
    for name in ("KernelPCA", "LaplacianEigenmaps", "RandomFourier"):
        assert not hasattr(few(name).fit(X), "components_")


@pytest.mark.parametrize("name", NAMES)
def test_containers_do_not_matter(name):
    columns = [f"v{j}" for j in range(X.shape[1])]
    expected = few(name).fit(X, target(name))
    Z = expected.transform(X)
    for values in (np.asfortranarray(X), sparse.csc_array(X), sparse.csr_matrix(X)):
        found = few(name).fit(values, target(name))
        other = found.transform(values)
        if name in registry.names("selector"):
            assert sparse.issparse(other) == sparse.issparse(values)
        other = other.toarray() if sparse.issparse(other) else other
        np.testing.assert_allclose(other, Z, rtol=1e-8, atol=1e-8)
    by_name = few(name).fit(pd.DataFrame(X, columns=columns), target(name))
    for frame, kind in (
        (pd.DataFrame(X, columns=columns), "pandas"),
        (pl.DataFrame(X, columns), "polars"),
    ):
        found = few(name).set_output(transform=kind).fit(frame, pd.Series(target(name)))
        other = found.transform(frame)
        assert type(other) is type(frame)
        assert list(other.columns) == found.get_feature_names_out().tolist()
        assert found.feature_names_in_.tolist() == columns
        np.testing.assert_array_equal(other.to_numpy(), np.asarray(by_name.transform(frame)))
        assert found.learner_.relevance == by_name.learner_.relevance
    if name not in ("RandomProjection", "RandomFourier"):  # their weights depend on the name
        np.testing.assert_allclose(by_name.transform(frame), Z, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_float32_is_preserved(name):
    single = X.astype(np.float32)
    found, expected = (
        few(name).fit(single, target(name)),
        few(name).fit(single.astype(np.float64), target(name)),
    )
    Z = found.transform(single)
    assert Z.dtype == np.float32
    np.testing.assert_allclose(
        Z, expected.transform(single.astype(np.float64)), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("name", AGAIN)
def test_new_rows_use_all_columns(name):
    """New rows are transformed by loadings of all columns, whatever `max_loadings` is."""
    found = few(name).set_params(max_loadings=4).fit(X, target(name))
    assert not found.learner_._wants_second_pass
    Z, expected = found.transform(X), few(name).fit(X, target(name)).transform(X)
    signs = np.sign(np.sum(Z * expected, axis=0))  # signs depend on the largest stored loading
    np.testing.assert_allclose(Z * signs, expected, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(Z, found.learner_.transform_many(X)[:, : Z.shape[1]], atol=1e-12)


@pytest.mark.parametrize("name", ["PCA", "SparsePCA"])
def test_invalid_max_loadings_are_refused(name):
    learner = plain(name, X, target(name))
    for bad in (0, -1, 2.5, "all"):
        with pytest.raises(ValueError, match="Expected max_loadings of learn_loadings"):
            learner.learn_loadings(X, max_loadings=bad)


def test_columns_are_read_in_place():
    values = np.asfortranarray(RNG.normal(size=(50, 40)))
    seen = []

    class Watching(streamsel.sklearn.ProjSe):
        def _take(self, stream, y):
            seen.extend(values for _, values, _ in stream.blocks())
            super()._take(stream, y)

    Watching(2).fit(values, values[:, 0])
    assert all(np.shares_memory(part, values) for part in seen)


# --------------------------------------------------------------------------------------- targets


def test_integers_that_may_be_codes_are_classes():
    found = streamsel.sklearn.ProjSe(2).fit(X, CLASSES)
    labels = np.array(["a", "b", "c"])[CLASSES]
    assert found.learner_.report().target.startswith("3 classes: 0 (")
    assert found.learner_.scores == plain("ProjSe", X, labels).scores
    assert found.target_type == "auto"
    numeric = streamsel.sklearn.ProjSe(2, target_type="numeric").fit(X, CLASSES)
    assert numeric.learner_.scores == plain("ProjSe", X, CLASSES, target_type="numeric").scores
    assert numeric.learner_.scores != found.learner_.scores


def test_integers_are_numeric_if_classes_are_impossible():
    found = streamsel.sklearn.Lasso(2).fit(X, CLASSES)
    assert found.learner_.target_type == "numeric"
    assert found.learner_.scores == plain("Lasso", X, CLASSES, target_type="numeric").scores


def test_several_targets_keep_their_names():
    frame = pd.DataFrame({"one": Y, "two": X[:, 7] + Y**2})
    found = streamsel.sklearn.ProjSe(3).fit(X, frame)
    assert found.learner_.selected == plain("ProjSe", X, frame, k=3).selected
    learner = copy.deepcopy(found.learner_)
    learner.learn_one(dict(enumerate(X[0])), {"one": 0.5, "two": 1.0})
    assert learner.n_rows == len(X) + 1
    array = streamsel.sklearn.ProjSe(3).fit(X, frame.to_numpy())
    assert array.learner_.selected == found.learner_.selected


def test_few_whole_numbers_among_several_targets_are_a_quantity():
    frame = pd.DataFrame({"one": Y, "two": CLASSES})
    found = streamsel.sklearn.ProjSe(3).fit(X, frame)
    assert found.learner_.report().target == "2 numeric columns (one, two)"
    assert found.learner_.scores == plain("ProjSe", X, frame.astype(float), k=3).scores


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_a_frame_of_one_column_is_a_single_target(make):
    """As for scikit-learn: labels for every score, and whole numbers that are classes."""
    for values in (CLASSES, CLASSES.astype(str)):
        frame = make({"y": values.tolist()})
        found = streamsel.sklearn.SelectKBest(3, score_func="rank").fit(X, frame)
        expected = streamsel.sklearn.SelectKBest(3, score_func="rank").fit(X, values)
        assert found.learner_.report().target == expected.learner_.report().target
        assert found.learner_.scores == expected.learner_.scores


def test_without_a_target_variables_explain_each_other():
    found = streamsel.sklearn.ProjSe(3).fit(X)
    assert found.learner_.selected == plain("ProjSe", X, None, k=3).selected
    with pytest.raises(ValueError, match="requires y"):
        streamsel.sklearn.MRMR(3).fit(X)


def test_covariates_are_columns_of_X():
    frame = pd.DataFrame(X).rename(columns=str)
    found = streamsel.sklearn.ProjSe(2, covariates=("3", "0")).fit(frame, Y)
    expected = streamsel.ProjSe(2, covariates=("3", "0"))
    expected.learn_target(Y, covariates=frame[["3", "0"]])
    expected.learn_columns(frame.drop(columns=["3", "0"]))
    assert found.learner_.scores == expected.scores
    assert not found.support_[[0, 3]].any()
    assert found.get_feature_names_out().tolist() == sorted(expected.selected, key=int)
    by_number = streamsel.sklearn.ProjSe(2, covariates=(3, 0))
    for values in (X, sparse.csc_array(X)):
        by_number.fit(values, Y)
        np.testing.assert_array_equal(by_number.support_, found.support_)
    with pytest.raises(ValueError, match="'age'"):
        streamsel.sklearn.ProjSe(2, covariates=("age",)).fit(frame, Y)


def test_parameters_are_checked_by_fit():
    estimator = streamsel.sklearn.ProjSe(0, kernel="cubic")
    assert estimator.set_params(k=-1).k == -1
    with pytest.raises(ValueError, match="Expected k of ProjSe"):
        estimator.fit(X, Y)
    assert not hasattr(estimator, "learner_")


def test_k_above_the_number_of_columns_is_reported():
    with pytest.warns(UserWarning, match="k=20 is greater than the number of features, 12"):
        found = streamsel.sklearn.ProjSe(20).fit(X, Y)
    assert found.transform(X).shape == X.shape


# ------------------------------------------------------------------- with scikit-learn's tools


@pytest.mark.slow
def test_grid_search_in_several_processes():
    pipeline = Pipeline(
        [
            ("scale", StandardScaler()),
            ("select", streamsel.sklearn.ProjSe()),
            ("classify", LogisticRegression()),
        ]
    )
    grid = {"select__k": np.array([1, 2, 4]), "select__scale": [True, False]}
    search = GridSearchCV(pipeline, grid, cv=3, n_jobs=2).fit(X, CLASSES)
    best = search.best_estimator_["select"]
    assert best.transform(X).shape[1] == search.best_params_["select__k"]
    assert search.best_score_ > 0.5
    again = pickle.loads(pickle.dumps(search))  # noqa: S301
    np.testing.assert_array_equal(again.predict(X), search.predict(X))


def test_every_fold_selects_its_own_features():
    noise = RNG.normal(size=(60, 2000))
    chance = cross_val_score(
        make_pipeline(streamsel.sklearn.ProjSe(5), LinearRegression()),
        noise,
        RNG.normal(size=60),
        cv=5,
    )
    assert chance.mean() < 0.0


def test_feature_unions_and_column_transformers():
    frame = pd.DataFrame(X).rename(columns=lambda j: f"v{j}")
    union = FeatureUnion([("pick", few("ProjSe")), ("build", few("PCA"))]).set_output(
        transform="pandas"
    )
    both = union.fit_transform(frame, Y)
    assert list(both.columns) == ["pick__v3", "pick__v7", "build__pca0", "build__pca1"]
    parts = ColumnTransformer(
        [
            ("left", few("SOSPCA"), [f"v{j}" for j in range(6)]),
            ("right", few("MRMR"), ["v7", "v8", "v9"]),
        ]
    ).fit(frame, Y)
    assert parts.transform(frame).shape == (60, 4)
    assert parts.get_feature_names_out().tolist()[0] == "left__sospca0"


def test_inverse_transform_fills_zeros():
    found = few("ProjSe").fit(X, Y)
    back = found.inverse_transform(found.transform(X))
    np.testing.assert_array_equal(back[:, found.support_], X[:, found.support_])
    assert not back[:, ~found.support_].any()


def test_clones_are_unfitted():
    found = streamsel.sklearn.SelectKBest(3, score_func="mutual_info").fit(X, Y)
    fresh = clone(found)
    assert fresh.get_params() == found.get_params()
    assert not hasattr(fresh, "learner_")
    assert found.learner_.score == "mutual_info"


# ----------------------------------------------------------------------- to River, and to files


def test_the_learner_continues_in_river(tmp_path):
    frame = pd.DataFrame(X).rename(columns=lambda j: f"v{j}")
    found = few("ProjSe").fit(frame[:40], Y[:40])
    save(found.learner_, tmp_path / "model")
    learner = load(tmp_path / "model")
    for x, y in zip(frame[40:].to_dict("records"), Y[40:], strict=True):
        learner.learn_one(x, y)
    expected = plain("ProjSe", frame, Y)
    assert learner.selected == expected.selected
    assert learner.relevance == pytest.approx(expected.relevance)
    assert found.learner_.n_rows == 40


@pytest.mark.parametrize("name", AGAIN)
def test_all_loadings_are_saved(name, tmp_path):
    found = few(name).set_params(max_loadings=4).fit(X, target(name))
    save(found.learner_, tmp_path / "model")
    np.testing.assert_array_equal(
        load(tmp_path / "model").transform_many(X), found.learner_.transform_many(X)
    )


def test_an_estimator_is_not_saved_but_its_learner(tmp_path):
    found = few("ProjSe").fit(X, Y)
    with pytest.raises(TypeError, match=r"save\(model\.learner_, path\)"):
        save(found, tmp_path / "model")
    with pytest.raises(TypeError, match=r"save\(model\['projse'\]\.learner_, path\)"):
        save(make_pipeline(StandardScaler(), found), tmp_path / "model")
    with pytest.raises(TypeError) as refused:
        save(few("ProjSe"), tmp_path / "model")
    assert "Hint" not in str(refused.value)
    again = pickle.loads(pickle.dumps(found))  # noqa: S301
    np.testing.assert_array_equal(again.transform(X), found.transform(X))
    assert again.learner_.scores == found.learner_.scores
    assert not list(tmp_path.iterdir())


def test_estimators_do_not_warn_on_ordinary_data():
    """Estimators do not warn on ordinary data."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        few("ProjSe").fit(X, CLASSES).transform(X)


@pytest.mark.parametrize("name", ["SelectKBest", "ProjSe", "ForwardSelection", "Lasso"])
def test_groups_of_features_are_selected_as_one(name):
    rng = np.random.default_rng(0)
    X, order = rng.normal(size=(80, 12)), rng.permutation(12)
    y = X[:, 3] + X[:, 4] + rng.normal(size=80)
    labels = np.repeat(["a", "b", "c", None], 3)
    made = getattr(streamsel.sklearn, name)(1, groups=labels[order]).fit(X[:, order], y)
    assert sorted(order[made.get_support()]) == [3, 4, 5]
    mapping = {f"x{j}": label for j, label in enumerate(labels)}
    frame = pd.DataFrame(X, columns=list(mapping))
    same = clone(getattr(streamsel.sklearn, name)(1, groups=mapping)).fit(frame, y)
    assert list(same.get_feature_names_out()) == ["x3", "x4", "x5"]
    np.testing.assert_allclose(same.scores_[3:6], same.learner_.scores["b"])
    if name == "Lasso":
        fit = same.intercept_ + X @ same.coef_
        np.testing.assert_allclose(same.predict(frame), fit)
        assert np.flatnonzero(same.coef_).tolist() == [3, 4, 5]
    for wrong, message in ((labels[:5], "each of 12"), ({"x1": ["a"]}, "one group")):
        with pytest.raises(ValueError, match=message):
            getattr(streamsel.sklearn, name)(1, groups=wrong).fit(frame, y)
