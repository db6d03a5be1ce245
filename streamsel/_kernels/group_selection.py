"""Greedy selection of groups of axes: by projection, and by forward selection with a ridge."""

from __future__ import annotations

import numpy as np

from streamsel._kernels.compile import kernel

# A gradient up to this part, and this number, above its threshold leaves coefficients at 0.
_ENTRY_RTOL, _ROUNDING = 1e-9, 1e-14


@kernel(reordered_sums=True)
def _dot(a: np.ndarray, b: np.ndarray) -> float:
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@kernel()
def _subtract(a: np.ndarray, t: float, b: np.ndarray) -> None:
    for i in range(a.size):
        a[i] -= t * b[i]


@kernel()
def _deflate(rows: np.ndarray, Q: np.ndarray, first: int, last: int) -> float:
    """Project directions first to last out of rows; return their sum of squares."""
    total = 0.0
    for row in rows:
        for s in range(first, last):
            _subtract(row, _dot(row, Q[s]), Q[s])
        total += _dot(row, row)
    return total


@kernel()
def _add_span(rows: np.ndarray, Q: np.ndarray, n: int, zero_tol: float) -> int:
    """Append an orthonormal basis of the span of rows to Q (n, r), and return its new length."""
    left = rows.copy()
    first = n
    while n < Q.shape[0]:
        best, largest = 0, 0.0
        for i in range(len(left)):
            square = _dot(left[i], left[i])
            if square > largest:
                best, largest = i, square
        if largest <= zero_tol:
            break
        q = Q[n]
        for i in range(q.size):
            q[i] = left[best, i]
        for _ in range(2):
            # Earlier directions are projected out of the rows already, up to rounding.
            for s in range(n):
                _subtract(q, _dot(q, Q[s]), Q[s])
            root = np.sqrt(_dot(q, q))
            for i in range(q.size):
                q[i] /= root
        for i in range(len(left)):
            _subtract(left[i], _dot(left[i], q), q)
        n += 1
        if n - first == len(left):
            break
    return n


@kernel()
def pick_groups_by_projection(
    C: np.ndarray,
    starts: np.ndarray,
    bound: np.ndarray,
    tie: float,
    zero_tol: float,
    picks: np.ndarray,
    scores: np.ndarray,
) -> int:
    """Pick groups of largest mean squared projection, each then projected out; return how many.

    A score under an earlier projector is an upper bound now, so that only groups whose bound
    reaches the best score are updated (Minoux 1978).

    Parameters
    ----------
    C
        (a, r) coordinates of the axes, one group after the other; overwritten.
    starts
        (p + 1,) index of the first axis of each group, and a.
    bound
        (p,) mean square length of each group's axes; negative for one that is excluded.
        Overwritten.
    tie
        Scores within this relative distance are equal, and the earlier group comes first.
    zero_tol
        A score up to this is 0.
    picks, scores
        (k,) filled.
    """
    p, n_directions, n_picks = bound.size, 0, 0
    applied = np.zeros(p, dtype=np.int64)
    Q = np.empty((C.shape[1], C.shape[1]))
    while n_picks < picks.size:
        best = zero_tol
        for g in range(p):
            if bound[g] > best and applied[g] < n_directions:
                rows = C[starts[g] : starts[g + 1]]
                bound[g] = _deflate(rows, Q, applied[g], n_directions) / len(rows)
                applied[g] = n_directions
            best = max(best, bound[g])
        if best <= zero_tol:
            break
        for g in range(p):
            if bound[g] >= best * (1.0 - tie):
                rows = C[starts[g] : starts[g + 1]]
                if applied[g] < n_directions:
                    bound[g] = _deflate(rows, Q, applied[g], n_directions) / len(rows)
                    applied[g] = n_directions
                if bound[g] >= best * (1.0 - tie):
                    picks[n_picks], scores[n_picks] = g, bound[g]
                    n_picks += 1
                    bound[g] = -1.0
                    n_directions = _add_span(rows, Q, n_directions, zero_tol)
                    break
    return n_picks


@kernel()
def _gain(M: np.ndarray, A: np.ndarray, ridge: float, zero_tol: float, q: int) -> float:
    """Return the trace of Aᵀ (ridge I + M)⁻¹ A divided by q, by pivoted Cholesky; M is overwritten.

    Without a ridge, directions of M up to `zero_tol` are left out, and the divisor is the number of
    the others; -inf if there is none.
    """
    r = A.shape[1]
    total, rank = 0.0, 0
    is_done = np.zeros(q, dtype=np.bool_)
    for _ in range(q):
        pivot = -1
        for i in range(q):
            if not is_done[i] and (pivot < 0 or M[i, i] > M[pivot, pivot]):
                pivot = i
        d = M[pivot, pivot] + ridge
        if d <= zero_tol:
            break
        is_done[pivot] = True
        rank += 1
        for k in range(r):
            total += A[pivot, k] * A[pivot, k] / d
        for i in range(q):
            if not is_done[i]:
                factor = M[i, pivot] / d
                for k in range(r):
                    A[i, k] -= factor * A[pivot, k]
                for j in range(q):
                    if not is_done[j]:
                        M[i, j] -= factor * M[pivot, j]
    if not rank:
        return -np.inf
    return total / (q if ridge > 0.0 else rank)


@kernel()
def forward_scores_of_groups(
    C: np.ndarray,
    T: np.ndarray,
    D: np.ndarray,
    starts: np.ndarray,
    stages: np.ndarray,
    ridge: float,
    zero_tol: float,
    scores: np.ndarray,
) -> None:
    """Fill the scores of groups under each stage of forward selection.

    Parameters
    ----------
    C, T
        (a, r) coordinates of the axes, and (a, >= d) their products with the directions of the
        picks.
    D
        (>= d, r) coordinates of these directions.
    starts
        (p + 1,) index of the first axis of each group, and a.
    stages
        (S,) number of directions of each stage, ascending.
    ridge, zero_tol
        The ridge penalty; without one, a residual square up to which a direction is explained.
    scores
        (p, S) filled; -inf for a group that the picks explain, without a ridge.
    """
    p, S = scores.shape
    r = C.shape[1]
    for g in range(p):
        first, q = starts[g], starts[g + 1] - starts[g]
        M, A = np.zeros((q, q)), np.empty((q, r))
        for i in range(q):
            M[i, i] = 1.0
            for k in range(r):
                A[i, k] = C[first + i, k]
        done = 0
        for s in range(S):
            for t in range(done, stages[s]):
                for i in range(q):
                    u = T[first + i, t]
                    for k in range(r):
                        A[i, k] -= u * D[t, k]
                    for j in range(q):
                        M[i, j] -= u * T[first + j, t]
            done = stages[s]
            scores[g, s] = _gain(M.copy(), A.copy(), ridge, zero_tol, q) if q else -np.inf


@kernel()
def remove_directions(M: np.ndarray, T: np.ndarray, starts: np.ndarray) -> None:
    """Subtract T Tᵀ from the (q, q) products of each group's axes, one group after the other.

    Parameters
    ----------
    M
        The products; changed in place.
    T
        (a, d) products of the axes with directions.
    starts
        (p + 1,) index of the first axis of each group, and a.
    """
    offset = 0
    for g in range(starts.size - 1):
        first, q = starts[g], starts[g + 1] - starts[g]
        for i in range(q):
            for j in range(i + 1):
                total = _dot(T[first + i], T[first + j])
                M[offset + i * q + j] -= total
                if j < i:
                    M[offset + j * q + i] -= total
        offset += q * q


@kernel()
def gains_of_groups(
    A: np.ndarray,
    M: np.ndarray,
    starts: np.ndarray,
    ridge: float,
    zero_tol: float,
    scores: np.ndarray,
) -> None:
    """Fill the scores (p,) of groups in forward selection.

    Parameters
    ----------
    A
        (a, r) coordinates of the axes' residuals on the picks, one group after the other.
    M
        The (q, q) products of the residuals, as in `remove_directions`.
    starts, ridge, zero_tol
        As in `forward_scores_of_groups`.
    """
    offset = 0
    for g in range(scores.size):
        first, q = starts[g], starts[g + 1] - starts[g]
        block = M[offset : offset + q * q].copy().reshape((q, q))
        rows = A[first : first + q].copy()
        scores[g] = _gain(block, rows, ridge, zero_tol, q) if q else -np.inf
        offset += q * q


@kernel()
def group_descent(
    K: np.ndarray,
    starts: np.ndarray,
    threshold: np.ndarray,
    ridge: float,
    rounds: int,
    tolerance: float,
    b: np.ndarray,
    slope: np.ndarray,
) -> float:
    """Minimise ½ bᵀKb - aᵀb + Σ threshold ‖b_g‖ + ½ ridge ‖b‖² by block coordinate descent.

    Parameters
    ----------
    K
        (s, s) the form, whose blocks of one group are the identity.
    starts
        (p + 1,) index of the first coefficient of each group, and s.
    threshold
        (p,) penalty of the length of each group's coefficients.
    ridge, rounds, tolerance
        The ridge penalty, the maximal number of rounds, and the largest change of a group that
        ends the descent.
    b, slope
        (s,) the coefficients, and a - Kb; changed in place.

    Returns
    -------
    The largest change of a group in the last round.
    """
    largest = 0.0
    for _ in range(rounds):
        largest = 0.0
        for g in range(threshold.size):
            first, last = starts[g], starts[g + 1]
            square, was_zero = 0.0, True
            for i in range(first, last):
                z = slope[i] + b[i]
                square += z * z
                was_zero = was_zero and b[i] == 0.0
            length = np.sqrt(square)
            # Among identical groups the first keeps the coefficients, whatever the rounding.
            if was_zero and length <= threshold[g] * (1.0 + _ENTRY_RTOL) + _ROUNDING:
                continue
            if length <= threshold[g]:
                factor = 0.0
            else:
                factor = (1.0 - threshold[g] / length) / (1.0 + ridge)
            change = 0.0
            for i in range(first, last):
                z = slope[i] + b[i]
                moved = factor * z - b[i]
                change += moved * moved
                b[i] = factor * z
                # Coefficients of one group do not interact.
                for j in range(first):
                    slope[j] -= moved * K[i, j]
                slope[i] -= moved
                for j in range(last, b.size):
                    slope[j] -= moved * K[i, j]
            largest = max(largest, np.sqrt(change))
        if largest <= tolerance:
            break
    return largest
