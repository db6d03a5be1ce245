"""After any sequence of calls: numbers are finite, and the state alone determines the model."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsel.base.windows import WindowPhase
from streamsel.params import rules_of
from streamsel.state.base import State
from tests.conformance.modes import (
    COLUMN_MODES,
    MODES,
    bits,
    build,
    flat,
    fresh,
    over,
    sampled,
    target_of,
)

ALL = COLUMN_MODES | MODES
N = 14
# Attributes of the base other than parameters: learnt state, snapshot, and caches.
KNOWN = {"_phase", "_refresh", "_guard", "_cache", "_row_reader", "_weights"}


class Walk:
    """A model, its data, and the random numbers that choose the calls."""

    def __init__(self, mode, seed):
        self.mode, self.rng = mode, np.random.default_rng(seed)
        self.base = self.rng.normal(size=(N, 6))
        self.y = target_of(mode, self.base, int(self.rng.integers(1, 3)))
        # Some models learn rows, or nothing, before their target.
        self.model = fresh(mode, self.y) if self.rng.random() < 0.7 else build(mode)
        self.names = 0

    def columns(self, n=N):
        """Return unusual columns of n rows: copies, constants, scales and offsets."""
        p = int(self.rng.integers(1, 12))
        X = self.rng.normal(size=(n, p))
        kinds = self.rng.integers(0, 8, size=p)
        X[:, kinds == 0] = self.rng.integers(-2, 3)
        X[:, kinds == 1] = np.round(X[:, kinds == 1])
        X[:, kinds == 2] = X[:, :1]
        X[:, kinds == 3] *= 10.0 ** self.rng.integers(-140, 140, size=(kinds == 3).sum())
        X[:, kinds == 4] += 1e9
        if n == N:
            X[:, kinds == 5] = self.base[:, :1] * 3.0 - 1.0
        return X

    def named(self, X):
        names = range(self.names, self.names + X.shape[1])
        self.names += X.shape[1]
        return list(names)

    # Calls

    def block(self):
        X = self.columns()
        self.model.learn_columns(X, self.named(X))

    def column(self):
        X = self.columns()
        self.model.learn_column(self.named(X)[0], X[:, 0])

    def bad_block(self):
        X = self.columns()
        X[0, -1] = np.nan
        self.model.learn_columns(X, self.named(X))

    def bad_target(self):
        self.model.learn_target(np.zeros(N))

    def merge(self):
        other, X = fresh(self.mode, self.y), self.columns()
        other.learn_columns(X, self.named(X))
        self.model.merge(other)

    def rows(self):
        n = int(self.rng.integers(1, 40))
        X = self.columns(n)
        X[self.rng.random(X.shape) < 0.1] = np.nan
        self.model.learn_many(X, *self.of_target(n))

    def row(self):
        X = self.columns(1)
        x = dict(zip(self.rng.permutation(20)[: X.shape[1]].tolist(), X[0].tolist(), strict=True))
        self.model.learn_one(x, *self.of_one_row())

    def bad_row(self):
        self.model.learn_one({0: 1.0, 1: math.inf}, *self.of_one_row())

    def merge_rows(self):
        other = build(self.mode)
        other.learn_many(self.columns(30), *self.of_target(30))
        self.model.merge(other, along="rows")

    def of_target(self, n):
        """Return the target of n rows, in a list, in the form of the target of columns."""
        if not self.mode.cls._is_supervised:
            return []
        if self.y is None:
            return [self.rng.normal(size=n)]
        return [self.y[self.rng.integers(0, N, size=n)]]

    def of_one_row(self):
        """Return the target of a row, in a list: a number, a label or a dict."""
        of_rows = (y[0].tolist() for y in self.of_target(1))
        return [dict(enumerate(y)) if isinstance(y, list) else y for y in of_rows]

    def read(self):
        self.model.report()
        self.model.transform_one({0: 1.0, 1: None})


def not_finite(state):
    """Return the paths of numbers in a state that are not finite."""
    return [
        path
        for path, value in flat(state).items()
        for numbers in ([value] if not isinstance(value, list) else value)
        if isinstance(numbers, float | np.ndarray) and not np.isfinite(numbers).all()
    ]


def check(mode, model):
    state = pickle.loads(pickle.dumps(model._get_state()))  # noqa: S301
    assert not not_finite(state)
    assert all(abs(found) <= 1.0 + 1e-9 for found in model.relevance.values())
    twin = build(mode)
    twin._set_state(state)
    assert bits(twin) == bits(model)
    own = {
        name
        for name, value in vars(model).items()
        if not (name in rules_of(mode.cls) or name in KNOWN or isinstance(value, State))
    }
    if not isinstance(
        model._phase, WindowPhase
    ):  # with windows that are learnt as columns, the learner's own attributes are unused
        assert vars(twin).keys() == vars(model).keys()
        for name in own:  # they must follow from its state
            np.testing.assert_equal(getattr(twin, name), getattr(model, name), err_msg=name)
    for one in (model, twin):
        one.transform_one({0: 1.0, 3: 2.0})
    assert bits(twin) == bits(model)


CALLS = (
    *("block", "column", "bad_block", "bad_target", "merge"),
    *("rows", "row", "bad_row", "merge_rows", "read"),
)


@over(ALL)
@settings(max_examples=8)
@given(calls=st.lists(st.sampled_from(CALLS), min_size=1, max_size=8), seed=st.integers(0, 1000))
def test_invariants_after_any_sequence_of_calls(mode, calls, seed):
    walk = Walk(mode, seed)
    check(mode, walk.model)
    for call in calls:
        before = bits(walk.model)
        try:
            getattr(walk, call)()
        except ValueError:
            assert bits(walk.model) == before, call
        check(mode, walk.model)


@sampled(ALL)
def test_state_with_a_non_finite_number_is_refused(mode):
    walk = Walk(mode, 3)
    walk.model = fresh(mode, walk.y)
    walk.block()
    state = walk.model._get_state()
    for path, value in flat(state).items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size:
            spoilt = pickle.loads(pickle.dumps(state))  # noqa: S301
            flat(spoilt)[path].flat[-1] = np.nan
            with pytest.raises(ValueError, match="finite"):
                build(mode)._set_state(spoilt)
