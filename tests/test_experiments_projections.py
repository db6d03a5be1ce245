"""The experiment with random projections: dimensions, pruned trees, intervals."""

import functools
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, t
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA
from sklearn.tree import DecisionTreeClassifier

PAPERS = Path(__file__).parents[1] / "demos" / "papers"


@pytest.fixture
def experiment(monkeypatch):
    monkeypatch.syspath_prepend(str(PAPERS))
    import projection_or_pca

    yield projection_or_pca
    for name in ("projection_or_pca", "sospca_errors", "_experiment"):
        sys.modules.pop(name, None)


@pytest.fixture
def halves():
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(0)) / X.std(0)
    return X[::2], y[::2], X[1::2]


@pytest.mark.parametrize("k", [2, 5])
def test_first_dimensions_of_pca_are_those_of_a_smaller_one(experiment, halves, k):
    A, y, B = halves
    train, test = experiment.reduced(experiment.PRINCIPAL, A, y, B, 5, 0)
    pca = PCA(k, svd_solver="full").fit(A)
    np.testing.assert_allclose(abs(train[:, :k]), abs(pca.transform(A)), atol=1e-9)
    np.testing.assert_allclose(abs(test[:, :k]), abs(pca.transform(B)), atol=1e-9)


def prediction(nodes, row, node, errors):
    """Return the prediction of a pruned tree, by recursion; `errors` returns those of a node."""
    left, right = nodes.children_left[node], nodes.children_right[node]
    if left < 0 or errors(node, as_leaf=True) <= errors(node, as_leaf=False):
        return nodes.value[node, 0].argmax()
    goes_left = np.float32(row[nodes.feature[node]]) <= nodes.threshold[node]
    return prediction(nodes, row, left if goes_left else right, errors)


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3])
def test_trees_are_pruned_by_expected_error(experiment, halves, noise):
    A, y, B = halves
    y = np.where(np.random.default_rng(0).random(y.size) < noise, 1 - y, y)
    tree = DecisionTreeClassifier(min_samples_leaf=2, random_state=0).fit(A, y)
    nodes = tree.tree_

    @functools.cache
    def errors(node, *, as_leaf):
        n = nodes.n_node_samples[node]
        wrong = round(n * nodes.value[node, 0].min())
        leaf = n * beta.ppf(0.75, wrong + 1, n - wrong)
        left, right = nodes.children_left[node], nodes.children_right[node]
        if as_leaf or left < 0:
            return leaf
        return sum(
            min(errors(child, as_leaf=True), errors(child, as_leaf=False))
            for child in (left, right)
        )

    stop = experiment.pruned(tree)
    assert 1 < len(np.unique(stop[tree.apply(A)])) < tree.get_n_leaves()
    predicted = nodes.value[:, 0].argmax(axis=1)[stop[tree.apply(B)]]
    assert predicted.tolist() == [prediction(nodes, row, 0, errors) for row in B]


def test_intervals_account_for_shared_rows(experiment):
    values = np.array([3.0, 5.0, 4.0, 8.0])
    here = pd.DataFrame({"n_train": [40] * 4, "n_test": [10] * 4})
    mean = experiment.over_splits(pd.Series(values), here)
    assert mean.value == 5.0
    spread = np.sqrt(np.var(values, ddof=1) * (1 / 4 + 10 / 40))
    assert mean.half_width() == pytest.approx(t.ppf(0.975, 3) * spread)
    assert mean.format() == "**+5.0 ± 4.9**"
    assert mean._replace(value=4.8).format() == "+4.8 ± 4.9"  # the interval contains 0


def test_ties_of_distance_are_in_order_of_rows(experiment):
    A = np.array([[0.0], [2.0], [0.0], [-2.0], [5.0], [2.0]])
    assert experiment.nearest(A, np.array([[0.0], [1.9]]), 4).tolist() == [
        [0, 2, 1, 3],
        [1, 5, 0, 2],
    ]
