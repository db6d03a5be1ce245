"""Pruning by definition: each column is compared with all that were kept before."""

import numpy as np


def kept(X, max_correlation, window=np.inf, *, order=None, location=None):
    """Return the indices of the kept columns, and pruned index -> (representative, correlation).

    Columns are visited in an order (that of X by default), and compared with the kept ones whose
    locations (by default the indices) differ by at most `window`; the representative is the kept
    one that was visited first. Constant columns are kept.
    """
    Z = X - X.mean(axis=0)
    lengths = np.linalg.norm(Z, axis=0)
    R = Z.T @ Z / np.where(lengths > 0, lengths, 1) / np.where(lengths > 0, lengths, 1)[:, None]
    location = np.arange(X.shape[1]) if location is None else location
    found, visited, representative = [], [], {}
    for j in range(X.shape[1]) if order is None else order:
        if lengths[j] > 0:
            near = [i for i in visited if abs(location[i] - location[j]) <= window]
            similar = [i for i in near if abs(R[i, j]) >= max_correlation - 1e-12]
            if similar:
                representative[j] = similar[0], R[similar[0], j]
            else:
                visited.append(j)
        if j not in representative:
            found.append(j)
    return sorted(found), representative


def by_relevance(X, y):
    """Return the columns in descending order of their correlation with y; ties by index."""
    Z, z = X - X.mean(axis=0), y - y.mean()
    lengths = np.linalg.norm(Z, axis=0)
    r = np.abs(z @ Z) / np.where(lengths > 0, lengths, 1) / np.linalg.norm(z)
    return sorted(range(X.shape[1]), key=lambda j: (-round(r[j], 10), j))
