"""`streamsel merge`: merged models of parts equal the model of one run over all of them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from streamsel import load, save
from streamsel.serialization.archive import read_metadata

PAGE = Path(__file__).parents[2] / "docs" / "pages" / "command.md"


@pytest.fixture(scope="module")
def parts(data, tmp_path_factory):
    """Return the dataset as three tables of columns and as two of rows, with the target."""
    folder = tmp_path_factory.mktemp("parts")
    for i, some in enumerate((range(15), range(15, 35), range(35, 40))):
        np.savetxt(folder / f"part-{9 + i}.csv", data.X[:, some], "%.17g", ",", **_header(some))
    np.savetxt(folder / "all.csv", data.X, "%.17g", ",", **_header(range(40)))
    for i, rows in enumerate((slice(0, 25), slice(25, 60))):
        np.savetxt(folder / f"rows-{i}.csv", data.X[rows], "%.17g", ",", **_header(range(40)))
        np.savetxt(folder / f"y-{i}.txt", data.y[rows], "%.17g")
    np.savetxt(folder / "y.txt", data.y, "%.17g")
    return folder


def _header(numbers):
    return {"header": ",".join(f"v{j}" for j in numbers), "comments": ""}


@pytest.fixture
def learn(call, parts, tmp_path):
    """Return a function that learns a table of the parts, and returns the model file."""

    def learn(table, *options, command="select", y="y.txt", code=0):
        model = tmp_path / f"{Path(table).stem}.model"
        call(
            command, parts / table, "--orientation", "samples", "--target-file", parts / y,
            "-m", model, *options, code=code,
        )  # fmt: skip
        return model

    return learn


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("select", ["-k", 4]),
        ("select", ["-k", 4, "--method", "SelectKBest", "--max-candidates", 8]),
        ("select", ["-k", 4, "--method", "ForwardSelection", "--covariate", "v0"]),
        ("reduce", ["-q", 3, "--method", "PLS"]),
    ],
)
def test_merged_model_equals_one_run(call, learn, parts, tmp_path, command, options):
    if "--covariate" in options:  # a column of the target's table, so that every part has it
        table = np.column_stack([np.loadtxt(parts / "y.txt"), np.arange(60) % 7])
        np.savetxt(parts / "yz.csv", table, "%.17g", ",", header="y,z", comments="")
        options = [*options[:-1], "z", "--target", "y"]
    y = "yz.csv" if "--covariate" in options else "y.txt"
    for i in (9, 10, 11):
        learn(f"part-{i}.csv", *options, command=command, y=y)
    merged = tmp_path / "merged"
    found = call("merge", tmp_path / "part-*.model", "-o", merged, "--json").json()
    whole = learn("all.csv", *options, command=command, y=y)
    expected = call("info", whole, "--json").json()
    kind = {"select": "selected", "reduce": "components"}[command]
    assert _rounded(found[kind]) == _rounded(expected[kind])
    assert found["columns_seen"] == expected["columns_seen"] == 40
    assert call("info", merged, "--json").json() == found
    assert load(merged).n_columns == 40


def _rounded(value):
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return pytest.approx(value, rel=1e-9, abs=1e-12) if isinstance(value, float) else value


def test_metadata_list_the_merged_models(call, learn, parts, tmp_path):
    models = [learn(f"part-{i}.csv", "-k", 2, "--drop", f"v{j}") for i, j in ((9, 0), (10, 20))]
    result = call("merge", *models, "-o", tmp_path / "both")
    assert "# merged: " in result.stdout
    assert f"part-9.model ({parts / 'part-9.csv'})" in result.stdout
    metadata = read_metadata(tmp_path / "both")
    assert metadata["merged"] == [{"model": str(path), **read_metadata(path)} for path in models]
    assert (metadata["columns_read"], metadata["complete"]) == (33, True)
    assert metadata["dropped"] == ["v0", "v20"]
    assert metadata["target_file"] == str(parts / "y.txt")
    # A further merge with a third model keeps the earlier metadata.
    third = learn("part-11.csv", "-k", 2)
    call("merge", tmp_path / "both", third, "-o", tmp_path / "all")
    first, _ = read_metadata(tmp_path / "all")["merged"]
    assert first == {"model": str(tmp_path / "both"), **metadata}
    assert read_metadata(tmp_path / "all")["columns_read"] == 38
    message = call("select", parts / "all.csv", "--resume", tmp_path / "all", code=1).stderr
    assert "saved by streamsel merge" in message


def test_a_merged_model_transforms(call, learn, parts, tmp_path):
    for i in (9, 10, 11):
        learn(f"part-{i}.csv", "-k", 3)
    call("merge", tmp_path / "part-*.model", "-o", tmp_path / "m")
    tables = [parts / f"part-{i}.csv" for i in (9, 10, 11)]
    found = call("transform", tmp_path / "m", *tables, "--orientation", "samples").stdout
    assert found.splitlines()[0] == ",".join(load(tmp_path / "m").selected)


def test_merging_along_rows(call, learn, data, tmp_path):
    options = ["-k", 3, "--method", "SelectKBest"]
    models = [learn(f"rows-{i}.csv", *options, y=f"y-{i}.txt") for i in range(2)]
    found = call("merge", *models, "--along", "rows", "-o", tmp_path / "m", "--json").json()
    whole = call("info", learn("all.csv", *options), "--json").json()
    names = [[row["name"] for row in result["selected"]] for result in (found, whole)]
    assert names[0] == names[1]
    assert found["rows"] == len(data.y)
    assert read_metadata(tmp_path / "m")["columns_read"] == 40
    assert "different targets" in call("merge", *models, "-o", tmp_path / "m", code=1).stderr


def test_incompatible_models_give_one_line_errors(call, learn, files, parts, tmp_path):
    out, decided = tmp_path / "out", []
    for i, code in ((9, 0), (10, 1)):  # nothing passes in the second part
        model = learn(f"part-{i}.csv", "--method", "OSFS", code=code)
        decided.append(model.rename(tmp_path / f"decided-{i}"))
    first, second = learn("part-9.csv", "-k", 2), learn("part-10.csv", "-k", 3)
    same = learn("all.csv", "-k", 2)
    arrays = [tmp_path / f"array-{i}" for i in range(2)]
    for path in arrays:
        target = ["--target-file", files / "y.npy", "--max-candidates", 4]
        call("select", files / "data.npy", *target, "-k", 2, "-m", path)
    (tmp_path / "text").write_text("no model")
    for paths, words in {
        (first, second): f"{second}: Expected a ForwardSelection with the same parameters",
        (first, same): "in both. Hint: --along rows joins different rows",
        tuple(decided): f"{decided[1]}: Expected a model that has learnt no columns yet",
        tuple(arrays): f"{arrays[1]}: learnt from .npy files, like {arrays[0]}",
        (first, first): f"{first}: the same file as {first}",
        (first,): f"expected at least 2 models to merge. Got: {first}",
        (first, tmp_path / "text"): "text is not a file written by streamsel.save",
        (first, tmp_path / "nowhere"): "nowhere: No such file",
        (tmp_path / "none-*.model",): "none-*.model",
    }.items():
        message = call("merge", *paths, "-o", out, code=1).stderr
        assert words in message
        assert message.count("\n") == 1
        assert not out.exists()
    before = first.read_bytes()
    assert "the same file as" in call("merge", first, same, "-o", first, code=2).stderr
    assert first.read_bytes() == before
    call("merge", first, same, code=2)


def test_the_same_columns_twice_are_refused(call, learn, tmp_path):
    paths = [learn(f"part-{i}.csv", "-k", 2) for i in (9, 10, 11)]
    for path, values in zip(paths, ("a", "b", "a"), strict=True):
        read = {"columns": 20, "names": "x", "values": values}
        save(load(path), path, {**read_metadata(path), "fingerprint": {"read": read}})
    both = tmp_path / "both"
    call("merge", *paths[:2], "-o", both)
    for along in ("columns", "rows"):
        message = call("merge", both, paths[2], "--along", along, "-o", both.with_name("c"), code=1)
        assert f"{paths[2]}: has learnt the same columns as {paths[0]}" in message.stderr


def test_merging_models_of_incomplete_runs(call, learn, tmp_path):
    first, second = learn("part-9.csv", "-k", 2), learn("part-10.csv", "-k", 2)
    model, metadata = load(second), read_metadata(second)
    save(model, second, {**metadata, "complete": False})
    result = call("merge", first, second, "-o", tmp_path / "m")
    assert f"{second}: its run is incomplete" in result.stderr
    assert read_metadata(tmp_path / "m")["complete"] is False


@pytest.mark.parametrize(
    "own",
    [
        "mine",
        {"columns_read": 5},
        {"complete": "no", "merged": 3, "command": "merge"},
        {"command": "merge", "complete": True, "merged": [{"model": "a", "merged": 1}]},
        {"command": "merge", "complete": True, "merged": [3], "columns_read": 3},
        {"file": [1]},
        {"skipped": {"text": "many"}},
        {"fingerprint": "none"},
        {"dropped": "v0", "model": 3},
    ],
)
def test_metadata_may_be_arbitrary(call, learn, tmp_path, own):
    first, second = learn("part-9.csv", "-k", 2), learn("part-10.csv", "-k", 2)
    of_a_run = {"file", "skipped", "fingerprint", "dropped"} & set(own)
    metadata = {**read_metadata(second), **own} if of_a_run else own
    save(load(second), second, metadata)
    call("merge", first, second, "-o", tmp_path / "m")
    merged = read_metadata(tmp_path / "m")
    assert merged["merged"][1] == {"model": str(second), "metadata": metadata}
    assert merged["columns_read"] == 15
    third = learn("part-11.csv", "-k", 2)
    call("merge", tmp_path / "m", third, "-o", tmp_path / "n")
    assert read_metadata(tmp_path / "n")["merged"][0] == {"model": str(tmp_path / "m"), **merged}


@pytest.mark.slow
def test_documented_script_runs(tmp_path):
    script = re.search(r"```sh\n(#!/bin/sh.*?)```", PAGE.read_text(), re.DOTALL)[1]
    for name, arguments in {"streamsel": "-m streamsel", "python": ""}.items():
        command = tmp_path / name
        command.write_text(f'#!/bin/sh\nexec {sys.executable} {arguments} "$@"\n')
        command.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "TMPDIR": str(tmp_path),
    }
    run = subprocess.run(
        ["/bin/sh", "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    table = [line.split("\t") for line in run.stdout.splitlines() if not line.startswith("#")]
    assert [row[0] for row in table] == ["name", "v250", "v7"]
