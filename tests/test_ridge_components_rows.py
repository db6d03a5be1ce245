"""RidgeComponents on rows: against a batch over all rows, after columns, and its snapshot."""

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river import compose, metrics, naive_bayes, preprocessing

from streamsel import RidgeComponents, load, save
from streamsel.base.linear_map import align_components
from tests.conformance.modes import bits
from tests.reference import ridge_components as batch
from tests.reference.alignment import FadedAlignment
from tests.reference.ridge_components_rows import RidgeComponentsOnRows, as_rows
from tests.ridge import agree, data, learnt, matrix, mu_of, near

NAN = float("nan")
KINDS = ["number", "numbers", "labels"]
SEEDS = st.integers(0, 10**6)


def rule_of(model):
    return {name: getattr(model, name) for name in ("n_components", "relevance_power", "alpha")}


def pair(mu=None, limit=None, **parameters):
    """Return a new model and its reference."""
    model = RidgeComponents(**parameters)
    rows = {key: parameters[key] for key in ("fading_factor", "covariates") if key in parameters}
    return model, RidgeComponentsOnRows(rule_of(model), mu, limit, **rows)


def rows(n, p=7, kind="number", seed=0, absent=0.2, missing=0.0, late=()):
    """Return rows of p variables that share factors; the late ones appear half-way."""
    rng = np.random.default_rng(seed)
    mixing = np.eye(p) + 0.5 * rng.normal(size=(p, p))
    found = []
    for i in range(n):
        values = mixing @ rng.normal(size=p) + 2.0
        x = {f"v{j}": float(v) for j, v in enumerate(values)}
        for j in range(p):
            if rng.random() < absent or (2 * i < n and j in late):
                del x[f"v{j}"]
            elif rng.random() < missing:
                x[f"v{j}"] = NAN
        signal = float(values[0] + values[p - 1] + rng.normal())
        several = {"a": signal, "b": float(values[1] + rng.normal())}
        label = "xyz"[int(signal > 3.0) + int(signal > 5.0)]
        found.append((x, {"number": signal, "numbers": several, "labels": label}[kind]))
    return found


def compare(model, oracle, tolerance=1e-9):
    """Compare the components with those of the reference."""
    agree(model, oracle.answer(), oracle.rows.names, tolerance)


def both_learn(model, oracle, stream):
    for x, y in stream:
        model.learn_one(x, y)
        oracle.learn_one(x, y)


# --------------------------------------------------------------------- the batch over all rows


@pytest.mark.parametrize("alpha", ["reml", "gcv", 0.2])
@pytest.mark.parametrize("kind", KINDS)
def test_answers_equal_the_batch_after_every_row(kind, alpha):
    model, oracle = pair(n_components=2, alpha=alpha)
    for i, row in enumerate(rows(60, kind=kind)):
        both_learn(model, oracle, [row])
        if i >= 12:
            compare(model, oracle)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fading_factor", [0.02, 0.1])
def test_fading_rows(kind, fading_factor):
    model, oracle = pair(n_components=2, fading_factor=fading_factor)
    for i, row in enumerate(rows(120, kind=kind, seed=1)):
        both_learn(model, oracle, [row])
        if i % 10 == 9 and i > 20:
            compare(model, oracle)


@settings(max_examples=25)
@given(SEEDS, st.sampled_from(KINDS))
def test_absent_is_zero_and_missing_is_the_mean(seed, kind):
    model, oracle = pair(n_components=2, relevance_power=1.0)
    stream = rows(50, p=5, kind=kind, seed=seed, absent=0.3, missing=0.1, late=(3, 4))
    both_learn(model, oracle, stream)
    compare(model, oracle)


@pytest.mark.parametrize("kind", KINDS)
def test_covariates_of_rows(kind):
    model, oracle = pair(n_components=2, covariates=("v2", "v3"))
    both_learn(model, oracle, rows(80, kind=kind, seed=4))
    compare(model, oracle)
    assert not {"v2", "v3"} & {*model.loadings}


@pytest.mark.parametrize("power", [0.0, (0.0, 1.0, 3.0)], ids=str)
def test_powers(power):
    model, oracle = pair(n_components=3, relevance_power=power)
    both_learn(model, oracle, rows(80, seed=6))
    compare(model, oracle)


def test_frames_equal_loops_of_rows():
    X, y = data(n=90, p=8)
    loop, many = RidgeComponents(2), RidgeComponents(2)
    for x, t in as_rows(X, y, range(8)):
        loop.learn_one(x, t)
    for part in (slice(0, 40), slice(40, 41), slice(41, 90)):
        many.learn_many(X[part], y[part])
    expected = batch.answer(X, y, n_components=2)
    del expected["embedding"]
    for model in (loop, many):
        agree(model, expected, range(8))
    near(many.transform_many(X), loop.transform_many(X))


def test_the_limit_on_rows_equals_that_of_the_pool():
    """On rows at most max_support variables have loadings, as after pruning of the pool."""
    model, oracle = pair(n_components=2, max_support=5, limit=5)
    for i, row in enumerate(rows(80, p=12, seed=2)):
        both_learn(model, oracle, [row])
        if i % 20 == 19:
            compare(model, oracle)
            assert len(model.loadings) <= 5


@pytest.mark.slow
@settings(max_examples=10)
@given(SEEDS)
def test_a_bounded_vocabulary_uses_one_aligned_window(seed):
    """With a bounded vocabulary, components are computed from the aligned window."""
    rng = np.random.default_rng(seed)
    model = RidgeComponents(2, max_features=8, grace_period=10, relevance_power=1.0)
    stream = rows(200, p=14, seed=seed, absent=0.0)
    kept = []
    for i, (x, y) in enumerate(stream):
        # The other variables occur rarely; they are tracked for a while.
        often = ("v0", "v1", "v2", "v13")
        some = {name: x[name] for name in x if rng.random() < (0.9 if name in often else 0.03)}
        kept.append((some, y))
        model.learn_one(some, y)
        if i % 50 == 49:
            oracle = RidgeComponentsOnRows(rule_of(model))
            tracked = {*model._state.names}
            for seen, value in kept[-model.n_aligned_rows :]:
                oracle.learn_one({name: v for name, v in seen.items() if name in tracked}, value)
            assert len(tracked) <= 8
            found = oracle.solved()[1]
            if found is None:  # only before the first components
                assert i == 49
                assert not model.relevance
            else:
                compare(model, oracle, 1e-8)


# ----------------------------------------------------------------------- columns, then rows


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("max_support", [None, 20, 60])
def test_rows_continue_from_complete_columns(kind, max_support):
    X, y = data(n=40, p=12, kind=kind, seed=1)
    names = [f"v{j:02d}" for j in range(12)]
    model = learnt(X[:30], y[:30], names, n_components=2, max_support=max_support)
    _, oracle = pair(n_components=2)
    oracle.learn_columns(X[:30], y[:30], names)
    compare(model, oracle)
    for row in as_rows(X[30:], y[30:], names):
        both_learn(model, oracle, [row])
        compare(model, oracle)
    expected = batch.answer(X, y, n_components=2)
    del expected["embedding"]
    expected["loadings"] = {names[j]: row for j, row in expected["loadings"].items()}
    agree(model, expected, names)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_of_columns_are_kept(kind):
    """Variables keep the weights from the column phase; new ones have weight 1."""
    X, y = data(n=60, p=120, kind=kind, seed=3)
    X[:, 60:] = X[:, :60] + 0.3 * np.random.default_rng(0).normal(size=(60, 60))
    names = [f"v{j:03d}" for j in range(120)]
    model = learnt(X[:40], y[:40], names, n_components=2, max_support=10)
    left = mu_of(model)
    assert max(left.values()) > 1.0
    _, oracle = pair(n_components=2, mu=left, limit=10)
    indices = [names.index(name) for name in left]
    oracle.learn_columns(X[:40, indices], y[:40], left)
    compare(model, oracle)
    for row in as_rows(X[40:, indices], y[40:], left):
        both_learn(model, oracle, [row])
        compare(model, oracle)
    assert {name: mu for name, mu in mu_of(model).items() if name in left} == left


def test_first_rows_change_components_continuously():
    """The first row after columns changes components continuously."""
    X, y = data(n=400, p=20)
    model = learnt(X, y, n_components=3, alpha=0.5)
    before = matrix(model.loadings, range(20), model.components)
    centre = dict(enumerate(X.mean(axis=0).tolist()))
    model.learn_one(centre, float(y.mean()))
    after = matrix(model.loadings, range(20), model.components)
    # A row at the mean changes no centred sum, and adds one to the weight.
    near(after, before * np.sqrt(401 / 400))
    with pytest.raises(ValueError, match="columns only"):
        model.embedding  # noqa: B018


def test_column_results_are_in_use_at_once():
    X, y = data(n=60, p=30, kind="labels")
    model = learnt(X, y, n_components=3)
    before = model.transform_many(X)
    model.learn_one(dict(enumerate(X[0].tolist())), y[0])
    near(model.transform_many(X), before)


# --------------------------------------------------------------------------- the snapshot in use


def loadings_in_use(model, names):
    return matrix(model.in_use, names, model.components)


@pytest.mark.parametrize("kind", ["number", "labels"])
@pytest.mark.parametrize("fading_factor", [0.0, 0.01])
def test_components_in_use_are_stable_and_aligned(fading_factor, kind):
    """Components in use change at refreshes only, and are aligned to the earlier ones."""
    warm_up, p = 20, 7
    model = RidgeComponents(3, warm_up=warm_up, fading_factor=fading_factor)
    names, learned, n_refreshes, drawn = [f"v{j}" for j in range(p)], [], 0, np.zeros((p, 3))
    faded = FadedAlignment(fading_factor)
    for i, (x, y) in enumerate(rows(400, p, kind=kind, seed=3, absent=0.0), 1):
        due = model._refresh.due_at
        model.learn_one(x, y)
        learned.append([*x.values()])
        now = loadings_in_use(model, names)
        if i < due:
            np.testing.assert_array_equal(now, drawn)
            continue
        n_refreshes += 1
        assert not np.array_equal(now, drawn)
        w = (1.0 - fading_factor) ** np.arange(i - 1.0, -1.0, -1.0)
        C = np.cov(np.array(learned).T, aweights=w, ddof=0)
        found = matrix(model.loadings, names, model.components)
        spans(now, C, found)
        if n_refreshes > 1:
            root = np.linalg.cholesky(C).T
            turn = faded.of(root @ found, root @ drawn, i)
            np.testing.assert_allclose(now, found @ turn, atol=1e-7)
            if not fading_factor:
                sizes = [np.sqrt(np.diag(B.T @ C @ B)) for B in (now, drawn)]
                np.testing.assert_allclose(*sizes, rtol=1e-8)
        drawn = now
    assert n_refreshes >= 2
    if not fading_factor:
        assert n_refreshes <= 1 + math.ceil(math.log2(400 / warm_up))


def spans(new, C, loadings):
    """Check that the components in use have the span of the computed ones."""
    root = np.linalg.cholesky(C).T
    one, other = (np.linalg.qr(root @ B)[0] for B in (new, loadings))
    cosines = np.linalg.svd(one.T @ other, compute_uv=False)
    np.testing.assert_allclose(cosines, 1.0, atol=1e-9)


@pytest.mark.parametrize("kind", ["number", "labels"])
def test_pipelines_that_start_on_rows(kind):
    """A pipeline that starts on rows learns, although the first rows have no components."""
    model = compose.Pipeline(
        preprocessing.StandardScaler(), RidgeComponents(2, warm_up=20), naive_bayes.GaussianNB()
    )
    metric, late = metrics.Accuracy(), metrics.Accuracy()
    for i, (x, label) in enumerate(rows(600, kind="labels", seed=8, absent=0.0)):
        y = label if kind == "labels" else int(label > "x")
        predicted = model.predict_one(x)
        if predicted is not None:
            metric.update(y, predicted)
            if i >= 300:
                late.update(y, predicted)
        model.learn_one(x, y)
    assert late.get() > 0.6
    ridge = model["RidgeComponents"]
    assert ridge.n_rows == 600
    assert set(ridge.transform_one(x)) == {"ridgecomponents0", "ridgecomponents1"}


# ------------------------------------------------------------------------ copies, merging


@pytest.mark.parametrize("max_support", [None, 6])
def test_copies_continue_with_the_same_bits(max_support, tmp_path):
    X, y = data(n=40, p=30, kind="labels")
    model = learnt(X, y, n_components=2, max_support=max_support)
    kept = [*mu_of(model)]
    for x, t in zip(X[:15].tolist(), y[:15].tolist(), strict=True):
        model.learn_one({j: x[j] for j in kept}, t)
    save(model, tmp_path / "half.streamsel")
    twins = [
        pickle.loads(pickle.dumps(model)),  # noqa: S301
        copy.deepcopy(model),
        load(tmp_path / "half.streamsel"),
    ]
    for one in (model, *twins):
        for x, t in zip(X[15:].tolist(), y[15:].tolist(), strict=True):
            one.learn_one({j: x[j] for j in kept} | {"new": x[0] * x[1]}, t)
    for twin in twins:
        assert bits(twin) == bits(model)
        assert twin.loadings == model.loadings
        assert twin.in_use == model.in_use


@pytest.mark.parametrize("kind", KINDS)
def test_row_merges_equal_the_whole(kind):
    stream = rows(100, kind=kind, seed=5)
    whole, oracle = pair(n_components=2)
    both_learn(whole, oracle, stream)
    one, other = RidgeComponents(2), RidgeComponents(2)
    for model, part in ((one, stream[:60]), (other, stream[60:])):
        for x, y in part:
            model.learn_one(x, y)
    one.merge(other, along="rows")
    compare(one, oracle)
    compare(whole, oracle)


def test_bad_rows_are_rolled_back():
    model, oracle = pair(n_components=2)
    both_learn(model, oracle, rows(40))
    before = bits(model)
    for bad in ({"v0": float("inf")}, {"v1": "text"}):
        with pytest.raises((ValueError, TypeError)):
            model.learn_one(bad, 1.0)
        assert bits(model) == before
    compare(model, oracle)


def test_rows_continue_from_representatives_of_the_pool():
    """Rows continue from the pool's representatives, also after a complete Gram matrix."""
    X, y = data(n=60, p=80)
    names = [f"v{j:02d}" for j in range(80)]
    model = learnt(X[:50], y[:50], names, n_components=2, max_loadings=10)
    carried = model._columns.carried()
    left = dict(zip(carried.names, carried.extra_field("weight").tolist(), strict=True))
    assert len(left) == 20 < len(model._columns.names)
    assert max(left.values()) > 1.0
    _, oracle = pair(n_components=2, mu=left)
    indices = [names.index(name) for name in left]
    oracle.learn_columns(X[:50, indices], y[:50], left)
    for row in as_rows(X[50:, indices], y[50:], left):
        both_learn(model, oracle, [row])
        compare(model, oracle)


def test_scales_are_reset_after_large_changes_of_variance():
    """A merge may change the variance of a component by any factor; its scale is then reset."""
    aligned = align_components(np.eye(2), np.eye(2), np.array([1e179, 4.0]), np.zeros(2))
    np.testing.assert_allclose(aligned.matrix, np.diag([1.0, 2.0]), atol=1e-6)
    np.testing.assert_allclose(aligned.reference_scale, [0.0, 2.0])
