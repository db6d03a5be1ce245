"""Compilation in advance: everything that columns and rows need, without changing the model."""

import os
import subprocess
import sys

import numba
import pytest

from streamsel import SelectKBest
from tests.conformance.modes import MODES, bits, build, sampled

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")

COMMON = """
import importlib, os, pkgutil, sys, warnings
import numpy as np
import streamsel
from streamsel import _kernels, registry

warnings.simplefilter("ignore")
LOOPS = [
    loop
    for module in pkgutil.iter_modules(_kernels.__path__)
    for loop in vars(importlib.import_module(f"streamsel._kernels.{module.name}")).values()
    if hasattr(loop, "signatures")
]


def ready():
    return sum(len(loop.signatures) for loop in LOOPS)


def use(model):
    rng = np.random.default_rng(9)
    X = rng.normal(size=(70, 12))
    y = X[:, 0] + 0.1 * rng.normal(size=70)
    if getattr(model, "target_type", None) == "class" or model.__class__.__name__ == "Discriminant":
        y = np.digitize(y, [-0.5, 0.5])
    of = (lambda part: [part]) if model._is_supervised else (lambda part: [])
    twin = model.clone()
    if model._is_supervised:
        model.learn_target(y)
    model.learn_columns(X)
    model.report()
    model.transform_many(X)
    model.learn_column("alone", X[:, 0] ** 2)
    for learner in (twin, model):
        for x, value in zip(X.tolist(), y.tolist()):
            learner.learn_one(dict(enumerate(x)), *of(value))
        learner.learn_many(X, *of(y))
        learner.report()
        learner.transform_one(dict(enumerate(X[0].tolist())))
"""

# A process for each learner, because loaded kernels stay loaded; every fourth one, to save time.
LOADED = """
for name in registry.names()[::4]:
    cls = registry.fetch(name)
    model = cls(**next(iter(cls._unit_test_params())))
    child = os.fork()
    if child:
        failed = os.waitpid(child, 0)[1]
        if failed:
            sys.exit(f"{name} failed")
        continue
    model.precompile()
    before = ready()
    use(model)
    if not 0 < before == ready():
        print(name, before, ready(), flush=True)
    os._exit(0)
"""

# Groups, dense and of indicators, for learners that support them, one in several passes.
GROUPS = """
from scipy.sparse import csc_array
from streamsel import ForwardSelection, Lasso, ProjSe, SelectKBest
from streamsel.data.chunks import Block
from streamsel.stream import ColumnStream

rng = np.random.default_rng(9)
X = np.asfortranarray(rng.normal(size=(70, 60)))
y = X[:, 0] + 0.1 * rng.normal(size=70)
indicators = csc_array((rng.integers(0, 3, size=(70, 20)).repeat(3, axis=1) == np.arange(60) % 3))

for model in (
    SelectKBest(2),
    ProjSe(2),
    ForwardSelection(2),
    ForwardSelection(2, max_candidates=3, exact=True),
    Lasso(2),
):
    child = os.fork()
    if child:
        failed = os.waitpid(child, 0)[1]
        if failed:
            sys.exit(f"{model} failed")
        continue
    model.precompile()
    before = ready()
    for values in (X, indicators.astype(np.uint8)):
        block = Block(list(range(60)), values, [j // 3 for j in range(60)])
        twin = model.clone()
        twin.learn_target(y)
        twin.learn_columns(ColumnStream(lambda: iter([block]), n_rows=70))
        twin.report()
        twin.transform_many(X)
    if not 0 < before == ready():
        print(model, before, ready(), flush=True)
    os._exit(0)
"""

COMPILED = """
from numba.core import event

class Count(event.Listener):
    n = 0
    def on_start(self, _):
        self.n += 1
    def on_end(self, _):
        pass

count = Count()
event.register("numba:compile", count)
model = streamsel.RandomProjection(2)
model.precompile()
before = count.n
use(model)
print(before > 2, count.n - before)
"""


def output(code, **environment):
    result = subprocess.run(
        [sys.executable, "-c", COMMON + code],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | environment,
        timeout=300,
    )
    return result.stdout.split()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_all_kernels_of_learners_are_loaded():
    assert output(LOADED) == []


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_all_kernels_of_groups_are_loaded():
    assert output(GROUPS) == []


@pytest.mark.slow
def test_nothing_is_compiled_after_precompile(tmp_path):
    assert output(COMPILED, NUMBA_CACHE_DIR=str(tmp_path)) == ["True", "0"]


@sampled(MODES)
def test_precompile_does_not_change_the_model(mode):
    model = build(mode)
    before = bits(model)
    model.precompile()
    assert bits(model) == before
    assert model.n_rows == 0


def test_precompile_of_a_trained_model():
    model, twin = SelectKBest(k=1), SelectKBest(k=1)
    for one in (model, twin):
        one.learn_one({"a": 1.0, "b": 2.0}, 1.0)
    model.precompile()
    for one in (model, twin):
        one.learn_one({"a": 2.0, "b": 1.0}, 3.0)
    assert bits(model) == bits(twin)


def test_covariates_and_times():
    for model in (
        SelectKBest(k=1, covariates=("age",)),
        SelectKBest(k=1, target_type="survival"),
    ):
        model.precompile()
        assert model.n_rows == 0
