"""Alpha-investing by definition: a regression for every column, and the wealth after each test.

A constant column is not tested. A column that the selected variables explain has p = 1, and so has
every column once no variance of the target, or no degree of freedom, is left. A residual below
1e-10 of a sum of squares counts as zero.
"""

import numpy as np
from scipy import stats

from tests.reference import target

SPENT = 1e-10


def answer(
    X, y, *, initial_wealth=0.5, payout=0.5, max_candidates=None, target_type="auto", **ignored,
):  # fmt: skip
    """Return the columns selected, in order, with the p-values that they were selected by."""
    path = investments(
        X, y, wealth=initial_wealth, payout=payout, most=max_candidates, kind=target_type
    )
    taken = [test for test in path if test["taken"]]
    return {
        "selected": [test["column"] for test in taken],
        "scores": {test["column"]: test["relevance"] for test in taken},
        "p_values": {test["column"]: test["p_value"] for test in taken},
        "rounds": {test["column"]: 0 for test in taken},
    }


def investments(X, y, *, wealth, payout, most=None, kind="auto", covariates=()):
    """Return one dict per test: the column, its p-value and alpha, and the wealth before it.

    Covariates, linearly independent, are selected before the first column.
    """
    X = np.asarray(X, dtype=np.float64)
    U = target.basis(target.numbers(y, kind))
    path, selected = [], [target.unit(target.centred(z)) for z in covariates]
    for j, x in enumerate(X.T):
        if np.ptp(x) == 0:
            continue
        if len(selected) - len(covariates) == most:
            break
        relevance, p_value = test(x, U, selected)
        alpha = wealth / (2 * (len(path) + 1))
        taken = p_value < alpha
        path.append(
            {"column": j, "relevance": relevance, "p_value": p_value, "alpha": alpha}
            | {"wealth": wealth, "taken": taken}
        )
        wealth += payout - alpha if taken else -alpha
        if taken:
            selected.append(target.unit(target.centred(x)))
    return path


def test(x, U, selected):
    """Return correlation with the target, given the selected, and the p-value of the F test."""
    left = residual(target.unit(target.centred(x)), selected)
    U = np.column_stack([residual(u, selected) for u in U.T])
    directions, singular, _ = np.linalg.svd(U, full_matrices=False)
    directions = directions[:, singular**2 > SPENT]
    r, n = directions.shape[1], len(x)
    free = n - 1 - len(selected) - r
    if left @ left < SPENT or r == 0 or free <= 0:
        return 0.0, 1.0
    share = float(np.sum((directions.T @ left) ** 2) / (left @ left))
    if share > 1.0 - SPENT:
        return 1.0, 0.0
    return np.sqrt(share), float(stats.f.sf(share / (1 - share) * free / r, r, free))


def residual(v, selected):
    """Return the least-squares residual of a vector."""
    if not selected:
        return v
    S = np.column_stack(selected)
    for _ in range(2):
        v = v - S @ np.linalg.lstsq(S, v, rcond=None)[0]
    return v
