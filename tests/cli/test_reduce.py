"""`streamsel reduce`: the components of the command are those of Python."""

import json

import numpy as np
import pytest

from streamsel import SOSPCA, load


def reduce(data, y, q=3, **parameters):
    model = SOSPCA(q, **parameters)
    model.learn_target(y)
    model.learn_columns(data.X, names=data.names)
    return model


def weights(model):
    return {
        (component, variable): weight
        for variable, row in model.loadings.items()
        for component, weight in row.items()
    }


@pytest.mark.parametrize(
    "file", ["data.parquet", "data.feather", "samples.csv", "variables.tsv.gz"]
)
def test_loadings_are_those_of_python(call, files, data, file):
    model = reduce(data, data.y)
    rows = call("reduce", files / file, "-t", "y", "--drop", "labels", "-q", 3).rows()
    found = {(row["component"], row["variable"]): float(row["weight"]) for row in rows}
    assert found == pytest.approx(weights(model), rel=1e-4)
    for row in rows:
        assert float(row["relevance"]) == pytest.approx(model.relevance[row["component"]], rel=1e-4)


def test_json(call, files, data):
    model = reduce(data, data.y)
    found = call("reduce", files / "data.parquet", "-t", "y", "-q", 3, "--json").json()
    found_weights = {
        (component["name"], loading["variable"]): loading["weight"]
        for component in found["components"]
        for loading in component["loadings"]
    }
    assert found_weights == pytest.approx(weights(model))
    relevances = [component["relevance"] for component in found["components"]]
    assert relevances == sorted(model.relevance.values(), reverse=True)


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        (["--rotation", "paper"], {"rotation": "paper"}),
        (["--signed"], {"signed": True}),
        (["--n-jobs", "-1"], {"n_jobs": -1}),
    ],
)
def test_options_of_the_learner(call, files, data, tmp_path, options, parameters):
    path = tmp_path / "model"
    call("reduce", files / "data.parquet", "-t", "y", "-q", 3, "-m", path, *options)
    model = load(path)
    expected = reduce(data, data.y, **parameters)
    assert model._get_params() == expected._get_params()
    assert weights(model) == pytest.approx(weights(expected))


def test_the_embedding_is_written(call, files, data, tmp_path):
    path = tmp_path / "z.npy"
    call("reduce", files / "data.parquet", "-t", "y", "-q", 3, "-o", path)
    np.testing.assert_allclose(np.load(path), reduce(data, data.y).embedding)


def test_noise_is_marked(call, tmp_path, rng):
    np.save(tmp_path / "x.npy", rng.normal(size=(20, 500)))
    np.save(tmp_path / "y.npy", rng.normal(size=20))
    found = call("reduce", tmp_path / "x.npy", "--target-file", tmp_path / "y.npy", "--json")
    for component in json.loads(found.stdout)["components"]:
        assert component["above_noise"] == (component["relevance"] > found.json()["noise_floor"])
