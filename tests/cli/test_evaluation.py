"""`stability` and `evaluate`: the results of the Python functions of the same name, from files."""

import csv
import json
import signal

import numpy as np
import pytest

from streamsel import PCA, ForwardSelection, SelectKBest
from streamsel.cli.commands.evaluate import comparison_text
from streamsel.evaluate import SubsampleStability, nested_scores, subsample_stability
from streamsel.evaluate.model_batch import ModelBatch
from streamsel.stream import iter_array


def test_stability_equals_the_python_function(call, files, data, tmp_path):
    out = tmp_path / "often.csv"
    line = ["stability", files / "data.parquet", "--target", "y", "--drop", "labels", "-k", 4]
    line += ["--subsamples", 8, "--share", 0.6, "--seed", 7]
    report = call(*line, "--json", "--out", out).json()
    expected = subsample_stability(
        ForwardSelection(k=4),
        iter_array(data.X, data.names),
        data.y,
        n_subsamples=8,
        share=0.6,
        seed=7,
    )
    assert SubsampleStability.from_dict(report) == expected
    assert report["metadata"]["columns_read"] == 40
    result = call(*line)
    assert [row["name"] for row in result.rows()] == list(expected.frequency)
    assert [float(row["frequency"]) for row in result.rows()] == pytest.approx(
        list(expected.frequency.values())
    )
    assert f"{expected.rating} (below 0.4 is poor, above 0.75 excellent)" in result.stderr
    with out.open() as file:
        assert [row["name"] for row in csv.DictReader(file)] == list(expected.frequency)


def test_stability_with_covariates_and_skipped_columns(call, files, data):
    line = ["stability", files / "samples.csv", "--target", "y", "--method", "SelectKBest"]
    line += ["--max-categories", 0]
    result = call(*line, "-k", 3, "--covariate", "v3", "--subsamples", 5, "--json")
    found = SubsampleStability.from_dict(result.json())
    X = np.delete(data.X, 3, axis=1)
    names = [name for name in data.names if name != "v3"]
    expected = subsample_stability(
        SelectKBest(k=3),
        iter_array(X, names),
        data.y,
        covariates={"v3": data.X[:, 3]},
        n_subsamples=5,
        seed=1,
    )
    assert found.selections == expected.selections
    assert "skipped 1 column: 1 text" in result.stderr


def test_stability_without_a_target_from_lines(call, files):
    line = ["stability", files / "variables.csv", "--no-target", "--drop", "y,labels"]
    report = call(*line, "-k", 2, "--subsamples", 3, "--json").json()
    assert (report["rows"], report["rows_drawn"], report["n_subsamples"]) == (60, 30, 3)


def test_stability_without_any_selection_fails(call, files):
    line = ["stability", files / "data.npy", "--target-file", files / "y.npy", "--subsamples", 3]
    result = call(*line, "--method", "SelectKBest", "--set", "fdr=1e-300", code=1)
    assert "no variable was selected from 40 columns in any subsample" in result.stderr
    assert "stability is undefined" in result.stderr


@pytest.mark.slow
def test_evaluate_equals_the_python_function(call, files, data, tmp_path):
    out = tmp_path / "folds.csv"
    line = ["evaluate", files / "data.parquet", "-t", "labels", "--drop", "y", "-k", "2,4"]
    line += ["--method", "SelectKBest", "--folds", 3, "--seed", 0, "--model", "knn"]
    report = call(*line, "--json", "-o", out).json()
    stream = iter_array(data.X, data.names)
    expected = nested_scores(
        SelectKBest(), stream, data.labels, sizes=[2, 4], n_folds=3, model="knn"
    )
    assert report["folds"] == json.loads(json.dumps(expected.as_dict()["folds"]))
    result = call(*line)
    first = result.rows()[0]
    assert (first["variables"], first["score"]) == ("selected", "balanced_accuracy")
    assert float(first["value"]) == pytest.approx(expected.score().value, abs=1e-5)
    assert "size chosen by inner cross-validation: " in result.stderr
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["variables"] for row in rows[:4]] == ["selected", "random", "all", "nothing"]
    assert len(rows) == 12


@pytest.mark.slow
def test_evaluate_an_unsupervised_method(call, files, data):
    """A target that PCA does not use is predicted; --target-type class makes codes classes."""
    codes = files / "codes.txt"
    codes.write_text("".join(f"{int(v > 0)}\n" for v in data.y))
    line = ["evaluate", files / "data.npy", "--target-file", codes, "--method", "PCA", "-q", 3]
    report = call(*line, "--target-type", "class", "--folds", 3, "--seed", 0, "--json").json()
    expected = nested_scores(
        PCA(n_components=3), data.X, (data.y > 0).astype(int), target_type="class", n_folds=3
    )
    assert report["class"] == "PCA"
    assert report["scores"][0]["value"] == pytest.approx(expected.score().value)


def test_table_too_wide_for_memory_is_reported(call, tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "X.npy", rng.normal(size=(60, 3000)))
    np.save(tmp_path / "y.npy", rng.normal(size=60))
    line = [tmp_path / "X.npy", "--target-file", tmp_path / "y.npy", "-k", 2, "--max-memory", 1]
    result = call("evaluate", *line, "--folds", 2, "--method", "ForwardSelection")
    assert "no model of all variables was fitted: 3,000 columns of 60 rows" in result.stderr
    assert "2 models of up to 0 MB each learn in" not in result.stderr
    assert {row["variables"] for row in result.rows()} == {"selected", "random", "nothing"}
    result = call("stability", *line, "--subsamples", 9, "--method", "ForwardSelection")
    assert "10 models of up to 3 MB each learn in 10 passes of 1, 3 MB" in result.stderr
    assert "one model exceeds the limit of 1 MB" in result.stderr


def test_evaluate_adjusts_for_covariates(call, data, table):
    rng = np.random.default_rng(1)
    age = rng.normal(size=len(data.y))
    columns = {name: data.X[:, j] for j, name in enumerate(data.names)}
    file = table("aged.csv", y=data.y + 3.0 * age, age=age, **columns)
    line = ["evaluate", file, "-t", "y", "--covariate", "age", "-k", 3, "--folds", 3, "--json"]
    report = call(*line, "--seed", 0, "--method", "SelectKBest").json()
    expected = nested_scores(
        SelectKBest(k=3, covariates=("age",)),
        iter_array(data.X, data.names),
        data.y + 3.0 * age,
        covariates=age,
        n_folds=3,
    )
    scores = {row["variables"]: row["value"] for row in report["scores"]}
    assert scores["nothing"] > 0.3
    assert scores["selected"] == pytest.approx(expected.score().value)


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        (["stability", "-t", "nowhere"], 1, "no such column"),
        (["stability"], 2, "Missing option: --target NAME"),
        (["stability", "-t", "y", "--share", "1"], 2, "--share"),
        (["stability", "-t", "y", "-o", "often.npy"], 2, "an .npy file cannot hold variable names"),
        (["stability", "-t", "y", "--set", "quux=3"], 2, "ForwardSelection has no such parameter"),
        (
            ["evaluate", "-t", "y", "-k", "2,x"],
            2,
            "is not a list of positive integers such as 5,10,25",
        ),
        (["evaluate", "-t", "y", "--weights", "v3"], 2, "scores weight all rows equally"),
        (["evaluate", "-t", "y,v3"], 1, "Expected one target"),
        (["evaluate", "-t", "y", "--method", "OSFS", "-k", "2"], 1, "determines the number by"),
        (["evaluate", "-t", "y", "--model", "logistic"], 1, "model: ridge or knn"),
        (["evaluate", "-t", "y", "--method", "PCA", "--set", "quux=3"], 2, "no such parameter"),
    ],
)
def test_invalid_options_give_one_line_errors(call, files, line, code, message):
    command, *options = line
    result = call(command, files / "data.parquet", *options, code=code)
    assert message in result.stderr
    assert not result.stdout
    assert len(result.stderr.splitlines()) == 1 or code == 2


@pytest.mark.parametrize("command", ["stability", "evaluate"])
def test_ctrl_c_interrupts_the_run(call, wide, monkeypatch, command):
    learn, n_blocks = ModelBatch.learn_block, []

    def learn_block(self, block, part):
        n_blocks.append(len(block.names))
        if len(n_blocks) == 3:
            signal.raise_signal(signal.SIGINT)
        learn(self, block, part)

    monkeypatch.setattr(ModelBatch, "learn_block", learn_block)
    result = call(command, wide / "wide.npy", "--target-file", wide / "y.npy", "-k", 2, code=130)
    assert "interrupted after 30 columns" in result.stderr
    assert not result.stdout


def test_rows_are_joined_by_identifier(call, data, table):
    order = np.random.default_rng(0).permutation(len(data.y))
    ids = np.array([f"s{i}" for i in range(len(data.y))])
    X = table("X.csv", id=ids, **dict(zip(data.names, data.X.T, strict=True)))
    y = table("y.csv", id=ids[order], y=data.y[order])
    line = ["stability", X, "--target-file", y, "--target", "y", "--id", "id", "-k", 3]
    report = call(*line, "--subsamples", 4, "--json").json()
    stream = iter_array(data.X, data.names)
    expected = subsample_stability(ForwardSelection(k=3), stream, data.y, n_subsamples=4, seed=1)
    assert report["selections"] == expected.selections


def test_rows_are_weighted(call, data, table):
    w = np.random.default_rng(0).random(len(data.y)).round(3)
    path = table(**dict(zip(data.names, data.X.T, strict=True)), y=data.y, w=w)
    line = ["stability", path, "--target", "y", "--weights", "w", "-k", 3, "--subsamples", 4]
    report = call(*line, "--json").json()
    stream = iter_array(data.X, data.names)
    settings = {"n_subsamples": 4, "seed": 1}
    expected = subsample_stability(ForwardSelection(k=3), stream, data.y, weights=w, **settings)
    assert report["selections"] == expected.selections


def test_many_skipped_columns_warn_or_fail(call, table):
    rng = np.random.default_rng(0)
    columns = {f"v{j}": rng.normal(size=20) for j in range(6)}
    gaps = {f"gap{j}": [""] + [1.0] * 19 for j in range(6)}
    line = ["stability", table(**columns, **gaps, y=rng.normal(size=20)), "--target", "y", "-k", 2]
    result = call(*line, "--subsamples", 3, "--json")
    (warning,) = result.json()["warnings"]
    assert warning["code"] == "skipped"
    assert "--list-skipped" not in warning["text"]  # `evaluate` lacks this option
    result = call(*line, "--subsamples", 3, "--max-skipped", 0.2, code=1)
    assert "--max-skipped 0.2: " in result.stderr
    assert not result.stdout


@pytest.mark.parametrize("command", ["stability", "evaluate"])
def test_near_copy_of_the_target_warns(call, data, table, command):
    columns = {name: data.X[:, j].tolist() for j, name in enumerate(data.names[:6])}
    again = (3.0 * data.y + 1e-3 * data.X[:, 0]).tolist()
    file = table("leak.csv", y=data.y.tolist(), again=again, **columns)
    more = ["--subsamples", 3] if command == "stability" else []
    result = call(command, file, "--target", "y", "-k", 1, "--json", *more)
    assert [warning["code"] for warning in result.json()["warnings"]] == ["outcome"]
    assert "again has a relevance near 1" in result.stderr


def test_imputation_over_all_rows_is_reported(call, data, table):
    gaps = ["", *data.X[1:, 0].tolist()]
    file = table("gaps.csv", y=data.y.tolist(), a=gaps, b=data.X[:, 1].tolist())
    result = call("evaluate", file, "--target", "y", "-k", 1, "--missing", "mean")
    assert "missing values of 1 column were replaced by means over all rows" in result.stderr
    result = call("evaluate", file, "--target", "y", "-k", 1)
    assert "means over all rows" not in result.stderr


def test_refused_column_is_skipped(call, table):
    rng = np.random.default_rng(0)
    columns = {f"v{j}": rng.normal(size=20) for j in range(4)} | {"huge": np.linspace(1, 1e200, 20)}
    path = table(**columns, y=columns["v1"] + rng.normal(size=20))
    result = call("stability", path, "--target", "y", "-k", 2, "--subsamples", 3, "--json")
    assert result.json()["metadata"]["skipped"] == {"refused": 1}
    assert result.json()["n_variables"] == 4


@pytest.mark.parametrize(
    ("difference", "text"),
    [
        ((0.2, 0.1, 0.3), "better than others: +0.200 (+0.100 to +0.300)"),
        ((-0.2, -0.3, -0.1), "worse than others: -0.200 (-0.300 to -0.100)"),
        (
            (0.177, -0.065, 0.42),
            "not significantly different from others: +0.177 (-0.065 to +0.420, contains 0)",
        ),
    ],
)
def test_comparison_texts(difference, text):
    assert comparison_text("others", difference) == text
