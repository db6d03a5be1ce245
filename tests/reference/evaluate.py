"""The measures of `streamsel.evaluate` by definition: whole matrices, and loops over pairs."""

import itertools

import numpy as np
import scipy.linalg


def selection_stability(Z):
    """Return the estimate and its variance (Nogueira et al. 2018), of a 0/1 matrix (M, d)."""
    Z = np.asarray(Z, dtype=float)
    M, d = Z.shape
    p = Z.mean(axis=0)
    k = Z.sum(axis=1)
    share = k.mean() / d
    unit = share * (1 - share)
    phi = 1 - np.mean(M / (M - 1) * p * (1 - p)) / unit
    each = np.array(
        [
            (
                np.mean(Z[i] * p)
                - k[i] * share / d
                + phi / 2 * (2 * k[i] * share / d - k[i] / d - share + 1)
            )
            / unit
            for i in range(M)
        ]
    )
    return phi, 4 / M**2 * np.sum((each - each.mean()) ** 2)


def importance_stability(W):
    """Return the mean Pearson correlation over all pairs of rows."""
    return np.mean([np.corrcoef(a, b)[0, 1] for a, b in itertools.combinations(W, 2)])


def kernel_alignment(K, L):
    n = len(K)
    H = np.eye(n) - np.ones((n, n)) / n
    K, L = H @ K @ H, H @ L @ H
    return np.trace(K @ L.T) / np.sqrt(np.trace(K @ K.T) * np.trace(L @ L.T))


def canonical_correlations(A, B):
    """Solve the generalised eigenproblem; the columns of A, and those of B, are independent."""
    p, q = A.shape[1], B.shape[1]
    S = np.cov(A, B, rowvar=False)
    within = scipy.linalg.block_diag(S[:p, :p], S[p:, p:])
    across = S - within
    return scipy.linalg.eigh(across, within, eigvals_only=True)[::-1][: min(p, q)]
