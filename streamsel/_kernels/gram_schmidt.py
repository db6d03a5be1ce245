"""Greedy selection by coordinates: column-pivoted Gram-Schmidt with lazily updated scores."""

from __future__ import annotations

import numpy as np

from streamsel._kernels.compile import kernel

# Error bound of a score found by subtraction rather than as the length of a residual.
_SCORE_ERROR = 1e-13


@kernel()
def _copy(source: np.ndarray, to: np.ndarray) -> None:
    """Copy a vector; numba takes ten times as long to compile `to[:] = source`."""
    for i in range(source.size):
        to[i] = source[i]


@kernel(reordered_sums=True)
def _deflated_score(g: np.ndarray, score: float, Q: np.ndarray) -> float:
    """Return a score of g minus the part that directions Q explain."""
    for s in range(Q.shape[0]):
        dot = 0.0
        for i in range(g.shape[0]):
            dot += g[i] * Q[s, i]
        score -= dot * dot
    return score


@kernel(reordered_sums=True)
def _sweep(Q: np.ndarray, q: np.ndarray) -> float:
    """Orthogonalize q against Q in place; return the squared length of the residual."""
    for s in range(Q.shape[0]):
        dot = 0.0
        for i in range(q.shape[0]):
            dot += q[i] * Q[s, i]
        for i in range(q.shape[0]):
            q[i] -= dot * Q[s, i]
    length = 0.0
    for i in range(q.shape[0]):
        length += q[i] * q[i]
    return length


@kernel()
def residual_direction(G: np.ndarray, Q: np.ndarray, j: int, q: np.ndarray) -> float:
    """Fill q with the unit residual of row j of G after Q; return its squared length.

    Two passes suffice (Kahan): the second leaves q orthogonal to Q to rounding.
    """
    _copy(G[j], q)
    score = length = _sweep(Q, q)
    for sweep in range(2):
        if sweep:
            length = _sweep(Q, q)
        if length > 0.0:
            length = np.sqrt(length)
            for i in range(q.size):
                q[i] /= length
    return score


@kernel()
def best_candidate(
    G: np.ndarray, bound: np.ndarray, applied: np.ndarray, Q: np.ndarray, tie: float
) -> int:
    """Return the candidate with the highest score, the earliest under ties; -1 if there is none.

    Parameters
    ----------
    G
        (p, r) coordinates of the candidates.
    bound, applied
        (p,) their scores after the first `applied` directions: upper bounds, since further
        directions only lower them. -1.0 for excluded candidates.
    Q
        (s, r) orthonormal directions removed from the projector so far.
    tie
        Scores within this relative distance are equal.
    """
    top = 0
    for j in range(bound.size):
        if bound[j] > bound[top]:
            top = j
    if bound.size == 0 or bound[top] == -1.0:
        return -1
    bound[top] = highest = _deflated_score(G[top], bound[top], Q[applied[top] :])
    applied[top] = Q.shape[0]
    threshold, second = highest * (1.0 - 2.0 * tie) - 2.0 * _SCORE_ERROR, -np.inf
    first_top = top
    for j in range(bound.size):
        if bound[j] >= threshold and j != first_top:
            if applied[j] < Q.shape[0]:
                bound[j] = _deflated_score(G[j], bound[j], Q[applied[j] :])
                applied[j] = Q.shape[0]
            if bound[j] > highest:
                second, highest, top = highest, bound[j], j
                threshold = highest * (1.0 - 2.0 * tie) - 2.0 * _SCORE_ERROR
            else:
                second = max(second, bound[j])
    if second < threshold:
        return top
    # Too close for scores found by subtraction: compute the residuals.
    q, highest = np.empty(G.shape[1]), 0.0
    for j in range(bound.size):
        if bound[j] >= threshold:
            _copy(G[j], q)
            bound[j] = _sweep(Q, q)
            highest = max(highest, bound[j])
    for j in range(bound.size):
        if bound[j] >= highest * (1.0 - tie):
            return j
    return -1


@kernel()
def deflation_run(
    G: np.ndarray,
    bound: np.ndarray,
    applied: np.ndarray,
    Q: np.ndarray,
    directions: int,
    tie: float,
    zero_tol: float,
    indices: np.ndarray,
    scores: np.ndarray,
) -> int:
    """Pick the best until `indices` is full or no score exceeds `zero_tol`; return how many.

    Parameters
    ----------
    G, bound, applied
        As in `best_candidate`; picks are excluded.
    Q, directions
        (r, r) directions, and how many of them are removed from the projector already; each pick
        adds one.
    tie, zero_tol
        Scores within the relative distance `tie` are equal; those up to `zero_tol` are zero.
    indices, scores
        Filled with the picks and their scores.
    """
    n = 0
    while n < indices.shape[0] and directions + n < Q.shape[0]:
        removed = Q[: directions + n]
        j = best_candidate(G, bound, applied, removed, tie)
        if j < 0:
            break
        score = residual_direction(G, removed, j, Q[directions + n])
        if score <= zero_tol:
            break
        bound[j] = -1.0
        indices[n], scores[n] = j, score
        n += 1
    return n


@kernel(reordered_sums=True)
def fold_deflation(
    G: np.ndarray, Q: np.ndarray, steps: np.ndarray, round_starts: np.ndarray, scores: np.ndarray
) -> None:
    """Fill the scores of candidates at all steps of a greedy selection in rounds.

    Parameters
    ----------
    G
        (p, r) coordinates.
    Q
        (s, r) directions of the picks.
    steps, round_starts
        (S,) the pick at each step, -1 for none, and whether a round starts there.
    scores
        (p, S) filled.
    """
    a = np.empty(G.shape[1])
    for j in range(G.shape[0]):
        for s in range(steps.size):
            if round_starts[s]:
                _copy(G[j], a)
            length = 0.0
            for i in range(a.size):
                length += a[i] * a[i]
            scores[j, s] = length
            if steps[s] >= 0:
                q, dot = Q[steps[s]], 0.0
                for i in range(a.size):
                    dot += a[i] * q[i]
                for i in range(a.size):
                    a[i] -= dot * q[i]


@kernel()
def pick_greedily_1d(
    whole: np.ndarray, tie: float, zero_tol: float, indices: np.ndarray, scores: np.ndarray
) -> int:
    """Pick as `deflation_run` and its restarts do in one dimension, with one pick per round.

    Parameters
    ----------
    whole
        (p,) scores under the whole projector; those of picks are overwritten.
    tie, zero_tol, indices, scores
        As in `deflation_run`.
    """
    for n in range(indices.size):
        top = 0
        for j in range(whole.size):
            if whole[j] > whole[top]:
                top = j
        if whole.size == 0 or whole[top] <= zero_tol:
            return n
        threshold = whole[top] * (1.0 - tie)
        for j in range(whole.size):
            if whole[j] >= threshold:
                indices[n], scores[n] = j, whole[j]
                whole[j] = -1.0
                break
    return indices.size


@kernel(reordered_sums=True)
def _count_clearly_better(
    g: np.ndarray, score: float, Q: np.ndarray, scores: np.ndarray, tie: float
) -> int:
    """Return how many of a round's leading picks clearly have higher scores than candidate g.

    Parameters
    ----------
    g
        (r,) coordinates of the candidate.
    score
        The score of g before the first of them.
    Q, scores
        (s, r) their directions, and (s,) scores, which decrease.
    tie
        Scores within this relative distance are equal.
    """
    n_kept = scores.shape[0]
    lowest = scores[n_kept - 1] * (1.0 - 2.0 * tie) - _SCORE_ERROR
    for s in range(n_kept):
        if score < lowest:
            return n_kept
        if score >= scores[s] * (1.0 - 2.0 * tie) - _SCORE_ERROR:
            return s
        dot = 0.0
        for i in range(g.shape[0]):
            dot += g[i] * Q[s, i]
        score -= dot * dot
    return n_kept


@kernel()
def refill_by_deflation(
    G: np.ndarray,
    whole: np.ndarray,
    is_excluded: np.ndarray,
    is_new: np.ndarray,
    Q: np.ndarray,
    previous: tuple[np.ndarray, ...],
    n_previous: int,
    picked: tuple[np.ndarray, ...],
    tie: float,
    zero_tol: float,
) -> int:
    """Pick round by round until `picked` is full or candidates run out; return how many.

    The leading picks of each previous round are kept up to the first that a new candidate beats;
    the rest of the round is picked again.

    Parameters
    ----------
    G
        (p, r) coordinates of the candidates.
    whole
        (p,) their scores under the whole projector.
    is_excluded
        (p,) candidates that are excluded; picks are added.
    is_new
        (p,) candidates that were absent in the first previous round; overwritten.
    Q
        (r, r) buffer for the directions of a round.
    previous, n_previous, picked
        Indices, scores and round numbers, (m,) each, and directions (m, r) of the previous picks,
        `n_previous` in number, and of the new ones.
    tie, zero_tol
        As in `deflation_run`.
    """
    indices, scores, numbers, directions = picked
    old_indices, old_scores, old_numbers, old_directions = previous
    p, r = G.shape
    bound, applied = np.empty(p), np.empty(p, dtype=np.int64)
    n, number, start = 0, 0, 0
    while n < indices.size:
        stop = start
        while stop < n_previous and old_numbers[stop] == old_numbers[start]:
            stop += 1
        n_kept = 0
        if stop > start:
            while (
                n_kept < min(stop - start, indices.size - n)
                and not is_excluded[old_indices[start + n_kept]]
            ):
                n_kept += 1
            for j in range(p):
                if n_kept and is_new[j] and not is_excluded[j]:
                    kept = slice(start, start + n_kept)
                    n_kept = _count_clearly_better(
                        G[j], whole[j], old_directions[kept], old_scores[kept], tie
                    )
        for s in range(n_kept):
            indices[n + s], scores[n + s] = old_indices[start + s], old_scores[start + s]
            _copy(old_directions[start + s], Q[s])
            is_excluded[indices[n + s]] = True
        n_picked = n_kept
        if n + n_kept < indices.size and n_kept < r:
            for j in range(p):
                bound[j], applied[j] = -1.0 if is_excluded[j] else whole[j], 0
            rest = slice(n + n_kept, indices.size)
            state = (G, bound, applied, Q, n_kept)
            n_picked += deflation_run(*state, tie, zero_tol, indices[rest], scores[rest])
            for j in indices[n + n_kept : n + n_picked]:
                is_excluded[j] = True
        if n_picked == 0:
            break
        for s in range(n_picked):
            numbers[n + s] = number
            _copy(Q[s], directions[n + s])
        n += n_picked
        number += 1
        for s in range(start, stop):
            is_new[old_indices[s]] = True
        start = stop
    return n


@kernel()
def _compact(
    is_kept: np.ndarray,
    G: np.ndarray,
    whole: np.ndarray,
    origin: np.ndarray,
    new_index: np.ndarray,
) -> int:
    """Compact the arrays of candidates; fill the new index of each, return how many are kept."""
    size = 0
    for j in range(is_kept.size):
        if is_kept[j]:
            _copy(G[j], G[size])
            whole[size], origin[size] = whole[j], origin[j]
            new_index[j] = size
            size += 1
    return size


@kernel()
def cut_pool(
    G: np.ndarray,
    whole: np.ndarray,
    origin: np.ndarray,
    size: int,
    n_at_last_cut: int,
    offered: np.ndarray,
    bounds: np.ndarray,
    last_picks: tuple[np.ndarray, ...],
    n_previous: int,
    limit: int,
    discarded: float,
    threshold: float,
    tie: float,
    zero_tol: float,
) -> tuple[int, int, int, float, float]:
    """Add candidates to a pool one by one, and cut it to its limit whenever it has twice as many.

    Parameters
    ----------
    G, whole
        (2m, r) coordinates and (2m,) squared relevances, with the pool's `size` candidates first.
    origin
        (2m,) filled with the origin of each candidate: its index in the pool, or `size` plus its
        index in `offered`.
    size
        Number of candidates in the pool.
    n_at_last_cut
        Number of candidates in the pool after the last cut.
    offered, bounds
        (b, r), (b,) coordinates and squared relevances of the new candidates.
    last_picks
        The picks of the last cut, as `previous` in `refill_by_deflation`; overwritten.
    n_previous
        Their number.
    limit, discarded, threshold
        The pool's capacity, highest discarded score and admission threshold.
    tie, zero_tol
        As in `deflation_run`.

    Returns
    -------
    The new size, n_at_last_cut, n_previous, discarded and threshold.
    """
    n_in_pool, room, r = size, whole.size, G.shape[1]
    for j in range(size):
        origin[j] = j
    Q = np.empty((r, r))
    max_picks = last_picks[0].size
    picks = (
        np.empty(max_picks, dtype=np.int64),
        np.empty(max_picks),
        np.empty(max_picks, dtype=np.int64),
        np.empty((max_picks, r)),
    )
    new_index = np.empty(room, dtype=np.int64)
    is_picked, is_new = np.empty(room, dtype=np.bool_), np.empty(room, dtype=np.bool_)
    for i in range(bounds.size):
        if bounds[i] <= threshold:
            discarded = max(discarded, bounds[i])
            continue
        _copy(offered[i], G[size])
        whole[size], origin[size] = bounds[i], n_in_pool + i
        size += 1
        if size < 2 * limit:
            continue
        is_picked[:size] = False
        is_new[:n_at_last_cut] = False
        is_new[n_at_last_cut:size] = True
        candidates = (G[:size], whole[:size], is_picked[:size], is_new[:size])
        n_previous = refill_by_deflation(
            *candidates, Q, last_picks, n_previous, picks, tie, zero_tol
        )
        threshold = 0.0
        if n_previous == limit:
            threshold = np.inf
            for score in picks[1]:
                threshold = min(threshold, score)
        for j in range(size):
            if not is_picked[j]:
                discarded = max(discarded, whole[j])
        size = n_at_last_cut = _compact(is_picked[:size], G, whole, origin, new_index)
        for s in range(n_previous):
            last_picks[0][s] = new_index[picks[0][s]]
            last_picks[1][s], last_picks[2][s] = picks[1][s], picks[2][s]
            _copy(picks[3][s], last_picks[3][s])
    return size, n_at_last_cut, n_previous, discarded, threshold
