"""Compare the scores of SelectKBest with those of peers, or with a sort of the same columns."""

import numpy as np
import pytest
import scipy.sparse
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
        {"score": "rank"},
        {"score": "rank", "per_class": True},
    ],
    ids=lambda parameters: " ".join(map(str, parameters.values())),
)
def test_scores_of_samples(against, data, parameters):
    X, labels = data
    X = X[:, : X.shape[1] // 10]
    options = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
    ours = learner(SelectKBest, labels, X, k=K, **parameters)
    against(f"SelectKBest {options}, n=1,000 p=2,000 / np.sort", ours, lambda: np.sort(X, axis=0))


@pytest.mark.parametrize("score", ["rank", "xi"])
def test_ranks_of_one_numeric_target(against, data, score):
    X, _ = data
    X = X[:, : X.shape[1] // 10]
    ours = learner(SelectKBest, np.random.default_rng(1).standard_normal(N), X, k=K, score=score)
    what = f"SelectKBest score={score!r}, one numeric target, n=1,000 p=2,000 / np.sort"
    against(what, ours, lambda: np.sort(X, axis=0))


@pytest.mark.parametrize("is_count", [True, False], ids=["counts", "logarithms"])
def test_markers_of_sparse_counts(against, size, is_count):
    """Compare each class with the rest, on sparse counts like those of single cells."""
    illico, anndata = pytest.importorskip("illico"), pytest.importorskip("anndata")
    pandas = pytest.importorskip("pandas")
    rng, n = np.random.default_rng(0), 5000
    X = scipy.sparse.random(
        *(n, size(2000)),
        density=0.1,
        format="csc",
        random_state=0,
        data_rvs=lambda m: rng.poisson(1, m),
    )
    X.data = X.data + 1.0 if is_count else np.log1p((X.data + 1.0) * rng.random(X.data.size))
    labels = np.array([f"class {i}" for i in rng.integers(0, CLASSES, n)])
    groups = pandas.DataFrame({"group": pandas.Categorical(labels)}, index=map(str, range(n)))
    cells = anndata.AnnData(X=scipy.sparse.csc_matrix(X), obs=groups)

    def peer():
        return illico.asymptotic_wilcoxon(
            cells, is_log1p=False, group_keys="group", use_continuity=False, tie_correct=True
        )

    ours = learner(SelectKBest, labels, X, k=K, score="rank", per_class=True)
    kind = "counts" if is_count else "logarithms"
    against(f"SelectKBest per_class=True, {CLASSES} classes, sparse {kind} / illico", ours, peer)
    model, theirs = SelectKBest("all", score="rank", per_class=True), peer()
    model.learn_target(labels)
    model.learn_columns(X)
    for label, markers in model.markers.items():
        expected = theirs.loc[label]["p_value"].to_numpy()[markers["name"].astype(int)]
        np.testing.assert_allclose(markers["p_value"], expected, rtol=1e-8)


def test_learn_one_by_one(against):
    rows, y = stream(1000)
    against(
        f"SelectKBest learn_one, 1,000 features, {DISTINCT} rows / River SelectKBest(PearsonCorr)",
        learning(settled(SelectKBest(10), rows), rows, y),
        learning(feature_selection.SelectKBest(stats.PearsonCorr(), k=10), rows, y),
        threshold=0.02,
        rounds=11,
    )
