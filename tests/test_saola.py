"""SAOLA: pairs by hand, the test at its threshold, invariants."""

from itertools import permutations

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from scipy import stats
from sklearn.datasets import load_diabetes, load_wine

from streamsel import SAOLA
from tests.learning import learn
from tests.reference.saola import answer

N = 103
# Orthonormal and centred.
E = scipy.linalg.helmert(N)[:8]


def learnt(columns, y, covariates=None, **params):
    """Return a model that has learnt columns, (n, p) or a dict."""
    return learn(SAOLA(**params), columns, y, covariates)


def column(*parts):
    """Return a unit column with these coordinates; the remaining length is along E[7]."""
    return np.array(parts) @ E[: len(parts)] + np.sqrt(1.0 - np.square(parts).sum()) * E[7]


@pytest.mark.parametrize("order", [*permutations(["best", "alike", "apart"])])
def test_the_more_relevant_of_two_similar_columns_is_kept(order):
    columns = {
        "best": column(0.8, 0.0, 0.6),
        "alike": column(0.6, 0.1, 0.7),  # correlation 0.9 with the best, 0.6 with the target
        "apart": column(0.5, 0.6, -0.6),  # correlation 0.04 with the best
    }
    model = learnt({name: columns[name] for name in order}, E[0])
    assert sorted(model.selected) == ["apart", "best"]
    assert model.selected == [name for name in order if name != "alike"]
    np.testing.assert_allclose(model.scores["best"], 0.8)
    np.testing.assert_allclose(model.p_values["best"], 2 * stats.norm.sf(np.arctanh(0.8) * 10))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("rho", "stays"), [(0.5 - 1e-6, True), (0.5, False)])
def test_correlation_equal_to_relevance_discards_a_column(rho, stays, sign):
    """The less relevant column is discarded if rho is at least its 0.5 with the target."""
    columns = {"best": sign * column(0.8, 0.6), "other": column(0.5, (rho - 0.4) / 0.6)}
    for order in (columns, dict(reversed(columns.items()))):
        assert ("other" in learnt(order, E[0]).selected) is stays
        assert "best" in learnt(order, E[0]).selected


def test_the_first_of_equal_columns_is_kept():
    x = column(0.5)
    assert learnt({"first": x, "copy": 2.0 - 3.0 * x}, E[0]).selected == ["first"]


def test_refused_newcomers_discard_no_column():
    """A newcomer that the second column excludes does not displace the first."""
    columns = {
        "first": column(0.4, 0.3),
        "second": column(0.8, 0.0, 0.6),
        "newcomer": column(0.6, 0.3, 0.5),
    }
    pairs = [columns["first"] @ columns["second"], columns["first"] @ columns["newcomer"]]
    assert pairs[0] < 0.4 <= pairs[1]
    assert columns["second"] @ columns["newcomer"] > 0.6
    assert learnt(columns, E[0]).selected == ["first", "second"]
    del columns["second"]
    assert learnt(columns, E[0]).selected == ["newcomer"]


def test_relevance_at_its_threshold():
    bar = np.tanh(2.5758293035489004 / 10)
    for rho, stays in ((bar + 1e-6, True), (bar - 1e-6, False), (-bar - 1e-6, True)):
        assert bool(learnt({"x": column(rho)}, E[0]).selected) is stays
    for delta, stays in ((0.1, True), (0.3, False)):
        assert bool(learnt({"x": column(0.2)}, E[0], delta=delta).selected) is stays


def test_classes_and_several_targets():
    X, y = load_wine(return_X_y=True)
    labels = np.array(["red", "white", "rosé"])[y]
    assert learnt(X, labels).selected == answer(X, labels)["selected"]
    Y = np.column_stack([E[0], E[0] + E[1]])
    bar = np.sqrt(stats.beta.isf(0.01, 1, (N - 3) / 2))
    for rho, stays in ((bar + 1e-6, True), (bar - 1e-6, False)):
        assert bool(learnt({"x": column(0.6 * rho, 0.8 * rho)}, Y).selected) is stays


@pytest.mark.parametrize("delta", [None, 0.3])
def test_real_columns_after_every_one(delta):
    X, y = load_diabetes(return_X_y=True)
    X = np.column_stack([X, X[:, 2] * X[:, 8], X**2])
    model = learnt(X[:, :1], y, delta=delta)
    for p in range(2, X.shape[1] + 1):
        model.learn_column(p - 1, X[:, p - 1])
        assert model.selected == answer(X[:, :p], y, delta=delta)["selected"]
    assert len(model.selected) > 2


@given(st.integers(0, 2**32), st.sampled_from([5, 12, 60]), st.sampled_from([0.0, 0.3, 1.0]))
def test_kept_columns_correlate_less_than_their_relevance(seed, n, noise):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) @ rng.normal(size=(3, 15)) + noise * rng.normal(size=(n, 15))
    y = X[:, 0] + rng.normal(size=n)
    model = learnt(X, y, alpha=0.3)
    assert learnt(5.0 - 0.2 * X, 3.0 - y, alpha=0.3).selected == model.selected
    common = np.abs(np.corrcoef(X[:, model.selected].T)).reshape(2 * [len(model.selected)])
    scores = list(model.scores.values())
    for i in range(len(scores)):
        for j in range(i):
            assert common[i, j] < min(scores[i], scores[j])


def test_covariates_are_projected_out(rng):
    n, d = 40, 2
    Z = rng.normal(size=(n, d))
    X = rng.normal(size=(n, 12)) + Z @ rng.normal(size=(d, 12))
    X[:, 6:] += X[:, :6]
    y = X[:, 0] + X[:, 7] + Z @ rng.normal(size=d) + 0.5 * rng.normal(size=n)
    model = learnt(X, y, covariates=Z, alpha=0.2)
    # The same products in a space whose dimension is reduced by the covariates.
    left = scipy.linalg.null_space(np.column_stack([np.ones(n), Z]).T)
    turned = scipy.linalg.helmert(n - d).T @ left.T
    expected = answer(turned @ X, turned @ y, alpha=0.2)
    assert model.selected == expected["selected"]
    for shown in ("scores", "p_values"):
        np.testing.assert_allclose(
            list(getattr(model, shown).values()), list(expected[shown].values())
        )


@pytest.mark.parametrize(("n", "found"), [(3, 0), (4, 1)])
def test_few_observations_select_nothing(rng, n, found):
    x = rng.normal(size=n)
    assert len(learnt({"x": x, "copy": 2 * x}, x, alpha=0.5).selected) == found


def test_kept_columns_are_at_most_max_candidates():
    y = E[:4].sum(axis=0)
    assert learnt(E[:4].T, y, max_candidates=2).selected == [0, 1]
    assert learnt(E[:4].T, y).selected == [0, 1, 2, 3]


@pytest.mark.parametrize("params", [{"alpha": 0.0}, {"alpha": 1.0}, {"delta": 1.0}, {"delta": -1}])
def test_parameters_out_of_range(params):
    with pytest.raises(ValueError, match=f"Expected {next(iter(params))} of SAOLA to be"):
        SAOLA(**params)
