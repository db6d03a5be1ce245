"""Rows without a target: excluded, counted and reported, or refused with their identifiers."""

import numpy as np
import pytest

from streamsel import load
from tests.cli.conftest import write_text

N, P = 40, 12
LACKS = np.zeros(N, dtype=bool)
LACKS[[0, 5, 6, 39]] = True
KEPT = np.flatnonzero(~LACKS)
IDS = [f"S{i:02}" for i in range(N)]
NAMES = [f"g{j}" for j in range(P)]


@pytest.fixture(scope="module")
def study():
    """Return genes, with g3 the most relevant, the target, ages and weights."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, P)).round(4)
    y = (X[:, 3] + 0.2 * rng.normal(size=N)).round(4)
    # Values in the rows without a target have no effect.
    X[5, 7], X[6, 8] = np.nan, np.inf
    X[LACKS, 9], X[~LACKS, 9] = rng.normal(size=4), 2.0
    return X, y, rng.normal(size=N).round(3), rng.integers(1, 4, size=N)


def cells(values, lacks=LACKS, missing=""):
    return [missing if gone else v for gone, v in zip(lacks, values.tolist(), strict=True)]


def columns_of(study, rows=slice(None), **further):
    X = study[0]
    table = {"id": IDS, "y": cells(study[1]), "age": cells(study[2]), "w": cells(study[3])}
    table |= dict(zip(NAMES, X.T.tolist(), strict=True)) | further
    kept = range(N)[rows] if isinstance(rows, slice) else rows
    return {name: [values[i] for i in kept] for name, values in table.items()}


def write(path, table):
    rows = [list(table), *zip(*table.values(), strict=True)]
    write_text(path, rows if path.suffix == ".csv" else zip(*rows, strict=True), ",")
    return path


@pytest.fixture
def folder(study, tmp_path):
    """Return the study as a table, by variables and as Parquet; its complete rows as rows.csv."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = columns_of(study)
    write(tmp_path / "all.csv", table)
    lines = {name: values for name, values in table.items() if name != "id"}
    write_text(tmp_path / "lines.csv", [[n, *v] for n, v in lines.items()], ",")
    numbers = {name: [None if v == "" else v for v in values] for name, values in table.items()}
    parquet.write_table(pa.table(numbers), tmp_path / "all.parquet")
    np.save(tmp_path / "all.npy", study[0])
    np.save(tmp_path / "y.npy", np.where(LACKS, np.nan, study[1]))
    tmp_path.joinpath("y.txt").write_text("".join(f"{v}\n" for v in cells(study[1])))
    write(tmp_path / "rows.csv", columns_of(study, KEPT))
    return tmp_path


def selected(result):
    return result.json()["selected"]


OTHERS = ["--drop", "id,age,w"]
SOURCES = {
    "all.csv": ["-t", "y", *OTHERS],
    "lines.csv": ["-t", "y", "--drop", "age,w", "--orientation", "variables"],
    "all.parquet": ["-t", "y", *OTHERS],
    "y.npy": [],
    "y.txt": [],
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("method", ["ProjSe", "MRMR"])
def test_rows_without_a_target_are_dropped_and_reported(call, folder, source, method):
    given = ["--method", method, "-k", 4, "--json"]
    expected = call("select", folder / "rows.csv", *SOURCES["all.csv"], *given)
    file = [folder / source]
    if source.startswith("y"):
        file = [folder / "all.npy", "--target-file", folder / source]
    result = call("select", *file, *SOURCES[source], *given, "-m", folder / "m")
    rename = (lambda name: f"g{name}") if source.startswith("y") else str
    for mine, theirs in zip(selected(result), selected(expected), strict=True):
        assert rename(mine["name"]) == theirs["name"]
        assert mine["relevance"] == pytest.approx(theirs["relevance"], rel=1e-12)
    report = result.json()
    assert report["rows"] == len(KEPT)
    assert report["rows_excluded"] == {"no target": 4}
    assert report["target"] == expected.json()["target"]
    assert report["metadata"]["skipped"] == {"constant": 1}
    assert "streamsel: 4 of 40 rows have no target and are dropped\n" in result.stderr
    model = load(folder / "m")
    assert model.n_rows == len(KEPT)
    np.testing.assert_array_equal(model._target.kept.index, KEPT)
    assert "36, 4 left out (no target)" in call("info", folder / "m").stdout
    page = call("report", folder / "m", "--format", "md", "-o", folder / "m.md")
    assert page.stderr.startswith(f"streamsel: wrote {folder / 'm.md'}: report of ")
    assert "36, 4 left out (no target)" in (folder / "m.md").read_text().replace("\\", "")


@pytest.mark.parametrize("source", SOURCES)
def test_rows_without_a_target_are_refused(call, folder, source):
    file = [folder / source]
    if source.startswith("y"):
        file = [folder / "all.npy", "--target-file", folder / source]
    given = [*SOURCES[source], "--missing-target", "error"]
    error = call("select", *file, *given, code=1).stderr
    assert error == (
        "streamsel: error: no target in 4 of 40 rows (first: row 0). Hint: --missing-target "
        "drop drops these rows\n"
    )


def test_errors_name_rows_by_their_identifiers(call, folder, study):
    given = ["--id", "id", "-t", "y", "--drop", "age,w"]
    error = call("select", folder / "all.csv", *given, "--missing-target", "error", code=1).stderr
    assert "(first: row 0 (S00))" in error
    age = [*study[2].tolist()]
    age[9] = ""
    path = write(folder / "age.csv", columns_of(study, age=age))
    error = call("select", path, "--id", "id", "-t", "y", "--covariate", "age", code=1).stderr
    assert "covariate age: missing in 1 of 36 rows (first: row 9 (S09): nan)" in error
    y = [*cells(study[1])]
    y[7] = "inf"
    path = write(folder / "inf.csv", columns_of(study, y=y))
    assert "inf in row 7 (S07), column" in call("select", path, *given, code=1).stderr
    gene = study[0][:, 2].tolist()
    gene[8] = ""
    path = write(folder / "gene.csv", columns_of(study, g2=gene))
    error = call("select", path, *given, "--missing", "error", code=1).stderr
    assert "1 of 36 values is missing or infinite, the first in row 8 (S08)" in error
    strict = ["--missing", "error", "-k", 2]
    error = call("stability", path, *given, *strict, "--subsamples", 2, code=1).stderr
    assert "the first in row 8 (S08)" in error
    call("select", path, *given, "--list-skipped", folder / "skipped")
    lines = (folder / "skipped").read_text().splitlines()
    assert lines[0].endswith("1 of 36 values is missing or infinite, the first in row 8 (S08)")
    assert [line.split("\t")[0] for line in lines] == ["g2", "g9"]


def test_identifiers_without_a_target(call, folder, study):
    """Identifiers missing in either file are excluded; so are covariates without a target."""
    patients = columns_of(study, rows=np.random.default_rng(1).permutation(N))
    there = [i for i, name in enumerate(patients["id"]) if name not in ("S01", "S20", "S05")]
    patients = {name: [patients[name][i] for i in there] for name in ("id", "y", "age", "w")}
    for name, more in {"id": ["X1", "X2"], "y": [0.5, 0.7], "age": ["", 1], "w": [1, 1]}.items():
        patients[name] += more
    write(folder / "patients.csv", patients)
    lacks = LACKS.copy()
    lacks[[1, 20]] = True
    genes = {"id": IDS} | {name: columns_of(study)[name] for name in NAMES}
    write(folder / "genes.csv", genes)
    line = ["-t", "y", "--covariate", "age", "--weights", "w", "-k", 3, "--json"]
    file = ["--target-file", folder / "patients.csv", "--id", "id"]
    result = call("select", folder / "genes.csv", *file, *line)
    assert result.json()["rows"] == N - 6
    absent = f"not in {folder / 'patients.csv'}"
    assert result.json()["rows_excluded"] == {"no target": 3, absent: 3}
    assert "3 of 40 rows have no target and are dropped" in result.stderr
    assert f"3 of 40 rows are {absent} and are dropped" in result.stderr
    ignored = f"2 rows of {folder / 'patients.csv'} are not in {folder / 'genes.csv'} and are"
    assert ignored in result.stderr
    filtered = write(folder / "filtered.csv", columns_of(study, np.flatnonzero(~lacks)))
    expected = call("select", filtered, *line, "--drop", "id")
    assert [row["name"] for row in selected(result)] == [row["name"] for row in selected(expected)]
    scores = [row["score"] for row in selected(expected)]
    assert [row["score"] for row in selected(result)] == pytest.approx(scores, rel=1e-10)
    error = call(
        "select", folder / "genes.csv", *file, *line, "--missing-target", "error", code=1
    ).stderr
    assert "3 of 40 rows of" in error
    assert "Hint: --missing-target drop drops these rows" in error


@pytest.mark.parametrize("missing", ["skip", "mean"])
@pytest.mark.parametrize("command", ["select", "reduce"])
def test_all_rows_are_written(call, folder, study, command, missing):
    """Rows without a target have components too, with means in place of missing genes."""
    X = study[0].copy()
    X[9, 4] = np.nan
    gene = ["" if np.isnan(v) else v for v in X[:, 4].tolist()]
    path = write(folder / "gaps.csv", columns_of(study, g4=gene))
    out, model = folder / "out.csv", folder / "m"
    size = ["-k", 11] if command == "select" else ["-q", 2]
    call(command, path, "-t", "y", *OTHERS, *size, "--missing", missing, "-o", out, "-m", model,
         "--keep", "id,y")  # fmt: skip
    lines = out.read_text().splitlines()
    assert len(lines) == N + 1
    assert [line.split(",")[0] for line in lines[1:]] == IDS
    table = np.genfromtxt(out, delimiter=",", names=True)
    model = load(model)
    if command == "select":
        X[9, 4] = np.nanmean(X[KEPT, 4])
        for name in model.selected:
            expected = X[:, NAMES.index(name)].copy()
            others = LACKS & ~np.isfinite(expected)
            expected[others] = expected[KEPT].mean() if missing == "mean" else np.nan
            np.testing.assert_allclose(table[name], expected, rtol=1e-12)
        return
    Z = np.column_stack([table[name] for name in model.components])
    assert np.isfinite(Z).all()
    np.testing.assert_allclose(Z[KEPT], model.embedding[KEPT], atol=1e-9)
    assert np.isnan(model.embedding[LACKS]).all()
    row = {name: None if not np.isfinite(v) else v for name, v in zip(NAMES, X[5], strict=True)}
    np.testing.assert_allclose(Z[5], list(model.transform_one(row).values()), atol=1e-9)


@pytest.mark.parametrize("command", ["stability", "evaluate"])
def test_stability_and_evaluate_drop_rows_without_a_target(call, folder, command):
    line = ["-t", "y", *OTHERS, "-k", 3, "--seed", 3, "--json"]
    line += ["--subsamples", 5] if command == "stability" else ["--folds", 3]
    result, expected = (call(command, folder / name, *line) for name in ("all.csv", "rows.csv"))
    report, expected_report = result.json(), expected.json()
    assert report["rows"] == len(KEPT)
    assert report["rows_excluded"] == {"no target": 4}
    assert report["target"] == expected_report["target"]
    assert "4 of 40 rows have no target" in result.stderr
    for name in ("frequency", "scores"):
        assert report.get(name) == expected_report.get(name)


def test_resumed_run_drops_the_same_rows(call, folder, interrupt_after, monkeypatch):
    from streamsel.stream import _blocks

    monkeypatch.setattr(_blocks, "BLOCK_BYTES", N * 8 * 3)
    line = ["select", folder / "all.parquet", "-t", "y", *OTHERS, "-k", 3]
    whole = call(*line, "-m", folder / "whole")
    with monkeypatch.context() as patch:
        interrupt_after(2, patch=patch)
        call(*line, "-m", folder / "m", code=130)
    assert 0 < load(folder / "m").n_columns < P
    on = call(*line, "-m", folder / "m", "--resume")
    assert on.stdout == whole.stdout
    assert load(folder / "m").report().rows_excluded == {"no target": 4}
    stderr = call(*line, "-m", folder / "m", "--resume", "--missing-target", "error", code=1).stderr
    assert "the saved run has --missing-target drop. Got: --missing-target error" in stderr
    # A different row without a target makes it a different target.
    call(*line, "-m", folder / "n")
    y = np.load(folder / "y.npy")
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(folder / "all.parquet")
    other = [None if np.isnan(v) or i == 2 else v for i, v in enumerate(y.tolist())]
    index = table.column_names.index("y")
    parquet.write_table(table.set_column(index, "y", pa.array(other)), folder / "all.parquet")
    stderr = call(*line, "-m", folder / "n", "--resume", code=1).stderr
    assert "the values of the target or a covariate have changed" in stderr


def test_workers_drop_the_same_rows(call, folder):
    pytest.importorskip("distributed")
    line = ["select", folder / "all.parquet", "-t", "y", *OTHERS, "-k", 4, "--json"]
    alone, parts = call(*line), call(*line, "--workers", 1)
    assert selected(parts) == selected(alone)
    assert parts.json()["metadata"]["skipped"] == {"constant": 1}


def test_fewer_than_two_targets(call, table):
    path = table(y=["", "", 1.5, ""], a=[1, 2, 3, 4])
    error = call("select", path, "-t", "y", code=1).stderr
    assert "no target in 3 of 4 rows. Expected at least 2 rows with a target" in error


@pytest.mark.parametrize("form", ["parquet", "npy", "h5ad", "csv"])
def test_labels_read_as_missing(call, tmp_path, form):
    """Empty text, NA and similar labels, and null are missing in every format."""
    X = np.random.default_rng(3).normal(size=(12, 3))
    labels = ["a", "", "b", "NA", "a", "n/a", "b", "nan", "a", " ", "b", "b"]
    given = ["-t", "y"]
    if form == "npy":
        np.save(tmp_path / "x.npy", X)
        np.save(tmp_path / "y.npy", labels)
        given = ["--target-file", tmp_path / "y.npy"]
    elif form == "h5ad":
        anndata, pd = pytest.importorskip("anndata"), pytest.importorskip("pandas")
        obs = pd.DataFrame({"y": labels}, index=[f"c{i}" for i in range(12)])
        anndata.AnnData(X, obs=obs).write_h5ad(tmp_path / "x.h5ad")
    elif form == "csv":
        write(tmp_path / "x.csv", {"y": labels, "a": X[:, 0].tolist(), "b": X[:, 1].tolist()})
    else:
        pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        labels[1] = None
        parquet.write_table(pa.table({"y": labels, "a": X[:, 0]}), tmp_path / "x.parquet")
    result = call("select", tmp_path / f"x.{form}", *given, "-k", 1)
    assert result.target == "2 classes: a (3 rows), b (4 rows)"
    assert "5 of 12 rows have no target" in result.stderr


def test_several_columns_of_classes(call, table):
    """Integers in a column with gaps are named 3, not 3.0, and a gap is not a class."""
    x = np.random.default_rng(4).normal(size=24).tolist()
    path = table(a=[1, 2, "", 1, 2, 1] * 4, b=["u", "v", "u", "NA", "v", "u"] * 4, x=x)
    result = call("select", path, "-t", "a,b", "--target-type", "class", "-k", 1, "--json")
    assert result.json()["rows_excluded"] == {"no target": 8}
    assert result.target == "2 columns of labels (a, b)"


def test_survival_target_with_missing_events(call, folder, study):
    died = cells((study[3] > 1).astype(int))
    died[2] = "NA"
    time = cells(np.abs(study[1]))
    line = ["-t", "y", "--event", "died", *OTHERS, "--json"]
    path = write(folder / "cox.csv", columns_of(study, y=time, died=died))
    report = call("select", path, *line).json()
    assert report["rows_excluded"] == {"no target": 5}
    assert report["target"].startswith("survival, ")
    assert report["target"].endswith(" events in 35 rows")


@pytest.mark.parametrize("form", ["fam", "file", "labels"])
def test_phenotypes_of_plink(call, tmp_path, form):
    """-9 is missing with a .bed FILE, wherever the target comes from; elsewhere it is a number."""
    rng = np.random.default_rng(2)
    n, p = 24, 8
    G = rng.integers(0, 3, size=(n, p))
    status = 1 + (G[:, 2] > 0)
    phenotype = status.copy()
    phenotype[[1, 4]] = -9
    packed = np.array([3, 2, 0])[G.T].reshape(p, n // 4, 4) << np.array([0, 2, 4, 6])
    path = tmp_path / "x.bed"
    path.write_bytes(bytes([0x6C, 0x1B, 1]) + packed.sum(axis=2).astype(np.uint8).tobytes())
    bim = "".join(f"1 rs{j} 0 {100 * j} A G\n" for j in range(p))
    path.with_suffix(".bim").write_text(bim)
    fam = "".join(f"F s{i} 0 0 1 {phenotype[i]}\n" for i in range(n))
    path.with_suffix(".fam").write_text(fam)
    given = ["-t", "phenotype"]
    if form != "fam":
        names = {1: "control", 2: "case", -9: "-9"} if form == "labels" else {}
        rows = [[f"s{i}", names.get(v, v)] for i, v in enumerate(phenotype.tolist())]
        write_text(tmp_path / "pheno.csv", [["IID", "y"], *rows], ",")
        given = ["-t", "y", "--target-file", tmp_path / "pheno.csv", "--id", "IID"]
    result = call("select", path, *given, "-k", 2, "--json")
    assert result.json()["rows_excluded"] == {"no target": 2}
    sizes = np.bincount(status[phenotype > 0])[1:]
    classes = ["1", "2"] if form != "labels" else ["control", "case"]
    expected = dict(zip(classes, sizes, strict=True))
    listed = ", ".join(f"{name} ({expected[name]} rows)" for name in sorted(expected))
    assert result.json()["target"] == f"2 classes: {listed}"
    if form == "file":
        np.save(tmp_path / "x.npy", G.astype(float))
        plain = ["--target-file", tmp_path / "pheno.csv", "-t", "y", "-k", 2, "--json"]
        report = call("select", tmp_path / "x.npy", *plain).json()
        assert report["target"].startswith("3 classes: -9 (2 rows)")
