"""Correlations of variables with the target and with each other, from full matrices."""

import numpy as np


def residuals(A, Z):
    """Return the residuals of columns after regression on a constant and on Z."""
    Z = np.column_stack([np.ones(len(A)), *([] if Z is None else [Z])])
    return A - Z @ np.linalg.lstsq(Z, A, rcond=None)[0]


def correlations(X, Y, Z=None):
    """Return the partial correlations of columns given Z, (p, c)."""
    X, Y = residuals(X, Z), residuals(Y, Z)
    return (X / np.linalg.norm(X, axis=0)).T @ (Y / np.linalg.norm(Y, axis=0))


def directions(X, y, Z=None):
    """Return the sign and class of each column's largest correlation with a class indicator."""
    classes = sorted(set(y))
    R = correlations(X, np.column_stack([np.array(y) == c for c in classes]).astype(float), Z)
    found = []
    for r in R:
        k = int(r.argmax()) if len(classes) == 2 else int(np.abs(r).argmax())
        found.append((int(np.sign(r[k])), classes[k]))
    return found


def closest(X, Z=None):
    """Return, per column, the other one that it correlates with most, and the correlation."""
    R = correlations(X, X, Z)
    others = [[(abs(r), j) for j, r in enumerate(row) if j != i] for i, row in enumerate(R)]
    return [(max(row)[1], R[i][max(row)[1]]) for i, row in enumerate(others)]
