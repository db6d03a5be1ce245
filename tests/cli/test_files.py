"""Files that the command writes: columns and models, and what can be done with a saved model."""

import csv

import numpy as np
import pytest

from streamsel import load
from streamsel.serialization.archive import read_metadata


def read_table(path):
    """Return the names and the columns of a written table."""
    if path.suffix == ".npy":
        X = np.load(path)
        return None, X
    if path.suffix in {".csv", ".tsv"}:
        with path.open(newline="") as file:
            names, *rows = csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ",")
        return names, np.array(rows, dtype=float)
    if path.suffix == ".parquet":
        from pyarrow.parquet import read_table as read
    else:
        from pyarrow.feather import read_table as read
    table = read(path)
    return table.column_names, np.column_stack([column.to_numpy() for column in table.columns])


SUFFIXES = ["parquet", "feather", "arrow", "npy", "csv", "tsv"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_selected_columns_are_written(call, files, data, tmp_path, suffix):
    path = tmp_path / f"out.{suffix}"
    line = ["select", files / "data.parquet", "-t", "y", "--drop", "labels", "-k", 4]
    rows = call(*line, "-o", path).rows()
    selected = [row["name"] for row in rows]
    names, X = read_table(path)
    assert names in (None, selected)
    np.testing.assert_array_equal(X, data.X[:, [data.names.index(name) for name in selected]])
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("file", ["samples.csv", "variables.tsv.gz", "data.feather"])
def test_selected_columns_of_every_source(call, files, data, tmp_path, file):
    path = tmp_path / "out.csv"
    call("select", files / file, "-t", "y", "--drop", "labels", "-k", 4, "-o", path)
    names, X = read_table(path)
    np.testing.assert_array_equal(X, data.X[:, [data.names.index(name) for name in names]])


def test_output_preserves_dtypes(call, tmp_path, rng):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    y = rng.normal(size=20)
    columns = {"f": y.astype(np.float32), "i": (10 * y).astype(np.int8), "y": y}
    parquet.write_table(pa.table(columns), tmp_path / "in.parquet")
    call("select", tmp_path / "in.parquet", "-t", "y", "-k", 2, "-o", tmp_path / "out.parquet")
    schema = parquet.read_schema(tmp_path / "out.parquet")
    assert {name: str(schema.field(name).type) for name in "fi"} == {"f": "float", "i": "int8"}


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_transform_and_select_write_the_same_dtypes(call, tmp_path, suffix):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rng = np.random.default_rng(0)
    columns = {
        "i": rng.integers(0, 3, 40).astype(np.int8),
        "f": rng.normal(size=40).astype(np.float32),
        "b": rng.random(40) < 0.5,
        "t": np.array(["u", "v"])[rng.integers(0, 2, 40)],
        "y": rng.normal(size=40),
    }
    path, model = tmp_path / "x.parquet", tmp_path / "model"
    parquet.write_table(pa.table(columns), path)
    out, again = tmp_path / f"out.{suffix}", tmp_path / f"again.{suffix}"
    call("select", path, "-t", "y", "-k", 5, "-m", model, "-o", out)
    call("transform", model, path, "-o", again)
    assert again.read_bytes() == out.read_bytes()
    if suffix == "parquet":
        schema = parquet.read_schema(again)
        found = {name: str(schema.field(name).type) for name in "ifb"}
        assert found == {"i": "int8", "f": "float", "b": "uint8"}
    # A column whose missing values are replaced by means has the values of `transform_many`.
    columns["f"] = np.where(columns["b"], np.nan, columns["f"]).astype(np.float32)
    parquet.write_table(pa.table(columns), path)
    call("select", path, "-t", "y", "-k", 5, "-m", model, "--missing", "mean")
    call("transform", model, path, "-o", tmp_path / "means.parquet")
    table = parquet.read_table(tmp_path / "means.parquet")
    mean = float(np.nanmean(columns["f"].astype(float)))
    assert table["f"].type == pa.float64()
    np.testing.assert_allclose(table["f"].to_numpy()[columns["b"]], mean, rtol=1e-7)


def test_written_missing_values_are_replaced_by_means(call, table, tmp_path):
    path = table(y=[1, 2, 3, 5], a=[1, 2, "", 6], b=[2, 1, 1, 1])
    out = tmp_path / "out.csv"
    arguments = ["-t", "y", "-k", 1, "--missing", "mean", "-o", out]
    assert call("select", path, *arguments).rows()[0]["name"] == "a"
    np.testing.assert_array_equal(read_table(out)[1][:, 0], [1, 2, 3, 6])


@pytest.mark.parametrize("command", [["select", "-k", 4], ["reduce", "-q", 2]])
@pytest.mark.parametrize("file", ["data.parquet", "samples.csv", "variables.csv"])
@pytest.mark.parametrize("suffix", [None, *SUFFIXES])
def test_transform(call, files, tmp_path, command, file, suffix):
    name, *options = command
    model = tmp_path / "model"
    call(name, files / "data.feather", "-t", "y", *options, "-m", model, "-o", tmp_path / "a.csv")
    out = tmp_path / f"b.{suffix or 'csv'}"
    result = call("transform", model, files / file, *([] if suffix is None else ["-o", out]))
    if suffix is None:
        out.write_text(result.stdout)
    else:
        assert not result.stdout
    names, X = read_table(tmp_path / "a.csv")
    found_names, found = read_table(out)
    assert found_names in (None, names)
    np.testing.assert_allclose(found, X, rtol=1e-9, atol=1e-12)


def test_transform_needs_all_columns(call, files, table, tmp_path):
    model = tmp_path / "model"
    call("select", files / "data.parquet", "-t", "y", "-k", 3, "-m", model)
    selected = load(model).selected
    columns = {name: [1, 2] for name in selected[:2]} | {selected[2].upper(): [1, 2]}
    result = call("transform", model, table(**columns), code=1)
    assert f"'{selected[2]}'" in result.stderr
    assert result.stderr.count("\n") == 1
    assert not result.stdout


def test_info(call, files, tmp_path):
    path = tmp_path / "model"
    call("select", files / "data.parquet", "-t", "y", "-k", 3, "-m", path)
    found = call("info", path, "--json").json()
    assert found["class"] == "ForwardSelection"
    assert [row["name"] for row in found["selected"]] == load(path).selected
    assert found["metadata"] == read_metadata(path)
    short, text = (call("info", path, *given).stdout for given in ([], ["--verbose"]))
    for detail in ("# columns read: 41\n", "# fingerprint: ", "exact=False", "# complete: yes"):
        assert detail in text
        assert detail not in short
    assert "# model: ForwardSelection(k=3)\n" in short
    assert "\nv7\t" in short
    assert {*short.splitlines()} - {*text.splitlines()} == {"# model: ForwardSelection(k=3)"}


def test_rare_columns(call, table, tmp_path, rng):
    once = [1.0] + [0.0] * 19
    y, noise = rng.normal(size=(2, 20))
    file, path = table(y=y, once=once, noise=noise), tmp_path / "model"
    result = call("select", file, "-t", "y", "-k", 2, "--min-count", 2, "-m", path)
    assert load(path).selected == ["noise"]
    assert "1 rare" in result.stderr
    assert read_metadata(path)["min_count"] == 2


def test_info_on_components(call, files, tmp_path):
    path = tmp_path / "model"
    call("reduce", files / "data.parquet", "-t", "y", "-q", 3, "-m", path)
    found = call("info", path, "--json").json()
    assert {row["name"] for row in found["components"]} == set(load(path).components)
    assert "ridgecomponents0" in call("info", path).stdout


def test_info_on_a_model_saved_by_python(call, tmp_path, rng):
    from streamsel import SOSPCA, save

    save(SOSPCA(2), tmp_path / "fresh")
    assert "SOSPCA" in call("info", tmp_path / "fresh").stdout
    model = SOSPCA(2)
    model.learn_target(rng.normal(size=9))
    model.learn_columns(rng.normal(size=(9, 4)))
    save(model, tmp_path / "model", metadata=["from", "Python"])
    assert call("info", tmp_path / "model", "--json").json()["metadata"] == ["from", "Python"]
    assert "from, Python" in call("info", tmp_path / "model").stdout


def test_existing_output_files_are_replaced(call, files, tmp_path):
    for path in (tmp_path / "m", tmp_path / "o.csv"):
        path.write_text("old")
    line = ["select", files / "data.parquet", "-t", "y", "--drop", "labels"]
    call(*line, "-m", tmp_path / "m", "-o", tmp_path / "o.csv")
    assert load(tmp_path / "m").n_columns == 40
    assert (tmp_path / "o.csv").read_text().startswith("v7,")
