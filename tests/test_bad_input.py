"""Every bad input is refused, says why, and leaves the model exactly as it was."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from streamsel import SOSPCA, ProjSe

N = 12
LEARNERS = {
    "sospca": lambda: SOSPCA(3),
    "projse": lambda: ProjSe(3),
    "projse-pool": lambda: ProjSe(3, max_candidates=5),
    "projse-rbf": lambda: ProjSe(3, kernel="rbf"),
    "projse-unsupervised": lambda: ProjSe(3),
}


@pytest.fixture(name="X")
def columns():
    return np.random.default_rng(0).normal(size=(N, 20))


@pytest.fixture(params=LEARNERS)
def model(request, X):
    """A learner that has learnt something."""
    model = LEARNERS[request.param]()
    model.learn_target(None if "unsupervised" in request.param else X[:, 0] + X[:, 5] ** 2)
    model.learn_columns(X, names=[f"held {j}" for j in range(20)])
    return model


def changed(at, value, dtype=float):
    x = np.arange(N).astype(dtype)
    x[at] = value
    return x


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


def refused(model, error, act, match=None):
    """Run `act`, expecting an error and no other trace of it."""
    before = pickle.dumps(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(error, match=match) as info:
            act()
    assert pickle.dumps(model) == before
    return str(info.value)


@pytest.mark.parametrize("case", BAD_COLUMNS)
def test_learn_column(model, case):
    error, values = BAD_COLUMNS[case]
    message = refused(model, error, lambda: model.learn_column("the bad one", values))
    assert "the bad one" in message
    assert "Got" in message


@pytest.mark.parametrize("case", BAD_COLUMNS)
def test_learn_columns_from_pairs(model, X, case):
    """The good columns before it are held back with it: a list can be read again."""
    error, values = BAD_COLUMNS[case]
    pairs = [("good", X[:, 1] ** 2), ("better", X[:, 0]), ("the bad one", values), ("c", X[:, 2])]
    message = refused(model, error, lambda: model.learn_columns(pairs))
    assert "the bad one" in message


@pytest.mark.parametrize(
    "case", ["NaN", "inf", "NaN in float32", "all NaN", "complex", "strings", "objects", "dates"]
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_learn_columns_from_arrays(model, X, case, order):
    error, values = BAD_COLUMNS[case]
    X = X.astype(values.dtype if values.dtype.kind in "fc" else object)
    X[:, 13] = values
    if case in ("strings", "dates"):
        X = np.array(X.astype(str))
    X = np.asarray(X, order=order)
    names = ["the bad one" if j == 13 else f"good {j}" for j in range(20)]
    message = refused(model, error, lambda: model.learn_columns(X, names=names))
    if X.dtype.kind == "f":
        assert "the bad one" in message


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("case", ["NaN", "inf", "strings", "dates", "null", "bool and null"])
def test_learn_columns_from_frames(model, X, library, case):
    if case == "null":
        error, values = ValueError, pa.array([None, *range(1, N)], pa.float64())
    elif case == "bool and null":
        error, values = (ValueError, TypeError), pa.array([None] + [True, False] * 5 + [True])
    else:
        error, values = BAD_COLUMNS[case]
        if case == "dates":
            values = values.astype("datetime64[ms]")
    if library is not pa.table and isinstance(values, pa.Array):
        values = values.to_pandas() if library is pd.DataFrame else pl.from_arrow(values)
    frame = library({"good": X[:, 1] ** 2, "the bad one": values, "last": X[:, 2]})
    message = refused(model, error, lambda: model.learn_columns(frame))
    assert "the bad one" in message


def test_arrays_of_the_wrong_shape(model, X):
    for wrong in (X[:-1], X[0], X[:, :, None], np.float64(3.0), np.empty((0, 5))):
        refused(model, (ValueError, TypeError), lambda wrong=wrong: model.learn_columns(wrong))


def test_sparse_of_the_wrong_length(model, X):
    refused(model, ValueError, lambda: model.learn_columns(sp.csc_array(X[:-1])))


def test_things_that_are_no_columns(model):
    for wrong in (None, 3, "text", object(), [1, 2, 3], [("a", 1.0)], {"a": 1}, [("a",)]):
        refused(model, (ValueError, TypeError), lambda wrong=wrong: model.learn_columns(wrong))


def test_a_lazy_frame_says_collect(model, X):
    lazy = pl.DataFrame({"a": X[:, 0] ** 2}).lazy()
    message = refused(model, TypeError, lambda: model.learn_columns(lazy))
    assert "collect" in message


@pytest.mark.parametrize("names", [["a"] * 20, list("abc"), 5, "abc", [["list"]] * 20])
def test_names_that_do_not_fit(model, X, names):
    refused(model, (ValueError, TypeError), lambda: model.learn_columns(X**2, names=names))


def test_names_that_cannot_be_hashed(model, X):
    refused(model, TypeError, lambda: model.learn_column(["a"], X[:, 0] ** 2))
    refused(model, TypeError, lambda: model.learn_column({"a": 1}, X[:, 0] ** 2))


def test_the_name_of_a_held_column(X):
    for make, held in ((SOSPCA, "loadings"), (ProjSe, "selected")):
        model = make(2)
        model.learn_target(X[:, 0])
        model.learn_columns(X)
        name = next(iter(getattr(model, held)))
        x = X[:, 0] + 0.01 * X[:, 1]
        message = refused(model, ValueError, lambda m=model, n=name, x=x: m.learn_column(n, x))
        assert repr(name) in message
        pairs = [("new", x**2), (name, x)]
        refused(model, ValueError, lambda m=model, p=pairs: m.learn_columns(p))
        twice = [("twice", x), ("twice", X[:, 0])]
        refused(model, ValueError, lambda m=model, p=twice: m.learn_columns(p))


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
    "complex": (TypeError, np.arange(N) + 1j),
    "dates": (TypeError, np.arange(N).astype("datetime64[D]")),
    "objects": (TypeError, np.array([[1], {2}] * (N // 2), dtype=object)),
    "labels in two columns": ((ValueError, TypeError), np.array([["a", "b"]] * N)),
    "lazy": (TypeError, pl.DataFrame({"a": np.arange(N)}).lazy()),
}


@pytest.mark.parametrize("case", BAD_TARGETS)
@pytest.mark.parametrize("learner", [SOSPCA, ProjSe])
def test_learn_target(learner, case):
    error, y = BAD_TARGETS[case]
    model = learner(2)
    refused(model, error, lambda: model.learn_target(y))
    # and the model is none the worse for it
    x = np.arange(N) ** 2.0
    model.learn_target(x)
    model.learn_column("a", x)
    assert next(iter(model.relevance.values())) == pytest.approx(1.0)


def test_none_is_no_target_for_sospca():
    model = SOSPCA(2)
    refused(model, (ValueError, TypeError), lambda: model.learn_target(None), "target")


def test_a_second_target_after_columns(model, X):
    refused(model, (ValueError, RuntimeError), lambda: model.learn_target(X[:, 3]))


def test_signed_takes_one_numeric_target():
    rng = np.random.default_rng(1)
    for y in (rng.normal(size=(N, 2)), np.array(["a", "b", "c"] * 4)):
        model = SOSPCA(2, signed=True)
        refused(model, (ValueError, TypeError), lambda m=model, y=y: m.learn_target(y), "signed")


NOT_A_COUNT = [0, -1, 2.5, "3", None, float("nan"), float("inf"), [3], True, 1 + 0j]
NONE_IS_ALL = {"max_candidates"}


@pytest.mark.parametrize("value", NOT_A_COUNT)
@pytest.mark.parametrize(
    ("learner", "parameter"), [(SOSPCA, "n_components"), (ProjSe, "k"), (ProjSe, "max_candidates")]
)
def test_counts(learner, parameter, value):
    if value is None and parameter in NONE_IS_ALL:
        assert getattr(learner(**{parameter: value}), parameter) is None
        return
    with pytest.raises((ValueError, TypeError), match=parameter) as info:
        learner(**{parameter: value})
    assert repr(value) in str(info.value)
    assert learner.__name__ in str(info.value)


@pytest.mark.parametrize(
    ("learner", "parameters", "named"),
    [
        (SOSPCA, {"rotation": "qr"}, "rotation"),
        (SOSPCA, {"rotation": None}, "rotation"),
        (SOSPCA, {"signed": "yes"}, "signed"),
        (SOSPCA, {"target": "labels"}, "target"),
        (ProjSe, {"kernel": "sigmoid"}, "kernel"),
        (ProjSe, {"kernel": None}, "kernel"),
        (ProjSe, {"kernel": "poly", "degree": 0}, "degree"),
        (ProjSe, {"kernel": "poly", "degree": 2.5}, "degree"),
        (ProjSe, {"kernel": "rbf", "gamma": 0.0}, "gamma"),
        (ProjSe, {"kernel": "rbf", "gamma": -1.0}, "gamma"),
        (ProjSe, {"kernel": "rbf", "gamma": float("nan")}, "gamma"),
        (ProjSe, {"kernel": "poly", "gamma": "scale"}, "gamma"),
        (ProjSe, {"kernel": "poly", "coef0": -1.0}, "coef0"),
        (ProjSe, {"kernel": "poly", "coef0": float("inf")}, "coef0"),
        (ProjSe, {"max_candidates": 0}, "max_candidates"),
        (ProjSe, {"max_candidates": 2.5}, "max_candidates"),
        (ProjSe, {"k": 20, "max_candidates": 19}, "max_candidates"),
        (ProjSe, {"after_rank": "again"}, "after_rank"),
        (ProjSe, {"exact": "yes"}, "exact"),
        (ProjSe, {"scale": 3}, "scale"),
        (ProjSe, {"target": None}, "target"),
        (ProjSe, {"n_jobs": 0}, "n_jobs"),
        (SOSPCA, {"n_jobs": 1.5}, "n_jobs"),
        (SOSPCA, {"n_jobs": "2"}, "n_jobs"),
    ],
)
def test_parameters(learner, parameters, named):
    with pytest.raises((ValueError, TypeError), match=named):
        learner(**parameters)


def test_counts_may_be_numpys():
    assert SOSPCA(np.int64(3)).n_components == 3
    assert ProjSe(np.int32(4)).k == 4


# ------------------------------------------------------------- strange, and yet good, columns


@pytest.mark.parametrize("value", [0.0, 3.0, -1e9, 0.1, 1e150, 1e-310, -0.0])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8])
def test_a_constant_column_is_counted_and_ignored(model, value, dtype):
    if abs(value) > {np.int8: 127, np.float32: 3e38, np.float64: 1e308}[dtype]:
        value = 77.0
    x = np.full(N, value).astype(dtype)
    before = model.relevance
    constant, seen = model.n_constant, model.n_columns
    model.learn_column("constant", x)
    model.learn_columns(np.column_stack([x, x]), names=["c1", "c2"])
    model.learn_column("sparse", sp.csc_array(x[:, None]))
    assert model.relevance == before
    assert (model.n_constant, model.n_columns) == (constant + 4, seen + 4)


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-200, 1e-150, 1e150])
def test_columns_of_any_scale_are_taken_at_their_worth_or_not_at_all(X, scale):
    """Down to 1e-150 relevance is exact; below, where squares vanish, it is never nonsense."""
    for learner in (SOSPCA, ProjSe):
        model = learner(5)
        model.learn_target(X[:, 0])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.learn_columns(np.round(X[:, :5] * 8) * scale)
        values = np.array(list(model.relevance.values()))
        assert np.isfinite(values).all()
        assert (values >= 0).all()
        assert (values <= 1 + 1e-9).all()
        if scale >= 1e-150:
            expected = [abs(np.corrcoef(np.round(x * 8), X[:, 0])[0, 1]) for x in X[:, :5].T]
            np.testing.assert_allclose(np.sort(values), np.sort(expected), atol=1e-9)


@pytest.mark.parametrize("scale", [1e160, 1e250, 1e307])
def test_columns_too_large_to_square_are_refused_or_right(model, X, scale):
    x = np.round(X[:, 1] * 4) * scale
    before = pickle.dumps(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            model.learn_column("huge", x)
        except ValueError as error:
            message = str(error)
        else:
            message = None
    if message is not None:
        assert "huge" in message
        assert pickle.dumps(model) == before
    assert np.isfinite(list(model.relevance.values())).all()


def test_subnormal_among_ordinary(model):
    x = np.arange(N) * 1.0
    x[3] = 5e-324
    model.learn_column("subnormal", x)
    assert np.isfinite(list(model.relevance.values())).all()


def test_float_steps_beside_an_offset_are_noise_not_signal():
    """An offset of 1e9 with steps of the last bit: relevance between 0 and 1, never NaN."""
    rng = np.random.default_rng(2)
    for learner in (SOSPCA, ProjSe):
        model = learner(3)
        model.learn_target(rng.normal(size=N))
        x = 1e9 + rng.integers(-3, 4, size=(N, 8)) * 2.0**-23
        model.learn_columns(x)
        values = np.array(list(model.relevance.values()))
        assert ((values >= 0) & (values <= 1 + 1e-9)).all()


def test_two_rows_are_enough():
    for learner in (SOSPCA, ProjSe):
        model = learner(2)
        model.learn_target([1.0, 2.0])
        model.learn_columns(np.array([[1.0, 5.0, 3.0], [4.0, 5.0, 1.0]]))
        assert max(model.relevance.values()) == pytest.approx(1.0)
        assert model.n_constant == 1
        assert model.noise_floor() == 1.0
