"""A bounded vocabulary of rows: variables that are kept, evicted, and candidates."""

import pytest

from streamsel import ProjSe
from tests.reference.frames import dicts, frame
from tests.reference.rows import Rows, same


def crowd(rng, n, width=6):
    """Yield rows with two relevant variables, a weakly relevant one, and ever new words."""
    for i in range(n):
        a, b, c = rng.normal(size=3).tolist()
        x = {"a": a, "b": b, "c": c} | {f"w{j}": 1.0 for j in rng.integers(0, 9 + i, size=width)}
        yield x, a - b + 0.4 * c + 0.1 * float(rng.normal())


def tracked(model):
    """Return the names that a model tracks, in order of arrival."""
    return list(model._moments.table.index_of)


@pytest.mark.slow
@pytest.mark.parametrize("fading_factor", [0.0, 0.02])
def test_max_features_keeps_selected_and_new_variables(rng, fading_factor):
    cap, grace = 10, 4
    model = ProjSe(2, fading_factor=fading_factor, max_features=cap, grace_period=grace)
    rows, since, gone = Rows(fading_factor), {}, set()
    for i, (x, y) in enumerate(crowd(rng, 150)):
        kept = {*model.selected, *(name for name, start in since.items() if i - start < grace)}
        model.learn_one(x, y)
        rows.learn_one(x, y)
        now = tracked(model)
        assert len(now) <= cap
        assert kept <= set(now)
        gone |= since.keys() - set(now)
        since = {name: since.get(name, i) for name in now}
        relevance = rows.relevance()
        for name in model.selected:
            if since[name] == 0:  # tracked from the first row on
                assert model.relevance[name] == pytest.approx(relevance[name], abs=1e-9)
    assert set(model.selected) == {"a", "b"}
    assert len(gone) > 30
    assert model.n_columns > 40


def test_the_least_relevant_is_evicted(rng):
    model = ProjSe(1, max_features=4, grace_period=5)
    for i in range(30):
        a, b, c, d = rng.normal(size=4).tolist()
        x = {"a": a, "b": b, "c": c, "d": d}
        model.learn_one(x | {"new": d} if i == 29 else x, a + 0.5 * b + 0.3 * c)
    assert model.selected == ["a"]
    assert tracked(model) == ["a", "b", "c", "new"]


def test_new_names_wait_for_an_eviction(rng):
    model = ProjSe(1, max_features=3, grace_period=8)
    for i in range(12):
        a, b, c = rng.normal(size=3).tolist()
        model.learn_one({"a": a, "b": b, "c": c} | ({"late": a} if i > 1 else {}), a + b)
        assert ("late" in tracked(model)) == (i >= 8)
    assert len(tracked(model)) == 3


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("size", [1, 3, 7, 50])
def test_max_features_is_equal_in_frames(rng, backend, size):
    """Frames equal a loop, also if variables are evicted and admitted within a frame."""
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
