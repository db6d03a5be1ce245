"""Compare the online factorisations with scikit-learn's, whose rows are our columns."""

import numpy as np
import pytest
from sklearn.decomposition import MiniBatchDictionaryLearning, MiniBatchSparsePCA

from streamsel import ProbabilisticPCA, RobustPCA, SparsePCA
from tests.bench.test_columns import fortran

N, P, Q = 1000, 20_000, 10


@pytest.fixture
def X(size):
    """Return columns that are combinations of twenty hidden variables, and noise."""
    rng, p = np.random.default_rng(0), size(P)
    X = fortran(rng, N, p)
    X += rng.normal(size=(N, 20)) @ rng.normal(size=(20, p))
    return X


def learning(model, X):
    def run():
        clone = model.clone()
        clone.learn_columns(X)
        return clone.embedding

    return run


def dictionary(X):
    """Return a function that learns a dictionary of the columns in one pass, batch by batch."""
    rows = np.ascontiguousarray((X - X.mean(axis=0)).T)
    alpha = 0.1 * np.sqrt(np.square(rows).sum(axis=1).mean())
    model = MiniBatchDictionaryLearning(
        Q, alpha=alpha, max_iter=1, batch_size=256, random_state=0, fit_algorithm="cd"
    )
    return lambda: model.fit(rows)


@pytest.mark.parametrize("learner", [SparsePCA, RobustPCA, ProbabilisticPCA])
def test_columns(against, X, learner):
    against(
        f"{learner.__name__}, n=1,000 p=20,000 q=10 / scikit-learn MiniBatchDictionaryLearning",
        learning(learner(Q), X),
        dictionary(X),
        data=X.nbytes,
    )


def test_sparse_pca(against, X):
    """The peer learns a dictionary from batches of variables, and then codes all variables."""
    rows = np.ascontiguousarray(X)
    peer = MiniBatchSparsePCA(Q, alpha=1.0, max_iter=1, batch_size=256, random_state=0)
    against(
        "SparsePCA, n=1,000 p=20,000 q=10 / scikit-learn MiniBatchSparsePCA",
        learning(SparsePCA(Q), X),
        lambda: peer.fit(rows),
        data=X.nbytes,
    )


def test_gaps(against, X):
    gaps = X.copy(order="F")
    gaps[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    against(
        "ProbabilisticPCA, a fifth of the values missing / ProbabilisticPCA, none missing",
        learning(ProbabilisticPCA(Q), gaps),
        learning(ProbabilisticPCA(Q), X),
        data=X.nbytes,
    )
