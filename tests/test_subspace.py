"""Leading axes of columns against their definitions, and against those of all columns."""

import copy
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import IncrementalPCA

from streamsel.data.chunks import Block
from streamsel.data.columns import iter_chunks
from streamsel.state.gram.block_lanczos import leading_eigenpairs_of
from streamsel.state.gram.subspace import GramProduct, Subspace, SubspaceIteration
from streamsel.targets.target import NoTarget
from tests.reference import subspace as reference

N, RANK = 40, 6
WIDTH = 4 * RANK
# Sparse columns are stored up to this number of values, and then reduced in batches of 512.
P, STORED = 1100, 3000


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def add(state, X, weights):
    """Add an (n, p) array or CSC matrix as one block."""
    X = X if scipy.sparse.issparse(X) else np.asfortranarray(X)
    done = 0
    for chunk in iter_chunks(Block(range(X.shape[1]), X), state.n):
        stats = chunk.scan(NoTarget(state.n), 1)
        b = stats.m2.size
        state.add(chunk, stats, weights[done : done + b, None])
        done += b
    return state


def learnt(X, weights, cuts=(), n_jobs=1, rank=RANK, stored=STORED):
    """Return the state that has learnt X, cut into blocks at these columns."""
    state = Subspace(X.shape[0], rank, n_jobs, stored)
    for start, stop in pairwise([0, *sorted(cuts), X.shape[1]]):
        if start < stop:
            add(state, X[:, start:stop], weights[start:stop])
    return state


def dense(X):
    return X.toarray() if scipy.sparse.issparse(X) else X


def same(one, other):
    """Return whether two states are bit-identical, buffers included."""
    mine, theirs = one.to_state(), other.to_state()
    mine, theirs = mine | mine.pop("stored"), theirs | theirs.pop("stored")
    return all(np.array_equal(mine[key], theirs[key]) for key in mine)


def matrix(axes, every=1):
    d, E = axes[0], axes[1][::every]
    return (E * d) @ E.T


def assert_equal(found, expected, tolerance=1e-10, every=1):
    """Compare eigenpairs by the matrices that they form, or by a share of their rows."""
    d, E = found
    np.testing.assert_allclose(d, expected[0], rtol=tolerance, atol=tolerance * d.max(initial=0))
    np.testing.assert_allclose(E.T @ E, np.eye(d.size), rtol=0.0, atol=1e-12)
    largest = d.max(initial=0.0)
    np.testing.assert_allclose(
        matrix(found, every),
        matrix(expected, every),
        rtol=0.0,
        atol=tolerance * max(largest, 1e-300),
    )


def falling(rng, n, p):
    """Return columns of decreasing variances, as in real data."""
    return rng.normal(size=(n, n)) * 0.7 ** np.arange(n) @ rng.normal(size=(n, p)) + 3.0


def sparse(rng, n, p):
    """Return CSC columns of various densities, some of them dense and some constant."""
    X = rng.normal(size=(n, p)) * (rng.uniform(size=(n, p)) < rng.uniform(0.0, 0.25, size=p))
    return scipy.sparse.csc_array(X + (np.arange(p) % 97 == 3))


def few(rng, n, p):
    """Return CSC columns that are all sparse, in more than one part."""
    X = rng.normal(size=(n, p)) * (np.arange(n)[:, None] % 11 == np.arange(p) % 11)
    return scipy.sparse.csc_array(X)


KINDS = {"dense": falling, "sparse": sparse, "few": few}


@pytest.fixture(params=KINDS)
def made(request, rng):
    """Return columns and weights, some of them 0."""
    weights = rng.uniform(0.1, 1.0, size=P) * (rng.uniform(size=P) > 0.2)
    return KINDS[request.param](rng, N, P), weights


# Definition


def test_axes_equal_the_definition(rng):
    X, weights = falling(rng, N, P), rng.uniform(0.1, 1.0, size=P)
    expected = reference.incremental(reference.centred(X, weights), RANK, WIDTH)
    assert_equal(learnt(X, weights).axes(), expected)


def test_axes_of_sparse_columns_equal_the_definition(rng):
    """Sparse columns are reduced when the store is full; the rest is reduced by `axes`."""
    X, weights = few(rng, N, P), rng.uniform(0.1, 1.0, size=P)
    used = np.cumsum(np.diff(X.indptr) + 1)
    full = int(np.searchsorted(used, STORED)) + 1
    assert 512 < full < P < full + 512
    assert used[-1] - used[full - 1] < STORED
    state = learnt(X, weights)
    assert not state.is_exact
    edges = [0, 512, full, P]
    expected = reference.in_batches(reference.centred(dense(X), weights), RANK, edges)
    assert_equal(state.axes(), expected)


@pytest.mark.parametrize("kind", ["sparse", "few"])
def test_axes_of_stored_columns_are_exact(kind, rng):
    """Axes of stored columns are exact, for any density and with a direction projected out."""
    X, weights = KINDS[kind](rng, N, P), rng.uniform(0.1, 1.0, size=P)
    state = learnt(X, weights, stored=10**6)
    assert state.is_exact
    centred = reference.centred(dense(X), weights)
    assert_equal(state.axes(), reference.leading(centred, RANK))
    assert_equal(state.axes(count=2), reference.leading(centred, 2))
    u = np.linalg.qr(rng.normal(size=(N, 1)))[0]
    left = centred - u @ (u.T @ centred)
    assert_equal(state.axes(u.T), reference.leading(left, RANK))


def test_stored_columns_are_added_to_axes(rng):
    """Stored columns are added to the axes of dense ones; they have few directions together."""
    basis = rng.normal(size=(N, RANK))
    X = basis @ rng.normal(size=(RANK, 60))
    S = scipy.sparse.csc_array(basis[:, :1] * (rng.uniform(size=(N, 1)) < 0.4) * np.ones((1, 600)))
    state = add(learnt(X, np.ones(60), rank=8), S, np.ones(600))
    expected = reference.centred(np.hstack([X, S.toarray()]), np.ones(660))
    assert_equal(state.axes(), reference.leading(expected, 8), 1e-9)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6), n=st.integers(1, 300), rank=st.integers(0, 300), k=st.integers(1, 9)
)
def test_leading_eigenpairs_by_products(seed, n, rank, k):
    rng = np.random.default_rng(seed)
    d = np.append(10.0 ** rng.uniform(-2, 2, min(n, rank)), np.zeros(max(0, n - rank)))
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    found, E = leading_eigenpairs_of(lambda V: (Q * d) @ (Q.T @ V), n, k)
    expected = np.sort(d)[::-1][:k]
    np.testing.assert_allclose(found, expected, atol=1e-9 * max(d.max(), 1.0))
    np.testing.assert_allclose(E.T @ E, np.eye(len(found)), atol=1e-9)
    np.testing.assert_allclose((Q * d) @ (Q.T @ E), E * found, atol=1e-7 * max(d.max(), 1.0))


def test_axes_equal_incremental_pca(rng):
    """Axes equal IncrementalPCA of the transposed problem; opposites make the mean column 0."""
    X = rng.normal(size=(N, 500)) * rng.uniform(size=500)
    both = np.stack([X, -X], axis=2).reshape(N, 1000)
    peer = IncrementalPCA(RANK, batch_size=WIDTH).fit((both - both.mean(axis=0)).T[:984])
    found = learnt(both[:, :984], np.ones(984)).axes()
    assert_equal(found, (peer.singular_values_**2, peer.components_.T))


def test_low_rank_columns_are_exact(made, rng):
    X, weights = made
    few_axes = dense(X)[:, :RANK] @ rng.normal(size=(RANK, P))
    for n_columns in (1, RANK - 1, RANK, WIDTH, P):
        Y, w = few_axes[:, :n_columns], weights[:n_columns] + 0.1
        expected = reference.leading(reference.centred(Y, w), RANK)
        assert_equal(learnt(Y, w).axes(), expected, 1e-11)


def test_products_are_never_above_the_exact_ones(made):
    X, weights = made
    found, X = learnt(X, weights).axes(), reference.centred(dense(X), weights)
    d, _ = reference.leading(X, RANK)
    assert (found[0] <= d * (1 + 1e-12)).all()
    assert np.linalg.eigvalsh(X @ X.T - matrix(found)).min() > -1e-12 * d[0]


def test_decaying_variances_are_approximated_well(rng):
    X = falling(rng, N, P)
    d, _ = reference.leading(reference.centred(X, np.ones(P)), 3)
    found, _ = learnt(X, np.ones(P), rank=16).axes()
    np.testing.assert_allclose(found[:3], d, rtol=1e-3)


# Corners


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_few_rows(n, rng):
    X, weights = rng.normal(size=(n, 200)), np.ones(200)
    expected = reference.leading(reference.centred(X, weights), RANK)
    assert_equal(learnt(X, weights).axes(), expected)
    assert learnt(X, weights).axes()[0].size == min(n - 1, RANK)


def test_empty_and_constant_columns(rng):
    for state in (
        Subspace(5, RANK),
        learnt(np.ones((5, 9)), np.ones(9)),
        learnt(rng.normal(size=(5, 9)), np.zeros(9)),
        learnt(scipy.sparse.csc_array((5, 900)), np.ones(900)),
    ):
        d, E = state.axes()
        assert (d.size, E.shape) == (0, (5, 0))


@pytest.mark.parametrize("scale", [1e-150, 1e9, 1e150])
def test_scale(made, scale):
    X, weights = made
    d, E = learnt(X, weights).axes()
    found = learnt(X * scale, weights / scale / scale).axes()
    assert_equal(found, (d, E), 1e-9)


def test_offset_of_stored_columns(rng):
    X = few(rng, N, P)
    X.data = np.round(X.data, 3) + 1e6
    both = [learnt(kind, np.ones(P), rank=20) for kind in (X, X.toarray())]
    assert_equal(*(state.axes() for state in both), 1e-9)


def test_more_rows_than_one_batch(rng):
    X = falling(rng, 20, 30)[np.arange(9000) % 20] + 1e-3 * rng.normal(size=(9000, 30))
    # Matrices over all rows would have 9,000² entries each.
    assert_equal(
        learnt(X, np.ones(30), n_jobs=3).axes(),
        reference.incremental(reference.centred(X, np.ones(30)), RANK, WIDTH),
        every=7,
    )


# Cuts, threads, merging


@settings(max_examples=15, deadline=None)
@given(
    kind=st.sampled_from(sorted(KINDS)),
    cuts=st.lists(st.integers(0, P), max_size=6),
    seed=st.integers(0, 2**32 - 1),
)
def test_bits_do_not_depend_on_blocks(kind, cuts, seed):
    rng = np.random.default_rng(seed)
    X, weights = KINDS[kind](rng, 12, P), rng.uniform(size=P)
    whole, parts = learnt(X, weights), learnt(X, weights, cuts)
    assert same(whole, parts)
    for mine, theirs in zip(whole.axes(), parts.axes(), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_single_columns_and_threads_have_the_same_bits(made):
    X, weights = made
    whole = learnt(X, weights)
    assert same(whole, learnt(X, weights, range(P)))
    assert same(whole, learnt(X, weights, n_jobs=3))


def test_threads_have_the_same_bits_over_many_batches(rng):
    X, V = rng.normal(size=(9000, 60)), rng.normal(size=(9000, 3))
    assert same(learnt(X, np.ones(60)), learnt(X, np.ones(60), n_jobs=3))
    found = (add(GramProduct(V, n_jobs), X, np.ones(60)).result() for n_jobs in (1, 3))
    np.testing.assert_array_equal(*found)


def test_reading_the_axes_changes_nothing(made):
    X, weights = made
    read = Subspace(N, RANK, max_stored=STORED)
    for start in range(0, P, 90):
        add(read, X[:, start : start + 90], weights[start : start + 90])
        d, E = read.axes()
        d[:], E[:] = np.nan, np.nan
    assert same(read, learnt(X, weights))


@pytest.mark.parametrize("at", [0, 1, 30, 600, P])
def test_merge(at, made):
    """A merge equals the whole if nothing is truncated, and approximates it otherwise."""
    X, weights = made
    for columns in (X, dense(X)[:, :RANK] @ np.ones((RANK, P)) * np.arange(P)):
        one = learnt(columns[:, :at], weights[:at])
        other = learnt(columns[:, at:], weights[at:])
        before = copy.deepcopy(other)
        one.merge(other)
        assert same(other, before)
        whole = learnt(columns, weights)
        tolerance = 1e-10 if columns is not X else 0.2
        np.testing.assert_allclose(one.axes()[0], whole.axes()[0], rtol=tolerance)


def test_merged_states_continue_separately(made):
    """Merged states share no memory."""
    X, weights = made
    one, other = learnt(X, weights), learnt(X, weights)
    one.merge(other)
    before = copy.deepcopy(one)
    add(other, X, weights)
    assert same(one, before)


# Rollback, files


@settings(max_examples=20, deadline=None)
@given(
    kind=st.sampled_from(sorted(KINDS)),
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.sampled_from([1, 7, 25, 600])),
            st.tuples(st.sampled_from(["take", "back", "as of now", "merge"]), st.integers(0, 9)),
        ),
        min_size=3,
        max_size=15,
    ),
)
def test_rollback_to_any_snapshot(kind, steps):
    """A rollback to any snapshot is exact, in any order and any number of times."""
    X, weights = KINDS[kind](np.random.default_rng(1), 8, 600), np.ones(600)
    state, marks = Subspace(8, 3, max_stored=STORED), []
    other = learnt(X[:, :300], weights[:300], rank=3)
    for step, size in steps:
        if step == "add":
            add(state, X[:, :size], weights[:size])
        elif step == "merge":
            state.merge(other)
        elif step == "take":
            marks.append((state, state.snapshot(), copy.deepcopy(state)))
        elif step == "as of now":
            marks.append((None, state.freeze(), copy.deepcopy(state)))
        elif marks:
            before, back, expected = marks[size % len(marks)]
            found = back()
            state = found if before is None else before
            assert same(state, expected)


def test_files_restore_all_state(made):
    X, weights = made
    for at in (0, 3, 700, P):
        state, again = learnt(X[:, :at], weights[:at]), Subspace(N, RANK, max_stored=STORED)
        again.set_state(copy.deepcopy(state.to_state()))
        assert same(state, again)
        for one in (state, again):
            add(one, X[:, at:], weights[at:])
        assert same(state, again)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("axes", np.zeros((N + 1, 2))),
        ("axes", np.zeros((N, RANK + 1))),
        ("axes", np.full((N, 2), np.nan)),
        ("axes", np.zeros(N)),
        ("buffered", np.zeros((WIDTH, N))),
        ("factors", np.zeros((1, 1))),
    ],
)
def test_inconsistent_files_are_refused(field, value):
    with pytest.raises(ValueError, match=r"^Expected"):
        Subspace(N, RANK).set_state(Subspace(N, RANK).to_state() | {field: value})


# Several passes


def test_product_equals_the_definition(made, rng):
    X, weights = made
    V = rng.normal(size=(N, 4))
    Z = reference.centred(dense(X), weights)
    for cuts in ([], [5, 300, 301, 900]):
        product = GramProduct(V)
        for start, stop in pairwise([0, *cuts, P]):
            add(product, X[:, start:stop], weights[start:stop])
        found, expected = product.result(), Z @ (Z.T @ V)
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-12 * np.abs(expected).max())
        np.testing.assert_array_equal(found, product.result())


def read_until_settled(X, weights, start, rank, q):
    ritz, n_passes = SubspaceIteration(start, rank, q), 0
    while not ritz.is_converged:
        ritz.update(add(GramProduct(ritz.block), X, weights).result())
        n_passes += 1
    return ritz, n_passes


def test_two_passes_give_the_krylov_space(made, rng):
    X, weights = made
    Z, start = reference.centred(dense(X), weights), rng.normal(size=(N, 5))
    ritz = SubspaceIteration(start, 5, 5)
    for n_passes in (1, 2):
        ritz.update(add(GramProduct(ritz.block), X, weights).result())
        d, E = reference.krylov(Z, start, n_passes)
        assert_equal((ritz.d, ritz.E), (d[:5], E[:, :5]), 1e-9)


@pytest.mark.parametrize("begin", ["at random", "with what is held"])
def test_iteration_converges_to_the_leading_axes(made, rng, begin):
    X, weights = made
    start = learnt(X, weights).axes()[1] if begin != "at random" else rng.normal(size=(N, RANK))
    ritz, _ = read_until_settled(X, weights, start, RANK, 3)
    d, E = reference.leading(reference.centred(dense(X), weights), 3)
    np.testing.assert_allclose(ritz.d[:3], d, rtol=1e-7)
    np.testing.assert_allclose(matrix((d, ritz.E[:, :3])), matrix((d, E)), atol=1e-3 * d[0])
    np.testing.assert_allclose(ritz.E.T @ ritz.E, np.eye(RANK), rtol=0.0, atol=1e-12)


def test_stored_axes_save_passes(rng):
    X, weights = falling(rng, N, P), np.ones(P)
    n_passes = read_until_settled(X, weights, learnt(X, weights).axes()[1], RANK, 3)[1]
    assert n_passes < read_until_settled(X, weights, rng.normal(size=(N, RANK)), RANK, 3)[1]


def test_axes_are_at_most_the_rank(rng):
    X = rng.normal(size=(N, 3)) @ rng.normal(size=(3, 100))
    ritz, n_passes = read_until_settled(X, np.ones(100), rng.normal(size=(N, RANK)), RANK, RANK)
    assert_equal((ritz.d, ritz.E), reference.leading(reference.centred(X, np.ones(100)), RANK))
    assert n_passes <= 2


def test_start_vectors_may_be_dependent(rng):
    X, start = falling(rng, N, 100), np.ones((N, 3))
    start[:, 1] = 0.0
    ritz = SubspaceIteration(start, RANK, 2)
    assert ritz.block.shape == (N, 1)
    assert SubspaceIteration(np.zeros((N, 0)), RANK, 2).is_converged
    ritz.update(add(GramProduct(ritz.block), X, np.ones(100)).result())
    assert np.isfinite(ritz.block).all()


def test_constant_columns_converge_at_once(rng):
    ritz, n_passes = read_until_settled(np.ones((N, 9)), np.ones(9), rng.normal(size=(N, 2)), 2, 2)
    assert (n_passes, ritz.d.size, ritz.E.shape) == (1, 0, (N, 0))


# Towards a target


def aimed(X, weights, V, cuts=()):
    state = Subspace(X.shape[0], RANK)
    state.track_exactly(V)
    for start, stop in pairwise([0, *sorted(cuts), X.shape[1]]):
        if start < stop:
            add(state, X[:, start:stop], weights[start:stop])
    return state


@pytest.fixture
def V(rng):
    V = rng.normal(size=(N, 2))
    return np.linalg.qr(V - V.mean(axis=0))[0]


def test_products_with_the_target_are_exact(made, V):
    X, weights = made
    d, E = aimed(X, weights, V).axes()
    X = reference.centred(dense(X), weights)
    K, largest = X @ X.T, d[0]
    np.testing.assert_allclose((E * d) @ (E.T @ V), K @ V, atol=1e-9 * largest)
    assert np.linalg.eigvalsh(K - (E * d) @ E.T).min() > -1e-9 * largest
    assert d.size == RANK + 2


def test_target_products_survive_merges_files_and_rollback(made, V):
    X, weights = made
    whole = aimed(X, weights, V)
    assert same(whole, aimed(X, weights, V, [3, 77, 600]))
    one, other = aimed(X[:, :500], weights[:500], V), aimed(X[:, 500:], weights[500:], V)
    saved, restore = copy.deepcopy(one.to_state()), one.snapshot()
    one.merge(other)
    scale = np.abs(whole.exact_products()[1]).max()
    np.testing.assert_allclose(
        one.exact_products()[1], whole.exact_products()[1], atol=1e-11 * scale
    )
    restore()
    again = Subspace(N, RANK)
    again.set_state(saved)
    assert same(one, again)
    for state in (one, again):
        add(state, X[:, 500:], weights[500:])
        assert same(state, whole)


def test_merges_keep_common_target_products_only(made, V):
    X, weights = made
    one, other = aimed(X, weights, V), aimed(X, weights, V[:, ::-1])
    one.merge(other)
    assert one.exact_products()[0].shape == (N, 0)
    one = aimed(X, weights, V)
    one.merge(aimed(X, weights, V[:, :1]))
    np.testing.assert_array_equal(one.exact_products()[0], V[:, :1])


def test_converged_axes_continue(made, V):
    X, weights = made
    state = aimed(X[:, :500], weights[:500], V)
    Z = reference.centred(dense(X), weights)
    d, E = reference.leading(Z[:, :500], RANK)
    state.replace_axes(E * np.sqrt(d), V, Z[:, :500] @ (Z[:, :500].T @ V))
    add(state, X[:, 500:], weights[500:])
    d, E = state.axes()
    np.testing.assert_allclose((E * d) @ (E.T @ V), Z @ (Z.T @ V), atol=1e-9 * d[0])
