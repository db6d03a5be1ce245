"""Ridge components from their formulas, with all columns and dense algebra.

For a centred column x̃ with relevance ρ and weight μ of a representative (1 except in a pool), the
scale is D = ρ^γ √μ / ‖x̃‖, normalized so that the mean of D²‖x̃‖² is 1; for several γ, D² is
averaged. W = X̃D, K = WWᵀ, C = WᵀW. The first components are F = (C + λI)⁻¹WᵀU Q, where Q are the
eigenvectors of UᵀW(C + λI)⁻¹WᵀU. The others are the leading eigenvectors of C − CF(FᵀCF)⁻¹FᵀC,
minus their part explained by F. Loadings are D times these, scaled to unit variance of the scores;
the sign makes the largest loading of a column of length 1 positive.

λ is a multiple of the mean eigenvalue, tr K / min(p, n − 1), from a grid. Values below `SPENT` of
the largest of their kind are rounding errors.
"""

from typing import Any, NamedTuple

import numpy as np

from tests.reference import noise
from tests.reference import target as space

GRID = 10.0 ** (np.arange(-50, 51) / 10.0)
SPENT = 1e-12
# Relative to the first pivot.
PIVOT = 1e-10
TIE = 1e-12
# A variable whose squared correlation with a kept one is at least this is a copy of it.
COPY = 0.98


class Found(NamedTuple):
    """Components of p variables of n observations.

    Parameters
    ----------
    loadings, scores
        (p, q) and (n, q).
    alpha
        λ, in mean eigenvalues.
    inner
        (p, q) loadings before they are multiplied by D.
    """

    loadings: Any
    scores: Any
    alpha: float
    inner: Any


class Variables(NamedTuple):
    """Columns that vary: names, unit vectors, lengths, relevances, weights."""

    names: list
    units: Any
    lengths: Any
    relevance: Any
    mu: Any

    def those(self, indices):
        return Variables(
            [self.names[j] for j in indices],
            self.units[:, indices],
            *(a[indices] for a in self[2:]),
        )


def variables(X, U, names=None, given=None):
    """Return the columns of X that vary after the span of `given` (n, d) is projected out."""
    X = np.asarray(X, dtype=np.float64)
    names = range(X.shape[1]) if names is None else names
    kept, units, lengths = [], [], []
    for name, x in zip(names, X.T, strict=True):
        if np.ptp(x) == 0.0:
            continue
        largest = np.abs(space.centred(x)).max()
        left = space.centred(x) / largest
        whole = left @ left
        if given is not None:
            for _ in range(2):
                left = left - given @ (given.T @ left)
            if left @ left <= PIVOT * whole:
                continue
        kept.append(name)
        units.append(space.unit(left))
        lengths.append(np.sqrt(left @ left) * largest)
    units = np.array(units).reshape(len(kept), len(X)).T
    relevance = np.sqrt(((U.T @ units) ** 2).sum(axis=0))
    return Variables(kept, units, np.array(lengths), relevance, np.ones(len(kept)))


# --------------------------------------------------------------------------------- the solution


def eigenvalues(K):
    """Return the eigenvalues that are not rounding errors."""
    d = np.linalg.eigvalsh(K)
    return d[d > SPENT * d[-1]]


def likelihood(K, U, alpha, n):
    """Return the restricted log-likelihood of the columns of U with covariance I + K/λ."""
    r = U.shape[1]
    V = np.eye(len(K)) + K / alpha
    quadratic = np.trace(U.T @ np.linalg.solve(V, U))
    return -0.5 * r * np.linalg.slogdet(V)[1] - 0.5 * (n - 1) * r * np.log(quadratic)


def cross_validation(K, U, alpha, n):
    """Return the generalised cross-validation error."""
    left = alpha * np.linalg.inv(K + alpha * np.eye(len(K)))
    fitted = len(K) - np.trace(left)
    return np.sum((left @ U) ** 2) / (n - fitted - 1.0) ** 2


def best_alpha(K, U, alpha, n, mean):
    """Return λ according to the parameter `alpha`, in units of the mean eigenvalue."""
    if alpha == "reml":
        return max(GRID, key=lambda a: likelihood(K, U, mean * a, n))
    if alpha == "gcv":
        return min(GRID, key=lambda a: cross_validation(K, U, mean * a, n))
    return alpha


def weights(of, power, among=None):
    """Return the factors that multiply columns of length 1.

    Parameters
    ----------
    among
        The variables over which the mean of the squares is 1; by default all.
    """
    among = of if among is None else among
    squares = []
    for one in np.atleast_1d(power):
        mean = np.mean(among.relevance ** (2 * one) * among.mu)
        squares.append(of.relevance ** (2 * one) * of.mu / mean)
    return np.sqrt(np.mean(squares, axis=0))


def solve(of, U, *, n_components=10, relevance_power=2.0, alpha="reml", n=None, size=None):
    """Return the components of variables; None if all relevances are 0.

    Parameters
    ----------
    of, U
        The variables, and an orthonormal basis of the target.
    n, size
        Observations minus dimensions of covariates, and the total weight; default: number of rows.
    """
    if not np.any(of.relevance > 0.0):
        return None
    n, size = (len(U) if given is None else given for given in (n, size))
    w = weights(of, relevance_power)
    W = of.units * w
    K = W @ W.T
    mean = mean_eigenvalue(K, len(w), n)
    alpha = best_alpha(K, U, alpha, n, mean)
    inner, first = axes(W, U, n_components, mean * alpha)
    inner = inner * np.sqrt(size) / np.linalg.norm(W @ inner, axis=0)[:first].max()
    signs = np.sign([b[np.argmax(np.abs(b))] for b in (w[:, None] * inner).T])
    inner = inner * signs
    return Found((w / of.lengths)[:, None] * inner, W @ inner, alpha, inner)


def mean_eigenvalue(K, p, n):
    return np.trace(K) / max(1.0, min(p, n - 1.0))


def axes(W, U, q, alpha):
    """Return [F, E] and the size of F; E is scaled so that none of it varies more than F."""
    C, h = W.T @ W, W.T @ U
    A = np.linalg.solve(C + alpha * np.eye(len(C)), h)
    values, Q = np.linalg.eigh(h.T @ A)
    values, Q = values[::-1], Q[:, ::-1]
    F = A @ Q[:, values > SPENT * max(values[0], 0.0)][:, :q]
    F = F / np.linalg.norm(F, axis=0)
    explained = C @ F @ np.linalg.pinv(F.T @ C @ F) @ F.T @ C
    E = np.linalg.eigh(C - explained)[1]
    left = min(q, len(eigenvalues(C))) - F.shape[1]
    E = E[:, ::-1][:, : max(0, left)]
    E = E - F @ np.linalg.solve(F.T @ C @ F, F.T @ C @ E)
    if E.shape[1]:
        varies = np.linalg.norm(W @ F, axis=0).min() / np.linalg.norm(W @ E, axis=0).max()
        E = E * min(1.0, varies)
    return np.hstack([F, E]), F.shape[1]


# ------------------------------------------------------------------------------------- the pool


class Pool:
    """Representatives with their weights.

    Attributes
    ----------
    units_of
        Name -> unit vector, in order of arrival.
    mu
        Name -> μ.
    threshold
        A column whose ρ² does not exceed this by more than `TIE` (relative) is rejected.
    admitted, vanished
        Number of admitted columns, and the part of their weight that was lost in pruning.
    """

    def __init__(self, limit, U, given=None):
        self.limit, self.U, self.given = limit, U, given
        self.units_of, self.length, self.mu = {}, {}, {}
        self.threshold, self.admitted, self.vanished = 0.0, 0, 0.0

    def learn(self, name, x):
        """Learn one column; return whether it was admitted."""
        one = variables(x[:, None], self.U, [name], self.given)
        if not one.names or one.relevance[0] ** 2 <= self.threshold * (1.0 + TIE):
            return False
        self.units_of[name], self.length[name] = one.units[:, 0], one.lengths[0]
        self.mu[name] = 1.0
        self.admitted += 1
        if len(self.units_of) >= 2 * self.limit:
            self.prune()
        return True

    def merge(self, other):
        self.units_of |= other.units_of
        self.length |= other.length
        self.mu |= other.mu
        self.threshold = max(self.threshold, other.threshold)
        self.admitted += other.admitted
        self.vanished += other.vanished
        if len(self.units_of) >= 2 * self.limit:
            self.prune()

    def prune(self):
        of = self.variables()
        kept, value = representatives(of, self.limit)
        mu = of.mu.sum()
        of = handed_over(of, kept)
        self.vanished += mu - of.mu.sum()
        self.threshold = max(self.threshold, value)
        self.units_of = {name: self.units_of[name] for name in of.names}
        self.length = {name: self.length[name] for name in of.names}
        self.mu = dict(zip(of.names, of.mu.tolist(), strict=True))

    def variables(self):
        units = np.array(list(self.units_of.values())).reshape(len(self.units_of), len(self.U)).T
        relevance = np.sqrt(((self.U.T @ units) ** 2).sum(axis=0))
        lengths, mu = (np.array(list(part.values())) for part in (self.length, self.mu))
        return Variables(list(self.units_of), units, lengths, relevance, mu)

    def pruned(self):
        """Return the variables as a pruning to the limit would leave them now."""
        return cut_back(self.variables(), self.limit)


def cut_back(of, limit):
    """Return at most `limit` variables, with the remaining weight of the others added to theirs."""
    if len(of.names) <= limit:
        return of
    return handed_over(of, representatives(of, limit)[0])


def representatives(of, limit):
    """Return the indices of the kept variables, ascending, and the new admission threshold.

    They are the pivots of a Cholesky factorization of diag(w) R diag(w), with w = √(μρ²); the last
    pivot is the threshold. If the rank is smaller, the most relevant others that are no copies are
    added, and the threshold is the smallest squared relevance of these, or 0 if too few are kept.
    """
    R = of.units.T @ of.units
    w = np.sqrt(of.mu) * of.relevance
    A = w[:, None] * R * w
    kept, first, value = [], max(np.diag(A)), 0.0
    while len(kept) < limit:
        left = np.where(np.isin(np.arange(len(A)), kept), -np.inf, np.diag(A))
        j = int(np.argmax(left >= left.max() * (1.0 - TIE)))
        if left[j] <= PIVOT * first:
            break
        value = left[j]
        kept.append(j)
        A = A - np.outer(A[:, j], A[:, j]) / A[j, j]
    if len(kept) == limit:
        return sorted(kept), value
    for j in ranked(of.relevance):
        if len(kept) < limit and j not in kept and (R[j, kept] ** 2).max(initial=0.0) <= COPY:
            kept.append(j)
            value = of.relevance[j] ** 2
    return sorted(kept), value if len(kept) == limit else 0.0


def ranked(relevance):
    """Return indices by descending relevance; ties are in order of arrival."""
    left, order = list(range(len(relevance))), []
    while left:
        highest = max(relevance[j] for j in left)
        order.append(next(j for j in left if relevance[j] >= highest - TIE))
        left.remove(order[-1])
    return order


def handed_over(of, kept):
    """Return the kept variables; each other one adds μR⁴ to the one it correlates with most."""
    R = of.units.T @ of.units
    mu = of.mu[kept].copy()
    for j in range(len(of.names)):
        if j not in kept:
            squares = R[j, kept] ** 2
            heir = int(np.argmax(squares >= squares.max() - TIE))
            mu[heir] += of.mu[j] * squares[heir] ** 2
    return of.those(kept)._replace(mu=mu)


# ------------------------------------------------------------- the pool alongside a Gram matrix


def candidates(X, U, most):
    """Return the columns of the final pool: whenever it has 4m columns, 2m are kept."""
    of = variables(X, U)
    kept, threshold = [], 0.0
    for j, relevance in enumerate(of.relevance):
        if relevance > max(threshold, TIE):
            kept.append(j)
        if len(kept) >= 4 * most:
            first = ranked(of.relevance[kept] / of.relevance[kept].max())[: 2 * most]
            kept = sorted(kept[i] for i in first)
            threshold = of.relevance[kept].min()
    return of.those(kept)


# --------------------------------------------------------------------------- what a model shows


def regressed(scores, W, n, rest):
    """Return coefficients of weighted columns W for the scores: one ridge regression for each.

    The ridge minimises the generalised cross-validation error, but is at least what the other
    columns, whose squared weights sum to `rest`, add to K's diagonal if they are orthogonal.
    """
    K, found = W @ W.T, []
    mean = mean_eigenvalue(K, W.shape[1], n)
    for z in scores.T:
        alpha = mean * best_alpha(K, z[:, None] / np.linalg.norm(z), "gcv", n, mean)
        alpha = max(alpha, rest / len(z))
        found.append(np.linalg.solve(W.T @ W + alpha * np.eye(W.shape[1]), W.T @ z))
    return np.column_stack(found)


def as_long(inner, W, scores):
    """Return coefficients of W scaled so that the components are as long as the scores."""
    return inner * np.linalg.norm(scores, axis=0) / np.linalg.norm(W @ inner, axis=0)


def by_pool(found, of, w, n):
    """Return loadings of a pool's variables, with weights w, that approximate the components."""
    W = of.units * w
    inner = regressed(found.scores, W, n, others(found, W))
    return (w / of.lengths)[:, None] * as_long(inner, W, found.scores)


def others(found, W):
    """Return the sum of the squared weights of all other columns; over all it is their number."""
    return max(len(found.inner) - np.sum(W**2), 0.0)


def largest(found, of, most):
    """Return the indices of the `most` variables with the longest rows before D, ascending."""
    length = np.linalg.norm(found.inner, axis=1)
    return sorted(ranked(length / length.max())[:most])


def by_largest(found, of, w, indices, n):
    """Return the loadings of these variables; the residual scores are regressed on them."""
    W, inner = of.units[:, indices] * w[indices], found.inner[indices]
    inner = inner + regressed(found.scores - W @ inner, W, n, others(found, W))
    return (w / of.lengths)[indices][:, None] * as_long(inner, W, found.scores)


def above_noise(of, U, p, tolerance=0.0):
    """Return the number of columns above the noise floor of p columns."""
    return int(np.sum(of.relevance > noise.floor(len(U), U.shape[1], p) + tolerance))


def pooled(X, U, limit, names=None):
    """Return the pool after it has learnt the columns of X."""
    pool = Pool(limit, U)
    for name, x in zip(range(X.shape[1]) if names is None else names, X.T, strict=True):
        pool.learn(name, x)
    return pool


def answer(
    X,
    y,
    *,
    n_components=10,
    max_support=None,
    relevance_power=2.0,
    alpha="reml",
    max_loadings=500,
    target_type="auto",
    covariates=None,
    **_,
):
    """Return the attributes of a model that has learnt the columns of X.

    X and y must be residuals on the covariates; here covariates only reduce the number of rows.
    """
    X, U = np.asarray(X, dtype=np.float64), space.basis(space.numbers(y, target_type))
    n = len(X) - (0 if covariates is None else covariates.shape[1])
    rule = {"relevance_power": relevance_power, "alpha": alpha, "n": n}
    rule["n_components"] = n_components
    if max_support is not None:
        of = pooled(X, U, max_support).pruned()
        found = solve(of, U, **rule)
        loadings = found.loadings
    else:
        of = all_ = variables(X, U)
        found = solve(of, U, **rule)
        loadings = found.loadings
        if len(of.names) >= 4 * max_loadings:
            of = cut_back(candidates(X, U, max_loadings), 2 * max_loadings)
            loadings = by_pool(found, of, weights(of, relevance_power, all_), n)
    return shown(found, of, U, loadings)


def shown(found, of, U, loadings):
    names = [f"ridgecomponents{k}" for k in range(loadings.shape[1])]
    return {
        "relevance": {
            name: np.linalg.norm(U.T @ space.unit(z))
            for name, z in zip(names, found.scores.T, strict=True)
        },
        "loadings": {
            j: {name: b for name, b in zip(names, row, strict=True) if b}
            for j, row in zip(of.names, loadings, strict=True)
        },
        "embedding": found.scores,
        "alpha": found.alpha,
    }
