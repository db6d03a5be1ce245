"""Estimators that predict, and PCA, against scikit-learn's estimators of the same names."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import cross_decomposition, decomposition, linear_model
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from streamsel.sklearn import PCA, PLS, Lasso, SelectKBest
from tests.seed import some
from tests.test_lasso import sklearn_before_1_8

RNG = np.random.default_rng(0)
N, P = 60, 40
X = RNG.normal(size=(N, P)) + 3.0
Y = X[:, :3] @ [1.0, -2.0, 0.5] + 0.3 * RNG.normal(size=N)
LABELS = np.where(np.median(Y) < Y, "well", "ill")
THREE = np.array(["a", "b", "c"])[np.searchsorted(np.quantile(Y, [0.3, 0.6]), Y)]
AGE = RNG.normal(size=N)

# The logistic loss takes no weights; all other checks must pass.
WITHOUT_WEIGHTS = {
    f"check_{name}": "the logistic loss takes no weights"
    for name in (
        "all_zero_sample_weights_error",
        "classifiers_one_label_sample_weights",
        "sample_weight_equivalence_on_dense_data",
        "sample_weight_equivalence_on_sparse_data",
        "sample_weights_list",
        "sample_weights_not_an_array",
        "sample_weights_not_overwritten",
        "sample_weights_pandas_series",
        "sample_weights_shape",
    )
}


@pytest.mark.filterwarnings("ignore:No features were selected")
@pytest.mark.parametrize(
    ("estimator", "failing"),
    some(
        [
            (Lasso(alpha=0.1), {}),
            (Lasso(alphas=[0.3, 0.1]), {}),
            (Lasso(k=2, family="logistic"), WITHOUT_WEIGHTS),
            (PLS(2, target_type="class"), {}),
            (PLS(2, target_type="numeric"), {}),
            (PCA(0.8), {}),
            (SelectKBest("all"), {}),
            (SelectKBest(2, max_candidates=2), {}),
        ],
        4,
        "other parameters",
    ),
    ids=repr,
)
def test_estimator_checks_with_other_parameters(estimator, failing):
    check_estimator(estimator, expected_failed_checks=failing, on_skip=None)


# ------------------------------------------------------------------------------------------ Lasso


@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.5, 100.0])
@pytest.mark.parametrize("weights", [None, RNG.integers(0, 4, size=N).astype(float)])
def test_lasso_equals_scikit_learn(alpha, weights):
    ours = Lasso(alpha=alpha, scale=False).fit(X, Y, sample_weight=weights)
    theirs = linear_model.Lasso(alpha=alpha, tol=1e-12, max_iter=10**6)
    theirs.fit(X, Y, sample_weight=weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-7)
    assert ours.coef_.shape == theirs.coef_.shape
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-6)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-6)
    assert ours.score(X, Y) == pytest.approx(theirs.score(X, Y))
    assert ours.score(X, Y, weights) == pytest.approx(theirs.score(X, Y, weights))
    np.testing.assert_array_equal(ours.support_, np.abs(theirs.coef_) > 1e-9)
    assert ours.alpha_ == alpha


def test_lasso_on_real_data():
    X, y = load_diabetes(return_X_y=True)
    ours = Lasso(alphas=np.logspace(-1, 1, 5), scale=False, l1_ratio=0.9).fit(X, y)
    theirs = linear_model.ElasticNet(alpha=0.1, l1_ratio=0.9, tol=1e-12, max_iter=10**6).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-8)
    sparsely = clone(ours).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(sparsely.predict(sparse.csc_array(X)), ours.predict(X), rtol=1e-8)


def test_elastic_logistic_lasso_equals_scikit_learn():
    alpha = 0.05
    ours = Lasso(alpha=alpha, family="logistic", scale=False).fit(X, LABELS)
    # Since version 1.8 the penalty follows from l1_ratio and must not be passed.
    named = {"penalty": "elasticnet"} if sklearn_before_1_8() else {}
    theirs = linear_model.LogisticRegression(
        C=1.0 / (alpha * N), l1_ratio=1.0, solver="saga", tol=1e-9, max_iter=10**6, **named
    ).fit(X, LABELS)
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3)
    assert (ours.coef_.shape, ours.intercept_.shape) == ((1, P), (1,))
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.score(X, LABELS) == pytest.approx(theirs.score(X, LABELS))


def test_labels_of_any_kind_and_order():
    expected = Lasso(3, family="logistic").fit(X, LABELS).decision_function(X)
    for labels in (LABELS == "well", (LABELS == "well") * 1, np.where(LABELS == "well", 7.0, -7.0)):
        found = Lasso(3, family="logistic").fit(X, labels)
        np.testing.assert_allclose(found.decision_function(X), expected, atol=1e-9)
        np.testing.assert_array_equal(
            found.predict(X), np.where(expected > 0, labels.max(), labels.min())
        )
        flipped = Lasso(3, family="logistic").fit(X[::-1], labels[::-1])
        np.testing.assert_allclose(flipped.decision_function(X), expected, atol=1e-7)


def test_lasso_has_estimator_tags():
    assert is_regressor(Lasso())
    assert is_classifier(Lasso(family="logistic"))
    assert not hasattr(Lasso().fit(X, Y), "predict_proba")
    assert not hasattr(Lasso().fit(X, Y), "classes_")
    with pytest.raises(ValueError, match="alpha or alphas, not both"):
        Lasso(alpha=0.1, alphas=[0.2]).fit(X, Y)
    with pytest.raises(ValueError, match="Expected k or alphas, not both"):
        Lasso(3, alpha=0.1).fit(X, Y)
    with pytest.raises(ValueError, match=r"expected two classes\. Got: 3"):
        Lasso(family="logistic").fit(X, THREE)
    with pytest.raises(ValueError, match=r"Expected no weights: Lasso(?s:.)*Hint"):
        Lasso(family="logistic").fit(X, LABELS, sample_weight=np.arange(N))


def test_lasso_of_constant_columns_predicts_the_mean():
    constant = np.ones((N, 3))
    found = Lasso().fit(constant, Y)
    np.testing.assert_allclose(found.predict(constant), Y.mean())
    assert not found.coef_.any()
    labels = np.arange(N) % 3 == 0
    logistic = Lasso(family="logistic").fit(constant, labels)
    np.testing.assert_allclose(logistic.predict_proba(constant)[:, 1], labels.mean())


@pytest.mark.parametrize(
    "grid",
    [
        {"alpha": np.logspace(-3, 0, 4)},
        {"alphas": [np.logspace(-1, 0, 3), [0.1, 0.05], 0.3, (0.2,)]},
        {"k": [1, 3, "all"], "n_alphas": np.array([5, 10])},
        {"scale": np.array([True, False]), "l1_ratio": [0.5, 1.0]},
    ],
    ids=lambda grid: next(iter(grid)),
)
def test_lasso_ends_a_pipeline_in_a_search(grid):
    pipeline = make_pipeline(StandardScaler(), Lasso())
    names = {f"lasso__{name}": values for name, values in grid.items()}
    search = GridSearchCV(pipeline, names, cv=3).fit(X, Y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_score_ > 0.5
    assert search.predict(X).shape == (N,)


def test_parameters_are_not_modified():
    """Estimators store parameters as the objects passed, as `clone` and `set_params` require."""
    alphas, names = np.logspace(-3, 0, 10), ["a", "b"]
    estimator = Lasso(alphas=alphas, covariates=names)
    assert estimator.get_params()["alphas"] is alphas
    assert estimator.set_params(**estimator.get_params()).alphas is alphas
    again = clone(estimator)
    np.testing.assert_array_equal(again.alphas, alphas)
    assert again.covariates == names
    assert "alphas=array([" in repr(estimator)
    frame = pd.DataFrame(X[:, :5], columns=list("abcde"))
    estimator.fit(frame, Y)
    assert estimator.alphas is alphas
    assert estimator.learner_.alphas == tuple(alphas.tolist())
    assert estimator.learner_.covariates == ("a", "b")


# ------------------------------------------------------------------------------------------- PLS


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("y", [Y, Y[:, None], np.c_[Y, X[:, 7] + 0.1 * Y]], ids=["1", "n1", "2"])
def test_pls_equals_scikit_learn(scale, y):
    ours = PLS(3, scale=scale).fit(X, y)
    theirs = cross_decomposition.PLSRegression(3, scale=scale, tol=1e-14, max_iter=10**5).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-10)
    np.testing.assert_allclose(ours.predict(X[:9]), theirs.predict(X[:9]), rtol=1e-6)
    assert ours.predict(X).shape == theirs.predict(X).shape == y.shape
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y))
    Z = ours.transform(X)
    np.testing.assert_allclose((X - ours.mean_) @ ours.components_.T, Z, atol=1e-9)
    # With several targets scikit-learn iterates, and stops slightly before convergence.
    np.testing.assert_allclose(np.abs(Z), np.abs(theirs.transform(X)), rtol=1e-6, atol=1e-6)
    predicted = (X - ours.mean_) @ ours.coef_.T + ours.intercept_
    np.testing.assert_allclose(predicted.reshape(y.shape), ours.predict(X), atol=1e-9)


def test_pls_on_real_data_with_bounded_loadings():
    X, y = load_digits(return_X_y=True)
    ours = PLS(5, target_type="numeric", max_loadings=10).fit(X, y)
    theirs = cross_decomposition.PLSRegression(5).fit(X, y.astype(float))
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-7)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-6)
    np.testing.assert_allclose(ours.mean_, X.mean(axis=0), atol=1e-12)


@pytest.mark.parametrize("target", ["class", "auto"])
@pytest.mark.parametrize("labels", [THREE, LABELS, np.searchsorted([*"abc"], THREE)])
def test_pls_predicts_the_class_of_the_largest_indicator(target, labels):
    if target == "auto" and labels.dtype.kind == "U":
        target = "class"
    found = PLS(3, target_type=target).fit(X, labels)
    classes = np.unique(labels)
    indicators = (labels[:, None] == classes) * 1.0
    # The core does not scale indicator columns; scikit-learn does.
    theirs = linear_model.LinearRegression().fit(found.transform(X), indicators)
    best = classes[theirs.predict(found.transform(X)).argmax(axis=1)]
    np.testing.assert_array_equal(found.classes_, classes)
    np.testing.assert_array_equal(found.predict(X), best)
    assert found.score(X, labels) == np.mean(best == labels) > 0.8
    assert found.coef_.shape == (classes.size, P)


def test_pls_has_estimator_tags():
    assert is_regressor(PLS(target_type="numeric"))
    assert is_classifier(PLS(target_type="class"))
    assert not hasattr(PLS(2).fit(X, Y), "classes_")
    scaled = make_pipeline(StandardScaler(), PLS(2, target_type="class"))
    cancer, kinds = load_breast_cancer(return_X_y=True)
    assert cross_val_score(scaled, cancer, kinds, cv=3).min() > 0.9


# ------------------------------------------------------------------------- covariates are predicted


@pytest.mark.parametrize("make", [lambda **c: Lasso(alpha=1e-4, **c), lambda **c: PLS(P, **c)])
@pytest.mark.parametrize("weights", [None, RNG.integers(1, 4, size=N)])
def test_covariates_among_the_features_have_coefficients(make, weights):
    """Covariates among the features have coefficients, those of least squares without a penalty."""
    few = X[:, :6]
    both = np.c_[few[:, :2], AGE, few[:, 2:]]
    y = Y + 2.0 * AGE
    found = make(covariates=[2])
    if weights is None:
        found.fit(both, y)
    elif isinstance(found, PLS):
        with pytest.raises(TypeError, match="sample_weight"):
            found.fit(both, y, sample_weight=weights)
        return
    else:
        found.fit(both, y, sample_weight=weights)
    theirs = linear_model.LinearRegression().fit(both, y, sample_weight=weights)
    np.testing.assert_allclose(found.coef_.ravel(), theirs.coef_, atol=5e-4)
    np.testing.assert_allclose(found.predict(both), theirs.predict(both), atol=2e-3)


@pytest.mark.parametrize("estimator", [Lasso(4), PLS(2)], ids=repr)
def test_without_covariates_in_X_nothing_is_predicted(estimator):
    estimator.fit(X, Y, covariates=AGE)
    with pytest.raises(ValueError, match="covariates among the features of X"):
        estimator.predict(X)
    assert estimator.transform(X).shape[0] == N
    estimator.fit(X, Y).predict(X)


# -------------------------------------------------------------------------------------------- PCA


@pytest.mark.parametrize("asked", [3, 0.5, 0.95, P])
@pytest.mark.parametrize("shape", [(N, P), (30, 80)])
def test_pca_equals_scikit_learn(asked, shape):
    data = RNG.normal(size=shape) @ RNG.normal(size=(shape[1], shape[1])) + 5.0
    data[:, 4] = 2.0  # constant: reconstructed from its mean
    if asked == P and shape[0] < P:
        asked = shape[0] - 1
    ours, theirs = PCA(asked).fit(data), decomposition.PCA(asked, svd_solver="full").fit(data)
    q = ours.n_components_
    assert q == min(theirs.n_components_, P - 1)
    np.testing.assert_allclose(ours.components_, theirs.components_[:q], atol=1e-8)
    np.testing.assert_allclose(ours.explained_variance_, theirs.explained_variance_[:q], rtol=1e-8)
    np.testing.assert_allclose(
        ours.explained_variance_ratio_, theirs.explained_variance_ratio_[:q], rtol=1e-8
    )
    np.testing.assert_allclose(ours.mean_, theirs.mean_, rtol=1e-12)
    Z = ours.transform(data)
    np.testing.assert_allclose(Z, theirs.transform(data)[:, :q], atol=1e-7)
    np.testing.assert_allclose(
        ours.inverse_transform(Z), theirs.inverse_transform(theirs.transform(data)), atol=1e-7
    )


def test_pca_returns_standardised_features_to_their_units():
    data, _ = load_breast_cancer(return_X_y=True)
    scaler = StandardScaler().fit(data)
    ours, theirs = PCA(4, scale=True).fit(data), decomposition.PCA(4).fit(scaler.transform(data))
    back = ours.inverse_transform(ours.transform(data))
    expected = scaler.inverse_transform(
        theirs.inverse_transform(theirs.transform(scaler.transform(data)))
    )
    np.testing.assert_allclose(back, expected, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(
        ours.transform(data), (data - ours.mean_) @ ours.components_.T, atol=1e-9
    )


def test_weights_of_pca_equal_repeated_rows():
    weights = RNG.integers(0, 4, size=N)
    ours = PCA(3).fit(X, sample_weight=weights)
    theirs = decomposition.PCA(3).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(ours.components_, theirs.components_, atol=1e-8)
    np.testing.assert_allclose(ours.mean_, theirs.mean_, rtol=1e-12)
    np.testing.assert_allclose(
        ours.explained_variance_ratio_, theirs.explained_variance_ratio_, rtol=1e-9
    )


def test_only_components_have_inverse_transforms():
    found = PCA(3).fit(X.astype(np.float32))
    assert found.inverse_transform(found.transform(X.astype(np.float32))).dtype == np.float32
    with pytest.raises(ValueError, match=r"Expected 3 components. Got: 40(?s:.)*Hint"):
        found.inverse_transform(X)
