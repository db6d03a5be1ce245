"""LASSO by definition: an active set for each alpha, changed by one variable at a time.

The objective is (1/n) Σ loss + α ρ Σ s|w| + α (1 - ρ)/2 Σ s² w², where s is the standard deviation
of a column, or 1 without `scale`. The loss is ½ (y - Xw)², centred, or the logistic loss with an
intercept. For non-zero coefficients the optimality conditions are linear equations, which are
solved exactly. The variable that violates its condition most enters; one whose sign would change
leaves. The result is checked against the conditions.
"""

import numpy as np

from tests.reference import target

TIE = 1e-9
NOTHING = 1e-12


def quadratic(Q, a, penalty, ridge, b):
    """Minimise `½ bᵀQb - aᵀb + Σ penalty|b| + ½ Σ ridge b²` (feature-sign search)."""
    b = b.copy()
    signs = np.sign(b)
    for _ in range(10_000):
        A = np.flatnonzero(signs)
        if A.size:
            H = Q[np.ix_(A, A)] + np.diag(ridge[A])
            way = np.linalg.solve(H, a[A] - penalty[A] * signs[A]) - b[A]
            turns = (b[A] + way) * signs[A] <= 0.0
            far = np.full(A.size, 1.0)
            far[turns] = -b[A][turns] / way[turns]
            b[A] += far.min() * way
            if turns.any():
                first = far <= far.min() * (1.0 + 1e-12)
                b[A[first]] = signs[A[first]] = 0.0
                continue
        slopes = a - Q @ b
        above = np.where(signs == 0.0, np.abs(slopes) / penalty, 0.0)
        if above.max(initial=0.0) <= 1.0 + TIE:
            return b
        enters = next(j for j in range(b.size) if above[j] >= above.max() * (1.0 - TIE))
        signs[enters] = np.sign(slopes[enters])
    raise AssertionError("no solution was found")


def logistic(U, y, penalty, ridge, c, b):
    """Minimise `Σ log(1 + exp(η)) - yη + Σ penalty|b| + ½ Σ ridge b²`, η = c + Ub, by Newton."""

    def value(c, b):
        eta = c + U @ b
        return np.logaddexp(0, eta).sum() - y @ eta + penalty @ np.abs(b) + 0.5 * ridge @ b**2

    for _ in range(200):
        chance = 1.0 / (1.0 + np.exp(-(c + U @ b)))
        v, rest = chance * (1.0 - chance) + 1e-12, y - chance
        V = U - (v @ U) / v.sum()  # the intercept, projected out
        Q = V.T @ (v[:, None] * V)
        way = quadratic(Q, V.T @ rest + Q @ b, penalty, ridge, b) - b
        of_c = (rest.sum() - v @ U @ way) / v.sum()
        far = 1.0
        while value(c + far * of_c, b + far * way) > value(c, b) + 1e-12 and far > 1e-9:
            far /= 2.0
        c, b = c + far * of_c, b + far * way
        if np.abs(way).max(initial=0.0) < 1e-12 and abs(of_c) < 1e-12:
            break
    return c, b


def check(slopes, b, penalty, ridge):
    """Check the optimality conditions."""
    active = b != 0.0
    assert (np.abs(slopes) <= penalty * (1.0 + 1e-7))[~active].all()
    off = np.abs(slopes - ridge * b - penalty * np.sign(b))[active]
    assert (off <= 1e-7 * penalty[active]).all()


def columns(X):
    """Return the varying columns, centred and of length 1, their indices and their lengths."""
    live = [j for j in range(X.shape[1]) if np.ptp(X[:, j]) > 0]
    centred = [target.centred(X[:, j]) for j in live]
    lengths = np.array([np.linalg.norm(x) for x in centred])
    return np.array([x / l for x, l in zip(centred, lengths, strict=True)]).T, live, lengths


def number(k, alphas):
    """Return how many variables to select; None for all of the last solution."""
    if k is None:
        return 20 if alphas is None else None
    return None if k == "all" else k


def solutions(
    X, y, *, k=None, alphas=None, l1_ratio=1.0, family="gaussian", n_alphas=100,
    alpha_min_ratio=1e-3, scale=True, **ignored,
):  # fmt: skip
    """Return alphas, and for each the intercept of centred columns and all coefficients."""
    X, given = np.asarray(X, dtype=np.float64), alphas
    n = len(X)
    U, live, lengths = columns(X)
    if not len(live):
        return [], []
    weights = np.full(len(live), n**-0.5) if scale else 1.0 / lengths
    if family == "gaussian":
        y = target.centred(np.asarray(y, dtype=np.float64).ravel())
        size, c = np.linalg.norm(y), 0.0
        y = y / size
    else:
        y = (np.asarray(y) == np.unique(y)[1]) * 1.0
        size, c = 1.0, np.log(y.mean() / (1.0 - y.mean()))
    slopes = U.T @ (y - y.mean())
    if np.abs(slopes).max(initial=0.0) <= NOTHING:
        return [], []
    if alphas is None:
        most = (np.abs(slopes) / weights).max() * size / (n * l1_ratio)
        alphas = np.geomspace(most, most * alpha_min_ratio, n_alphas)
    b = np.zeros(len(live))
    found, k = [], number(k, given)
    for alpha in np.sort(np.atleast_1d(alphas))[::-1]:
        penalty = n * alpha * l1_ratio * weights / size
        ridge = n * alpha * (1.0 - l1_ratio) * weights**2
        if family == "gaussian":
            b = quadratic(U.T @ U, U.T @ y, penalty, ridge, b)
            check(U.T @ (y - U @ b), b, penalty, ridge)
        else:
            c, b = logistic(U, y, penalty, ridge, c, b)
            check(U.T @ (y - 1.0 / (1.0 + np.exp(-(c + U @ b)))), b, penalty, ridge)
        w = np.zeros(X.shape[1])
        w[live] = b * size / lengths
        found.append((float(alpha), c, w))
        if k is not None and np.count_nonzero(b) >= k:
            break
    return [alpha for alpha, _, _ in found], found


def answer(X, y, **params):
    """Return the results of a model that has learnt the columns of X."""
    X = np.asarray(X, dtype=np.float64)
    alphas, found = solutions(X, y, **params)
    k = number(params.get("k"), params.get("alphas"))
    if not found:
        return {"selected": [], "scores": {}, "rounds": {}, "relevance": {}}
    _, _, last = found[-1]
    active = np.flatnonzero(last).tolist()
    entered = {j: next(s for s, (_, _, w) in enumerate(found) if w[j] != 0.0) for j in active}
    sizes = X.std(axis=0) if params.get("scale", True) else np.ones(X.shape[1])
    weight = {j: abs(last[j]) * sizes[j] for j in active}
    order = []
    while len(order) < len(active):  # by entry, weight and index
        rest = [j for j in active if j not in order]
        rest = [j for j in rest if entered[j] == min(entered[i] for i in rest)]
        heaviest = max(weight[j] for j in rest)
        order.append(next(j for j in rest if weight[j] >= heaviest * (1.0 - TIE)))
    order = order[:k]
    if params.get("family", "gaussian") == "gaussian":
        of_target = target.basis(np.asarray(y, dtype=np.float64).reshape(len(X), -1))
    else:
        of_target = target.basis(target.numbers(y, "class"))
    return {
        "selected": order,
        "scores": {j: alphas[entered[j]] for j in order},
        "rounds": {j: entered[j] for j in order},
        "relevance": {j: target.relevance(X[:, j], of_target) for j in order},
        "alphas": alphas,
        "coefficients": {j: float(last[j]) for j in active},
    }
