"""Bounded memory stays bounded: ten times as many columns need no more."""

import pickle
import tracemalloc

import numpy as np

from streamsel.data.chunks import Block
from streamsel.stream import ColumnStream
from tests.conformance.modes import (
    COLUMN_MODES,
    MODES,
    build,
    fresh,
    learnt,
    over,
    sampled,
    target_of,
)

N = 50
# Modes with a documented bound, and modes whose state consists of components only.
BOUNDED = {
    name: mode.also(max_loadings=20) if mode.has("max_loadings") else mode
    for name, mode in COLUMN_MODES.items()
    if mode.params.get("max_candidates") or not mode.has("max_candidates")
    if getattr(learnt(mode, np.eye(N)[:, :3], target_of(mode, np.eye(N)))._columns, "limit", 1)
}


def made_up(p):
    """Return a stream of generated columns, made a hundred at a time."""

    def blocks():
        for start in range(0, p, 100):
            X = np.random.default_rng(start).normal(size=(100, N)).T
            yield Block(range(start, start + 100), X)

    return ColumnStream(blocks, n_rows=N)


def size_and_peak(mode, p):
    """Return the size of a model's state in bytes, and the peak memory of learning it."""
    X = np.random.default_rng(0).normal(size=(100, N)).T
    model = fresh(mode, target_of(mode, X))
    model.learn_columns(made_up(100))
    model = fresh(mode, target_of(mode, X))
    tracemalloc.start()
    try:
        model.learn_columns(made_up(p))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert model.n_columns == p
    return len(pickle.dumps(model)), peak


@sampled(BOUNDED)
def test_memory_is_bounded_on_columns(mode):
    (few, for_few), (many, for_many) = (size_and_peak(mode, p) for p in (1900, 7000))
    # A pool has up to twice its limit; SOSPCA's loadings grow as log p. A panel has 1,024 columns.
    assert many < 2 * few
    assert for_many < for_few + 2e5 < 1.5e6  # all columns are 2.8 MB


def test_bounded_learners_are_found():
    assert {"SOSPCA", "ProjSe", "SelectKBest"} <= {mode.learner for mode in BOUNDED.values()}


@over({name: mode for name, mode in MODES.items() if mode.params.get("max_features")})
def test_memory_is_bounded_on_rows(mode):
    """With a bounded vocabulary, names are added and discarded continually."""
    rng, model, sizes = np.random.default_rng(0), build(mode), []
    for i in range(400):
        names = [*(f"v{j}" for j in rng.permutation(40)[:3]), f"once {i}"]
        x = dict(zip(names, rng.normal(size=4).tolist(), strict=True))
        y = i % 3 if mode.of_classes else sum(x.values())
        model.learn_one(x, *([y] if mode.cls._is_supervised else []))
        sizes += [len(pickle.dumps(model))] if i % 20 == 7 else []
    assert max(sizes[5:]) < 1.2 * max(sizes[:5])
