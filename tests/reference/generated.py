"""Generated columns by definition: name -> column, in the order of the stream."""

from itertools import combinations

import numpy as np


def interactions(X, degree=2):
    """Return the products of 2 to `degree` distinct columns."""
    return {
        chosen: np.prod(X[:, chosen].astype(float), axis=1)
        for g in range(2, degree + 1)
        for chosen in combinations(range(X.shape[1]), g)
    }


def adjusted(X):
    """Return the residual of each product, regressed on 1 and both columns."""
    found = {}
    for (i, j), product in interactions(X).items():
        design = np.column_stack([np.ones(len(X)), X[:, i], X[:, j]])
        found[i, j] = product - design @ np.linalg.lstsq(design, product)[0]
    return found


def lags(X, chosen):
    """Return the values `lag` steps before, in the rows that have all lags."""
    first = max(chosen)
    return {
        (j, lag): np.array([X[t - lag, j] for t in range(first, len(X))], dtype=float)
        for j in range(X.shape[1])
        for lag in chosen
    }
