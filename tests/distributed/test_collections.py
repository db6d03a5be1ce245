"""Collections of Dask: arrays as columns, frames as rows."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from streamsel import MRMR, OSFS, PCA, ForwardSelection, SelectKBest
from streamsel.distributed import PartError, learn
from streamsel.stream import iter_npy
from tests.conformance.modes import bits, same

pytest.importorskip("distributed")
dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")


@pytest.fixture
def columns(rng):
    X = rng.normal(size=(50, 300))
    return X, X[:, 3] - X[:, 250] + 0.1 * X[:, 77]


@pytest.mark.parametrize("names", [None, [f"v{j}" for j in range(300)]])
def test_dask_arrays(columns, names, client):
    X, y = columns
    model, whole = SelectKBest(3), SelectKBest(3)
    summary = learn(
        model, da.from_array(X, chunks=(-1, 40)), y, names=names, client=client, fan_in=2
    )
    assert (summary.n_parts, summary.n_read, summary.n_bytes) == (8, 300, X.nbytes)
    whole.learn_target(y)
    whole.learn_columns(X, names)
    same(model, whole, in_parts=True)


def test_exact_mode_takes_a_second_pass_over_an_array(columns, client):
    X, y = columns
    model, whole = ForwardSelection(4, max_candidates=8, exact=True), ForwardSelection(4)
    learn(model, da.from_array(X, chunks=(-1, 40)) * 2.0, y, client=client, fan_in=2)
    whole.learn_target(y)
    whole.learn_columns(X)
    assert model.selected == whole.selected


def test_sparse_dask_blocks(columns, client):
    X, y = columns
    sparse = scipy.sparse.csc_array(np.where(np.abs(X) > 1.0, X, 0.0))
    blocks = [
        da.from_array(sparse[:, i : i + 100], chunks=-1, asarray=False) for i in (0, 100, 200)
    ]
    model, whole = SelectKBest(3), SelectKBest(3)
    learn(model, da.concatenate(blocks, axis=1), y, client=client)
    whole.learn_target(y)
    whole.learn_columns(sparse)
    same(model, whole, in_parts=True)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (da.ones((50, 30), chunks=(25, 10)), r"cut into 2 chunks.\nHint: array.rechunk\({0: -1}\)"),
        (da.ones(50), r"Expected a dask array of shape \(n, p\)"),
        (da.ones((50, 30))[:, da.ones(30) > 0], r"compute_chunk_sizes"),
        (da.ones((50, 30), dtype="complex64"), r"real numbers. Got: dtype complex64"),
        (da.ones((50, 30)).astype(str), r"real numbers. Got: dtype <U"),
    ],
)
def test_arrays_without_columns_are_refused(array, message, columns):
    with pytest.raises((TypeError, ValueError), match=message):
        learn(SelectKBest(3), array, columns[1], client="nowhere")


@pytest.mark.parametrize("kind", ["target", "dropped rows", "weights"])
@pytest.mark.parametrize("source", ["array", "stream"])
def test_rows_that_do_not_match_the_target_are_refused(kind, source, columns, tmp_path):
    X, y = columns
    np.save(tmp_path / "X.npy", X)
    array = da.from_array(X, chunks=(-1, 100))
    model, y = PCA(2) if kind == "weights" else SelectKBest(3), y[:40]
    if kind == "weights":
        model.learn_target(None, weights=np.ones(40))
    elif kind == "dropped rows":
        model.learn_target(np.where(y > 0.0, y, np.nan), missing="drop")
    before = bits(model)
    with pytest.raises(ValueError, match=r"a source of 40 rows, as the target has. Got: 50.\nHint"):
        learn(
            model,
            array if source == "array" else iter_npy(tmp_path / "X.npy"),
            y if kind == "target" else None,
            client="nowhere",
        )
    assert bits(model) == before


def test_rows_without_a_target_are_dropped(columns, client):
    X, y = columns
    model, whole = SelectKBest(3), SelectKBest(3)
    for one in (model, whole):
        one.learn_target(np.where(y > -1.0, y, np.nan), missing="drop")
    learn(model, da.from_array(X, chunks=(-1, 100)), client=client)
    whole.learn_columns(X)
    same(model, whole, in_parts=True)


@pytest.mark.parametrize("in_list", [False, True])
def test_delayed_values_are_refused_before_anything_is_read(in_list, columns):
    X, y = columns
    delayed = dask.delayed(X)
    with pytest.raises(TypeError, match=r"Got: .*Delayed.*\nHint: .*da.from_delayed"):
        learn(SelectKBest(3), [delayed] if in_list else delayed, y, client="nowhere")


def test_bad_block_is_named(columns, client):
    X, y = columns
    X[3, 250] = np.nan
    with pytest.raises(PartError, match=r"columns 200 to 299 of the dask array: .* column 250"):
        learn(SelectKBest(3), da.from_array(X, chunks=(-1, 100)), y, client=client, retries=0)


# ------------------------------------------------------------------------------------------- rows


@pytest.fixture
def rows(rng):
    frame = pd.DataFrame(rng.normal(size=(200, 12)), columns=[f"v{j}" for j in range(12)])
    frame["y"] = frame["v3"] - frame["v7"] + 0.1 * rng.normal(size=200)
    frame["label"] = np.where(frame["y"] > 0.0, "high", "low")
    return frame


@pytest.mark.parametrize(
    ("model", "target"),
    [
        (SelectKBest(3), "y"),
        (SelectKBest(3), "label"),
        (SelectKBest(3), ["y", "v11"]),
        (SelectKBest(3, covariates=("v0", "v1")), "y"),
        (PCA(2), None),
    ],
)
def test_frames_are_rows(model, target, rows, client):
    if target != "label":
        rows = rows.drop(columns="label")
    whole = model.clone()
    summary = learn(model, dd.from_pandas(rows, npartitions=7), target, client=client, fan_in=2)
    assert (summary.n_parts, summary.n_read, model.n_rows) == (7, 200, 200)
    asked = [] if target is None else target if isinstance(target, list) else [target]
    features = rows.drop(columns=asked)
    whole.learn_many(features, *([rows[target]] if asked else []))
    for name, value in whole.relevance.items():
        np.testing.assert_allclose(model.relevance[name], value, atol=1e-9)
    model.learn_one({"v0": 1.0}, *([1.0] if target == "y" else [])) if target in (
        "y",
        None,
    ) else None


def test_rows_are_added_to_earlier_rows(rows, client):
    rows = rows.drop(columns="label")
    model, whole = SelectKBest(3), SelectKBest(3)
    for one in (model, whole):
        one.learn_many(rows[:50].drop(columns="y"), rows["y"][:50])
    learn(model, dd.from_pandas(rows[50:], npartitions=3), "y", client=client)
    whole.learn_many(rows[50:].drop(columns="y"), rows["y"][50:])
    same(model, whole, 1e-9, in_parts=True)


def test_bad_partition_does_not_change_the_model(rows, client):
    model = SelectKBest(3)
    model.learn_one({"v0": 1.0}, 2.0)
    before = bits(model)
    with pytest.raises(PartError, match=r"partition \d of the dask frame: Expected a real"):
        learn(model, dd.from_pandas(rows, npartitions=5), "y", client=client, retries=0, fan_in=2)
    assert bits(model) == before


@pytest.mark.parametrize(
    ("model", "target", "further", "message"),
    [
        (SelectKBest(3), None, {}, "Expected y, the name of a column"),
        (PCA(2), "y", {}, "Expected no y"),
        (SelectKBest(3), "z", {}, "Expected y to be a column of the dask frame. Got: 'z'"),
        (SelectKBest(3), "y", {"covariates": "v0"}, "Expected covariates=None for"),
        (SelectKBest(3, fading_factor=0.1), "y", {}, "Expected fading_factor=0.0"),
        (MRMR(3, max_candidates=20), "nothing", {}, "Expected"),
        (OSFS(), "y", {}, "learns rows in windows"),
    ],
)
def test_invalid_frames_of_rows(model, target, further, message, rows):
    with pytest.raises(ValueError, match=message):
        learn(model, dd.from_pandas(rows, npartitions=2), target, client="nowhere", **further)
