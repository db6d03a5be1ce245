"""Compare tests of groups of columns with loops over SciPy and NumPy."""

import numpy as np
import pytest
import scipy.sparse
from scipy import stats

from streamsel import ForwardSelection, ProjSe, SelectKBest
from streamsel.stream import grouped

N, K = 1000, 10


def learner(cls, y, source, **params):
    """Return a function that learns a source and returns the selected variables."""

    def run():
        model = cls(K, **params)
        model.learn_target(y)
        model.learn_columns(source)
        return model.selected

    return run


@pytest.fixture
def one_hot(size):
    """Return codes (N, g) of 2 to 10 categories, and CSC indicators without and with groups."""
    rng = np.random.default_rng(0)
    n_values = rng.integers(2, 11, size=size(5_000))
    codes = np.asfortranarray(rng.integers(0, n_values, size=(N, n_values.size)))
    first = np.concatenate([[0], np.cumsum(n_values)])
    order = np.argsort(codes, axis=0, kind="stable").T.ravel()
    counts = [np.bincount(c, minlength=m) for c, m in zip(codes.T, n_values, strict=True)]
    indptr = np.append(0, np.cumsum(np.concatenate(counts)))
    X = scipy.sparse.csc_array((np.ones(order.size), order, indptr), shape=(N, first[-1]))
    groups = dict(enumerate(np.repeat(np.arange(n_values.size), n_values).tolist()))
    return codes, X, grouped(X, groups)


@pytest.fixture
def dense(size):
    """Return float64 columns without groups, and in groups of twelve."""
    p = 12 * size(500)
    X = np.asfortranarray(np.random.default_rng(1).normal(size=(N, p)))
    return X, grouped(X, {j: j // 12 for j in range(p)})


@pytest.mark.parametrize("peer", ["scipy.stats.f_oneway of each", "single columns"])
def test_one_hot_groups(against, one_hot, peer):
    codes, X, source = one_hot
    y = np.random.default_rng(2).normal(size=N)

    def anova():
        for c in codes.T:
            stats.f_oneway(*(y[c == value] for value in range(c.max() + 1)))

    limit = learner(SelectKBest, y, X) if peer == "single columns" else anova
    what = f"SelectKBest of 5,000 one-hot groups of 2 to 10 columns, sparse, n=1,000 / {peer}"
    against(what, learner(SelectKBest, y, source), limit)


@pytest.mark.parametrize("peer", ["numpy.linalg.qr of each", "single columns"])
@pytest.mark.parametrize("c", [1, 20])
def test_dense_groups(against, dense, c, peer):
    X, source = dense
    Y = np.random.default_rng(3).normal(size=(N, c))
    Y = Y[:, 0] if c == 1 else Y

    def regressions():
        centred = Y - Y.mean(axis=0)
        for start in range(0, X.shape[1], 12):
            part = X[:, start : start + 12]
            Q = np.linalg.qr(part - part.mean(axis=0))[0]
            np.square(Q.T @ centred).sum()

    limit = learner(SelectKBest, Y, X) if peer == "single columns" else regressions
    what = f"SelectKBest of 500 groups of 12 columns, n=1,000, {c} target{'s' * (c > 1)} / {peer}"
    against(what, learner(SelectKBest, Y, source), limit, data=X.nbytes)


@pytest.mark.parametrize("cls", [ProjSe, ForwardSelection])
def test_greedy_selection_of_groups(against, dense, cls):
    X, source = dense
    Y = np.random.default_rng(3).normal(size=(N, 20))
    what = f"{cls.__name__} of 500 groups of 12 columns, n=1,000, 20 targets / single columns"
    against(what, learner(cls, Y, source), learner(cls, Y, X), data=X.nbytes)
