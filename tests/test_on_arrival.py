"""Selectors that decide on arrival: acceptance, rollback, covariates, irrevocable decisions."""

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from streamsel import OSFS, SAOLA, AlphaInvesting, OnlineFDR
from streamsel.base.streaming_selector import StreamingSelector
from streamsel.state.pool.accepted import AcceptedColumns, ColumnBatch
from streamsel.targets.space import TargetSpace
from tests.conformance.modes import bits

LEARNERS = [AlphaInvesting, OnlineFDR, OSFS, SAOLA]
over_learners = pytest.mark.parametrize("cls", LEARNERS, ids=lambda cls: cls.__name__)


class Newest(StreamingSelector):
    """Selector of the three newest columns that correlate positively with the target."""

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}

    def _initial_memory(self) -> dict[str, float]:
        return {"seen": 0.0}

    def _extra_fields(self) -> tuple[str, ...]:
        return ("score",)

    def _policy(self) -> "NewestPolicy":
        return NewestPolicy()


class NewestPolicy:
    """Accept columns that correlate positively with the target, and drop the oldest."""

    def rejection_threshold(self, space: TargetSpace) -> float:
        return -np.inf

    def accept(self, state: AcceptedColumns, batch: ColumnBatch) -> None:
        rises = batch.space.relevance(*batch.moments, signed=True)
        for i in np.flatnonzero(rises > 0.0).tolist():
            if state.is_full:
                break
            state.accept(batch, int(batch.indices[i]), score=rises[i])
            if len(state.names) > 3:
                state.drop(np.array([0]))
        state.remember(seen=state.memory["seen"] + batch.indices.size)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 40))
    return X, X[:, 2] + X[:, 21] + 0.5 * rng.normal(size=30)


def newest(X, y, *columns, **params):
    model = Newest(**params)
    model.learn_target(y)
    for names in columns:
        model.learn_columns(X[:, names], names)
    return model


def expected(X, y, p):
    return [j for j in range(p) if (X[:, j] - X[:, j].mean()) @ y > 0.0][-3:]


def test_accepted_and_dropped_columns(data):
    X, y = data
    model = newest(X, y, [*range(25)], [*range(25, 40)])
    assert model.selected == expected(X, y, 40)
    assert model._columns.memory == {"seen": 40.0}
    assert model.n_certified == 3
    assert model.report().results[0]["name"] == model.selected[0]
    assert np.isnan([*model.p_values.values()]).all()
    unit = model._columns.samples(np.arange(3))
    for row, j in zip(unit, model.selected, strict=True):
        np.testing.assert_allclose(row, (X[:, j] - X[:, j].mean()) / X[:, j].std() / np.sqrt(30))


def test_rollback_restores_dropped_columns(data):
    X, y = data
    model = newest(X, y, [*range(15)])
    before = bits(model)
    bad = X[:, 15:].copy()
    bad[4, -1] = np.nan
    for _ in range(2):
        # Before the error, many columns are accepted, and all earlier ones dropped.
        blocks = [(j, bad[:, j]) for j in range(25)]
        with pytest.raises(ValueError, match="finite"):
            model.learn_columns([(f"bad {j}", x) for j, x in blocks])
        assert bits(model) == before
    model.learn_columns(X[:, 15:], range(15, 40))
    assert bits(model) == bits(newest(X, y, [*range(15)], [*range(15, 40)]))


def test_full_pools_do_not_change(data):
    X, y = data
    model = newest(X, y, [*range(20)], max_candidates=2)
    assert model.selected == [j for j in range(20) if (X[:, j] - X[:, j].mean()) @ y > 0.0][:2]
    memory, kept = dict(model._columns.memory), list(model._columns.names)
    model.learn_columns(X[:, 20:], range(20, 40))
    model.learn_column("one", X[:, 2] ** 3)
    model.learn_column("constant", np.full(30, 2.0))
    assert (model._columns.memory, model._columns.names) == (memory, kept)
    assert (model.n_columns, model.n_constant) == (42, 1)
    with pytest.raises(ValueError, match="NaN"):
        model.learn_column("bad", np.full(30, np.nan))


def test_models_with_decisions_cannot_be_merged(data):
    X, y = data
    one, other = newest(X, y, [*range(15)]), newest(X, y, [*range(15, 30)])
    before = pickle.dumps(one)
    with pytest.raises(ValueError, match=r"learnt no columns yet[^$]*Hint: a decision on"):
        one.merge(other)
    assert pickle.dumps(one) == before
    blank = newest(X, y)
    blank.merge(other)
    assert bits(blank) == bits(other)
    blank.learn_columns(X[:, 30:], range(30, 40))
    other.learn_columns(X[:, 30:], range(30, 40))
    assert bits(blank) == bits(other)


def test_observations_are_residuals_of_covariates(data):
    X, y = data
    Z = np.column_stack([X[:, 0] + X[:, 5], np.arange(30.0)])
    model = Newest()
    model.learn_target(y, covariates=Z)
    model.learn_columns(np.column_stack([X, Z @ [1.0, -2.0]]))
    basis = np.linalg.qr(np.column_stack([np.ones(30), Z]))[0]
    for row, j in zip(model._columns.samples(np.arange(3)), model.selected, strict=True):
        left = X[:, j] - basis @ (basis.T @ X[:, j])
        np.testing.assert_allclose(row, left / np.linalg.norm(left), atol=1e-12)
    # Columns that covariates explain are not even tested.
    assert model._columns.memory == {"seen": 40.0}


@over_learners
def test_rows_after_columns_with_covariates_are_refused(cls, data):
    X, y = data
    model = cls()
    model.learn_target(y, covariates=X[:, 7])
    model.learn_columns(X)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=r"windows of rows do not support[^$]*Hint"):
        model.learn_one({0: 1.0}, 2.0)
    assert pickle.dumps(model) == before
    with pytest.raises(TypeError, match="covariates"):
        cls(covariates=("age",))


@over_learners
def test_streams_continue_from_a_file_without_difference(cls, data):
    X, y = data
    whole, parts = cls(0.4), cls(0.4)
    for model in (whole, parts):
        model.learn_target(y)
    whole.learn_columns(X)
    for j in range(40):
        parts.learn_column(j, X[:, j])
        parts = pickle.loads(pickle.dumps(parts))  # noqa: S301
    assert parts.selected == whole.selected
    assert parts._columns.memory == whole._columns.memory


@over_learners
def test_windows_are_decided_from_the_start(cls, data):
    X, y = data
    model = cls(0.4, window_size=30)
    for _ in range(3):
        for i in range(30):
            model.learn_one({f"v{j:02}": X[i, j] for j in range(40)}, y[i])
        columns = cls(0.4)
        columns.learn_target(y)
        columns.learn_columns(X, [f"v{j:02}" for j in range(40)])
        assert model.selected == columns.selected


@pytest.mark.parametrize("memory", [{}, {"seen": 1.0, "more": 2.0}, {"seen": "1"}, {"seen": None}])
def test_states_without_required_memory_are_refused(memory, data):
    model = newest(*data, [*range(5)])
    state = model._get_state()
    state["columns"]["memory"] = memory
    with pytest.raises(ValueError, match="seen"):
        Newest()._set_state(state)
