"""Compare OnlineFDR with the package online-fdr, and AlphaInvesting with a matrix product."""

import numpy as np
import pytest
from sklearn.feature_selection import f_regression

from streamsel import AlphaInvesting, OnlineFDR
from tests.bench.test_columns import fortran, learner, learnt

N, N_RELEVANT = 1000, 50


@pytest.fixture
def data(size):
    """Return columns and a target; one column in a hundred correlates with it."""
    rng = np.random.default_rng(0)
    X, y = fortran(rng, N, size(20_000)), rng.standard_normal(N)
    X[:, ::100] += 0.3 * y[:, None]
    return X, y


def rule_of_peer(rule, fdr):
    """Return a rule of the package online-fdr, with the parameters that its authors recommend."""
    investing = pytest.importorskip("online_fdr.p_values.investing")
    if rule == "lord++":
        return investing.LordPlusPlus(alpha=fdr, wealth=fdr / 2)
    if rule == "saffron":
        return investing.Saffron(alpha=fdr, wealth=fdr / 2, lambda_=0.5)
    return investing.Addis(alpha=fdr, wealth=fdr / 2, lambda_=0.25, tau=0.5)


@pytest.mark.parametrize("rule", ["lord++", "saffron", "addis"])
def test_online_fdr(against, data, rule):
    X, y = data
    rule_of_peer(rule, 0.05)

    def peer():
        test = rule_of_peer(rule, 0.05)
        return [j for j, p in enumerate(f_regression(X, y)[1].tolist()) if test.test_one(p)]

    assert learnt(OnlineFDR, y, X, rule=rule).selected == peer()
    against(
        f"OnlineFDR {rule}, n=1,000 p={X.shape[1]:,} / f_regression and online-fdr",
        learner(OnlineFDR, y, X, rule=rule),
        peer,
        rounds=3,
    )


def test_alpha_investing(against, data):
    X, y = data
    X[:, ::100] -= 0.3 * y[:, None]
    y = X[:, : 100 * N_RELEVANT : 100].sum(axis=1) + y
    selected = learnt(AlphaInvesting, y, X).selected
    A = np.ascontiguousarray(X[:, selected].T)
    against(
        f"AlphaInvesting, {len(selected)} selected, n=1,000 p={X.shape[1]:,} / "
        "X[:, selected].T @ X",
        learner(AlphaInvesting, y, X),
        lambda: A @ X,
        data=X.nbytes,
    )
