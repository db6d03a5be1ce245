"""Stability on subsamples: one pass for all models, against one model per subsample."""

import json
from collections import Counter
from itertools import chain

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import assume, given
from hypothesis import strategies as st

from streamsel import MRMR, OSFS, SOSPCA, ForwardSelection, Lasso, ProjSe, SelectKBest
from streamsel.data.chunks import Block
from streamsel.evaluate import (
    Stability,
    SubsampleStability,
    selection_stability,
    subsample_stability,
)
from streamsel.evaluate.model_batch import MAX_BYTES, ModelBatch
from streamsel.evaluate.subsamples import draw
from streamsel.stream import iter_array, iter_columns

N, P, M = 40, 30, 6
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, P))
Y = X[:, 3] - X[:, 8] + 0.5 * RNG.normal(size=N)
LABELS = np.where(Y > 0.7, "high", np.where(Y > -1, "middle", "low"))
LEARNERS = [
    ProjSe(k=4),
    ProjSe(k=3, max_candidates=6),
    ProjSe(k=3, max_candidates=6, exact=True),
    SelectKBest(k=5),
    MRMR(k=3),
    OSFS(),
]


def by_themselves(learner, X, y, codes, seed):
    """Yield the selection of a separate model for each subsample."""
    for rows in [np.arange(N), *draw(N, codes, M, 0.5, seed)]:
        model = learner.clone()
        model.learn_target(y[rows])
        model.learn_columns(X[rows])
        yield list(model.selected)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("y", [Y, LABELS], ids=["numbers", "classes"])
def test_one_pass_equals_separate_models(learner, y):
    codes = np.unique(y, return_inverse=True)[1] if y is LABELS else None
    whole, *selections = by_themselves(learner, X, y, codes, seed=3)
    found = subsample_stability(learner, X, y, n_subsamples=M, seed=3)
    assert (found.selected, found.selections) == (whole, selections)
    assert found.index == selection_stability(selections, P)
    assert learner.n_columns == 0
    counts = pd.Series(list(chain(*selections))).value_counts() / M
    assert found.frequency == counts.to_dict()
    assert list(found.frequency.values()) == sorted(counts, reverse=True)


def test_sources_and_blocks_make_no_difference():
    sparse = np.where(np.abs(X) > 1, X, 0.0)
    sources = {
        "array": sparse,
        "csc": scipy.sparse.csc_array(sparse),
        "csr": scipy.sparse.csr_matrix(sparse),
        "single columns": iter_columns(lambda: enumerate(sparse.T)),
        "row by row": iter_array(np.ascontiguousarray(sparse)),
    }
    found = {
        how: subsample_stability(ProjSe(k=4), source, Y, n_subsamples=M)
        for how, source in sources.items()
    }
    assert all(each == found["array"] for each in found.values())


def test_target_and_covariate_frames_are_subsampled():
    age = RNG.normal(size=N)
    table = pd.DataFrame({"y": Y, "site": np.where(age > 0, "north", "south")})
    settings = {"n_subsamples": M, "seed": 5}
    covariates = {"age": age, "site": table["site"]}
    found = subsample_stability(SelectKBest(k=3), X, table["y"], covariates=covariates, **settings)
    for rows, selection in zip(draw(N, None, M, 0.5, 5), found.selections, strict=True):
        model = SelectKBest(k=3)
        model.learn_target(
            Y[rows], covariates={"age": age[rows], "site": table["site"].to_numpy()[rows]}
        )
        model.learn_columns(X[rows])
        assert model.selected == selection
    several = subsample_stability(ProjSe(k=3), X, table, **settings)
    listed = subsample_stability(SelectKBest(k=3), X, LABELS.tolist(), **settings)
    assert several.rows_drawn == N // 2
    expected = subsample_stability(SelectKBest(k=3), X, LABELS, **settings)
    assert listed == expected
    column = pd.DataFrame({"y": LABELS})
    assert subsample_stability(SelectKBest(k=3), X, column, **settings) == expected


def test_survival_targets_are_those_of_the_subsample():
    y = np.column_stack([RNG.exponential(size=N), RNG.random(N) < 0.7]).astype(float)
    learner = SelectKBest(k=3, target_type="survival")
    found = subsample_stability(learner, X, y, n_subsamples=M, seed=3)
    _, *selections = by_themselves(learner, X, y, y[:, 1], seed=3)
    assert found.selections == selections


@pytest.mark.parametrize("kind", ["survival", "count"])
def test_a_rare_event_or_count_is_in_every_subsample(kind):
    is_rare = np.arange(N) < 2
    y = np.where(is_rare, 3, 0)
    if kind == "survival":
        y = pd.DataFrame({"event": is_rare, "time": RNG.exponential(size=N)})
    found = subsample_stability(SelectKBest(k=3, target_type=kind), X, y, n_subsamples=20, seed=3)
    assert found.rows_drawn == N // 2
    for rows, selection in zip(draw(N, is_rare, 20, 0.5, 3), found.selections, strict=True):
        assert is_rare[rows].sum() == 1
        model = SelectKBest(k=3, target_type=kind)
        model.learn_target(y.iloc[rows] if kind == "survival" else y[rows])
        model.learn_columns(X[rows])
        assert model.selected == selection


def test_weights_are_subsampled():
    w = RNG.random(N) + 0.1
    found = subsample_stability(SelectKBest(k=3), X, Y, weights=w, n_subsamples=M, seed=5)
    for rows, selection in zip(draw(N, None, M, 0.5, 5), found.selections, strict=True):
        model = SelectKBest(k=3)
        model.learn_target(Y[rows], weights=w[rows])
        model.learn_columns(X[rows])
        assert model.selected == selection
    assert found != subsample_stability(SelectKBest(k=3), X, Y, n_subsamples=M, seed=5)


def test_without_a_target():
    found = subsample_stability(ProjSe(k=3), X, n_subsamples=M)
    model = ProjSe(k=3)
    model.learn_target(None)
    model.learn_columns(X)
    assert found.selected == model.selected
    with pytest.raises(ValueError, match="known number of rows"):
        subsample_stability(ProjSe(k=3), iter_columns(enumerate(X.T)))


def test_the_source_is_read_once():
    n_passes = 0

    def columns():
        nonlocal n_passes
        n_passes += 1
        yield from enumerate(X.T)

    seen = []
    stream = iter_columns(columns)
    subsample_stability(
        ProjSe(k=2), stream, Y, n_subsamples=M, on_block=lambda model: seen.append(model.n_columns)
    )
    assert n_passes == 1
    assert seen[-1] == P
    # Models that certify their answer need further passes, over a copy if it fits, or the source.
    exact = ProjSe(k=2, max_candidates=4, exact=True)
    expected = subsample_stability(exact, stream, Y, n_subsamples=M)
    assert n_passes == 2
    assert subsample_stability(exact, stream, Y, n_subsamples=M, max_bytes=1) == expected
    assert n_passes > 2 + 1 + M


@pytest.mark.parametrize(
    "learner", [ForwardSelection(k=3), MRMR(k=3), SelectKBest(k=3), ProjSe(k=3)]
)
def test_memory_is_bounded_by_passes_over_a_copy_or_the_source(learner):
    settings = {"n_subsamples": 7, "seed": 3}
    # A copy may take half of the limit.
    enough, less = 2 * X.nbytes, X.nbytes
    expected = subsample_stability(learner, X, Y, **settings)
    n_passes = 0

    def columns():
        nonlocal n_passes
        n_passes += 1
        return enumerate(X.T)

    stream = iter_columns(columns, n_rows=N, n_columns=X.shape[1])
    assert subsample_stability(learner, stream, Y, max_bytes=enough, **settings) == expected
    assert n_passes == 1
    assert subsample_stability(learner, stream, Y, max_bytes=less, **settings) == expected
    assert n_passes > 2

    def once(**known):
        return iter_columns(iter([*enumerate(X.T)]), n_rows=N, **known)

    with pytest.raises(ValueError, match=r"8 models of up to .* learn in . passes of "):
        subsample_stability(learner, once(n_columns=P), Y, max_bytes=less, **settings)
    for known, max_bytes in (({"n_columns": P}, enough), ({"n_columns": P}, MAX_BYTES), ({}, 1)):
        found = subsample_stability(learner, once(**known), Y, max_bytes=max_bytes, **settings)
        assert found == expected


def test_blocks_refused_by_one_model_are_learnt_by_none():
    # Constant in the first half, and too large to be squared in the second.
    bad = np.zeros((N, 2))
    bad[N // 2 :, 1] = np.linspace(1.0, 1e200, N // 2)
    halves = np.arange(N // 2), np.arange(N // 2, N)
    members = [(ProjSe(k=2), rows) for rows in halves]
    batch = ModelBatch(members, Y, n=N, finish=lambda *_: None, max_bytes=MAX_BYTES)
    batch.learn_block(Block(["a", "b"], X[:, :2]), [0, 1])
    with pytest.raises(ValueError, match="squares"):
        batch.learn_block(Block(["c", "d"], bad), [0, 1])
    batch.learn_block(Block(["e"], X[:, 4:5]), [0, 1])
    for model, rows in members:
        alone = ProjSe(k=2)
        alone.learn_target(Y[rows])
        alone.learn_columns(X[rows][:, [0, 1, 4]], names=["a", "b", "e"])
        assert model.n_columns == 3
        assert model.relevance == alone.relevance


@given(
    st.lists(st.integers(0, 2), min_size=4, max_size=60),
    st.floats(0.2, 0.8),
    st.integers(0, 100),
)
def test_subsamples_are_stratified_by_class(codes, share, seed):
    codes = np.array([0, 1, *codes])
    sizes = {code: max(1, round(share * count)) for code, count in Counter(codes.tolist()).items()}
    # Subsamples of all rows are refused.
    assume(sum(sizes.values()) < len(codes))
    for rows in draw(len(codes), codes, 3, share, seed):
        assert len(set(rows.tolist())) == len(rows)
        assert np.all(np.diff(rows) > 0)
        assert Counter(codes[rows].tolist()) == sizes


@pytest.mark.parametrize("kind", ["auto", "class"])
def test_integers_are_classes_in_all_subsamples_or_none(kind):
    codes = np.unique(LABELS, return_inverse=True)[1].astype(float)
    classes = subsample_stability(ProjSe(k=2, target_type=kind), X, codes, n_subsamples=M)
    named = subsample_stability(ProjSe(k=2), X, LABELS, n_subsamples=M)
    assert classes.selections == named.selections


def test_json_has_all_results():
    found = subsample_stability(SelectKBest(k=3), X, Y, n_subsamples=M)
    decoded = json.loads(json.dumps(found.as_dict()))
    assert SubsampleStability.from_dict(decoded) == found
    first = decoded["frequency"][0]
    assert first["frequency"] == first["count"] / M == found.frequency[first["name"]]
    assert found.selected[first["rank"] - 1] == first["name"]
    with pytest.raises(ValueError, match="as_dict"):
        SubsampleStability.from_dict({"kind": "selected"})


@pytest.mark.parametrize(
    ("value", "rating"),
    [(0.39, "poor"), (0.4, "intermediate"), (0.75, "intermediate"), (0.76, "excellent")],
)
def test_ratings_follow_nogueira(value, rating):
    found = subsample_stability(SelectKBest(k=3), X, Y, n_subsamples=2)
    decoded = found.as_dict() | {"index": Stability(value, 0.0, 1.0)._asdict()}
    assert SubsampleStability.from_dict(decoded).rating == rating


def test_nothing_selected_has_no_stability():
    noise = np.random.default_rng(3).normal(size=N)
    found = subsample_stability(Lasso(alphas=1e6), X, noise, n_subsamples=2)
    assert (found.index, found.rating, found.frequency) == (None, "undefined", {})
    everything = subsample_stability(SelectKBest(k=P), X, Y, n_subsamples=2)
    assert everything.index is None


def test_invalid_arguments_are_refused():
    with pytest.raises(TypeError, match="Expected learner: a selector"):
        subsample_stability(SOSPCA(), X, Y)
    with pytest.raises(TypeError, match="Expected learner: an object"):
        subsample_stability(ProjSe, X, Y)
    with pytest.raises(ValueError, match="share"):
        subsample_stability(ProjSe(), X, Y, share=1.0)
    for n in (N - 1, N + 1):
        with pytest.raises(ValueError, match=rf"Expected {n} values, .* Got: {N}"):
            subsample_stability(ProjSe(), X, np.resize(Y, n))
    with pytest.raises(ValueError, match="but not all"):
        subsample_stability(ProjSe(), X[:3], ["a", "b", "c"], share=0.5)
