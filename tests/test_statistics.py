"""Tables of statistics: slopes, standard errors and p-values of all columns of SelectKBest."""

import copy

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import streamsel
from streamsel import Relatedness, SelectKBest
from streamsel.stream import iter_array
from tests.reference import glm
from tests.reference import statistics as reference


def _data(n=60, p=8, d=0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + rng.normal(size=p)
    Z = rng.normal(size=(n, d))
    return X, X[:, 1] - 0.5 * X[:, 2] + Z.sum(axis=1) + rng.normal(size=n), Z


def _learnt(X, y, Z=None, model=None, **more):
    model = SelectKBest(3) if model is None else model
    model.learn_target(y, covariates=None if Z is None or not Z.size else Z, **more)
    model.learn_columns(X)
    return model


def _compare(table, expected):
    for title, values in zip(("effect", "standard_error", "p_value"), expected, strict=True):
        np.testing.assert_allclose(table[title], values, rtol=1e-9, atol=1e-14)


@given(
    n=st.integers(8, 60), d=st.integers(0, 3), seed=st.integers(0, 999),
    kind=st.sampled_from(["float", "small", "class"]), score=st.sampled_from(["f", "t"]),
)  # fmt: skip
def test_least_squares(n, d, seed, kind, score):
    X, y, Z = _data(n, 6, d, seed)
    if kind == "small":
        X = np.clip(np.round(X), -3, 3).astype(np.int8)
    X[:, 4] = 2  # constant: not in the table
    target, numbers = y, y
    if kind == "class":
        numbers = (y > np.median(y)).astype(float)
        target = np.where(numbers == 1.0, "sick", "ill")  # "sick" is coded 1
    model = _learnt(X, target, Z, SelectKBest(3, score=score, target_type="auto"))
    kept = [j for j in range(6) if np.ptp(X[:, j])]
    table = model.statistics()
    assert table["name"].tolist() == kept
    slope, error, p_value = reference.least_squares(X[:, kept].astype(float), numbers, Z)
    np.testing.assert_allclose(table["effect"], slope, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(table["standard_error"], error, rtol=1e-8, atol=1e-12)
    if model._normal_scores() is None:
        np.testing.assert_allclose(table["p_value"], p_value, rtol=1e-7, atol=1e-14)
    squared = table["score"] if score == "f" else table["score"] ** 2
    np.testing.assert_allclose(
        (table["effect"] / table["standard_error"]) ** 2, squared, rtol=1e-7, atol=1e-12
    )
    np.testing.assert_allclose(table["mean"], X[:, kept].mean(axis=0), atol=1e-12)
    assert set(table["n"].tolist()) == {n}


def test_statistics_equal_linregress():
    X, y, _ = _data()
    table = _learnt(X, y).statistics()
    for j in range(8):
        found = stats.linregress(X[:, j], y)
        assert table["effect"][j] == pytest.approx(found.slope, rel=1e-10)
        assert table["standard_error"][j] == pytest.approx(found.stderr, rel=1e-10)
        assert table["p_value"][j] == pytest.approx(found.pvalue, rel=1e-9)


# Products of subnormal numbers have too few digits for the comparison.
PROBABILITIES = st.floats(0.0, 1.0, allow_subnormal=False)


@given(p=st.lists(PROBABILITIES, min_size=1, max_size=30), more=st.integers(0, 20))
def test_adjusted_p_values(p, more):
    from streamsel.selection._statistics import fdr_adjusted

    p, m = np.array(p), len(p) + more
    bh, by = fdr_adjusted(p, m)
    np.testing.assert_allclose(bh, reference.adjusted(p, m), rtol=1e-12)
    np.testing.assert_allclose(by, reference.adjusted(p, m, dependent=True), rtol=1e-12)
    if not more:
        np.testing.assert_allclose(bh, stats.false_discovery_control(p, method="bh"), rtol=1e-12)
        np.testing.assert_allclose(by, stats.false_discovery_control(p, method="by"), rtol=1e-12)


def test_selected_statistics_are_rows_of_all():
    X, y, _ = _data()
    model = _learnt(X, y)
    everything, few = model.statistics(), model.statistics(columns="selected")
    assert few["name"].tolist() == model.selected
    rows = [everything["name"].tolist().index(name) for name in model.selected]
    for title, values in few.items():
        np.testing.assert_array_equal(values, everything[title][rows])
    assert dict(zip(few["name"], few["p_value"], strict=True)) == model.p_values
    assert dict(zip(few["name"], few["score"], strict=True)) == model.scores
    discoveries = _learnt(X, y, model=SelectKBest(fdr=0.05)).selected
    assert set(discoveries) == set(everything["name"][everything["p_bh"] <= 0.05].tolist())


def test_in_the_report():
    X, y, _ = _data()
    model = _learnt(X, y)
    few = model.statistics(columns="selected")
    for i, row in enumerate(model.report().results):
        for title in ("effect", "standard_error", "p_value", "score"):
            assert row[title] == few[title][i]


def test_permutations():
    X, y, _ = _data(p=30)
    model = _learnt(X, y, model=SelectKBest(3, permutations=99))
    table = model.statistics()
    adjusted = model.adjusted_p_values
    for name, value in zip(table["name"], table["p_adjusted"], strict=True):
        assert value == adjusted.get(name, value)
    assert "p_adjusted" not in _learnt(X, y).statistics()


@pytest.mark.parametrize("score", ["f", "mutual_info", "misclassification", "margin", "rank"])
def test_targets_without_slopes(score):
    X, y, _ = _data()
    classes = np.array(["a", "b", "c"])[np.digitize(y, np.quantile(y, [0.3, 0.7]))]
    model = _learnt(X, classes, model=SelectKBest(2, score=score))
    titles = ["name", "n", "mean", "score"]
    if score in ("f", "mutual_info", "rank"):
        titles += ["p_value", "p_bh", "p_by"]
    assert list(model.statistics()) == titles
    assert "effect" not in model.report().results[0]
    two = _learnt(X, np.column_stack([y, y**2]))
    assert "effect" not in two.statistics()


def test_weights_drop_and_merge():
    X, y, Z = _data(d=1)
    y[[3, 7]] = np.nan
    kept = np.isfinite(y)
    model = _learnt(X, y, Z, missing="drop")
    _compare(model.statistics(), reference.least_squares(X[kept], y[kept], Z[kept]))
    assert set(model.statistics()["n"].tolist()) == {58}
    first, second = (SelectKBest(3) for _ in range(2))
    for part, names in ((first, range(3)), (second, range(3, 8))):
        part.learn_target(y[kept], covariates=Z[kept])
        part.learn_columns(X[kept][:, list(names)], list(names))
    first.merge(second)
    merged = first.statistics()
    for title, values in model.statistics().items():
        np.testing.assert_array_equal(merged[title], values)
    # A weight of 2 is equivalent to a repeated row, except for the number of rows.
    twice = np.vstack([X[kept], X[kept]])
    weighted = _learnt(X[kept], y[kept], Z[kept], weights=np.full(58, 2.0)).statistics()
    repeated = _learnt(twice, np.tile(y[kept], 2), np.tile(Z[kept], (2, 1))).statistics()
    np.testing.assert_allclose(weighted["effect"], repeated["effect"], rtol=1e-10)
    np.testing.assert_allclose(
        weighted["standard_error"], model.statistics()["standard_error"], rtol=1e-10
    )


@pytest.mark.parametrize("labels", [None, ("b", "a"), (True, False), (2, 10)])
def test_rows(labels):
    X, y, Z = _data(d=1)
    numbers = y if labels is None else (y > np.median(y)).astype(float)
    target = y.tolist()
    if labels is not None:
        low, high = sorted(labels)
        target = [high if one else low for one in numbers]
    kind = "auto" if labels is None else "class"
    model = SelectKBest(3, covariates=("age",), target_type=kind)
    for row, age, value in zip(X, Z[:, 0], target, strict=True):
        model.learn_one({**dict(enumerate(row.tolist())), "age": float(age)}, value)
    table = model.statistics()
    _compare(table, reference.least_squares(X, numbers, Z))
    columns = _learnt(X[:30], np.array(target[:30]), Z[:30], SelectKBest(3, target_type=kind))
    assert list(columns.statistics()) == list(table)


def test_rows_after_columns_files_and_copies(tmp_path):
    X, y, _ = _data()
    model = _learnt(X[:40], y[:40])
    for row, value in zip(X[40:], y[40:], strict=True):
        model.learn_one(dict(enumerate(row.tolist())), float(value))
    _compare(model.statistics(), reference.least_squares(X, y))
    streamsel.save(model, tmp_path / "m")
    for other in (streamsel.load(tmp_path / "m"), copy.deepcopy(model)):
        for title, values in model.statistics().items():
            np.testing.assert_array_equal(other.statistics()[title], values)


@pytest.mark.parametrize("family", ["binary", "count"])
@pytest.mark.parametrize("d", [0, 2])
def test_score_tests_of_a_glm(family, d):
    """Effects of a GLM are one-step estimates U / V with standard error 1 / sqrt(V)."""
    X, y, Z = _data(d=d)
    y = (y > 0.5).astype(float) if family == "binary" else np.floor(np.exp(0.3 * y))
    Z = Z if d else None
    model = _learnt(X, y, Z, SelectKBest(3, target_type=family))
    table = model.statistics()
    mean = glm.null_means(family, y, Z)
    for j in range(8):
        g = glm.adjusted(family, X[:, j], mean, Z)
        score, variance = X[:, j] @ (y - mean), g @ (glm.VARIANCE[family](mean) * g)
        assert table["effect"][j] == pytest.approx(score / variance, rel=1e-6)
        assert table["standard_error"][j] == pytest.approx(variance**-0.5, rel=1e-6)
        assert table["score"][j] == pytest.approx(score**2 / variance, rel=1e-6)
    assert dict(zip(table["name"].tolist(), table["p_value"], strict=True)).items() >= set(
        model.p_values.items()
    )


@pytest.mark.parametrize("grouped", [False, True])
def test_generalised_least_squares(grouped):
    """Slopes given relatedness are those of generalised least squares, per group if grouped."""
    rng = np.random.default_rng(2)
    X, y, Z = _data(n=40, p=30, d=1)
    X[:, :] += rng.normal(size=(4, 30))[np.arange(40) // 10]
    groups = {j: j % 3 for j in range(30)} if grouped else None
    relatedness = Relatedness.from_columns(X, groups)
    model = _learnt(X, y, Z, SelectKBest(3, target_type="numeric"), relatedness=relatedness)
    table = model.statistics()
    ratios = {group: one.ratio for group, one in model.variance_components.items()}
    C = X - X.mean(axis=0)
    for j in range(30):
        others = [i for i in range(30) if not grouped or i % 3 != j % 3]
        K = C[:, others] @ C[:, others].T / len(others)
        values, vectors = np.linalg.eigh(ratios[j % 3 if grouped else None] * K + np.eye(40))
        T = vectors / np.sqrt(values)
        A, b = T.T @ np.column_stack([X[:, j], np.ones(40), Z]), T.T @ y
        slopes, (square,), *_ = np.linalg.lstsq(A, b, rcond=None)
        error = np.sqrt(square / (40 - 3) * np.linalg.inv(A.T @ A)[0, 0])
        assert table["effect"][j] == pytest.approx(slopes[0], rel=1e-6, abs=1e-9)
        assert table["standard_error"][j] == pytest.approx(error, rel=1e-6)
        p_value = 2 * stats.t.sf(abs(slopes[0] / error), 40 - 3)
        assert table["p_value"][j] == pytest.approx(p_value, rel=1e-5)


def test_a_bounded_pool():
    X, y, _ = _data(n=80, p=300)
    full = _learnt(X, y).statistics()
    model = _learnt(X, y, model=SelectKBest(3, max_candidates=20))
    table = model.statistics()
    rows = [full["name"].tolist().index(name) for name in table["name"]]
    assert 20 <= len(rows) < 300
    np.testing.assert_array_equal(table["p_value"], full["p_value"][rows])
    assert (table["p_bh"] >= full["p_bh"][rows] * (1 - 1e-12)).all()
    best = np.argmin(table["p_value"])
    assert table["p_bh"][best] == full["p_bh"][rows][best]


def test_metadata():
    X, y, _ = _data(p=4)
    X[:, 2] = 1.0
    model = _learnt(iter_array(X, ["d", "a", "b", "x"]), y)
    metadata = {
        "position": np.array([1, 2, 3, 4]),
        "name": ["a", "b", "c", "d"],
        "effect_allele": np.array(["A", "C", "G", "T"], dtype=object),
        "mean": np.zeros(4),
    }
    first = {"id": metadata["name"]} | {key: metadata[key] for key in metadata if key != "name"}
    frames = (make(metadata) for make in (pd.DataFrame, pl.DataFrame, pa.table))
    for given_ in (metadata, first, *frames):
        table = model.statistics(given_)
        assert list(table)[:6] == [
            "name", "position", "effect_allele", "effect_allele_frequency", "n", "mean"
        ]  # fmt: skip
        assert table["name"].tolist() == ["d", "a", "x"]
        assert table["position"].tolist() == [4, 1, None]
        assert table["effect_allele"].tolist() == ["T", "A", None]
        means = table["mean"]
        np.testing.assert_array_equal(table["effect_allele_frequency"][:2], means[:2] / 2)
        assert np.isnan(table["effect_allele_frequency"][2])
        np.testing.assert_allclose(means, X[:, [0, 1, 3]].mean(axis=0))
    assert list(model.statistics({})) == list(model.statistics())
    assert pd.DataFrame(model.statistics()).shape == (3, 9)


def test_names_that_are_tuples():
    X, y, _ = _data(p=3)
    names = [("chr1", 5), ("chr1", 9), "probe"]
    model = _learnt(iter_array(X, names), y)
    metadata = {"name": names[::-1], "position": [0, 9, 5]}
    assert model.statistics(metadata)["position"].tolist() == [5, 9, 0]


@pytest.mark.parametrize("kind", ["plain", "weights", "relatedness", "binary", "count"])
def test_allele_frequencies_are_those_of_the_rows(kind):
    """Allele frequencies are reported only if they equal half the means of the rows."""
    rng = np.random.default_rng(4)
    X = rng.integers(0, 3, size=(60, 5)).astype(np.int8)
    y = rng.normal(size=60)
    more, model = {}, SelectKBest(2)
    if kind == "weights":
        more["weights"] = rng.uniform(0.5, 2.0, 60)
    elif kind == "relatedness":
        more["relatedness"] = Relatedness.from_columns(rng.normal(size=(60, 80)))
    elif kind != "plain":
        more["covariates"] = rng.normal(size=60)
        y, model = rng.integers(0, 2, 60), SelectKBest(2, target_type=kind)
    model.learn_target(y, **more)
    model.learn_columns(X)
    table = model.statistics({"name": range(5), "effect_allele": ["A"] * 5})
    title = "effect_allele_frequency"
    assert (title in table) is (kind == "plain")
    if kind == "plain":
        np.testing.assert_allclose(table[title], X.mean(axis=0) / 2.0)


def test_statistics_before_learning():
    model = SelectKBest(3)
    assert {title: len(values) for title, values in model.statistics().items()} == {"name": 0}


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"columns": "best"}, ValueError, "'all', 'selected'"),
        ({"columns": None}, ValueError, "'all', 'selected'"),
        ({"metadata": [1, 2]}, TypeError, "mapping of arrays, or a frame. Got: list"),
        ({"metadata": pl.LazyFrame({"name": [1]})}, TypeError, "Got: a lazy polars"),
        ({"metadata": {"name": ["x"]}}, ValueError, "such as 0. Got: none of them"),
        ({"metadata": {"name": np.array([[], {}, 1, 2, 3], object)}}, TypeError, "hashable"),
        ({"metadata": {"name": 3}}, ValueError, "one-dimensional arrays. Got: 'name' of int"),
        ({"metadata": {"name": [1, 2], "x": [1]}}, ValueError, "equal length"),
        ({"metadata": {"name": [[1, 2]]}}, ValueError, "one-dimensional"),
    ],
)
def test_unsupported_statistics_are_refused(arguments, error, text):
    X, y, _ = _data()
    with pytest.raises(error, match=text):
        _learnt(X, y).statistics(**arguments)


def test_real_genotypes(dataset):
    X, y, *_ = dataset("mouse_hs1940")
    X = X[:, :200]
    model = _learnt(X, y, model=SelectKBest(5, target_type="numeric"))
    table = model.statistics()
    slope, error, p_value = reference.least_squares(X[:, table["name"].tolist()].astype(float), y)
    np.testing.assert_allclose(table["effect"], slope, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(table["standard_error"], error, rtol=1e-8)
    if model._normal_scores() is None:
        np.testing.assert_allclose(table["p_value"], p_value, rtol=1e-6)


@pytest.mark.parametrize("kind", ["numeric", "class"])
def test_columns_with_missing_values(kind):
    """Statistics of each column are those of its observed rows."""
    X, y, _ = _data(n=70)
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    X[:, 5] = np.arange(70.0) % 9  # complete
    numbers = y if kind == "numeric" else (y > 0.3).astype(float)
    target = y if kind == "numeric" else np.where(numbers == 1.0, "b", "a")
    model = _learnt(X, target, model=SelectKBest(3, pairwise=True))
    table = model.statistics()
    for j in range(8):
        kept = np.isfinite(X[:, j])
        expected = reference.least_squares(X[kept][:, [j]], numbers[kept])
        found = [table[title][j] for title in ("effect", "standard_error", "p_value")]
        np.testing.assert_allclose(found, np.ravel(expected), rtol=1e-8)
        assert table["n"][j] == kept.sum()
        assert table["mean"][j] == pytest.approx(X[kept, j].mean())


def test_rows_of_a_model_for_missing_values():
    X, y, _ = _data()
    model = SelectKBest(3, pairwise=True)
    for row, value in zip(X, y, strict=True):
        model.learn_one(dict(enumerate(row.tolist())), float(value))
    _compare(model.statistics(), reference.least_squares(X, y))
