"""`streamsel report`: the HTML report of a saved model is written completely or not at all."""

import json
import re

import numpy as np
import pytest

from streamsel import load, save
from tests.page.reading import read


@pytest.fixture(scope="module")
def saved(files, tmp_path_factory):
    """Return a selector and an extractor, learnt by the command from a file with a target."""
    from click.testing import CliRunner

    from streamsel.cli.app import app

    folder = tmp_path_factory.mktemp("saved")
    runs = {"select": ["-k", "3"], "reduce": ["-q", "2", "--method", "PLS"]}
    for command, words in runs.items():
        line = [command, str(files / "samples.csv"), "-t", "y", "--drop", "labels", *words]
        run = CliRunner().invoke(app, [*line, "-m", str(folder / command)])
        assert run.exit_code == 0, run.output
    return folder


def test_it_says_what_the_model_file_knows(call, saved, files, tmp_path):
    page = tmp_path / "page.html"
    written = call("report", saved / "select", "-o", page)
    assert written.stdout == ""
    assert re.fullmatch(
        rf"streamsel: wrote {page}: report of {saved}/select \(HTML\), [\d,]+ kB\n", written.stderr
    )
    seen = read(page.read_text(encoding="utf-8"))
    assert "3 of 40 variables" in seen.text
    assert f"streamsel select {files}/samples.csv \\ --target y \\ --drop labels" in seen.text
    assert "Fingerprint of the input" in seen.text


def test_the_suffix_says_the_format_unless_format_does(call, saved, tmp_path):
    for name, begins in {"a.md": "# 3 of 40", "a.json": "{", "a.html": "<!DOC", "a": "<!D"}.items():
        call("report", saved / "select", "-o", tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(begins)
    call("report", saved / "select", "-o", tmp_path / "b.md", "--format", "json")
    assert (
        json.loads((tmp_path / "b.md").read_text(encoding="utf-8"))["class"] == "ForwardSelection"
    )


def test_it_is_printed_where_no_file_is_named(call, saved):
    assert call("report", saved / "select").stdout.startswith("<!DOCTYPE html>")
    told = call("report", saved / "reduce", "--format", "json").json()
    assert told["metadata"]["target"] == ["y"]
    assert [row["name"] for row in told["components"]] == ["pls0", "pls1"]


@pytest.mark.slow
def test_rows_of_a_file_are_drawn(call, saved, files, data, tmp_path):
    without, alongside = tmp_path / "a.html", tmp_path / "b.html"
    call("report", saved / "select", "-o", without)
    call("report", saved / "select", "--data", files / "samples.csv", "-o", alongside)
    told = [read(path.read_text(encoding="utf-8")).text for path in (without, alongside)]
    assert "Correlation of selected variables" not in told[0]
    assert "Correlation of selected variables" in told[1]
    # Only the columns that the model uses are read; others may be absent.
    used = load(saved / "select").selected
    narrow = tmp_path / "narrow.csv"
    rows = np.column_stack([data.X[:, data.names.index(name)] for name in used])
    np.savetxt(narrow, rows, delimiter=",", header=",".join(used), comments="")
    call("report", saved / "select", "--data", narrow, "-o", alongside)
    assert "Correlation of selected variables" in read(alongside.read_text(encoding="utf-8")).text


def test_what_cannot_be_is_refused_and_nothing_is_written(call, saved, files, tmp_path):
    page = tmp_path / "page.html"
    assert "No such file" in call("report", tmp_path / "none", "-o", page, code=1).stderr
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n3,4\n", encoding="utf-8")
    told = call("report", saved / "select", "--data", other, "-o", page, code=1).stderr
    assert "no such column: " in told
    same = call("report", saved / "select", "-o", saved / "select", code=2).stderr
    assert "the same file as MODEL" in same
    assert not page.exists()


def test_a_run_cut_short_is_told_of(call, saved, tmp_path):
    from streamsel.serialization.archive import read_metadata

    model, notes = load(saved / "select"), read_metadata(saved / "select")
    save(model, tmp_path / "m", notes | {"complete": False})
    told = call("report", tmp_path / "m", "--format", "json").json()
    assert told["summary"].startswith("The run was interrupted")
    assert not any(row["certified"] for row in told["selected"])
