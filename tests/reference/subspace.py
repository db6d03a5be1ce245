"""Leading axes of columns, by the definition of each algorithm, in plain NumPy."""

from itertools import pairwise

import numpy as np


def centred(X, weights):
    """Return columns X (n, p) minus their means, times the square roots of weights (p,)."""
    return (X - X.mean(axis=0)) * np.sqrt(weights)


def leading(X, rank):
    """Return the `rank` largest eigenvalues of X Xᵀ above rounding, and their eigenvectors."""
    E, lengths, _ = np.linalg.svd(X, full_matrices=False)
    real = lengths > 1e-7 * lengths.max(initial=0.0)
    return lengths[real][:rank] ** 2, E[:, real][:, :rank]


def incremental(X, rank, width):
    """Return the leading eigenpairs of centred columns learnt in batches of `width`."""
    return in_batches(X, rank, [*range(0, X.shape[1], width), X.shape[1]])


def in_batches(X, rank, edges):
    """Return the leading eigenpairs of centred columns learnt in batches with these edges."""
    d, E = np.zeros(0), np.zeros((len(X), 0))
    for start, stop in pairwise(edges):
        d, E = leading(np.hstack([E * np.sqrt(d), X[:, start:stop]]), rank)
    return d, E


def krylov(X, start, n_passes):
    """Return eigenpairs of K = X Xᵀ within the space of start, K start, K² start, ..."""
    K, blocks = X @ X.T, [start]
    for _ in range(n_passes - 1):
        blocks.append(K @ np.linalg.qr(blocks[-1])[0])
    basis = leading(np.hstack([np.linalg.qr(block)[0] for block in blocks]), len(X))[1]
    d, W = np.linalg.eigh(basis.T @ K @ basis)
    return d[::-1], basis @ W[:, ::-1]
