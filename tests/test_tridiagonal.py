"""The tridiagonal form of a matrix against dense algebra."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsel.state.tridiagonal import TridiagonalForm


def matrix(rng, n, rank, *, repeated=False):
    """Return a positive semidefinite matrix with decaying eigenvalues, optionally in pairs."""
    d = 10.0 ** rng.uniform(-3, 2, rank)
    if repeated:
        d = np.repeat(d, 2)[:rank]
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0][:, :rank]
    A = (Q * d) @ Q.T
    return np.ascontiguousarray(0.5 * (A + A.T))


@given(st.integers(0, 10**6), st.integers(0, 30), st.data())
def test_systems_products_and_traces(seed, n, draw):
    rng = np.random.default_rng(seed)
    rank = draw.draw(st.integers(0, n))
    A, V = matrix(rng, n, rank), rng.normal(size=(n, 3))
    for truncate in (False, True):
        form = TridiagonalForm(A.copy())
        assert form.rank() == rank
        assert form.largest == pytest.approx(np.linalg.eigvalsh(A).max(initial=0.0))
        form = form.truncated() if truncate else form
        assert form.size == (rank if truncate else n)
        W = form.coordinates(V)
        np.testing.assert_allclose(form.combine(form.matmul(W)), A @ V, atol=1e-9)
        if not form.size:
            continue
        inside = form.combine(W)
        for shift in (0.1, 1e3):
            found, pivots = form.solve(shift, W)
            shifted = A + shift * np.eye(n)
            np.testing.assert_allclose(
                form.combine(found), np.linalg.solve(shifted, inside), rtol=1e-8, atol=1e-10
            )
            lost = n - form.size
            determinant = np.linalg.slogdet(shifted)[1] - lost * np.log(shift)
            assert np.log(pivots).sum() == pytest.approx(determinant, rel=1e-9, abs=1e-9)
            trace = np.trace(np.linalg.inv(shifted)) - lost / shift
            assert form.trace_of_inverse(shift, pivots) == pytest.approx(trace, rel=1e-8, abs=1e-9)


@settings(max_examples=20, deadline=None)
@pytest.mark.parametrize("n", [40, 220], ids=["dense", "Lanczos"])
@given(seed=st.integers(0, 10**6), r=st.integers(1, 3), k=st.integers(1, 6), repeated=st.booleans())
def test_leading_eigenpairs(n, seed, r, k, repeated):
    """All leading eigenpairs are found, including all of equal eigenvalues."""
    rng = np.random.default_rng(seed)
    A = matrix(rng, n, n - 5, repeated=repeated)
    form = TridiagonalForm(A.copy())
    T = form.matmul(np.eye(n))
    F = np.linalg.qr(rng.normal(size=(n, r)))[0]
    across = T @ F
    X = np.linalg.solve(np.linalg.cholesky(F.T @ across), across.T).T
    complement = np.eye(n) - F @ F.T
    for expected, factor, projected in (
        (complement @ T @ complement, F, True),
        (T - X @ X.T, X, False),
    ):
        d, V = form.leading(k, factor, projected=projected)
        np.testing.assert_allclose(d, np.linalg.eigvalsh(expected)[::-1][:k], rtol=1e-9)
        np.testing.assert_allclose(V.T @ V, np.eye(k), atol=1e-8)
        np.testing.assert_allclose(expected @ V, V * d, atol=1e-8 * d[0])
