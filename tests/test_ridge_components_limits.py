"""RidgeComponents: methods that are limiting cases, invariances, degenerate data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import load_breast_cancer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge

from streamsel import RidgeComponents
from tests.conformance.modes import bits
from tests.reference import ridge_components as reference
from tests.reference import target as space
from tests.ridge import agree, data, learnt, matrix, near, same_space, same_up_to_sign

SEEDS = st.integers(0, 10**6)
STATES = [{}, {"max_support": 12}]
QUICK = settings(max_examples=25)


def standardised(X):
    X = X - X.mean(axis=0)
    return X / np.linalg.norm(X, axis=0)


def loadings(model, p):
    return matrix(model.loadings, range(p), model.components[: len(model.relevance)])


def basis(y):
    return space.basis(space.numbers(y))


# -------------------------------------------------------------------------- limits


@QUICK
@given(SEEDS)
def test_large_ridge_without_weights_is_pls(seed):
    X, y = data(n=30, p=50, seed=seed)
    model = learnt(X, y, n_components=1, relevance_power=0.0, alpha=1e12)
    pls = PLSRegression(1, scale=True).fit(X, y)
    found = loadings(model, 50) * X.std(axis=0)[:, None]
    same_up_to_sign(found / np.linalg.norm(found), pls.x_weights_)


@QUICK
@given(SEEDS)
def test_large_ridge_without_weights_is_the_correlation_svd(seed):
    X, y = data(n=30, p=50, kind="numbers", seed=seed)
    model = learnt(X, y, n_components=3, relevance_power=0.0, alpha=1e12)
    W = np.linalg.svd(standardised(X).T @ basis(y), full_matrices=False)[0]
    found = loadings(model, 50) * X.std(axis=0)[:, None]
    same_up_to_sign(found / np.linalg.norm(found, axis=0), W, 1e-8)


@QUICK
@given(SEEDS, st.sampled_from([0.0, 1.0]))
def test_no_ridge_is_least_squares(seed, power):
    X, y = data(n=60, p=8, seed=seed)
    model = learnt(X, y, n_components=1, relevance_power=power, alpha=1e-13)
    A = np.column_stack([np.ones(60), X])
    fitted = A @ np.linalg.lstsq(A, y, rcond=None)[0]
    same_space(model.embedding, fitted[:, None])


@QUICK
@given(SEEDS)
def test_no_ridge_is_the_discriminant_space(seed):
    X, y = data(n=80, p=8, kind="labels", seed=seed)
    model = learnt(X, y, n_components=3, relevance_power=0.0, alpha=1e-13)
    lda = LinearDiscriminantAnalysis().fit(X, y).transform(X)
    same_space(model.embedding, lda)


@QUICK
@given(SEEDS, st.sampled_from(["reml", "gcv", 0.1, 10.0]), st.sampled_from([0.0, 1.0, 2.0, 4.0]))
def test_first_component_is_weighted_ridge_regression(seed, alpha, power):
    X, y = data(n=30, p=50, seed=seed)
    model = learnt(X, y, n_components=1, relevance_power=power, alpha=alpha)
    U = standardised(X)
    w = np.abs(U.T @ standardised(y[:, None])[:, 0]) ** power
    w /= np.sqrt(np.mean(w**2))
    ridge = Ridge(alpha=model.fitted_alpha * 50 / 29, solver="svd").fit(U * w, y)
    found = loadings(model, 50)[:, 0] * np.linalg.norm(X - X.mean(axis=0), axis=0) / w
    same_up_to_sign(found[:, None] / np.linalg.norm(found), normed(ridge.coef_[:, None]), 1e-8)


@QUICK
@given(SEEDS, st.sampled_from(["numbers", "labels"]))
def test_first_components_span_the_ridge_regressions(seed, kind):
    X, y = data(n=40, p=50, kind=kind, seed=seed)
    U, T = standardised(X), basis(y)
    model = learnt(X, y, n_components=T.shape[1], relevance_power=1.0)
    w = np.linalg.norm(U.T @ T, axis=1)
    w /= np.sqrt(np.mean(w**2))
    # In units of the mean eigenvalue: 50 is the sum, and 39 eigenvalues are nonzero.
    ridge = Ridge(alpha=model.fitted_alpha * 50 / 39, solver="svd").fit(U * w, T)
    same_space(model.embedding, (U * w) @ ridge.coef_.T, 1e-8)


def normed(B):
    return B / np.linalg.norm(B, axis=0)


@QUICK
@given(SEEDS, st.sampled_from(["number", "labels"]))
def test_later_components_are_uncorrelated(seed, kind):
    """The components after the first r are uncorrelated with all others."""
    X, y = data(n=40, p=50, kind=kind, seed=seed)
    Z = learnt(X, y, n_components=6).embedding
    r = basis(y).shape[1]
    R = np.corrcoef(Z.T)
    np.testing.assert_allclose(R[r:] - np.eye(6)[r:], 0.0, atol=1e-8)


# ------------------------------------------------------------------- invariances


@QUICK
@given(SEEDS, st.sampled_from(STATES))
def test_scales_and_offsets_of_columns_do_not_matter(seed, state):
    rng = np.random.default_rng(seed)
    X, y = data(n=30, p=40, seed=seed)
    X = np.round(X * 1024) / 1024
    model = learnt(X, y, n_components=3, **state)
    scale = 2.0 ** rng.integers(-20, 20, size=40) * rng.choice([-1.0, 1.0], size=40)
    other = learnt(X * scale, 3.0 * y - 1e6, n_components=3, **state)
    assert other.fitted_alpha == pytest.approx(model.fitted_alpha, rel=1e-9)
    same_up_to_sign(other.embedding, model.embedding)
    moved = learnt(X + np.where(rng.random(40) < 0.5, 1e9, 0.0), y, n_components=3, **state)
    same_up_to_sign(moved.embedding, model.embedding)


@QUICK
@given(SEEDS, st.sampled_from(STATES), st.sampled_from(["reml", "gcv"]))
def test_mixing_of_targets_does_not_matter(seed, state, alpha):
    rng = np.random.default_rng(seed)
    X, Y = data(n=30, p=40, kind="numbers", seed=seed)
    mixing = np.linalg.qr(rng.normal(size=(3, 3)))[0] * rng.uniform(0.5, 2.0, size=3)
    state = state | {"alpha": alpha, "n_components": 5}
    model = learnt(X, Y, **state)
    for mixed in (Y @ mixing, np.c_[Y @ mixing, Y[:, 0]], Y[:, ::-1] + 5.0):
        other = learnt(X, mixed, **state)
        assert other.fitted_alpha == pytest.approx(model.fitted_alpha, rel=1e-9)
        same_up_to_sign(other.embedding, model.embedding)


@QUICK
@given(SEEDS, st.sampled_from(STATES))
def test_names_of_classes_do_not_matter(seed, state):
    X, y = data(n=40, p=40, kind="labels", seed=seed)
    model = learnt(X, y, n_components=5, **state)
    renamed = dict(zip(["ant", "bee", "cat", "dog"], ["z", "b", "a", "x"], strict=True))
    other = learnt(X, np.array([renamed[label] for label in y]), n_components=5, **state)
    same_up_to_sign(other.embedding, model.embedding)
    flags = y == "ant"
    one, two = (learnt(X, t, n_components=3, **state) for t in (flags, flags * 1.0))
    same_up_to_sign(one.embedding, two.embedding)


def test_copies_count_as_weight():
    """Nine copies of a column are equivalent to one with weight nine."""
    X, y = data(n=30, p=10)
    model = learnt(np.column_stack([X] + [X[:, 4]] * 8), y, n_components=2, alpha=1.0)
    of, U = reference.variables(X, basis(y)), basis(y)
    heavier = of._replace(mu=np.where(np.arange(10) == 4, 9.0, 1.0))
    # The same ridge, in mean eigenvalues of different numbers of columns.
    found = reference.solve(heavier, U, n_components=2, alpha=10 / 18)
    same_up_to_sign(normed(model.embedding), normed(found.scores))


# ------------------------------------------------------------------------- the likelihood


@QUICK
@given(SEEDS, st.sampled_from(["number", "labels"]), st.sampled_from(["reml", "gcv"]))
def test_fitted_alpha_has_maximum_likelihood(seed, kind, alpha):
    X, y = data(n=30, p=40, kind=kind, seed=seed)
    model = learnt(X, y, n_components=2, alpha=alpha)
    of, U = reference.variables(X, basis(y)), basis(y)
    w = of.relevance**2
    W = of.units * (w / np.sqrt(np.mean(w**2)))
    K = W @ W.T

    def score(a):
        a = a * 40 / 29
        if alpha == "reml":
            return reference.likelihood(K, U, a, 30)
        return -reference.cross_validation(K, U, a, 30)

    # Between grid points the criterion may be slightly better, but not a step away.
    for factor in (0.25, 4.0):
        other = model.fitted_alpha * factor
        if 1e-5 < other < 1e5:
            assert score(model.fitted_alpha) >= score(other) - 1e-9 * abs(score(other))


@QUICK
@given(SEEDS, st.sampled_from(STATES))
def test_order_of_powers_does_not_matter(seed, state):
    """The order of several powers does not matter, and a tuple of one power is that power."""
    X, y = data(n=30, p=40, kind="numbers", seed=seed)
    for one, other in ((2.0, (2.0,)), ((0.0, 1.0, 4.0), (4.0, 0.0, 1.0))):
        found = [learnt(X, y, n_components=3, relevance_power=p, **state) for p in (one, other)]
        same_up_to_sign(*(model.embedding for model in found))


# --------------------------------------------------------------------------------- noise


@pytest.mark.parametrize("state", STATES, ids=str)
def test_pure_noise_is_reported_as_noise(state):
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(50, 2000)), rng.normal(size=50)
    model = learnt(X, y, **state)
    assert model.n_above_noise == 0
    assert "chance" in model.report().details["caution"]


@pytest.mark.parametrize("kind", ["number", "labels"])
@pytest.mark.parametrize("state", STATES, ids=str)
def test_number_of_components_above_noise(state, kind):
    X, y = data(n=60, p=100, kind=kind)
    model = learnt(X, y, **state)
    U = basis(y)
    of, exact = reference.variables(X, U), 1.0 / 4096 if state else 0.0
    least, most = (reference.above_noise(of, U, 100, hysteresis) for hysteresis in (exact, 0.0))
    assert 0 < least <= model.n_above_noise <= most
    assert "caution" not in model.report().details


# ------------------------------------------------------------------------------ corners


@pytest.mark.parametrize("state", STATES, ids=str)
def test_extreme_scales(state):
    X, y = data(n=30, p=60)
    plain = learnt(X, y, n_components=3, **state)
    for scale in (1e150, 1e-150):
        other = learnt(X * scale, y / scale, n_components=3, **state)
        same_up_to_sign(other.embedding, plain.embedding)
        B = loadings(other, 60)
        assert np.isfinite(B).all()
        near(np.abs(B * scale), np.abs(loadings(plain, 60)))
    mixed = X * np.where(np.arange(60) % 2, 1e150, 1e-150)
    same_up_to_sign(learnt(mixed, y, n_components=3, **state).embedding, plain.embedding)


@pytest.mark.parametrize("state", STATES, ids=str)
@pytest.mark.parametrize("kind", ["number", "numbers", "labels"])
def test_constant_columns_change_nothing(state, kind):
    X, y = data(n=30, p=60, kind=kind)
    without = learnt(X[:, ::2], y, range(0, 60, 2), n_components=3, **state)
    X[:, 1::2] = np.arange(30)
    model = learnt(X, y, n_components=3, **state)
    assert (model.n_columns, model.n_constant) == (60, 30)
    near(model.embedding, without.embedding)
    assert model.loadings.keys() == without.loadings.keys()
    only = learnt(X[:, 1::2], y, n_components=3, **state)
    assert (only.loadings, only.relevance) == ({}, {})
    assert only.embedding.shape == (30, 0)


@pytest.mark.parametrize("state", STATES, ids=str)
@pytest.mark.parametrize("kind", ["number", "numbers", "labels"])
@pytest.mark.parametrize(("n", "p"), [(30, 1), (30, 2), (30, 4), (6, 3), (6, 20), (5, 60)])
def test_few_components_of_small_problems(state, kind, n, p):
    X, y = data(n=n, p=max(p, 6), kind=kind, seed=n + p)
    X = X[:, :p]
    for q in (1, 2, 5, 10):
        # With a fixed alpha, because all small λ are equally likely and rounding would choose.
        rule = {"n_components": q, "alpha": 0.1, "relevance_power": 1.0} | state
        model, expected = learnt(X, y, **rule), reference.answer(X, y, **rule)
        count = len(model.relevance)
        assert count == len(expected["relevance"]) <= min(q, n - 1, p)
        assert list(model.relevance) == model.components[:count]
        same_up_to_sign(model.embedding, expected["embedding"], 1e-8)
        Z = model.transform_many(X)
        assert Z.shape == (n, q)
        assert not Z[:, count:].any()


def test_more_target_columns_than_observations():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(12, 30)), rng.normal(size=(12, 40))
    model = learnt(X, Y, n_components=4, alpha=0.5)
    agree(model, reference.answer(X, Y, n_components=4, alpha=0.5), range(30))
    assert np.isfinite(learnt(X, Y, n_components=4).embedding).all()


def test_an_answer_before_learning():
    model = RidgeComponents(2)
    assert model.transform_one({"a": 1.0}) == {}
    assert (model.loadings, model.relevance) == ({}, {})


def test_too_many_rows_for_the_gram_matrix():
    X, y = data(n=60, p=5)
    model = RidgeComponents(2, max_gram_rows=50)
    before = bits(model)
    with pytest.raises(
        ValueError, match=r"Expected[^$]*50[^$]*Got[^$]*60[^$]*Hint[^$]*max_support"
    ):
        model.learn_target(y)
    assert bits(model) == before
    assert learnt(X, y, n_components=2, max_gram_rows=50, max_support=5).relevance
    assert learnt(X, y, n_components=2, max_gram_rows=60).relevance


@pytest.mark.parametrize(
    "bad",
    [
        {"n_components": 0},
        {"max_support": 0},
        {"relevance_power": -1.0},
        {"relevance_power": ()},
        {"relevance_power": (1.0, float("nan"))},
        {"alpha": 0.0},
        {"alpha": -1.0},
        {"alpha": "ols"},
        {"alpha": float("inf")},
        {"max_loadings": 0},
        {"max_gram_rows": 0},
    ],
    ids=str,
)
def test_bad_parameters_are_refused(bad):
    with pytest.raises((ValueError, TypeError), match=next(iter(bad))):
        RidgeComponents(**bad)


# ---------------------------------------------------------------------------- real data


def test_first_component_is_more_accurate_than_pls():
    X, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:200], order[200:]
    level, scale = X[train].mean(axis=0), X[train].std(axis=0)
    A, B = ((X[part] - level) / scale for part in (train, test))
    pls = PLSRegression(1).fit(A, y[train])
    theirs = errors(*(part @ pls.x_rotations_ for part in (A, B)), y[train], y[test])
    for state in ({}, {"max_support": 20}):
        model = learnt(A, y[train] == 1, n_components=1, **state)
        ours = errors(*(model.transform_many(part) for part in (A, B)), y[train], y[test])
        assert ours <= theirs


def errors(A, B, y, truth):
    return np.mean(LinearDiscriminantAnalysis().fit(A, y).predict(B) != truth)
