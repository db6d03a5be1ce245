"""Transforms of many rows equal those of single rows, for every type of input."""

import importlib
from collections import ChainMap, defaultdict

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from streamsel.stream import as_stream
from tests.conformance.modes import COLUMN_MODES, build, learnt, over, rotated, sampled, target_of

FRAMES = ("pandas", "polars", "pyarrow")
ROWS = {"array": np.asarray, "csc": sp.csc_array, "csr": sp.csr_array, "stream": as_stream}


def frame(X, names, library):
    module = importlib.import_module(library)
    table = {name: np.ascontiguousarray(X[:, j]) for j, name in enumerate(names)}
    return module.table(table) if library == "pyarrow" else module.DataFrame(table)


@pytest.fixture(name="X")
def rows():
    rng = np.random.default_rng(6)
    return rng.normal(size=(30, 12)) * (rng.random((30, 12)) < 0.6)


@rotated(COLUMN_MODES, "container", [*ROWS, *FRAMES])
def test_transform_many_equals_transform_one(mode, container, X):
    names = [f"v{j}" for j in range(12)] if container in FRAMES else list(range(12))
    model = learnt(mode, X, target_of(mode, X), names)
    expected = [model.transform_one(dict(zip(names, row, strict=True))) for row in X.tolist()]
    if container in FRAMES:
        handed_in = frame(X, names, container)
        found = model.transform_many(handed_in)
        assert type(found) is type(handed_in)
        found = nw.from_native(found)
        assert found.columns == list(expected[0])
        found = found.to_numpy()
    else:
        found = model.transform_many(ROWS[container](X))
        assert type(found) is np.ndarray
        assert found.dtype == np.float64
    assert found.shape == (30, len(expected[0]))
    np.testing.assert_allclose(found, [list(row.values()) for row in expected], atol=1e-12)


@sampled(COLUMN_MODES)
def test_pandas_index_and_non_string_labels_are_kept(mode, X):
    table = pd.DataFrame(X[:, :4], index=range(50, 80))
    for labels in ([0, 1, 2, 3], [5, 40, 6, 7], [("a", 1), ("a", 2), ("b", 1), 9]):
        table.columns = pd.Index(labels, tupleize_cols=False)
        model = learnt(mode, table, target_of(mode, X))
        found = model.transform_many(table)
        assert list(found.index) == list(range(50, 80))
        one = [list(model.transform_one(row).values()) for row in table.to_dict("records")]
        np.testing.assert_allclose(found.to_numpy(), one, rtol=1e-12)


@sampled(COLUMN_MODES)
def test_array_before_learning(mode, X):
    model = build(mode)
    found = model.transform_many(X)
    if mode.by_name:
        rows = [dict(enumerate(row)) for row in X.tolist()]
        one = [list(model.transform_one(row).values()) for row in rows]
        np.testing.assert_allclose(found, one, rtol=1e-12, atol=1e-12)
    elif hasattr(model, "components"):
        np.testing.assert_array_equal(found, np.zeros((30, len(model.components))))
    else:
        assert found is X


EXTRACTORS = {
    name: mode for name, mode in COLUMN_MODES.items() if hasattr(build(mode), "components")
}


@over(EXTRACTORS)
def test_rows_of_any_order_and_mapping_type(mode, X):
    model = learnt(mode, X, target_of(mode, X), [f"v{j}" for j in range(12)])
    row = {f"v{j}": value for j, value in enumerate(X[0].tolist())}
    expected = model.transform_one(row)
    # Transforms by name have no unknown variables.
    new = {} if mode.by_name else {f"new {j}": 1.0 for j in range(15)}
    turned = new | dict(reversed(row.items()))
    lacking = {name: value for name, value in turned.items() if value}
    for same in (turned, ChainMap({}, turned), lacking):
        assert model.transform_one(same) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    # A defaultdict is not filled with new names.
    ready = defaultdict(lambda: 7.0, lacking)
    assert model.transform_one(ready) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert ready == lacking
