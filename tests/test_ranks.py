"""Rank scores of SelectKBest equal the tests of SciPy, for any storage and blocks of columns."""

import copy
import itertools
import json
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats

from streamsel import SelectKBest, load, save
from streamsel.base.null import fdr_discoveries
from streamsel.cli.results import model_facts
from streamsel.reporting.html import render_html
from streamsel.reporting.sections import build_document
from tests.conformance.modes import bits
from tests.reference import select_k_best as reference

KINDS = {
    "floats": lambda rng, shape: rng.normal(size=shape),
    "counts": lambda rng, shape: rng.poisson(0.3, size=shape).astype(np.float64),
    "bytes": lambda rng, shape: rng.integers(-128, 128, size=shape).astype(np.int8),
    "genotypes": lambda rng, shape: rng.integers(0, 3, size=shape).astype(np.uint8),
    "few": lambda rng, shape: rng.normal(size=shape) * (rng.random(shape) < 0.2),
    "single": lambda rng, shape: rng.normal(size=shape).round(1).astype(np.float32),
    "tails": lambda rng, shape: np.exp(20.0 * rng.normal(size=shape)) * rng.choice([-1, 1], shape),
    "zeros": lambda rng, shape: rng.choice([-0.0, 0.0, -1e-60, 1e60], size=shape),
}
FORMS = {"dense": np.asfortranarray, "rows": np.ascontiguousarray, "sparse": sparse.csc_array}


def learnt(X, y, k="all", **params):
    model = SelectKBest(k, **params)
    model.learn_target(y)
    model.learn_columns(X)
    return model


def labels(rng, n, n_classes):
    return rng.permutation(np.arange(n) % n_classes).astype(str)


def split(x, y):
    return [x[y == label].astype(np.float64) for label in np.unique(y)]


cases = given(
    st.sampled_from(sorted(KINDS)),
    st.sampled_from(sorted(FORMS)),
    st.integers(8, 90),
    st.integers(0, 99),
)


@cases
def test_numeric_targets_use_spearman(kind, form, n, seed):
    rng = np.random.default_rng(seed)
    X, y = KINDS[kind](rng, (n, 6)), rng.integers(-5, 6, size=n) / 3.0
    model = learnt(FORMS[form](X), y, score="rank", target_type="numeric")
    for j, score in model.scores.items():
        expected = stats.spearmanr(X[:, j].astype(np.float64), y)
        assert score == pytest.approx(expected.statistic, abs=1e-12)
        if n > 60 and expected.pvalue > 0.01:
            # The p-value has a tail correction, which is small here.
            assert model.p_values[j] == pytest.approx(expected.pvalue, rel=0.1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n", [2, 5, 7, 11, 13])
def test_p_values_of_few_rows_are_those_of_all_permutations(form, n):
    rng = np.random.default_rng(n)
    X, y = rng.integers(0, 4, size=(n, 8)).astype(float), rng.integers(0, 3, size=n).astype(float)
    X[0], X[1], y[0], y[1], X[:, 5] = 0.0, 1.0, 0.0, 1.0, y
    if n < 10:
        X[:, 6], X[:, 7] = np.arange(n), rng.normal(size=n)
    model = learnt(FORMS[form](X), y, score="rank", target_type="numeric")
    for j, p_value in model.p_values.items():
        expected = reference.probability_of_rank_correlation(X[:, j], y)
        assert p_value == pytest.approx(expected, rel=1e-9)


def test_tails_of_rank_correlations_are_those_of_all_permutations():
    n = 12
    rng = np.random.default_rng(0)
    y, swaps = np.arange(float(n)), rng.permutation(np.repeat(np.arange(12), 5))
    X = np.repeat(y[:, None], 60, axis=1)
    for j, count in enumerate(swaps):
        for _ in range(count):
            a, b = rng.integers(0, n, size=2)
            X[[a, b], j] = X[[b, a], j]
    model = learnt(X, y, score="rank", target_type="numeric")
    tails = reference.tails_of_rank_correlations(n)
    for j, score in model.scores.items():
        expected = tails[round(abs(score) * (n**3 - n) / 6)]
        assert model.p_values[j] >= expected * 0.85
        assert model.p_values[j] <= expected * (1.1 if expected > 1e-6 else 10.0)
    assert min(model.p_values.values()) == pytest.approx(2.0 / math.factorial(n))


@pytest.mark.parametrize("n", [6, 8, 10, 15])
def test_few_rows_of_noise_are_no_discoveries(n):
    found = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        model = SelectKBest(fdr=0.05, score="rank", target_type="numeric")
        model.learn_target(rng.normal(size=n))
        model.learn_columns(rng.normal(size=(n, 1000)))
        found += bool(model.selected)
    assert found <= 3


@cases
def test_classes_use_kruskal_wallis(kind, form, n, seed):
    rng = np.random.default_rng(seed)
    X, y = KINDS[kind](rng, (n, 6)), labels(rng, n, 2 + seed % 4)
    model = learnt(FORMS[form](X), y, score="rank")
    for j, score in model.scores.items():
        expected = stats.kruskal(*split(X[:, j], y))
        # SciPy subtracts sums of squares, which loses digits of small statistics.
        assert score == pytest.approx(expected.statistic, abs=1e-9)
        assert model.p_values[j] == pytest.approx(expected.pvalue, rel=1e-7)


@cases
def test_one_class_against_the_rest_uses_mann_whitney(kind, form, n, seed):
    rng = np.random.default_rng(seed)
    X, y = KINDS[kind](rng, (n, 6)), labels(rng, n, 2 + seed % 4)
    model = learnt(FORMS[form](X), y, score="rank", per_class=True)
    for label, markers in model.markers.items():
        table = pd.DataFrame(markers)
        assert sorted(table["name"]) == sorted(model.selected)
        assert (np.diff(np.abs(table["z"])) <= 1e-12).all()
        for row in table.itertuples():
            inside, outside = X[y == label, row.name], X[y != label, row.name]
            expected = stats.mannwhitneyu(
                inside.astype(np.float64),
                outside.astype(np.float64),
                method="asymptotic",
                use_continuity=False,
            )
            assert row.p_value == pytest.approx(expected.pvalue, rel=1e-9)
            assert row.auc == pytest.approx(expected.statistic / (inside.size * outside.size))
            assert row.direction == ("higher" if row.z >= 0.0 else "lower")
        adjusted = stats.false_discovery_control(table["p_value"])
        np.testing.assert_allclose(table["p_adjusted"], adjusted)


@cases
def test_xi_equals_the_reference(kind, form, n, seed):
    rng = np.random.default_rng(seed)
    X = KINDS[kind](rng, (n, 4))
    y = labels(rng, n, 2) if seed % 3 == 0 else rng.normal(size=n).round(seed % 3)
    model = learnt(
        FORMS[form](X), y, score="xi", target_type="class" if seed % 3 == 0 else "numeric"
    )
    for j, score in model.scores.items():
        x = X[:, j].astype(np.float64)
        found, p_value = reference.xi_test(x, y)
        assert score == pytest.approx(found, abs=1e-12)
        assert model.p_values[j] == pytest.approx(p_value, rel=1e-9)
        if np.unique(x).size == n:
            numbers, is_distinct = np.unique(y, return_inverse=True)[1], np.unique(y).size == n
            peer = stats.chatterjeexi(x, numbers, y_continuous=is_distinct)
            assert score == pytest.approx(peer.statistic, abs=1e-12)
            assert p_value == pytest.approx(peer.pvalue if is_distinct else p_value, rel=1e-9)


@pytest.mark.parametrize("sick", [1, 2, 4])
def test_the_p_value_of_xi_is_that_of_all_orders_of_two_classes(sick):
    X = np.zeros((9, math.comb(9, sick)))
    for j, ranks in enumerate(itertools.combinations(range(9), sick)):
        X[:sick, j] = ranks
        X[sick:, j] = sorted({*range(9)} - {*ranks})
    model = learnt(X, np.arange(9) < sick, score="xi")
    scores = np.array([model.scores[j] for j in range(X.shape[1])])
    expected = [(scores >= score - 1e-9).mean() for score in scores]
    np.testing.assert_allclose([model.p_values[j] for j in range(X.shape[1])], expected)


@pytest.mark.slow
def test_xi_false_positives_are_few_with_unequal_classes():
    rng = np.random.default_rng(3)
    y = np.arange(400) < 20
    # With ties the null distribution is approximate.
    for X, share in (
        (rng.random((400, 20000)), 0.001),
        (rng.poisson(3.0, (400, 20000)), 0.004),
    ):
        p_values = [*learnt(X, y, score="xi").p_values.values()]
        assert np.mean(np.array(p_values) < 0.001) < share
    counts = rng.poisson(0.1, 400).astype(float)
    model = learnt(rng.random((400, 20000)), counts, score="xi", target_type="numeric")
    p_values = [*model.p_values.values()]
    assert np.mean(np.array(p_values) < 0.001) < 0.0025


@pytest.mark.parametrize(("sick", "codes"), [(20, ["rare_values"]), (120, [])])
def test_reports_warn_of_ranks_of_rare_values(sick, codes):
    """Reports warn if values are rare, where small p-values are too frequent."""
    model = SelectKBest(2, score="rank", target_type="numeric")
    model.learn_target((np.arange(300) < sick).astype(float))
    model.learn_columns(np.random.default_rng(0).normal(size=(300, 5)))
    assert [w.code for w in model.report().warnings if w.code == "rare_values"] == codes


@pytest.mark.parametrize(("sick", "codes"), [(20, ["unequal_classes"]), (200, [])])
def test_reports_warn_of_unequal_classes(sick, codes):
    X = np.random.default_rng(1).poisson(3.0, (400, 5))
    model = learnt(X, np.arange(400) < sick, score="xi")
    assert [w.code for w in model.report().warnings if w.code == "unequal_classes"] == codes


def test_rounding_errors_are_no_variance():
    X = np.array([[0.0], [1.0], [0.0], [1.0], [0.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = learnt(X, list("abbbb"), score="xi")
    assert 0.0 < model.p_values[0] <= 1.0


@pytest.mark.parametrize("score", ["rank", "xi", "mutual_info"])
@pytest.mark.parametrize("after_columns", [False, True])
def test_the_table_counts_the_rows_of_scores(score, after_columns):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(50, 3))
    y = X[:, 1] + rng.normal(size=50)
    model = SelectKBest(2, score=score, window_size=20)
    if after_columns:
        model.learn_target(y)
        model.learn_columns(X)
        model.learn_one({0: 1.0, 1: 2.0, 2: 0.5}, 1.0)
        assert model.statistics()["n"].tolist() == [50] * 3
    model.learn_many(pd.DataFrame(X), pd.Series(y))
    assert model.statistics()["n"].tolist() == [20] * 3


def test_window_errors_name_the_option():
    with pytest.raises(ValueError, match=r"Got: fading_factor=0\.1\."):
        SelectKBest(score="rank", fading_factor=0.1)
    model = SelectKBest(score="xi")
    with pytest.raises(ValueError, match=r"Got: covariates\."):
        model.learn_target(np.arange(9.0), covariates=np.arange(9.0)[:, None] ** 2)


SCORED = [
    {"score": "rank"},
    {"score": "xi"},
    {"score": "rank", "per_class": True},
]


@pytest.mark.parametrize("params", SCORED)
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_bits_do_not_depend_on_blocks_or_threads(params, form):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(700, 800)) * (rng.random((700, 800)) < 0.3)
    X[:, ::3] = rng.poisson(0.5, size=X[:, ::3].shape)
    y = labels(rng, 700, 2)
    X = FORMS[form](X)
    whole = bits(learnt(X, y, **params))
    assert bits(learnt(X, y, **params, n_jobs=3)) == whole
    model = SelectKBest("all", **params)
    model.learn_target(y)
    for start, stop in ((0, 1), (1, 7), (7, 300), (300, 800)):
        model.learn_columns(X[:, start:stop], range(start, stop))
    cut = bits(model)
    for key in whole:
        assert cut[key] == whole[key] or key.startswith("summary/"), key


@pytest.mark.parametrize("params", SCORED)
def test_the_order_of_rows_and_the_scale_of_columns_do_not_matter(params):
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(60, 10)).round(1), labels(rng, 60, 2)
    order = rng.permutation(60)
    model, other = learnt(X, y, **params), learnt(np.exp(X[order]), y[order], **params)
    assert other.selected == model.selected
    assert other.scores == pytest.approx(model.scores, abs=1e-12)
    assert other.p_values == pytest.approx(model.p_values)


@pytest.mark.parametrize("outlier", [1e3, 1e14, 1e18, 9.97e36])
@pytest.mark.parametrize("weights", [None, 1.0 + np.arange(60) % 2])
def test_the_size_of_an_outlier_does_not_matter(outlier, weights, tmp_path):
    rng = np.random.default_rng(8)
    y = np.append(rng.normal(size=59), outlier)
    X = rng.normal(size=(60, 3)) + np.outer(np.append(y[:-1], 2.0), [1.0, 0.5, 0.0])
    expected = reference.answer(X, stats.rankdata(y), k="all", score="mutual_info")
    for score in ("f",) if weights is not None else ("rank", "xi", "mutual_info", "f"):
        model, other = (SelectKBest("all", score=score) for _ in range(2))
        model.learn_target(y, weights=weights)
        other.learn_target(np.append(y[:-1], 50.0), weights=weights)
        save(model, tmp_path / "target.model")
        loaded = load(tmp_path / "target.model")
        for learner in model, other, loaded:
            learner.learn_columns(X)
        assert loaded.p_values == model.p_values
        assert model.p_values == pytest.approx(other.p_values, rel=1e-9)
        if score == "f":
            assert model.report().normal_scores
            continue
        for j, found in model.scores.items():
            peers = {
                "rank": stats.spearmanr(X[:, j], y).statistic,
                "xi": stats.chatterjeexi(X[:, j], y).statistic,
                "mutual_info": expected["scores"][j],
            }
            assert found == pytest.approx(peers[score], abs=1e-12)
        window = SelectKBest("all", score=score, window_size=60)
        window.learn_many(pd.DataFrame(X), pd.Series(y))
        assert window.scores == pytest.approx(model.scores, abs=1e-12)


def test_rank_sums_of_many_rows_are_exact():
    n = 400_000
    x = np.repeat([0.0, 1.0, 2.0], [n - 3, 2, 1])
    y = (np.arange(n) >= n // 2).astype(int)
    dense, stored = (
        learnt(form(x[:, None]), y, score="rank", target_type="class")
        for form in (np.asarray, sparse.csc_array)
    )
    assert dense.scores == stored.scores
    # Twice the mid-ranks minus their mean; all larger values are in the second class.
    squares = (n - 3) * 9 + 2 * (n - 4) ** 2 + (n - 1) ** 2
    between = 2 * (3 * (n // 2)) ** 2 / (n // 2)
    assert dense.scores[0] == pytest.approx((n - 1) * between / squares, rel=1e-14)


@pytest.mark.parametrize("n_classes", [0, 2, 5])
def test_false_positive_rate_equals_the_level(n_classes):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(200, 6000))
    X[:, ::2] = rng.poisson(0.8, size=(200, 3000))
    y = labels(rng, 200, n_classes) if n_classes else rng.normal(size=200)
    for score in ("rank", "xi") if n_classes < 5 else ("rank",):
        p_values = learnt(X, y, score=score).p_values
        for columns in (range(0, 6000, 2), range(1, 6000, 2)):
            found = np.array([p_values[j] for j in columns])
            assert 0.035 < np.mean(found < 0.05) < 0.065
            assert np.mean(found < 0.001) < 0.004


@pytest.mark.parametrize("x", [[0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 0, 1], [1, 1, 2, 2, 3, 3]])
@pytest.mark.parametrize("r", [[1, 2, 3, 4, 5, 6], [2, 2, 3, 6, 6, 6], [3, 3, 3, 6, 6, 6]])
def test_the_variance_of_xi_is_that_of_all_permutations(x, r):
    weights = reference.tie_weights(np.array(x))
    distances = np.abs(np.subtract.outer(r, r)).astype(float)
    sums = [
        (weights * distances[np.ix_(order, order)]).sum() / 2
        for order in itertools.permutations(range(6))
    ]
    found = reference.permutation_variance(weights, distances)
    assert found == pytest.approx(np.var(sums), rel=1e-10)


def test_xi_finds_nonmonotone_relations():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(300, 200))
    y = np.cos(4.0 * X[:, 31]) + 0.2 * rng.normal(size=300)
    assert learnt(X, y, 1, score="xi").selected == [31]
    assert learnt(X, y, 1, score="f").selected != [31]


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=40), st.sampled_from([0.05, 0.3]))
def test_discoveries_are_those_of_scipy(p_values, level):
    p = np.array(p_values)
    for method in ("bh", "by"):
        expected = stats.false_discovery_control(p, method=method)
        found = fdr_discoveries(p, p.size, level, method)
        clear = np.abs(expected - level) > 1e-9
        np.testing.assert_array_equal(found[clear], (expected <= level)[clear])


def test_markers_of_a_class_are_the_best_of_all_columns():
    rng = np.random.default_rng(9)
    X, y = rng.poisson(0.5, size=(150, 40)).astype(np.float64), labels(rng, 150, 3)
    X[y == "0", 4] += 2.0
    X[y == "1", 30] += 3.0
    X[y == "2", 11] = 0.0
    X[:, 17] = 1.0
    everything = learnt(X, y, score="rank", per_class=True).markers
    few = learnt(X, y, 3, score="rank", per_class=True)
    for label, table in few.markers.items():
        assert len(table["name"]) == 3
        first = {title: values[:3] for title, values in everything[label].items()}
        np.testing.assert_equal(table, first)
        assert len(everything[label]["name"]) == 39
    assert {4, 30, 11} <= {*few.selected[:3]}
    assert {*few.selected} == {name for table in few.markers.values() for name in table["name"]}
    firsts = {table["name"][0] for table in few.markers.values()}
    assert {*few.selected[: len(firsts)]} == firsts
    for method in ("bh", "by"):
        chosen = learnt(X, y, None, score="rank", per_class=True, fdr=0.05, fdr_method=method)
        for label, table in chosen.markers.items():
            p = everything[label]["p_value"]
            expected = stats.false_discovery_control(p, method=method) <= 0.05
            assert table["name"].tolist() == everything[label]["name"][expected].tolist()
    report = json.loads(json.dumps(few.report().as_dict(), default=str))
    assert len(report["markers"]) == 9
    assert report["markers"][0].keys() >= {"class", "name", "z", "auc", "p_adjusted"}


def test_reports_show_the_markers_of_each_class():
    rng = np.random.default_rng(11)
    X, y = rng.normal(size=(60, 12)), np.array(["T cell", "B <cell>"])[np.arange(60) % 2]
    X[y == "T cell", 3] += 3.0
    names = [f"gene {j}" for j in range(12)]
    model = SelectKBest(2, score="rank", per_class=True)
    model.learn_target(y)
    model.learn_columns(X, names)
    page = render_html(build_document(model.report(), {}))
    assert "Markers of T cell" in page
    assert "Markers of B &lt;cell&gt;" in page
    assert page.count("<td>higher</td>") == page.count("<td>lower</td>") == 2
    facts = dict(model_facts("model", model.report(), {}))
    assert facts["markers of T cell"].startswith("gene 3 (higher), gene ")
    assert facts["markers of B <cell>"].startswith("gene 3 (lower), gene ")
    assert "markers" not in facts


def test_markers_survive_files_copies_merges_and_windows(tmp_path):
    rng = np.random.default_rng(10)
    X, y = rng.normal(size=(90, 20)), labels(rng, 90, 3)
    X[y == "1", 15] += 2.0
    model = learnt(X, y, 2, score="rank", per_class=True, window_size=30)
    save(model, tmp_path / "model")
    half, rest = learnt(X[:, :9], y, 2, score="rank", per_class=True, window_size=30), None
    rest = SelectKBest(2, score="rank", per_class=True, window_size=30)
    rest.learn_target(y)
    rest.learn_columns(X[:, 9:], range(9, 20))
    half.merge(rest)
    for other in (load(tmp_path / "model"), copy.deepcopy(model), half):
        assert other.selected == model.selected
        for label, table in model.markers.items():
            np.testing.assert_equal(other.markers[label], table)
    later = load(tmp_path / "model")
    for x, label in zip(X[:60], y[:60], strict=True):
        later.learn_one(dict(enumerate(x)), label)
    expected = learnt(X[30:60], y[30:60], 2, score="rank", per_class=True)
    for label, table in expected.markers.items():
        assert later.markers[label]["name"].tolist() == table["name"].tolist()
        np.testing.assert_allclose(later.markers[label]["z"], table["z"])
    save(later, tmp_path / "later")


def test_unsupported_options_are_refused():
    X, y = np.eye(6), np.arange(6.0)
    with pytest.raises(ValueError, match="Expected score='rank' with per_class=True"):
        SelectKBest(per_class=True)
    with pytest.raises(ValueError, match="Expected max_candidates=None with per_class=True"):
        SelectKBest(score="rank", per_class=True, max_candidates=50)
    with pytest.raises(ValueError, match="Expected classes, as per_class=True requires"):
        learnt(X, y, score="rank", per_class=True, target_type="numeric")
    with pytest.raises(ValueError, match="one numeric target or two classes, as score='xi'"):
        learnt(X, y.astype(int) % 3, score="xi", target_type="class")
    for score in ("rank", "xi"):
        with pytest.raises(ValueError, match="Expected covariates=None"):
            SelectKBest(score=score, covariates=("age",))
        with pytest.raises(ValueError, match="Expected permutations=0"):
            SelectKBest(score=score, permutations=100)
        model = SelectKBest(score=score)
        with pytest.raises(ValueError, match="weights"):
            model.learn_target(y, weights=np.arange(1.0, 7.0))
        with pytest.raises(ValueError, match="no covariates"):
            model.learn_target(y, covariates=y**2)
    with pytest.raises(ValueError, match="fdr_method"):
        SelectKBest(fdr=0.1, fdr_method="holm")


def test_leukaemia_genes_equal_those_of_scipy(dataset):
    X, y, *_ = dataset("all_bcrabl")
    X = np.asarray(X, dtype=np.float64)
    model = learnt(X, y, 20, score="rank", target_type="class", fdr_method="by")
    found = stats.mannwhitneyu(
        *split(X, y), axis=0, method="asymptotic", use_continuity=False
    ).pvalue
    assert {*model.selected} == {*np.argsort(found, kind="stable")[:20].tolist()}
    expected = stats.false_discovery_control(found, method="by")
    passed = learnt(X, y, None, score="rank", target_type="class", fdr=0.2, fdr_method="by")
    assert {*passed.selected} == {*np.flatnonzero(expected <= 0.2).tolist()}
