"""The target space and the relevance of a column, by definition: centre, span, project.

Every vector is divided by its largest entry before it is squared, and centred twice, so that large
offsets and scales within float64 cost no avoidable precision.
"""

import numpy as np
from scipy import stats


def centred(x):
    """Centre every column (a vector is one column) without scaling it."""
    x = np.asarray(x, dtype=np.float64)
    x = x - x.mean(axis=0)
    return x - x.mean(axis=0)


def unit(x):
    """Divide by the norm without squaring huge or tiny numbers."""
    largest = np.abs(x).max()
    x = x / largest
    return x / np.sqrt(x @ x)


def indicators(labels):
    """Return one 0/1 column for each class, in sorted order of classes."""
    labels = np.asarray(labels)
    return np.column_stack([labels == label for label in np.unique(labels)]).astype(float)


def numbers(y, kind="auto"):
    """Return the target as numbers: labels, and any target of type "class", as indicators."""
    y = np.asarray(y)
    return indicators(y) if kind == "class" or y.dtype.kind not in "iuf" else y


def columns(y):
    """Return the centred target columns as a 2-D array, without constant ones."""
    Y = np.asarray(y, dtype=np.float64)
    Y = centred(Y.reshape(len(Y), -1))
    return Y[:, np.abs(Y).max(axis=0) > 0]


def basis(y):
    """Return an orthonormal basis U (n×r) of the span of the centred target columns."""
    return span([unit(column) for column in columns(y).T], len(y))


def span(units, n):
    """Return an orthonormal basis (n×r) of the span of vectors of length 1."""
    U, singular, _ = np.linalg.svd(np.column_stack([np.zeros((n, 0)), *units]), full_matrices=False)
    return U[:, singular > 1e-7 * singular.max(initial=0.0)]


def tested(y):
    """Return the target of p-values: normal scores of a single numeric column with heavy tails."""
    y = np.asarray(y, dtype=np.float64)
    one = y.ravel()
    if one.size != len(y) or stats.kurtosis(unit(centred(one))) <= 1.0:
        return y
    return stats.norm.ppf((stats.rankdata(one) - 0.5) / one.size)


def relevance(x, U):
    """Return ‖Uᵀx̃‖ / ‖x̃‖."""
    return np.linalg.norm(U.T @ unit(centred(x)))


def correlation(x, y):
    """Return Pearson's correlation with its sign."""
    return unit(centred(x)) @ unit(centred(y))
