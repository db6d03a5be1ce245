"""Two runs that would write the same file: the second ends at once, and names the first."""

import os
import signal
import subprocess
import sys

import pytest

from streamsel.cli import output

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such locks")


@pytest.fixture
def other(tmp_path):
    """Return a function that starts a process which reserves a file, and waits until it has."""
    code = (
        "import sys, time\n"
        "from streamsel.cli.output import output_locks\n"
        "with output_locks({'--out': sys.argv[1]}):\n"
        "    print('held', flush=True)\n"
        "    time.sleep(60)\n"
    )
    begun = []

    def begin(path):
        line = [sys.executable, "-c", code, str(path)]
        process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
        begun.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield begin
    for process in begun:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize("option", ["--model", "--out", "--list-skipped"])
def test_second_run_with_the_same_output_fails_at_once(call, files, tmp_path, other, option):
    path = tmp_path / "written.csv"
    path.write_text("before\n")
    process = other(path)
    given = ["select", files / "data.parquet", "-t", "y", "--drop", "labels", "-k2"]
    stderr = call(*given, option, path, code=1).stderr
    assert stderr.startswith(f"streamsel: error: {option} {path}: another run is writing this file")
    assert f"(process {process.pid} on {os.uname().nodename}, since 20" in stderr
    assert stderr.count("\n") == 1
    assert path.read_text() == "before\n"
    # A different file does not conflict, nor does the same file once that run has ended.
    call(*given, option, tmp_path / "other.csv")
    process.kill()
    process.wait()
    assert output.lock_path(path).exists()
    call(*given, option, path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["other.csv", "written.csv"]


def test_two_resumed_runs_of_one_model(call, files, tmp_path, other):
    given = ["select", files / "data.parquet", "-t", "y", "--drop", "labels", "-k2"]
    model = tmp_path / "model"
    call(*given, "--model", model)
    other(model)
    stderr = call(*given[:2], "--model", model, "--resume", code=1).stderr
    assert f"--resume {model}: another run is writing" in stderr
    # Reading the file does not disturb the run.
    call("info", model)


def test_stability_locks_its_output(call, files, tmp_path, other):
    out = tmp_path / "out.csv"
    other(out)
    given = [files / "data.parquet", "-t", "y", "--drop", "labels", "-k2", "--out", out]
    assert "another run is writing" in call("stability", *given, code=1).stderr


def test_symbolic_link_has_the_same_lock(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert output.lock_path(tmp_path / "link") == output.lock_path(tmp_path / "file")
    long = [tmp_path / ("x" * 240 + end) for end in "ab"]
    assert len({output.lock_path(path) for path in long}) == 2
    with output.output_locks({"--out": str(long[0]), "--model": str(long[1])}):
        assert len([*tmp_path.glob(".lock-*")]) == 2
    assert not [*tmp_path.glob(".lock-*")]


def test_an_interrupted_run_leaves_no_lock(tmp_path, other):
    process = other(tmp_path / "file")
    process.send_signal(signal.SIGINT)
    process.wait()
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("where", ["flock", "open"])
def test_a_file_system_without_locks(tmp_path, monkeypatch, where):
    def refuse(*_):
        raise OSError(38, "Function not implemented")

    of = {"flock": output.fcntl, "open": output.os}[where]
    monkeypatch.setattr(of, where, refuse)
    with output.output_locks({"--out": str(tmp_path / "file")}):
        pass
    monkeypatch.undo()
    assert not [*tmp_path.iterdir()]


@pytest.mark.slow
def test_concurrent_runs_write_in_turn(tmp_path):
    """While locks are made and removed repeatedly, no two runs have the same one."""
    code = (
        "import os, sys, time\n"
        "from streamsel.cli.errors import CommandError\n"
        "from streamsel.cli.output import output_locks\n"
        "won, until = 0, time.monotonic() + 1.5\n"
        "while time.monotonic() < until:\n"
        "    try:\n"
        "        with output_locks({'--out': sys.argv[1]}):\n"
        "            os.close(os.open(sys.argv[1], os.O_CREAT | os.O_EXCL))\n"
        "            os.unlink(sys.argv[1])\n"
        "            won += 1\n"
        "    except CommandError:\n"
        "        pass\n"
        "print(won)\n"
    )
    line = [sys.executable, "-c", code, str(tmp_path / "file")]
    runs = [subprocess.Popen(line, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    found = [run.communicate(timeout=60)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0]
    assert sum(map(int, found)) > 100
