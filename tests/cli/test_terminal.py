"""The command as a process: terminal output, closed pipes, packages that are not installed."""

import os
import subprocess
import sys

import numpy as np
import pytest

import streamsel

COMMAND = [sys.executable, "-c", "from streamsel.cli import main; main()"]


def run(*arguments, **settings):
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **settings)


def in_terminal(*arguments, columns=100):
    """Run on a pseudo-terminal; return the exit code and the output."""
    pty = pytest.importorskip("pty")
    terminal, process_end = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": str(columns), "NO_COLOR": "1"}
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdin=process_end,
        stdout=process_end,
        stderr=process_end,
        env=environment,
    )
    os.close(process_end)
    shown = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # all ends are closed
            break
        if not piece:
            break
        shown += piece
    os.close(terminal)
    return process.wait(), shown.decode()


@pytest.mark.parametrize("command", ["", "select", "reduce", "transform", "info", "demo"])
def test_help(command):
    result = run(*filter(None, [command]), "--help")
    assert result.returncode == 0
    assert "Usage: streamsel" in result.stdout
    assert "\\b" not in result.stdout  # click's mark for lines that are not wrapped
    assert not result.stderr


def test_help_imports_nothing_heavy():
    code = (
        "import sys\n"
        "from streamsel.cli import main\n"
        "try:\n    main(['select', '--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'scipy', 'numba', 'river', 'rich', 'pyarrow', 'pandas'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_version():
    assert run("--version").stdout == f"streamsel {streamsel.__version__}\n"


@pytest.mark.parametrize("package", ["click", "rich"])
def test_missing_dependency_of_the_extra_is_reported(package):
    code = (
        "import importlib.util, sys\n"
        "find = importlib.util.find_spec\n"
        f"hide = lambda name, *a: None if name == {package!r} else find(name, *a)\n"
        "importlib.util.find_spec = hide\n"
        "from streamsel.cli import main\n"
        "main(['--help'])\n"
    )
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert 'pip install "streamsel[cli]"' in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.slow
def test_a_failure_has_no_traceback(tmp_path):
    result = run("select", tmp_path / "none.csv", "-t", "y")
    assert result.returncode == 1
    assert result.stderr == f"streamsel: error: {tmp_path}/none.csv: No such file or directory\n"


@pytest.mark.slow
def test_closed_stdout_pipe_prints_no_error(files):
    """`streamsel ...
    true` prints no error, and exits with the code of a signal.
    """
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [*COMMAND, "select", str(files / "data.parquet"), "-t", "y", "--drop", "labels"]
    result = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, check=False)
    os.close(write_end)
    assert result.stderr.startswith(b"streamsel: target: ")
    assert result.stderr.count(b"\n") == 1
    assert result.returncode == 141


def test_closed_stdout_pipe_of_the_demo():
    """Rich, which prints the report, would exit with another code."""
    code = (
        "import streamsel.demo as demo\n"
        "from streamsel.cli import main\n"
        "demo.run = lambda **_: None\n"
        "demo.render = lambda _, console: console.print('report')\n"
        "main(['demo'])\n"
    )
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, check=False)
    os.close(write_end)
    assert (result.returncode, result.stderr) == (141, b"")


@pytest.mark.slow
def test_a_table_of_components_without_loadings(files):
    options = ["--method", "KernelPCA", "--drop", "labels", "-q", "3"]
    code, shown = in_terminal("reduce", files / "data.parquet", *options)
    assert code == 0
    for text in ("3 components out of", "kernelpca2", "60 landmarks", "100% of the variance"):
        assert text in shown


@pytest.mark.slow
def test_a_table_on_a_terminal(files):
    options = ["-t", "y", "-k", "12", "--method", "ProjSe", "--max-categories", "0"]
    code, shown = in_terminal("select", files / "data.parquet", *options)
    assert "relevance: how much of the target a variable explains by itself" in shown
    assert "round: " in shown  # a column of the table
    assert "certified: " not in shown
    assert code == 0
    assert "12 variables of 40 selected" in shown
    assert "v7" in shown
    assert "below noise" in shown
    assert shown.startswith("streamsel: target: numeric, ")
    assert "Target: numeric, " in shown
    assert "Noise floor" in shown
    assert ": 1 skipped (1 text) and 40 learnt." in " ".join(shown.split())
    assert "columns" in shown


@pytest.mark.slow
@pytest.mark.parametrize("command", ["select", "reduce"])
def test_info_on_a_terminal(call, files, tmp_path, command):
    line = [command, files / "data.parquet", "-t", "y", "--drop", "labels"]
    call(*line, "-m", tmp_path / "m")
    code, shown = in_terminal("report", tmp_path / "m")
    assert code == 0
    assert shown.startswith("# ")
    code, shown = in_terminal("info", tmp_path / "m")
    assert code == 0
    assert {"select": "ForwardSelection()", "reduce": "RidgeComponents()"}[command] in shown
    assert "fingerprint" not in shown
    assert ("direction" in shown and "redundancy" in shown) == (command == "select")
    if command == "select":
        assert "fingerprint" in in_terminal("info", tmp_path / "m", "--verbose")[1]
    assert "target type" in shown
    assert "v7" in shown
    assert {"select": "of 40 selected", "reduce": "10 components of"}[command] in shown


def test_progress_does_not_solve_for_components(monkeypatch):
    """With a Gram matrix, this would take longer than learning the columns."""
    from streamsel import KernelPCA
    from streamsel.cli.progress import best_of

    model = KernelPCA()
    model.learn_columns(np.random.default_rng(0).normal(size=(30, 5)))
    monkeypatch.setattr(KernelPCA, "relevance", property(lambda self: pytest.fail("solved")))
    assert best_of(model) == ""


def test_progress_on_a_terminal():
    from streamsel.cli.progress import ProgressBar

    class Model:
        relevance = {"one": 0.25, "[two]": 0.75, "none": float("nan")}  # noqa: RUF012

    with ProgressBar("selecting", 1000, 0) as bar:
        # It is unknown in advance whether kernels are compiled or loaded.
        assert [task.description for task in bar._progress.tasks] == ["loading kernels"]
        bar.update(10, Model())
        assert "best [two] 0.7500" in bar.status()
        assert "memory" in bar.status()
        bar.update(5, pass_name="reading 2 of about 3, 1 of 4 proven")  # noqa: S106


@pytest.mark.slow
def test_caution_if_no_variable_is_above_noise(tmp_path, rng):
    np.save(tmp_path / "x.npy", rng.normal(size=(20, 500)))
    np.save(tmp_path / "y.npy", rng.normal(size=20))
    files = tmp_path / "x.npy", "--target-file", tmp_path / "y.npy"
    _, shown = in_terminal("reduce", *files)
    assert "Caution: no variable is above the noise floor: this may all be chance." in " ".join(
        shown.split()
    )


@pytest.mark.parametrize("command", ["select", "reduce"])
def test_help_has_the_glossary(command):
    from streamsel.reporting.glossary import TERMS

    shown = " ".join(run(command, "--help").stdout.split())
    glossary = shown.partition("Glossary: ")[2]
    for word, definition in TERMS[{"select": "selector", "reduce": "extractor"}[command]].items():
        assert f"{word} {definition}" in glossary
