"""`--id`: the target is joined by identifier, in any order; by position only on request."""

import csv

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsel import load
from streamsel.cli.errors import CommandError
from streamsel.cli.identifiers import Identifiers, match_rows
from streamsel.serialization.archive import read_metadata
from tests.cli.conftest import write_text

N, P = 40, 12


@pytest.fixture(scope="module")
def study():
    """Return genes of 40 samples, where g3 is the most relevant, and patients in another order.

    Ten of the patients have no genes.
    """
    rng = np.random.default_rng(7)
    X = rng.normal(size=(N, P)).round(4)
    y = (X[:, 3] + 0.1 * rng.normal(size=N)).round(4)
    samples = [f"S{j:02}" for j in range(N)]
    order = rng.permutation(N)
    others = [f"S{j}" for j in range(90, 100)]
    patients = {
        "sample": [*(samples[i] for i in order), *others],
        "site": [*rng.choice(["lund", "oslo"], N + 10)],
        "y": [*y[order].tolist(), *rng.normal(size=10).round(4).tolist()],
    }
    genes = {"sample": samples} | {f"g{j}": X[:, j].tolist() for j in range(P)}
    return genes, patients, order


@pytest.fixture(scope="module")
def folder(study, tmp_path_factory):
    """Return genes by samples, by variables and as Parquet; all patients, and those with genes."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    folder = tmp_path_factory.mktemp("ids")
    genes, patients, order = study
    write(folder / "genes.csv", genes)
    write(folder / "patients.csv", patients)
    write(folder / "patients.txt", patients, "\t")
    shuffled = {name: values[:N] for name, values in patients.items()}
    write(folder / "shuffled.csv", shuffled)
    write(folder / "renamed.csv", {"Sample_ID": shuffled["sample"], "y": shuffled["y"]})
    inverse = np.argsort(order)
    ordered = {name: [values[i] for i in inverse] for name, values in shuffled.items()}
    write(folder / "ordered.csv", ordered)
    lines = [["gene", *genes["sample"]], *([name, *v] for name, v in list(genes.items())[1:])]
    write_text(folder / "genes.tsv.gz", lines, "\t")
    parquet.write_table(pa.table(genes), folder / "genes.parquet")
    parquet.write_table(pa.table(patients), folder / "patients.parquet")
    return folder


def write(path, columns, delimiter=","):
    write_text(path, [list(columns), *map(list, zip(*columns.values(), strict=True))], delimiter)
    return path


def names_of(result):
    return [row["name"] for row in result.rows()]


@pytest.mark.parametrize("genes", ["genes.csv", "genes.parquet", "genes.tsv.gz"])
@pytest.mark.parametrize("patients", ["patients.csv", "patients.parquet", "patients.txt"])
def test_join_does_not_depend_on_row_order(call, folder, genes, patients):
    by_hand = ["--target-file", folder / "ordered.csv", "-t", "y", "--id", "sample"]
    expected = call("select", folder / "genes.csv", *by_hand, "-k", 3).stdout
    joined = ["--target-file", folder / patients, "-t", "y", "--id", "sample"]
    found = call("select", folder / genes, *joined, "-k", 3)
    assert found.stdout == expected
    assert names_of(found)[0] == "g3"


def test_identifier_columns_with_different_names(call, folder):
    joined = ["--target-file", folder / "renamed.csv", "--id", "sample=Sample_ID"]
    assert names_of(call("select", folder / "genes.csv", *joined))[0] == "g3"


def test_covariates_are_joined_too(call, folder, study, tmp_path):
    model, found = tmp_path / "m", []
    for name in ("patients.csv", "ordered.csv"):
        given = ["--target-file", folder / name, "-t", "y", "--covariate", "site"]
        call("select", folder / "genes.csv", *given, "--id", "sample", "-m", model)
        found.append(read_metadata(model)["fingerprint"]["target"])
    assert found[0] == found[1]


@pytest.mark.parametrize("genes", ["genes.csv", "genes.parquet", "genes.tsv.gz"])
def test_a_match_by_position_is_refused(call, folder, genes):
    given = ["--target-file", folder / "shuffled.csv", "-t", "y"]
    error = call("select", folder / genes, *given, code=1).stderr
    assert "--id sample joins by them" in error
    assert "--by-position" in error
    assert error.count("\n") == 1


def test_names_are_guessed_from_values(call, folder):
    given = ["--target-file", folder / "renamed.csv", "-t", "y"]
    error = call("select", folder / "genes.parquet", *given, code=1).stderr
    assert "--id sample=Sample_ID joins by them" in error


def test_by_position_on_request(call, folder):
    given = ["--target-file", folder / "shuffled.csv", "-t", "y", "--by-position"]
    found = call("select", folder / "genes.parquet", *given, "-k", 3)
    assert names_of(found)[0] != "g3"  # a meaningless result, as requested


def test_identical_order_needs_no_option(call, folder):
    given = ["--target-file", folder / "ordered.csv", "-t", "y"]
    for genes in ("genes.csv", "genes.parquet", "genes.tsv.gz"):
        assert names_of(call("select", folder / genes, *given))[0] == "g3"


def test_numbers_are_identifiers_only_under_usual_names(call, table):
    rng = np.random.default_rng(0)
    x, y = rng.permutation(30), rng.permutation(30)
    file = table("x.csv", count=x.tolist(), g=rng.normal(size=30).tolist())
    other = table("y.csv", y=y.tolist())
    call("select", file, "--orientation", "samples", "--target-file", other)
    file = table("x.csv", id=x.tolist(), g=rng.normal(size=30).tolist())
    other = table("y.csv", y=rng.normal(size=30).tolist(), patient_id=y.tolist())
    given = ["--orientation", "samples", "--target-file", other, "-t", "y"]
    assert "--id id=patient_id" in call("select", file, *given, code=1).stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda ids: ids[:-2],
            "2 of 40 rows of {x} (sample) are not in {y} (sample): 'S38', 'S39'",
        ),
        (lambda ids: [*ids[:-1], "S00"], "duplicated: 'S00'"),
        (lambda ids: [*ids, "S00", "S01"], "2 of 40 identifiers of {y} (sample) are duplicated"),
        (
            lambda ids: [f"P{i}" for i in ids],
            "40 of 40 rows of {x} (sample) are not in {y} (sample)",
        ),
        (lambda ids: [*ids, "S99", "S99"], None),
        (lambda ids: [*ids, ""], None),
    ],
)
def test_unmatched_identifiers(call, folder, study, tmp_path, change, message):
    ids = change(study[0]["sample"])
    y = write(tmp_path / "y.csv", {"sample": ids, "y": np.arange(len(ids)) ** 2 / 7})
    x = folder / "genes.csv"
    given = ["select", x, "--target-file", y, "-t", "y", "--id", "sample"]
    given += ["--missing-target", "error"]
    result = call(*given, code=1 if message else 0)
    if message:
        assert message.format(x=x, y=y) in result.stderr
        assert result.stderr.count("\n") == 1
    else:
        extra = "1 row of {y} is" if len(ids) == N + 1 else "2 rows of {y} are"
        assert f"{extra} not in {{x}} and".format(x=x, y=y) in result.stderr


def test_missing_and_duplicate_identifiers(call, table, tmp_path):
    y = table("y.csv", sample=["a", "b", "c"], y=[1.5, 2.0, 0.1])
    given = ["--orientation", "samples", "--target-file", y, "-t", "y", "--id", "sample"]
    x = table("x.csv", sample=["a", "", "c"], g=[1, 3, 2])
    assert "1 of 3 rows" in call("select", x, *given, code=1).stderr
    x = table("x.csv", sample=["a", "a", "c"], g=[1, 3, 2])
    assert "duplicated: 'a'" in call("select", x, *given, code=1).stderr
    x = table("x.csv", sample=[0.5, 0.25, 3], g=[1, 3, 2])
    assert "Got: numbers with fractions" in call("select", x, *given, code=1).stderr


def test_source_without_identifiers(call, files, folder):
    for file in ("data.npy", "variables.csv"):
        given = ["--target-file", folder / "patients.csv", "-t", "y", "--id", "sample"]
        error = call(
            "select",
            files / file,
            *given,
            code=1,
        ).stderr
        assert "--by-position" in error
    error = call(
        "select", folder / "genes.csv", "--target-file", files / "y.txt", "--id", "sample", code=1
    )
    assert "no such column" in error.stderr
    given = ["--target-file", files / "y.npy", "--id", "sample"]
    assert "no named columns" in call("select", folder / "genes.csv", *given, code=1).stderr
    call(
        "select",
        folder / "genes.csv",
        "--target-file",
        files / "y.txt",
        "--id",
        "a",
        "--by-position",
        code=2,
    )


def test_identifier_in_the_same_file_is_no_candidate(call, table):
    rng = np.random.default_rng(3)
    ids = np.arange(20)
    x = table(
        id=ids.tolist(), y=(ids + rng.normal(size=20)).tolist(), g=rng.normal(size=20).tolist()
    )
    assert names_of(call("select", x, "-t", "y"))[0] == "id"
    assert names_of(call("select", x, "-t", "y", "--id", "id")) == ["g"]
    assert "no such column" in call("select", x, "-t", "y", "--id", "ids", code=1).stderr


def test_headers_of_several_files_agree(call, folder, study, tmp_path):
    genes, _, order = study
    for i, rows in enumerate((np.arange(N), order)):
        part = [["gene", *(genes["sample"][r] for r in rows)]]
        part += [[f"h{i}{j}", *(genes[f"g{j}"][r] for r in rows)] for j in range(2)]
        write_text(tmp_path / f"part-{i}.tsv", part, "\t")
    given = ["--target-file", folder / "ordered.csv", "-t", "y", "--orientation", "variables"]
    for further in ([], ["--id", "sample"]):
        error = call("select", tmp_path / "part-*.tsv", *given, *further, code=1).stderr
        assert "other samples" in error


def test_resumed_run_has_the_same_identifier(call, folder, tmp_path):
    model = tmp_path / "m"
    given = ["--target-file", folder / "patients.csv", "-t", "y"]
    call("select", folder / "genes.csv", *given, "--id", "sample", "-m", model)
    assert read_metadata(model)["id"] == "sample"
    again = ["select", folder / "genes.csv", "--model", model, "--resume"]
    call(*again)
    call(*again, "--id", "sample")
    assert "--id sample. Got: --id other" in call(*again, "--id", "other", code=1).stderr
    assert "--by-position" in call(*again, "--by-position", code=1).stderr
    # The same targets in another order are accepted.
    call(*again, "-t", "y", "--target-file", folder / "ordered.csv")


def test_transform_does_not_output_the_identifier(call, folder, study, tmp_path):
    model = tmp_path / "m"
    joined = ["--target-file", folder / "patients.csv", "-t", "y", "--id", "sample"]
    call("select", folder / "genes.csv", *joined, "-k", 2, "-m", model)
    out = call("transform", model, folder / "genes.csv").stdout
    assert next(csv.reader(out.splitlines())) == load(model).selected


@pytest.mark.parametrize("orientation", ["samples", "variables"])
def test_wrong_orientation_is_detected(call, folder, orientation):
    right = {"samples": "variables", "variables": "samples"}[orientation]
    genes = {"samples": "genes.tsv.gz", "variables": "genes.csv"}[orientation]
    given = ["select", folder / genes, "--orientation", orientation, "-t", "y"]
    joined = ["--target-file", folder / "patients.csv", "--id", "sample"]
    assert f"use --orientation {right}" in call(*given, *joined, code=1).stderr
    # Without identifiers, the number of values shows the orientation.
    plain = ["--target-file", folder / "shuffled.csv", "--by-position"]
    assert f"use --orientation {right}" in call(*given, *plain, code=1).stderr


@pytest.mark.parametrize("orientation", ["samples", "variables"])
def test_wrong_orientation_of_a_square_table_is_detected(call, tmp_path, orientation):
    """In a square table the number of values does not show the orientation."""
    rng = np.random.default_rng(0)
    samples, genes = [f"S{j:02}" for j in range(10)], [f"g{j}" for j in range(10)]
    above, alongside = (samples, genes) if orientation == "samples" else (genes, samples)
    rows = [[name, *rng.normal(size=10)] for name in alongside]
    write_text(tmp_path / "x.csv", [["", *above], *rows], ",")
    patients = write(tmp_path / "y.csv", {"id": samples, "y": rng.normal(size=10).tolist()})
    given = ["select", tmp_path / "x.csv", "--target-file", patients, "-t", "y", "--orientation"]
    right = {"samples": "variables", "variables": "samples"}[orientation]
    assert f"use --orientation {right}" in call(*given, orientation, code=1).stderr
    call(*given, orientation, "--by-position")
    call(*given, right)


def test_sample_similarity_matrix_has_identifiers_on_both_axes(call, tmp_path):
    names = [f"S{j:02}" for j in range(10)]
    similarities = np.corrcoef(np.random.default_rng(0).normal(size=(10, 30))).tolist()
    rows = [[name, *values] for name, values in zip(names, similarities, strict=True)]
    write_text(tmp_path / "x.csv", [["id", *names], *rows], ",")
    patients = write(tmp_path / "y.csv", {"id": names[::-1], "y": list(range(0, 30, 3))})
    given = ["--orientation", "samples", "--target-file", patients, "-t", "y", "--id", "id"]
    call("select", tmp_path / "x.csv", *given)


def test_orientation_is_inferred_from_identifiers(call, folder):
    for genes in ("genes.csv", "genes.tsv.gz"):
        given = ["--target-file", folder / "ordered.csv", "-t", "y"]
        assert names_of(call("select", folder / genes, *given))[0] == "g3"


def test_duplicate_does_not_hide_identifiers(call, folder, study, tmp_path):
    patients = {name: values[:N] for name, values in study[1].items()}
    patients["sample"] = [*patients["sample"][:-1], patients["sample"][0]]
    given = ["--target-file", write(tmp_path / "y.csv", patients), "-t", "y"]
    for genes in ("genes.csv", "genes.tsv.gz"):
        assert "--by-position" in call("select", folder / genes, *given, code=1).stderr


def test_line_numbers_are_not_identifiers(call, folder, study, tmp_path):
    """Both files have an index written by pandas, but their rows are in a different order."""
    for name, columns in (("x", study[0]), ("y", study[1])):
        rows = {"": range(N)} | {key: values[:N] for key, values in columns.items()}
        write(tmp_path / f"{name}.csv", rows)
    given = ["--orientation", "samples", "--target-file", tmp_path / "y.csv", "-t", "y"]
    error = call("select", tmp_path / "x.csv", *given, code=1).stderr
    assert "--id sample joins by them" in error


@pytest.mark.parametrize("genes", ["genes.csv", "genes.parquet", "genes.tsv.gz"])
def test_identifiers_with_other_spelling_are_detected(call, folder, tmp_path, genes):
    """Identifiers that differ in case, by a prefix or by a suffix are detected."""
    with (folder / "shuffled.csv").open() as file:
        rows = list(csv.DictReader(file))
    orientation = ["--orientation", "variables" if ".tsv" in genes else "samples"]
    for spell in (str.lower, lambda name: name[1:], lambda name: f"{name}-01A"):
        patients = {"Patient": [spell(row["sample"]) for row in rows], "y": [r["y"] for r in rows]}
        given = ["--target-file", write(tmp_path / "y.csv", patients), "-t", "y", *orientation]
        error = call("select", folder / genes, *given, code=1).stderr
        assert "0 of 40 values in common" in error
        assert "--by-position" in error
        call("select", folder / genes, *given, "--by-position")
    numbers = {"id": range(1, N + 1), "y": [row["y"] for row in rows]}
    given = ["--target-file", write(tmp_path / "y.csv", numbers), "-t", "y", *orientation]
    call("select", folder / genes, *given)  # these are only the line numbers


def test_rows_of_genotype_files_have_identifiers(call, study, tmp_path):
    bed_reader = pytest.importorskip("bed_reader")
    rng = np.random.default_rng(0)
    values = rng.integers(0, 3, (N, 20)).astype(float)
    properties = {"iid": study[0]["sample"], "sid": [f"rs{j}" for j in range(20)]}
    bed_reader.to_bed(tmp_path / "x.bed", values, properties=properties)
    order = rng.permutation(N)
    y = values[order, 3] + 0.1 * rng.normal(size=N)
    patients = {"sample": [study[0]["sample"][j] for j in order], "y": y.tolist()}
    given = ["--target-file", write(tmp_path / "y.csv", patients), "-t", "y", "-k", 2]
    assert "--id IID=sample" in call("select", tmp_path / "x.bed", *given, code=1).stderr
    result = call("select", tmp_path / "x.bed", *given, "--id", "IID=sample")
    assert names_of(result)[0] == "rs3"


@pytest.mark.parametrize("workers", [[], ["--workers", 1]])
def test_several_files_may_each_have_identifiers(call, folder, study, tmp_path, workers):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    genes = study[0]
    for i, names in enumerate((("g0", "g3", "g5"), ("g1", "g2"))):
        part = {"sample": genes["sample"]} | {name: genes[name] for name in names}
        parquet.write_table(pa.table(part), tmp_path / f"part-{i}.parquet")
    joined = ["--target-file", folder / "patients.csv", "-t", "y", "-k", 3]
    given = ["select", tmp_path / "part-*.parquet", *joined, "--id", "sample", *workers]
    model, out = tmp_path / "m", tmp_path / "out.csv"
    found = call(*given, "--keep", "sample", "-o", out, "-m", model)
    assert names_of(found)[0] == "g3"
    assert out.read_text().startswith("sample,g3,")
    assert call(*given, "--resume", "-m", model).stdout == found.stdout
    applied = call("transform", model, tmp_path / "part-*.parquet", "--keep", "sample").stdout
    assert applied.splitlines()[0] == out.read_text().splitlines()[0]
    # Files in different orders are not parts of one table.
    part = {"sample": genes["sample"][::-1], "g9": genes["g9"]}
    parquet.write_table(pa.table(part), tmp_path / "part-2.parquet")
    assert "Expected the same sample in every file" in call(*given, code=1).stderr


@given(st.data())
def test_rows_are_matched_in_any_order(data):
    names = data.draw(st.lists(st.text(min_size=1), min_size=1, max_size=20, unique=True))
    others = data.draw(st.permutations(names))
    wanted = others[: data.draw(st.integers(1, len(names)))]
    known = Identifiers("y", "id", names)
    for drop in (True, False):
        rows = match_rows(Identifiers("x", "id", wanted), known, drop=drop)
        assert [names[row] for row in rows] == wanted
        with pytest.raises(CommandError, match="1 of "):
            match_rows(Identifiers("x", "id", [*wanted, None]), known, drop=drop)
        twice = Identifiers("y", "id", [*names, wanted[0]])
        with pytest.raises(CommandError, match="are duplicated"):
            match_rows(Identifiers("x", "id", wanted), twice, drop=drop)
    stranger = "".join(names) + "!"
    found = match_rows(Identifiers("x", "id", [stranger, *wanted]), known, drop=True)
    assert [None if row < 0 else names[row] for row in found] == [None, *wanted]
    for ids, drop in (([stranger, *wanted], False), ([stranger], True)):
        with pytest.raises(CommandError, match="are not in y"):
            match_rows(Identifiers("x", "id", ids), known, drop=drop)
