"""Mixed models by definition: V is formed and inverted, and determinants are computed."""

import numpy as np
from scipy import optimize, stats
from scipy.linalg import sqrtm


def design(y, Z):
    return np.ones((len(y), 1)) if Z is None else np.column_stack([np.ones(len(y)), Z])


def projection(K, ratio, W):
    """Return P = V⁻¹ - V⁻¹W(WᵀV⁻¹W)⁻¹WᵀV⁻¹."""
    inverse = np.linalg.inv(ratio * K + np.eye(len(K)))
    return inverse - inverse @ W @ np.linalg.inv(W.T @ inverse @ W) @ W.T @ inverse


def log_likelihood(y, Z, K, ratio):
    """Return the restricted log-likelihood of a ratio, with σ² profiled out."""
    W = design(y, Z)
    free = len(y) - W.shape[1]
    V = ratio * K + np.eye(len(y))
    quadratic = y @ projection(K, ratio, W) @ y
    return 0.5 * (
        free * (np.log(free / (2.0 * np.pi)) - 1.0 - np.log(quadratic))
        + np.linalg.slogdet(W.T @ W)[1]
        - np.linalg.slogdet(V)[1]
        - np.linalg.slogdet(W.T @ np.linalg.inv(V) @ W)[1]
    )


def best_ratio(ys, Z, K):
    """Return the ratio that maximises the sum of log-likelihoods: a grid, then its best cell."""

    def loss(log_ratio):
        return -sum(log_likelihood(y, Z, K, np.exp(log_ratio)) for y in ys)

    grid = np.linspace(-10.0, 10.0, 81)
    best = grid[np.argmin([loss(at) for at in grid])]
    found = optimize.minimize_scalar(loss, bounds=(best - 0.3, best + 0.3), method="bounded")
    none = -sum(log_likelihood(y, Z, K, 0.0) for y in ys)
    return np.exp(found.x) if found.fun < none else 0.0


def p_value(x, y, Z, K, ratio):
    """Return the p-value of a column's F test by generalised least squares, given the ratio."""
    W = design(y, Z)
    P = projection(K, ratio, W)
    free = len(y) - W.shape[1] - 1
    square = (x @ P @ y) ** 2 / ((x @ P @ x) * (y @ P @ y))
    return stats.f.sf(free * square / (1.0 - square), 1, free)


def whitened(X, K, ratio):
    """Return columns X (n, p) times V^-½, rotated so that the constant vector is unchanged."""
    n = len(K)
    root = np.real(sqrtm(np.linalg.inv(ratio * K + np.eye(n))))
    root *= np.sqrt(n) / np.linalg.norm(root.sum(axis=1))
    between = root.sum(axis=1) + np.ones(n)
    turn = 2.0 * np.outer(between, between) / (between @ between) - np.eye(n)
    return turn @ root @ X
