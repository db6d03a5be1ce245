"""Compare KernelPCA and LaplacianEigenmaps with scikit-learn's."""

import numpy as np
import pytest
from sklearn import decomposition
from sklearn.manifold import SpectralEmbedding

from streamsel import KernelPCA, LaplacianEigenmaps
from tests.bench.test_columns import fortran

N, Q = 1000, 10


@pytest.fixture
def X(size):
    """Return columns whose means differ a little between five groups of rows."""
    rng = np.random.default_rng(0)
    X = fortran(rng, N, size(20_000))
    X += 0.05 * rng.standard_normal((5, X.shape[1]))[np.arange(N) % 5]
    return X


def embedding(make, X):
    def run():
        model = make()
        model.learn_columns(X)
        return model.embedding

    return run


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("solver", ["dense", "arpack", "randomized"])
def test_kernel_pca(against, X, kernel, solver):
    gamma = 1.0 / X.shape[1]
    by_rows = np.ascontiguousarray(X)
    peer = decomposition.KernelPCA(
        Q, kernel=kernel, gamma=gamma, eigen_solver=solver, random_state=0
    )
    against(
        f"KernelPCA {kernel}, 10 components of {N:,} x {X.shape[1]:,} / scikit-learn's KernelPCA, "
        f"{solver}",
        embedding(lambda: KernelPCA(Q, kernel=kernel, gamma=gamma), X),
        lambda: peer.fit_transform(by_rows),
        rounds=3,
        data=X.nbytes,
    )


def test_laplacian_eigenmaps(against, X):
    by_rows = np.ascontiguousarray(X)
    peer = SpectralEmbedding(
        Q, affinity="nearest_neighbors", n_neighbors=10, random_state=0, eigen_solver="arpack"
    )
    against(
        f"LaplacianEigenmaps, 10 components of {N:,} x {X.shape[1]:,} / scikit-learn "
        "SpectralEmbedding",
        embedding(lambda: LaplacianEigenmaps(Q, n_neighbors=10), X),
        lambda: peer.fit_transform(by_rows),
        rounds=3,
        data=X.nbytes,
    )


def test_new_rows(against, X):
    """Transform new rows by landmarks, one by one and all at once."""
    model = KernelPCA(Q)
    model.learn_columns(X)
    rows = X[:100].copy()
    dicts = [dict(enumerate(row)) for row in rows.tolist()]
    against(
        "KernelPCA, 100 new rows by landmarks, one by one / all at once",
        lambda: [model.transform_one(row) for row in dicts],
        lambda: model.transform_many(rows),
        rounds=3,
    )
