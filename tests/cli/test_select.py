"""`streamsel select`: every format, every source of a target, and the options of the learner."""

import functools

import numpy as np
import pytest

from streamsel import ForwardSelection, ProjSe, load, shortcuts

# Files with the same columns and the same target.
WITH_TARGET = ["data.parquet", "data.feather", "samples.csv", "samples.tsv.gz", "variables.csv"]


def select(data, y, k=5, X=None, cls=ForwardSelection, **parameters):
    model = cls(k, **parameters)
    model.learn_target(y)
    model.learn_columns(data.X if X is None else X, names=data.names)
    return model


@pytest.mark.parametrize("file", WITH_TARGET)
def test_every_format_equals_the_python_model(call, files, data, file):
    model = select(data, data.y)
    result = call("select", files / file, "--target", "y", "--drop", "labels", "-k", 5)
    assert not result.stderr
    rows = result.rows()
    assert [row["name"] for row in rows] == model.selected
    for row in rows:
        assert float(row["relevance"]) == pytest.approx(model.relevance[row["name"]], rel=1e-4)
        assert float(row["score"]) == pytest.approx(model.scores[row["name"]], rel=1e-4)
        assert int(row["round"]) == model.rounds[row["name"]]
        assert row["certified"] == "yes"
        above = model.relevance[row["name"]] > model.noise_floor()
        assert row["above_noise"] == ("yes" if above else "no")


@pytest.mark.parametrize("target", ["y.npy", "y.txt", "y.csv", "data.parquet"])
def test_npy_and_a_target_file(call, files, data, target):
    model = select(data, data.y)
    which = ["--target", "y"] if target == "data.parquet" else []
    rows = call("select", files / "data.npy", "--target-file", files / target, *which, "-k5").rows()
    assert [f"v{row['name']}" for row in rows] == model.selected


def test_npy_columns_are_named_by_number(call, files, data):
    rows = call("select", files / "data.npy", "--target", "7", "--drop", "3,20", "-k", 2).rows()
    names = [name for name in data.names if name not in {"v7", "v3", "v20"}]
    model = ForwardSelection(2)
    model.learn_target(data.X[:, 7])
    model.learn_columns(np.delete(data.X, [3, 7, 20], axis=1), names=names)
    assert [f"v{row['name']}" for row in rows] == model.selected


@pytest.mark.parametrize("file", WITH_TARGET)
def test_labels_are_classes(call, files, data, file):
    model = select(data, data.labels)
    found = call("select", files / file, "--target", "labels", "--drop", "y", "-k", 5, "--json")
    assert [row["name"] for row in found.json()["selected"]] == model.selected


def test_labels_from_a_file(call, files, data):
    arguments = ["--target-file", files / "labels.txt", "--orientation", "variables"]
    line = ["select", files / "variables.csv", *arguments, "--drop", "y,labels"]
    rows = call(*line, "-k", 5).rows()
    assert [row["name"] for row in rows] == select(data, data.labels).selected


@pytest.mark.parametrize("target", [["-t", "v0,v1"], ["-t", "v0", "-t", "v1"]])
def test_several_targets(call, files, data, target):
    model = ForwardSelection(3)
    model.learn_target(data.X[:, :2])
    model.learn_columns(data.X[:, 2:], names=data.names[2:])
    rows = call("select", files / "data.parquet", *target, "--drop", "y", "-k", 3).rows()
    assert [row["name"] for row in rows] == model.selected


def test_several_targets_with_labels_among_them(call, files):
    rows = call("select", files / "data.parquet", "-t", "labels,y", "-k", 3).rows()
    assert rows[0]["name"] == "v7"


def test_a_value_per_line_may_be_quoted(call, files, data, tmp_path):
    """As R and pandas write text, and pandas an empty text."""
    line = ["select", files / "data.parquet", "--drop", "labels", "-k", 3, "--target-file"]
    for values, missing in ((data.y, "NA"), (data.labels, "")):
        found = []
        for quote in ("", '"'):
            path = tmp_path / "values.txt"
            path.write_text("".join(f"{quote}{value}{quote}\n" for value in [missing, *values[1:]]))
            result = call(*line, path)
            found.append((result.stdout, result.target))
            assert "1 of 60 rows has no target" in result.stderr
        assert found[0] == found[1]


def test_all_columns_of_a_target_file_are_named(call, files, data, tmp_path):
    table = np.column_stack([data.y, data.y**2])
    np.savetxt(tmp_path / "two.csv", table, delimiter=",", header="one,two", comments="")
    target = call("select", files / "data.parquet", "--target-file", tmp_path / "two.csv").target
    assert target == "2 numeric columns (one, two)"


def test_no_target(call, files, data):
    """ForwardSelection needs a target; without one, ProjSe selects by default."""
    model = ProjSe(4)
    model.learn_target(None)
    model.learn_columns(data.X, names=data.names)
    rows = call("select", files / "data.parquet", "--no-target", "--drop", "y", "-k", 4).rows()
    assert [row["name"] for row in rows] == model.selected
    assert {row["above_noise"] for row in rows} == {""}


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        (
            ["--kernel", "poly", "--degree", 2, "--coef0", 1],
            {"kernel": "poly", "degree": 2, "coef0": 1},
        ),
        (["--kernel", "rbf", "--gamma", 0.01], {"kernel": "rbf", "gamma": 0.01}),
        (["--max-candidates", 10], {"max_candidates": 10, "exact": True}),
        (["--max-candidates", 10, "--no-exact"], {"max_candidates": 10}),
        (["--max-candidates", 10, "--checkpoint", 60], {"max_candidates": 10}),
        (["--on-rank-exhausted", "stop"], {"on_rank_exhausted": "stop"}),
        (["--n-jobs", 2], {"n_jobs": 2}),
    ],
    ids=["poly", "rbf", "exact", "pooled", "checkpoint", "stop", "threads"],
)
def test_options_of_the_learner(call, files, data, tmp_path, options, parameters):
    model = select(data, data.y, cls=ProjSe, **parameters)
    path = tmp_path / "model"
    arguments = ["-t", "y", "--drop", "labels", "-k", 5, "--model", path, *options]
    arguments += ["--method", "ProjSe"]
    rows = call("select", files / "data.parquet", *arguments).rows()
    assert [row["name"] for row in rows] == model.selected
    assert load(path)._get_params() == model._get_params()


@pytest.mark.parametrize("file", ["csv", "parquet", "float", "npy", "txt", "h5ad"])
def test_integers_are_classes_in_every_format(call, tmp_path, table, rng, file):
    """Integers are classes in every format, also as floats in Parquet."""
    X = rng.normal(size=(30, 3))
    y = rng.integers(0, 3, size=30)
    columns = {"y": y, "a": X[:, 0], "b": X[:, 1], "c": X[:, 2]}
    path, given = table(**columns), ["-t", "y"]
    if file in ("parquet", "float"):
        pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        columns["y"] = y.astype(float) if file == "float" else y
        path = tmp_path / "table.parquet"
        parquet.write_table(pa.table(columns), path)
    elif file in ("npy", "txt"):
        path, given = tmp_path / "X.npy", ["--target-file", tmp_path / f"y.{file}"]
        np.save(path, X)
        (np.save if file == "npy" else np.savetxt)(given[1], y)
    elif file == "h5ad":
        anndata, pd = pytest.importorskip("anndata"), pytest.importorskip("pandas")
        path = tmp_path / "cells.h5ad"
        obs = pd.DataFrame({"y": y.astype(float)}, index=[f"c{i}" for i in range(30)])
        anndata.AnnData(X, obs=obs, var=pd.DataFrame(index=["a", "b", "c"])).write_h5ad(path)
    call = functools.partial(call, "select", path, *given, "-k", 1)
    model = ForwardSelection(1, target_type="class")
    model.learn_target(y)
    model.learn_columns(X, names=["a", "b", "c"])
    sizes = [f"{k} ({n} rows)" for k, n in enumerate(np.bincount(y).tolist())]
    described = f"3 classes: {', '.join(sizes)}"
    auto = call("--json")
    assert auto.json()["target"] == described
    assert (
        auto.target
        == f"{described} (inferred as classes; --target-type numeric treats it as numeric)"
    )
    relevance = pytest.approx(model.relevance[model.selected[0]])
    assert auto.json()["selected"][0]["relevance"] == relevance
    assert call("--target-type", "class", "--json").json()["target"] == described
    numeric = call("--target-type", "numeric", "--json")
    assert numeric.target == numeric.json()["target"] == "numeric, 0 to 2"
    assert numeric.json()["selected"][0]["relevance"] != relevance


@pytest.mark.slow
def test_digits_are_classes_in_every_format(call, tmp_path):
    """As classes, the first digit pixel has relevance .78, not .39; nested folds give accuracy."""
    digits = pytest.importorskip("sklearn.datasets").load_digits()
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    names = {f"p{j}": x for j, x in enumerate(digits.data.T)}
    path = tmp_path / "digits.parquet"
    parquet.write_table(pa.table(names | {"digit": digits.target.astype(float)}), path)
    found = call("select", path, "-t", "digit", "-k", 1, "--json").json()
    assert found["target"] == "10 classes, 174 to 183 rows each"
    assert found["selected"][0]["relevance"] > 0.75
    judged = call("evaluate", path, "-t", "digit", "-k", 10, "--folds", 2, "--json").json()
    assert judged["is_class"] is True
    assert judged["scores"][0]["score"] == "balanced_accuracy"


def test_loss_of_lasso_follows_the_target(call, table, rng):
    y = rng.integers(0, 2, size=30)
    path = table(y=y, many=y + 2 * (np.arange(30) % 2), a=rng.normal(size=30), b=y - 0.5)
    given = ["select", path, "--method", "Lasso", "-k", 1, "--drop", "many,y", "--json"]
    two = call(*given, "-t", "y")
    sizes = f"2 classes: 0 ({(y == 0).sum()} rows), 1 ({(y == 1).sum()} rows)"
    assert two.json()["target"] == f"{sizes}; logistic loss"
    assert two.target.startswith(f"{sizes}; logistic loss (inferred as classes; --target-type")
    squares = call(*given, "-t", "y", "--set", "family=gaussian")
    assert squares.target == squares.json()["target"] == "numeric, 0 to 1"
    message = call(*given, "-t", "many", code=1).stderr
    assert "as --set family=auto requires. Got: 4 classes. Hint: --set family=logistic" in message
    assert "--target-type numeric as a quantity" in message


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--method", "SOSPCA", "--set", "signed=yes"], 1, "as --set signed=yes requires"),
        (["--method", "SOSPCA", "--set", "signed=yes"], 1, "Hint: --target-type numeric takes"),
        (["--method", "Discriminant", "--drop", "w"], 1, "--target-type numeric treats numbers"),
    ],
)
def test_errors_about_the_target_name_the_options(call, table, options, code, message):
    y = range(20) if "Discriminant" in options else [0, 1, 2, 3] * 5
    path = table(y=y, w=range(20), a=[1, 5, 2, 6, 4] * 4)
    kind = ["--target-type", "class"] if "Discriminant" in options else []
    assert message in call("reduce", path, "-t", "y", *kind, *options, code=code).stderr


def test_json_has_all_results(call, files, data):
    line = ["select", files / "data.parquet", "-t", "y", "-k", 3, "--max-categories", 0]
    found = call(*line, "--json").json()
    assert found["class"] == "ForwardSelection"
    assert found["parameters"]["k"] == 3
    assert found["rows"] == 60
    assert found["columns_seen"] == 40
    assert 0 < found["noise_floor"] < 1
    assert found["n_certified"] == 3
    assert [row["name"] for row in found["selected"]] == select(data, data.y, k=3).selected
    metadata = found["metadata"]
    assert metadata["columns_read"] == 41
    assert metadata["complete"]
    assert metadata["skipped"] == {"text": 1}
    assert metadata["target"] == ["y"]


def test_names_with_markup_and_quotes(call, table):
    columns = {"y": [1, 2, 3, 5], "[red]x[/red]": [1, 2, 3, 4], 'a,"b"': [3, 1, 2, 2]}
    rows = call("select", table(**columns), "-t", "y", "-k", 2).rows()
    assert [row["name"] for row in rows] == ["[red]x[/red]", 'a,"b"']
    rows = call("select", table(**columns), "-t", '"a,""b"""', "-k", 1).rows()
    assert rows[0]["name"] in {"y", "[red]x[/red]"}


def test_orientation_is_inferred_from_the_target_name(call, tmp_path):
    path = tmp_path / "lines.csv"
    path.write_text("y,1,2,3,5\na,1,2,3,4\nb,4,1,1,2\n")
    assert [row["name"] for row in call("select", path, "-t", "y", "-k", 1).rows()] == ["a"]
    path.write_text("gene,s1,s2,s3,s4\na,1,2,3,4\ny,1,2,3,5\n")
    assert [row["name"] for row in call("select", path, "-t", "y", "-k", 1).rows()] == ["a"]


def test_orientation_is_seen_below_a_line_break_in_the_header(call, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text('"a","b\nc","y"\n"1","3","1"\n"2","1","2"\n"3","2","3"\n"4","2","5"\n')
    assert [row["name"] for row in call("select", path, "-t", "y", "-k", 1).rows()] == ["a"]
    assert shortcuts.select(path, "y", k=1).selected == ["a"]
    # A quote in a name of a line is not closed.
    path.write_text('5" pipe,1,2,3,4\nb,4,1,1,2\ny,1,2,3,5\n')
    assert [row["name"] for row in call("select", path, "-t", "y", "-k", 1).rows()] == ['5" pipe']


def test_a_name_with_a_line_break(call, tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    y = np.arange(6.0) ** 2
    parquet.write_table(pa.table({"a\nb": y, "x": y[::-1]}), tmp_path / "x.parquet")
    rows = call("select", tmp_path / "x.parquet", "-t", '"a\nb"').rows()
    assert [row["name"] for row in rows] == ["x"]
    result = call("select", tmp_path / "x.parquet", "-t", "a\nb", code=2)
    assert "double quotes" in result.stderr
