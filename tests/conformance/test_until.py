"""`until`: learning ends at a condition, and the model is that of the columns before the check."""

import pickle

import numpy as np
import pytest

from streamsel.base import stop_condition
from tests.conformance.modes import COLUMN_MODES, data, fresh, same, sampled
from tests.conformance.test_undo import in_blocks


@pytest.fixture(autouse=True)
def _few_columns(monkeypatch):
    monkeypatch.setattr(stop_condition, "CHECK_INTERVAL", 40)


@sampled(COLUMN_MODES)
def test_model_has_learnt_the_columns_before_the_check(mode):
    X, y = data(mode, c=3)
    expected = fresh(mode, y)
    expected.learn_columns(in_blocks(X[:, :120]))
    for size in (7, 40, 160):
        model, seen = fresh(mode, y), []

        def enough(model, seen=seen):
            seen.append(model.n_columns)
            return model.n_columns >= 81

        model.learn_columns(in_blocks(X, size), until=enough)
        assert seen == [40, 80, 120]
        assert model.report().details["stopped"] == {"until": "a function", "n_columns": 120}
        model._phase.source = expected._phase.source
        same(expected, model)


@sampled({name: mode for name, mode in COLUMN_MODES.items() if mode.in_pieces})
def test_n_columns_without_a_change(mode):
    X, y = data(mode, c=3)
    X = np.hstack([X, np.random.default_rng(7).normal(size=(len(X), 200))])
    model = fresh(mode, y)
    if model._used_variables() is None:
        before = pickle.dumps(model)
        with pytest.raises(ValueError, match="every column changes the components"):
            model.learn_columns(X, until=20)
        assert pickle.dumps(model) == before
        return
    stop, before = None, set()
    for k in range(20, X.shape[1] + 1, 20):
        prefix = fresh(mode, y)
        prefix.learn_columns(X[:, :k])
        now = {*(prefix.selected if hasattr(prefix, "selected") else prefix.loadings)}
        if now == before:
            stop = k
            break
        before = now
    for size in (9, 360):
        model = fresh(mode, y)
        model.learn_columns(in_blocks(X, size), until=20)
        assert model.n_columns == (stop or X.shape[1])
        assert ("stopped" in model.report().details) is (stop is not None)


@sampled(COLUMN_MODES)
def test_error_of_the_condition_stops_without_rollback(mode):
    X, y = data(mode)
    model, expected = fresh(mode, y), fresh(mode, y)
    error = ValueError("mine")

    def fails(model):
        if model.n_columns >= 80:
            raise error

    with pytest.raises(ValueError, match="mine") as raised:
        model.learn_columns(in_blocks(X), until=fails)
    assert raised.value is error
    if mode.in_pieces:
        expected.learn_columns(in_blocks(X[:, :80]))
        same(expected, model)


@sampled(COLUMN_MODES)
def test_bad_column_before_the_stop_is_undone(mode):
    X, y = data(mode)
    model, rest = fresh(mode, y), X.copy()
    rest[3, 60] = np.inf
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="60"):
        model.learn_columns(in_blocks(rest), until=lambda model: model.n_columns >= 120)
    assert pickle.dumps(model) == before
    # Bad columns after the condition are not read.
    model.learn_columns(in_blocks(rest), until=lambda model: model.n_columns >= 40)
    assert model.n_columns == 40
