"""Greedy selection in a kernel matrix: pivoted Cholesky factorization, row by row."""

from __future__ import annotations

import numpy as np

from streamsel._kernels.compile import kernel

# Error bound of scores: equal rows of a matrix product may be rounded differently.
_SCORE_ERROR = 1e-13


@kernel(reordered_sums=True)
def _dot(a: np.ndarray, b: np.ndarray, size: int) -> float:
    dot = 0.0
    for i in range(size):
        dot += a[i] * b[i]
    return dot


@kernel()
def factor(K: np.ndarray, L: np.ndarray) -> None:
    """Fill L (s, s) with the Cholesky factor of the kernel matrix K of variables, K = L Lᵀ.

    Every variable's kernel with itself is 1.
    """
    for j in range(K.shape[0]):
        score = 1.0
        for s in range(j):
            L[j, s] = (K[j, s] - _dot(L[j], L[s], s)) / L[s, s]
            score -= L[j, s] * L[j, s]
        L[j, j] = np.sqrt(score)


@kernel()
def fold_cholesky(
    K: np.ndarray, L: np.ndarray, steps: np.ndarray, begins: np.ndarray, scores: np.ndarray
) -> None:
    """Fill the scores of variables at all steps of a greedy selection in rounds.

    Parameters
    ----------
    K
        (p, s) kernels of the variables with the picks.
    L
        (s, s) Cholesky factors of the picks, one diagonal block per round.
    steps, begins, scores
        As in `gram_schmidt.fold_deflation`.
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
    """Fill a variable's row of the factor from `start` to `stop`; return its remaining score.

    Parameters
    ----------
    k
        (p,) its kernels with all variables.
    row, score
        Its row and score up to `start`.
    start, stop
        First and last pivot of the part to fill, `stop` excluded.
    order, L
        The pivots, and their rows of the factor.
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
    tie_tol: float,
) -> int:
    """Return the candidate with the highest score, the earliest under ties; -1 if there is none.

    Its score is then in `bound`, which has scores after the first `applied` directions, or -1.0 for
    excluded candidates.
    """
    top = 0
    for j in range(bound.size):
        if bound[j] > bound[top]:
            top = j
    highest = -np.inf
    for i in range(-1, bound.size):
        j = top if i < 0 else i
        if bound[j] != -1.0 and bound[j] >= highest * (1.0 - tie_tol):
            bound[j] = _advance(K[j], T[j], bound[j], applied[j], directions, order, L)
            applied[j] = max(applied[j], directions)
            highest = max(highest, bound[j])
    for j in range(bound.size):
        if bound[j] != -1.0 and bound[j] >= highest * (1.0 - tie_tol):
            return j
    return -1


@kernel()
def refill_by_cholesky(
    K: np.ndarray,
    is_excluded: np.ndarray,
    is_new: np.ndarray,
    order: np.ndarray,
    L: np.ndarray,
    before: tuple[np.ndarray, ...],
    n_planned: int,
    after: tuple[np.ndarray, ...],
    tie_tol: float,
    zero_tol: float,
) -> int:
    """Pick round by round, as `gram_schmidt.refill_by_deflation` does, in a kernel matrix.

    Parameters
    ----------
    K
        (p, p) kernels of the candidates with one another.
    is_excluded, is_new
        As in `gram_schmidt.refill_by_deflation`.
    order, L
        (w,), (w, w) buffers for the picks of a round, and for their rows.
    before, n_planned, after
        As in `gram_schmidt.refill_by_deflation`, but with rows of the factor, (m, w), instead of
        directions.
    tie_tol, zero_tol
        Scores that differ by no more than `tie_tol` are equal; those up to `zero_tol` are zero.

    Returns
    -------
    How many picks `after` has.
    """
    indices, scores, numbers, rows = after
    old_indices, old_scores, old_numbers, old_rows = before
    p = is_excluded.size
    T = np.empty((p, L.shape[0]))
    bound, applied = np.empty(p), np.empty(p, dtype=np.int64)
    n, number, start = 0, 0, 0
    while n < indices.size:
        stop = start
        while stop < n_planned and old_numbers[stop] == old_numbers[start]:
            stop += 1
        for j in range(p):
            bound[j] = -1.0 if is_excluded[j] else 1.0
            applied[j] = 0
        n_kept = 0
        if stop > start:
            while (
                n_kept < min(stop - start, indices.size - n)
                and not is_excluded[old_indices[start + n_kept]]
            ):
                order[n_kept], L[n_kept] = old_indices[start + n_kept], old_rows[start + n_kept]
                n_kept += 1
            for j in range(p):
                # Count the round's leading picks that clearly have higher scores.
                s = 0 if is_new[j] and not is_excluded[j] else n_kept
                while s < n_kept:
                    if (
                        bound[j]
                        < old_scores[start + n_kept - 1] * (1.0 - 2.0 * tie_tol) - _SCORE_ERROR
                    ):
                        break
                    if bound[j] >= old_scores[start + s] * (1.0 - 2.0 * tie_tol) - _SCORE_ERROR:
                        n_kept = s
                        break
                    bound[j] = _advance(K[j], T[j], bound[j], s, s + 1, order, L)
                    s += 1
                    applied[j] = s
            for j in range(p):
                if applied[j] > n_kept:
                    # Another candidate has shortened the prefix.
                    applied[j] = n_kept
                    bound[j] = 1.0 - _dot(T[j], T[j], n_kept)
            for s in range(n_kept, stop - start):
                # The rows of later picks of the round are known.
                j = old_indices[start + s]
                if not is_excluded[j]:
                    T[j, :n_kept] = old_rows[start + s, :n_kept]
                    bound[j] -= _dot(T[j], T[j], n_kept)
                    applied[j] = n_kept
        for s in range(n_kept):
            indices[n + s], scores[n + s] = old_indices[start + s], old_scores[start + s]
            is_excluded[indices[n + s]] = True
            bound[indices[n + s]] = -1.0
        n_picked = n_kept
        while n + n_picked < indices.size:
            j = _best(K, T, bound, applied, order, L, n_picked, tie_tol)
            if j < 0 or bound[j] <= zero_tol:
                break
            order[n_picked], L[n_picked, :n_picked] = j, T[j, :n_picked]
            L[n_picked, n_picked] = np.sqrt(bound[j])
            indices[n + n_picked], scores[n + n_picked] = j, bound[j]
            bound[j], is_excluded[j] = -1.0, True
            n_picked += 1
        if n_picked == 0:
            break
        for s in range(n_picked):
            numbers[n + s], rows[n + s] = number, L[s]
        n += n_picked
        number += 1
        for s in range(start, stop):
            is_new[old_indices[s]] = True
        start = stop
    return n
