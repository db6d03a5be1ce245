"""Knockoffs by definition: sequential least squares, one column after the other."""

import numpy as np

MIN_SHARE = 1e-8


def neighbours(j, p, w, behind=4):
    """Return the columns before and after column j that it is regressed on."""
    return [*range(max(0, j - behind * w), j)], [*range(j + 1, min(p, j + w + 1))]


def explained(Z, v):
    """Return the projection of v on the columns of Z."""
    return Z @ np.linalg.lstsq(Z, v, rcond=1e-10)[0] if Z.shape[1] else np.zeros_like(v)


def knockoffs(X, w, orders, covariates=None):
    """Return the knockoffs of the columns of X (n, p); `orders` has a row order for each.

    The residual of a column given its neighbours, a constant and the covariates is permuted, then
    adjusted for these and for the original residual.
    """
    n, p = X.shape
    always = np.ones((n, 1)) if covariates is None else np.column_stack([np.ones(n), covariates])
    units = X - explained(always, X)
    lengths = np.linalg.norm(units, axis=0)
    units = units / lengths
    found = np.zeros((n, p))
    for j in range(p):
        before, after = neighbours(j, p, w)
        Z = np.column_stack([always, (units + found)[:, before], units[:, after]])
        e = units[:, j] - explained(Z, units[:, j])
        if e @ e <= MIN_SHARE:
            found[:, j] = units[:, j]
            continue
        t = e[orders[j]]
        t = t - explained(np.column_stack([Z, e]), t)
        found[:, j] = units[:, j] - e + t * np.sqrt((e @ e) / (t @ t))
    return X + (found - units) * lengths


def of_covariance(S, w, behind=4):
    """Return the covariance of (X, knockoffs) from the same regressions of normal columns."""
    p = len(S)
    G = np.zeros((2 * p, 2 * p))
    G[:p, :p] = S
    for j in range(p):
        before, after = neighbours(j, p, w, behind)
        I = np.eye(2 * p)
        Z = np.column_stack([I[:, before] + I[:, [p + i for i in before]], I[:, after]])
        b = Z @ np.linalg.solve(Z.T @ G @ Z, Z.T @ G[:, j])
        known = [*range(p), *range(p, p + j)]
        G[p + j, known] = G[known, p + j] = b @ G[:, known]
        G[p + j, p + j] = S[j, j]
    return G


def selected(W, level):
    """Return the names that knockoff+ selects, by its definition."""
    for t in sorted({abs(w) for w in W.values() if w}):
        above = [name for name, w in W.items() if w >= t]
        below = [name for name, w in W.items() if w <= -t]
        if above and (1 + len(below)) / len(above) <= level:
            return above
    return []
