"""Cells of text in columns of numbers: `--na-values`, and the report on other such cells."""

import numpy as np
import pytest

from streamsel import load
from tests.cli.conftest import write_text

N = 40


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Return a target and four variables, two with odd cells, by samples and by variables."""
    folder = tmp_path_factory.mktemp("cells")
    rng = np.random.default_rng(0)
    X = rng.integers(100, 900, (N, 4))
    columns = {"y": [*map(str, (X[:, 0] + X[:, 2] - X[:, 3]).tolist())], "a": X[:, 0]}
    columns |= {"b": X[:, 1], "crp": X[:, 2], "income": X[:, 3] * 10 + 1000}
    columns = {name: [*map(str, np.asarray(values).tolist())] for name, values in columns.items()}
    columns["income"] = [f"{int(value):,}" for value in columns["income"]]
    columns["crp"][5], columns["crp"][7] = "<1", "."
    write_text(folder / "samples.csv", [list(columns), *zip(*columns.values(), strict=True)], ";")
    lines = [["name", *(f"s{i}" for i in range(N))]]
    lines += [[name, *values] for name, values in columns.items()]
    write_text(folder / "variables.csv", lines, ";")
    return folder


GIVEN = ["--target", "y", "-k", 2]
AS_MISSING = ["--na-values", "<1,.", "--missing", "mean"]


@pytest.mark.parametrize("orientation", ["samples", "variables"])
def test_skipped_columns_are_explained(call, table, orientation):
    where = {"samples": "in row 5", "variables": "'<1'"}[orientation]
    found = call("select", table / f"{orientation}.csv", *GIVEN, "--json").json()
    assert found["metadata"]["skipped"] == {"mixed": 1, "ambiguous": 1}
    mixed, ambiguous = (a["text"] for a in found["warnings"] if a["code"] == "cells")
    assert mixed.startswith(
        "1 numeric column was skipped because of non-numeric cells, for example crp: "
    )
    assert where in mixed
    assert "where 38 of 40 values are numbers" in mixed
    assert mixed.endswith("Hint: --na-values '<1' reads such cells as missing")
    assert "for example income: " in ambiguous
    assert "which may be" in ambiguous
    assert ambiguous.endswith("Hint: set --decimal . or --decimal ,")
    stderr = call("select", table / f"{orientation}.csv", *GIVEN).stderr
    assert f"streamsel: warning: {mixed}\n" in stderr


@pytest.mark.parametrize("orientation", ["samples", "variables"])
@pytest.mark.parametrize("workers", [[], ["--workers", 1]])
def test_na_values_are_read_as_missing(call, table, tmp_path, orientation, workers):
    path, model = table / f"{orientation}.csv", tmp_path / "m"
    decimal = ["--decimal", "."]
    given = [*GIVEN, *AS_MISSING, *decimal, *workers]
    found = call("select", path, *given, "-m", model, "-k", 3, "--set", "missing=pass")
    assert {row["name"] for row in found.rows()} == {"a", "crp", "income"}
    assert "warning" not in found.stderr
    known = call("info", model, "--json").json()["metadata"]
    assert known["na_values"] == ["<1", "."]
    # A file that the model is applied to is read with the same options.
    rows = call("transform", model, path, *decimal).stdout.splitlines()
    assert [i for i, row in enumerate(rows[1:]) if "nan" in row] == [5, 7]


def test_na_values_of_a_resumed_run(call, table, tmp_path):
    path, model = table / "samples.csv", tmp_path / "m"
    given = [*GIVEN, *AS_MISSING]
    first = call("select", path, *given, "-m", model).stdout
    assert call("select", path, "-m", model, "--resume").stdout == first
    again = ["select", path, "-m", model, "--resume", "--na-values"]
    assert call(*again, "<1,.").stdout == first
    stderr = call(*again, "<2", code=1).stderr
    assert "the saved run has --na-values <1,.. Got: --na-values <2" in stderr


def test_na_values_from_a_file_and_the_environment(call, table, tmp_path, monkeypatch):
    path = table / "samples.csv"
    expected = call("select", path, *GIVEN, *AS_MISSING).stdout
    config = tmp_path / "run.toml"
    config.write_text("[select]\nna-values = ['<1', '.']\nmissing = 'mean'\n")
    assert call("select", path, *GIVEN, "--config", config).stdout == expected
    monkeypatch.setenv("STREAMSEL_SELECT_NA_VALUES", "<1,.")
    assert call("select", path, *GIVEN, "--missing", "mean").stdout == expected


def test_na_value_with_a_comma(call, tmp_path):
    rows = [["y", "a", "b"], *([str(i), f"{i},5", str(i * i)] for i in range(20))]
    rows[3][1] = "<0,01"
    write_text(tmp_path / "x.csv", rows, ";")
    given = ["select", tmp_path / "x.csv", "-t", "y", "-k", 1]
    stderr = call(*given).stderr
    assert """Hint: --na-values '"<0,01"' reads such cells as missing""" in stderr
    found = call(*given, "--na-values", '"<0,01"', "--missing", "mean")
    assert "warning: 1 column" not in found.stderr


def test_non_numeric_cell_of_a_numeric_target_is_named(call, table):
    given = ["select", table / "samples.csv", "-k", 1, "-t", "crp", "--target-type", "numeric"]
    stderr = call(*given, code=1).stderr
    assert "Expected numbers, as --target-type numeric requires. Got: '<1' in row 5." in stderr
    assert "warning" not in stderr


def test_target_with_non_numeric_cells(call, table, tmp_path):
    given = ["select", table / "samples.csv", "-k", 1]
    stderr = call(*given, "-t", "crp").stderr
    assert "the target crp is taken as classes because of '<1' in row 5" in stderr
    assert "Hint: --na-values '<1' reads such cells as missing; --target-type class" in stderr
    assert "is taken as" not in call(*given, "-t", "crp", "--target-type", "class").stderr
    known = [*given, "-t", "crp", "--na-values", "<1,."]
    assert "2 of 40 rows have no target and are dropped" in call(*known).stderr
    assert "missing" in call(*known, "--missing-target", "error", code=1).stderr
    stderr = call(*given, "-t", "income", code=1).stderr
    assert "the target income: '" in stderr
    assert "Hint: set --decimal . or --decimal ," in stderr
    call(*given, "-t", "income", "--decimal", ".")
    # The target in a separate file.
    values = [f"{1000 + 7 * i * i:,}" for i in range(N)]
    tmp_path.joinpath("y.txt").write_text("\n".join(values))
    given = ["select", table / "samples.csv", "--orientation", "samples", "-k", 1]
    given += ["--target-file", tmp_path / "y.txt"]
    assert "y.txt: '1,000' in row 0, which may be 1000 or 1" in call(*given, code=1).stderr
    call(*given, "--decimal", ".")
    call(*given, "--target-type", "class")
    tmp_path.joinpath("y.txt").write_text("\n".join(["12,345,678", *values[1:]]))
    call(*given)


def test_a_list_of_targets_with_a_null_byte(call, table, tmp_path):
    tmp_path.joinpath("y.txt").write_text("\n".join(["1.5"] * 9 + ["1\0"] + ["2"] * 30))
    given = ["select", table / "samples.csv", "--orientation", "samples", "-k", 1]
    stderr = call(*given, "--target-file", tmp_path / "y.txt", code=1).stderr
    assert "Expected text. Got: a null byte in line 10 of" in stderr
    path = tmp_path / "x.csv"
    path.write_text("g;s1;s2\ny;1;2\0\na;1;3\n")
    stderr = call("select", path, "-t", "y", "-k", 1, code=1).stderr
    assert "a null byte in line 2, column 3 of" in stderr


def test_columns_of_other_formats_are_explained(call, tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    crp = ["<1", *map(str, range(N - 1))]
    x = np.arange(N) ** 2.0
    parquet.write_table(pa.table({"y": x[::-1], "crp": crp, "x": x}), tmp_path / "x.parquet")
    stderr = call("select", tmp_path / "x.parquet", "-t", "y", "-k", 1).stderr
    assert (
        "for example crp: '<1' in row 0, where 39 of 40 values are numbers. Hint: write them"
        in stderr
    )


def test_list_of_skipped_columns(call, table, tmp_path):
    listed = tmp_path / "skipped.tsv"
    call("select", table / "samples.csv", *GIVEN, "--list-skipped", listed)
    lines = [line.split("\t") for line in listed.read_text().splitlines()]
    assert [line[:2] for line in lines] == [["crp", "mixed"], ["income", "ambiguous"]]


@pytest.mark.slow
def test_warnings_of_worker_processes_have_no_example(call, table, processes):
    stderr = call("select", table / "samples.csv", *GIVEN, "--workers", 1).stderr
    assert "because of non-numeric cells. Hint: --list-skipped lists them (without" in stderr


def test_saved_examples_are_validated(call, table, tmp_path):
    from streamsel import save
    from streamsel.serialization.archive import read_metadata

    path, model = table / "samples.csv", tmp_path / "m"
    call("select", path, *GIVEN, "-m", model)
    learnt, known = load(model), read_metadata(model)
    for bad in ([1, 2, 3], "x", ["a", "b"]):
        save(learnt, model, known | {"examples": {"mixed": bad}})
        stderr = call("select", path, "-m", model, "--resume", code=1).stderr
        assert "corrupt metadata (examples: mixed)" in stderr
