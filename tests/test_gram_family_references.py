"""References of methods on the Gram matrix against scikit-learn, and against theory."""

import numpy as np
import pytest
import scipy.sparse.csgraph
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA, KernelPCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.manifold import spectral_embedding
from sklearn.neighbors import kneighbors_graph

from tests.reference import (
    discriminant,
    kernel_pca,
    laplacian_eigenmaps,
    linear,
    pca,
    pls,
    private_features,
    ranked_pca,
    supervised_pca,
)
from tests.reference import target as space
from tests.ridge import data, matrix, near, same_up_to_sign

SHAPES = [(40, 25), (25, 40)]
KINDS = ["number", "numbers", "labels"]


def weights(answer, p):
    return matrix(answer["loadings"], range(p), list(answer["relevance"]))


def standardised(X):
    return (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_principal_components(n, p, scale):
    X, _ = data(n, p)
    found = pca.answer(X, None, n_components=5, scale=scale)
    peer = PCA(5, svd_solver="full").fit(standardised(X) if scale else X)
    Z = peer.transform(standardised(X) if scale else X)
    same_up_to_sign(found["embedding"], Z)
    near(found["explained_variance_ratio_"][:, None], peer.explained_variance_ratio_[:, None])
    near(found["explained_variance_"][:, None], peer.explained_variance_[:, None])
    B = weights(found, p)
    near((X - X.mean(axis=0)) @ B, found["embedding"])
    np.testing.assert_allclose(
        np.linalg.norm(B / linear.columns(X, scale=scale).D[:, None], axis=0), 1
    )
    left = X.shape[0] * X.var(axis=0).sum() if not scale else p * (n - 1.0)
    np.testing.assert_allclose(found["error"], left - np.sum(found["embedding"] ** 2))


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_partial_least_squares(n, p, kind, scale):
    X, y = data(n, p, kind)
    found = pls.answer(X, y, n_components=5, scale=scale)
    peer = PLSRegression(5, scale=scale, tol=1e-28, max_iter=10**5).fit(X, space.numbers(y))
    same_up_to_sign(found["embedding"], peer.x_scores_)
    sd = X.std(axis=0, ddof=1)[:, None] if scale else 1.0
    same_up_to_sign(weights(found, p), peer.x_rotations_ / sd)


def test_partial_least_squares_end_with_the_target():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 8))
    X = np.linalg.qr(X - X.mean(axis=0))[0]
    found = pls.answer(X, X[:, 0] + X[:, 3], n_components=5)
    assert list(found["relevance"]) == ["pls0"]
    assert found["relevance"]["pls0"] == pytest.approx(1.0)


@pytest.mark.parametrize("scale", [False, True])
def test_discriminants_are_those_of_the_eigenvalue_solver(scale):
    X, y = data(60, 12, "labels")
    found = discriminant.answer(X, y, n_components=5, shrinkage=0.0, scale=scale)
    peer = LinearDiscriminantAnalysis(solver="eigen").fit(standardised(X) if scale else X, y)
    Z = peer.transform(standardised(X) if scale else X)
    same_up_to_sign(found["embedding"], Z - Z.mean(axis=0))


@pytest.mark.parametrize("shrinkage", [1e-3, 0.2, 0.9])
@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_shrunk_discriminants_span_what_the_least_squares_solver_finds(n, p, shrinkage):
    """Shrunk discriminants span the coefficients M⁻¹ × means of the solver "lsqr"."""
    X, y = data(n, p, "labels")
    found = discriminant.answer(X, y, shrinkage=shrinkage)
    peer = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage).fit(X, y)
    between = peer.coef_ - np.average(peer.coef_, axis=0, weights=peer.priors_)
    Q = np.linalg.svd(between.T, full_matrices=False)[0][:, :3]
    B = weights(found, p)
    assert B.shape[1] == 3
    near(Q @ (Q.T @ B), B, 1e-8)
    V, M = B[:, :3], discriminant.shrunk(discriminant.scatter(X - X.mean(axis=0), y)[1], shrinkage)
    np.testing.assert_allclose(V.T @ M @ V, np.eye(3), atol=1e-10)


@pytest.mark.parametrize(
    "rule",
    [{}, {"gamma": 0.02}, {"kernel": "poly"}, {"kernel": "poly", "degree": 2, "coef0": 0.5}],
    ids=str,
)
@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_kernel_principal_components(n, p, rule):
    X, _ = data(n, p)
    X = X - X.mean(axis=0)
    found = kernel_pca.answer(X + 3.0, None, n_components=5, **rule)
    peer = KernelPCA(
        5, eigen_solver="dense", **{"kernel": "rbf", "gamma": 1.0 / (p * X.var())} | rule
    )
    near(found["embedding"], peer.fit_transform(X))


def test_kernel_principal_components_of_a_linear_kernel_are_principal():
    X, _ = data()
    rule = {"kernel": "poly", "degree": 1, "gamma": 1.0, "coef0": 2.0}
    found = kernel_pca.answer(X, None, n_components=4, **rule)
    same_up_to_sign(found["embedding"], pca.answer(X, None, n_components=4)["embedding"])


@pytest.mark.parametrize("k", [5, 10])
def test_eigenmaps_are_those_of_scikit_learns_graph(k):
    X, _ = data(50, 3)
    C = kneighbors_graph(X, k).toarray()
    A = np.maximum(C, C.T)
    np.testing.assert_array_equal(laplacian_eigenmaps.graph(X, k), A)
    found = laplacian_eigenmaps.answer(X, None, n_components=4, n_neighbors=k)
    d, E = np.linalg.eigh(scipy.sparse.csgraph.laplacian(A))
    near(found["eigenvalues"][:, None], d[1:5, None])
    same_up_to_sign(found["embedding"], E[:, 1:5])
    peer = spectral_embedding(
        A, n_components=5, norm_laplacian=False, drop_first=True, random_state=0
    )
    same_up_to_sign(found["embedding"], peer[:, :4] / np.linalg.norm(peer[:, :4], axis=0), 1e-6)


def path(n):
    return np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)


def test_eigenmaps_of_graphs_whose_spectrum_is_known():
    k, n = np.arange(1, 12), 12
    d, E = laplacian_eigenmaps.eigenmaps(path(n))
    np.testing.assert_allclose(d, 2.0 - 2.0 * np.cos(np.pi * k / n), atol=1e-12)
    waves = np.cos(np.pi * np.outer(np.arange(n) + 0.5, k) / n)
    same_up_to_sign(E, waves / np.linalg.norm(waves, axis=0))

    cycle = path(n)
    cycle[0, -1] = cycle[-1, 0] = 1.0
    d, _ = laplacian_eigenmaps.eigenmaps(cycle)
    np.testing.assert_allclose(d, np.sort(2.0 - 2.0 * np.cos(2.0 * np.pi * k / n)), atol=1e-12)
    d, _ = laplacian_eigenmaps.eigenmaps(np.ones((n, n)) - np.eye(n))
    np.testing.assert_allclose(d, n)
    star = np.zeros((n, n))
    star[0, 1:] = star[1:, 0] = 1.0
    d, _ = laplacian_eigenmaps.eigenmaps(star)
    np.testing.assert_allclose(d, [1.0] * (n - 2) + [n], atol=1e-12)


def test_first_eigenmap_separates_two_parts():
    X = np.r_[np.arange(6.0), np.arange(9.0) + 100.0][:, None]
    found = laplacian_eigenmaps.answer(X, None, n_components=2, n_neighbors=2)
    z = found["embedding"][:, 0]
    assert found["eigenvalues"][0] == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(z, np.where(X[:, 0] < 50, z[0], z[-1]))
    assert z[0] * z[-1] < 0


# ---------------------------------------------------------------- what no other library has


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_private_features_have_no_covariance_and_the_largest_variance(n, p, kind, scale):
    X, y = data(n, p, kind)
    found = private_features.answer(X, y, n_components=6, scale=scale)
    Z, U = found["embedding"], space.basis(space.numbers(y))
    assert max(found["relevance"].values()) < 1e-10
    W = linear.columns(X, scale=scale).W
    # The result is that of PCA after the covariance directions are removed from the variables.
    Q = np.linalg.qr(W.T @ U)[0]
    peer = PCA(6, svd_solver="full").fit_transform(W - W @ Q @ Q.T)
    same_up_to_sign(Z, peer)
    V = np.random.default_rng(0).normal(size=(p, 1000))
    V = V - Q @ (Q.T @ V)
    assert np.max(np.sum((W @ V) ** 2, axis=0) / np.sum(V**2, axis=0)) < np.sum(Z[:, 0] ** 2)


@pytest.mark.parametrize("kind", KINDS)
def test_ranked_components_are_the_best_predictors(kind):
    """The selected pair explains most (or least) of the target among all pairs of components."""
    X, y = data(30, 6, kind)
    U, W = space.basis(space.numbers(y)), linear.columns(X, scale=False).W
    E = np.linalg.svd(W, full_matrices=False)[0]
    explained = {(a, b): np.sum((U.T @ E[:, [a, b]]) ** 2) for a in range(6) for b in range(a)}
    for rank_by, best in (("target", max), ("private", min)):
        found = ranked_pca.answer(X, y, n_components=2, rank_by=rank_by)
        Z = found["embedding"] / np.linalg.norm(found["embedding"], axis=0)
        assert np.sum((U.T @ Z) ** 2) == pytest.approx(best(explained.values()), rel=1e-10)
    assert sorted(found["relevance"].values()) == list(found["relevance"].values())


def test_ranked_components_of_one_target_equal_the_textbook():
    X, y = data()
    found = ranked_pca.answer(X, y, n_components=4)
    Q = np.cov(X.T, bias=True)
    values, vectors = np.linalg.eigh(Q)
    values, vectors = values[-39:], vectors[:, -39:]
    q = (X - X.mean(axis=0)).T @ y @ vectors / len(X)
    order = np.argsort(-(q**2) / values)[:4]
    same_up_to_sign(weights(found, 60), vectors[:, order], 1e-8)


def test_supervised_components_are_those_of_the_columns_alone():
    X, y = data()
    r = np.abs(np.corrcoef(X.T, y)[-1, :-1])
    for rule, kept in (
        ({"threshold": 0.3}, np.flatnonzero(r >= 0.3)),
        ({"max_candidates": 7}, np.sort(np.argsort(-r)[:7])),
    ):
        found = supervised_pca.answer(X, y, n_components=3, **rule)
        assert list(found["loadings"]) == kept.tolist()
        same_up_to_sign(found["embedding"], PCA(3).fit_transform(X[:, kept]))


def test_the_number_of_components():
    d = np.array([50.0, 30.0, 10.0, 4.0, 3.0, 2.0, 1.0])
    assert [pca.number(d, share) for share in (0.5, 0.51, 0.8, 0.9, 0.999)] == [1, 2, 2, 3, 7]
    assert pca.number(np.array([10.0, 9.5, 9.0, 1.0, 0.9, 0.8, 0.7]), "profile") == 3
    assert pca.number(np.array([10.0, 9.5, 9.0, 1.0, 0.9, 0.8, 0.7]), "elbow") == 3
    assert pca.parallel(d, np.array([[20.0] * 7, [24.0] * 7])) == 2
    assert pca.parallel(d, np.zeros((1, 7))) == 7
