"""Greedy selection in a kernel matrix: pivoted Cholesky factorisation, row by row."""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel

# What stands in two rows of a matrix product may be rounded differently.
_ROUGH = 1e-13


@kernel(reordered_sums=True)
def _dot(a: np.ndarray, b: np.ndarray, size: int) -> float:
    dot = 0.0
    for i in range(size):
        dot += a[i] * b[i]
    return dot


@kernel()
def factor(K: np.ndarray, L: np.ndarray) -> None:
    """Fill L (s, s) with the factor of the kernel matrix K of variables, K = L Lᵀ, in their order.

    Every variable's kernel with itself is 1.
    """
    for j in range(K.shape[0]):
        score = 1.0
        for s in range(j):
            L[j, s] = (K[j, s] - _dot(L[j], L[s], s)) / L[s, s]
            score -= L[j, s] * L[j, s]
        L[j, j] = np.sqrt(score)


@kernel()
def fold(
    K: np.ndarray, L: np.ndarray, steps: np.ndarray, begins: np.ndarray, scores: np.ndarray
) -> None:
    """Fill the scores of variables under all stages of a greedy: as picks of rounds stand.

    Parameters
    ----------
    K
        (p, s) kernels of the variables with the picks.
    L
        (s, s) the picks' factors, round by round along the diagonal.
    steps, begins, scores
        As in `deflate.fold`.
    """
    row = np.empty(L.shape[0])
    for j in range(K.shape[0]):
        score, first = 1.0, 0
        for s in range(steps.size):
            i = steps[s]
            if begins[s]:
                score, first = 1.0, i
            scores[j, s] = score
            if i >= 0:
                row[i] = (K[j, i] - _dot(row[first:], L[i, first:], i - first)) / L[i, i]
                score -= row[i] * row[i]


@kernel()
def _advance(
    k: np.ndarray,
    row: np.ndarray,
    score: float,
    start: int,
    stop: int,
    order: np.ndarray,
    L: np.ndarray,
) -> float:
    """Fill a variable's row of the factor from `start` to `stop`; return what that leaves of it.

    Parameters
    ----------
    k
        (p,) its kernels with all variables.
    row, score
        Its row so far, and what is left of it so far.
    order, L
        The variables along which the rows are, and their own rows.
    """
    for s in range(start, stop):
        row[s] = (k[order[s]] - _dot(row, L[s], s)) / L[s, s]
        score -= row[s] * row[s]
    return score


@kernel()
def _best(
    K: np.ndarray,
    T: np.ndarray,
    bound: np.ndarray,
    applied: np.ndarray,
    order: np.ndarray,
    L: np.ndarray,
    directions: int,
    tie: float,
) -> int:
    """Return the candidate of the highest score, the earliest among equals; -1 if there is none.

    Its score is then in `bound`, which is that after the first `applied` directions, -1.0 for those
    out of the running.
    """
    top = 0
    for j in range(bound.size):
        if bound[j] > bound[top]:
            top = j
    highest = -np.inf
    for i in range(-1, bound.size):
        j = top if i < 0 else i
        if bound[j] != -1.0 and bound[j] >= highest * (1.0 - tie):
            bound[j] = _advance(K[j], T[j], bound[j], applied[j], directions, order, L)
            applied[j] = max(applied[j], directions)
            highest = max(highest, bound[j])
    for j in range(bound.size):
        if bound[j] != -1.0 and bound[j] >= highest * (1.0 - tie):
            return j
    return -1


@kernel()
def refill(
    K: np.ndarray,
    taken: np.ndarray,
    contends: np.ndarray,
    order: np.ndarray,
    L: np.ndarray,
    before: tuple[np.ndarray, ...],
    planned: int,
    after: tuple[np.ndarray, ...],
    tie: float,
    spent: float,
) -> int:
    """Pick round by round, as `deflate.refill` does, in a kernel matrix.

    Parameters
    ----------
    K
        (p, p) kernels of the candidates with one another.
    taken, contends, before, planned, after
        As in `deflate.refill`, but that for directions stand rows of the factor, (m, w).
    order, L
        (w,), (w, w) room for the picks of a round, and for their rows.

    Returns
    -------
    How many picks `after` has.
    """
    places, scores, numbers, rows = after
    old_places, old_scores, old_numbers, old_rows = before
    p = taken.size
    T = np.empty((p, L.shape[0]))
    bound, applied = np.empty(p), np.empty(p, dtype=np.int64)
    n, number, start = 0, 0, 0
    while n < places.size:
        stop = start
        while stop < planned and old_numbers[stop] == old_numbers[start]:
            stop += 1
        for j in range(p):
            bound[j] = -1.0 if taken[j] else 1.0
            applied[j] = 0
        same = 0
        if stop > start:
            while same < min(stop - start, places.size - n) and not taken[old_places[start + same]]:
                order[same], L[same] = old_places[start + same], old_rows[start + same]
                same += 1
            for j in range(p):
                # How many of the round's leading picks is it no match for?
                s = 0 if contends[j] and not taken[j] else same
                while s < same:
                    if bound[j] < old_scores[start + same - 1] * (1.0 - 2.0 * tie) - _ROUGH:
                        break
                    if bound[j] >= old_scores[start + s] * (1.0 - 2.0 * tie) - _ROUGH:
                        same = s
                        break
                    bound[j] = _advance(K[j], T[j], bound[j], s, s + 1, order, L)
                    s += 1
                    applied[j] = s
            for j in range(p):
                if applied[j] > same:
                    # Another one has ended the prefix earlier.
                    applied[j] = same
                    bound[j] = 1.0 - _dot(T[j], T[j], same)
            for s in range(same, stop - start):
                # The row of what was picked later is known.
                j = old_places[start + s]
                if not taken[j]:
                    T[j, :same] = old_rows[start + s, :same]
                    bound[j] -= _dot(T[j], T[j], same)
                    applied[j] = same
        for s in range(same):
            places[n + s], scores[n + s] = old_places[start + s], old_scores[start + s]
            taken[places[n + s]] = True
            bound[places[n + s]] = -1.0
        found = same
        while n + found < places.size:
            j = _best(K, T, bound, applied, order, L, found, tie)
            if j < 0 or bound[j] <= spent:
                break
            order[found], L[found, :found] = j, T[j, :found]
            L[found, found] = np.sqrt(bound[j])
            places[n + found], scores[n + found] = j, bound[j]
            bound[j], taken[j] = -1.0, True
            found += 1
        if found == 0:
            break
        for s in range(found):
            numbers[n + s], rows[n + s] = number, L[s]
        n += found
        number += 1
        for s in range(start, stop):
            contends[old_places[s]] = True
        start = stop
    return n
