"""Names of columns: control characters do not reach the terminal, and output files keep them."""

import csv
import io
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from streamsel._utils.text import printable
from streamsel.base.report import Report
from streamsel.cli.app import app
from streamsel.cli.progress import ProgressBar
from streamsel.cli.results import show_report
from streamsel.reporting.json import as_json

COMMANDS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
NASTY = [
    "\x1b[31mred",
    "\x9b31m",
    "\u202eevil",
    "\u2066a",
    "a\nb",
    "a\rb",
    "a\tb",
    "nul\0",
    "\x1b]0;title\x07",
    "[red]",
    "\x7f",
    "\u2028",
    "caf\xe9",
]
ANY = st.text(min_size=1, max_size=12) | st.sampled_from([*NASTY, "\ud800"])
SETTINGS = settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.fixture
def on_terminal(monkeypatch):
    """Return a function that calls the command on a terminal, and returns exit code and screen."""
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "300")

    def call(*arguments):
        with monkeypatch.context() as patch:
            screen = Terminal()
            patch.setattr(sys, "stdout", screen)
            patch.setattr(sys, "stderr", screen)
            with pytest.raises(SystemExit) as end:
                app([str(a) for a in arguments], prog_name="streamsel")
        return end.value.code, screen.getvalue()

    return call


def write_parquet(path, columns):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table(columns), path)
    return path


@given(ANY)
@example("plain")
def test_printable_names_equal_repr(name):
    assert printable(name) == repr(f"{name}'\"")[1:-4].replace("\\\\", "\\").replace("\\'", "'")
    assert not COMMANDS.search(printable(name))
    assert "\n" not in printable(name)


@pytest.mark.slow
@SETTINGS
@given(names=st.lists(ANY, min_size=3, max_size=3, unique=True), wrong=ANY)
@example(names=NASTY[:3], wrong=NASTY[3])
@example(names=NASTY[4:7], wrong=NASTY[7])
def test_names_do_not_emit_control_sequences(on_terminal, tmp_path, names, wrong):
    assume(not any("\ud800" <= c <= "\udfff" for name in names for c in name))
    assume("y" not in names)
    assume(wrong not in names)
    y = np.arange(6.0) ** 2
    table = dict(zip(names, [y + np.eye(6)[0], y[::-1], list("abcdef")], strict=True))
    data = write_parquet(tmp_path / "\x1b[2J.parquet", {"y": y, **table})
    model = tmp_path / "\x1b[2J.model"
    calls = [
        (0, ["select", data, "-t", "y", "-k", 2, "-m", model, "--list-skipped", "-"]),
        (0, ["info", model]),
        (0, ["transform", model, data]),
        (0, ["reduce", data, "-t", "y", "-q", 1]),
        (None, ["select", data, f"--target={wrong}"]),
        (None, ["select", data, "-t", "y", f"--set={wrong}"]),
        (None, ["select", f"./{wrong}/", "-t", "y"]),
        (None, ["select", data, "-t", "y", f"--{wrong}"]),
    ]
    for expected, arguments in calls:
        if expected is None and "\0" in "".join(map(str, arguments)):
            continue  # no program can be called with NUL
        code, screen = on_terminal(*arguments)
        assert code == expected or (expected is None and code), screen
        assert not COMMANDS.search(screen), (arguments, screen)
        screen.encode()


@SETTINGS
@given(names=st.lists(ANY, min_size=2, max_size=2, unique=True))
def test_reports_do_not_emit_control_sequences(names, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    found = {"relevance": 0.5, "score": 0.5, "round": 0, "certified": False, "above_noise": True}
    selected = [{"name": name, **found} for name in names]
    loadings = [{"variable": name, "loading": None, "weight": 0.5} for name in names]
    components = [{"name": "c0", "relevance": 1.0, "above_noise": True, "loadings": loadings}]
    for kind, rows in (("selected", selected), ("components", components)):
        report = Report("ProjSe", {}, 3, 2, 0, 0.1, kind, rows, 2)
        with monkeypatch.context() as patch:
            screen = Terminal()
            patch.setattr(sys, "stdout", screen)
            show_report(report, None, as_json=False)
            show_report(report, {names[0]: float("nan")}, as_json=True)
        assert not COMMANDS.search(screen.getvalue())


@SETTINGS
@given(ANY)
def test_progress_bar_does_not_emit_control_sequences(name):
    with ProgressBar("selecting", 10, 0) as bar:
        bar.update(1, SimpleNamespace(relevance={name: 0.5}))
        assert not COMMANDS.search(bar.status())


@pytest.mark.parametrize("name", NASTY)
def test_data_files_have_unescaped_names(call, tmp_path, name):
    y = np.arange(6.0) ** 2
    data = write_parquet(
        tmp_path / "x.parquet", {"y": y, name: y[::-1], f"{name}?": list("abcdef")}
    )
    listed, out, model = tmp_path / "listed", tmp_path / "out.csv", tmp_path / "m"
    files = ["-o", out, "-m", model, "--list-skipped", listed]
    stdout = call("select", data, "-t", "y", "-k", 1, *files).stdout
    assert list(csv.reader(io.StringIO(stdout, newline=""), delimiter="\t"))[1][0] == name
    with out.open(encoding="utf-8", newline="") as file:
        assert next(csv.reader(file)) == [name]
    with listed.open(encoding="utf-8", newline="") as file:
        assert next(csv.reader(file, delimiter="\t"))[0] == f"{name}?"
    text = io.StringIO(call("transform", model, data).stdout, newline="")
    assert next(csv.reader(text)) == [name]
    assert call("info", model, "--json").json()["selected"][0]["name"] == name


def test_name_not_encodable_in_the_locale(files, monkeypatch, tmp_path):
    """The result is not lost."""
    y = np.arange(6.0) ** 2
    data = write_parquet(tmp_path / "x.parquet", {"y": y, "caf\xe9": y[::-1]})
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stdout)
    with pytest.raises(SystemExit) as end:
        app(["select", str(data), "-t", "y", "-k", "1"], prog_name="streamsel")
    assert end.value.code == 0
    assert b"caf\\xe9\t" in stdout.buffer.getvalue()


def test_json_has_no_nan():
    value = {"a": float("nan"), "b": [float("inf"), 1.0, (2,)], 3: np.float64("nan"), "c": {"x"}}
    assert as_json(value) == '{"a": null, "b": [null, 1.0, [2]], "3": null, "c": ["x"]}'


def test_python_messages_show_names_by_repr():
    """Errors and warnings also go to terminals."""
    from streamsel import ProjSe

    model = ProjSe(1)
    model.learn_target(np.arange(5.0) ** 2)
    name = "\x1b[31m"
    model.learn_column(name, np.arange(5.0))
    for values in (np.arange(5.0), np.full(5, np.nan), np.full(5, 1e300), np.arange(4.0), "abcde"):
        for new in (name, f"{name}2"):
            with pytest.raises((ValueError, TypeError)) as error:
                model.learn_column(new, values)
            assert "\x1b" not in str(error.value)
            if new == name:
                break
    assert "\x1b" not in repr(model)


@pytest.mark.parametrize(
    "metadata",
    [
        "a note\x1b[31m",
        ["a", {"b": 1}],
        {"seconds": "soon", "peak_memory": True, "columns_read": "many", "skipped": 3},
        {"seconds": float("nan"), "complete": "perhaps", "\x1b[2J": {"\x1b[2J": {"a": None}}},
        {"merged": [{"model": 3, "file": 7}], "file": None},
        {"merged": ["nothing"], "dropped": 5, "missing": [], "orientation": {}},
        {"merged": 5, "min_count": "x"},
    ],
    ids=str,
)
def test_metadata_may_be_arbitrary(call, on_terminal, tmp_path, metadata):
    from streamsel import ProjSe, save

    model = ProjSe(1)
    model.learn_target(np.arange(5.0) ** 2)
    model.learn_columns(np.arange(10.0).reshape(5, 2) ** 3)
    save(model, tmp_path / "m", metadata)
    call("info", tmp_path / "m")
    call("info", tmp_path / "m", "--json").json()
    code, screen = on_terminal("info", tmp_path / "m")
    assert not code
    assert not COMMANDS.search(screen)
