"""Read sources and learn from them; compare with the plain reader of their own library."""

import gzip

import numpy as np
import pytest

from streamsel import ProjSe
from streamsel.stream import clean, iter_anndata, iter_bed, iter_vcf, iter_zarr

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
    how = f"{100 * missing:g} % missing" if missing else "none missing"
    against(
        f".bed, {how}, {N}×{p:,}, ProjSe / bed_reader's read as int8, one thread",
        lambda: _learn(clean(iter_bed(path), missing="mean"), y),
        lambda: open_bed(path, num_threads=1).read(dtype="int8", order="F"),
        threshold=None if missing else 1.2,
    )


@pytest.mark.parametrize("form", ["GT", "GT:AD:DP:GQ:PL"])
def test_vcf(against, size, tmp_path, y, form):
    """Scan the names, then make one pass: the gzipped file is decompressed twice."""
    path, p = tmp_path / "x.vcf.gz", size(10_000 if form == "GT" else 2_000)
    rng = np.random.default_rng(0)
    rest = b":12,9:21:99:255,0,255" if ":" in form else b""
    genotypes = np.array([one + rest for one in (b"0|0", b"0|1", b"1|0", b"1|1")])
    head = [
        *b"#CHROM POS ID REF ALT QUAL FILTER INFO FORMAT".split(),
        *map(b"s%d".__mod__, range(N)),
    ]
    with gzip.open(path, "wb", 6) as file:
        file.write(b"##fileformat=VCFv4.2\n" + b"\t".join(head) + b"\n")
        for j in range(p):
            f = rng.uniform(0.01, 0.5)
            drawn = rng.choice(4, size=N, p=[(1 - f) ** 2, f - f * f, f - f * f, f * f])
            site = b"1\t%d\trs%d\tA\tG\t.\tPASS\t.\t%s\t" % (j, j, form.encode())
            file.write(site + b"\t".join(genotypes[drawn].tolist()) + b"\n")

    def unzip():
        with gzip.open(path) as file:
            while file.read(2**20):
                pass

    against(
        f".vcf.gz, {form}, {N}×{p:,}, ProjSe / decompression by gzip",
        lambda: _learn(iter_vcf(path), y),
        unzip,
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
    shape = (N, 100) if chunks == "some columns" else (10, p)
    data = np.random.default_rng(0).normal(size=(N, p)).astype(np.float32)
    array = zarr.create_array(path, data=data, chunks=shape)
    against(
        f"Zarr, chunks of {chunks}, {N}×{p:,}, ProjSe / y @ array[:]",
        lambda: _learn(iter_zarr(path), y),
        lambda: y @ array[:],
    )
