"""`--statistics`: a file with statistics of all columns."""

import csv

import numpy as np
import pytest
from bed_reader import to_bed

from streamsel import SelectKBest, load
from streamsel.stream import iter_bed
from tests.reference import glm
from tests.reference import statistics as reference

N, P = 80, 30
TITLES = [
    "name", "chromosome", "position", "effect_allele", "other_allele", "effect_allele_frequency",
    "n", "mean", "effect", "standard_error", "score", "p_value", "p_bh", "p_by",
]  # fmt: skip


@pytest.fixture(scope="module")
def cohort(tmp_path_factory):
    """Return genotypes with gaps as .bed, a phenotype that one person lacks, and age."""
    rng = np.random.default_rng(3)
    folder = tmp_path_factory.mktemp("cohort")
    values = rng.integers(0, 3, size=(N, P)).astype(np.int8)
    y = (values[:, 4] + rng.normal(size=N)).round(4)
    age = rng.normal(size=N).round(3)
    values[5, [4, 9]] = -127
    properties = {
        "iid": [f"p{i}" for i in range(N)],
        "sid": [f"rs{j}" for j in range(P)],
        "chromosome": [str(1 + j // 10) for j in range(P)],
        "bp_position": [1000 + j for j in range(P)],
        "allele_1": ["A"] * P,
        "allele_2": ["G"] * P,
    }
    to_bed(folder / "x.bed", values, properties=properties)
    cells = [["IID", "ldl", "case", "age"]]
    for i in range(N):
        case = "case" if y[i] > 1 else "control"
        cells.append([f"p{i}", "" if i == 7 else y[i], case, age[i]])
    with (folder / "clinic.csv").open("w") as file:
        csv.writer(file).writerows(cells)
    return folder, y, age


def _rows(path):
    return list(csv.DictReader(path.read_text().splitlines()))


@pytest.fixture
def run(call, cohort, tmp_path):
    """Return a function that selects from the cohort and returns the rows of the statistics."""

    def run(*more, name="s.csv", method="SelectKBest", target="ldl", code=0):
        folder = cohort[0]
        given = ["--target-file", folder / "clinic.csv", "--id", "IID", "--target", target]
        path = tmp_path / name
        result = call(
            *("select", folder / "x.bed", *given, "--method", method, "-k", 2),
            *("--statistics", path, *more),
            code=code,
        )
        rows = _rows(path) if path.suffix == ".csv" and not code else None
        return result, rows

    return run


def _columns(rows, *titles):
    return (np.array([float(row[title]) for row in rows]) for title in titles)


def test_all_variants_with_their_loci(run, cohort):
    folder, y, age = cohort
    result, rows = run("--covariate", "age")
    assert list(rows[0]) == TITLES
    assert [row["name"] for row in rows] == [f"rs{j}" for j in range(P)]
    assert [row["chromosome"] for row in rows] == [str(1 + j // 10) for j in range(P)]
    assert [row["position"] for row in rows] == [str(1000 + j) for j in range(P)]
    assert {(row["effect_allele"], row["other_allele"], row["n"]) for row in rows} == {
        ("A", "G", "79")
    }
    kept = np.arange(N) != 7
    X = np.column_stack([values for _, values in iter_bed(folder / "x.bed", missing="keep")])[kept]
    X = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    expected = reference.least_squares(X, y[kept], age[kept])
    for found, value in zip(
        _columns(rows, "effect", "standard_error", "p_value"), expected, strict=True
    ):
        np.testing.assert_allclose(found, value, rtol=1e-5, atol=1e-7)
    mean, frequency = _columns(rows, "mean", "effect_allele_frequency")
    np.testing.assert_allclose(mean, X.mean(axis=0), rtol=1e-6)
    np.testing.assert_array_equal(frequency, mean / 2)
    # The selected variants have the same statistics in every output.
    of_name = {row["name"]: row for row in rows}
    assert len(result.rows()) == 2
    for row in result.rows():
        for title in ("effect", "standard_error", "p_value", "score"):
            assert float(row[title]) == pytest.approx(float(of_name[row["name"]][title]), rel=1e-5)


def test_an_unknown_position_is_empty(call, tmp_path, cohort):
    values = np.random.default_rng(1).integers(0, 3, size=(N, 4)).astype(np.int8)
    properties = {"sid": list("abcd"), "bp_position": [-9, 0, 5, 7]}
    to_bed(tmp_path / "x.bed", values, properties=properties)
    np.save(tmp_path / "y.npy", cohort[1])
    for name in ("s.csv", "s.parquet"):
        call(
            *("select", tmp_path / "x.bed", "--target-file", tmp_path / "y.npy", "-k", 2),
            *("--method", "SelectKBest", "--statistics", tmp_path / name),
        )
    assert [row["position"] for row in _rows(tmp_path / "s.csv")] == ["", "", "5", "7"]
    assert iter_bed(tmp_path / "x.bed").column_metadata["position"].tolist() == [0, 0, 5, 7]
    pa = pytest.importorskip("pyarrow.parquet")
    found = pa.read_table(tmp_path / "s.parquet")["position"]
    assert found.to_pylist() == [None, None, 5, 7]


def test_json_has_effects_of_the_selected(run):
    result, rows = run("--json")
    of_name = {row["name"]: row for row in rows}
    for row in result.json()["selected"]:
        for title in ("effect", "standard_error", "p_value"):
            assert row[title] == pytest.approx(float(of_name[row["name"]][title]), rel=1e-12)


def test_formats(run, tmp_path):
    pd, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    _, rows = run()
    readers = {
        "s.tsv": lambda path: pd.read_csv(path, sep="\t"),
        "s.parquet": pd.read_parquet,
        "s.feather": pd.read_feather,
        "s.arrow": pd.read_feather,
    }
    for name, reader in readers.items():
        run(name=name)
        table = reader(tmp_path / name)
        assert list(table) == TITLES
        assert table["position"].tolist() == [1000 + j for j in range(P)]
        for title in ("effect", "p_bh"):
            expected = [float(row[title]) for row in rows]
            np.testing.assert_allclose(table[title], expected, rtol=1e-12)


def test_vcf(call, tmp_path):
    header = ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT"]
    lines = ["##fileformat=VCFv4.2", "\t".join([*header, *(f"s{i}" for i in range(12))])]
    for j in range(4):
        calls = [("0/0", "0/1", "1/1")[(i + j * i) % 3] for i in range(12)]
        lines.append(
            "\t".join([str(j + 1), str(7 * j + 1), f"v{j}", "C", "T", *"...", "GT", *calls])
        )
    (tmp_path / "x.vcf").write_text("\n".join(lines) + "\n")
    (tmp_path / "y.txt").write_text("".join(f"{i % 5 + i / 7}\n" for i in range(12)))
    call(
        *("select", tmp_path / "x.vcf", "--target-file", tmp_path / "y.txt", "-k", 1),
        *("--method", "SelectKBest", "--statistics", tmp_path / "s.csv"),
    )
    rows = _rows(tmp_path / "s.csv")
    assert [(row["chromosome"], row["position"], row["effect_allele"]) for row in rows] == [
        (str(j + 1), str(7 * j + 1), "T") for j in range(4) if j != 2
    ]


def test_statistics_of_tables_classes_and_permutations(call, files, tmp_path):
    """A table has no metadata; three classes have no effects."""
    call(
        *("select", files / "data.parquet", "--target", "labels", "--drop", "y", "-k", 2),
        *("--method", "SelectKBest", "--statistics", tmp_path / "s.csv", "--permutations", 99),
    )
    rows = _rows(tmp_path / "s.csv")
    assert list(rows[0]) == ["name", "n", "mean", "score", "p_value", "p_bh", "p_by", "p_adjusted"]
    assert len(rows) == 40


def test_cases_and_controls(run):
    """The effect refers to the second class in sorted order, the controls."""
    _, rows = run(target="case")
    assert float(rows[4]["effect"]) < 0


def test_statistics_are_written_without_selected_variables(call, files, tmp_path):
    rng = np.random.default_rng(5)
    np.save(tmp_path / "noise.npy", rng.normal(size=60))
    result = call(
        *("select", files / "data.npy", "--target-file", tmp_path / "noise.npy"),
        *("--method", "SelectKBest", "--set", "fdr=1e-6", "--statistics", tmp_path / "s.csv"),
        code=1,
    )
    assert "nothing was selected" in result.stderr
    assert len((tmp_path / "s.csv").read_text().splitlines()) == 41


@pytest.mark.slow
def test_statistics_with_workers_and_of_a_complete_run(run, cohort, call, tmp_path, processes):
    _, rows = run("-m", tmp_path / "m")
    run("--workers", 2, name="w.csv")
    assert (tmp_path / "w.csv").read_bytes() == (tmp_path / "s.csv").read_bytes()
    before = (tmp_path / "s.csv").read_bytes()
    (tmp_path / "s.csv").unlink()
    clinic = ["--target-file", cohort[0] / "clinic.csv", "--id", "IID", "--target", "ldl"]
    call(
        *("select", cohort[0] / "x.bed", *clinic, "--resume", tmp_path / "m"),
        *("--statistics", tmp_path / "s.csv"),
    )
    assert (tmp_path / "s.csv").read_bytes() == before
    model = load(tmp_path / "m")
    assert isinstance(model, SelectKBest)
    assert model.statistics()["p_by"].tolist() == [float(row["p_by"]) for row in rows]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"method": "ForwardSelection"}, "ForwardSelection has no statistics of single columns"),
        ({"name": "s.npy"}, "ends in .parquet, .feather, .arrow, .csv, .tsv"),
        ({"name": "s.txt"}, "--statistics"),
        ({"name": "none/s.csv", "code": 1}, "no such directory"),
    ],
)
def test_invalid_options_are_refused_before_reading(run, options, text):
    result, _ = run(**{"code": 2, **options})
    assert text in result.stderr


def test_outputs_are_distinct(run, tmp_path):
    result, _ = run("--out", tmp_path / "s.csv", code=2)
    assert "the same file as" in result.stderr


def test_a_source_that_has_changed(run, cohort, call, tmp_path, monkeypatch):
    """The results are printed, and the failure is reported."""
    from streamsel.stream import _genotypes

    def changed(self):
        raise ValueError("Expected the position of variant 'rs1' to be a whole number. Got: 'x'.")

    monkeypatch.setattr(_genotypes.GenotypeFile, "variants", changed)
    result, _ = run(code=1)
    assert len(result.rows()) == 2
    assert "not written" in result.stderr
    assert "whole number" in result.stderr


def test_score_tests_of_cases(run, cohort, tmp_path):
    """The effect is a log odds ratio, of the second class in sorted order."""
    folder, y, age = cohort
    result, rows = run("--target-type", "binary", "--covariate", "age", target="case")
    assert "binary" in result.target
    is_control = (y <= 1).astype(float)
    X = np.column_stack([values for _, values in iter_bed(folder / "x.bed")])
    mean = glm.null_means("binary", is_control, age[:, None])
    effect, error = _columns(rows, "effect", "standard_error")
    for j in range(P):
        x = X[:, j].astype(float)
        g = glm.adjusted("binary", x, mean, age[:, None])
        variance = g @ (mean * (1.0 - mean) * g)
        assert effect[j] == pytest.approx(x @ (is_control - mean) / variance, rel=1e-5)
        assert error[j] == pytest.approx(variance**-0.5, rel=1e-5)


def test_missing_genotypes_are_left_out(run, cohort):
    """With pairwise=yes a variant is tested in the samples that have a genotype."""
    folder, y, _ = cohort
    _, rows = run("--set", "pairwise=yes")
    kept = np.arange(N) != 7
    stream = dict(iter_bed(folder / "x.bed", missing="keep"))
    counts = [int(np.isfinite(stream[f"rs{j}"][kept]).sum()) for j in range(P)]
    assert [int(row["n"]) for row in rows] == counts
    assert sorted(set(counts)) == [78, 79]
    effect, error, p_value = _columns(rows, "effect", "standard_error", "p_value")
    for j in (4, 9, 10):
        x = stream[f"rs{j}"].astype(float)
        both = kept & np.isfinite(x)
        expected = np.ravel(reference.least_squares(x[both, None], y[both]))
        np.testing.assert_allclose([effect[j], error[j], p_value[j]], expected, rtol=1e-5)
