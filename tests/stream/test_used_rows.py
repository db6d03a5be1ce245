"""Sources whose values depend on other rows: rows without a target do not change them."""

import numpy as np
import pytest
from bed_reader import to_bed

import streamsel
from streamsel import SelectKBest
from streamsel.stream import (
    clean,
    encode,
    grouped,
    iter_bed,
    iter_columns,
    iter_files,
    iter_vcf,
    normal_scores,
    ranks,
    with_probes,
)

RNG = np.random.default_rng(0)
G = RNG.integers(0, 3, size=(60, 30)).astype(float)
G[RNG.random(G.shape) < 0.15] = np.nan
Y = RNG.normal(size=60).round(3)
Y[::3] = -9.0
KNOWN = Y != -9.0
CELLS = {0.0: "0/0", 1.0: "0/1", 2.0: "1/1"}
PAIRS = {"sid0": "gene", "sid7": "gene"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the genotypes of all people, and of those with a phenotype."""
    found = tmp_path_factory.mktemp("used_rows")
    for stem, rows in ("all", np.full(60, True)), ("known", KNOWN):
        to_bed(found / f"{stem}.bed", G[rows], properties={"pheno": Y[rows]})
        others = [f"other{j}" for j in range(30)]
        properties = {"sid": others, "pheno": Y[rows]}
        to_bed(found / f"{stem}-2.bed", G[rows][:, ::-1].copy(), properties=properties)
        _write_vcf(found / f"{stem}.vcf", G[rows])
    return found


def _write_vcf(path, genotypes):
    header = ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT"]
    lines = ["##fileformat=VCFv4.2", "\t".join([*header, *map(str, range(len(genotypes)))])]
    for j, column in enumerate(genotypes.T):
        cells = ["1", str(j + 1), f"rs{j}", "A", "G", ".", ".", ".", "GT"]
        lines.append("\t".join(cells + [CELLS.get(value, "./.") for value in column.tolist()]))
    path.write_text("\n".join(lines) + "\n")


def _bed(folder, stem):
    return iter_bed(folder / f"{stem}.bed")


SOURCES = {
    "bed": _bed,
    "vcf": lambda folder, stem: iter_vcf(folder / f"{stem}.vcf"),
    "path": lambda folder, stem: str(folder / f"{stem}.bed"),
    "files": lambda folder, stem: iter_files([folder / f"{stem}.bed", folder / f"{stem}-2.bed"]),
    "means": lambda folder, stem: clean(
        iter_bed(folder / f"{stem}.bed", missing="keep"), missing="mean"
    ),
    "clean": lambda folder, stem: clean(_bed(folder, stem)),
    "once": lambda folder, stem: clean(
        iter_columns(iter(iter_bed(folder / f"{stem}.bed", missing="keep"))), missing="mean"
    ),
    "encoded": lambda folder, stem: clean(encode(_bed(folder, stem))),
    "part": lambda folder, stem: _bed(folder, stem).skip(3).without(["sid9"]),
    "ranks": lambda folder, stem: ranks(_bed(folder, stem)),
    "scores": lambda folder, stem: normal_scores(_bed(folder, stem)),
    "probes": lambda folder, stem: with_probes(_bed(folder, stem)),
    "groups": lambda folder, stem: grouped(_bed(folder, stem), PAIRS),
    "collected": lambda folder, stem: grouped(clean(_bed(folder, stem)), PAIRS),
}


def _relevance(y, source):
    model = SelectKBest("all")
    model.learn_target(y, missing="drop")
    model.learn_columns(source)
    return model.relevance


@pytest.mark.parametrize("source", SOURCES)
def test_results_equal_those_of_the_filtered_file(source, folder):
    found = _relevance(np.where(KNOWN, Y, np.nan), SOURCES[source](folder, "all"))
    expected = _relevance(Y[KNOWN], SOURCES[source](folder, "known"))
    assert list(found) == list(expected)
    assert found == pytest.approx(expected, abs=1e-12)


def test_parts_impute_the_same_means(folder):
    whole = _relevance(np.where(KNOWN, Y, np.nan), _bed(folder, "all"))
    files = iter_files([folder / "all.bed", folder / "all-2.bed"])
    for stream in _bed(folder, "all"), files:
        found = {}
        for part in stream.split(3):
            found |= _relevance(np.where(KNOWN, Y, np.nan), part.open())
        assert {name: found[name] for name in whole} == whole


def test_columns_are_cleaned_by_rows_in_use(folder):
    complete = np.where(KNOWN[:, None], np.nan_to_num(G), G)
    stream = clean(complete)
    _relevance(np.where(KNOWN, Y, np.nan), stream)
    assert not stream.skipped
    assert stream.n_read == 30


def test_select_uses_phenotypes_of_the_file(folder):
    found, expected = (
        streamsel.select(folder / f"{stem}.bed", "phenotype", k=3).model
        for stem in ("all", "known")
    )
    assert found.selected == expected.selected
    assert found.scores == pytest.approx(expected.scores, abs=1e-12)


def test_exact_passes_and_knockoffs(folder):
    found, expected = (
        streamsel.select(folder / f"{stem}.bed", "phenotype", k=4, max_candidates=6).model
        for stem in ("all", "known")
    )
    assert (found.selected, found.n_certified) == (expected.selected, expected.n_certified)
    y = np.where(KNOWN, Y, np.nan)
    options = {"fdr": 0.5, "window": 1, "missing": "drop"}
    found = streamsel.evaluate.knockoff_filter(_bed(folder, "all"), y, **options)
    expected = streamsel.evaluate.knockoff_filter(_bed(folder, "known"), y[KNOWN], **options)
    assert found.statistics == pytest.approx(expected.statistics, abs=1e-9)


def test_taken_columns_equal_streamed_ones(folder):
    from streamsel.stream._stream import restricted
    from streamsel.targets.kept_rows import KeptRows

    kept = KeptRows.excluding(~KNOWN)
    for name in SOURCES.keys() - {"path", "once"}:
        stream = restricted(SOURCES[name](folder, "all"), kept)
        found = {key: kept.select(np.asarray(values)) for key, values in stream}
        for key in list(found)[:2]:
            np.testing.assert_array_equal(stream.take([key])[key], found[key])
