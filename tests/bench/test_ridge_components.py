"""Compare RidgeComponents with SOSPCA, with one matrix product, and on rows with a projector."""

import numpy as np
import pytest
from river.preprocessing import GaussianRandomProjector

from streamsel import SOSPCA, RidgeComponents
from tests.bench.test_columns import fortran, learner, learnt
from tests.bench.test_process import MEMORY, run
from tests.bench.test_rows import DISTINCT, settled, stream, transform_then_learn

N = 1000
POOL = {"n_components": 10, "max_support": 500}


@pytest.fixture
def data(size):
    """Return columns and a target; one column in a hundred correlates with it."""
    rng = np.random.default_rng(0)
    X, y = fortran(rng, N, size(50_000)), rng.standard_normal(N)
    X[:, ::100] += 0.3 * y[:, None]
    return X, y


def test_pool(against, data):
    X, y = data
    against(
        f"RidgeComponents max_support=500, n=1,000 p={X.shape[1]:,}, 10 components / SOSPCA",
        learner(RidgeComponents, y, X, **POOL),
        learner(SOSPCA, y, X, n_components=10),
        threshold=3.0,
        rounds=7,
        data=X.nbytes,
    )


@pytest.mark.parametrize("with_result", [False, True], ids=["learning", "and the answer"])
def test_gram(against, data, with_result):
    X, y = data
    ours = learner(RidgeComponents, y, X)
    against(
        f"RidgeComponents{', result included' * with_result}, n=1,000 p={X.shape[1]:,} / X @ X.T",
        ours if with_result else lambda: learnt(RidgeComponents, y, X),
        lambda: X @ X.T,
        threshold=None if with_result else 1.3,
        rounds=5,
        data=X.nbytes,
    )


def test_rejected_columns(against):
    """Learn columns of noise one by one; they replace no candidate."""
    rng = np.random.default_rng(0)
    strong, p = 1_000, 1_000
    y, first = rng.standard_normal(N), fortran(rng, N, strong)
    first += y[:, None]
    columns = list(fortran(rng, N, p).T)
    ours, theirs = learnt(RidgeComponents, y, first, **POOL), learnt(SOSPCA, y, first)
    kept = set(ours._columns.names)

    def learning(model):
        def learn():
            # Rejected names are not remembered, so that every round can use the same ones.
            for j, x in enumerate(columns, start=strong):
                model.learn_column(j, x)

        return learn

    against(
        "RidgeComponents max_support=500, learn_column, 1,000 columns rejected / SOSPCA",
        learning(ours),
        learning(theirs),
        threshold=1.1,
        rounds=31,
        data=8 * N * p,
    )
    assert set(ours._columns.names) == kept


def test_rows(against):
    rows, y = stream(1000)
    projector = GaussianRandomProjector(10, seed=0)
    step = transform_then_learn(settled(RidgeComponents(10), rows))

    def ours():
        for x, value in zip(rows, y, strict=True):
            step(x, value)

    def theirs():
        for x in rows:
            projector.transform_one(x)

    against(
        f"RidgeComponents transform, then learn, 1,000 features, {DISTINCT} rows / River projector",
        ours,
        theirs,
        threshold=0.033,
        rounds=11,
    )


@pytest.mark.parametrize("parameters", ["", "max_support=500"])
def test_memory(benchmark, report, size, parameters):
    few, many = size(100_000), size(2_000_000)
    model = {"name": "RidgeComponents", "parameters": parameters}
    programs = [MEMORY.format(**model, p=p) for p in (few, many)]
    small = float(run(programs[0])) / 1024**2
    large = float(benchmark.pedantic(run, programs[1:], rounds=1)) / 1024**2
    report(
        f"peak memory, RidgeComponents({parameters}), p from 100,000 to 2,000,000 columns, n=200",
        f"{large - small:+.1f} MB",
        f"{small:.0f} MB",
        "< 16 MB",
        large - small < 16,
    )
