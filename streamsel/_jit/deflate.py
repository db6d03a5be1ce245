"""Greedy selection in coordinates: column-pivoted Gram-Schmidt, evaluated lazily."""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel


@kernel(reordered_sums=True)
def _refresh(R: np.ndarray, bound: np.ndarray, applied: np.ndarray, Q: np.ndarray, j: int) -> None:
    """Take the directions that candidate j has not seen yet out of its residual."""
    r = R.shape[1]
    for s in range(applied[j], Q.shape[0]):
        dot = 0.0
        for i in range(r):
            dot += R[j, i] * Q[s, i]
        for i in range(r):
            R[j, i] -= dot * Q[s, i]
    applied[j] = Q.shape[0]
    score = 0.0
    for i in range(r):
        score += R[j, i] * R[j, i]
    bound[j] = score


@kernel()
def best(
    R: np.ndarray,
    bound: np.ndarray,
    applied: np.ndarray,
    taken: np.ndarray,
    Q: np.ndarray,
    tie: float,
) -> tuple[int, float]:
    """Return the free candidate of the highest score, the earliest among equals, and its score.

    Parameters
    ----------
    R
        (p, r) residuals, each with the first `applied` directions taken out.
    bound
        (p,) squared lengths of R: upper bounds of the scores, for taking out directions only
        shortens.
    taken
        (p,) candidates that are out of the running.
    Q
        (s, r) orthonormal directions taken out of the projector so far.
    tie
        Scores within this relative distance are equal.
    """
    p = R.shape[0]
    top = -1
    for j in range(p):
        if not taken[j] and (top < 0 or bound[j] > bound[top]):
            top = j
    if top < 0:
        return -1, 0.0
    _refresh(R, bound, applied, Q, top)
    highest = bound[top]
    for j in range(p):
        if not taken[j] and bound[j] >= highest * (1.0 - tie):
            if applied[j] < Q.shape[0]:
                _refresh(R, bound, applied, Q, j)
            highest = max(highest, bound[j])
    for j in range(p):
        if not taken[j] and bound[j] >= highest * (1.0 - tie):
            return j, bound[j]
    return -1, 0.0


@kernel(reordered_sums=True)
def direction(G: np.ndarray, Q: np.ndarray, j: int, q: np.ndarray) -> float:
    """Fill q with the unit residual of row j of G after Q; return its squared length.

    Twice is enough (Kahan): the second sweep leaves q orthogonal to Q to rounding.
    """
    r = G.shape[1]
    for i in range(r):
        q[i] = G[j, i]
    score = 0.0
    for sweep in range(2):
        for s in range(Q.shape[0]):
            dot = 0.0
            for i in range(r):
                dot += q[i] * Q[s, i]
            for i in range(r):
                q[i] -= dot * Q[s, i]
        length = 0.0
        for i in range(r):
            length += q[i] * q[i]
        if sweep == 0:
            score = length
        if length > 0.0:
            length = np.sqrt(length)
            for i in range(r):
                q[i] /= length
    return score


@kernel()
def run(
    G: np.ndarray,
    R: np.ndarray,
    bound: np.ndarray,
    applied: np.ndarray,
    taken: np.ndarray,
    Q: np.ndarray,
    directions: int,
    tie: float,
    spent: float,
    places: np.ndarray,
    scores: np.ndarray,
) -> int:
    """Pick the best until places are full or nothing above `spent` is left; return how many.

    Parameters
    ----------
    G
        (p, r) coordinates of the candidates; R, bound, applied and taken as in `best`.
    Q
        (r, r) directions, of which the first `directions` are taken out of the projector already;
        each pick adds one.
    places, scores
        Filled with the picks and their scores.
    """
    n = 0
    while n < places.shape[0] and directions + n < Q.shape[0]:
        held = Q[: directions + n]
        j, score = best(R, bound, applied, taken, held, tie)
        if score <= spent:
            break
        taken[j] = True
        places[n] = j
        scores[n] = direction(G, held, j, Q[directions + n])
        n += 1
    return n


@kernel()
def run_singly(
    whole: np.ndarray, tie: float, spent: float, places: np.ndarray, scores: np.ndarray
) -> int:
    """Pick as `run` and its restarts do in a space of one direction, where a round is one pick.

    Parameters
    ----------
    whole
        (p,) scores under the whole projector; those picked are overwritten.
    """
    for n in range(places.size):
        top = 0
        for j in range(whole.size):
            if whole[j] > whole[top]:
                top = j
        if whole.size == 0 or whole[top] <= spent:
            return n
        bar = whole[top] * (1.0 - tie)
        for j in range(whole.size):
            if whole[j] >= bar:
                places[n], scores[n] = j, whole[j]
                whole[j] = -1.0
                break
    return places.size
