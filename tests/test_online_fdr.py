"""OnlineFDR: its rules by hand, against sums over all discoveries, and their invariants."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from streamsel import OnlineFDR, SelectKBest
from tests.reference.online_fdr import answer, decide

RULES = ("lord++", "saffron", "addis")


def learnt(X, y, covariates=None, **params):
    model = OnlineFDR(**params)
    model.learn_target(y, covariates=covariates)
    model.learn_columns(X)
    return model


def planted(seed, n=60, p=150):
    """Return columns, some of them relevant, and the target."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    X = rng.normal(size=(n, p))
    informative = rng.random(p) < rng.choice([0.0, 0.1, 0.5])
    X[:, informative] += rng.uniform(0.2, 1.5, informative.sum()) * y[:, None]
    X[:, rng.random(p) < 0.05] = 1.0
    return X, y


def test_levels_by_hand():
    """Levels of the first tests equal those computed by hand from the first gammas."""
    p_values = [0.001, 0.4, 0.9, 1e-5, 0.3, 0.6]
    lord = [0.07720838 * g for g in (0.6931472, 0.1507377, 0.1283863, 0.1067709, 0.0905196)]
    first = 0.05 / 2 * lord[0]
    found, levels = zip(*decide(p_values, 0.05, "lord++"), strict=True)
    assert found == (True, False, False, True, False, False)
    expected = [first]
    # One discovery: the initial wealth, and the payout of the first discovery.
    expected += [0.025 * (lord[t] + lord[t - 1]) for t in (1, 2, 3)]
    expected += [0.025 * (lord[4] + lord[3]) + 0.05 * lord[0]]
    np.testing.assert_allclose(levels[:5], expected, rtol=1e-5)

    power = [0.4374901658 / i**1.6 for i in (1, 2, 3, 4, 5)]
    found, levels = zip(*decide(p_values, 0.05, "saffron"), strict=True)
    assert found == (True, False, False, True, False, False)
    # Only 0.9 of the first five is counted; the others are candidates.
    expected = [0.0125 * power[0], 0.025 * power[0], 0.025 * power[0], 0.025 * power[1]]
    expected += [0.025 * power[1] + 0.025 * power[0]] * 2
    np.testing.assert_allclose(levels, expected, rtol=1e-9)

    found, levels = zip(*decide(p_values, 0.05, "addis"), strict=True)
    assert found == (True, False, False, True, False, False)
    # 0.4 and 0.3 are counted; 0.9 and 0.6 are discarded, and the small ones are candidates.
    expected = [0.00625 * power[0], 0.0125 * power[0], 0.0125 * power[1], 0.0125 * power[1]]
    expected += [0.0125 * power[1] + 0.0125 * power[0], 0.0125 * power[2] + 0.0125 * power[1]]
    np.testing.assert_allclose(levels, expected, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
@given(seed=st.integers(0, 10**6), size=st.integers(1, 150), fdr=st.sampled_from([0.01, 0.1, 0.5]))
def test_any_stream(rule, seed, size, fdr):
    X, y = planted(seed)
    model = OnlineFDR(fdr, rule=rule)
    model.learn_target(y)
    for start in range(0, X.shape[1], size):
        model.learn_columns(X[:, start : start + size])
    expected = answer(X, y, fdr=fdr, rule=rule)
    assert model.selected == expected["selected"]
    np.testing.assert_allclose(
        list(model.p_values.values()), list(expected["p_values"].values()), 1e-8, 1e-300
    )


@given(seed=st.integers(0, 10**6))
def test_a_higher_rate_discovers_all_that_a_lower_one_does(seed):
    X, y = planted(seed)
    found = [{*learnt(X, y, fdr=fdr).selected} for fdr in (0.01, 0.05, 0.2, 0.6)]
    assert found[0] <= found[1] <= found[2] <= found[3]


@pytest.mark.parametrize("rule", RULES)
@given(seed=st.integers(0, 10**6), most=st.integers(1, 9))
def test_a_bounded_number_keeps_the_first_selected(rule, seed, most):
    X, y = planted(seed)
    bounded = learnt(X, y, rule=rule, fdr=0.2, max_candidates=most)
    assert bounded.selected == learnt(X, y, rule=rule, fdr=0.2).selected[:most]


@pytest.mark.parametrize("target", ["number", "numbers", "classes", "covariates"])
def test_p_values_are_those_of_select_k_best(target):
    X, y = planted(3)
    Z = None
    if target == "numbers":
        y = np.column_stack([y, X[:, 2]])
    elif target == "classes":
        y = np.array(["a", "b", "c"])[np.digitize(y, [-0.5, 0.5])]
    elif target == "covariates":
        Z = np.random.default_rng(5).normal(size=(60, 2)) + y[:, None]
    model = learnt(X, y, covariates=Z, fdr=0.5)
    other = SelectKBest(150)
    other.learn_target(y, covariates=Z)
    other.learn_columns(X)
    assert len(model.selected) > 5
    for name, p_value in model.p_values.items():
        np.testing.assert_allclose(p_value, other.p_values[name], rtol=1e-9)


@pytest.mark.parametrize("rule", RULES)
def test_false_discoveries_are_few(rule):
    shares = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        y = rng.normal(size=100)
        X = rng.normal(size=(100, 500))
        X[:, ::10] += 0.6 * y[:, None]
        selected = np.array(learnt(X, y, fdr=0.2, rule=rule).selected)
        shares.append(np.mean(selected % 10 > 0) if selected.size else 0.0)
        assert np.sum(selected % 10 == 0) > 10
    assert np.mean(shares) < 0.2
