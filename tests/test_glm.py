"""target_type="binary" and "count": score tests of logistic and Poisson null models."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats

import streamsel
from streamsel import AlphaInvesting, ForwardSelection, ProjSe, SelectKBest
from streamsel._kernels.saddlepoint import saddlepoint_p_values
from streamsel.targets.glm import NullModel
from tests.reference import glm as reference

N, P = 220, 40


@pytest.fixture(scope="module")
def study():
    """Return rare and skewed columns, two covariates, and targets with few cases."""
    rng = np.random.default_rng(0)
    Z = np.column_stack([rng.normal(50.0, 2.0, size=N), rng.integers(0, 3, size=N)])
    X = rng.binomial(2, 0.05, size=(N, P)).astype(float)
    X[:, ::2] = rng.lognormal(size=(N, P // 2))
    eta = -2.5 + 0.3 * (Z[:, 0] - 50.0) + 0.8 * X[:, 3]
    return (
        X,
        Z,
        {"binary": rng.random(N) < 1.0 / (1.0 + np.exp(-eta)), "count": rng.poisson(np.exp(eta))},
    )


def learnt(kind, X, y, Z=None, **params):
    model = SelectKBest(**({"k": "all", "target_type": kind} | params))
    model.learn_target(y, covariates=Z)
    model.learn_columns(X)
    return model


@pytest.mark.parametrize("with_covariates", [False, True])
@pytest.mark.parametrize("kind", ["binary", "count"])
def test_scores_and_p_values_are_those_of_the_reference(study, kind, with_covariates):
    X, Z, y = study[0], study[1] if with_covariates else None, study[2][kind]
    model, values = learnt(kind, X, y, Z), np.asarray(y, dtype=float)
    z, far = learnt(kind, X, y, Z, score="t").scores, 0
    for j, x in enumerate(X.T):
        expected = reference.score_test(kind, x, values, Z)
        assert model.scores[j] == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert z[j] == pytest.approx(np.sqrt(expected), rel=1e-9, abs=1e-9)
        if expected > 4.0:
            far += 1
            p = reference.saddlepoint_p_value(kind, x, values, Z)
            assert model.p_values[j] == pytest.approx(p, rel=1e-8)
        else:
            assert model.p_values[j] == pytest.approx(stats.chi2.sf(expected, 1), rel=1e-9)
    assert far >= 1
    assert model._normal_scores() is None


def test_the_noise_floor_is_that_of_the_chi_squared_distribution(study):
    X, Z, y = study
    model = learnt("binary", X, y["binary"], Z)
    floor, pearson = model.noise_floor(0.05), model._space.chi_square_scale
    assert stats.chi2.sf(pearson * floor**2, 1) == pytest.approx(0.05 / P, rel=1e-9)
    mean = reference.null_means("binary", y["binary"].astype(float), Z)
    expected = (np.square(y["binary"] - mean) / (mean * (1.0 - mean))).sum()
    assert pearson == pytest.approx(expected, rel=1e-10)
    rows = model.report().results
    assert [row["above_noise"] for row in rows] == [row["p_value"] < 0.05 / P for row in rows]


def test_p_values_are_near_those_of_all_targets():
    """P-values are close to those of the exact distribution over all 2¹² targets."""
    rng, n = np.random.default_rng(1), 12
    mean = rng.uniform(0.1, 0.5, size=n)
    variance, checked = mean * (1.0 - mean), 0
    basis = np.sqrt(variance / variance.sum())[None]
    for _ in range(12):
        x, y = rng.normal(size=(1, n)), (rng.random(n) < mean).astype(float)
        found = np.empty(1)
        saddlepoint_p_values(x, np.sqrt(variance), basis, mean, y - mean, True, found)
        g = x[0] - (x[0] @ variance) / variance.sum()
        exact = reference.exact_p_value(g, mean, g @ (y - mean))
        if exact < 0.5:
            checked += 1
            assert found[0] == pytest.approx(exact, rel=0.35, abs=0.01)
    assert checked >= 3


@pytest.mark.parametrize("binary", [True, False])
def test_the_largest_score_has_its_exact_probability(binary):
    mean, g = np.full(40, 0.1), np.zeros((1, 40))
    g[0, 1:4] = 1.0 if binary else -1.0
    y = np.zeros(40)
    y[1:4] = 1.0 if binary else 0.0
    root, found = np.sqrt(mean * (1.0 - mean) if binary else mean), np.empty(1)
    saddlepoint_p_values(g, root, np.zeros((0, 40)), mean, y - mean, binary, found)
    lower = 0.0 if binary else stats.poisson.sf(5, 0.3)
    expected = (0.1**3 if binary else np.exp(-0.3)) + lower
    assert found[0] == pytest.approx(expected, rel=1e-9 if binary else 0.5)


@pytest.mark.slow
def test_p_values_are_valid_where_chi_squared_fails():
    """With rare cases and carriers p-values hold at 0.001; those of χ² are far too small."""
    rng, n, below = np.random.default_rng(2), 700, np.zeros(2)
    y = np.arange(n) < 25
    X = np.asfortranarray(rng.binomial(2, 0.005, size=(n, 30_000)).astype(np.uint8))
    X = X[:, X.any(axis=0)]
    model = learnt("binary", X, y)
    p, normal = np.array([*model.p_values.values()]), stats.chi2.sf([*model.scores.values()], 1)
    below = np.mean(p < 1e-3), np.mean(normal < 1e-3)
    assert below[0] < 2e-3
    assert below[1] > 5e-3


def test_all_forms_of_a_target_are_equal(study):
    X, y = study[0], study[2]["binary"]
    expected = learnt("binary", X, y).scores
    forms = [
        y.astype(int),
        y + 1.0,
        np.where(y, "b", "a"),
        pd.Series(np.where(y, 2, 1)),
        y.tolist(),
        pd.DataFrame({"ill": y}),
    ]
    for form in forms:
        assert learnt("binary", X, form).scores == expected
    report = learnt("binary", X, np.where(y, "ill", "healthy")).report()
    assert report.target == f"binary, ill in {y.sum()} of {N} rows"
    assert report.score_meaning == "chi-squared statistic of the score test"
    found = learnt("count", X, study[2]["count"]).report().target
    assert found == f"counts, 0 to {study[2]['count'].max()}"


@pytest.mark.parametrize(
    ("kind", "y", "message"),
    [
        ("binary", [0, 1, 2] * 10, "Expected two classes.*Got: 3 classes"),
        ("binary", [1] * 10, "Got: 1 class"),
        ("binary", pd.DataFrame({"a": [0, 1] * 5, "b": [1, 0] * 5}), "Got: several columns"),
        ("binary", [0.0, 1.0, np.nan] * 5, "without missing values"),
        ("count", [0.5, 1.0] * 5, "whole numbers of at least 0.*0.5 in row 0"),
        ("count", [1.0, -1.0] * 5, "Got: -1 in row 1"),
        ("count", [1.0, np.nan] * 5, "missing='drop'"),
        ("count", [2] * 10, "Expected a target that varies"),
        ("count", ["a", "b"] * 5, "Expected numbers"),
        ("count", np.ones((5, 2)), "Got: 2 columns"),
    ],
)
def test_other_targets_are_refused(kind, y, message):
    model = SelectKBest(target_type=kind)
    with pytest.raises((ValueError, TypeError), match=f"(?s){message}"):
        model.learn_target(y)
    assert model._target is None


def test_null_models_without_finite_coefficients_are_refused():
    y, group = np.array([0, 1] * 20 + [0] * 10), np.repeat([0.0, 1.0], [40, 10])
    x = np.linspace(-1.0, 1.0, 50)
    for kind, target, Z, message in (
        ("binary", y, group, "do not separate"),
        ("binary", x > 0.0, x, "do not separate"),
        ("binary", np.tile([0, 1, 1, 0, 0], 10), np.arange(50.0) == 3, "do not separate"),
        # One row far from the boundary, and a rare group in one class.
        ("binary", y, np.column_stack([np.append(x[1:], 900.0), group]), "do not separate"),
        # The classes overlap in one value only.
        ("binary", np.where(x > 0.5, 1, y * (x > -0.5)), np.round(x), "do not separate"),
        ("count", y, group, "counts are all 0"),
    ):
        model = SelectKBest(target_type=kind)
        with pytest.raises(ValueError, match=message):
            model.learn_target(target, covariates=Z)
        assert model._target is None


@pytest.mark.parametrize("outlier", [None, 100.0, 1e6])
@pytest.mark.parametrize("kind", ["binary", "count"])
def test_rows_far_from_the_boundary_are_not_separation(kind, outlier):
    """Rows far from the boundary are not separation: the null model and the tests hold."""
    rng = np.random.default_rng(1)
    z = np.exp(1.5 * rng.normal(size=200)) if outlier is None else rng.normal(size=200)
    z[0] = z[0] if outlier is None else outlier
    eta = 1.5 * (z - 1.0) if kind == "binary" else 1.0 - 4.0 * np.abs(z)
    mean = 1.0 / (1.0 + np.exp(-np.clip(eta, -300.0, 300.0))) if kind == "binary" else np.exp(eta)
    y = (rng.random(200) < mean).astype(float) if kind == "binary" else rng.poisson(mean)
    z = np.abs(z) if kind == "count" else z
    X = rng.normal(size=(200, 20))
    model = learnt(kind, X, y, z)
    null = model._target.null_model
    # Beyond the limits that would indicate separation.
    predictor = np.log(null.mean) - (np.log1p(-null.mean) if kind == "binary" else 0.0)
    assert np.abs(predictor).max() > (30.0 if kind == "binary" else 200.0)
    w = reference.VARIANCE[kind](null.mean)
    D = np.column_stack([np.ones(200), z - np.average(z, weights=w)])
    assert np.abs(D.T @ null.residual / np.sqrt(w @ np.square(D))).max() < 1e-6
    G = X - D @ np.linalg.solve((D.T * w) @ D, (D.T * w) @ X)
    expected = np.square(null.residual @ G) / (w @ np.square(G))
    scores = [model.scores[j] for j in range(20)]
    np.testing.assert_allclose(scores, expected, rtol=1e-7, atol=1e-10)
    p_values = np.array([model.p_values[j] for j in range(20)])
    np.testing.assert_allclose(p_values, stats.chi2.sf(expected, 1), rtol=0.5)


def test_rows_contradicting_covariates_keep_precision():
    rng = np.random.default_rng(0)
    z = np.append(rng.normal(size=3999), 200.0)
    y = np.append(rng.random(3999) < 1.0 / (1.0 + np.exp(1.0 - 2.0 * z[:-1])), False)
    X = rng.normal(size=(4000, 5))
    model = learnt("binary", X, y, z)
    null = model._target.null_model
    assert null.residual[-1] < -0.99
    assert null.mean[-1] > 1.0 - 1e-15
    w = null.mean * (1.0 - null.mean)
    D = np.column_stack([np.ones(4000), z])
    G = X - D @ np.linalg.solve((D.T * w) @ D, (D.T * w) @ X)
    expected = np.square(null.residual @ G) / (w @ np.square(G))
    np.testing.assert_allclose([model.scores[j] for j in range(5)], expected, rtol=1e-5, atol=1e-6)


def test_dependent_covariates_change_nothing(study):
    X, Z, y = study
    once = learnt("count", X, y["count"], Z)
    twice = learnt("count", X, y["count"], np.column_stack([Z, Z[:, 0] * 2.0, np.ones(N)]))
    found = [twice.scores[j] for j in once.scores]
    np.testing.assert_allclose(found, [*once.scores.values()], rtol=1e-8, atol=1e-10)


def test_weights_rows_and_other_scores_are_refused(study):
    X, _, y = study
    model = SelectKBest(target_type="binary")
    with pytest.raises(ValueError, match="Expected no weights, or equal ones"):
        model.learn_target(y["binary"], weights=np.arange(N) + 1.0)
    model.learn_target(y["binary"], weights=np.full(N, 3.0))
    model.learn_columns(X)
    with pytest.raises(ValueError, match="the null model depends on all observations"):
        model.learn_one({0: 1.0}, True)
    with pytest.raises(ValueError, match="whose score test is a function of the correlation"):
        SelectKBest(target_type="count", score="mutual_info")


def test_bits_do_not_depend_on_blocks_threads_or_formats(study):
    X, Z, y = study[0], study[1], study[2]["binary"]
    whole = learnt("binary", X, y, Z)
    expected = whole.scores, whole.p_values
    by_column = SelectKBest(k="all", target_type="binary")
    by_column.learn_target(y, covariates=Z)
    for j in range(P):
        by_column.learn_column(j, X[:, j].copy())
    threads = learnt("binary", X, y, Z, n_jobs=3)
    for model in (by_column, threads, learnt("binary", sparse.csc_matrix(X), y, Z)):
        assert (model.scores, model.p_values) == expected


def test_files_merges_and_dropped_rows(study, tmp_path):
    X, Z, y = study[0], study[1], study[2]["binary"]
    whole = learnt("binary", X, y, Z)
    halves = [learnt("binary", X[:, :20], y, Z), SelectKBest(k="all", target_type="binary")]
    halves[1].learn_target(y, covariates=Z)
    halves[1].learn_columns(X[:, 20:], names=range(20, P))
    streamsel.save(halves[0], tmp_path / "model")
    again = streamsel.load(tmp_path / "model")
    again.merge(halves[1])
    assert (again.scores, again.p_values) == (whole.scores, whole.p_values)
    assert again.noise_floor() == whole.noise_floor()
    values = y.astype(object)
    values[::7] = None
    dropped, rest = SelectKBest(k="all", target_type="binary"), np.arange(N) % 7 > 0
    dropped.learn_target(values, covariates=Z, missing="drop")
    dropped.learn_columns(X)
    assert dropped.p_values == learnt("binary", X[rest], y[rest].astype(object), Z[rest]).p_values


def test_copies_and_rollback(study):
    X, Z, y = study[0], study[1], study[2]["count"]
    model = learnt("count", X, y, Z)
    expected = model.scores, model.p_values
    bad = np.column_stack([X[:, 0], np.full(N, np.nan)])
    pickled = pickle.loads(pickle.dumps(model))  # noqa: S301
    for twin in (pickled, copy.deepcopy(model), model):
        with pytest.raises(ValueError, match="Expected finite numbers"):
            twin.learn_columns(bad, names=["a", "b"])
        assert (twin.scores, twin.p_values) == expected
        assert twin.n_columns == P
    with pytest.raises(ValueError, match="Corrupt model file: the null model"):
        SelectKBest(target_type="binary")._set_state(model._get_state())


def test_a_bounded_pool_and_a_false_discovery_rate(study):
    X, Z, y = study[0], study[1], study[2]["binary"]
    whole = learnt("binary", X, y, Z, k=5)
    pool = learnt("binary", X, y, Z, k=5, max_candidates=6)
    assert pool.p_values == whole.p_values
    assert pool.n_certified == 5
    rng = np.random.default_rng(3)
    signal = np.hstack([X, (y * rng.uniform(0.5, 1.5, size=N))[:, None]])
    model = learnt("binary", signal, y, Z, k=None, fdr=0.01)
    assert model.selected == [P]
    bounded = learnt("binary", signal, y, Z, k=None, fdr=0.01, max_candidates=3)
    assert bounded.selected == [P]
    assert bounded.n_certified == 0


def test_permutations_replace_the_approximation(study):
    X, Z, y = study[0], study[1], study[2]["binary"]
    model = learnt("binary", X, y, Z, permutations=200)
    assert model.adjusted_p_values[model.selected[0]] >= 1.0 / 201.0
    assert all(row["p_value"] >= 1.0 / (200 * P + 1) for row in model.report().results)


def test_other_learners_use_weighted_residuals(study):
    X, Z, y = study[0], study[1], study[2]["binary"]
    best = learnt("binary", X, y, Z).selected[0]
    for model in (ProjSe(k=3), ForwardSelection(k=3), AlphaInvesting(), streamsel.PLS(2)):
        other = model.clone({"target_type": "binary"})
        other.learn_target(y, covariates=Z)
        other.learn_columns(X)
        assert other.relevance
        if isinstance(model, ProjSe | ForwardSelection):
            assert other.selected[0] == best


def test_counts_with_more_variance_than_a_poisson_distribution_are_warned_of():
    rng = np.random.default_rng(4)
    X, mean = rng.normal(size=(200, 20)), rng.gamma(0.5, 4.0, size=200)
    for y, expected in ((rng.poisson(mean), True), (rng.poisson(2.0, size=200), False)):
        codes = [warning.code for warning in learnt("count", X, y).report().warnings]
        assert ("overdispersion" in codes) is expected


def test_the_dispersion_follows_the_variances_of_counts():
    rng = np.random.default_rng(6)
    mean = np.exp(rng.normal(size=20_000))
    poisson, draws = rng.poisson(mean), rng.random(mean.size)
    for y, constant, slope in (
        (poisson, 1.0, 0.0),
        (3.0 * rng.poisson(mean / 3.0), 3.0, 0.0),
        (rng.negative_binomial(2.0, 2.0 / (2.0 + mean)), 1.0, 0.5),
        (2.0 * poisson * (draws < 0.5), 2.0, 1.0),
        (rng.binomial(200, mean / 200.0), 1.0, 0.0),
    ):
        found = NullModel("count", mean, y - mean).dispersion
        fitted_slope, fitted_constant = np.polyfit(mean, found, 1)
        assert fitted_slope == pytest.approx(slope, abs=0.1)
        assert fitted_constant == pytest.approx(constant, rel=0.1)
        assert (found >= 1.0 - 1e-12).all()
    p = 1.0 / (1.0 + mean)
    assert (NullModel("binary", p, (draws < p) - p).dispersion == 1.0).all()


def test_leukaemia_expression_equals_the_reference(dataset):
    """Without covariates the statistic is n r²; p-values equal those of the reference."""
    X, y, *_ = dataset("all_bcrabl")
    model, plain = learnt("binary", X, y), learnt("class", X, y)
    n = len(y)
    assert model.selected[:50] == plain.selected[:50]
    for j in model.selected[::500]:
        assert model.scores[j] == pytest.approx(n * plain.relevance[j] ** 2, rel=1e-9)
    for j in model.selected[:3]:
        p = reference.saddlepoint_p_value("binary", X[:, j].astype(float), y.astype(float))
        assert model.p_values[j] == pytest.approx(p, rel=1e-6)


@given(st.integers(0, 10_000), st.sampled_from(["binary", "count"]))
@settings(max_examples=25, deadline=None)
def test_p_values_are_probabilities_that_ignore_shift_and_scale(seed, kind):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 60))
    y = (
        rng.permutation(n) < rng.integers(1, n)
        if kind == "binary"
        else rng.poisson(1.0, size=n) + (np.arange(n) == 0)
    )
    if np.unique(y).size < 2:
        return
    X = rng.lognormal(sigma=2.0, size=(n, 6)) * (rng.random((n, 6)) < 0.5)
    X = X[:, np.ptp(X, axis=0) > 0.0]
    if not X.shape[1]:
        return
    model, moved = learnt(kind, X, y), learnt(kind, 4.0 * X + 8.0, y)
    assert all(0.0 <= p <= 1.0 for p in model.p_values.values())
    for j, p in model.p_values.items():
        # The approximation is used from |z| = 2 on.
        if abs(model.scores[j] - 4.0) > 1e-6:
            assert moved.p_values[j] == pytest.approx(p, rel=1e-6, abs=1e-300)
