"""Stored copies of columns for further passes, and principal coordinates of rows with many."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as stn
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from streamsel import ForwardSelection
from streamsel.data.chunks import Block
from streamsel.evaluate import subsample_stability
from streamsel.evaluate._principal_axes import principal_coordinates
from streamsel.evaluate.stored_columns import StoredColumns, stored_size
from streamsel.stream import iter_columns

SPECIAL = [0.0, -0.0, 1.0, 2.0, -127.0, -128.0, 127.0, 128.0, 0.5, 1 / 3, np.nan, np.inf, -np.inf]


@given(st.data(), st.sampled_from(["f8", "f4", "i1"]), st.integers(1, 5), st.integers(1, 4))
def test_copied_columns_have_the_same_bits(data, dtype, n, b):
    values = SPECIAL if dtype != "i1" else [-128, 0, 2, 127]
    X = data.draw(
        stn.arrays(dtype, (b, n), elements=st.sampled_from(np.array(values, dtype).tolist()))
    ).T
    columns = StoredColumns(10**6)
    columns.record(Block(range(b), X))
    (block,) = columns.blocks()
    assert block.values.dtype == X.dtype
    assert block.values.tobytes("F") == X.tobytes("F")
    taken = columns.stream().take([b - 1])[b - 1]
    assert taken.tobytes() == np.ascontiguousarray(block.values[:, b - 1]).tobytes()


def test_small_integers_with_imputed_means_take_a_byte():
    X = np.asfortranarray(np.random.default_rng(0).integers(0, 3, (50, 4)).astype(np.float32))
    X[3, 1] = X[9, 1] = X[:, 1].mean() + 0.01
    assert stored_size(Block(range(4), X)) == 4 * 50 + 4 * 4
    X[4, 1] += 0.1
    assert stored_size(Block(range(4), X)) == 4 * 50 * 4


def test_columns_beyond_the_limit_are_only_counted():
    columns, X = StoredColumns(100), np.random.default_rng(0).normal(size=(10, 3))
    sparse = scipy.sparse.csc_array(np.eye(10))
    columns.record(Block("a", X[:, :1]))
    assert columns.stream().names == ["a"]
    columns.record(Block("bc", X[:, 1:]))
    columns.record(Block(range(10), sparse))
    assert columns.stream() is None
    parts = sparse.data, sparse.indices, sparse.indptr
    assert (columns.n_columns, columns.n_bytes) == (13, 240 + sum(part.nbytes for part in parts))


def test_too_large_copies_are_replaced_by_the_source():
    """A copy that exceeds its limit (floats after integers) is replaced by the source."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 1100))
    X[:, :140] = rng.integers(0, 3, (4000, 140))
    y, n_passes = X[:, 200] + rng.normal(size=4000), 0

    def columns():
        nonlocal n_passes
        n_passes += 1
        return enumerate(X.T)

    stream = iter_columns(columns, n_rows=4000, n_columns=1100)
    settings = {"n_subsamples": 3, "max_bytes": 40_000_000}
    found = subsample_stability(ForwardSelection(k=2), stream, y, **settings)
    assert n_passes > 2
    assert found == subsample_stability(ForwardSelection(k=2), X, y, n_subsamples=3)


@pytest.mark.parametrize("n_test", [1, 7])
def test_principal_coordinates_equal_scikit_learn(n_test):
    X = np.random.default_rng(0).normal(size=(12 + n_test, 40))
    X[:, 5] = 3.0
    pairs = ((X[:12, part].copy(), X[12:, part].copy()) for part in (slice(25), slice(25, None)))
    train, test = principal_coordinates(pairs, StandardScaler())
    theirs = make_pipeline(StandardScaler(), PCA(svd_solver="full")).fit(X[:12])
    expected, expected_test = theirs.transform(X[:12]), theirs.transform(X[12:])
    # The last axis of scikit-learn is a rounding error: 12 centred rows have rank 11.
    assert train.shape == (12, 11)
    np.testing.assert_allclose(np.abs(train), np.abs(expected[:, :11]), atol=1e-10)
    np.testing.assert_allclose(np.abs(test), np.abs(expected_test[:, :11]), atol=1e-10)
    np.testing.assert_allclose(test @ train.T, expected_test[:, :11] @ expected[:, :11].T)
