"""Ctrl-C: results so far are saved and printed, and the run can be resumed."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from streamsel import ForwardSelection, load
from streamsel.cli import checkpoint, results, run
from streamsel.serialization import archive
from streamsel.serialization.archive import read_metadata
from tests.seed import some

CODES = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]


def test_current_block_is_completed(call, wide, interrupt_after):
    interrupt_after(3)
    model = wide / "model"
    arguments = ["--target-file", wide / "y.npy", "--model", model, "--json"]
    result = call("select", wide / "wide.npy", *arguments, code=130)
    metadata = read_metadata(model)
    assert load(model).n_columns == metadata["columns_read"] - metadata["skipped"]["missing"]
    assert 0 < metadata["columns_read"] < 100
    assert not metadata["complete"]
    assert not result.json()["metadata"]["complete"]
    assert [row["name"] for row in result.json()["selected"]] == load(model).selected
    assert "interrupted after" in result.stderr
    assert f"--resume {model}" in result.stderr


def test_signal_handlers_are_restored(call, wide, interrupt_after):
    before = [signal.getsignal(number) for number, _ in CODES]
    interrupt_after(1)
    call("select", wide / "wide.npy", "--target-file", wide / "y.npy", code=130)
    assert [signal.getsignal(number) for number, _ in CODES] == before


@pytest.mark.parametrize(("number", "code"), CODES)
def test_each_signal_has_its_exit_code(call, wide, interrupt_after, number, code):
    interrupt_after(3, number=number)
    line = ["select", wide / "wide.npy", "--target-file", wide / "y.npy", "-m", wide / "model"]
    assert "the model was saved to" in call(*line, code=code).stderr
    assert not read_metadata(wide / "model")["complete"]


@pytest.mark.parametrize(("number", "code"), CODES)
def test_ignored_signal_stays_ignored(call, wide, interrupt_after, number, code):
    """A signal ignored by the parent stays ignored, as SIGHUP under nohup."""
    before = signal.signal(number, signal.SIG_IGN)
    try:
        interrupt_after(3, number=number)
        call("select", wide / "wide.npy", "--target-file", wide / "y.npy")
    finally:
        signal.signal(number, before)


def test_second_signal_does_not_interrupt_saving(call, wide, interrupt_after, monkeypatch):
    monkeypatch.setattr(checkpoint, "SAME_SIGNAL_SECONDS", 0.0)
    in_the_middle(monkeypatch, archive, "save", signal.SIGTERM)
    interrupt_after(3)
    line = ["select", wide / "wide.npy", "--target-file", wide / "y.npy", "-m", wide / "model"]
    assert "the model was saved to" in call(*line, code=130).stderr
    assert 0 < read_metadata(wide / "model")["columns_read"] < 100


def test_simultaneous_signals_count_once(call, wide, monkeypatch):
    def learn_columns(self, *args, **kwargs):
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGHUP)

    monkeypatch.setattr(run, "compile_for", lambda *_, **__: None)
    monkeypatch.setattr(ForwardSelection, "learn_columns", learn_columns)
    line = ["select", wide / "wide.npy", "--target-file", wide / "y.npy", "-m", wide / "model"]
    call(*line, code=143)


@pytest.mark.parametrize(("number", "code"), CODES)
def test_a_signal_while_a_run_is_finishing(call, wide, monkeypatch, number, code):
    line = ["select", wide / "wide.parquet", "-t", "y", "-m", wide / "m", "-o", wide / "out.csv"]
    for module, name in ((archive, "save"), (results, "write_table")):
        with monkeypatch.context() as patch:
            in_the_middle(patch, module, name, number)
            result = call(*line, code=code)
        assert f"{wide / 'out.csv'} was not written" in result.stderr
        assert read_metadata(wide / "m")["complete"]
        assert [row["name"] for row in result.rows()] == load(wide / "m").selected
        assert sorted(path.name for path in wide.iterdir() if ".tmp" in path.name) == []
        again = call(*line, "--resume")
        assert again.rows() == result.rows()
        assert (wide / "out.csv").read_text().startswith(header(wide / "m"))
        (wide / "out.csv").unlink()


def header(model):
    """Return the names of the selected columns: `labels` is a group of two."""
    return ",".join(str(name) for group in load(model).members.values() for name in group)


def in_the_middle(patch, module, name, number):
    """Send a signal when a function is called, and then call it."""
    function = getattr(module, name)

    def interrupted(*args, **kwargs):
        signal.raise_signal(number)
        return function(*args, **kwargs)

    patch.setattr(module, name, interrupted)


def test_without_a_model_file_nothing_is_saved(call, wide, interrupt_after):
    interrupt_after(2)
    result = call("select", wide / "wide.npy", "--target-file", wide / "y.npy", code=130)
    assert "the model was not saved" in result.stderr
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
def test_interrupted_run_is_resumed(
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
        assert rest["metadata"][key] == whole["metadata"][key]
    assert load("model").n_columns == whole.get("n_columns", whole["columns_seen"])
    assert out.read_text().splitlines()[0] == header("model")


def test_models_that_cannot_be_resumed(call, wide, interrupt_after, tmp_path):
    from streamsel import SOSPCA, save

    model = wide / "model"
    interrupt_after(3)
    call("select", wide / "wide.npy", "--target-file", wide / "y.npy", "-m", model, code=130)
    other = wide / "other.npy"
    np.save(other, np.load(wide / "wide.npy")[:, :5])
    result = call("select", other, "--resume", model, code=1)
    assert "the input has changed since the last run" in result.stderr
    assert (
        "reduce" in call("reduce", wide / "wide.npy", "--resume", model, code=1).stderr + "reduce"
    )
    assert "select" in call("reduce", wide / "wide.npy", "--resume", model, code=1).stderr
    save(SOSPCA(2), tmp_path / "python")
    result = call("reduce", wide / "wide.npy", "--resume", tmp_path / "python", code=1)
    assert "expected a model saved by streamsel reduce" in result.stderr


def test_checkpoints(call, wide, monkeypatch):
    from streamsel.serialization import archive

    saved = []
    save = archive.save
    monkeypatch.setattr(
        archive, "save", lambda *args: (save(*args), saved.append(args[2]["columns_read"]))
    )
    arguments = ["--target-file", wide / "y.npy", "-m", wide / "model", "--checkpoint", 0]
    call("select", wide / "wide.npy", *arguments)
    assert len(saved) > 2
    assert saved == sorted(saved)
    assert saved[-1] == 100


def test_interrupted_exact_run_cannot_be_resumed(call, wide, interrupt_after):
    """One call learns all columns; an early signal still leaves a valid model."""
    interrupt_after(1)
    arguments = ["--target-file", wide / "y.npy", "--max-candidates", 30, "--exact"]
    result = call("select", wide / "wide.npy", *arguments, "-m", wide / "model", code=130)
    hint = "a run with --exact cannot be resumed; use --checkpoint or --no-exact"
    assert result.stderr == (
        f"streamsel: interrupted before the first column was learnt\nstreamsel: {hint}\n"
    )


# After three blocks the source yields nothing for a long time.
SLOW = """
import sys, time
from pathlib import Path
from streamsel.cli import main
from streamsel.stream import _blocks, _clean

_blocks.BLOCK_BYTES = 20 * 8 * 10
good_part, blocks = _clean.CleanStream._good_part, []

def wait(self, *arguments):
    blocks.append(None)
    if len(blocks) == 4:
        Path(sys.argv[1]).touch()
        time.sleep(1000)
    return good_part(self, *arguments)

_clean.CleanStream._good_part = wait
main(sys.argv[2:])
"""


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), some(CODES, 1, "signal_to_a_process"))
def test_signal_while_waiting_for_data(call, wide, number, code):
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
    metadata = read_metadata(model)
    assert 0 < metadata["columns_read"] < 100
    assert [line.split("\t")[0] for line in stdout.splitlines()[1:]] == load(model).selected

    # The run can be resumed.
    call("select", wide / "wide.parquet", "--resume", model)
    whole = call("select", wide / "wide.parquet", "-t", "y", "-k", 3, "--json").json()
    assert load(model).selected == [row["name"] for row in whole["selected"]]
    assert load(model).n_columns == whole.get("n_columns", whole["columns_seen"])


@pytest.mark.slow
def test_terminal_hangup(call, wide):
    """When a terminal closes, writing to it fails, and the kernel sends SIGHUP."""
    pty = pytest.importorskip("pty")
    ready, model = wide / "ready", wide / "model"
    arguments = ["select", wide / "wide.parquet", "-t", "y", "-k", "3", "--model", model]
    takes_it = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)"
    ours, theirs = pty.openpty()
    run = subprocess.Popen(
        [sys.executable, "-c", takes_it + SLOW, *map(str, [ready, *arguments])],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    while not ready.exists() and run.poll() is None:
        time.sleep(0.02)
    os.close(ours)
    assert run.wait() == 129
    assert 0 < read_metadata(model)["columns_read"] < 100


DROPPED = """
import signal, time
from streamsel import cli
from streamsel.cli import app, checkpoint

class Finalized:
    def __del__(self):
        signal.raise_signal(signal.{signal})

@app.app.command()
def work():
    with checkpoint.Interrupts():
        Finalized()
        print("goes on", flush=True)
        time.sleep(60)

cli.main(["work"])
"""


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), some(CODES, 1, "signal_whose_except"))
def test_signal_with_a_dropped_exception_is_sent_again(number, code):
    program = [sys.executable, "-c", DROPPED.format(signal=number.name)]
    result = subprocess.run(program, capture_output=True, text=True, timeout=50, check=False)
    assert (result.returncode, result.stdout) == (code, "goes on\n")
    assert result.stderr == "streamsel: interrupted\n"
