"""Greedy selection in coordinates: column-pivoted Gram-Schmidt, evaluated lazily."""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel

# A score that is found by subtraction, rather than as the length of a residual, is true to this.
_ROUGH = 1e-13


@kernel()
def _copy(source: np.ndarray, to: np.ndarray) -> None:
    """Copy a vector: what `to[:] = source` does, which takes numba ten times as long to compile."""
    for i in range(source.size):
        to[i] = source[i]


@kernel(reordered_sums=True)
def _less(g: np.ndarray, score: float, Q: np.ndarray) -> float:
    """Return what directions Q leave of a score of g, by subtraction."""
    for s in range(Q.shape[0]):
        dot = 0.0
        for i in range(g.shape[0]):
            dot += g[i] * Q[s, i]
        score -= dot * dot
    return score


@kernel(reordered_sums=True)
def _sweep(Q: np.ndarray, q: np.ndarray) -> float:
    """Take the directions Q out of q; return the squared length of what is left."""
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
def direction(G: np.ndarray, Q: np.ndarray, j: int, q: np.ndarray) -> float:
    """Fill q with the unit residual of row j of G after Q; return its squared length.

    Twice is enough (Kahan): the second sweep leaves q orthogonal to Q to rounding.
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
def best(G: np.ndarray, bound: np.ndarray, applied: np.ndarray, Q: np.ndarray, tie: float) -> int:
    """Return the candidate of the highest score, the earliest among equals; -1 if there is none.

    Parameters
    ----------
    G
        (p, r) coordinates of the candidates.
    bound
        (p,) their scores after the first `applied` directions: upper bounds, for taking out
        directions only lowers them. -1.0 for those that are out of the running.
    Q
        (s, r) orthonormal directions taken out of the projector so far.
    tie
        Scores within this relative distance are equal.
    """
    top = 0
    for j in range(bound.size):
        if bound[j] > bound[top]:
            top = j
    if bound.size == 0 or bound[top] == -1.0:
        return -1
    bound[top] = highest = _less(G[top], bound[top], Q[applied[top] :])
    applied[top] = Q.shape[0]
    bar, second = highest * (1.0 - 2.0 * tie) - 2.0 * _ROUGH, -np.inf
    guess = top
    for j in range(bound.size):
        if bound[j] >= bar and j != guess:
            if applied[j] < Q.shape[0]:
                bound[j] = _less(G[j], bound[j], Q[applied[j] :])
                applied[j] = Q.shape[0]
            if bound[j] > highest:
                second, highest, top = highest, bound[j], j
                bar = highest * (1.0 - 2.0 * tie) - 2.0 * _ROUGH
            else:
                second = max(second, bound[j])
    if second < bar:
        return top
    # Too near for scores that were found by subtraction: the residuals decide.
    q, highest = np.empty(G.shape[1]), 0.0
    for j in range(bound.size):
        if bound[j] >= bar:
            _copy(G[j], q)
            bound[j] = _sweep(Q, q)
            highest = max(highest, bound[j])
    for j in range(bound.size):
        if bound[j] >= highest * (1.0 - tie):
            return j
    return -1


@kernel()
def run(
    G: np.ndarray,
    bound: np.ndarray,
    applied: np.ndarray,
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
    G, bound, applied
        As in `best`; those picked are out of the running.
    Q
        (r, r) directions, of which the first `directions` are taken out of the projector already;
        each pick adds one.
    places, scores
        Filled with the picks and their scores.
    """
    n = 0
    while n < places.shape[0] and directions + n < Q.shape[0]:
        held = Q[: directions + n]
        j = best(G, bound, applied, held, tie)
        if j < 0:
            break
        score = direction(G, held, j, Q[directions + n])
        if score <= spent:
            break
        bound[j] = -1.0
        places[n], scores[n] = j, score
        n += 1
    return n


@kernel(reordered_sums=True)
def fold(
    G: np.ndarray, Q: np.ndarray, steps: np.ndarray, begins: np.ndarray, scores: np.ndarray
) -> None:
    """Fill the scores of candidates under all stages of a greedy: as picks of rounds stand.

    Parameters
    ----------
    G
        (p, r) coordinates.
    Q
        (s, r) directions of the picks.
    steps, begins
        (S,) which pick stands at each stage, -1 for none, and where a round begins.
    scores
        (p, S).
    """
    a = np.empty(G.shape[1])
    for j in range(G.shape[0]):
        for s in range(steps.size):
            if begins[s]:
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


@kernel(reordered_sums=True)
def _unbeaten(g: np.ndarray, score: float, Q: np.ndarray, scores: np.ndarray, tie: float) -> int:
    """Return how many of a round's leading picks candidate g is surely no match for.

    Parameters
    ----------
    score
        Of g before the first of them.
    Q, scores
        (s, r) their directions, and (s,) scores, which fall.
    """
    same = scores.shape[0]
    lowest = scores[same - 1] * (1.0 - 2.0 * tie) - _ROUGH
    for s in range(same):
        if score < lowest:
            return same
        if score >= scores[s] * (1.0 - 2.0 * tie) - _ROUGH:
            return s
        dot = 0.0
        for i in range(g.shape[0]):
            dot += g[i] * Q[s, i]
        score -= dot * dot
    return same


@kernel()
def refill(
    G: np.ndarray,
    whole: np.ndarray,
    taken: np.ndarray,
    contends: np.ndarray,
    Q: np.ndarray,
    before: tuple[np.ndarray, ...],
    planned: int,
    after: tuple[np.ndarray, ...],
    tie: float,
    spent: float,
) -> int:
    """Pick round by round until `after` is full or candidates run out; return how many.

    Of each round before, the leading picks that no candidate beats which was not there then are
    taken over; the rest of the round is picked anew.

    Parameters
    ----------
    G
        (p, r) coordinates of the candidates.
    whole
        (p,) their scores under the whole projector.
    taken
        (p,) candidates that are out of the running.
    contends
        (p,) candidates that were not there in the first round before; it is overwritten.
    Q
        (r, r) room for the directions of a round.
    before, after
        Places, scores and numbers of their rounds, (m,) each, and directions (m, r) of the picks
        before, so many as are planned, and of those now.
    """
    places, scores, numbers, directions = after
    old_places, old_scores, old_numbers, old_directions = before
    p, r = G.shape
    bound, applied = np.empty(p), np.empty(p, dtype=np.int64)
    n, number, start = 0, 0, 0
    while n < places.size:
        stop = start
        while stop < planned and old_numbers[stop] == old_numbers[start]:
            stop += 1
        same = 0
        if stop > start:
            while same < min(stop - start, places.size - n) and not taken[old_places[start + same]]:
                same += 1
            for j in range(p):
                if same and contends[j] and not taken[j]:
                    kept = slice(start, start + same)
                    same = _unbeaten(G[j], whole[j], old_directions[kept], old_scores[kept], tie)
        for s in range(same):
            places[n + s], scores[n + s] = old_places[start + s], old_scores[start + s]
            _copy(old_directions[start + s], Q[s])
            taken[places[n + s]] = True
        found = same
        if n + same < places.size and same < r:
            for j in range(p):
                bound[j], applied[j] = -1.0 if taken[j] else whole[j], 0
            rest = slice(n + same, places.size)
            state = (G, bound, applied, Q, same)
            found += run(*state, tie, spent, places[rest], scores[rest])
            for j in places[n + same : n + found]:
                taken[j] = True
        if found == 0:
            break
        for s in range(found):
            numbers[n + s] = number
            _copy(Q[s], directions[n + s])
        n += found
        number += 1
        for s in range(start, stop):
            contends[old_places[s]] = True
        start = stop
    return n


@kernel()
def _close(
    stays: np.ndarray,
    G: np.ndarray,
    whole: np.ndarray,
    origin: np.ndarray,
    moved: np.ndarray,
) -> int:
    """Close the gaps in arrays of candidates; fill where each has moved, return how many stay."""
    size = 0
    for j in range(stays.size):
        if stays[j]:
            _copy(G[j], G[size])
            whole[size], origin[size] = whole[j], origin[j]
            moved[j] = size
            size += 1
    return size


@kernel()
def sift(
    G: np.ndarray,
    whole: np.ndarray,
    origin: np.ndarray,
    size: int,
    fresh: int,
    offered: np.ndarray,
    bounds: np.ndarray,
    plan: tuple[np.ndarray, ...],
    planned: int,
    limit: int,
    discarded: float,
    floor: float,
    tie: float,
    spent: float,
) -> tuple[int, int, int, float, float]:
    """Admit candidates to a pool one by one, and cut it back to its limit at twice as many.

    Parameters
    ----------
    G, whole
        (2m, r) coordinates and (2m,) squared relevances, of the pool's `size` candidates first.
    origin
        (2m,) filled with where each candidate comes from: its place in the pool, or, counted on
        from `size`, its place among the offered.
    fresh
        How many of the candidates were there at the last cut.
    offered, bounds
        (b, r), (b,) coordinates and squared relevances of those that would come in.
    plan
        The picks of the last cut, as `refill` has them; they are overwritten.
    planned
        How many they are.
    limit, discarded, floor
        As the pool has them.

    Returns
    -------
    The new size, fresh, planned, discarded and floor.
    """
    held, room, r = size, whole.size, G.shape[1]
    for j in range(size):
        origin[j] = j
    Q = np.empty((r, r))
    most = plan[0].size
    now = (
        np.empty(most, dtype=np.int64),
        np.empty(most),
        np.empty(most, dtype=np.int64),
        np.empty((most, r)),
    )
    moved = np.empty(room, dtype=np.int64)
    taken, contends = np.empty(room, dtype=np.bool_), np.empty(room, dtype=np.bool_)
    for i in range(bounds.size):
        if bounds[i] <= floor:
            discarded = max(discarded, bounds[i])
            continue
        _copy(offered[i], G[size])
        whole[size], origin[size] = bounds[i], held + i
        size += 1
        if size < 2 * limit:
            continue
        taken[:size] = False
        contends[:fresh] = False
        contends[fresh:size] = True
        candidates = (G[:size], whole[:size], taken[:size], contends[:size])
        planned = refill(*candidates, Q, plan, planned, now, tie, spent)
        floor = 0.0
        if planned == limit:
            floor = np.inf
            for score in now[1]:
                floor = min(floor, score)
        for j in range(size):
            if not taken[j]:
                discarded = max(discarded, whole[j])
        size = fresh = _close(taken[:size], G, whole, origin, moved)
        for s in range(planned):
            plan[0][s] = moved[now[0][s]]
            plan[1][s], plan[2][s] = now[1][s], now[2][s]
            _copy(now[3][s], plan[3][s])
    return size, fresh, planned, discarded, floor
