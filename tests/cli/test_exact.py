"""Identifiers of many digits join rows, and are written as they were read."""

import numpy as np
import pytest

from tests.cli.conftest import write_text

FIRST = 9007199254740993  # floats cannot represent every integer from here on


@pytest.fixture
def tables(data, tmp_path):
    """Return FILE, and a target file in another order; identifiers differ by one."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    ids = [FIRST + i for i in range(len(data.y))]
    columns = {"sample": ids} | dict(zip(data.names, data.X.T.tolist(), strict=True))
    rows = [list(columns), *zip(*columns.values(), strict=True)]
    write_text(tmp_path / "x.csv", rows, ",")
    parquet.write_table(pa.table(columns), tmp_path / "x.parquet")
    order = np.random.default_rng(0).permutation(len(ids)).tolist()
    write_text(tmp_path / "y.csv", [["sample", "y"], *([ids[i], data.y[i]] for i in order)], ",")
    return tmp_path


@pytest.mark.parametrize("name", ["x.csv", "x.parquet"])
def test_rows_are_joined_by_large_integers(call, files, tables, name):
    expected = call("select", files / "data.parquet", "-t", "y", "--drop", "labels", "-k", 3)
    given = ["--target-file", tables / "y.csv", "--target", "y", "-k", 3]
    given += ["--orientation", "samples"]
    out = tables / "out.csv"
    more = ["--keep", "sample", "-o", out]
    found = call("select", tables / name, *given, "--id", "sample", *more)
    assert found.stdout == expected.stdout
    kept = [line.split(",")[0] for line in out.read_text().splitlines()]
    assert kept == ["sample", *(str(FIRST + i) for i in range(60))]
    # Without --id, the identifiers show that the orders differ.
    stderr = call("select", tables / name, *given, code=1).stderr
    assert "identify the rows, in different orders" in stderr


def test_floats_are_refused_as_identifiers(call, data, tables):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    ids = [float(FIRST + i) for i in range(len(data.y))]
    table = pa.table({"sample": ids, "x": data.X[:, 0], "z": data.X[:, 1]})
    parquet.write_table(table, tables / "f.parquet")
    given = ["--target-file", tables / "y.csv", "--target", "y", "--id", "sample"]
    stderr = call("select", tables / "f.parquet", *given, code=1).stderr
    assert "floats of 2^53 and more, which are not exact integers" in stderr
