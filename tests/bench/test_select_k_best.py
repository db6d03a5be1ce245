"""The figures of SelectKBest: its scores against scikit-learn's, or a sort of the same columns."""

import numpy as np
import pytest
from river import feature_selection, stats
from sklearn import feature_selection as sklearn

from streamsel import SelectKBest
from tests.bench.test_columns import fortran, learner
from tests.bench.test_rows import DISTINCT, learning, settled, stream

N, K, CLASSES = 1000, 10, 20


@pytest.fixture
def data(size):
    rng = np.random.default_rng(0)
    X = fortran(rng, N, size(20_000))
    return X, [f"class {i % CLASSES}" for i in range(N)]


def test_scores_of_moments(against, data):
    X, labels = data
    codes = np.unique(labels, return_inverse=True)[1]
    by_rows = np.ascontiguousarray(X)
    against(
        f"SelectKBest score='f', {CLASSES} classes, n=1,000 p=20,000 / scikit-learn's f_classif",
        learner(SelectKBest, labels, X, k=K),
        lambda: sklearn.SelectKBest(sklearn.f_classif, k=K).fit(by_rows, codes),
        data=X.nbytes,
    )


@pytest.mark.parametrize("limit", [None, 4 * K])
def test_one_numeric_target(against, data, limit):
    X, _ = data
    y = np.random.default_rng(1).standard_normal(N)
    ours = learner(SelectKBest, y, X, k=K, score="correlation", max_candidates=limit)
    what = f"SelectKBest score='correlation', max_candidates={limit}, same size / y @ X"
    against(what, ours, lambda: y @ X, data=X.nbytes)


@pytest.mark.parametrize(
    "parameters",
    [
        {"score": "mutual_info"},
        {"score": "mutual_info", "binning": "width"},
        {"score": "misclassification"},
        {"score": "margin"},
        {"score": "margin", "n_outliers": 5},
    ],
    ids=lambda parameters: " ".join(map(str, parameters.values())),
)
def test_scores_of_samples(against, data, parameters):
    X, labels = data
    X = X[:, : X.shape[1] // 10]
    told = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
    ours = learner(SelectKBest, labels, X, k=K, **parameters)
    against(f"SelectKBest {told}, n=1,000 p=2,000 / np.sort", ours, lambda: np.sort(X, axis=0))


def test_learn_one_by_one(against):
    rows, y = stream(1000)
    against(
        f"SelectKBest learn_one, 1,000 features, {DISTINCT} rows / River SelectKBest(PearsonCorr)",
        learning(settled(SelectKBest(10), rows), rows, y),
        learning(feature_selection.SelectKBest(stats.PearsonCorr(), k=10), rows, y),
        bar=0.02,
        rounds=11,
    )
