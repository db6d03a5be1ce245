"""Leading axes of variables over rows, against scikit-learn and the axes of all rows."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import IncrementalPCA

from streamsel.state.moments.row_subspace import RowSubspace

P, RANK = 25, 5
WIDTH = 4 * RANK


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def falling(rng, n, p=P):
    return rng.normal(size=(n, p)) * 0.7 ** np.arange(p) @ rng.normal(size=(p, p)) + np.arange(p)


def learnt(X, cuts=(), keep=1.0, rank=RANK):
    state = RowSubspace(rank, keep)
    for part in np.split(X, sorted(cuts)):
        state.learn(part, np.arange(X.shape[1]), X.shape[1])
    return state


def products(level):
    return level.axes @ level.axes.T


def about_mean(X, weights=None):
    """Return means and sums of products of weighted rows; NaN counts as the mean."""
    weights = np.ones(len(X)) if weights is None else weights
    mean = np.array([np.average(x[~np.isnan(x)], weights=weights[~np.isnan(x)]) for x in X.T])
    Z = np.where(np.isnan(X), 0.0, X - mean) * np.sqrt(weights)[:, None]
    return mean, Z.T @ Z


def same(one, other):
    mine, theirs = (
        state["moments"]
        | state["buffered"]
        | {"weight": state["weight"], "new_were_zero": state["new_were_zero"]}
        for state in (one.to_state(), other.to_state())
    )
    return all(np.array_equal(mine[key], theirs[key]) for key in mine)


def test_axes_equal_incremental_pca(rng):
    X = falling(rng, 10 * WIDTH)
    peer = IncrementalPCA(RANK, batch_size=WIDTH).fit(X)
    level = learnt(X).with_buffer(P)
    np.testing.assert_allclose(level.mean, peer.mean_, rtol=1e-12)
    expected = (peer.components_.T * peer.singular_values_**2) @ peer.components_
    np.testing.assert_allclose(products(level), expected, atol=1e-10 * expected.max())
    np.testing.assert_array_equal(level.weight, len(X))


@pytest.mark.parametrize("keep", [1.0, 0.97])
@pytest.mark.parametrize("n", [1, 2, WIDTH - 1, WIDTH, 3 * WIDTH + 7])
def test_low_rank_rows_are_exact(rng, n, keep):
    X = falling(rng, n)
    level = learnt(X, keep=keep, rank=P).with_buffer(P)
    weights = keep ** np.arange(n - 1.0, -1.0, -1.0)
    mean, expected = about_mean(X, weights)
    np.testing.assert_allclose(level.mean, mean, rtol=1e-10)
    np.testing.assert_allclose(products(level), expected, atol=1e-11 * max(1.0, expected.max()))
    np.testing.assert_allclose(level.weight, weights.sum())


def test_products_are_never_above_the_exact_ones(rng):
    X = falling(rng, 7 * WIDTH + 3)
    _, expected = about_mean(X)
    d = np.linalg.eigvalsh(expected - products(learnt(X).with_buffer(P)))
    assert d.min() > -1e-12 * expected.max()


def test_offset(rng):
    """An offset costs no digits beyond those lost in the data."""
    X = np.round(falling(rng, 5 * WIDTH), 6)
    level, far = learnt(X, rank=P).with_buffer(P), learnt(X + 1e9, rank=P).with_buffer(P)
    np.testing.assert_allclose(products(far), products(level), atol=1e-4)


@settings(max_examples=20, deadline=None)
@given(cuts=st.lists(st.integers(0, 70), max_size=6), seed=st.integers(0, 2**32 - 1))
def test_bits_do_not_depend_on_blocks(cuts, seed):
    X = falling(np.random.default_rng(seed), 70)
    whole, parts = learnt(X).with_buffer(P), learnt(X, cuts).with_buffer(P)
    for mine, theirs in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_absent_variables_are_zero(rng):
    X = falling(rng, 3 * WIDTH + 7) * (rng.uniform(size=(3 * WIDTH + 7, P)) < 0.2)
    state = RowSubspace(P, 1.0)
    for x in X:
        state.learn(x[None, x != 0.0], np.flatnonzero(x), P)
    mean, expected = about_mean(X)
    level = state.with_buffer(P)
    np.testing.assert_allclose(level.mean, mean, atol=1e-12)
    np.testing.assert_allclose(products(level), expected, atol=1e-11 * expected.max())


def test_late_variables_were_zero(rng):
    X = falling(rng, 3 * WIDTH + 7)
    X[: WIDTH + 3, 10:] = 0.0
    state = RowSubspace(P, 1.0)
    state.learn(X[: WIDTH + 3, :10], np.arange(10), 10)
    state.learn(X[WIDTH + 3 :], np.arange(P), P)
    mean, expected = about_mean(X)
    level = state.with_buffer(P)
    np.testing.assert_allclose(level.mean, mean, atol=1e-12)
    np.testing.assert_allclose(products(level), expected, atol=1e-11 * expected.max())


def test_late_variables_with_unknown_past(rng):
    """Late variables are used from their first row on if earlier zeros are not known."""
    X = falling(rng, 3 * WIDTH + 7) + 1e3
    X[: WIDTH + 3, 10:] = np.nan
    state = RowSubspace(P, 1.0)
    state.new_were_zero = False
    state.learn(X[: WIDTH + 3, :10], np.arange(10), 10)
    state.learn(X[WIDTH + 3 :], np.arange(P), P)
    mean, expected = about_mean(X)
    level = state.with_buffer(P)
    np.testing.assert_allclose(level.mean, mean, rtol=1e-12)
    variances = np.diag(expected)
    np.testing.assert_allclose(np.diag(products(level)), variances, rtol=1e-9)
    np.testing.assert_array_equal(level.weight[10:], 2 * WIDTH + 4)


def test_missing_values_are_the_mean(rng):
    X = falling(rng, WIDTH + 3)
    X[rng.uniform(size=X.shape) < 0.2] = np.nan
    X[:, 3] = np.nan
    X[0, 3] = 2.0
    level = learnt(X, rank=P).with_buffer(P)
    mean, expected = about_mean(X)
    np.testing.assert_allclose(level.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(np.diag(products(level)), np.diag(expected), atol=1e-9)
    assert RowSubspace(3, 1.0).with_buffer(2).axes.shape == (2, 0)
    nothing = learnt(np.full((WIDTH, 2), np.nan)).with_buffer(2)
    assert (nothing.axes.size, nothing.weight.sum()) == (0, 0.0)


@pytest.mark.parametrize("at", [1, WIDTH, 2 * WIDTH + 3])
def test_merge_equals_the_whole(rng, at):
    X = falling(rng, 3 * WIDTH)
    one, other = learnt(X[:at], rank=P), learnt(X[at:, ::-1], rank=P)
    before = copy.deepcopy(other)
    one.merge(other, np.arange(P)[::-1], P)
    assert same(other, before)
    mean, expected = about_mean(X)
    np.testing.assert_allclose(one.with_buffer(P).mean, mean, rtol=1e-10)
    np.testing.assert_allclose(products(one.with_buffer(P)), expected, atol=1e-11 * expected.max())
    assert one.weight == len(X)


def test_merge_of_other_variables(rng):
    X = falling(rng, 3 * WIDTH)
    X[:WIDTH, 10:], X[WIDTH:, :3] = 0.0, 0.0
    one, other = learnt(X[:WIDTH, :10], rank=P), learnt(X[WIDTH:, 3:], rank=P)
    one.merge(other, np.arange(3, P), P)
    _, expected = about_mean(X)
    np.testing.assert_allclose(products(one.with_buffer(P)), expected, atol=1e-11 * expected.max())


def test_files_and_rollback(rng):
    X = falling(rng, 2 * WIDTH + 5)
    state, again = learnt(X, cuts=[44]), RowSubspace(RANK, 1.0)
    again.set_state(copy.deepcopy(state.to_state()))
    restore = state.snapshot()
    for one in (state, again):
        one.learn(X, np.arange(P), P)
    assert same(state, again)
    restore()
    assert same(state, learnt(X, cuts=[44]))


@pytest.mark.parametrize(
    ("part", "field", "value"),
    [
        ("moments", "axes", np.zeros((P + 1, 2))),
        ("moments", "axes", np.zeros((P, RANK + 1))),
        ("moments", "mean", np.zeros(P - 1)),
        ("buffered", "indices", np.tile(np.arange(P) + 1, 5)),
        ("buffered", "indices", np.zeros(5 * P, dtype=int)),
        ("buffered", "values", np.zeros(5 * P + 1)),
        ("buffered", "ends", np.array([0, P, 3 * P, 2 * P, 4 * P, 5 * P])),
        ("buffered", "ends", np.arange(5) * P),
    ],
)
def test_inconsistent_files_are_refused(rng, part, field, value):
    state = learnt(falling(rng, 2 * WIDTH + 5)).to_state()
    state[part][field] = value
    with pytest.raises(ValueError, match=r"^Expected"):
        RowSubspace(RANK, 1.0).set_state(state)
