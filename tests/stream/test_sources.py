"""Every source yields the columns of its matrix, in order and in bounded blocks."""

import functools
import gzip

import hypothesis.extra.numpy as hnp
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsel.stream import (
    ColumnStream,
    as_stream,
    iter_array,
    iter_columns,
    iter_csv,
    iter_frame,
    iter_ipc,
    iter_npy,
    iter_parquet,
    iter_polynomials,
    iter_sparse,
)

# Text with one variable per line.
BY_VARIABLE = functools.partial(iter_csv, orientation="variables")

BLOCK_BYTES = 4 * 2**20
KEPT = (np.float64, np.float32, np.int8, np.uint8)


def _names(p):
    # "v1" and "v1.1" together: pyarrow would read the second as a field of the first.
    return [f"v{j // 2}" + ".1" * (j % 2) for j in range(p)]


def _frame(X):
    return pd.DataFrame(X, columns=_names(X.shape[1]))


def _table(X):
    return pa.table([pa.array(x) for x in X.T.copy()], names=_names(X.shape[1]))


def _npy(X, folder, order):
    path = folder / f"{order}.npy"
    np.save(path, np.asarray(X, order=order))
    return iter_npy(path, names=_names(X.shape[1]))


def _parquet(X, folder):
    path = folder / "x.parquet"
    pa.parquet.write_table(_table(X), path, row_group_size=max(3, len(X) // 3))
    return iter_parquet(path)


def _ipc(X, folder, compression):
    path = folder / f"{compression}.arrow"
    pa.feather.write_feather(
        _table(X), path, compression=compression, chunksize=max(3, len(X) // 3)
    )
    return iter_ipc(path)


def _polars_ipc(X, folder):
    path = folder / "polars.arrow"
    pl.from_arrow(_table(X)).write_ipc(path)
    return iter_ipc(path)


def _lines(X, folder):
    path = folder / "x.tsv"
    rows = [
        "\t".join([name, *map(repr, x.tolist())])
        for name, x in zip(_names(len(X.T)), X.T, strict=True)
    ]
    path.write_text("\n".join(rows) + "\n")
    return iter_csv(path, orientation="variables", dtype=X.dtype, header=False)


def _gz_lines(X, folder):
    path = folder / "x.csv.gz"
    header = ",".join(["name", *(f"s{i}" for i in range(len(X)))])
    rows = [
        ",".join([name, *map(repr, x.tolist())])
        for name, x in zip(_names(len(X.T)), X.T, strict=True)
    ]
    path.write_bytes(gzip.compress("\r\n".join([header, *rows, ""]).encode(), 1))
    return iter_csv(path, orientation="variables", dtype=X.dtype)


def _csv(X, folder):
    path = folder / "y.csv"
    _frame(X.astype(float)).to_csv(path, index=False)
    return iter_csv(path)


def _pairs(X):
    return list(zip(_names(X.shape[1]), X.T, strict=True))


SOURCES = {
    "array in C order": lambda X, _: iter_array(np.ascontiguousarray(X), _names(X.shape[1])),
    "array in F order": lambda X, _: iter_array(np.asfortranarray(X), _names(X.shape[1])),
    "pandas": lambda X, _: iter_frame(_frame(X)),
    "polars": lambda X, _: iter_frame(pl.from_pandas(_frame(X))),
    "pyarrow": lambda X, _: iter_frame(_table(X)),
    "csc": lambda X, _: iter_sparse(scipy.sparse.csc_array(X), _names(X.shape[1])),
    "csr": lambda X, _: iter_sparse(scipy.sparse.csr_matrix(X), _names(X.shape[1])),
    "npy in C order": lambda X, folder: _npy(X, folder, "C"),
    "npy in F order": lambda X, folder: _npy(X, folder, "F"),
    "parquet": _parquet,
    "ipc": lambda X, folder: _ipc(X, folder, "uncompressed"),
    "compressed ipc": lambda X, folder: _ipc(X, folder, "zstd"),
    "ipc of polars": _polars_ipc,
    "lines": _lines,
    "gzipped lines with a header": _gz_lines,
    "csv": _csv,
    "list of pairs": lambda X, _: iter_columns(_pairs(X)),
    "function": lambda X, _: iter_columns(lambda: iter(_pairs(X))),
    "polynomials": lambda X, _: iter_polynomials(iter_columns(_pairs(X)), degree=1),
    "anything": lambda X, _: as_stream(iter(_pairs(X))),
}

matrices = st.sampled_from(KEPT).flatmap(
    lambda dtype: hnp.arrays(
        dtype,
        st.tuples(st.integers(1, 7), st.integers(1, 9)),
        elements={"allow_nan": False, "allow_infinity": False} if dtype in KEPT[:2] else None,
    )
)


def _dense(values):
    return values if isinstance(values, np.ndarray) else values.toarray()


@pytest.mark.parametrize("source", SOURCES)
@settings(max_examples=20)
@given(X=matrices)
def test_yields_the_columns_of_the_matrix(source, X, tmp_path_factory):
    stream = SOURCES[source](X, tmp_path_factory.mktemp("source"))
    names = []
    parts = []
    for block_names, values, _ in stream.blocks():
        assert values.shape[1] == len(block_names)
        if source not in {"csv", "polynomials"}:
            assert values.dtype == X.dtype
        names.extend(block_names)
        parts.append(_dense(values))
    assert names == _names(X.shape[1])
    np.testing.assert_array_equal(np.hstack(parts), X)
    assert (stream.n_rows, stream.n_columns) == X.shape


@pytest.mark.parametrize("source", SOURCES)
def test_columns_one_by_one_in_parts_and_by_name(source, rng, tmp_path):
    X = rng.normal(size=(5, 8))
    stream = SOURCES[source](X, tmp_path)
    if not stream.reiterable:
        assert dict(stream).keys() == dict.fromkeys(_names(8)).keys()
        with pytest.raises(RuntimeError, match=r"one-shot.*\n*Hint"):
            stream.blocks()
        return
    for j, (name, values) in enumerate(stream):
        assert name == _names(8)[j]
        np.testing.assert_array_equal(np.ravel(_dense(values)), X[:, j])

    taken = stream.take(["v3", "v0.1"])
    assert list(taken) == ["v3", "v0.1"]
    np.testing.assert_array_equal(np.ravel(_dense(taken["v3"])), X[:, 6])
    np.testing.assert_array_equal(np.ravel(_dense(taken["v0.1"])), X[:, 1])
    with pytest.raises(KeyError, match=r"got: 'v33'. Hint: did you mean 'v3'"):
        stream.take(["v1", "v33"])

    for rest, kept in (
        (stream.skip(3), [3, 4, 5, 6, 7]),
        (stream.skip(1).skip(2), [3, 4, 5, 6, 7]),
        (stream.skip(8), []),
        (stream.without(["v0", "v2"]), [1, 2, 3, 5, 6, 7]),
        (stream.without(["v0"]).skip(2), [3, 4, 5, 6, 7]),
        (stream.skip(2).without(["v3.1"]), [2, 3, 4, 5, 6]),
    ):
        assert rest.n_rows == 5
        assert rest.n_columns in {None, len(kept)}
        assert [name for name, _ in rest] == [_names(8)[j] for j in kept]
        for j, (_, values) in zip(kept, rest, strict=True):
            np.testing.assert_array_equal(np.ravel(_dense(values)), X[:, j])


@pytest.mark.parametrize("source", sorted(set(SOURCES) - {"array in F order", "csc", "csr"}))
def test_blocks_are_bounded(source, rng, tmp_path):
    X = rng.integers(100, size=(2000, 600)).astype(float)
    n_blocks = 0
    for _, values, _ in SOURCES[source](X, tmp_path).blocks():
        assert values.nbytes <= BLOCK_BYTES
        assert values.flags.f_contiguous
        n_blocks += 1
    assert 3 <= n_blocks <= 6


@pytest.mark.parametrize(
    "iter_file",
    [iter_npy, iter_parquet, iter_ipc, BY_VARIABLE, iter_csv],
    ids=lambda f: getattr(f, "__name__", "by_variable"),
)
def test_missing_and_empty_files(iter_file, tmp_path):
    with pytest.raises(FileNotFoundError):
        iter_file(tmp_path / "absent")
    path = tmp_path / "empty"
    path.touch()
    with pytest.raises(ValueError, match=r"Expected .*. Got: .*empty"):
        iter_file(path)


@pytest.mark.parametrize("iter_file", [iter_npy, iter_parquet, iter_ipc])
def test_foreign_and_truncated_files(iter_file, rng, tmp_path):
    path = tmp_path / "foreign"
    path.write_bytes(b"a,b\n1,2\n" * 100)
    with pytest.raises(ValueError, match=r"Expected a .* Got: .*foreign"):
        iter_file(path)
    X = rng.normal(size=(50, 4))
    np.save(tmp_path / "npy.npy", X)
    pa.parquet.write_table(_table(X), tmp_path / "parquet")
    pa.feather.write_feather(_table(X), tmp_path / "ipc")
    whole = tmp_path / {iter_npy: "npy.npy", iter_parquet: "parquet", iter_ipc: "ipc"}[iter_file]
    assert iter_file(whole).n_columns == 4
    whole.write_bytes(whole.read_bytes()[:-100])
    with pytest.raises(ValueError, match="Expected a"):
        iter_file(whole)


def test_unknown_size_is_set_after_a_pass():
    stream = ColumnStream(iter_columns([("a", np.ones(3)), ("b", np.ones(3))]).blocks)
    assert (stream.n_rows, stream.n_columns) == (None, None)
    next(stream.blocks())
    assert stream.n_rows == 3
    assert len(list(stream)) == 2
    assert stream.n_columns == 2


def test_excluding_columns_does_not_copy_all(rng):
    X = np.asfortranarray(rng.normal(size=(4000, 1000)))
    odd = iter_array(X).without(range(0, 1000, 2))
    names, parts, _ = zip(*odd.blocks(), strict=True)
    assert max(part.nbytes for part in parts) <= BLOCK_BYTES
    assert sum(names, []) == list(range(1, 1000, 2))  # noqa: RUF017
    np.testing.assert_array_equal(np.hstack(parts), X[:, 1::2])
    few = iter_array(X).without([0, 500])
    assert all(np.shares_memory(values, X) for _, values, _ in few.blocks())
    with pytest.raises(KeyError, match="got: 0"):
        odd.take([0])


def test_requested_names_are_checked():
    stream = iter_array(np.zeros((2, 3)), names=["alpha", "beta", "gamma"])
    with pytest.raises(KeyError, match="did you mean 'alpha'"):
        stream.take(["alhpa"])
    with pytest.raises(KeyError, match="its columns are 'alpha', 'beta', 'gamma'"):
        stream.take([7])
    with pytest.raises(TypeError, match=r"\['alpha'\]"):
        stream.take("alpha")
    with pytest.raises(TypeError, match=r"\['alpha'\]"):
        stream.without("alpha")
    with pytest.raises(ValueError, match="Got: -1"):
        stream.skip(-1)
    assert stream.take([]) == {}
    assert repr(stream) == "ColumnStream(n_rows=2, n_columns=3, reiterable=True)"
