"""Continuing from columns to rows, and merging along either axis, equals learning all data."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from streamsel import SOSPCA, ProjSe, load, save
from tests.reference.rows import Rows, agree, same

KERNELS = ["linear", "poly", "rbf"]
HALF, N = 20, 36
NAMES = [f"v{j:02d}" for j in range(12)]
OLD = NAMES[:9]  # those of the columns; the others appear in rows


@pytest.fixture(params=KERNELS)
def kernel(request):
    return request.param


class Task:
    """Rows, with a target of some form; the first half can be learnt as columns.

    In the first half variables 4 and 5 are constant, and those from 9 on are absent. Class
    "d", and class "late" of a target of several, occur in the second half only.
    """

    def __init__(self, form):
        rng = np.random.default_rng(5)
        self.form = form
        self.X = rng.normal(size=(N, len(NAMES))) + np.arange(len(NAMES))
        self.X[:HALF, 4], self.X[:HALF, 5] = 0.0, 3.0
        self.X[:HALF, 9:] = 0.0
        self.X[rng.random((N, len(NAMES))) < 0.2] = 0.0
        self.X[:HALF, 5] = 3.0
        signal = self.X[:, 0] - self.X[:, 10] + self.X[:, 4]
        several = pd.DataFrame({"price": signal, "place": list("xyz") * 12, "b": self.X[:, 2] ** 2})
        several.loc[HALF:, "place"] = ["late", "x"] * 8
        labels = np.array(list("abcd"))[rng.integers(3, size=N)]
        labels[HALF + 3 :: 4] = "d"
        self.y = {
            "numbers": signal,
            "labels": labels,
            "bools": signal > 1,
            "codes": rng.integers(3, size=N) + 5 * (np.arange(N) > HALF),
            "array": several[["price", "b"]].to_numpy(),
            "frame": several,
        }[form]
        self.target = "class" if form == "codes" else "auto"

    def target_of(self, start, stop):
        return self.y.iloc[start:stop] if self.form == "frame" else self.y[start:stop]

    @property
    def rows(self):
        """Return all rows as dicts, each with its target."""
        if self.form == "frame":
            ys = self.y.to_dict("records")
        else:
            ys = [dict(enumerate(t)) for t in self.y.tolist()] if self.form == "array" else self.y
            ys = ys if self.form == "array" else self.y.tolist()
        return [
            (dict(zip(NAMES, x, strict=True)), y) for x, y in zip(self.X.tolist(), ys, strict=True)
        ]

    def model(self, k=15, **options):
        return ProjSe(k, target_type=self.target, **options)

    def by_columns(self, start=0, stop=N, names=NAMES, **options):
        model = self.model(**options)
        model.learn_target(self.target_of(start, stop))
        indices = [NAMES.index(name) for name in names]
        model.learn_columns(self.X[start:stop, indices], names=names)
        return model

    def by_rows(self, start=0, stop=N, names=NAMES, **options):
        return self.go_on(self.model(**options), start, stop, names)

    def go_on(self, model, start=HALF, stop=N, names=NAMES):
        """Learn rows by `learn_one`; return the model."""
        for x, y in self.rows[start:stop]:
            model.learn_one({name: x[name] for name in names}, y)
        return model


FORMS = ["numbers", "labels", "bools", "codes", "array", "frame"]


@pytest.fixture(params=FORMS)
def task(request):
    return Task(request.param)


@pytest.mark.parametrize("way", ["learn_one", "learn_many", "saved", "pickled"])
def test_columns_then_rows_equal_all_rows(task, kernel, way, tmp_path):
    model = task.by_columns(stop=HALF, names=OLD, kernel=kernel)
    if way == "saved":
        save(model, tmp_path / "model.sel")
        model = load(tmp_path / "model.sel")
    elif way == "pickled":
        model = pickle.loads(pickle.dumps(model))  # noqa: S301
    if way == "learn_many":
        model.learn_many(pd.DataFrame(task.X[HALF:], columns=NAMES), task.target_of(HALF, N))
    else:
        task.go_on(model)
    same(model, task.by_columns(kernel=kernel))
    same(model, task.by_rows(kernel=kernel))


@pytest.mark.parametrize("fading_factor", [0.0, 0.1])
def test_after_every_row(task, kernel, fading_factor):
    """Rows learnt as columns have weight 1 when the first row is learnt; from then on they fade."""
    model = task.by_columns(stop=HALF, names=OLD, kernel=kernel, fading_factor=fading_factor)
    rows = Rows(fading_factor, task.target)
    rows.learn_at_once([({n: x[n] for n in OLD}, y) for x, y in task.rows[:HALF]])
    agree(model, rows)
    for x, y in task.rows[HALF:]:
        model.learn_one(x, y)
        rows.learn_one(x, y)
        agree(model, rows)


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_offsets_and_scales(rng, scale):
    X, y = (rng.normal(size=(40, 5)) + 1e9) * scale, rng.normal(size=40) + 1e9
    model = ProjSe(5)
    model.learn_target(y[:20])
    model.learn_columns(X[:20])
    model.learn_many(X[20:30], y[20:30])
    for x, t in zip(X[30:].tolist(), y[30:].tolist(), strict=True):
        model.learn_one(dict(enumerate(x)), t)
    whole = ProjSe(5)
    whole.learn_target(y)
    whole.learn_columns(X)
    same(model, whole)


def test_sparse_columns_then_rows(rng):
    X = sp.random(60, 40, density=0.1, random_state=rng, format="csc")
    y = (X @ rng.normal(size=40) > 0).tolist()
    model, whole = ProjSe(10), ProjSe(10)
    model.learn_target(y[:30])
    model.learn_columns(X[:30])
    for i in range(30, 60):
        row = X[[i]].tocoo()
        model.learn_one(dict(zip(row.col.tolist(), row.data.tolist(), strict=True)), y[i])
    whole.learn_target(y)
    whole.learn_columns(X)
    same(model, whole)


def test_a_target_without_columns_then_rows(task):
    """Rows of the target count, and all variables are 0 in them."""
    model, rows = task.model(), Rows(target_type=task.target)
    model.learn_target(task.target_of(0, HALF))
    rows.learn_at_once([({}, y) for _, y in task.rows[:HALF]])
    for x, y in task.rows[HALF:]:
        model.learn_one(x, y)
        rows.learn_one(x, y)
        agree(model, rows)


@pytest.mark.parametrize(
    ("form", "bad"),
    [
        ("numbers", "text"),
        ("numbers", {"p": 1.0}),
        ("labels", 1.0),
        ("labels", {"p": 1.0}),
        ("bools", 0.5),
        ("array", 1.0),
        ("frame", 1.0),
        ("frame", {"place": 1.0}),
        ("frame", {"price": "text"}),
    ],
)
def test_bad_targets_after_columns_change_nothing(form, bad):
    model = Task(form).by_columns(stop=HALF, names=OLD)
    before = pickle.dumps(model)
    with pytest.raises((ValueError, TypeError), match="Got"):
        model.learn_one({"new": 1.0, "v00": 2.0}, bad)
    assert pickle.dumps(model) == before


# --------------------------------------------------------------------- merging along rows

PARTS = {
    "rows and rows": ("by_rows", "by_rows"),
    "columns and rows": ("by_columns", "by_rows"),
    "rows and columns": ("by_rows", "by_columns"),
    "columns and columns": ("by_columns", "by_columns"),
}


@pytest.mark.parametrize("parts", PARTS)
def test_merged_parts_equal_all_rows(task, kernel, parts):
    """Two merged parts of the rows equal all rows; the second has new names and classes."""
    one = getattr(task, PARTS[parts][0])(stop=HALF, names=OLD, kernel=kernel)
    other = getattr(task, PARTS[parts][1])(start=HALF, kernel=kernel)
    alongside = pickle.dumps(other)
    one.merge(other, along="rows")
    assert pickle.dumps(other) == alongside
    same(one, task.by_columns(kernel=kernel))
    one.learn_one(*task.rows[0])
    whole = task.by_rows(kernel=kernel)
    whole.learn_one(*task.rows[0])
    same(one, whole)


@pytest.mark.parametrize("fading_factor", [0.0, 0.1])
@pytest.mark.parametrize("form", ["labels", "dict"])
def test_merging_names_and_classes_of_one_model(rng, kernel, form, fading_factor):
    """In a merge every row keeps its weight, also with names and classes of one model only."""
    options = {"kernel": kernel, "fading_factor": fading_factor}
    models, stores = [ProjSe(15, **options) for _ in range(2)], [Rows(fading_factor) for _ in "12"]
    for words, classes, model, rows in zip(
        ["abcd", "cdefg"], ["pq", "qr"], models, stores, strict=True
    ):
        for _ in range(15):
            x = {word: float(rng.integers(3)) for word in words if rng.random() < 0.7}
            label = classes[rng.integers(2)]
            y = label if form == "labels" else {"label": label, classes: float(rng.normal())}
            model.learn_one(x, y)
            rows.learn_one(x, y)
    models[0].merge(models[1], along="rows")
    stores[0].merge(stores[1])
    agree(models[0], stores[0])
    for x in ({"a": 1.0, "g": 4.0}, {"new": 2.0, "d": None}):
        y = "s" if form == "labels" else {"label": "s", "pq": 1.0}
        models[0].learn_one(x, y)
        stores[0].learn_one(x, y)
        agree(models[0], stores[0])


def test_merging_offsets(rng):
    X, y = rng.normal(size=(40, 4)) + 1e9, rng.normal(size=40) + 1e9
    parts = [ProjSe(4) for _ in range(4)]
    for i, part in enumerate(parts):
        part.learn_many(X[10 * i : 10 * i + 10], y[10 * i : 10 * i + 10])
    for part in parts[1:]:
        parts[0].merge(part, along="rows")
    whole = ProjSe(4)
    whole.learn_target(y)
    whole.learn_columns(X)
    same(parts[0], whole)


def test_merging_with_an_empty_model(task):
    model, empty, expected = task.by_rows(), task.model(), task.by_rows()
    model.merge(empty, along="rows")
    same(model, expected, tolerance=0)
    empty.merge(model, along="rows")
    same(empty, expected)
    empty.learn_one(*task.rows[0])
    assert model.n_rows == N
    assert empty.n_rows == N + 1


def refuse(model, other, along):
    before = pickle.dumps(model), pickle.dumps(other)
    with pytest.raises((ValueError, TypeError), match="Got"):
        model.merge(other, along=along)
    assert (pickle.dumps(model), pickle.dumps(other)) == before


@pytest.mark.parametrize("along", ["rows", "columns"])
@pytest.mark.parametrize("form", FORMS)
def test_merge_refuses_incompatible_models(form, along):
    task = Task(form)
    model = task.by_rows(stop=HALF)
    for options in ({"k": 7}, {"kernel": "rbf"}, {"fading_factor": 0.1}, {"max_features": 99}):
        refuse(model, task.by_rows(start=HALF, **options), along)
    for other in set(FORMS) - {form}:
        # Bools and strings are both labels; an array and a frame are both several targets.
        if {form, other} not in ({"labels", "bools"}, {"array", "frame"}):
            refuse(model, Task(other).by_rows(start=HALF), along)
    refuse(model, model, along)
    refuse(model, SOSPCA(3), along)
    refuse(model, None, along)


def test_merge_refuses_an_unknown_axis(task):
    refuse(task.by_rows(stop=HALF), task.by_rows(start=HALF), "diagonally")


def test_merge_along_rows_refuses_models_without_a_target(rng):
    models = [ProjSe(3), ProjSe(3)]
    for model in models:
        model.learn_target(None)
        model.learn_columns(rng.normal(size=(10, 4)))
    refuse(*models, "rows")


# ------------------------------------------------------------------ merging along columns


@pytest.mark.parametrize("handed_over", [False, True])
def test_merged_variables_equal_all_variables(task, kernel, handed_over):
    """Two models of the same rows with different variables merge into one of all variables."""
    one, other = (
        task.go_on(task.by_columns(stop=HALF, names=names, kernel=kernel), names=names)
        if handed_over
        else task.by_rows(names=names, kernel=kernel)
        for names in (NAMES[:7], NAMES[7:])
    )
    alongside = pickle.dumps(other)
    one.merge(other)
    assert pickle.dumps(other) == alongside
    whole = task.by_rows(kernel=kernel)
    same(one, whole)
    for model in (one, whole):
        model.learn_one(*task.rows[3])
    same(one, whole)


def test_column_merge_refuses_other_rows_and_repeated_names(task):
    model = task.by_rows(names=NAMES[:5])
    refuse(model, task.by_rows(names=NAMES[4:]), "columns")
    refuse(model, task.by_rows(names=NAMES[5:], stop=N - 1), "columns")
    other_rows = task.go_on(task.by_rows(names=NAMES[5:], stop=N - 1), 0, 1, NAMES[5:])
    refuse(model, other_rows, "columns")
