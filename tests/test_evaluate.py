"""Stability, alignment, canonical correlations, clusters and classes, each against its formula."""

import math
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB

from streamsel import SOSPCA, ProjSe, evaluate
from tests.reference import evaluate as reference

SEEDS = st.integers(0, 10_000)


def selections_of(Z):
    return [np.flatnonzero(row).tolist() for row in Z]


# Stability of selections


def test_stability_by_hand():
    # d = 10, k̄ = 2, p = 1, 2/3, 1/3: mean s² = 3/2 (2/9 + 2/9) / 10 = 1/15, k̄/d (1 - k̄/d) = 4/25,
    # so Φ = 1 - 25/60 = 7/12. Without one of the selections it is 3/8, 3/8 and 1: about their mean
    # the squares sum to 25/96, and the jackknife takes 2/3 of this.
    found = evaluate.selection_stability([["a", "b"], ["b", "a"], ["a", "c"]], 10)
    assert found.value == pytest.approx(7 / 12)
    margin = 4.302652729911275 * math.sqrt(2 / 3 * 25 / 96) / (1 - (7 / 12) ** 2)
    ends = [math.tanh(math.atanh(7 / 12) - margin), math.tanh(math.atanh(7 / 12) + margin)]
    assert found[1:] == pytest.approx(ends)
    narrow = evaluate.selection_stability([["a", "b"], ["b", "a"], ["a", "c"]], 10, level=0.5)
    assert found.low < narrow.low < narrow.value < narrow.high < found.high


@given(SEEDS, st.integers(2, 8), st.integers(2, 12), st.sampled_from([0.5, 0.9, 0.95]))
def test_stability_equals_its_formula(seed, M, d, level):
    rng = np.random.default_rng(seed)
    Z = rng.random((M, d)) < rng.random(d)
    Z[0, 0], Z[1, 0] = True, False
    found = evaluate.selection_stability(selections_of(Z), d, level=level)
    assert found.value == pytest.approx(reference.selection_stability(Z), abs=1e-12)
    assert found[1:] == pytest.approx(reference.stability_interval(Z, level), abs=1e-9)
    assert -1.0 <= found.low <= found.value <= found.high <= 1.0


@given(st.lists(st.sets(st.integers(0, 30), min_size=1), min_size=2, max_size=6), st.randoms())
def test_stability_ignores_order_and_names(selections, random):
    plain = evaluate.selection_stability(selections, 40)
    mixed = [[f"name {j}" for j in selection] for selection in selections]
    for selection in mixed:
        random.shuffle(selection)
    random.shuffle(mixed)
    assert evaluate.selection_stability(iter(mixed), 40) == pytest.approx(plain, abs=1e-12)


@given(st.sets(st.integers(0, 30), min_size=1), st.integers(2, 9))
def test_equal_selections_have_stability_one(selection, M):
    found = evaluate.selection_stability([selection] * M, 31 + 9)
    assert (found.value, found.high) == (1.0, 1.0)
    Z = np.isin(np.arange(40), list(selection)) * np.ones((M, 1))
    assert found.low == pytest.approx(reference.stability_interval(Z)[0])
    more = evaluate.selection_stability([selection] * (M + 1), 31 + 9)
    assert found.low < more.low < 1.0


@pytest.mark.parametrize("k", [1, 10, 45])
def test_random_selections_have_stability_zero(rng, k):
    found = [
        evaluate.selection_stability([rng.choice(50, k, replace=False) for _ in range(5)], 50).value
        for _ in range(300)
    ]
    assert abs(np.mean(found)) < 4 * np.std(found) / math.sqrt(len(found))


@pytest.mark.parametrize("M", [5, 20])
@pytest.mark.parametrize(
    "p", [[0.95, 0.9, 0.7, 0.5, 0.3] + [0.05] * 15, [0.97] * 8 + [0.02] * 22, [0.995] * 3 + [0.001]]
)
def test_intervals_have_their_stated_coverage(rng, M, p):
    """Intervals contain the true stability at the stated level (the paper's: 18 to 92 % here)."""
    p = np.array(p)
    share = p.mean()
    truth = 1 - np.mean(p * (1 - p)) / (share * (1 - share))
    covered = []
    while len(covered) < 400:
        Z = rng.random((M, p.size)) < p
        if Z.any() and not Z.all():
            _, low, high = evaluate.selection_stability(selections_of(Z), p.size)
            covered.append(low <= truth <= high)
    assert np.mean(covered) >= 0.92


@pytest.mark.parametrize(
    ("selections", "d", "error", "match"),
    [
        ([["a"]], 5, ValueError, "at least 2 selections. Got: 1"),
        ([["a"], ["b", "b"]], 5, ValueError, "selection 1. Got: 'b' more than once"),
        ([[True, False, False], [True, False, False]], 3, ValueError, "flatnonzero"),
        ([["a", "b"], ["c"]], 2, ValueError, "at most n_variables=2 different names. Got: 3"),
        ([[], []], 5, ValueError, "none of the 5"),
        ([["a", "b"], ["b", "a"]], 2, ValueError, "all of the 2"),
        (["ab", "ac"], 5, TypeError, "iterable of names as selection 0. Got: 'ab'"),
        ([ProjSe(), ProjSe()], 5, TypeError, "selected"),
        ([[["a"]], [["b"]]], 5, TypeError, "hashable names in selection 0"),
        ([["a"], ["b"]], 0, ValueError, "Expected n_variables of"),
        ([["a"], ["b"]], None, ValueError, "Expected n_variables of"),
    ],
)
def test_invalid_selections_are_refused(selections, d, error, match):
    with pytest.raises(error, match=match):
        evaluate.selection_stability(selections, d)


@pytest.mark.parametrize("level", [0.0, 1.0, "0.95"])
def test_levels(level):
    with pytest.raises(ValueError, match="Expected level of"):
        evaluate.selection_stability([["a"], ["b"]], 5, level=level)


# Stability of importances


def test_importances_by_hand():
    # Four values with mean 3/8: deviations are (5, 1, -3, -3)/8 and (1, 5, -3, -3)/8; squares sum
    # to 44/64, products to 28/64, and 28/44 = 7/11. With (0, 0, 1, 0) = (-1, -1, 3, -1)/4: its
    # product with either is -12/32, its norm √12/4, hence -12/32 / (√44/8 · √12/4) = -3/√33.
    first, second, third = {"a": 1.0, "b": 0.5}, {"b": 1.0, "a": 0.5}, {"c": 0.1}
    assert evaluate.importance_stability([first, second], 4) == pytest.approx(7 / 11)
    assert evaluate.importance_stability([first, second, third], 4) == pytest.approx(
        (7 / 11 - 6 / math.sqrt(33)) / 3
    )


@given(SEEDS, st.integers(2, 6), st.integers(3, 12))
def test_importances_are_correlated_pair_by_pair(seed, M, d):
    rng = np.random.default_rng(seed)
    W = rng.random((M, d)) * (rng.random((M, d)) < 0.5)
    W[:, 0], W[:, 1] = 0.0, 1.0  # so that none is constant
    expected = reference.importance_stability(W)
    mappings = [{f"v{j}": row[j] for j in rng.permutation(d) if row[j]} for row in W]
    assert evaluate.importance_stability(mappings, d) == pytest.approx(expected, abs=1e-12)
    assert evaluate.importance_stability(W, None) == pytest.approx(expected, abs=1e-12)
    assert evaluate.importance_stability(W.tolist(), d) == pytest.approx(expected, abs=1e-12)
    moved = [
        pd.Series(row).to_dict() for row in 1e9 + W * np.ldexp(1.0, rng.integers(5, size=(M, 1)))
    ]
    assert evaluate.importance_stability(moved, d) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("scale", [1e-300, 1e150, 1e300])
def test_importances_of_any_scale_and_many_variables(scale):
    first, second = {"a": 0.75, "b": 0.5}, {"b": 0.25, "c": 1.0}
    W = np.zeros((2, 100_000))
    W[0, :2], W[1, 1:3] = list(first.values()), list(second.values())
    expected = reference.importance_stability(W)
    scaled = {name: scale * value for name, value in second.items()}
    assert evaluate.importance_stability([first, scaled], 100_000) == pytest.approx(expected)
    W[1] *= scale
    assert evaluate.importance_stability(W[:, :50], 50) == pytest.approx(
        reference.importance_stability(W[:, :50] / [[1.0], [scale]])
    )
    assert evaluate.importance_stability([first] * 3, 10**9) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("importances", "d", "error", "match"),
    [
        ([{"a": 1.0}], 5, ValueError, "at least 2 resamples. Got: 1"),
        (np.ones((1, 5)), None, ValueError, "at least 2 rows"),
        ([], 5, ValueError, "at least 2 rows"),
        ([{"a": 1.0}, {}], 5, ValueError, "all equal in importances 1"),
        ([{"a": 0.1, "b": 0.1}, {"a": 1.0}], 2, ValueError, "all equal in importances 0"),
        ([[1.0, 2.0], [0.3, 0.3]], 2, ValueError, "all equal in importances 1"),
        ([{"a": 1.0}, {"b": 1.0, "c": 1.0}], 2, ValueError, "at most n_variables=2"),
        ([{"a": 1.0}, {"b": math.nan}], 5, ValueError, "Got: nan for 'b' in importances 1"),
        ([{"a": 1.0}, {"b": "1.0"}], 5, TypeError, "real numbers as importances 1"),
        ([{"a": 1.0}, [0.0, 1.0]], 2, TypeError, "both in one list"),
        ([{"a": 1.0}, {"b": 1.0}], None, ValueError, "Expected n_variables of"),
        (np.eye(3), 4, ValueError, "n_variables=4 columns. Got: 3"),
        ([[1.0, math.inf], [0.0, 1.0]], 2, ValueError, "Got: inf in row 0, column 1"),
    ],
)
def test_invalid_importances_are_refused(importances, d, error, match):
    with pytest.raises(error, match=match):
        evaluate.importance_stability(importances, d)


# Alignment


def test_alignment_by_hand():
    # About their means, (1, 2, 3) is (-1, 0, 1) and (1, 2, 4) is (-4, -1, 5)/3: products sum to 3,
    # squares to 2 and 14/3. The alignment of kernels of one variable is 3² / (2 · 14/3) = 27/28.
    x, y = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 4.0])
    assert evaluate.linear_alignment(x, y) == pytest.approx(27 / 28)
    assert evaluate.kernel_alignment(np.outer(x, x), np.outer(y, y)) == pytest.approx(27 / 28)


@given(SEEDS, st.integers(2, 9), st.integers(1, 12), st.integers(1, 12))
def test_alignment_equals_its_formula(seed, n, p, c):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(n, p)), rng.normal(size=(n, c))
    expected = reference.kernel_alignment(X @ X.T, Y @ Y.T)
    assert evaluate.kernel_alignment(X @ X.T, Y @ Y.T) == pytest.approx(expected, abs=1e-12)
    assert evaluate.linear_alignment(X, Y) == pytest.approx(expected, abs=1e-12)
    K, L = np.exp(-np.abs(X[:, :1] - X[:, 0])), rng.normal(size=(n, n))
    expected = reference.kernel_alignment(K, L + L.T)
    assert evaluate.kernel_alignment(K, L + L.T) == pytest.approx(expected, abs=1e-12)


@given(SEEDS, st.sampled_from([1e-150, -3.0, 1e150]), st.sampled_from([0.0, 1e9]))
def test_alignment_with_itself_is_one_and_scales_do_not_matter(seed, scale, offset):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(8, 3)), rng.normal(size=(8, 2))
    rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    moved = scale * (X @ rotation + offset)
    assert evaluate.linear_alignment(X, X) == pytest.approx(1.0, abs=1e-12)
    assert evaluate.linear_alignment(X, moved) == pytest.approx(1.0, abs=1e-6)
    assert evaluate.linear_alignment(moved, Y) == pytest.approx(
        evaluate.linear_alignment(X, Y), abs=1e-6
    )
    K, L = X @ X.T, Y @ Y.T
    expected = evaluate.kernel_alignment(K, L)
    assert evaluate.kernel_alignment(K, abs(scale) * (K + offset)) == pytest.approx(1.0, abs=1e-6)
    assert evaluate.kernel_alignment(abs(scale) * (K + offset), L) == pytest.approx(
        expected, abs=1e-6
    )
    order = rng.permutation(8)
    assert evaluate.kernel_alignment(K[order][:, order], L[order][:, order]) == pytest.approx(
        expected
    )


def test_alignment_is_dominated_by_the_largest_scale(rng):
    X, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    apart = X * [1e-200, 1e200] + [0.0, 1e200]
    assert evaluate.linear_alignment(apart, y) == pytest.approx(
        evaluate.linear_alignment(X[:, 1], y), abs=1e-12
    )
    alongside = np.column_stack([X[:, 0] * 1e-200, np.full(20, 1e200)])
    assert evaluate.linear_alignment(alongside, y) == pytest.approx(
        evaluate.linear_alignment(X[:, 0], y), abs=1e-12
    )


@pytest.mark.parametrize(
    ("K", "L", "match"),
    [
        (np.eye(3), np.eye(4), r"Got: shapes \(3, 3\) and \(4, 4\)"),
        (np.ones((3, 2)), np.eye(3), r"K of shape \(n, n\). Got: \(3, 2\)"),
        (np.eye(3), np.arange(3.0), r"L of shape \(n, n\). Got: \(3, 1\)"),
        (np.eye(3), np.full((3, 3), 0.1), "as L. Got: one that is 0"),
        (np.add.outer(np.arange(3), np.arange(3)), np.eye(3), "as K. Got: one that is 0"),
        (np.eye(3), np.diag([1.0, np.nan, 1.0]), "L. Got: nan in row 1, column 1"),
    ],
)
def test_invalid_kernels_are_refused(K, L, match):
    with pytest.raises(ValueError, match=match):
        evaluate.kernel_alignment(K, L)


# Random probes

NAMES = st.one_of(st.integers(), st.text(max_size=3), st.tuples(st.text(max_size=3)))
PROBES = st.integers(0, 99).map(lambda i: ("probe", i))


@given(st.lists(st.one_of(NAMES, PROBES), max_size=20), st.integers(1, 5))
def test_selected_before_probes_is_its_definition(selected, most):
    probes = [i for i, name in enumerate(selected) if isinstance(name, tuple) and len(name) == 2]
    end = probes[most - 1] if len(probes) >= most else len(selected)
    expected = [name for i, name in enumerate(selected[:end]) if i not in probes]
    assert evaluate.selected_before_probes(iter(selected), most) == expected


def test_names_that_are_not_probes():
    names = ["probe", ("probe",), ("probe", "a"), ("probe", 1.0), ("probe", 1, 2), ("a", 1), 1]
    assert evaluate.selected_before_probes(names) == names


@pytest.mark.parametrize("most", [0, -1, 1.5, None])
def test_at_least_one_probe_ends_the_list(most):
    with pytest.raises(ValueError, match=r"Expected n_probes of selected_before_probes .* Got"):
        evaluate.selected_before_probes(["a"], most)


# Canonical correlations

H1, H2, H3 = np.array([[1, 1, -1, -1], [1, -1, 1, -1], [1, -1, -1, 1]])


def test_canonical_correlations_by_hand():
    # H1, H2, H3 are centred and orthogonal: the cosine of H1 and 3 H1 + 4 H3 is 3/5, H2 is in both.
    A = np.column_stack([H1, H1 + 2 * H2])
    B = np.column_stack([3 * H1 + 4 * H3, H2]) + 7
    np.testing.assert_allclose(evaluate.canonical_correlations(A, B), [1.0, 0.6], atol=1e-14)
    np.testing.assert_allclose(evaluate.canonical_correlations(H1, B), [0.6], atol=1e-14)
    np.testing.assert_allclose(evaluate.canonical_correlations(H1, H2), [0.0], atol=1e-14)


@given(SEEDS, st.integers(1, 4), st.integers(1, 4))
def test_canonical_correlations_solve_the_eigenproblem(seed, p, q):
    rng = np.random.default_rng(seed)
    causes = rng.normal(size=(30, 2))
    A = causes @ rng.normal(size=(2, p)) + rng.normal(size=(30, p))
    B = causes @ rng.normal(size=(2, q)) + rng.normal(size=(30, q))
    np.testing.assert_allclose(
        evaluate.canonical_correlations(A, B), reference.canonical_correlations(A, B), atol=1e-10
    )


@given(SEEDS, st.integers(1, 5))
def test_canonical_correlations_depend_on_spans_only(seed, p):
    """Canonical correlations depend on spans only, not on mixing, scales, offsets or constants."""
    rng = np.random.default_rng(seed)
    A = rng.integers(-9, 9, size=(25, p)).astype(float)
    B = rng.integers(-9, 9, size=(25, 3)) + A[:, :1]
    expected = evaluate.canonical_correlations(A, B)
    assert (np.diff(expected) <= 0).all()
    assert (expected >= 0).all()
    assert (expected <= 1).all()
    mixing = np.tril(rng.integers(1, 4, size=(p, p))) * 10.0 ** rng.integers(-3, 3, size=p)
    other = np.hstack(
        [A @ mixing, A * 1e150, A[:, ::-1] * 1e-150 + 0.0, A + 1e9, np.full((25, 1), 0.1)]
    )
    found = evaluate.canonical_correlations(other, B)
    np.testing.assert_allclose(found, expected, atol=1e-8)
    np.testing.assert_allclose(evaluate.canonical_correlations(B, A), expected, atol=1e-12)


def test_rounding_of_large_offsets_adds_no_direction(rng):
    x = rng.normal(size=(200, 1))
    A = np.hstack([x + 1e9, 3 * x + 1e9])  # dependent, up to rounding of 1e-7
    assert evaluate.canonical_correlations(A, rng.normal(size=(200, 2))).shape == (1,)


def test_spans_that_must_meet(rng):
    A, B = rng.normal(size=(6, 4)), rng.normal(size=(6, 9))
    np.testing.assert_allclose(evaluate.canonical_correlations(A, B), np.ones(4), atol=1e-12)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_frames_and_series(rng, library):
    A, B = rng.normal(size=(20, 2)), rng.normal(size=(20, 1))
    frame = library({"a": A[:, 0], "b": A[:, 1]})
    np.testing.assert_allclose(
        evaluate.canonical_correlations(frame, frame["b"]),
        evaluate.canonical_correlations(A, A[:, 1]),
    )
    assert evaluate.linear_alignment(B[:, 0].tolist(), frame) == pytest.approx(
        evaluate.linear_alignment(B, A)
    )
    importances = library({"a": [0.75, 0.0], "b": [0.5, 0.25], "c": [0, 1]})
    assert evaluate.importance_stability(importances, None) == pytest.approx(
        evaluate.importance_stability([{"a": 0.75, "b": 0.5}, {"b": 0.25, "c": 1.0}], 3)
    )


@pytest.mark.parametrize("measure", [evaluate.canonical_correlations, evaluate.linear_alignment])
@pytest.mark.parametrize(
    ("bad", "error", "match"),
    [
        (np.zeros((4, 2)), ValueError, "varies in (B|Y). Got: 2 constant ones"),
        (np.full(4, 0.1), ValueError, "varies in (B|Y). Got: 1 constant ones"),
        ([1.0, 2.0, 3.0], ValueError, "Got: 4 and 3"),
        ([1.0, np.nan, 3.0, 4.0], ValueError, "(B|Y). Got: nan in row 1, column 0"),
        (np.ma.masked_equal([1.0, 2.0, 3.0, 4.0], 2.0), ValueError, "Got: nan in row 1"),
        (pl.DataFrame({"a": [1.0, 2.0, 3.0, None]}), ValueError, "Got: nan in row 3"),
        (np.zeros((4, 2, 2)), ValueError, r"Got: shape \(4, 2, 2\)"),
        (np.zeros((4, 0)), ValueError, r"Got: shape \(4, 0\)"),
        (5.0, ValueError, r"Got: shape \(\)"),
        (["a", "b", "c", "d"], TypeError, "real numbers as (B|Y)"),
        (np.array([1j, 2, 3, 4]), TypeError, "Got: values of type complex128"),
        (scipy.sparse.csr_array(np.eye(4)), TypeError, "a sparse matrix"),
        (pl.DataFrame({"a": [1.0, 2.0, 3.0, 4.0]}).lazy(), TypeError, "collect"),
    ],
    ids=range(13),
)
def test_invalid_variables_are_refused(measure, bad, error, match):
    with pytest.raises(error, match=match):
        measure(np.arange(4.0), bad)


# Clusters


def test_clusters_by_hand():
    # The clusters are {0, 0.1} and {5, 5.1}. H(clusters) = ln 2, H(labels) = 2 ln 2 - 3/4 ln 3,
    # and their mutual information is 1/4 ln 2 + 1/4 ln 2/3 + 1/2 ln 4/3 = 3/2 ln 2 - 3/4 ln 3.
    ln2, ln3 = math.log(2), math.log(3)
    expected = (1.5 * ln2 - 0.75 * ln3) / ((ln2 + 2 * ln2 - 0.75 * ln3) / 2)
    found = evaluate.clustering_nmi([0.0, 0.1, 5.0, 5.1], ["a", "b", "b", "b"], n_restarts=3)
    assert found == pytest.approx([expected] * 3)


def test_clusters_are_reproducible_by_seed(rng):
    X, labels = rng.random((200, 2)), rng.integers(5, size=200)
    found = evaluate.clustering_nmi(X, labels, n_restarts=4)
    assert len(set(found)) > 1
    np.testing.assert_array_equal(
        found[1:], evaluate.clustering_nmi(pd.DataFrame(X), pl.Series(labels), n_restarts=3, seed=1)
    )


@pytest.mark.parametrize(
    ("labels", "match"),
    [
        (["a", "b", "b"], "each of 4 rows, .* Got: 3 labels of 2 classes"),
        (["a"] * 4, "4 labels of 1 classes"),
        (["a", None, "b", "b"], "missing|None"),
    ],
)
def test_labels_of_wrong_length_are_refused(labels, match):
    with pytest.raises(ValueError, match=match):
        evaluate.clustering_nmi([0.0, 0.1, 5.0, 5.1], labels)


def test_number_of_restarts_is_checked():
    with pytest.raises(ValueError, match="Expected n_restarts of"):
        evaluate.clustering_nmi([0.0, 1.0], ["a", "b"], n_restarts=0)


# Classes


class Spy:
    """Learner that accepts all data and records them."""

    def __init__(self, log=None):
        self.log = [] if log is None else log

    def clone(self):
        self.log.append({})
        return Spy(self.log)

    def learn_target(self, y):
        self.log[-1]["y"] = y

    def learn_columns(self, X):
        self.log[-1]["learnt"] = X[:, 0].tolist()

    def transform_many(self, X):
        self.log[-1].setdefault("transformed", []).append(X[:, 0].tolist())
        return X


def test_learners_do_not_see_test_rows():
    X = np.arange(20.0)[:, None]
    y = np.array(["a"] * 12 + ["b"] * 8)
    spy = Spy()
    majority = DummyClassifier(strategy="most_frequent")
    # Each of 4 folds has 3 of 12 and 2 of 8 rows: the majority class is right in 3 of 5.
    found = evaluate.cross_validated_accuracy(spy, majority, X, y, n_folds=4)
    assert found.tolist() == [0.6] * 4
    tested = []
    for fold in spy.log:
        train, test = fold["transformed"]
        assert fold["learnt"] == train
        assert fold["y"].tolist() == ["a" if row < 12 else "b" for row in train]
        assert sorted(train + test) == list(range(20))
        tested += test
    assert sorted(tested) == list(range(20))


@pytest.fixture(name="task")
def classification():
    rng = np.random.default_rng(7)
    y = np.repeat(["a", "b", "c"], 20)
    X = rng.normal(size=(60, 8)).round(1)
    X[:, 3] += y == "b"
    X[:, 5] += 2 * (y == "c")
    return X, y


def test_all_features_equal_the_classifier_alone(task):
    X, y = task
    folds = StratifiedKFold(5, shuffle=True, random_state=3)
    np.testing.assert_allclose(
        evaluate.cross_validated_accuracy(ProjSe(k=8), GaussianNB(), X, y, n_folds=5, seed=3),
        cross_val_score(GaussianNB(), X, y, cv=folds),
    )


NAMES = [f"v{j}" for j in range(8)]


@pytest.mark.parametrize(
    "form",
    [
        lambda X: pd.DataFrame(X, columns=NAMES, index=np.arange(60) % 7),
        lambda X: pl.DataFrame(X, schema=NAMES),
        scipy.sparse.csr_array,
        scipy.sparse.csc_matrix,
        np.asfortranarray,
    ],
    ids=["pandas", "polars", "csr", "csc", "fortran"],
)
@pytest.mark.parametrize("learner", [ProjSe(k=2), SOSPCA(n_components=2)], ids=["ProjSe", "SOSPCA"])
def test_observations_of_every_form(task, form, learner):
    X, y = task
    expected = evaluate.cross_validated_accuracy(learner, GaussianNB(), X, y, n_folds=3)
    found = evaluate.cross_validated_accuracy(learner, GaussianNB(), form(X), y, n_folds=3)
    np.testing.assert_allclose(found, expected)
    assert learner.n_columns == 0


@pytest.mark.parametrize(
    "form", [list, pd.Series, pl.Series, lambda y: pd.Series(y, dtype="category")]
)
def test_classes_of_every_form(task, form):
    X, y = task
    np.testing.assert_array_equal(
        evaluate.cross_validated_accuracy(ProjSe(k=2), GaussianNB(), X, form(y), n_folds=3),
        evaluate.cross_validated_accuracy(ProjSe(k=2), GaussianNB(), X, y, n_folds=3),
    )


def test_noise_is_not_predicted_without_selection_bias(rng):
    X, y = rng.normal(size=(60, 1_000)), np.repeat(["a", "b"], 30)
    model = ProjSe(k=5)
    model.learn_target(y)
    model.learn_columns(X)
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    cheated = cross_val_score(GaussianNB(), model.transform_many(X), y, cv=folds).mean()
    honest = evaluate.cross_validated_accuracy(ProjSe(k=5), GaussianNB(), X, y).mean()
    assert cheated > 0.75
    assert 0.3 < honest < 0.7


def test_learners_without_features(task):
    _, y = task
    with pytest.raises(ValueError, match="Got: none from ProjSe in fold 0"):
        evaluate.cross_validated_accuracy(ProjSe(), GaussianNB(), np.ones((60, 3)), y)


@pytest.mark.parametrize(
    ("X", "y", "error", "match"),
    [
        (np.eye(4), ["a", "b"], ValueError, r"shape \(4,\), .* Got: shape \(2,\)"),
        (iter([("a", [1.0, 2.0])]), ["a", "b"], TypeError, "Got: list_iterator"),
        (np.arange(4.0), ["a", "b"] * 2, TypeError, "Got: ndarray"),
        (np.eye(4), ["a", "b", "b", "b"], ValueError, "n_splits"),
    ],
)
def test_invalid_cross_validation_is_refused(X, y, error, match):
    with pytest.raises(error, match=match):
        evaluate.cross_validated_accuracy(ProjSe(), GaussianNB(), X, y, n_folds=4)


def test_missing_scikit_learn_is_reported(monkeypatch):
    for module in ("sklearn", "sklearn.base", "sklearn.cluster"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r'pip install "streamsel\[evaluate\]"'):
        evaluate.clustering_nmi([0.0, 1.0], ["a", "b"])
    with pytest.raises(ImportError, match=r'pip install "streamsel\[evaluate\]"'):
        evaluate.cross_validated_accuracy(ProjSe(), None, np.eye(2), ["a", "b"])


# On data


def test_results_of_learners_are_valid_for_measures(dataset, rng):
    X, y, _, _ = dataset("sonar")
    labels = np.array(["rock", "mine"])[y]
    n, d = X.shape
    models = []
    for _ in range(8):
        rows = rng.choice(n, n // 2, replace=False)
        models.append(ProjSe(k=6))
        models[-1].learn_target(labels[rows])
        models[-1].learn_columns(X[rows])
    Z = np.array([np.isin(np.arange(d), model.selected) for model in models])
    W = np.array([[model.relevance.get(j, 0.0) for j in range(d)] for model in models])
    found = evaluate.selection_stability([model.selected for model in models], d)
    assert found.value == pytest.approx(reference.selection_stability(Z))
    assert found[1:] == pytest.approx(reference.stability_interval(Z))
    assert 0.0 < found.value < found.high < 1.0
    assert evaluate.importance_stability([model.relevance for model in models], d) == pytest.approx(
        reference.importance_stability(W)
    )

    chosen, indicator = models[0].transform_many(X), (y == 1).astype(float)
    # With a single indicator the canonical correlation is the multiple correlation R.
    design = np.column_stack([np.ones(n), chosen])
    fit = design @ np.linalg.lstsq(design, indicator, rcond=None)[0]
    assert evaluate.canonical_correlations(chosen, indicator) == pytest.approx(
        [np.std(fit) / np.std(indicator)]
    )
    assert evaluate.linear_alignment(chosen, indicator) == pytest.approx(
        reference.kernel_alignment(chosen @ chosen.T, np.outer(indicator, indicator))
    )
    accuracy = evaluate.cross_validated_accuracy(ProjSe(k=6), GaussianNB(), X, labels, n_folds=5)
    assert accuracy.mean() > 0.6
    assert (evaluate.clustering_nmi(chosen, labels, n_restarts=2) < 0.5).all()


# ------------------------------------------------------------- frequent mistakes in arguments


def test_series_are_compared_by_name_not_by_position():
    maps = [{"a": 1.0, "b": 0.2}, {"b": 0.3, "a": 0.9, "c": 0.1}]
    series = [pd.Series(each) for each in maps]
    assert evaluate.importance_stability(series, 5) == evaluate.importance_stability(maps, 5)
    assert evaluate.importance_stability(
        [s[::-1] for s in series], 5
    ) == evaluate.importance_stability(maps, 5)


@pytest.mark.parametrize("learner", [ProjSe, "ProjSe", None])
def test_a_learner_is_required(learner):
    with pytest.raises(TypeError, match=r"Expected learner: .* such as ProjSe\(k=10\)"):
        evaluate.cross_validated_accuracy(learner, None, np.eye(4), [0, 1, 0, 1])


def test_labels_are_refused_as_measurements():
    with pytest.raises(ValueError, match="of 4 classes"):
        evaluate.clustering_nmi(np.eye(4), [0.1, 0.2, 0.3, 0.4])
