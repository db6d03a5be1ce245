"""Fixtures for all tests: deterministic Hypothesis, seeded random numbers, real datasets."""

import gc
import os
import re
from collections import defaultdict
from pathlib import Path

import hypothesis
import numpy as np
import pytest
import scipy.sparse

from tests.seed import EVERYTHING, SEED, covering, one_in_four
from tests.signals import hear_signals

hear_signals()

# Set in a worker of pytest-xdist.
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "") if os.name == "posix" else ""
if WORKER:
    from tests import compiling

    compiling.share_kernels()

# Kernels compile on their first call, so a deadline would measure the compiler; and random examples
# would not be reproducible.
hypothesis.settings.register_profile(
    "steady",
    derandomize=True,
    deadline=None,
    max_examples=50 if SEED == EVERYTHING else 25,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("steady")

# The whole suite has more tests than this, any part of it fewer.
WHOLE_SUITE = 5000
MANY_CASES = 4

DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture
def rng():
    """Return a random generator with the same seed in every run."""
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def dataset():
    """Return a loader of datasets: X (dense or CSR), y, a second view or None, and the archive."""

    def load(name):
        path = DATA / f"{name}.npz"
        if not path.is_file():
            pytest.skip(f"data file absent: {path.name}")
        archive = np.load(path, allow_pickle=False)
        if "X" in archive:
            X = archive["X"]
        else:
            parts = (archive["data"], archive["indices"], archive["indptr"])
            X = scipy.sparse.csr_array(parts, shape=tuple(archive["shape"]))
        return X, archive["y"], archive.get("Y2"), archive

    return load


def pytest_report_header():
    """Show the seed of the sample of tests."""
    return f"STREAMSEL_TEST_SEED={SEED} ({EVERYTHING} runs all tests)"


def pytest_ignore_collect(collection_path, config):
    """Exclude the benchmarks unless requested: `pytest tests/bench --benchmark-only`."""
    if collection_path.name == "bench" and not config.getoption("benchmark_only", default=False):
        return True
    return None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Leave out tests that are nearly the same as others; the seed determines which.

    A test with several `parametrize` runs some combinations, which cover every value. A run of the
    whole suite has a quarter of the cases of each test with at least `MANY_CASES`, and a quarter
    of the slow tests.
    """
    whole_suite = len(items) > WHOLE_SUITE
    cases = defaultdict(dict)
    for item in items:
        cases[item.nodeid.partition("[")[0]][item.nodeid] = item
    chosen = set()
    for test, of_test in cases.items():
        item = next(iter(of_test.values()))
        names = [*of_test]
        if sum(1 for _ in item.iter_markers("parametrize")) > 1:
            values = {name: values_of(item) for name, item in of_test.items()}
            combinations = covering(values, test)
            names = [name for name in names if name in combinations]
        is_slow = item.get_closest_marker("slow") is not None
        if whole_suite and (is_slow or len(names) >= MANY_CASES):
            names = one_in_four(names, test)
        chosen.update(names)
    left_out = [item for item in items if item.nodeid not in chosen]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.nodeid in chosen]


def values_of(item):
    """Return the values of a test for each of its `parametrize`, by the identity of the objects."""
    values = set()
    for mark in item.iter_markers("parametrize"):
        names = mark.args[0]
        names = re.split(r"\s*,\s*", names) if isinstance(names, str) else names
        values.add((*names, *(id(item.callspec.params[name]) for name in names)))
    return values


def pytest_collection_finish(session):
    """Exclude the collected tests from garbage collection: all of them remain until the end.

    Workers with many tests first compile kernels, each a separate share.
    """
    gc.collect()
    gc.freeze()
    if WORKER and len(session.items) > 1000:
        compiling.compile_share()
