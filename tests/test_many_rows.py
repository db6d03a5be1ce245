"""Methods on the Gram matrix with too many rows for one: leading axes replace it."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse
from sklearn import decomposition

from streamsel import PCA, PLS, Discriminant, PrivateFeatures, RankedPCA
from streamsel.base.river import Supervised
from streamsel.extraction._gram import GramExtractor

N, P = 120, 400
# Too few for the Gram matrix of all rows.
FEW = {"max_gram_rows": 100, "max_loadings": 50}


@pytest.fixture
def X():
    """Return columns with six directions above noise."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(N, 6)) * [6.0, 5.0, 4.0, 3.0, 2.5, 2.0]
    return np.asfortranarray(hidden @ rng.normal(size=(6, P)) + 2.0 * rng.normal(size=(N, P)) + 1.0)


def learnt(X, n_components=4, **params):
    model = PCA(n_components, **(FEW | params))
    model.learn_columns(X)
    return model


def standardised(X):
    return (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)


def assert_is(model, X, tolerance):
    """Compare with scikit-learn, up to the signs of components."""
    q = model.n_components
    peer = decomposition.PCA(q, svd_solver="full").fit(X)
    Z = peer.transform(X)
    signs = np.sign((Z * model.embedding).sum(axis=0))
    largest = np.abs(Z).max()
    np.testing.assert_allclose(model.embedding, Z * signs, atol=tolerance * largest)
    ratio = peer.explained_variance_ratio_
    np.testing.assert_allclose(model.explained_variance_ratio, ratio, rtol=max(tolerance**2, 1e-8))
    np.testing.assert_allclose(
        model.reconstruction_error, X.var(axis=0, ddof=1).sum() * (1 - ratio.sum()), rtol=tolerance
    )


@pytest.mark.parametrize("scale", [False, True])
def test_components_approach_pca_over_passes(X, scale):
    model = learnt(X, scale=scale)
    expected = standardised(X) if scale else X
    assert_is(model, expected, 0.05)
    facts = model.report().details
    assert (facts["gram_state"], facts["n_passes"]) == ("incremental SVD of rank 18", 1)
    model.learn_loadings(X)
    assert_is(model, expected, 1e-6)
    assert 3 < model.n_passes < 14
    assert model.report().details["n_passes"] == model.n_passes


def test_loadings_cover_all_columns(X):
    model = learnt(X, max_loadings=150)
    model.learn_loadings(X)
    whole = PCA(4, max_loadings=150)
    whole.learn_columns(X)
    whole.learn_loadings(X)
    assert model.loadings.keys() == whole.loadings.keys()
    for name, weights in whole.loadings.items():
        np.testing.assert_allclose([*model.loadings[name].values()], [*weights.values()], atol=1e-6)
    Z = model.transform_many(X)
    for k in range(4):
        assert abs(np.corrcoef(np.asarray(Z)[:, k], whole.embedding[:, k])[0, 1]) > 0.99


def test_components_are_exact_if_all_columns_are_stored(X):
    model = learnt(X, max_loadings=P)
    assert_is(model, X, 1e-9)
    Z = decomposition.PCA(4).fit_transform(X)
    np.testing.assert_allclose(np.abs(np.asarray(model.transform_many(X))), np.abs(Z), atol=1e-8)
    model.learn_loadings(X)
    assert model.n_passes == 2


def test_sources_of_one_pass_give_loadings(X):
    model = learnt(X)
    before = model.embedding
    model.learn_loadings((j, X[:, j]) for j in range(P))
    assert model.n_passes == 2
    np.testing.assert_array_equal(model.embedding, before)
    assert len(model.loadings) == 50


@pytest.mark.parametrize("scale", [False, True])
def test_sparse_columns_are_exact_after_one_pass(X, scale):
    """Sparse columns are stored, so that components are exact, also of more than one batch."""
    columns = np.hstack([X, X[:, :200] ** 2, X[:, 200:] ** 3])
    sparse = scipy.sparse.csc_array(np.where(np.abs(columns - 1.0) > 8.0, columns, 0.0))
    model = learnt(sparse, scale=scale)
    dense = sparse.toarray()[:, np.asarray(sparse.sum(axis=0)).ravel() != 0.0]
    assert_is(model, standardised(dense) if scale else dense, 1e-7)
    assert model.report().details["gram_state"] == "columns as stored"
    model.learn_loadings(sparse)
    assert model.n_passes == 2
    again = pickle.loads(pickle.dumps(model))  # noqa: S301
    np.testing.assert_array_equal(again.embedding, model.embedding)


def test_sparse_columns(X):
    sparse = scipy.sparse.csc_array(np.where(np.abs(X - 1.0) > 8.0, X, 0.0))
    model = learnt(sparse)
    # One dense block leads to a reduction to axes.
    model.learn_columns(X[:, :90], [f"dense {j}" for j in range(90)])
    both = scipy.sparse.hstack([sparse, X[:, :90]], format="csc")
    model.learn_loadings(both, [*range(P), *(f"dense {j}" for j in range(90))])
    assert_is(model, both.toarray(), 1e-5)


class About(GramExtractor, Supervised):
    """Extractor of principal axes with their relevance to a target."""

    @classmethod
    def _unit_test_params(cls):
        yield {}

    def _dual_weights(self, inner, q):
        d, E = inner.axes(q)
        return E / np.sqrt(d)


def test_target_and_covariates(X):
    rng = np.random.default_rng(1)
    age, y = rng.normal(size=N), X[:, 0] + rng.normal(size=N)
    X = X + 20.0 * age[:, None]
    model = About(4, covariates=("age",), **FEW)
    model.learn_target(y, covariates=age)
    model.learn_columns(X)
    model.learn_loadings(X)
    design = np.column_stack([np.ones(N), age])
    left, y = (V - design @ np.linalg.lstsq(design, V, rcond=None)[0] for V in (X, y))
    Z = decomposition.PCA(4, svd_solver="full").fit_transform(left)
    signs = np.sign((Z * model.embedding).sum(axis=0))
    np.testing.assert_allclose(model.embedding, Z * signs, atol=1e-6 * np.abs(Z).max())
    expected = [abs(np.corrcoef(z, y)[0, 1]) for z in Z.T]
    np.testing.assert_allclose([*model.relevance.values()], expected, atol=1e-6)


@pytest.mark.parametrize(
    "other",
    [
        lambda X: X[:, :-1],
        lambda X: X * 1.1,
        lambda X: np.where(np.arange(P) == 7, 1.0, X),
        lambda X: np.where(np.arange(P) == 7, np.nan, X),
    ],
)
def test_other_columns_are_refused(X, other):
    model = learnt(X)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=r"^Expected"):
        model.learn_loadings(other(X))
    assert pickle.dumps(model) == before
    model.learn_loadings(X)
    assert_is(model, X, 1e-6)


def test_learning_continues_after_convergence(X):
    model, other = learnt(X[:, :200]), learnt(X[:, 200:])
    model.learn_loadings(X[:, :200])
    again = pickle.loads(pickle.dumps(model))  # noqa: S301
    for one in (model, again):
        one.learn_columns(X[:, 200:], names=range(200, P))
        assert_is(one, X, 0.05)
    np.testing.assert_array_equal(model.embedding, again.embedding)
    other = PCA(4, **FEW)
    other.learn_columns(X[:, 200:], names=range(200, P))
    merged = learnt(X[:, :200])
    merged.merge(other)
    assert_is(merged, X, 0.05)


def test_leading_axes_are_shared(X):
    model = learnt(X, 4)
    other = PCA(2, **FEW)
    other.learn_from(model)
    np.testing.assert_allclose(other.embedding, model.embedding[:, :2])
    again = copy.deepcopy(other)
    again.learn_columns(X[:, :10], names=range(P, P + 10))
    np.testing.assert_array_equal(other.embedding, model.embedding[:, : other.n_components_found])
    with pytest.raises(ValueError, match="at least 5 components"):
        PCA(5, **FEW).learn_from(model)


def test_rows_continue_from_the_pool(X):
    model = learnt(X)
    for x in X[:60]:
        model.learn_one(dict(enumerate(x)))
    assert model.n_rows == N + 60


def pair(method, X, y, **params):
    """Return a model with the full Gram matrix, and one with leading axes."""
    models = [method(**params, max_loadings=50), method(**params, **FEW)]
    for model in models:
        model.learn_target(y)
        model.learn_columns(X)
    return models


def assert_same_scores(one, other, tolerance):
    Z, other = one.embedding, other.embedding
    signs = np.sign((Z * other).sum(axis=0))
    lengths = np.linalg.norm(Z, axis=0)
    np.testing.assert_allclose(other * signs / lengths, Z / lengths, atol=tolerance)


@pytest.fixture
def y(X):
    """Return a target along a direction of small variance, with noise."""
    rng = np.random.default_rng(2)
    direction = np.linalg.svd(X - X.mean(axis=0))[0][:, 20]
    return direction + 0.05 * rng.normal(size=(N, 2)).T.sum(axis=0)


@pytest.mark.parametrize("scale", [False, True])
def test_pls_is_exact_after_one_pass_per_component(X, y, scale):
    whole, model = pair(PLS, X, y, n_components=1, scale=scale)
    assert_same_scores(whole, model, 1e-9)
    whole, model = pair(PLS, X, y, n_components=4, scale=scale)
    assert_same_scores(whole, model, 0.1)
    model.learn_loadings(X)
    assert_same_scores(whole, model, 1e-6)
    assert [*model.relevance.values()] == pytest.approx([*whole.relevance.values()], rel=1e-6)


@pytest.mark.parametrize("cls", [PLS, PrivateFeatures])
def test_loadings_use_all_of_the_target(X, y, cls):
    """Loadings also use the target's part outside the leading axes."""
    model = cls(2, **FEW)
    model.learn_target(y)
    model.learn_columns(X)
    model.learn_loadings(X, max_loadings=P)
    Z = model.embedding
    np.testing.assert_allclose(model.transform_many(X), Z, atol=1e-8 * np.abs(Z).max())


def test_pls_of_classes_and_covariates(X):
    rng = np.random.default_rng(3)
    y, age = rng.integers(3, size=N).astype(str), rng.normal(size=N)
    X = np.asfortranarray(X + age[:, None] + (y == "1")[:, None] * rng.normal(size=P))
    models = [PLS(3, covariates=("age",), **more) for more in ({"max_loadings": 50}, FEW)]
    for model in models:
        model.learn_target(y, covariates=age)
        model.learn_columns(X)
        model.learn_loadings(X)
    assert_same_scores(*models, 1e-6)


def test_merged_models_keep_their_target(X, y):
    models = [PLS(1, **FEW) for _ in range(2)]
    for model, part in zip(models, (slice(0, 150), slice(150, P)), strict=True):
        model.learn_target(y)
        model.learn_columns(X[:, part], names=range(P)[part])
    models[0].merge(models[1])
    assert_same_scores(pair(PLS, X, y, n_components=1)[0], models[0], 1e-9)
    again = pickle.loads(pickle.dumps(models[0]))  # noqa: S301
    np.testing.assert_array_equal(again.embedding, models[0].embedding)
    again.learn_loadings(X)
    again.merge(models[1].clone())
    assert_same_scores(pair(PLS, X, y, n_components=1)[0], again, 1e-9)


def test_private_features_do_not_correlate_with_the_attribute(X, y):
    y = np.where(y > 0.0, "a", "b")
    model = PrivateFeatures(3, **(FEW | {"max_loadings": 2 * P}))
    short = PrivateFeatures(3, **FEW)
    for one in (model, short):
        one.learn_target(y)
        one.learn_columns(X)
        Z = one.embedding
        assert max(abs(np.corrcoef(z, y == "a")[0, 1]) for z in Z.T) < 1e-9
        with pytest.raises(ValueError, match="at most 100 rows"):
            one.leakage()


def test_discriminant_is_approximated(X, y):
    y = np.where(y > 0.0, "a", "b")
    whole, model = pair(Discriminant, X, y, n_components=1, shrinkage=0.9)
    assert_same_scores(whole, model, 0.1)
    model.learn_loadings(X)
    assert model.relevance["discriminant0"] > 0.9 * whole.relevance["discriminant0"]


@pytest.mark.parametrize("rank_by", ["target", "private"])
def test_ranking_needs_all_axes(X, y, rank_by):
    model = RankedPCA(2, rank_by=rank_by, **FEW)
    model.learn_target(y)
    with pytest.raises(ValueError, match=r"(?s)at most 100 rows.*any number of rows"):
        model.learn_columns(X)


def test_shared_axes_have_no_exact_target_products(X, y):
    model = learnt(X)
    other = PLS(2, scale=False, **FEW)
    other.learn_target(y)
    other.learn_from(model)
    assert other._columns.gram.exact_products()[0].shape == (N, 0)
    other.learn_loadings(X)
    assert len(other.loadings) == 50


@pytest.mark.parametrize("asked", [0.5, "elbow", "profile", "parallel"])
def test_options_that_need_all_eigenvalues_are_refused(X, asked):
    model = PCA(asked, **FEW)
    with pytest.raises(ValueError, match=r"(?s)at most 100 rows.*n_components as a number"):
        model.learn_columns(X)
    with pytest.raises(ValueError, match="at most 100 rows"):
        model.learn_from(learnt(X))
    assert model.n_columns == 0


@pytest.mark.parametrize("part", ["rank", "total"])
def test_inconsistent_files_are_refused(X, part):
    model = learnt(X)
    state = model.__getstate__()
    state["state"]["columns"][part] = 3 if part == "rank" else np.nan
    with pytest.raises(ValueError, match=r"^Expected"):
        PCA.__new__(PCA).__setstate__(state)


def test_random_classes_are_not_separated_better():
    """Leading axes do not separate random classes better than the full matrix does."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(400, 3)) * [5, 3, 2]) @ rng.normal(size=(3, 900))
    X += rng.normal(size=X.shape)
    y = rng.integers(0, 4, size=400)
    found = []
    for most in (15_000, 100):
        model = Discriminant(1, max_loadings=50, max_gram_rows=most)
        model.learn_target(y)
        model.learn_columns(X)
        found.append(model.relevance["discriminant0"])
    of_matrix, of_axes = found
    assert of_axes < of_matrix + 0.1
