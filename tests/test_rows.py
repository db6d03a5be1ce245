"""ProjSe on rows against all rows stored and weighted: exact after every row."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsel import ProjSe
from tests.reference.rows import Rows, agree, same

KERNELS = {
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly"},
    "poly-2-1": {"kernel": "poly", "degree": 2, "coef0": 1.0},
    "rbf": {"kernel": "rbf"},
    "rbf-gamma": {"kernel": "rbf", "gamma": 0.05},
}
TARGETS = ["number", "label", "bool", "class", "dict"]


@pytest.fixture(params=KERNELS)
def kernel(request):
    return KERNELS[request.param]


def target_of_row(rng, kind, i):
    """Return a row's target; its last class, or last key of a dict, is late."""
    late = i >= 12
    if kind == "number":
        return float(rng.normal())
    if kind == "label":
        return "abcd"[rng.integers(3 + late)]
    if kind == "bool":
        return bool(rng.random() < 0.4)
    if kind == "class":
        return int(rng.choice([10, 2, 7, -1][: 3 + late]))
    y = {"price": float(rng.normal()), "place": "xyz"[rng.integers(2 + late)]}
    if late:
        y["volume"] = float(rng.normal())
    if rng.random() < 0.2:
        del y["price"]
    return y


def stream(rng, n, kind="number"):
    """Yield rows with features that are dense, sparse, missing, emerging and vanishing."""
    for i in range(n):
        x = {"dense": rng.normal(), "offset": 5 + rng.normal(), "constant": 3.0, "zero": 0}
        x |= {f"word {j}": 1 for j in rng.integers(0, 6, size=2)}
        if i < 15:
            x["vanishes"] = rng.normal()
        if i >= 8:
            x["emerges"] = 2 + rng.normal()
        if rng.random() < 0.3:
            x["missing"] = [float("nan"), None, 1.5][rng.integers(3)]
        if rng.random() < 0.2:
            x["dense"] = None
        yield x, target_of_row(rng, kind, i)


def pair(k=20, fading_factor=0.0, target_type="auto", **options):
    """Return a model and its reference with all rows stored."""
    model = ProjSe(k, fading_factor=fading_factor, target_type=target_type, **options)
    return model, Rows(fading_factor, target_type)


def both(model, rows, stream):
    """Learn rows by both, and compare them after every row."""
    for x, y in stream:
        model.learn_one(x, y)
        rows.learn_one(x, y)
        agree(model, rows)


@pytest.mark.parametrize("fading_factor", [0.0, 0.3])
@pytest.mark.parametrize("kind", TARGETS)
def test_after_every_row(rng, kernel, kind, fading_factor):
    target = "class" if kind == "class" else "auto"
    model, rows = pair(fading_factor=fading_factor, target_type=target, **kernel)
    both(model, rows, stream(rng, 25, kind))
    assert len(model.selected) > 5


@pytest.mark.parametrize("fading_factor", [0.0, 0.05])
def test_on_rank_exhausted_stop(rng, kernel, fading_factor):
    model, rows = pair(fading_factor=fading_factor, on_rank_exhausted="stop", **kernel)
    both(model, rows, stream(rng, 25, "label"))
    assert 2 <= len(model.selected) <= 4


@pytest.mark.parametrize("kernel", ["poly-2-1", "rbf"], indirect=True)
@pytest.mark.parametrize("fading_factor", [0.0, 0.05])
def test_kernels_that_depend_on_scale(rng, kernel, fading_factor):
    kernel = {"gamma": 0.05} | kernel
    model, rows = pair(fading_factor=fading_factor, scale=False, **kernel)
    both(model, rows, stream(rng, 20, "dict"))


def test_the_moments_of_the_reference_are_weighted_moments(rng):
    """Moments of the reference equal NumPy's weighted moments."""
    rows = Rows(0.1)
    X, y = rng.normal(size=(20, 2)) + 3, rng.normal(size=20)
    for a, t in zip(X, y, strict=True):
        rows.learn_one({"a": a[0], "b": a[1]}, t)
    w = 0.9 ** np.arange(19, -1, -1)
    C = np.cov(np.column_stack([X, y]).T, aweights=w, ddof=0) * w.sum()
    mean, m2, cxy = rows.moments("b")
    assert rows.n == pytest.approx(w.sum(), rel=1e-14)
    assert mean == pytest.approx(np.average(X[:, 1], weights=w), rel=1e-14)
    assert m2 == pytest.approx(C[1, 1], rel=1e-12)
    assert cxy[None] == pytest.approx(C[1, 2], rel=1e-12)
    assert rows.cyy()[None, None] == pytest.approx(C[2, 2], rel=1e-12)


def test_sparse_rows_of_a_large_vocabulary(rng):
    model, rows = pair(k=30)
    for i in range(60):
        x = {f"w{j}": int(rng.integers(1, 4)) for j in rng.zipf(1.3, size=8) % 500}
        y = "spam" if "w1" in x and "w2" not in x else "ham"
        model.learn_one(x, y)
        rows.learn_one(x, y)
        if i % 6 == 5:
            agree(model, rows)
    assert model.n_columns == len(rows.names) > 60


@pytest.mark.parametrize("x_scale", [1e-100, 1.0, 1e100])
@pytest.mark.parametrize("y_scale", [1e-100, 1e100])
@pytest.mark.parametrize("fading_factor", [0.0, 0.05])
def test_offsets_and_scales(rng, kernel, x_scale, y_scale, fading_factor):
    model, rows = pair(fading_factor=fading_factor, **kernel)
    X = (rng.normal(size=(40, 6)) + 1e9) * x_scale
    Y = (rng.normal(size=(40, 2)) + 1e9) * y_scale
    for i, (x, y) in enumerate(zip(X.tolist(), Y.tolist(), strict=True)):
        model.learn_one(dict(enumerate(x)), dict(enumerate(y)))
        rows.learn_one(dict(enumerate(x)), dict(enumerate(y)))
        if i % 8 == 7:
            agree(model, rows)


@pytest.mark.parametrize("level", [1e4, 1e6, 1e9])
@pytest.mark.parametrize("came", ["absent before", "zero before"])
def test_late_offsets_with_fading_rows(rng, came, level):
    """A level that appears late, such as a time stamp, costs no digits while old rows fade."""
    model, rows = pair(fading_factor=0.2)
    for i in range(300):
        x = {"noise": rng.normal(), "late": level + rng.normal()}
        y = rng.normal() + x["late"] - level
        if i < 10:
            x = {"noise": 0.0} | ({"late": 0.0} if came == "zero before" else {})
        model.learn_one(x, y)
        rows.learn_one(x, y)
        if i % 29 == 0:
            agree(model, rows)


def test_drifting_targets_with_fading_rows(rng):
    model, rows = pair(fading_factor=0.2)
    for i in range(300):
        x = {"a": rng.normal(), "b": rng.normal()}
        y = x["a"] + rng.normal() + (1e9 if i >= 10 else 0.0)
        model.learn_one(x, y)
        rows.learn_one(x, y)
        if i % 29 == 0:
            agree(model, rows)


NAMES = ["a", "b", "c", 3, ("t", 1), 2.5]
SHIFTS = st.sampled_from([(0.0, 1.0), (1e9, 1.0), (0.0, 1e100), (0.0, 1e-100), (1e9, 1e-100)])
LABELS = st.sampled_from(["p", "q", "r", True])


@st.composite
def streams(draw):
    """Return shifted and scaled rows of small whole numbers, and a target."""
    shifts = draw(st.fixed_dictionaries(dict.fromkeys([*NAMES, "y", "z"], SHIFTS)))

    def at(name):
        offset, scale = shifts[name]
        return st.integers(-3, 3).map(lambda v: (offset + v) * scale)

    missing = st.sampled_from([None, float("nan")])
    x = st.fixed_dictionaries({}, optional={name: at(name) | missing for name in NAMES})
    y = draw(
        st.sampled_from(
            [
                at("y"),
                LABELS,
                st.fixed_dictionaries({"y": at("y")}, optional={"z": at("z"), "label": LABELS}),
            ]
        )
    )
    return draw(st.lists(st.tuples(x, y), min_size=1, max_size=10))


@given(
    rows=streams(),
    kernel=st.sampled_from(list(KERNELS.values())),
    fading_factor=st.sampled_from([0.0, 0.05, 0.5]),
    on_rank_exhausted=st.sampled_from(["restart", "stop"]),
)
def test_all_options_together(rows, kernel, fading_factor, on_rank_exhausted):
    both(*pair(fading_factor=fading_factor, on_rank_exhausted=on_rank_exhausted, **kernel), rows)


@pytest.mark.parametrize("on_rank_exhausted", ["restart", "stop"])
@pytest.mark.parametrize("kind", TARGETS)
def test_rows_equal_columns(rng, kernel, kind, on_rank_exhausted):
    target = "class" if kind == "class" else "auto"
    by_rows, rows = pair(on_rank_exhausted=on_rank_exhausted, target_type=target, **kernel)
    for x, y in stream(rng, 30, kind):
        x = {name: value for name, value in x.items() if value == value}  # noqa: PLR0124, PLW2901
        x = {name: value for name, value in x.items() if value is not None}  # noqa: PLW2901
        by_rows.learn_one(x, y)
        rows.learn_one(x, y)
    by_columns = ProjSe(20, on_rank_exhausted=on_rank_exhausted, target_type=target, **kernel)
    by_columns.learn_target(
        np.column_stack([*columns_of(rows.ys)]) if kind == "dict" else labels(rows)
    )
    by_columns.learn_columns(rows.matrix(), names=rows.names)
    same(by_rows, by_columns)


def columns_of(ys):
    """Return the columns of a target of several, including indicators."""
    names = dict.fromkeys(name for y in ys for name in y)
    return ([y.get(name, 0.0) for y in ys] for name in names)


def labels(rows):
    """Return a target of one column: numbers, or labels."""
    return [y[None] if None in y else next(iter(y)) for y in rows.ys]


@pytest.mark.parametrize("kernel", ["linear", "rbf"], indirect=True)
def test_real_rows_equal_columns(dataset, kernel):
    """Rows of real data (word counts of SMS messages) give the results of columns."""
    X, y, _, archive = dataset("sms_spam")
    words, classes = archive["feature_names"].tolist(), archive["classes"][y].tolist()
    by_rows, by_columns = ProjSe(50, **kernel), ProjSe(50, **kernel)
    arrived = {}
    for i, label in enumerate(classes):
        entries = slice(X.indptr[i], X.indptr[i + 1])
        x = {words[j]: n for j, n in zip(X.indices[entries], X.data[entries].tolist(), strict=True)}
        by_rows.learn_one(x, label)
        arrived |= dict.fromkeys(sorted(x))
    position = {word: j for j, word in enumerate(words)}
    order = [position[word] for word in arrived]
    by_columns.learn_target(classes)
    by_columns.learn_columns(X.tocsc()[:, order], names=list(arrived))
    same(by_rows, by_columns)
    assert len(by_rows.selected) == 50


# ------------------------------------------------------------------------- ties and classes


def test_ties_are_in_order_of_arrival_then_canonical():
    model = ProjSe(5)
    model.learn_one({"z": 1.0, 10: 1.0, 9: 1.0}, 1.0)
    model.learn_one({}, 0.0)
    assert model.selected == [9, 10, "z"]  # int before str, 9 before 10
    model.learn_one({"b": 0.0, "a": 0.0}, 0.0)
    model.learn_one({"b": 1.0, "a": 1.0, "z": 1.0, 10: 1.0, 9: 1.0}, 1.0)
    assert model.selected == [9, 10, "z", "a", "b"]


@pytest.mark.parametrize(
    "labels", [[3, 1, 2], ["b", 1, (2, "c")], [frozenset("ab"), 2.5, "a"], [(1, "a"), ("a", 1), 1j]]
)
def test_any_hashable_is_a_class(rng, labels):
    model, rows = pair(target_type="class")
    for i, x in enumerate(rng.normal(size=(12, 3)).tolist()):
        both(model, rows, [(dict(enumerate(x)), labels[i % 3])])


# ------------------------------------------------------------------------- compilation

_FEED = """
import numpy as np, pandas as pd
from streamsel import ProjSe
from streamsel._kernels import row_moments, sweep
rng = np.random.default_rng(0)
for options in ({}, {"fading_factor": 0.1}, {"max_features": 6, "grace_period": 2}):
    for y in (1.5, "label", True, {"a": 1.0, "b": "label"}, np.float32(2)):
        model, other = ProjSe(2, **options), ProjSe(2, **options)
        for kind in (int, float, bool, np.float32):
            for names in ("a", "abc", "cab", "xyz", "abcdefghij"):
                model.learn_one({name: kind(1) for name in names}, y)
                other.learn_one({name: kind(1) for name in names}, y)
                model.selected
        model.merge(other, along="rows")
    model, wide = ProjSe(2, **options), ProjSe(2, **options)
    for dtype in ("f8", "f4", "i8", "u1", "?"):
        for order in "CF":
            X = np.array(rng.integers(0, 2, size=(8, 5)), dtype=dtype, order=order)
            X.flags.writeable = False
            model.learn_many(np.where(X == 1, np.nan, X), rng.normal(size=8))
            model.learn_many(X, rng.normal(size=8))
            wide.learn_many(X, rng.normal(size=(8, 3)))
            frame = pd.DataFrame(X.copy(), columns=list("abcde"))
            ProjSe(2, **options).learn_many(frame, list("abcdefgh"))
            model.selected
for file in row_moments, sweep:
    for name, kernel in vars(file).items():
        ours = hasattr(kernel, "signatures") and kernel.py_func.__module__ == file.__name__
        if ours and not name.startswith("_"):
            print(name, len(kernel.signatures))
"""


@pytest.mark.slow
def test_every_kernel_is_compiled_once():
    """Every kernel is compiled once (in a separate process, as other tests call kernels freely)."""
    environment = {key: value for key, value in os.environ.items() if "DISABLE_JIT" not in key}
    run = subprocess.run(
        [sys.executable, "-c", _FEED], env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    counts = dict(line.split() for line in run.stdout.splitlines())
    assert counts
    assert set(counts.values()) == {"1"}, counts
