"""Compiled loops for selection in stages against NumPy, small enough to run without compilation."""

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from streamsel._kernels import mutual_information as loops
from streamsel._kernels import stepwise
from streamsel._kernels.mutual_information import mutual_information
from streamsel._kernels.stepwise import eliminate_backward, independent_variables


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def orthonormal(rng, n, size):
    return np.ascontiguousarray(np.linalg.qr(rng.normal(size=(n, size)))[0].T)


def units(rng, p, n):
    X = rng.normal(size=(p, n))
    return X / np.linalg.norm(X, axis=1)[:, None]


@pytest.mark.parametrize("ridge", [0.0, 1.0])
def test_forward(rng, ridge):
    """Scores under each stage are correct: folded, step by step, and from the observations."""
    n, p, r, S = 12, 7, 2, 4
    X, U = units(rng, p, n), orthonormal(rng, n, r)
    V = orthonormal(rng, n, S) * (1.0 if ridge == 0.0 else 0.6)
    G, T, C = X @ U.T, X @ V.T, V @ U.T
    expected = np.empty((p, S))
    for s in range(S):
        R = np.eye(n) - V[:s].T @ V[:s]
        left = np.einsum("ij,jk,ik->i", X, R, X)
        expected[:, s] = ((X @ R @ U.T) ** 2).sum(axis=1) / (ridge + left)
    scores = np.empty((p, S))
    near = stepwise.fold_forward_scores(G, T, C, ridge, -np.inf, 0.5, scores)
    np.testing.assert_allclose(scores, expected, 1e-12)
    assert near.tolist() == (1.0 - (T[:, : S - 1] ** 2).cumsum(axis=1) < 0.5).any(axis=1).tolist()
    square, left, A = np.einsum("ij,ij->i", G, G), np.ones(p), G.copy()
    for s in range(S - 1):
        np.testing.assert_allclose(square / (ridge + left), expected[:, s], 1e-12)
        stepwise.remove_direction(square, left, A, np.ascontiguousarray(T[:, s]), C[s])
    if ridge == 0.0:
        stepwise.forward_scores_of_samples(X.copy(), V, U, 1e-10, scores)
        np.testing.assert_allclose(scores, expected, 1e-10)


def test_forward_excludes_explained_candidates(rng):
    V = orthonormal(rng, 6, 2)
    scores = np.empty((1, 3))
    stepwise.forward_scores_of_samples(V[:1].copy(), V, orthonormal(rng, 6, 1), 1e-10, scores)
    assert np.isfinite(scores[0, 0])
    assert np.isneginf(scores[0, 1:]).all()


@pytest.mark.parametrize("beta", [-1.0, np.nan, 0.5])
def test_redundancy(rng, beta):
    rel, red, scores = rng.uniform(size=5), rng.normal(size=(5, 3)), np.empty((5, 4))
    rel[2] = -np.inf
    loops.fold_mrmr_scores(rel, red, 0.1, beta, scores)
    common = np.maximum(np.abs(red), 0.1)
    for s in range(4):
        total = common[:, :s].sum(axis=1)
        if s == 0:
            expected = rel
        elif beta < 0.0:
            expected = rel / (total / s)
        else:
            expected = rel - (total / s if np.isnan(beta) else beta * total)
        np.testing.assert_allclose(scores[:, s], expected, 1e-12)


def test_information(rng):
    codes, others = rng.integers(0, 4, (3, 40)), rng.integers(0, 3, (40, 2))
    out = np.empty((3, 2))
    mutual_information(codes.astype(np.uint8), others.astype(np.uint8), 4, 3, out)
    expected = [[mutual_info_score(a, b) for b in others.T] for a in codes]
    np.testing.assert_allclose(out, expected, atol=1e-12)


def test_backward(rng):
    """Each removal is the cheapest, at the cost of the increase of the squared error."""
    n, p = 20, 6
    X, y = units(rng, p, n).T, rng.normal(size=n)
    C = X.T @ X

    def error(indices):
        return np.linalg.lstsq(X[:, indices], y, rcond=None)[1][0] if indices else y @ y

    left, costs = np.arange(p), np.empty(p)
    B = np.linalg.solve(C, X.T @ y)[None]
    assert eliminate_backward(np.linalg.inv(C), B, left, 0.0, 0.0, costs) == 0
    kept = list(range(p))
    for gone, cost in zip(left[::-1].tolist(), costs[::-1], strict=True):
        rises = {j: error([i for i in kept if i != j]) - error(kept) for j in kept}
        assert gone == min(rises, key=rises.get)
        np.testing.assert_allclose(cost, rises[gone], 1e-8)
        kept.remove(gone)


def test_linearly_independent_variables(rng):
    X = units(rng, 4, 9)
    X[2] = (X[0] + X[1]) / np.linalg.norm(X[0] + X[1])
    assert independent_variables(X @ X.T, 1e-10).tolist() == [True, True, False, True]


@pytest.mark.parametrize("ridge", [0.0, 1.0])
def test_scores_during_swaps(rng, ridge):
    """Scores given all picks but one are correct, from observations and from matrices."""
    n, p, r, k, S = 12, 7, 2, 3, 5
    X, U = units(rng, p, n), orthonormal(rng, n, r)
    V = orthonormal(rng, n, k) * (1.0 if ridge == 0.0 else 0.6)
    current, reflections, out, into, replaced = V.copy(), [], [], [], []
    expected = np.empty((p, S))
    for s in range(S):
        h = rng.normal(size=k)
        reflections.append(h / np.linalg.norm(h))
        current = current - 2.0 * np.outer(reflections[-1], reflections[-1] @ current)
        R = np.eye(n) - current[:-1].T @ current[:-1]
        left = np.einsum("ij,jk,ik->i", X, R, X)
        expected[:, s] = ((X @ R @ U.T) ** 2).sum(axis=1) / (ridge + left)
        out.append(current[-1].copy())
        if s % 2:
            v = rng.normal(size=n)
            v -= current[:-1].T @ np.linalg.lstsq(current[:-1].T, v, rcond=None)[0]
            current[-1] = v / np.linalg.norm(v) * np.linalg.norm(current[0])
        replaced.append(s // 2 if s % 2 else -1)
        into.append(current[-1].copy())
    out, into, replaced = np.array(out), np.array(into), np.array(replaced)
    N = np.ascontiguousarray(X @ into[replaced >= 0].T)
    scores = np.empty((p, S))
    near = stepwise.fold_swap_scores(
        X @ U.T,
        X @ V.T,
        V @ U.T,
        np.array(reflections),
        out @ U.T,
        into @ U.T,
        replaced,
        N,
        ridge,
        -np.inf,
        0.0,
        scores,
    )
    np.testing.assert_allclose(scores, expected, 1e-11)
    assert not near.any()
    if ridge == 0.0:
        stepwise.swap_scores_of_samples(X.copy(), V, out, into, U, 1e-10, scores)
        np.testing.assert_allclose(scores, expected, 1e-10)
