"""Fisher's discriminant axes, of covariance matrices as they are defined.

B is the covariance of the means of classes, W that within them, both of n; w solves B w = l M w
with M = (1 - γ) W + γ tr(W)/p I, and is so long that the scores vary by 1 within classes.
"""

import numpy as np
import scipy.linalg

from tests.reference import linear
from tests.reference import target as space


def scatter(X, labels):
    """Return B and W, (p, p), of centred columns."""
    means = np.array([X[labels == label].mean(axis=0) for label in labels])
    return means.T @ means / len(X), (X - means).T @ (X - means) / len(X)


def axes(X, labels, q, shrinkage):
    """Return the axes, (p, k) with k at most q and one less than the classes."""
    B, W = scatter(X, labels)
    p = len(W)
    M = (1.0 - shrinkage) * W + shrinkage * np.trace(W) / p * np.eye(p)
    # Where W has no inverse and nothing is added, what is within its span.
    d, E = np.linalg.eigh(M)
    kept = d > linear.SPENT * d[-1]
    root = E[:, kept] / np.sqrt(d[kept])
    values, V = scipy.linalg.eigh(root.T @ B @ root)
    values, V = values[::-1], root @ V[:, ::-1]
    V = V[:, values > linear.SPENT * values[0]][:, : min(q, len(set(labels)) - 1)]
    return V / np.sqrt(np.einsum("jk,ji,ik->k", V, W, V))


def answer(X, y, *, n_components=10, scale=False, shrinkage=0.1, **_):
    """Return what a model shows that has learnt the columns of X."""
    labels = np.asarray(y).ravel()
    of = linear.columns(X, scale=scale)
    V = axes(of.W, labels, n_components, shrinkage)
    return linear.shown("discriminant", of, V, space.basis(space.indicators(labels)))
