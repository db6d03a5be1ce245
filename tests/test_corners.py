"""Regression tests of silent errors of selectors and extractors on columns."""

import datetime as dt
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.linalg import hadamard

from streamsel import SOSPCA, ProjSe
from streamsel.stream import iter_columns


def learnt(model, y, X, names=None):
    model.learn_target(y)
    model.learn_columns(X, names)
    return model


def test_merged_exact_models_certify_only_common_proofs(rng):
    Y, A, B = rng.normal(size=(40, 6)), rng.normal(size=(40, 200)), rng.normal(size=(40, 200))
    left, right = (
        learnt(ProjSe(5, max_candidates=5, exact=True), Y, X, [f"{side}{i}" for i in range(200)])
        for side, X in (("a", A), ("b", B))
    )
    left.merge(right)
    names = [f"a{i}" for i in range(200)] + [f"b{i}" for i in range(200)]
    batch = learnt(ProjSe(5), Y, np.hstack([A, B]), names)
    n = left.n_certified
    assert left.selected[:n] == batch.selected[:n]
    assert n < 5


@pytest.mark.parametrize("scale", [1e-150, 1e-100, 1e-7, 1e7, 1e100])
def test_column_scales_do_not_change_rotations(rng, scale):
    y = rng.normal(size=100)
    a, b = y + 3 * rng.normal(size=100), y + 0.3 * rng.normal(size=100)
    near, far = SOSPCA(1), SOSPCA(1)
    for model, factor in ((near, np.sign(np.log(scale)) * 6), (far, np.log10(scale))):
        model.learn_target(y)
        model.learn_column("a", a)
        model.learn_column("b", b * 10.0**factor)
    assert far.relevance["sospca0"] == pytest.approx(near.relevance["sospca0"], abs=1e-5)


def test_vanished_components_are_dropped():
    for seed in range(40):
        y = np.random.default_rng(seed).normal(size=10)
        left, right = SOSPCA(1, signed=True), SOSPCA(1, signed=True)
        for model, name in ((left, "a"), (right, "b")):
            model.learn_target(y)
            model.learn_column(name, -y)
        left.merge(right)
        assert np.abs(left.embedding).max() > 0.1


def test_orthogonal_columns_leave_no_rounding_in_the_support():
    X = hadamard(64)[:, 1:] * np.linspace(1, 2, 63)
    model = learnt(SOSPCA(3), X @ np.linspace(0.1, 1, 63), X)
    assert len(model.loadings) == 3


def test_rbf_with_identical_targets(rng):
    y = rng.normal(size=30)
    X = rng.normal(size=(30, 6))
    one, two = (learnt(ProjSe(3, kernel="rbf"), Y, X) for Y in (y, np.c_[y, 3 * y]))
    assert two.selected == one.selected


@pytest.mark.parametrize(
    ("y", "is_class"),
    [
        (pd.Series([1, 2, 3] * 4).astype("category"), True),
        (pl.Series(["a", "b", "c"] * 4, dtype=pl.Categorical), True),
        ([decimal.Decimal(i) for i in range(12)], False),
        (np.array([np.int8(i % 5) for i in range(12)], dtype=object), True),
        ([True, False] * 6, True),
    ],
)
def test_which_values_are_classes(y, is_class):
    model = ProjSe()
    model.learn_target(y)
    assert model._target.is_class is is_class


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([], "none"),
        ([1.0, None, 2.0], "row 1"),
        ([[1, 2], [3]], "different lengths"),
        (np.array(["a", pd.NA, "b"], dtype=object), "row 1"),
        ([dt.date(2020, 1, day) for day in range(1, 9)], "dates"),
        (pl.Series([[1], [2]]), "columns"),
        ({"a": 1}, "real numbers"),
    ],
)
def test_invalid_targets_are_refused(y, message):
    model = ProjSe()
    with pytest.raises((TypeError, ValueError), match=message):
        model.learn_target(y)
    assert model.n_rows == 0


def test_scale_dependent_kernels_have_no_noise_floor(rng):
    model = ProjSe(kernel="poly", coef0=1.0, scale=False)
    model.learn_target(rng.normal(size=(100, 2)))
    assert np.isnan(model.noise_floor())


def test_exact_refuses_a_source_that_changes_between_passes(rng):
    X = rng.normal(size=(50, 300))

    def shuffled():
        for j in rng.permutation(300).tolist():
            yield j, X[:, j]

    model = ProjSe(8, max_candidates=8, exact=True)
    model.learn_target(rng.normal(size=(50, 8)))
    with pytest.raises(ValueError, match="same columns in the same order"):
        model.learn_columns(iter_columns(shuffled))
    assert model.n_columns == 0


def test_exact_needs_one_pass_without_discards(rng):
    model = ProjSe(5, max_candidates=50, exact=True, on_rank_exhausted="stop")
    assert learnt(model, rng.normal(size=30), rng.normal(size=(30, 6))).n_passes == 1


def test_missing_values_of_nullable_pandas_columns_count_as_the_mean(rng):
    model = learnt(SOSPCA(1), rng.normal(size=9), rng.normal(size=(9, 1)), ["a"])
    frame = pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64")})
    plain = pd.DataFrame({"a": [1.0, np.nan, 3.0]})
    np.testing.assert_array_equal(model.transform_many(frame), model.transform_many(plain))
    assert model.transform_many(frame).to_numpy()[1, 0] == 0.0
    with pytest.raises(TypeError, match="'a'"):
        model.transform_many(pd.DataFrame({"a": ["x"]}))


def test_to_matrix_refuses_repeated_names():
    with pytest.raises(ValueError, match="distinct"):
        SOSPCA(1).to_matrix(["a", "a"])


@pytest.mark.parametrize(
    "y", [np.random.default_rng(1).normal(size=(12, 2)), np.array(["a", "b", "c"] * 4)]
)
def test_signed_requires_one_numeric_target(y):
    model = SOSPCA(2, signed=True)
    with pytest.raises(ValueError, match="signed"):
        model.learn_target(y)
    assert model.n_rows == 0


def test_frames_of_any_labels_are_targets(rng):
    frame = pd.DataFrame(rng.normal(size=(9, 4)))
    frame.columns = pd.Index([("a", 1), ("a", 2), ("b", 1), 9], tupleize_cols=False)
    assert learnt(ProjSe(2), frame, rng.normal(size=(9, 6))).selected
