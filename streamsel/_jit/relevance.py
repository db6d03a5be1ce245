"""Coordinates and relevance in the target space, and the rotation that keeps relevance."""

from __future__ import annotations

import math

import numpy as np

from streamsel._jit.policy import kernel

# Two components whose correlation is no more than this have none.
_UNCORRELATED = 1e-14


@kernel(reordered_sums=True)
def coordinates(K: np.ndarray, norm: np.ndarray, W: np.ndarray, G: np.ndarray) -> None:
    """Fill G (p, r) with W (r, c) times each row of K (p, c) divided by its norm (p,).

    A row of norm zero gets coordinates zero. Each row alone, always by the same instructions: a
    matrix product would round a row differently from one place of a block to another.
    """
    p, c = K.shape
    row = np.empty(c)
    for j in range(p):
        if norm[j] == 0.0:
            G[j] = 0.0
            continue
        for k in range(c):
            row[k] = K[j, k] / norm[j]
        for i in range(W.shape[0]):
            a = 0.0
            for k in range(c):
                a += W[i, k] * row[k]
            G[j, i] = a


@kernel()
def _correlations(
    cxy: np.ndarray, m2: np.ndarray, weight: float, signed: bool, out: np.ndarray
) -> None:
    """Fill out (p,) as `relevances` does, for one target: without a branch, several at a time."""
    for j in range(m2.shape[0]):
        constant = m2[j] == 0.0
        found = weight * (cxy[j] / (1.0 if constant else np.sqrt(m2[j])))
        found = found if signed else abs(found)
        # min and max, which ask about NaN first, would take seven times as long.
        found = 1.0 if found > 1.0 else found  # noqa: FURB136
        found = -1.0 if found < -1.0 else found  # noqa: FURB136
        out[j] = -np.inf if constant else found


@kernel(reordered_sums=True)
def relevances(
    cxy: np.ndarray, m2: np.ndarray, W: np.ndarray, signed: bool, out: np.ndarray
) -> None:
    """Fill out (p,) with the lengths of the coordinates W cxy / √m2, or their one number if signed.

    A constant variable (m2 = 0) gets -inf: it is less relevant than any other. Rounding does not
    take a relevance beyond 1.
    """
    r, c = W.shape
    if r == 1 and c == 1:
        _correlations(np.ravel(cxy), m2, W[0, 0], signed, out)
        return
    row = np.empty(c)
    for j in range(m2.shape[0]):
        if m2[j] == 0.0:
            out[j] = -np.inf
            continue
        norm = np.sqrt(m2[j])
        for k in range(c):
            row[k] = cxy[j, k] / norm
        square = 0.0
        a = 0.0
        for i in range(r):
            a = 0.0
            for k in range(c):
                a += W[i, k] * row[k]
            square += a * a
        out[j] = max(-1.0, min(1.0, a if signed else np.sqrt(square)))


@kernel()
def _copy(source: np.ndarray, to: np.ndarray) -> None:
    """Copy a vector; in a loop, for an assignment of arrays takes two seconds more to compile."""
    for i in range(to.shape[0]):
        to[i] = source[i]


@kernel(reordered_sums=True)
def join(
    Z: np.ndarray,
    Mzz: np.ndarray,
    Czy: np.ndarray,
    x: np.ndarray,
    mean: float,
    m2: float,
    cxy: np.ndarray,
    k: int,
) -> None:
    """Make a variable, given by its values x (n,) and moments, component k, the last one.

    Parameters
    ----------
    Z, Mzz, Czy
        (q, n) scores, (q, q) and (q, c) sums of products, a component a row.
    """
    z = Z[k]
    for i in range(x.shape[0]):
        z[i] = x[i] - mean
    for other in range(k):
        y = Z[other]
        dot = 0.0
        for i in range(z.shape[0]):
            dot += z[i] * y[i]
        Mzz[k, other] = dot
        Mzz[other, k] = dot
    Mzz[k, k] = m2
    _copy(cxy, Czy[k])


@kernel()
def _turn(u: np.ndarray, v: np.ndarray, cos: float, sin: float) -> None:
    for i in range(u.shape[0]):
        a = u[i]
        b = v[i]
        u[i] = cos * a + sin * b
        v[i] = cos * b - sin * a


@kernel()
def _move(
    Z: np.ndarray,
    Mzz: np.ndarray,
    Czy: np.ndarray,
    B: np.ndarray,
    relevance: np.ndarray,
    source: int,
    to: int,
) -> None:
    _copy(Z[source], Z[to])
    _copy(Czy[source], Czy[to])
    _copy(Mzz[source], Mzz[to])
    _copy(Mzz[:, source], Mzz[:, to])
    Mzz[to, to] = Mzz[source, source]
    _copy(B[:, source], B[:, to])
    relevance[to] = relevance[source]


@kernel()
def _least(
    relevance: np.ndarray, arrival: np.ndarray, count: int, apart_from: int, tie: float
) -> int:
    """Return the component of the least relevance, the first to arrive among equals."""
    lowest = np.inf
    for k in range(count):
        if k != apart_from:
            lowest = min(lowest, relevance[k])
    found = -1
    for k in range(count):
        least = k != apart_from and relevance[k] <= lowest + tie
        if least and (found < 0 or arrival[k] < arrival[found]):
            found = k
    return found


@kernel()
def _explained(u: np.ndarray, v: np.ndarray, given: np.ndarray) -> float:
    """Return what covariates explain of the product of two components, from their own with them."""
    total = 0.0
    for i in range(given.shape[0]):
        a = 0.0
        b = 0.0
        for k in range(given.shape[1]):
            a += given[i, k] * u[k]
            b += given[i, k] * v[k]
        total += a * b
    return total


@kernel()
def rotate_and_drop(
    Z: np.ndarray,
    Mzz: np.ndarray,
    Czy: np.ndarray,
    B: np.ndarray,
    relevance: np.ndarray,
    arrival: np.ndarray,
    count: int,
    W: np.ndarray,
    given: np.ndarray,
    jacobi: bool,
    signed: bool,
    tie: float,
    vanished: float,
) -> bool:
    """Rotate the two least relevant components and drop the lesser: step 3 of SOSPCA.

    The least relevant is the first of the pair, the next the second. The survivor ends in the lower
    of their slots and the last component in the other: no third one moves.

    Parameters
    ----------
    Z, Mzz, Czy, B, relevance, arrival
        (q, n) scores, (q, q) and (q, c) sums of products, (s, q) loadings, (q,) relevances and
        order of arrival; the first `count` components are held.
    W, given
        (r, c) weights of the target space, and (d, c) of the covariates.
    jacobi
        Whether to decorrelate exactly rather than by the formula as printed in the paper.
    tie
        Relevances that differ by less are equal.
    vanished
        A rotated component with less than this part of the smaller variance of the pair has none:
        the two were the same variable, and nothing is left of it.

    Returns
    -------
    Whether a variable is left without any loading.
    """
    first = _least(relevance, arrival, count, -1, tie)
    second = _least(relevance, arrival, count, first, tie)
    low, high = min(first, second), max(first, second)
    # Jacobi's first is the direction of most variance whatever the order of the pair, but for
    # signs: where relevance has none, these are those of the slots.
    a, b = (low, high) if jacobi and not signed else (first, second)
    aa = Mzz[a, a] - _explained(Czy[a], Czy[a], given)
    bb = Mzz[b, b] - _explained(Czy[b], Czy[b], given)
    ab = Mzz[a, b] - _explained(Czy[a], Czy[b], given)
    size = math.sqrt(aa) * math.sqrt(bb)
    if abs(ab) <= _UNCORRELATED * size:
        # No rotation, or an exchange: rounding of the angle must not leave loadings of 1e-17, nor
        # its sign decide that of a component.
        cos, sin = (1.0, 0.0) if aa >= bb or not jacobi else (0.0, 1.0)
    else:
        theta = 0.5 * (math.atan2(2.0 * ab, aa - bb) if jacobi else math.atan(2.0 * ab / size))
        cos, sin = math.cos(theta), math.sin(theta)
    _turn(Z[a], Z[b], cos, sin)
    _turn(Czy[a], Czy[b], cos, sin)
    _turn(Mzz[a], Mzz[b], cos, sin)
    _turn(Mzz[:, a], Mzz[:, b], cos, sin)
    _turn(B[:, a], B[:, b], cos, sin)
    left = np.empty(2)
    left[0] = Mzz[a, a] - _explained(Czy[a], Czy[a], given)
    left[1] = Mzz[b, b] - _explained(Czy[b], Czy[b], given)
    found = np.empty(2)
    relevances(np.stack((Czy[a], Czy[b])), np.maximum(left, 0.0), W, signed, found)
    for k in range(2):
        if left[k] <= vanished * min(aa, bb):
            found[k] = -np.inf
    relevance[a], relevance[b] = found
    survivor = a if found[0] > found[1] + tie else b
    came = arrival[first] if survivor == a else arrival[second]
    last = count - 1
    if survivor != low:
        _move(Z, Mzz, Czy, B, relevance, survivor, low)
    if high != last:
        _move(Z, Mzz, Czy, B, relevance, last, high)
        arrival[high] = arrival[last]
    arrival[low] = came
    arrival[last] = 0.0
    Z[last] = 0.0
    Czy[last] = 0.0
    Mzz[last] = 0.0
    Mzz[:, last] = 0.0
    B[:, last] = 0.0
    relevance[last] = 0.0
    for i in range(B.shape[0]):
        loaded = False
        for k in range(last):
            loaded |= B[i, k] != 0.0
        if not loaded:
            return True
    return False


@kernel()
def take_up(
    Z: np.ndarray,
    Mzz: np.ndarray,
    Czy: np.ndarray,
    B: np.ndarray,
    means: np.ndarray,
    relevance: np.ndarray,
    arrival: np.ndarray,
    count: int,
    loaded: int,
    X: np.ndarray,
    mean: np.ndarray,
    m2: np.ndarray,
    cxy: np.ndarray,
    found: np.ndarray,
    bar: float,
    most: int,
    W: np.ndarray,
    given: np.ndarray,
    jacobi: bool,
    signed: bool,
    tie: float,
    vanished: float,
    joined: np.ndarray,
) -> tuple[int, bool, float]:
    """Let the variables above the bar join, one after another, dropping a component for each.

    Parameters
    ----------
    Z, Mzz, Czy, relevance, arrival, W, given, jacobi, signed, tie, vanished
        As in `rotate_and_drop`.
    B, means
        Loadings and means with room for all the variables after the first `loaded`.
    X, mean, m2, cxy, found
        The variables' values (m, n), moments and relevances (m,).
    bar, most
        What a relevance must exceed; it rises once there are so many components.
    joined
        (m,) filled: whether each joined, and stands in B after those before it.

    Returns
    -------
    The number of components, whether a variable is left without any loading, and the bar.
    """
    unloaded = False
    for j in range(found.shape[0]):
        joined[j] = found[j] > bar
        if not joined[j]:
            continue
        join(Z, Mzz, Czy, X[j], mean[j], m2[j], cxy[j], count)
        relevance[count] = found[j]
        arrival[count] = arrival[:count].max() + 1.0 if count else 0.0
        B[loaded] = 0.0
        B[loaded, count] = 1.0
        means[loaded] = mean[j]
        loaded += 1
        count += 1
        if count > most:
            unloaded |= rotate_and_drop(
                *(Z, Mzz, Czy, B[:loaded], relevance, arrival, count),
                *(W, given, jacobi, signed, tie, vanished),
            )
            count -= 1
        if count == most:
            bar = relevance[:count].min() + tie
    return count, unloaded, bar
