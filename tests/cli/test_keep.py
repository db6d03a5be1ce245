"""`--keep`: columns that are copied to the output."""

import csv

import numpy as np
import pytest

from tests.cli.conftest import write_text

N = 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return genes by samples and by variables, and patients in another order."""
    folder = tmp_path_factory.mktemp("keep")
    rng = np.random.default_rng(1)
    samples = [f"S{j:02}" for j in range(N)]
    X = rng.normal(size=(N, 5)).round(4)
    genes = {"sample": samples, "age": list(range(30, 30 + N))}
    genes |= {f"g{j}": X[:, j].tolist() for j in range(5)}
    lines = [["gene", *samples], *([name, *genes[name]] for name in list(genes)[2:])]
    write_text(folder / "genes.csv", [list(genes), *zip(*genes.values(), strict=True)], ",")
    write_text(folder / "genes.tsv", lines, "\t")
    rows = [[samples[j], "lo" if j < 8 else "hi", X[j, 2]] for j in rng.permutation(N)]
    write_text(folder / "patients.csv", [["sample", "arm", "y"], *rows], ",")
    return folder


def read(text):
    header, *rows = csv.reader(text.splitlines())
    return header, rows


@pytest.mark.parametrize("command", [["select", "-k", 1], ["reduce", "-q", 1]])
@pytest.mark.parametrize("genes", ["genes.csv", "genes.tsv"])
def test_kept_columns_are_written_first(call, folder, tmp_path, command, genes):
    out, model = tmp_path / "out.csv", tmp_path / "m"
    joined = ["--target-file", folder / "patients.csv", "-t", "y", "--id", "sample"]
    call(*command, folder / genes, *joined, "--keep", "sample,y", "-o", out, "-m", model)
    header, rows = read(out.read_text())
    assert header[:2] == ["sample", "y"]
    assert len(header) == 3
    y = {row[0]: row[2] for row in read((folder / "patients.csv").read_text())[1]}
    assert [row[0] for row in rows] == [f"S{j:02}" for j in range(N)]
    assert [row[1] for row in rows] == [y[row[0]] for row in rows]
    # The model stores the name of the identifiers in each file.
    applied = read(call("transform", model, folder / genes, "--keep", "sample").stdout)
    assert applied[0] == ["sample", header[2]]
    assert [row[0] for row in applied[1]] == [row[0] for row in rows]


def test_kept_columns_of_either_file(call, folder, tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    out = tmp_path / "out.parquet"
    joined = ["--target-file", folder / "patients.csv", "-t", "y", "--id", "sample"]
    given = ["select", folder / "genes.csv", *joined, "-k", 2]
    call(*given, "--keep", "sample", "--keep", "age,arm", "-o", out)
    table = parquet.read_table(out)
    assert table.column_names[:3] == ["sample", "age", "arm"]
    assert table["age"].type == pa.int64()
    assert table["arm"].to_pylist() == ["lo"] * 8 + ["hi"] * 12


def test_kept_and_selected_column_is_written_once(call, folder, tmp_path):
    out = tmp_path / "out.csv"
    call("select", folder / "genes.csv", "-t", "g2", "-k", 5, "--keep", "age,g2", "-o", out)
    header = read(out.read_text())[0]
    assert header[:2] == ["age", "g2"]
    assert sorted(header) == ["age", "g0", "g1", "g2", "g3", "g4"]


def test_invalid_kept_columns(call, folder, tmp_path):
    given = ["select", folder / "genes.csv", "-t", "g2", "-o"]
    assert (
        "no such column: 'sampel'"
        in call(*given, tmp_path / "o.csv", "--keep", "sampel", code=1).stderr
    )
    error = call(*given, tmp_path / "o.npy", "--keep", "sample", code=1).stderr
    assert "--keep sample: expected numbers" in error
    call(*given, tmp_path / "o.npy", "--keep", "age")
    assert np.load(tmp_path / "o.npy")[:, 0].tolist() == list(range(30, 30 + N))
    assert "--out" in call(*given[:-1], "--keep", "age", code=2).stderr
