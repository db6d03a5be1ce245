"""The log without a terminal: periodic lines of text, JSON events, or errors only."""

import json
import os
import subprocess
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import streamsel
from streamsel.cli import progress, run
from streamsel.cli.commands import select
from streamsel.cli.log import Log
from streamsel.stream import _blocks
from tests.cli.test_terminal import COMMAND
from tests.seed import some


@pytest.fixture
def clock(monkeypatch):
    """Return a clock that changes only when it is set."""
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


@pytest.fixture
def often(monkeypatch):
    """Make progress lines always due, and blocks small."""
    monkeypatch.setattr(progress, "FIRST_LINE", 0.0)
    monkeypatch.setattr(progress, "LONGEST_INTERVAL", 0.0)
    monkeypatch.setattr(_blocks, "BLOCK_BYTES", 60 * 8 * 10)
    monkeypatch.setattr(run, "compile_for", lambda *_, **__: None)


def events(result):
    return [json.loads(line) for line in result.stderr.splitlines()]


# Lines -------------------------------------------------------------------------------------------


class Model:
    relevance = {"g\x1b[31m": 0.71, "h": 0.5}  # noqa: RUF012


def test_progress_line(clock, capsys, monkeypatch):
    monkeypatch.setattr(progress, "resident_bytes", lambda: 180_000_000)
    with progress.meter(Log(), "selecting", 1_000_000) as meter:
        meter.begin()
        clock.now += 4
        meter.update(100_000, Model())
        assert not capsys.readouterr().err
        clock.now += 6
        meter.update(310_000, Model())
    assert capsys.readouterr().err == (
        "streamsel: 310,000 of 1,000,000 columns, 31,000/s, 22 s left, best g\\x1b[31m 0.7100, "
        "memory 180 MB\n"
    )


def test_progress_line_omits_unknown_values(clock, capsys, monkeypatch):
    monkeypatch.setattr(progress, "resident_bytes", lambda: None)
    meter = progress.meter(Log(), "selecting", None, 500)
    clock.now += 10
    meter.update(1500)
    assert capsys.readouterr().err == "streamsel: 1,500 columns, 100/s\n"
    clock.now += 10
    meter.update(10, pass_name="reading 2 of about 3, 1 of 4 proven")  # noqa: S106
    clock.now += 10
    meter.update(110, pass_name="reading 2 of about 3, 1 of 4 proven")  # noqa: S106
    assert capsys.readouterr().err.splitlines()[1] == (
        "streamsel: reading 2 of about 3, 1 of 4 proven: 110 columns, 11/s"
    )


def test_progress_lines_become_less_frequent(clock):
    pace, due = progress.LinePace(), []
    for second in range(24 * 3600):
        clock.now = 1000.0 + second
        if pace.is_due():
            due.append(second)
    gaps = np.diff(due)
    assert due[0] == 10
    assert gaps[0] == 10
    assert gaps.max() <= 61
    assert (np.diff(gaps) >= -1).all()
    assert len(due) < 1500


def test_short_run_prints_no_progress(call, files):
    assert not call("select", files / "data.parquet", "-t", "y", "--drop", "labels").stderr


def test_progress_of_a_run(call, files, often):
    method = ["--method", "ForwardSelection", "--set", "max_candidates=6", "-k", 6, "--exact"]
    arguments = ["-t", "y", "--drop", "labels", *method]
    lines = call("select", files / "data.parquet", *arguments).stderr.splitlines()
    assert lines[0].startswith("streamsel: 10 of 40 columns, ")
    assert any("columns" in line and "pass 2 of about" in line for line in lines)


# JSON --------------------------------------------------------------------------------------------


def test_every_line_is_an_object(call, files, often, tmp_path):
    arguments = ["-t", "y", "-k", 3, "-m", tmp_path / "m", "--checkpoint", 0]
    result = call("select", files / "data.parquet", *arguments, "--log-format", "json")
    records = events(result)
    kinds = [one["event"] for one in records]
    assert kinds[0] == "begin"
    assert kinds[-2:] == ["note", "end"]
    assert {"progress", "checkpoint"} <= set(kinds)
    begin, end = records[0], records[-1]
    assert begin["version"] == end["version"] == streamsel.__version__
    assert begin["class"] == "ForwardSelection"
    assert begin["parameters"]["k"] == 3
    assert (begin["columns_read"], begin["n_columns"]) == (0, 41)
    assert (end["columns_read"], end["exit_code"], end["complete"]) == (41, 0, True)
    progress = next(one for one in records if one["event"] == "progress")
    for name in ("columns_read", "n_columns", "seconds", "rate", "memory", "best", "relevance"):
        assert name in progress
    for one in records:
        assert one["time"].endswith("Z")
        assert one["level"] == "info"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["select", "none.csv", "-t", "y"], 1, "none.csv: No such file"),
        (["select", "none.csv"], 2, "Missing option: --target NAME"),
        (["select", "--bogus"], 2, "--bogus"),
        (["transform", "none.model", "none.csv"], 1, "none.model"),
    ],
)
@pytest.mark.parametrize("asked", [["--log-format=json"], ["--log-format", "json"], None])
def test_errors_are_objects(call, monkeypatch, arguments, code, message, asked):
    if asked is None:
        monkeypatch.setenv("STREAMSEL_LOG_FORMAT", "json")
    records = events(call(*arguments, *(asked or []), code=code))
    assert [one["event"] for one in records] == ["error", "end"]
    assert message in records[0]["message"]
    assert records[0]["level"] == "error"
    assert [one["exit_code"] for one in records] == [code, code]


def test_warnings_are_objects(call, files, monkeypatch):
    def warn(*_, **__):
        warnings.warn("beware", UserWarning, stacklevel=1)

    monkeypatch.setattr(run, "compile_for", warn)
    arguments = [files / "data.parquet", "-t", "y", "-k", 1, "--log-format", "json"]
    records = events(call("select", *arguments))
    (warning,) = (one for one in records if one["event"] == "warning")
    assert (warning["level"], warning["message"]) == ("warning", "beware")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["select", "reduce", "stability", "evaluate"])
def test_inferred_target_type_is_an_object(call, table, command):
    path = table(y=[1, 2, 3, 2, 1, 3, 2, 1] * 4, a=range(32), b=[0, 1, 1, 0] * 8)
    records = events(call(command, path, "-t", "y", "--log-format", "json"))
    (one,) = (one for one in records if one["event"] == "target")
    assert one["target"] == "3 classes: 1 (12 rows), 2 (12 rows), 3 (8 rows)"
    assert one["by_rule"] is True
    hint = " (inferred as classes; --target-type numeric treats it as numeric)"
    assert one["message"] == f"target: {one['target']}{hint}"


@pytest.mark.parametrize(
    ("y", "hint"),
    [
        ([i % 25 for i in range(60)], " (inferred as numeric; --target-type class treats its"),
        # Also with too many distinct values for classes; the gaps do not decide.
        ([i % 40 for i in range(60)], " (inferred as numeric; --target-type class treats its"),
        ([i % 25 + 0.5 for i in range(60)], None),
    ],
)
def test_integers_that_may_be_classes_give_a_hint(call, table, y, hint):
    target = call("select", table(y=y, a=[(i * 7) % 13 for i in range(60)]), "-t", "y").target
    assert target.startswith("numeric, 0")
    assert ("inferred as" in target) is (hint is not None)
    assert hint is None or hint in target


def test_skipped_columns_are_objects(call, table):
    path = table(**{"y": [1, 2.5, 3], "a": [1, 2, 2], "te\x1b": ["x", "y", "z"]})
    records = events(
        call("select", path, "-t", "y", "--list-skipped", "-", "--log-format", "json", "-k", 1)
    )
    (one,) = (one for one in records if one["event"] == "skipped")
    assert (one["name"], one["reason"]) == ("te\x1b", "text")


def test_an_interrupted_run(call, files, often, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(select.Learning, "_learn_in_blocks", interrupted)
    arguments = ["-t", "y", "--log-format", "json", "-o", "none.csv"]
    records = events(call("select", files / "data.parquet", *arguments, code=130))
    assert [one["event"] for one in records] == ["begin", "target", "interrupted", "end"]
    assert "none.csv was not written" in records[2]["message"]


def test_unexpected_errors_are_objects(call, files, monkeypatch):
    def defect(*_, **__):
        raise ZeroDivisionError("not thought of")

    monkeypatch.setattr(select.Learning, "_learn_in_blocks", defect)
    arguments = ["select", files / "data.parquet", "-t", "y"]
    records = events(call(*arguments, "--log-format", "json", code=1))
    assert [one["event"] for one in records] == ["begin", "target", "error", "end"]
    assert records[2]["message"] == "not thought of"
    assert "ZeroDivisionError" in records[2]["traceback"]
    with pytest.raises(ZeroDivisionError):
        call(*arguments)


# Silence -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", ["--quiet", "STREAMSEL_QUIET", "STREAMSEL_SELECT_QUIET"])
@pytest.mark.parametrize("more", [[], ["--log-format", "json"], ["--list-skipped", "-"]])
def test_quiet_prints_only_errors(call, files, often, monkeypatch, asked, more):
    if asked != "--quiet":
        monkeypatch.setenv(asked, "1")
    arguments = [*([asked] if asked == "--quiet" else []), *more]
    result = call("select", files / "data.parquet", "-t", "y", *arguments)
    assert not result.stderr
    assert len(result.rows()) == 20
    result = call("select", files / "data.parquet", "-t", "z", *arguments, code=1)
    assert result.stderr.count("\n") == 1
    assert "'z'" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("log_format", some(["text", "json"], 1, "stops reading"))
def test_closed_log_pipe_does_not_stop_the_run(files, log_format):
    """The run continues, and its result is not lost."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    arguments = ["select", str(files / "data.parquet"), "-t", "y", "--log-format", log_format]
    done = subprocess.run(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=write_end, text=True, check=False
    )
    os.close(write_end)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 21
