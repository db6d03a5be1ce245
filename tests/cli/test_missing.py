"""Columns with missing values, and a method that supports them."""

import numpy as np
import pytest

from streamsel import PCA, ProbabilisticPCA, load
from streamsel.serialization.archive import save
from streamsel.stream import as_stream

METHOD = [
    "--method",
    "ProbabilisticPCA",
    "-q",
    2,
    "--orientation",
    "samples",
    "--max-categories",
    0,
]


@pytest.fixture
def gaps(rng):
    X = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 12)) + 0.3 * rng.normal(size=(40, 12))
    return np.where(rng.random(X.shape) < 0.2, np.nan, X)


@pytest.fixture
def path(table, gaps):
    columns = {f"v{j}": x for j, x in enumerate(gaps.T.tolist())}
    columns |= {"inf": [np.inf, *columns["v1"][1:]], "none": ["", *[np.nan] * 39]}
    columns |= {"text": [*"xy" * 20], "flat": [np.nan, *[2.0] * 39]}
    cells = {k: ["" if c != c else c for c in x] for k, x in columns.items()}  # noqa: PLR0124
    return table(**cells)


def test_observed_values_are_learnt(call, path, gaps, tmp_path):
    """By default, gaps are learnt as missing; a transform replaces them by means."""
    out, saved, again = (tmp_path / name for name in ("out.npy", "model", "again.npy"))
    result = call("reduce", path, *METHOD, "-o", out, "-m", saved)
    expected = ProbabilisticPCA(2)
    named = as_stream(gaps, [f"v{j}" for j in range(12)])
    expected.learn_columns(named)
    assert load(saved).loadings == expected.loadings
    warning, note = result.stderr.splitlines()
    assert warning.startswith("streamsel: warning: 3 of ")
    assert note == "streamsel: skipped 4 columns: 1 constant, 2 missing, 1 text"
    np.testing.assert_allclose(np.load(out), expected.embedding)
    call("transform", saved, path, "-o", again)
    np.testing.assert_allclose(np.load(again), expected.transform_many(named))


def test_missing_option_determines_what_is_learnt(call, path, tmp_path):
    assert "could be used" in call("reduce", path, *METHOD, "--missing", "skip", code=1).stderr
    stderr = call("reduce", path, *METHOD, "--missing", "error", code=1).stderr
    assert "Expected finite numbers in column 'v0'" in stderr
    saved = tmp_path / "model"
    call("reduce", path, *METHOD, "--missing", "mean", "-m", saved)
    assert load(saved).n_columns == 13  # including the column with an infinite value
    call("reduce", path, *METHOD, "--missing", "keep", "-m", saved)
    assert load(saved).n_columns == 12


def test_transform_imputes_like_the_run(call, path, tmp_path):
    """The setting `--missing mean` applies to transforms; an explicit parameter has priority."""
    out, saved, again = (tmp_path / name for name in ("out.npy", "model", "again.npy"))
    line = ["select", path, "-t", "v1", "-k", 4, "--drop", "inf,text", "--missing", "mean"]
    call(*line, "-m", saved, "-o", out)
    call("transform", saved, path, "-o", again)
    np.testing.assert_allclose(np.load(again), np.load(out))
    call(*line, "-m", saved, "--set", "missing=pass")
    call("transform", saved, path, "-o", again)
    assert np.isnan(np.load(again)).any()


@pytest.mark.parametrize("command", [["reduce", "--method", "PCA"], ["select", "-t", "v1"]])
def test_other_methods_refuse_missing_values(call, path, command):
    stderr = call(*command, path, "--missing", "keep", code=2).stderr
    assert "does not accept missing values" in stderr


def test_resumed_run_refuses_missing_values(call, path, tmp_path):
    saved, model = tmp_path / "model", PCA(2)
    model.learn_columns(np.eye(40)[:, :3], names=["v0", "v1", "v2"])
    metadata = {"command": "reduce", "columns_read": 3, "complete": False}
    save(model, saved, metadata)
    stderr = call("reduce", path, "--resume", saved, "--missing", "keep", code=1).stderr
    assert "PCA does not accept missing values" in stderr
