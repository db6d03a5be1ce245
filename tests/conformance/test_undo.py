"""Errors and interrupts: the model is rolled back, or continues from where it was."""

import pickle

import numpy as np
import pytest

from streamsel.data.chunks import Block
from streamsel.state.base import ColumnState
from streamsel.stream import ColumnStream, as_stream
from tests.conformance.modes import (
    COLUMN_MODES,
    IN_PIECES,
    bits,
    data,
    fresh,
    learnt,
    over,
    rotated,
    same,
    sampled,
)

FIRST = [f"first {j}" for j in range(20)]


def in_blocks(X, size=50, names=None, *, reiterable=True):
    """Return a stream in blocks of this many columns."""
    names = range(X.shape[1]) if names is None else names

    def blocks():
        for start in range(0, X.shape[1], size):
            yield Block(names[start : start + size], X[:, start : start + size])

    return ColumnStream(blocks, n_rows=len(X), reiterable=reiterable)


def begun(mode, X, y):
    """Return a model that has learnt a block, if it supports several calls."""
    model = fresh(mode, y)
    if mode.in_pieces:
        model.learn_columns(X[:, :20] ** 2, FIRST)
    return model


@rotated(COLUMN_MODES, "at", [0, 37, 159])
def test_bad_column_of_a_reiterable_source_is_undone(mode, at):
    X, y = data(mode, c=3)
    model = begun(mode, X, y)
    before, rest = pickle.dumps(model), X.copy()
    rest[3, at] = np.inf if mode.cls._takes_missing else np.nan
    for source in (
        as_stream(rest, range(160)),
        in_blocks(rest),
        [(j, rest[:, j]) for j in range(160)],
    ):
        with pytest.raises(ValueError, match=f"column {at}"):
            model.learn_columns(source)
        assert pickle.dumps(model) == before
    expected = begun(mode, X, y)
    for goes_on in (model, expected):
        goes_on.learn_columns(X, range(160))
    same(expected, model, rtol=0)


@sampled(IN_PIECES)
def test_bad_column_of_a_single_pass_source(mode):
    """The columns before it stay learnt, as the source cannot be read twice."""
    X, y = data(mode)
    rest = X.copy()
    rest[:, 137] = np.nan
    for source in (iter([(j, rest[:, j]) for j in range(160)]), in_blocks(rest, reiterable=False)):
        model = fresh(mode, y)
        with pytest.raises(ValueError, match=r"137[^$]*The 137 columns before it stay learnt"):
            model.learn_columns(source)
        same(learnt(mode, X[:, :137], y), model)


def broken(X, error, at=37):
    for j in range(at):
        yield j, X[:, j]
    raise error


ERRORS = {error.__name__: error for error in (ValueError, OSError, KeyboardInterrupt, MemoryError)}


@rotated(IN_PIECES, "error", ERRORS)
def test_failing_source_leaves_a_usable_model(mode, error):
    X, y = data(mode)
    error = ERRORS[error]("broken")
    model = fresh(mode, y)
    stay = "The 37 columns before it stay learnt" if isinstance(error, ValueError) else None
    with pytest.raises(type(error), match=stay):
        model.learn_columns(broken(X, error))
    seen = model.n_columns
    assert seen == 37 if isinstance(error, ValueError) else 0 <= seen <= 37
    expected = learnt(mode, X[:, :seen], y)
    same(expected, model)
    for goes_on in (model, expected):
        goes_on.learn_columns(X[:, seen:], range(seen, 160))
    same(expected, model)


@rotated(COLUMN_MODES, "error", ["KeyboardInterrupt", "MemoryError"])
def test_interruption_within_a_block(mode, error, monkeypatch):
    """Complete blocks stay learnt, and the model continues."""
    error = ERRORS[error]
    X, y = data(mode, c=3)
    keeps = type(learnt(mode, X, y)._columns)
    for n in (1, 2, 3):
        model = fresh(mode, y)
        calls = 0

        def admit(self, *args, inner=keeps.admit, n=n, **further):
            nonlocal calls
            inner(self, *args, **further)
            calls += 1
            if calls == n:
                raise error

        with monkeypatch.context() as patch:
            patch.setattr(keeps, "admit", admit)
            with pytest.raises(error):
                model.learn_columns(in_blocks(X))
        assert calls == n
        # An interrupt keeps complete blocks; an error of a reiterable source keeps none.
        seen = 50 * (n - 1) if error is KeyboardInterrupt else 0
        assert model.n_columns == seen
        if not mode.in_pieces and seen:
            continue  # this mode learns one source only
        expected = fresh(mode, y)
        if seen:
            expected.learn_columns(in_blocks(X[:, :seen]))
        assert bits(model) == bits(expected)
        for goes_on in (model, expected):
            goes_on.learn_columns(in_blocks(X[:, seen:], names=range(seen, 160)))
        same(expected, model, rtol=0)


@over({name: mode for name, mode in COLUMN_MODES.items() if not mode.in_pieces})
def test_interruption_of_the_second_pass(mode, monkeypatch):
    """Certified picks stay certified, and the model is usable."""
    X, y = data(mode, c=3)
    model, once = fresh(mode, y), learnt(mode, in_blocks(X), y, exact=False)
    whole = learnt(mode, X, y)
    if whole.n_passes == 1:
        return
    reads = []

    def blocks():
        reads.append(1)
        for n, block in enumerate(in_blocks(X).blocks()):
            if len(reads) == 2 and n == 2:
                raise KeyboardInterrupt
            yield block

    with pytest.raises(KeyboardInterrupt):
        model.learn_columns(ColumnStream(blocks, n_rows=len(X)))
    assert (model.n_columns, model.n_rows) == (160, len(X))
    n = model.n_certified
    assert once.n_certified <= n
    assert model.selected[:n] == whole.selected[:n]
    assert len(model.selected) == len(whole.selected)


@sampled(IN_PIECES)
def test_a_rejected_block_copies_nothing(mode, monkeypatch):
    X, y = data(mode)
    model = learnt(mode, X, y)
    copies = []
    copied = type(model._columns)._copied
    monkeypatch.setattr(
        type(model._columns), "_copied", lambda self: [copied(self), copies.append(1)][0]
    )
    bad = X[:, :30].copy()
    bad[0, 0] = np.inf
    with pytest.raises(ValueError, match="'bad 0'"):
        model.learn_columns(bad, [f"bad {j}" for j in range(30)])
    assert not copies
    if mode.by_name or not getattr(model._columns, "limit", 1):
        return  # all columns are kept
    model.learn_columns(np.full((40, 30), 3.0), [f"constant {j}" for j in range(30)])
    assert not copies
    model.learn_columns(X + 1.0, [f"again {j}" for j in range(160)])
    assert len(copies) <= 1  # at most one copy for one block
    assert isinstance(model._columns, ColumnState)
