"""SelectKBest(pairwise=True): columns with missing values, each on its observed rows."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats

import streamsel
from streamsel import SelectKBest
from streamsel.sklearn import SelectKBest as Estimator
from tests.reference import pairwise as reference

N, P = 90, 30


@pytest.fixture(scope="module")
def study():
    """Return columns with missing values (except one) and an offset; one column is relevant."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, P)) + 1e6
    y = rng.normal(size=N)
    X[:, 4] += 1.5 * y
    full = X[:, 7].copy()
    X[rng.random(X.shape) < 0.2] = np.nan
    X[:, 7] = full
    X[:-3, 9] = np.nan
    return X, y, rng.integers(0, 4, size=N)


def learnt(X, y, **params):
    model = SelectKBest(**({"k": "all", "pairwise": True} | params))
    model.learn_target(y)
    model.learn_columns(X)
    return model


def test_numeric_targets_agree_with_scipy_and_pandas(study):
    X, y, _ = study
    model = learnt(X, y)
    expected = pd.DataFrame(X).corrwith(pd.Series(y)).abs()
    for j, x in enumerate(X.T):
        seen = ~np.isnan(x)
        r, p = stats.pearsonr(x[seen], y[seen])
        assert model.relevance[j] == pytest.approx(abs(r), rel=1e-9) == expected[j]
        assert model.p_values[j] == pytest.approx(p, rel=1e-7)
    assert model.selected[0] == 4
    assert [*model.p_values.values()] == pytest.approx(sorted(model.p_values.values()))
    for score, power in (("t", 2.0), ("f", 1.0)):
        scores = learnt(X, y, score=score).scores
        for j, x in enumerate(X.T):
            F = reference.on_observed_rows(x, y[:, None])[1]
            assert scores[j] ** power == pytest.approx(F, rel=1e-7)
    assert learnt(X, y, score="correlation").scores == model.relevance


@pytest.mark.parametrize("n_classes", [2, 4])
def test_classes_agree_with_an_analysis_of_variance(study, n_classes):
    X, y = study[0], study[2] % n_classes
    model = learnt(X, y, target_type="class")
    for j, x in enumerate(X.T):
        seen = ~np.isnan(x)
        groups = [x[seen & (y == k)] for k in range(n_classes)]
        groups = [group for group in groups if group.size]
        if seen.sum() > len(groups) > 1:
            F, p = stats.f_oneway(*groups)
            assert model.scores[j] == pytest.approx(F, rel=1e-6)
            assert model.p_values[j] == pytest.approx(p, rel=1e-6)
        else:
            assert model.p_values[j] == 1.0


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(4, 30),
    c=st.integers(1, 3),
    share=st.sampled_from([0.0, 0.1, 0.6, 0.9]),
)
def test_columns_agree_with_the_reference(seed, n, c, share):
    rng = np.random.default_rng(seed)
    Y, X = rng.normal(size=(n, c)), rng.integers(0, 3, size=(n, 8)).astype(float)
    X[rng.random(X.shape) < share] = np.nan
    X = X[:, ~np.isnan(X).all(axis=0)]
    if not X.shape[1]:
        return
    model = learnt(X, Y, target_type="numeric", k=None, fdr=0.999)
    everything = learnt(X, Y, target_type="numeric")
    for j in everything.selected:
        R, _, p, n_seen, rank = reference.on_observed_rows(X[:, j], Y)
        if n_seen - 1 > rank:
            assert everything.relevance[j] == pytest.approx(R, rel=1e-6, abs=1e-7)
        assert everything.p_values[j] == pytest.approx(p, rel=1e-5, abs=1e-12)
    varying = {j for j in range(X.shape[1]) if np.nanmax(X[:, j]) > np.nanmin(X[:, j])}
    assert set(everything.selected) == varying
    assert set(model.selected) <= varying


def test_complete_columns_have_the_same_results(study):
    X, y, _ = study
    X = np.where(np.isnan(X), 1e6, X)
    plain, model = learnt(X, y, pairwise=False), learnt(X, y)
    assert (model.scores, model.relevance) == (plain.scores, plain.relevance)
    assert list(model.p_values.values()) == pytest.approx(list(plain.p_values.values()), rel=1e-12)
    assert model.noise_floor() == plain.noise_floor()


def test_the_report_compares_p_values_with_the_noise_floor(study):
    X, y, _ = study
    model = learnt(X, y)
    for row in model.report().results:
        assert row["above_noise"] == (row["p_value"] < 0.05 / P)
        assert row["relevance"] == model.relevance[row["name"]]
    # Three observed rows: a correlation near 1 is not significant.
    assert model.relevance[9] > 0.3
    assert not model.report().results[model.selected.index(9)]["above_noise"]


def test_bits_do_not_depend_on_blocks_or_formats(study):
    X, y, _ = study
    expected = learnt(X, y)
    stored = sparse.csc_matrix(np.where(np.isnan(X), -1.0, X))
    stored.data[stored.data == -1.0] = np.nan
    by_column = SelectKBest(k="all", pairwise=True)
    by_column.learn_target(y)
    for j in range(P):
        by_column.learn_column(j, X[:, j].copy())
    single = np.asfortranarray(X.astype(np.float32))
    assert learnt(single, y).scores == learnt(single.astype(np.float64), y).scores
    for model in (by_column, learnt(X, y, n_jobs=2)):
        assert (model.scores, model.p_values) == (expected.scores, expected.p_values)
    # Complete sparse columns are summed in another order.
    found = learnt(stored, y).scores
    assert {j: x for j, x in found.items() if j != 7} == {
        j: x for j, x in expected.scores.items() if j != 7
    }
    assert found[7] == pytest.approx(expected.scores[7], rel=1e-6)


def test_pools_files_merges_and_rollback(study, tmp_path):
    X, y, _ = study
    whole = learnt(X, y, k=5)
    pool = learnt(X, y, k=5, max_candidates=6)
    assert (pool.scores, pool.n_certified) == (whole.scores, 5)
    first, second = learnt(X[:, :20], y, k=5), SelectKBest(k=5, pairwise=True)
    second.learn_target(y)
    second.learn_columns(X[:, 20:], names=range(20, P))
    streamsel.save(first, tmp_path / "model")
    again = streamsel.load(tmp_path / "model")
    again.merge(second)
    assert (again.scores, again.p_values) == (whole.scores, whole.p_values)
    bad = X[:, :3].copy()
    bad[0, 2] = np.inf
    before = again.scores
    with pytest.raises(ValueError, match="Expected finite numbers in column"):
        again.learn_columns(bad, names=["a", "b", "c"])
    assert again.scores == before
    assert again.n_columns == P


@pytest.mark.parametrize("n_classes", [0, 2, 3])
@pytest.mark.parametrize("form", [np.asarray, sparse.csc_array])
def test_a_column_without_values_counts_as_constant(study, n_classes, form):
    X, y = study[0].copy(), study[2] % n_classes if n_classes else study[1]
    kind = "class" if n_classes else "numeric"
    expected = learnt(np.delete(X, [0, 5], axis=1), y, target_type=kind)
    X[:, [0, 5]] = np.nan
    model = learnt(form(X), y, target_type=kind)
    assert not {0, 5} & {*model.selected}
    assert model.n_columns == P
    assert model.n_constant == 2
    assert [*model.p_values.values()] == pytest.approx([*expected.p_values.values()], rel=1e-6)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([1.0, 2.0, np.nan, np.nan, np.nan, np.nan], [*"aabbab"]),
        ([1.0, 2.0, np.nan, np.nan, np.nan, np.nan], [0.1, 0.7, 1.0, 2.0, 3.0, 5.0]),
        ([1.0, 2.0, 4.0, np.nan, np.nan, np.nan], [*"aaabbb"]),
        ([1.0, 2.0, 4.0, np.nan, np.nan, np.nan], [1.5, 1.5, 1.5, 2.0, 3.0, 5.0]),
    ],
)
def test_without_a_test_there_is_no_effect(x, y):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = learnt(np.array(x)[:, None], y).statistics()
    assert np.isnan(table["effect"]).all()
    assert np.isnan(table["standard_error"]).all()
    assert table["p_value"].tolist() == [1.0]


def test_a_tiny_p_value_ranks_by_the_likelihood_ratio():
    rng, n = np.random.default_rng(1), 6000
    y = rng.normal(size=n)
    X = y[:, None] + np.array([0.9, 0.7, 0.5, 0.3]) * rng.normal(size=(n, 4))
    X[:60] = np.nan
    model = learnt(X, y)
    assert model.selected == [3, 2, 1, 0]
    assert set(model.p_values.values()) == {0.0}


def test_options_that_need_all_values_are_refused(study):
    X, y, _ = study
    for params, name in (
        ({"score": "mutual_info"}, "score"),
        ({"score": "rank"}, "score"),
        ({"target_type": "binary"}, "target_type"),
        ({"covariates": ("age",)}, "covariates"),
        ({"permutations": 10}, "permutations"),
    ):
        with pytest.raises(ValueError, match=f"Expected {name}.*with pairwise=True"):
            SelectKBest(pairwise=True, **params)
    model = SelectKBest(pairwise=True)
    with pytest.raises(ValueError, match="Expected no covariates with pairwise=True"):
        model.learn_target(y, covariates=X[:, 7])
    with pytest.raises(ValueError, match="Expected no weights"):
        model.learn_target(y, weights=np.arange(N))
    model.learn_target(y)
    model.learn_columns(X)
    for learn in (lambda: model.learn_one({0: 1.0}, 1.0), lambda: model.learn_many(X[:, :2], y)):
        with pytest.raises(ValueError, match="with pairwise=True, each on rows of its own"):
            learn()
    with pytest.raises(ValueError, match="Expected finite numbers"):
        learnt(X, y, pairwise=False)


def test_rows_count_a_missing_value_as_the_mean(study):
    X, y, _ = study
    models = [SelectKBest(k=3, pairwise=pairwise) for pairwise in (False, True)]
    for model in models:
        for x, value in zip(X, y.tolist(), strict=True):
            model.learn_one(dict(enumerate(x.tolist())), value)
    assert models[0].scores == models[1].scores


def test_the_estimator_takes_missing_values(study):
    X, y, _ = study
    found = Estimator(k=3, pairwise=True).fit(X, y)
    assert found.transform(X).shape == (N, 3)
    with pytest.raises(ValueError, match="NaN"):
        Estimator(k=3).fit(X, y)


def test_leukaemia_expression_equals_scipy(dataset):
    X, y, *_ = dataset("all_bcrabl")
    X = X[:, :2000].astype(np.float64)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    model = learnt(X, y, target_type="class")
    for j in range(0, 2000, 100):
        seen = ~np.isnan(X[:, j])
        found = stats.ttest_ind(X[seen & (y == 0), j], X[seen & (y == 1), j])
        assert model.scores[j] == pytest.approx(found.statistic**2, rel=1e-6)
        assert model.p_values[j] == pytest.approx(found.pvalue, rel=1e-6)
