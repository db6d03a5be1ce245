"""Coordinates and relevance in the target space; component rotation of SOSPCA."""

from __future__ import annotations

import math

import numpy as np

from streamsel._kernels.compile import kernel

# A correlation of two components up to this is zero.
_UNCORRELATED = 1e-14
# A rotated component whose variance is below this part of the pair's smaller one has lost digits.
_CANCELLED = 1e-4


@kernel(reordered_sums=True)
def coordinates(K: np.ndarray, norm: np.ndarray, W: np.ndarray, G: np.ndarray) -> None:
    """Fill G (p, r) with W (r, c) times each row of K (p, c) divided by its norm (p,).

    A row of norm zero gets coordinates zero. Each row is computed alone by the same instructions:
    the rounding of a matrix product would depend on the position in a block.
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
    """Fill out (p,) as `relevances` does, for one target; branch-free, so that it is vectorized."""
    for j in range(m2.shape[0]):
        constant = m2[j] == 0.0
        found = weight * (cxy[j] / (1.0 if constant else np.sqrt(m2[j])))
        found = found if signed else abs(found)
        # min and max, which check for NaN, would take seven times as long.
        found = 1.0 if found > 1.0 else found  # noqa: FURB136
        found = -1.0 if found < -1.0 else found  # noqa: FURB136
        out[j] = -np.inf if constant else found


@kernel(reordered_sums=True)
def relevances(
    cxy: np.ndarray, m2: np.ndarray, W: np.ndarray, signed: bool, out: np.ndarray
) -> None:
    """Fill out (p,) with the lengths of the coordinates W cxy / √m2.

    If signed, there is one coordinate, which keeps its sign. A constant variable (m2 = 0) gets
    -inf, which is below every relevance. Relevances are clipped to 1.
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
    """Copy a vector in a loop; an assignment of arrays takes two seconds longer to compile."""
    for i in range(to.shape[0]):
        to[i] = source[i]


@kernel(reordered_sums=True)
def append_component(
    Z: np.ndarray,
    Mzz: np.ndarray,
    Czy: np.ndarray,
    x: np.ndarray,
    mean: float,
    m2: float,
    cxy: np.ndarray,
    k: int,
) -> None:
    """Append a variable, given by its values x (n,) and moments, as component k.

    Parameters
    ----------
    Z, Mzz, Czy
        (q, n) scores, (q, q) and (q, c) sums of products, one row per component.
    x, mean, m2, cxy
        (n,) values of the variable, their mean and sum of squares, and (c,) products with the
        target.
    k
        Index of the new component.
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
def _rotate_pair(u: np.ndarray, v: np.ndarray, cos: float, sin: float) -> None:
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
def _least_relevant(
    relevance: np.ndarray, arrival: np.ndarray, count: int, excluded: int, tie: float
) -> int:
    """Return the least relevant component, the first to arrive under ties."""
    lowest = np.inf
    for k in range(count):
        if k != excluded:
            lowest = min(lowest, relevance[k])
    first = -1
    for k in range(count):
        is_tied = k != excluded and relevance[k] <= lowest + tie
        if is_tied and (first < 0 or arrival[k] < arrival[first]):
            first = k
    return first


@kernel(reordered_sums=True)
def _sum_of_squares(z: np.ndarray) -> float:
    total = 0.0
    for i in range(z.shape[0]):
        total += z[i] * z[i]
    return total


@kernel()
def _explained_by_covariates(u: np.ndarray, v: np.ndarray, projection: np.ndarray) -> float:
    """Return the part of the product of two components that covariates explain."""
    total = 0.0
    for i in range(projection.shape[0]):
        a = 0.0
        b = 0.0
        for k in range(projection.shape[1]):
            a += projection[i, k] * u[k]
            b += projection[i, k] * v[k]
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
    covariate_weights: np.ndarray,
    jacobi: bool,
    signed: bool,
    tie: float,
    zero_rtol: float,
    are_scores: bool,
) -> bool:
    """Rotate the two least relevant components and drop the less relevant one: step 3 of SOSPCA.

    The least relevant component comes first in the pair. The survivor gets the lower of their
    indices, and the last component the higher; no other component is moved.

    Parameters
    ----------
    Z, Mzz, Czy, B, relevance, arrival, count
        (q, n) scores, (q, q) and (q, c) sums of products, (s, q) loadings, (q,) relevances and
        order of arrival; the first `count` components are in use.
    W, covariate_weights
        (r, c) weights of the target space, and (d, c) of the covariates.
    jacobi
        Whether to decorrelate exactly rather than by the formula as printed in the paper.
    signed
        Whether relevance is signed, as in `relevances`.
    tie
        Relevances that differ by less are equal.
    zero_rtol
        A rotated component with a variance below this fraction of the smaller one of the pair is
        zero: the two were the same variable.
    are_scores
        Whether Z are all scores of the components, so that the sum of squares of a component that
        is small after the rotation can be computed from them, without the digits that its moments
        have lost.

    Returns
    -------
    Whether some variable has no loading left.
    """
    first = _least_relevant(relevance, arrival, count, -1, tie)
    second = _least_relevant(relevance, arrival, count, first, tie)
    low, high = min(first, second), max(first, second)
    # Jacobi's first direction has the most variance in either order of the pair, and signs depend
    # on the order: where relevance is unsigned, the order is that of the indices.
    a, b = (low, high) if jacobi and not signed else (first, second)
    aa = Mzz[a, a] - _explained_by_covariates(Czy[a], Czy[a], covariate_weights)
    bb = Mzz[b, b] - _explained_by_covariates(Czy[b], Czy[b], covariate_weights)
    ab = Mzz[a, b] - _explained_by_covariates(Czy[a], Czy[b], covariate_weights)
    smaller = min(Mzz[a, a], Mzz[b, b])
    size = math.sqrt(aa) * math.sqrt(bb)
    if abs(ab) <= _UNCORRELATED * size:
        # No rotation, or an exchange: rounding of the angle must not leave loadings of 1e-17 or
        # decide the sign of a component.
        cos, sin = (1.0, 0.0) if aa >= bb or not jacobi else (0.0, 1.0)
    else:
        theta = 0.5 * (math.atan2(2.0 * ab, aa - bb) if jacobi else math.atan(2.0 * ab / size))
        cos, sin = math.cos(theta), math.sin(theta)
    _rotate_pair(Z[a], Z[b], cos, sin)
    _rotate_pair(Czy[a], Czy[b], cos, sin)
    _rotate_pair(Mzz[a], Mzz[b], cos, sin)
    _rotate_pair(Mzz[:, a], Mzz[:, b], cos, sin)
    _rotate_pair(B[:, a], B[:, b], cos, sin)
    if are_scores:
        for k in (a, b):
            if Mzz[k, k] < _CANCELLED * smaller:
                Mzz[k, k] = _sum_of_squares(Z[k])
    variances = np.empty(2)
    variances[0] = Mzz[a, a] - _explained_by_covariates(Czy[a], Czy[a], covariate_weights)
    variances[1] = Mzz[b, b] - _explained_by_covariates(Czy[b], Czy[b], covariate_weights)
    new_relevances = np.empty(2)
    relevances(np.stack((Czy[a], Czy[b])), np.maximum(variances, 0.0), W, signed, new_relevances)
    for k in range(2):
        if variances[k] <= zero_rtol * min(aa, bb):
            new_relevances[k] = -np.inf
    relevance[a], relevance[b] = new_relevances
    survivor = a if new_relevances[0] > new_relevances[1] + tie else b
    survivor_arrival = arrival[first] if survivor == a else arrival[second]
    last = count - 1
    if survivor != low:
        _move(Z, Mzz, Czy, B, relevance, survivor, low)
    if high != last:
        _move(Z, Mzz, Czy, B, relevance, last, high)
        arrival[high] = arrival[last]
    arrival[low] = survivor_arrival
    arrival[last] = 0.0
    Z[last] = 0.0
    Czy[last] = 0.0
    Mzz[last] = 0.0
    Mzz[:, last] = 0.0
    B[:, last] = 0.0
    relevance[last] = 0.0
    for i in range(B.shape[0]):
        is_loaded = False
        for k in range(last):
            is_loaded |= B[i, k] != 0.0
        if not is_loaded:
            return True
    return False


@kernel()
def add_above_threshold(
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
    threshold: float,
    max_components: int,
    W: np.ndarray,
    covariate_weights: np.ndarray,
    jacobi: bool,
    signed: bool,
    tie: float,
    zero_rtol: float,
    is_added: np.ndarray,
) -> tuple[int, bool, float]:
    """Add the variables above the threshold one by one, dropping a component for each.

    Parameters
    ----------
    Z, Mzz, Czy
        As in `rotate_and_drop`.
    B, means
        Loadings and means, with room for all the variables after the first `loaded`.
    relevance, arrival, count
        As in `rotate_and_drop`.
    loaded
        Number of variables with loadings.
    X, mean, m2, cxy, found
        The variables' values (m, n), moments and relevances (m,).
    threshold, max_components
        The relevance to exceed, which rises once there are `max_components`.
    W, covariate_weights, jacobi, signed, tie, zero_rtol
        As in `rotate_and_drop`.
    is_added
        (m,) filled: whether each was added, and so has the next row of B.

    Returns
    -------
    The number of components, whether some variable has no loading left, and the threshold.
    """
    unloaded = False
    for j in range(found.shape[0]):
        is_added[j] = found[j] > threshold
        if not is_added[j]:
            continue
        append_component(Z, Mzz, Czy, X[j], mean[j], m2[j], cxy[j], count)
        relevance[count] = found[j]
        arrival[count] = arrival[:count].max() + 1.0 if count else 0.0
        B[loaded] = 0.0
        B[loaded, count] = 1.0
        means[loaded] = mean[j]
        loaded += 1
        count += 1
        if count > max_components:
            unloaded |= rotate_and_drop(
                *(Z, Mzz, Czy, B[:loaded], relevance, arrival, count),
                *(W, covariate_weights, jacobi, signed, tie, zero_rtol, True),
            )
            count -= 1
        if count == max_components:
            threshold = relevance[:count].min() + tie
    return count, unloaded, threshold


@kernel()
def next_above_threshold(
    values: np.ndarray, start: int, threshold: float, indices: np.ndarray
) -> tuple[int, int]:
    """Fill `indices` with the next ones, from `start` on, whose value is above the threshold.

    Returns
    -------
    How many were found, and the index at which to continue when `indices` is full.
    """
    found = 0
    for j in range(start, values.shape[0]):
        if values[j] > threshold:
            indices[found] = j
            found += 1
            if found == indices.shape[0]:
                return found, j + 1
    return found, values.shape[0]
