"""A column of row numbers, as written by pandas, is not a candidate."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from streamsel import load
from streamsel.cli.diagnostics import counting_warning
from streamsel.cli.exclusions import RowCounterFinder, is_row_number
from streamsel.data.chunks import Block

N = 40


@pytest.fixture(scope="module")
def frame():
    """Return three variables, and a target that grows with the rows."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(N, 3)).round(4), columns=["a", "b", "c"])
    X["y"] = (X["b"] + np.arange(N) / 10).round(4)
    return X


def _files(frame, folder):
    """Write a frame with its index, as users do, in every tabular format."""
    frame.to_csv(folder / "unnamed.csv")
    pd.read_csv(folder / "unnamed.csv").to_csv(folder / "twice.csv")
    frame.reset_index().to_parquet(folder / "index.parquet")
    frame.rename_axis("rowid").reset_index().to_feather(folder / "rowid.feather")
    with_index = frame.set_index(pd.RangeIndex(1, N + 1))
    table = pl.from_pandas(with_index.reset_index(names="__index_level_0__"))
    table.write_parquet(folder / "level.parquet")
    with_index.to_csv(folder / "from-one.tsv", sep="\t")
    frame.reset_index().T.to_csv(folder / "lines.csv", header=[f"s{i}" for i in range(N)])
    return sorted(path.name for path in folder.iterdir())


NAMES = {
    "unnamed.csv": [""],
    "twice.csv": ["", "Unnamed: 0"],
    "index.parquet": ["index"],
    "rowid.feather": ["rowid"],
    "level.parquet": ["__index_level_0__"],
    "from-one.tsv": [""],
    "lines.csv": ["index"],
}
GIVEN = ["-t", "y", "-k", 4]


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory):
    folder = tmp_path_factory.mktemp("index")
    assert _files(frame, folder) == sorted(NAMES)
    return folder


@pytest.mark.parametrize(
    ("name", "more"), [*((name, []) for name in NAMES), ("index.parquet", ["--workers", 1])]
)
def test_row_number_column_is_excluded_with_a_warning(call, folder, tmp_path, name, more):
    path, model = folder / name, tmp_path / "m"
    found = call("select", path, *GIVEN, *more, "-m", model, "--json").json()
    assert found["metadata"]["index"] == NAMES[name]
    (text,) = (warning["text"] for warning in found["warnings"] if warning["code"] == "index")
    listed, many = ", ".join(map(repr, NAMES[name])), "s" * (len(NAMES[name]) > 1)
    assert text.startswith(f"the column{many} {listed} of {path} number")
    assert text.endswith("excluded. Hint: --keep-index keeps it as a candidate")
    assert load(model).n_columns == 3
    assert sorted(load(model).selected) == ["a", "b", "c"]


@pytest.mark.parametrize("name", NAMES)
def test_row_number_column_can_be_kept(call, folder, name):
    found = call("select", folder / name, *GIVEN, "--keep-index")
    assert set(NAMES[name]) < {row["name"] for row in found.rows()}
    assert "excluded" not in found.stderr
    assert "with the rows and may only number them" in found.stderr


def test_explicitly_used_index_does_not_warn(call, folder):
    path = folder / "index.parquet"
    for more in (["--drop", "index"], ["--id", "index"], ["--covariate", "index"]):
        stderr = call("select", path, *GIVEN, *more).stderr
        assert "numbers the rows and is excluded" not in stderr
    assert call("select", path, "-t", "index", "-k", 1).rows()


def test_other_counting_columns_are_kept_with_a_warning(call, frame, tmp_path):
    frame.assign(sensor=np.arange(N), t=np.arange(N) + 1).to_csv(tmp_path / "x.csv", index=False)
    found = call("select", tmp_path / "x.csv", *GIVEN, "-k", 5, "--json").json()
    texts = [warning["text"] for warning in found["warnings"] if warning["code"] == "index"]
    expected = (
        "the columns sensor, t count up with the rows and may only number them. "
        "Hint: --drop excludes such columns"
    )
    assert texts == [expected]
    assert found["metadata"]["counting"] == ["sensor", "t"]
    stderr = call("select", tmp_path / "x.csv", *GIVEN, "-k", 5).stderr
    assert "warning: the columns sensor, t count up" in stderr
    for command in (["reduce", "--method", "PCA", "-q", 1], ["stability", "-t", "y", "-k", 2]):
        drop = ["--drop", "y"] if command[0] == "reduce" else []
        assert "sensor, t count up" in call(*command, tmp_path / "x.csv", *drop).stderr


def test_shuffled_index_is_a_variable(call, frame, tmp_path):
    frame.sample(frac=1, random_state=0).to_csv(tmp_path / "x.csv")
    found = call("select", tmp_path / "x.csv", *GIVEN)
    assert "" in {row["name"] for row in found.rows()}
    assert "excluded" not in found.stderr


def test_resumed_run_treats_the_index_the_same(call, folder, tmp_path):
    path, model = folder / "unnamed.csv", tmp_path / "m"
    first = call("select", path, *GIVEN, "-m", model).stdout
    again = ["select", path, "-m", model, "--resume"]
    assert call(*again).stdout == first
    assert (
        "the saved run has --keep-index no. Got: --keep-index yes"
        in call(*again, "--keep-index", code=1).stderr
    )
    kept = tmp_path / "kept"
    first = call("select", path, *GIVEN, "-m", kept, "--keep-index").stdout
    again = ["select", path, "-m", kept, "--resume"]
    assert call(*again).stdout == call(*again, "--keep-index").stdout == first


def test_transform_excludes_row_numbers(call, folder, tmp_path):
    """A method that uses any column skips the row numbers."""
    given = ["--method", "RandomProjection", "-q", 2, "--drop", "y"]
    model, other = tmp_path / "m", tmp_path / "o"
    call("reduce", folder / "unnamed.csv", *given, "-m", model)
    call("reduce", folder / "index.parquet", *given, "-m", other)
    found = [
        call("transform", one, folder / name).stdout
        for one, name in ((model, "unnamed.csv"), (other, "index.parquet"))
    ]
    assert found[0] == found[1]


def test_row_number_detection():
    for values in ([0, 1, 2], [1, 2, 3], [0.0, 1.0], np.arange(300, dtype=np.uint8)[:256]):
        assert is_row_number(np.asarray(values))
    for values in ([2, 3], [0, 2], [1], [], [0, 1, np.nan], ["0", "1"], [[0], [1]], [0, 1, 3]):
        assert not is_row_number(np.asarray(values))
    counters = RowCounterFinder()
    X = np.arange(20.0)[:, None] + np.array([0, 1, 2, 0.5, 0, 0, 0, 0])
    X[19, 4] = 7
    counters.check_block(Block(list("abcdefgh"), X))
    counters.check_block(Block(list("ab"), X[:, :2]))
    counters.check_block(Block(["x"], X[:5, :1]))
    assert counters.names == list("abfg")
    assert counting_warning(counters.names).text.startswith("the columns a, b, f, ... count")
    assert counting_warning(RowCounterFinder().names) is None
