"""Permuted targets in the same pass: maxima, adjusted p-values, noise floor, for any blocks."""

import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from streamsel import SAOLA, SOSPCA, ForwardSelection, ProjSe, RidgeComponents, SelectKBest
from streamsel.state.permutation_null import N_LEADERS
from streamsel.targets.permutations import PermutedTarget
from tests.reference import glm
from tests.reference import permutations as reference

B = 99


def problem(seed, n=40, p=90, classes=0):
    """Return columns (counts, constants and copies among them) and a target that two explain."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    X[:, p // 2 :] = rng.poisson(0.3, size=(n, p - p // 2))
    X[:, 3], X[:, 4] = 7.0, X[:, 1]
    y = X[:, 0] - X[:, 1] + rng.normal(size=n)
    if classes:
        y = np.array(list("abcdef"))[np.argsort(np.argsort(y)) * classes // n]
    return X, y


def columns_of(y):
    return (
        np.array([y == label for label in np.unique(y)[1:]]).T * 1.0
        if y.dtype == "U1"
        else y[:, None]
    )


def learnt(X, y, cls=SelectKBest, **params):
    target = {
        name: params.pop(name) for name in ("covariates", "weights", "strata") if name in params
    }
    model = cls(**{"k": 5, "permutations": B, **params})
    model.learn_target(y, **target)
    model.learn_columns(X)
    return model


def null_of(model):
    return model._phase.summary.null


CASES = {
    "numeric": {},
    "classes": {"classes": 3},
    "covariates": {"d": 2},
    "classes, covariates": {"classes": 3, "d": 1},
    "strata": {"s": 4},
    "strata, covariates": {"s": 3, "d": 1},
    "weights": {"w": True},
    "weights, covariates, strata": {"w": True, "d": 2, "s": 2},
}


def asked(case, n, rng):
    Z = rng.normal(size=(n, case["d"])) if "d" in case else None
    strata = rng.integers(0, case["s"], size=n) if "s" in case else None
    w = rng.choice([0.0, 0.5, 1.0, 3.0], size=n) if "w" in case else None
    return Z, strata, w


def test_strata_in_a_frame_of_one_column_are_strata():
    X, y = problem(1)
    strata = np.arange(len(y)) % 3
    found = learnt(X, y, strata=pd.DataFrame({"batch": strata}))
    assert found.adjusted_p_values == learnt(X, y, strata=strata).adjusted_p_values


@pytest.mark.parametrize("name", CASES)
def test_p_values_are_their_definition(name):
    case = CASES[name]
    X, y = problem(1, classes=case.get("classes", 0))
    Z, strata, w = asked(case, len(y), np.random.default_rng(2))
    model = learnt(X, y, k=88, covariates=Z, weights=w, strata=strata, permutation_seed=3)
    observed, permuted = reference.statistics(X, columns_of(y), B, 3, Z, strata, w)
    null = null_of(model)
    most = np.maximum(null.maxima, null.leaders.permuted.max(axis=0))
    assert_allclose(np.sqrt(most), permuted.max(axis=1), rtol=1e-9)
    expected = reference.step_down(observed, permuted)
    single = reference.single_step(observed, permuted)
    found = model.adjusted_p_values
    assert len(found) == 88
    for rank, (j, p) in enumerate(found.items()):
        if rank < N_LEADERS:
            assert p == pytest.approx(expected[j], abs=1e-12), (rank, j)
        else:
            assert expected[j] - 1e-12 <= p <= max(single[j], *[*found.values()][:rank]) + 1e-12
    # At the noise floor, the single-step p-value equals the level.
    floor = model.noise_floor()
    varies = observed >= 0.0
    assert_array_equal(observed[varies] > floor, single[varies] <= 0.05 + 1e-12)


@pytest.mark.parametrize("strata", [None, np.arange(40) % 3])
def test_weights_are_not_permuted(strata):
    """Each permutation reorders the target, while the weights stay on their rows."""
    X, y = problem(13)
    w = np.random.default_rng(14).lognormal(sigma=2.0, size=40)
    null = null_of(learnt(X, y, k=88, weights=w, strata=strata, permutation_seed=3))
    most = np.sqrt(np.maximum(null.maxima, null.leaders.permuted.max(axis=0)))
    groups = np.zeros(40) if strata is None else strata
    for b, order in enumerate(reference.orders(40, 20, 3, groups, w)):
        permuted = learnt(X, y[order], weights=w, permutations=0)
        assert most[b] == pytest.approx(max(permuted.relevance.values()), rel=1e-9)


def test_tiny_weights_count_as_zero():
    X, y = problem(15)
    w = np.random.default_rng(16).lognormal(size=40)
    tiny, zero = w.copy(), w.copy()
    tiny[::5], zero[::5] = 1e-60, 0.0
    tiny, zero = learnt(X, y, weights=tiny), learnt(X, y, weights=zero)
    assert_allclose(null_of(tiny).maxima, null_of(zero).maxima, rtol=1e-9)
    assert tiny.adjusted_p_values == zero.adjusted_p_values


def draw(name, rng):
    """Return columns of noise, a target, and further arguments of a model."""
    X, y = rng.normal(size=(60, 40)), rng.normal(size=60)
    w, z = rng.choice([1.0, 10.0], size=60), rng.normal(size=60)
    if name == "counts":
        y = rng.negative_binomial(1, 1.0 / (1.0 + np.exp(1.5 * z)))
        return X, y, {"covariates": z, "target_type": "count"}
    if name == "weights, classes":
        return X, np.array(list("abc"))[rng.integers(0, 3, size=60)], {"weights": w}
    if name == "weights, several":
        return X, np.column_stack([y, z]), {"weights": w}
    if name == "weights, survival":
        times = np.column_stack([np.exp(y), z < 0.5])
        return X, times, {"weights": w, "target_type": "survival"}
    if name == "weights, covariates, strata":
        strata = rng.integers(0, 3, size=60)
        return X, y + z + 2.0 * strata, {"weights": w, "covariates": z, "strata": strata}
    return X, y, {"weights": w}


@pytest.mark.parametrize(
    "name",
    [
        "weights",
        "weights, classes",
        "weights, several",
        "weights, survival",
        "weights, covariates, strata",
        "counts",
    ],
)
def test_false_positive_rate_of_noise_is_five_percent(name):
    found = 0
    for seed in range(60):
        X, y, arguments = draw(name, np.random.default_rng(seed))
        found += min(learnt(X, y, **arguments).adjusted_p_values.values()) <= 0.05
    # 99.9 % of all series of 60 runs at 5 % have at most 9.
    assert found <= 9


def test_counts_are_permuted_in_units_of_their_standard_deviations():
    rng = np.random.default_rng(17)
    X, Z = rng.normal(size=(80, 30)), rng.normal(size=(80, 2))
    y = rng.negative_binomial(1, 1.0 / (1.0 + np.exp(Z[:, 0] - Z[:, 1])))
    model = learnt(X, y, k=30, covariates=Z, target_type="count")
    mean, dispersion = glm.null_means("count", y, Z), model._phase.target.null_model.dispersion
    slope, constant = np.polyfit(mean, dispersion, 1)
    assert slope > 0.1
    observed, permuted = reference.count_statistics(
        X, y, Z, lambda mean: constant + slope * mean, B
    )
    found = [model.relevance[j] for j in range(30)]
    assert_allclose(found, observed, rtol=1e-9)
    assert_allclose(null_of(model).leaders.permuted.max(axis=0), permuted.max(axis=1) ** 2)


@pytest.mark.parametrize("kind", ["binary", "count"])
def test_permuted_statistics_of_certain_outcomes(kind):
    rng = np.random.default_rng(3)
    z, X = np.exp(1.5 * rng.normal(size=200)), rng.normal(size=(200, 200))
    y = rng.random(200) < 1 / (1 + np.exp(1.5 - 1.5 * z))
    if kind == "count":
        y = rng.poisson(np.exp(1.0 - 0.8 * z))
    model = SelectKBest(target_type=kind)
    model.learn_target(y, covariates=z)
    target, space = model._target, model._space
    assert target.null_model.pearson < 170.0
    bases = next(PermutedTarget(target, space, 100, 0).bases()).vectors
    x = reference.residuals(X, z[:, None], target.row_transform.row_weights)
    x = target.row_transform.reflect(x.T)
    chi_squares = target.null_model.pearson * np.square(x @ bases).T / np.square(x).sum(axis=1)
    assert chi_squares.mean() == pytest.approx(1.0, abs=0.05)


def test_pooled_p_values():
    X, y = problem(4)
    model = learnt(X, y, k=88)
    observed, permuted = reference.statistics(X, y[:, None], B)
    null = np.sort(permuted[:, observed >= 0.0].ravel())
    for j, p in model.p_values.items():
        exact = (1 + null.size - np.searchsorted(null, observed[j] * (1 - 1e-9))) / (1 + null.size)
        below = np.searchsorted(null, observed[j] * (1 - 0.005))
        assert exact - 1e-12 <= p <= (1 + null.size - below) / (1 + null.size) + 1e-12
    assert null_of(model).counts.sum() == B * 89


def same_null(one, other):
    one, other = null_of(one), null_of(other)
    assert one.n_tests == other.n_tests
    assert_allclose(one.maxima, other.maxima, rtol=1e-9)
    assert_allclose(one.leaders.squares, other.leaders.squares, rtol=1e-9)
    assert_array_equal(one.leaders.arrivals, other.leaders.arrivals)
    assert_allclose(one.leaders.permuted, other.leaders.permuted, rtol=1e-7, atol=1e-12)
    assert_array_equal(one.counts, other.counts)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), cuts=st.lists(st.integers(0, 90), max_size=4))
def test_null_does_not_depend_on_blocks_merges_or_files(seed, cuts):
    X, y = problem(seed)
    whole, parts, one = learnt(X, y), [], learnt(X[:, :0], y)
    edges = [0, *sorted(cuts), 90]
    for start, stop in itertools.pairwise(edges):
        part = learnt(X[:, :0], y)
        part.learn_columns(X[:, start:stop], range(start, stop))
        parts.append(part)
        one.learn_columns(sp.csc_array(X[:, start:stop]), range(start, stop))
    same_null(whole, one)
    merged = parts[0]
    for part in parts[1:]:
        merged.merge(part)
    same_null(whole, merged)
    assert merged.noise_floor() == pytest.approx(whole.noise_floor(), rel=1e-9)


def test_single_columns_and_sparse_ones():
    X, y = problem(5)
    X[np.abs(X) < 1.7] = 0.0
    X[:, 0] = y
    whole, single, sparse = learnt(X, y), learnt(X[:, :0], y), learnt(sp.csc_array(X), y)
    for j in range(X.shape[1]):
        single.learn_column(j, X[:, j])
    same_null(whole, single)
    same_null(whole, sparse)


def test_bases_beyond_memory_are_recomputed(monkeypatch):
    X, y = problem(6, classes=3)
    Z = np.random.default_rng(0).normal(size=(40, 1))
    kept = learnt(X, y, covariates=Z)
    monkeypatch.setattr("streamsel.targets.permutations._KEPT_BYTES", 0)
    monkeypatch.setattr("streamsel.targets.permutations._BLOCK_SIZE", 700)
    monkeypatch.setattr("streamsel.state.permutation_null._TILE", 800)
    same_null(kept, learnt(X, y, covariates=Z))


def test_errors_roll_back_counts():
    X, y = problem(7)
    model = learnt(X, y)
    before = pickle.dumps(model)
    bad = X + 100.0
    bad[3, 50] = np.nan
    with pytest.raises(ValueError, match="missing"):
        model.learn_columns(bad, [f"b{j}" for j in range(bad.shape[1])])
    assert pickle.dumps(model) == before


def test_copies_continue():
    X, y = problem(8)
    strata = np.arange(40) % 3
    whole = learnt(X, y, strata=strata)
    half = learnt(X[:, :50], y, strata=strata)
    copy = pickle.loads(pickle.dumps(half))  # noqa: S301
    copy.learn_columns(X[:, 50:], range(50, 90))
    same_null(whole, copy)
    state = half._get_state()
    for name, bad in (
        ("maxima", np.full(B, 2.0)),
        ("maxima", np.zeros(B + 1)),
        ("squares", -np.ones(N_LEADERS)),
        ("n_tests", 3),
        ("counts", state["summary"]["null"]["counts"] + 1),
        ("first", -1),
    ):
        forged = pickle.loads(pickle.dumps(state))  # noqa: S301
        forged["summary"]["null"][name] = bad
        with pytest.raises(ValueError, match="Expected"):
            SelectKBest(k=5, permutations=B)._set_state(forged)


@pytest.mark.parametrize(
    ("cls", "params"),
    [
        (ProjSe, {"k": 3, "max_candidates": 6, "exact": True}),
        (ForwardSelection, {"k": 3, "max_candidates": 6, "exact": True}),
        (SAOLA, {}),
        (SOSPCA, {"n_components": 2}),
        (RidgeComponents, {"n_components": 2}),
    ],
)
def test_every_learner_has_a_permutation_noise_floor(cls, params):
    X, y = problem(9)
    model = cls(permutations=B, **params)
    model.learn_target(y)
    model.learn_columns(X)
    expected = learnt(X, y)
    assert model.noise_floor() == expected.noise_floor()
    assert model.noise_floor(method="gaussian") == expected.noise_floor(method="gaussian")
    assert model.noise_floor() != model.noise_floor(method="gaussian")
    report = model.report()
    assert (report.n_permutations, report.noise_floor) == (B, model.noise_floor())
    if report.kind == "selected":
        p = [row["p_adjusted"] for row in report.results]
        assert p == [*model.adjusted_p_values.values()]
        assert [row["above_noise"] for row in report.results] == [
            r > model.noise_floor() for r in model.relevance.values()
        ]


def test_permutations_are_unavailable_after_rows():
    X, y = problem(10)
    model = learnt(X, y)
    model.learn_one(dict(enumerate(X[0])), y[0])
    assert model.report().n_permutations is None
    assert np.isnan([*model.adjusted_p_values.values()]).all()
    with pytest.raises(ValueError, match="permuted targets"):
        model.noise_floor(method="permutation")
    assert 0.0 < model.noise_floor() < 1.0


def test_too_few_permutations_give_a_noise_floor_of_one():
    X, y = problem(11)
    model = learnt(X, y, permutations=9)
    assert model.noise_floor(0.05) == 1.0
    assert model.noise_floor(0.1) < 1.0
    assert not any(row["above_noise"] for row in model.report().results)


def test_invalid_options_are_refused():
    X, y = problem(12)
    for cls, params in ((SelectKBest, {"score": "margin"}), (ProjSe, {"kernel": "rbf"})):
        with pytest.raises(ValueError, match="permutations"):
            cls(permutations=B, **params)
    for strata, error in (
        (np.arange(39), "39 observations"),
        (np.arange(40), "one each"),
        ([None] * 40, "In the strata"),
    ):
        with pytest.raises(ValueError, match=error):
            SelectKBest(permutations=B).learn_target(y, strata=strata)
    with pytest.raises(ValueError, match="permutations above 0"):
        SelectKBest().learn_target(y, strata=np.arange(40) % 2)
    one, other = learnt(X, y, strata=np.arange(40) % 2), learnt(X[:, :0], y)
    with pytest.raises(ValueError, match="different targets"):
        one.merge(other)
    model = learnt(X, y)
    for level, method in ((0.0, "auto"), (0.05, "exact"), (0.05, None)):
        with pytest.raises(ValueError, match=r"Expected (level|method) of noise_floor to be"):
            model.noise_floor(level, method=method)


def test_ridge_components_use_the_permutation_noise_floor():
    """Permutations give copies the noise floor of one column, below the Gaussian noise floor."""
    rng = np.random.default_rng(2)
    x, y = np.linalg.qr(rng.normal(size=(60, 3)))[0][:, 1:].T
    y = 0.32 * x + np.sqrt(1.0 - 0.32**2) * y
    X = x[:, None] + 1e-4 * rng.normal(size=(60, 400))
    model = RidgeComponents(1, max_support=4, permutations=199)
    model.learn_target(y)
    model.learn_columns(X)
    r = np.abs([np.corrcoef(column, y)[0, 1] for column in X.T])
    assert model.noise_floor() < r.min() < r.max() < model.noise_floor(method="gaussian")
    assert model.n_above_noise == 400


def test_weights_that_depend_on_the_target_are_reported():
    """Weights that depend on the target, such as class-balancing ones, are reported."""
    rng = np.random.default_rng(0)
    y, noise = rng.normal(size=200), rng.lognormal(size=200)
    rare = np.where(rng.random(200) < 0.1, "a", "b")

    def codes(y, weights):
        model = SelectKBest(2, permutations=19)
        model.learn_target(y, weights=weights)
        model.learn_columns(rng.normal(size=(200, 10)))
        return {warning.code for warning in model.report().warnings}

    assert "weights" in codes(rare, np.where(rare == "a", 9.0, 1.0))
    assert "weights" in codes(y, np.exp(np.abs(y)))
    assert "weights" not in codes(rare, noise)
    assert "weights" not in codes(y, noise)
    assert "weights" not in codes(y, None)
