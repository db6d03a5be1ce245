"""The command protects its inputs and earlier results from being overwritten or lost."""

import signal
import subprocess
import sys
from unittest.mock import Mock

import numpy as np
import pytest
from click.testing import CliRunner

from streamsel import SOSPCA, ForwardSelection, ProjSe, SelectKBest, load
from streamsel.cli import output, results, run
from streamsel.cli.app import app
from streamsel.cli.run import compile_for
from streamsel.serialization.archive import read_metadata
from streamsel.stream import clean, iter_array, iter_csv


@pytest.fixture
def small(table):
    rng = np.random.default_rng(3)
    return table(y=rng.normal(size=9), a=rng.normal(size=9), b=rng.normal(size=9))


# Files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["--out", "--model", "--list-skipped"])
@pytest.mark.parametrize("alias", [False, True])
def test_an_output_that_is_the_input_is_refused(call, small, tmp_path, option, alias):
    before, path = small.read_bytes(), small
    if alias:
        path = tmp_path / "link.csv"
        path.symlink_to(small)
    result = call("select", small, "-t", "y", option, path, code=2)
    assert f"{option} {path}: the same file as FILE" in result.stderr
    assert small.read_bytes() == before


@pytest.mark.parametrize("option", ["--out", "--model", "--list-skipped"])
def test_an_output_that_is_the_target_file_is_refused(call, small, table, option):
    target = table("y.csv", y=range(9))
    call("select", small, "--target-file", target, option, target, code=2)


def test_two_outputs_to_the_same_file_are_refused(call, small, tmp_path):
    same = [tmp_path / "x.csv", tmp_path / "." / "x.csv"]
    result = call("select", small, "-t", "y", "--out", same[0], "--model", same[1], code=2)
    assert "the same file as --" in result.stderr
    assert not same[0].exists()


def test_outputs_of_a_resumed_run(call, small, tmp_path):
    model = tmp_path / "model.csv"
    call("select", small, "-t", "y", "-k", 1, "-m", model)
    call("select", small, "--resume", model, "-o", model, code=2)
    # A resumed run may save to its own model file.
    call("select", small, "--resume", model, "-m", model)


def test_transform_does_not_overwrite_its_inputs(call, small, tmp_path):
    model = tmp_path / "model.csv"
    call("select", small, "-t", "y", "-k", 1, "-m", model)
    for path in (model, small):
        call("transform", model, small, "-o", path, code=2)
    assert load(model).n_columns == 2


def test_failed_call_leaves_existing_list_unchanged(call, small, tmp_path):
    listed = tmp_path / "listed"
    listed.write_text("old")
    call("select", small, "-t", "why", "--list-skipped", listed, code=1)
    call("select", small, "-t", "y", "--max-candidates", 2, "--list-skipped", listed, code=2)
    assert listed.read_text() == "old"


# Results -----------------------------------------------------------------------------------------


def full(*_):
    raise OSError(28, "No space left on device", "/somewhere/.temporary")


def test_failure_to_save_the_model_is_reported(call, small, tmp_path, monkeypatch):
    monkeypatch.setattr("streamsel.serialization.archive.save", full)
    path, out = tmp_path / "model", tmp_path / "out.csv"
    result = call("select", small, "-t", "y", "-k", 1, "-m", path, "-o", out, code=1)
    assert len(result.rows()) == 1
    assert out.exists()
    expected = f"error: --model {path}: not written (No space left on device)\n"
    assert result.stderr.endswith(expected)


def test_failure_to_write_columns_is_reported(call, small, tmp_path, monkeypatch):
    monkeypatch.setattr(output, "_write_text", full)
    path, model = tmp_path / "out.csv", tmp_path / "model"
    result = call("select", small, "-t", "y", "-k", 1, "-o", path, "-m", model, code=1)
    assert len(result.rows()) == 1
    assert model.exists()
    assert result.stderr.endswith(f"error: --out {path}: not written (No space left on device)\n")


def test_bug_in_one_output_does_not_prevent_the_others(small, tmp_path, monkeypatch):
    """The bug is not hidden: it is raised after the results are printed."""
    monkeypatch.setattr(results, "_write", Mock(side_effect=AttributeError("a bug")))
    out, statistics = tmp_path / "out.csv", tmp_path / "statistics.csv"
    files = ["-o", str(out), "--statistics", str(statistics)]
    result = CliRunner().invoke(
        app, ["select", str(small), "-t", "y", "-k", "1", "--method", "SelectKBest", *files]
    )
    assert result.stdout.count("\n") == 2
    assert statistics.exists()
    assert isinstance(result.exception, AttributeError)
    assert result.exception.__notes__ == [f"--out {out}: not written (a bug)"]


def test_stability_is_printed_if_its_file_cannot_be_written(call, small, tmp_path, monkeypatch):
    monkeypatch.setattr(output, "_write_text", full)
    given = ["-t", "y", "-k", 1, "--subsamples", 2, "-o", tmp_path / "out.csv"]
    result = call("stability", small, *given, code=1)
    assert result.rows()
    assert "No space left on device" in result.stderr


def test_interrupted_run_certifies_no_variable(call, small, tmp_path, monkeypatch):
    learn = ForwardSelection.learn_columns

    def interrupted(self, *args, **kwargs):
        signal.raise_signal(signal.SIGINT)
        return learn(self, *args, **kwargs)

    monkeypatch.setattr(run, "compile_for", lambda *_, **__: None)
    monkeypatch.setattr(ForwardSelection, "learn_columns", interrupted)
    model = tmp_path / "model"
    rows = call("select", small, "-t", "y", "-k", 1, "-m", model, code=130).rows()
    assert [row["certified"] for row in rows] == ["no"]
    assert not read_metadata(model)["complete"]
    assert call("info", model, "--json").json()["n_certified"] == 0


def test_fewer_results_than_requested(call, small):
    result = call("select", small, "-t", "y", "-k", 30)
    assert len(result.rows()) == 2
    assert result.stderr == "streamsel: selected 2 of 30 requested: only 2 columns could be used\n"
    assert " of 30 requested: " in call("reduce", small, "-t", "y", "-q", 30).stderr


def test_run_that_learns_nothing_fails(call, table):
    result = call("reduce", table(y=[1, 2, 3], a=[1, 1, 1]), "-t", "y", code=1)
    assert "error: nothing was learnt: none of 1 column read could be used\n" in result.stderr


def test_complex_columns_are_skipped_as_complex(rng):
    X = rng.normal(size=(5, 2)) + 1j
    screened = clean(X)
    assert list(screened) == []
    assert screened.skipped == {"complex": 2}


def test_compilation_time_is_not_counted(call, small, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(run.time, "monotonic", lambda: clock[0])

    def compile_for(*_, **__):
        clock[0] += 20

    monkeypatch.setattr(run, "compile_for", compile_for)
    result = call("select", small, "-t", "y", "-k", 1, "--json").json()
    assert result["metadata"]["seconds"] < 20


@pytest.mark.parametrize("dtype", ["f8", "f4", "i1", "u1"])
def test_compiling_does_not_change_the_model(rng, monkeypatch, dtype):
    learnt, learn = [], ForwardSelection.learn_columns

    def learn_columns(self, X, *args, **kwargs):
        learnt.append((self, X.dtype))
        return learn(self, X, *args, **kwargs)

    monkeypatch.setattr(ForwardSelection, "learn_columns", learn_columns)
    model = ForwardSelection(2)
    model.learn_target(rng.normal(size=9))
    X = rng.integers(0, 9, size=(9, 4)).astype(dtype)
    compile_for(model, iter_array(X), supervised=True)
    ((other, found),) = learnt
    assert other is not model
    assert found == dtype
    assert model.n_columns == 0


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (SelectKBest(2, score="margin"), ["a", "b", "c"] * 3),
        (SelectKBest(2, covariates=("age",)), range(9)),
        (SOSPCA(2, covariates=("age", "site")), range(9)),
        (ProjSe(2), None),
    ],
    ids=["classes", "covariate", "covariates", "none"],
)
def test_compilation_uses_the_settings_of_the_model(rng, monkeypatch, model, y):
    model = model.clone()
    if y is not None:
        names = model.covariates
        model.learn_target(y, covariates=rng.normal(size=(9, len(names))) if names else None)
    learnt = []
    monkeypatch.setattr(type(model), "learn_columns", lambda self, _: learnt.append(self))
    compile_for(model, iter_array(rng.normal(size=(9, 4))), supervised=y is not None)
    (twin,) = learnt
    assert twin.covariates == model.covariates


def test_signal_during_compilation_interrupts_at_once(call, small, monkeypatch):
    monkeypatch.setattr(run, "compile_for", lambda *_, **__: signal.raise_signal(signal.SIGINT))
    result = call("select", small, "-t", "y", code=130)
    assert result.stderr == "streamsel: interrupted before the first column was learnt\n"


# Text --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("orientation", ["samples", "variables"])
@pytest.mark.parametrize("as_target", [False, True])
def test_text_that_is_not_utf8(call, small, tmp_path, orientation, as_target):
    path = tmp_path / ("y.txt" if as_target else "latin.csv")
    path.write_bytes("y,é\n1,2\n2,1\n".encode("latin-1"))
    arguments = [small, "--target-file", path] if as_target else [path, "-t", "y"]
    result = call("select", *arguments, "--orientation", orientation, code=1)
    assert str(path) in result.stderr
    assert "Hint: convert it" in result.stderr


@pytest.mark.parametrize("as_target", [False, True])
def test_pickled_objects(call, small, tmp_path, as_target):
    path = tmp_path / "x.npy"
    np.save(path, np.array([["a", 1]], dtype=object), allow_pickle=True)
    arguments = [small, "--target-file", path] if as_target else [path, "-t", "0"]
    result = call("select", *arguments, "--orientation", "samples", code=1)
    assert "which holds Python objects" in result.stderr
    assert "pickle" not in result.stderr.replace(str(path), "")


def test_no_rows(call, tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "none.parquet"
    parquet.write_table(pa.table({"y": pa.array([], pa.float64()), "a": pa.array([], "f8")}), path)
    result = call("select", path, "-t", "y", code=1)
    assert "at least 2 observations" in result.stderr


@pytest.mark.parametrize(
    ("name", "mark", "options"),
    [
        ("x.csv", ",", []),
        ("x.csv", ";", []),
        ("x.tsv", "\t", []),
        ("x.txt", "|", ["--delimiter", "|"]),
        ("x.csv", "\t", ["--delimiter", "tab"]),
    ],
)
def test_delimiters(call, tmp_path, name, mark, options):
    path = tmp_path / name
    lines = [["y", '"a\tb;c,d"', "e"], "123", "251", "412"]
    path.write_text("\n".join(mark.join(line) for line in lines) + "\n")
    rows = call("select", path, "-t", "y", "-k", 2, *options).rows()
    assert {row["name"] for row in rows} == {"a\tb;c,d", "e"}


def test_the_suffix_comes_before_a_tab_in_a_name(call, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("y,a\tb,c\n1,2,3\n2,5,1\n4,1,2\n")
    assert {row["name"] for row in call("select", path, "-t", "y", "-k", 2).rows()} == {"a\tb", "c"}


def test_delimiter_of_two_characters_is_refused(call, small):
    assert "--delimiter" in call("select", small, "-t", "y", "--delimiter", "ab", code=2).stderr


def test_only_requested_lines_are_parsed(tmp_path):
    path = tmp_path / "lines.csv"
    path.write_text("a,1,2\nb,x,y\nragged,1\nc,3,4\n")
    found = iter_csv(path, orientation="variables", header=False).take(["c", "a"])
    assert {name: values.tolist() for name, values in found.items()} == {"c": [3, 4], "a": [1, 2]}
    with pytest.raises(ValueError, match="line 2"):
        iter_csv(path, orientation="variables", header=False).take(["b"])


# Processes ---------------------------------------------------------------------------------------


def test_command_runs_as_a_module():
    run = subprocess.run(
        [sys.executable, "-m", "streamsel", "--version"], capture_output=True, text=True, check=True
    )
    assert run.stdout.startswith("streamsel ")


def test_signal_during_import():
    code = """
import builtins
from streamsel.cli import main
real = builtins.__import__
def wait(name, *args, **kwargs):
    if name == "streamsel.cli.app":
        raise KeyboardInterrupt
    return real(name, *args, **kwargs)
builtins.__import__ = wait
main([])
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (130, "streamsel: interrupted\n")


@pytest.mark.slow
def test_a_closed_stdout(small):
    code = "import sys; sys.stdout = None; from streamsel.cli import main; main(sys.argv[1:])"
    arguments = ["select", small, "-t", "y", "-k", "1"]
    run = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr.count("\n")) == (0, 1)
    assert run.stderr.startswith("streamsel: target: ")
