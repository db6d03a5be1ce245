"""Compare SOSPCA and ProjSe on columns with one pass of BLAS over the same data."""

import numpy as np
import pytest
import scipy.sparse

from streamsel import SOSPCA, ProjSe
from tests.bench.jobs import Data, with_basis
from tests.reference import projse as reference


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def fortran(rng, n, p, dtype=np.float64):
    """Return Gaussian columns, each contiguous, made without a second copy."""
    if dtype == np.float64:
        return rng.standard_normal((p, n)).T
    X = np.empty((p, n), dtype=dtype)
    for start in range(0, p, 1000):
        part = rng.standard_normal((min(1000, p - start), n))
        X[start : start + 1000] = 10 * part if np.issubdtype(dtype, np.integer) else part
    return X.T


def learnt(cls, y, X, **parameters):
    """Return a model that has learnt all columns."""
    model = cls(**parameters)
    model.learn_target(y)
    model.learn_columns(X)
    return model


def learner(cls, y, X, **parameters):
    """Return a function that learns all columns and returns the relevance."""
    return lambda: learnt(cls, y, X, **parameters).relevance


def sparse(rng, n, p):
    return scipy.sparse.random_array((n, p), density=0.01, format="csc", random_state=rng)


def bytes_of(X):
    """Return the bytes of a sparse matrix."""
    return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes


def test_sospca_dense(against, rng, size):
    n = 1000
    X, y = fortran(rng, n, size(100_000)), rng.standard_normal(n)
    what = "SOSPCA dense, n=1,000 p=100,000 r=1 / y @ X"
    against(what, learner(SOSPCA, y, X), lambda: y @ X, threshold=1.1, data=X.nbytes)


def test_sospca_dense_weighted(against, rng, size):
    n = 1000
    X, y, w = fortran(rng, n, size(100_000)), rng.standard_normal(n), rng.exponential(size=n)

    def weighted():
        model = SOSPCA()
        model.learn_target(y, weights=w)
        model.learn_columns(X)
        return model.relevance

    what = "SOSPCA dense, weighted rows / unweighted rows"
    against(what, weighted, learner(SOSPCA, y, X), threshold=4.0, data=X.nbytes)


def test_sospca_dense_short(against, rng, size):
    n = 200
    X, y = fortran(rng, n, size(100_000)), rng.standard_normal(n)
    what = "SOSPCA dense, n=200 p=100,000 r=1 / y @ X"
    ours = learner(SOSPCA, y, X)
    against(what, ours, lambda: y @ X, threshold=1.35, rounds=31, data=X.nbytes)


@pytest.mark.parametrize("p", [100_000, 1_000_000])
def test_sospca_sparse(against, rng, size, p):
    n = 1000
    X, y = sparse(rng, n, size(p)), rng.standard_normal(n)
    ours = learner(SOSPCA, y, X)
    what = f"SOSPCA CSC 1 %, n=1,000 p={p:,} / X.T @ y"
    against(what, ours, lambda: X.T @ y, threshold=3, rounds=51, data=bytes_of(X))


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_sospca_dtypes(against, rng, size, dtype):
    n = 1000
    X, y = fortran(rng, n, size(100_000), dtype), rng.standard_normal(n)
    X64 = X.astype(np.float64, order="F")
    against(
        f"SOSPCA {np.dtype(dtype).name} / the same in float64",
        learner(SOSPCA, y, X),
        learner(SOSPCA, y, X64),
        threshold=1,
        data=(X.nbytes, X64.nbytes),
    )


@pytest.mark.parametrize(
    ("cls", "parameters"),
    [(SOSPCA, {}), (ProjSe, {"max_candidates": 80})],
    ids=["SOSPCA", "ProjSe"],
)
def test_rejected_columns(against, rng, cls, parameters):
    """Learn noise that replaces no candidate, as do nearly all columns of a long stream."""
    n, p, strong = 1000, 1000, 200
    y = rng.standard_normal(n)
    columns = list(fortran(rng, n, p).T)
    model = learnt(cls, y, fortran(rng, n, strong) + y[:, None], **parameters)
    kept = set(model._columns.names)

    def ours():
        # Rejected names are not remembered, so that every round can use the same ones.
        for j, x in enumerate(columns, start=strong):
            model.learn_column(j, x)

    def limit():
        for x in columns:
            x.mean(), x @ x, x @ y

    options = "".join(f" {name}={value}" for name, value in parameters.items())
    against(
        f"{cls.__name__}{options} learn_column, 1,000 columns rejected / mean, x @ x, x @ y",
        ours,
        limit,
        threshold=0.5,
        data=8 * n * p,
    )
    assert set(model._columns.names) == kept


def classes(n, c):
    return [f"class {i % c}" for i in range(n)]


def basis(Y):
    """Return an orthonormal basis of the span of the centred columns of Y."""
    return with_basis(Data(None, None, Y, None))[1]


@pytest.mark.parametrize(
    ("parameters", "threshold"), [({}, 1.3), ({"max_candidates": 80}, 1.8)], ids=["all", "pool"]
)
def test_projse_classes(against, rng, size, parameters, threshold):
    n, c = 2000, 20
    X, y = fortran(rng, n, size(20_000)), classes(n, c)
    U = basis(np.eye(c)[np.arange(n) % c])
    options = "".join(f" {name}={value}" for name, value in parameters.items())
    against(
        f"ProjSe 20 classes, n=2,000 p=20,000 k=20{options} / U.T @ X",
        learner(ProjSe, y, X, k=20, **parameters),
        lambda: U.T @ X,
        threshold=threshold,
        data=X.nbytes,
    )


def test_projse_targets(against, rng, size):
    n = 2000
    X, Y = fortran(rng, n, size(20_000)), rng.standard_normal((n, 100))
    U = basis(Y)
    ours = learner(ProjSe, Y, X, k=20)
    what = "ProjSe 100 numeric targets, n=2,000 p=20,000 k=20 / U.T @ X"
    against(what, ours, lambda: U.T @ X, threshold=1.5, rounds=7, data=X.nbytes)


def test_projse_unsupervised(against, rng, size):
    n, p, k = 50, size(4434), 49
    X = fortran(rng, n, p)
    against(
        "ProjSe unsupervised, n=50 p=4,434 k=49 / the paper's algorithm",
        learner(ProjSe, None, X, k=k),
        lambda: reference.paper_algorithm(X, X, k),
        threshold=0.001,
        rounds=1,
    )


@pytest.mark.parametrize("supervised", [True, False], ids=["supervised", "unsupervised"])
def test_projse_readings(against, report, rng, size, supervised):
    n, p, k = 200, size(10_000), 25
    X = fortran(rng, n, p)
    y = classes(n, k + 1) if supervised else None
    pool = {"k": k, "max_candidates": 4 * k}
    exact = learnt(ProjSe, y, X, **pool, exact=True)
    how = "supervised" if supervised else "unsupervised"
    against(
        f"ProjSe exact=True, {how}, n=200 p=10,000 k=25, a pass / a plain pass",
        learner(ProjSe, y, X, **pool, exact=True),
        learner(ProjSe, y, X, **pool),
        rounds=5 if supervised else 3,
        often=exact.n_passes,
        data=X.nbytes,
    )
    n_passes = f"{exact.n_passes:.3g}"
    report(f"ProjSe exact=True, {how}, the same Gaussian noise: passes", n_passes, str(k))
