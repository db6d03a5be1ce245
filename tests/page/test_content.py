"""Contents of the HTML report: directions, redundancy, histograms, and the CSV download."""

import csv
import json
import re
import subprocess
import sys
from dataclasses import replace
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamsel
from streamsel import plot
from streamsel.evaluate import subsample_stability
from streamsel.reporting.csv_export import csv_uri, results_csv
from streamsel.reporting.histograms import (
    groups_of,
    histograms_of,
    values_of_data,
    values_of_model,
)
from streamsel.reporting.sections import _with_redundancy
from tests.page.reading import HOSTILE, read

ROOT = Path(__file__).parents[2]
N, P = 90, 40


def columns(n_classes, seed=0):
    rng = np.random.default_rng(seed)
    y = np.array([f"class {k}" for k in rng.permutation(N) ** 2 // N % n_classes])
    X = rng.normal(size=(N, P))
    X[:, :5] += 1.5 * (y[:, None] == "class 1")
    return X, y


def learnt(learner, X, y, names=None, **given):
    learner.learn_target(y, **given)
    learner.learn_columns(X, names)
    return learner


def titles(page):
    """Return the tooltips of the small histograms."""
    return re.findall(r'<path class="l\d"[^>]*><title>([^<]*)</title>', page)


HEADINGS = [
    "Warnings",
    "Selected variables",
    "Relevance of all columns",
    "Q–Q plot against noise",
    "Selection path",
    "Correlation of selected variables",
    "Selection stability",
    "Excluded columns",
    "Reproduce",
    "Glossary",
]


@pytest.fixture(scope="module")
def model():
    return learnt(streamsel.MRMR(k=6), *columns(2))


@pytest.fixture(scope="module")
def stability():
    X, y = columns(2)
    return subsample_stability(streamsel.MRMR(k=6), X, y, n_subsamples=5)


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("show", [streamsel.report, plot.heatmap])
def test_correlations_need_two_rows(model, show, n):
    X, _ = columns(2)
    with pytest.raises(
        ValueError, match=rf"at least 2 rows of data, for correlations\. Got: {n}\."
    ):
        show(model, X[:n])


def test_a_constant_column_has_no_correlation():
    X, y = columns(2)
    names = [f"v{j}" for j in range(P)]
    model = learnt(streamsel.SelectKBest(k=3), X, y, names)
    a, b, c = model.selected
    X = pd.DataFrame(X, columns=names).assign(**{b: 1.0})
    texts = re.findall(r"<title>(\w+, \w+: [^<]*)</title>", streamsel.report(model, X))
    assert {f"{a}, {a}: 1.00", f"{a}, {b}: undefined", f"{b}, {b}: undefined"} <= {*texts}
    assert "nan" not in "".join(texts)
    values = values_of_data(model.report(), X, None, 50)
    stated = _with_redundancy(replace(model.report(), redundancy=None), values).redundancy
    assert stated.keys() == {a, c}


def test_headings_and_their_order(model, stability):
    X, y = columns(2)
    metadata = {"warnings": [{"code": "x", "text": "beware"}]}
    page = streamsel.report(model, X, y=y, stability=stability, metadata=metadata)
    assert re.findall("<h2>(.*?)</h2>", page) == HEADINGS


@pytest.mark.slow
def test_the_headline_has_the_stability_in_every_format(model, stability):
    sentence = (
        f"Selections on 45 of 90 rows have a stability of {stability.index.value:.2f} "
        f"({stability.rating})."
    )
    page = streamsel.report(model, stability=stability)
    assert sentence in re.search("<h1>(.*?)</h1>", page)[1]
    assert f"<dt>stability</dt><dd>{stability.index.value:.2f}</dd>" in page
    assert sentence in streamsel.report(model, stability=stability, format="md").splitlines()[0]
    report = json.loads(streamsel.report(model, stability=stability, format="json"))
    assert report["summary"].endswith(sentence)
    assert "stability" not in streamsel.report(model)


@pytest.mark.parametrize(
    ("n_classes", "expected"),
    [(2, r"2 classes: class 0 \(\d+ rows\), class 1 \(\d+ rows\)"), (20, "20 classes, .* each")],
)
def test_target_is_described_with_class_sizes(n_classes, expected):
    X, y = columns(n_classes)
    page = streamsel.report(learnt(streamsel.SelectKBest(3), X, y))
    assert re.search(f'<p class="target">Target: {expected}', page)
    seen = read(page).text
    if n_classes > 12:
        sizes = [rf"{label} {n}" for label, n in pd.Series(y).value_counts().items()]
        assert all(size in seen for size in sizes)


def test_a_few_classes_are_listed_with_their_rows():
    X, y = columns(8)
    page = streamsel.report(learnt(streamsel.SelectKBest(3), X, y))
    listed = ", ".join(f"class {k} ({(y == f'class {k}').sum()} rows)" for k in range(8))
    assert f"Target: 8 classes: {listed}." in page


def test_directions_and_redundancy_are_in_the_table(model):
    text = streamsel.report(model, format="md")
    report = model.report()
    assert report.directions
    rows = [line for line in text.splitlines() if re.match(r"\| \d+ \|", line)]
    for row, (name, direction) in zip(rows, report.directions.items(), strict=True):
        other, r = report.redundancy[name]
        assert f"| {direction.text} | {r:.2f} ({other}) |" in row


def test_direction_of_a_nonmonotonic_score_is_omitted():
    X, _ = columns(2)
    X[:45, 3] = -X[45:, 3]
    model = learnt(streamsel.SelectKBest(k=1, score="mutual_info"), X, X[:, 3] ** 2)
    assert model.report().directions
    assert not re.search(r"\| (positive|negative) \|", streamsel.report(model, format="md"))


class TestHistograms:
    """Histograms of the values of selected variables."""

    def expected(self, x, y):
        """Return counts in 24 bins between the 0.5 and 99.5 percentiles, by class."""
        low, high = np.quantile(x, [0.005, 0.995])
        edges = np.linspace(low, high, 25)
        found = {}
        for label in sorted(set(y)):
            values = np.clip(x[y == label], low, high)
            found[label] = np.histogram(values, edges)[0] / values.size
        return found

    @pytest.mark.parametrize("n_classes", [2, 6])
    def test_shares_of_each_class(self, n_classes):
        X, y = columns(n_classes)
        model = learnt(streamsel.SelectKBest(k=6), X, y)
        report = model.report()
        found = histograms_of(values_of_data(report, X, y, 50), report)
        assert [*found] == model.selected
        for name, histogram in found.items():
            expected = self.expected(X[:, name], y)
            assert histogram.groups == tuple(expected)
            np.testing.assert_allclose(histogram.shares, [*expected.values()], atol=1e-12)
            medians = [np.median(X[y == label, name]) for label in expected]
            assert histogram.medians == pytest.approx(medians)
            assert (histogram.low, histogram.high) == (X[:, name].min(), X[:, name].max())

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "learner",
        [streamsel.MRMR(k=6), streamsel.MRMR(k=6, max_candidates=8), streamsel.ForwardSelection(6)],
        ids=["pool", "bounded", "certified"],
    )
    def test_model_with_stored_columns_needs_no_data(self, learner):
        X, y = columns(3)
        y = y.astype(object)
        y[5] = None
        model = learnt(learner.clone(), X, y, missing="drop")
        found, values = values_of_model(model, model.report(), 50), np.delete(X, 5, axis=0)
        np.testing.assert_allclose(found.X, values[:, model.selected], atol=1e-12)
        labels = np.array(found.groups.labels)[found.groups.codes]
        assert labels.tolist() == np.delete(y, 5).tolist()
        assert len(titles(streamsel.report(model))) == 3 * len(model.selected)

    @pytest.mark.slow
    def test_adjusted_or_unstored_values_are_not_shown(self):
        X, y = columns(2)
        for model in (
            learnt(streamsel.MRMR(k=2), X, y, covariates=X[:, -1]),
            learnt(streamsel.SelectKBest(k=2), X, y),
        ):
            assert values_of_model(model, model.report(), 50) is None
            assert values_of_model(model.report(), model.report(), 50) is None
            assert titles(streamsel.report(model)) == []

    @pytest.mark.slow
    def test_one_of_many_classes_is_compared_with_the_others(self):
        X, y = columns(9)
        model = learnt(streamsel.MRMR(k=4), X, y)
        report = model.report()
        for name, histogram in histograms_of(values_of_model(model, report, 50), report).items():
            of = report.directions[name].of
            assert histogram.groups == (of, "others")
            assert histogram.medians[0] == pytest.approx(np.median(X[y == of, name]))
            assert histogram.medians[1] == pytest.approx(np.median(X[y != of, name]))
        assert "all other rows" in read(streamsel.report(model)).text

    def test_numeric_targets_are_split_at_the_median(self):
        X, _ = columns(2)
        y = X[:, 0] + 0.1 * X[:, 1]
        model = learnt(streamsel.MRMR(k=1), X, y)
        (histogram,) = histograms_of(
            values_of_model(model, model.report(), 50), model.report()
        ).values()
        above = y > np.median(y)
        expected = [np.median(X[~above, 0]), np.median(X[above, 0])]
        assert histogram.medians == pytest.approx(expected)
        assert histogram.groups[1] == f"target above {np.median(y):.4g}"

    def test_missing_values_and_targets_are_excluded(self):
        groups = groups_of(["a", None, "b", float("nan")], 4, "auto")
        assert groups.codes.tolist() == [0, -1, 1, -1]
        assert groups_of(None, 3, "auto").labels == [""]
        assert groups_of([[1, 2], [3, 4]], 2, "survival").labels == [""]
        X, y = columns(2)
        X[:3, 0] = np.nan
        model = learnt(streamsel.SelectKBest(k=1), X[:, :1][3:], y[3:])
        found = histograms_of(values_of_data(model.report(), X[:, :1], y, 50), model.report())
        expected = histograms_of(
            values_of_data(model.report(), X[3:, :1], y[3:], 50), model.report()
        )
        np.testing.assert_array_equal(found[0].shares, expected[0].shares)

    def test_a_target_of_other_rows_is_refused(self, model):
        X, y = columns(2)
        with pytest.raises(ValueError, match=r"Expected a y for each of 90 rows\. Got: 89"):
            streamsel.report(model, X, y=y[1:])

    @pytest.mark.slow
    def test_correlations_of_the_data_are_shown_if_the_model_has_none(self):
        X, y = columns(2)
        model = learnt(streamsel.SelectKBest(k=5), X, y)
        assert model.report().redundancy is None
        assert "redundancy" not in re.findall("<th[^>]*>(.*?)</th>", streamsel.report(model))
        R = np.corrcoef(X[:, model.selected].T) - np.eye(5)
        j = np.abs(R[0]).argmax()
        seen = read(streamsel.report(model, X)).text
        assert f"{R[0, j]:.2f} ( {model.selected[j]} )" in seen

    @given(
        x=st.lists(st.floats(-1e6, 1e6) | st.just(float("nan")), min_size=4, max_size=30),
        data=st.data(),
    )
    def test_shares_sum_to_one(self, x, data):
        y = data.draw(st.lists(st.sampled_from("ab"), min_size=len(x), max_size=len(x)))
        X = np.array(x)[:, None]
        report = replace(
            learnt(streamsel.ProjSe(1), *columns(2)).report(),
            results=[{"name": 0, "relevance": 0.1}],
        )
        for histogram in histograms_of(values_of_data(report, X, y, 1), report).values():
            assert histogram.shares.sum(axis=1) == pytest.approx(1.0)
            assert histogram.low == np.nanmin(X)


class TestCsv:
    """The download of the results."""

    def link(self, page):
        label, address = re.search(r'<a download="[\w.]+" href="([^"]*)">(.*?)</a>', page).groups()[
            ::-1
        ]
        return label, unquote(unescape(address).removeprefix("data:text/csv;charset=utf-8,"))

    @pytest.mark.slow
    def test_csv_has_all_results(self, model):
        label, text = self.link(streamsel.report(model))
        assert label == "Download as CSV, 6 variables"
        report = model.report()
        rows = list(csv.DictReader(text.splitlines()))
        assert [int(row["name"]) for row in rows] == model.selected
        for row, result in zip(rows, report.results, strict=True):
            assert float(row["score"]) == pytest.approx(result["score"], rel=1e-5)
            assert row["direction"] == report.directions[result["name"]].text
            assert int(row["most_similar"]) == report.redundancy[result["name"]][0]

    @pytest.mark.slow
    def test_csv_of_components_has_the_loadings(self):
        X, y = columns(2)
        model = learnt(streamsel.PLS(2), X, y)
        label, text = self.link(streamsel.report(model))
        assert label == f"Download as CSV, {2 * P} loadings"
        for row in csv.DictReader(text.splitlines()):
            weight = model.loadings[int(row["variable"])][row["component"]]
            assert float(row["weight"]) == pytest.approx(weight, rel=1e-5)

    @pytest.mark.slow
    def test_names_are_escaped_in_csv(self):
        names = [*HOSTILE, "=1+1", "@x", "-a, b", '"q"', "+5"]
        X, y = columns(2)
        model = learnt(streamsel.ProjSe(len(names)), X[:, : len(names)], y, names)
        page = streamsel.report(model)
        read(page)
        rows = list(csv.reader(self.link(page)[1].splitlines()))
        found = {row[1] for row in rows[1:]}
        assert {"'=1+1", "'@x", "'-a, b", '"q"', "'+5", HOSTILE[0]} <= found
        assert len(rows) == len(names) + 1

    @pytest.mark.slow
    def test_csv_size_is_bounded(self, model):
        report = model.report()
        row = report.results[0]
        many = replace(report, results=[row | {"name": f"gene {j}"} for j in range(10_000)])
        text, n = results_csv(many, 10_000)
        assert 9_000 < len(csv_uri(text)) <= 10_100
        names = [{**row, "name": f"ген {j}"} for j in range(10_000)]
        other, fewer = results_csv(replace(report, results=names), 10_000)
        assert fewer < n
        assert 9_000 < len(csv_uri(other)) <= 10_100
        assert 100 < n == text.count("\n") - 1
        assert "the first" in self.link(streamsel.report(many))[0]
        assert results_csv(streamsel.ProjSe().report(), 100)[1] == 0


@pytest.mark.slow
def test_tooltips_show_values(model):
    page = streamsel.report(model, columns(2)[0])
    first = model.selected[0]
    for text in (
        f"<title>{first}: {model.relevance[first]:.3f}</title>",
        f"<title>1. {first}: {model.scores[first]:.4g}</title>",
        f"<title>{first}, {first}: 1.00</title>",
    ):
        assert text in page


PROGRAM = """
import sys
sys.modules["matplotlib"] = None
import numpy as np
import streamsel
model = streamsel.ProjSe(k=1)
model.learn_target(np.arange(9.0) % 5)
model.learn_columns(np.random.default_rng(0).normal(size=(9, 4)))
for format in ("md", "json"):
    assert "1 of 4 variables" in streamsel.report(model, format=format)
for draw in (lambda: streamsel.report(model), lambda: streamsel.plot.qq(model)):
    try:
        draw()
    except ImportError as error:
        print(error)
"""


@pytest.mark.slow
def test_report_in_a_process_without_matplotlib():
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert run.stdout.count("Hint: pip install 'streamsel[plot]'") == 2
