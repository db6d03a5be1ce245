"""Fixtures: calls of the command, and one small dataset in every format that it reads."""

import csv
import gzip
import io
import json
import signal
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from streamsel import ForwardSelection
from streamsel.cli import run
from streamsel.cli.app import app

N, P = 60, 40
OF_TARGET = "streamsel: target: "


@pytest.fixture
def call():
    """Call the command in this process; the result has exit_code, stdout, stderr, rows and json.

    The line on stderr that describes the target is not in `stderr` but in `target`.
    """

    def call(*arguments, code=0):
        result = CliRunner().invoke(app, [str(a) for a in arguments], prog_name="streamsel")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        lines = result.stderr.splitlines(keepends=True)
        return SimpleNamespace(
            exit_code=result.exit_code,
            stdout=result.stdout,
            stderr="".join(line for line in lines if not line.startswith(OF_TARGET)),
            target="".join(
                line[len(OF_TARGET) : -1] for line in lines if line.startswith(OF_TARGET)
            ),
            rows=lambda: list(csv.DictReader(io.StringIO(result.stdout), delimiter="\t")),
            json=lambda: json.loads(result.stdout),
        )

    return call


@pytest.fixture
def processes():
    """Run the workers of `--workers` as processes, as users do; each takes a second to start."""


@pytest.fixture(autouse=True)
def _threads(request, monkeypatch):
    """Run the workers of `--workers` as threads of this process, unless a test uses `processes`.

    Messages to the workers still go through a socket.
    """
    if "processes" in request.fixturenames:
        return

    def started(n_workers):
        from tests.distributed.clusters import cluster_of_threads

        return cluster_of_threads(n_workers)

    monkeypatch.setattr("streamsel.distributed.cluster._started", started)


@pytest.fixture(scope="session")
def data():
    """Return 60 rows of 40 variables v0 ... v39, and a target that three of them partly explain."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N, P)).round(6)
    y = (2 * X[:, 7] - X[:, 3] + 0.5 * X[:, 20] + 0.3 * rng.normal(size=N)).round(6)
    labels = np.array(["low", "middle", "high"])[np.digitize(y, [-1, 1])]
    return SimpleNamespace(X=X, y=y, labels=labels, names=[f"v{j}" for j in range(P)])


@pytest.fixture(scope="session")
def files(data, tmp_path_factory):
    """Return the dataset in files, with the target y (and its labels) among the columns."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    folder = tmp_path_factory.mktemp("files")
    columns = {name: data.X[:, j] for j, name in enumerate(data.names)}
    columns = {**columns, "y": data.y, "labels": data.labels}
    table = pa.table(columns)
    parquet.write_table(table, folder / "data.parquet")
    feather.write_feather(table, folder / "data.feather", compression="uncompressed")
    np.save(folder / "data.npy", np.asfortranarray(data.X))
    np.save(folder / "y.npy", data.y)
    folder.joinpath("y.txt").write_text("".join(f"{v}\n" for v in data.y))
    folder.joinpath("labels.txt").write_text("".join(f"{v}\n" for v in data.labels))
    folder.joinpath("y.csv").write_text("y\n" + "".join(f"{v}\n" for v in data.y))
    samples = [list(columns), *map(list, zip(*(c.tolist() for c in columns.values()), strict=True))]
    variables = [[name, *values.tolist()] for name, values in columns.items()]
    for name, rows in {"samples": samples, "variables": variables}.items():
        write_text(folder / f"{name}.csv", rows, ",")
        write_text(folder / f"{name}.tsv.gz", rows, "\t")
    return folder


def write_text(path, rows, delimiter):
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(rows)
    data = text.getvalue().encode()
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


@pytest.fixture
def table(tmp_path):
    """Return a function that writes a small CSV, one sample per line, and returns its path."""

    def write(name="table.csv", **columns):
        path = tmp_path / name
        rows = [list(columns), *zip(*columns.values(), strict=True)]
        write_text(path, rows, ",")
        return path

    return write


@pytest.fixture
def wide(tmp_path, monkeypatch):
    """Return a wide table in many small blocks: .npy, .csv with a variable per line, .parquet."""
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
    """Return a function that sends a signal while block n is being learnt."""

    def interrupt_after(n, cls=ForwardSelection, patch=monkeypatch, number=signal.SIGINT):
        patch.setattr(run, "compile_for", lambda *_, **__: None)
        learn, calls = cls.learn_columns, []

        def learn_columns(self, *args, **kwargs):
            calls.append(None)
            if len(calls) == n:
                signal.raise_signal(number)
            return learn(self, *args, **kwargs)

        patch.setattr(cls, "learn_columns", learn_columns)

    return interrupt_after
