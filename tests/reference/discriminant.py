"""Fisher's discriminant axes, from covariance matrices by definition.

B is the covariance of the class means and W the covariance within classes, both with divisor n.
The axes solve B w = l M w with M = (1 - γ) W + γ tr(W)/p I, scaled so that wᵀMw = 1.
"""

import numpy as np

from tests.reference import linear
from tests.reference import ridge_components as ridge
from tests.reference import target as space

# If the share of variance within classes is below SEPARATED in a direction, γ is LEAST.
SEPARATED, LEAST = 1e-10, 1e-6


def scatter(X, labels):
    """Return B and W, (p, p), of centred columns."""
    means = np.array([X[labels == label].mean(axis=0) for label in labels])
    return means.T @ means / len(X), (X - means).T @ (X - means) / len(X)


def likeliest(X, labels, W):
    """Return γ that gives the directions of the ridge regression of maximal likelihood.

    The regression is of the target on the columns, with λ = n γ tr(W)/p / (1 - γ).
    """
    n, p = X.shape
    K, U = X @ X.T, space.basis(space.indicators(labels))
    mean = ridge.mean_eigenvalue(K, p, n)
    alpha = mean * ridge.best_alpha(K, U, "reml", n, mean)
    return alpha / (alpha + n * np.trace(W) / p)


def shrunk(W, shrinkage):
    p = len(W)
    return (1.0 - shrinkage) * W + shrinkage * np.trace(W) / p * np.eye(p)


def within(M, B):
    """Return the smallest share of within-class variance over all directions that vary."""
    d, E = np.linalg.eigh(M + B)
    root = E[:, d > linear.SPENT * d[-1]] / np.sqrt(d[d > linear.SPENT * d[-1]])
    return np.linalg.eigvalsh(root.T @ M @ root)[0]


def axes(X, labels, q, shrinkage):
    """Return the axes, (p, k) with k at most q and one less than the classes, and γ."""
    B, W = scatter(X, labels)
    if np.trace(W) <= linear.SPENT * np.trace(B):  # each class is a point
        return np.zeros((len(W), 0)), np.nan
    if shrinkage == "auto":
        shrinkage = likeliest(X, labels, W)
    if within(shrunk(W, shrinkage), B) < SEPARATED:
        shrinkage = LEAST
    M = shrunk(W, shrinkage)
    # Restricted to the span of the columns, as nothing varies outside of it.
    E = np.linalg.svd(X, full_matrices=False)
    E = E[2][E[1] ** 2 > linear.SPENT * E[1][0] ** 2].T
    d, R = np.linalg.eigh(E.T @ M @ E)
    root = E @ R / np.sqrt(d)
    values, V = np.linalg.eigh(root.T @ B @ root)
    values, V = values[::-1], root @ V[:, ::-1]
    kept = values[: len(set(labels.tolist())) - 1] > linear.SPENT * values[0]
    return V[:, : len(kept)][:, kept][:, :q], shrinkage


def answer(X, y, *, n_components=10, scale=False, shrinkage="auto", **_):
    """Return the results of a model that has learnt the columns of X."""
    labels = np.asarray(y).ravel()
    of = linear.columns(X, scale=scale)
    size = np.abs(of.W).max()
    V, shrinkage = axes(of.W / size, labels, n_components, shrinkage)
    found = linear.shown("discriminant", of, V / size, space.basis(space.indicators(labels)))
    return found | {"fitted_shrinkage": shrinkage}
