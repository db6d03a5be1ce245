"""The reference implementations in the experiments with extractors are correct."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.decomposition import PCA
from sklearn.feature_selection import f_classif
from sklearn.preprocessing import scale

PAPERS = Path(__file__).parents[1] / "demos" / "papers"
MODULES = ("extractors_limits", "extractors_worth", "_extractors", "_problems", "sospca_errors")


@pytest.fixture
def extractors(monkeypatch):
    monkeypatch.syspath_prepend(str(PAPERS))
    import _extractors

    yield _extractors
    for name in (*MODULES, "_experiment"):
        sys.modules.pop(name, None)


@pytest.fixture
def worth(extractors):
    import extractors_worth

    return extractors_worth


@pytest.fixture
def problems(extractors):
    import _problems

    return _problems


def halves(X):
    A, B = X[::2], X[1::2]
    mean, deviation = A.mean(axis=0), A.std(axis=0)
    return (A - mean) / deviation, (B - mean) / deviation


@pytest.fixture
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return *halves(X), y[::2].astype(int)


@pytest.fixture
def wide():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5)) @ rng.standard_normal((5, 90)) + rng.standard_normal((60, 90))
    return *halves(X), np.arange(30) % 3


@pytest.mark.parametrize("data", ["cancer", "wide"])
def test_supervised_pca_is_pca_of_the_most_relevant(extractors, request, data):
    A, B, y = request.getfixturevalue(data)
    ranked = np.argsort(-f_classif(A, y)[0], kind="stable")
    U = extractors.basis(extractors.indicators(y))
    counts = [c for c in extractors.COUNTS if c < A.shape[1]] + [A.shape[1]]
    steps = list(extractors.pcas(A, U, B, 4))
    assert len(steps) == len(counts)
    for count, (Z, Zt) in zip(counts, steps, strict=True):
        pca = PCA(4).fit(A[:, ranked[:count]])
        expected = pca.transform(A[:, ranked[:count]])
        up = np.sign((Z * expected).sum(axis=0))
        np.testing.assert_allclose(Z * up, expected, atol=1e-8)
        np.testing.assert_allclose(Zt * up, pca.transform(B[:, ranked[:count]]), atol=1e-8)


def test_validation_finds_few_informative_columns(extractors):
    """Validation chooses three components if three of 300 columns determine the target."""
    rng = np.random.default_rng(1)
    A = scale(rng.standard_normal((100, 300)))
    y = A[:, :3].sum(axis=1)
    U = extractors.basis(extractors.indicators(y))
    ((q, (Z, _)),) = extractors.validated(extractors.pcas, A, U, A, [3], 0)
    few, _ = next(extractors.pcas(A, U, A, 3))
    assert q == 3
    np.testing.assert_array_equal(Z, few)


@pytest.mark.parametrize("data", ["cancer", "wide"])
def test_pls_of_the_axes_is_pls_of_the_columns(extractors, request, data):
    A, B, y = request.getfixturevalue(data)
    turned = extractors.axes(A, B)
    Z, Zt = extractors.pls(turned[0], y, turned[1], 4)
    targets = (y[:, None] == np.unique(y)).astype(float)
    reference = PLSRegression(4, scale=False, max_iter=5_000).fit(A, targets)
    up = np.sign((Z * reference.transform(A)).sum(axis=0))
    np.testing.assert_allclose(Z * up, reference.transform(A), atol=1e-4)
    np.testing.assert_allclose(Zt * up, reference.transform(B), atol=1e-4)


def test_treelets_rotate_the_most_correlated_pair_first(extractors, wide):
    A, _, _ = wide
    C = np.cov(A.T, bias=True)
    bases = list(extractors.tree(C, range(0, len(C), 8)))
    np.testing.assert_array_equal(bases[0], np.eye(len(C)))
    for vectors in bases:
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(len(C)), atol=1e-12)
    (first,) = extractors.tree(C, [1])
    correlation = np.triu(np.abs(np.corrcoef(A.T)), 1)
    i, j = np.argwhere(correlation == correlation.max())[0]
    rotated = first.T @ C @ first
    assert rotated[i, j] == pytest.approx(0.0, abs=1e-12)
    others = np.setdiff1d(np.arange(len(C)), [i, j])
    np.testing.assert_array_equal(first[:, others], np.eye(len(C))[:, others])


def test_treelets_find_groups(extractors):
    """Treelets recover groups of copies (theorem 1 of Lee, Nadler and Wasserman)."""
    groups = np.repeat(np.eye(3), 4, axis=0)
    C = groups @ np.diag([3.0, 2.0, 1.0]) @ groups.T + 1e-6 * np.eye(12)
    (vectors,) = extractors.tree(C, [9])
    variances = (vectors.T @ C @ vectors).diagonal()
    sums = vectors[:, np.argsort(-variances)[:3]]
    np.testing.assert_allclose(np.abs(sums), groups / 2.0, atol=1e-6)


def test_fewer_ridge_components_are_the_first_of_more(extractors):
    """Fewer ridge components are the first of more, up to a common scale."""
    X, y = load_wine(return_X_y=True)
    A, B = halves(X)
    y = y[::2].astype(int)
    for parameters in ({}, {"max_support": 11}):
        more, more_test = extractors.ridge(A, y, B, 10, **parameters)
        for q in (1, 2, 5):
            few, few_test = extractors.ridge(A, y, B, q, **parameters)
            scale = few[:, 0].std() / more[:, 0].std()
            np.testing.assert_allclose(few, scale * more[:, :q], atol=1e-8)
            np.testing.assert_allclose(few_test, scale * more_test[:, :q], atol=1e-8)


def test_measures_of_perfect_and_of_constant_components(worth):
    rng = np.random.default_rng(3)
    Z, y = rng.standard_normal((60, 2)), np.arange(60) % 2
    Z[:, 0] += 20.0 * y
    assert worth.measures(Z, y, Z, y) == {"LDA": 0.0, "1-NN": 0.0, "SVM": 0.0}
    void = np.zeros((60, 2))
    assert worth.measures(void, y, void, y) == {"LDA": 50.0, "1-NN": 50.0, "SVM": 50.0}
    number = Z @ [1.0, 2.0]
    assert worth.measures(Z, number, Z, number)["R2"] == pytest.approx(100.0)
    assert worth.measures(void, number, void, number)["R2"] == pytest.approx(0.0)
    labels = np.stack([y, 1 - y], axis=1).astype(float)
    assert worth.measures(Z, labels, Z, labels)["mAP"] == pytest.approx(100.0)


def test_components_are_scaled_by_default(worth):
    """Components are scaled by default: large noise does not hide a small informative component."""
    rng = np.random.default_rng(4)
    y = np.arange(60) % 2
    Z, Zt = rng.standard_normal((2, 60, 2)) + 20.0 * np.outer(y, [1.0, 0.0])
    loud = Z * [1.0, 1e4], y, Zt * [1.0, 1e4], y
    assert worth.measures(*loud)["1-NN"] == 0.0
    assert worth.measures(*loud, scaled=False)["1-NN"] > 20.0


def test_rows_at_equal_distance_vote(worth):
    """With k = 1, rows at equal distances vote: five of six identical rows decide."""
    Z, y = np.array([0.0] * 6 + [1.0] * 4)[:, None], np.array([1] + [0] * 5 + [1] * 4)
    predicted = dict(worth.predictions(Z, y, np.array([[0.1], [0.9]])))
    assert predicted["1-NN"].tolist() == [0, 1]


def test_comparisons_have_counts_and_are_bold_if_significant(worth):
    assert worth.compared(pd.Series([1.0] * 5 + [2.0] * 5)) == "**+1.5 ± 0.4** 10–0–0"
    assert worth.compared(pd.Series([1.0, -1.0, 0.0, 2.0, -2.0])).endswith(" 2–1–2")


def test_problems_are_split_and_standardised(problems):
    for problem in ("diabetes, squares", "factors of 2,000", "AR of 2,000", "copies of 2,000"):
        split = problems.split_of({}, problem, 0, 300)
        again = problems.split_of({}, problem, 0, 300)
        other = problems.split_of({}, problem, 1, 300)
        np.testing.assert_array_equal(split.B, again.B)
        assert not np.array_equal(split.y, other.y)
        np.testing.assert_allclose(split.A.mean(axis=0), 0.0, atol=1e-12)
        np.testing.assert_allclose(split.A.std(axis=0), 1.0)
        assert split.A.shape[1] == split.B.shape[1]


@pytest.mark.slow
def test_five_planted_columns_explain_four_fifths(problems):
    """Five planted columns explain four fifths of the variance; noise is the remaining fifth."""
    X, y = problems.planted("five of 2,000", 0, 5_000)
    correlations = np.array([np.corrcoef(x, y)[0, 1] for x in X.T])
    best = np.argsort(-correlations)[:5]
    assert (correlations[best] ** 2).sum() == pytest.approx(0.8, abs=0.05)
    assert np.abs(np.delete(correlations, best)).max() < 0.1
