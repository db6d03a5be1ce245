"""Genotypes in VCF files: compared with a cell-by-cell reader, and with a .bed file of them."""

import gzip
import pickle
import re

import numpy as np
import pytest
from bed_reader import to_bed
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsel import ProjSe
from streamsel.stream import as_stream, clean, iter_bed, iter_files, iter_vcf
from tests.reference import vcf

HEAD = (
    "##fileformat=VCFv4.2\n##contig=<ID=1>\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT"
)

ALLELE = st.sampled_from(["0", "0", "0", "1", "1", "2", "13", "."])
GENOTYPE = st.lists(ALLELE, min_size=1, max_size=4).flatmap(
    lambda alleles: st.sampled_from(["/", "|"]).map(lambda mark: mark.join(alleles))
)
DIPLOID = st.sampled_from(["0/0", "0|1", "1|0", "1/1"])
FORMAT = st.sampled_from(["GT", "GT", "GT:DP", "DP:GT", "AD:DP:GT:GTX", "DP", "XGT:GT"])


@st.composite
def _files(draw):
    """Return a VCF text with all ploidies, formats and gaps, and repeated or missing names."""
    n = draw(st.integers(1, 6))
    lines = ["\t".join([HEAD, *(f"s{i}" for i in range(n))])]
    for j in range(draw(st.integers(0, 9))):
        form = draw(FORMAT)
        genotype = draw(st.sampled_from([GENOTYPE, DIPLOID]))
        cells = []
        for _ in range(n):
            fields = [draw(genotype) if field == "GT" else f"{j},7" for field in form.split(":")]
            if draw(st.integers(0, 5)) == 0:  # trailing fields may be left out
                fields = fields[: draw(st.integers(1, len(fields)))]
            cells.append(":".join(fields))
        name = draw(st.sampled_from([".", "rs1", f"rs{j + 10}", f"rs{j + 10}", "1:2:A:G"]))
        site = ["1", str(draw(st.integers(1, 3))), name, "A", draw(st.sampled_from(["G", "G,T"]))]
        lines.append("\t".join([*site, ".", "PASS", "AC=1", form, *cells]))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    return end.join(lines) + draw(st.sampled_from(["", end, 2 * end]))


def _write(folder, text, *, zipped=False):
    path = folder / ("x.vcf.gz" if zipped else "x.vcf")
    half = len(text) // 2
    # As in bgzip files, there are several members.
    members = [gzip.compress(part.encode()) for part in (text[:half], text[half:], "")]
    path.write_bytes(b"".join(members) if zipped else text.encode())
    return path


def _of_parts(stream, parts):
    for part in stream.split(parts):
        yield from pickle.loads(pickle.dumps(part)).open()  # noqa: S301


def _assert_equal(found, expected):
    assert list(found) == list(expected)
    for name, values in found.items():
        np.testing.assert_array_equal(values, expected[name])


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(text=_files(), zipped=st.booleans(), start=st.integers(0, 9), parts=st.integers(1, 4))
def test_genotypes_equal_the_reference(tmp_path_factory, text, zipped, start, parts):
    expected, samples = vcf.columns(text)
    stream = iter_vcf(_write(tmp_path_factory.mktemp("vcf"), text, zipped=zipped), missing="keep")
    whole = dict(stream)
    _assert_equal(whole, expected)
    assert stream.names == list(expected)
    assert stream.row_metadata["IID"].tolist() == samples
    assert (stream.n_rows, stream.n_columns) == (len(samples), len(expected))
    _assert_equal(dict(_of_parts(stream, parts)), whole)
    _assert_equal(dict(stream.skip(start)), {name: whole[name] for name in [*whole][start:]})
    _assert_equal(stream.take(stream.names[::-2]), {name: whole[name] for name in [*whole][::-2]})
    assert all(values.dtype == whole[name].dtype for name, values in stream.skip(start))
    filled = dict(iter_vcf(_write(tmp_path_factory.mktemp("vcf"), text)))
    for name, values in whole.items():
        known = values[~np.isnan(values)]
        mean = np.float32(known.mean(dtype=float)) if known.size else np.nan
        np.testing.assert_array_equal(filled[name], np.where(np.isnan(values), mean, values))


def _lines(genotypes, form="GT", chromosome=1):
    n = len(genotypes)
    cells = np.array(["0|0", "0|1", "1|1", "./."])[genotypes]
    rows = [
        "\t".join(
            [str(chromosome), str(j), f"rs{chromosome}_{j}", "A", "G", ".", ".", ".", form, *x]
        )
        for j, x in enumerate(cells.T)
    ]
    return "\n".join(["\t".join([HEAD, *(f"s{i}" for i in range(n))]), *rows, ""])


@pytest.fixture(scope="module")
def cohort(tmp_path_factory):
    """Return a file with few missing values: most neighbouring variants have none."""
    values = np.random.default_rng(0).integers(0, 3, (50, 200)).astype(np.int8)
    values[3, [5, 195]] = 3
    return _write(tmp_path_factory.mktemp("vcf"), _lines(values)), values


@pytest.mark.parametrize("missing", ["mean", "keep"])
def test_genotypes_equal_those_of_the_bed_file(cohort, tmp_path, missing):
    path, values = cohort
    known = np.where(values == 3, -127, values).astype(np.int8)
    metadata = {"sid": [f"rs1_{j}" for j in range(200)], "iid": [f"s{i}" for i in range(50)]}
    to_bed(tmp_path / "x.bed", np.asfortranarray(known), properties=metadata)
    ours, theirs = iter_vcf(path, missing=missing), iter_bed(tmp_path / "x.bed", missing=missing)
    for one, other in zip(ours.blocks(), theirs.blocks(), strict=True):
        assert one.names == other.names
        assert one.values.dtype == other.values.dtype
        assert one.values.flags.f_contiguous
        np.testing.assert_array_equal(one.values, other.values)
    assert ours.row_metadata["IID"].tolist() == theirs.row_metadata["IID"].tolist()
    assert [str(block.values.dtype) for block in ours.blocks()] == ["float32", "int8", "float32"]


def test_a_pass_equals_learning_the_matrix(cohort):
    path, values = cohort
    y = values[:, 20] - 0.5 * values[:, 70]
    models = [ProjSe(3) for _ in range(3)]
    sources = [iter_vcf(path), path, clean(iter_vcf(path, missing="keep"), missing="mean")]
    for model, source in zip(models, sources, strict=True):
        model.learn_target(y)
        model.learn_columns(source)
    assert models[0].selected == models[1].selected == models[2].selected
    assert models[0].selected[0] == "rs1_20"


def test_files_of_several_chromosomes(tmp_path, monkeypatch):
    rng = np.random.default_rng(1)
    parts = {c: rng.integers(0, 4, (6, 5)) for c in (1, 2, 10)}
    for c, values in parts.items():
        _write(tmp_path, _lines(values, chromosome=c), zipped=True).rename(
            tmp_path / f"c{c}.vcf.gz"
        )
    stream = iter_files(tmp_path / "c*.vcf.gz")
    assert stream.names == [f"rs{c}_{j}" for c in parts for j in range(5)]
    # Each file is scanned once, whatever the number of passes.
    monkeypatch.setattr("streamsel.stream._vcf._VcfFile._scan", None)
    found = dict(stream)
    assert found.keys() == dict(stream).keys()
    np.testing.assert_array_equal(stream.take(["rs10_2"])["rs10_2"], found["rs10_2"])
    assert stream.row_metadata["IID"].tolist() == [f"s{i}" for i in range(6)]
    pieces = [part.n_columns for part in stream.split(3)]
    assert pieces == [5, 5, 5]


def test_parts_of_a_plain_file_and_of_a_gzipped_one(cohort, tmp_path):
    path, _ = cohort
    zipped = _write(tmp_path, path.read_text(), zipped=True)
    columns = [part.n_columns for part in iter_vcf(path).split(4)]
    assert sum(columns) == 200
    assert min(columns) >= 49
    (part,) = iter_vcf(zipped).skip(150).split(4)
    assert part.n_columns == 50
    assert part.n_bytes < zipped.stat().st_size
    part = iter_vcf(path).split(2)[1]
    path.touch()
    with pytest.raises(ValueError, match="unchanged since it was split"):
        part.open()


def test_few_long_lines_are_read_at_a_time(tmp_path, monkeypatch):
    values = np.random.default_rng(2).integers(0, 4, (500, 70))
    path = _write(tmp_path, _lines(values))
    whole = dict(iter_vcf(path))
    monkeypatch.setattr("streamsel.stream._vcf.BLOCK_BYTES", 5_000)
    _assert_equal(dict(iter_vcf(path)), whole)


@pytest.mark.parametrize(
    ("name", "zipped"), [("x.vcf", False), ("x.vcf.gz", True), ("x.vcf.bgz", True), ("x", False)]
)
def test_opened_by_name_or_first_bytes(cohort, tmp_path, name, zipped):
    path = tmp_path / name
    _write(tmp_path, cohort[0].read_text(), zipped=zipped).rename(path)
    assert as_stream(path).n_columns == 200


def test_missing_genotype_options_are_checked(cohort):
    with pytest.raises(ValueError, match=r"Expected missing to be 'mean' or 'keep'\. Got: 'skip'"):
        iter_vcf(cohort[0], missing="skip")


def _damaged(old, new, count=1):
    return lambda text: text.replace(old, new, count)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda _: "", r"which begins with #CHROM. Got: '' in line 1"),
        (lambda _: "a,b\n1,2\n", r"which begins with #CHROM. Got: 'a,b\\n' in line 1"),
        (lambda text: text[: text.index("#CHROM")], r"#CHROM. Got: '' in line 3"),
        (
            lambda text: re.sub("\ts0.*\n", "\n", text, count=1),
            r"samples after FORMAT in line 3 .* 9",
        ),
        (
            lambda text: text[: text.rindex("\t")],
            r"Expected 59 cells in line 203 .* Got: 58\.\nHint",
        ),
        (lambda text: text[:-42], r"Expected 59 cells in line 203 .* Got: 49\."),
        (_damaged("\trs1_7\t", "\trs1_7\t\t"), r"Expected 59 cells in line 11 .* Got: 60"),
        (_damaged("\n1\t9\t", "\n\n1\t9\t"), r"Expected 59 cells in line 13 .* Got: 1"),
        (_damaged("\n1\t9\t", "\n##\n1\t9\t"), r"Expected 59 cells in line 13 .* Got: 1"),
        (_damaged("0|1\t", "0+1\t"), r"genotype such as 0/1 in column \d+ of line 4 .*'0\+1'"),
        (_damaged("0|1\t", "0|\t"), r"Got: '0\|'"),
        (_damaged("\n", "\r\r\n", -1), r"in column 59 of line 4 .* Got: '...\\r'"),
        (_damaged("0|1\t", "\t"), r"Got: ''"),
        (_damaged("0|1\t", f"{'1/' * 127}1\t"), r"Got: '1/1/"),
        (_damaged("0|1\t", "0|1|\t"), r"Got: '0\|1\|'"),
        (_damaged("0|1\t", "0|-1\t"), r"Got: '0\|-1'"),
    ],
)
def test_damaged_lines_are_refused_by_number(cohort, tmp_path, change, message):
    text = change(cohort[0].read_text())
    for zipped in (False, True):
        path = _write(tmp_path, text, zipped=zipped)
        with pytest.raises(ValueError, match=re.compile(message, re.DOTALL)) as error:
            list(iter_vcf(path))
        assert str(path)[:-3] in str(error.value)


def test_columns_before_the_damage_are_yielded(cohort, tmp_path):
    lines = cohort[0].read_text().splitlines()
    lines[3 + 70] = lines[3 + 70].replace("0|1", "0?1", 1)
    stream = iter_vcf(_write(tmp_path, "\n".join(lines)))
    found = []
    with pytest.raises(ValueError, match="line 74 "):
        found.extend(name for name, _ in stream)
    assert found == [f"rs1_{j}" for j in range(70)]
    assert len(stream.take(["rs1_3", "rs1_199"])) == 2
    with pytest.raises(ValueError, match="line 74 "):
        stream.take(["rs1_70"])


def test_truncated_and_invalid_bytes(cohort, tmp_path):
    whole = _write(tmp_path, cohort[0].read_text(), zipped=True)
    data = whole.read_bytes()
    whole.write_bytes(data[: len(data) // 3])
    with pytest.raises(ValueError, match="complete gzip file"):
        iter_vcf(whole)
    path = tmp_path / "y.vcf"
    path.write_bytes(cohort[0].read_bytes().replace(b"rs1_9\t", b"rs\xff\t"))
    with pytest.raises(ValueError, match=r"UTF-8.*y\.vcf"):
        iter_vcf(path)
    stream = iter_vcf(cohort[0])
    path.write_bytes(cohort[0].read_bytes())
    stream = iter_vcf(path)
    path.write_bytes(cohort[0].read_bytes()[:9000])
    with pytest.raises(ValueError, match="fewer bytes"):
        list(stream)


def test_an_endless_line_is_refused(cohort, tmp_path, monkeypatch):
    monkeypatch.setattr("streamsel.stream._vcf.FIRST_BYTES", 2000)
    monkeypatch.setattr("streamsel.stream._vcf._SAMPLE_BYTES", 10)
    path = _write(tmp_path, cohort[0].read_text() + "1\t2" + "x" * 3000)
    with pytest.raises(ValueError, match="the line after byte"):
        iter_vcf(path)
