"""Concept drift: with a fading factor old associations are forgotten, and stable ones are kept.

There are forty independent variables; the target is the sum of three of them, and noise. At
regular intervals three other variables replace them. With a fading factor of 0.01 the effective
number of rows is 199.
"""

import numpy as np
import pytest

from streamsel import SOSPCA, ProjSe

P, FADING = 40, 0.01


def stream(n, change, seed):
    """Return rows (n, P), targets (n,), and the three relevant variables of each row."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, P))
    relevant = (3 * (np.arange(n) // change)[:, None] + np.arange(3)) % P
    y = np.take_along_axis(X, relevant, axis=1).sum(axis=1) + 0.5 * rng.normal(size=n)
    return X, y, relevant


def heaviest(model):
    """Return the three variables with the largest loadings."""
    weight = {
        name: sum(b * b for b in loading.values()) for name, loading in model.loadings.items()
    }
    return sorted(weight, key=lambda name: -weight[name])[:3]


LEARNERS = {
    "ProjSe": (ProjSe, {"k": 3}, lambda model: model.selected),
    "SOSPCA": (SOSPCA, {"n_components": 3}, heaviest),
}


def rows_until_found(learner, fading_factor, seed, most=1000):
    """Return the number of rows until exactly the three new variables are found, at most `most`."""
    kind, options, shown = LEARNERS[learner]
    model = kind(**options, fading_factor=fading_factor)
    X, y, relevant = stream(1000 + most, 1000, seed)
    model.learn_many(X[:1000], y[:1000])
    assert set(shown(model)) == {0, 1, 2}
    for stop in range(1020, 1000 + most, 20):
        model.learn_many(X[stop - 20 : stop], y[stop - 20 : stop])
        if set(shown(model)) == set(relevant[-1].tolist()):
            return stop - 1000
    return most


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("learner", "rows"), [("ProjSe", 200), ("SOSPCA", 400)])
def test_new_variables_are_found(learner, rows, seed):
    """New variables are found; SOSPCA needs two refreshes: one for candidates, one to join."""
    assert rows_until_found(learner, FADING, seed) <= rows


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("learner", LEARNERS)
def test_new_variables_are_not_found_without_fading(learner, seed):
    assert rows_until_found(learner, 0.0, seed) > 800


def explained(model, X, y):
    """Return the share of the target's variance that all components explain together."""
    Z = np.column_stack([model.transform_many(X), np.ones(len(X))])
    left = y - Z @ np.linalg.lstsq(Z, y, rcond=None)[0]
    return 1.0 - left.var() / y.var()


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("q", [3, 5, 10])
def test_repeated_drift(q, seed):
    """Components of earlier rows do not impede those of later rows."""
    model = SOSPCA(q, fading_factor=FADING)
    X, y, _ = stream(8000, 1000, seed)
    found = []
    for start in range(0, 8000, 1000):
        model.learn_many(X[start : start + 500], y[start : start + 500])
        now = slice(start, start + 1000)
        found.append(explained(model, X[now], y[now]))
        model.learn_many(X[start + 500 : start + 1000], y[start + 500 : start + 1000])
    # At most 3 of 3.25 parts can be explained.
    assert np.median(found) > 0.8
    assert min(found) > 0.5


@pytest.mark.parametrize("q", [3, 5])
@pytest.mark.parametrize("fading_factor", [0.01, 0.05])
def test_stable_variables_are_kept_despite_noise(q, fading_factor):
    """Stable variables are kept, although in 39 rows noise may look half as relevant."""
    model = SOSPCA(q, fading_factor=fading_factor)
    X, y, _ = stream(10_000, 10_000, seed=0)
    found = []
    for start in range(0, 10_000, 1000):
        now = slice(start, start + 1000)
        model.learn_many(X[now], y[now])
        found.append(explained(model, X[now], y[now]))
    assert np.median(found) > 0.8
