"""Groups of columns by definition: dense bases by SVD, every group recomputed at every step.

Q is an orthonormal basis of the centred columns of a group, adjusted for covariates, of dimension
q; U is one of the target, of dimension r. V = |U'Q|^2, s = min(q, r), and V / s is compared with a
beta distribution with parameters q r / 2 and s (n - 1 - max(q, r)) / 2.
"""

import numpy as np
from scipy.special import betaincc

# Singular values below this part of the largest are due to rounding.
RANK = 1e-6
NOTHING = 1e-10


def basis(columns, Z=None):
    """Return an orthonormal basis of the centred columns, given covariates."""
    fixed = np.ones((len(columns), 1)) if Z is None else np.c_[np.ones(len(columns)), Z]
    fixed = np.linalg.qr(fixed)[0]
    left = columns - fixed @ (fixed.T @ columns)
    size = np.sqrt(np.square(columns - columns.mean(axis=0)).sum(axis=0))
    left = left[
        :, (np.sqrt(np.square(left).sum(axis=0)) > 1e-6 * size) & (np.ptp(columns, axis=0) > 0)
    ]
    if not left.shape[1]:
        return np.zeros((len(columns), 0))
    left = left / np.sqrt(np.square(left).sum(axis=0))
    axes, values, _ = np.linalg.svd(left, full_matrices=False)
    return axes[:, values > RANK * values[0]]


def bases(X, groups, Z=None):
    """Return the basis of each group that varies, by name; groups map names to members."""
    found = {name: basis(X[:, list(members)], Z) for name, members in groups.items()}
    return {name: Q for name, Q in found.items() if Q.shape[1]}


def p_values(Q, U, d=0):
    """Return trace, F statistic and p-value of each group, given d covariates."""
    found, r, n = {}, U.shape[1], len(U) - d
    for name, axes in Q.items():
        q = axes.shape[1]
        s, largest = min(q, r), max(q, r)
        trace = np.square(U.T @ axes).sum()
        free = n - 1 - largest
        F = trace / (s - trace) * free / largest
        found[name] = trace, F, betaincc(q * r / 2, s * free / 2, trace / s)
    return found


def projse(Q, U, k):
    """Return picks, scores and rounds of ProjSe on groups."""
    whole = U @ U.T
    P, picks, scores, rounds, now = whole.copy(), [], [], [], 0
    while len(picks) < min(k, len(Q)):
        score = {
            name: np.square(P @ axes).sum() / axes.shape[1]
            for name, axes in Q.items()
            if name not in picks
        }
        best = max(score, key=score.get)
        if score[best] <= NOTHING:
            if rounds[-1:] != [now]:
                break
            P, now = whole.copy(), now + 1
            continue
        picks.append(best)
        scores.append(score[best])
        rounds.append(now)
        axes, values, _ = np.linalg.svd(P @ Q[best], full_matrices=False)
        axes = axes[:, values > 1e-6]
        P = P - axes @ axes.T
    return picks, scores, rounds


def forward(Q, U, k, ridge):
    """Return picks and scores of forward selection on groups."""

    def error(names):
        if not names:
            return np.square(U).sum()
        Z = np.hstack([Q[name] for name in names])
        if not ridge:
            axes, values, _ = np.linalg.svd(Z, full_matrices=False)
            axes = axes[:, values > 1e-4]
            return np.square(U - axes @ (axes.T @ U)).sum()
        inverse = np.linalg.inv(ridge * np.eye(Z.shape[1]) + Z.T @ Z)
        return np.trace(U.T @ (U - Z @ (inverse @ (Z.T @ U))))

    def rank(names):
        return np.linalg.matrix_rank(np.hstack([Q[n] for n in names]), tol=1e-4) if names else 0

    picks, scores = [], []
    while len(picks) < min(k, len(Q)):
        score = {}
        for name, axes in Q.items():
            if name in picks:
                continue
            q = axes.shape[1] if ridge else rank([*picks, name]) - rank(picks)
            score[name] = (error(picks) - error([*picks, name])) / q if q else -np.inf
        best = max(score, key=score.get)
        if score[best] <= NOTHING:
            break
        picks.append(best)
        scores.append(score[best])
    return picks, scores


def lasso(Q, y, alpha, l1_ratio=1.0, rounds=4000):
    """Return the lengths of the groups' coefficients, and the fit, by proximal gradient."""
    n, y = len(y), y - y.mean()
    Z = np.hstack([*Q.values()]) * np.sqrt(n)
    ends = np.cumsum([axes.shape[1] for axes in Q.values()])
    step = n / np.linalg.norm(Z, 2) ** 2
    b = ahead = np.zeros(Z.shape[1])
    momentum = 1.0
    for _ in range(rounds):
        before, moved = b, ahead - step * (Z.T @ (Z @ ahead - y)) / n
        parts = []
        for part in np.split(moved, ends[:-1]):
            length = np.linalg.norm(part)
            least = step * alpha * l1_ratio * np.sqrt(part.size)
            parts.append(part * max(0.0, 1.0 - least / length) if length else part)
        b = np.concatenate(parts) / (1.0 + step * alpha * (1.0 - l1_ratio))
        following = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        ahead = b + (momentum - 1.0) / following * (b - before)
        momentum = following
    lengths = map(np.linalg.norm, np.split(b, ends[:-1]))
    return dict(zip(Q, lengths, strict=True)), Z @ b
