"""Column metadata: the variants or variables of a source, read on request."""

import gzip
import re

import anndata
import numpy as np
import pandas as pd
import pytest
from bed_reader import to_bed

from streamsel import SelectKBest
from streamsel.stream import (
    _genotypes,
    clean,
    iter_anndata,
    iter_array,
    iter_bed,
    iter_files,
    iter_vcf,
    prune,
    with_probes,
)

FIELDS = ["name", "chromosome", "position", "effect_allele", "other_allele"]


def _values(p, seed=0):
    return np.random.default_rng(seed).integers(0, 3, size=(8, p)).astype(np.int8)


def _bed(path, first=0, p=5):
    properties = {
        "iid": [f"s{i}" for i in range(8)],
        "sid": [f"rs{first + j}" for j in range(p)],
        "chromosome": ["X" if j == p - 1 else str(1 + j // 2) for j in range(p)],
        "bp_position": [100 * (first + j) for j in range(p)],
        "allele_1": ["A", "C", "G", "T", "AT"][:p],
        "allele_2": ["G", "T", "A", "C", "A"][:p],
    }
    to_bed(path, _values(p, first), properties=properties)
    return path


def _vcf(path):
    header = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT"
    lines = ["##fileformat=VCFv4.2", "\t".join([header, *(f"s{i}" for i in range(8))])]
    for j, site in enumerate(["1\t7\tv1\tA\tG", "1\t9\t.\tT\tC,G", "MT\t1\tv3\tGA\tG"]):
        calls = [("0/0", "0/1", "1/1")[(i + j) % 3] for i in range(8)]
        lines.append("\t".join([site, ".", "PASS", ".", "GT", *calls]))
    text = "\n".join(lines).encode() + b"\n\n"
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def test_variants_of_plink_files(tmp_path):
    stream = iter_bed(_bed(tmp_path / "x.bed"))
    found = stream.column_metadata
    assert list(found) == FIELDS
    assert found["name"].tolist() == stream.names
    assert found["chromosome"].tolist() == ["1", "1", "2", "2", "X"]
    assert found["position"].tolist() == [0, 100, 200, 300, 400]
    assert found["position"].dtype == np.int64
    assert found["effect_allele"].tolist() == ["A", "C", "G", "T", "AT"]
    assert found["other_allele"].tolist() == ["G", "T", "A", "C", "A"]


@pytest.mark.parametrize("name", ["x.vcf", "x.vcf.gz"])
def test_variants_of_vcf_files(name, tmp_path):
    stream = iter_vcf(_vcf(tmp_path / name))
    found = {title: values.tolist() for title, values in stream.column_metadata.items()}
    assert found == {
        "name": ["v1", "1:9:T:C,G", "v3"],
        "chromosome": ["1", "1", "MT"],
        "position": [7, 9, 1],
        "effect_allele": ["G", "C,G", "G"],
        "other_allele": ["A", "T", "GA"],
    }


def test_the_counted_allele_is_the_effect_allele(tmp_path):
    """Columns count the effect allele: A1 in .bed files, ALT in VCF files."""
    stream = iter_bed(_bed(tmp_path / "x.bed"))
    lines = [line.split() for line in (tmp_path / "x.bim").read_text().splitlines()]
    assert stream.column_metadata["effect_allele"].tolist() == [cells[4] for cells in lines]
    assert dict(iter_vcf(_vcf(tmp_path / "x.vcf")))["v1"][:3].tolist() == [0, 1, 2]


def test_wrappers_keep_column_metadata(tmp_path):
    stream = iter_bed(_bed(tmp_path / "x.bed"))
    wrapped = [stream.without(["rs1"]), stream.skip(2), clean(stream), prune(stream)]
    wrapped += [with_probes(stream), clean(stream.skip(1)).without(["rs4"])]
    for one in wrapped:
        assert one.column_metadata is stream.column_metadata
    assert iter_array(np.eye(3)).column_metadata == {}


def test_metadata_of_several_files(tmp_path):
    _bed(tmp_path / "c1.bed")
    _bed(tmp_path / "c2.bed", first=5, p=4)
    _vcf(tmp_path / "c3.vcf")
    pd.DataFrame({"age": np.arange(8.0)}).to_parquet(tmp_path / "d.parquet")
    stream = iter_files([tmp_path / name for name in ("c1.bed", "d.parquet", "c2.bed", "c3.vcf")])
    found = stream.column_metadata
    assert list(found) == FIELDS
    assert found["name"].tolist() == [name for name in stream.names if name != "age"]
    assert found["position"].tolist() == [*range(0, 900, 100), 7, 9, 1]
    assert iter_files([tmp_path / "d.parquet"]).column_metadata == {}


def test_metadata_are_read_on_request_only(tmp_path, monkeypatch):
    read = []
    variants = _genotypes.GenotypeFile.variants
    monkeypatch.setattr(
        _genotypes.GenotypeFile, "variants", lambda self: read.append(1) or variants(self)
    )
    stream = iter_bed(_bed(tmp_path / "x.bed"))
    model = SelectKBest(2)
    model.learn_target(np.arange(8.0))
    model.learn_columns(with_probes(clean(stream.skip(1))))
    assert not read
    for _ in range(3):
        assert len(stream.column_metadata) == 5
        assert stream.column_metadata["position"][1] == 100
    assert read == [1]


def test_a_file_that_has_changed(tmp_path):
    stream = iter_bed(_bed(tmp_path / "x.bed"))
    bim = tmp_path / "x.bim"
    bim.write_text(bim.read_text() + "1 new 0 9 A C\n")
    with pytest.raises(ValueError, match="to be unchanged"):
        stream.column_metadata["name"]


@pytest.mark.parametrize("position", ["?", "1.5", "9" * 30])
def test_invalid_positions_are_refused(position, tmp_path):
    path = _bed(tmp_path / "x.bed")
    bim = path.with_suffix(".bim")
    lines = bim.read_text().split("\n")
    lines[1] = lines[1].replace("100", position)
    bim.write_text("\n".join(lines))
    with pytest.raises(
        ValueError, match=re.escape(f"variant 'rs1' to be a whole number. Got: '{position}")
    ):
        iter_bed(path).column_metadata["name"]


@pytest.mark.filterwarnings("ignore:Variable names are not unique")
@pytest.mark.parametrize("where", ["memory", "file", "backed"])
@pytest.mark.parametrize("raw", [False, True])
def test_variables_of_anndata(where, raw, tmp_path):
    var = pd.DataFrame(
        {"chromosome": ["1", None, "2"], "gc": [0.5, 0.25, 0.75], "name": ["a", "b", "c"]},
        index=["CD3", "CD3", "CD19"],
    )
    data = anndata.AnnData(np.arange(12.0).reshape(4, 3), var=var)
    data.raw = data.copy()
    data = data[:, [0, 2]].copy()
    data.write_h5ad(tmp_path / "x.h5ad")
    source = {
        "memory": lambda: data,
        "file": lambda: tmp_path / "x.h5ad",
        "backed": lambda: anndata.read_h5ad(tmp_path / "x.h5ad", backed="r"),
    }[where]()
    stream = iter_anndata(source, raw=raw)
    found = {title: values.tolist() for title, values in stream.column_metadata.items()}
    assert found == (
        {"name": ["CD3", "CD3-1", "CD19"], "chromosome": ["1", None, "2"], "gc": [0.5, 0.25, 0.75]}
        if raw
        else {"name": ["CD3", "CD19"], "chromosome": ["1", "2"], "gc": [0.5, 0.75]}
    )
