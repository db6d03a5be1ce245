"""Joint moments on rows equal those of a batch over the same rows, in one aligned window."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsel.state.moments.aligned import AlignedMoments
from tests.conformance.imagined import ApartJointly
from tests.conformance.modes import bits

NAN = float("nan")


def batch(rows, names, fading_factor=0.0, offset=0.0, given_too=()):
    """Return the sums of products about the means, of names and of y, over rows (x, y)."""
    X = np.array([[x.get(name, 0.0) - offset for name in names] for x, _ in rows]).T.copy()
    y = np.array([y for _, y in rows])
    Z = np.array([[x[name] for x, _ in rows] for name in given_too]).reshape(-1, len(rows))
    w = (1.0 - fading_factor) ** np.arange(len(rows) - 1.0, -1.0, -1.0)
    for column in X:
        seen = ~np.isnan(column)
        column[~seen] = np.average(column[seen], weights=w[seen]) if seen.any() else 0.0
    both = np.vstack([X, y, Z]) if len(X) else np.vstack([y, Z])
    both = both - np.average(both, axis=1, weights=w)[:, None]
    C = (w * both) @ both.T
    if given_too:
        p = len(names) + 1
        C = C[:p, :p] - C[:p, p:] @ np.linalg.solve(C[p:, p:], C[p:, :p])
    return C


def correlations(C):
    length = np.sqrt(np.diag(C))
    length = np.where(length > 1e-9 * max(1.0, length.max(initial=0.0)), length, np.inf)
    return C / length / length[:, None]


def check(model, rows, offset=0.0, given_too=()):
    """Compare the joint moments with a batch over the rows in use."""
    state, used = model._state, rows[-model.n_aligned_rows :]
    C = batch(used, state.names, model.fading_factor, offset, given_too)
    p = len(state.names)
    products = state.products(np.arange(p))
    np.testing.assert_allclose(products, correlations(C)[:p, :p], atol=1e-10)
    for j in range(p):
        np.testing.assert_array_equal(state.products(j), products[:, j])
    assert np.linalg.eigvalsh(0.5 * (products + products.T)).min(initial=0.0) >= -1e-10
    stats = state.stats()
    left = state.space.adjusted_squares(stats.m2, stats.cxy)
    np.testing.assert_allclose(left, np.diag(C)[:p], rtol=1e-9, atol=1e-9)
    found = np.maximum(state.relevance(), 0.0)
    np.testing.assert_allclose(found, np.abs(correlations(C)[p, :p]), atol=1e-9)
    return state


@st.composite
def streams(draw, most=6, absent=0.3):
    """Return rows of a few variables; the last two are late, and some are not observed."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, p = draw(st.integers(3, 90)), draw(st.integers(2, most))
    late = draw(st.integers(0, n))
    mixing = rng.normal(size=(p, p))
    rows = []
    for i in range(n):
        values = mixing @ rng.normal(size=p) + 2.0
        x = {f"v{j}": float(v) for j, v in enumerate(values)}
        for j in range(p):
            if rng.random() < absent or (i < late and j >= p - 2):
                del x[f"v{j}"]
            elif rng.random() < 0.05:
                x[f"v{j}"] = NAN
        rows.append((x, float(values[0] + rng.normal())))
    return rows


def learn(model, rows, many):
    """Learn rows one by one, or as frames of up to `many` rows."""
    if not many:
        for x, y in rows:
            model.learn_one(x, y)
        return
    for start in range(0, len(rows), many):
        part = rows[start : start + many]
        names = list(dict.fromkeys(name for x, _ in part for name in x))
        columns = {name: [x.get(name, 0.0) for x, _ in part] for name in names}
        frame = pd.DataFrame(columns, index=range(len(part)))
        model.learn_many(frame, [y for _, y in part])


@settings(max_examples=30, deadline=None)
@given(streams(), st.sampled_from([0.0, 0.02, 0.3]), st.sampled_from([0, 1, 7, 50]))
def test_products_equal_those_of_the_rows(rows, fading_factor, many):
    model = ApartJointly(2, fading_factor=fading_factor)
    learn(model, rows, many)
    assert model.n_aligned_rows == len(rows)
    state = check(model, rows)
    assert state.complete
    # The moments are the same.
    stats, theirs = state.stats(), model._moments.stats()
    np.testing.assert_allclose(stats.m2, theirs.m2, rtol=1e-10)
    np.testing.assert_allclose(stats.mean, theirs.mean, rtol=1e-9, atol=1e-12)
    size = np.sqrt(theirs.m2 * state.space._columns[0][0, 0])
    np.testing.assert_allclose(stats.cxy[:, 0], theirs.cxy[:, 0], atol=1e-10 * size.max(initial=1))


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.data(), st.integers(3, 5), st.sampled_from([0.0, 0.02]), st.sampled_from([0, 13]))
def test_a_bounded_vocabulary_has_one_aligned_window(data, room, fading_factor, many):
    """All joint moments are over the same rows, also if the vocabulary is bounded."""
    rows = data.draw(streams(most=9, absent=0.5))
    words = np.random.default_rng(len(rows))
    # An evicted word may recur.
    rows = [(x | {f"w{words.integers(9)}": 1.0}, y) for x, y in rows * 2]
    model = ApartJointly(1, max_features=room, grace_period=3, fading_factor=fading_factor)
    step = many or 11
    for start in range(0, len(rows), step):
        learn(model, rows[start : start + step], many)
        check(model, rows[: start + step])
        assert len(model._state.names) <= room


def dense(n, p, seed=0, offset=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) @ rng.normal(size=(p, p)) + 2.0
    X = np.round(X, 3) + offset
    y = np.round(X[:, 0] - X[:, 1], 3)
    return [({f"v{j}": v for j, v in enumerate(x)}, t) for x, t in zip(X.tolist(), y, strict=True)]


@pytest.mark.parametrize("fading_factor", [0.0, 0.05])
def test_buffered_rows_keep_their_precision(fading_factor):
    """An offset costs no digits in buffered rows, also where values are missing."""
    p, rng = 60, np.random.default_rng(0)
    rows = dense(70, p, offset=1e6)
    model = ApartJointly(2, fading_factor=fading_factor)
    for i, (x, y) in enumerate(rows):
        x |= {f"v{j}": NAN for j in rng.choice(p, 4, replace=False)}
        model.learn_one(x, y)
        if i % 8 in (6, 7, 0):
            C = batch(rows[: i + 1], model._state.names, fading_factor, offset=1e6)
            found = model._state.products(np.arange(p))
            np.testing.assert_allclose(found, correlations(C)[:p, :p], atol=1e-8)


@pytest.mark.parametrize("many", [0, 41])
@pytest.mark.parametrize("p", [5, 60])
@pytest.mark.parametrize("fading_factor", [0.0, 0.05])
def test_an_offset_costs_no_digits(fading_factor, p, many):
    """An offset costs no digits, neither in first rows nor while it changes and rows fade."""
    rows = dense(150, p, offset=1e9)
    if fading_factor:
        rows = dense(60, p) + rows * 6
    model = ApartJointly(2, fading_factor=fading_factor)
    learn(model, rows, many)
    state = model._state
    C = batch(rows, state.names, fading_factor, offset=1e9)
    found = state.products(np.arange(p))
    np.testing.assert_allclose(
        found, correlations(C)[:p, :p], atol=1e-7 if fading_factor else 1e-10
    )


def test_constants_have_no_products():
    model = ApartJointly(2)
    for i in range(40):
        model.learn_one({"a": float(i % 3), "c": 3.7, "never": None, "b": float(i % 7)}, i % 5)
    state = model._state
    found = dict(zip(state.names, state.products(np.arange(4)), strict=True))
    assert not found["c"].any()
    assert not found["never"].any()
    np.testing.assert_allclose(state.products(0)[0], 1.0)
    assert set(model.selected) == {"a", "b"}


@pytest.mark.parametrize("at", [10, 70, 100, 130])
def test_copies_have_the_buffered_rows(at):
    """A pickled copy has the buffered rows, and access to results does not change the state."""
    one, other = ApartJointly(3), ApartJointly(3)
    for i, (x, y) in enumerate(dense(170, 70)):
        one.learn_one(x, y)
        other.learn_one(x, y)
        if i == at:
            assert one._row_extension.current.n_buffered
            assert len(one.selected) == 3
            assert bits(one) == bits(other)
            other = pickle.loads(pickle.dumps(other))  # noqa: S301
    assert bits(one) == bits(other)


# -------------------------------------------------------------------------------- aligned windows


def in_use(model):
    return set(model._state.names)


def test_new_names_are_buffered_after_an_eviction():
    model, rng = ApartJointly(1, max_features=3, grace_period=2), np.random.default_rng(0)

    def rows(n, *names):
        for _ in range(n):
            a, b = rng.normal(size=2)
            x = {"a": a, "b": b} | {name: rng.normal() for name in names}
            model.learn_one(x, a + 0.5 * b)

    rows(10)
    rows(10, "c")
    assert (in_use(model), model.n_aligned_rows) == ({"a", "b", "c"}, 20)  # it was 0 before
    rows(1, "d")
    # Now that a variable is evicted, an earlier "d" may have been: it is not in use yet.
    assert (in_use(model), model.n_aligned_rows) == ({"a", "b"}, 21)
    assert set(model._moments.names) == {"a", "b", "d"}
    rows(18, "d")
    assert (in_use(model), model.n_aligned_rows) == ({"a", "b"}, 39)
    rows(1, "d")
    assert (in_use(model), model.n_aligned_rows) == ({"a", "b", "d"}, 20)
    # Without buffered newcomers the window continues.
    rows(100, "d")
    assert model.n_aligned_rows == 120
    assert model._row_extension.next is None


@pytest.mark.slow
@pytest.mark.parametrize(("fading_factor", "most"), [(0.0, 12), (0.05, 150)])
def test_aligned_windows_are_few(fading_factor, most):
    """There are at most as many windows as doublings of rows, or as half-lives."""
    rng, began, window = np.random.default_rng(0), 0, None
    model = ApartJointly(2, max_features=6, grace_period=5, fading_factor=fading_factor)
    for i in range(1500):
        words = {f"w{j}": 1.0 for j in rng.integers(0, 30, size=3).tolist()}
        a = rng.normal()
        model.learn_one({"a": a} | words, a)
        if model._row_extension.current is not window:
            window, began = model._row_extension.current, began + 1
        if i > 50:
            assert window.n / window.unit > 0.45 * model._moments.n
    assert 3 < began < most
    assert "a" in in_use(model)


def test_sparse_rows_are_cheap():
    """A sparse row changes the sums of products of its own variables only."""
    model = ApartJointly(2)
    rng = np.random.default_rng(0)
    for _ in range(400):
        model.learn_one({f"w{j}": 1.0 for j in rng.integers(0, 300, size=5)}, rng.normal())
    window: AlignedMoments = model._row_extension.current
    variables = [*window.index_of.values()]
    assert not window.shift[variables].any()
    assert not window.n_buffered
    before = window.S.copy()
    model.learn_one({"w1": 1.0, "w2": 1.0}, 0.3)
    assert (before[: window.size] != window.S[: window.size]).sum() <= 9


# ------------------------------------------------------------------------- columns, covariates


@pytest.mark.parametrize("with_target", [1, 3])
def test_rows_continue_exactly_from_columns(with_target):
    X = np.random.default_rng(0).normal(size=(90, 8)) + 5.0
    X[:, 3] += X[:, 2]
    Y = X[:, :with_target] @ np.ones((with_target, with_target)) + X[:, 4:5] ** 2
    y = Y[:, 0] if with_target == 1 else Y
    model = ApartJointly(3)
    model.learn_target(y[:50])
    model.learn_columns(X[:50])
    model.learn_many(X[50:], y[50:])
    state = model._state
    np.testing.assert_allclose(state.products(np.arange(8)), np.corrcoef(X.T), atol=1e-12)
    whole = ApartJointly(3)
    whole.learn_target(y)
    whole.learn_columns(X)
    assert model.selected == whole.selected
    np.testing.assert_allclose([*model.scores.values()], [*whole.scores.values()], atol=1e-10)


def test_columns_beyond_max_features_are_evicted():
    X = np.random.default_rng(0).normal(size=(60, 30))
    y = X[:, 3] + X[:, 20] + 0.3 * X[:, 7]
    model = ApartJointly(2, max_features=10)
    model.learn_target(y[:50])
    model.learn_columns(X[:50])
    found = model.selected
    for x, t in zip(X[50:], y[50:], strict=True):
        model.learn_one(dict(enumerate(x.tolist())), t)
    assert len(model._state.names) <= 10
    assert set(found) <= in_use(model)
    indices = np.array(model._state.names)
    np.testing.assert_allclose(
        model._state.products(np.arange(indices.size)), np.corrcoef(X[:, indices].T), atol=1e-12
    )


def test_constant_columns_are_not_assumed_to_be_zero():
    X = np.random.default_rng(0).normal(size=(20, 3))
    X[:, 1] = 5.0
    model = ApartJointly(2)
    model.learn_target(X[:, 0])
    model.learn_columns(X)
    model.learn_one({0: 1.0, 1: 5.0, 2: 0.0}, 1.0)
    assert in_use(model) == {0, 1, 2}
    assert model.n_constant == 1


@settings(max_examples=20, deadline=None)
@given(streams(), st.sampled_from([0.0, 0.05]))
def test_all_results_with_covariates(rows, fading_factor):
    rng = np.random.default_rng(0)
    rows = [(x | {"age": float(rng.normal() + 40.0 + i % 2)}, y) for i, (x, y) in enumerate(rows)]
    model = ApartJointly(2, covariates=("age",), fading_factor=fading_factor)
    learn(model, rows, 0)
    if len(rows) < 12:
        return
    state = model._state
    names, p = state.names, len(state.names)
    C = correlations(batch(rows, names, fading_factor, given_too=("age",)))
    np.testing.assert_allclose(state.products(np.arange(p)), C[:p, :p], atol=1e-8)


# ------------------------------------------------------------------------------------ merging


@pytest.mark.parametrize("fading_factor", [0.0, 0.05])
def test_merged_rows_equal_all_rows(fading_factor):
    """Without evictions merged rows equal all rows: a variable that one model lacks was 0 there."""
    rows = dense(100, 6)
    for x, _ in rows[:60]:
        del x["v5"]
    for x, _ in rows[60:]:
        x.pop("v4")
        x["v1"] = x["v1"] if x["v1"] > 0.0 else NAN
    left, right = (ApartJointly(2, fading_factor=fading_factor) for _ in range(2))
    learn(left, rows[:60], 0)
    learn(right, rows[60:], 13)
    alongside = pickle.dumps(right)
    left.merge(right, along="rows")
    assert pickle.dumps(right) == alongside
    assert (left.n_rows, left.n_aligned_rows) == (100, 100)
    if not fading_factor:
        check(left, rows)
    learn(left, rows[:5], 0)
    if not fading_factor:
        check(left, rows + rows[:5])


@pytest.mark.parametrize("on_columns", [(True, False), (False, True), (True, True)])
def test_merged_rows_after_columns_equal_all_rows(on_columns):
    rows, models = dense(100, 6), []
    for is_columns, part in zip(on_columns, (rows[:60], rows[60:]), strict=True):
        model = ApartJointly(2)
        if is_columns:
            model.learn_target([y for _, y in part])
            model.learn_columns(pd.DataFrame([x for x, _ in part]))
        else:
            learn(model, part, 0)
        models.append(model)
    alongside = pickle.dumps(models[1])
    models[0].merge(models[1], along="rows")
    assert pickle.dumps(models[1]) == alongside
    check(models[0], rows)


def test_merged_windows_have_the_common_variables():
    """After evictions, a merged window has the variables that both models have."""
    rng, models = np.random.default_rng(0), []
    for names in ("abcde", "abdefg"):
        model = ApartJointly(1, max_features=4, grace_period=2)
        for i in range(60):
            x = {name: rng.normal() for name in names[: 4 if i < 30 else 6]}
            model.learn_one(x, x["a"] + 0.1 * x["b"])
        models.append(model)
    before = [in_use(model) for model in models]
    used = [model.n_aligned_rows for model in models]
    models[0].merge(models[1], along="rows")
    assert in_use(models[0]) == before[0] & before[1]
    assert models[0].n_aligned_rows == sum(used)
    found = models[0]._state.products(np.arange(len(in_use(models[0]))))
    assert np.linalg.eigvalsh(found).min() >= -1e-10


def test_column_merges_after_rows_are_refused():
    rows = dense(30, 6)
    parts = [{"v0", "v1", "v2"}, {"v3", "v4", "v5"}]
    left, right = (ApartJointly(2) for _ in parts)
    for model, part in zip((left, right), parts, strict=True):
        learn(model, [({name: x[name] for name in part}, y) for x, y in rows], 0)
    before = bits(left)
    with pytest.raises(ValueError, match="before they learn rows"):
        left.merge(right)
    assert bits(left) == before


def test_files_of_other_variables_are_refused():
    model = ApartJointly(2)
    learn(model, dense(30, 4), 0)
    state = copy.deepcopy(model._get_state())
    state["extension"]["current"]["names"][0] = "nobody"
    with pytest.raises(ValueError, match="cross-moments"):
        ApartJointly(2)._set_state(state)
