"""Text and dates in files: encoded, counted, and encoded in the same way in new files."""

import io

import numpy as np
import pandas as pd
import pytest

import streamsel
from streamsel import SelectKBest, load
from streamsel.cli import run
from streamsel.serialization.archive import read_metadata
from tests.seed import some

N = 60
RNG = np.random.default_rng(5)
CITY = RNG.choice(["Oslo", "Paris", "Rome", None], N)
FRAME = pd.DataFrame(
    {
        "id": [f"u{i:03d}" for i in range(N)],
        "city": CITY,
        "x": RNG.normal(size=N).round(6),
        "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(RNG.integers(0, 300, N), "D"),
        "lab": ["<0.1", *RNG.normal(size=N - 1).round(3).astype(str)],
        "plan": RNG.choice(["free", "pro"], N),
    }
)
FRAME["y"] = ((FRAME["city"] == "Rome") + 0.3 * FRAME["x"] + 0.2 * RNG.normal(size=N)).round(6)
NEW = FRAME.drop(columns="y").iloc[:8].assign(city=["Rome", "Bern", None, "Oslo"] * 2)


def written(df, folder, name):
    """Write a frame in the format of the file name."""
    path = folder / name
    if name.endswith(".parquet"):
        df.to_parquet(path)
    elif name.endswith(".feather"):
        df.to_feather(path, compression="uncompressed")
    elif name.startswith("lines"):
        df.astype({"day": str}).set_index("id").T.to_csv(path, sep="\t", na_rep="NA")
    else:
        df.to_csv(path, index=False)
    return path


FILES = ["table.parquet", "table.feather", "table.csv", "lines.tsv"]


@pytest.mark.parametrize("file", FILES)
def test_categories_are_encoded_and_transform_new_files(call, tmp_path, file):
    path, model = written(FRAME, tmp_path, file), tmp_path / "model"
    line = ["select", path, "-t", "y", "-k", 3, "--method", "SelectKBest", "-m", model]
    result = call(*line, "-o", tmp_path / "out.csv", "--json")
    expected = SelectKBest(3)
    expected.learn_target(FRAME["y"])
    expected.learn_columns(FRAME[["city", "x", "plan"]])
    # Dates as text are encoded as text.
    assert [row["name"] for row in result.json()["selected"]] == expected.selected
    metadata = read_metadata(model)
    of_table = file in ("table.parquet", "table.feather")
    assert metadata["encoded"] == {"categories": 2} | ({"dates": 1} if of_table else {})
    assert metadata["columns_made"] == 4 + 2 + (7 if of_table else 0)
    assert metadata["skipped"]["mixed"] == 1
    assert metadata["columns_read"] == (5 if file == "lines.tsv" else 6)
    assert f"encoded {3 if of_table else 2} columns (2 of categories" in result.stderr
    out = pd.read_csv(tmp_path / "out.csv")
    np.testing.assert_array_equal(out["city_Rome"], CITY == "Rome")
    new = call(
        "transform", model, written(NEW, tmp_path, file.replace(".", "new."))
    ).stdout.splitlines()
    assert new[0].split(",") == expected.in_use
    position = expected.in_use.index("city_Rome")
    assert [float(cells.split(",")[position]) for cells in new[1:]] == [1, 0, 0, 0] * 2


@pytest.mark.parametrize("file", ["table.csv", "lines.tsv"])
def test_rows_without_a_target_are_also_written(call, tmp_path, file):
    some_y = FRAME.assign(y=np.where(np.arange(N) % 9, FRAME["y"], np.nan))
    path, out = written(some_y, tmp_path, file), tmp_path / "out.csv"
    call("select", path, "-t", "y", "-k", 2, "--method", "SelectKBest", "-o", out)
    found = pd.read_csv(out)
    assert len(found) == N
    np.testing.assert_array_equal(found["city_Rome"], FRAME["city"] == "Rome")


def test_model_learnt_in_python_transforms_files(call, tmp_path):
    from streamsel import save

    model = SelectKBest(2)
    model.learn_target(FRAME["y"])
    model.learn_columns(FRAME[["city", "x"]])
    save(model, tmp_path / "model")
    lines = call("transform", tmp_path / "model", written(NEW, tmp_path, "new.parquet")).stdout
    assert lines.startswith("city_None,city_Oslo,city_Paris,city_Rome,x\n0,0,0,1,")


def test_dates_of_text_become_the_numbers_that_were_learnt(call, tmp_path):
    path, model = written(FRAME, tmp_path, "table.parquet"), tmp_path / "model"
    line = ["select", path, "-t", "y", "-k", 20, "--method", "SelectKBest", "-m", model]
    assert "day_month" in [row["name"] for row in call(*line, "--json").json()["selected"]]
    outputs = [
        call("transform", model, written(NEW, tmp_path, f"new.{suffix}")).stdout
        for suffix in ("parquet", "csv")
    ]
    found, of_text = (pd.read_csv(io.StringIO(output)) for output in outputs)
    np.testing.assert_array_equal(of_text, found)
    written(NEW.assign(day=NEW["day"].dt.strftime("%d/%m/%Y")), tmp_path, "new.csv")
    error = call("transform", model, tmp_path / "new.csv", code=1).stderr
    assert "Expected dates in column 'day'" in error


@pytest.mark.parametrize("columns", [["city", "x", "y"], ["city", "y"]])
def test_model_of_python_select_transforms_files(call, tmp_path, columns):
    """The shortcut encodes before the model learns, so that the model has no record of it."""
    result = streamsel.select(FRAME[columns], "y", k=2, method="SelectKBest")
    streamsel.save(result.model, tmp_path / "model")
    new = written(NEW, tmp_path, "new.csv")
    call("transform", tmp_path / "model", new, "-o", tmp_path / "out.csv")
    expected = load(tmp_path / "model").transform_many(NEW)
    np.testing.assert_allclose(pd.read_csv(tmp_path / "out.csv"), expected)


@pytest.mark.parametrize("file", ["table.parquet", "lines.tsv"])
def test_max_categories_of_zero_disables_encoding(call, tmp_path, file):
    path = written(FRAME, tmp_path, file)
    line = ["select", path, "-t", "y", "-m", tmp_path / "model", "--max-categories", 0]
    result = call(*line, "--json")
    skipped = {"text": 4 - (file == "lines.tsv"), "mixed": 1}
    assert result.json()["metadata"]["skipped"] == skipped
    assert result.json()["columns_seen"] == 1
    assert "encoded" not in result.stderr
    stderr = call(*line[:-1], 5, "--resume", code=1).stderr
    assert "the saved run has --max-categories 0" in stderr


def test_lower_max_categories_skips_more_columns(call, tmp_path):
    path = written(FRAME, tmp_path, "table.parquet")
    line = ["select", path, "-t", "y", "--max-categories", 2, "--list-skipped", "-"]
    result = call(*line)
    assert "city\ttext\tmore than 2 categories in 60 rows, such as" in result.stderr
    assert "encoded 2 columns (1 of categories, 1 of dates)" in result.stderr


def test_missing_error_refuses_columns_that_cannot_be_encoded(call, tmp_path):
    path = written(FRAME, tmp_path, "table.parquet")
    line = ["select", path, "-t", "y", "--missing", "error"]
    assert "column 'id'. Got: more than 30 categories" in call(*line, code=1).stderr
    call(*line, "--drop", "id,lab")


def test_identifiers_targets_and_other_roles_are_never_candidates(call, tmp_path):
    target = FRAME[["id"]].assign(kind=np.where(FRAME["y"] > 0.5, "high", "low"))
    path = written(FRAME.drop(columns="y"), tmp_path, "table.parquet")
    line = ["select", path, "--target-file", written(target, tmp_path, "target.csv")]
    line += ["-t", "kind", "--id", "id", "--covariate", "plan", "--method", "SelectKBest"]
    found = call(*line, "--set", "k=all", "--json").json()
    names = {row["name"] for row in found["selected"]}
    assert "city" in names
    assert not [name for name in names if name.startswith(("plan", "kind", "id"))]


@pytest.mark.parametrize("file", some(FILES, 2, "parts"))
def test_workers_give_the_same_result(call, tmp_path, file):
    pytest.importorskip("distributed")
    path = written(FRAME, tmp_path, file)
    line = ["select", path, "-t", "y", "-k", 3, "--method", "SelectKBest", "--json"]
    whole, parts = call(*line).json(), call(*line, "--workers", 1).json()
    assert parts["selected"] == whole["selected"]
    for key in ("encoded", "columns_made", "columns_read", "skipped"):
        assert parts["metadata"][key] == whole["metadata"][key]


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_interrupted_run_is_resumed(call, interrupt_after, monkeypatch, tmp_path, file, n):
    path, out = written(FRAME, tmp_path, file), tmp_path / "out.csv"
    line = ["select", path, "-t", "y", "-k", 4]
    whole = call(*line, "--json").json()
    with monkeypatch.context():
        interrupt_after(n)
        call(*line, "-m", tmp_path / "model", code=130)
        monkeypatch.undo()
    assert not read_metadata(tmp_path / "model")["complete"]
    rest = call(*line, "--resume", tmp_path / "model", "--json", "-o", out).json()
    for key in ("selected", "columns_seen", "noise_floor"):
        assert rest[key] == whole[key]
    for key in ("encoded", "columns_made", "columns_read", "skipped"):
        assert rest["metadata"][key] == whole["metadata"][key]
    header = out.read_text().splitlines()[0].split(",")
    assert header == load(tmp_path / "model").in_use


def test_merged_models_transform_files(call, tmp_path):
    models = []
    for number, names in enumerate((["city", "y"], ["x", "day", "y"])):
        path, model = tmp_path / f"part{number}.parquet", tmp_path / f"model{number}"
        FRAME[names].to_parquet(path)
        call("select", path, "-t", "y", "-k", 3, "--method", "SelectKBest", "-m", model)
        models.append(model)
    call("merge", *models, "-o", tmp_path / "model")
    metadata = read_metadata(tmp_path / "model")
    assert metadata["encoded"] == {"categories": 1, "dates": 1}
    found = call("transform", tmp_path / "model", written(NEW, tmp_path, "new.parquet")).stdout
    assert "city_Rome" in found.splitlines()[0]


@pytest.mark.parametrize("command", ["evaluate", "stability"])
def test_subsample_models_encode_columns(call, tmp_path, command):
    path = written(FRAME, tmp_path, "table.parquet")
    count = ["--folds", 3] if command == "evaluate" else ["--subsamples", 4]
    result = call(command, path, "-t", "y", "--method", "SelectKBest", "-k", 2, *count, "--json")
    assert "encoded 3 columns" in result.stderr
    if command == "stability":
        assert "city" in {row["name"] for row in result.json()["frequency"]}


def test_an_extractor_is_evaluated_on_single_columns(call, tmp_path):
    path = written(FRAME.drop(columns="id"), tmp_path, "table.parquet")
    line = ["evaluate", path, "-t", "y", "--method", "PCA", "-q", 2, "--folds", 3, "--json"]
    assert "encoded 3 columns" in call(*line).stderr


def test_groups_from_a_file_have_numeric_members_only(call, tmp_path):
    path = written(FRAME.assign(z=FRAME["x"] ** 2), tmp_path, "table.parquet")
    (tmp_path / "groups.tsv").write_text("x\tg\nz\tg\n")
    line = ["select", path, "-t", "y", "-k", 2, "--method", "SelectKBest"]
    result = call(*line, "--groups", tmp_path / "groups.tsv", "--json")
    assert [row["name"] for row in result.json()["selected"]] == ["g"]
    assert result.json()["metadata"]["skipped"]["text"] == 4


def test_indicators_exclude_rows_without_a_target(call, tmp_path):
    df = FRAME.assign(y=FRAME["y"].where(FRAME.index >= 6))
    path = written(df, tmp_path, "table.parquet")
    found = call("select", path, "-t", "y", "-k", 2, "--method", "SelectKBest", "--json").json()
    model = SelectKBest(2)
    model.learn_target(df["y"], missing="drop")
    model.learn_columns(df[["city", "x", "plan"]])
    assert {row["name"]: row["relevance"] for row in found["selected"]} == pytest.approx(
        model.relevance
    )


def test_random_projection_uses_numeric_columns_only(call, tmp_path):
    path, model = written(FRAME, tmp_path, "table.parquet"), tmp_path / "model"
    out = tmp_path / "out.npy"
    line = ["reduce", path, "--method", "RandomProjection", "-q", 2, "--drop", "y"]
    assert call(*line, "-m", model, "-o", out, "--json").json()["columns_seen"] == 1
    call("transform", model, path, "-o", tmp_path / "again.npy")
    np.testing.assert_allclose(np.load(tmp_path / "again.npy"), np.load(out))


# ------------------------------------------------------------------------------------------ until


@pytest.fixture
def endless(tmp_path, monkeypatch):
    """Return a file of 3,000 columns in blocks of 100; every 300th is related to the target."""
    from streamsel.stream import _blocks, _npy

    for module in (_blocks, _npy):
        if hasattr(module, "BLOCK_BYTES"):
            monkeypatch.setattr(module, "BLOCK_BYTES", 100 * 40 * 8)
    monkeypatch.setattr(run, "compile_for", lambda *_, **__: None)
    X, y = RNG.normal(size=(40, 3000)), RNG.normal(size=40)
    X[:, 299::300] += y[:, None]
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", y)
    return ["select", tmp_path / "x.npy", "--target-file", tmp_path / "y.npy"]


@pytest.mark.parametrize(
    ("options", "stopped"),
    [
        (["-k", 3, "--method", "SelectKBest", "--until", "certified"], "certified"),
        (["-k", 3, "--method", "ProjSe", "--until", "250"], "250 columns without a change"),
        (["--method", "AlphaInvesting", "--max-candidates", 2, "--until", "budget"], "budget"),
    ],
)
def test_until_stops_the_run(call, endless, tmp_path, options, stopped):
    result = call(*endless, *options, "-m", tmp_path / "model", "--json")
    found = result.json()
    assert found["stopped"]["until"] == stopped
    assert found["stopped"]["n_columns"] == found["columns_seen"] < 3000
    assert f"stopped after {found['columns_seen']:,} columns: {stopped}" in result.stderr
    assert found["metadata"]["complete"]
    model = load(tmp_path / "model")
    assert model.n_columns == found["columns_seen"]
    again = call(*endless, "--resume", tmp_path / "model", "--json").json()
    assert again["selected"] == found["selected"]


@pytest.mark.parametrize("n", [1, 5, 9])
def test_resumed_run_stops_at_the_same_column(call, endless, interrupt_after, tmp_path, n):
    line = [*endless, "-k", 3, "--until", "250", "--json"]
    whole = call(*line).json()
    interrupt_after(n)
    call(*line, "-m", tmp_path / "model", code=130)
    rest = call(*line, "--resume", tmp_path / "model").json()
    for key in ("stopped", "selected", "columns_seen"):
        assert rest[key] == whole[key]
    stderr = call(*endless, "--until", "300", "--resume", tmp_path / "model", code=1).stderr
    assert "--until 250" in stderr


def test_all_passes_of_an_exact_run_stop_at_the_same_column(call, endless):
    line = [*endless, "-k", 3, "--max-candidates", 3, "--exact", "--until", "250", "--json"]
    found = call(*line).json()
    assert found["stopped"]["n_columns"] == found["columns_seen"] < 3000
    assert found["n_certified"] == 3


@pytest.mark.parametrize(
    ("options", "code", "match"),
    [
        (["--until", "soon"], 2, "expected certified, budget or a number"),
        (["--until", "0"], 2, "expected certified, budget or a number"),
        (["--until", "budget"], 1, "--until budget: Expected AlphaInvesting or OnlineFDR"),
        (["--until", "100", "--workers", 2], 2, "--until cannot be combined with --workers"),
    ],
)
def test_invalid_stop_conditions(call, endless, options, code, match):
    assert match in call(*endless, *options, code=code).stderr


@pytest.mark.slow
@pytest.mark.parametrize("file", some(FILES, 2, "plots of encoded columns"))
def test_plots_and_reports_encode_columns_of_data(call, tmp_path, file):
    path, model = written(FRAME, tmp_path, file), tmp_path / "model"
    call("select", path, "-t", "y", "-k", 3, "--method", "MRMR", "-m", model)
    selected = load(model).in_use
    assert any(name.startswith("city_") for name in selected)
    call("plot", model, "--kind", "heatmap", "--data", path, "-o", tmp_path / "heat.svg")
    drawn = (tmp_path / "heat.svg").read_text()
    assert all(name in drawn for name in selected[:2])
    call("report", model, "--data", path, "-o", tmp_path / "page.html")
    assert "Correlation of selected variables" in (tmp_path / "page.html").read_text()
    drawn = (tmp_path / "page.html").read_text()
    assert "not shown" not in drawn


@pytest.mark.slow
@pytest.mark.parametrize("file", ["x.parquet", "x.csv"])
def test_report_of_selected_groups_shows_single_columns(call, tmp_path, file):
    path, model = written(FRAME, tmp_path, file), tmp_path / "model"
    call("select", path, "-t", "y", "-k", 2, "-m", model)
    learner = load(model)
    assert learner.members["x"] == ["x"]
    assert len(learner.members["city"]) > 1
    call("report", model, "--data", path, "-o", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Correlation of selected variables" in page
    assert "not shown: city." in page
    assert "target up to" in page
    # The same holds in Python, and if no selected variable is a single column.
    assert "target up to" in streamsel.report(learner, FRAME, y=FRAME["y"])
    call("select", path, "-t", "y", "-k", 1, "-m", model)
    only = load(model)
    assert [*only.members] == ["city"]
    page = streamsel.report(only, FRAME)
    assert "not shown: city." in page
    assert "Correlation of selected variables" in page
    assert "Correlation of selected variables" not in streamsel.report(only)


def test_shortfall_message_counts_groups_and_columns(call, tmp_path):
    path = written(FRAME[["city", "x", "y"]], tmp_path, "x.parquet")
    stderr = call("select", path, "-t", "y", "-k", 30).stderr
    assert "selected 2 of 30 requested: only 2 groups and columns could be used" in stderr


@pytest.mark.parametrize("method", ["SelectKBest", "ForwardSelection"])
def test_a_category_after_discarded_columns_is_learnt(call, tmp_path, method):
    numbers = {f"x{j}": np.random.default_rng(j).normal(size=N) for j in range(12)}
    path = written(FRAME[["y"]].assign(**numbers, city=CITY), tmp_path, "x.csv")
    result = call("select", path, "-t", "y", "-k", 2, "--max-candidates", 4, "--method", method)
    assert "skipped" not in result.stderr
    assert "city" in result.stdout
