"""Compare PCA with scikit-learn's, with one matrix product, and on rows with a projector."""

import numpy as np
import pytest
from river.preprocessing import GaussianRandomProjector
from sklearn import decomposition
from sklearn.random_projection import GaussianRandomProjection

from streamsel import PCA
from tests.bench.test_columns import fortran
from tests.bench.test_rows import DISTINCT, frame_of, stream

N, Q = 1000, 10


@pytest.fixture
def X(size):
    """Return columns that depend a little on ten hidden variables."""
    rng = np.random.default_rng(0)
    X = fortran(rng, N, size(20_000))
    X += 0.3 * rng.standard_normal((N, Q)) @ rng.standard_normal((Q, X.shape[1]))
    return X


def scores(X):
    model = PCA(Q)
    model.learn_columns(X)
    return model.embedding


PEERS = {
    "PCA, randomized": (lambda: decomposition.PCA(Q, svd_solver="randomized", random_state=0), 0.4),
    "PCA, arpack": (lambda: decomposition.PCA(Q, svd_solver="arpack", random_state=0), None),
    "IncrementalPCA": (lambda: decomposition.IncrementalPCA(Q), None),
    "GaussianRandomProjection": (lambda: GaussianRandomProjection(Q, random_state=0), None),
}


@pytest.mark.parametrize("peer", PEERS)
def test_scores(against, X, peer):
    make, threshold = PEERS[peer]
    against(
        f"PCA, 10 components of 1,000 x {X.shape[1]:,} / scikit-learn's {peer}",
        lambda: scores(X),
        lambda: make().fit_transform(X),
        threshold=threshold,
        rounds=3 if threshold is None else 5,
        data=X.nbytes,
    )
    if peer == "PCA, arpack":
        exact = np.abs(make().fit_transform(X))
        assert np.abs(np.abs(scores(X)) - exact).max() < 1e-9 * exact.max()


def test_rows(against):
    rows, _ = stream(100)
    projector, model = GaussianRandomProjector(Q, seed=0), PCA(Q)
    for _ in range(3):
        model.learn_many(frame_of(rows)[0])

    def ours():
        for x in rows:
            model.transform_one(x)
            model.learn_one(x)

    def theirs():
        for x in rows:
            projector.transform_one(x)

    against(
        f"PCA transform, then learn, 100 features, {DISTINCT} rows / River projector",
        ours,
        theirs,
        threshold=None,
        rounds=11,
    )
