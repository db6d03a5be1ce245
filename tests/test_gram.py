"""The Gram matrix of columns against its definition; small enough without compilation too."""

import copy
import pickle
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsel._kernels.lapack import add_product, add_square
from streamsel.data.chunks import Block
from streamsel.data.columns import iter_chunks
from streamsel.state.gram.gram import Gram, TiledTriangle, check_rows
from streamsel.targets.target import NoTarget
from tests.reference import gram as reference

DTYPES = [np.float64, np.float32, np.int8, np.uint8, np.bool_, np.int32]
# Several widths, so that some columns are added and others are still buffered. The width is that
# of a batch for few rows.
WIDTH = Gram(30).width
P = 2 * WIDTH + 100


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def add(gram, X, weights):
    """Add an (n, p) array or CSC matrix as one block."""
    X = X if scipy.sparse.issparse(X) else np.asfortranarray(X)
    done = 0
    for chunk in iter_chunks(Block(range(X.shape[1]), X), gram.n):
        stats = chunk.scan(NoTarget(gram.n), 1)
        b = stats.m2.size
        gram.add(chunk, stats, weights[done : done + b])
        done += b
    return gram


def learnt(X, weights, cuts=(), n_jobs=1):
    """Return the state that has learnt X, cut into blocks at these columns."""
    n, p = X.shape
    gram = Gram(n, weights.shape[1], n_jobs)
    edges = [0, *sorted(cuts), p]
    for start, stop in pairwise(edges):
        if start < stop:
            add(gram, X[:, start:stop], weights[start:stop])
    return gram


def dense(X):
    return X.toarray() if scipy.sparse.issparse(X) else X


def weighed(rng, X, q=1):
    """Return weights (p, q) of standardised columns, some of them 0, as methods have them."""
    m2 = dense(X).astype(np.float64).var(axis=0) * X.shape[0]
    relevance = rng.uniform(0.1, 1.0, size=m2.size) * (rng.uniform(size=m2.size) > 0.2)
    powers = 2.0 * np.arange(1, q + 1)
    return (relevance[:, None] ** powers) / np.where(m2 > 0.0, m2, np.inf)[:, None]


def matrices(gram):
    return [gram.matrix(which) for which in range(gram.q)]


def same(one, other):
    """Return whether two states are bit-identical, buffers included."""
    mine, theirs = flat(one.to_state()), flat(other.to_state())
    return mine.keys() == theirs.keys() and all(
        np.array_equal(mine[key], theirs[key]) for key in mine
    )


def flat(state):
    return {k: v for k, v in state.items() if k != "stored"} | state["stored"]


def assert_is(gram, X, weights):
    """Compare with the definition; the error is relative to the largest product."""
    for which, K in enumerate(matrices(gram)):
        expected = reference.gram(dense(X), weights[:, which])
        np.testing.assert_allclose(K, expected, rtol=0.0, atol=1e-13 * np.abs(expected).max())
        np.testing.assert_array_equal(K, K.T)
        lowest, highest = np.linalg.eigvalsh(K)[[0, -1]]
        assert lowest > -1e-13 * highest


def sparse(rng, n, p, density, dtype=np.float64):
    X = scipy.sparse.random_array((n, p), density=density, format="csc", random_state=rng)
    X.data = np.round(1.0 + 99.0 * X.data).astype(dtype)
    return X


def mixed(rng, n, p):
    """Return CSC columns of various densities."""
    X = rng.normal(size=(n, p)) * (rng.uniform(size=(n, p)) < rng.uniform(0.0, 0.4, size=p))
    return scipy.sparse.csc_array(X)


KINDS = {
    "dense": lambda rng, n, p: rng.normal(size=(n, p)) + 3.0,
    "1 %": lambda rng, n, p: sparse(rng, n, p, 0.01),
    "10 %": lambda rng, n, p: sparse(rng, n, p, 0.1),
    "half": lambda rng, n, p: sparse(rng, n, p, 0.5),
    "mixed": mixed,
}


@pytest.fixture(params=KINDS)
def made(request, rng):
    """Return columns, and weights of two kinds."""
    X = KINDS[request.param](rng, 30, P)
    return X, weighed(rng, X, 2)


def test_gram_is_its_definition(made):
    assert_is(learnt(*made), *made)


@pytest.mark.parametrize("of_csc", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_types(rng, dtype, of_csc):
    X = (100.0 * rng.uniform(size=(20, 50)) * (rng.uniform(size=(20, 50)) < 0.3)).astype(dtype)
    X = scipy.sparse.csc_array(X) if of_csc else X
    weights = weighed(rng, X)
    assert_is(learnt(X, weights), X, weights)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_index_types_and_slices(rng, index):
    X = mixed(rng, 20, 60)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    weights = weighed(rng, X)
    assert_is(learnt(X, weights, [10, 40]), X, weights)


def test_repeated_indices_of_a_sparse_column(rng):
    parts = np.ones(4), np.array([3, 1, 3, 0]), np.array([0, 3, 4])
    X, weights = scipy.sparse.csc_array(parts, shape=(20, 2)), np.array([[1.0], [0.5]])
    assert_is(learnt(X, weights), X, weights)


def test_more_rows_than_a_tile(rng):
    """Products are correct for several bands of tiles."""
    n = 1100
    X = rng.normal(size=(n, 40))
    gram, S = learnt(X, np.ones((40, 1))), mixed(rng, n, 40)
    add(gram, S, np.ones((40, 1)))
    both = np.hstack([X, S.toarray()])
    both -= both.mean(axis=0)
    np.testing.assert_allclose(gram.matrix(), both @ both.T, rtol=0.0, atol=1e-11)


@pytest.mark.parametrize("n", [1, 2, 63, 64, 511, 512, 513, 1025, 1600])
def test_tiles_cover_the_triangle_once(n):
    tiles = TiledTriangle.of(n)
    seen = np.zeros((n, n), dtype=int)
    for top, bottom, left, right in tiles.all:
        seen[top:bottom, left:right] += 1
    indices = np.tril_indices(n)
    assert (seen[indices] == 1).all()
    # Above the diagonal, only tiles on the diagonal have entries.
    assert seen.sum() == sum((b - t) * b for t, b in tiles.bands) == tiles.size
    at = tiles.row_offsets[indices[0]] + indices[1]
    assert (np.diff(at) > 0).all()
    assert at[-1] < tiles.size


def test_products_of_parts(rng):
    """BLAS writes into the requested part, and nowhere else."""
    X, out = rng.normal(size=(7, 20)), np.ones((20, 30))
    expected = out.copy()
    add_product(X[:, 3:8], X[:, 10:19], out[2:7, 4:13])
    expected[2:7, 4:13] += X[:, 3:8].T @ X[:, 10:19]
    np.testing.assert_allclose(out, expected, 1e-14)
    add_square(X[:, 3:8], out[12:17, 1:6])
    expected[12:17, 1:6] += np.tril(X[:, 3:8].T @ X[:, 3:8])
    np.testing.assert_allclose(out, expected, 1e-14)


# Numbers


@pytest.mark.parametrize("scale", [1e-150, 1e-9, 1.0, 1e9, 1e150])
def test_scale(rng, scale):
    for X in (rng.normal(size=(20, 50)), mixed(rng, 20, 50)):
        weights = weighed(rng, X)
        expected = learnt(X, weights).matrix()
        found = learnt(X * scale, weights / scale / scale).matrix()
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-14)


def test_columns_of_different_scales(rng):
    scale = 10.0 ** rng.integers(-150, 150, size=50)
    X = rng.normal(size=(20, 50))
    weights = weighed(rng, X)
    found = learnt(X * scale, weights / scale[:, None] / scale[:, None]).matrix()
    np.testing.assert_allclose(found, learnt(X, weights).matrix(), rtol=0.0, atol=1e-14)


def test_offset(rng):
    """An offset costs no digits beyond those lost in the data."""
    X = np.round(rng.normal(size=(31, 50)), 6) + 1e9
    weights = weighed(rng, X)
    assert_is(learnt(X, weights), X, weights)


@pytest.mark.parametrize("offset", [1.0, -1e9])
def test_offset_of_stored_columns(rng, offset):
    X = sparse(rng, 30, 200, 0.1)
    X.data += offset
    weights = weighed(rng, X)
    assert_is(learnt(X, weights), X, weights)


def test_weightings_do_not_affect_each_other(rng):
    """Each weighting is correct, even if the other is zero or far larger."""
    X, w = rng.normal(size=(20, 30)), rng.uniform(size=(30, 1))
    for other in (0.0 * w, 1e200 * w, 1e-200 * w, w[::-1]):
        both = learnt(X, np.hstack([w, other]))
        alone = learnt(X, w).matrix()
        np.testing.assert_allclose(both.matrix(0), alone, rtol=0.0, atol=1e-13)


def test_empty_input_gives_zero(rng):
    assert not Gram(5, 2).matrix(1).any()
    assert not learnt(rng.normal(size=(5, 9)), np.zeros((9, 1))).matrix().any()
    nothing = scipy.sparse.csc_array((5, 9))
    assert not learnt(nothing, np.ones((9, 1))).matrix().any()


def test_a_column_without_weight_is_left_out(rng):
    X = rng.normal(size=(10, P))
    weights = weighed(rng, X)
    some = weights[:, 0] > 0.0
    assert same(learnt(X, weights), learnt(X[:, some], weights[some]))


def test_chunks_may_have_more_columns_than_moments(rng):
    """A chunk may have more columns than moments, if a later column is invalid."""
    X = np.asfortranarray(rng.normal(size=(10, 8)))
    gram, chunk = Gram(10), next(iter_chunks(Block(range(8), X), 10))
    stats = chunk.scan(NoTarget(10), 1)
    gram.add(chunk, type(stats)(*(array[:5] for array in stats)), np.ones((5, 1)))
    assert same(gram, learnt(X[:, :5], np.ones((5, 1))))


# Cuts, order, threads


@settings(max_examples=15, deadline=None)
@given(
    kind=st.sampled_from(sorted(KINDS)),
    cuts=st.lists(st.integers(0, P), max_size=6),
    seed=st.integers(0, 2**32 - 1),
)
def test_bits_do_not_depend_on_blocks(kind, cuts, seed):
    rng = np.random.default_rng(seed)
    X = KINDS[kind](rng, 12, P)
    weights = weighed(rng, X, 2)
    whole, parts = learnt(X, weights), learnt(X, weights, cuts)
    assert same(whole, parts)
    for K, of_parts in zip(matrices(whole), matrices(parts), strict=True):
        np.testing.assert_array_equal(K, of_parts)


def test_single_columns_have_the_same_bits(made):
    X, weights = made
    assert same(learnt(X[:, :700], weights[:700], range(700)), learnt(X[:, :700], weights[:700]))


def test_column_order_matters_to_rounding_only(made, rng):
    X, weights = made
    order = rng.permutation(P)
    for K, other in zip(
        *(matrices(gram) for gram in (learnt(X, weights), learnt(X[:, order], weights[order]))),
        strict=True,
    ):
        np.testing.assert_allclose(K, other, rtol=0.0, atol=1e-13 * np.abs(K).max())


def test_containers_agree_to_rounding(rng):
    X = mixed(rng, 30, P)
    weights = weighed(rng, X)
    K = learnt(X, weights).matrix()
    other = learnt(X.toarray(), weights).matrix()
    np.testing.assert_allclose(K, other, rtol=0.0, atol=1e-13 * np.abs(K).max())


@pytest.mark.parametrize("n_jobs", [2, 3, 8, -1])
def test_threads_have_the_same_bits(made, n_jobs):
    assert same(learnt(*made), learnt(*made, n_jobs=n_jobs))


@pytest.mark.parametrize("kind", ["dense", "mixed"])
def test_threads_have_the_same_bits_over_many_tiles(rng, kind):
    X = KINDS[kind](rng, 1100, WIDTH + 10)
    weights = weighed(rng, X)
    one, four = learnt(X, weights), learnt(X, weights, n_jobs=4)
    assert same(one, four)
    np.testing.assert_array_equal(one.matrix(), four.matrix())


def test_reading_the_matrix_changes_nothing(made):
    X, weights = made
    read = Gram(30, 2)
    for start in range(0, P, 90):
        add(read, X[:, start : start + 90], weights[start : start + 90])
        K = read.matrix(start % 2)
        K[:] = np.nan
    assert same(read, learnt(X, weights))


# Merging


@pytest.mark.parametrize("at", [0, 1, 100, 400, WIDTH, 700, P])
def test_merge_equals_the_whole(made, at):
    X, weights = made
    one = learnt(X[:, :at], weights[:at]) if at else Gram(30, 2)
    other = learnt(X[:, at:], weights[at:]) if at < P else Gram(30, 2)
    before = copy.deepcopy(other)
    one.merge(other)
    assert_is(one, X, weights)
    assert same(other, before)


def test_merge_does_not_depend_on_the_split(made):
    X, weights = made
    found = []
    for cuts in ([], [1, 2, 300, 900, 901]):
        gram = learnt(X[:, :500], weights[:500])
        gram.merge(learnt(X, weights, cuts))
        found.append(gram)
    assert same(*found)


def test_merged_states_continue_separately(made):
    """Merged states share no memory."""
    X, weights = made
    one, other = learnt(X, weights), learnt(X, weights)
    one.merge(other)
    before = copy.deepcopy(one)
    add(other, X, weights)
    assert same(one, before)


# Rollback


@pytest.mark.parametrize("at", [0, 1, 300, WIDTH, 700])
def test_rollback_restores_the_state(made, at):
    X, weights = made
    gram = learnt(X[:, :at], weights[:at]) if at else Gram(30, 2)
    before, restore = copy.deepcopy(gram), gram.snapshot()
    for stop in (at + 1, at + 200, P):
        add(gram, X[:, at:stop], weights[at:stop])
        restore()
        assert same(gram, before)
    add(gram, X[:, at:], weights[at:])
    assert same(gram, learnt(X, weights))


@settings(max_examples=30, deadline=None)
@given(
    kind=st.sampled_from(["dense", "mixed"]),
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.sampled_from([1, 7, 200, WIDTH, 800])),
            st.tuples(st.sampled_from(["take", "back", "as of now", "merge"]), st.integers(0, 9)),
        ),
        min_size=3,
        max_size=15,
    ),
)
def test_rollback_to_any_snapshot(kind, steps):
    """A rollback to any snapshot is exact, in any order and any number of times."""
    X = KINDS[kind](np.random.default_rng(1), 8, 800)
    weights = weighed(np.random.default_rng(2), X, 2)
    gram, other, marks = Gram(8, 2), learnt(X[:, :300], weights[:300]), []
    for step, size in steps:
        if step == "add":
            add(gram, X[:, :size], weights[:size])
        elif step == "merge":
            gram.merge(other)
        elif step == "take":
            marks.append((gram, gram.snapshot(), copy.deepcopy(gram)))
        elif step == "as of now":
            marks.append((None, gram.freeze(), copy.deepcopy(gram)))
        elif marks:
            before, back, expected = marks[size % len(marks)]
            found = back()
            gram = found if before is None else before
            assert same(gram, expected)
    for before, back, expected in marks:
        found = back()
        gram = found if before is None else before
        assert same(gram, expected)


def test_snapshots_copy_only_on_write(rng):
    X, weights = rng.normal(size=(10, WIDTH)), np.ones((WIDTH, 1))
    gram = learnt(X[:, :-2], weights[:-2])
    lower, panel, restore = gram._lower, gram._panel, gram.snapshot()
    add(gram, X[:, -2:-1], weights[-2:-1])
    assert gram._lower is lower
    assert gram._panel is panel
    add(gram, X[:, -1:], weights[-1:])
    assert gram._lower is not lower
    assert not lower.any()
    lower = gram._lower
    add(gram, X, weights)
    assert gram._lower is lower
    restore()
    assert gram._panel is panel


# Copies and files


@pytest.mark.parametrize("at", [0, 1, 300, WIDTH, 700])
@pytest.mark.parametrize(
    "copied",
    [
        copy.deepcopy,
        lambda gram: pickle.loads(pickle.dumps(gram)),  # noqa: S301
        lambda gram: from_state(gram.to_state()),
        lambda gram: gram.freeze()(),
    ],
    ids=["deepcopy", "pickle", "state", "as of now"],
)
def test_copies_continue_with_the_same_bits(made, at, copied):
    X, weights = made
    gram = learnt(X[:, :at], weights[:at]) if at else Gram(30, 2)
    other = copied(gram)
    assert same(gram, other)
    add(other, X[:, at:], weights[at:])
    assert same(other, learnt(X, weights))
    assert same(gram, learnt(X[:, :at], weights[:at]) if at else Gram(30, 2))


def from_state(state, q=2):
    gram = Gram(state["u"].shape[1], q)
    gram.set_state(state)
    return gram


BAD = {
    "lower": lambda state: state["lower"][:, 1:],
    "u": lambda state: state["u"][:1],
    "s": lambda state: np.full(2, np.nan),
    "waiting": lambda state: np.zeros((WIDTH, 30)),
    "factors": lambda state: state["factors"][:, :1],
}
BAD_STORED = {
    "values": lambda stored: stored["values"] * np.inf,
    "rows": lambda stored: stored["rows"] + 30,
    "ends": lambda stored: stored["ends"][::-1],
    "means": lambda stored: stored["means"][1:],
    "factors": lambda stored: stored["factors"][:, :1],
}


@pytest.fixture
def state(rng):
    X = mixed(rng, 30, 40)
    return learnt(X, weighed(rng, X, 2)).to_state()


@pytest.mark.parametrize("field", BAD)
def test_a_bad_state_is_refused(state, field):
    bad = state | {field: BAD[field](state)}
    if field == "waiting":
        bad["factors"] = np.ones((WIDTH, 2))
    with pytest.raises(ValueError, match="Expected"):
        from_state(bad)


@pytest.mark.parametrize("field", BAD_STORED)
def test_bad_sparse_columns_are_refused(state, field):
    stored = state["stored"]
    assert len(stored["means"]) > 1
    with pytest.raises(ValueError, match="Expected"):
        from_state(state | {"stored": stored | {field: BAD_STORED[field](stored)}})


def test_too_many_rows():
    check_rows(15_000, 15_000, "none")
    with pytest.raises(ValueError, match=r"at most 15000 rows.*\n?.*20000.*3.2 GB.\nHint: a pool"):
        check_rows(20_000, 15_000, "a pool")
