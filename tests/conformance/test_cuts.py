"""Blocks, threads, memory layout and names of columns do not change decisions or state."""

import importlib

import numpy as np
import scipy.sparse as sp

from streamsel.stream import as_stream
from tests.conformance.modes import (
    COLUMN_MODES,
    IN_PIECES,
    bits,
    build,
    data,
    fresh,
    learnt,
    over,
    rotated,
    same,
    sampled,
    target_of,
)


@over(IN_PIECES)
def test_result_does_not_depend_on_the_split(mode):
    X, y = data(mode, c=3)
    whole = learnt(mode, X, y)
    for size in (2, 7, 64, 159):
        parts = fresh(mode, y)
        for start in range(0, X.shape[1], size):
            parts.learn_columns(X[:, start : start + size])
        same(whole, parts)


@over(IN_PIECES)
def test_columns_learnt_one_at_a_time(mode):
    X, y = data(mode)
    single = fresh(mode, y)
    for j in range(X.shape[1]):
        single.learn_column(j, X[:, j])
    same(learnt(mode, X, y), single)


@over(COLUMN_MODES)
def test_same_split_is_bit_identical_for_every_n_jobs(mode):
    """The data are large enough for several threads, dense and sparse."""
    X, y = data(mode, n=1200, p=240)
    scattered = sp.csc_array(X * (np.random.default_rng(1).random(X.shape) < 0.95))
    for columns in (X, scattered):
        one, two, three = (learnt(mode, columns, y, n_jobs=jobs) for jobs in (1, 2, 3))
        assert bits(one) == bits(two) == bits(three)


def frame(library):
    def build(X):
        module = importlib.import_module(library)
        table = {f"v{j}": np.ascontiguousarray(X[:, j]) for j in range(X.shape[1])}
        return module.table(table) if library == "pyarrow" else module.DataFrame(table)

    return build


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


# Containers of the same integers, each with a name.
CONTAINERS = {
    **{
        name: (lambda X, name=name: X.astype(name))
        for name in ("float32", "int8", "uint8", "int16", "int64", "uint64", ">f8", ">i4")
    },
    "C order": np.ascontiguousarray,
    "F order": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "backwards": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "read-only": read_only,
    "stream": as_stream,
    "pairs": lambda X: [(j, X[:, j]) for j in range(X.shape[1])],
    "generator": lambda X: ((j, X[:, j]) for j in range(X.shape[1])),
    "lists": lambda X: [(j, X[:, j].tolist()) for j in range(X.shape[1])],
    "csc": sp.csc_array,
    "csr": sp.csr_array,
    "csc matrix": sp.csc_matrix,
    "csc int8": lambda X: sp.csc_array(X.astype(np.int8)),
    "csc float32": lambda X: sp.csc_array(X.astype(np.float32)),
    "pandas": frame("pandas"),
    "polars": frame("polars"),
    "pyarrow": frame("pyarrow"),
}
FRAMES = ("pandas", "polars", "pyarrow")


@rotated(COLUMN_MODES, "container", CONTAINERS, each=2)
def test_result_does_not_depend_on_the_container(mode, container):
    if container == "generator" and not mode.in_pieces:
        container = "pairs"  # exact mode needs several passes
    rng = np.random.default_rng(4)
    X = rng.integers(0, 100, size=(30, 120)) * (rng.random((30, 120)) < 0.6).astype(np.float64)
    X[:, 17] = 4.0
    y = target_of(mode, X)
    names = [f"v{j}" for j in range(120)] if container in FRAMES else None
    before = X.copy()
    other = learnt(mode, CONTAINERS[container](X), y)
    np.testing.assert_array_equal(X, before)
    assert other.n_constant == 1
    same(learnt(mode, X, y, names), other)


@sampled(COLUMN_MODES)
def test_bools_are_zeros_and_ones(mode):
    X = np.random.default_rng(5).random((40, 60)) < 0.5
    y = target_of(mode, X.astype(float))
    same(learnt(mode, X.astype(float), y), learnt(mode, X, y))


@sampled(IN_PIECES)
def test_unnamed_columns_are_numbered_across_calls(mode):
    X, y = data(mode)
    parts = learnt(mode, X[:, :100], y)
    parts.learn_columns(X[:, 100:])
    same(parts, learnt(mode, X, y, range(160)))


@sampled(COLUMN_MODES)
def test_names_are_any_hashables(mode):
    X, y = data(mode)
    names = [("tuple", j) if j % 3 else f"string {j}" if j % 2 else j + 0.5 for j in range(160)]
    plain, named = learnt(mode, X, y), learnt(mode, X, y, names)
    for attribute in ("selected", "loadings"):
        if hasattr(plain, attribute):
            assert list(getattr(named, attribute)) == [names[j] for j in getattr(plain, attribute)]


@sampled(COLUMN_MODES)
def test_row_and_column_counts(mode):
    X, y = data(mode)
    model = build(mode)
    assert (model.n_rows, model.n_columns, model.n_constant, model.n_passes) == (0, 0, 0, 0)
    X[:, [5, 80]] = 3.0
    model = learnt(mode, X, y)
    assert (model.n_rows, model.n_columns, model.n_constant) == (40, 160, 2)
    assert model.n_passes == 1 or (mode.params.get("exact") and model.n_passes > 1)


@sampled(IN_PIECES)
def test_empty_source_changes_nothing(mode):
    X, y = data(mode)
    model = learnt(mode, X, y)
    before = bits(model)
    model.learn_columns(X[:, :0])
    model.learn_columns(iter([]))
    assert bits(model) == before


@over(COLUMN_MODES)
def test_single_constant_column(mode):
    _, y = data(mode)
    model = learnt(mode, np.full((40, 1), 7.0), y)
    assert (model.n_columns, model.n_constant) == (1, 1)
    found = list(model.transform_one({0: 7.0}).values())
    if mode.by_name:  # variables are not centred
        np.testing.assert_allclose(model.embedding, np.tile(found, (40, 1)), rtol=1e-12)
    else:
        assert not any(found)
