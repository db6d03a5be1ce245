"""Low-rank moments of PCA on rows of more variables than joint moments are stored for."""

import copy
import pickle

import numpy as np
import pytest
from sklearn import decomposition

from streamsel import PCA
from streamsel.extraction import pca

N, P = 150, 30
# Enough components that as many axes as variables are kept: nothing is lost.
ALL = {"n_components": 10, "max_features": None, "warm_up": 10}
FEW = ALL | {"n_components": 2}


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Keep joint moments of at most 8 variables."""
    monkeypatch.setattr(pca, "_MAX_JOINT_VARIABLES", 8)


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(N, 5)) * [6.0, 5.0, 4.0, 3.0, 2.0]
    return hidden @ rng.normal(size=(5, P)) + rng.normal(size=(N, P)) + np.arange(P)


def learnt(X, params=ALL, **more):
    model = PCA(**(params | more))
    for x in X:
        model.learn_one(row(x))
    return model


def row(x):
    """Return the nonzero values of a row as a dict."""
    return {j: value for j, value in enumerate(x.tolist()) if value != 0.0}


def weights_of(model, p=P):
    W = np.zeros((p, model.n_components))
    for name, weights in model.loadings.items():
        W[name] = [weights[component] for component in model.components]
    return W


def assert_is(model, X, weights=None, tolerance=1e-9):
    """Compare with the leading axes of weighted rows."""
    weights = np.ones(len(X)) if weights is None else weights
    mean = np.average(X, axis=0, weights=weights)
    Z = (X - mean) * np.sqrt(weights)[:, None]
    _, s, Vt = np.linalg.svd(Z, full_matrices=False)
    q = model.n_components
    V = Vt[:q].T
    V = V * np.sign(V[np.abs(V).argmax(axis=0), np.arange(q)])
    np.testing.assert_allclose(weights_of(model), V, atol=tolerance)
    ratio = (s**2 / (s**2).sum())[:q]
    np.testing.assert_allclose(model.explained_variance_ratio, ratio, rtol=tolerance)


def test_no_variable_is_evicted(X):
    for n in (9, 60, N):
        model = learnt(X[:n])
        assert model.n_rows == model.n_aligned_rows == n
        assert len(model.loadings) == P
        if n > P:
            assert_is(model, X[:n])


def test_low_rank_pca_equals_incremental_pca(X):
    """With fewer axes than variables, PCA equals IncrementalPCA with the same batches."""
    rank = 2 * FEW["n_components"] + 10
    model = PCA(**FEW)
    model.learn_many(X[:112])
    peer = decomposition.IncrementalPCA(rank, batch_size=4 * rank).fit(X[:112])
    V = peer.components_[:2].T
    V = V * np.sign(V[np.abs(V).argmax(axis=0), [0, 1]])
    np.testing.assert_allclose(weights_of(model), V, atol=1e-9)
    variance = peer.explained_variance_[:2]
    np.testing.assert_allclose(model.explained_variance, variance, rtol=1e-9)
    np.testing.assert_allclose(
        model.explained_variance_ratio, variance / X[:112].var(axis=0, ddof=1).sum(), rtol=1e-9
    )


def test_joint_moments_become_low_rank(X):
    """Joint moments become low-rank moments at the row that exceeds the limit of variables."""
    X = X.copy()
    X[:70, 6:] = 0.0
    assert_is(learnt(X), X)


def test_fading(X):
    model = learnt(X, fading_factor=0.02)
    assert_is(model, X, 0.98 ** np.arange(N - 1.0, -1.0, -1.0))


def test_frames_equal_single_rows(X):
    model = PCA(**FEW)
    for part in np.split(X, [3, 40, 41, 120]):
        model.learn_many(part)
    assert bits(model) == bits(learnt(X, FEW))


def bits(model):
    W = weights_of(model)
    return np.round(W / np.abs(W).max(), 9).tolist()


@pytest.mark.parametrize("p", [6, 20, P])
def test_rows_continue_from_columns(X, p):
    model = PCA(**ALL)
    model.learn_columns(np.asfortranarray(X[:60, :p]))
    for x in X[60:]:
        model.learn_one(row(x))
    X = X.copy()
    X[:60, p:] = 0.0
    assert_is(model, X)


def test_rows_continue_from_a_pool(X):
    """Rows continue from a pool; evicted columns are new variables when rows name them."""
    model = PCA(**ALL, max_loadings=10)
    model.learn_columns(np.asfortranarray(X[:60]))
    for x in X[60:]:
        model.learn_one(row(x))
    assert len(model.loadings) == P
    V = decomposition.PCA(2).fit(X).components_.T
    cosines = np.linalg.svd(V.T @ weights_of(model)[:, :5], compute_uv=False)
    assert cosines.min() > 0.9


@pytest.mark.parametrize("at", [5, 20, 70])
@pytest.mark.parametrize("narrow", [P, 6])
def test_merge_equals_the_whole(X, at, narrow):
    X = X.copy()
    X[at:, narrow:] = 0.0
    one, other = learnt(X[:at]), learnt(X[at:])
    before = pickle.dumps(other)
    one.merge(other, along="rows")
    assert pickle.dumps(other) == before
    assert_is(one, X)
    other.merge(learnt(X[:at]), along="rows")
    assert_is(other, X)
    for x in X:
        one.learn_one(row(x))
    assert_is(one, np.vstack([X, X]))


def test_files_and_rollback(X):
    model = learnt(X[:67])
    again = pickle.loads(pickle.dumps(model))  # noqa: S301
    bad = row(X[0]) | {"new": float("inf")}
    with pytest.raises(ValueError, match="Expected"):
        model.learn_one(bad)
    for one in (model, again, copy.deepcopy(model)):
        for x in X[67:]:
            one.learn_one(row(x))
        assert_is(one, X)
    state = learnt(X[:67]).__getstate__()
    state["state"]["extension"]["axes"]["moments"]["mean"] = np.zeros(3)
    with pytest.raises(ValueError, match="Expected"):
        PCA.__new__(PCA).__setstate__(state)


def test_components_in_use_are_aligned(X):
    model = learnt(X[:60], n_components=5)
    before = np.array([[*model.in_use[j].values()] for j in range(P)])
    model.refresh()
    model.learn_many(X[60:])
    after = np.array([[*model.in_use[j].values()] for j in range(P)])
    scores = (X - X.mean(axis=0)) @ before, (X - X.mean(axis=0)) @ after
    for old, new in zip(*(part.T for part in scores), strict=True):
        assert np.corrcoef(old, new)[0, 1] > 0.9


@pytest.mark.parametrize(
    "params", [{"n_components": 3, "scale": True}, {"n_components": "parallel"}]
)
def test_joint_moments_are_kept_where_needed(X, params):
    model = learnt(X, **params)
    assert model._row_extension.axes is None
    assert len(model.loadings) == P


def test_rows_in_any_order_of_names(X):
    X[2, 3] = np.nan
    one, other = PCA(**FEW), PCA(**FEW)
    for x in X:
        one.learn_one(row(x))
        other.learn_one(dict(reversed(row(x).items())))
        if one._row_extension.axes is not None:
            mine, theirs = (model._row_extension.axes._buffered_rows() for model in (one, other))
            for field, values in mine.items():
                np.testing.assert_array_equal(values, theirs[field])
    assert one.loadings == other.loadings
    assert np.isfinite(weights_of(one)).all()
