"""`learn_many`: frames of every library, in any split, equal a loop of `learn_one`."""

import copy
import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsel import SOSPCA, ProjSe
from tests.reference.frames import BACKENDS, dicts, frame, series
from tests.reference.rows import Rows, agree, same

NAN = float("nan")
MISSING = st.sampled_from([None, NAN])


class Trio:
    """Learn the same rows by `learn_many`, by a loop of `learn_one`, and in the reference."""

    def __init__(self, backend, k=20, fading_factor=0.0, **options):
        self.backend = backend
        self.many = ProjSe(k, fading_factor=fading_factor, **options)
        self.loop = self.many.clone()
        self.rows = Rows(fading_factor)

    def learn(self, columns, y, frame_y=None, *, many=True):
        X = frame(self.backend, columns)
        if many:
            self.many.learn_many(X, y if frame_y is None else frame_y)
        for x, t in zip(dicts(columns), y, strict=True):
            self.loop.learn_one(x, t)
            if not many:
                self.many.learn_one(x, t)
            self.rows.learn_one(x, t)

    def check(self):
        same(self.many, self.loop)
        agree(self.many, self.rows)


def names(backend, width):
    """Return the names of a frame's first columns; those of an array are numbers."""
    return list(range(width)) if backend == "array" else list("badce")[:width]


@st.composite
def batches(draw, backend):
    """Return frames of different columns with gaps: (columns, y, whether by learn_many)."""
    number = st.integers(-3, 3).map(float)
    kind = draw(st.sampled_from([number, st.sampled_from("pqr"), st.booleans()]))
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        n = draw(st.integers(1, 5))
        chosen = names(backend, draw(st.integers(1, 5)))
        if backend != "array":
            chosen = draw(st.permutations(chosen))[: draw(st.integers(1, len(chosen)))]
        cells = st.lists(number | MISSING, min_size=n, max_size=n)
        columns = {name: draw(cells) for name in chosen}
        parts.append((columns, draw(st.lists(kind, min_size=n, max_size=n)), draw(st.booleans())))
    return parts


@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=25)
@given(
    data=st.data(),
    fading_factor=st.sampled_from([0.0, 0.1]),
    kernel=st.sampled_from(["linear", "poly", "rbf"]),
)
def test_any_split_equals_a_loop_of_learn_one(backend, data, fading_factor, kernel):
    trio = Trio(backend, fading_factor=fading_factor, kernel=kernel)
    for columns, y, many in data.draw(batches(backend)):
        trio.learn(columns, y, many=many)
        trio.check()


@pytest.mark.parametrize("fading_factor", [0.0, 0.02])
@pytest.mark.parametrize("backend", BACKENDS)
def test_large_frames_with_offsets(rng, backend, fading_factor):
    """Offsets in large frames and drifting means cost no digits."""
    trio = Trio(backend, k=8, fading_factor=fading_factor)
    for i in range(3):
        X = rng.normal(size=(40, 5)) * [1, 1e100, 1e-100, 1, 1] + [1e9, 1e109, 1e-91, 3 * i, 0]
        X[rng.random((40, 5)) < 0.1] = NAN
        labels = names(backend, 3 + i)
        y = (X[:, 0] + 1e9 * i + rng.normal(size=40)).tolist()
        columns = dict(zip(labels, X.T.tolist(), strict=False))
        trio.learn(columns, [1e9 if math.isnan(t) else t for t in y])
        trio.check()


TARGETS = {
    "numbers": [1.5, -2.0, 0.25, 7.0],
    "labels": ["b", "a", "b", "late"],
    "bools": [True, False, False, True],
}


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("form", ["list", *BACKENDS])
@pytest.mark.parametrize("backend", BACKENDS)
def test_targets_in_every_form(rng, backend, form, kind):
    trio = Trio(backend)
    for _ in range(3):
        columns = dict(zip(names(backend, 3), rng.normal(size=(3, 4)).tolist(), strict=True))
        y = rng.permutation(TARGETS[kind]).tolist()
        trio.learn(columns, y, series(form, y))
    trio.check()


def test_a_categorical_target(rng):
    trio = Trio("pandas")
    for kind in (pd.Categorical, pl.Categorical):
        columns = dict(zip("abc", rng.normal(size=(3, 4)).tolist(), strict=True))
        y = ["u", "v", "u", "w"]
        cast = pl.Series(y, dtype=kind) if kind is pl.Categorical else pd.Series(kind(y))
        trio.learn(columns, y, cast)
    trio.check()


@pytest.mark.parametrize("backend", BACKENDS)
def test_several_targets(rng, backend):
    """Later frames may have a new target and lack an earlier one."""
    trio = Trio(backend)
    for width in (1, 3, 2):
        columns = dict(zip(names(backend, 3), rng.normal(size=(3, 6)).tolist(), strict=True))
        targets = dict(zip(names(backend, 3), rng.normal(size=(3, 6)).tolist(), strict=True))
        if backend != "array":
            targets["label"] = list("xyxzxx")
        targets = dict(list(targets.items())[-width:]) if backend != "array" else targets
        trio.learn(columns, dicts(targets), frame(backend, targets))
        trio.check()


def test_class_codes(rng):
    trio = Trio("array", target_type="class")
    trio.rows = Rows(target_type="class")
    for y in ([3, 1, 3, 2], [1, 5, 1, 1]):
        columns = dict(enumerate(rng.normal(size=(3, 4)).tolist()))
        trio.learn(columns, y, np.array(y))
    trio.check()


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8", "int64", "uint64", "bool", ">f8"])
@pytest.mark.parametrize("way", ["array", "read-only", "F", "strided", "backwards", *BACKENDS[:-1]])
def test_dtypes_and_layouts(rng, dtype, way):
    X = rng.integers(0, 2 if dtype == "bool" else 100, size=(12, 4)).astype(dtype)
    y = rng.normal(size=12)
    labels, given_as = list(range(4)), X
    if way == "read-only":
        given_as = X.copy()
        given_as.flags.writeable = False
    elif way == "F":
        given_as = np.asfortranarray(X)
    elif way == "strided":
        given_as = np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3]
    elif way == "backwards":
        given_as = np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]
    elif way != "array":
        labels = list("abcd")
        given_as = frame(
            way, dict(zip(labels, np.asarray(X.T, X.dtype.newbyteorder("=")), strict=True))
        )
    model, rows = ProjSe(4), Rows()
    model.learn_many(given_as, y)
    for x, t in zip(X.astype(float).tolist(), y, strict=True):
        rows.learn_one(dict(zip(labels, x, strict=True)), t)
    agree(model, rows)


@pytest.mark.parametrize("backend", BACKENDS)
def test_columns_of_nulls(rng, backend):
    """A column of nulls, which has its own type in some frames, is learnt as missing values."""
    trio = Trio(backend)
    for a in ([1.0, 2.0, 4.0], [None] * 3, [3.0, None, 1.0]):
        columns = dict(zip(names(backend, 2), [a, rng.normal(size=3).tolist()], strict=True))
        trio.learn(columns, rng.normal(size=3).tolist())
        trio.check()


def test_frames_with_moving_origins(rng):
    """Frames equal a loop where old rows fade fast, so that origins move within a frame."""
    X = rng.normal(size=(80, 3)) + 5.0
    y = X[:, 1] + rng.normal(size=80) + np.arange(80)
    many, loop = ProjSe(3, fading_factor=0.3), ProjSe(3, fading_factor=0.3)
    many.learn_many(X, y)
    for x, t in zip(X.tolist(), y.tolist(), strict=True):
        loop.learn_one(dict(enumerate(x)), t)
    same(many, loop)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("c", [1, 3])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("fading_factor", [0.0, 1e-3])
def test_more_rows_and_columns_than_one_batch(rng, order, c, missing, fading_factor):
    X = np.array(rng.normal(loc=[1e9, 0.0, 5.0], size=(9000, 3)), order=order)
    Y = X[:, :1] + rng.normal(size=(9000, c))
    if missing:
        X[rng.random(X.shape) < 0.01] = NAN
    at_once, by_parts = (ProjSe(3, fading_factor=fading_factor) for _ in range(2))
    at_once.learn_many(X, Y)
    for start in range(0, 9000, 700):
        by_parts.learn_many(X[start : start + 700], Y[start : start + 700])
    same(at_once, by_parts)
    wide, narrow = (ProjSe(9, fading_factor=fading_factor) for _ in range(2))
    X = np.array(np.resize(X.T, (300, 40)).T, order=order)
    X += rng.normal(size=X.shape)
    wide.learn_many(X, Y[:40])
    for i in range(40):
        narrow.learn_many(X[i : i + 1], Y[i : i + 1])
    same(wide, narrow)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("value", [np.inf, -np.inf, 1.1e152, -1e200])
@pytest.mark.parametrize("row", [0, 6, 9])
@pytest.mark.parametrize("missing", [False, True])
def test_too_large_values_in_known_columns(rng, order, value, row, missing):
    model = ProjSe(2)
    X, y = np.array(rng.normal(size=(10, 3)), order=order), rng.normal(size=10)
    model.learn_many(X, y)
    before = copy.deepcopy(model)
    bad = X.copy(order="K")
    bad[row, 1] = value
    if missing:
        bad[3, 2] = NAN
    with pytest.raises(ValueError, match=f"in 1, row {row}"):
        model.learn_many(bad, y)
    assert pickle.dumps(model) == pickle.dumps(before)
    # The largest permitted value is learnt.
    bad[row, 1] = np.sign(value) * 1e152
    model.learn_many(bad, y)
    assert model.n_rows == 20


def test_parts_of_pandas_frames_keep_names(rng):
    X = pd.DataFrame(rng.normal(size=(12, 3)), columns=list("bac"))
    y = rng.normal(size=12)
    model, other = ProjSe(2), ProjSe(2)
    model.learn_many(X, y)
    for rows in (slice(0, 5), slice(5, 12)):
        other.learn_many(X[rows], y[rows])
    same(model, other)
    renamed = X.rename(columns={"b": "late"})
    for each in (model, other):
        each.learn_many(renamed, y)
    same(model, other)
    assert model.n_columns == 4
    with pytest.raises(ValueError, match="'a'"):
        model.learn_many(X.set_axis(list("aac"), axis=1), y)


def test_frames_with_repeated_names_are_refused(rng):
    model = SOSPCA(1)
    X = pd.DataFrame(rng.normal(size=(12, 3)), columns=list("bac"))
    model.learn_many(X, rng.normal(size=12))
    with pytest.raises(Exception, match="a"):
        model.transform_many(X.set_axis(list("aac"), axis=1))
