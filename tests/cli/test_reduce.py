"""`streamsel reduce`: the components equal those of Python."""

import json

import numpy as np
import pytest

from streamsel import SOSPCA, RandomProjection, RidgeComponents, load, registry

EITHER = pytest.mark.parametrize("learner", [RidgeComponents, SOSPCA])


def reduce(data, y, q=3, learner=RidgeComponents, **parameters):
    model = learner(q, **parameters)
    model.learn_target(y)
    model.learn_columns(data.X, names=data.names)
    return model


def weights(model):
    return {
        (component, variable): weight
        for variable, row in model.loadings.items()
        for component, weight in row.items()
    }


@EITHER
@pytest.mark.parametrize(
    "file", ["data.parquet", "data.feather", "samples.csv", "variables.tsv.gz"]
)
def test_loadings_equal_the_python_model(call, files, data, file, learner):
    model = reduce(data, data.y, learner=learner)
    options = ["-t", "y", "--drop", "labels", "-q", 3, "--method", learner.__name__]
    rows = call("reduce", files / file, *options).rows()
    found = {(row["component"], row["variable"]): float(row["weight"]) for row in rows}
    assert found == pytest.approx(weights(model), rel=1e-4)
    for row in rows:
        assert float(row["relevance"]) == pytest.approx(model.relevance[row["component"]], rel=1e-4)


def test_json(call, files, data):
    model = reduce(data, data.y)
    line = ["reduce", files / "data.parquet", "-t", "y", "--drop", "labels", "-q", 3]
    found = call(*line, "--json").json()
    found_weights = {
        (component["name"], loading["variable"]): loading["weight"]
        for component in found["components"]
        for loading in component["loadings"]
    }
    assert found_weights == pytest.approx(weights(model))
    relevances = [component["relevance"] for component in found["components"]]
    assert relevances == sorted(model.relevance.values(), reverse=True)


@pytest.mark.parametrize(
    ("learner", "options", "parameters"),
    [
        (SOSPCA, ["--method", "sospca", "--rotation", "paper"], {"rotation": "paper"}),
        (SOSPCA, ["--method", "sospca", "--signed"], {"signed": True}),
        (RidgeComponents, ["--n-jobs", "-1"], {"n_jobs": -1}),
        (RidgeComponents, ["--max-support", "5"], {"max_support": 5}),
        (
            RidgeComponents,
            ["--set", "relevance_power=1,4", "--set", "alpha=gcv"],
            {"relevance_power": (1.0, 4.0), "alpha": "gcv"},
        ),
    ],
)
def test_options_of_the_learner(call, files, data, tmp_path, learner, options, parameters):
    path = tmp_path / "model"
    line = ["reduce", files / "data.parquet", "-t", "y", "--drop", "labels", "-q", 3]
    call(*line, "-m", path, *options)
    model = load(path)
    expected = reduce(data, data.y, learner=learner, **parameters)
    assert model._get_params() == expected._get_params()
    assert weights(model) == pytest.approx(weights(expected))


def test_the_embedding_is_written(call, files, data, tmp_path):
    path = tmp_path / "z.npy"
    line = ["reduce", files / "data.parquet", "-t", "y", "--drop", "labels", "-q", 3]
    call(*line, "-o", path)
    np.testing.assert_allclose(np.load(path), reduce(data, data.y).embedding)


@pytest.fixture
def noise(tmp_path, rng):
    np.save(tmp_path / "x.npy", rng.normal(size=(20, 500)))
    np.save(tmp_path / "y.npy", rng.normal(size=20))
    return [tmp_path / "x.npy", "--target-file", tmp_path / "y.npy"]


def test_above_noise_compares_with_the_noise_floor(call, noise):
    found = call("reduce", *noise, "--method", "sospca", "--json")
    for component in json.loads(found.stdout)["components"]:
        assert component["above_noise"] == (component["relevance"] > found.json()["noise_floor"])


def test_no_component_of_noise_is_above_noise(call, noise):
    assert call("reduce", *noise, "--json").json()["n_above_noise"] == 0


@pytest.mark.parametrize("file", ["data.parquet", "variables.tsv.gz"])
def test_second_pass_finds_the_largest_loadings(call, files, data, file):
    """A second pass finds loadings that a pool of six columns does not contain."""
    options = ["--drop", "labels", "-q", 3, "--set", "max_loadings=4"]
    rows = call("reduce", files / file, "-t", "y", *options).rows()
    model = reduce(data, data.y, max_loadings=4)
    once = weights(model)
    model.learn_loadings(data.X, names=data.names)
    found = {(row["component"], row["variable"]): float(row["weight"]) for row in rows}
    assert found == pytest.approx(weights(model), rel=1e-4)
    assert found != pytest.approx(once, rel=1e-4)


def test_random_projection_without_a_target(call, tmp_path):
    """Only the names of variables are used; skipped columns are skipped again in a transform."""
    table = tmp_path / "table.csv"
    # Text and incomplete columns are skipped in learning, and again in the transform.
    table.write_text("id,a,b,c,said,gap\nx,1,2,3,u,1\ny,4,5,6,v,\nz,7,8,10,w,3\n")
    out, model, again = (tmp_path / name for name in ("out.csv", "model", "again.csv"))
    options = ["--orientation", "samples"]
    asked = ["--method", "RandomProjection", "-q", "2", "--drop", "id", "-o", out, "-m", model]
    call("reduce", table, *asked, *options)
    call("transform", model, table, "-o", again)
    expected = RandomProjection(2)
    expected.learn_columns([("a", [1, 4, 7]), ("b", [2, 5, 8]), ("c", [3, 6, 10])])
    assert out.read_text() == again.read_text()
    found = np.loadtxt(out, delimiter=",", skiprows=1)
    np.testing.assert_allclose(found, expected.embedding)


@pytest.mark.parametrize("method", ["KernelPCA", "LaplacianEigenmaps"])
def test_embedding_by_landmarks(call, tmp_path, method):
    """The rows of the file are placed exactly; others by two of its variables."""
    rng = np.random.default_rng(0)
    X, names = rng.normal(size=(30, 5)) * [1, 2, 3, 4, 5], list("abcde")
    table, out, model, again = (
        tmp_path / name for name in ("table.csv", "out.csv", "model", "again.csv")
    )
    lines = [names, *(map(repr, row) for row in X.tolist())]
    table.write_text("".join(",".join(line) + "\n" for line in lines))
    options = ["--orientation", "samples", "--set", "max_variables=2"]
    asked = ["--method", method, "-q", "2", "-o", out, "-m", model]
    shown = call("reduce", table, *asked, *options).rows()
    expected = registry.fetch(method)(2, max_variables=2)
    expected.learn_columns(X, names)
    assert [row["component"] for row in shown] == expected.components
    assert not any(row["variable"] for row in shown)
    found = np.loadtxt(out, delimiter=",", skiprows=1)
    np.testing.assert_allclose(found, expected.embedding, atol=1e-12)
    call("transform", model, table, "-o", again)
    rows = [dict(zip(names, x, strict=True)) for x in X.tolist()]
    placed = [list(expected.transform_one(row).values()) for row in rows]
    np.testing.assert_allclose(np.loadtxt(again, delimiter=",", skiprows=1), placed, atol=1e-12)
    report = call("info", model, "--json").json()
    assert (report["n_landmarks"], report["n_variables"]) == (30, 2)


@pytest.mark.parametrize(
    ("asked", "n"), [("0.5", 1), ("0.999", 3), ("elbow", 1), ("profile", 1), ("2", 2)]
)
def test_number_of_components_determined_by_the_data(call, table, rng, tmp_path, asked, n):
    X = rng.normal(size=(20, 3)) @ rng.normal(size=(3, 12)) * np.r_[20.0, np.ones(11)]
    path = table(**{f"v{j}": x for j, x in enumerate(X.T.tolist())})
    line = ["reduce", path, "--orientation", "samples", "--method", "PCA", "-q", asked]
    done = call(*line, "-m", tmp_path / "m", "-o", tmp_path / "out.csv")
    assert "asked for" not in done.stderr
    assert len((tmp_path / "out.csv").read_text().splitlines()[0].split(",")) == n
    assert load(tmp_path / "m").n_components_found == n


def test_parallel_analysis_that_keeps_no_component_fails(call, table, rng):
    path = table(**{f"v{j}": rng.normal(size=20).tolist() for j in range(12)})
    line = ["reduce", path, "--orientation", "samples", "--method", "PCA", "-q", "parallel"]
    stderr = call(*line, code=1).stderr
    assert "nothing was learnt: n_components='parallel' keeps none" in stderr


def test_invalid_number_of_components(call, table):
    path = table(a=[1, 2, 4, 4], b=[2, 1, 1, 1])
    line = ["reduce", path, "--method", "PCA", "-q", "half"]
    stderr = call(*line, code=2).stderr
    assert "-q: expected one of 'elbow', 'profile', 'parallel' or an int in the range" in " ".join(
        stderr.split()
    )


@pytest.mark.parametrize(
    ("method", "options", "why"),
    [
        ("PCA", [], "built 3 of {q} requested: the columns vary in no more directions"),
        (
            "Discriminant",
            ["-t", "kind"],
            "built 2 of {q} requested: there is one component less than there are",
        ),
        (
            "Discriminant",
            ["-t", "size", "--target-type", "numeric"],
            "built 1 of {q} requested: there are as many components as",
        ),
        (
            "PrivateFeatures",
            ["-t", "size"],
            "built 2 of {q} requested: apart from the sensitive attribute the",
        ),
        (
            "PLS",
            ["-t", "size"],
            "built 3 of {q} requested: the columns are uncorrelated with what the",
        ),
        (
            "SupervisedPCA",
            ["-t", "size"],
            "built 3 of {q} requested: the columns kept, of max_candidates=500, v",
        ),
        (
            "SupervisedPCA",
            ["-t", "size", "--set", "threshold=.99"],
            "nothing was learnt: no column is",
        ),
        (
            "RidgeComponents",
            ["-t", "size"],
            "built 3 of {q} requested: the columns vary in no more directions",
        ),
    ],
)
@pytest.mark.parametrize("q", [5, 25])
def test_reason_for_fewer_components_is_given(call, table, rng, method, options, why, q):
    """The reason is given whether or not there are as many columns or rows as requested."""
    X = rng.normal(size=(20, 3)) @ rng.normal(size=(3, 12)) * np.r_[20.0, np.ones(11)]
    columns = {f"v{j}": x for j, x in enumerate(X.T.tolist())}
    columns |= {"kind": [*"abca" * 5], "size": rng.normal(size=20).tolist()}
    path = table(**columns)
    nothing = why.startswith("nothing")
    others = [name for name in ("kind", "size") if name not in options]
    asked = ["--method", method, "-q", q, "--orientation", "samples", "--drop", ",".join(others)]
    stderr = call("reduce", path, *asked, *options, code=1 if nothing else 0).stderr
    assert why.format(q=q) in stderr
