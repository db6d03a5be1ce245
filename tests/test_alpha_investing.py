"""AlphaInvesting: an example of six columns, and invariants of any stream."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from sklearn.datasets import load_diabetes

from streamsel import AlphaInvesting, SelectKBest
from tests.reference.alpha_investing import answer, investments

# Seven orthogonal columns of eight observations, centred.
H = np.array([[(-1) ** (i & j).bit_count() for j in range(1, 8)] for i in range(8)], dtype=float)


def learnt(X, y, covariates=None, **params):
    model = AlphaInvesting(**params)
    model.learn_target(y, covariates=covariates)
    model.learn_columns(X)
    return model


def by_hand():
    """Return six columns that are tested and a constant; comments: parts of the target's 88."""
    y = H @ [8.0, 4.0, 2.0, 1.0, 1.0, 1.0, 1.0]
    columns = [
        H[:, 3],  # 1 of 88: F = 1/87 * 6
        H[:, 0],  # 64 of 88: t = 4 with 6 degrees of freedom, added
        3.0 - 2.0 * H[:, 0],  # nothing in addition to the one before
        H[:, 1] + H[:, 0],  # 16 of the remaining 24: F = 2 * 5, added
        np.full(8, 5.0),  # constant
        H[:, 2],  # 4 of 8: t = 2 with 4
        H[:, 2] - 7.0 * H[:, 1],  # the same, adjusted for the one added
    ]
    return np.column_stack(columns), y


def test_six_columns_by_hand():
    X, y = by_hand()
    alphas = [0.25, 0.0625, 0.6875 / 6, 0.5729167 / 8, 1.0013021 / 10, 0.9011719 / 12]
    wealths = [0.5, 0.25, 0.6875, 0.5729167, 1.0013021, 0.9011719]
    p_values = [0.80163, 0.00712, 1.0, 0.02503, 0.11612, 0.11612]
    path = investments(X, y, wealth=0.5, payout=0.5)
    assert [test["column"] for test in path] == [0, 1, 2, 3, 5, 6]
    np.testing.assert_allclose([test["alpha"] for test in path], alphas, rtol=1e-6)
    np.testing.assert_allclose([test["wealth"] for test in path], wealths, rtol=1e-6)
    np.testing.assert_allclose([test["p_value"] for test in path], p_values, atol=1e-5)
    model = AlphaInvesting()
    model.learn_target(y)
    # The wealth after every column.
    after = [*wealths[1:4], wealths[4], wealths[4], wealths[5], 0.9011719 - alphas[5]]
    for j, expected in enumerate(after):
        model.learn_column(j, X[:, j])
        np.testing.assert_allclose(model._columns.memory["wealth"], expected, rtol=1e-6)
    assert model.selected == [1, 3]
    assert model._columns.memory["tests"] == 6.0
    np.testing.assert_allclose(list(model.p_values.values()), [0.00712, 0.02503], atol=1e-5)
    np.testing.assert_allclose(list(model.scores.values()), np.sqrt([64 / 88, 16 / 24]))
    np.testing.assert_allclose(list(model.relevance.values()), np.sqrt([64 / 88, 144 / 176]))


def awkward(seed):
    """Return columns with copies, sums and constants, and a target of a random kind."""
    rng = np.random.default_rng(seed)
    n, p, c = int(rng.integers(4, 50)), int(rng.integers(4, 60)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, p))
    for j, kind in enumerate(rng.integers(0, 8, size=p)):
        if kind == 0:
            X[:, j] = 2.0
        elif kind == 1:
            X[:, j] = np.round(X[:, j])
        elif kind == 2 and j:
            X[:, j] = 3.0 - 2.0 * X[:, rng.integers(0, j)]
        elif kind == 3:
            X[:, j] = X[:, : j + 1].sum(axis=1)
        elif kind == 4:
            X[:, j] = X[:, rng.integers(0, j + 1)] + 1e-3 * X[:, j]
    Y = X[:, :c] + X[:, -c:] + 0.5 * rng.normal(size=(n, c))
    if rng.random() < 0.3:
        return X, np.array(["no", "yes"])[(Y[:, 0] > np.median(Y[:, 0])).astype(int)]
    return X, Y[:, 0] if c == 1 else Y


@given(seed=st.integers(0, 10**6), size=st.integers(1, 60))
def test_any_stream(seed, size):
    X, y = awkward(seed)
    rng = np.random.default_rng(seed)
    params = {
        "initial_wealth": float(rng.choice([0.05, 0.5])),
        "payout": float(rng.choice([0.05, 0.9])),
    }
    model = AlphaInvesting(**params)
    model.learn_target(y)
    for start in range(0, X.shape[1], size):
        model.learn_columns(X[:, start : start + size])
    expected = answer(X, y, **params)
    assert model.selected == expected["selected"]
    np.testing.assert_allclose(
        list(model.p_values.values()), list(expected["p_values"].values()), 1e-6, 1e-9
    )


@given(seed=st.integers(0, 10**6))
def test_neither_scale_nor_offset_nor_order_of_rows_matters(seed):
    X, y = awkward(seed)
    rng = np.random.default_rng(seed)
    moved = X * 2.0 ** rng.integers(-9, 9, X.shape[1]) + rng.integers(-9, 9, X.shape[1])
    rows = rng.permutation(len(X))
    assert learnt(moved[rows], y[rows]).selected == learnt(X, y).selected


@given(seed=st.integers(0, 10**6), most=st.integers(1, 5))
def test_a_bounded_number_keeps_the_first_selected(seed, most):
    X, y = awkward(seed)
    assert learnt(X, y, max_candidates=most).selected == learnt(X, y).selected[:most]


@pytest.mark.parametrize("c", [1, 3])
def test_covariates_count_as_selected(c):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, Z = rng.normal(size=(30, 60)), rng.normal(size=(30, 2))
        X[:, 10:20] += Z[:, :1]
        y = X[:, 10 : 10 + c] + X[:, -c:] + 2.0 * Z[:, 1:]
        model = learnt(X, y if c > 1 else y[:, 0], covariates=Z)
        path = investments(X, y, wealth=0.5, payout=0.5, covariates=Z.T)
        assert model.selected == [test["column"] for test in path if test["taken"]]
        p_values = [test["p_value"] for test in path if test["taken"]]
        np.testing.assert_allclose(list(model.p_values.values()), p_values, 1e-6, 1e-12)


def test_first_p_values_equal_select_k_best():
    X, y = load_diabetes(return_X_y=True)
    for j in range(X.shape[1]):
        model = learnt(X[:, [j]], y)
        other = SelectKBest(1)
        other.learn_target(y)
        other.learn_columns(X[:, [j]])
        if model.selected:
            np.testing.assert_allclose(model.p_values[0], other.p_values[0], rtol=1e-9)
        else:
            assert other.p_values[0] >= 0.25


def test_diabetes():
    """Decisions equal those of one least-squares regression per column."""
    X, y = load_diabetes(return_X_y=True)
    model = learnt(X, y)
    selected = []
    initial_wealth = 0.5
    for j in range(X.shape[1]):
        p_value, alpha = p_of_last(X[:, [*selected, j]], y), initial_wealth / (2 * (j + 1))
        initial_wealth += 0.5 - alpha if p_value < alpha else -alpha
        if p_value < alpha:
            np.testing.assert_allclose(model.p_values[j], p_value, rtol=1e-8)
            selected.append(j)
    assert model.selected == selected


def p_of_last(X, y):
    """Return the p-value of the last coefficient's t test."""
    from scipy import stats

    design = np.column_stack([np.ones(len(X)), X])
    beta = np.linalg.lstsq(design, y, rcond=None)[0]
    free = len(y) - design.shape[1]
    error = np.sum((y - design @ beta) ** 2) / free * np.linalg.inv(design.T @ design)[-1, -1]
    return 2.0 * stats.t.sf(abs(beta[-1]) / np.sqrt(error), free)


def test_noise_is_rarely_selected_and_signal_is():
    rng = np.random.default_rng(0)
    kept = []
    for _ in range(20):
        X = rng.normal(size=(100, 1000))
        kept.append(len(learnt(X, rng.normal(size=100)).selected))
        y = X[:, 500] - X[:, 900] + 0.3 * rng.normal(size=100)
        assert {500, 900} <= {*learnt(X, y).selected}
    assert np.mean(kept) < 1.5
