"""Data where they are, learning included, beside the bare reader of their own library."""

import numpy as np
import pytest

from streamsel import ProjSe
from streamsel.stream import clean, iter_anndata, iter_bed, iter_zarr

N = 2000


def _learn(stream, y):
    model = ProjSe(10, max_candidates=100)
    model.learn_target(y)
    model.learn_columns(stream)


@pytest.fixture(scope="module")
def y():
    return np.random.default_rng(1).normal(size=N)


@pytest.mark.parametrize("missing", [0.0, 0.001])
def test_bed(against, size, tmp_path, y, missing):
    from bed_reader import open_bed, to_bed

    path, p = tmp_path / "x.bed", size(50_000)
    rng = np.random.default_rng(0)
    genotypes = rng.integers(0, 3, size=(p, N), dtype=np.int8).T
    genotypes[missing > rng.random((p, N), dtype=np.float32).T] = -127
    to_bed(path, genotypes)
    how = f"{100 * missing:g} % missing" if missing else "whole"
    against(
        f".bed, {how}, {N}×{p:,}, ProjSe / bed_reader's read as int8, one thread",
        lambda: _learn(clean(iter_bed(path), missing="mean"), y),
        lambda: open_bed(path, num_threads=1).read(dtype="int8", order="F"),
        bar=None if missing else 1.2,
    )


@pytest.mark.parametrize("form", ["dense", "csc", "csr"])
def test_anndata(against, size, tmp_path, y, form):
    import scipy.sparse as sp
    from anndata import AnnData, read_h5ad

    path, p = tmp_path / "x.h5ad", size(20_000)
    cells = sp.random(N, p, 0.1, format="csc", dtype=np.float32, random_state=0)
    AnnData({"dense": cells.toarray, "csc": cells.tocsc, "csr": cells.tocsr}[form]()).write(path)
    against(
        f".h5ad, {form}, {N}×{p:,}, ProjSe / anndata's read_h5ad, and a sum of every column",
        lambda: _learn(iter_anndata(path), y),
        lambda: read_h5ad(path).X.sum(axis=0),
    )


@pytest.mark.parametrize("chunks", ["some columns", "some rows"])
def test_zarr(against, size, tmp_path, y, chunks):
    import zarr

    path, p = tmp_path / "x.zarr", size(20_000)
    lie = (N, 100) if chunks == "some columns" else (10, p)
    data = np.random.default_rng(0).normal(size=(N, p)).astype(np.float32)
    array = zarr.create_array(path, data=data, chunks=lie)
    against(
        f"Zarr, chunks of {chunks}, {N}×{p:,}, ProjSe / y @ array[:]",
        lambda: _learn(iter_zarr(path), y),
        lambda: y @ array[:],
    )
