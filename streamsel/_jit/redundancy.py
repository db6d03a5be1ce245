"""mRMR: what variables tell of the target, against what they have in common with the picks."""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel


@kernel()
def fold(rel: np.ndarray, red: np.ndarray, floor: float, beta: float, scores: np.ndarray) -> None:
    """Fill in what variables score under each stage.

    Parameters
    ----------
    rel
        (p,) what they tell; -inf for who is out of the running.
    red
        (p, >= S - 1) what each has in common with each of the picks, in order; its sign is nothing.
    floor
        What it is at least.
    beta
        Below 0 for the quotient, rel over the mean of red; NaN for rel less that mean; else for rel
        less beta times the sum.
    scores
        (p, S) to be filled.
    """
    p, S = scores.shape
    for j in range(p):
        scores[j, 0] = rel[j]
        total = 0.0
        for s in range(1, S):
            total += max(abs(red[j, s - 1]), floor)
            if rel[j] == -np.inf:
                scores[j, s] = -np.inf
            elif beta < 0.0:
                scores[j, s] = rel[j] * s / total
            elif np.isnan(beta):
                scores[j, s] = rel[j] - total / s
            else:
                scores[j, s] = rel[j] - beta * total
