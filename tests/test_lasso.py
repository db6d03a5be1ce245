"""Lasso: against its definition and scikit-learn; a bounded pool against all columns."""

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LogisticRegression, enet_path

from streamsel import Lasso
from streamsel.params import rules_of
from streamsel.selection._active_set import solve_kkt
from tests.copies import COPIES
from tests.reference import lasso as reference


def learnt(X, y, names=None, covariates=None, **params):
    model = Lasso(**params)
    model.learn_target(y, covariates=covariates)
    model.learn_columns(X, names)
    return model


def weights(found, p):
    """Return the coefficients, a dict by name, as an array."""
    w = np.zeros(p)
    for name, value in found.items():
        w[name] = value
    return w


def paths(model, p):
    return np.array([weights(found, p) for found in model.path.values()])


def sparse_data(seed, n=60, p=100):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * rng.uniform(0.1, 10.0, p) + rng.normal(size=p)
    y = X[:, 0] / X[:, 0].std() - 2.0 * X[:, 2] / X[:, 2].std() + 0.5 * rng.normal(size=n)
    return X, y


# ---------------------------------------------------------------- against scikit-learn


def sklearn_before_1_8():
    return tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8)


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("p", [20, 100])
def test_the_path_equals_scikit_learn(p, scale, l1_ratio):
    X, y = sparse_data(p, p=p)
    model = learnt(X, y, k="all", n_alphas=30, alpha_min_ratio=0.01, scale=scale, l1_ratio=l1_ratio)
    sizes = X.std(axis=0) if scale else np.ones(p)
    Z, t = (X - X.mean(axis=0)) / sizes, y - y.mean()
    first = np.abs(Z.T @ t).max() / len(y) / l1_ratio
    alphas = np.geomspace(first, 0.01 * first, 30)
    np.testing.assert_allclose(list(model.path), alphas, rtol=1e-12)
    _, w, _ = enet_path(Z, t, l1_ratio=l1_ratio, alphas=alphas, tol=1e-12, max_iter=10**6)
    np.testing.assert_allclose(paths(model, p), w.T / sizes, atol=1e-7)


@pytest.mark.parametrize("load_data", [load_diabetes, load_breast_cancer])
def test_the_path_equals_scikit_learn_on_real_data(load_data):
    X, y = load_data(return_X_y=True)
    y = y.astype(np.float64)
    # For two classes the default is the logistic loss.
    model = learnt(X, y, k="all", n_alphas=20, alpha_min_ratio=0.02, family="gaussian")
    sizes = X.std(axis=0)
    Z, t = (X - X.mean(axis=0)) / sizes, y - y.mean()
    _, w, _ = enet_path(Z, t, l1_ratio=1.0, alphas=[*model.path], tol=1e-12, max_iter=10**6)
    np.testing.assert_allclose(paths(model, X.shape[1]) * sizes, w.T, atol=1e-6 * np.abs(w).max())
    assert model.duality_gap < 1e-12
    assert model.kkt_violation < 1e-9


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
def test_the_logistic_solution_equals_scikit_learn(l1_ratio):
    X, y = sparse_data(3, p=30)
    labels = np.where(y > 0.3, "well", "ill")
    alpha = 0.05
    model = learnt(X, labels, alphas=alpha, family="logistic", scale=False, l1_ratio=l1_ratio)
    # Since version 1.8 the penalty follows from l1_ratio and must not be passed.
    named = {"penalty": "elasticnet"} if sklearn_before_1_8() else {}
    other = LogisticRegression(
        l1_ratio=l1_ratio,
        solver="saga",
        C=1.0 / (len(y) * alpha),
        tol=1e-9,
        max_iter=10**5,
        **named,
    ).fit(X, labels)
    np.testing.assert_allclose(weights(model.coefficients, 30), other.coef_[0], atol=1e-4)
    assert model.duality_gap < 1e-10
    assert model.kkt_violation < 1e-9


# ------------------------------------------------------------------- against the definition


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.4])
@pytest.mark.parametrize("p", [10, 60])
def test_the_logistic_path_is_that_of_the_definition(p, l1_ratio, scale):
    X, y = sparse_data(5, n=40, p=p)
    options = {"k": "all", "l1_ratio": l1_ratio, "scale": scale, "family": "logistic"}
    options |= {"n_alphas": 10, "alpha_min_ratio": 0.05}
    model = learnt(X, y > 0.0, **options)
    alphas, found = reference.solutions(X, y > 0.0, **options)
    np.testing.assert_allclose(list(model.path), alphas)
    np.testing.assert_allclose(paths(model, p), [w for _, _, w in found], atol=1e-8)
    _, level, w = found[-1]
    np.testing.assert_allclose(model.intercept, level - w @ X.mean(axis=0), atol=1e-7)


def test_by_hand():
    """Coefficients of orthogonal columns are soft-thresholded products with the target."""
    X = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    y = X @ [3.0, -1.0] + 7.0
    model = learnt(X, y, ["a", "b"], alphas=(2.0, 0.25, 4.0))
    assert list(model.path) == [4.0, 2.0, 0.25]
    (first, second, third) = model.path.values()
    assert first == {}
    assert second == pytest.approx({"a": 1.0})
    assert third == pytest.approx({"a": 2.75, "b": -0.75})
    assert model.selected == ["a", "b"]
    assert model.scores == {"a": 2.0, "b": 0.25}
    assert model.rounds == {"a": 1, "b": 2}
    assert model.coefficients == pytest.approx({"a": 2.75, "b": -0.75})
    assert model.intercept == pytest.approx(7.0)
    assert model.transform_one({"b": 1.0, "c": 2.0}) == {"b": 1.0}


def test_the_path_ends_with_k_variables():
    X, y = sparse_data(0)
    whole = learnt(X, y, k="all", n_alphas=50).path
    for k in (1, 2, 5, 10):
        model = learnt(X, y, k=k, n_alphas=50)
        *before, last = model.path.values()
        assert all(len(found) < k for found in before)
        assert len(last) >= k == len(model.selected)
        assert list(model.path) == list(whole)[: len(model.path)]
        assert model.selected == list(model.coefficients)[:k]


def test_units_do_not_matter_with_scale():
    X, y = sparse_data(1)
    factors = 10.0 ** np.random.default_rng(0).integers(-6, 7, X.shape[1])
    one, other = (learnt(Z, y, k=8) for Z in (X, X * factors + 3.0 * factors))
    assert one.selected == other.selected
    for name, w in one.coefficients.items():
        assert w == pytest.approx(other.coefficients[name] * factors[name], rel=1e-6)


def test_copies_share_coefficients_under_a_ridge_only():
    X, y = sparse_data(2, p=12)
    X = np.c_[X, X[:, 0], 5.0 - 2.0 * X[:, 2]]
    found = learnt(X, y, alphas=0.1).coefficients
    assert {0, 2} <= found.keys()
    assert not {12, 13} & found.keys()
    shared = learnt(X, y, alphas=0.1, l1_ratio=0.5).coefficients
    assert shared[0] == pytest.approx(shared[12])
    assert shared[2] == pytest.approx(-2.0 * shared[13])


def test_covariates_are_not_penalised():
    """Coefficients of covariates are not penalised: the LASSO is that of the residuals."""
    X, y = sparse_data(4)
    Z = np.c_[X[:, 0] + X[:, 1], np.random.default_rng(0).normal(size=len(X))]
    basis = np.linalg.qr(np.c_[np.ones(len(X)), Z])[0]
    left = [A - basis @ (basis.T @ A) for A in (X, y)]
    model = learnt(X, y, covariates=Z, k=6)
    other = learnt(*left, k=6)
    assert model.selected == other.selected
    assert model.coefficients == pytest.approx(other.coefficients, rel=1e-8)


def test_an_uncorrelated_target_has_an_empty_path():
    X = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    model = learnt(X, X[:, 0] * X[:, 1], k=2)
    assert (model.selected, model.path, model.coefficients) == ([], {}, {})
    assert np.isnan(model.intercept)
    assert (model.duality_gap, model.kkt_violation) == (0.0, 0.0)


# -------------------------------------------------------------------------- the solver


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 14), st.booleans())
def test_solutions_satisfy_the_optimality_conditions(seed, n, p, has_ridge):
    """Solutions satisfy the optimality conditions, also for dependent columns."""
    rng = np.random.default_rng(seed)
    A = rng.integers(-2, 3, (n, p)) * 1.0
    A[:, ~A.any(axis=0)] = 1.0
    Q, a = A.T @ A, A.T @ rng.normal(size=n)
    bar = rng.uniform(0.05, 1.0, p)
    ridge = rng.uniform(0.1, 1.0, p) * has_ridge
    b = solve_kkt(Q, a, bar, ridge, bar * (1.0 + 1e-9) + 1e-13, rng.normal(size=p))
    slopes = a - Q @ b - ridge * b
    active = b != 0.0
    np.testing.assert_allclose(slopes[active], (bar * np.sign(b))[active], atol=1e-8)
    assert (np.abs(slopes) <= bar + 1e-8).all()


# ------------------------------------------------------------------ a bounded pool


def stream_of(seed):
    """Return columns of some kind, a target, and parameters."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.choice([6, 10, 20, 40])), int(rng.choice([10, 30, 80]))
    X = rng.normal(size=(n, p))
    kind = seed % 5
    if kind == 1:
        X = rng.integers(-2, 3, (n, p)) * 1.0
    elif kind == 2:
        X = X[:, : max(2, n // 3)] @ rng.normal(size=(X[:, : max(2, n // 3)].shape[1], p))
    elif kind == 3:
        X = np.cumsum(X, axis=1)
    elif kind == 4:
        X = X[:, rng.integers(0, p // 3, p)] * rng.choice([1.0, -1.0, 2.0], p)
    X[:, rng.integers(0, p, 2)] = 1.5
    X += rng.choice([0.0, 5.0, 1e6])
    y = X[:, :3] @ rng.normal(size=3) + rng.choice([0.1, 1.0]) * rng.normal(size=n)
    params = {
        "k": ["all", 2, 5][rng.integers(3)],
        "l1_ratio": float(rng.choice([1.0, 1.0, 0.5])),
        "scale": bool(rng.integers(2)),
        "n_alphas": int(rng.choice([5, 20])),
        "alpha_min_ratio": float(rng.choice([0.3, 0.1])),
    }
    if seed % 7 == 0:
        y, params = y > np.median(y), params | {"family": "logistic"}
    return X, y, params, int(rng.choice([5, 8, 15, 30]))


@pytest.mark.filterwarnings("ignore:The path ends early")
@pytest.mark.parametrize("seed", range(60))
def test_a_bounded_pool_finds_the_path_of_all_columns(seed):
    X, y, params, size = stream_of(seed)
    pooled = learnt(X, y, max_candidates=size, exact=True, **params)
    whole = learnt(X, y, **params)
    p = X.shape[1]
    assert pooled.n_certified == len(pooled.selected)
    assert pooled.path_truncated or len(pooled.path) == len(whole.path)
    assert (
        max(pooled.duality_gap, pooled.kkt_violation, whole.duality_gap, whole.kkt_violation) < 1e-6
    )
    Z = X - X.mean(axis=0)
    for one, other in zip(pooled.path.items(), whole.path.items(), strict=False):
        assert one[0] == pytest.approx(other[0], rel=1e-10)
        # Where solutions are not unique, predictions are.
        a, b = (Z @ weights(found, p) for _, found in (one, other))
        np.testing.assert_allclose(a, b, atol=1e-6 * max(1e-9, np.abs(b).max(initial=0.0)))


def test_too_small_pools_truncate_the_path():
    X, y = sparse_data(8)
    with pytest.warns(UserWarning, match="The path ends early: the pool has room for 6"):
        model = learnt(X, y, k="all", n_alphas=40, max_candidates=6, exact=True)
    whole = learnt(X, y, k="all", n_alphas=40)
    assert model.path_truncated
    assert not whole.path_truncated
    assert 0 < len(model.path) < len(whole.path)
    for alpha, found in model.path.items():
        near = min(whole.path, key=lambda other: abs(other - alpha))
        assert found == pytest.approx(whole.path[near], rel=1e-8)


def test_one_pass_certifies_all_or_nothing():
    X, y = sparse_data(9)
    model = learnt(X, y, k=5, max_candidates=8)
    assert model.n_passes == 1
    assert model.n_certified in (0, 5)
    if not model.n_certified:
        assert np.isnan(model.duality_gap)
        assert np.isnan(model.kkt_violation)


def test_logistic_models_are_copied_and_kept(tmp_path):
    X, y = sparse_data(10)
    model = learnt(X, y > 0.0, k=4, family="logistic", max_candidates=8, exact=True)
    for copied in COPIES.values():
        copy = copied(model, tmp_path)
        assert copy.selected == model.selected
        assert copy.coefficients == pytest.approx(model.coefficients, rel=1e-10)
        assert copy.intercept == pytest.approx(model.intercept, rel=1e-10)
        assert copy.n_certified == 4


def test_logistic_on_rows_equals_the_last_window():
    X, y = sparse_data(11, n=100, p=8)
    model = Lasso(k=2, family="logistic", window_size=50)
    for x, label in zip(X, (y > 0.0).tolist(), strict=True):
        model.learn_one(dict(enumerate(x.tolist())), "well" if label else "ill")
    other = learnt(X[50:], np.where(y > 0.0, "well", "ill")[50:], k=2, family="logistic")
    assert model.selected == other.selected
    assert model.coefficients == pytest.approx(other.coefficients, rel=1e-8)


# --------------------------------------------------------------------------- the choice of family


@pytest.mark.parametrize("family", ["auto", "logistic"])
@pytest.mark.parametrize("form", [int, float, bool, "text", "two numbers"])
def test_two_classes_have_the_logistic_loss(family, form):
    X, y = sparse_data(13)
    labels = y > 0.0
    expected = learnt(X, np.where(labels, "b", "a"), k=4, family="logistic")
    if form == "text":
        model = learnt(X, np.where(labels, "yes", "no"), k=4, family=family)
    elif form == "two numbers":
        model = learnt(X, np.where(labels, 7, -1), k=4, family=family)
    else:
        model = learnt(X, labels.astype(form), k=4, family=family)
    assert model.scores == expected.scores
    assert model.coefficients == expected.coefficients
    assert model.intercept == expected.intercept
    assert model.report().target.endswith("; logistic loss") is (family == "auto")
    assert model.duality_gap < 1e-10


def test_a_numeric_target_has_least_squares_as_before():
    X, y = sparse_data(14)
    auto, gaussian = (learnt(X, y, k=4, family=family) for family in ("auto", "gaussian"))
    assert auto.path == gaussian.path
    assert auto.report().target == gaussian.report().target
    for model in (auto, gaussian):
        model.learn_one(dict(enumerate(X[0].tolist())), 0.5)
    assert auto.path == gaussian.path


@pytest.mark.parametrize(
    ("options", "alongside"),
    [
        ({"fading_factor": 0.01}, {}),
        ({}, {"weights": np.arange(50) % 3}),
        ({}, {"covariates": np.arange(50.0) ** 2}),
        ({"family": "gaussian"}, {}),
    ],
)
def test_two_numbers_are_numeric_if_classes_are_impossible(options, alongside):
    X, y = sparse_data(15, n=50)
    found = []
    for family, kind in (("auto", "auto"), ("gaussian", "numeric")):
        model = Lasso(k=4, **{"family": family, "target_type": kind} | options)
        model.learn_target((y > 0.0).astype(int), **alongside)
        model.learn_columns(X)
        assert model.report().target == "numeric, 0 to 1"
        found.append(model.path)
    assert found[0] == found[1]
    model = Lasso(k=4, **options)
    with pytest.raises(ValueError, match="Expected"):
        model.learn_target(np.where(y > 0.0, "yes", "no"), **alongside)
    assert model.n_rows == 0
    # A target that was refused before does no harm.
    model.learn_target(y, **alongside)
    assert model.n_rows == 50


@pytest.mark.parametrize("copied", COPIES)
def test_rows_continue_in_windows_after_two_classes(copied, tmp_path):
    X, y = sparse_data(16, n=100, p=8)
    labels = (y > 0.0).astype(int)
    model = learnt(X[:50], labels[:50], k=2, window_size=50)
    model = COPIES[copied](model, tmp_path)
    for x, label in zip(X[50:], labels[50:].tolist(), strict=True):
        model.learn_one(dict(enumerate(x.tolist())), label)
    other = learnt(X[50:], labels[50:], k=2, family="logistic")
    assert model.selected == other.selected
    assert model.coefficients == pytest.approx(other.coefficients, rel=1e-8)
    assert model.report().target == "2 classes: 0, 1; logistic loss"


@pytest.mark.parametrize("form", [int, float, bool])
def test_rows_of_the_logistic_family_may_have_numbers(form):
    X, y = sparse_data(11, n=50, p=8)
    model = Lasso(k=2, family="logistic", window_size=50)
    for x, label in zip(X, (y > 0.0).tolist(), strict=True):
        model.learn_one(dict(enumerate(x.tolist())), form(label))
    assert model.coefficients == learnt(X, y > 0.0, k=2, family="logistic").coefficients
    with pytest.raises(ValueError, match=r"family='logistic' requires\. Got: 3 classes"):
        model.learn_one({0: 1.0}, 2.5)


def test_rows_alone_have_least_squares():
    for learn in (
        lambda model: model.learn_one({0: 1.0}, "yes"),
        lambda model: model.learn_many(np.ones((2, 1)), ["yes", "no"]),
    ):
        with pytest.raises(ValueError, match="Hint: family='logistic' learns rows"):
            learn(Lasso())


# ------------------------------------------------------------------------------ bad input


def test_k_or_alphas():
    with pytest.raises(ValueError, match="Expected k or alphas, not both"):
        Lasso(k=3, alphas=0.1)
    with pytest.raises(
        ValueError, match=r"Expected l1_ratio of Lasso to be a float in the range \(0.0, 1.0\]"
    ):
        Lasso(l1_ratio=1.5)


@pytest.mark.parametrize(
    ("family", "y", "expected"),
    [
        ("gaussian", np.arange(12.0).reshape(6, 2), "one numeric target"),
        ("gaussian", np.array(list("aabbab")), "one numeric target"),
        ("logistic", np.arange(6.0), "two classes"),
        ("logistic", np.array(list("abcabc")), "two classes"),
        ("logistic", np.arange(8) % 3, "two classes"),
        ("auto", np.arange(8) % 3, "one numeric target or two classes"),
        ("gaussian", np.arange(8) % 3, "one numeric target"),
    ],
)
def test_targets_refused_by_a_family(family, y, expected):
    with pytest.raises(ValueError, match=f"Expected {expected}, as family='{family}'"):
        Lasso(family=family).learn_target(y)


def test_alphas_can_be_text():
    rule = rules_of(Lasso)["alphas"]
    assert rule.read("0.1,0.2") == (0.1, 0.2)
    assert rule.read("0.5") == 0.5
    assert rule.read("None") is None


# ---------------------------------------------------------------------------------- rows


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
@pytest.mark.parametrize("scale", [True, False])
def test_rows_have_the_path_of_their_columns(scale, l1_ratio):
    X, y = sparse_data(12, n=80, p=12)
    params = {"k": "all", "scale": scale, "l1_ratio": l1_ratio, "n_alphas": 20}
    half = learnt(X[:40], y[:40] + 100.0, **params)
    rows = Lasso(**params)
    for i, x in enumerate(X.tolist()):
        for model in [rows] if i < 40 else [rows, half]:
            model.learn_one(dict(enumerate(x)), float(y[i]) + 100.0)
    whole = learnt(X, y + 100.0, **params)
    for model in (rows, half):
        np.testing.assert_allclose(list(model.path), list(whole.path), rtol=1e-9)
        np.testing.assert_allclose(paths(model, 12), paths(whole, 12), atol=1e-8)
        assert model.intercept == pytest.approx(whole.intercept, rel=1e-9)
        assert max(model.duality_gap, model.kkt_violation) < 1e-9


def test_fading_rows_are_weighted():
    X, y = sparse_data(13, n=60, p=5)
    model = Lasso(alphas=0.1, fading_factor=0.05)
    for x, value in zip(X.tolist(), y.tolist(), strict=True):
        model.learn_one(dict(enumerate(x)), value)
    w = 0.95 ** np.arange(60)[::-1]
    mean, level = w @ X / w.sum(), w @ y / w.sum()
    root = np.sqrt(w * 60 / w.sum())[:, None]
    # A weighted regression is one of rows times the roots of weights, without an intercept.
    Z, t = (X - mean) * root, (y - level) * root[:, 0]
    sizes = np.sqrt((Z**2).mean(axis=0))
    _, expected, _ = enet_path(Z / sizes, t, l1_ratio=1.0, alphas=[0.1], tol=1e-12, max_iter=10**6)
    found = weights(model.coefficients, 5)
    np.testing.assert_allclose(found * sizes, expected[:, 0], atol=1e-8)
    assert model.intercept == pytest.approx(level - found @ mean)
