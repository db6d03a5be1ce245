"""Compare methods on the Gram matrix of all columns with peers, mostly scikit-learn's."""

import ikpls.numpy
import numpy as np
import pytest
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA, IncrementalPCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.pipeline import make_pipeline

import streamsel
from streamsel import PLS, Discriminant, PrivateFeatures, RankedPCA, SupervisedPCA
from tests.bench.test_columns import fortran, learnt

N, Q = 1000, 10


@pytest.fixture
def data(size):
    """Return columns and a target; one column in a hundred correlates with it."""
    rng = np.random.default_rng(0)
    X, y = fortran(rng, N, size(20_000)), rng.standard_normal(N)
    X[:, ::100] += 0.3 * y[:, None]
    return X, y


def scores(cls, y, X, **parameters):
    return learnt(cls, y, X, n_components=Q, **parameters).embedding


def difference(ours, theirs):
    """Return the largest difference of scores up to sign, relative to the largest score."""
    return np.abs(np.abs(ours) - np.abs(theirs)).max() / np.abs(theirs).max()


@pytest.mark.parametrize("c", [1, 5], ids=["one target", "five targets"])
def test_pls(against, data, c):
    X, y = data
    Y = np.column_stack([y, *np.random.default_rng(1).standard_normal((c - 1, N))])

    def theirs():
        return PLSRegression(Q).fit(X, Y).x_scores_

    against(
        f"PLS, 10 components of {N:,} x {X.shape[1]:,}, {c} target{'s' * (c > 1)} / scikit-learn's "
        "PLSRegression",
        lambda: scores(PLS, Y, X),
        theirs,
        threshold=0.6,
        rounds=3,
        data=X.nbytes,
    )
    if c == 1:
        assert difference(scores(PLS, Y, X), theirs()) < 1e-9


def test_pls_against_kernel_algorithms(against, data):
    """The peer has the columns in memory, and makes one pass per component."""
    X, y = data

    def theirs():
        model = ikpls.numpy.PLS(algorithm=1)
        model.fit(X, y, Q)
        return model.T

    against(
        f"PLS, 10 components of {N:,} x {X.shape[1]:,} / ikpls, algorithm 1",
        lambda: scores(PLS, y, X),
        theirs,
        threshold=None,
        rounds=3,
        data=X.nbytes,
    )
    ours, T = scores(PLS, y, X), theirs()
    assert difference(ours / np.linalg.norm(ours, axis=0), T / np.linalg.norm(T, axis=0)) < 1e-9


@pytest.mark.parametrize(
    ("solver", "p", "shrinkage"),
    [("svd", 20_000, None), ("eigen", 2_000, 0.5), ("lsqr", 2_000, 0.5)],
)
def test_discriminant(against, data, size, solver, p, shrinkage):
    """The peer's shrinkage needs a matrix of all columns, which is too large for 20,000."""
    X, y = data
    X, classes = X[:, : size(p)], np.digitize(y, [-1.0, 0.0, 1.0]).astype(str)
    against(
        f"Discriminant, {N:,} x {X.shape[1]:,}, 4 classes / LinearDiscriminantAnalysis, {solver}",
        lambda: (
            learnt(
                Discriminant, classes, X, n_components=3, shrinkage=shrinkage or "auto"
            ).embedding
        ),
        lambda: LinearDiscriminantAnalysis(solver=solver, shrinkage=shrinkage).fit(X, classes),
        threshold=None,
        rounds=3,
        data=X.nbytes,
    )


@pytest.mark.parametrize("cls", [PrivateFeatures, RankedPCA])
def test_components_with_a_target(against, data, cls):
    X, y = data
    against(
        f"{cls.__name__}, 10 components of {N:,} x {X.shape[1]:,} / scikit-learn's PCA, arpack",
        lambda: scores(cls, y, X),
        lambda: PCA(Q, svd_solver="arpack", random_state=0).fit_transform(X),
        threshold=None,
        rounds=3,
        data=X.nbytes,
    )


def test_supervised_pca(against, data):
    X, y = data
    max_candidates = 190

    def theirs():
        selector = SelectKBest(f_regression, k=max_candidates)
        return make_pipeline(selector, PCA(Q, svd_solver="full")).fit_transform(X, y)

    def ours():
        return scores(SupervisedPCA, y, X, max_candidates=max_candidates)

    against(
        f"SupervisedPCA, 10 components of {N:,} x {X.shape[1]:,} / SelectKBest and PCA",
        ours,
        theirs,
        threshold=None,
        rounds=5,
        data=X.nbytes,
    )
    assert difference(ours(), theirs()) < 1e-9


def test_pca_of_many_rows(against, size):
    """With too many rows for a Gram matrix, PCA finds the leading axes in one pass."""
    rng = np.random.default_rng(0)
    n, p = size(20_000), 2_000
    hidden = rng.standard_normal((n, 20)) * np.linspace(4.0, 1.0, 20)
    X = np.asfortranarray(hidden @ rng.standard_normal((20, p)) + 2.0 * rng.standard_normal((n, p)))

    def ours():
        return learnt(streamsel.PCA, None, X, n_components=Q, max_gram_rows=n // 2).embedding

    def theirs():
        return PCA(Q, svd_solver="randomized", random_state=0).fit_transform(X)

    against(
        f"PCA, 10 components of {n:,} x {p:,}, leading axes / scikit-learn's PCA, randomized",
        ours,
        theirs,
        threshold=None,
        rounds=3,
        data=X.nbytes,
    )
    variance = [np.square(scores).sum() for scores in (ours(), theirs())]
    assert variance[0] > 0.999 * variance[1]


def test_pca_of_rows_of_many_variables(against, size):
    rng = np.random.default_rng(0)
    n, p = size(2_000), 5_000
    X = rng.standard_normal((n, 20)) @ rng.standard_normal((20, p)) + rng.standard_normal((n, p))

    def ours():
        model = streamsel.PCA(Q, max_features=None, warm_up=n)
        model.learn_many(X)
        return model

    against(
        f"PCA on rows, {n:,} x {p:,}, max_features=None / scikit-learn's IncrementalPCA",
        ours,
        lambda: IncrementalPCA(2 * Q + 10, batch_size=4 * (2 * Q + 10)).fit(X),
        threshold=None,
        rounds=3,
        data=X.nbytes,
    )
