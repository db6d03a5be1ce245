"""Rows in every mode: frames equal loops of rows, errors roll back, columns continue as rows."""

import copy
import datetime as dt
import decimal
import fractions
import itertools
import math
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from streamsel.base.linear_map import align_components
from tests.conformance.modes import bits, build, close, fresh, over, rotated, sampled, shown
from tests.conformance.rowwise import (
    BY_MOMENTS,
    BY_WINDOW,
    ROW_MODES,
    WITHOUT_TARGET,
    assert_same_model,
    is_of_classes,
    kinds_of,
    learn_many,
    learn_one,
    outputs,
    stream,
    taught,
)
from tests.copies import COPIES
from tests.reference.frames import BACKENDS, dicts, frame, series
from tests.reference.rows import canonical, observed

NAN = float("nan")
NAMES = "abcdef"
N = 100
WITH_TARGET = {name: mode for name, mode in ROW_MODES.items() if mode.cls._is_supervised}
BY_WINDOW_TAUGHT = {name: mode for name, mode in BY_WINDOW.items() if mode.cls._is_supervised}
PHASES = ["fresh", "rows", "columns", "columns and rows"]


def phases_of(mode):
    """Return the phases to test; only windows distinguish few rows from many."""
    return PHASES + ["few rows"] * (mode in BY_WINDOW.values())


def parts_of(rows, sizes, names=None):
    """Cut rows into parts of these sizes, cyclically, each with a column for all its names."""
    ends = itertools.accumulate(itertools.cycle(sizes))
    for start, stop in itertools.pairwise(itertools.chain([0], ends)):
        part = rows[start:stop]
        if not part:
            return
        kept = list(dict.fromkeys(name for x, _ in part for name in x)) if names is None else names
        yield {name: [x.get(name, 0.0) for x, _ in part] for name in kept}, [y for _, y in part]


def many_targets(backend, ys):
    """Return the targets of many rows in the types of a library."""
    if isinstance(ys[0], dict):
        columns = {name: [y.get(name, 0.0) for y in ys] for name in {k: 0 for y in ys for k in y}}
        return frame("pandas" if backend == "array" else backend, columns)
    return series(backend, ys)


# ------------------------------------------------------------------------------------- frames


@rotated(
    ROW_MODES,
    "kind,backend",
    lambda mode: [(kind, backend) for backend in BACKENDS for kind in kinds_of(mode)],
    each=3,
)
def test_frames_in_any_split_equal_loops_of_rows(mode, kind, backend):
    """Features, classes and targets start late; some disappear for a while, or are missing."""
    names = range(6) if backend == "array" else "badcfe"
    rows = stream(mode, N, kind, names=names)
    for i, (x, _) in enumerate(rows):
        if i % 7 == 3:
            x[names[2]] = None if i % 2 else NAN
        if 40 <= i < 70 and backend != "array":
            del x[names[3]]
        if i < 37:
            del x[names[5]]
    loop, many = build(mode), build(mode)
    for i, (columns, ys) in enumerate(parts_of(rows, (1, 30, 6, 3, 45))):
        part = list(zip(dicts(columns), ys, strict=True))
        taught(loop, part)
        if i % 5 == 2:
            taught(many, part)
        else:
            learn_many(many, frame(backend, columns), many_targets(backend, ys))
        assert_same_model(many, loop)
    assert many.n_rows == N
    complete = [({name: x.get(name, 0.0) for name in names}, y) for x, y in rows]
    for one, other in zip(outputs(many, complete), outputs(loop, complete), strict=True):
        assert list(one) == list(other)
        got = [v for v in one.values() if observed(v)]
        np.testing.assert_allclose(got, [v for v in other.values() if observed(v)], atol=1e-9)


@over(ROW_MODES)
def test_ties_are_broken_by_order(mode):
    """Of equally relevant variables the first has precedence, regardless of rounding."""
    scales = {"u": 3.0, "v": 0.1, "w": 1.0 / 3.0, "x": 1.0, "y": 7.0, "z": 0.7}
    rows = [
        ({name: x["b"] * scale for name, scale in scales.items()}, y) for x, y in stream(mode, N)
    ]
    one, many = taught(build(mode), rows), build(mode)
    for columns, ys in parts_of(rows, (N // 2,)):
        learn_many(many, frame("pandas", columns), ys)
    assert_same_model(many, one)


@sampled(ROW_MODES)
def test_frame_of_the_caller_may_be_overwritten(mode):
    rows = stream(mode, 50, names=range(4))
    X = np.array([[*x.values()] for x, _ in rows])
    y = np.array([y for _, y in rows], dtype=object)
    model = build(mode)
    learn_many(model, X, y)
    before, found = bits(model), shown(model)
    X[:] = 0.0
    y[:] = y[0]
    assert bits(model) == before
    close(shown(model), found)


@sampled(ROW_MODES)
def test_pandas_index_is_ignored(mode):
    """Rows of pandas are learnt in their order, whatever the indices of X and y."""
    rows = stream(mode, 50)
    X, y = pd.DataFrame([x for x, _ in rows]), pd.Series([y for _, y in rows])
    one, other = build(mode), build(mode)
    learn_many(one, X, y)
    turned = np.random.default_rng(0).permutation(50)
    learn_many(other, X.set_index(turned), y.set_axis(turned[::-1]))
    assert bits(one) == bits(other)


@rotated(ROW_MODES, "phase", phases_of)
def test_no_rows_change_nothing(mode, phase):
    model, _ = in_phase(mode, phase)
    before = bits(model)
    X = pd.DataFrame({"a": [1.0], "new": [2.0]})
    for empty in (X.iloc[:0], pl.DataFrame(X)[:0], pa.table(X)[:0], np.ones((0, 2))):
        learn_many(model, empty, np.ones(0))
        assert bits(model) == before


# ----------------------------------------------------------------------------- names and values


@rotated(ROW_MODES, "kind", kinds_of)
def test_order_of_names_has_no_effect(mode, kind):
    """New names are ties, and the order of the last row does not affect the next."""
    rng = np.random.default_rng(0)
    one, other = build(mode), build(mode)
    for x, y in stream(mode, 60, kind):
        names = rng.permutation(list(x))[: rng.integers(1, 7)].tolist()
        x = {name: round(x[name]) for name in names}  # noqa: PLW2901
        learn_one(one, x, y)
        learn_one(other, dict(reversed(x.items())), y)
        assert bits(one) == bits(other)
    assert one.transform_one(x) == other.transform_one(x)


@sampled(ROW_MODES)
def test_dict_reused_by_the_caller(mode):
    """The caller uses one dict, and changes its keys and values in place."""
    one, other, x = build(mode), build(mode), {}
    for i, (new, y) in enumerate(stream(mode, 60)):
        x.clear()
        x |= {name: new[name] for name in list(new)[i % 3 :]} if i % 9 else {}
        learn_one(one, x, y)
        learn_one(other, dict(x), y)
        assert bits(one) == bits(other)


NUMBERS = [
    *(int, float, bool, np.float32, np.int8, np.uint64, np.bool_, np.float64),
    *(decimal.Decimal, fractions.Fraction),
]


@sampled(ROW_MODES)
def test_all_number_types_are_equivalent(mode):
    rng = np.random.default_rng(0)
    plain = build(mode)
    models = [build(mode) for _ in NUMBERS]
    for x, y in stream(mode, 45):
        names = [*x][: rng.integers(3, 7)]
        values = rng.integers(0, 2, size=len(names)).tolist()
        learn_one(plain, dict(zip(names, map(float, values), strict=True)), y)
        for number, model in zip(NUMBERS, models, strict=True):
            learn_one(model, dict(zip(names, map(number, values), strict=True)), y)
    for model in models:
        assert bits(model) == bits(plain)


@sampled(WITH_TARGET)
def test_all_number_types_are_equivalent_as_targets(mode):
    """Booleans are numbers where a numeric target is required."""
    further = {} if is_of_classes(mode) else {"target_type": "numeric"}
    plain = build(mode, **further)
    models = [build(mode, **further) for _ in NUMBERS]
    for i, (x, _) in enumerate(stream(mode, 45)):
        plain.learn_one(x, float(i % 3 == 1))
        for number, model in zip(NUMBERS, models, strict=True):
            model.learn_one(x, number(i % 3 == 1))
    for model in models:
        close(shown(model), shown(plain))
        assert model.n_rows == 45
    for bad in () if is_of_classes(mode) else ("text", {"p": "text"}):
        for model in (plain, build(mode, **further)):
            Refusals(model)(bad, lambda model=model, bad=bad: model.learn_one(x, bad))


@over(ROW_MODES)
def test_offsets_and_scales_keep_the_selection(mode):
    """Offsets of 1e9 and scales up to 1e150 keep the selection; powers of two avoid rounding."""
    names = NAMES[: build(mode).max_features]
    for offset, scale in ((1e9, 1.0), (0.0, 2.0**-332), (1e9, 2.0**332), (0.0, 2.0**498)):
        plain, moved = build(mode), build(mode)
        for x, y in stream(mode, 60, names=names):
            x = {name: float(round(8.0 * v)) for name, v in x.items()}  # noqa: PLW2901
            learn_one(plain, x, y)
            learn_one(moved, {name: (v + offset) * scale for name, v in x.items()}, y)
        if hasattr(plain, "selected"):
            assert moved.selected == plain.selected
        close(moved.relevance, plain.relevance, 1e-7)


def zeros_before(rows):
    """Return rows in which features that start later are 0 before."""
    names = dict.fromkeys(name for x, _ in rows for name in canonical(x))
    return [(dict.fromkeys(names, 0.0) | x, y) for x, y in rows]


@rotated(BY_MOMENTS | BY_WINDOW, "kind", kinds_of, each=2)
def test_absent_values_are_zero(mode, kind):
    """A variable is also 0 before its first row, as on columns."""
    names = NAMES[: build(mode).max_features]  # few enough that none is evicted
    rows = stream(mode, 60, kind, names=names)
    for i, (x, _) in enumerate(rows):
        if i < 33:
            del x[names[-1]]
        if i % 4 == 1:
            del x[names[1]]
    one, other = taught(build(mode), rows), taught(build(mode), zeros_before(rows))
    assert one.n_columns == other.n_columns == len(names)
    close(shown(other), shown(one), 1e-9)


@over(BY_MOMENTS | BY_WINDOW)
def test_missing_values_count_as_the_mean(mode):
    """The mean is weighted, over the rows that observed it; in a window, over its rows."""
    plain, model = build(mode), build(mode)
    n = model._window_size if model._by_window else 50
    rows = stream(mode, n, names=NAMES[: plain.max_features])
    weights = (1.0 - plain.fading_factor) ** np.arange(n - 1.0, -1.0, -1.0)
    lacking = {"a": {1, 2, 7}, "b": {0, 4, 11}, "c": set(range(n))} | {"d": {n - 1}}
    filled = [dict(x) for x, _ in rows]
    for name, where in lacking.items():
        seen = [i for i in range(n) if i not in where]
        values = [rows[i][0][name] for i in seen]
        mean = float(np.average(values, weights=weights[seen])) if seen else 0.0
        for i in where:
            filled[i][name] = mean
    for i, (x, y) in enumerate(rows):
        missing = [None, NAN, pd.NA][i % 3]
        gone = {name: missing for name, where in lacking.items() if i in where}
        learn_one(model, x | gone, y)
        learn_one(plain, filled[i], y)
    close(shown(model), shown(plain), 1e-9)


@over({name: mode for name, mode in ROW_MODES.items() if "several" in kinds_of(mode)})
def test_later_targets_were_zero_before(mode):
    """This also holds if all targets come later."""
    rows = stream(mode, 70, "several", names=NAMES[: build(mode).max_features])
    one = taught(build(mode), [(x, y if i >= 35 else {}) for i, (x, y) in enumerate(rows)])
    zeros = dict.fromkeys("pqr", 0.0)
    other = taught(build(mode), [(x, y if i >= 35 else zeros) for i, (x, y) in enumerate(rows)])
    close(shown(one), shown(other), 1e-9)
    assert one.n_rows == 70


@rotated(WITH_TARGET, "way", ["one", "many"])
def test_few_distinct_integers_warn_once(mode, way):
    """A warning shows that integers may be classes, unless the target type is explicit."""
    rows = [(x, i * 7 % 5) for i, (x, _) in enumerate(stream(mode, N))]

    def learn(model):
        for start in range(0, N, 25):
            part = rows[start : start + 25]
            if way == "many":
                learn_many(model, pd.DataFrame([x for x, _ in part]), [y for _, y in part])
            else:
                taught(model, part)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learn(build(mode))
    texts = [str(warning.message) for warning in caught]
    assert len(texts) == (not is_of_classes(mode))
    assert all("class" in text for text in texts)


@over({name: mode for name, mode in ROW_MODES.items() if mode.params.get("max_features")})
def test_number_of_variables_is_bounded(mode):
    """Rows have ever new words, and two features that stay."""
    rng = np.random.default_rng(0)
    model = build(mode)
    for i, (x, y) in enumerate(stream(mode, 200)):
        words = {f"w{j}": 1.0 for j in rng.integers(0, 9 + i, size=3).tolist()}
        learn_one(model, {"b": x["b"], "e": x["e"]} | words, y)
        if model._state is not None:
            assert len(model._state.names) <= model.max_features
            assert {*getattr(model, "selected", ())} <= {*model._state.names}
    assert model._by_window or model.n_columns > 2 * model.max_features


@over({name: mode for name, mode in ROW_MODES.items() if mode.has("covariates")})
def test_covariates_are_not_candidates(mode):
    """Methods without support for covariates refuse them at once."""
    try:
        model = build(mode, covariates=("age", "batch"))
    except ValueError:
        return
    for i, (x, y) in enumerate(stream(mode, 60)):
        x |= {"age": x["b"], "batch": "uv"[i % 2]}
        learn_one(model, x, y)
        state = model._state
        assert state is None or not {"age", "batch"} & {*state.names}
    assert not {"age", "batch"} & {*model.transform_one(x), *getattr(model, "loadings", ())}


# ------------------------------------------------------------------------ errors leave no trace


def columns_of(mode, n=12, names=NAMES):
    """Return columns, their names, and a target."""
    rows = stream(mode, n, names=names)
    X = np.array([[x[name] for name in names] for x, _ in rows])
    return X, list(names), [y for _, y in rows]


def in_phase(mode, phase, names=NAMES):
    """Return a model and the number of its rows: none, fewer than a window, or more."""
    model, n = build(mode), 0
    if phase.startswith("columns"):
        X, columns, y = columns_of(mode, names=names)
        model = fresh(mode, y)
        model.learn_columns(X, columns)
        n = len(X)
    if phase.endswith("rows"):
        taught(model, stream(mode, m := 7 if phase == "few rows" else 45, names=names))
        n += m
    return model, n


BAD_VALUES = {
    "inf": math.inf,
    "-inf": -math.inf,
    "inf in float32": np.float32(np.inf),
    "too large": 10**400,
    "beyond 1e152": 1e200,
    "text": "text",
    "number as text": "1.0",
    "bytes": b"1",
    "complex": 1j,
    "complex of numpy": np.complex128(1j),
    "list": [1.0],
    "array": np.ones(2),
    "dict": {"x": 1.0},
    "datetime64": np.datetime64("2024-01-01"),
    "timedelta64": np.timedelta64(1, "s"),
    "object": object(),
    "date": dt.date(2024, 1, 1),
}
BAD_CELLS = {
    (case, name): pd.DataFrame(
        {key: pd.Series([1.0, 2.0]) for key in ("a", "good and new", "c")}
        # pandas 2 does not infer a dtype of integers larger than any float.
        | {name: pd.Series([1.0, value], dtype=object if case == "too large" else None)}
    )
    for name, (case, value) in zip(itertools.cycle(("b", "the bad one", "Z")), BAD_VALUES.items())
    if case not in ("complex of numpy", "list", "array", "dict")
}
NO_ROWS = [None, 1.0, "a", [1.0], [("a", 1.0)], np.ones(2), {"a"}]
GOOD = {"a": [1.0, 2.0, 4.0], "new": [0.0, 1.0, 5.0]}
BAD_FRAMES = {
    "dict": GOOD,
    "None": None,
    "list": [{"a": 1.0}] * 3,
    "text": "abc",
    "1-D": np.ones(3),
    "3-D": np.ones((3, 1, 1)),
    "lazy": pl.LazyFrame(GOOD),
    "complex": np.ones((3, 2)) * 1j,
    "texts": np.full((3, 2), "a"),
    "objects": np.full((3, 2), object()),
    "inf in an array": np.array([[1.0, 2.0], [3.0, math.inf], [1.0, 1.0]]),
    "pandas text": pd.DataFrame(GOOD | {"bad": ["1", "2", "3"]}),
    "polars text": pl.DataFrame(GOOD | {"bad": ["1", "2", "3"]}),
    "pyarrow text": pa.table(GOOD | {"bad": ["1", "2", "3"]}),
    "categories": pd.DataFrame(GOOD | {"bad": pd.Categorical(["u", "v", "u"])}),
    "dates": pl.DataFrame(GOOD | {"bad": [dt.date(2024, 1, 1)] * 3}),
    "pandas dates": pd.DataFrame(GOOD | {"bad": pd.to_datetime(["2024-01-01"] * 3)}),
    "pandas inf": pd.DataFrame(GOOD | {"bad": [1.0, NAN, math.inf]}),
    "polars inf": pl.DataFrame(GOOD | {"bad": [1.0, None, math.inf]}),
    "pyarrow inf": pa.table(GOOD | {"bad": [1.0, None, -math.inf]}),
    "a name twice": pd.DataFrame(np.ones((3, 2)), columns=["bad", "bad"]),
    "a name that is NaN": pd.DataFrame(np.ones((3, 2)), columns=["a", NAN]),
}
MISSING = {"None": None, "NaN": NAN, "NA": pd.NA, "list": [1.0], "array": np.ones(2)}
NO_NUMBERS = {
    "inf": math.inf,
    "-inf": -math.inf,
    "too large": 10**400,
    "beyond 1e152": -1e200,
    "complex": 1j,
    "complex of numpy": np.complex128(1j),
    "date": dt.date(2024, 1, 1),
    "object": object(),
    "text": "text",
    "several": {"p": 1.0},
}


class Refusals:
    """A model that must remain unchanged after refused calls."""

    def __init__(self, model):
        self.model, self.before = model, pickle.dumps(model)
        self.relevance = model.relevance

    def __call__(self, case, act, *words):
        """Check that a call raises an error with these words, and leaves the model unchanged."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                act()
            except (ValueError, TypeError) as error:
                message = str(error)
            else:
                pytest.fail(f"{case} is not refused")
        assert "got" in message.lower(), (case, message)
        assert all(word in message for word in words), (case, message)
        assert pickle.dumps(self.model) == self.before, case
        assert self.model.relevance == self.relevance, case


def goes_on(mode, phase, model):
    """Check that a model continues like one without the refused calls."""
    twin, rows = in_phase(mode, phase)[0], stream(mode, 45, seed=1)
    before = bits(twin)
    assert bits(model) == before
    for one in (model, twin):
        taught(one, rows[:20])
        learn_many(one, pd.DataFrame([x for x, _ in rows[20:]]), [y for _, y in rows[20:]])
    assert bits(model) == bits(twin)


@rotated(ROW_MODES, "phase", phases_of)
def test_bad_values(mode, phase):
    """The valid names of the row, and new parts of its target, are not learnt either."""
    model, _ = in_phase(mode, phase)
    refused = Refusals(model)
    y = stream(mode, 30)[-1][1]
    for case, value in BAD_VALUES.items():
        for name in ("b", "Z" if len(case) % 2 else "the bad one"):
            x = {"a": 9.0, "good and new": 1.0, name: value, "c": 1.0}
            refused(case, lambda x=x: learn_one(model, x, y), repr(name))
    for (case, name), X in BAD_CELLS.items():
        refused(case, lambda X=X: learn_many(model, X, [y, y]), repr(name))
    for x in NO_ROWS:
        refused(x, lambda x=x: learn_one(model, x, y))
    refused("a name that is NaN", lambda: learn_one(model, {"a": 1.0, NAN: 1.0}, y))
    goes_on(mode, phase, model)


@rotated(ROW_MODES, "phase", phases_of)
def test_bad_frames(mode, phase):
    model, _ = in_phase(mode, phase)
    refused = Refusals(model)
    ys = [y for _, y in stream(mode, 3)]
    for case, X in BAD_FRAMES.items():
        named = case != "lazy" and "bad" in getattr(X, "columns", getattr(X, "column_names", []))
        refused(case, lambda X=X: learn_many(model, X, ys), *["bad"] * named)
    goes_on(mode, phase, model)


@rotated(WITH_TARGET, "phase", phases_of)
def test_bad_targets(mode, phase):
    model, _ = in_phase(mode, phase)
    refused, x = Refusals(model), {"a": 9.0, "new": 1.0}
    numeric = not is_of_classes(mode)
    bad = MISSING | (NO_NUMBERS if numeric else {})
    if phase == "fresh":
        bad = {case: y for case, y in bad.items() if case not in ("text", "several")}
        bad |= {"one of several": {"p": NAN}, "another": {"p": 1.0, "q": None}}
    elif not numeric:
        bad |= {"several": {"p": "u"}}
    for case, y in bad.items():
        refused(case, lambda y=y: model.learn_one(x, y))
    good = [y for _, y in stream(mode, 3)]
    many = {"too few": good[:2], "too many": [*good, good[0]], "none": None, "scalar": good[0]}
    many |= {
        "None among them": [good[0], None, good[2]],
        "a null": pl.Series([good[0], None, good[2]]),
    }
    if numeric:
        many |= {
            "NaN": np.array([1.0, NAN, 2.0]),
            "inf": np.array([1.0, 2.0, math.inf]),
            "pandas null": pd.Series([1.0, pd.NA, 2.0], dtype="Float64"),
            "pyarrow null": pa.chunked_array([[1.0, None, 2.0]]),
            "complex": np.ones(3) * 1j,
            "dates": pd.Series(pd.to_datetime(["2024-01-01"] * 3)),
            "of three dimensions": np.ones((3, 1, 1)),
        }
    if numeric and phase != "fresh":
        many |= {
            "labels": ["u", "v", "u"],
            "two columns": np.ones((3, 2)),
            "a frame": pd.DataFrame({"p": [1.0, 2.0, 3.0], "q": [1.0, 2.0, 4.0]}),
        }
    for backend in ("pandas", "polars", "pyarrow"):
        for case, y in many.items():
            refused(case, lambda y=y: model.learn_many(frame(backend, GOOD), y))  # noqa: B023
    goes_on(mode, phase, model)


@rotated(WITH_TARGET, "kind", kinds_of)
def test_change_of_target_type_is_refused(mode, kind):
    model = taught(build(mode), stream(mode, 45, kind))
    refused = Refusals(model)
    unfit = {
        "number": ["text", {"p": 1.0}, {"p": "u"}],
        "labels": [1.0, {"p": 1.0}, {"p": "u"}],
        "two labels": [1.0, {"p": 1.0}, {"p": "u"}],
        "several": [1.0, "u", {"p": "text"}],
    }[kind]
    if is_of_classes(mode):
        unfit = [1.0, "u"] if kind == "several" else [{"p": 1.0}, {"p": "u"}]
    for y in unfit:
        refused(y, lambda y=y: model.learn_one({"a": 9.0, "new": 1.0}, y))
        ys = pd.DataFrame([y]) if isinstance(y, dict) else [y]
        refused(y, lambda ys=ys: model.learn_many(pd.DataFrame({"new": [1.0]}), ys))


@over(WITH_TARGET)
def test_unsuitable_target_is_refused_at_once(mode):
    """It is refused on rows as on columns, not accepted and then never learnt."""
    X, names, _ = columns_of(mode, 60)
    for ys in (
        [float(round(v) if mode.of_classes else v) for v in X[:, 1]],
        ["uvw"[i % 3] for i in range(60)],
        ["uv"[i % 2] for i in range(60)],
        [{"p": float(v), "q": float(v) ** 2} for v in X[:, 1]],
        [{"p": "uvw"[i % 3], "q": float(v)} for i, v in enumerate(X[:, 1])],
        [{"p": "uvw"[i % 3], "q": "xyz"[i % 2]} for i in range(60)],
        [{"p": "u", "q": float(v)} for v in X[:, 1]],
        [{"p": "uv"[i % 2]} for i in range(60)],
    ):
        whole, model = build(mode), build(mode)
        try:
            whole.learn_target(pd.DataFrame(ys) if isinstance(ys[0], dict) else ys)
        except ValueError:
            with pytest.raises(ValueError, match="Got"):
                taught(model, [(dict.fromkeys(names, 1.0), y) for y in ys[:3]])
        else:
            rows = [dict(zip(names, x, strict=True)) for x in X.tolist()]
            taught(model, list(zip(rows, ys, strict=True)))
            assert model.n_columns >= len(names[: model.max_features])


@sampled(WITHOUT_TARGET)
def test_unsupervised_selection_refuses_rows(mode):
    model = fresh(mode, None)
    for columns in (False, True):
        if columns:
            model.learn_columns(np.random.default_rng(0).normal(size=(12, 5)))
        refused = Refusals(model)
        refused("a row", lambda: model.learn_one({0: 1.0}, 1.0))
        refused("a row alone", lambda: model.learn_one({0: 1.0}))
        refused("a frame", lambda: model.learn_many(np.ones((2, 2)), [1.0, 2.0]))
        refused("a frame alone", lambda: model.learn_many(np.ones((2, 2))))


# ------------------------------------------------------------------------------------- copies


@rotated(
    WITH_TARGET, "way,kind", lambda mode: itertools.product(COPIES, kinds_of(mode)[1:]), each=2
)
def test_copy_continues_like_the_original(mode, kind, way, tmp_path):
    """Copies are made after one row and inside a window; test_river tests numeric targets."""
    model, twin = build(mode), build(mode)
    for i, (x, y) in enumerate(stream(mode, 55, kind)):
        x = {name: v for name, v in x.items() if i > 33 or name != "f"}  # noqa: PLW2901
        learn_one(model, x | {"c": None} if i % 5 == 4 else x, y)
        if i in (1, 25, 47):
            twin = COPIES[way](twin, tmp_path)
        learn_one(twin, x | {"c": None} if i % 5 == 4 else x, y)
    assert bits(model) == bits(twin)
    np.testing.assert_equal(shown(twin), shown(model))


# --------------------------------------------------------------------------- from columns to rows


@rotated(ROW_MODES, "phase", lambda mode: [phase for phase in phases_of(mode) if "rows" in phase])
def test_columns_after_rows_are_refused(mode, phase):
    model, n = in_phase(mode, phase)
    refused, y = Refusals(model), np.arange(float(n))
    refused("a column", lambda: model.learn_column("new", y))
    refused("columns", lambda: model.learn_columns(y[:, None]))
    refused("a generator", lambda: model.learn_columns((name, y) for name in "xy"))
    if mode.cls._is_supervised:
        refused("a target", lambda: model.learn_target(y))


@rotated(BY_MOMENTS, "way", ["rows", "merged", *COPIES], each=2)
def test_constant_column_may_vary_later(mode, way, tmp_path):
    """Its name and value are kept, also beyond the row at which the rows have doubled."""
    names = NAMES[: build(mode).max_features]
    X, columns, y = columns_of(mode, 60, names)
    X[:28, 1] = 0.5
    whole, model, rest = (fresh(mode, part) for part in (y, y[:28], y[28:]))
    whole.learn_columns(X, columns)
    if not whole._state.complete or model.fading_factor:
        return
    model.learn_columns(X[:28], columns)
    if way == "merged":
        rest.learn_columns(X[28:], columns)
        model.merge(rest, along="rows")
    else:
        model = model if way == "rows" else COPIES[way](model, tmp_path)
        for i in range(28, 60):
            learn_one(model, dict(zip(columns, X[i].tolist(), strict=True)), y[i])
    assert model.n_aligned_rows == 60
    assert (model.n_columns, model.n_constant) == (whole.n_columns, whole.n_constant)
    close(shown(model), shown(whole), 1e-9)


@rotated(BY_MOMENTS, "way", ["none", *COPIES], each=2)
def test_columns_then_rows_equal_all_columns(mode, way, tmp_path):
    """Discarded variables are the subject of other tests."""
    names = NAMES[: build(mode).max_features]
    X, columns, y = columns_of(mode, 40, names)
    model, whole = fresh(mode, y[:25]), fresh(mode, y)
    model.learn_columns(X[:25], columns)
    whole.learn_columns(X, columns)
    if not whole._state.complete or model.fading_factor:
        return
    if way != "none":
        model = COPIES[way](model, tmp_path)
    for i in range(25, 33):
        assert model.n_rows == i
        learn_one(model, dict(zip(columns, X[i].tolist(), strict=True)), y[i])
        model = COPIES[way](model, tmp_path) if way != "none" else model
    learn_many(model, pd.DataFrame(X[33:], columns=columns), y[33:])
    np.testing.assert_allclose(model.noise_floor(), whole.noise_floor(), rtol=1e-9)
    mine, theirs = shown(model), shown(whole)
    close(mine, theirs, 1e-9)


@rotated(ROW_MODES, "way", ["none", *COPIES], each=2)
def test_rows_after_columns(mode, way, tmp_path):
    """Frames equal loops, copies equal the original, and the rows of columns are counted."""
    X, names, y = columns_of(mode, 30)
    model = fresh(mode, y)
    model.learn_columns(X, names)
    found, twin, many = shown(model), copy.deepcopy(model), copy.deepcopy(model)
    if way != "none":
        twin = COPIES[way](twin, tmp_path)
    rows = stream(mode, 45, seed=3)
    for i, (x, t) in enumerate(rows):
        learn_one(model, x, t)
        learn_one(twin, x, t)
        assert model.n_rows == 31 + i
        if way != "none" and i in (0, 3, 22):
            twin = COPIES[way](twin, tmp_path)
        assert bits(model) == bits(twin)
        if model._by_window and i + 1 < model._window_size:  # the snapshot has not changed
            close(shown(model) | {"n_rows": 30}, found)
    for columns, ys in parts_of(rows, (1, 18, 26)):
        learn_many(many, frame("polars", columns), ys)
    assert_same_model(many, model)


# ------------------------------------------------------------------------------ tumbling windows


def at_once(mode):
    """Return a mode in which transforms use the current solution at every row."""
    return mode.also(
        refresh_factor=1.0, warm_up=0, **{"hysteresis": 1.0} if mode.has("hysteresis") else {}
    )


class LastWindow:
    """A model that learns the last full window of rows as columns, and nothing else."""

    def __init__(self, mode):
        self.mode, self.model, self.rotation = mode, build(mode), None
        self.size, self.rows, self.scale = self.model._window_size, [], None

    def transform(self, rows):
        """Return the transforms of rows; components are aligned with the previous ones."""
        found = [self.model.transform_one(x) for x in rows]
        if not hasattr(self.model, "components"):
            return found
        nothing = [0.0] * len(self.model.components)
        Z = np.array([list(z.values()) or nothing for z in found])
        Z = Z if self.rotation is None else Z @ self.rotation
        return [dict(zip(self.model.components, z, strict=True)) for z in Z.tolist()]

    def learn(self, X, names, y):
        rows = [dict(zip(names, x, strict=True)) for x in X.tolist()]
        previous = self.transform(rows) if self.model.n_columns else None
        self.model, self.rotation = fresh(self.mode, y), None
        self.model.learn_columns(X, names)
        if previous is not None and hasattr(self.model, "components"):
            parts = [
                np.array([list(z.values()) for z in Z]) for Z in (self.transform(rows), previous)
            ]
            new, old = (Z - Z.mean(axis=0) for Z in parts)
            of_old, unknown = np.square(old).sum(axis=0), np.zeros(old.shape[1])
            self.rotation = align_components(new.T @ old, new.T @ new, of_old, unknown).matrix
            self.keep_scale(rows)
        self.scale = self.scale_of(rows)

    def scale_of(self, rows):
        """Return the deviations of the components over their landmarks, which are rows."""
        landmarks = [rows[i] for i in getattr(self.model, "landmarks", ())]
        if not landmarks:
            return None
        return np.std([[*z.values()] for z in self.transform(landmarks)], axis=0)

    def keep_scale(self, rows):
        """Rescale components to the deviations of the previous ones over their own landmarks."""
        found = self.scale_of(rows)
        if found is not None and self.scale is not None:
            exist = (found > 0.0) & (self.scale > 0.0)
            self.rotation = self.rotation * np.divide(
                self.scale, found, out=np.ones(len(found)), where=exist
            )

    def learn_one(self, x, y):
        self.rows.append((x, y))
        if len(self.rows) < self.size:
            return
        rows, self.rows = self.rows, []
        if self.mode.cls._is_supervised and all(y == rows[0][1] for _, y in rows):
            return
        names = list(dict.fromkeys(name for x, _ in rows for name in canonical(x)))
        names = names[: self.model.max_features]
        X = np.array([[x.get(name, 0.0) for name in names] for x, _ in rows], dtype=float)
        for column in X.T:
            seen = ~np.isnan(column)
            column[~seen] = column[seen].mean() if seen.any() else 0.0
        y = [y for _, y in rows]
        if isinstance(y[0], dict):
            y = pd.DataFrame(y).fillna(0.0)
        self.learn(X, names, y)


def nothing_yet(model, x):
    """Return the transform of a row before the first window."""
    return {} if hasattr(model, "components") else x


def assert_results_of(model, last, n, x):
    """Check that the results of a model are those of the last full window."""
    close(shown(model), shown(last.model) | {"n_rows": n}, 1e-9)
    expected = last.transform([x])[0]
    if hasattr(model, "components") and not last.model.in_use:
        assert not any(expected.values())
        assert model.transform_one(x) == {}
    elif hasattr(model, "components"):
        close(model.transform_one(x), expected, 1e-9)
    else:
        assert model.transform_one(x) == expected
    if last.model.n_columns:
        np.testing.assert_allclose(model.noise_floor(), last.model.noise_floor(), rtol=1e-9)


@rotated(BY_WINDOW, "kind", kinds_of)
def test_result_is_that_of_the_last_full_window(mode, kind):
    """Features, classes and targets appear and disappear for a while, or are missing."""
    model, last = build(at_once(mode)), LastWindow(mode)
    rng = np.random.default_rng(0)
    rows = stream(mode, 5 * last.size + 3, kind)
    for i, (x, y) in enumerate(rows):
        window = i // last.size
        x = {name: x[name] for name in rng.permutation(list(x)).tolist()}  # noqa: PLW2901
        if rng.random() < 0.2:
            x["c"] = [None, NAN][i % 2]
        if window == 1:
            del x["b"]
            x["d"] = None
        if window >= 2 and i % 2:
            x["g"] = x["b"] ** 2
        if rng.random() < 0.3:
            del x["e"]
        learn_one(model, x, y)
        last.learn_one(x, y)
        if i + 1 < last.size:
            assert model.transform_one(x) == nothing_yet(model, x)
        assert_results_of(model, last, i + 1, x)


@rotated(BY_WINDOW_TAUGHT, "kind", kinds_of)
def test_class_or_target_absent_from_the_last_window(mode, kind):
    """A class or target that the last window lacks is absent, even if an earlier window had it."""
    model, last = build(at_once(mode)), LastWindow(mode)
    rows = stream(mode, 40 + last.size * 2, kind)
    early = rows[20:40]
    late = [(x, y) for x, y in rows[40:] if y not in ("w", 2.0)]
    for i, (x, y) in enumerate([*early * 3, *late]):
        learn_one(model, x, y)
        last.learn_one(x, y)
        assert_results_of(model, last, i + 1, x)


@rotated(BY_WINDOW_TAUGHT, "kind", kinds_of)
def test_constant_target_keeps_the_last_result(mode, kind):
    model, last = build(at_once(mode)), LastWindow(mode)
    size, rows = last.size, stream(mode, 60, kind)
    same = [(x, rows[0][1]) for x, _ in rows[:size]]
    # The target is constant at first, when all features pass; then after a window in which it
    # varied.
    for i, (x, y) in enumerate([*same, *rows[:size], *same, *rows[-size:]]):
        learn_one(model, x, y)
        last.learn_one(x, y)
        if i < 2 * size - 1:
            assert model.transform_one(x) == x
        assert_results_of(model, last, i + 1, x)


@rotated(BY_WINDOW, "backend", ["pandas", "polars", "array"])
def test_frame_of_many_windows(mode, backend):
    names = range(6) if backend == "array" else NAMES
    rows = stream(mode, 130, names=names)
    for sizes in ((130,), (1, 64), (29, 31)):
        model, last = build(at_once(mode)), LastWindow(mode)
        for columns, ys in parts_of(rows, sizes):
            learn_many(model, frame(backend, columns), ys)
            for x, y in zip(dicts(columns), ys, strict=True):
                last.learn_one(x, y)
            assert_results_of(model, last, model.n_rows, rows[0][0])


@sampled(BY_WINDOW)
def test_windows_after_columns(mode):
    """The result of the columns remains until the first window is full; their rows are counted."""
    X, columns, y = columns_of(mode, 35)
    model, last = fresh(at_once(mode), y), LastWindow(mode)
    model.learn_columns(X, columns)
    last.model = copy.deepcopy(model)
    last.scale = last.scale_of([dict(zip(columns, x, strict=True)) for x in X.tolist()])
    for i, (x, t) in enumerate(stream(mode, 2 * last.size + 5, seed=2)):
        learn_one(model, x, t)
        last.learn_one(x, t)
        assert_results_of(model, last, 36 + i, x)


@sampled(BY_WINDOW)
def test_report_within_a_window(mode):
    """Before the first window is full, the report is empty, without an error."""
    model = build(mode)
    size = model._window_size
    for i, (x, y) in enumerate(stream(mode, 2 * size)):
        report = model.report()
        assert report.rows == model.n_rows == i
        assert [row["name"] for row in report.results] == list(model.relevance)
        assert (report.noise_floor is None) == (i < size or not model._is_supervised)
        learn_one(model, x, y)


@sampled(BY_WINDOW)
def test_merging_windows_is_refused(mode):
    one, other = (taught(build(mode), stream(mode, 45, seed=seed)) for seed in (0, 1))
    before = bits(one), bits(other)
    for along in ("rows", "columns"):
        with pytest.raises(ValueError, match="window"):
            one.merge(other, along=along)
    assert (bits(one), bits(other)) == before


@sampled(BY_WINDOW)
def test_constant_features_within_a_window(mode):
    """With constant features, and in a window in which none varies, nothing is selected."""
    model, last = build(at_once(mode)), LastWindow(mode)
    for i, (x, y) in enumerate(stream(mode, 3 * last.size)):
        if i // last.size == 1:
            x = dict.fromkeys(x, 3.0)  # noqa: PLW2901
        learn_one(model, x, y)
        last.learn_one(x, y)
        assert_results_of(model, last, i + 1, x)
        if i // last.size == 2 and (i + 1) % last.size:
            assert model.n_constant == model.n_columns
            out = model.transform_one(x)
            assert not (any(out.values()) if hasattr(model, "components") else out)
