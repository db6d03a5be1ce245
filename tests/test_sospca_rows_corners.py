"""SOSPCA on rows in hard cases: merges, bounded vocabularies, and degenerate rows."""

import copy
import math

import numpy as np
import pytest

from streamsel import SOSPCA
from streamsel.extraction._sospca_rows import SOSPCARowState
from tests.copies import as_of_now
from tests.reference import target as space

N, P = 600, 8


def data(seed=0):
    """Return correlated variables, and a target that depends on three of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, P)) + rng.normal(size=(N, 3)) @ rng.normal(size=(3, P)) + 2.0
    return X, X[:, 0] - X[:, 3] + X[:, 5] + rng.normal(size=N)


def fed(X, y, q=3, **options):
    """Return a model whose components begin with its first refresh."""
    model = SOSPCA(q, grace_period=50, warm_up=50, **options)
    model.learn_many(X, y)
    return model


def by_columns(X, y):
    model = SOSPCA(3, grace_period=50, warm_up=50)
    model.learn_target(y)
    model.learn_columns(X)
    return model


def off(model, X, y):
    """Return the largest error of the relevances on these rows."""
    U = space.basis(y)
    Z = as_of_now(model).transform_many(X)
    true = [space.relevance(z, U) for z in Z.T[: len(model.relevance)]]
    return np.abs(np.array(list(model.relevance.values())) - true).max()


def sound(model):
    """Check that relevances, state and transforms of a model are in range; return True."""
    least = -1.0 if model.signed else 0.0
    assert all(least <= r <= 1.0 for r in model.relevance.values()), model.relevance
    on_rows = model._row_extension
    assert np.isfinite(on_rows.J).all()
    assert np.isfinite(on_rows.mean).all()
    assert all(math.isfinite(b) for loading in model.loadings.values() for b in loading.values())
    x = dict.fromkeys(model.loadings, 1.5)
    assert all(type(z) is float and math.isfinite(z) for z in model.transform_one(x).values())
    floor = model.noise_floor()
    assert 0.0 <= floor <= 1.0 or math.isnan(floor)
    return True


# ------------------------------------------------------------------------------- merging


@pytest.mark.parametrize("fading_factor", [0.0, 0.01])
def test_merging_rows_of_the_same_components_is_exact(fading_factor):
    """Copies that learnt other rows since the last refresh merge exactly."""
    X, y = data()
    X[340:] += 30.0
    one = fed(X[:300], y[:300], fading_factor=fading_factor)
    other = copy.deepcopy(one)
    one.learn_many(X[300:340], y[300:340])
    other.learn_many(X[340:380], y[340:380])
    before = one.loadings
    one.merge(other, along="rows")
    assert (one.n_rows, one.loadings) == (680, before)
    rows = np.r_[0:340, 0:300, 340:380]
    age = np.r_[339:-1:-1, 339:-1:-1]
    w = (1.0 - fading_factor) ** age
    Z = as_of_now(one).transform_many(X[rows])
    C = np.cov(np.column_stack([Z, y[rows]]).T, aweights=w, ddof=0)
    true = np.abs(C[:-1, -1]) / np.sqrt(np.diag(C)[:-1] * C[-1, -1])
    np.testing.assert_allclose(list(one.relevance.values()), true, atol=1e-9)
    assert sound(one)


@pytest.mark.parametrize("moved", [0.0, 20.0])
@pytest.mark.parametrize("ways", ["rows rows", "columns rows", "rows columns", "columns columns"])
def test_merging_rows_of_different_components(ways, moved):
    X, y = data()
    X[300:] += moved
    parts = [(X[:300], y[:300]), (X[300:], y[300:])]
    one, other = (
        (fed if way == "rows" else by_columns)(*part)
        for way, part in zip(ways.split(), parts, strict=True)
    )
    one.merge(other, along="rows")
    assert one.n_rows == N
    assert sound(one)
    # Covariances with the other model's components are estimated; means are exact.
    assert off(one, X, y) < 0.2
    one.learn_many(X, y)
    assert one.n_rows == 2 * N
    assert off(one, np.vstack([X, X]), np.tile(y, 2)) < 0.08
    assert sound(one)


def test_merging_into_a_model_without_components():
    X, y = data()
    few, many = fed(X[:20], y[:20]), fed(X[20:], y[20:])
    assert not few.relevance
    few.merge(many, along="rows")
    assert few.n_rows == N
    assert few.loadings == many.loadings
    assert off(few, X, y) < 0.05


def test_merging_columns_of_rows():
    X, y = data()
    one, other = SOSPCA(3, grace_period=50), SOSPCA(3, grace_period=50)
    for x, t in zip(X.tolist(), y.tolist(), strict=True):
        one.learn_one({j: x[j] for j in range(4)}, t)
        other.learn_one({j: x[j] for j in range(4, P)}, t)
    before = one.loadings
    one.merge(other)
    assert (one.n_rows, one.n_columns, one.loadings) == (N, P, before)
    assert off(one, X, y) < 1e-9
    one.learn_many(X, y)
    # Variable 5 was tracked by the other model, and is among the most relevant.
    assert 5 in one.loadings
    assert off(one, np.vstack([X, X]), np.tile(y, 2)) < 0.05


# ------------------------------------------- variables first met on rows, after columns


def test_new_variables_after_columns_have_no_mean(rng):
    """A variable that is new after columns is not assumed to have been 0."""
    X = rng.normal(size=(1200, 6))
    y = X @ [0.3, 0.2, 1.0, 1.0, 1.0, 0.0] + 0.1 * rng.normal(size=1200)
    found = []
    for first in (0.0, 3.0):
        model = SOSPCA(2)
        model.learn_target(y[:1000])
        model.learn_columns(X[:1000, [0, 1, 5]], names=[0, 1, 5])
        X[1000] = first
        model.learn_many(X[1000:], y[1000:])
        found.append(list(model.relevance.values()))
    np.testing.assert_allclose(found[0], found[1], atol=0.05)
    assert np.min(found) > 0.2


@pytest.mark.parametrize("seed", range(4))
def test_constant_columns_count_as_their_mean(seed):
    """A variable constant in the columns counts as its mean there, and has no covariance."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1300, 2))
    X[:, 1] += 0.3 * X[:, 0]
    y = X[:, 1] - 0.2 * X[:, 0] + 0.5 * rng.normal(size=1300)
    model = SOSPCA(1)
    model.learn_target(y[:1000])
    model.learn_columns(np.column_stack([X[:1000, 0], np.ones(1000)]), names=[0, 1])
    model.learn_many(X[1000:], y[1000:])
    assert 1 in model.loadings
    X[:1000, 1] = X[1000:, 1].mean()
    assert off(model, X, y) < 0.02
    assert model.relevance["sospca0"] > 0.35


# ------------------------------------------------------------------ a bounded vocabulary


@pytest.mark.parametrize("fading_factor", [0.0, 0.01])
@pytest.mark.parametrize("most", [20, 40, 80])
def test_late_relevant_variables_are_found(rng, most, fading_factor):
    """A relevant variable that appears late is found among ever new words."""
    model = SOSPCA(2, max_features=most, grace_period=20, fading_factor=fading_factor)
    found = None
    for i in range(800):
        v = rng.normal()
        x = {f"w{2 * i}": 1.0, f"w{2 * i + 1}": 1.0, f"often {i % 3}": rng.normal()}
        if i >= 400:
            x["late"] = v
        watched = [*model.loadings, *(model._row_extension.candidates.index_of if i else ())]
        model.learn_one(x, float(v + 0.3 * rng.normal()))
        index_of = model._moments.table.index_of
        assert len(index_of) <= most
        assert index_of.keys() >= {
            *watched,
            *model.loadings,
            *model._row_extension.candidates.index_of,
        }
        if found is None and "late" in model.loadings:
            found = i
    assert found is not None
    # At most four refreshes: to find room, to become a candidate, to join, and one to spare.
    assert found < 400 + 4 * 20


def test_evicted_variables_return(rng):
    model = SOSPCA(2, max_features=40, grace_period=5)
    for i in range(600):
        x = {f"w{j}": rng.normal() for j in rng.integers(0, 90, size=4)}
        x["signal"] = rng.normal()
        model.learn_one(x, float(x["signal"] + 0.1 * rng.normal()))
        assert i % 20 or sound(model)
    assert model.n_columns > 90  # words that recur are counted again
    assert "signal" in model.loadings


# ----------------------------------------------------------------- indices and transforms


@pytest.mark.parametrize("rotation", ["jacobi", "paper"])
def test_rotations_change_at_most_two_components(rng, rotation, monkeypatch):
    """Per rotation, at most two components change; the new one takes the free index."""
    kind, rotations = SOSPCARowState, []
    rotate_and_drop = kind._rotate_and_drop

    def counted(self, *arguments):
        rotations.append(self.count)
        rotate_and_drop(self, *arguments)

    monkeypatch.setattr(kind, "_rotate_and_drop", counted)
    model, turned = SOSPCA(6, grace_period=10, rotation=rotation), 0
    for i in range(400):
        x = {f"v{j}": rng.normal() for j in range(min(40, 6 + i // 10))}
        before, rotations[:] = model.loadings, []
        full = len(model.relevance) == 6
        model.learn_one(x, sum(x.values()) + float(rng.normal()))
        parts = [
            {name: loading[component] for name, loading in loadings.items() if component in loading}
            for component in model.components
            for loadings in (before, model.loadings)
        ]
        changed = sum(old != new for old, new in zip(parts[::2], parts[1::2], strict=True))
        assert not full or changed <= 2 * len(rotations)
        turned += full and 0 < changed < 6
    assert turned > 5


def test_transform_one(rng):
    model = SOSPCA(3, grace_period=30, warm_up=30)
    assert model.transform_one({"a": 1.0}) == {}
    X = rng.normal(size=(60, 4)) + 3.0
    for i, x in enumerate(X.tolist()):
        if i < 30:
            assert model.transform_one(dict(enumerate(x))) == {}
            assert model.transform_many(X).tolist() == [[0.0] * 3] * 60
        model.learn_one(dict(enumerate(x)), float(x[0] + 2 * x[1] + rng.normal()))
    model.refresh()
    x = dict(enumerate(X[5].tolist()))
    z = model.transform_one(x)
    assert all(type(value) is float and value for value in z.values())
    assert list(z) == model.components
    assert model.transform_one(x | {"unknown": 7.0, "text": "spam", None: math.inf}) == z
    support = list(model.loadings)
    means = dict(enumerate(X.mean(axis=0).tolist()))
    for name in support:
        expected = model.transform_one(x | {name: means[name]})
        for missing in (None, math.nan):
            assert model.transform_one(x | {name: missing}) == pytest.approx(expected, abs=1e-12)
        absent = {other: value for other, value in x.items() if other != name}
        assert model.transform_one(absent) == model.transform_one(x | {name: 0.0})
    # A tracked variable without loadings has no effect, like an unknown one.
    others = {name: math.inf for name in x if name not in support}
    assert others
    assert model.transform_one(x | others) == z


# ------------------------------------------------------------------------------- corners


def normal(rng, *names):
    return {name: float(rng.normal()) for name in names}


# Row i, from three normal features x and a normal number y.
CORNERS = {
    "constant target so far": lambda x, y, i: (x, 1.3 if i < 120 else y),
    "target turns constant": lambda x, y, i: (x, y if i < 50 else 5.1),
    "one value for all": lambda x, y, i: (dict.fromkeys("abcdef", y), y),
    "multiples and complements": lambda x, y, i: (
        x | {"d": 2 * x["a"], "e": 1 - x["a"], "f": x["a"] + x["b"]},
        x["a"] + y,
    ),
    "turn constant": lambda x, y, i: (x if i < 60 else {"a": 3.3, "b": 1e9 + 0.1, "c": 0}, y),
    "vanish": lambda x, y, i: (x if i < 60 else {}, y),
    "no longer observed": lambda x, y, i: (x if i < 60 else dict.fromkeys(x), y),
    "never observed": lambda x, y, i: ({"a": None, "b": math.nan} | (x if i > 70 else {}), y),
    "first missing, then rare": lambda x, y, i: (x if i % 97 == 50 else dict.fromkeys(x), y),
    "a long gap": lambda x, y, i: (x if i % 1250 < 30 else {"d": 1.0}, y),
    "a class seen once": lambda x, y, i: (x, "z" if i == 33 else "xy"[i % 2]),
    "one class": lambda x, y, i: (x, "z"),
    "whole numbers": lambda x, y, i: ({name: int(v > 0) for name, v in x.items()}, int(y > 0)),
    "no features": lambda x, y, i: ({}, y),
}


def corner(kind, rng, i):
    return CORNERS[kind](normal(rng, "a", "b", "c"), float(rng.normal()), i)


@pytest.mark.filterwarnings("ignore:The target has been")
@pytest.mark.parametrize("fading_factor", [0.0, 0.01, 0.5])
@pytest.mark.parametrize("kind", CORNERS)
def test_hard_cases_give_valid_numbers(rng, kind, fading_factor):
    """Hard cases give valid numbers; with a fading factor of 0.5 the first weights underflow."""
    model = SOSPCA(2, grace_period=5, fading_factor=fading_factor)
    for i in range(500 if fading_factor == 0.01 else 1300):
        model.learn_one(*corner(kind, rng, i))
        assert (i > 10 and i % 20) or sound(model)


@pytest.mark.parametrize("kind", ["turn constant", "vanish"])
def test_constant_variables_are_not_relevant(rng, kind):
    model = SOSPCA(3, grace_period=5, fading_factor=0.5)
    for i in range(300):
        model.learn_one(*corner(kind, rng, i))
    assert max(model.relevance.values()) < 1e-6


@pytest.mark.parametrize("q", [1, 3, 50])
def test_fewer_variables_than_components(rng, q):
    model = SOSPCA(q, grace_period=1)
    for i in range(20):
        x = normal(rng, "a", "b")
        model.learn_one(x, x["a"] - x["b"])
        assert len(model.relevance) == (min(q, 2) if i else 0)
        assert sound(model)


@pytest.mark.slow
def test_ten_thousand_rows_with_strong_fading(rng):
    X = rng.normal(size=(10_000, 5))
    y = X[:, 0] + X[:, 1]
    model = SOSPCA(2, fading_factor=0.5)
    model.learn_many(X, y)
    for x, t in zip(X.tolist(), y.tolist(), strict=True):
        model.learn_one(dict(enumerate(x)), t)
    assert model.n_rows == 20_000
    assert model._row_extension.n == pytest.approx(2.0)
    assert sound(model)
