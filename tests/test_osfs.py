"""OSFS: chains and small sets by hand, tests at their thresholds, invariants."""

from itertools import combinations, permutations

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from scipy import stats
from sklearn.datasets import load_diabetes, load_wine

from streamsel import OSFS
from tests.learning import learn
from tests.reference import target
from tests.reference.independence import is_independent, space
from tests.reference.osfs import answer

N = 103  # without conditioning Fisher's z has 100 free observations
# Orthonormal and centred.
E = scipy.linalg.helmert(N)[:8]


def learnt(columns, y, covariates=None, **params):
    """Return a model that has learnt columns, (n, p) or a dict."""
    return learn(OSFS(**params), columns, y, covariates)


def at_angle(rho, x, other):
    """Return a column with this correlation with x; x and `other` are orthonormal."""
    return rho * x + np.sqrt(1.0 - rho**2) * other


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("order", [*permutations(["cause", "middle", "noise"])])
def test_only_the_middle_of_a_chain_is_kept(order, fast):
    y = E[0]
    middle = at_angle(0.8, y, E[1])
    columns = {"cause": at_angle(0.7, middle, E[2]), "middle": middle, "noise": E[3]}
    model = learnt({name: columns[name] for name in order}, y, fast=fast)
    assert model.selected == ["middle"]
    np.testing.assert_allclose(model.scores["middle"], 0.8)
    np.testing.assert_allclose(model.p_values["middle"], 2 * stats.norm.sf(np.arctanh(0.8) * 10))


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize(("depth", "stays"), [(1, True), (2, False)])
@pytest.mark.parametrize("order", [*permutations(range(3))])
def test_conditional_tests_use_several_columns(fast, depth, stays, order):
    """A column that depends on the target given each of two is excluded given both."""
    y = E[0] + E[1] + 0.5 * E[2]
    columns = [E[0], E[1], E[0] + E[1] + E[3]]
    model = learnt({j: columns[j] for j in order}, y, max_conditioning_set=depth, fast=fast)
    assert set(model.selected) == {0, 1, 2} if stays else {0, 1}


def test_relevance_at_its_threshold():
    bar = np.tanh(2.5758293035489004 / 10)  # 0.2522, where p = 0.01
    for rho, stays in ((bar + 1e-6, True), (bar - 1e-6, False), (-bar - 1e-6, True)):
        model = learnt({"x": at_angle(rho, E[0], E[1])}, E[0])
        assert bool(model.selected) is stays
    np.testing.assert_allclose(model.p_values["x"], 0.01, rtol=1e-4)
    assert learnt({"x": at_angle(bar - 1e-6, E[0], E[1])}, E[0], alpha=0.011).selected


def test_partial_correlation_at_its_threshold():
    """A partial correlation is tested with one observation fewer."""
    bar = np.tanh(2.5758293035489004 / np.sqrt(99))
    for rho, stays in ((bar + 1e-6, True), (bar - 1e-6, False)):
        y = 0.8 * E[0] + 0.6 * E[1]
        x = 0.6 * E[0] + 0.8 * at_angle(rho, E[1], E[2])
        model = learnt({"first": E[0], "second": x}, y, max_conditioning_set=1)
        assert model.selected == (["first", "second"] if stays else ["first"])


@pytest.mark.parametrize(("fast", "stays"), [(True, "first"), (False, "copy")])
def test_one_of_two_copies_is_kept(fast, stays):
    """One of two copies is kept: the first, or the last if the newcomer is tested last."""
    x = at_angle(0.5, E[0], E[1])
    assert learnt({"first": x, "copy": 3.0 - 2.0 * x}, E[0], fast=fast).selected == [stays]


def test_nothing_is_added_to_a_fully_explained_target():
    y = E[0] + E[1]
    columns = {"one": E[0], "other": E[1], "both": E[0] + E[1] + E[2]}
    assert learnt(columns, y).selected == ["one", "other"]
    model = learnt({"all": -y, "one": E[0]}, y)
    assert model.selected == ["all"]
    assert model.p_values == {"all": 0.0}


def test_several_targets_are_tested_together():
    """Several targets are tested jointly, by F with 2 and n - 3 - s degrees of freedom."""
    Y = np.column_stack([E[0], E[0] + E[1]])
    bar = np.sqrt(stats.beta.isf(0.01, 1, (N - 3) / 2))
    for rho, stays in ((bar + 1e-6, True), (bar - 1e-6, False)):
        x = at_angle(rho, 0.6 * E[0] + 0.8 * E[1], E[2])
        assert bool(learnt({"x": x}, Y).selected) is stays
    # Given E[0], one direction is left, and one observation fewer.
    bar = np.sqrt(stats.beta.isf(0.01, 0.5, (N - 3) / 2))
    for rho, stays in ((bar + 1e-6, True), (bar - 1e-6, False)):
        x = 0.6 * E[0] + 0.8 * at_angle(rho, E[1], E[2])
        assert ("x" in learnt({"first": E[0], "x": x}, Y, max_conditioning_set=1).selected) is stays


def test_classes():
    X, y = load_wine(return_X_y=True)
    labels = np.array(["red", "white", "rosé"])[y]
    assert learnt(X, labels).selected == answer(X, labels)["selected"]
    two = np.where(y == 0, "red", "other")
    model = learnt(X, two)
    assert model.selected == learnt(X, (y == 0) * 1.0).selected == answer(X, two)["selected"]
    assert 1 < len(model.selected) < X.shape[1]


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("depth", [1, 3])
def test_real_columns_after_every_one(fast, depth):
    X, y = load_diabetes(return_X_y=True)
    X = np.column_stack([X, X[:, 2] * X[:, 8], X**2])
    model = learnt(X[:, :1], y, fast=fast, max_conditioning_set=depth)
    for p in range(2, X.shape[1] + 1):
        model.learn_column(p - 1, X[:, p - 1])
        assert (
            model.selected == answer(X[:, :p], y, fast=fast, max_conditioning_set=depth)["selected"]
        )
    assert len(model.selected) > 2


@st.composite
def streams(draw):
    """Return columns that depend on a few factors, and a target that depends on some of them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, p = draw(st.sampled_from([5, 12, 60])), draw(st.integers(2, 14))
    X = rng.normal(size=(n, 3)) @ rng.normal(size=(3, p))
    X += draw(st.sampled_from([0.0, 0.3, 1.0])) * rng.normal(size=(n, p))
    Y = X[:, : draw(st.integers(1, 2))] + rng.normal(size=(n, 1))
    return X, Y if Y.shape[1] > 1 else Y[:, 0]


@given(streams(), st.sampled_from([0.01, 0.3]), st.integers(1, 3), st.booleans())
def test_kept_columns_depend_on_the_target_given_any_others(data, alpha, depth, fast):
    X, y = data
    model = learnt(X, y, alpha=alpha, max_conditioning_set=depth, fast=fast)
    U = space(y, "auto")
    units = {j: target.unit(target.centred(X[:, j])) for j in model.selected}
    for j in model.selected:
        assert is_independent(units[j], U, [], alpha) is False
        others = [units[k] for k in model.selected if k != j]
        for size in range(1, depth + 1):
            for few in combinations(others, size):
                assert not is_independent(units[j], U, list(few), alpha)


@given(streams(), st.booleans())
def test_scale_offset_and_sign_do_not_matter(data, fast):
    X, y = data
    model = learnt(X, y, alpha=0.1, fast=fast)
    other = learnt(X * -3.0 + 7.0, 0.1 * y - 2.0, alpha=0.1, fast=fast)
    assert other.selected == model.selected


@pytest.mark.parametrize("c", [1, 2])
def test_covariates_are_in_every_conditioning_set(rng, c):
    n, d = 40, 2
    Z = rng.normal(size=(n, d))
    X = rng.normal(size=(n, 12)) + Z @ rng.normal(size=(d, 12))
    X[:, 6:] += X[:, :6]
    Y = X[:, :c] + X[:, 7:8] + Z @ rng.normal(size=(d, c)) + 0.5 * rng.normal(size=(n, c))
    model = learnt(X, Y, covariates=Z, alpha=0.2)
    # The same products in a space whose dimension is reduced by the covariates.
    left = scipy.linalg.null_space(np.column_stack([np.ones(n), Z]).T)
    turned = scipy.linalg.helmert(n - d).T @ left.T
    expected = answer(turned @ X, turned @ Y, alpha=0.2)
    assert model.selected == expected["selected"]
    for shown in ("scores", "p_values"):
        np.testing.assert_allclose(
            list(getattr(model, shown).values()), list(expected[shown].values())
        )


@pytest.mark.parametrize(("n", "found"), [(3, 0), (4, 2), (5, 1)])
def test_few_observations_allow_few_tests(rng, n, found):
    """Three observations allow no test, and four no conditional test."""
    x = rng.normal(size=n)
    assert len(learnt({"x": x, "copy": 2 * x}, x, alpha=0.5).selected) == found


def test_kept_columns_are_at_most_max_candidates():
    y = E[:4].sum(axis=0)
    model = learnt(E[:4].T, y, max_candidates=2)
    assert model.selected == [0, 1]
    assert learnt(E[:4].T, y).selected == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "params",
    [
        {"alpha": 0.0},
        {"alpha": 1.0},
        {"max_conditioning_set": 0},
        {"max_conditioning_set": 1.5},
        {"fast": 1},
    ],
)
def test_parameters_out_of_range(params):
    with pytest.raises(ValueError, match=f"Expected {next(iter(params))} of OSFS to be"):
        OSFS(**params)
