"""Genotypes, single cells and chunked arrays as FILE, with a target from their row metadata."""

import csv
import gzip
import os
import shutil

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import zarr
from anndata import AnnData
from bed_reader import to_bed
from click.testing import CliRunner

from streamsel import ForwardSelection, load
from streamsel.cli.app import app

N, P = 60, 30
rng = np.random.default_rng(0)
GENOTYPES = rng.integers(0, 3, size=(N, P)).astype(np.int8)
RISK = GENOTYPES[:, 4] + 0.5 * GENOTYPES[:, 9] + 0.1 * rng.normal(size=N)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sources")
    phenotype, sex = [f"{risk:.4f}" for risk in RISK], (GENOTYPES[:, 1] > 0) + 1
    for chromosome, part in enumerate(np.array_split(GENOTYPES, 2, axis=1), start=1):
        properties = {
            "iid": [f"i{i}" for i in range(N)],
            "sid": [f"rs{chromosome}_{j}" for j in range(part.shape[1])],
            "pheno": phenotype,
            "sex": sex,
        }
        to_bed(folder / f"chr{chromosome}.bed", np.asfortranarray(part), properties=properties)
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


@pytest.fixture(scope="module")
def vcf(folder, tmp_path_factory):
    """Return the same genotypes as plain and gzipped VCF, and phenotypes in another order."""
    folder = tmp_path_factory.mktemp("vcf")
    head = ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT"]
    for chromosome, part in enumerate(np.array_split(GENOTYPES, 2, axis=1), start=1):
        lines = [[*head, *(f"i{i}" for i in range(N))]]
        for j, values in enumerate(part.T):
            cells = np.array(["0|0", "1|0", "1|1"])[values]
            site = [str(chromosome), str(j), f"rs{chromosome}_{j}", "A", "G", ".", ".", ".", "GT"]
            lines.append([*site, *cells])
        text = "".join("\t".join(line) + "\n" for line in lines).encode()
        text = b"##fileformat=VCFv4.2\n" + text
        (folder / f"chr{chromosome}.vcf.gz").write_bytes(gzip.compress(text))
        (folder / f"chr{chromosome}.vcf").write_bytes(text)
    rows = [f"i{i},{RISK[i]:.4f}" for i in range(N)][::-1]
    (folder / "y.csv").write_text("\n".join(["person,risk", *rows, "i99,-9"]))
    return folder


@pytest.mark.parametrize("more", [[], ["--workers", 1]])
@pytest.mark.parametrize("files", ["chr*.vcf.gz", "chr*.vcf"])
def test_genotypes_of_two_vcf_files(call, vcf, files, more):
    arguments = ["--target-file", vcf / "y.csv", "-t", "risk", "--id", "IID=person", "-k3", *more]
    rows = call("select", vcf / files, *arguments).rows()
    assert [row["name"] for row in rows] == _selected(RISK.round(4), RS)


def test_vcf_on_standard_input_with_missing_values(call, vcf, tmp_path):
    text = (vcf / "chr1.vcf").read_text().replace("1|0", "./.", 3)
    (tmp_path / "x.vcf").write_text(text)
    # -9 is missing, as in PLINK files.
    (tmp_path / "y.csv").write_text((vcf / "y.csv").read_text().replace(f",{RISK[9]:.4f}", ",-9"))
    given = ["--target-file", tmp_path / "y.csv", "-t", "risk", "--id", "IID=person", "-k3"]
    found = call("select", tmp_path / "x.vcf", *given, "--json", "-m", tmp_path / "m").json()
    assert (found["metadata"]["missing"], found["metadata"]["filled_values"]) == ("mean", 3)
    assert load(tmp_path / "m").n_rows == N - 1
    expected = call("select", tmp_path / "x.vcf", *given).stdout
    for data in (text.encode(), gzip.compress(text.encode())):
        arguments = ["select", "-", *map(str, given)]
        result = CliRunner().invoke(app, arguments, input=data, prog_name="streamsel")
        assert result.stdout == expected


def test_a_run_over_a_vcf_file_is_resumed(call, vcf, tmp_path, monkeypatch):
    given = ["select", vcf / "chr*.vcf.gz", "--target-file", vcf / "y.csv", "-t", "risk"]
    given += ["--id", "IID=person", "-k3"]
    call(*given, "-m", tmp_path / "whole")
    whole = call("info", tmp_path / "whole", "--json").json()
    part = load(tmp_path / "whole")
    assert whole["metadata"]["columns_read"] == P
    assert part.selected == _selected(RISK.round(4), RS)
    # The same columns are recognised, and others are refused.
    again = call(*given, "-m", tmp_path / "m", "--resume", tmp_path / "whole")
    assert [row["name"] for row in again.rows()] == part.selected
    other = tmp_path / "other"
    other.mkdir()
    for file in vcf.iterdir():
        shutil.copy(file, other)
    text = (vcf / "chr2.vcf").read_text().replace("0|0", "1|1")
    (other / "chr2.vcf.gz").write_bytes(gzip.compress(text.encode()))
    given[1] = other / "chr*.vcf.gz"
    error = call(*given, "-m", tmp_path / "n", "--resume", tmp_path / "whole", code=1).stderr
    assert "other values" in error


@pytest.fixture(scope="module")
def gaps(tmp_path_factory):
    """Return genotypes with 5 % missing: few variants are complete."""
    folder = tmp_path_factory.mktemp("gaps")
    values = GENOTYPES.copy()
    values[np.random.default_rng(1).random(values.shape) < 0.05] = -127
    properties = {"iid": [f"i{i}" for i in range(N)], "sid": [f"rs{j}" for j in range(P)]}
    to_bed(folder / "x.bed", np.asfortranarray(values), properties=properties)
    np.save(folder / "y.npy", RISK)
    return folder, values


@pytest.mark.parametrize("more", [[], ["--workers", 1], ["--missing", "mean"]])
def test_missing_genotypes_are_imputed_and_counted(call, gaps, tmp_path, more):
    folder, values = gaps
    given = ["select", folder / "x.bed", "--target-file", folder / "y.npy", "-k3", *more]
    run = call(*given, "--json", "-m", tmp_path / "m")
    found = run.json()
    metadata, n_gaps = found["metadata"], int((values < 0).sum())
    assert metadata["missing"] == "mean"
    n_columns = int((values < 0).any(axis=0).sum())
    assert (metadata["filled"], metadata["filled_values"]) == (n_columns, n_gaps)
    assert metadata["skipped"] == {}
    text = f"{n_gaps} missing values of {n_columns} columns were replaced by the mean of "
    text += "the column"
    assert run.stderr == f"streamsel: {text}\n"
    model = ForwardSelection(3)
    model.learn_target(RISK)
    filled = np.where(values < 0, np.nan, values.astype(np.float32))
    filled = np.where(np.isnan(filled), np.nanmean(filled, axis=0), filled)
    model.learn_columns(filled, names=[f"rs{j}" for j in range(P)])
    assert [row["name"] for row in found["selected"]] == model.selected
    assert text in call("report", tmp_path / "m", "--format", "md").stdout
    assert "nan" not in call("transform", tmp_path / "m", folder / "x.bed").stdout


def test_missing_option_applies_to_genotypes(call, gaps):
    folder, _ = gaps
    given = [folder / "x.bed", "--target-file", folder / "y.npy"]
    stderr = call("select", *given, "-k1", "--missing", "skip").stderr
    assert "were skipped" in stderr
    assert "replaced" not in stderr
    assert "missing or infinite" in call("select", *given, "--missing", "error", code=1).stderr
    # A method that supports missing values receives them.
    method = ["--method", "ProbabilisticPCA", "-q1", "--json"]
    assert call("reduce", folder / "x.bed", *method).json()["metadata"]["missing"] == "keep"
    # Together with a table, the default of tables applies.
    np.save(folder / "x.npy", RISK[:, None] ** 2)
    both = [folder / "x.npy", *given]
    assert call("select", *both, "-k1", "--json").json()["metadata"]["missing"] == "skip"


def test_models_of_arrays_without_names_are_not_merged(call, folder, tmp_path):
    given = ["--target-file", folder / "y.npy", "--max-candidates", 4, "-k", 2]
    models = [tmp_path / "first", tmp_path / "second"]
    for model in models:
        call("select", folder / "x.zarr", *given, "-m", model)
    error = call("merge", *models, "-o", tmp_path / "m", code=1).stderr
    assert f"{models[1]}: learnt from .zarr files, like {models[0]}" in error


def test_single_cells_with_labels(call, folder):
    rows = call("select", folder / "x.h5ad", "--target", "kind", "-k3").rows()
    names = [f"gene{j}" for j in range(P)]
    assert [row["name"] for row in rows] == _selected(np.where(RISK > 1.5, "B", "T"), names)


@pytest.fixture(scope="module")
def layered(tmp_path_factory):
    """Return an .h5ad file of ten genes, with a layer of reversed columns, and all genes in raw."""
    data = AnnData(
        GENOTYPES.astype(np.float32),
        obs=pd.DataFrame({"risk": RISK}, index=[f"cell{i}" for i in range(N)]),
        var=pd.DataFrame(index=[f"gene{j}" for j in range(P)]),
    )
    kept = data[:, :10].copy()
    kept.raw = data
    kept.layers["turned"] = kept.X[:, ::-1].copy()
    path = tmp_path_factory.mktemp("layered") / "x.h5ad"
    kept.write_h5ad(path)
    return path


def _of(matrix, names):
    model = ForwardSelection(3)
    model.learn_target(RISK)
    model.learn_columns(matrix.astype(np.float32), names=names)
    return model.selected


@pytest.mark.parametrize("more", [[], ["--workers", 1]], ids=["alone", "workers"])
def test_layer_and_raw_select_the_matrix(call, layered, tmp_path, more):
    genes = [f"gene{j}" for j in range(P)]
    expected = {
        "": (GENOTYPES[:, :10], genes[:10]),
        "--layer turned": (GENOTYPES[:, 9::-1], genes[:10]),
        "--raw": (GENOTYPES, genes),
    }
    assert len({tuple(_of(*one)) for one in expected.values()}) == 3
    if more:
        expected = {"--raw": expected["--raw"]}
    for option, (matrix, names) in expected.items():
        model = tmp_path / "m"
        model.unlink(missing_ok=True)
        given = ["select", layered, *option.split(), "--target", "risk", "-k3", "-m", model, *more]
        assert [row["name"] for row in call(*given).rows()] == _of(matrix, names)
        # Rows are transformed by the matrix that was learnt.
        first = call("transform", model, layered).stdout.splitlines()[1]
        indices = [names.index(name) for name in _of(matrix, names)]
        assert first == ",".join(map(str, matrix[0, indices].astype(float)))
        assert (
            call(*given, "--resume").rows()
            == call(*given[:2], "-m", model, *more, "--resume").rows()
        )
        metadata = call("info", model, "--json").json()["metadata"]
        assert (metadata["layer"], metadata["raw"]) == (
            "turned" if "turned" in option else None,
            True if option == "--raw" else None,
        )


def test_resume_with_another_matrix_is_refused(call, layered, tmp_path):
    given = ["select", layered, "-t", "risk", "-k2", "-m", tmp_path / "m"]
    call(*given, "--layer", "turned")
    for option in (["--layer", "others"], ["--raw"]):
        stderr = call("select", layered, "-m", tmp_path / "m", "--resume", *option, code=1).stderr
        assert f"Hint: omit {option[0]} " in stderr
    call("report", tmp_path / "m", "-o", tmp_path / "m.html")
    assert "--layer turned" in (tmp_path / "m.html").read_text()


def test_missing_matrix_is_refused(call, folder, files, layered):
    for source, option, code, message in [
        (layered, "--layer turn", 1, "did you mean 'turned'? There are 'turned'."),
        (folder / "x.h5ad", "--layer turned", 1, "Got: 'turned'. Hint: there are none."),
        (folder / "x.h5ad", "--raw", 1, "Expected an AnnData with raw. Got: "),
        (files / "samples.csv", "--raw", 1, "--raw: "),
        (files / "samples.csv", "--layer a", 1, "expected an AnnData file (.h5ad). Got"),
        (layered, "--raw --layer turned", 2, "--raw and --layer are mutually exclusive"),
    ]:
        given = [source, "--target", "risk", "-k1", *option.split()]
        stderr = call("select", *given, code=code).stderr
        assert message in stderr
        assert code == 2 or stderr.count("\n") == 1


def test_zarr_columns_are_named_by_number(call, folder):
    more = ["--target-file", folder / "y.npy", "--drop", "7", "-k3"]
    rows = call("select", folder / "x.zarr", *more).rows()
    assert [int(row["name"]) for row in rows] == _selected(RISK, range(P))


def test_row_metadata_are_suggested(call, folder):
    stderr = call("select", folder / "chr*.bed", "--target", "phenotpye", code=1).stderr
    assert stderr.count("\n") == 1
    assert "did you mean 'phenotype'?" in stderr


@pytest.mark.parametrize("name", ["chr1.bed", "x.h5ad", "x.zarr"])
def test_run_is_resumed_on_the_same_file(call, folder, tmp_path, name):
    arguments = ["select", folder / name, "--target-file", folder / "y.npy", "-k3"]
    first = call(*arguments, "--model", tmp_path / "m").rows()
    assert call(*arguments, "--model", tmp_path / "m", "--resume").rows() == first


def test_files_and_targets_at_urls(call, folder):
    base_url = folder.as_uri()
    more = ["--target-file", f"{base_url}/y.npy", "-k3"]
    rows = call("select", f"{base_url}/chr*.bed", *more).rows()
    assert [row["name"] for row in rows] == _selected(RISK, RS)


def test_invalid_url(call, folder):
    for url, message in {
        f"{folder.as_uri()}/none.bed": "none.bed: No such file or directory\n",
        "nothing://x.bed": "scheme that fsspec supports",
    }.items():
        stderr = call("select", url, "--target", "y", code=1).stderr
        assert stderr.count("\n") == 1
        assert message in stderr


@pytest.mark.slow
def test_a_path_that_is_not_utf8(call, folder, files, tmp_path):
    """Paths may contain any bytes, for reading and writing, in every format."""
    odd = tmp_path / os.fsdecode(b"caf\xe9")
    try:
        odd.mkdir()
    except OSError:
        pytest.skip("a file system whose names are UTF-8")
    for source in [folder / "x.h5ad", *(files / f"data.{end}" for end in ("parquet", "feather"))]:
        shutil.copy(source, odd)
    for end in ("bed", "bim", "fam"):
        shutil.copy(folder / f"chr1.{end}", odd)
    shutil.copytree(folder / "x.zarr", odd / "x.zarr")
    given = ["--target-file", folder / "y.npy", "-k", 3]
    for name in ("x.h5ad", "x.zarr", "chr1.bed"):
        expected = call("select", folder / name, *given).stdout
        assert call("select", odd / name, *given).stdout == expected
    given = ["-t", "y", "--drop", "labels", "-k", 3]
    expected = call("select", files / "data.parquet", *given).stdout
    for out in ("o.parquet", "o.feather", "o.npy", "o.csv"):
        found = call("select", odd / "data.parquet", *given, "-o", odd / out)
        assert (found.stdout, found.stderr) == (expected, "")
    more = ["-m", odd / "m", "--workers", 1]
    assert call("select", odd / "data.feather", *given, *more).stdout == expected
    assert call("transform", odd / "m", odd / "o.parquet").stdout
    call("report", odd / "m", "-o", odd / "m.html", "--data", odd / "data.parquet")
    assert call("info", odd / "m", "--json").json()["metadata"]["file"] == str(odd / "data.feather")


@pytest.mark.parametrize("line", [["select", "--no-target"], ["reduce", "--method", "PCA"]])
def test_orientation_is_inferred_from_cells(call, table, line):
    """The cells show the orientation if no name does, as in `learn_columns` of a path."""
    rng = np.random.default_rng(0)
    path = table(**dict(zip("abcd", rng.normal(size=(4, 20)).round(3).tolist(), strict=True)))
    assert call(*line, path, "--json").json()["metadata"]["columns_read"] == 4
    with path.open() as file:
        by_variable = "".join(",".join(row) + "\n" for row in zip(*csv.reader(file), strict=True))
    path.write_text(by_variable)
    assert call(*line, path, "--json").json()["metadata"]["columns_read"] == 4


@pytest.fixture(params=["csr", "csc"])
def sparse_cells(request, tmp_path):
    """Return the same cells with a dense and with a sparse matrix."""
    obs = pd.DataFrame({"kind": np.where(RISK > 1.5, "B", "T")}, index=[f"c{i}" for i in range(N)])
    var = pd.DataFrame(index=[f"gene{j}" for j in range(P)])
    X = GENOTYPES.astype(np.float32)
    paths = {}
    for name, matrix in (
        ("dense", X),
        ("sparse", scipy.sparse.csr_array(X).asformat(request.param)),
    ):
        paths[name] = tmp_path / f"{name}.h5ad"
        AnnData(matrix, obs=obs, var=var).write_h5ad(paths[name])
    return paths


@pytest.mark.parametrize("suffix", ["csv", "npy", "parquet"])
def test_sparse_columns_are_written(call, sparse_cells, tmp_path, suffix):
    written = {}
    for name, path in sparse_cells.items():
        out = tmp_path / f"{name}-out.{suffix}"
        call("select", path, "-t", "kind", "-k3", "--keep", "gene7", "-o", out)
        written[name] = out.read_bytes()
    assert written["sparse"] == written["dense"]


@pytest.mark.parametrize("given", [["-t", "gene4"], ["-t", "kind", "--covariate", "gene4"]])
def test_a_sparse_column_is_a_target_or_covariate(call, sparse_cells, given):
    dense, sparse = (call("select", path, *given, "-k3").stdout for path in sparse_cells.values())
    assert sparse == dense
