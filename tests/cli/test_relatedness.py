"""`--relatedness auto` or FILE, and `--loco`: relatedness of the rows of a run."""

import csv
import json
import shlex
import time

import numpy as np
import pytest
from bed_reader import to_bed

import streamsel
from streamsel import PCA, Relatedness, SelectKBest, load
from streamsel.stream import iter_bed, iter_files

N, P = 60, 90
LACKS = np.zeros(N, dtype=bool)
LACKS[[3, 40]] = True


@pytest.fixture(scope="module")
def cohort(tmp_path_factory):
    """Return families of six in three chromosome files; family and a variant affect the trait."""
    rng = np.random.default_rng(7)
    folder = tmp_path_factory.mktemp("cohort")
    family = np.arange(N) // 6
    share = np.clip(rng.uniform(0.1, 0.9, P) + 0.3 * rng.normal(size=(10, P)), 0.02, 0.98)[family]
    values = (rng.random((N, P)) < share).astype(np.int8) + (rng.random((N, P)) < share)
    values = values.astype(np.int8)
    y = (rng.normal(size=10)[family] + 0.8 * values[:, 50] + rng.normal(size=N)).round(4)
    age = rng.normal(size=N).round(3)
    for c in range(3):
        part = slice(30 * c, 30 * c + 30)
        properties = {
            "iid": [f"p{i}" for i in range(N)],
            "sid": [f"rs{j}" for j in range(P)[part]],
            "chromosome": [str(c + 1)] * 30,
            "bp_position": np.arange(30) + 100,
        }
        to_bed(folder / f"chr{c + 1}.bed", values[:, part].copy(), properties=properties)
    to_bed(
        folder / "all.bed", values,
        properties={
            "iid": [f"p{i}" for i in range(N)],
            "sid": [f"rs{j}" for j in range(P)],
            "chromosome": [str(1 + j // 30) for j in range(P)],
        },
    )  # fmt: skip
    rows = [["IID", "trait", "age", "w", "kind"]]
    rows += [
        [f"p{i}", "" if LACKS[i] else y[i], age[i], 1 + i % 2, "ab"[int(y[i] > 1)]]
        for i in range(N)
    ]
    with (folder / "clinic.csv").open("w") as file:
        csv.writer(file).writerows(rows)
    (folder / "groups.csv").write_text(
        "".join(f"rs{j},{'odd' if j % 2 else 'even'}\n" for j in range(P))
    )
    K = Relatedness.from_columns(values).matrix
    np.save(folder / "K.npy", K)
    np.savetxt(folder / "K.cXX.txt", K, delimiter="\t", fmt="%.10g")
    np.savetxt(folder / "K.csv", K, delimiter=",")
    return folder, values, y, age


@pytest.fixture
def run(call, cohort):
    """Return a function that selects from the cohort by the command."""

    def run(*more, files=("all.bed",), method="SelectKBest", target="trait", code=0, to="select"):
        folder = cohort[0]
        given = ["--target-file", folder / "clinic.csv", "--id", "IID", "--target", target]
        return call(
            *(to, *(folder / name for name in files), *given),
            *("--method", method, *more),
            code=code,
        )

    return run


def _expected(cohort, relatedness, *, kept=~LACKS, **covariates):
    """Return the model that Python fits to the rows with a target."""
    folder, _, y, _ = cohort
    model = SelectKBest(3, target_type="auto")
    model.learn_target(
        np.where(kept, y, np.nan), missing="drop", relatedness=relatedness, **covariates
    )
    model.learn_columns(iter_bed(folder / "all.bed"))
    return model


def _same(found, expected, rtol=1e-9):
    mine, theirs = found.statistics(), expected.statistics()
    assert mine["name"].tolist() == theirs["name"].tolist()
    for title in ("effect", "standard_error", "p_value"):
        np.testing.assert_allclose(mine[title], theirs[title], rtol=rtol, atol=1e-12)


def test_auto_relatedness(run, cohort, tmp_path):
    result = run("-k", 3, "--relatedness", "auto", "-m", tmp_path / "m", "--covariate", "age")
    kept_rows = ~LACKS
    K = Relatedness.from_columns(cohort[1][kept_rows]).matrix
    whole = np.zeros((N, N))
    whole[np.ix_(kept_rows, kept_rows)] = K
    model = load(tmp_path / "m")
    _same(model, _expected(cohort, whole, covariates=cohort[3]))
    (components,) = model.variance_components.values()
    assert f"heritability {components.heritability:.3f}" in result.stderr
    assert "computing" not in result.stderr
    names = [row["name"] for row in result.rows()]
    assert names == model.selected
    plain = run("-k", 3, "--covariate", "age")
    assert plain.rows() != result.rows()


@pytest.mark.parametrize("name", ["K.npy", "K.cXX.txt", "K.csv"])
def test_relatedness_from_files(name, run, cohort, tmp_path):
    run("-k", 3, "--relatedness", cohort[0] / name, "-m", tmp_path / "m")
    _same(load(tmp_path / "m"), _expected(cohort, np.load(cohort[0] / "K.npy")), rtol=1e-5)


def test_relatedness_from_a_model_file(run, call, cohort, tmp_path):
    call("reduce", cohort[0] / "all.bed", "--method", "PCA", "-q", 2, "-m", tmp_path / "pca")
    run("-k", 3, "--relatedness", tmp_path / "pca", "-m", tmp_path / "m")
    pca = PCA(2)
    pca.learn_columns(iter_bed(cohort[0] / "all.bed"))
    _same(load(tmp_path / "m"), _expected(cohort, pca))


def test_a_model_without_a_gram_matrix(run, tmp_path):
    run("-k", 3, "-m", tmp_path / "m")
    text = run("--relatedness", tmp_path / "m", code=1).stderr
    assert "Expected a matrix or a model that has a Gram matrix" in text
    assert "--relatedness auto computes the matrix" in text
    assert "from_columns" not in text


@pytest.mark.parametrize("option", [["--loco"], ["--loco", "chromosome"], ["--loco", "groups.csv"]])
def test_loco_by_groups(option, run, cohort, tmp_path, monkeypatch):
    monkeypatch.chdir(cohort[0])
    run("-k", 3, "--relatedness", "auto", "-m", tmp_path / "m", *option)
    by_file = option[-1] == "groups.csv"

    def group(name):
        j = int(name[2:])
        return ("even", "odd")[j % 2] if by_file else str(1 + j // 30)

    source = iter_bed(cohort[0] / "all.bed")
    y = np.where(LACKS, np.nan, cohort[2])
    columns = {name: values[~LACKS] for name, values in source}
    relatedness = Relatedness.from_columns(columns.items(), group)
    expected = SelectKBest(3, target_type="auto")
    expected.learn_target(y[~LACKS], relatedness=relatedness)
    expected.learn_columns(columns.items())
    model = load(tmp_path / "m")
    assert len(model.variance_components) == (3 if by_file else 4)
    _same(model, expected)


def test_files_by_chromosome_workers_and_exact(run, cohort, tmp_path):
    """Results are bit-identical from one file or three, in one process or two."""
    files = ("chr1.bed", "chr2.bed", "chr3.bed")
    tables = []
    for i, more in enumerate(([], ["--workers", 2])):
        for names in (("all.bed",), files):
            path = tmp_path / f"s{i}{len(names)}.csv"
            run(
                "-k", 3, "--relatedness", "auto", *more, "--statistics", path, "--loco", files=names
            )
            rows = list(csv.DictReader(path.read_text().splitlines()))
            tables.append([(row["name"], row["effect"], row["p_value"]) for row in rows])
    assert tables[0] == tables[1] == tables[2] == tables[3]
    found = [
        run(
            *("-k", 2, "--relatedness", "auto", *more),
            method="ForwardSelection",
        ).rows()
        for more in ([], ["--max-candidates", 8], ["--workers", 2])
    ]
    names = [[row["name"] for row in rows] for rows in found]
    assert names[0] == names[1] == names[2]


def test_numbered_columns_by_a_file(call, cohort, tmp_path):
    np.save(tmp_path / "x.npy", cohort[1].astype(float))
    np.save(tmp_path / "y.npy", cohort[2])
    (tmp_path / "g.txt").write_text("column group\n" + "".join(f"{j} g{j % 3}\n" for j in range(P)))
    call(
        *("select", tmp_path / "x.npy", "--target-file", tmp_path / "y.npy", "-k", 3),
        *("--method", "SelectKBest", "--relatedness", "auto", "--loco", tmp_path / "g.txt"),
        *("-m", tmp_path / "m"),
    )
    assert list(load(tmp_path / "m").variance_components) == [None, "g0", "g1", "g2"]


def test_reduce(run, cohort, tmp_path):
    run("-q", 2, "--relatedness", "auto", "-m", tmp_path / "m", method="SOSPCA", to="reduce")
    assert len(load(tmp_path / "m").variance_components) == 1


@pytest.mark.parametrize("option", [[], ["--loco"]])
def test_the_command_of_a_report(option, run, call, cohort, tmp_path):
    run("-k", 3, "--relatedness", "auto", "-m", tmp_path / "m", *option)
    call("report", tmp_path / "m", "--format", "md", "-o", tmp_path / "r.md")
    text = (tmp_path / "r.md").read_text()
    assert ("3 groups of columns, each left out of its own tests" in text) is bool(option)
    line = text.partition("streamsel select")[2].partition("```")[0]
    call("select", *shlex.split(line.replace("\\\n", " ")), "-m", tmp_path / "again")
    again, model = load(tmp_path / "again"), load(tmp_path / "m")
    assert again.variance_components == model.variance_components
    _same(again, model, rtol=0)


def test_json_and_log(run):
    result = run("-k", 2, "--relatedness", "auto", "--loco", "--log-format", "json", "--json")
    events = [json.loads(line) for line in result.stderr.splitlines()]
    (event,) = (event for event in events if event["event"] == "relatedness")
    assert [one["left_out"] for one in event["components"]] == [None, "1", "2", "3"]
    assert all(0 <= one["heritability"] <= 1 for one in event["components"])
    metadata = result.json()["metadata"]
    assert (metadata["relatedness"], metadata["loco"]) == ("auto", "chromosome")


@pytest.mark.parametrize("name", ["auto", "K.npy"])
def test_resume(name, run, cohort, tmp_path, monkeypatch):
    from streamsel.base.columns import ColumnPhase
    from streamsel.stream import _blocks

    monkeypatch.setattr(_blocks, "BLOCK_BYTES", N * 4 * 10)
    given = ["-k", 3, "--relatedness", name if name == "auto" else cohort[0] / name]
    run(*given, "-m", tmp_path / "whole")
    learn, n_blocks = ColumnPhase.learn_block, []

    def stop(self, method, block):
        n_blocks.append(block)
        if len(n_blocks) == 3:
            raise KeyboardInterrupt
        return learn(self, method, block)

    with monkeypatch.context() as patch:
        patch.setattr(ColumnPhase, "learn_block", stop)
        run(*given, "-m", tmp_path / "m", code=130)
    assert 0 < load(tmp_path / "m").n_columns < P
    for differs in (["auto"], [cohort[0] / "K.npy"]):
        if differs[0] != given[-1]:
            result = run("--resume", tmp_path / "m", "--relatedness", *differs, code=1)
            assert "the saved run has --relatedness" in result.stderr
    calls = []
    from_columns = Relatedness.from_columns.__func__
    monkeypatch.setattr(
        Relatedness,
        "from_columns",
        classmethod(lambda *args: calls.append(args) or from_columns(*args)),
    )
    result = run("--resume", tmp_path / "m")
    assert f"continuing with --relatedness {given[-1]} of the saved run" in result.stderr
    assert not calls
    _same(load(tmp_path / "m"), load(tmp_path / "whole"), rtol=0)


def test_a_matrix_that_has_changed(run, cohort, tmp_path):
    K = np.load(cohort[0] / "K.npy")
    np.save(tmp_path / "K.npy", K)
    run("-k", 3, "--relatedness", tmp_path / "K.npy", "-m", tmp_path / "m")
    run("--resume", tmp_path / "m")
    np.save(tmp_path / "moved.npy", K)
    run("--resume", tmp_path / "m", "--relatedness", tmp_path / "moved.npy")
    np.save(tmp_path / "moved.npy", K + np.eye(N))
    result = run("--resume", tmp_path / "m", "--relatedness", tmp_path / "moved.npy", code=1)
    assert "or the relatedness, have changed" in result.stderr


def test_left_out_groups_are_those_of_the_saved_run(run, tmp_path):
    given = ["--relatedness", "auto"]
    run("-k", 3, *given, "--loco", "-m", tmp_path / "m")
    result = run("--resume", tmp_path / "m", *given)
    assert "continuing with --loco chromosome of the saved run" in result.stderr
    assert "continuing" not in run("--resume", tmp_path / "m", *given, "--loco").stderr


@pytest.mark.slow
def test_time_includes_the_pass_that_computes_relatedness(run, tmp_path, monkeypatch):
    from_columns = Relatedness.from_columns.__func__

    def slowly(*args):
        time.sleep(1.0)
        return from_columns(*args)

    monkeypatch.setattr(Relatedness, "from_columns", classmethod(slowly))
    result = run("-k", 3, "--relatedness", "auto", "--json")
    assert result.json()["metadata"]["seconds"] > 1.0


def test_info_shows_variance_components(run, call, tmp_path):
    run("-k", 3, "--relatedness", "auto", "--loco", "-m", tmp_path / "m")
    text = call("info", tmp_path / "m").stdout
    assert "variance components: heritability 0." in text
    assert "without one of 3 groups: heritability 0." in text
    assert "sigma2_u" not in text


def test_merge(run, call, cohort, tmp_path):
    """Models of two chromosomes with one matrix merge; without it they have other targets."""
    for c in (1, 2, 3):
        given = [] if c == 3 else ["--relatedness", cohort[0] / "K.npy"]
        run("-k", 3, *given, "-m", tmp_path / f"m{c}", files=(f"chr{c}.bed",))
    call("merge", tmp_path / "m1", tmp_path / "m2", "--out", tmp_path / "m")
    merged = load(tmp_path / "m")
    assert merged.n_columns == 60
    result = call("merge", tmp_path / "m1", tmp_path / "m3", "--out", tmp_path / "n", code=1)
    assert "m3" in result.stderr
    assert "different targets, weights, relatedness or rows" in result.stderr


@pytest.mark.parametrize(
    ("options", "text", "code"),
    [
        (["--loco"], "--loco requires --relatedness auto", 2),
        (["--relatedness", "K.npy", "--loco"], "--loco requires --relatedness auto", 2),
        (["--relatedness", "auto", "--weights", "w"], "mutually exclusive", 2),
        (["--relatedness", "auto", "--loco", "--permutations", 99], "--permutations", 2),
        (["--relatedness", "auto", "--loco", "nothing"], "It has: chromosome. Hint", 1),
        (["--relatedness", "none.npy"], "none.npy", 1),
        (["--relatedness", "clinic.csv"], "--relatedness clinic.csv: ", 1),
        (["--relatedness", "small.npy"], "small.npy: all.bed has 60 rows, the matrix 55", 1),
        (["--relatedness", "used.npy"], "used.npy: all.bed has 60 rows, the matrix 58", 1),
        (["--relatedness", "Auto"], "did you mean auto?", 1),
        (["--relatedness", "titled.csv"], "numbers only, without header or row names", 1),
        (["--relatedness", "negative.npy"], "--relatedness negative.npy: ", 1),
        (["--relatedness", "uneven.npy"], "square matrix", 1),
        (["--relatedness", "auto", "--target-type", "count"], "--target-type count", 2),
        (["--relatedness", "auto", "--target-type", "binary"], "--target-type binary", 2),
        (["--relatedness", "auto", "--set", "pairwise=yes"], "single observations", 2),
        (["--relatedness", "auto", "--set", "score=mutual_info"], "single observations", 2),
    ],
)
def test_invalid_relatedness_options(options, text, code, run, cohort, monkeypatch):
    monkeypatch.chdir(cohort[0])
    np.save("small.npy", np.eye(N - 5))
    np.save("uneven.npy", np.zeros((N, 4)))
    np.save("used.npy", np.eye(N - 2))
    np.save("negative.npy", -np.eye(N))
    (cohort[0] / "titled.csv").write_text("a,b\n1,0\n0,1\n")
    error = run("-k", 3, *options, code=code).stderr
    assert text in error.replace(f"{cohort[0]}/", "")


def test_methods_that_are_refused(run, call, cohort):
    assert "SelectKBest" in run("--relatedness", "auto", "--loco", method="MRMR", code=2).stderr
    result = call(
        *("reduce", cohort[0] / "all.bed", "--method", "PCA", "--relatedness", "auto"), code=2
    )
    assert "requires a target" in result.stderr


def test_groups_file_has_one_group_per_line(run, cohort, tmp_path):
    (tmp_path / "g.csv").write_text("rs1,a,b\n")
    result = run("--relatedness", "auto", "--loco", tmp_path / "g.csv", code=1)
    assert "expected a name and a group in line 1" in result.stderr
    (tmp_path / "g.csv").write_text("".join(f"rs{j},a\n" for j in range(P)))
    result = run("--relatedness", "auto", "--loco", tmp_path / "g.csv", code=1)
    assert f"--loco {tmp_path / 'g.csv'}: Expected two groups or more" in result.stderr
    (tmp_path / "g.csv").write_text("rs1,a\nrs2,a\nrs1,b\n")
    result = run("--relatedness", "auto", "--loco", tmp_path / "g.csv", code=1)
    assert "Got: column 'rs1' in groups 'a' and 'b'" in result.stderr


def test_columns_without_a_group(run, cohort, tmp_path):
    groups = tmp_path / "g.csv"
    given = ("-k", 3, "--relatedness", "auto", "--loco", groups)
    groups.write_text("".join(f"snp{j},a{j % 2}\n" for j in range(P)))
    result = run(*given, code=1)
    assert f"none of {P} columns is in {groups}" in result.stderr
    groups.write_text("".join(f"rs{j},a{j % 2}\n" for j in range(P - 7)))
    result = run(*given, "-m", tmp_path / "m")
    assert f"7 columns have no group in --loco {groups}" in result.stderr
    assert list(load(tmp_path / "m").variance_components) == [None, "a0", "a1"]
    assert "have no group" not in run("-k", 3, "--relatedness", "auto", "--loco").stderr


def test_groups_of_numbered_columns_that_match_nothing(call, cohort, tmp_path):
    """The names are not known before the pass."""
    lines = [f"x{j}," + ",".join(map(str, column)) for j, column in enumerate(cohort[1].T)]
    (tmp_path / "x.csv").write_text("\n".join(lines) + "\n")
    np.save(tmp_path / "y.npy", cohort[2])
    (tmp_path / "g.txt").write_text("".join(f"rs{j} g{j % 3}\n" for j in range(P)))
    result = call(
        *("select", tmp_path / "x.csv", "--target-file", tmp_path / "y.npy", "-k", 3),
        *("--orientation", "variables", "--method", "SelectKBest", "--relatedness", "auto"),
        *("--loco", tmp_path / "g.txt"),
        code=1,
    )
    assert f"none of {P} columns is in" in result.stderr


def test_unknown_chromosome_forms_no_group(run, cohort, tmp_path):
    values = cohort[1]
    properties = {
        "iid": [f"p{i}" for i in range(N)],
        "sid": [f"rs{j}" for j in range(P)],
        "chromosome": [str(j // 30) for j in range(P)],
    }
    to_bed(tmp_path / "x.bed", values, properties=properties)
    given = ("-k", 3, "--relatedness", "auto", "--loco")
    result = run(*given, "-m", tmp_path / "m", files=(tmp_path / "x.bed",))
    assert "30 columns have no group in --loco chromosome" in result.stderr
    assert list(load(tmp_path / "m").variance_components) == [None, "1", "2"]


def test_many_groups_are_refused_before_a_pass(run, cohort, tmp_path, monkeypatch):
    wide = np.hstack([cohort[1], cohort[1]])
    properties = {"iid": [f"p{i}" for i in range(N)], "sid": [f"v{j}" for j in range(2 * P)]}
    to_bed(tmp_path / "x.bed", wide, properties=properties | {"bp_position": np.arange(2 * P) + 1})
    monkeypatch.setattr(Relatedness, "from_columns", None)
    given = ("-k", 3, "--relatedness", "auto", "--loco", "position")
    error = run(*given, files=(tmp_path / "x.bed",), code=1).stderr
    assert "expected at most 100 groups of columns. Got: 180, whose matrices of 58 rows" in error


def test_missing_dask_fails_before_the_pass(run, monkeypatch):
    from streamsel.distributed import cluster

    def missing():
        raise ImportError("no dask here")

    monkeypatch.setattr(cluster, "import_distributed", missing)
    monkeypatch.setattr(Relatedness, "from_columns", None)
    result = run("-k", 3, "--relatedness", "auto", "--workers", 2, code=1)
    assert "no dask here" in result.stderr


def test_interrupted_while_relatedness_is_computed(run, tmp_path, monkeypatch):
    def interrupted(self, block, kept):
        raise KeyboardInterrupt

    from streamsel.base import relatedness

    monkeypatch.setattr(relatedness._GramsByGroup, "add", interrupted)
    result = run("-k", 3, "--relatedness", "auto", "-m", tmp_path / "m", code=130)
    assert "interrupted" in result.stderr
    assert not (tmp_path / "m").exists()


def test_rows_after_columns(run, cohort, tmp_path):
    run("-k", 3, "--relatedness", "auto", "-m", tmp_path / "m")
    model = streamsel.load(tmp_path / "m")
    model.learn_one({f"rs{j}": 1.0 for j in range(P)}, 0.5)
    assert model.n_rows == N - LACKS.sum() + 1


def test_several_files_have_chromosome_metadata(cohort):
    stream = iter_files([cohort[0] / f"chr{c}.bed" for c in (1, 2, 3)])
    found = stream.column_metadata
    assert found["chromosome"].tolist() == ["1"] * 30 + ["2"] * 30 + ["3"] * 30
