"""Shared definitions of linear components: scaled columns, and the attributes of a model.

A varying column enters as W = D x̃, where x̃ is the centred column and D is 1, or scales the
variance to 1 (divisor n - 1). Components are W V: V are their loadings in this metric, and D V
those of the original columns. The sign makes the largest loading in the metric positive.
"""

from typing import Any, NamedTuple

import numpy as np

from tests.reference import target as space

# Eigenvalues below this part of the largest are due to rounding.
SPENT = 1e-12
TIE = 1e-12


class Columns(NamedTuple):
    """Columns that vary: their indices, W (n, p), and D (p,)."""

    indices: list
    W: Any
    D: Any


def columns(X, *, scale):
    """Return the columns of X that vary, centred and scaled."""
    X = np.asarray(X, dtype=np.float64)
    indices = [j for j in range(X.shape[1]) if np.ptp(X[:, j]) > 0.0]
    W = space.centred(X[:, indices])
    largest = np.abs(W).max(axis=0)
    # The sum of squares of x itself would overflow or underflow.
    sd = largest * np.sqrt(np.sum((W / largest) ** 2, axis=0) / (len(X) - 1.0))
    D = 1.0 / sd if scale else np.ones(len(indices))
    return Columns(indices, W * D, D)


def principal(W):
    """Return all principal axes (p, k) of W, the largest first, and the squares of their scores."""
    scale = np.abs(W).max(initial=0.0) or 1.0
    _, s, Vt = np.linalg.svd(W / scale, full_matrices=False)
    kept = s**2 > SPENT * max(s[:1] ** 2, default=0.0)
    return Vt[kept].T, (s[kept] * scale) ** 2


def signs(A):
    """Return signs that make the largest entry of every column positive; of equals, the first."""
    if not len(A):
        return np.ones(A.shape[1])
    size = np.abs(A)
    first = np.argmax(size >= size.max(axis=0, initial=0.0) * (1.0 - 1e-9), axis=0)
    return np.where(A[first, range(A.shape[1])] < 0.0, -1.0, 1.0)


def correlations(Z, U):
    """Return the relevance ‖Uᵀz‖ / ‖z‖ of every column of Z."""
    return np.array([np.linalg.norm(U.T @ space.unit(z)) for z in Z.T])


def shown(method, of, V, U=None):
    """Return the results of a model whose components have these loadings in the metric.

    Without a target, every component has relevance 1.
    """
    V = V * signs(V)
    Z = of.W @ V
    names = [f"{method}{k}" for k in range(V.shape[1])]
    relevance = np.ones(len(names)) if U is None else correlations(Z, U)
    return {
        "relevance": dict(zip(names, relevance.tolist(), strict=True)),
        "loadings": {
            j: {name: b for name, b in zip(names, row.tolist(), strict=True) if b}
            for j, row in zip(of.indices, of.D[:, None] * V, strict=True)
        },
        "embedding": Z,
    }
