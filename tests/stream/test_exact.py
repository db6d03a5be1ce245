"""Integers that float64 cannot represent are preserved."""

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from streamsel.stream import iter_csv, iter_files, iter_parquet
from streamsel.stream._formats import read_exact_integers
from streamsel.stream._numerals import (
    DEFAULT_READ_OPTIONS,
    may_be_rounded_integers,
    parse_integers,
)

LARGE = [9007199254740993, 9007199254740992, 12, -9223372036854775807]


@pytest.fixture
def folder(tmp_path):
    table = pa.table({"id": LARGE, "x": [0.5, 1, 2, 3], "t": ["a", "b", "c", "d"]})
    pa.parquet.write_table(table, tmp_path / "x.parquet")
    pa.feather.write_feather(table, tmp_path / "x.arrow", compression="lz4")
    rows = [["id", "x", "t"], *map(list, zip(*table.to_pydict().values(), strict=True))]
    tmp_path.joinpath("x.csv").write_text("\n".join(",".join(map(str, row)) for row in rows))
    np.save(tmp_path / "x.npy", np.array([LARGE, [1, 2, 3, 4]]).T)
    return tmp_path


@pytest.mark.parametrize("name", ["x.parquet", "x.arrow", "x.csv", "x.npy"])
def test_columns_of_files(folder, name):
    path, column = str(folder / name), 0 if name == "x.npy" else "id"
    inexact = iter_files(path, orientation="samples").take([column])[column]
    assert inexact.dtype == float
    assert len(set(inexact.tolist())) == 3
    assert may_be_rounded_integers(inexact)
    assert read_exact_integers(path, column, "samples", DEFAULT_READ_OPTIONS).tolist() == LARGE
    assert read_exact_integers(path, "none", "samples", DEFAULT_READ_OPTIONS) is None
    if name != "x.npy":
        assert read_exact_integers(path, "x", "samples", DEFAULT_READ_OPTIONS) is None
        assert read_exact_integers(path, "t", "samples", DEFAULT_READ_OPTIONS) is None


def test_parsing_of_integers():
    assert parse_integers(["1", " 2 ", "+3"]).tolist() == [1, 2, 3]
    assert parse_integers(["1", None]).tolist() == [1, None]
    assert parse_integers([str(2**70), "1"]).tolist() == [2**70, 1]
    assert parse_integers([]).tolist() == []
    for cells in (["1.0"], ["1e20"], ["x"], [""]):
        assert parse_integers(cells) is None
    for values in (np.array([0.5, 2.0**60]), np.array([1.0]), np.array([2**60]), np.zeros((2, 2))):
        assert not may_be_rounded_integers(values)
    assert may_be_rounded_integers(np.array([np.nan, -(2.0**53)]))


def test_rows_are_compared_by_whole_identifiers(tmp_path):
    for i, last in enumerate((9007199254740993, 9007199254740992)):
        table = pa.table({"id": [1, last], f"x{i}": [0.0, 1.0]})
        pa.parquet.write_table(table, tmp_path / f"{i}.parquet")
    with pytest.raises(ValueError, match=r"Expected the same id in every file\. Got in row 1"):
        iter_files(f"{tmp_path}/*.parquet", ids="id")
    assert iter_parquet(tmp_path / "0.parquet").take(["id"])["id"].dtype == float
    tmp_path.joinpath("x.csv").write_text("a\n1e300\n1\n")
    assert iter_csv(tmp_path / "x.csv").take(["a"])["a"].tolist() == [1e300, 1]
