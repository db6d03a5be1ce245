"""Eigenvectors of the Laplacian of the nearest-neighbour graph, without the constant one.

Rows i and j are neighbours if one is no farther from the other than that one's `n_neighbors`-th
nearest row, itself not counted. L = D - A. Components have length 1 and are orthogonal to the
constant vector. Their sign makes the largest entry positive, the first of equal ones.
"""

import numpy as np

from tests.reference import linear

# Squared distances are equal if they differ by less than TIE of the largest; eigenvalues by EQUAL.
TIE, EQUAL = 1e-12, 1e-9


def graph(W, n_neighbors):
    """Return the adjacency matrix of the rows of W."""
    n = len(W)
    squares = np.array([[np.sum((a - b) ** 2) for b in W] for a in W])
    A = np.zeros((n, n))
    for i in range(n):
        others = [j for j in range(n) if j != i]
        threshold = sorted(squares[i, others])[min(n_neighbors, n - 1) - 1]
        for j in others:
            if squares[i, j] <= threshold + TIE * squares.max():
                A[i, j] = A[j, i] = 1.0
    return A


def eigenmaps(A):
    """Return ascending eigenvalues, and eigenvectors of L that are orthogonal to the constant."""
    n = len(A)
    L = np.diag(A.sum(axis=0)) - A
    # This makes the constant vector the last: eigenvalues of L are at most twice the largest
    # degree.
    d, E = np.linalg.eigh(L + (2.0 * A.sum(axis=0).max() + 1.0) / n)
    return d[:-1], E[:, :-1]


def answer(X, y, *, n_components=10, n_neighbors=10, **_):
    """Return the results of a model that has learnt the columns of X.

    Eigenvectors of equal eigenvalues are not unique: then there is no embedding to compare.
    """
    assert y is None
    d, E = eigenmaps(graph(linear.columns(X, scale=False).W, n_neighbors))
    q = min(n_components, len(d))
    found = {"relevance": {f"laplacianeigenmaps{k}": 1.0 for k in range(q)}, "eigenvalues": d[:q]}
    if np.all(np.diff(d[: q + 1]) > EQUAL * d[-1]):
        found["embedding"] = E[:, :q] * linear.signs(E[:, :q])
    return found
