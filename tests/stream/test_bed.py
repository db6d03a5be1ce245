"""PLINK .bed files: files written by bed-reader give the same values as bed-reader."""

import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from bed_reader import open_bed, to_bed
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsel import ProjSe
from streamsel.stream import clean, iter_bed, iter_files


def _genotypes(n, p, missing=0.0, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 3, size=(n, p)).astype(np.int8)
    values[rng.random((n, p)) < missing] = -127
    return values


def _write(path, values, **properties):
    to_bed(path, np.asfortranarray(values), properties=properties)
    return path


@pytest.fixture(scope="module")
def cohort(tmp_path_factory):
    """Return a file with few missing values: most neighbouring variants have none."""
    values = _genotypes(50, 200)
    values[3, [5, 195]] = -127
    path = tmp_path_factory.mktemp("bed") / "x.bed"
    return _write(path, values, iid=[f"s{i}" for i in range(50)], pheno=["1", "2"] * 25), values


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(
    n=st.integers(1, 9),
    p=st.integers(1, 140),
    missing=st.sampled_from([0.0, 0.002, 0.3]),
    seed=st.integers(0, 99),
    start=st.integers(0, 150),
    parts=st.integers(1, 5),
)
def test_genotypes_equal_those_of_bed_reader(tmp_path_factory, n, p, missing, seed, start, parts):
    path = tmp_path_factory.mktemp("bed") / "x.bed"
    _write(path, _genotypes(n, p, missing, seed))
    # With these counts, old versions do not count lines in files that they then leave open.
    with open_bed(path, iid_count=n, sid_count=p) as theirs:
        expected, names = theirs.read(dtype="float32"), theirs.sid.tolist()
    stream = iter_bed(path, missing="keep")
    whole = dict(stream)
    assert list(whole) == stream.names == names
    np.testing.assert_array_equal(np.column_stack(list(whole.values())), expected)
    filled = dict(iter_bed(path))
    _check_means(filled, whole)
    assert all(
        np.array_equal(filled[name], values, equal_nan=True)
        for one in (iter_bed(path).skip(start), _of_parts(iter_bed(path), parts))
        for name, values in one
    )
    # A column does not depend on where a pass starts, or on whether it is read separately.
    taken = stream.take(names[::-7])
    for found in (dict(stream.skip(start)), taken, dict(_of_parts(stream, parts))):
        for name, values in found.items():
            assert values.dtype == whole[name].dtype
            np.testing.assert_array_equal(values, whole[name])
    assert list(dict(_of_parts(stream, parts))) == names
    assert list(dict(stream.skip(start))) == names[start:]


def _check_means(filled, whole):
    """Compare with missing values replaced by the mean of the observed ones."""
    for name, values in whole.items():
        known = values[~np.isnan(values)]
        mean = known.mean(dtype=np.float64) if known.size else np.nan
        assert filled[name].dtype == values.dtype
        expected = np.where(np.isnan(values), np.float32(mean), values)
        np.testing.assert_array_equal(filled[name], expected)


def _of_parts(stream, parts):
    for part in stream.split(parts):
        yield from pickle.loads(pickle.dumps(part)).open()  # noqa: S301


def test_complete_genotypes_are_int8(cohort):
    path, values = cohort
    blocks = list(iter_bed(path).blocks())
    assert [str(block.values.dtype) for block in blocks] == ["float32", "int8", "float32"]
    assert [len(block.names) for block in blocks] == [64, 128, 8]
    assert all(block.values.flags.f_contiguous for block in blocks)
    np.testing.assert_array_equal(blocks[1].values, values[:, 64:192])


def test_a_pass_equals_learning_the_matrix(cohort):
    path, values = cohort
    y = values[:, 20] - 0.5 * values[:, 70]
    filled = np.where(values < 0, np.nan, values)
    model, same, again, files = (ProjSe(3) for _ in range(4))
    for one, source in (
        (model, iter_bed(path)),
        (same, clean(filled, missing="mean")),
        (again, clean(iter_bed(path, missing="keep"), missing="mean")),
        (files, iter_files(path)),
    ):
        one.learn_target(y)
        one.learn_columns(source)
    assert model.selected == again.selected == files.selected
    assert [int(name[3:]) - 1 for name in model.selected] == list(same.selected)
    assert model.selected[0] == "sid21"


def test_missing_genotype_options_are_checked(cohort):
    for bad in ("skip", None, 3):
        with pytest.raises(ValueError, match="Expected missing to be 'mean' or 'keep'"):
            iter_bed(cohort[0], missing=bad)


def test_variants_without_names(tmp_path):
    path = _write(
        tmp_path / "x.bed",
        _genotypes(5, 7),
        sid=["rs1", ".", "rs1", ".", "1:9:A:G", ".", "rs2"],
        chromosome=["1"] * 7,
        bp_position=[7, 9, 7, 9, 3, 11, 12],
        allele_1=list("AAAAAAA"),
        allele_2=list("GGTGGGG"),
    )
    # The second "." has the locus of the first, and another variant has the resulting name.
    names = ["1:7:A:G", "1:9:A:G:2", "1:7:A:T", "1:9:A:G:3", "1:9:A:G", "1:11:A:G", "rs2"]
    assert iter_bed(path).names == names


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["1", "2", "2"], np.array([1, 2, 2])),
        (["1", "0", "-9"], np.array([1, np.nan, np.nan])),
        (["0", "7.5", "-9"], np.array([0, 7.5, np.nan])),
        (["NA", "3", "4"], np.array([np.nan, 3, 4])),
    ],
)
def test_phenotypes(given, expected, tmp_path):
    path = _write(tmp_path / "x.bed", _genotypes(3, 2), pheno=given, iid=list("abc"), sex=[1, 2, 0])
    alongside = iter_bed(path).without(["sid1"]).row_metadata
    np.testing.assert_array_equal(alongside["phenotype"], expected)
    assert alongside["phenotype"].dtype == expected.dtype
    assert next(iter(alongside)) == "IID"
    assert alongside["IID"].tolist() == list("abc")
    np.testing.assert_array_equal(alongside["sex"], [1, 2, np.nan])
    assert clean(iter_bed(path)).skip(0).row_metadata.keys() == alongside.keys()


def test_files_of_several_chromosomes(tmp_path):
    for i in (1, 2, 10):
        sid = [f"{i}_{j}" for j in range(4)]
        _write(tmp_path / f"chr{i}.bed", _genotypes(6, 4, seed=i), sid=sid, iid=list("abcdef"))
    stream = iter_files(tmp_path / "chr*.bed")
    assert stream.names == [f"{i}_{j}" for i in (1, 2, 10) for j in range(4)]
    assert stream.row_metadata["IID"].tolist() == list("abcdef")
    sid = ["z", "zz"]
    _write(tmp_path / "chr11.bed", _genotypes(6, 2), sid=sid, iid=list("abcdfe"))
    with pytest.raises(ValueError, match=r"same IID in every file.*'e'.*chr1.*'f'.*chr11"):
        iter_files(tmp_path / "chr*.bed")


def test_a_sample_file_that_has_changed_is_refused(cohort, tmp_path):
    path, _ = cohort
    for suffix in (".bed", ".bim", ".fam"):
        (tmp_path / "y").with_suffix(suffix).write_bytes(path.with_suffix(suffix).read_bytes())
    part = iter_bed(tmp_path / "y.bed").split(2)[1]
    (tmp_path / "y.fam").write_text((tmp_path / "y.fam").read_text() + "\n")
    with pytest.raises(ValueError, match=r"y\.fam"):
        part.open()


@pytest.mark.parametrize(
    ("suffix", "change", "message"),
    [
        (".bed", lambda data: data[:-1], r"Expected 2,603 bytes .* Got: 2,602 bytes"),
        (".bed", lambda data: data + b"\0", r"Got: 2,604 bytes"),
        (
            ".bed",
            lambda data: b"\x6c\x1b\x00" + data[3:],
            r"sample-major.*\n.*--make",
        ),
        (".bed", lambda _: b"chr1\t100\t200\tgene\n", r"\.bed file of PLINK 1"),
        (".bed", lambda _: b"", r"\.bed file of PLINK 1"),
        (".bim", lambda data: data.replace(b"\t", b"", 1), r"6 cells for a variant in line 1 "),
        (".bim", lambda data: data[: data.rindex(b"\n", 0, -1)], r"199 variants"),
        (".bim", lambda data: b"\xff" + data, r"UTF-8"),
        (".fam", lambda data: data + data, r"100 samples"),
        (".fam", lambda data: b"a b\n" + data, r"6 cells for a sample in line 1 of .* Got: 2"),
        (".fam", lambda _: b"", r" 0 samples"),
    ],
)
def test_invalid_files_are_refused(suffix, change, message, cohort, tmp_path):
    path, _ = cohort
    for one in (".bed", ".bim", ".fam"):
        data = path.with_suffix(one).read_bytes()
        (tmp_path / "y").with_suffix(one).write_bytes(change(data) if one == suffix else data)
    with pytest.raises(ValueError, match=re.compile(message, re.DOTALL)):
        iter_bed(tmp_path / "y.bed")


def test_a_missing_bim_file_is_an_error(cohort, tmp_path):
    (tmp_path / "y.bed").write_bytes(cohort[0].read_bytes())
    with pytest.raises(FileNotFoundError, match=r"y\.bim"):
        iter_bed(tmp_path / "y.bed")


def test_a_file_truncated_during_a_pass(cohort, tmp_path):
    for suffix in (".bed", ".bim", ".fam"):
        data = cohort[0].with_suffix(suffix).read_bytes()
        Path(tmp_path / "y").with_suffix(suffix).write_bytes(data)
    stream = iter_bed(tmp_path / "y.bed")
    (tmp_path / "y.bed").write_bytes(cohort[0].read_bytes()[:100])
    with pytest.raises(ValueError, match="fewer bytes"):
        list(stream)
    with pytest.raises(ValueError, match="fewer bytes"):
        stream.take(["sid190"])
