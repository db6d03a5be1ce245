"""Every compiled score against its definition and other packages, and its invariants."""

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.stats
from hypothesis import example, given
from sklearn.feature_selection import f_classif, f_regression
from sklearn.metrics import mutual_info_score
from sklearn.metrics.cluster import contingency_matrix, expected_mutual_information

from streamsel._kernels import univariate
from streamsel._kernels.contingency import mutual_info
from streamsel._kernels.sorting import sort_columns
from streamsel._kernels.univariate import margin
from tests.reference import select_k_best as reference

BINNINGS = ["frequency", "width"]
ROWS = [2, 3, 7, 31, 60]


def rows(X):
    """Return columns in the form of kernels: one per row, read-only."""
    X = np.ascontiguousarray(np.atleast_2d(X), dtype=np.float64)
    X.flags.writeable = False
    return X


def columns(rng, n):
    """Return columns of all kinds, including those that defeat the sorter's shortcut."""
    small = rng.integers(0, 4, size=n)
    far = np.where(np.arange(n) % (n // 2 or 1) == 0, 0.0, 1e9 - np.arange(n))
    far[-1] = 0.0
    return rows(
        [
            rng.normal(size=n),
            np.round(rng.normal(size=n) * 3),
            np.arange(n) % 2,
            np.full(n, 0.3),
            small + 1e9,
            rng.normal(size=n) * 1e-3 - 1e9,
            rng.standard_cauchy(size=n) ** 3,
            np.where(np.arange(n) % 9 == 5, -9999.0, rng.normal(size=n)),
            rng.normal(size=n) * 1e-100,
            np.where(small == 0, -0.0, small - 0.0),
            far,
            -far[::-1],
        ]
    )


def in_order(X):
    """Return sorted columns and their original indices."""
    X = rows(X)
    values, order = np.full(X.shape, np.nan), np.full(X.shape, -1)
    sort_columns(X, values, order)
    return values, order


def cut(X, n_bins, binning="frequency"):
    """Return columns in bins."""
    bins = np.full(np.shape(X), -1)
    if binning == "width":
        univariate.bin_by_width(rows(X), n_bins, bins)
    else:
        univariate.bin_by_rank(*in_order(X), n_bins, bins)
    return bins


def misclassified(X, codes, n_classes):
    out = np.full(len(X), np.nan)
    univariate.misclassification(*in_order(X), codes, n_classes, out)
    return out


def margins(X, codes, n_classes, n_outliers=0):
    out = np.full(len(X), np.nan)
    margin(*in_order(X), codes, n_classes, n_outliers, out)
    return out


def informed(X, codes, n_codes, n_bins, binning="frequency"):
    """Return information minus its mean, the statistic, and degrees of freedom."""
    out, statistic, dof = np.full((3, len(X)), np.nan)
    mutual_info(cut(X, n_bins, binning), codes, n_bins, n_codes, out, statistic, dof)
    return out, statistic, dof


def p_value(statistic, dof):
    """Return the p-value as `_p_values` of the package does."""
    return statistic if dof == 1 else scipy.stats.chi2.sf(statistic, dof) if dof else 1.0


def binned(y, n_bins, binning="frequency"):
    """Return the non-empty bins of one target, and their number."""
    distinct, codes = np.unique(cut(y[None], n_bins, binning)[0], return_inverse=True)
    return codes, distinct.size


@pytest.mark.parametrize("n", [1, 2, 3, 50, 511, 512])
def test_all_columns_are_sorted(rng, n):
    X = columns(rng, n)
    for x, values, order in zip(X, *in_order(X), strict=True):
        np.testing.assert_array_equal(values, np.sort(x))
        np.testing.assert_array_equal(x[order], values)
        np.testing.assert_array_equal(np.sort(order), np.arange(n))


@pytest.mark.parametrize("n_classes", [1, 2, 3, 20])
@pytest.mark.parametrize("n", ROWS)
def test_misclassification_is_the_minimum_over_cuts(rng, n, n_classes):
    X, codes = columns(rng, n), rng.integers(0, n_classes, size=n)
    expected = [reference.misclassification(x, codes) for x in X]
    np.testing.assert_allclose(misclassified(X, codes, n_classes), expected, rtol=1e-15)


@pytest.mark.parametrize("n_outliers", [0, 1, 5, 40, 10**6])
@pytest.mark.parametrize("n_classes", [1, 2, 3, 20])
@pytest.mark.parametrize("n", ROWS)
def test_margin_equals_the_sum_over_pairs(rng, n, n_classes, n_outliers):
    X, codes = columns(rng, n), rng.integers(0, n_classes, size=n)
    expected = [reference.margin(x, codes, n_outliers) for x in X]
    np.testing.assert_allclose(margins(X, codes, n_classes, n_outliers), expected, rtol=1e-9)


def test_margin_of_every_rank(rng):
    X, codes = columns(rng, 12), np.arange(12) % 3
    for n_outliers in range(50):  # there are 48 pairs
        expected = [reference.margin(x, codes, n_outliers) for x in X]
        np.testing.assert_allclose(margins(X, codes, 3, n_outliers), expected, rtol=1e-9)


def test_margin_sums_keep_their_precision(rng):
    # Sums of squares about zero would lose all digits of the variance to an offset of 1e9.
    x = rng.integers(-8, 8, size=100) / 8
    codes = np.arange(100) % 2
    near = margins(rows(x), codes, 2, 3000)
    np.testing.assert_allclose(margins(rows(x + 1e9), codes, 2, 3000), near, rtol=1e-9)
    np.testing.assert_allclose(margins(rows(x * 2.0**400), codes, 2, 3000), near, rtol=1e-15)


@pytest.mark.parametrize("binning", BINNINGS)
@pytest.mark.parametrize("n_bins", [2, 3, 10])
@pytest.mark.parametrize("n_codes", [1, 2, 3, 20])
@pytest.mark.parametrize("n", ROWS)
def test_mutual_info_equals_that_of_the_table(rng, n, n_codes, n_bins, binning):
    X, codes = columns(rng, n), rng.integers(0, n_codes, size=n)
    score, statistic, dof = informed(X, codes, n_codes, n_bins, binning)
    for j, x in enumerate(X):
        bins = reference.bins(x, n_bins, binning)
        assert dof[j] == reference.degrees_of_freedom(bins, codes)
        mean = expected_mutual_information(contingency_matrix(bins, codes, sparse=True), n)
        assert score[j] == pytest.approx(mutual_info_score(bins, codes) - mean, abs=1e-12)
        expected = reference.mutual_info(bins, codes) - reference.mean_mutual_info(bins, codes)
        assert score[j] == pytest.approx(expected, abs=1e-12)
        expected = reference.chance_of_mutual_info(bins, codes)
        assert p_value(statistic[j], dof[j]) == pytest.approx(expected, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("binning", BINNINGS)
@pytest.mark.parametrize("n_bins", [2, 3, 10])
@pytest.mark.parametrize("n", ROWS)
def test_bin_codes_number_the_non_empty_bins(rng, n, n_bins, binning):
    for y in columns(rng, n):
        codes, n_codes = binned(y, n_bins, binning)
        assert codes.tolist() == reference.target_codes(y, "numeric", n_bins, binning)
        assert n_codes == len(set(codes.tolist())) == codes.max() + 1


def test_bits_do_not_depend_on_position(rng):
    X, codes = columns(rng, 60), np.arange(60) % 3
    for score in (misclassified, margins, lambda *given: np.array(informed(*given, 10)).T):
        whole = score(X, codes, 3)
        for j in range(len(X)):
            np.testing.assert_array_equal(score(X[j : j + 1], codes, 3)[0], whole[j])


# Few distinct values, so that ties are frequent, and few classes, some of them empty.
samples = st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 3)), min_size=2, max_size=30)


@st.composite
def increasing(draw):
    """Return a strictly increasing function of the integers from -9 to 9."""
    steps = draw(st.lists(st.floats(1e-3, 1e6), min_size=19, max_size=19))
    images = np.cumsum(steps) - draw(st.floats(-1e6, 1e6))
    return lambda x: images[x.astype(int) + 9]


@given(samples, increasing())
def test_cuts_and_quantile_bins_depend_on_ranks_only(data, function):
    x, codes = np.array(data).T
    both = rows([x, function(x)])
    one, other = misclassified(both, codes, 4)
    assert one == other
    for found in informed(both, codes, 4, 5):
        assert found[0] == found[1]
    np.testing.assert_array_equal(binned(both[0], 5)[0], binned(both[1], 5)[0])


@given(samples, st.integers(-40, 40), st.integers(-1000, 1000), st.integers(0, 9))
def test_margin_ignores_scale_and_offset(data, exponent, shift, n_outliers):
    x, codes = np.array(data).T
    one, other, mirrored = margins(rows([x, (x + shift) * 2.0**exponent, -x]), codes, 4, n_outliers)
    assert other == pytest.approx(one, rel=1e-10)
    assert mirrored == pytest.approx(one, rel=1e-10)


@example([(0, 0), (-1, 0), (-7, 1)], 0)  # two equal numbers, rounded differently
@given(samples, st.integers(0, 9))
def test_scores_stay_in_their_range(data, n_outliers):
    x, codes = np.array(data).T
    X = rows(x)
    n, most = len(x), np.bincount(codes).max()
    error = misclassified(X, codes, 4)[0]
    # At best, the two sides have the two largest classes.
    two = np.sort(np.bincount(codes, minlength=2))[-2:].sum()
    assert (n - two) / n <= error <= (n - most) / n
    near, far = margins(X, codes, 4, n_outliers)[0], margins(X, codes, 4, n_outliers + 1)[0]
    assert 0.0 <= near <= far <= (np.ptp(x) / x.std() * (1.0 + 1e-15) if np.ptp(x) else 0.0)
    for binning in BINNINGS:
        (score,), (statistic,), (dof,) = informed(X, codes, 4, 5, binning)
        n_codes, n_bins = len(set(codes)), len(set(reference.bins(x, 5, binning)))
        assert dof == (n_codes - 1) * (n_bins - 1)
        assert -dof <= score <= min(np.log(n_codes), np.log(n_bins)) + 1e-12
        assert 0.0 <= p_value(statistic, dof) <= 1.0 + 1e-15


@given(st.lists(st.integers(-9, 9), min_size=2, max_size=40), st.integers(2, 12))
def test_bins_of_equal_frequency(values, n_bins):
    x = np.array(values, dtype=float)
    codes, n_codes = binned(x, n_bins)
    distinct = len(set(values))
    assert min(distinct, 2) <= n_codes <= min(distinct, n_bins)
    order = np.argsort(x)
    assert (np.diff(codes[order]) >= 0).all()
    assert all(len(set(codes[x == v])) == 1 for v in values)
    shares = np.bincount(binned(np.arange(len(x)), n_bins)[0])
    assert np.ptp(shares) <= 1


def test_reference_f_equals_scikit_learn(rng):
    X, y = rng.normal(size=(40, 6)), rng.integers(0, 3, size=40)
    X[:, 2] += y
    F, p = f_classif(X, y)
    found = reference.answer(X, y, target_type="class", k=3)
    np.testing.assert_allclose([*found["scores"].values()], F, rtol=1e-9)
    np.testing.assert_allclose([*found["p_values"].values()], p, rtol=1e-9)
    assert found["selected"] == np.argsort(-F)[:3].tolist()
    F, p = f_regression(X, y)
    found = reference.answer(X, y, k=3)
    np.testing.assert_allclose([*found["scores"].values()], F, rtol=1e-9)
    np.testing.assert_allclose([*found["p_values"].values()], p, rtol=1e-9)
    # These two targets have the same span as the indicators of three classes.
    both = reference.answer(X, np.column_stack([y == 0, y == 1]).astype(float))
    by_class = reference.answer(X, y, target_type="class")
    assert both["selected"] == by_class["selected"]
    assert both["scores"] == pytest.approx(by_class["scores"], rel=1e-9)
    of_relevance = reference.answer(X, y, target_type="class", score="correlation")
    assert of_relevance["p_values"] == by_class["p_values"]
    for j, r in of_relevance["scores"].items():
        assert r**2 / (1 - r**2) * 37 / 2 == pytest.approx(by_class["scores"][j], rel=1e-9)


def test_reference_t_equals_scipy(rng):
    X, y = rng.normal(size=(30, 5)), np.array(["no", "yes", "no"] * 10)
    test = scipy.stats.ttest_ind(X[y == "no"], X[y == "yes"])
    found = reference.answer(X, y, score="t")
    np.testing.assert_allclose([*found["scores"].values()], np.abs(test.statistic), rtol=1e-9)
    np.testing.assert_allclose([*found["p_values"].values()], test.pvalue, rtol=1e-9)
    F = reference.answer(X, y, score="f")["scores"]
    assert {j: t**2 for j, t in found["scores"].items()} == pytest.approx(F, rel=1e-9)
    y = rng.normal(size=30)
    test = scipy.stats.linregress(X[:, 3], y)
    found = reference.answer(X, y, score="t")
    assert found["scores"][3] == pytest.approx(abs(test.slope / test.stderr), rel=1e-9)
    assert found["p_values"][3] == pytest.approx(test.pvalue, rel=1e-9)


@pytest.mark.parametrize("score", ["f", "mutual_info"])
@pytest.mark.parametrize("q", [0.01, 0.2, 0.9])
def test_reference_false_discovery_control_equals_scipy(rng, score, q):
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 30)) + np.outer(y, rng.choice([0, 0, 1, 2], size=30))
    X[:, 4], X[:, 9] = 7.0, X[:, 2]
    found = reference.answer(X, y, fdr=q, score=score, n_bins=4, target_type="class")
    p = found["p_values"]
    adjusted = scipy.stats.false_discovery_control([*p.values()])
    expected = [j for j, a in zip(p, adjusted, strict=True) if a <= q]
    assert sorted(found["selected"]) == expected
    assert 4 not in p
    assert expected == sorted(expected)
    scores = [found["scores"][j] for j in found["selected"]]
    assert scores == pytest.approx(sorted(scores, reverse=True))


@pytest.mark.parametrize("score", ["correlation", "f", "t", "misclassification", "margin"])
def test_reference_ranks_ties_by_arrival(rng, score):
    y = np.arange(20) % 2
    X = rng.normal(size=(20, 6))
    X[:, 1], X[:, 3], X[:, 5] = 3.0 * y + 0.1, 5.0, 2.0 - y
    found = reference.answer(X, y, k=9, score=score, target_type="class")
    assert found["selected"][:2] == [1, 5]
    assert sorted(found["selected"]) == [0, 1, 2, 4, 5]
    assert sorted(found["scores"]) == [0, 1, 2, 4, 5]


@pytest.mark.parametrize("binning", BINNINGS)
def test_kernel_scores_equal_the_reference(rng, binning):
    X, y = columns(rng, 60).T, rng.integers(0, 3, size=60)
    given = {"target_type": "class", "n_outliers": 2, "n_bins": 6, "binning": binning}
    score, statistic, dof = informed(X.T, y, 3, reference.bins_of_columns(y.tolist(), 6), binning)
    found = reference.answer(X, y, score="mutual_info", **given)
    p = {j: p_value(statistic[j], dof[j]) for j in found["p_values"]}
    assert p == pytest.approx(found["p_values"], rel=1e-9)
    assert {j: score[j] for j in found["scores"]} == pytest.approx(found["scores"], abs=1e-12)
    for score, scores in (
        ("misclassification", misclassified(X.T, y, 3)),
        ("margin", margins(X.T, y, 3, 2)),
    ):
        found = reference.answer(X, y, score=score, **given)
        assert found["p_values"] == {}
        assert {j: scores[j] for j in found["scores"]} == pytest.approx(found["scores"], rel=1e-9)
