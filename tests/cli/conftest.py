"""The command as a test calls it, and one small dataset in every format it reads."""

import csv
import gzip
import io
import json
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from streamsel.cli._app import app

N, P = 60, 40


@pytest.fixture
def call():
    """Call the command in this process; the result has exit_code, stdout, stderr, rows and json."""

    def call(*arguments, code=0):
        result = CliRunner().invoke(app, [str(a) for a in arguments], prog_name="streamsel")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        return SimpleNamespace(
            exit_code=result.exit_code,
            stdout=result.stdout,
            stderr=result.stderr,
            rows=lambda: list(csv.DictReader(io.StringIO(result.stdout), delimiter="\t")),
            json=lambda: json.loads(result.stdout),
        )

    return call


@pytest.fixture(scope="session")
def data():
    """60 rows of 40 variables v0 ... v39, and a target that three of them explain in part."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N, P)).round(6)
    y = (2 * X[:, 7] - X[:, 3] + 0.5 * X[:, 20] + 0.3 * rng.normal(size=N)).round(6)
    labels = np.array(["low", "middle", "high"])[np.digitize(y, [-1, 1])]
    return SimpleNamespace(X=X, y=y, labels=labels, names=[f"v{j}" for j in range(P)])


@pytest.fixture(scope="session")
def files(data, tmp_path_factory):
    """The dataset in files, the target y (and its labels) among the columns."""
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
    """Write a small CSV, one sample a line, and return its path."""

    def write(name="table.csv", **columns):
        path = tmp_path / name
        rows = [list(columns), *zip(*columns.values(), strict=True)]
        write_text(path, rows, ",")
        return path

    return write
