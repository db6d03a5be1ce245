"""Frames, Parquet and IPC: dtypes, nulls, values that are not numbers, and names."""

import datetime as dt
import decimal
import itertools
import sys

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import streamsel
from streamsel.stream import _blocks, as_stream, iter_frame, iter_ipc, iter_parquet

nan = np.nan
DAY = dt.datetime(2020, 1, 1)  # noqa: DTZ001
# name -> (values, polars type, expected dtype, expected values)
COLUMNS = {
    "float": ([1.5, None, 2.5], pl.Float64, "f8", [1.5, nan, 2.5]),
    "float32": ([1.5, None, 2.5], pl.Float32, "f4", [1.5, nan, 2.5]),
    "int8": ([1, 2, 3], pl.Int8, "i1", [1, 2, 3]),
    "uint8": ([1, 2, 3], pl.UInt8, "u1", [1, 2, 3]),
    "int8 with null": ([1, None, 3], pl.Int8, "f8", [1, nan, 3]),
    "int": ([1, 2, 3], pl.Int64, "f8", [1, 2, 3]),
    "int with null": ([1, None, 3], pl.Int32, "f8", [1, nan, 3]),
    "large": ([2**63 + 2**40, 0, 1], pl.UInt64, "f8", [2.0**63 + 2**40, 0, 1]),
    "bool": ([True, False, True], pl.Boolean, "u1", [1, 0, 1]),
    "bool with null": ([True, None, False], pl.Boolean, "f8", [1, nan, 0]),
    "decimal": ([decimal.Decimal("1.5"), None, decimal.Decimal("2.0")], None, "f8", [1.5, nan, 2]),
    "text": (["a", None, "c"], pl.String, "O", ["a", None, "c"]),
    "category": (["a", "b", "a"], pl.Categorical, "O", ["a", "b", "a"]),
    "date": ([DAY, DAY, DAY], pl.Datetime("ns"), "O", [DAY, DAY, DAY]),
    "nested": ([[1], [2, 3], [4]], pl.List(pl.Int64), "O", None),
    "struct": ([{"x": 1, "y": 2}] * 3, None, "O", None),
    "last": ([1.0, 2.0, 3.0], pl.Float64, "f8", [1, 2, 3]),
}
FRAME = pl.DataFrame(
    [pl.Series(name, column[0], dtype=column[1]) for name, column in COLUMNS.items()]
)


def _parquet(tmp_path):
    pa.parquet.write_table(FRAME.to_arrow(), tmp_path / "x.parquet", row_group_size=2)
    return iter_parquet(tmp_path / "x.parquet")


def _ipc(tmp_path):
    pa.feather.write_feather(FRAME.to_arrow(), tmp_path / "x.arrow", chunksize=2)
    return iter_ipc(tmp_path / "x.arrow")


@pytest.mark.parametrize(
    "make",
    [
        lambda _: iter_frame(FRAME),
        lambda _: iter_frame(nw.from_native(FRAME)),
        lambda _: iter_frame(FRAME.to_arrow()),
        lambda _: as_stream(FRAME.to_pandas(use_pyarrow_extension_array=True)),
        _parquet,
        _ipc,
    ],
    ids=["polars", "narwhals", "pyarrow", "pandas on pyarrow", "parquet", "ipc"],
)
def test_every_type_of_column(make, tmp_path):
    stream = make(tmp_path)
    taken = stream.take(list(COLUMNS))
    assert (stream.n_rows, stream.n_columns) == (3, len(COLUMNS))
    for (name, values), (expected_name, column) in zip(stream, COLUMNS.items(), strict=True):
        _, _, dtype, expected = column
        assert name == expected_name
        assert values.shape == (3,)
        assert values.dtype == np.dtype(dtype), name
        if expected is not None and dtype != "O":
            np.testing.assert_array_equal(values, expected)
            np.testing.assert_array_equal(taken[name], expected)
        elif expected is not None:
            present = [i for i in range(3) if expected[i] is not None]
            assert [values[i] for i in present] == [expected[i] for i in present]


def test_types_of_pandas():
    df = pd.DataFrame(
        {
            "Int8": pd.array([1, None], dtype="Int8"),
            "Int64": pd.array([1, None], dtype="Int64"),
            "boolean": pd.array([True, None], dtype="boolean"),
            "Float32": pd.array([1.5, None], dtype="Float32"),
            "int8": np.array([1, 2], dtype=np.int8),
            "sparse": pd.arrays.SparseArray([0.0, 1.0]),
            "numbers as categories": pd.Categorical([1, 2]),
            "with a null": pd.Categorical([1, None]),
            "objects": [1, "a"],
        }
    )
    dtypes = ["f8", "f8", "f8", "f4", "i1", "f8", "O", "O", "O"]
    values = [[1, nan]] * 3 + [[1.5, nan], [1, 2], [0, 1], ["1", "2"], ["1", None], [1, "a"]]
    for (_, column), dtype, expected in zip(iter_frame(df), dtypes, values, strict=True):
        assert column.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(column, np.array(expected, dtype=dtype))


def test_columns_of_pandas_may_have_any_names():
    df = pd.DataFrame(np.zeros((2, 2)), columns=[("a", 1), 7])
    assert [name for name, _ in iter_frame(df)] == [("a", 1), 7]


def test_lazy_and_foreign_frames():
    for make in (iter_frame, as_stream):
        with pytest.raises(TypeError, match=r"lazy polars.LazyFrame\.\nHint: call .collect\(\)"):
            make(FRAME.lazy())
    with pytest.raises(TypeError, match="Got: list"):
        iter_frame([1, 2])


@pytest.mark.parametrize("learn", [as_stream, streamsel.select, streamsel.PCA().learn_many])
@pytest.mark.parametrize("kind", ["array", "frame"])
@pytest.mark.filterwarnings("ignore:Dask support is moving")
def test_dask_collections_are_refused(learn, kind):
    """Lazy dask collections are refused as not in memory."""
    X = pytest.importorskip("dask.array").zeros((4, 3))
    if kind == "frame":
        dd = pytest.importorskip("dask.dataframe")
        X = dd.from_pandas(pd.DataFrame(np.zeros((4, 3)), columns=[*"abc"]), npartitions=2)
    with pytest.raises(TypeError, match=r"memory\. Got: a lazy dask.*\nHint: call \.compute"):
        learn(X)


@pytest.mark.parametrize(
    "duplicated",
    [
        pd.DataFrame(np.zeros((2, 3)), columns=["a", "b", "a"]),
        pa.table([[1], [2], [3]], names=["a", "b", "a"]),
    ],
)
def test_repeated_names(duplicated, tmp_path):
    with pytest.raises(ValueError, match=r"[Gg]ot:\s.*'a'"):
        iter_frame(duplicated)
    if isinstance(duplicated, pa.Table):
        pa.parquet.write_table(duplicated, tmp_path / "x.parquet")
        with pytest.raises(ValueError, match="Got: 'a' more than once"):
            iter_parquet(tmp_path / "x.parquet")


@pytest.mark.parametrize("iter_file", [iter_parquet, iter_ipc])
def test_choice_of_columns(iter_file, tmp_path):
    table = FRAME.to_arrow()
    pa.parquet.write_table(table, tmp_path / "iter_parquet")
    pa.feather.write_feather(table, tmp_path / "iter_ipc")
    path = tmp_path / iter_file.__name__
    stream = iter_file(path, columns=["last", "struct", "int8", "int8"])
    assert [name for name, _ in stream] == ["int8", "struct", "last"]
    np.testing.assert_array_equal(stream.take(["last"])["last"], [1, 2, 3])
    np.testing.assert_array_equal(dict(stream.skip(1))["last"], [1, 2, 3])
    with pytest.raises(KeyError, match=r"got: 'int9'. Hint: did you mean .*'int8'"):
        iter_file(path, columns=["int9"])
    with pytest.raises(TypeError, match=r"columns=\['last'\]"):
        iter_file(path, columns="last")


def test_the_index_of_pandas_is_not_a_variable(tmp_path):
    df = pd.DataFrame({"a": [1.0, 2.0]}, index=pd.Index([5, 9]))
    df.to_parquet(tmp_path / "x.parquet")
    assert [name for name, _ in iter_parquet(tmp_path / "x.parquet")] == ["a"]
    pa.feather.write_feather(pa.Table.from_pandas(df), tmp_path / "x.arrow")
    assert [name for name, _ in iter_ipc(tmp_path / "x.arrow")] == ["a"]


def test_ipc_of_many_batches_is_read_in_parts(monkeypatch, tmp_path):
    from streamsel.stream import _ipc

    monkeypatch.setattr(_ipc, "_MAX_ARRAYS", 10)
    monkeypatch.setattr(_ipc, "_IPC_GROUP_BYTES", 3 * 40 * 8)
    X = np.arange(400.0).reshape(40, 10)
    table = pa.table(list(X.T.copy()), names=[f"v{j}" for j in range(10)])
    pa.feather.write_feather(table, tmp_path / "x.arrow", "uncompressed", chunksize=7)
    stream = iter_ipc(tmp_path / "x.arrow")
    np.testing.assert_array_equal(np.column_stack([values for _, values in stream]), X)
    np.testing.assert_array_equal(stream.take(["v7"])["v7"], X[:, 7])


@pytest.mark.parametrize("dtype", ["f8", "f4", "i1", "u1"])
@pytest.mark.parametrize("n", [5, 64])
@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
def test_numbers_of_one_batch_are_read_without_arrow(n, dtype, compression, tmp_path, monkeypatch):
    from streamsel.stream import _ipc

    X = np.random.default_rng(0).integers(0, 99, (n, 7)).astype(dtype)
    X[:, 3] = 7  # compressible
    names = [f"v{j}" for j in range(7)]
    table = pa.table(list(X.T.copy()), names=names)
    pa.feather.write_feather(table, tmp_path / "x.arrow", compression)
    monkeypatch.delattr(_ipc.IpcFile, "table")
    whole, some = iter_ipc(tmp_path / "x.arrow"), iter_ipc(tmp_path / "x.arrow", ["v1", "v3", "v6"])
    parts = (part.open() for part in some.split(2))
    for found, expected in [
        (dict(whole.skip(2)), names[2:]),
        (whole.take(["v6", "v0"]), ["v6", "v0"]),
        (dict(itertools.chain.from_iterable(parts)), ["v1", "v3", "v6"]),
    ]:
        assert list(found) == expected
        for name, values in found.items():
            assert values.dtype == X.dtype
            np.testing.assert_array_equal(values, X[:, int(name[1:])])


def test_frames_without_rows_or_columns(tmp_path):
    assert list(iter_frame(pd.DataFrame())) == []
    assert [values.size for _, values in iter_frame(FRAME.clear())] == [0] * len(COLUMNS)
    for table in (pa.table({}), FRAME.clear().to_arrow()):
        pa.parquet.write_table(table, tmp_path / "x.parquet")
        pa.feather.write_feather(table, tmp_path / "x.arrow")
        for stream in (iter_parquet(tmp_path / "x.parquet"), iter_ipc(tmp_path / "x.arrow")):
            assert stream.n_rows == 0
            assert len(list(stream)) == table.num_columns


@pytest.mark.parametrize("iter_file", [iter_parquet, iter_ipc])
def test_without_pyarrow_the_error_names_the_extra(iter_file, monkeypatch, tmp_path):
    from streamsel._utils.optional import import_pyarrow

    import_pyarrow.cache_clear()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r'Hint: pip install "streamsel\[io\]"'):
        iter_file(tmp_path / "x")


def _same_type_tables():
    rng = np.random.default_rng(0)
    X = rng.integers(-9, 9, size=(7, 50))
    holes = rng.random((7, 50)) < 0.2
    for arrow_type in (pa.float64(), pa.float32(), pa.int64(), pa.int8(), pa.bool_()):
        for mask in (np.zeros_like(holes), holes):
            values = X.astype(bool) if arrow_type == pa.bool_() else X
            columns = [
                pa.array(values[:, j], mask=mask[:, j]).cast(arrow_type) for j in range(X.shape[1])
            ]
            names = [f"v{j}" for j in range(X.shape[1])]
            yield pa.table(columns, names=names), np.where(mask, np.nan, values)


@pytest.mark.parametrize("row_group_size", [3, 100])
@pytest.mark.parametrize("iter_file", [iter_parquet, iter_ipc])
@pytest.mark.parametrize("compression", ["uncompressed", "lz4"])
def test_tables_of_one_type(tmp_path, iter_file, row_group_size, compression):
    for table, expected in _same_type_tables():
        path = tmp_path / "x"
        if iter_file is iter_parquet:
            compression_of = {"uncompressed": "none"}.get(compression, compression)
            pa.parquet.write_table(
                table, path, row_group_size=row_group_size, compression=compression_of
            )
        else:
            pa.feather.write_feather(table, path, compression=compression, chunksize=row_group_size)
        stream = iter_file(path)
        for start in (0, 1, 49, 50):
            columns = list(stream.skip(start))
            assert [name for name, _ in columns] == table.column_names[start:]
            for (_, values), column in zip(columns, expected.T[start:], strict=True):
                np.testing.assert_array_equal(values, column)


@pytest.mark.parametrize("cores", [1, 2])
def test_columns_are_fetched_during_a_pass(tmp_path, monkeypatch, cores):
    monkeypatch.setattr(_blocks, "_n_cores", lambda: cores)
    X = np.arange(3_000_000.0).reshape(1000, 3000)
    table = pa.table(list(X.T), names=[f"v{j}" for j in range(3000)])
    pa.parquet.write_table(table, tmp_path / "x.parquet")
    stream = iter_parquet(tmp_path / "x.parquet")
    start = 0
    for block in stream.blocks():
        np.testing.assert_array_equal(stream.take(["v2999"])["v2999"], X[:, 2999])
        np.testing.assert_array_equal(block.values, X[:, start : start + len(block.names)])
        start += len(block.names)
    assert start == 3000
