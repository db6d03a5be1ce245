"""`--groups`: groups of columns from a file."""

import csv
import json

import numpy as np
import pandas as pd
import pytest

from streamsel import ForwardSelection, SelectKBest, load
from streamsel.evaluate import nested_scores, subsample_stability
from streamsel.stream import grouped

N, P = 90, 12


@pytest.fixture
def files(tmp_path):
    """Return columns as CSV, with a constant one, and groups as a table and as GMT."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, P)).round(6)
    X[:, 7] = 1.0
    y = (X[:, 3] + X[:, 8] + rng.normal(size=N)).round(6)
    names = [f"v{j}" for j in range(P)]
    frame = pd.DataFrame(X, columns=names).assign(y=y)
    frame.to_csv(tmp_path / "x.csv", index=False)
    (tmp_path / "loci.tsv").write_text("".join(f"v{j}\tlocus{j // 3}\n" for j in range(11)))
    (tmp_path / "sets.gmt").write_text("far\t-\tv3\tv11\tv99\nnear\t-\tv3\tv4\n")
    return tmp_path, frame.drop(columns="y"), y


def test_a_table_of_names_and_groups(call, files):
    folder, frame, y = files
    given = [folder / "x.csv", "-t", "y", "--groups", folder / "loci.tsv", "-k", "2"]
    outputs = ["--model", folder / "m.model", "-o", folder / "o.csv"]
    outputs += ["--statistics", folder / "s.csv"]
    result = call("select", *given, "--method", "SelectKBest", *outputs, "--json")
    found = json.loads(result.stdout)
    expected = SelectKBest(2)
    expected.learn_target(y)
    kept = frame.drop(columns="v7")
    expected.learn_columns(grouped(kept, {f"v{j}": f"locus{j // 3}" for j in range(11)}))
    assert [row["name"] for row in found["selected"]] == expected.selected
    assert [row["members"] for row in found["selected"]] == [
        len(expected.members[name]) for name in expected.selected
    ]
    assert (found["columns_seen"], found["n_columns"]) == (5, P - 1)
    rows = list(csv.reader((folder / "o.csv").read_text().splitlines()))
    assert rows[0] == [name for group in expected.members.values() for name in group]
    table = list(csv.DictReader((folder / "s.csv").read_text().splitlines()))
    assert {row["name"]: float(row["p_value"]) for row in table} == pytest.approx(
        dict(
            zip(
                *(expected.statistics()[title].tolist() for title in ("name", "p_value")),
                strict=True,
            )
        )
    )
    model = load(folder / "m.model")
    assert model.members == expected.members
    rows_of = call("transform", folder / "m.model", folder / "x.csv").stdout.splitlines()
    assert rows_of[0].split(",") == rows[0]
    for page in ("report", "info"):
        call(page, folder / "m.model", *(["-o", folder / "r.html"] if page == "report" else []))


@pytest.mark.parametrize("orientation", ["samples", "variables"])
def test_groups_with_scattered_members(call, files, orientation):
    folder, frame, y = files
    path = folder / "x.csv"
    if orientation == "variables":
        path = folder / "lines.csv"
        frame.assign(y=y).T.to_csv(path, header=False)
    given = [path, "-t", "y", "--groups", folder / "sets.gmt", "-k", "3", "--json"]
    given += ["--orientation", orientation]
    found = json.loads(call("select", *given, "--method", "ForwardSelection").stdout)
    expected = ForwardSelection(3)
    expected.learn_target(y)
    expected.learn_columns(grouped(frame.drop(columns="v7"), folder / "sets.gmt"))
    assert [row["name"] for row in found["selected"]] == expected.selected
    for row in found["selected"]:
        assert row["score"] == pytest.approx(expected.scores[row["name"]])


def test_invalid_groups_give_one_line_errors(call, files):
    folder = files[0]
    given = ["select", folder / "x.csv", "-t", "y", "--groups"]
    (folder / "none.gmt").write_text("a\t-\tx1\tx2\n")
    (folder / "three.tsv").write_text("v1\ta\tb\n")
    for more, code, message in (
        ([folder / "none.gmt"], 1, "none of its columns is in a group"),
        ([folder / "three.tsv"], 1, "expected a name and a group in line 1"),
        ([folder / "absent.tsv"], 1, "absent.tsv"),
        ([folder / "loci.tsv", "--method", "MRMR"], 1, "does not select groups"),
        ([folder / "loci.tsv", "--workers", "2"], 2, "--groups and --workers"),
        ([folder / "loci.tsv", "--model", folder / "m", "--resume"], 2, "--groups and --resume"),
    ):
        result = call(*given, *more, code=code)
        assert message in result.stderr
        assert "Traceback" not in result.stderr


@pytest.mark.parametrize("megabytes", [1, 512])
def test_stability_and_evaluate_learn_groups(call, files, megabytes):
    folder, frame, y = files
    given = [folder / "x.csv", "-t", "y", "--groups", folder / "sets.gmt"]
    more = ["--method", "ForwardSelection", "--max-memory", megabytes, "--seed", 0, "--json"]
    stream = grouped(frame.drop(columns="v7"), folder / "sets.gmt")
    result = call("stability", *given, "-k", 2, "--subsamples", 5, *more).json()
    expected = subsample_stability(ForwardSelection(2), stream, y, n_subsamples=5)
    assert result["selections"] == expected.selections
    assert result["n_variables"] == expected.n_variables
    table = ["-o", folder / "scores.csv"]
    result = call("evaluate", *given, "-k", "1,2", "--folds", 3, *table, *more).json()
    scores = nested_scores(ForwardSelection(), stream, y, sizes=[1, 2], n_folds=3)
    assert result["n_columns"] == P - 1
    rows = list(csv.DictReader((folder / "scores.csv").read_text().splitlines()))
    for variables in scores.variable_sets:
        found = [float(row["r2"]) for row in rows if row["variables"] == variables]
        expected = [fold.scores[variables]["r2"] for fold in scores.folds]
        assert found == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    ("command", "method"), [("evaluate", "MRMR"), ("evaluate", "PCA"), ("stability", "MRMR")]
)
def test_stability_and_evaluate_refuse_methods_without_groups(call, files, command, method):
    folder = files[0]
    given = [folder / "x.csv", "-t", "y", "--groups", folder / "loci.tsv", "--method", method]
    assert f"{method} does not select groups" in call(command, *given, code=1).stderr
