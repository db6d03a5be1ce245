"""Compare BackwardElimination with one inverse of a Gram matrix, and with scikit-learn's RFE."""

import numpy as np
from sklearn.feature_selection import RFE
from sklearn.linear_model import Ridge

from streamsel import BackwardElimination
from tests.bench.test_columns import fortran, learner

K = 10


def data(n, p):
    rng = np.random.default_rng(0)
    X = fortran(rng, n, p)
    y = X[:, ::50].sum(axis=1) + rng.standard_normal(n)
    return X, y


def test_a_thousand_variables(against, size):
    X, y = data(1000, size(1000))
    ours = learner(BackwardElimination, y, X, k=K, max_candidates=None)

    def limit():
        V = X - X.mean(axis=0)
        C = V.T @ V
        C.flat[:: len(C) + 1] *= 1.001
        return np.linalg.inv(C)

    against("BackwardElimination, n=1,000 p=1,000 / Gram matrix and its inverse", ours, limit)


def test_recursive_elimination(against, size):
    """RFE ranks by the size of coefficients, and fits again for each removal."""
    X, y = data(1000, size(400))
    peer = RFE(Ridge(1.0), n_features_to_select=K, step=1)
    against(
        "BackwardElimination, n=1,000 p=400 / scikit-learn's RFE(Ridge)",
        learner(BackwardElimination, y, X, k=K),
        lambda: peer.fit(X, y),
        threshold=0.1,
        rounds=3,
    )


def test_of_many_columns(against, size):
    X, y = data(1000, size(20_000))
    ours = learner(BackwardElimination, y, X, k=K, max_candidates=100)
    what = "BackwardElimination max_candidates=100, n=1,000 p=20,000 / y @ X"
    against(what, ours, lambda: y @ X, data=X.nbytes)
