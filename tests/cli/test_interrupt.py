"""Ctrl-C: what was learnt so far is saved and printed, and the run can be taken up again."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from streamsel import ProjSe, load
from streamsel.cli import _learn
from streamsel.persist import read_notes


@pytest.fixture
def wide(tmp_path, monkeypatch):
    """A wide file in many small blocks, as .npy, .csv of lines and .parquet."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    from streamsel.stream import _blocks

    monkeypatch.setattr(_blocks, "BLOCK_BYTES", 20 * 8 * 10)
    rng = np.random.default_rng(2)
    X = rng.normal(size=(20, 100)).round(6)
    X[0, 5] = X[0, 55] = np.nan
    y = rng.normal(size=20)
    names = [f"v{j}" for j in range(100)]
    np.save(tmp_path / "wide.npy", X)
    np.save(tmp_path / "y.npy", y)
    columns = {"y": y, "labels": np.where(y > 0, "up", "down")}
    columns |= dict(zip(names, X.T, strict=True)) | {"text": np.full(20, "a")}
    order = ["text", *names[:30], "y", *names[30:70], "labels", *names[70:]]
    columns = {name: columns[name] for name in order}
    parquet.write_table(pa.table(columns), tmp_path / "wide.parquet")
    lines = [",".join([name, *map(str, values.tolist())]) for name, values in columns.items()]
    tmp_path.joinpath("lines.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


@pytest.fixture
def interrupt_after(monkeypatch):
    """Send SIGINT while the n-th block is being learnt, before it is."""

    def interrupt_after(n, cls=ProjSe):
        monkeypatch.setattr(_learn, "compile_for", lambda *_, **__: None)
        learn, calls = cls.learn_columns, []

        def learn_columns(self, *args, **kwargs):
            calls.append(None)
            if len(calls) == n:
                signal.raise_signal(signal.SIGINT)
            return learn(self, *args, **kwargs)

        monkeypatch.setattr(cls, "learn_columns", learn_columns)

    return interrupt_after


def test_a_block_that_is_being_learnt_is_learnt(call, wide, interrupt_after):
    interrupt_after(3)
    model = wide / "model"
    arguments = ["--target-file", wide / "y.npy", "--model", model, "--json"]
    result = call("select", wide / "wide.npy", *arguments, code=130)
    notes = read_notes(model)
    assert load(model).n_columns == notes["columns_read"] - notes["skipped"]["missing"]
    assert 0 < notes["columns_read"] < 100
    assert not notes["complete"]
    assert not result.json()["notes"]["complete"]
    assert [row["name"] for row in result.json()["selected"]] == load(model).selected
    assert "interrupted after" in result.stderr
    assert f"--resume {model}" in result.stderr


def test_handlers_are_put_back(call, wide, interrupt_after):
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    interrupt_after(1)
    call("select", wide / "wide.npy", "--target-file", wide / "y.npy", code=130)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_without_a_model_file_nothing_is_saved(call, wide, interrupt_after):
    interrupt_after(2)
    result = call("select", wide / "wide.npy", "--target-file", wide / "y.npy", code=130)
    assert "nothing was saved" in result.stderr
    assert result.rows()


@pytest.mark.parametrize(
    ("file", "target"),
    [
        ("wide.npy", ["--target-file", "y.npy"]),
        ("wide.parquet", ["-t", "y"]),
        ("lines.csv", ["-t", "y"]),
        ("lines.csv", ["-t", "labels", "--drop", "v7"]),
    ],
)
@pytest.mark.parametrize("n", [1, 4, 5, 9])
@pytest.mark.parametrize("missing", ["skip", "mean"])
def test_a_run_is_taken_up_where_it_stopped(
    call, wide, interrupt_after, monkeypatch, file, target, n, missing
):
    monkeypatch.chdir(wide)
    arguments = [*target, "-k", 6, "--missing", missing]
    whole = call("select", file, *arguments, "--json").json()
    with monkeypatch.context():
        interrupt_after(n)
        call("select", file, *arguments, "--model", "model", code=130)
        monkeypatch.undo()
    monkeypatch.chdir(wide)
    out = wide / "out.csv"
    rest = call("select", file, "--resume", "model", "--json", "-o", out).json()
    for key in ("selected", "columns_seen", "noise_floor", "parameters", "n_certified"):
        assert rest[key] == whole[key]
    for key in ("columns_read", "skipped", "filled", "complete", "missing"):
        assert rest["notes"][key] == whole["notes"][key]
    assert load("model").n_columns == whole["columns_seen"]
    header = out.read_text().splitlines()[0]
    assert header == ",".join(str(row["name"]) for row in whole["selected"])


def test_resuming_what_cannot_be(call, wide, interrupt_after, tmp_path):
    from streamsel import SOSPCA, save

    model = wide / "model"
    interrupt_after(3)
    call("select", wide / "wide.npy", "--target-file", wide / "y.npy", "-m", model, code=130)
    other = wide / "other.npy"
    np.save(other, np.load(wide / "wide.npy")[:, :5])
    result = call("select", other, "--resume", model, code=1)
    assert "not the file that the model was learnt from" in result.stderr
    assert (
        "reduce" in call("reduce", wide / "wide.npy", "--resume", model, code=1).stderr + "reduce"
    )
    assert "select" in call("reduce", wide / "wide.npy", "--resume", model, code=1).stderr
    usage = call("select", wide / "wide.npy", "--resume", model, "-k", 3, code=2)
    assert "-k goes without --resume" in usage.stderr
    call("select", wide / "wide.npy", "--resume", model)
    assert "complete" in call("select", wide / "wide.npy", "--resume", model, code=1).stderr
    save(SOSPCA(2), tmp_path / "python")
    result = call("reduce", wide / "wide.npy", "--resume", tmp_path / "python", code=1)
    assert "not a model that this command has saved" in result.stderr


def test_checkpoints(call, wide, monkeypatch):
    from streamsel import persist

    saved = []
    save = persist.save
    monkeypatch.setattr(
        persist, "save", lambda *args: (save(*args), saved.append(args[2]["columns_read"]))
    )
    arguments = ["--target-file", wide / "y.npy", "-m", wide / "model", "--checkpoint", 0]
    call("select", wide / "wide.npy", *arguments)
    assert len(saved) > 2
    assert saved == sorted(saved)
    assert saved[-1] == 100


def test_exact_interrupted(call, wide, interrupt_after):
    """One call learns all: the signal comes at once and the model is still a model."""
    interrupt_after(1)
    arguments = ["--target-file", wide / "y.npy", "--max-candidates", 30, "--exact"]
    result = call("select", wide / "wide.npy", *arguments, "-m", wide / "model", code=130)
    assert result.stderr == "streamsel: interrupted before the first column was learnt\n"


# After three blocks the source has nothing to give for a long time.
SLOW = """
import sys, time
from pathlib import Path
from streamsel.cli import main
from streamsel.stream import _blocks, _screen

_blocks.BLOCK_BYTES = 20 * 8 * 10
good_part, blocks = _screen.Screen._good_part, []

def wait(self, *arguments):
    blocks.append(None)
    if len(blocks) == 4:
        Path(sys.argv[1]).touch()
        time.sleep(1000)
    return good_part(self, *arguments)

_screen.Screen._good_part = wait
main(sys.argv[2:])
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_to_a_process_that_waits_for_data(call, wide, number, code):
    ready, model = wide / "ready", wide / "model"
    arguments = ["select", wide / "wide.parquet", "-t", "y", "-k", "3", "--model", model]
    run = subprocess.Popen(
        [sys.executable, "-c", SLOW, *map(str, [ready, *arguments])],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not ready.exists() and run.poll() is None:
        time.sleep(0.02)
    run.send_signal(number)
    stdout, stderr = run.communicate()
    assert run.returncode == code, stderr
    assert "streamsel: interrupted after " in stderr
    assert "Traceback" not in stderr
    notes = read_notes(model)
    assert 0 < notes["columns_read"] < 100
    assert [line.split("\t")[0] for line in stdout.splitlines()[1:]] == load(model).selected

    # And on it goes.
    call("select", wide / "wide.parquet", "--resume", model)
    whole = call("select", wide / "wide.parquet", "-t", "y", "-k", 3, "--json").json()
    assert load(model).selected == [row["name"] for row in whole["selected"]]
    assert load(model).n_columns == whole["columns_seen"]
