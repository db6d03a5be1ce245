"""Compare RandomProjection and RandomFourier, which store no matrix, with peers that do."""

import numpy as np
import pytest
import scipy.sparse as sp
from river import preprocessing
from sklearn.kernel_approximation import RBFSampler
from sklearn.random_projection import SparseRandomProjection

from streamsel import RandomFourier, RandomProjection
from tests.bench.test_columns import fortran
from tests.bench.test_rows import stream

N, K = 1000, 100


@pytest.fixture
def X(size):
    return fortran(np.random.default_rng(0), N, size(50_000))


def embedding(make, X):
    def run():
        model = make()
        model.learn_columns(X)
        return model.embedding

    return run


@pytest.mark.parametrize("kind", ["very sparse", "sparse", "sign", "gaussian"])
def test_columns(against, X, kind):
    """The peer has its default density, 1 / √p, and gets rows in C order, which suit it."""
    density = X.shape[1] ** -0.5 if kind == "very sparse" else 1 / 3
    options = {"kind": kind.removeprefix("very "), "density": density}
    by_rows = np.ascontiguousarray(X)
    against(
        f"RandomProjection {kind}, n=1,000 p=50,000 k=100 / scikit-learn SparseRandomProjection",
        embedding(lambda: RandomProjection(K, **options), X),
        lambda: SparseRandomProjection(K, random_state=0).fit_transform(by_rows),
        data=X.nbytes,
    )


def test_sparse_columns(against, X):
    X = sp.random_array(X.shape, density=0.01, format="csc", random_state=0)
    by_rows = X.tocsr()
    against(
        "RandomProjection sign, same size, CSC 1 % / scikit-learn SparseRandomProjection, density "
        "1/3",
        embedding(lambda: RandomProjection(K), X),
        lambda: SparseRandomProjection(K, density=1 / 3, random_state=0).fit_transform(by_rows),
        data=X.data.nbytes,
    )


def test_fourier(against, X):
    by_rows = np.ascontiguousarray(X)
    against(
        "RandomFourier, n=1,000 p=50,000 k=100 / scikit-learn RBFSampler",
        embedding(lambda: RandomFourier(K, gamma=1e-5), X),
        lambda: RBFSampler(n_components=K, gamma=1e-5, random_state=0).fit_transform(by_rows),
        data=X.nbytes,
    )


def transforming(model, rows):
    def run():
        for x in rows:
            model.learn_one(x)
            model.transform_one(x)

    return run


@pytest.mark.parametrize(("n_features", "k"), [(1000, K), (1000, 10), (20, 10)])
@pytest.mark.parametrize("learner", [RandomProjection, RandomFourier])
def test_rows(against, learner, n_features, k):
    rows = stream(n_features)[0][:20]
    against(
        f"{learner.__name__} transform and learn, {n_features:,} features, {k} components / River "
        "GaussianRandomProjector",
        transforming(learner(k), rows),
        transforming(preprocessing.GaussianRandomProjector(k, seed=1), rows),
        threshold=1 / 30 if (n_features, k) == (1000, K) else None,
    )
