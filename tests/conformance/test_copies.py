"""Copies are complete, independent, and continue like the original."""

import pickle

import numpy as np

from streamsel import save
from tests.conformance.modes import (
    COLUMN_MODES,
    MODES,
    bits,
    build,
    data,
    fresh,
    learnt,
    rotated,
    same,
    sampled,
    shown,
)
from tests.copies import COPIES

NAMES = [f"v{j}" if j % 3 else (j, "é") for j in range(160)]


def assert_identical(one, other):
    """Check that two models and their results are the same to the last bit."""
    assert type(one) is type(other)
    assert one._get_params() == other._get_params()
    assert bits(one) == bits(other)
    np.testing.assert_equal(shown(other), shown(one))
    np.testing.assert_equal(other.noise_floor(), one.noise_floor())
    row = dict(zip(NAMES, range(160), strict=True))
    assert other.transform_one(row) == one.transform_one(row)


@rotated(COLUMN_MODES, "way", COPIES, each=2)
def test_copy_continues_like_the_original(mode, way, tmp_path):
    X, y = data(mode, c=3)
    model = fresh(mode, y)
    if mode.in_pieces:
        model.learn_columns(X[:, :80], NAMES[:80])
    twin = COPIES[way](model, tmp_path)
    if mode.in_pieces:
        assert_identical(model, twin)
    before = bits(twin)
    model.learn_columns(X[:, model.n_columns :], NAMES[model.n_columns :])
    assert bits(twin) == before  # nothing is shared
    twin.learn_columns(X[:, twin.n_columns :], NAMES[twin.n_columns :])
    assert_identical(model, twin)
    save(model, tmp_path / "first")
    save(twin, tmp_path / "second")
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


@rotated(MODES, "way", COPIES)
def test_copy_of_an_unfitted_model(mode, way, tmp_path):
    model = build(mode)
    twin = COPIES[way](model, tmp_path)
    assert twin._get_params() == model._get_params()
    assert bits(twin) == bits(model)
    X, y = data(mode)
    if mode.cls._is_supervised:
        model.learn_target(y)
        twin.learn_target(y)
        twin = COPIES[way](twin, tmp_path)
    model.learn_columns(X, NAMES)
    twin.learn_columns(X, NAMES)
    assert_identical(model, twin)


@sampled(COLUMN_MODES)
def test_clone_is_unfitted(mode):
    X, y = data(mode)
    model = learnt(mode, X, y)
    clone = model.clone()
    assert type(clone) is type(model)
    assert clone._get_params() == model._get_params()
    assert bits(clone) == bits(build(mode))
    if mode.cls._is_supervised:
        clone.learn_target(y)
    clone.learn_columns(X)
    same(clone, model, rtol=0)


@sampled(COLUMN_MODES)
def test_reading_a_model_changes_nothing(mode):
    X, y = data(mode)
    model = learnt(mode, X, y)
    before = pickle.dumps(model)
    for attribute in dir(type(model)):
        if not attribute.startswith("_"):
            getattr(model, attribute)
    model.noise_floor()
    model.report()
    model.transform_one({0: 1.0})
    model.transform_many(X)
    repr(model)
    assert pickle.dumps(model) == before
    for attribute in shown(model):  # the caller may change returned objects
        if hasattr(handed_out := getattr(model, attribute), "clear") and handed_out:
            handed_out.clear()
            assert getattr(model, attribute)
    assert pickle.dumps(model) == before


@sampled(COLUMN_MODES)
def test_arguments_are_copied(mode):
    """Arguments may be overwritten afterwards."""
    X, y = data(mode)
    mine, target = X.copy(order="F"), None if y is None else y.copy()
    other = learnt(mode, mine, target)
    mine[:] = 7.0
    if target is not None:
        target[:] = 0
    same(learnt(mode, X, y), other, rtol=0)
