"""Partial least squares by deflation: NIPALS with the leading singular vectors.

Columns and targets have variance 1 (divisor n - 1), or are only centred. Scores are X̃R with
R = W(PᵀW)⁻¹.
"""

import numpy as np

from tests.reference import linear
from tests.reference import target as space

# If the covariance of columns and target is below this part of the first, the target is exhausted.
USED = 1e-10


def rotations(X, Y, q):
    """Return R, (p, k) with k at most q, of centred X and Y."""
    X, Y, W, P = X.copy(), Y.copy(), [], []
    whole = np.linalg.norm(X.T @ Y)
    for _ in range(q):
        covariance = X.T @ Y
        if np.linalg.norm(covariance) <= USED * whole:
            break
        w = np.linalg.svd(covariance, full_matrices=False)[0][:, 0]
        t = X @ w
        W.append(w)
        P.append(X.T @ t / (t @ t))
        X -= np.outer(t, P[-1])
        Y -= np.outer(t, Y.T @ t / (t @ t))
    if not W:
        return np.zeros((X.shape[1], 0))
    W, P = np.column_stack(W), np.column_stack(P)
    return W @ np.linalg.inv(P.T @ W)


def answer(X, y, *, n_components=10, scale=True, target_type="auto", **_):
    """Return the results of a model that has learnt the columns of X."""
    y = space.numbers(y, target_type)
    Y, of = space.columns(y), linear.columns(X, scale=scale)
    if scale:
        Y = np.column_stack([space.unit(c) for c in Y.T]) * np.sqrt(len(Y) - 1.0)
    R = rotations(of.W, Y, n_components)
    return linear.shown("pls", of, R, space.basis(y))
