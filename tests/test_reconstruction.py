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


def test_reconstruction_equals_scikit_learn(X):
    peer = decomposition.PCA(3, svd_solver="full")
    expected = peer.inverse_transform(peer.fit_transform(X))
    np.testing.assert_allclose(read(learnt(X).reconstruct(X)), expected, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_all_numeric_types_are_accepted(X, dtype):
    expected = read(learnt(X).reconstruct(X.astype(dtype).astype(np.float64)))
    np.testing.assert_allclose(read(learnt(X).reconstruct(X.astype(dtype))), expected, atol=1e-10)


@pytest.mark.slow
def test_few_sparse_columns_are_converted_at_a_time():
    rng = np.random.default_rng(0)
    X = sparse.random(2_000, 3_000, 0.001, format="csc", random_state=0)
    model = learnt(rng.normal(size=(2_000, 5)))
    found = list(model.reconstruct(X).blocks())
    assert max(block.values.nbytes for block in found) <= 4 << 20
    assert [name for block in found for name in block.names] == list(range(3_000))
    dense = read(model.reconstruct(X.toarray()))
    np.testing.assert_allclose(read(model.reconstruct(X)), dense, atol=1e-12)


def test_reconstruction_before_learning_is_refused(X):
    with pytest.raises(ValueError, match=r"Hint: learn_columns\(X\) first"):
        PCA(n_components=3).reconstruct(X)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_non_finite_values_are_refused_by_column(X, value):
    gap = X.copy()
    gap[3, 7] = value
    with pytest.raises(ValueError, match="column 7"):
        read(learnt(X).reconstruct(gap))


def test_columns_must_have_the_number_of_rows_learnt(X):
    with pytest.raises(ValueError, match=r"(?s)Expected 40 values.*Got: 5"):
        read(learnt(X).reconstruct(X[:5]))


def test_text_is_refused():
    model = learnt(np.eye(3))
    with pytest.raises(TypeError, match="real numbers"):
        read(model.reconstruct(np.array([["a"], ["b"], ["c"]], dtype=object)))
