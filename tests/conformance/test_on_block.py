"""`on_block`: the callback may inspect, save and stop, and does not change results."""

import pickle

import numpy as np
import pytest

from streamsel import ForwardSelection, ProjSe, load, save
from streamsel.base.block_callback import _CallbackError
from streamsel.stream import iter_array
from tests.conformance.modes import COLUMN_MODES, IN_PIECES, bits, data, fresh, same, sampled
from tests.conformance.test_undo import in_blocks


class EnoughError(ValueError):
    """An error that a caller raises."""


@sampled(COLUMN_MODES)
def test_callback_is_called_after_whole_blocks(mode, tmp_path):
    X, y = data(mode, c=3)
    alone, watched = fresh(mode, y), fresh(mode, y)
    alone.learn_columns(in_blocks(X))
    seen = []

    def look(model):
        assert model is watched
        seen.append(model.n_columns)
        if len(seen) == 2:
            save(model, tmp_path / "model")
            assert bits(load(tmp_path / "model")) == bits(model)

    watched.learn_columns(in_blocks(X), on_block=look)
    assert seen[:4] == [50, 100, 150, 160]
    assert set(seen[4:]) <= {160}  # calls in further passes
    assert bits(watched) == bits(alone)
    if mode.in_pieces:
        saved = load(tmp_path / "model")
        saved.learn_columns(in_blocks(X[:, 100:], names=range(100, 160)))
        same(saved, alone)


@sampled(IN_PIECES)
def test_error_of_the_callback_stops_without_rollback(mode):
    X, y = data(mode)
    # Without a callback, a reiterable source is learnt completely or not at all.
    reiterable = len(str(mode.params)) % 2 == 0
    model, expected = fresh(mode, y), fresh(mode, y)
    expected.learn_columns(in_blocks(X[:, :100]))
    error = EnoughError("enough")

    def end(model):
        if model.n_columns == 100:
            raise error

    with pytest.raises(EnoughError) as raised:
        model.learn_columns(in_blocks(X, reiterable=reiterable), on_block=end)
    assert raised.value is error
    assert str(error) == "enough"
    assert error.__context__ is None
    assert bits(model) == bits(expected)
    for goes_on in (model, expected):
        goes_on.learn_columns(in_blocks(X[:, 100:], names=range(100, 160)))
    same(expected, model)


@pytest.mark.parametrize("error", [StopIteration, KeyboardInterrupt, GeneratorExit, MemoryError])
def test_error_of_the_callback_is_raised_unchanged(error):
    def end(_):
        raise error

    model = ProjSe(2)
    model.learn_target(np.arange(20.0) ** 2)
    X = np.random.default_rng(0).normal(size=(20, 100))
    with pytest.raises(error):
        model.learn_columns(in_blocks(X), on_block=end)
    assert model.n_columns == 50


def test_bad_block_after_the_callback_is_undone():
    X = np.random.default_rng(0).normal(size=(20, 100))
    X[3, 70] = np.nan
    model, seen = ProjSe(2), []
    model.learn_target(np.arange(20.0) ** 2)
    with pytest.raises(ValueError, match="70"):
        model.learn_columns(in_blocks(X), on_block=lambda model: seen.append(model.n_columns))
    assert (seen, model.n_columns) == ([50], 0)


def test_error_of_the_callback_in_the_second_pass():
    """An interrupted second pass leaves a usable model."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 400))
    y = X[:, :12] @ rng.normal(size=12)
    model = ForwardSelection(12, max_candidates=12, exact=True)
    model.learn_target(y)

    def end(model):
        if model.n_passes > 1:
            raise EnoughError

    with pytest.raises(EnoughError):
        model.learn_columns(in_blocks(X), on_block=end)
    assert model.n_columns == 400
    assert 1 < model.n_passes < 2
    assert len(model.selected) == 12


def test_callback_on_arrays_and_iterables():
    X, y = np.random.default_rng(0).normal(size=(20, 30)), np.arange(20.0)
    for source in (X, iter_array(X), ((j, X[:, j]) for j in range(30))):
        model, seen = ProjSe(2), []
        model.learn_target(y)
        model.learn_columns(source, on_block=lambda model, seen=seen: seen.append(model.n_columns))
        assert seen[-1] == 30


def test_internal_callback_error_is_no_exception_subclass():
    """The internal exception is not caught by `except Exception`, and pickling is unaffected."""
    assert not issubclass(_CallbackError, Exception)
    model = ProjSe(2)
    model.learn_target(np.arange(20.0))
    model.learn_columns(np.eye(20), on_block=pickle.dumps)
    assert model.n_columns == 20
