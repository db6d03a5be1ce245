"""Compare one thread with two: reading speed of the machine, and the size at which two pay off."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from streamsel import SOSPCA, ProjSe
from tests.bench import page
from tests.bench.test_columns import bytes_of, classes, fortran, learner, sparse
from tests.bench.test_gram import gram


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def one_and_two(paired, table):
    """Time `job`, a function of the number of threads, with one and two threads in turn."""

    def run(what, job, *, data, rounds=15):
        two, one, ratio = paired(
            f"{what}: two threads / one", lambda: job(2), lambda: job(1), rounds=rounds
        )
        table(
            "one thread and two",
            ("what", "one", "two", "times as fast", "one, GB/s", "two, GB/s"),
            (
                what,
                *(page.quantity(seconds, page.SECONDS) for seconds in (one, two)),
                page.bold(f"{1.0 / ratio:.2f}", ratio < 1.0),
                *(page.rate(data, seconds) for seconds in (one, two)),
            ),
        )

    return run


def test_bandwidth(one_and_two, size):
    x = np.ones(size(50_000_000))
    halves = np.split(x, 2)

    def read(threads):
        if threads == 1:
            return x @ x
        return sum(pool.map(lambda half: half @ half, halves))

    with ThreadPoolExecutor(2) as pool:
        one_and_two("the machine: x @ x, 400 MB", read, data=x.nbytes)


@pytest.mark.parametrize("numbers", [10**i for i in range(4, 9)])
def test_threads_by_size(one_and_two, rng, size, numbers):
    n = 1000
    numbers = min(numbers, size(10**8))
    X, y = fortran(rng, n, numbers // n), rng.standard_normal(n)
    one_and_two(
        f"SOSPCA dense, n=1,000, {numbers:,} numbers",
        lambda threads: learner(SOSPCA, y, X, n_jobs=threads)(),
        data=X.nbytes,
        rounds=31 if numbers < 10**8 else 15,
    )


def test_threads_short_columns(one_and_two, rng, size):
    n = 200
    X, y = fortran(rng, n, size(100_000)), rng.standard_normal(n)
    what = "SOSPCA dense, n=200 p=100,000"
    one_and_two(what, lambda threads: learner(SOSPCA, y, X, n_jobs=threads)(), data=X.nbytes)


def test_threads_sparse(one_and_two, rng, size):
    n = 1000
    X, y = sparse(rng, n, size(100_000)), rng.standard_normal(n)
    what = "SOSPCA CSC 1 %, n=1,000 p=100,000"
    one_and_two(
        what,
        lambda threads: learner(SOSPCA, y, X, n_jobs=threads)(),
        data=bytes_of(X),
        rounds=31,
    )


@pytest.mark.parametrize(
    "how", ["20 classes", "20 classes, max_candidates=80", "100 numeric targets"]
)
def test_threads_projse(one_and_two, rng, size, how):
    n = 2000
    X = fortran(rng, n, size(20_000))
    y = rng.standard_normal((n, 100)) if "targets" in how else classes(n, 20)
    pool = 80 if "max_candidates" in how else None
    one_and_two(
        f"ProjSe {how}, n=2,000 p=20,000 k=20",
        lambda threads: learner(ProjSe, y, X, k=20, max_candidates=pool, n_jobs=threads)(),
        data=X.nbytes,
        rounds=7,
    )


@pytest.mark.parametrize(("n", "p"), [(1000, 50_000), (2000, 20_000)])
def test_threads_gram(one_and_two, rng, size, n, p):
    X = fortran(rng, n, size(p))
    what = f"Gram matrix, dense, n={n:,} p={p:,}"
    one_and_two(what, lambda threads: gram(X, threads), data=X.nbytes, rounds=7)
