"""Conditional independence of a variable and the target, given any few of the other variables.

All of it from correlations: those of the variables, C, and their coordinates in the target space,
G. With S the variables given, and L the Cholesky factor of S, then of the target, then of x, the
last row of L tells what x and the target share that S does not explain.
"""

from __future__ import annotations

import numpy as np

from streamsel._jit.policy import kernel

# Of a variable, or of a direction of the target, those given leave less than this: it is rounding.
_SPENT = 1e-10


@kernel()
def _factor(C: np.ndarray, S: np.ndarray, start: int, size: int, L: np.ndarray) -> int:
    """Fill rows `start` to `size` of L for the variables S; return the first that is spent."""
    for i in range(start, size):
        left = 1.0
        for k in range(i):
            a = C[S[i], S[k]]
            for t in range(k):
                a -= L[i, t] * L[k, t]
            a /= L[k, k]
            L[i, k] = a
            left -= a * a
        if left <= _SPENT:
            return i
        L[i, i] = np.sqrt(left)
    return size


@kernel()
def _shared(
    C: np.ndarray,
    G: np.ndarray,
    S: np.ndarray,
    size: int,
    x: int,
    L: np.ndarray,
    T: np.ndarray,
) -> tuple[float, int]:
    """Return relevance² of x given S, and the rank of what S leaves of the target.

    L holds the factor of S; its last row, and T, are room for those of x and of the target.
    """
    row = L[-1]
    left = 1.0
    for k in range(size):
        a = C[x, S[k]]
        for t in range(k):
            a -= row[t] * L[k, t]
        a /= L[k, k]
        row[k] = a
        left -= a * a
    if left <= _SPENT:
        return 0.0, 0
    rank = 0
    found = 0.0
    for u in range(G.shape[1]):
        target = T[rank]
        rest = 1.0
        for k in range(size):
            a = G[S[k], u]
            for t in range(k):
                a -= target[t] * L[k, t]
            a /= L[k, k]
            target[k] = a
            rest -= a * a
        for q in range(rank):
            a = 0.0
            for t in range(size + q):
                a -= target[t] * T[q, t]
            a /= T[q, size + q]
            target[size + q] = a
            rest -= a * a
        if rest <= _SPENT:
            continue
        target[size + rank] = np.sqrt(rest)
        a = G[x, u]
        for t in range(size + rank):
            a -= target[t] * row[t]
        a /= target[size + rank]
        row[size + rank] = a
        found += a * a
        rank += 1
    return found / left, rank


@kernel()
def separated(
    C: np.ndarray,
    G: np.ndarray,
    x: int,
    among: np.ndarray,
    always: int,
    bars: np.ndarray,
) -> bool:
    """Whether variable x is independent of the target given some of the others.

    Parameters
    ----------
    C, G
        (m, m) correlations of all variables, and their (m, r) coordinates in the target space.
    among
        Places of those that may be given.
    always
        Place of one that always is given, and not among them; -1 for none.
    bars
        (d + 1, r + 1) for each number of variables given, up to d, and each rank of what they leave
        of the target, the relevance² up to which a variable counts as independent.
    """
    depth = bars.shape[0] - 1
    r = G.shape[1]
    L = np.empty((depth + 1, depth + r))
    T = np.empty((r, depth + r))
    S = np.empty(depth, dtype=np.int64)
    at = np.empty(depth, dtype=np.int64)
    fixed = 1 if always >= 0 else 0
    # Few given first: nearly all that is separated is so by one.
    for size in range(1, depth + 1):
        free = size - fixed
        if free > among.shape[0]:
            break
        if fixed:
            S[0] = always
        for i in range(free):
            at[i] = i
            S[fixed + i] = among[i]
        start = 0
        while True:
            stop = _factor(C, S, start, size, L)
            last = free - 1
            if stop == size:
                found, rank = _shared(C, G, S, size, x, L, T)
                if found <= bars[size, rank]:
                    return True
            else:
                # Whatever comes behind one that is spent, it remains so.
                last = stop - fixed
            while last >= 0 and at[last] == among.shape[0] - free + last:
                last -= 1
            if last < 0:
                break
            at[last] += 1
            S[fixed + last] = among[at[last]]
            for i in range(last + 1, free):
                at[i] = at[i - 1] + 1
                S[fixed + i] = among[at[i]]
            start = fixed + last
    return False


@kernel()
def review(C: np.ndarray, G: np.ndarray, bars: np.ndarray, fast: bool, stays: np.ndarray) -> None:
    """Fill stays (m,): which variables no few of the others separate from the target.

    The last is new, and what the others had to say about each other is known. If `fast` it goes
    first, and the others are asked only if it stays; otherwise it goes last.

    Parameters
    ----------
    C, G, bars
        As in `separated`.
    """
    new = C.shape[0] - 1
    stays[:] = True
    if fast:
        stays[new] = not separated(C, G, new, np.arange(new), -1, bars)
        if not stays[new]:
            return
    for x in range(new):
        stays[x] = stays[new] = False
        among = np.flatnonzero(stays)
        stays[new] = True
        stays[x] = not separated(C, G, x, among, new, bars)
    if not fast:
        stays[new] = False
        stays[new] = not separated(C, G, new, np.flatnonzero(stays), -1, bars)
