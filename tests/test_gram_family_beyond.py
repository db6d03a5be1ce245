"""KernelPCA and LaplacianEigenmaps on new rows, and leakage from PrivateFeatures."""

import numpy as np
import pytest
from sklearn.decomposition import KernelPCA as Peer
from sklearn.neighbors import NearestNeighbors, kneighbors_graph

import streamsel
from tests.gram_family import cases
from tests.reference import laplacian_eigenmaps as reference
from tests.ridge import near, same_up_to_sign, signs_of

RULES = [{}, {"gamma": 0.02}, {"kernel": "poly"}, {"kernel": "poly", "degree": 2, "coef0": 0.0}]


def columns(n=40, p=24):
    return cases({"PCA": [{}]})[0].data(n, p)[0]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_new_rows_of_a_kernel_are_those_of_scikit_learn(rule):
    X = columns(60)
    old, new = X[:40], X[40:]
    mean, size = old.mean(axis=0), old.var(axis=0).sum()
    peer = Peer(4, **{"kernel": "rbf", "gamma": 1.0 / size} | rule).fit(old - mean)
    model = streamsel.KernelPCA(4, **rule)
    model.learn_columns(old)
    signs = signs_of(model.embedding, peer.transform(old - mean))
    near(model.transform_many(old) * signs, peer.transform(old - mean), 1e-8)
    near(model.transform_many(new) * signs, peer.transform(new - mean), 1e-8)
    one = model.transform_one(dict(enumerate(new[0].tolist())))
    near(np.array([[*one.values()]]) * signs, peer.transform(new[:1] - mean), 1e-8)
    near(model.transform_columns(old, new) * signs, peer.transform(new - mean), 1e-8)


def test_a_linear_kernel_is_pca():
    X = columns(60)
    kernel = streamsel.KernelPCA(3, kernel="poly", degree=1, gamma=1.0, coef0=0.0)
    plain = streamsel.PCA(3)
    for model in (kernel, plain):
        model.learn_columns(X[:40])
    same_up_to_sign(kernel.embedding, plain.embedding)
    same_up_to_sign(kernel.transform_many(X[40:]), plain.transform_many(X[40:]), 1e-8)


def test_new_rows_of_a_graph_are_means_of_neighbours():
    X = columns(60, 5)
    old, new = X[:40], X[40:]
    model = streamsel.LaplacianEigenmaps(3, n_neighbors=4)
    model.learn_columns(old)
    neighbours = NearestNeighbors(n_neighbors=4).fit(old).kneighbors(new, return_distance=False)
    expected = model.embedding[neighbours].mean(axis=1)
    near(model.transform_many(new), expected)
    near(model.transform_columns(old, new), expected)


NONLINEAR = [("KernelPCA", {}), ("KernelPCA", {"kernel": "poly"}), ("LaplacianEigenmaps", {})]


@pytest.mark.parametrize(("name", "rule"), NONLINEAR, ids=str)
def test_a_window_of_rows_equals_columns(name, rule):
    X = columns(90, 6)
    on_rows, on_columns = (getattr(streamsel, name)(3, window_size=60, **rule) for _ in range(2))
    for x in X[:60]:
        on_rows.learn_one(dict(enumerate(x.tolist())))
    on_columns.learn_columns(X[:60])
    same_up_to_sign(on_rows.transform_many(X), on_columns.transform_many(X), 1e-8)


@pytest.mark.parametrize(("name", "rule"), NONLINEAR, ids=str)
def test_a_gram_matrix_of_pca_is_shared(name, rule):
    X = columns(40, 30)
    first, other, alone = streamsel.PCA(3), *(getattr(streamsel, name)(3, **rule) for _ in range(2))
    first.learn_columns(X[:, :20])
    other.learn_from(first)
    other.learn_columns(X[:, 20:], range(20, 30))
    alone.learn_columns(X)
    same_up_to_sign(other.embedding, alone.embedding)
    back = streamsel.PCA(3)
    back.learn_from(alone)
    first.learn_columns(X[:, 20:], range(20, 30))
    same_up_to_sign(back.embedding, first.embedding)


def path(n):
    return np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)


def test_graphs_with_known_eigenvectors():
    k, n = np.arange(1, 5), 30
    model = streamsel.LaplacianEigenmaps(4)
    model.learn_graph(path(n))
    waves = np.cos(np.pi * np.outer(np.arange(n) + 0.5, k) / n)
    same_up_to_sign(model.embedding, waves / np.linalg.norm(waves, axis=0), 1e-8)

    # Nearly all eigenvalues of a cycle are double: only their spaces are determined.
    cycle = path(n)
    cycle[0, -1] = cycle[-1, 0] = 1.0
    model = streamsel.LaplacianEigenmaps(4)
    model.learn_graph(cycle)
    angles = 2.0 * np.pi * np.outer(np.arange(n), [1, 2]) / n
    waves = np.c_[np.cos(angles), np.sin(angles)] / np.sqrt(n / 2)
    near(model.embedding @ model.embedding.T, waves @ waves.T, 1e-8)


@pytest.mark.parametrize("parts", [2, 3])
def test_disconnected_graphs(parts):
    """The first components are constant on each part of a disconnected graph."""
    n = 12 * parts
    A = np.kron(np.eye(parts), np.ones((12, 12))) - np.eye(n)
    model = streamsel.LaplacianEigenmaps(parts - 1)
    model.learn_graph(A)
    Z = model.embedding
    np.testing.assert_allclose(Z.sum(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(Z.T @ Z, np.eye(parts - 1), atol=1e-9)
    np.testing.assert_allclose(Z, np.repeat(Z[::12], 12, axis=0), atol=1e-9)


@pytest.mark.parametrize("apart", [10.0, 1e4])
def test_distant_clusters_do_not_change_neighbours(apart):
    X = columns(80, 6)
    X[40:, 0] += apart * X.std()
    C = kneighbors_graph(X, 5)
    one, other = (streamsel.LaplacianEigenmaps(4, n_neighbors=5) for _ in range(2))
    one.learn_columns(X)
    other.learn_graph(C.maximum(C.T))
    same_up_to_sign(one.embedding, other.embedding, 1e-8)


def test_weighted_graphs_and_those_of_many_rows():
    rng = np.random.default_rng(0)
    n = 300
    points = np.sort(rng.random(n))
    A = np.exp(-500.0 * (points[:, None] - points) ** 2)
    np.fill_diagonal(A, 0.0)
    d, E = reference.eigenmaps(A)
    model = streamsel.LaplacianEigenmaps(3)
    model.learn_graph(A)
    assert np.diff(d[:4]).min() > 1e-6
    same_up_to_sign(model.embedding, E[:, :3], 1e-7)


# -------------------------------------------------------------------------- private features


def private(X, y, q=4):
    model = streamsel.PrivateFeatures(q)
    model.learn_target(y)
    model.learn_columns(X)
    return model


@pytest.mark.parametrize("kind", ["number", "labels"])
def test_linear_relations_do_not_leak(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 8))
    y = X[:, 0] + X[:, 1] + 0.1 * rng.normal(size=800)
    if kind == "labels":
        y = np.where(y > 0.0, "a", "b")
    found = private(X, y).leakage()
    assert found.chance == pytest.approx(0.0 if kind == "number" else 0.5, abs=0.03)
    for shares in (found.trained, found.fresh):
        assert abs(shares["linear"] - found.chance) < 0.1
        assert shares["5-NN"] - found.chance < 0.1


def test_nonlinear_leakage_is_reported_by_the_audit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 4)) * [3.0, 3.0, 0.3, 0.3]
    far = np.linalg.norm(X[:, :2], axis=1)
    found = private(X, np.where(far > np.median(far), "far", "near"), 3).leakage()
    for shares in (found.trained, found.fresh):
        assert shares["5-NN"] > 0.7
        assert shares["linear"] < 0.62


def test_the_audit_does_not_depend_on_target_units():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 6))
    y = X[:, 0] ** 2 + X[:, 1]
    one, other = private(X, y).leakage(), private(X, 5.0 - 1e3 * y).leakage()
    for mine, theirs in ((one.trained, other.trained), (one.fresh, other.fresh)):
        assert mine == pytest.approx(theirs, rel=1e-6)
    # The same split gives the same figures.
    assert private(X, y).leakage() == one
