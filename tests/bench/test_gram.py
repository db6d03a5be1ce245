"""Compare the Gram matrix of centred, weighted columns with NumPy's `X @ X.T`.

NumPy detects that this product is symmetric, and computes half of it. A ratio of 1 is the speed
of BLAS itself.
"""

import numpy as np
import pytest

from streamsel.data.chunks import Block
from streamsel.data.columns import iter_chunks
from streamsel.state.gram.gram import Gram
from streamsel.targets.target import NoTarget
from tests.bench.test_columns import bytes_of, fortran, sparse


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def gram(X, n_jobs=1, q=1):
    """Return Gram matrices of the standardised columns of X, with all steps of a learner."""
    n = X.shape[0]
    state = Gram(n, q, n_jobs)
    for chunk in iter_chunks(Block(range(X.shape[1]), X), n):
        stats = chunk.scan(NoTarget(n), n_jobs)
        varies = stats.m2 > 0.0
        # Columns have unequal weights, so that no power of the relevance is 1.
        relevance = np.linspace(0.1, 1.0, varies.size)[:, None] ** np.arange(q)
        state.add(chunk, stats, relevance / np.where(varies, stats.m2, np.inf)[:, None])
    return [state.matrix(which) for which in range(q)]


@pytest.mark.parametrize(("n", "p"), [(1000, 50_000), (2000, 20_000)])
def test_dense(against, rng, size, n, p):
    X = fortran(rng, n, size(p))
    what = f"Gram matrix, dense, n={n:,} p={p:,} / X @ X.T"
    against(what, lambda: gram(X), lambda: X @ X.T, threshold=1.3, rounds=7)


@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_gram_dtypes(against, rng, size, dtype):
    X = fortran(rng, 1000, size(50_000), dtype)
    X64 = X.astype(np.float64, order="F")
    what = f"Gram matrix, {np.dtype(dtype).name}, n=1,000 p=50,000 / X @ X.T in float64"
    against(what, lambda: gram(X), lambda: X64 @ X64.T, threshold=1.3, rounds=7)


def test_side_by_side(against, rng, size):
    X = fortran(rng, 1000, size(20_000))
    what = "Gram matrix, four weightings, n=1,000 p=20,000 / X @ X.T"
    against(what, lambda: gram(X, q=4), lambda: X @ X.T, rounds=7)


@pytest.mark.parametrize(("n", "p"), [(1000, 50_000), (2000, 20_000)])
def test_sparse(against, rng, size, n, p):
    X = sparse(rng, n, size(p))
    what = f"Gram matrix, CSC 1 %, n={n:,} p={p:,} / X @ X.T"

    def product():
        return (X @ X.T).toarray()

    against(what, lambda: gram(X), product, threshold=1, data=bytes_of(X))
