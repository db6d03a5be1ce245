"""The figures of the column axis: SOSPCA and ProjSe against one pass of BLAS over the same data."""

import numpy as np
import pytest
import scipy.sparse

from streamsel import SOSPCA, ProjSe
from tests.reference import projse as reference


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def fortran(rng, n, p, dtype=np.float64):
    """Gaussian columns, contiguous one by one, made without a second copy."""
    if dtype == np.float64:
        return rng.standard_normal((p, n)).T
    X = np.empty((p, n), dtype=dtype)
    for start in range(0, p, 1000):
        part = rng.standard_normal((min(1000, p - start), n))
        X[start : start + 1000] = 10 * part if np.issubdtype(dtype, np.integer) else part
    return X.T


def learner(cls, y, X, **parameters):
    """Return a function that learns it all and gives the result."""

    def run():
        model = cls(**parameters)
        model.learn_target(y)
        model.learn_columns(X)
        return model.relevance

    return run


def test_sospca_dense(against, rng, size):
    n = 1000
    X, y = fortran(rng, n, size(100_000)), rng.standard_normal(n)
    ours = learner(SOSPCA, y, X)
    against("SOSPCA dense, n=1,000 p=100,000 r=1 / y @ X", ours, lambda: y @ X, bar=1.5)


def test_sospca_sparse(against, rng, size):
    n = 1000
    X = scipy.sparse.random_array((n, size(100_000)), density=0.01, format="csc", rng=rng)
    y = rng.standard_normal(n)
    ours = learner(SOSPCA, y, X)
    against("SOSPCA CSC 1 %, same size / X.T @ y", ours, lambda: X.T @ y, bar=3, rounds=15)


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_sospca_in_place(against, rng, size, dtype):
    n = 1000
    X, y = fortran(rng, n, size(100_000), dtype), rng.standard_normal(n)
    X64 = X.astype(np.float64, order="F")
    name = np.dtype(dtype).name
    against(
        f"SOSPCA {name} / the same in float64",
        learner(SOSPCA, y, X),
        learner(SOSPCA, y, X64),
        bar=1,
    )


@pytest.mark.parametrize("cls", [SOSPCA, ProjSe])
def test_one_column_at_a_time(against, rng, cls):
    n, p = 1000, 1000
    columns, y = list(fortran(rng, n, p).T), rng.standard_normal(n)

    def ours():
        model = cls()
        model.learn_target(y)
        for j, x in enumerate(columns):
            model.learn_column(j, x)

    def limit():
        for x in columns:
            x.mean(), x @ x, x @ y

    against(
        f"{cls.__name__} learn_column, 1,000 columns (ms = µs a column) / mean, x @ x, x @ y",
        ours,
        limit,
        seconds=6e-3,
    )


def test_projse_classes(against, rng, size):
    n, c = 2000, 20
    X = fortran(rng, n, size(20_000))
    labels = [f"class {i % c}" for i in range(n)]
    U = np.linalg.qr(rng.standard_normal((n, c - 1)))[0]
    ours = learner(ProjSe, labels, X, k=20)
    against("ProjSe 20 classes, n=2,000 p=20,000 k=20 / U.T @ X", ours, lambda: U.T @ X, bar=1.5)


def test_projse_pool(against, rng, size):
    n, c = 2000, 20
    X = fortran(rng, n, size(20_000))
    labels = [f"class {i % c}" for i in range(n)]
    against(
        "ProjSe max_candidates=80 / all candidates, same data",
        learner(ProjSe, labels, X, k=20, max_candidates=80),
        learner(ProjSe, labels, X, k=20),
    )


def test_projse_unsupervised(against, rng, size):
    n, p, k = 50, size(4434), 49
    X = fortran(rng, n, p)
    against(
        "ProjSe unsupervised, n=50 p=4,434 k=49 / the paper's algorithm",
        learner(ProjSe, None, X, k=k),
        lambda: reference.paper_algorithm(X, X, k),
        bar=0.001,
        rounds=1,
    )


@pytest.mark.parametrize("supervised", [True, False])
def test_projse_exact_passes(against, report, rng, size, supervised):
    n, p, k = 200, size(20_000), 25
    X = fortran(rng, n, p)
    y = [f"class {i % 26}" for i in range(n)] if supervised else None
    bounded = learner(ProjSe, y, X, k=k, max_candidates=4 * k, exact=True)
    unlimited = learner(ProjSe, y, X, k=k)
    how = "supervised" if supervised else "unsupervised"
    what = f"ProjSe exact=True, {how}, k=25 / all candidates"
    against(what, bounded, unlimited, rounds=1)
    model = ProjSe(k, max_candidates=4 * k, exact=True)
    model.learn_target(y)
    model.learn_columns(X)
    report(f"ProjSe exact=True, {how}, Gaussian noise: readings", str(model.n_passes), str(k))
