"""PLS, Discriminant and related methods: agreement with scikit-learn, and limiting cases."""

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import subspace_angles
from sklearn.cross_decomposition import PLSRegression
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import SelectKBest, f_regression

from streamsel import PCA, PLS, Discriminant, PrivateFeatures, RankedPCA, SupervisedPCA
from streamsel.extraction.private_features import (
    SensitiveAttribute,
    _centred_cross_gram,
    _subset_gram,
    private_duals,
)

EXACT = {"rtol": 0.0, "atol": 1e-9}
TALL, WIDE = (60, 12), (40, 150)


def columns(shape, seed=0):
    """Return correlated columns of different scales, one of them constant."""
    rng = np.random.default_rng(seed)
    n, p = shape
    X = rng.normal(size=(n, p)) + rng.normal(size=(n, 3)) @ rng.normal(size=(3, p))
    X *= rng.uniform(0.5, 5.0, size=p)
    X += 100.0
    X[:, 3] = 7.0
    return X


def numbers(X, c=1, seed=1):
    rng = np.random.default_rng(seed)
    Y = X[:, :3] @ rng.normal(size=(3, c)) + rng.normal(size=(len(X), c)) * np.arange(1, c + 1)
    return Y[:, 0] if c == 1 else Y


def labels(X, count=3):
    kinds = np.digitize(X[:, 0] + X[:, 1], np.quantile(X[:, 0] + X[:, 1], [0.3, 0.7])[: count - 1])
    return np.array(["a", "b", "c"])[kinds]


def learnt(model, X, y, **given):
    if y is not None:
        model.learn_target(y, **given)
    model.learn_columns(X)
    return model


def on_rows(model, X, y):
    model.learn_many(pd.DataFrame(X), y if np.ndim(y) == 1 else pd.DataFrame(y))
    return model


def weights(model, p):
    """Return the loadings as a matrix, (p, q)."""
    found = np.zeros((p, len(model.components)))
    for name, row in model.loadings.items():
        for component, weight in row.items():
            found[name, model.components.index(component)] = weight
    return found


def signed(Z, like):
    return Z * np.sign((Z * like).sum(axis=0))


def centred(X):
    return X - X.mean(axis=0)


# ------------------------------------------------------------------------------------------- PLS


# With the smallest tolerance scikit-learn may not converge.
@pytest.mark.filterwarnings("ignore:Maximum number of iterations")
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("shape", [TALL, WIDE])
@pytest.mark.parametrize("kind", ["one", "three", "classes"])
def test_pls_scores_equal_scikit_learn(shape, kind, scale):
    X = columns(shape)
    y = {"one": numbers(X), "three": numbers(X, 3), "classes": labels(X)}[kind]
    Y = y if kind != "classes" else (y[:, None] == np.unique(y)).astype(float)
    theirs = PLSRegression(5, scale=scale, tol=1e-28, max_iter=500).fit(X, Y)
    model = learnt(PLS(5, scale=scale), X, y)
    size = np.abs(theirs.x_scores_).max()
    np.testing.assert_allclose(
        signed(model.embedding, theirs.x_scores_) / size, theirs.x_scores_ / size, **EXACT
    )
    new = columns(shape, seed=2)
    expected = theirs.transform(new)
    np.testing.assert_allclose(
        signed(model.transform_many(new), expected) / size, expected / size, **EXACT
    )


@pytest.mark.parametrize("c", [1, 3])
def test_pls_of_rows_equals_columns(c):
    X = columns(TALL)
    one, other = learnt(PLS(4), X, numbers(X, c)), on_rows(PLS(4), X, numbers(X, c))
    np.testing.assert_allclose(weights(one, 12), weights(other, 12), **EXACT)


def test_pls_has_no_more_components_than_the_rank():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2)) @ rng.normal(size=(2, 30))
    model = learnt(PLS(6), X, rng.normal(size=(50, 3)))
    assert model.embedding.shape == (50, 2)
    assert (model.transform_many(X)[:, 2:] == 0.0).all()
    explained = np.linalg.lstsq(model.embedding, centred(X), rcond=None)[1]
    assert (explained < 1e-18 * 50).all()


def test_pls_ends_when_the_target_is_explained():
    rng = np.random.default_rng(0)
    X = np.linalg.qr(centred(rng.normal(size=(50, 8))))[0]
    model = learnt(PLS(6, scale=False), X, X[:, 4])
    # All columns have the same variance, so that the first direction is the target itself.
    assert model.embedding.shape == (50, 1)
    assert model.relevance["pls0"] == pytest.approx(1.0, abs=1e-12)


def test_pls_of_targets_with_a_constant_column():
    X = columns(WIDE)
    y = numbers(X)
    one = learnt(PLS(3), X, y)
    other = learnt(PLS(3), X, np.column_stack([y, np.full(len(y), 4.0)]))
    np.testing.assert_allclose(one.embedding, other.embedding, **EXACT)


def test_pls_with_covariates_is_pls_of_residuals():
    X, Z = columns(WIDE), np.random.default_rng(5).normal(size=(40, 2))
    y = numbers(X) + Z[:, 0]
    basis = np.linalg.qr(np.c_[np.ones(40), Z])[0]
    left = X - basis @ (basis.T @ X)
    one = learnt(PLS(3, covariates=(0, 1)), X, y, covariates=Z)
    other = learnt(PLS(3), np.where(X.std(axis=0) > 0.0, left, 0.0), y - basis @ (basis.T @ y))
    np.testing.assert_allclose(one.embedding, other.embedding, rtol=0.0, atol=1e-8)


# --------------------------------------------------------------------------------- Discriminant


def test_discriminants_without_shrinkage_equal_scikit_learn():
    X = columns((90, 10))
    y, varying = labels(X), np.flatnonzero(X.std(axis=0) > 0.0)
    model = learnt(Discriminant(2, shrinkage=0.0), X, y)
    theirs = LinearDiscriminantAnalysis(solver="eigen").fit(X[:, varying], y).scalings_[:, :2]
    B = weights(model, 10)[varying]
    np.testing.assert_allclose(signed(B, theirs), theirs, **EXACT)
    assert model.fitted_shrinkage == 0.0


@pytest.mark.parametrize("shrinkage", [0.01, 0.5, 0.9])
@pytest.mark.parametrize("shape", [TALL, WIDE])
def test_shrunk_discriminants_span_those_of_scikit_learn(shape, shrinkage):
    X = columns(shape)
    X, y = X[:, X.std(axis=0) > 0.0], labels(X)
    model = learnt(Discriminant(2, shrinkage=shrinkage), X, y)
    B = weights(model, X.shape[1])
    theirs = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage).fit(X, y)
    functions = theirs.coef_ - theirs.priors_ @ theirs.coef_
    assert subspace_angles(B, np.linalg.svd(functions)[2][:2].T).max() < 1e-7
    np.testing.assert_allclose(B.T @ theirs.covariance_ @ B, np.eye(2), **EXACT)


def test_full_shrinkage_gives_the_class_means():
    X = columns(WIDE)
    y = labels(X)
    B = weights(learnt(Discriminant(2, shrinkage=1.0), X, y), 150)
    means = np.array([X[y == name].mean(axis=0) for name in "abc"]) - X.mean(axis=0)
    assert subspace_angles(B, np.linalg.svd(means)[2][:2].T).max() < 1e-7


def test_components_are_one_fewer_than_classes():
    X = columns(WIDE)
    model = learnt(Discriminant(5), X, labels(X, 2))
    assert model.embedding.shape == (40, 1)
    assert (model.transform_many(X)[:, 1:] == 0.0).all()


def test_zero_shrinkage_is_raised_if_singular():
    X = columns(WIDE)
    y = labels(X)
    model = learnt(Discriminant(2, shrinkage=0.0), X, y)
    assert model.fitted_shrinkage == 1e-6
    Z = model.embedding
    spread = max(np.ptp(Z[y == name], axis=0).max() for name in "abc")
    assert spread < 1e-3 * np.ptp(Z, axis=0).min()


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e140])
def test_fitted_shrinkage_ignores_units(scale):
    X = columns(TALL)
    one, other = (learnt(Discriminant(2), part, labels(X)) for part in (X, scale * X))
    assert 0.0 < one.fitted_shrinkage < 1.0
    assert other.fitted_shrinkage == pytest.approx(one.fitted_shrinkage, rel=1e-9)
    np.testing.assert_allclose(one.embedding, other.embedding, rtol=0.0, atol=1e-8)


def test_discriminants_of_rows_equal_columns():
    X = columns(TALL)
    one, other = (make(Discriminant(2), X, labels(X)) for make in (learnt, on_rows))
    assert other.fitted_shrinkage == pytest.approx(one.fitted_shrinkage, rel=1e-9)
    np.testing.assert_allclose(weights(one, 12), weights(other, 12), **EXACT)


@pytest.mark.parametrize("model", [PLS(2), Discriminant(2), PrivateFeatures(2)], ids=repr)
def test_classes_without_rows(model):
    X = columns(WIDE)
    y = labels(X)
    one = learnt(model.clone(), X, pd.Series(pd.Categorical(y)))
    other = learnt(model.clone(), X, pd.Series(pd.Categorical(y, categories=["a", "z", "b", "c"])))
    np.testing.assert_allclose(one.embedding, other.embedding, **EXACT)


def test_one_class_per_row():
    """Two rows may be two classes; more rows with a class each are refused."""
    X = columns(WIDE)
    model = learnt(Discriminant(2), X[:2], ["a", "b"])
    assert model.embedding.shape == (2, 0)
    assert np.isnan(model.fitted_shrinkage)
    with pytest.raises(ValueError, match="40 classes in 40 rows"):
        learnt(Discriminant(2), X, np.arange(40).astype(str))


@pytest.mark.parametrize(
    "model", [PLS(2), Discriminant(2), PrivateFeatures(2), RankedPCA(2), SupervisedPCA(2)], ids=repr
)
def test_constant_columns_have_no_components(model):
    X = columns(WIDE)
    model = learnt(model, np.full((40, 3), 5.0), labels(X))
    assert model.relevance == {}
    assert (model.transform_many(np.ones((4, 3))) == 0.0).all()


# ------------------------------------------------------------------------------ PrivateFeatures


def correlation(Z, y):
    """Return the largest correlation of any feature with any column of an attribute."""
    Y = np.column_stack([y]) if y.dtype.kind == "f" else (y[:, None] == np.unique(y)).astype(float)
    Z, Y = (centred(part) / centred(part).std(axis=0) for part in (Z, Y))
    return np.abs(Z.T @ Y).max() / len(Z)


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("shape", [TALL, WIDE])
@pytest.mark.parametrize("kind", ["one", "three", "classes"])
def test_no_covariance_with_the_attribute_is_left(shape, kind, scale):
    X = columns(shape)
    y = {"one": numbers(X), "three": numbers(X, 3), "classes": labels(X)}[kind]
    model = learnt(PrivateFeatures(100, scale=scale), X, y)
    rank = min(X.shape[1] - 1, len(X) - 1) - {"one": 1, "three": 3, "classes": 2}[kind]
    assert model.embedding.shape[1] == rank
    assert correlation(model.embedding, y) < 1e-10
    assert correlation(model.transform_many(X)[:, :rank], y) < 1e-10
    if shape == TALL:
        fresh = PrivateFeatures(100, scale=scale, refresh_factor=1.0, max_features=None)
        begun = learnt(fresh.clone(), X[:40], y[:40])
        for model in (on_rows(fresh, X, y), on_rows(begun, X[40:], y[40:])):
            assert correlation(model.transform_many(X)[:, :rank], y) < 1e-10


@pytest.mark.parametrize("most", [15_000, 30])
def test_bounded_features_leave_no_covariance_with_the_attribute(most):
    """Features are uncorrelated with the attribute, also with a bounded pool or leading axes."""
    X = columns(WIDE)
    y = numbers(X, 2)
    model = learnt(PrivateFeatures(3, max_loadings=20, max_gram_rows=most), X, y)
    assert 20 <= len(model.loadings) <= 40
    assert correlation(model.transform_many(X), y) < 1e-10
    model.learn_loadings(X)
    assert len(model.loadings) == 20
    assert correlation(model.transform_many(X), y) < 1e-10
    assert correlation(model.embedding, y) < 1e-10


def test_private_features_have_maximal_variance():
    X = columns(WIDE)
    y = numbers(X, 2)
    C = centred(X)
    covariances = C.T @ centred(y)
    free = np.linalg.svd(covariances, full_matrices=True)[0][:, 2:]
    most = np.linalg.eigvalsh(free.T @ C.T @ C @ free)[::-1][:4]
    Z = learnt(PrivateFeatures(4), X, y).embedding
    np.testing.assert_allclose(Z.T @ Z / most[0], np.diag(most / most[0]), **EXACT)


def test_uncorrelated_attributes_give_principal_components():
    X = columns(TALL)
    C = np.c_[np.ones(60), X]
    y = np.random.default_rng(3).normal(size=60)
    y -= C @ np.linalg.lstsq(C, y, rcond=None)[0]
    one, other = learnt(PrivateFeatures(5), X, y), learnt(PCA(5), X, None)
    np.testing.assert_allclose(one.embedding, other.embedding, rtol=0.0, atol=1e-7)


def test_columns_equal_to_the_attribute_are_removed():
    y = np.random.default_rng(3).normal(size=60)
    assert learnt(PrivateFeatures(2), y[:, None], y).embedding.shape == (60, 0)


def test_leakage_recomputes_features_per_fold():
    """Leakage from the Gram matrix alone equals that of a model of the columns."""
    X = columns(WIDE)
    y = labels(X)
    model = learnt(PrivateFeatures(3), X, y)
    made, tested = np.arange(5, 40), np.arange(5)
    inner = model._columns.inner()
    attribute = SensitiveAttribute((y[:, None] == np.unique(y)).astype(float), is_class=True)
    alpha = private_duals(_subset_gram(inner, made, attribute), 3)
    again = learnt(PrivateFeatures(3), X[made], y[made]).transform_many(X[tested])
    theirs = _centred_cross_gram(inner, tested, made) @ alpha
    np.testing.assert_allclose(signed(theirs, again), again, rtol=0.0, atol=1e-8)


def test_leakage_reports_nonlinear_dependence():
    rng = np.random.default_rng(0)
    secret = rng.normal(size=300)
    shown = np.c_[secret, secret**2 - 1.0, rng.normal(size=300)]
    X = shown @ rng.normal(size=(3, 20)) + 0.05 * rng.normal(size=(300, 20))
    found = learnt(PrivateFeatures(2), X, secret).leakage()
    assert found.measure == "r2"
    assert found.chance == 0.0
    assert max(found.trained["linear"], found.fresh["linear"]) < 0.05
    sign = learnt(PrivateFeatures(2), X, np.abs(secret) > 0.7).leakage()
    assert sign.measure == "accuracy"
    assert 0.4 < sign.chance < 0.6
    # The features lack the linear part of the classes, and predict no better than chance.
    assert sign.fresh["linear"] < sign.chance + 0.1
    # Linear models cannot predict the sign of the secret from its square.
    assert learnt(PrivateFeatures(2), X, secret**2).leakage().fresh["5-NN"] > 0.2


def test_leakage_of_noise_is_at_chance_level():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 30)), np.array(["a", "b"])[rng.integers(2, size=200)]
    model = learnt(PrivateFeatures(4), X, y)
    found = model.leakage(folds=4, seed=3)
    assert found == model.leakage(folds=4, seed=3)
    shares = [*found.trained.values(), *found.fresh.values()]
    assert max(shares) < found.chance + 0.12


def test_invalid_leakage_arguments_are_refused():
    X = columns(TALL)
    model = PrivateFeatures(2)
    with pytest.raises(ValueError, match="Expected a model"):
        model.leakage()
    learnt(model, X, labels(X))
    with pytest.raises(ValueError, match="Expected folds of"):
        model.leakage(folds=2)
    with pytest.raises(ValueError, match="at most 30 folds of 60"):
        model.leakage(folds=31)
    few = learnt(PrivateFeatures(2, max_gram_rows=50, max_loadings=5), X, labels(X))
    with pytest.raises(ValueError, match="at most 50 rows"):
        few.leakage()
    model.learn_one(dict(enumerate(X[0])), "a")
    with pytest.raises(ValueError, match="rows"):
        model.leakage()


# -------------------------------------------------------------------- RankedPCA, SupervisedPCA


@pytest.mark.parametrize("shape", [TALL, WIDE])
def test_ranked_components_are_principal_components(shape):
    X = columns(shape)
    rank = min(shape[1] - 1, shape[0] - 1)
    every = learnt(PCA(rank), X, None).embedding
    y = numbers(X)
    explained = np.square(centred(y) @ every) / np.square(every).sum(axis=0)
    most, least = np.argsort(-explained)[:3], np.argsort(explained)[:3]
    for rank_by, indices in (("target", most), ("private", least)):
        Z = learnt(RankedPCA(3, rank_by=rank_by), X, y).embedding
        np.testing.assert_allclose(Z, every[:, indices], rtol=0.0, atol=1e-7)


@pytest.mark.parametrize("blocks", [1, 30])
def test_supervised_components_use_the_most_relevant_columns(blocks):
    X = columns((50, 300))
    y = numbers(X)
    model = SupervisedPCA(3, max_candidates=20)
    model.learn_target(y)
    for part in np.array_split(np.arange(300), blocks):
        model.learn_columns(X[:, part], part.tolist())
    varying = np.flatnonzero(X.std(axis=0) > 0.0)
    chosen = varying[SelectKBest(f_regression, k=20).fit(X[:, varying], y).get_support()]
    assert list(model.loadings) == chosen.tolist()
    Z = learnt(PCA(3), X[:, chosen], None).embedding
    np.testing.assert_allclose(model.embedding, Z, rtol=0.0, atol=1e-8)


def test_thresholds_above_every_relevance():
    X = columns(WIDE)
    y = np.random.default_rng(9).normal(size=40)
    model = learnt(SupervisedPCA(2, threshold=0.99), X, y)
    assert model.loadings == {}
    assert model.embedding.shape[1] == 0
    assert (model.transform_many(X) == 0.0).all()


@pytest.mark.parametrize("model", [PrivateFeatures(1), RankedPCA(1, rank_by="private")], ids=repr)
def test_columns_of_least_variance_are_evicted_first(model):
    """In a bounded vocabulary of rows the variable of smallest variance is evicted."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=300)
    X = rng.normal(size=(300, 6)) * [3.0, 3.0, 3.0, 0.1, 0.1, 0.1]
    X[:, 3:] += 0.1 * y[:, None]
    model = model.clone({"max_features": 5, "grace_period": 20})
    for x, value in zip(X, y, strict=True):
        model.learn_one(dict(enumerate(x)), value)
    assert {0, 1, 2} <= set(model._moments.names)
