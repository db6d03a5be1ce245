"""Merged models contain the data of both, and models that do not fit are refused."""

import itertools
import pickle

import numpy as np
import pandas as pd
import pytest

from streamsel.state.moments.joint import CrossMoments
from tests.conformance.modes import (
    CLASSES,
    COLUMN_MODES,
    IN_PIECES,
    MODES,
    bits,
    build,
    close,
    data,
    fresh,
    learnt,
    over,
    rotated,
    same,
    sampled,
    shown,
)
from tests.copies import COPIES

NAMES = [f"v{j}" for j in range(160)]
STATES = {name: learnt(mode, *data(mode, p=3))._columns for name, mode in COLUMN_MODES.items()}
# Modes that can be merged; decisions on arrival cannot be.
MERGING = {name: mode for name, mode in COLUMN_MODES.items() if not STATES[name].unmergeable_reason}
TOGETHER = {name: mode for name, mode in IN_PIECES.items() if name in MERGING}
# Modes that discard no column: the merged model does not depend on the order.
WHOLE = {
    name: mode
    for name, mode in TOGETHER.items()
    if mode.by_name or getattr(STATES[name], "limit", 0) is None
}


def parts_of(mode, X, y, *cuts, **further):
    """Return models that have each learnt the columns up to the next cut."""
    edges = [0, *cuts, X.shape[1]]
    return [
        learnt(mode, X[:, start:stop], y, NAMES[start:stop], **further)
        for start, stop in itertools.pairwise(edges)
    ]


@over(WHOLE)
def test_merged_model_equals_a_model_of_all_columns(mode):
    X, y = data(mode, c=3)
    whole = learnt(mode, X, y, NAMES)
    left, middle, right = parts_of(mode, X, y, 50, 90)
    middle.merge(right)
    left.merge(middle)
    same(whole, left, in_parts=True)


@sampled(WHOLE)
def test_merged_with_a_model_from_a_file(mode, tmp_path):
    X, y = data(mode)
    left, right = (COPIES["save"](part, tmp_path) for part in parts_of(mode, X, y, 70))
    left.merge(right)
    same(learnt(mode, X, y, NAMES), left, in_parts=True)


@sampled(TOGETHER)
def test_merged_models_continue_learning(mode):
    X, y = data(mode, c=3)
    X[:, 120] = 1.0
    one, other = (parts_of(mode, X, y, 50, 100) for _ in range(2))
    alongside = pickle.dumps(one[1])
    one[0].merge(one[1])
    assert pickle.dumps(one[1]) == alongside
    other[0].merge(other[1])
    assert bits(one[0]) == bits(other[0])
    one[0].learn_columns(X[:, 100:], NAMES[100:])
    twin = pickle.loads(pickle.dumps(other[0]))  # noqa: S301
    twin.learn_columns(X[:, 100:], NAMES[100:])
    assert bits(one[0]) == bits(twin)
    assert (one[0].n_columns, one[0].n_constant, one[0].n_rows) == (160, 1, 40)


@over(MERGING)
def test_certified_picks_of_merged_models_are_correct(mode):
    """The certified picks of a merged model are those over all columns."""
    if not hasattr(mode.cls, "n_certified"):
        return
    bounded = {name: None for name in ("max_candidates", "exact") if mode.has(name)}
    for seed in range(3):
        X, y = data(mode, c=3, seed=seed)
        whole = learnt(mode, X, y, NAMES, **bounded | dict.fromkeys({"exact"} & {*bounded}, False))
        left, right = parts_of(mode, X, y, 90)
        left.merge(right)
        proven = left.n_certified
        assert left.selected[:proven] == whole.selected[:proven]


@sampled(IN_PIECES)
def test_merging_an_empty_model(mode):
    X, y = data(mode)
    model, empty = learnt(mode, X, y), fresh(mode, y)
    before = bits(model)
    model.merge(empty)
    model.merge(build(mode))
    assert bits(model) == before
    empty.merge(model)
    same(model, empty, rtol=0)


@sampled(TOGETHER)
def test_models_with_other_n_jobs_are_merged(mode):
    X, y = data(mode)
    left, right = parts_of(mode, X, y, 70)
    left.merge(learnt(mode, X[:, 70:], y, NAMES[70:], n_jobs=2))
    again, _ = parts_of(mode, X, y, 70)
    again.merge(right)
    assert bits(left) == bits(again)


@sampled(IN_PIECES)
def test_refused_merge_changes_neither_model(mode):
    X, y = data(mode)
    model = learnt(mode, X, y)
    other = next(cls for cls in CLASSES.values() if cls is not mode.cls)()
    size = next((name for name in ("k", "n_components") if mode.params.get(name)), None)
    other_params = {"max_features" if mode.has("max_features") else "seed": 77}
    shorter = learnt(mode, X[:-1], None if y is None else y[:-1], range(160, 320))
    wrong = [model, other, build(mode.also(**other_params)), shorter, None, "model"]
    if size is not None:
        wrong.append(build(mode, **{size: 2 if mode.params[size] == 1 else 1}))
    if mode in WHOLE.values() and not mode.by_name:
        wrong.append(learnt(mode, X, y))  # the same columns twice
    if y is not None:
        wrong.append(learnt(mode, X, y[::-1].copy(), range(160, 320)))
    for bad in wrong:
        before, alongside = pickle.dumps(model), pickle.dumps(bad)
        with pytest.raises(ValueError, match=r"Expected.*\. Got"):
            model.merge(bad)
        assert pickle.dumps(model) == before
        assert pickle.dumps(bad) == alongside
    with pytest.raises(ValueError, match="along"):
        model.merge(learnt(mode, X, y, NAMES), along="diagonal")


@sampled({name: mode for name, mode in IN_PIECES.items() if name not in MERGING})
def test_refused_merge_gives_a_hint(mode):
    X, y = data(mode)
    model, other = parts_of(mode, X, y, 70)
    before, alongside = pickle.dumps(model), pickle.dumps(other)
    with pytest.raises(ValueError, match=r"Expected[^$]*Got[^$]*Hint"):
        model.merge(other)
    assert pickle.dumps(model) == before
    assert pickle.dumps(other) == alongside


ERRORS = {error.__name__: error for error in (KeyboardInterrupt, MemoryError)}


@rotated(TOGETHER, "error", ERRORS)
def test_interrupted_merge_is_undone(mode, error, monkeypatch):
    error = ERRORS[error]
    X, y = data(mode)
    model, other = parts_of(mode, X, y, 70)
    before, keeps = bits(model), type(model._columns)

    def merge(self, *args, inner=keeps.merge):
        inner(self, *args)
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(keeps, "merge", merge)
        with pytest.raises(error):
            model.merge(other)
    assert bits(model) == before
    model.merge(other)
    expected, _ = parts_of(mode, X, y, 70)
    expected.merge(other)
    assert bits(model) == bits(expected)


# ------------------------------------------------------------------------------------ along rows


def by_rows(mode, X, y, start, stop):
    model = build(mode)
    rows = X[start:stop]
    model.learn_many(rows, *([] if y is None else [y[start:stop]]))
    return model


@over({name: mode for name, mode in MODES.items() if mode.has_target == mode.cls._is_supervised})
def test_merging_along_rows(mode):
    """Moments are added; windows of rows are refused with an explanation."""
    X, y = data(mode, n=120, p=12)
    left, right = by_rows(mode, X, y, 0, 50), by_rows(mode, X, y, 50, 120)
    alongside = pickle.dumps(right)
    if left._by_window:
        with pytest.raises(ValueError, match="windows of rows"):
            left.merge(right, along="rows")
        return
    left.merge(right, along="rows")
    assert pickle.dumps(right) == alongside
    assert left.n_rows == 120
    assert np.isfinite(list(left.relevance.values())).all()
    steady = not mode.params.get("fading_factor") and not mode.params.get("max_features")
    # The cross-moments of a few candidates, next to the moments, depend on the order.
    if steady and (left._row_extension is None or isinstance(left._row_extension, CrossMoments)):
        whole = by_rows(mode, X, y, 0, 120)
        for name, value in shown(whole).items():
            close(getattr(left, name), value, 1e-9)


@over({name: mode for name, mode in MODES.items() if mode.has_target == mode.cls._is_supervised})
def test_merging_along_columns_after_rows(mode):
    """Models of other variables of the same rows merge, unless their covariances are needed."""
    X, y = data(mode, n=60, p=6)
    models = [build(mode), build(mode)]
    for model, names in zip(models, ("abc", "def"), strict=True):
        part = pd.DataFrame(X[:, :3] if names == "abc" else X[:, 3:], columns=list(names))
        model.learn_many(part, *([] if y is None else [y]))
    one, other = models
    if one._by_window:
        return
    before, alongside = pickle.dumps(one), pickle.dumps(other)
    if one._row_extension is None or "columns" in one._row_extension.merges_along:
        one.merge(other)
        assert (one.n_columns, one.n_rows) == (0 if mode.by_name else 6, 60)
        assert np.isfinite(list(one.relevance.values())).all()
    else:
        with pytest.raises(ValueError, match=r"Expected[\s\S]*Got[\s\S]*Hint"):
            one.merge(other)
        assert pickle.dumps(one) == before
    assert pickle.dumps(other) == alongside
