"""`--covariate`: adjustment for columns of FILE or of the target's file."""

import signal

import numpy as np
import pytest

from streamsel import ForwardSelection, load
from streamsel.cli import run
from streamsel.serialization.archive import read_metadata
from tests.cli.conftest import write_text

N, P = 50, 30


@pytest.fixture(scope="module")
def study():
    """Return data in which age and site affect the target, g1 and g2, and g3 only the target."""
    rng = np.random.default_rng(4)
    age = rng.uniform(20, 80, N).round(1)
    site = rng.choice(["lund", "oslo", "rome"], N)
    X = rng.normal(size=(N, P)).round(4)
    X[:, 1] += age / 5
    X[:, 2] += 4.0 * (site == "oslo")
    y = (age / 5 + 3.0 * (site == "oslo") + X[:, 3] + 0.1 * rng.normal(size=N)).round(4)
    return {"y": y, "age": age, "site": site} | {f"g{j}": X[:, j] for j in range(P)}


@pytest.fixture(scope="module")
def folder(study, tmp_path_factory):
    """Return the study as one file, and as two: genes, and data of the patients."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    folder = tmp_path_factory.mktemp("study")
    parquet.write_table(pa.table(study), folder / "all.parquet")
    patients, genes = dict(list(study.items())[:3]), dict(list(study.items())[3:])
    parquet.write_table(pa.table(patients), folder / "patients.parquet")
    for name, columns in {"all": study, "patients": patients, "genes": genes}.items():
        rows = [list(columns), *map(list, zip(*columns.values(), strict=True))]
        write_text(folder / f"{name}.csv", rows, ",")
        lines = [[name, *values.tolist()] for name, values in columns.items()]
        write_text(folder / f"{name}.lines.tsv.gz", lines, "\t")
    return folder


def expected(study, covariates, k=4):
    """Return the model in Python, with indicators of all labels but one, which are equivalent."""
    sites = np.column_stack([study["site"] == name for name in ("lund", "oslo")]).astype(float)
    Z = np.column_stack([{"age": study["age"], "site": sites}[name] for name in covariates])
    model = ForwardSelection(k)
    model.learn_target(study["y"], covariates=Z)
    names = [f"g{j}" for j in range(P)]
    model.learn_columns(np.column_stack([study[name] for name in names]), names=names)
    return model


ONE, TWO = ["-t", "y"], ["--target-file"]


@pytest.mark.parametrize("covariates", [["age"], ["age", "site"]])
@pytest.mark.parametrize(
    "arguments",
    [
        ["all.csv", *ONE],
        ["all.parquet", *ONE],
        ["all.lines.tsv.gz", *ONE],
        ["genes.csv", "--orientation", "samples", *TWO, "patients.csv", *ONE],
        ["genes.lines.tsv.gz", "--orientation", "variables", *TWO, "patients.parquet", *ONE],
    ],
    ids=lambda arguments: arguments[0],
)
def test_selection_is_adjusted_for_covariates(
    call, study, folder, tmp_path, monkeypatch, arguments, covariates
):
    monkeypatch.chdir(folder)
    model, path = expected(study, covariates), tmp_path / "model"
    options = [option for name in covariates for option in ("--covariate", name)]
    options += ["--max-categories", "0"]
    found = call("select", *arguments, *options, "-k", 4, "-m", path, "--json").json()
    assert [row["name"] for row in found["selected"]] == model.selected
    assert model.selected[0] == {1: "g2", 2: "g3"}[len(covariates)]
    assert found["noise_floor"] == pytest.approx(model.noise_floor())
    assert found["columns_seen"] == P
    assert found["metadata"]["covariates"] == covariates
    # Learning from rows continues after the columns.
    again = load(path)
    assert again.covariates == tuple(covariates)
    patient = {"age": 30.0, "site": "oslo"}
    again.learn_one({"g3": 1.0} | {name: patient[name] for name in covariates}, 5.0)
    assert again.n_rows == N + 1


def test_other_columns_of_the_target_file_are_the_target(call, study, folder):
    arguments = ["--orientation", "samples", "--target-file", folder / "patients.csv"]
    rows = call("select", folder / "genes.csv", *arguments, "--covariate", "age,site", "-k4").rows()
    assert [row["name"] for row in rows] == expected(study, ["age", "site"]).selected


def test_comma_separated_covariates_in_reduce(call, folder):
    arguments = ["-t", "y", "--covariate", "age, site", "-q", 2, "--json"]
    found = call("reduce", folder / "all.csv", *arguments).json()
    assert found["parameters"]["covariates"] == ["age", "site"]
    variables = {row["variable"] for z in found["components"] for row in z["loadings"]}
    assert "g3" in variables
    assert variables.isdisjoint({"age", "site"})


def test_set_is_equivalent_to_covariate(call, folder):
    arguments = ["select", folder / "all.csv", "-t", "y"]
    one = call(*arguments, "--covariate", "age,site").stdout
    assert call(*arguments, "--set", "covariates=age,site").stdout == one
    result = call(*arguments, "--covariate", "age", "--set", "covariates=site", code=2)
    assert "covariates is given more than once" in result.stderr


def test_numbered_columns(call, study, tmp_path):
    X = np.column_stack([study[name] for name in study if name not in ("y", "site")])
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", study["y"])
    arguments = ["--target-file", tmp_path / "y.npy", "--covariate", "0", "-k", 4]
    model = tmp_path / "m"
    rows = call("select", tmp_path / "x.npy", *arguments, "-m", model).rows()
    selected = [f"g{int(row['name']) - 1}" for row in rows]
    assert selected == expected(study, ["age"]).selected
    assert load(model).covariates == (0,)


def test_numbered_columns_and_labels_elsewhere(call, study, folder, tmp_path):
    np.save(tmp_path / "x.npy", np.column_stack([study["age"], study["g3"], study["g4"]]))
    arguments = [tmp_path / "x.npy", "--target-file", folder / "patients.csv", "-t", "y"]
    rows = call("select", *arguments, "--covariate", "site", "-k", 1).rows()
    assert rows[0]["name"] == "0"
    result = call("select", *arguments, "--covariate", "0,site", code=1)
    assert "cannot be combined with labels as covariates" in result.stderr


def test_boolean_covariates_are_numeric(call, study, tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    flags = {name: study["site"] == name for name in ("lund", "oslo")}
    parquet.write_table(pa.table(study | flags), tmp_path / "x.parquet")
    arguments = ["-t", "y", "--drop", "site", "--covariate", "age,lund,oslo", "-k", 4]
    rows = call("select", tmp_path / "x.parquet", *arguments, "-m", tmp_path / "m").rows()
    assert [row["name"] for row in rows] == expected(study, ["age", "site"]).selected
    # The levels are 0 and 1, as in every file of columns.
    load(tmp_path / "m").learn_one({"g3": 1.0, "age": 30.0, "lund": 1, "oslo": 0}, 5.0)


@pytest.mark.parametrize("file", ["all.csv", "all.parquet", "all.lines.tsv.gz"])
@pytest.mark.parametrize("exact", [[], ["--max-candidates", 4, "--exact"]])
def test_exact_and_single_pass_runs_agree(call, study, folder, file, exact):
    arguments = ["-t", "y", "--covariate", "age,site", "-k", 4, *exact]
    rows = call("select", folder / file, *arguments).rows()
    assert [row["name"] for row in rows] == expected(study, ["age", "site"]).selected


@pytest.mark.parametrize("file", ["all.csv", "all.parquet", "all.lines.tsv.gz"])
@pytest.mark.parametrize("target", [["-t", "y"], ["--target-file", "patients.csv", "-t", "y"]])
def test_interrupted_run_is_resumed(call, study, folder, tmp_path, monkeypatch, file, target):
    from streamsel.stream import _blocks

    monkeypatch.chdir(folder)
    monkeypatch.setattr(_blocks, "BLOCK_BYTES", 8 * N * 8)
    monkeypatch.setattr(run, "compile_for", lambda *_, **__: None)
    learn, calls = ForwardSelection.learn_columns, []

    def learn_columns(self, *args, **kwargs):
        calls.append(None)
        if len(calls) == 2:
            signal.raise_signal(signal.SIGINT)
        return learn(self, *args, **kwargs)

    monkeypatch.setattr(ForwardSelection, "learn_columns", learn_columns)
    model, k = tmp_path / "model", ["-k", 4]
    drop = ["--drop", "y"] if "--target-file" in target else []
    arguments = [*target, *drop, *k, "--covariate", "age,site", "-m", model]
    call("select", file, *arguments, code=130)
    assert load(model).n_columns < P
    assert read_metadata(model)["covariates"] == ["age", "site"]
    found = call("select", file, "--resume", model, "--json").json()
    assert found["columns_seen"] == P
    whole = expected(study, ["age", "site"])
    assert [row["name"] for row in found["selected"]] == whole.selected


# Errors ------------------------------------------------------------------------------------------


def failure(result):
    assert not result.stdout
    assert result.stderr.startswith("streamsel: error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


@pytest.mark.parametrize(
    ("columns", "row"),
    [
        ({"age": [1, 2, "", 4, ""]}, 2),
        ({"age": [1, 2, "inf", "NA", 3]}, 2),
        ({"age": ["old", "NA", "young", "old", ""]}, 1),
    ],
    ids=["gap", "infinite", "labels"],
)
@pytest.mark.parametrize("lines", [False, True])
def test_missing_covariate_values(call, table, tmp_path, columns, row, lines):
    columns = {"y": [1, 2, 3, 5, 1], "a": [3, 1, 4, 1, 5]} | columns
    path = table(**columns)
    if lines:
        write_text(path, [[name, *values] for name, values in columns.items()], ",")
    message = failure(call("select", path, "-t", "y", "--covariate", "age", code=1))
    assert "covariate age: missing in 2 of 5 rows" in message
    assert f"first: row {row}" in message


def test_missing_covariate_values_of_parquet(call, tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {"y": [1.0, 2, 4], "a": [2.0, 1, 1], "n": [1, None, 3], "s": ["u", "v", None]}
    parquet.write_table(pa.table(columns), tmp_path / "x.parquet")
    for name, row in {"n": 1, "s": 2}.items():
        arguments = ["-t", "y", "--covariate", name]
        message = failure(call("select", tmp_path / "x.parquet", *arguments, code=1))
        assert f"covariate {name}: missing in 1 of 3 rows (first: row {row}" in message


@pytest.mark.parametrize("file", ["all.csv", "all.parquet", "all.lines.tsv.gz"])
def test_unknown_covariate(call, folder, file):
    message = failure(call("select", folder / file, "-t", "y", "--covariate", "aeg", code=1))
    assert "no such column: 'aeg'. Hint: did you mean 'age'" in message


def test_covariate_in_neither_file(call, folder, tmp_path):
    genes = folder / "genes.csv"
    arguments = ["--orientation", "samples", "--covariate", "aeg", "--target-file"]
    message = failure(call("select", genes, *arguments, folder / "patients.csv", code=1))
    assert f"not in {genes} and not in {folder / 'patients.csv'}: no such column: 'aeg'" in message
    assert "did you mean 'age'" in message
    values = tmp_path / "y.txt"
    values.write_text("".join(f"{i}\n" for i in range(N)))
    message = failure(call("select", genes, *arguments, values, code=1))
    assert f"{genes}: no such column: 'aeg'" in message


def test_a_target_file_of_covariates_only(call, folder, table):
    arguments = ["--target-file", table("z.csv", age=range(N)), "--covariate", "age"]
    genes = [folder / "genes.csv", "--orientation", "samples"]
    assert "Got: only covariates and identifiers" in failure(
        call("select", *genes, *arguments, code=1)
    )


def test_covariates_of_different_lengths(call, folder, table):
    path = table("short.csv", y=range(9), batch=["a", "b", "c"] * 3)
    arguments = ["--target-file", path, "-t", "y", "--covariate", "age,batch", "--drop", "y"]
    message = failure(call("select", folder / "all.lines.tsv.gz", *arguments, code=1))
    assert "covariates of equal length. Got: age with 50 and batch with 9 values" in message


def test_covariates_that_explain_the_whole_target(call, table):
    path = table(y=[1, 2, 3, 5], a=[2, 1, 4, 1], twice=[2, 4, 6, 10])
    message = failure(call("select", path, "-t", "y", "--covariate", "twice", code=1))
    assert "among the covariates" in message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-t", "y", "--covariate", "y"], "--covariate y: already used as target"),
        (["--no-target", "--covariate", "age"], "--covariate requires a target"),
        (
            [*ONE, "--covariate", "age", "--method", "SelectKBest", "--set", "score=margin"],
            "Expected covariates=None",
        ),
    ],
)
def test_usage(call, folder, arguments, message):
    result = call("select", folder / "all.csv", *arguments, code=2)
    assert message in result.stderr


def test_several_labels_need_pyarrow(call, table, monkeypatch):
    path = table(y=[1, 2, 3, 5], a=[2, 1, 4, 1], s=["u", "v", "u", "v"], t=["u", "u", "v", "v"])
    arguments = ["select", path, "-t", "y", "-k", 1]
    for name in ("s", "t"):
        call(*arguments, "--covariate", name, "--drop", "s,t")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    call(*arguments, "--covariate", "s", "--drop", "t")
    message = failure(call(*arguments, "--covariate", "s,t", code=1))
    assert 'pip install "streamsel[io]"' in message


def test_a_covariate_of_distinct_texts_is_named_as_the_cause(call, table):
    y = [0.5 + (i * 7) % 23 for i in range(30)]
    path = table(y=y, note=[f"text {i}" for i in range(30)], a=[(i * i) % 11 for i in range(30)])
    stderr = call("select", path, "-t", "y", "--covariate", "note", code=1).stderr
    assert "Hint: the covariates have 30 columns for 30 rows; a text counts one column" in stderr
    path = table(y=y, a=[(i * i) % 11 for i in range(30)], b=y)
    stderr = call("select", path, "-t", "y", "--covariate", "b", code=1).stderr
    assert "Hint: check that the target is not among the covariates" in stderr
