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


def test_report_shows_the_metadata_of_the_model_file(call, saved, files, tmp_path):
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


def test_suffix_determines_the_format_unless_given(call, saved, tmp_path):
    for name, begins in {"a.md": "# 3 of 40", "a.json": "{", "a.html": "<!DOC", "a": "<!D"}.items():
        call("report", saved / "select", "-o", tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(begins)
    call("report", saved / "select", "-o", tmp_path / "b.md", "--format", "json")
    assert (
        json.loads((tmp_path / "b.md").read_text(encoding="utf-8"))["class"] == "ForwardSelection"
    )


def test_report_is_printed_without_an_output_file(call, saved):
    assert call("report", saved / "select").stdout.startswith("<!DOCTYPE html>")
    report = call("report", saved / "reduce", "--format", "json").json()
    assert report["metadata"]["target"] == ["y"]
    assert [row["name"] for row in report["components"]] == ["pls0", "pls1"]


@pytest.mark.slow
def test_correlations_of_given_rows_are_plotted(call, saved, files, data, tmp_path):
    without, alongside = tmp_path / "a.html", tmp_path / "b.html"
    call("report", saved / "select", "-o", without)
    call("report", saved / "select", "--data", files / "samples.csv", "-o", alongside)
    texts = [read(path.read_text(encoding="utf-8")).text for path in (without, alongside)]
    assert "Correlation of selected variables" not in texts[0]
    assert "Correlation of selected variables" in texts[1]
    # Only the columns that the model uses are read; others may be absent.
    used = load(saved / "select").selected
    narrow = tmp_path / "narrow.csv"
    rows = np.column_stack([data.X[:, data.names.index(name)] for name in used])
    np.savetxt(narrow, rows, delimiter=",", header=",".join(used), comments="")
    call("report", saved / "select", "--data", narrow, "-o", alongside)
    assert "Correlation of selected variables" in read(alongside.read_text(encoding="utf-8")).text


def test_invalid_call_writes_nothing(call, saved, files, tmp_path):
    page = tmp_path / "page.html"
    assert "No such file" in call("report", tmp_path / "none", "-o", page, code=1).stderr
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n3,4\n", encoding="utf-8")
    stderr = call("report", saved / "select", "--data", other, "-o", page, code=1).stderr
    assert "no such column: " in stderr
    same = call("report", saved / "select", "-o", saved / "select", code=2).stderr
    assert "the same file as MODEL" in same
    assert not page.exists()


def test_interrupted_run_is_reported(call, saved, tmp_path):
    from streamsel.serialization.archive import read_metadata

    model, metadata = load(saved / "select"), read_metadata(saved / "select")
    save(model, tmp_path / "m", metadata | {"complete": False})
    report = call("report", tmp_path / "m", "--format", "json").json()
    assert report["summary"].startswith("The run was interrupted")
    assert not any(row["certified"] for row in report["selected"])
