"""Read files and learn from them; compare with the plain reader of each format."""

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from streamsel import ProjSe
from streamsel.stream import iter_csv, iter_ipc, iter_npy, iter_parquet

N = 1000


def _learn(stream, y):
    model = ProjSe(10, max_candidates=100)
    model.learn_target(y)
    model.learn_columns(stream)


def _touch(table):
    for column in table.columns:
        column.to_numpy().sum()


def _read_ipc(path):
    with pa.memory_map(str(path)) as file:
        options = pa.ipc.IpcReadOptions(use_threads=False)
        return pa.ipc.open_file(file, options=options).read_all()


@pytest.fixture(scope="module")
def target():
    rng = np.random.default_rng(1)
    return {"one target": rng.normal(size=N), "20 classes": np.arange(N) % 20}


def _columns(p):
    return np.asfortranarray(np.random.default_rng(0).normal(size=(p, N)).T)


def _table(X):
    return pa.table([pa.array(x) for x in X.T], names=[f"v{j}" for j in range(X.shape[1])])


@pytest.mark.parametrize("of", ["one target", "20 classes"])
def test_parquet(against, size, tmp_path, target, of):
    path, p = tmp_path / "x.parquet", size(20_000)
    pa.parquet.write_table(_table(_columns(p)), path)
    y = target[of].astype(str) if of == "20 classes" else target[of]
    against(
        f"Parquet, {N}×{p:,}, ProjSe, {of} / pyarrow's read_table, one thread",
        lambda: _learn(iter_parquet(path), y),
        lambda: pa.parquet.read_table(path, use_threads=False),
        threshold=1.2,
    )


@pytest.mark.parametrize("compression", ["uncompressed", "lz4"])
def test_ipc(against, size, tmp_path, target, compression):
    path, p = tmp_path / "x.arrow", size(20_000)
    pa.feather.write_feather(_table(_columns(p)), path, compression=compression)
    against(
        f"Arrow IPC, {compression}, {N}×{p:,}, ProjSe / read_all and a sum of every column",
        lambda: _learn(iter_ipc(path), target["one target"]),
        lambda: _touch(_read_ipc(path)),
        threshold=1.2,
    )


@pytest.mark.parametrize("order", ["F", "C"])
def test_npy(against, size, tmp_path, target, order):
    path, p = tmp_path / "x.npy", size(20_000)
    np.save(path, np.asarray(_columns(p), order=order))
    y = target["one target"]
    against(
        f".npy in {order} order, {N}×{p:,}, ProjSe / y @ numpy.load",
        lambda: _learn(iter_npy(path), y),
        lambda: y @ np.load(path),
        threshold=1.2 if order == "F" else None,
    )


@pytest.mark.parametrize("missing", [0.0, 0.05])
def test_lines(against, size, tmp_path, target, missing):
    def ours():
        stream = iter_csv(path, orientation="variables", header=False)
        # ProjSe refuses columns with missing values: they are read, but not learnt.
        if not missing:
            _learn(stream, target["one target"])
        for _ in stream.blocks() if missing else ():
            pass

    path, p = tmp_path / "x.tsv", size(4_000)
    rng = np.random.default_rng(0)
    with path.open("w") as file:
        for j, x in enumerate(_columns(p).T):
            cells = [f"{v:.6g}" if rng.random() >= missing else "NA" for v in x]
            file.write("\t".join([f"v{j}", *cells]) + "\n")
    what = f", {missing:.0%} of the cells missing" if missing else ", ProjSe"
    against(
        f"text, one variable per line, {p:,}×{N}{what} / polars' read_csv",
        ours,
        lambda: pl.read_csv(path, separator="\t", has_header=False, null_values="NA"),
        threshold=1.5,
    )


def test_csv(against, size, tmp_path, target):
    path, p = tmp_path / "x.csv", size(4_000)
    pl.DataFrame(_columns(p).round(5), [f"v{j}" for j in range(p)]).write_csv(path)
    against(
        f"text, one observation per line, {N}×{p:,}, ProjSe / polars' read_csv",
        lambda: _learn(iter_csv(path), target["one target"]),
        lambda: pl.read_csv(path),
        threshold=1.5,
    )
