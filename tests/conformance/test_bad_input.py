"""Every invalid input is refused with an explanation, and leaves the model unchanged."""

import inspect
import itertools
import math
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from streamsel.base.windows import Window
from streamsel.params import (
    ChoiceOrNumber,
    ChoiceRule,
    EstimatorRule,
    FlagRule,
    FloatRule,
    FoldsRule,
    IntRule,
    JobsRule,
    NamesRule,
    NumberOrTuple,
    rules_of,
)
from tests.conformance.modes import (
    CLASSES,
    COLUMN_MODES,
    IN_PIECES,
    MODES,
    build,
    fresh,
    learnt,
    over,
    rotated,
    sampled,
    target_of,
)

N = 12
# Modes whose state contains the names of variables.
WITH_NAMES = {name: mode for name, mode in IN_PIECES.items() if not mode.by_name}


@pytest.fixture(name="X")
def columns():
    return np.random.default_rng(0).normal(size=(N, 20))


def fitted(mode, X):
    """Return a model that has learnt 20 columns."""
    return learnt(mode, X, target_of(mode, X), [f"held {j}" for j in range(20)])


def never_discarded(mode, X):
    """Return a column that no learner discards: the target itself, if there is one."""
    y = target_of(mode, X)
    return X[:, 0] if y is None else np.asarray(y, dtype=np.float64)


def refused(model, error, act, match=None):
    """Run `act`, expecting an error and an unchanged model; return the message."""
    before = pickle.dumps(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(error, match=match) as info:
            act()
    assert pickle.dumps(model) == before
    return str(info.value)


def changed(at, value, dtype=float):
    x = np.arange(N).astype(dtype)
    x[at] = value
    return x


# ----------------------------------------------------------------------------------------- columns

BAD_COLUMNS = {
    "NaN": (ValueError, changed(4, np.nan)),
    "NaN first": (ValueError, changed(0, np.nan)),
    "NaN last": (ValueError, changed(N - 1, np.nan)),
    "all NaN": (ValueError, np.full(N, np.nan)),
    "inf": (ValueError, changed(4, np.inf)),
    "-inf": (ValueError, changed(0, -np.inf)),
    "inf and -inf": (ValueError, changed([2, 3], [np.inf, -np.inf])),
    "NaN in float32": (ValueError, changed(4, np.nan, np.float32)),
    "inf in float16": (ValueError, changed(4, np.inf, np.float16)),
    "NaN in sparse": (ValueError, sp.csc_array(changed(4, np.nan)[:, None])),
    "inf in sparse": (ValueError, sp.csc_array(changed(4, np.inf)[:, None])),
    "too short": (ValueError, np.arange(N - 1.0)),
    "too long": (ValueError, np.arange(N + 1.0)),
    "empty": (ValueError, np.empty(0)),
    "too long and sparse": (ValueError, sp.csc_array(np.arange(N + 1.0)[:, None])),
    "scalar": ((ValueError, TypeError), 3.0),
    "None": ((ValueError, TypeError), None),
    "2-D": (ValueError, np.ones((N, 2)) * np.arange(N)[:, None]),
    "3-D": (ValueError, np.ones((N, 1, 1)) * np.arange(N)[:, None, None]),
    "two sparse columns": (ValueError, sp.csc_array(np.ones((N, 2)))),
    "strings": (TypeError, np.array([f"{j}" for j in range(N)])),
    "bytes": (TypeError, np.array([b"a"] * N)),
    "list of strings": (TypeError, [f"{j}" for j in range(N)]),
    "one string": ((TypeError, ValueError), "a" * N),
    "objects": (TypeError, np.array([object() for _ in range(N)])),
    "None among numbers": ((TypeError, ValueError), [1.0, None] * (N // 2)),
    "text among numbers": (TypeError, np.array([1.0, "a"] * (N // 2), dtype=object)),
    "complex": (TypeError, np.arange(N) + 1j),
    "complex and sparse": (TypeError, sp.csc_array((np.arange(N) + 1j)[:, None])),
    "dates": (TypeError, np.arange(N).astype("datetime64[D]")),
    "durations": (TypeError, np.arange(N).astype("timedelta64[s]")),
    "structured": (TypeError, np.zeros(N, dtype=[("a", float)])),
    "dict": ((TypeError, ValueError), dict.fromkeys(range(N), 1.0)),
    "set": ((TypeError, ValueError), set(range(N))),
}


# Cases with missing values, which some learners support.
GAPS = {
    *("NaN", "NaN first", "NaN last", "NaN in float32", "NaN in sparse", "None among numbers"),
    *("null", "bool and null"),
}


def takes_gaps(mode, case, model, learn):
    """Return whether a mode supports a case as a column with gaps; if so, learn it."""
    if not (mode.cls._takes_missing and case in GAPS):
        return False
    before = model.n_columns
    learn()
    assert model.n_columns > before
    assert np.isfinite(list(model.transform_one({"held 0": 1.0}).values())).all()
    return True


@rotated(IN_PIECES, "case", BAD_COLUMNS, each=2)
def test_bad_columns(mode, case, X):
    """A bad column is refused alone; in a list, the columns before it are not learnt either."""
    error, values = BAD_COLUMNS[case]
    model = fitted(mode, X)
    if takes_gaps(mode, case, model, lambda: model.learn_column("the bad one", values)):
        return
    message = refused(model, error, lambda: model.learn_column("the bad one", values))
    assert "the bad one" in message
    assert "Got" in message
    pairs = [("good", X[:, 1] ** 2), ("better", X[:, 0]), ("the bad one", values), ("c", X[:, 2])]
    assert "the bad one" in refused(model, error, lambda: model.learn_columns(pairs))


MASKED = np.ma.array(np.arange(N) * 1.0, mask=[0] * (N - 1) + [1])
HANDED_IN = {
    "column": lambda model: model.learn_column("x", MASKED),
    "array": lambda model: model.learn_columns(MASKED[:, None]),
    "pairs": lambda model: model.learn_columns([("x", MASKED)]),
}


@rotated(IN_PIECES, "way", HANDED_IN)
def test_masked_values_are_missing(mode, way, X):
    model = fitted(mode, X)
    if not takes_gaps(mode, "NaN", model, lambda: HANDED_IN[way](model)):
        refused(model, ValueError, lambda: HANDED_IN[way](model), f"row {N - 1}")


@rotated(
    IN_PIECES,
    "case,order",
    itertools.product(
        ["NaN", "inf", "NaN in float32", "all NaN", "complex", "strings", "objects", "dates"],
        ["C", "F"],
    ),
)
def test_bad_arrays(mode, case, order, X):
    error, values = BAD_COLUMNS[case]
    model = fitted(mode, X)
    X = X.astype(values.dtype if values.dtype.kind in "fc" else object)
    X[:, 13] = values
    if case in ("strings", "dates"):
        X = np.array(X.astype(str))
    X = np.asarray(X, order=order)
    names = ["the bad one" if j == 13 else f"good {j}" for j in range(20)]
    if takes_gaps(mode, case, model, lambda: model.learn_columns(X, names=names)):
        return
    message = refused(model, error, lambda: model.learn_columns(X, names=names))
    assert "the bad one" in message or X.dtype.kind != "f"


FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
BAD_FRAMES = {
    "NaN": (ValueError, changed(4, np.nan)),
    "inf": (ValueError, changed(4, np.inf)),
    "null": (ValueError, pa.array([None, *range(1, N)], pa.float64())),
    "bool and null": ((ValueError, TypeError), pa.array([None] + [True, False] * 5 + [True])),
}


@rotated(IN_PIECES, "case,library", itertools.product(BAD_FRAMES, FRAMES))
def test_bad_frames(mode, case, library, X):
    error, values = BAD_FRAMES[case]
    if library != "pyarrow" and isinstance(values, pa.Array):
        values = values.to_pandas() if library == "pandas" else pl.from_arrow(values)
    frame = FRAMES[library]({"good": X[:, 1] ** 2, "the bad one": values, "last": X[:, 2]})
    model = fitted(mode, X)
    if takes_gaps(mode, case, model, lambda: model.learn_columns(frame)):
        return
    assert "the bad one" in refused(model, error, lambda: model.learn_columns(frame))


@sampled(IN_PIECES)
def test_invalid_containers_of_columns(mode, X):
    model = fitted(mode, X)
    for wrong in (X[:-1], X[0], X[:, :, None], np.float64(3.0), np.empty((0, 5))):
        refused(model, (ValueError, TypeError), lambda wrong=wrong: model.learn_columns(wrong))
    refused(model, ValueError, lambda: model.learn_columns(sp.csc_array(X[:-1])))
    for wrong in (None, 3, b"text", object(), [1, 2, 3], [("a", 1.0)], {"a": 1}, [("a",)]):
        refused(model, (ValueError, TypeError), lambda wrong=wrong: model.learn_columns(wrong))
    refused(model, FileNotFoundError, lambda: model.learn_columns("text"), "No such file.*'text'")
    lazy = pl.DataFrame({"a": X[:, 0] ** 2}).lazy()
    refused(model, TypeError, lambda: model.learn_columns(lazy), "collect")


@sampled({name: mode for name, mode in COLUMN_MODES.items() if mode.cls._is_supervised})
def test_columns_before_the_target(mode, X):
    model = build(mode)
    refused(model, ValueError, lambda: model.learn_columns(X), "learn_target")
    if mode.in_pieces:
        refused(model, ValueError, lambda: model.learn_column("a", X[:, 0]), "learn_target")


# ------------------------------------------------------------------------------------------- names

BAD_NAMES = {
    "list": (TypeError, ["a"]),
    "dict": (TypeError, {"a": 1}),
    "list in a tuple": (TypeError, ("a", ["b"])),
    "NaN": (ValueError, math.nan),
    "NumPy's NaN": (ValueError, np.float64("nan")),
    "NaN in a tuple": (ValueError, ("a", (math.nan,))),
    "pandas' NA": (ValueError, pd.NA),
    "pandas' NaT": (ValueError, pd.NaT),
}


@rotated(IN_PIECES, "case", BAD_NAMES)
def test_bad_names(mode, case, X):
    error, name = BAD_NAMES[case]
    model = fitted(mode, X)
    refused(model, error, lambda: model.learn_column(name, X[:, 0] ** 2), "name")
    pairs = [("good", X[:, 0] ** 2), (name, X[:, 1] ** 2)]
    refused(model, error, lambda: model.learn_columns(pairs), "name")
    names = [*range(100, 119), name]
    refused(model, error, lambda: model.learn_columns(X**2, names=names))


@sampled(IN_PIECES)
def test_bad_names_of_arrays(mode, X):
    model = fitted(mode, X)
    for names in (["a"] * 20, list("abc"), 5, "abc", [["list"]] * 20):
        refused(model, (ValueError, TypeError), lambda n=names: model.learn_columns(X**2, names=n))


@sampled(WITH_NAMES)
def test_name_of_a_tracked_column_is_refused(mode, X):
    model = fitted(mode, X)
    model.learn_column("the target", never_discarded(mode, X))
    name = model._columns.names[-1]
    x = X[:, 0] + 0.01 * X[:, 1]
    for pairs in ([("new", x**2), (name, x)], [("twice", x), ("twice", X[:, 0])]):
        message = refused(model, ValueError, lambda pairs=pairs: model.learn_columns(pairs))
        assert repr(pairs[1][0]) in message
    assert repr(name) in refused(model, ValueError, lambda: model.learn_column(name, x))


EQUAL = {
    "bool": True,
    "int64": np.int64(1),
    "float": 1.0,
    "float32": np.float32(1),
    "bool of NumPy": np.True_,
}


@rotated(WITH_NAMES, "kind", EQUAL)
def test_range_of_names_with_an_equal_name_of_another_type(mode, kind, X):
    name = EQUAL[kind]
    model = fresh(mode, target_of(mode, X))
    model.learn_column(name, never_discarded(mode, X))
    assert name in model._columns.index_of
    refused(model, ValueError, lambda: model.learn_columns(X, range(20)), "1 again")


# ------------------------------------------------------------------------------------------ target

BAD_TARGETS = {
    "constant": (ValueError, np.full(N, 3.0)),
    "all columns constant": (ValueError, np.ones((N, 3))),
    "one label": (ValueError, np.array(["a"] * N)),
    "NaN": (ValueError, changed(4, np.nan)),
    "inf": (ValueError, changed(4, np.inf)),
    "one row": (ValueError, np.array([3.0])),
    "empty": (ValueError, np.empty(0)),
    "no columns": (ValueError, np.empty((N, 0))),
    "3-D": (ValueError, np.zeros((N, 2, 2))),
    "scalar": ((ValueError, TypeError), 3.0),
    "missing label": (ValueError, np.array(["a", None] * (N // 2), dtype=object)),
    "missing in polars": (ValueError, pl.Series([1.0, None] * (N // 2))),
    "missing in pandas": (ValueError, pd.Series([1.0, None] * (N // 2))),
    "masked": (ValueError, np.ma.array(np.arange(N) * 1.0, mask=[0] * (N - 1) + [1])),
    "complex": (TypeError, np.arange(N) + 1j),
    "dates": (TypeError, np.arange(N).astype("datetime64[D]")),
    "objects": (TypeError, np.array([[1], {2}] * (N // 2), dtype=object)),
    "labels in two columns": ((ValueError, TypeError), np.array([["a", "b"]] * N)),
    "lazy": (TypeError, pl.DataFrame({"a": np.arange(N)}).lazy()),
}


@rotated(MODES, "case", BAD_TARGETS, each=2)
def test_bad_targets(mode, case, X):
    """A refused target leaves the model unchanged."""
    error, y = BAD_TARGETS[case]
    model = build(mode)
    if not mode.cls._is_supervised:
        error = ValueError
    if case == "inf" and mode.of_classes:
        return  # infinity may be the name of a class
    refused(model, error, lambda: model.learn_target(y))
    other = fresh(mode, target_of(mode, X))
    if mode.cls._is_supervised:
        model.learn_target(target_of(mode, X))
    model.learn_columns(X)
    other.learn_columns(X)
    assert pickle.dumps(model) == pickle.dumps(other)


@sampled(MODES)
def test_target_is_required_or_refused(mode, X):
    """Unsupervised learners refuse a target, and supervised ones require one."""
    model = build(mode)
    if not mode.cls._is_supervised:
        refused(model, ValueError, lambda: model.learn_target(X[:, 0]), "without one")
    elif not mode.cls._takes_no_target:
        refused(model, ValueError, lambda: model.learn_target(None), "is supervised")


@sampled(IN_PIECES)
def test_second_target_after_columns_is_refused(mode, X):
    model = fitted(mode, X)
    refused(model, ValueError, lambda: model.learn_target(target_of(mode, X)), "before the columns")


# -------------------------------------------------------------------------------------- parameters


def bad_values(rule):
    """Return values that a rule does not admit."""
    if isinstance(rule, ChoiceRule):
        return ["nonesuch", "", 3, None, *[option.upper() for option in rule.options]]
    if isinstance(rule, FlagRule):
        return ["yes", 1, None, np.float64(1.0), np.int64(0), np.array([True])]
    if isinstance(rule, NamesRule):
        return ["a", (), [], ("a", "a"), ["a", "a"], (["a"],), [["a"]], {"a"}, np.array("a")]
    if isinstance(rule, NumberOrTuple):
        ends = [0.0, (1.0, 0.0)] if rule.each.open else [None]
        return [
            "3",
            math.nan,
            math.inf,
            True,
            -1.0,
            (),
            [],
            (1.0, 1.0),
            [1.0, 1.0],
            (1.0, -1.0),
            np.array([1.0, np.nan]),
            np.array([[1.0, 2.0]]),
            {1.0, 2.0},
            ("a",),
            *ends,
        ]
    if isinstance(rule, ChoiceOrNumber):
        strings = [bad for bad in bad_values(rule.choice) if isinstance(bad, str)]
        numbers = [bad for one in rule.numbers for bad in bad_values(one)]
        return [*strings, *(bad for bad in numbers if not rule.admits(bad))]
    if isinstance(rule, FoldsRule):
        pairs = [
            [[0, 1]],
            [([0], [])],
            [([0], [1]), 3],
            [([0.5], [1])],
            (5, 3),
            ("ab",),
            [("a", "b")],
        ]
        return [1, 0, -1, 2.0, True, None, "5", (), [], *pairs]
    if isinstance(rule, EstimatorRule):
        return ["ridge", 3, [object()]]
    if isinstance(rule, JobsRule):
        return [0, 1.5, "2", None, True]
    none = [] if rule.optional else [None]
    odd = ["3", math.nan, math.inf, [3], True, 1 + 0j, *none]
    if isinstance(rule, IntRule):
        return [rule.low - 1, rule.low + 0.5, float(rule.low), *odd]
    assert isinstance(rule, FloatRule), f"say what is bad for {type(rule).__name__}"
    ends = [rule.low] if rule.open else []
    most = rule.below + 1e-9 if rule.closed else rule.below
    return [*odd, *ends, rule.low - 1e-9, -math.inf, *([most] if most < 1e300 else [])]


@pytest.mark.parametrize(
    ("learner", "parameter"), [(name, p) for name, cls in CLASSES.items() for p in rules_of(cls)]
)
def test_bad_parameter_values(learner, parameter):
    """The constructor refuses each value with the parameter's name, its rule, and the value."""
    rule = rules_of(CLASSES[learner])[parameter]
    for value in bad_values(rule):
        with pytest.raises(ValueError, match="Expected") as info:
            CLASSES[learner](**{parameter: value})
        assert str(info.value) == (
            f"Expected {parameter} of {learner} to be {rule}. Got: {value!r}."
        )


@pytest.mark.parametrize("learner", CLASSES)
def test_unknown_parameters(learner):
    """The error names the close spellings, or all parameters; the signature shows them all."""
    cls = CLASSES[learner]
    known = list(rules_of(cls))
    for name in known:
        misspelt = f"{name}_"
        with pytest.raises(TypeError, match=f"Expected parameters of {learner}") as info:
            cls(**{misspelt: 1})
        assert str(info.value).partition("\n")[0].endswith(f"Got: {misspelt}.")
        assert re.search(rf"Hint: .*\b{name}\b", str(info.value))
    with pytest.raises(TypeError) as info:
        cls(qqqqqq=1)
    assert str(info.value).endswith(f"Hint: valid names are {', '.join(known)}")
    assert list(inspect.signature(cls).parameters) == known


@pytest.mark.parametrize("learner", CLASSES)
def test_numpy_numbers_are_accepted(learner):
    for parameter, rule in rules_of(CLASSES[learner]).items():
        if isinstance(rule, IntRule):
            value = np.int64(30 + rule.low)
            assert getattr(CLASSES[learner](**{parameter: value}), parameter) == value
    if (
        "fading_factor" in rules_of(CLASSES[learner])
        and CLASSES[learner]._row_state_type is not Window
    ):
        assert CLASSES[learner](fading_factor=np.float32(0.5)).fading_factor == 0.5


@pytest.mark.parametrize("learner", CLASSES)
def test_lists_and_arrays_are_stored_as_tuples(learner):
    """Lists are stored as River and model files store them, and equal to tuples."""
    cls = CLASSES[learner]
    for parameter, rule in rules_of(cls).items():
        if isinstance(rule, NamesRule) and cls._is_supervised and cls._row_state_type is not Window:
            for value in (["a", "b"], np.array(["a", "b"]), pd.Index(["a", "b"])):
                model = cls(**{parameter: value})
                assert getattr(model, parameter) == ("a", "b")
                assert model.clone()._get_params() == model._get_params()
        if isinstance(rule, NumberOrTuple):
            for value in (
                [1.0, 0.1],
                np.array([1.0, 0.1]),
                pd.Series([1.0, 0.1]),
                [np.float64(1), 0.1],
            ):
                model = cls(**{parameter: value})
                assert getattr(model, parameter) == (1.0, 0.1)
                assert model.clone()._get_params() == model._get_params()
        if isinstance(rule, FlagRule) and parameter != "exact":
            required = {"score": "rank"} if parameter == "per_class" else {}
            assert getattr(cls(**required, **{parameter: np.True_}), parameter) is True


@pytest.mark.parametrize("learner", CLASSES)
def test_bounds_are_at_least_the_requested_size(learner):
    cls = CLASSES[learner]
    size = next(iter(rules_of(cls)))
    if size not in ("k", "n_components"):
        return  # the learner has no size
    for parameter in ("max_candidates", "max_features"):
        if parameter in rules_of(cls):
            with pytest.raises(ValueError, match=rf"Expected {parameter} of .*{size} = 7") as info:
                cls(**{size: 7, parameter: 6})
            assert learner in str(info.value)


# ------------------------------------------------------------------------ unusual but valid columns


@rotated(IN_PIECES, "value", ["0", "3", "-1e9", "0.1", "1e150", "1e-310", "-0.0"])
def test_constant_column_is_only_counted(mode, value, X):
    value = float(value)
    model = fitted(mode, X)
    before = model.relevance, model.transform_one({"held 1": 3.0})
    constant, seen = model.n_constant, model.n_columns
    for dtype in (np.float64, np.float32, np.int8):
        if abs(value) > {np.int8: 127, np.float32: 3e38, np.float64: 1e308}[dtype]:
            value = 77.0
        x = np.full(N, value).astype(dtype)
        name = np.dtype(dtype).name
        model.learn_column(f"constant {name}", x)
        model.learn_columns(np.column_stack([x, x]), names=[f"{name} 1", f"{name} 2"])
        model.learn_column(f"sparse {name}", sp.csc_array(x[:, None]))
    assert (model.relevance, model.transform_one({"held 1": 3.0})) == before
    assert (model.n_constant, model.n_columns) == (constant + 12, seen + 12)


# 2.0**-498 and 2.0**498 scale without rounding.
SCALES = [5e-324, 1e-310, 1e-200, 2.0**-498, 2.0**498, 1e160, 1e250, 1e306]


@rotated(IN_PIECES, "scale", SCALES, each=2)
def test_columns_of_any_scale_are_correct_or_refused(mode, scale, X):
    model = fresh(mode, target_of(mode, X))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if not 2.0**-498 <= scale <= 2.0**498:
            refused(
                model, ValueError, lambda: model.learn_columns(np.round(X * 8) * scale), "squares"
            )
            return
        model.learn_columns(np.round(X * 8) * scale)
        found = np.array(list(model.relevance.values()))
    assert np.isfinite(found).all()
    assert (found <= 1.0 + 1e-9).all()
    if scale in (2.0**-498, 2.0**498):
        plain = learnt(mode, np.round(X * 8), target_of(mode, X))
        np.testing.assert_allclose(found, list(plain.relevance.values()), atol=1e-9)


@over(IN_PIECES)
def test_rounding_steps_on_a_large_offset_are_noise(mode):
    """With an offset of 1e9 and steps of the last bit, relevance is between 0 and 1, never NaN."""
    rng = np.random.default_rng(2)
    X = 1e9 + rng.integers(-3, 4, size=(N, 8)) * 2.0**-23
    model = learnt(mode, X, target_of(mode, rng.normal(size=(N, 4))))
    assert all(abs(found) <= 1 + 1e-9 for found in model.relevance.values())


@sampled(IN_PIECES)
def test_subnormal_value_among_normal_values(mode, X):
    model = fitted(mode, X)
    model.learn_column("subnormal", changed(3, 5e-324))
    assert np.isfinite(list(model.relevance.values())).all()


@over(COLUMN_MODES)
def test_two_rows_suffice(mode):
    y = {True: [1, 2] if mode.of_classes else [1.0, 2.0], False: None}
    model = learnt(mode, np.array([[1.0, 5.0, 3.0], [4.0, 5.0, 1.0]]), y[mode.has_target])
    assert model.n_constant == 1
    assert max(model.relevance.values(), default=1.0) == pytest.approx(1.0)
    assert mode.params.get("kernel") or not mode.has_target or model.noise_floor() == 1.0
