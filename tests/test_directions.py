"""The sign of each selected variable, and the other variable that it correlates with most."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsel import MRMR, ForwardSelection, ProjSe, SelectKBest, load, save
from streamsel.state.similar import correlation_matrix, most_correlated
from tests.reference.relations import closest, correlations, directions


def learnt(model, X, y, covariates=None, **given):
    model.learn_target(y, covariates, **given)
    model.learn_columns(X)
    return model.report()


def classes(rng, n_classes, n=120, p=15):
    """Return columns and labels of unequal frequency; some columns depend on the labels."""
    y = np.array([*"abcde"])[rng.integers(0, n_classes, n) * rng.integers(0, 2, n)]
    X = rng.normal(size=(n, p))
    for k, label in enumerate(sorted(set(y))):
        X[:, k] += 2.0 * (y == label) * (-1) ** k
    return X, y


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("has_covariates", [False, True])
def test_directions_are_signs_of_correlations_with_a_class(rng, n_classes, has_covariates):
    X, y = classes(rng, n_classes)
    Z = np.column_stack([X[:, 0] + rng.normal(size=120)]) if has_covariates else None
    report = learnt(MRMR(k=6), X, y, Z)
    found = [(one.sign, one.of) for one in report.directions.values()]
    assert found == directions(X[:, list(report.directions)], y.tolist(), Z)
    assert report.class_sizes == {label: int((y == label).sum()) for label in sorted(set(y))}


@pytest.mark.parametrize("c", [1, 3])
def test_directions_of_numbers(rng, c):
    X = rng.normal(size=(60, 10))
    Y = X[:, :c] * [1.0, -2.0, 0.5][:c] + rng.normal(size=(60, c))
    report = learnt(ProjSe(k=4), X, Y)
    R = correlations(X[:, list(report.directions)], Y)
    for r, one in zip(R, report.directions.values(), strict=True):
        k = np.abs(r).argmax()
        assert one == (np.sign(r[k]), k if c > 1 else None, False)
    assert report.class_sizes is None


def test_directions_on_rows_are_those_of_columns(rng):
    X, y = classes(rng, 3)
    on_rows = ProjSe(k=5)
    for x, label in zip(X.tolist(), y.tolist(), strict=True):
        on_rows.learn_one(dict(enumerate(x)), label)
    expected = learnt(ProjSe(k=5), X, y.tolist())
    found = on_rows.report()
    assert found.directions == expected.directions
    assert found.class_sizes is None


def test_no_directions_without_a_target(rng):
    model = ProjSe(k=3)
    model.learn_target(None)
    model.learn_columns(rng.normal(size=(30, 8)))
    assert model.report().directions is None


def test_rows_without_a_target_have_no_class(rng):
    X, y = classes(rng, 3)
    y = y.astype(object)
    y[:7] = None
    report = learnt(SelectKBest(k=3), X, y, missing="drop")
    assert sum(report.class_sizes.values()) == 113
    weights = np.ones(120)
    weights[:7] = 0.0
    y[:7] = "a"
    assert learnt(SelectKBest(k=3), X, y, weights=weights).class_sizes is None


@pytest.mark.parametrize("has_covariates", [False, True])
def test_redundancy_is_the_largest_correlation(rng, has_covariates):
    X, y = classes(rng, 2)
    X[:, 7] = -X[:, 0] + 0.1 * rng.normal(size=120)
    Z = X[:, [3]] + rng.normal(size=(120, 1)) if has_covariates else None
    report = learnt(ForwardSelection(k=8), X, y, Z)
    names = list(report.redundancy)
    for (other, r), (j, expected) in zip(
        report.redundancy.values(), closest(X[:, names], Z), strict=True
    ):
        assert other == names[j]
        assert r == pytest.approx(expected)
    assert learnt(SelectKBest(k=3), X, y).redundancy is None
    assert learnt(ForwardSelection(k=1), X, y).redundancy == {}


def test_directions_are_saved(rng, tmp_path):
    X, y = classes(rng, 3)
    model = MRMR(k=4)
    report = learnt(model, X, y)
    save(model, tmp_path / "model")
    found = load(tmp_path / "model").report()
    assert found.directions == report.directions
    assert found.class_sizes == report.class_sizes
    assert report.as_dict()["class_sizes"][0] == {"class": "a", "rows": report.class_sizes["a"]}


@given(
    values=st.lists(st.lists(st.integers(-2, 2), min_size=3, max_size=3), min_size=2, max_size=6)
)
def test_variables_are_not_their_own_neighbours(values):
    """No variable is its own neighbour, not even a constant one."""
    pairs = most_correlated(correlation_matrix(np.array(values, dtype=float)))
    assert len(pairs) == 3
    assert all(j != i and 0 <= j < 3 for i, (j, _) in enumerate(pairs))
    assert all(abs(r) <= 1.0 for _, r in pairs)
