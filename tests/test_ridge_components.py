"""RidgeComponents on columns against its reference: K, pool, loadings, merges, copies."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsel import RidgeComponents, load, save
from tests.conformance.modes import bits
from tests.reference import ridge_components as reference
from tests.reference import target as space
from tests.ridge import agree, data, learnt, matrix, mu_of, near, same_space, same_up_to_sign

KINDS = ["number", "numbers", "labels"]
RULES = [
    {},
    {"alpha": "gcv"},
    {"alpha": 0.3, "relevance_power": 0.0},
    {"relevance_power": 1.0},
    {"relevance_power": (0.5, 2.0, 4.0)},
]


def basis(y):
    return space.basis(space.numbers(y))


def check_pool(model, pool):
    """Compare the representatives, in order, and their weights."""
    found = mu_of(model)
    assert list(found) == list(pool.mu)
    np.testing.assert_allclose([*found.values()], [*pool.mu.values()], rtol=1e-9)


# --------------------------------------------------------------------------------- the Gram matrix


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_gram_mode_agrees_after_every_block(kind, rule):
    X, y = data(kind=kind)
    model = RidgeComponents(4, **rule)
    model.learn_target(y)
    for start in range(0, 60, 12):
        model.learn_columns(X[:, start : start + 12], range(start, start + 12))
        expected = reference.answer(X[:, : start + 12], y, n_components=4, **rule)
        agree(model, expected, range(60))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("container", ["float32", "int8", "csc", "C order"])
def test_gram_mode_agrees_in_any_container(kind, container):
    X, y = data(kind=kind, seed=3)
    if container == "int8":
        X = np.round(10 * (X - 3)).clip(-127, 127).astype(np.int8)
    elif container == "float32":
        X = X.astype(np.float32)
    elif container == "csc":
        X = sp.csc_array(X * (np.random.default_rng(1).random(X.shape) < 0.2))
    dense = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=float)
    agree(learnt(X, y, n_components=3), reference.answer(dense, y, n_components=3), range(60))


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.data())
def test_blocks_and_order_matter_to_rounding_only(seed, draw):
    X, y = data(n=30, p=40, kind="numbers", seed=seed % 5)
    rng = np.random.default_rng(seed)
    order = rng.permutation(40)
    cuts = sorted(draw.draw(st.lists(st.integers(0, 40), max_size=5)))
    models = []
    for _ in range(2):
        model = RidgeComponents(4)
        model.learn_target(y)
        for some in np.split(order, cuts):
            model.learn_columns(X[:, some], some.tolist())
        models.append(model)
    assert bits(models[0]) == bits(models[1])
    whole = learnt(X, y, n_components=4)
    assert models[0].fitted_alpha == pytest.approx(whole.fitted_alpha, rel=1e-9)
    same_up_to_sign(models[0].embedding, whole.embedding)
    names = whole.components
    same_up_to_sign(*(matrix(m.loadings, range(40), names) for m in (models[0], whole)))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_single_columns_equal_blocks(n_jobs):
    X, y = data()
    one = RidgeComponents(4)
    one.learn_target(y)
    for j, x in enumerate(X.T):
        one.learn_column(j, x)
    whole = learnt(X, y, n_components=4, n_jobs=n_jobs)
    same_up_to_sign(one.embedding, whole.embedding)
    assert bits(learnt(X, y, n_components=4)) == bits(learnt(X, y, n_components=4))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("max_support", [None, 15])
def test_covariates_are_projected_out(kind, max_support):
    X, y = data(n=50, kind=kind, seed=2)
    Z = np.c_[X[:, 0] + X[:, 20] + X[:, 40], np.random.default_rng(6).normal(size=50)]
    numbers = space.numbers(y).reshape(50, -1)
    given_ = np.linalg.qr(np.c_[np.ones(50), Z])[0]
    left = [part - given_ @ (given_.T @ part) for part in (X, numbers)]
    for alpha in ("reml", "gcv", 0.5):
        rule = {"n_components": 3, "alpha": alpha, "max_support": max_support}
        model = learnt(X, y, covariates=Z, **rule)
        expected = reference.answer(*left, covariates=Z, **rule)
        del expected["embedding"]  # of raw columns
        agree(model, expected, range(60))


def test_embedding_equals_data_times_loadings():
    X, y = data(kind="labels")
    for rule in ({}, {"max_support": 10}, {"max_loadings": 20}):
        model = learnt(X, y, n_components=3, **rule)
        B = matrix(model.loadings, range(60), model.components)
        Z = (X - X.mean(axis=0)) @ B
        near(model.transform_many(X), Z)
        if rule != {"max_loadings": 20}:  # with few loadings they only approximate it
            near(model.embedding, Z)
        np.testing.assert_allclose(Z.std(axis=0).max(), 1.0, rtol=1e-9)
        if "max_loadings" not in rule:  # the sign convention uses loadings of all columns
            first = np.abs(B * X.std(axis=0)[:, None]).argmax(axis=0)
            assert (B[first, range(3)] > 0).all()


# --------------------------------------------------------------------------- loadings


def test_bounded_pools_approximate_all_columns():
    X, y = data(n=80, kind="numbers", seed=4)
    model = learnt(X, y, n_components=4, max_loadings=12)
    exact = reference.answer(X, y, n_components=4)
    near_signs = np.sign((model.embedding * exact["embedding"]).sum(axis=0))
    near(model.embedding * near_signs, exact["embedding"])
    agree(model, reference.answer(X, y, n_components=4, max_loadings=12), range(60))
    kept = [*model.loadings]
    assert len(kept) == 24 < len(model._columns.names)
    Z = model.transform_many(X)
    np.testing.assert_allclose(Z.std(axis=0), model.embedding.std(axis=0), rtol=1e-9)
    np.testing.assert_allclose(Z.std(axis=0).max(), 1.0, rtol=1e-9)
    corr = [np.corrcoef(Z[:, k], model.embedding[:, k])[0, 1] for k in range(4)]
    assert min(corr) > 0.8


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_pass_gives_exact_loadings(kind):
    X, y = data(n=30, p=90, kind=kind)
    exact = reference.answer(X, y, n_components=4)
    model = learnt(X, y, n_components=4)
    model.learn_loadings(X)
    agree(model, exact, range(90))

    few = learnt(X, y, n_components=4, max_loadings=20)
    few.learn_loadings(X)
    of, U = reference.variables(X, basis(y)), basis(y)
    found = reference.solve(of, U, n_components=4)
    indices = reference.largest(found, of, 20)
    assert sorted(few.loadings) == indices
    B = matrix(few.loadings, indices, few.components)
    w = reference.weights(of, 2.0)
    same_up_to_sign(B, reference.by_largest(found, of, w, indices, 30))
    same_up_to_sign(few.embedding, exact["embedding"])


def test_a_second_pass_may_have_other_blocks_and_order():
    X, y = data(n=30, p=90)
    names = [f"v{j}" for j in range(90)]
    one, other = (learnt(X, y, names, n_components=3, max_loadings=20) for _ in range(2))
    one.learn_loadings(X, names)
    order = np.random.default_rng(0).permutation(90)
    other.learn_loadings([(names[j], X[:, j]) for j in order])
    mine, theirs = (matrix(m.loadings, names, one.components) for m in (one, other))
    same_up_to_sign(mine, theirs)
    np.testing.assert_array_equal((mine != 0).sum(), (theirs != 0).sum())


def test_a_second_pass_must_have_the_same_columns():
    X, y = data(n=30, p=50)
    model = learnt(X, y, n_components=3, max_loadings=20)
    before = bits(model)
    others, less, swapped = X.copy(), -X, X[:, ::-1]
    others[:, 7] += np.arange(30.0) ** 2
    for bad in (X[:, :-1], X[:-1], others, np.c_[X, X[:, :1] ** 2], less, swapped):
        with pytest.raises(ValueError, match="Expected"):
            model.learn_loadings(bad)
        assert bits(model) == before
    with pytest.raises(ValueError, match="Expected"):
        model.learn_loadings(X, [f"v{j}" for j in range(50)])
    assert bits(model) == before


# --------------------------------------------------------------------------- the pool


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("limit", [4, 10, 25])
@pytest.mark.parametrize("n", [12, 40])
def test_pool_mode_agrees_after_every_column(kind, limit, n):
    """The pool agrees after every column, and components after every fourth."""
    X, y = data(n=n, p=90, kind=kind, seed=limit)
    X[:, 50:60] = X[:, 20:30] + 1e-3 * np.random.default_rng(1).normal(size=(n, 10))
    X[:, 70] = 2.0
    U, model = basis(y), RidgeComponents(3, max_support=limit)
    model.learn_target(y)
    pool = reference.Pool(limit, U)
    for j, x in enumerate(X.T):
        model.learn_column(j, x)
        pool.learn(j, x)
        check_pool(model, pool)
        if j % 4 == 1 and j > 3:  # includes the last column, 89
            of = pool.pruned()
            found = reference.solve(of, U, n_components=3)
            agree(model, reference.shown(found, of, U, found.loadings), range(90))


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_pool_mode_agrees_for_all_parameters(rule):
    X, y = data(p=120, kind="labels", seed=8)
    rule = {"n_components": 3, "max_support": 14} | rule
    agree(learnt(X, y, **rule), reference.answer(X, y, **rule), range(120))


@pytest.mark.parametrize("interleaved", [True, False])
@pytest.mark.parametrize("small", [0.0, 1e-3])
def test_weights_of_copies_are_added(interleaved, small):
    """Each of forty columns is represented with the total weight of its thirty copies."""
    rng = np.random.default_rng(2)
    n = 200
    X = np.linalg.qr(space.centred(rng.normal(size=(n, 40))))[0]
    y = X @ rng.uniform(0.5, 1.0, size=40)
    which = np.tile(np.arange(40), 30) if interleaved else np.repeat(np.arange(40), 30)
    scale = rng.uniform(0.5, 2.0, size=1200) * rng.choice([-1.0, 1.0], size=1200)
    copies = (X[:, which] + small / np.sqrt(n) * rng.normal(size=(n, 1200))) * scale
    model = learnt(copies, y, n_components=2, max_support=60)
    found, pool = mu_of(model), reference.pooled(copies, basis(y), 60)
    check_pool(model, pool)
    assert set(which[list(found)]) == set(range(40))
    each = np.zeros(40)
    for name, mu in found.items():
        each[which[name]] += mu
    # All are relevant, so that all are admitted; evicted copies pass on their whole weight.
    assert pool.admitted == 1200
    np.testing.assert_allclose(each, 30.0, rtol=1e-9 if small == 0.0 else 1e-3)


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(2, 12), st.integers(5, 40))
def test_evicted_columns_leave_their_common_weight(seed, limit, n):
    """The total weight is 1 per admitted column, minus μ(1 − R⁴) for each evicted one."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))[:, rng.integers(6, size=80)] + 0.3 * rng.normal(size=(n, 80))
    y = X[:, 0] + rng.normal(size=n)
    model, pool = (
        learnt(X, y, n_components=1, max_support=limit),
        reference.pooled(X, basis(y), limit),
    )
    assert sum(mu_of(model).values()) == pytest.approx(pool.admitted - pool.vanished, rel=1e-9)
    assert sum(mu_of(model).values()) <= 80.0 * (1.0 + 1e-12)
    assert len(mu_of(model)) < 2 * limit
    assert len(model.loadings) <= limit


def test_blocks_do_not_matter_to_the_pool():
    X, y = data(p=200, kind="labels")
    whole = learnt(X, y, n_components=3, max_support=12)
    for size in (1, 7, 64):
        model = RidgeComponents(3, max_support=12)
        model.learn_target(y)
        for start in range(0, 200, size):
            block = range(start, min(200, start + size))
            model.learn_columns(X[:, block], block)
        assert list(mu_of(model)) == list(mu_of(whole))
        near(model.embedding, whole.embedding)


def test_a_rejected_column_changes_nothing():
    X, y = data(p=120)
    model = learnt(X, y, n_components=3, max_support=10)
    U = basis(y)

    def but_that_it_came(model):
        counted = ("n_columns", "summary")
        return {key: bit for key, bit in bits(model).items() if not key.startswith(counted)}

    before = but_that_it_came(model)
    noise = np.random.default_rng(9).normal(size=40)
    noise -= U @ (U.T @ noise)
    model.learn_column("noise", noise)
    assert but_that_it_came(model) == before
    assert model.n_columns == 121


# --------------------------------------------------------------------------- merging


@pytest.mark.parametrize("kind", KINDS)
def test_merged_gram_matrices_equal_one(kind):
    X, y = data(kind=kind)
    left, middle, right = (
        learnt(X[:, c], y, c.tolist(), n_components=4) for c in np.split(np.arange(60), 3)
    )
    middle.merge(right)
    left.merge(middle)
    agree(left, reference.answer(X, y, n_components=4), range(60))


def test_merged_pools_are_pruned_together():
    X, y = data(p=120, kind="numbers")
    U, halves = basis(y), np.split(np.arange(120), 2)
    one, other = (learnt(X[:, c], y, c.tolist(), n_components=3, max_support=9) for c in halves)
    mine, theirs = (reference.pooled(X[:, c], U, 9, c.tolist()) for c in halves)
    one.merge(other)
    mine.merge(theirs)
    check_pool(one, mine)
    of = mine.pruned()
    found = reference.solve(of, U, n_components=3)
    agree(one, reference.shown(found, of, U, found.loadings), range(120))


# ---------------------------------------------------------------------- copies, files, rollback


@pytest.mark.parametrize("rule", [{}, {"max_support": 8}, {"relevance_power": (1.0, 3.0)}], ids=str)
def test_copies_continue_with_the_same_bits(rule, tmp_path):
    X, y = data(p=100, kind="labels")
    whole = RidgeComponents(3, max_loadings=20, **rule)
    whole.learn_target(y)
    whole.learn_columns(X[:, :50], range(50))
    save(whole, tmp_path / "half.streamsel")
    copies = [pickle.loads(pickle.dumps(whole)), load(tmp_path / "half.streamsel")]  # noqa: S301
    for model in (whole, *copies):
        model.learn_columns(X[:, 50:], range(50, 100))
    for model in copies:
        assert bits(model) == bits(whole)
        np.testing.assert_array_equal(model.embedding, whole.embedding)
        assert model.loadings == whole.loadings


@pytest.mark.parametrize(
    ("file", "rule"),
    [("by-gram", {"max_loadings": 8}), ("pool", {"max_support": 8})],
    ids=["by-gram", "pool"],
)
def test_files_of_0_4_continue(file, rule):
    """Files of 0.4 continue: pools without correlations, and K as one triangle."""
    X, y = data(n=30, p=60)
    model = load(Path(__file__).parent / "files" / f"ridge-components-{file}.streamsel")
    now = learnt(X, y, n_components=2, **rule)
    same_up_to_sign(model.embedding, now.embedding)
    if file == "by-gram":
        kept = len(model._columns.names)
        assert not model._columns.complete
        assert len(model.loadings) == kept < 16
    for each in (model, now):
        each.learn_columns(np.square(X), range(60, 120))
    same_up_to_sign(model.embedding, now.embedding)
    model.learn_one(dict(enumerate(X[0])), y[0])
    assert len(model.in_use) >= 8


@pytest.mark.parametrize("rule", [{}, {"max_support": 8}], ids=str)
@pytest.mark.parametrize("at", [50, 77, 99])
def test_bad_columns_are_rolled_back(rule, at):
    X, y = data(p=100)
    model, expected = (learnt(X[:, :50], y, n_components=3, **rule) for _ in range(2))
    bad = X[:, 50:].copy()
    bad[3, at - 50] = np.inf
    with pytest.raises(ValueError, match=f"column {at}"):
        model.learn_columns(bad, range(50, 100))
    assert bits(model) == bits(expected)
    for each in (model, expected):
        each.learn_columns(X[:, 50:], range(50, 100))
    assert bits(model) == bits(expected)
    same_space(model.embedding, expected.embedding)
