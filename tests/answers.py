"""Record the answers of all learners, bit by bit, to compare them with those of another version.

    python -m tests.answers OUT.json             write the answers of all scenarios
    python -m tests.answers --compare FILE.json  list the answers that differ in a bit
    python -m tests.answers --models FOLDER      write small model files, and their answers
    python -m tests.answers --compare FOLDER     list the answers of these files that differ

Scenarios use only the public interface, and data from fixed seeds. An answer is plain JSON: floats
as `float.hex`, names as their `repr`, and many floats as a digest of their bits with the sum of
their magnitudes, the largest, the first and the last. The last bits depend on the machine: its
vector unit, BLAS and libm. The tolerance of 1e-12 is a hundred times the largest difference
observed between machines. Scenarios exclude results of 0.3.0 that are not well defined: ties
between components, and SOSPCA on columns whose scales differ by many powers of ten.
"""

import argparse
import copy
import functools
import hashlib
import itertools
import json
import math
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp

from streamsel import SOSPCA, ProjSe, load, save
from streamsel.serialization.archive import read_metadata
from tests.copies import as_of_now

SCENARIOS = {}
FEW = 8  # floats that are written one by one
ABSENT = "absent"
FLOAT = re.compile(r"-?(0x[01]\.[0-9a-f]+p[+-]\d+|inf)|nan")
N_PASSES = re.compile(r"n_passes ([\d.]+)")


def scenario(**choices):
    """Register a function for every valid combination of the choices for its arguments."""

    def register(function):
        for chosen in itertools.product(*choices.values()):
            options = dict(zip(choices, chosen, strict=True))
            if fits(**options):
                name = f"{function.__name__}({', '.join(map(str, chosen))})"
                SCENARIOS[name] = functools.partial(function, **options)
        return function

    return register


# ------------------------------------------------------------------------ what a model reports


def floats(values):
    """Return a few floats one by one; many floats as a digest of their bits and a summary."""
    values = np.ascontiguousarray(list(values), dtype="<f8")
    flat = values.ravel().tolist()
    if len(flat) <= FEW:
        return [value.hex() for value in flat]
    some = [max(flat, key=abs), flat[0], flat[-1]]
    return {
        "shape": "x".join(map(str, values.shape)),
        "bits": f"sha256 {hashlib.sha256(values.tobytes()).hexdigest()[:32]}",
        "sum of sizes": math.fsum(map(abs, flat)).hex(),
        "some": [value.hex() for value in some],
    }


def transformed(Z, row=None):
    """Return a row, array or frame as JSON; of a row with unchanged values, only the names."""
    if isinstance(Z, dict):
        kept = all(name in row and value is row[name] for name, value in Z.items())
        return repr(list(Z)) if kept else floats(Z.values())
    if isinstance(Z, np.ndarray):
        return floats(Z)
    return {"names": repr(list(Z.columns)), "values": floats(Z.to_numpy())}


def answers_of(model, row=None, rows=None):
    """Return all results of a model, and its transforms of one row and of many rows."""
    answers = found(model)
    drawn = getattr(model, "kernel", "linear") != "linear"
    answers["drawn noise_floor" if drawn else "noise_floor"] = model.noise_floor().hex()
    answers["relevance"] = floats(model.relevance.values())
    if isinstance(model, ProjSe):
        answers["rounds"] = repr(list(model.rounds.values()))
        orders = [list(of) for of in (model.scores, model.rounds, model.relevance)]
        if orders != 3 * [model.selected]:
            answers["in other orders"] = repr(orders)
    if row is not None or rows is not None:
        # In 0.3.0 transforms had no snapshot.
        model = as_of_now(model)
    if row is not None:
        answers["transform_one"] = transformed(model.transform_one(row), row)
    if rows is not None:
        answers["transform_many"] = transformed(model.transform_many(rows))
    return answers


def found(model):
    """Return the counts, the selection or loadings, and the embedding of a model."""
    if isinstance(model, ProjSe):
        selected, scores = repr(model.selected), floats(model.scores.values())
        return {"counts": counts(model), "selected": selected, "scores": scores}
    answers = {"counts": counts(model), "loadings": weights(model.loadings)}
    Z = embedding(model)
    return answers if Z is None else answers | {"embedding": floats(Z)}


def counts(model):
    """Return the counts of a model as in 0.3.0, where SOSPCA did not count passes."""
    names = ["n_rows", "n_columns", "n_constant"]
    if isinstance(model, ProjSe):
        names += ["n_passes", "n_certified"]
    return ", ".join(f"{name} {getattr(model, name)}" for name in names)


def weights(loadings):
    """Return loadings as JSON: the components of each variable, and all the weights."""
    indices = {n: "".join(z.removeprefix("sospca") for z in parts) for n, parts in loadings.items()}
    of = ", ".join(f"{name!r} {z}" for name, z in indices.items())
    return {"of": of, "weights": floats(w for z in loadings.values() for w in z.values())}


def embedding(model):
    """Return the components on the training rows, or None if rows were learnt later."""
    try:
        return model.embedding
    except ValueError:
        return None


# -------------------------------------------------------------------------- the learners

PROJSE = {
    "linear": {},
    "poly": {"kernel": "poly", "degree": 2, "coef0": 0.5},
    "cubic": {"kernel": "poly", "gamma": 0.02},
    "rbf": {"kernel": "rbf"},
    "rbf unscaled": {"kernel": "rbf", "gamma": 0.01, "scale": False},
    "stop": {"on_rank_exhausted": "stop", "k": 12},
    "many": {"k": 40},
    "pool": {"max_candidates": 10},
    "pool poly": {"kernel": "poly", "degree": 2, "coef0": 0.5, "max_candidates": 10},
    "pool rbf": {"kernel": "rbf", "max_candidates": 10},
    "pool stop": {"max_candidates": 12, "on_rank_exhausted": "stop", "k": 12},
    "exact": {"max_candidates": 7, "exact": True},
    "exact poly": {"kernel": "poly", "coef0": 1.0, "max_candidates": 7, "exact": True},
}
ON_SOSPCA = {"1": {}, "2": {}, "5": {}, "10": {}, "signed": {"signed": True, "n_components": 3}}
FEW_LEARNERS = ("linear", "rbf", "pool", "2", "5")


def make(learner, **options):
    """Return a learner of one of these names, without a refresh schedule, as in 0.3.0."""
    if learner in PROJSE:
        options |= {"refresh_factor": 1.0, "hysteresis": 1.0}
        return ProjSe(**{"k": 6, **PROJSE[learner], **options})
    options = {**ON_SOSPCA[learner], **options, "warm_up": sys.maxsize}
    return SOSPCA(options.pop("n_components", None) or int(learner), **options)


def fits(learner="", kind="number", how="", **_):
    """Return whether a learner supports this type of target, and has enough capacity."""
    if learner not in ON_SOSPCA:
        return True
    if learner == "10" and "bounded" in how:
        return False
    return kind is not None and (learner != "signed" or kind == "number")


def learnt(model, y, X, names=None):
    """Return the model after it has learnt these columns."""
    model.learn_target(y)
    model.learn_columns(X, names=names)
    return model


# ------------------------------------------------------------------------------ the data

KINDS = ("number", "numbers", "classes", "frame", "codes", "bools")


def columns(n=100, p=150, seed=1):
    """Return n observations of p variables; neighbouring variables correlate."""
    X = np.random.default_rng(seed).normal(size=(n, p))
    X[:, 1:] += 0.5 * X[:, :-1]
    return X


def name(j):
    """Return a name: mostly text, with tuples and integers in between."""
    return f"v{j}" if j % 3 else (j, "é") if j % 2 else j


def names_of(X):
    """Return a name for every column."""
    return [name(j) for j in range(X.shape[1])]


def target(X, kind, seed=2):
    """Return a target that a few variables explain in part; the last of several is a sum of two."""
    rng = np.random.default_rng(seed)
    n, p = X.shape
    y = X[:, 3] - X[:, p // 2] + 0.7 * X[:, p - 9] + rng.normal(size=n)
    Y = X[:, [5, p // 4, p // 3, 3, p - 4]] + 0.7 * rng.normal(size=(n, 5))
    rank = np.argsort(np.argsort(y))
    if kind == "numbers":
        return np.column_stack([Y, Y[:, 0] + Y[:, 1]])
    if kind == "classes":
        return [f"c{c:02d}" for c in rank * 20 // n]
    if kind == "frame":
        labels = np.array(list("xyz"))[np.digitize(Y[:, 0], [-0.5, 0.8])]
        return pd.DataFrame({"price": y, "place": labels, "b": Y[:, 1]})
    if kind == "codes":
        return rank % 3 + 10 * (y > 0)
    return y > 0.5 if kind == "bools" else y


def one_row(names, seed=8):
    """Return a row with some features absent, one feature missing, and one new feature."""
    values = np.random.default_rng(seed).normal(size=len(names)).tolist()
    row = {name: value for j, (name, value) in enumerate(zip(names, values, strict=True)) if j % 7}
    return {**row, names[1]: None, "never seen": 1.0}


class Stream:
    """Rows of p variables, one by one as dicts or many as a frame; the target changes halfway.

    A fifth of the cells are absent. The last variables start later, one more at every third row.
    A class, and one of several targets, first appear in the second half.
    """

    def __init__(self, kind="number", n=100, p=24, missing=0.0, seed=3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, p)) + 0.5 * rng.normal(size=(n, 1)) + 0.1 * np.arange(p)
        late = np.arange(n) >= n // 2
        y = np.where(late, X[:, 2] - X[:, -1], X[:, 0] + 0.5 * X[:, 7]) + rng.normal(size=n)
        X[rng.random((n, p)) < 0.2] = 0.0
        X[rng.random((n, p)) < missing] = np.nan
        X[np.arange(n)[:, None] < 3 * (np.arange(p) - p // 2)] = 0.0
        label = np.array(list("xyz"))[np.digitize(y, [-1.0, 0.5])]
        label[late & (np.arange(n) % 5 == 0)] = "late"
        self.kind, self.X, self.n = kind, X, n
        self.names = [name(j) for j in range(p)]
        if kind == "label":
            self.y = label.tolist()
        elif kind == "several":
            self.y = [
                {"a": a, "b": b} | ({"c": c} if i >= n // 2 else {})
                for i, (a, b, c) in enumerate(
                    zip(y.tolist(), rng.normal(size=n).tolist(), label.tolist(), strict=True)
                )
            ]
        else:
            self.y = y.tolist()

    def row(self, i):
        x = self.X[i].tolist()
        return {n: v for n, v in zip(self.names, x, strict=True) if v != 0.0}, self.y[i]

    def rows(self, start=0, stop=None):
        return map(self.row, range(start, self.n if stop is None else stop))

    def frame(self, start, stop):
        there = np.flatnonzero((self.X[start:stop] != 0.0).any(axis=0)).tolist()
        X = pd.DataFrame(self.X[start:stop, there], columns=[self.names[j] for j in there])
        y = self.y[start:stop]
        return X, pd.DataFrame(y) if self.kind == "several" else y

    def ones(self, model, start=0, stop=None):
        """Return the model after it has learnt rows one by one."""
        for x, y in self.rows(start, stop):
            model.learn_one(x, y)
        return model

    def as_columns(self, model, start, stop):
        """Return the model after it has learnt the columns of these rows."""
        X, y = self.frame(start, stop)
        return learnt(model, y, X.to_numpy(), list(X.columns))


# ----------------------------------------------------------------------------- on columns


@scenario()
def the_data():
    """Record the data: if they have changed, the answers below cannot be compared."""
    X, streams = columns(), {kind: Stream(kind) for kind in ("number", "label", "several")}
    return {
        "columns": floats(X),
        "numbers": floats(target(X, "numbers")),
        "classes": " ".join(target(X, "classes")),
        "rows": floats(streams["number"].X),
        "missing": str(np.isnan(Stream(missing=0.1).X).sum(axis=0).tolist()),
        "their numbers": floats(streams["number"].y),
        "their labels": " ".join(streams["label"].y),
        "several": repr([list(y.items())[2:] for y in streams["several"].y[45:55]]),
    }


@scenario(learner=PROJSE, kind=KINDS[:4])
def selected_from_columns(learner, kind):
    X = columns()
    model = learnt(make(learner), target(X, kind), X, names_of(X))
    return answers_of(model, one_row(names_of(X)))


@scenario(learner=ON_SOSPCA, kind=KINDS[:4])
def components_of_columns(learner, kind):
    X = columns()
    model = learnt(make(learner), target(X, kind), X, names_of(X))
    fresh = pd.DataFrame(columns(4, seed=9), columns=pd.Index(names_of(X), dtype=object))
    return answers_of(model, one_row(names_of(X)), fresh)


@scenario(learner=FEW_LEARNERS, kind=KINDS[4:])
def other_targets(learner, kind):
    X = columns()
    model = make(learner, target_type="class" if kind == "codes" else "auto")
    return answers_of(learnt(model, target(X, kind), X), None, X[:4])


@scenario(learner=PROJSE, n=(30, 200))
def selected_without_a_target(learner, n):
    X = columns(n, 120)
    return answers_of(learnt(make(learner), None, X), one_row(range(120)))


FORMS = {
    "float32": lambda X: X.astype(np.float32),
    "int8": lambda X: (20 * X).astype(np.int8),
    "bool": lambda X: X > 0.4,
    "int64": lambda X: (1000 * X).astype(np.int64),
    "by rows": np.ascontiguousarray,
    "by columns": np.asfortranarray,
    "reversed": lambda X: X[::-1, ::-1],
    "csc": lambda X: sp.csc_array(np.where(X > 0.8, X, 0.0)),
    "csc float32": lambda X: sp.csc_array(np.where(X > 0.8, X, 0.0).astype(np.float32)),
    "csc int8": lambda X: sp.csc_array(np.where(X > 0.8, 9 * X, 0.0).astype(np.int8)),
    "pandas": lambda X: pd.DataFrame(X, columns=[f"v{j}" for j in range(X.shape[1])]),
    "polars": lambda X: pl.DataFrame(X.astype(np.float32), [f"v{j}" for j in range(X.shape[1])]),
    "pairs": lambda X: ((name(j), x.astype("f8" if j % 9 else "f4")) for j, x in enumerate(X.T)),
}


@scenario(learner=("linear", "pool rbf", "2"), kind=("numbers", None), form=FORMS)
def forms_of_columns(learner, kind, form):
    X = columns(60, 80, seed=4)
    y = None if kind is None else target(X, kind)
    return found(learnt(make(learner), y, FORMS[form](X)))


@scenario(learner=(*FEW_LEARNERS, "poly", "signed"))
def one_column_at_a_time(learner):
    """Learn the same columns one by one, and in blocks with threads."""
    X = columns()
    one, threads = make(learner), make(learner, n_jobs=2)
    one.learn_target(target(X, "number"))
    threads.learn_target(target(X, "number"))
    for j, x in enumerate(X.T):
        one.learn_column(name(j), x)
    for start in range(0, 150, 40):
        threads.learn_columns(X[:, start : start + 40])
    return {"one by one": found(one), "by threads": found(threads)}


@scenario(learner=FEW_LEARNERS, kind=("number", "numbers"))
def offsets_and_scales(learner, kind):
    """Learn columns with a large offset, large, small, and with a separate scale each."""
    X = columns(60, 80, seed=5)
    most = 60 if learner in PROJSE else 2
    own = 10.0 ** np.random.default_rng(5).integers(-most, most, size=80)
    y = target(X, kind)
    answers = {}
    for title, columns_, y_ in (
        ("offset", X + 1e9, y - 1e9),
        ("large", (X + 3.0) * 1e100, y * 1e-90),
        ("small", (X - 3.0) * 1e-100, y * 1e90),
        ("own", X * own, y),
    ):
        model = learnt(make(learner), y_, columns_)
        answers[title] = found(model) | {"relevance": floats(model.relevance.values())}
    return answers


@scenario(learner=PROJSE, kind=("number", "numbers", None))
def ties_and_constants(learner, kind):
    """Learn duplicated columns, also with another sign or scale, and constant columns."""
    X = columns(100, 60, seed=6)
    X[:, 7] = X[:, 1]
    X[:, 10], X[:, 12], X[:, 50] = X[:, 3], -2.0 * X[:, 3], X[:, 3]
    X[:, 0] = X[:, 25] = 0.0
    X[:, 30], X[:, 31] = 1e9, 0.1
    X[:, 40:44] = X[:, [5, 5, 9, 9]]
    y = None if kind is None else target(X, kind)
    return answers_of(learnt(make(learner), y, X))


@scenario(learner=ON_SOSPCA)
def components_beside_constants(learner):
    X = columns(60, 80, seed=6)
    X[:, [0, 1, 2, 30]], X[:, 31] = 3.0, 0.1
    return answers_of(learnt(make(learner), target(X, "number"), X), None, X[:3])


@scenario()
def the_example_of_the_paper():
    """Learn the first four columns of the example; the results after that depend on the version."""
    X = np.array(
        [
            [2.0, 1.6667, 1.6667, -0.6667],
            [2.0, -0.3333, 2.6667, -1.6667],
            [-4.0, -1.3333, -4.3333, 2.3333],
        ]
    )
    model = SOSPCA(n_components=2, rotation="paper", signed=True)
    learnt(model, np.array([5.3333, -4.6667, -0.6667]), X, ["x1", "x2", "x3", "x4"])
    return answers_of(model, {"x1": 2.0, "x2": 1.6667, "x4": -0.6667})


@scenario()
def nothing_learnt():
    """Record the results before the first column, with a target and without."""
    answers = {}
    for learner in ("linear", "exact", "2"):
        model = make(learner)
        alone = [counts(model), model.relevance, model.transform_one({"a": 2.0})]
        model.learn_target([1.0, 2.0, 4.0])
        answers[learner] = {"alone": repr(alone), "with a target": answers_of(model, {"a": 2.0})}
    return answers


# ------------------------------------------------------------------------------- on rows

ROWS = {
    "linear": {},
    "poly": {},
    "rbf": {},
    "stop": {},
    "1": {"grace_period": 20},
    "2": {"grace_period": 10},
    "5": {"grace_period": 15},
    "10": {"grace_period": 25},
    "signed": {"grace_period": 12},
}
HOW = {
    "plain": {},
    "fading": {"fading_factor": 0.1},
    "bounded": {"max_features": 18},
    "bounded, fading": {"max_features": 18, "fading_factor": 0.03},
}


def on_rows(learner, how):
    """Return a learner for rows."""
    bounded = {"grace_period": 15} if "bounded" in how else {}
    return make(learner, **(ROWS[learner] | bounded | HOW[how]))


@scenario(learner=ROWS, how=HOW, kind=("number", "label"))
def rows_one_by_one(learner, how, kind):
    """Learn rows with missing cells, except for components of a bounded vocabulary."""
    missing = 0.0 if learner in ON_SOSPCA and "bounded" in how else 0.1
    stream = Stream(kind, missing=missing)
    model = stream.ones(on_rows(learner, how), 0, 55)
    return {
        "55 rows": found(model),
        "100 rows": answers_of(stream.ones(model, 55), one_row(stream.names)),
    }


@scenario(learner=ROWS, how=HOW, kind=("number", "several"))
def rows_in_frames(learner, how, kind):
    missing = 0.1 if how == "plain" else 0.0
    stream = Stream(kind, missing=missing, seed=7)
    model = on_rows(learner, how)
    for start, stop in itertools.pairwise((0, 1, 30, 50, 90, 100)):
        model.learn_many(*stream.frame(start, stop))
    return answers_of(model, None, stream.frame(90, 93)[0].fillna(0.0))


@scenario(learner=("linear", "5"))
def rows_of_odd_values(learner):
    """Learn integers, booleans, NumPy scalars, None and NaN; an array offset by 1e9."""
    rng = np.random.default_rng(11)
    odd, offset = make(learner, grace_period=10), make(learner, grace_period=10)
    for i in range(60):
        a, b, c, d = rng.normal(size=4)
        y = a - b + 0.3 * d
        x = {"a": a, "b": float(b), "c": np.float32(c), "d": int(9 * d), "e": bool(c > d)}
        odd.learn_one(x | {"f": None if i % 4 else b * c, "g": math.nan if i % 6 else a * d}, y)
    X = rng.normal(size=(60, 9))
    offset.learn_many(X + 1e9, X[:, 2] - X[:, 5] + rng.normal(size=60) - 1e9)
    return {"odd": answers_of(odd), "offset": answers_of(offset)}


@scenario(learner=("linear", "2"), fading_factor=(0.0, 0.02))
def words_without_end(learner, fading_factor):
    """Learn a new name with every row, under a bounded vocabulary."""
    options = {"max_features": 24, "grace_period": 20, "fading_factor": fading_factor}
    model, rng, answers = make(learner, **options), np.random.default_rng(12), {}
    for i in range(300):
        v = rng.normal(size=4).tolist()
        x = {f"new{i}": 1.0 + v[0], f"seldom{i % 30}": v[1], "a": v[2], "b": v[2] + v[3]}
        y = v[3] + 0.5 * v[1] + rng.normal()
        model.learn_one(x, y)
        if i in (60, 150, 299):
            answers[f"{i} rows"] = answers_of(model)
    return answers


# -------------------------------------------------------- from columns to rows, and merging


@scenario(
    learner=("linear", "rbf", "pool", "pool rbf", "2", "5", "signed"),
    how=("plain", "fading", "bounded"),
    kind=("number", "label"),
)
def columns_then_rows(learner, how, kind):
    """Learn columns, then rows: one by one in a model loaded from a file; as a frame in a copy."""
    stream = Stream(kind, n=90, seed=13)
    options = HOW[how] | ({"grace_period": 12} if learner in ON_SOSPCA else {})
    one = stream.as_columns(make(learner, **options), 0, 40)
    many = copy.deepcopy(one)
    with tempfile.TemporaryDirectory() as folder:
        save(one, f"{folder}/model")
        one = load(f"{folder}/model")
    many.learn_many(*stream.frame(40, 90))
    return {"ones": answers_of(stream.ones(one, 40), one_row(stream.names)), "many": found(many)}


@scenario(learner=("linear", "rbf", "5"), kind=("frame", "numbers", "bools"))
def columns_then_rows_of_other_targets(learner, kind):
    X = columns(60, 30, seed=14)
    y = target(X, kind)
    rest = y.iloc[40:] if kind == "frame" else y[40:]
    model = make(learner, grace_period=10)
    learnt(model, y.iloc[:40] if kind == "frame" else y[:40], X[:40, :20])
    model.learn_many(X[40:], rest)
    return answers_of(model, one_row(range(30)))


@scenario(
    learner=("linear", "poly", "rbf unscaled", "pool", "pool rbf", "1", "2", "5", "signed"),
    kind=("number", "numbers"),
)
def merged_along_columns(learner, kind):
    """Merge three models with separate columns; then learn more columns, then rows."""
    X = columns(70, 150, seed=15)
    y, names, answers = target(X, kind), names_of(X), {}
    parts = (slice(40), slice(40, 43), slice(43, 110))
    model, *others = (learnt(make(learner), y[:60], X[:60, s], names[s]) for s in parts)
    for other in others:
        model.merge(other)
    answers["merged"] = found(model)
    model.learn_columns(X[:60, 110:], names=names[110:])
    answers["more columns"] = found(model)
    model.learn_many(pd.DataFrame(X[60:], columns=pd.Index(names, dtype=object)), y[60:])
    return answers | {"rows": answers_of(model)}


@scenario(learner=("stop", "poly", "pool", "pool rbf"))
def merged_without_a_target(learner):
    X = columns(40, 90, seed=16)
    one = learnt(make(learner), None, X[:, :50])
    one.merge(learnt(make(learner), None, X[:, 50:], range(50, 90)))
    return answers_of(one)


@scenario(
    learner=("rbf", "pool", "2", "5"),
    parts=("rows and rows", "columns and rows", "rows and columns", "columns and columns"),
    how=("plain", "fading", "bounded"),
)
def merged_along_rows(learner, parts, how):
    """Merge two parts; the second has names, classes and targets that the first lacks."""
    stream = Stream("several", n=80, p=20, seed=17)
    models = []
    for part, bounds in zip(parts.split(" and "), ((0, 40), (40, 80)), strict=True):
        model = make(learner, grace_period=10, **HOW[how])
        learn = stream.ones if part == "rows" else stream.as_columns
        models.append(learn(model, *bounds))
    models[0].merge(models[1], along="rows")
    answers = {"merged": found(models[0])}
    stream.ones(models[0], 30, 55)
    return answers | {"more rows": answers_of(models[0])}


@scenario(learner=("linear", "poly", "2", "5"), begun=("rows", "columns"))
def merged_along_columns_of_rows(learner, begun):
    stream = Stream(n=80, p=16, seed=18)
    models = []
    for part in (slice(0, 9), slice(9, 16)):
        mine = copy.copy(stream)
        mine.X, mine.names = stream.X[:, part], stream.names[part]
        model = make(learner, grace_period=10)
        if begun == "columns":
            mine.as_columns(model, 0, 40)
        models.append(mine.ones(model, 40 if begun == "columns" else 0, 70))
    models[0].merge(models[1])
    answers = {"merged": found(models[0])}
    return answers | {"more rows": answers_of(stream.ones(models[0], 70))}


@scenario(learner=("linear", "2", "5"))
def merged_with_its_own_copy(learner):
    """Merge two copies that learnt different rows: their equal components are joined exactly."""
    stream = Stream(n=100, p=16, seed=19)
    one = stream.ones(make(learner, grace_period=30), 0, 60)
    other = stream.ones(copy.deepcopy(one), 60, 75)
    stream.ones(one, 75, 85)
    one.merge(other, along="rows")
    answers = {"merged": answers_of(one)}
    return answers | {"more rows": answers_of(stream.ones(one, 85))}


# --------------------------------------------------------------------------- model files

# File -> learner, data that it has learnt, type of the target.
MODELS = {
    "projse-classes": (ProjSe(5), "columns", "label"),
    "projse-pool-poly": (
        ProjSe(4, kernel="poly", degree=2, coef0=0.5, max_candidates=5),
        "columns",
        "number",
    ),
    "projse-unsupervised": (ProjSe(5, kernel="rbf"), "columns", None),
    "projse-rows-bounded": (
        ProjSe(4, max_features=9, grace_period=10, fading_factor=0.02),
        "rows",
        "several",
    ),
    "sospca-columns": (SOSPCA(3, grace_period=8), "columns", "several"),
    "sospca-rows": (SOSPCA(3, grace_period=8, fading_factor=0.02), "rows", "label"),
    "sospca-columns-then-rows": (
        SOSPCA(2, grace_period=8, fading_factor=0.05, signed=True),
        "columns then rows",
        "number",
    ),
}
METADATA = {"numbers": (1, 0.1, math.inf), "none": None, "é": ["a", True]}


def task(kind):
    """Return a stream of rows, the columns of its first rows, and their target."""
    stream = Stream(kind or "number", n=60, p=14, seed=20)
    X, y = stream.frame(0, 24)
    return stream, X, None if kind is None else y


def written(folder, file):
    """Write a model to its file in a folder."""
    model, how, kind = MODELS[file]
    stream, X, y = task(kind)
    path = folder / f"{file}.streamsel"
    model = copy.deepcopy(model)
    if "columns" in how:
        learnt(model, y, X.to_numpy()[:, :9], list(X.columns[:9]))
    if "rows" in how:
        stream.ones(model, 24 if "columns" in how else 0, 44)
    save(model, path, METADATA)


def read(folder, file):
    """Return the results of a model in a file, before and after further learning."""
    _, how, kind = MODELS[file]
    stream, X, _ = task(kind)
    path, row = folder / f"{file}.streamsel", one_row(stream.names)
    model = load(path)
    answers = {"notes": metadata_of(path), "as it was": answers_of(model, row)}
    if how == "columns":
        model.learn_columns(X.to_numpy()[:, 9:], names=list(X.columns[9:]))
        answers["with more columns"] = answers_of(model, row)
    if kind is not None:
        answers["with more rows"] = answers_of(stream.ones(model, 44), row)
    with tempfile.TemporaryDirectory() as again:
        save(model, f"{again}/again")
        answers["from a file again"] = answers_of(load(f"{again}/again"), row)
    return answers


def metadata_of(path):
    """Return the metadata in a file."""
    return repr(read_metadata(path))


# ----------------------------------------------------------------------------- comparing


def leaves(answers, path=()):
    """Yield the path and the value of every leaf, in order."""
    if isinstance(answers, dict | list) and answers:
        parts = answers.items() if isinstance(answers, dict) else enumerate(answers)
        for key, part in parts:
            yield from leaves(part, (*path, str(key)))
    else:
        yield " / ".join(path), answers


def apart(text):
    """Return the counts of a model without the number of passes, and that number."""
    found = N_PASSES.search(text)
    return N_PASSES.sub("", text), float(found[1]) if found else 0.0


def nearly(was, now, path):
    """Return whether two values are equal: floats up to rounding, all others exactly.

    Fewer passes with the same result also count as equal.
    """
    texts = isinstance(was, str) and isinstance(now, str)
    if texts and was.startswith("n_rows"):
        (was, before), (now, after) = apart(was), apart(now)
        return was == now and after <= before
    if texts and was.startswith("sha256 "):
        # The floats next to the digest decide.
        return now.startswith("sha256 ")
    if not (texts and FLOAT.fullmatch(was) and FLOAT.fullmatch(now)):
        return was == now
    was, now = float.fromhex(was), float.fromhex(now)
    # Where directions are drawn at random, rounding decides which are drawn.
    tolerance = 0.02 if path.endswith("drawn noise_floor") else 1e-12
    is_close = math.isclose(was, now, rel_tol=tolerance, abs_tol=tolerance)
    return is_close or (math.isnan(was) and math.isnan(now))


def differences(was, now, *, to_the_bit=False):
    """Return (path, value before, value now) for every value that differs."""
    was, now = dict(leaves(was)), dict(leaves(now))
    paths = list(was | now)
    if was.keys() == now.keys() and paths != list(now):
        return [("the order", list(was), list(now))]
    pairs = [(path, was.get(path, ABSENT), now.get(path, ABSENT)) for path in paths]
    return [
        (path, before, after)
        for path, before, after in pairs
        if before != after and (to_the_bit or not nearly(before, after, path))
    ]


def compare(path):
    """Print the answers that differ from a file or folder; return how many are not close."""
    if path.is_dir():
        was = json.loads((path / "answers.json").read_text(encoding="utf-8"))
        now = {file: read(path, file) for file in was}
    else:
        was = json.loads(path.read_text(encoding="utf-8"))
        now = {name: SCENARIOS[name]() for name in was if name in SCENARIOS}
    others, far = differences(was, now, to_the_bit=True), 0
    for where, before, after in others:
        is_near = nearly(before, after, where)
        far += not is_near
        print(f"{'nearly' if is_near else 'NOT EQUAL'}: {where}: {before} -> {after}")
    total = len(dict(leaves(was)) | dict(leaves(now)))
    print(f"{total} values: {total - len(others)} equal to the last bit, ", end="")
    print(f"{len(others) - far} nearly (or a digest of such), {far} not")
    return far


def dump(answers, path):
    """Write answers as JSON, one line for each."""
    text = functools.partial(json.dumps, ensure_ascii=False)
    lines = (f"{text(name)}: {text(answer)}" for name, answer in answers.items())
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", nargs="?", type=Path)
    parser.add_argument("--compare", metavar="FILE", type=Path)
    parser.add_argument("--models", metavar="FOLDER", type=Path)
    asked = parser.parse_args()
    if asked.compare:
        sys.exit(compare(asked.compare) > 0)
    if asked.models:
        asked.models.mkdir(parents=True, exist_ok=True)
        for file in MODELS:
            written(asked.models, file)
        dump({file: read(asked.models, file) for file in MODELS}, asked.models / "answers.json")
    if asked.out:
        dump({name: answer() for name, answer in SCENARIOS.items()}, asked.out)


if __name__ == "__main__":
    main()
