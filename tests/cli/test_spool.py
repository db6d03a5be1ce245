"""Standard input and pipes: copied to a temporary file, which is deleted at the end."""

import errno
import gzip
import io
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

import pytest
from click.testing import CliRunner

from streamsel.cli import inputs, log
from streamsel.cli.app import app
from streamsel.cli.log import Log
from tests.cli.test_terminal import COMMAND


@pytest.fixture(autouse=True)
def copies(tmp_path, monkeypatch):
    """Return a separate folder for the copies, and check that it is empty at the end."""
    directory = tmp_path / "copies"
    directory.mkdir()
    monkeypatch.setenv("TMPDIR", str(directory))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield directory
    assert not list(directory.iterdir())


def feed(content, *arguments, code=0):
    """Run the command with this content on standard input."""
    arguments = [str(a) for a in arguments]
    result = CliRunner().invoke(app, arguments, input=content, prog_name="streamsel")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


@pytest.mark.parametrize(
    "file",
    ["data.parquet", "data.feather", "samples.csv", "variables.csv", "samples.tsv.gz"],
)
def test_standard_input(call, files, file):
    arguments = ["-t", "y", "--drop", "labels", "-k", 5]
    expected = call("select", files / file, *arguments)
    result = feed((files / file).read_bytes(), "select", "-", *arguments)
    assert result.stdout == expected.stdout
    assert result.stderr == f"streamsel: target: {expected.target}\n"


def test_array_on_standard_input_with_a_target_file(call, files):
    arguments = ["--target-file", files / "y.npy", "-k", 5]
    expected = call("select", files / "data.npy", *arguments).stdout
    assert feed((files / "data.npy").read_bytes(), "select", "-", *arguments).stdout == expected


@pytest.mark.parametrize(
    ("file", "names"),
    [("y.npy", []), ("y.txt", []), ("y.csv", ["-t", "y"]), ("samples.csv", ["-t", "y"])],
)
def test_a_target_on_standard_input(call, files, file, names):
    expected = call("select", files / "data.npy", "--target-file", files / "y.npy", "-k", 5)
    arguments = ["--target-file", "-", *names, "-k", 5]
    result = feed((files / file).read_bytes(), "select", files / "data.npy", *arguments)
    assert result.stdout == expected.stdout


def test_transform_of_standard_input(call, files, tmp_path):
    content, model = (files / "data.parquet").read_bytes(), tmp_path / "m"
    feed(content, "reduce", "-", "-t", "y", "--drop", "labels", "-q", 2, "-m", model)
    assert call("info", model, "--json").json()["metadata"]["file"] == "-"
    expected = call("transform", model, files / "data.parquet").stdout
    assert feed(content, "transform", model, "-").stdout == expected


def test_multi_file_format_on_standard_input_is_refused(files):
    result = feed(b"\x6c\x1b\x01\x00", "select", "-", "--target-file", files / "y.npy", code=1)
    assert "Got: .bed, which needs its .bim and .fam files. Hint: pass the path" in result.stderr


def test_a_named_pipe(call, files, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    content = (files / "samples.csv").read_bytes()
    writer = threading.Thread(target=pipe.write_bytes, args=[content])
    writer.start()
    arguments = ["-t", "y", "--drop", "labels", "-k", 5]
    result = call("select", pipe, *arguments)
    writer.join()
    assert result.stdout == call("select", files / "samples.csv", *arguments).stdout


@pytest.mark.slow
def test_a_named_pipe_without_a_writer(copies, files, tmp_path):
    """The log reports that it waits for a writer, and a signal ends the wait."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    code = "from streamsel.cli import log; log.WRITER_WAIT_SECONDS = 0.1\n"
    code += "from streamsel.cli.app import app; app()"
    for given in (
        [pipe, "-t", "y"],
        [files / "data.npy", "--target-file", pipe],
        ["--config", pipe, files / "data.npy"],
    ):
        run = subprocess.Popen(
            [sys.executable, "-c", code, "select", *map(str, given)],
            stderr=subprocess.PIPE,
            text=True,
        )
        line = run.stderr.readline()
        assert line.startswith(
            f"streamsel: {pipe}: waiting for a program to write to this named pipe"
        )
        run.send_signal(signal.SIGINT)
        _, rest = run.communicate(timeout=20)
        assert run.returncode == 130
        assert rest.startswith("streamsel: interrupted")
        assert rest.count("\n") == 1


def test_a_named_pipe_with_a_late_writer(call, files, tmp_path, monkeypatch):
    monkeypatch.setattr(log, "WRITER_WAIT_SECONDS", 0.02)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    content = (files / "samples.csv").read_bytes()
    writer = threading.Timer(0.3, pipe.write_bytes, [content])
    writer.start()
    arguments = ["-t", "y", "--drop", "labels", "-k", 5]
    result = call("select", pipe, *arguments)
    writer.join()
    assert result.stdout == call("select", files / "samples.csv", *arguments).stdout
    assert result.stderr.count("waiting for a program to write") == 1


def test_named_pipe_as_model_is_refused(call, files, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    further = {"info": [], "transform": [files / "data.npy"], "report": []}
    for command, rest in further.items():
        stderr = call(command, tmp_path / "pipe", *rest, code=1).stderr
        assert f"{tmp_path / 'pipe'} is a named pipe" in stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "standard input: no data"),
        (b"y,a\n1,2\n3\n", "line 3"),
        (gzip.compress(b"y,a\n1,2\n2,3\n", mtime=0)[:-6], "standard input"),
        (b"PAR1 and nothing else", "standard input"),
    ],
)
def test_invalid_standard_input(content, message):
    result = feed(content, "select", "-", "-t", "y", "--orientation", "samples", code=1)
    assert result.stderr.startswith("streamsel: error: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert "copies" not in result.stderr


def test_standard_input_is_used_only_once():
    for arguments in (["-", "--target-file", "-"], ["-", "-", "-t", "y"]):
        assert "only once" in feed(b"", "select", *arguments, code=2).stderr


def test_terminal_as_standard_input_is_refused(monkeypatch):
    monkeypatch.setattr(inputs.sys, "stdin", io.StringIO())
    monkeypatch.setattr(inputs.sys.stdin, "isatty", lambda: True, raising=False)
    with pytest.raises(inputs.CommandError, match="Got: a terminal"), inputs._opened("-", Log()):
        pass


def test_no_disk_space_for_the_copy(monkeypatch, copies):
    class Full(io.RawIOBase):
        def write(self, _):
            raise OSError(errno.ENOSPC, "No space left on device")

    def opened(self, *_):
        return Full()

    monkeypatch.setattr(inputs.Path, "open", opened)
    message = feed(b"y,a\n", "select", "-", "-t", "y", code=1).stderr
    assert message.startswith(f"streamsel: error: standard input: cannot copy it to {copies}")
    assert "No space left on device (after 0 bytes). Hint: set TMPDIR" in message


def test_no_directory_for_the_copy(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    message = feed(b"y,a\n", "select", "-", "-t", "y", code=1).stderr
    assert message.startswith("streamsel: error: ")
    assert "No such file or directory" in message


def test_progress_while_copying(monkeypatch, files):
    monkeypatch.setattr("streamsel.cli.progress.FIRST_LINE", 0.0)
    content = (files / "data.parquet").read_bytes()
    result = feed(content, "select", "-", "-t", "y", "-k", 1)
    assert "streamsel: copying standard input, 0 MB\n" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_while_copying(copies, number):
    run = subprocess.Popen(
        [*COMMAND, "select", "-", "-t", "y", "--log-format", "json"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    run.stdin.write(b"y,a\n")
    run.stdin.flush()
    while not list(copies.glob("*/copy")) and run.poll() is None:
        time.sleep(0.01)
    run.send_signal(number)
    _, stderr = run.communicate()
    assert run.returncode == 128 + number, stderr
    assert b"Traceback" not in stderr
