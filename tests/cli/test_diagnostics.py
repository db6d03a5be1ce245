"""Warnings about likely mistakes: on stderr, in JSON output and in the metadata of the model."""

import io
import json

import numpy as np
import pytest

from streamsel.base.leakage import outcome_warning
from streamsel.cli import diagnostics, run
from streamsel.cli.log import Log
from streamsel.serialization.archive import read_metadata

N = 40


@pytest.fixture(scope="module")
def columns():
    """Return a numeric target, and ten columns; the first correlates with it."""
    rng = np.random.default_rng(5)
    y = rng.normal(size=N)
    X = rng.normal(size=(N, 10))
    X[:, 0] += y
    return {"y": y.round(5).tolist()} | {f"g{j}": X[:, j].round(5).tolist() for j in range(10)}


def codes(result):
    return [warning["code"] for warning in result.json()["warnings"]]


def test_warnings_are_in_stderr_json_and_model_file(call, table, columns, tmp_path):
    model = tmp_path / "m"
    copies = {"copy": columns["g0"], "again": columns["g0"]}
    given = ["select", table(**columns, **copies), "-t", "y", "-k", 5, "--json", "-m", model]
    given += ["--method", "ProjSe"]
    result = call(*given)
    assert codes(result) == ["ranking"]
    text = result.json()["warnings"][0]["text"]
    assert f"streamsel: warning: {text}\n" == result.stderr
    assert "2 of 5 nearly repeat an earlier one" in text
    assert read_metadata(model)["warnings"] == result.json()["warnings"]
    # The warning is repeated by a run with nothing left to learn, and in JSON events.
    result = call(*given, "--resume", "--log-format", "json")
    assert codes(result) == ["ranking"]
    event = next(e for e in map(json.loads, result.stderr.splitlines()) if e["event"] == "warning")
    assert (event["level"], event["code"], event["message"]) == ("warning", "ranking", text)
    assert "warnings: this is a univariate ranking" in call("info", model).stdout


def test_no_warning_without_a_cause(call, table, columns):
    for method in ("ProjSe", "ForwardSelection"):
        result = call("select", table(**columns), "-t", "y", "-k", 3, "--json", "--method", method)
        assert codes(result) == []
        assert result.stderr == ""


def test_many_columns_skipped(call, table, columns, tmp_path):
    gaps = {f"m{j}": [*range(N - 1), ""] for j in range(3)}
    model, out = tmp_path / "m", tmp_path / "out.csv"
    given = ["select", table(**columns, **gaps), "-t", "y", "-k", 2, "--json"]
    result = call(*given)
    assert codes(result) == ["skipped"]
    assert "3 of 13 columns (23%) were skipped (3 missing)" in result.stderr
    assert "--missing mean" in result.stderr
    assert codes(call(*given, "--missing", "mean")) == []
    assert codes(call(*given, "--max-skipped", 0.5)) == []
    # An explicit value is a limit: only the model is written.
    result = call(*given, "--max-skipped", 0.2, "-m", model, "-o", out, code=1)
    assert result.stdout == ""
    assert not out.exists()
    assert "--max-skipped 0.2: 3 of 13 columns" in result.stderr
    result = call(*given, "--max-skipped", 0.3, "-m", model, "--resume", "-o", out)
    assert out.exists()
    assert codes(result) == []
    call(*given, "--max-skipped", 2, code=2)


def test_max_skipped_of_zero(call, table, columns):
    given = ["select", table(**columns, gap=[*range(N - 1), ""]), "-t", "y", "-k", 2]
    call(*given)
    assert "1 of 11" in call(*given, "--max-skipped", 0, code=1).stderr


def test_constant_and_rare_columns_do_not_warn():
    assert diagnostics.skipped_warning(100, {"constant": 60, "rare": 30}) is None
    assert diagnostics.skipped_warning(100, {"missing": 10}) is None
    assert diagnostics.skipped_warning(100, {"missing": 10, "text": 1}).code == "skipped"
    # Decimal commas are "ambiguous", not "text".
    assert "--decimal" not in diagnostics.skipped_warning(100, {"text": 99}).text
    assert "--decimal" in diagnostics.skipped_warning(100, {"ambiguous": 99}).text


def test_skipped_share_counts_encoded_columns():
    found = diagnostics.skipped_warning(23, {"text": 4}, encoded=(4, 11)).text
    assert found.startswith("4 of 23 columns (17%; 4 encoded columns count as 11) were skipped")
    found = diagnostics.skipped_warning(20, {"text": 4}, encoded=(1, 3)).text
    assert "(20%; 1 encoded column counts as 3)" in found


def test_message_for_one_ambiguous_column_is_singular():
    metadata = {"skipped": {"ambiguous": 1}, "examples": {}, "orientation": "samples"}
    (found,) = diagnostics.unreadable_warning(metadata)
    assert found.text.startswith("1 numeric column was skipped because its numbers are ambiguous")


@pytest.mark.parametrize(
    ("y", "kind", "code"),
    [
        ([f"s{j}" for j in range(20)], "auto", "classes"),
        ([f"s{j // 2}" for j in range(21)], "auto", "classes"),
        ([f"s{j // 2}" for j in range(20)], "auto", None),
        ([*range(20)], "class", "classes"),
        ([*"abcdef"], "auto", None),  # too few values
        ([*range(3, 23)], "auto", "numbering"),
        ([*reversed(range(20))], "numeric", "numbering"),
        ([*range(19), 40], "auto", None),
        ([j / 2 for j in range(20)], "auto", None),
        ([0, 1] * 10, "auto", None),
        ([f"s{j}" for j in range(20)], "numeric", None),
    ],
)
def test_target_warnings(y, kind, code):
    found = diagnostics.target_warnings(diagnostics.target_columns(np.array(y), ["y"]), kind)
    assert [warning.code for warning in found] == ([] if code is None else [code])
    assert all("the target y" in warning.text for warning in found)


def test_target_warnings_for_several_columns():
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"a": [f"s{j}" for j in range(20)], "b": [*"xy"] * 10})
    assert [
        a.code for a in diagnostics.target_warnings(diagnostics.target_columns(table, []), "auto")
    ] == ["classes"]
    numbers = np.column_stack([np.arange(20), np.arange(20) ** 2])
    assert len(diagnostics.target_warnings(diagnostics.target_columns(numbers, []), "auto")) == 1
    assert diagnostics.target_columns(None, []) == {}


def test_an_identifier_as_target(call, table, columns):
    given = ["--target-type", "class", "-k", 2]
    result = call("select", table(**columns), "-t", "y", *given)
    assert "every row is its own class" in result.stderr
    assert result.stderr.count("an identifier") == 1


@pytest.mark.parametrize(
    ("relevances", "names", "targets", "found"),
    [
        ([0.5, 0.4, 0.3], ["a", "b", "c"], ["y"], None),
        ([0.995, 0.4, 0.3], ["a", "b", "c"], ["y"], "a has a relevance near 1"),
        ([0.5, 0.4, 0.3], ["y_2", "b", "c"], ["y"], "y_2 has a name like"),
        ([0.5, 0.4, 0.3], ["y2", "b", "c"], ["y"], "y2 has a name like"),
        (
            [0.5, 0.4, 0.3],
            ["b", "Survival.Months", "c"],
            ["survival"],
            "Survival.Months has a name",
        ),
        ([0.5, 0.4, 0.3], ["b", "survival", "c"], ["survival_months"], "survival has a name"),
        ([0.5, 0.4, 0.3], ["g10", "g2", "c"], ["g1"], None),
        ([0.5, 0.4, 0.3], ["y1", "y2", "y3"], ["y"], None),
        ([0.95, 0.4, 0.3], ["a", "b", "c"], ["y"], "a has a relevance far above"),
        ([0.95, 0.9, 0.3], ["a", "b", "c"], ["y"], None),
        ([0.95], ["a"], ["y"], None),
    ],
)
def test_near_copy_of_the_target_warns(relevances, names, targets, found):
    rows = [
        {"name": name, "relevance": value, "above_noise": True}
        for name, value in zip(names, relevances, strict=True)
    ]
    warning = outcome_warning(rows, targets)
    assert (warning is None) == (found is None)
    assert found is None or warning.text.startswith(f"the variable {found}")
    below = [row | {"above_noise": False} for row in rows]
    if max(relevances) > 0.9:
        assert outcome_warning(below, targets) is None


def test_near_copy_of_the_target_in_a_file_warns(call, table, columns):
    other = np.round(np.array(columns["y"]) * 2 + 1, 5).tolist()
    result = call("select", table(**columns, months=other), "-t", "y", "-k", 2, "--json")
    assert codes(result) == ["outcome"]
    assert result.json()["warnings"][0]["text"].startswith(
        "the variable months has a relevance near 1"
    )


def test_the_columns_of_a_target_are_named(call, table, columns):
    path = table(**columns, site=[*"ab"] * (N // 2))
    for other, described in (
        ("site", "1 numeric column (y), 1 column of labels (site)"),
        ("g1", "2 numeric columns (y, g1)"),
    ):
        result = call("select", path, "-t", "y", "-t", other, "-k", 2, "--method", "ProjSe")
        assert result.target == described


def test_similar_columns_are_counted():
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, 50))
    assert diagnostics.count_similar([x, z]) == 0
    assert diagnostics.count_similar([x, z, -2 * x + 1, z + 0.1 * x, np.ones(50)]) == 2


def test_second_read_of_long_lines_is_skipped(call, files, monkeypatch):
    given = ["select", files / "variables.csv", "-t", "y", "-k", 3, "--drop", "labels", "--json"]
    given += ["--method", "ProjSe"]
    assert codes(call(*given)) == []
    monkeypatch.setattr(run, "MAX_BYTES", 0)
    assert "are selected together" in call(*given).json()["warnings"][0]["text"]


def test_warnings_are_coloured_on_colour_terminals(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for variables, coloured in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
        monkeypatch.setenv("TERM", "xterm")
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr("sys.stderr", screen := Terminal())
        Log().emit("warning", "many", level="warning", code="skipped")
        assert ("\x1b[33m" in screen.getvalue()) == coloured
        assert "warning: many" in screen.getvalue()
