"""Adjusted p-values by permuted targets, by definition: Westfall and Young (1993)."""

import numpy as np

from tests.reference import glm


def residuals(X, Z, w):
    """Return columns times √w, adjusted for a constant and Z with weights w."""
    root = np.sqrt(w)[:, None]
    design = root * np.column_stack([np.ones(len(X)), Z])
    weighted = root * X
    return weighted - design @ np.linalg.lstsq(design, weighted, rcond=None)[0]


def relevances(X, Y):
    """Return the square root of each column's R² given Y; -1 for constants."""
    found = []
    for x in X.T:
        explained = Y @ np.linalg.lstsq(Y, x, rcond=None)[0]
        found.append(np.sqrt((explained @ explained) / (x @ x)) if x @ x > 1e-20 else -1.0)
    return np.array(found)


def orders(n, n_permutations, seed, strata, w):
    """Return permutations of the observations of positive weight, within strata."""
    found = []
    for b in range(n_permutations):
        rng = np.random.default_rng((seed, b))
        order = np.arange(n)
        for stratum in np.unique(strata):
            group = np.flatnonzero((strata == stratum) & (w > 0))
            order[group] = rng.permutation(group)
        found.append(order)
    return found


def statistics(X, Y, n_permutations, seed=0, Z=None, strata=None, w=None):
    """Return the relevances of all columns, (p,), and to each permuted target, (B, p)."""
    n = len(X)
    Z = np.zeros((n, 0)) if Z is None else Z
    w = np.ones(n) if w is None else w / w.mean()
    strata = np.zeros(n) if strata is None else strata
    x, y = residuals(X, Z, w), residuals(Y, Z, w)
    # Weights stay on their rows: they are not part of the residuals that are permuted.
    e = y / np.where(w > 0, np.sqrt(w), 1.0)[:, None]
    permuted = []
    for order in orders(n, n_permutations, seed, strata, w):
        # Permuted residuals correlate with the covariates again.
        again = e[order]
        permuted.append(relevances(x, residuals(again, Z, w)))
    return relevances(x, y), np.array(permuted)


def single_step(observed, permuted):
    """Return p-values adjusted by the maximum over all columns."""
    most = np.max(permuted, axis=1)
    return np.array([(1 + np.sum(most >= t * (1 - 1e-9))) / (len(most) + 1) for t in observed])


def step_down(observed, permuted):
    """Return p-values adjusted by the maximum over the column and all less relevant ones."""
    order = np.argsort(-observed, kind="stable")
    p, so_far = np.empty(observed.size), 0.0
    for i, j in enumerate(order):
        most = np.max(permuted[:, order[i:]], axis=1)
        mine = (1 + np.sum(most >= observed[j] * (1 - 1e-9))) / (len(most) + 1)
        so_far = max(so_far, mine)
        p[j] = so_far
    return p


def count_statistics(X, y, Z, dispersion, n_permutations, seed=0):
    """Return the relevances of all columns to counts, (p,), and to each permuted target, (B, p).

    Residuals are permuted in units of their standard deviations, the root of mean times dispersion.
    """
    mean = glm.null_means("count", y, Z)
    deviation = np.sqrt(mean * dispersion(mean))[:, None]
    residual = (y - mean)[:, None]
    x = residuals(X, Z, mean)
    permuted = []
    for order in orders(len(y), n_permutations, seed, np.zeros(len(y)), mean):
        again = deviation * (residual / deviation)[order] / mean[:, None]
        permuted.append(relevances(x, residuals(again, Z, mean)))
    return relevances(x, residuals(residual / mean[:, None], Z, mean)), np.array(permuted)
