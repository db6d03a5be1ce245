"""The measures of `streamsel.evaluate` by definition: whole matrices, and loops over pairs."""

import itertools

import numpy as np
import scipy.linalg
import scipy.stats


def selection_stability(Z):
    """Return the estimate (Nogueira et al. 2018) of a 0/1 matrix (M, d)."""
    Z = np.asarray(Z, dtype=float)
    M = len(Z)
    p, share = Z.mean(axis=0), Z.mean()
    return 1 - np.mean(M / (M - 1) * p * (1 - p)) / (share * (1 - share))


def stability_interval(Z, level=0.95):
    """Return the jackknife interval with Student's t, on the scale of Fisher's z."""
    Z = np.asarray(Z, dtype=float)
    M, d = Z.shape
    phi = selection_stability(Z)
    if (Z[0] == Z).all():  # with probability pi, one of the k is replaced by a new one each time
        k = Z[0].sum()
        pi = 1 - (1 - level) ** (1 / M)
        return max(-1, 1 - (k * pi / k * (1 - pi / k) + pi) / (k * (1 - k / d))), 1.0
    others = [np.delete(Z, i, axis=0) for i in range(M)]
    if M == 2 or any(other.mean() in (0, 1) for other in others):
        return -1.0, 1.0
    left_out = np.array([selection_stability(other) for other in others])
    error = np.sqrt((M - 1) / M * ((left_out - left_out.mean()) ** 2).sum())
    margin = scipy.stats.t.ppf(0.5 + level / 2, M - 1) * error / (1 - phi**2)
    return np.tanh(np.arctanh(phi) - margin), np.tanh(np.arctanh(phi) + margin)


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
