"""Reconstruction of columns from principal components."""

import numpy as np
import pytest
from scipy import sparse
from sklearn import decomposition

from streamsel import PCA

N_ROWS = 40


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(N_ROWS, 3)) @ rng.normal(size=(3, 60))
    return hidden + 0.3 * rng.normal(size=(N_ROWS, 60)) + 5.0


def learnt(X):
    model = PCA(n_components=3)
    model.learn_columns(X)
    return model


def read(stream):
    return np.hstack([np.asarray(block.values) for block in stream.blocks()])


def test_is_what_scikit_learn_makes_of_its_components(X):
    peer = decomposition.PCA(3, svd_solver="full")
    expected = peer.inverse_transform(peer.fit_transform(X))
    np.testing.assert_allclose(read(learnt(X).reconstruct(X)), expected, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_numbers_may_be_of_any_kind(X, dtype):
    expected = read(learnt(X).reconstruct(X.astype(dtype).astype(np.float64)))
    np.testing.assert_allclose(read(learnt(X).reconstruct(X.astype(dtype))), expected, atol=1e-10)


@pytest.mark.slow
def test_sparse_columns_are_few_at_a_time():
    rng = np.random.default_rng(0)
    X = sparse.random(2_000, 3_000, 0.001, format="csc", random_state=0)
    model = learnt(rng.normal(size=(2_000, 5)))
    found = list(model.reconstruct(X).blocks())
    assert max(block.values.nbytes for block in found) <= 4 << 20
    assert [name for block in found for name in block.names] == list(range(3_000))
    dense = read(model.reconstruct(X.toarray()))
    np.testing.assert_allclose(read(model.reconstruct(X)), dense, atol=1e-12)


def test_before_columns_there_is_nothing_to_show_them_by(X):
    with pytest.raises(ValueError, match=r"Hint: learn_columns\(X\) first"):
        PCA(n_components=3).reconstruct(X)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_gap_is_not_spread_over_its_column(X, value):
    gap = X.copy()
    gap[3, 7] = value
    with pytest.raises(ValueError, match="column 7"):
        read(learnt(X).reconstruct(gap))


def test_columns_have_as_many_rows_as_those_learnt(X):
    with pytest.raises(ValueError, match=r"(?s)Expected 40 values.*Got: 5"):
        read(learnt(X).reconstruct(X[:5]))


def test_text_is_refused():
    model = learnt(np.eye(3))
    with pytest.raises(TypeError, match="real numbers"):
        read(model.reconstruct(np.array([["a"], ["b"], ["c"]], dtype=object)))
