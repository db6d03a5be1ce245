"""Several files of any formats in one run: their columns are concatenated."""

import numpy as np
import pytest

from streamsel import load
from streamsel.serialization.archive import read_metadata
from tests.cli.conftest import write_text


@pytest.fixture(scope="module")
def cut(data, tmp_path_factory):
    """Return the dataset as twelve Parquet files (the target in the eleventh), text and arrays."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    folder = tmp_path_factory.mktemp("cut")
    for i in range(12):
        columns = {f"v{j}": data.X[:, j] for j in range(4 * i, min(4 * i + 4, 40))}
        columns |= {10: {"y": data.y}, 11: {"labels": data.labels}}.get(i, {})
        parquet.write_table(pa.table(columns), folder / f"part-{i}.parquet")
    for i in range(2):
        np.save(folder / f"{i}.npy", data.X[:, 20 * i : 20 * i + 20])
        rows = [[f"v{j}", *data.X[:, j].tolist()] for j in range(20 * i, 20 * i + 20)]
        rows += [["y", *data.y.tolist()], ["labels", *data.labels]] if i else []
        write_text(folder / f"lines-{i}.tsv.gz", rows, "\t")
        write_text(folder / f"table-{i}.csv", list(map(list, zip(*rows, strict=True))), ",")
    return folder


def _names(result):
    return [row["name"] for row in result.rows()]


@pytest.mark.parametrize(
    ("pattern", "options"),
    [
        ("part-*.parquet", ["-t", "y", "--drop", "labels"]),
        ("lines-*.gz", ["-t", "y", "--drop", "labels"]),
        ("table-*.csv", ["-t", "y", "--drop", "labels"]),
        ("lines-*.gz", ["-t", "labels"]),
        ("table-*.csv", ["-t", "labels", "--drop", "y"]),
    ],
)
def test_files_are_one_table(call, files, cut, pattern, options):
    whole = call("select", files / "data.parquet", "-k", 4, *options)
    assert _names(call("select", cut / pattern, "-k", 4, *options)) == _names(whole)
    found = sorted(cut.glob(pattern))
    assert set(_names(call("select", *found, "-k", 4, *options))) == set(_names(whole))


def test_unnamed_columns_are_numbered_across_files(call, files, cut):
    target = ["--target-file", files / "y.npy", "-k", 4]
    whole = call("select", files / "data.npy", *target)
    assert _names(call("select", cut / "*.npy", *target)) == _names(whole)
    found = call("select", cut / "0.npy", cut / "1.npy", "-t", 39, "--drop", 3, "-k", 40)
    assert len(_names(found)) == 38


@pytest.mark.parametrize("target", [["-t", "y"], ["--target-file", "y.npy"]])
def test_mixed_formats(call, files, data, cut, target):
    paths = [cut / "0.npy", cut / "lines-1.tsv.gz"]
    target = [files / word if word == "y.npy" else word for word in target]
    options = ["--orientation", "variables"] if "-t" not in target else []
    options += ["--drop", "labels"] + (["--drop", "y"] if "-t" not in target else [])
    found = call("select", *paths, *target, "-k", 3, *options)
    assert _names(found) == ["7", "3", "v20"]
    # The text lacks the target's name: the number of values per line shows the orientation.
    found = call("select", cut / "lines-0.tsv.gz", cut / "part-10.parquet", "-t", "y", "-k", 2)
    assert _names(found) == ["v7", "v3"]


def test_numeric_names_alongside_unnamed_arrays(call, cut, table, data):
    years = table("years.csv", **{"2020": data.y.tolist(), "7": data.X[:, 1].tolist()})
    options = ["--orientation", "samples", "-k", 2]
    found = call("select", cut / "1.npy", years, "-t", "2020", *options)
    assert _names(found)[0] == "11"
    found = call("select", cut / "1.npy", years, "-t", "2020", "--drop", "11,7", *options)
    assert "11" not in _names(found)


def test_covariates_from_any_file(call, files, cut):
    options = ["-t", "y", "--covariate", "v7,v20", "--drop", "labels", "-k", 2]
    whole = call("select", files / "data.parquet", *options)
    assert _names(call("select", cut / "part-*.parquet", *options)) == _names(whole)
    assert _names(call("select", cut / "lines-*", *options)) == _names(whole)


def test_reduce_and_transform_several_files(call, files, cut, tmp_path):
    model, out, again = tmp_path / "m", tmp_path / "out.csv", tmp_path / "again.csv"
    options = ["-t", "y", "--drop", "labels", "-q", 3]
    call("reduce", cut / "part-*.parquet", *options, "-m", model, "-o", out)
    call("transform", model, cut / "part-*.parquet", "-o", again)
    assert again.read_bytes() == out.read_bytes()
    call("transform", model, cut / "lines-0.tsv.gz", cut / "lines-1.tsv.gz", "-o", again)
    call("reduce", files / "data.parquet", *options, "-o", tmp_path / "whole.csv")
    assert out.read_bytes() == (tmp_path / "whole.csv").read_bytes()
    message = call("transform", model, cut / "part-1*.parquet", code=1).stderr
    assert "part-1*.parquet: no such column: 'v0'" in message
    assert "\n" not in message.strip()


def test_selected_columns_of_several_are_written(call, cut, data, tmp_path):
    for pattern in ("part-*.parquet", "lines-*", "table-*"):
        out = tmp_path / "out.csv"
        call("select", cut / pattern, "-t", "y", "--drop", "labels", "-k", 3, "-o", out)
        assert out.read_text().splitlines()[0] == "v7,v3,v20"
        X = np.loadtxt(out, delimiter=",", skiprows=1)
        np.testing.assert_array_equal(X, data.X[:, [7, 3, 20]])


def test_run_over_several_files_is_resumed(call, cut, tmp_path, monkeypatch):
    options = ["-t", "y", "--drop", "labels", "-k", 4]
    whole, model = tmp_path / "whole", tmp_path / "m"
    call("select", cut / "part-*.parquet", *options, "-m", whole)

    from streamsel.selection.forward_selection import ForwardSelection

    learn, n = ForwardSelection.learn_columns, 0

    def interrupted(self, *args, **kwargs):
        nonlocal n
        n += len(kwargs.get("names", ()))
        if n > 15:
            raise KeyboardInterrupt
        learn(self, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(ForwardSelection, "learn_columns", interrupted)
        stopped = call("select", cut / "part-*.parquet", *options, "-m", model, code=130)
    assert f"streamsel select '{cut}/part-*.parquet' --resume {model}" in stopped.stderr
    assert 0 < read_metadata(model)["columns_read"] < 40
    call("select", cut / "part-*.parquet", "--resume", model)
    assert load(model).selected == load(whole).selected
    assert read_metadata(model)["columns_read"] == 40
    assert read_metadata(model)["file"] == f"{cut}/part-*.parquet"


@pytest.mark.parametrize("options", [["--orientation", "variables"], []])
def test_unparsable_lines_give_one_line_errors(call, cut, tmp_path, options):
    path = tmp_path / "long.csv"
    path.write_text('a,1,2\nb,2,1\ny,"' + "q" * 200_000 + '","b"\n')
    for paths in ((path,), (path, cut / "lines-0.tsv.gz")):
        message = call("select", *paths, "-t", "y", *options, code=1).stderr
        assert "long.csv" in message
        assert message.count("\n") == 1


def test_mismatched_files_give_one_line_errors(call, cut, files, table, tmp_path):
    other = table("other.csv", z=[1, 2, 3])
    for paths, words in {
        (cut / "0.npy", other): ["60 in", "3 in", "other.csv"],
        (cut / "part-0.parquet", files / "data.parquet"): ["'v0' in", "part-0.parquet", "and in"],
        (cut / "nothing-*.csv",): ["nothing-*.csv", "Hint: list"],
        (cut / "0.npy", tmp_path / "nowhere.npy"): ["nowhere.npy: No such file"],
    }.items():
        options = ["--target-file", files / "y.npy", "--orientation", "samples"]
        message = call("select", *paths, *options, code=1).stderr
        assert all(word in message for word in words), message
        assert message.count("\n") == 1
    message = call("select", cut / "0.npy", cut / "1.npy", "-t", 1, "-o", cut / "1.npy", code=2)
    assert "the same file as" in message.stderr
    call("select", "-t", "y", code=2)
    message = call("select", cut / "part-*.parquet", "-t", "w", code=1).stderr
    assert f"{cut}/part-*.parquet: no such column: 'w'" in message
