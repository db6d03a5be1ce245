"""Rows of many features: a factor of their products replaces principal axes."""

import copy
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsel import (
    PCA,
    PLS,
    Discriminant,
    PrivateFeatures,
    RankedPCA,
    RidgeComponents,
    SupervisedPCA,
)
from streamsel.extraction import _canonical_ridge
from streamsel.state.gram import view
from streamsel.state.gram.pivoted_factor import PivotedFactor, bound_rank
from streamsel.state.moments import aligned_columns
from streamsel.state.moments.aligned import AlignedMoments
from streamsel.state.moments.aligned_columns import as_slice
from tests.conformance.test_oracle import check_extractor
from tests.reference.ridge_components_rows import RidgeComponentsOnRows
from tests.ridge import agree, matrix, same_up_to_sign

# Above the minimum size for a factor; fewer, about as many, and more rows.
P, SIZES = 170, [40, 168, 260]
MODULES = {
    PCA: "pca",
    PLS: "pls",
    RankedPCA: "ranked_pca",
    SupervisedPCA: "supervised_pca",
    PrivateFeatures: "private_features",
    Discriminant: "discriminant",
}


def data(n, p=P, seed=0, *, copies=True):
    """Return rows that share factors, optionally with copies and a constant among the features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) @ rng.normal(size=(4, p)) + rng.normal(size=(n, p)) + 2.0
    if copies:
        X[:, 50], X[:, 60], X[:, 70] = X[:, 2], 3.0 - X[:, 1], 1.5
    return X, X[:, 0] - X[:, p // 2] + rng.normal(size=n)


@given(st.integers(0, 10**6), st.integers(1, 30), st.data())
def test_factors_have_the_products_of_the_matrix(seed, m, draw):
    rng = np.random.default_rng(seed)
    rank = draw.draw(st.integers(1, m))
    W = rng.normal(size=(rank, m)) * 10.0 ** rng.uniform(-2, 2, m)
    C, A = W.T @ W, W.T @ rng.normal(size=(rank, 2))
    factor = PivotedFactor.of(C.copy())
    F = factor.rows
    size = np.abs(C).max()
    assert F.shape == (m, rank)
    np.testing.assert_allclose(F @ F.T, C, rtol=0, atol=1e-12 * size)
    np.testing.assert_allclose(factor.products(), F.T @ F, rtol=0, atol=1e-12 * size)
    np.testing.assert_array_equal(F[factor.pivots], np.tril(F[factor.pivots]))
    np.testing.assert_allclose(F @ factor.coordinates(A), A, rtol=0, atol=1e-8 * np.abs(A).max())


def test_rank_is_bounded_by_effective_rows():
    assert bound_rank(80.0, 80.0) == 80.0
    weights = 0.9 ** np.arange(2_000.0)
    effective = weights.sum() ** 2 / (weights**2).sum()
    count = bound_rank(weights.sum(), effective)
    assert 1e-14 < weights[int(count)] < 1e-12


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"alpha": "gcv"},
        {"fading_factor": 0.05},
        {"alpha": 0.2, "covariates": ("v3",)},
        {"relevance_power": (1.0, 4.0)},
        {"relevance_power": 0.0},
    ],
    ids=str,
)
def test_ridge_components_equal_the_batch(n, parameters):
    X, y = data(n)
    model = RidgeComponents(4, **parameters)
    rule = {name: getattr(model, name) for name in ("n_components", "relevance_power", "alpha")}
    of_rows = {key: parameters[key] for key in ("fading_factor", "covariates") if key in parameters}
    oracle = RidgeComponentsOnRows(rule, **of_rows)
    names = [f"v{j}" for j in range(P)]
    for i, (row, value) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
        x = dict(zip(names, row, strict=True))
        if i % 7 == 0:
            x["v5"] = float("nan")
        model.learn_one(x, value)
        oracle.learn_one(x, value)
    agree(model, oracle.answer(), oracle.rows.names, 1e-8)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("cls", MODULES)
def test_linear_components_equal_the_definition(cls, scale, n):
    X, y = data(n)
    if cls is PCA:
        y = None
    elif cls is Discriminant:
        y = np.array(["ant", "bee", "cat"])[np.digitize(y, np.quantile(y, [0.3, 0.6]))]
    model = cls(4, scale=scale)
    for start in range(0, n, 64):
        rows = slice(start, start + 64)
        model.learn_many(*((X[rows],) if y is None else (X[rows], y[rows])))
    answer = import_module(f"tests.reference.{MODULES[cls]}").answer(X, y, **vars_of(model))
    check_extractor(model, {name: answer[name] for name in ("relevance", "loadings")})


def vars_of(model):
    return {name: getattr(model, name) for name in ("n_components", "scale")}


@pytest.mark.parametrize("rule", [3, 0.8, "parallel", "profile", "elbow"])
@pytest.mark.parametrize("fading_factor", [0.0, 0.01, 0.2])
@pytest.mark.parametrize("n", SIZES)
def test_factored_axes_equal_unfactored_ones(n, fading_factor, rule, monkeypatch):
    X, _ = data(n)
    w = np.random.default_rng(1).uniform(0.5, 2.0, n)
    model = PCA(rule, fading_factor=fading_factor)
    model.learn_many(X, w=w)
    fast = PCA(rule, fading_factor=fading_factor)
    fast.learn_many(X, w=w)
    assert fast.n_components_found
    found = fast.loadings, fast.explained_variance, fast.explained_variance_ratio
    monkeypatch.setattr(view, "_MIN_FACTORED", P + 1)
    assert model.n_components_found == fast.n_components_found
    for mine, other in zip(
        found[1:], (model.explained_variance, model.explained_variance_ratio), strict=True
    ):
        np.testing.assert_allclose(mine, other, rtol=1e-10)
    names, components = list(range(P)), [f"pca{k}" for k in range(model.n_components_found)]
    same_up_to_sign(
        *(matrix(loadings, names, components) for loadings in (found[0], model.loadings))
    )


@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize("power", [0.0, 8.0])
@pytest.mark.parametrize("n", SIZES)
def test_only_dependent_columns_are_factored(n, power, copies):
    X, y = data(n, copies=copies)
    model = RidgeComponents(3, relevance_power=power)
    model.learn_many(X, y)
    # With power 8 some weights are so small that their columns are rounding errors.
    assert model._solution().problem.of_rows == (copies or n < P or power == 8.0)
    rule = {name: getattr(model, name) for name in ("n_components", "relevance_power", "alpha")}
    oracle = RidgeComponentsOnRows(rule)
    for row, value in zip(X.tolist(), y.tolist(), strict=True):
        oracle.learn_one(dict(enumerate(row)), value)
    agree(model, oracle.answer(), oracle.rows.names, 1e-8)


@pytest.mark.parametrize("power", [2.0, 8.0])
@pytest.mark.parametrize("n", SIZES)
def test_factors_equal_correlations(n, power, monkeypatch):
    X, y = data(n)
    model = RidgeComponents(3, relevance_power=power)
    model.learn_many(X, y)
    other = copy.deepcopy(model)
    found = model.loadings
    monkeypatch.setattr(_canonical_ridge, "_MIN_FACTORED", P + 1)
    assert model.fitted_alpha == other.fitted_alpha
    names = list(range(P))
    same_up_to_sign(
        *(matrix(loadings, names, model.components) for loadings in (found, other.loadings)),
        tolerance=1e-7,
    )


@pytest.mark.parametrize("count", [3, 12, 40])
def test_block_shifts_have_the_same_bits(count, monkeypatch):
    windows = []
    for share in (0, 1000):
        monkeypatch.setattr(aligned_columns, "_WIDE_SHARE", share)
        window = AlignedMoments(1.0)
        products = np.cov(np.random.default_rng(0).normal(size=(40, 90)))
        window.begin([f"v{j}" for j in range(39)], np.linspace(-1, 1, 40), products, 1, 10)
        window.sums[:40] = np.linspace(2.0, 3.0, 40)
        windows.append(window)
        before, old = window.S, window.S.copy()
        own = np.sort(np.random.default_rng(1).permutation(40)[:count])
        window.set_shifts(own, np.full(count, -1), np.linspace(-2.0, 5.0, count))
        np.testing.assert_array_equal(before, old)
    for array in ("S", "sums", "shift"):
        one, two = (getattr(window, array) for window in windows)
        np.testing.assert_array_equal(one, two)


@given(st.lists(st.integers(0, 6), max_size=6))
def test_a_slice_has_the_values_of_its_indices(indices):
    indices = np.array(indices, dtype=np.intp)
    found, values = as_slice(indices), np.arange(10)
    np.testing.assert_array_equal(values[found], values[indices])
    consecutive = indices.size > 0 and (np.diff(indices) == 1).all()
    assert isinstance(found, slice) == consecutive


@pytest.mark.parametrize("covariates", [None, ("z",)])
@pytest.mark.parametrize("fading_factor", [0.0, 0.1])
def test_products_of_combinations_equal_those_of_variables(covariates, fading_factor):
    rng = np.random.default_rng(0)
    model = RidgeComponents(3, covariates=covariates, fading_factor=fading_factor)
    for i in range(60):
        x = {f"v{j}": float(value) + 3.0 for j, value in enumerate(rng.normal(size=12))}
        x |= {"z": float(rng.normal()) + x["v1"], "constant": 2.0}
        if i % 9 == 0:
            x["v3"] = float("nan")
        model.learn_one(x, x["v1"] + float(rng.normal()))
    state = model._state
    for indices in (np.arange(len(state.names)), np.array([4, 1, 7])):
        W = rng.normal(size=(indices.size, 4))
        weighted = W * np.sqrt(state.stats(indices).m2)[:, None]
        expected = weighted.T @ state.products(indices)[indices] @ weighted
        size = np.abs(expected).max()
        np.testing.assert_allclose(state.gram_of(indices, W), expected, rtol=0, atol=1e-12 * size)
