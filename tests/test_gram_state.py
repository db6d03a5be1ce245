"""A Gram matrix with a pool is one state: one rollback, one ranking object, never pickled."""

import pickle

import numpy as np
import pytest

from streamsel import PCA, KernelPCA, RidgeComponents
from streamsel.data.chunks import Block
from streamsel.data.columns import iter_chunks
from streamsel.state.gram.gram import Gram
from streamsel.state.gram.pooled import GramState, SharedGram
from streamsel.state.gram.view import GramScale, GramView
from streamsel.state.gram.weighting import EqualWeights
from streamsel.state.pool.pool import Pool, TopRanked, equal_scores, sums_of_squares
from streamsel.targets.target import NoTarget

N = 12


def pool_of(score, limit=3):
    return Pool(None, N, limit, TopRanked(score), samples=True)


def admit(state, X, first):
    """Learn columns that are named from `first` on."""
    for chunk in iter_chunks(Block(range(first, first + X.shape[1]), X), N):
        state.admit(chunk, chunk.scan(NoTarget(N), 1), first)


@pytest.mark.parametrize("rank", [None, 4])
def test_matrix_and_pool_are_restored_together_any_number_of_times(rank):
    X = np.random.default_rng(0).normal(size=(N, 40))
    state = SharedGram(pool_of(sums_of_squares), scaled=False, rank=rank, n_jobs=1)
    admit(state, X[:, :10], 0)
    before, restore = pickle.dumps(state.to_state()), state.snapshot()
    for stop in (11, 40):
        admit(state, X[:, 10:stop], 10)
        assert pickle.dumps(state.to_state()) != before
        restore()
        assert pickle.dumps(state.to_state()) == before
    other = SharedGram(pool_of(sums_of_squares), scaled=False, rank=rank, n_jobs=1)
    admit(other, X[:, 10:], 50)
    state.merge(other, 10)
    restore()
    assert pickle.dumps(state.to_state()) == before


def test_the_score_decides_what_the_pool_keeps():
    X = np.random.default_rng(0).normal(size=(N, 20)) * np.arange(1.0, 21.0)
    kept = {}
    for score in (sums_of_squares, equal_scores):
        state = GramState(Gram(N), pool_of(score), EqualWeights(None, scaled=False))
        admit(state, X, 0)
        kept[score] = state.names
        centred = X - X.mean(axis=0)
        np.testing.assert_allclose(state.matrix(), centred @ centred.T, rtol=1e-10, atol=1e-8)
        assert state.n_varying == 20
    assert kept[equal_scores][:3] == [0, 1, 2]
    assert max(kept[sums_of_squares]) >= 17


@pytest.mark.parametrize("cls", [PCA, RidgeComponents])
def test_passes_do_not_contain_the_gram_matrix(cls):
    rng = np.random.default_rng(0)
    n = 500
    X = rng.normal(size=(n, 40))
    model = cls(2, max_loadings=5)
    if cls is RidgeComponents:
        model.learn_target(X[:, 0] + rng.normal(size=n))
    model.learn_columns(X)
    assert len(pickle.dumps(model._next_pass())) < 8 * n * n / 4


def test_weights_by_relevance_cannot_be_shared():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 8))
    ridge = RidgeComponents(2)
    ridge.learn_target(X[:, 0] + rng.normal(size=30))
    ridge.learn_columns(X)
    for model in (PCA(2), KernelPCA(2)):
        with pytest.raises(TypeError, match="Got: RidgeComponents"):
            model.learn_from(ridge)


@pytest.mark.parametrize("values", ["decaying", "equal", "flat"])
def test_leading_axes_of_a_medium_matrix(values):
    """Leading axes by iteration are correct, and none of several equal eigenvalues is missed."""
    n, q = 720, 4
    rng = np.random.default_rng(0)
    d = {
        "decaying": 2.0 ** -np.arange(n),
        "equal": np.repeat(2.0 ** -np.arange(n // 2), 2),
        "flat": np.linspace(1.0, 0.9, n),
    }[values]
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    K = (Q * d) @ Q.T
    about = GramScale(float(n), float(n), n - 1.0, n, 1.0, np.zeros((0, 0)))
    found, E = GramView(0.5 * (K + K.T), np.zeros((n, 0)), np.zeros((n, 0)), about).axes(q)
    np.testing.assert_allclose(found, d[:q], rtol=1e-9)
    np.testing.assert_allclose((E.T @ Q[:, :q] @ Q[:, :q].T) @ E, np.eye(q), atol=1e-9)
