"""What both learners promise: cuts, threads, containers, copies, merging, interruption."""

import copy
import importlib
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from streamsel import SOSPCA, ProjSe
from streamsel.stream import as_stream

MODES = {
    "sospca": lambda **o: SOSPCA(5, **o),
    "sospca-paper-signed": lambda **o: SOSPCA(5, rotation="paper", signed=True, **o),
    "projse": lambda **o: ProjSe(12, **o),
    "projse-poly": lambda **o: ProjSe(12, kernel="poly", **o),
    "projse-rbf": lambda **o: ProjSe(12, kernel="rbf", **o),
    "projse-pool": lambda **o: ProjSe(12, max_candidates=30, **o),
    "projse-exact": lambda **o: ProjSe(12, max_candidates=30, exact=True, **o),
    "projse-unsupervised": lambda **o: ProjSe(12, **o),
    "projse-unsupervised-pool": lambda **o: ProjSe(12, max_candidates=30, **o),
}
ONE_SHOT = [mode for mode in MODES if mode != "projse-exact"]


@pytest.fixture(params=MODES)
def mode(request):
    return request.param


@pytest.fixture
def make(mode):
    return MODES[mode]


@pytest.fixture(name="X")
def columns():
    return np.asfortranarray(np.random.default_rng(0).normal(size=(40, 300)) + 2)


@pytest.fixture
def y(mode, X):
    if "unsupervised" in mode:
        return None
    return X[:, 20] - X[:, 200] + np.random.default_rng(1).normal(size=40)


def fresh(make, y):
    model = make()
    model.learn_target(y)
    return model


def same(first, second, rtol=1e-10):
    """The same decisions, and the same state to rounding."""
    for attribute in ("relevance", "scores", "loadings"):
        if not hasattr(first, attribute):
            continue
        one, other = getattr(first, attribute), getattr(second, attribute)
        assert list(one) == list(other)
        if attribute == "loadings":
            for name in one:
                assert one[name] == pytest.approx(other[name], rel=rtol, abs=rtol)
        else:
            assert one == pytest.approx(other, rel=rtol, abs=rtol)
    for attribute in ("selected", "rounds", "n_certified", "n_rows", "n_columns", "n_constant"):
        if hasattr(first, attribute):
            assert getattr(first, attribute) == getattr(second, attribute)
    one, other = flat(first._get_state()), flat(second._get_state())
    assert one.keys() == other.keys()
    for key, value in one.items():
        if isinstance(value, np.ndarray):
            assert value.shape == other[key].shape, key
            # What rounding took from a mean is measured against the mean.
            whole = one[key.removesuffix("low") + "mean"] if key.endswith("low") else value
            size = np.abs(whole).max(initial=0.0)
            np.testing.assert_allclose(other[key], value, rtol=rtol, atol=rtol * size, err_msg=key)


def flat(state, place=""):
    """Everything in a state by its place, however deep."""
    parts = {}
    for key, value in state.items():
        if isinstance(value, dict):
            parts |= flat(value, f"{place}{key}/")
        else:
            parts[f"{place}{key}"] = value
    return parts


def bits(model):
    return {
        key: value.tobytes() if isinstance(value, np.ndarray) else repr(value)
        for key, value in flat(model._get_state()).items()
    }


@pytest.mark.parametrize("size", [1, 2, 7, 64, 299])
@pytest.mark.parametrize("mode", ONE_SHOT, indirect=True)
def test_however_the_columns_are_cut(make, X, y, size):
    whole = fresh(make, y)
    whole.learn_columns(X)
    parts = fresh(make, y)
    for start in range(0, 300, size):
        parts.learn_columns(X[:, start : start + size])
    same(whole, parts)


@pytest.mark.parametrize("mode", ONE_SHOT, indirect=True)
def test_one_at_a_time(make, X, y):
    whole, single = fresh(make, y), fresh(make, y)
    whole.learn_columns(X)
    for j in range(300):
        single.learn_column(j, X[:, j])
    same(whole, single)


@pytest.mark.parametrize("cut", [None, 130])
def test_the_same_cut_gives_the_same_bits_for_every_n_jobs(make, mode, cut):
    """Large enough for threads to be worth while."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(1200, 400))
    y = None if "unsupervised" in mode else X[:, 3] + rng.normal(size=1200)
    results = []
    for n_jobs in (1, 2, 3):
        model = make(n_jobs=n_jobs)
        model.learn_target(y)
        if cut is None or mode == "projse-exact":
            model.learn_columns(X)
        else:
            for start in range(0, 400, cut):
                model.learn_columns(X[:, start : start + cut])
        results.append(bits(model))
    assert results[0] == results[1] == results[2]


def test_threads_and_sparse_columns(make, mode):
    rng = np.random.default_rng(3)
    X = sp.csc_array(sp.random(2000, 200, density=0.9, random_state=rng, format="csc"))
    y = None if "unsupervised" in mode else rng.normal(size=2000)
    results = []
    for n_jobs in (1, 2):
        model = make(n_jobs=n_jobs)
        model.learn_target(y)
        model.learn_columns(X)
        results.append(bits(model))
    assert results[0] == results[1]


def containers():
    """Ways to hand in the same whole numbers, each with a name."""

    def frame(library):
        def build(X):
            module = importlib.import_module(library)
            data = {f"v{j}": np.ascontiguousarray(X[:, j]) for j in range(X.shape[1])}
            return module.table(data) if library == "pyarrow" else module.DataFrame(data)

        return build

    def read_only(X):
        X = X.copy()
        X.flags.writeable = False
        return X

    return {
        **{
            name: (lambda X, name=name: X.astype(name))
            for name in ("float32", "int8", "uint8", "int16", "int64", "uint64", ">f8", ">i4")
        },
        "C order": np.ascontiguousarray,
        "F order": np.asfortranarray,
        "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
        "backwards": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
        "read-only": read_only,
        "stream": as_stream,
        "pairs": lambda X: [(j, X[:, j]) for j in range(X.shape[1])],
        "generator": lambda X: ((j, X[:, j]) for j in range(X.shape[1])),
        "lists": lambda X: [(j, X[:, j].tolist()) for j in range(X.shape[1])],
        "csc": sp.csc_array,
        "csr": sp.csr_array,
        "csc matrix": sp.csc_matrix,
        "csc int8": lambda X: sp.csc_array(X.astype(np.int8)),
        "csc float32": lambda X: sp.csc_array(X.astype(np.float32)),
        "pandas": frame("pandas"),
        "polars": frame("polars"),
        "pyarrow": frame("pyarrow"),
    }


@pytest.mark.parametrize(
    ("mode", "container"),
    [
        (mode, container)
        for mode in MODES
        for container in containers()
        if mode in ONE_SHOT or container != "generator"  # exact=True reads again
    ],
    indirect=["mode"],
)
def test_however_the_columns_are_held(make, mode, container):
    rng = np.random.default_rng(4)
    X = rng.integers(0, 100, size=(30, 120)) * (rng.random((30, 120)) < 0.6).astype(np.float64)
    X[:, 17] = 4.0
    y = None if "unsupervised" in mode else X[:, 20] - X[:, 90] + rng.normal(size=30)
    names = [f"v{j}" for j in range(120)] if container in ("pandas", "polars", "pyarrow") else None
    plain, other = fresh(make, y), fresh(make, y)
    plain.learn_columns(X, names=names)
    before = X.copy()
    other.learn_columns(containers()[container](X))
    np.testing.assert_array_equal(X, before)
    assert plain.n_constant == 1
    same(plain, other)


def test_bool_columns_are_zeros_and_ones(make, mode):
    rng = np.random.default_rng(5)
    X = rng.random((40, 60)) < 0.5
    y = None if "unsupervised" in mode else rng.normal(size=40)
    one, other = fresh(make, y), fresh(make, y)
    one.learn_columns(X.astype(float))
    other.learn_columns(X)
    same(one, other)


@pytest.mark.parametrize("mode", ONE_SHOT, indirect=True)
@pytest.mark.parametrize("way", ["pickle", "deepcopy", "include_attributes"])
def test_a_copy_goes_on_as_the_original_would(make, X, y, way):
    model = fresh(make, y)
    model.learn_columns(X[:, :150])
    if way == "pickle":
        twin = pickle.loads(pickle.dumps(model))  # noqa: S301
    elif way == "deepcopy":
        twin = copy.deepcopy(model)
    else:
        twin = model.clone(include_attributes=True)
    same(model, twin, rtol=0)
    before = bits(twin)
    model.learn_columns(X[:, 150:])
    assert bits(twin) == before  # nothing is shared
    twin.learn_columns(X[:, 150:])
    assert bits(twin) == bits(model)
    same(model, twin, rtol=0)


def test_clone_is_fresh(make, X, y):
    model = fresh(make, y)
    model.learn_columns(X)
    clone = model.clone()
    assert type(clone) is type(model)
    assert clone._get_params() == model._get_params()
    assert clone.n_columns == 0
    assert not clone.relevance or not any(clone.relevance.values())
    clone.learn_target(y)
    clone.learn_columns(X)
    same(clone, model, rtol=0)


def test_reading_a_model_changes_nothing(make, X, y):
    model = fresh(make, y)
    model.learn_columns(X)
    before = pickle.dumps(model)
    for attribute in ("relevance", "selected", "scores", "rounds", "loadings", "embedding"):
        getattr(model, attribute, None)
    model.noise_floor()
    model.transform_one({0: 1.0})
    model.transform_many(X)
    assert pickle.dumps(model) == before
    handed_out = model.relevance
    handed_out.clear()
    assert model.relevance


def test_the_model_keeps_nothing_of_the_callers(make, X, y):
    """What was handed in may be written over afterwards."""
    one, other = fresh(make, y), None
    one.learn_columns(X)
    mine, target = X.copy(order="F"), None if y is None else y.copy()
    other = make()
    other.learn_target(target)
    other.learn_columns(mine)
    mine[:] = 7.0
    if target is not None:
        target[:] = 0.0
    same(one, other, rtol=0)


def test_counts(make, X, y):
    model = make()
    assert model.n_columns == 0
    assert model.n_constant == 0
    model.learn_target(y)
    X[:, [5, 80]] = 3.0
    model.learn_columns(X)
    assert (model.n_columns, model.n_constant) == (300, 2)
    assert model.n_rows == 40


@pytest.mark.parametrize("mode", ONE_SHOT, indirect=True)
def test_unnamed_columns_are_numbered_on(make, X, y):
    model = fresh(make, y)
    model.learn_columns(X[:, :100])
    model.learn_columns(X[:, 100:])
    whole = fresh(make, y)
    whole.learn_columns(X, names=range(300))
    same(model, whole)


def test_names_are_any_hashables(make, X, y):
    names = [("tuple", j) if j % 3 else f"string {j}" if j % 2 else j + 0.5 for j in range(300)]
    plain, named = fresh(make, y), fresh(make, y)
    plain.learn_columns(X)
    named.learn_columns(X, names=names)
    translate = dict(enumerate(names))
    if hasattr(plain, "selected"):
        assert named.selected == [translate[j] for j in plain.selected]
    else:
        assert set(named.loadings) == {translate[j] for j in plain.loadings}


@pytest.mark.parametrize("mode", ONE_SHOT, indirect=True)
def test_no_columns_at_all(make, X, y):
    model = fresh(make, y)
    model.learn_columns(X)
    before = bits(model)
    model.learn_columns(X[:, :0])
    model.learn_columns(iter([]))
    assert bits(model) == before


def test_learning_columns_before_the_target_says_so(make, mode, X):
    model = make()
    with pytest.raises((ValueError, RuntimeError), match="learn_target"):
        model.learn_columns(X)
    if mode in ONE_SHOT:
        with pytest.raises((ValueError, RuntimeError), match="learn_target"):
            model.learn_column("a", X[:, 0])
    assert model.n_columns == 0


# ----------------------------------------------------------------------------------- errors


def poisoned(X, error=None, at=37):
    for j in range(X.shape[1]):
        if j == at and error is not None:
            raise error
        yield (j, np.full(len(X), np.nan) if j == at else X[:, j])


def test_an_error_in_a_rereadable_source_leaves_the_model_as_it_was(make, X, y):
    model = fresh(make, y)
    if "exact" not in model._get_params() or not model.exact:
        model.learn_columns(X[:, :20], names=[f"first {j}" for j in range(20)])
    before = pickle.dumps(model)
    X[3, 250] = np.nan
    with pytest.raises(ValueError, match="250"):
        model.learn_columns(X, names=range(300))
    assert pickle.dumps(model) == before
    with pytest.raises(ValueError, match="250"):
        model.learn_columns(as_stream(X, names=range(300)))
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("mode", ONE_SHOT, indirect=True)
def test_an_error_in_a_one_shot_source_leaves_the_columns_before_it_learnt(make, X, y):
    model, expected = fresh(make, y), fresh(make, y)
    with pytest.raises(ValueError, match="37") as info:
        model.learn_columns(poisoned(X))
    assert "learn" in str(info.value)
    expected.learn_columns(X[:, :37])
    same(model, expected)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError("the disk is gone")])
@pytest.mark.parametrize("mode", ONE_SHOT, indirect=True)
def test_an_interruption_leaves_a_model_that_goes_on(make, X, y, error):
    model = fresh(make, y)
    with pytest.raises(error if isinstance(error, type) else type(error)):
        model.learn_columns(poisoned(X, error))
    seen = model.n_columns
    assert 0 <= seen <= 37
    expected = fresh(make, y)
    expected.learn_columns(X[:, :seen])
    same(model, expected)
    model.learn_columns(X[:, seen:], names=range(seen, 300))
    expected.learn_columns(X[:, seen:], names=range(seen, 300))
    same(model, expected)


# ------------------------------------------------------------------------------------ merge


@pytest.mark.parametrize("mode", ONE_SHOT, indirect=True)
def test_merge_refuses_what_does_not_fit_and_changes_neither(make, mode, X, y):
    model, other = fresh(make, y), fresh(make, y)
    model.learn_columns(X[:, :100])
    other.learn_columns(X[:, :100])
    target = None if y is None else y + np.arange(40)
    different_target = fresh(make, target) if y is not None else make()
    if y is None:
        different_target.learn_target(X[:, 0])
    different_target.learn_columns(X[:, 100:], names=range(100, 300))
    bad = [different_target, ProjSe(3) if mode.startswith("sospca") else SOSPCA(3), None, "model"]
    if mode in ("sospca", "projse"):
        bad.append(other)  # the same columns once more
    for wrong in bad:
        before, beside = pickle.dumps(model), pickle.dumps(wrong)
        with pytest.raises((ValueError, TypeError)):
            model.merge(wrong)
        assert pickle.dumps(model) == before
        assert pickle.dumps(wrong) == beside


@pytest.mark.parametrize("mode", ONE_SHOT, indirect=True)
def test_merge_leaves_the_other_alone_and_counts(make, X, y):
    model, other, empty = fresh(make, y), fresh(make, y), fresh(make, y)
    X[:, 120] = 1.0
    model.learn_columns(X[:, :100])
    other.learn_columns(X[:, 100:], names=range(100, 300))
    beside = pickle.dumps(other)
    model.merge(other)
    assert pickle.dumps(other) == beside
    assert (model.n_columns, model.n_constant) == (300, 1)
    before = bits(model)
    model.merge(empty)
    assert bits(model) == before


# ------------------------------------------------------------------------------------- rows


@pytest.mark.parametrize("container", ["array", "csc", "stream", "pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("learner", [SOSPCA, ProjSe])
def test_transform_many_is_transform_one(learner, container):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(30, 12)) * (rng.random((30, 12)) < 0.6)
    framed = container in ("pandas", "polars", "pyarrow")
    names = [f"v{j}" for j in range(12)] if framed else list(range(12))
    model = learner(4)
    model.learn_target(X[:, 2] - X[:, 7])
    model.learn_columns(X, names=names)
    expected = [model.transform_one(dict(zip(names, row.tolist(), strict=True))) for row in X]
    if framed:
        library = importlib.import_module(container)
        data = {name: X[:, j] for j, name in enumerate(names)}
        rows = library.table(data) if container == "pyarrow" else library.DataFrame(data)
        got = model.transform_many(rows)
        assert type(got) is type(rows)
        keys = got.column_names if container == "pyarrow" else list(got.columns)
        got = np.column_stack([np.asarray(got[key]) for key in keys])
    else:
        rows = {"array": X, "csc": sp.csc_array(X), "stream": as_stream(X)}[container]
        got, keys = model.transform_many(rows), list(expected[0])
        assert type(got) is np.ndarray
        assert got.dtype == np.float64
    assert keys == list(expected[0])
    np.testing.assert_allclose(got, [list(row.values()) for row in expected], atol=1e-12)
    if not framed:
        assert got.shape == (30, 4)


@pytest.mark.parametrize("learner", [SOSPCA, ProjSe])
def test_pandas_keeps_its_index(learner):
    pandas = importlib.import_module("pandas")
    rng = np.random.default_rng(7)
    frame = pandas.DataFrame(rng.normal(size=(10, 6)), columns=list("abcdef"), index=range(50, 60))
    model = learner(2)
    model.learn_target(frame["a"])
    model.learn_columns(frame)
    assert list(model.transform_many(frame).index) == list(range(50, 60))
