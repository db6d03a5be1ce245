"""What every test file may use: a steady Hypothesis, seeded random numbers, real datasets."""

import gc
import os
import re
from collections import defaultdict
from pathlib import Path

import hypothesis
import numpy as np
import pytest
import scipy.sparse

from tests.seed import EVERYTHING, SEED, covering
from tests.signals import hear_signals

hear_signals()

# In a worker of pytest-xdist.
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "") if os.name == "posix" else ""
if WORKER:
    from tests import compiling

    compiling.share_kernels()

# Kernels compile on their first call, so a deadline would measure the compiler; and what a run
# cannot repeat helps nobody.
hypothesis.settings.register_profile(
    "steady",
    derandomize=True,
    deadline=None,
    max_examples=50 if SEED == EVERYTHING else 25,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("steady")

DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture
def rng():
    """Random numbers, the same in every run."""
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def dataset():
    """Load a real dataset by name: X (dense or CSR), y, a second view or None, and the archive."""

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
    """Show what chooses the modes and cases of the conformance tests."""
    return f"STREAMSEL_TEST_SEED={SEED} ({EVERYTHING} runs all modes and cases)"


def pytest_ignore_collect(collection_path, config):
    """Leave the benchmarks alone unless asked for: `pytest tests/bench --benchmark-only`."""
    if collection_path.name == "bench" and not config.getoption("benchmark_only", default=False):
        return True
    return None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Run a sample of the combinations where a test has several `parametrize`.

    Every value of each is in it; the seed chooses with which others.
    """
    combined = defaultdict(dict)
    for item in items:
        if sum(1 for _ in item.iter_markers("parametrize")) > 1:
            combined[item.nodeid.partition("[")[0]][item.nodeid] = values_of(item)
    left_out = {
        case for test, cases in combined.items() for case in cases.keys() - covering(cases, test)
    }
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left_out])
        items[:] = [item for item in items if item.nodeid not in left_out]


def values_of(item):
    """Return what a test takes of each of its `parametrize`, by the identity of the objects."""
    values = set()
    for mark in item.iter_markers("parametrize"):
        names = mark.args[0]
        names = re.split(r"\s*,\s*", names) if isinstance(names, str) else names
        values.add((*names, *(id(item.callspec.params[name]) for name in names)))
    return values


def pytest_collection_finish(session):
    """Let the collector of garbage pass over what was collected: all tests stay till the end.

    Workers that have very many tests compile kernels first, each others.
    """
    gc.collect()
    gc.freeze()
    if WORKER and len(session.items) > 1000:
        compiling.compile_share(int(WORKER[2:]), int(os.environ["PYTEST_XDIST_WORKER_COUNT"]))
