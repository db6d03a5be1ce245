"""The door for rows: what is refused leaves no trace; and how many variables get in."""

import datetime as dt
import math
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from streamsel import ProjSe
from tests.reference.frames import BACKENDS, dicts, frame
from tests.reference.rows import Rows, agree, same

NAN = float("nan")
EITHER = (ValueError, TypeError)
ROWS = [
    ({"a": 1.0, "b": 2, "c": True}, {"number": 1.0, "label": "u", "dict": {"p": 2.0, "q": "u"}}),
    ({"b": 1.5, "a": 0.5, "d": 2.0}, {"number": -1.5, "label": "v", "dict": {"p": 0.5}}),
    ({"a": 2.0, "b": None}, {"number": 0.5, "label": "u", "dict": {"q": "v", "r": 4.0}}),
    ({"c": 2.5, "a": 1.0}, {"number": 2.5, "label": "w", "dict": {"p": 1.0, "q": "u"}}),
]


def learnt(kind, **options):
    model = ProjSe(2, **options)
    for x, y in ROWS:
        model.learn_one(x, y[kind])
    return model


def refused(model, act, error, *words):
    """Run `act`, expecting an error that has these words, and no other trace of it."""
    before, shown = pickle.dumps(model), (model.selected, model.relevance)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(error) as info:
            act()
    message = str(info.value)
    assert "got" in message.lower()
    assert all(word in message for word in words), message
    assert pickle.dumps(model) == before
    assert (model.selected, model.relevance) == shown


BAD_VALUES = {
    "inf": (ValueError, math.inf),
    "-inf": (ValueError, -math.inf),
    "inf in float32": (ValueError, np.float32(np.inf)),
    "too large": (ValueError, 10**400),
    "text": (TypeError, "text"),
    "number as text": (TypeError, "1.0"),
    "bytes": (TypeError, b"1"),
    "complex": (TypeError, 1j),
    "complex of numpy": (TypeError, np.complex128(1j)),
    "list": (TypeError, [1.0]),
    "array": (TypeError, np.ones(2)),
    "dict": (TypeError, {"x": 1.0}),
    "datetime64": (TypeError, np.datetime64("2024-01-01")),
    "object": (TypeError, object()),
    "date": (TypeError, dt.date(2024, 1, 1)),
}
BAD_TARGETS = {
    "None": (ValueError, None),
    "NaN": (ValueError, NAN),
    "inf": (ValueError, math.inf),
    "-inf": (ValueError, -math.inf),
    "too large": (ValueError, 10**400),
    "list": (TypeError, [1.0]),
    "array": (TypeError, np.ones(2)),
    "complex": (TypeError, 1j),
    "complex of numpy": (TypeError, np.complex128(1j)),
    "date": (TypeError, dt.date(2024, 1, 1)),
    "object": (TypeError, object()),
}


@pytest.mark.parametrize("place", ["known", "new", "first of new"])
@pytest.mark.parametrize("case", BAD_VALUES)
@pytest.mark.parametrize("kind", ["number", "label", "dict"])
def test_bad_values(kind, case, place):
    """The good names of the row, the target's new class and new key are held back with it."""
    error, value = BAD_VALUES[case]
    model = learnt(kind)
    name = {"known": "b", "new": "the bad one", "first of new": "Z"}[place]
    x = {"a": 9.0, "good and new": 1.0, name: value, "c": 1.0}
    y = {"number": 9.0, "label": "new", "dict": {"new": 3.0, "q": "new"}}[kind]
    refused(model, lambda: model.learn_one(x, y), error, repr(name))
    columns = {**{key: [1.0, 2.0] for key in x}, name: [1.0, value]}
    if not isinstance(value, list | np.ndarray | dict):
        bad = pd.DataFrame({key: pd.Series(values) for key, values in columns.items()})
        ys = [y, y] if kind != "dict" else pd.DataFrame([y, y])
        refused(model, lambda: model.learn_many(bad, ys), error, repr(name))


@pytest.mark.parametrize("case", BAD_TARGETS)
@pytest.mark.parametrize("kind", ["number", "label", "dict", "key"])
def test_bad_targets(kind, case):
    error, y = BAD_TARGETS[case]
    if kind == "label":
        error = EITHER
    model = learnt("dict" if kind == "key" else kind)
    if kind == "key":
        y = {"p": 1.0, "new": y}
    elif kind == "dict":
        error = EITHER
    refused(model, lambda: model.learn_one({"a": 9.0, "new": 1.0}, y), error)


@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize("case", BAD_TARGETS)
def test_bad_targets_of_the_first_row(case, fresh):
    error, y = BAD_TARGETS[case]
    model = ProjSe(2) if fresh else ProjSe(2, target="numeric", fading_factor=0.1)
    refused(model, lambda: model.learn_one({"a": 9.0}, y), error)
    assert model.transform_one({"a": 1.0}) == {"a": 1.0}


@pytest.mark.parametrize(
    ("kind", "y", "error"),
    [
        ("number", "text", TypeError),
        ("number", {"p": 1.0}, EITHER),
        ("label", 1.0, EITHER),
        ("label", {"p": 1.0}, EITHER),
        ("dict", 1.0, EITHER),
        ("dict", "u", EITHER),
        ("dict", {"p": "text"}, EITHER),
        ("dict", {"q": 1.0}, EITHER),
    ],
)
def test_the_target_stays_what_it_was(kind, y, error):
    model = learnt(kind)
    refused(model, lambda: model.learn_one({"a": 9.0, "new": 1.0}, y), error)
    ys = pd.DataFrame([y]) if isinstance(y, dict) else [y]
    refused(model, lambda: model.learn_many(pd.DataFrame({"new": [1.0]}), ys), error)


def test_numeric_refuses_text_and_takes_bools():
    model = ProjSe(2, target="numeric")
    refused(model, lambda: model.learn_one({"a": 1.0}, "text"), TypeError)
    refused(model, lambda: model.learn_one({"a": 1.0}, {"p": "text"}), TypeError)
    model.learn_one({"a": 1.0}, True)
    model.learn_one({"a": 3.0}, 2.5)
    refused(model, lambda: model.learn_one({"a": 1.0}, "text"), TypeError)
    assert model.n_rows == 2


@pytest.mark.parametrize("x", [None, 1.0, "a", [1.0], [("a", 1.0)], np.ones(2), {"a"}])
def test_what_is_no_row(x):
    for model in (ProjSe(2), learnt("number")):
        refused(model, lambda model=model: model.learn_one(x, 1.0), TypeError)


GOOD = {"a": [1.0, 2.0, 4.0], "new": [0.0, 1.0, 5.0]}
BAD_FRAMES = {
    "dict": (TypeError, GOOD),
    "None": (TypeError, None),
    "list": (TypeError, [{"a": 1.0}] * 3),
    "text": (TypeError, "abc"),
    "1-D": (EITHER, np.ones(3)),
    "3-D": (EITHER, np.ones((3, 1, 1))),
    "lazy": (TypeError, pl.LazyFrame(GOOD)),
    "complex": (TypeError, np.ones((3, 2)) * 1j),
    "texts": (TypeError, np.full((3, 2), "a")),
    "objects": (TypeError, np.full((3, 2), object())),
    "inf": (ValueError, np.array([[1.0, 2.0], [3.0, math.inf], [1.0, 1.0]])),
    "pandas text": (TypeError, pd.DataFrame(GOOD | {"bad": ["1", "2", "3"]})),
    "polars text": (TypeError, pl.DataFrame(GOOD | {"bad": ["1", "2", "3"]})),
    "pyarrow text": (TypeError, pa.table(GOOD | {"bad": ["1", "2", "3"]})),
    "categories": (TypeError, pd.DataFrame(GOOD | {"bad": pd.Categorical(["u", "v", "u"])})),
    "dates": (TypeError, pl.DataFrame(GOOD | {"bad": [dt.date(2024, 1, 1)] * 3})),
    "pandas dates": (TypeError, pd.DataFrame(GOOD | {"bad": pd.to_datetime(["2024-01-01"] * 3)})),
    "pandas inf": (ValueError, pd.DataFrame(GOOD | {"bad": [1.0, NAN, math.inf]})),
    "polars inf": (ValueError, pl.DataFrame(GOOD | {"bad": [1.0, None, math.inf]})),
    "pyarrow inf": (ValueError, pa.table(GOOD | {"bad": [1.0, None, -math.inf]})),
    "a name twice": (ValueError, pd.DataFrame(np.ones((3, 2)), columns=["bad", "bad"])),
}


@pytest.mark.parametrize("case", BAD_FRAMES)
def test_bad_frames(case):
    error, X = BAD_FRAMES[case]
    words = ["bad"] if case != "lazy" and "bad" in getattr(X, "columns", []) else []
    for model in (ProjSe(2), learnt("number"), learnt("number", max_features=4)):
        act = lambda model=model: model.learn_many(X, [1.0, 2.0, 3.5])  # noqa: E731
        refused(model, act, error, *words)


BAD_MANY = {
    "too few": (ValueError, [1.0, 2.0]),
    "too many": (ValueError, [1.0, 2.0, 3.0, 4.0]),
    "none": (ValueError, None),
    "scalar": (EITHER, 1.0),
    "None among numbers": (ValueError, [1.0, None, 2.0]),
    "NaN": (ValueError, np.array([1.0, NAN, 2.0])),
    "inf": (ValueError, np.array([1.0, 2.0, math.inf])),
    "null": (ValueError, pl.Series([1.0, None, 2.0])),
    "pandas null": (ValueError, pd.Series([1.0, pd.NA, 2.0], dtype="Float64")),
    "pyarrow null": (ValueError, pa.chunked_array([[1.0, None, 2.0]])),
    "complex": (TypeError, np.ones(3) * 1j),
    "labels": (TypeError, ["u", "v", "u"]),
    "two columns": (EITHER, np.ones((3, 2))),
    "a frame": (EITHER, pd.DataFrame({"p": [1.0, 2.0, 3.0], "q": [1.0, 2.0, 4.0]})),
    "dates": (TypeError, pd.Series(pd.to_datetime(["2024-01-01"] * 3))),
}


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("case", BAD_MANY)
def test_bad_targets_of_frames(case, backend):
    error, y = BAD_MANY[case]
    model = learnt("number")
    refused(model, lambda: model.learn_many(frame(backend, GOOD), y), error)


def test_a_null_among_labels():
    for y in (["u", None, "v"], pl.Series(["u", None, "v"]), pd.Series(["u", None, "v"])):
        model = learnt("label")
        refused(
            model, lambda model=model, y=y: model.learn_many(frame("pandas", GOOD), y), ValueError
        )


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_rows_change_nothing(backend):
    model = learnt("number")
    before = pickle.dumps(model)
    empty = frame("pandas", GOOD).iloc[:0]
    X = {"array": np.ones((0, 2)), "polars": pl.DataFrame(empty), "pyarrow": pa.table(GOOD)[:0]}
    model.learn_many(X.get(backend, empty), np.ones(0))
    assert pickle.dumps(model) == before


def test_columns_after_rows_are_refused():
    model = learnt("number")
    column = np.arange(4.0)
    refused(model, lambda: model.learn_target(column), ValueError)
    refused(model, lambda: model.learn_column("new", column), ValueError)
    refused(model, lambda: model.learn_columns(column[:, None]), ValueError)
    refused(model, lambda: model.learn_columns([("new", column)]), ValueError)
    refused(model, lambda: model.learn_columns(sp.csc_array(column[:, None])), ValueError)


def test_rows_need_a_target():
    for columns in (False, True):
        model = ProjSe(2)
        model.learn_target(None)
        if columns:
            model.learn_columns(np.random.default_rng(0).normal(size=(5, 3)))
        refused(model, lambda model=model: model.learn_one({"a": 1.0}, 1.0), ValueError)
        refused(
            model, lambda model=model: model.learn_many(np.ones((2, 2)), [1.0, 2.0]), ValueError
        )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("fading_factor", bad) for bad in (1.0, -0.1, NAN, "0.1", None)],
        *[("max_features", bad) for bad in (0, -1, 2.5, "3")],
        *[("grace_period", bad) for bad in (0, -1, 2.5, None)],
    ],
)
def test_bad_parameters(name, value):
    with pytest.raises(ValueError, match=f"'{name}'.*Got"):
        ProjSe(2, **{name: value})


@pytest.mark.parametrize("kind", ["number", "label", "dict"])
def test_bad_rows_in_between_leave_no_trace(kind):
    """Nor in whatever a model remembers of its last row."""
    model, rows = ProjSe(9, fading_factor=0.1), Rows(0.1)
    for i in range(12):
        x, y = ROWS[i % 4][0], ROWS[i % 4][1][kind]
        for error, value in BAD_VALUES.values():
            with pytest.raises(error):
                model.learn_one({"bad": value, f"new {i}": 1.0, **x}, y)
            with pytest.raises(error):
                model.learn_one({**x, "a": value}, y)
        with pytest.raises(ValueError, match="Got"):
            model.learn_one({**x, f"new {i}": 1.0}, NAN)
        model.learn_one(x, y)
        rows.learn_one(x, y)
        agree(model, rows)


@pytest.mark.parametrize("many", [False, True])
def test_few_distinct_integers_are_asked_about_once(rng, many):
    X, y = rng.normal(size=(100, 3)), [j % 5 for j in range(100)]

    def learn(model):
        for start in range(0, 100, 50):
            held = slice(start, start + 50)
            if many:
                model.learn_many(X[held], y[held])
            for x, t in zip(X[held].tolist(), y[held], strict=True):
                model.learn_one(dict(enumerate(x)), t)

    with pytest.warns(UserWarning, match="class") as caught:
        learn(ProjSe(2))
    assert len(caught) == 1
    for target in ("class", "numeric"):
        learn(ProjSe(2, target=target))


# ------------------------------------------------------------------------- how many get in


def crowd(rng, n, width=6):
    """Yield rows with two that matter, one that matters a little, and ever new words."""
    for i in range(n):
        a, b, c = rng.normal(size=3).tolist()
        x = {"a": a, "b": b, "c": c} | {f"w{j}": 1.0 for j in rng.integers(0, 9 + i, size=width)}
        yield x, a - b + 0.4 * c + 0.1 * float(rng.normal())


def tracked(model):
    """Return the names that a model tracks, in order of arrival."""
    return list(model._moments.table.slots)


@pytest.mark.parametrize("fading_factor", [0.0, 0.02])
def test_the_cap_is_kept_and_so_are_the_selected_and_the_new(rng, fading_factor):
    cap, grace = 10, 4
    model = ProjSe(2, fading_factor=fading_factor, max_features=cap, grace_period=grace)
    rows, since, gone = Rows(fading_factor), {}, set()
    for i, (x, y) in enumerate(crowd(rng, 150)):
        kept = {*model.selected, *(name for name, start in since.items() if i - start < grace)}
        model.learn_one(x, y)
        rows.learn_one(x, y)
        held = tracked(model)
        assert len(held) <= cap
        assert kept <= set(held)
        gone |= since.keys() - set(held)
        since = {name: since.get(name, i) for name in held}
        relevance = rows.relevance()
        for name in model.selected:
            if since[name] == 0:  # tracked from the first row on
                assert model.relevance[name] == pytest.approx(relevance[name], abs=1e-9)
    assert set(model.selected) == {"a", "b"}
    assert len(gone) > 30
    assert model.n_columns > 40


def test_the_least_relevant_makes_room(rng):
    model = ProjSe(1, max_features=4, grace_period=5)
    for i in range(30):
        a, b, c, d = rng.normal(size=4).tolist()
        x = {"a": a, "b": b, "c": c, "d": d}
        model.learn_one(x | {"new": d} if i == 29 else x, a + 0.5 * b + 0.3 * c)
    assert model.selected == ["a"]
    assert tracked(model) == ["a", "b", "c", "new"]


def test_a_new_name_waits_until_one_can_go(rng):
    model = ProjSe(1, max_features=3, grace_period=8)
    for i in range(12):
        a, b, c = rng.normal(size=3).tolist()
        model.learn_one({"a": a, "b": b, "c": c} | ({"late": a} if i > 1 else {}), a + b)
        assert ("late" in tracked(model)) == (i >= 8)
    assert len(tracked(model)) == 3


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("size", [1, 3, 7, 50])
def test_a_cap_is_the_same_in_frames(rng, backend, size):
    """Some may go only in the middle of a frame; then the next may come in, as in the loop."""
    many, loop = (ProjSe(2, max_features=8, grace_period=5) for _ in range(2))
    X, y = rng.normal(size=(100, 3)), rng.normal(size=100)
    for start in range(0, 100, size):
        stop = min(start + size, 100)
        columns = dict(zip("abc", X[start:stop].T.tolist(), strict=True))
        for j in range(4):
            columns[f"{(start // size * 3 + j) % 40}"] = rng.normal(size=stop - start).tolist()
        many.learn_many(frame(backend, columns), y[start:stop])
        for x, t in zip(dicts(columns), y[start:stop].tolist(), strict=True):
            loop.learn_one(x, t)
        assert tracked(many) == tracked(loop)
        same(many, loop)
