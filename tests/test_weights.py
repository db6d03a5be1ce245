"""Weights of observations on columns: their meaning, and what they do not change.

tests/conformance/test_weights.py tests for every learner that integer weights repeat rows.
"""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import csc_array

import streamsel
from streamsel import (
    PCA,
    PLS,
    SOSPCA,
    AlphaInvesting,
    ForwardSelection,
    KernelPCA,
    PrivateFeatures,
    ProjSe,
    RankedPCA,
    SelectKBest,
    SupervisedPCA,
)
from streamsel.targets.weights import ObservationWeights
from tests.reference import noise
from tests.reference import survival as reference


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 12)) + 3.0
    y = X[:, 2] - X[:, 7] + rng.normal(size=50)
    w = rng.exponential(size=50)
    w[[3, 8]] = 0.0
    return X, y, w


def learnt(model, X, y, w, **given):
    model.learn_target(y, weights=w, **given)
    model.learn_columns(X)
    return model


def correlation(x, y, w):
    """Return the weighted correlation by definition."""
    x, y = x - np.average(x, weights=w), y - np.average(y, weights=w)
    return (w * x) @ y / np.sqrt((w * x) @ x * ((w * y) @ y))


@given(
    w=hnp.arrays(float, 12, elements=st.sampled_from([0.0, 1e-9, 0.3, 1.0, 7.0, 1e9])).filter(
        lambda w: np.count_nonzero(w) > 1 and len({*w}) > 1
    ),
    offset=st.sampled_from([0.0, 1.0, -1e9, 1e15]),
    seed=st.integers(0, 20),
)
def test_rotated_columns_have_weighted_moments(w, offset, seed):
    X = np.random.default_rng(seed).integers(-40, 40, (3, 12)) + offset
    turn = ObservationWeights.of(w, 12)
    turned, mean, low = turn.transform(X)
    w = w / w.mean()
    centred = [x - x[w.argmax()] for x in X]
    centred = np.array([x - np.average(x, weights=w) for x in centred])
    squares = np.sqrt((w * centred**2).sum(axis=1))
    np.testing.assert_allclose(turned.mean(axis=1), 0.0, atol=1e-12 * (1.0 + squares.max()))
    size = np.outer(squares, squares) + 1e-9
    np.testing.assert_allclose(
        turned @ turned.T / size, (w * centred) @ centred.T / size, atol=1e-11
    )
    counts = w > 0.0
    back = turn.inverse_transform(turned.T).T
    assert np.isnan(back[:, ~counts]).all()
    size = 1e-12 * (1.0 + np.abs(turned).max() / np.sqrt(w[counts].min()))
    np.testing.assert_allclose(back[:, counts], centred[:, counts], atol=size)
    means = np.average(X - offset, axis=1, weights=w)
    np.testing.assert_allclose((mean - offset) + low, means, atol=1e-12)


def test_relevance_is_the_weighted_correlation(table):
    X, y, w = table
    model = learnt(SelectKBest(k=12), X, y, w)
    for j, x in enumerate(X.T):
        assert model.relevance[j] == pytest.approx(abs(correlation(x, y, w)), abs=1e-12)
    n = w.sum() ** 2 / (w @ w)
    assert model.noise_floor() == pytest.approx(noise.floor(n, 1, 12))
    assert model.n_rows == 50


def test_only_ratios_of_weights_matter(table):
    X, y, w = table
    one, five = learnt(ProjSe(k=4), X, y, w), learnt(ProjSe(k=4), X, y, 4.0 * w)
    assert one.relevance == five.relevance
    # Equal weights are equivalent to none.
    plain, even = learnt(ProjSe(k=4), X, y, None), learnt(ProjSe(k=4), X, y, np.full(50, 0.1))
    assert even._target.row_transform is None
    assert plain.relevance == even.relevance


@pytest.mark.parametrize("dtype", [np.float32, np.int8, bool, object])
def test_weights_apply_to_all_types_of_columns(table, dtype):
    X, y, w = table
    X = np.round(X - 3.0).astype(dtype)
    expected = learnt(SOSPCA(3), X.astype(float), y, w)
    for columns in (X, np.asfortranarray(X), pd.DataFrame(X)):
        found = learnt(SOSPCA(3), columns, y, w)
        assert list(found.relevance.values()) == pytest.approx(list(expected.relevance.values()))
    one_by_one = SOSPCA(3)
    one_by_one.learn_target(y, weights=w)
    for j, x in enumerate(X.T):
        one_by_one.learn_column(j, x)
    assert one_by_one.loadings == expected.loadings


def test_sparse_columns_equal_dense_ones(table):
    X, y, w = table
    X = np.where(X > 3.5, X, 0.0)
    expected = learnt(PCA(2), X, y=None, w=w)
    found = learnt(PCA(2), csc_array(X), y=None, w=w)
    np.testing.assert_allclose(found.embedding, expected.embedding, atol=1e-12)
    # Repeated entries in no order.
    parts = (np.array([2.0, 1.0, 1.0, 5.0]), np.array([4, 0, 4, 1]), np.array([0, 3, 4]))
    twice = csc_array(parts, shape=(50, 2))
    one, other = (learnt(SelectKBest(k=2), Z, y, w) for Z in (twice, twice.toarray()))
    assert one.relevance == pytest.approx(other.relevance)


@pytest.mark.parametrize("offset", [1e9, -1e12])
def test_offsets_cost_no_precision(table, offset):
    X, y, w = table
    # Whole numbers, which float64 represents exactly with the offset.
    X = np.round(8.0 * X)
    for make in (lambda: SelectKBest(k=12), lambda: SOSPCA(2), lambda: PCA(2, scale=False)):
        near, far = make(), make()
        target = y if near._is_supervised else None
        learnt(near, X, target, w)
        learnt(far, X + offset, None if target is None else target, w)
        one, other = near.relevance, far.relevance
        assert list(one) == list(other)
        assert list(other.values()) == pytest.approx(list(one.values()), abs=1e-12)
        if hasattr(near, "embedding"):
            np.testing.assert_allclose(far.embedding, near.embedding, atol=1e-10)


def test_columns_constant_on_weighted_rows_are_constant(table):
    X, y, w = table
    X = X.copy()
    X[:, 0] = 0.1
    X[:, 1] = 7.0
    X[w == 0.0, 1] = 9.0
    X[:, 3] = 1e9 + 1e-7 * np.arange(50)
    model = learnt(SelectKBest(k=12), X, y, w)
    assert model.n_constant == 3
    with pytest.raises(ValueError, match="Expected a target that varies"):
        ProjSe(k=1).learn_target(X[:, 1], weights=w)


def test_bad_columns_are_reported_with_original_values(table):
    X, y, w = table
    X = X.copy()
    X[7, 5] = np.nan
    model = ProjSe(k=2)
    model.learn_target(y, weights=w)
    with pytest.raises(ValueError, match=r"column 5. Got: 1 of 50 values missing .*in row 7"):
        model.learn_columns(X)
    assert model.n_columns == 0
    with pytest.raises(ValueError, match="the first in row 7"):
        model.learn_column("a", X[:, 5])
    with pytest.raises(ValueError, match="whose squares fit into float64"):
        model.learn_column("a", X[:, 4] * 1e200)


@pytest.mark.parametrize(
    ("w", "message"),
    [
        (np.ones(3), r"shape \(50,\).*Got: shape \(3,\)"),
        (np.ones((50, 1)), r"shape \(50, 1\)"),
        (np.r_[-1.0, np.ones(49)], "Got: -1.0 in row 0"),
        (np.r_[1.0, np.nan, np.ones(48)], "Got: nan in row 1"),
        (np.r_[np.inf, np.ones(49)], "Got: inf in row 0"),
        (np.r_[1.0, np.zeros(49)], "Got: 1"),
        (["a"] * 50, "Expected weights that are numbers"),
    ],
)
def test_invalid_weights_are_refused(table, w, message):
    model = ProjSe(k=2)
    with pytest.raises((ValueError, TypeError), match=message):
        model.learn_target(table[1], weights=w)
    assert model._target is None


@pytest.mark.parametrize(
    "model",
    [
        SelectKBest(k=2, score="mutual_info"),
        KernelPCA(2),
        streamsel.RandomProjection(2),
        streamsel.RobustPCA(2),
        streamsel.ProbabilisticPCA(2),
        streamsel.Lasso(k=2, family="logistic", target_type="class"),
    ],
    ids=repr,
)
def test_learners_of_single_observations_refuse_weights(model, table):
    y = np.repeat([0, 1], 25) if model._is_supervised else None
    with pytest.raises(ValueError, match="Expected no weights"):
        model.learn_target(y, weights=table[2])
    assert model._target is None


def test_copies_files_and_rollback(table, tmp_path):
    X, y, w = table
    for model in (SOSPCA(3), PCA(2)):
        target = y if model._is_supervised else None
        model.learn_target(target, weights=w)
        model.learn_columns(X[:, :6])
        streamsel.save(model, tmp_path / "model")
        copies = [
            streamsel.load(tmp_path / "model"),
            copy.deepcopy(model),
            pickle.loads(pickle.dumps(model)),  # noqa: S301
        ]
        with pytest.raises(ValueError, match="missing"):
            model.learn_columns(np.c_[X[:, 6:], np.full(50, np.nan)], range(6, 13))
        for other in (model, *copies):
            other.learn_columns(X[:, 6:], range(6, 12))
        expected = learnt(model.clone(), X, target, w)
        for other in (model, *copies):
            np.testing.assert_allclose(other.embedding, expected.embedding, atol=1e-10)


def test_models_of_the_same_weights_are_merged(table):
    X, y, w = table
    whole = learnt(ProjSe(k=5), X, y, w)
    one = learnt(ProjSe(k=5), X[:, :6], y, w)
    other = ProjSe(k=5)
    other.learn_target(y, weights=w)
    other.learn_columns(X[:, 6:], range(6, 12))
    one.merge(other)
    assert one.relevance == pytest.approx(whole.relevance)
    for weights in (None, w[::-1]):
        stranger = ProjSe(k=5)
        stranger.learn_target(y, weights=weights)
        with pytest.raises(ValueError, match="the same target, weights"):
            one.merge(stranger)
    one, other = PCA(2), PCA(2)
    one.learn_target(None, weights=w)
    one.learn_columns(X[:, :6])
    other.learn_columns(X[:, 6:], range(6, 12))
    for mine, theirs in ((one, other), (other, one)):
        with pytest.raises(ValueError, match="the same target, weights"):
            mine.merge(theirs)
    model = streamsel.PLS(2)
    model.learn_target(y)
    with pytest.raises(ValueError, match="with the same weights"):
        model.learn_from(one)


def test_rows_continue_with_weights_scaled_to_rows(table):
    X, y, w = table
    rng = np.random.default_rng(5)
    more, values = rng.normal(size=(20, 12)), rng.normal(size=20)
    for model in (SelectKBest(k=12), ForwardSelection(k=12), SOSPCA(2)):
        learnt(model, X, y, w)
        floor = model.noise_floor()
        model.learn_many(more[:0], values[:0])
        assert model.noise_floor() == pytest.approx(floor)
        model.learn_many(more, values)
        both = np.r_[w / w.mean(), np.ones(20)]
        if isinstance(model, SOSPCA):
            continue
        for j, relevance in model.relevance.items():
            expected = correlation(np.r_[X[:, j], more[:, j]], np.r_[y, values], both)
            assert relevance == pytest.approx(abs(expected), abs=1e-10)


def test_tests_use_the_effective_number_of_rows(table):
    X, y, w = table
    model = learnt(SelectKBest(k=12), X, y, w)
    n = w.sum() ** 2 / (w @ w)
    for j, p in model.p_values.items():
        assert p == pytest.approx(float(np.squeeze(noise_chance(model.relevance[j], n))))
    # Two rows have nearly all the weight: there is no information.
    heavy = np.full(50, 1e-6)
    heavy[:2] = 1.0
    assert learnt(AlphaInvesting(), X, y, heavy).selected == []


def noise_chance(relevance, n):
    from scipy.stats import beta

    return beta.sf(relevance**2, 0.5, (n - 2) / 2)


def test_pca_reports_weighted_columns(table):
    X, _, w = table
    model = learnt(PCA(3, scale=False), X, None, w)
    mean = np.average(X, axis=0, weights=w)
    root = np.sqrt(w)[:, None]
    _, _, Vt = np.linalg.svd(root * (X - mean), full_matrices=False)
    expected = (X - mean) @ Vt[:3].T @ Vt[:3] + mean
    found = np.column_stack([values for _, values in model.reconstruct(X)])
    np.testing.assert_allclose(found[w > 0.0], expected[w > 0.0], atol=1e-9)
    assert np.isnan(found[w == 0.0]).all()


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("cls", [PCA, PLS, SupervisedPCA, PrivateFeatures, RankedPCA])
def test_components_of_columns_have_the_scale_of_those_of_rows(table, cls, scale):
    X, y, w = table
    X, y, w = X[w > 0.0], y[w > 0.0], w[w > 0.0]
    columns = learnt(cls(2, scale=scale), X, None if cls is PCA else y, w)
    rows = cls(2, scale=scale)
    if cls is PCA:
        rows.learn_many(pd.DataFrame(X), w=w)
        np.testing.assert_allclose(columns.explained_variance, rows.explained_variance)
    else:
        rows.learn_many(pd.DataFrame(X), y, w=w)
    for name, loadings in rows.loadings.items():
        for component, loading in loadings.items():
            expected = columns.loadings[name][component]
            np.testing.assert_allclose(abs(loading), abs(expected), atol=1e-9)


def test_weighted_lasso_equals_scikit_learn(table):
    X, y, w = table
    model = learnt(streamsel.Lasso(alphas=[0.2], scale=False), X, y, w)
    linear = pytest.importorskip("sklearn.linear_model")
    expected = linear.Lasso(alpha=0.2, tol=1e-12, max_iter=100_000).fit(X, y, sample_weight=w)
    found = [model.coefficients.get(j, 0.0) for j in range(12)]
    np.testing.assert_allclose(found, expected.coef_, atol=1e-7)
    assert model.intercept == pytest.approx(expected.intercept_, abs=1e-6)


@pytest.mark.parametrize(
    "change",
    [
        lambda w: w[:-1],
        lambda w: -w,
        lambda w: 2.0 * w,
        np.ones_like,
        lambda w: np.where(np.arange(w.size) < 1, w.size, 0.0),
        lambda w: np.full_like(w, np.nan),
    ],
)
def test_weights_of_a_damaged_state_are_refused(table, change):
    X, y, w = table
    for model, target in ((ProjSe(k=2), y), (PCA(2), None)):
        learnt(model, X, target, w)
        state = model._get_state()
        state["target_weights"] = change(state["target_weights"])
        with pytest.raises(ValueError, match="Expected"):
            model.clone()._set_state(state)


def test_covariates_are_weighted_too(table):
    X, y, w = table
    model = learnt(SelectKBest(k=12), X, y, w, covariates=X[:, 7])
    Z, root = np.c_[np.ones(50), X[:, 7]], np.sqrt(w)[:, None]

    def left(v):
        return v - Z @ np.linalg.lstsq(root * Z, root[:, 0] * v, rcond=None)[0]

    for j in (0, 2, 5):
        expected = abs(correlation(left(X[:, j]), left(y), w))
        assert model.relevance[j] == pytest.approx(expected, abs=1e-10)


def test_survival_uses_the_weighted_null_model(table):
    X, _, w = table
    rng = np.random.default_rng(6)
    time, event = np.ceil(rng.exponential(5.0, size=50)), rng.random(50) < 0.6
    model = SelectKBest(k=12, target_type="survival")
    learnt(model, X, np.column_stack([time, event]), w)
    M = reference.residuals(time, event, w)
    assert abs(w @ M) < 1e-10
    for j, x in enumerate(X.T):
        assert model.relevance[j] == pytest.approx(abs(correlation(x, M, w)), abs=1e-10)
    with pytest.raises(ValueError, match="Got: none in 50 rows"):
        model.clone().learn_target(np.column_stack([time, w == 0.0]), weights=w)


@pytest.mark.parametrize("learner", [ProjSe, SOSPCA])
def test_classes_without_weight_are_excluded(learner):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 20)), np.array(["a", "b", "c"])[np.arange(60) % 3]
    X[:, 4] += y == "b"
    counts = y != "c"
    found, expected = learner(2), learner(2)
    found.learn_target(y, weights=counts.astype(float))
    found.learn_columns(X)
    expected.learn_target(y[counts])
    expected.learn_columns(X[counts])
    rows = zip(found.report().results, expected.report().results, strict=True)
    for one, other in rows:
        assert one["name"] == other["name"]
        assert one["relevance"] == pytest.approx(other["relevance"])


@pytest.fixture(scope="module")
def unequal():
    """Return noise and log-normal weights: 100 rows with an effective number near 20."""
    rng = np.random.default_rng(1)
    w = np.exp(1.5 * rng.normal(size=100))
    return rng.normal(size=(100, 1000)), rng.normal(size=(20, 100)), w


def p_values(X, y, **given):
    """Return the p-values of all columns."""
    model = SelectKBest(X.shape[1])
    model.learn_target(y, **given)
    model.learn_columns(X)
    return list(model.p_values.values())


def test_very_unequal_weights_give_conservative_p_values(unequal):
    """With very unequal weights p-values are conservative: about half as many are below 0.05."""
    X, targets, w = unequal
    p = np.array([p_values(X, y, weights=w) for y in targets])
    assert 0.005 < np.mean(p < 0.05) < 0.04
    assert np.mean(p < 0.001) < 0.0005


def test_square_roots_of_inverse_variances_give_valid_p_values(unequal):
    X, targets, w = unequal
    noisy, root = targets / np.sqrt(w), np.sqrt(w)
    # Noise of unequal variance has heavy tails, so that p-values use its normal scores.
    off = np.array([p_values(X, y, weights=w) for y in noisy])
    assert off.mean() > 0.65
    assert np.mean(off < 0.05) < 0.01
    p = np.array([p_values(X * root[:, None], y * root, covariates=root) for y in noisy])
    assert np.mean(p < 0.05) == pytest.approx(0.05, abs=0.01)
    weighted, by_root = SelectKBest(1000), SelectKBest(1000)
    learnt(weighted, X, noisy[0], w)
    by_root.learn_target(noisy[0] * root, covariates=root)
    by_root.learn_columns(X * root[:, None])
    gaps = [weighted.relevance[j] - by_root.relevance[j] for j in range(1000)]
    assert np.abs(gaps).mean() < 0.02
