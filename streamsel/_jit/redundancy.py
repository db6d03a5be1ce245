"""mRMR scores: relevance to the target against redundancy with the picks."""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel


@kernel()
def fold(
    rel: np.ndarray, red: np.ndarray, min_redundancy: float, beta: float, scores: np.ndarray
) -> None:
    """Fill the scores of variables at each step.

    Parameters
    ----------
    rel
        (p,) relevances; -inf for excluded variables.
    red
        (p, >= S - 1) redundancies with each of the picks, in order; their signs are ignored.
    min_redundancy
        The smallest redundancy used.
    beta
        Negative for the quotient, rel over the mean of red; NaN for rel minus that mean; else for
        rel minus beta times the sum.
    scores
        (p, S) filled.
    """
    p, S = scores.shape
    for j in range(p):
        scores[j, 0] = rel[j]
        total = 0.0
        for s in range(1, S):
            total += max(abs(red[j, s - 1]), min_redundancy)
            if rel[j] == -np.inf:
                scores[j, s] = -np.inf
            elif beta < 0.0:
                scores[j, s] = rel[j] * s / total
            elif np.isnan(beta):
                scores[j, s] = rel[j] - total / s
            else:
                scores[j, s] = rel[j] - beta * total
