"""Rows without a target: all forms of missing values, and their exclusion has no other effect."""

import array
import copy

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import streamsel
from streamsel import PCA, PLS, Lasso, ProjSe, SelectKBest, load, save
from streamsel.data.chunks import Block
from streamsel.data.columns import iter_chunks, single_column
from streamsel.targets.kept_rows import KeptRows, is_target_missing
from streamsel.targets.target import Target

N = 24
LACKS = np.zeros(N, dtype=bool)
LACKS[[0, 5, 6, 23]] = True
KEPT = np.flatnonzero(~LACKS)
Y = np.random.default_rng(0).normal(size=N).round(3)
CODES = np.arange(N) % 3
WORDS = np.array(["a", "b", "c"])[CODES]
X = np.asfortranarray(np.random.default_rng(1).normal(size=(N, 30)))


def none(values):
    """Return a list with None in the rows without a target."""
    return [
        None if lacks else v for lacks, v in zip(LACKS, np.asarray(values).tolist(), strict=True)
    ]


def nan(values):
    return np.where(LACKS, np.nan, values)


NUMBERS = {
    "array": nan(Y),
    "list": none(Y),
    "column": nan(Y)[:, None],
    "float32": nan(Y).astype(np.float32),
    "object": np.array(none(Y), dtype=object),
    "NA": np.array([pd.NA if v is None else v for v in none(Y)], dtype=object),
    "masked": np.ma.array(Y, mask=LACKS),
    "pandas": pd.Series(nan(Y), index=range(100, 100 + N)),
    "nullable": pd.Series(none(Y), dtype="Float64"),
    "polars": pl.Series(none(Y)),
    "polars NaN": pl.Series(nan(Y)),
    "pyarrow": pa.chunked_array([none(Y)]),
    "pandas array": pd.array(none(Y), dtype="Float64"),
    "pandas index": pd.Index(nan(Y)),
    "pandas sparse": pd.arrays.SparseArray(nan(Y)),
    "pyarrow array": pa.array(none(Y)),
    "buffer": array.array("d", nan(Y)),
}
LABELS = {
    "category array": pd.Categorical(none(WORDS)),
    "category index": pd.CategoricalIndex(none(WORDS)),
    "string array": pd.array(none(WORDS), dtype="string"),
    "object index": pd.Index(none(WORDS)),
    "dictionary array": pa.array(none(WORDS)).dictionary_encode(),
    "list": none(WORDS),
    "object": np.array(none(WORDS), dtype=object),
    "pandas": pd.Series(none(WORDS)),
    "category": pd.Series(none(WORDS), dtype="category"),
    "polars": pl.Series(none(WORDS)),
    "enum": pl.Series(none(WORDS), dtype=pl.Enum(["a", "b", "c"])),
    "pyarrow": pa.chunked_array([none(WORDS)]),
}
WHOLE = {
    "floats": nan(CODES),
    "integers": pd.Series(none(CODES), dtype="Int64"),
    "list": none(CODES),
    "polars": pl.Series(none(CODES)),
}


def learnt(y, X=X, **options):
    model = ProjSe(5)
    model.learn_target(y, **options)
    model.learn_columns(X)
    return model


def check(model, expected):
    assert model.scores == expected.scores
    assert model.relevance == expected.relevance
    assert model.report().target == expected.report().target
    assert (model.n_rows, expected.n_rows) == (len(KEPT), len(KEPT))
    assert model.report().rows_excluded == {"no target": 4}
    assert expected.report().rows_excluded == {}


@pytest.mark.parametrize("form", NUMBERS)
def test_numbers(form):
    y = Y.astype(np.float32) if form == "float32" else Y
    check(learnt(NUMBERS[form], missing="drop"), learnt(y[KEPT], X[KEPT]))


@pytest.mark.parametrize("form", LABELS)
def test_labels(form):
    check(learnt(LABELS[form], missing="drop"), learnt(WORDS[KEPT], X[KEPT]))


@pytest.mark.parametrize("form", WHOLE)
def test_whole_numbers_with_gaps_are_classes(form):
    model = learnt(WHOLE[form], missing="drop")
    check(model, learnt(CODES[KEPT], X[KEPT]))
    assert model.report().target.startswith("3 classes: 0 (")


@pytest.mark.parametrize("form", ["array", "pandas", "polars", "pyarrow", "lists"])
def test_rows_with_any_target_missing_are_dropped(form):
    both = np.column_stack([nan(Y), Y**2])
    both[3, 1] = np.nan
    kept = np.setdiff1d(KEPT, [3])
    data = {"a": nan(Y), "b": [None if i == 3 else v for i, v in enumerate((Y**2).tolist())]}
    y = {
        "array": both,
        "pandas": pd.DataFrame(data),
        "polars": pl.DataFrame(data),
        "pyarrow": pa.table(data),
        "lists": both.tolist(),
    }[form]
    model = learnt(y, missing="drop")
    assert model.n_rows == len(kept)
    expected = learnt(np.column_stack([Y, Y**2])[kept], X[kept])
    assert model.scores == pytest.approx(expected.scores)


@pytest.mark.parametrize("form", ["array", "frame", "structured"])
def test_times_and_events(form):
    time, event = np.where(LACKS, np.nan, np.abs(Y)), (CODES > 0).astype(float)
    event[9] = np.nan
    kept = np.setdiff1d(KEPT, [9])
    y = {
        "array": np.column_stack([time, event]),
        "frame": pd.DataFrame({"time": time, "event": event}),
        "structured": np.rec.fromarrays([time, event], names="time,event"),
    }[form]
    model = ProjSe(5, target_type="survival")
    model.learn_target(y, missing="drop")
    model.learn_columns(X)
    expected = ProjSe(5, target_type="survival")
    expected.learn_target(np.column_stack([time, event])[kept])
    expected.learn_columns(X[kept])
    assert model.scores == expected.scores
    assert model.report().target == f"survival, {int(event[kept].sum())} events in 19 rows"


@pytest.mark.parametrize("y", [nan(Y), none(WORDS), pd.Series(none(CODES), dtype="Int64")])
@pytest.mark.parametrize("rest", [1.0, 2.0])
def test_a_target_may_be_missing_where_the_weight_is_0(y, rest):
    """A target may be missing where the weight is 0; otherwise equal weights suit any learner."""
    w = np.where(LACKS, 0.0, np.where(np.arange(N) % 2, 1.0, rest))
    model = learnt(y, weights=w)
    expected = learnt(np.asarray(y, dtype=object)[KEPT].tolist(), X[KEPT], weights=w[KEPT])
    check(model, expected)
    if rest == 1.0:
        SelectKBest(2, score="mutual_info").learn_target(y, weights=w)
    w[KEPT[3]] = 0.0  # a row with a target and weight 0 is kept
    assert learnt(y, weights=w).n_rows == len(KEPT)
    w[5] = 1.0
    with pytest.raises(ValueError, match=r"in row 5\b"):
        learnt(y, weights=w)


def test_invalid_missing_targets_are_refused():
    for missing in ("skip", None, "mean"):
        with pytest.raises(ValueError, match="Expected missing='error' or 'drop'"):
            learnt(Y, missing=missing)
    model = ProjSe()
    for y in ([None] * 5, [1.0, None, None], np.full(4, np.nan)):
        with pytest.raises(ValueError, match=r"at least 2 rows\. Got: one in [01] of"):
            model.learn_target(y, missing="drop")
    with pytest.raises(ValueError, match=r"missing='drop'"):
        model.learn_target(nan(Y))
    with pytest.raises(ValueError, match="Hint: learn_target"):
        model.learn_target(none(WORDS))
    infinite = nan(Y)
    infinite[8] = np.inf
    with pytest.raises(ValueError, match="inf in row 8"):
        model.learn_target(infinite, missing="drop")
    with pytest.raises(ValueError, match=r"covariates of 24 rows, as the target has\. Got: 20"):
        model.learn_target(nan(Y), covariates=Y[KEPT], missing="drop")
    with pytest.raises(ValueError, match=r"weights of 24 rows, as the target has\. Got: 20"):
        model.learn_target(nan(Y), weights=np.abs(Y[KEPT]), missing="drop")
    with pytest.raises(ValueError, match=r"in row 7\."):
        model.learn_target(nan(Y), weights=np.where(np.arange(N) == 7, -1.0, 1.0), missing="drop")
    with pytest.raises((TypeError, ValueError), match="different lengths"):
        model.learn_target([[1.0, 2.0], [3.0]], missing="drop")
    assert model.n_rows == 0


def test_pandas_arrays_equal_series():
    codes = pd.Categorical([1.5, 2.5, 4.0, 5.5] * 6)
    for y in codes, pd.CategoricalIndex(codes), pd.array(none(CODES), dtype="Int64"):
        found, expected = learnt(y, missing="drop"), learnt(pd.Series(y), missing="drop")
        assert found._target.names == expected._target.names
        assert found._target.is_class
        assert found.relevance == expected.relevance
    frame = pd.DataFrame(X).add_prefix("x")
    assert streamsel.select(frame, pd.Categorical(none(WORDS)), k=2).model.n_rows == KEPT.size


@pytest.mark.parametrize(
    ("y", "options", "hint"),
    [
        ([np.inf, 1.0, 2.0, 3.0], {}, "replace infinite values"),
        ([(np.inf, 1), (1.0, 0), (2.0, 1)], {"target_type": "survival"}, "the end of its obs"),
        ([(-1.0, 1), (1.0, 0), (2.0, 1)], {"target_type": "survival"}, "from the start of obs"),
    ],
)
@pytest.mark.parametrize("missing", ["drop", "error"])
def test_a_hint_does_not_advise_the_call_that_failed(y, options, hint, missing):
    with pytest.raises(ValueError, match=rf"\nHint: .*{hint}") as caught:
        SelectKBest(1, **options).learn_target(np.array(y), missing=missing)
    assert "missing='drop'" not in str(caught.value)


def test_complete_targets_are_unchanged():
    model = learnt(Y, missing="drop")
    assert model._target.kept is None
    assert model.scores == learnt(Y).scores
    alone = ProjSe(3)
    alone.learn_target(None, missing="drop")
    alone.learn_columns(X)
    assert alone.n_rows == N


def test_rows_continue_after_dropped_rows(tmp_path):
    model, expected = learnt(nan(Y), missing="drop"), learnt(Y[KEPT], X[KEPT])
    save(model, tmp_path / "model")
    for each in (model, load(tmp_path / "model"), expected):
        each.learn_one(dict(enumerate(X[5].tolist())), 0.3)
        assert each.n_rows == len(KEPT) + 1
        assert each.scores == expected.scores or each is not expected
    assert model.scores == expected.scores


def test_a_gram_matrix_is_shared_by_the_same_rows():
    first, second, other = (PLS(2) for _ in range(3))
    first.learn_target(nan(Y), missing="drop")
    first.learn_columns(X)
    second.learn_target(nan(Y**2), missing="drop")
    second.learn_from(first)
    expected = PLS(2)
    expected.learn_target((Y**2)[KEPT])
    expected.learn_columns(X[KEPT])
    assert np.isnan(second.embedding[LACKS]).all()
    np.testing.assert_allclose(second.embedding[KEPT], expected.embedding, atol=1e-10)
    rolled = np.roll(nan(Y), 1)
    other.learn_target(rolled, missing="drop")
    with pytest.raises(ValueError, match="columns of the same rows"):
        other.learn_from(first)
    whole = PCA(2, scale=first.scale)
    whole.learn_columns(X)
    with pytest.raises(ValueError, match="Expected columns of 20 rows"):
        other.learn_from(whole)


def test_on_real_data(dataset):
    """On real data, a tenth of the patients have no diagnosis."""
    X, y, _, archive = dataset("glioma")
    labels = archive["classes"][y].astype(object)
    labels[np.random.default_rng(3).permutation(len(y))[: len(y) // 10]] = None
    kept = np.flatnonzero(~is_target_missing(labels))
    for make in (lambda: ProjSe(10, max_candidates=40), lambda: PLS(3), lambda: SelectKBest(10)):
        model, expected = make(), make()
        model.learn_target(labels, missing="drop")
        expected.learn_target(labels[kept].tolist())
        model.learn_columns(X)
        expected.learn_columns(X[kept])
        assert model.relevance == pytest.approx(expected.relevance, rel=1e-12)
        assert model.n_rows == len(kept) < len(y)


# ------------------------------------------------------------------------ values of kept rows


@given(
    st.data(),
    st.sampled_from([np.float64, np.float32, np.int8, np.uint8, np.bool_, np.int64]),
    st.booleans(),
)
def test_values_of_the_kept_rows(data, dtype, is_sparse):
    n, b = data.draw(st.integers(3, 12)), data.draw(st.integers(1, 6))
    X = data.draw(hnp.arrays(np.int64, (n, b), elements=st.integers(0, 3))).astype(dtype)
    lacks = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    lacks[:2], lacks[2] = False, True
    index = np.flatnonzero(~lacks)
    kept = KeptRows.excluding(lacks)
    values = sp.csc_array(X) if is_sparse else data.draw(st.sampled_from([X, np.asfortranarray(X)]))
    found = [
        chunk.columns(np.arange(len(chunk.names)))
        for chunk in iter_chunks(Block(range(b), values), index.size, None, kept)
    ]
    np.testing.assert_array_equal(np.vstack(found), X[index].T)
    one = values[:, [0]] if is_sparse else values[:, 0]
    np.testing.assert_array_equal(
        single_column(0, one, index.size, None, kept).column(0), X[index, 0]
    )
    np.testing.assert_array_equal(kept.expand(X[index].astype(float))[index], X[index])
    assert np.isnan(kept.expand(X[index].astype(float))[lacks]).all()


def test_a_damaged_sparse_matrix_is_refused():
    model = ProjSe()
    model.learn_target(nan(Y), missing="drop")
    for row in (-1, N):
        matrix = sp.csc_array(X * (np.abs(X) > 1.0))
        matrix.indices[3] = row
        with pytest.raises(ValueError, match=r"row indices from 0 to 23|Expected"):
            model.learn_columns(matrix)
    assert model.n_columns == 0


@pytest.mark.parametrize(
    "change",
    [
        {"n": len(KEPT)},
        {"n": 23},
        {"n": 24.0},
        {"index": KEPT[::-1].copy()},
        {"index": KEPT[1:]},
        {"index": KEPT.astype(float)},
        {"index": np.r_[-1, KEPT[1:]]},
        {"excluded": {}},
        {"excluded": {"no target": 3}},
        {"excluded": {"no target": 5, "other": -1}},
        {"excluded": {3: 4}},
        {"excluded": None},
    ],
)
def test_a_forged_state_is_refused(change):
    model = learnt(nan(Y), missing="drop")
    state = copy.deepcopy(model._get_state())
    ProjSe(5)._set_state(copy.deepcopy(state))
    state["target_kept"] |= change
    with pytest.raises(ValueError, match="Expected"):
        ProjSe(5)._set_state(state)


def test_missing_targets_are_found():
    assert is_target_missing([1, 2]).tolist() == [False, False]
    assert is_target_missing(np.array(["a", "nan"])).tolist() == [False, False]
    assert is_target_missing(sp.csr_array([[1.0, np.nan], [0.0, 2.0]])).tolist() == [True, False]
    assert is_target_missing(pl.Series(["a", None])).tolist() == [False, True]
    assert Target(nan(Y)[KEPT]).kept is None


def test_lasso_of_a_cohort():
    """Classes coded as 1, 2 and NaN, as in .fam files, are valid."""
    status = np.where(LACKS, np.nan, 1.0 + (Y > 0.0))
    model, expected = Lasso(k=3), Lasso(k=3, family="logistic")
    model.learn_target(status, missing="drop")
    expected.learn_target(status[KEPT])
    model.learn_columns(X)
    expected.learn_columns(X[KEPT])
    assert model.coefficients == expected.coefficients
