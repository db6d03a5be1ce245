"""Rows without a target, in every mode: excluded as if they were not in the data."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from streamsel.stream import as_stream
from tests import in_parts
from tests.conformance.modes import (
    COLUMN_MODES,
    IN_PIECES,
    bits,
    close,
    data,
    flat,
    fresh,
    learnt,
    over,
    rotated,
    sampled,
    shown,
)
from tests.copies import COPIES

N = 46
LACKS = np.zeros(N, dtype=bool)
LACKS[[0, 7, 8, 30, 44, 45]] = True
KEPT = np.flatnonzero(~LACKS)
WITH_TARGET = {name: mode for name, mode in COLUMN_MODES.items() if mode.has_target}
PIECES = {name: mode for name, mode in IN_PIECES.items() if mode.has_target}


def gaps(y, lacks=LACKS):
    """Return the target with missing values in these rows."""
    if y.dtype.kind in "US":
        return np.where(lacks, None, y.astype(object))
    y = y.astype(float)
    y[lacks] = np.nan
    return y


def task(mode, **further):
    """Return columns, with unusable values in the rows without a target, and the target."""
    X, y = data(mode, n=N, **further)
    X[LACKS] = np.nan
    X[7] = 1e300
    return X, gaps(y)


def dropping(mode, y, **further):
    model = fresh(mode, y[KEPT], **further)
    model.learn_target(y, missing="drop")
    return model


def same_but_for_rows(model, filtered):
    """Check that a model equals one of the filtered table, up to rounding and the excluded rows."""
    for name, value in shown(filtered).items():
        close(getattr(model, name), value, 1e-12)
    mine, theirs = (flat(each._get_state()) for each in (model, filtered))
    own = {key for key in mine if key.startswith("target_kept")}
    assert own == {"target_kept/n", "target_kept/index", "target_kept/excluded/no target"}
    assert mine.keys() - own == theirs.keys()
    for key, value in theirs.items():
        if isinstance(value, np.ndarray):
            size = np.abs(value).max(initial=0)
            np.testing.assert_allclose(mine[key], value, 1e-12, 1e-13 * size, err_msg=key)
        else:
            assert repr(mine[key]) == repr(value)


@over(WITH_TARGET)
def test_dropped_rows_have_no_effect(mode):
    X, y = task(mode)
    model, filtered = dropping(mode, y), learnt(mode, X[KEPT], y[KEPT])
    model.learn_columns(X)
    same_but_for_rows(model, filtered)
    report, expected = model.report(), filtered.report()
    assert report.rows == model.n_rows == len(KEPT)
    assert report.rows_excluded == {"no target": 6}
    assert report.as_dict()["rows_excluded"] == {"no target": 6}
    assert report.target == expected.target
    assert report.results == expected.results
    if hasattr(model, "embedding"):
        Z = model.embedding
        assert len(Z) == N
        assert np.isnan(Z[LACKS]).all()
        np.testing.assert_array_equal(Z[KEPT], filtered.embedding)


@rotated(WITH_TARGET, "form", ["sparse", "shuffled", "rows", "int8", "object", "frame", "filtered"])
def test_rows_are_dropped_in_every_container(mode, form):
    X, y = task(mode, p=60)
    X[LACKS] = 0.0
    X = np.round(np.where(np.abs(X) < 2.0, 0.0, X))
    X[LACKS] = 7.0
    model, filtered = dropping(mode, y), fresh(mode, y[KEPT])
    # Both have the same form, as sums of sparse columns are rounded differently from dense ones.
    if form == "sparse":
        model.learn_columns(sp.csc_array(X))
        filtered.learn_columns(sp.csc_array(X[KEPT]))
    elif form == "shuffled":
        matrix = sp.csr_array(X).tocsc()
        for j in range(60):  # row indices that do not ascend
            part = slice(matrix.indptr[j], matrix.indptr[j + 1])
            matrix.indices[part] = matrix.indices[part][::-1].copy()
            matrix.data[part] = matrix.data[part][::-1].copy()
        matrix.has_sorted_indices = False
        model.learn_columns(matrix)
        filtered.learn_columns(sp.csc_array(X[KEPT]))
    else:
        values = {
            "rows": np.ascontiguousarray,
            "int8": lambda X: np.asfortranarray(X.astype(np.int8)),
            "object": lambda X: X.astype(object),
            "frame": lambda X: pd.DataFrame(X, columns=[f"v{j}" for j in range(60)]),
            "filtered": lambda X: np.asfortranarray(X[KEPT]) if len(X) == N else X,
        }[form]
        model.learn_columns(values(X))
        filtered.learn_columns(values(X[KEPT]))
    same_but_for_rows(model, filtered)


@sampled(PIECES)
def test_rows_are_dropped_from_single_columns(mode):
    """Dense and sparse columns are learnt one by one, also by the fast path for no change."""
    X, y = task(mode)
    X[LACKS] = 3.0
    model, filtered = dropping(mode, y), fresh(mode, y[KEPT])
    for j in range(X.shape[1]):
        x = X[:, j]
        if j % 5 == 4:
            model.learn_column(j, sp.csc_array(x[:, None]))
            filtered.learn_column(j, sp.csc_array(x[KEPT][:, None]))
        else:
            model.learn_column(j, x.tolist() if j % 5 == 3 else x.copy())
            filtered.learn_column(j, x[KEPT])
    same_but_for_rows(model, filtered)


@rotated(WITH_TARGET, "way", [*COPIES])
def test_copies_drop_the_same_rows(mode, way, tmp_path):
    X, y = task(mode, p=80)
    model, filtered = dropping(mode, y), fresh(mode, y[KEPT])
    for each, rows in ((model, slice(None)), (filtered, KEPT)):
        if mode.in_pieces:
            each.learn_columns(X[rows, :40])
    model = COPIES[way](model, tmp_path)
    for each, rows in ((model, slice(None)), (filtered, KEPT)):
        columns = as_stream(X[rows, 40:], range(40, 80)) if mode.in_pieces else X[rows]
        each.learn_columns(columns)
    same_but_for_rows(model, filtered)
    if model._wants_second_pass:
        model.learn_loadings(X)
        filtered.learn_loadings(X[KEPT])
        close(model.loadings, filtered.loadings)


@sampled(WITH_TARGET)
def test_covariates_and_weights_have_all_rows(mode):
    X, y = task(mode, p=60)
    rng = np.random.default_rng(2)
    Z, w = rng.normal(size=N), rng.integers(1, 4, size=N).astype(float)
    Z[LACKS], w[LACKS] = np.nan, -1.0
    probe = fresh(mode, y[KEPT])
    alongside = {}
    if probe._takes_covariates and mode.params.get("covariates") is None:
        alongside["covariates"] = {"age": Z, "place": np.where(LACKS, None, np.arange(N) % 2 == 0)}
    if probe._takes_weights:
        alongside["weights"] = w
    if getattr(probe, "permutations", 0):
        alongside["strata"] = np.where(LACKS, None, np.arange(N) % 3 == 0)
    model, filtered = dropping(mode, y), fresh(mode, y[KEPT])
    model.learn_target(y, **alongside, missing="drop")
    if "covariates" in alongside:
        alongside["covariates"] = {
            name: values[KEPT] for name, values in alongside["covariates"].items()
        }
    if "weights" in alongside:
        alongside["weights"] = w[KEPT]
    if "strata" in alongside:
        alongside["strata"] = (np.arange(N) % 3 == 0)[KEPT]
    filtered.learn_target(y[KEPT], **alongside)
    model.learn_columns(X)
    filtered.learn_columns(X[KEPT])
    same_but_for_rows(model, filtered)


@sampled(WITH_TARGET)
def test_rows_are_dropped_in_parts(mode):
    X, y = task(mode, p=80)
    rng, model = np.random.default_rng(0), dropping(mode, y)
    if (why := model._reason_not_partitioned()) is not None:
        with pytest.raises(ValueError, match=why):
            in_parts.learn_once(model, in_parts.streams(X, [0, 30, 80]), rng)
        return
    edges = [0, 30, 31, 80]
    filtered = in_parts.learn_once(
        fresh(mode, y[KEPT]), in_parts.streams(X[KEPT], edges), np.random.default_rng(0)
    )
    model = in_parts.learn_once(model, in_parts.streams(X, edges), rng)
    same_but_for_rows(model, filtered)
    in_parts.read_again(model, in_parts.streams(X, edges), rng)
    in_parts.read_again(filtered, in_parts.streams(X[KEPT], edges), np.random.default_rng(0))
    close(shown(model), shown(filtered))


@sampled(PIECES)
def test_models_with_different_dropped_rows_are_not_merged(mode):
    X, y = data(mode, n=N, p=40)
    others = LACKS.copy()
    others[0], others[1] = False, True
    models = []
    for lacks in (LACKS, others):
        rest = y.copy()
        rest[0] = rest[1]
        model = fresh(mode, rest[KEPT])
        model.learn_target(gaps(rest, lacks), missing="drop")
        models.append(model)
    X[0] = X[1]
    models[0].learn_columns(X[:, :20])
    models[1].learn_columns(as_stream(X[:, 20:], range(20, 40)))
    before = bits(models[0])
    with pytest.raises(ValueError, match="included rows"):
        models[0].merge(models[1])
    assert bits(models[0]) == before


@sampled(PIECES)
def test_models_with_the_same_dropped_rows_are_merged(mode):
    X, y = task(mode, p=40)
    merged = []
    for rows in (np.arange(N), KEPT):
        make = dropping if len(rows) == N else fresh
        models = [make(mode, y[rows]) for _ in range(2)]
        for model, part in zip(models, (range(20), range(20, 40)), strict=True):
            model.learn_columns(as_stream(X[rows][:, part], part))
        try:
            models[0].merge(models[1])
        except ValueError as error:  # decisions on arrival cannot be merged
            merged.append(str(error))
        else:
            merged.append(models[0])
    if isinstance(merged[1], str):
        assert merged[0] == merged[1]
    else:
        same_but_for_rows(*merged)


@sampled(WITH_TARGET)
def test_errors_name_rows_by_their_original_number(mode):
    X, y = task(mode, p=10)
    model = dropping(mode, y)
    before = bits(model)
    X[2, 3] = np.nan
    with pytest.raises(ValueError, match=r"column 3.*1 of 40 values missing.*in row 2\."):
        model.learn_columns(X)
    assert bits(model) == before
    if mode.in_pieces:
        with pytest.raises(ValueError, match=r"1 of 40 values missing.*in row 2\."):
            model.learn_column(3, X[:, 3])
    for size in (N - 1, len(KEPT) + 1):
        with pytest.raises(ValueError, match=f"Expected {N} values.*Got: {size}"):
            model.learn_columns(X[:size])
    assert bits(model) == before
    Z = np.where(np.arange(N) == 9, np.inf, 1.0 * np.arange(N))
    if model._takes_covariates and model.covariates is None:
        with pytest.raises(ValueError, match="inf in row 9"):
            model.learn_target(y, covariates=Z, missing="drop")
        with pytest.raises(ValueError, match=f"covariates of {N} rows.*Got: {N - 1}"):
            model.learn_target(y, covariates=Z[1:], missing="drop")
    assert bits(model) == before
