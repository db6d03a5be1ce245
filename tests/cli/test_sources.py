"""Genotypes, cells and chunked arrays as a FILE, with the target that stands beside them."""

import numpy as np
import pandas as pd
import pytest
import zarr
from anndata import AnnData
from bed_reader import to_bed

from streamsel import ForwardSelection

N, P = 60, 30
rng = np.random.default_rng(0)
GENOTYPES = rng.integers(0, 3, size=(N, P)).astype(np.int8)
RISK = GENOTYPES[:, 4] + 0.5 * GENOTYPES[:, 9] + 0.1 * rng.normal(size=N)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sources")
    phenotype, sex = [f"{risk:.4f}" for risk in RISK], (GENOTYPES[:, 1] > 0) + 1
    for chromosome, part in enumerate(np.array_split(GENOTYPES, 2, axis=1), start=1):
        told = {
            "iid": [f"i{i}" for i in range(N)],
            "sid": [f"rs{chromosome}_{j}" for j in range(part.shape[1])],
            "pheno": phenotype,
            "sex": sex,
        }
        to_bed(folder / f"chr{chromosome}.bed", np.asfortranarray(part), properties=told)
    obs = pd.DataFrame({"kind": np.where(RISK > 1.5, "B", "T"), "age": np.arange(N)})
    obs.index = [f"cell{i}" for i in range(N)]
    var = pd.DataFrame(index=[f"gene{j}" for j in range(P)])
    AnnData(GENOTYPES.astype(np.float32), obs=obs, var=var).write_h5ad(folder / "x.h5ad")
    zarr.create_array(folder / "x.zarr", data=GENOTYPES, chunks=(N, 10))
    np.save(folder / "y.npy", RISK)
    return folder


def _selected(y, names, covariates=None):
    model = ForwardSelection(3)
    model.learn_target(y, covariates=covariates)
    model.learn_columns(GENOTYPES.astype(np.float32), names=names)
    return model.selected


RS = [f"rs{c}_{j}" for c in (1, 2) for j in range(P // 2)]


@pytest.mark.parametrize("more", [[], ["--workers", 2]])
def test_genotypes_of_two_chromosomes(call, folder, more):
    arguments = ["--target", "phenotype", "--covariate", "sex", "-k3", *more]
    rows = call("select", folder / "chr*.bed", *arguments).rows()
    sex = (GENOTYPES[:, 1] > 0) + 1
    assert [row["name"] for row in rows] == _selected(RISK.round(4), RS, sex)


def test_cells_of_some_kind(call, folder):
    rows = call("select", folder / "x.h5ad", "--target", "kind", "-k3").rows()
    names = [f"gene{j}" for j in range(P)]
    assert [row["name"] for row in rows] == _selected(np.where(RISK > 1.5, "B", "T"), names)


def test_arrays_go_by_number(call, folder):
    more = ["--target-file", folder / "y.npy", "--drop", "7", "-k3"]
    rows = call("select", folder / "x.zarr", *more).rows()
    assert [int(row["name"]) for row in rows] == _selected(RISK, range(P))


def test_what_is_beside_is_offered_too(call, folder):
    said = call("select", folder / "chr*.bed", "--target", "phenotpye", code=1).stderr
    assert said.count("\n") == 1
    assert "did you mean 'phenotype'?" in said


@pytest.mark.parametrize("name", ["chr1.bed", "x.h5ad", "x.zarr"])
def test_a_run_is_resumed_on_the_same_file_only(call, folder, tmp_path, name):
    arguments = ["select", folder / name, "--target-file", folder / "y.npy", "-k3"]
    first = call(*arguments, "--model", tmp_path / "m").rows()
    assert call(*arguments, "--model", tmp_path / "m", "--resume").rows() == first


def test_files_and_targets_at_urls(call, folder):
    told = folder.as_uri()
    more = ["--target-file", f"{told}/y.npy", "-k3"]
    rows = call("select", f"{told}/chr*.bed", *more).rows()
    assert [row["name"] for row in rows] == _selected(RISK, RS)


def test_a_url_that_leads_nowhere(call, folder):
    for url, told in {
        f"{folder.as_uri()}/none.bed": "none.bed: No such file or directory\n",
        "nothing://x.bed": "whose scheme fsspec knows",
    }.items():
        said = call("select", url, "--target", "y", code=1).stderr
        assert said.count("\n") == 1
        assert told in said
