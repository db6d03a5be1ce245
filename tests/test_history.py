"""A history records the variables in use after every row, and otherwise equals its learner."""

import copy
import pickle
import random
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river import compose, linear_model, preprocessing
from river.checks import yield_checks

from streamsel import PCA, History, OnlineFDR, ProjSe, RandomProjection, SelectKBest
from tests.conformance.modes import sampled
from tests.conformance.rowwise import ROW_MODES, learn_one


@dataclass
class Slow:
    """Reference history: record the variables in use after every row."""

    in_use_after: list = field(default_factory=list)

    def look(self, learner):
        self.in_use_after.append((learner.n_rows, list(learner.in_use)))

    def spans(self):
        found, before = {}, []
        for row, names in self.in_use_after:
            for name in before:
                if name not in names:
                    found[name][-1] = (found[name][-1][0], row)
            for name in names:
                if name not in before:
                    found.setdefault(name, []).append((row, None))
            before = names
        for name in before:
            found[name][-1] = (found[name][-1][0], self.in_use_after[-1][0])
        return found


def stream(n, seed, p=8, change=60):
    """Return rows of p features; the two relevant ones change every `change` rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    j = 2 * (np.arange(n) // change)
    rows = np.arange(n)
    y = X[rows, j % p] - X[rows, (j + 1) % p]
    return [(dict(enumerate(x)), float(v)) for x, v in zip(X.tolist(), y, strict=True)]


def taught(history, rows):
    """Teach the history rows; return the reference of its learner."""
    slow = Slow()
    for x, y in rows:
        learn_one(history, x, y)
        slow.look(history.learner)
    return slow


@sampled(ROW_MODES)
def test_spans_equal_the_variables_in_use(mode):
    history = History(mode.cls(**mode.params))
    rows = stream(150, 0)
    # Numbers without repeated values are not classes.
    rows = [(x, round(y)) for x, y in rows] if mode.of_classes else rows
    slow = taught(history, rows)
    assert history.spans() == slow.spans()
    assert history.n_rows == 150


LEARNERS = st.one_of(
    st.builds(
        SelectKBest,
        k=st.integers(1, 3),
        fading_factor=st.sampled_from([0.0, 0.05]),
        refresh_factor=st.sampled_from([1.0, 1.3, 2.0]),
        hysteresis=st.sampled_from([1.0, 3.0]),
        warm_up=st.integers(0, 30),
    ),
    st.builds(
        PCA,
        n_components=st.just(2),
        refresh_factor=st.sampled_from([1.2, 2.0]),
        warm_up=st.integers(2, 30),
        max_features=st.sampled_from([None, 4]),
        grace_period=st.just(5),
    ),
    st.builds(OnlineFDR, window_size=st.integers(10, 30)),
)


@given(
    learner=LEARNERS,
    seed=st.integers(0, 5),
    n=st.integers(0, 120),
    cut=st.floats(0.0, 1.0),
    most=st.sampled_from([1, 3, 8, 10_000]),
)
@settings(max_examples=40, deadline=None)
def test_spans_equal_the_reference(learner, seed, n, cut, most):
    """Spans equal the reference, also after a copy; with few changes stored, the last ones do."""
    rows = stream(n, seed, change=30)
    history = History(learner, max_changes=most)
    slow, middle = Slow(), round(cut * n)
    for x, y in rows[:middle]:
        learn_one(history, x, y)
        slow.look(history.learner)
    history = pickle.loads(pickle.dumps(history))  # noqa: S301
    for x, y in rows[middle:]:
        learn_one(history, x, y)
        slow.look(history.learner)
    expected = slow.spans()
    sizes = [1 + len(event.entered) + len(event.left) for event in history.events]
    assert sum(sizes) <= most or len(sizes) == 1
    if most == 10_000:
        assert history.spans() == expected
        return
    # Spans that ended before the first stored event are missing, and earlier starts are cut.
    since = history._initial_row
    cut_off = {
        name: [(max(start, since), stop) for start, stop in parts if stop > since]
        for name, parts in expected.items()
    }
    assert history.spans() == {name: parts for name, parts in cut_off.items() if parts}


class TestEvents:
    """`History.events`."""

    def test_entered_and_left_names(self):
        history = History(SelectKBest(k=2, fading_factor=0.05))
        slow = taught(history, stream(200, 1))
        known = set()
        for event in history.events:
            assert not known & set(event.entered)
            assert known >= set(event.left)
            known = (known - set(event.left)) | set(event.entered)
            assert known == set(dict(slow.in_use_after)[event.row])
        assert known == set(history.in_use)
        assert len(history.events) > 1

    def test_no_event_without_a_change(self):
        history = History(SelectKBest(k=2))
        taught(history, stream(400, 2, change=10_000))
        assert len(history.events) == 1

    def test_every_refresh_of_components_is_an_event(self):
        history = History(PCA(n_components=2, warm_up=10, refresh_factor=2.0))
        taught(history, stream(170, 3))
        assert [event.row for event in history.events] == [10, 20, 40, 80, 160]
        assert [len(event.entered) for event in history.events] == [8, 0, 0, 0, 0]

    def test_copies_add_no_refresh(self):
        history = History(PCA(n_components=2, warm_up=10))
        taught(history, stream(30, 3))
        for other in (
            copy.deepcopy(history),
            pickle.loads(pickle.dumps(history)),  # noqa: S301
            history.clone(include_attributes=True),
        ):
            other.learn_one(stream(1, 4)[0][0])
            assert other.events == history.events

    def test_column_results_are_in_use_from_the_first_row(self):
        X = np.random.default_rng(0).normal(size=(50, 6))
        history = History(ProjSe(k=2))
        history.learn_target(X[:, 1] - X[:, 4])
        history.learn_columns(X)
        history.learn_one(dict(enumerate(X[0])), 0.5)
        (event,) = history.events
        assert (event.row, set(event.entered)) == (51, {1, 4})

    def test_a_manual_refresh(self):
        history = History(SelectKBest(k=2, warm_up=1000))
        taught(history, stream(40, 0))
        assert not history.events
        history.refresh()
        assert [event.row for event in history.events] == [40]

    def test_projections_have_no_events(self):
        history = History(RandomProjection(n_components=2))
        taught(history, stream(60, 0))
        assert history.events == []


class TestHost:
    """A history in a pipeline behaves as its learner."""

    @pytest.mark.parametrize(
        "learner", [ProjSe(k=2, refresh_factor=1.3), PCA(n_components=2, warm_up=10)], ids=str
    )
    @pytest.mark.parametrize(
        "host",
        [
            lambda part: part | linear_model.LinearRegression(),
            lambda part: preprocessing.StandardScaler() | part | linear_model.LinearRegression(),
            lambda part: (part + preprocessing.MinMaxScaler()) | linear_model.LinearRegression(),
            lambda part: compose.Select(0, 1, 2, 3) | part | linear_model.LinearRegression(),
        ],
    )
    def test_predictions_are_unchanged(self, learner, host):
        predictions = []
        for part in (learner.clone(), History(learner.clone())):
            pipeline = host(part)
            predictions.append([])
            for x, y in stream(120, 0):
                predictions[-1].append(pipeline.predict_one(x))
                pipeline.learn_one(x, y)
        np.testing.assert_array_equal(*predictions)

    @pytest.mark.parametrize("learner", [ProjSe(k=2), PCA(n_components=2)], ids=str)
    def test_frames(self, learner):
        X = pd.DataFrame([x for x, _ in stream(120, 0)]).add_prefix("v")
        y = pd.Series([y for _, y in stream(120, 0)])
        transformed = []
        for part in (learner.clone(), History(learner.clone())):
            pipeline = part | preprocessing.StandardScaler()
            for start in range(0, 120, 40):
                pipeline.learn_many(X[start : start + 40], y[start : start + 40])
            transformed.append(pipeline.transform_many(X))
        pd.testing.assert_frame_equal(*transformed)
        history = pipeline["History"]
        assert {event.row for event in history.events} <= {40, 80, 120}
        assert set(history.spans()) >= set(history.in_use)
        assert history.spans()

    @pytest.mark.parametrize("params", list(History._unit_test_params()), ids=str)
    def test_checks_of_river(self, params):
        names = []
        for check in yield_checks(History(**params)):
            random.seed(0)
            check(History(**params).clone())
            names.append(check.__name__)
        assert len(names) > 25

    @pytest.mark.parametrize("learner", [SelectKBest(k=2), PCA(n_components=2)], ids=str)
    def test_weights_are_passed_to_the_learner(self, learner):
        pickles = []
        for part in (learner.clone(), History(learner.clone())):
            model = getattr(part, "learner", part)
            y = {"y": 1.0} if model._is_supervised else {}
            part.learn_one({"a": 1.0}, **y, w=2.0)
            y = {"y": np.zeros(2)} if model._is_supervised else {}
            part.learn_many(pd.DataFrame({"a": [0.0, 3.0]}), **y, w=np.array([1.0, 0.5]))
            pickles.append(pickle.dumps(model))
        assert pickles[0] == pickles[1]

    def test_attributes_are_those_of_the_learner(self):
        history = History(SelectKBest(k=2))
        taught(history, stream(80, 0))
        learner = history.learner
        assert history.selected == learner.selected
        assert history.relevance == learner.relevance
        assert history.report() == learner.report()
        assert history.noise_floor() == learner.noise_floor()
        with pytest.raises(AttributeError, match="nonesuch"):
            _ = history.nonesuch

    def test_clones_have_no_history(self):
        history = History(SelectKBest(k=2), max_changes=7)
        taught(history, stream(80, 0))
        clone = history.clone()
        assert clone.events == []
        assert clone.learner is not history.learner
        assert (clone.learner.k, clone.learner.n_rows, clone.max_changes) == (2, 0, 7)

    def test_errors_change_nothing(self):
        history = History(SelectKBest(k=2))
        taught(history, stream(80, 0))
        events = history.events
        with pytest.raises(ValueError, match="finite"):
            history.learn_one({0: float("inf")}, 1.0)
        assert (history.events, history.n_rows) == (events, 80)


@pytest.mark.parametrize("what", [ProjSe, None, preprocessing.StandardScaler(), "ProjSe"], ids=str)
def test_other_objects_are_refused(what):
    with pytest.raises(TypeError, match=r"Expected a learner of streamsel\. Got: .*\nHint: "):
        History(what)


@pytest.mark.parametrize("most", [0, -1, 1.5, None])
def test_invalid_limits_are_refused(most):
    with pytest.raises(ValueError, match="Expected max_changes of History"):
        History(ProjSe(), max_changes=most)
