"""The lowest point of a quadratic form with absolute values, over a few variables, to rounding."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from streamsel._jit.lasso import descend
from streamsel.held.part import Floats, Places

# A variable of which less than this part is left beside others is made of them.
_DEPENDENT = 1e-13
# How often descent and exact solution take turns before what is reached is taken as it is.
_TURNS = 60
# Descent goes on until for so many rounds signs have stayed, but no longer than so many rounds.
_QUIET, _ROUNDS = 1, 100
# How many coefficients an exact solution may take out before the descent goes on.
_LEAVE = 4


def settle(Q: Floats, a: Floats, bar: Floats, ridge: Floats, edge: Floats, b: Floats) -> Floats:
    """Return the b that minimises ½ bᵀQb - aᵀb + Σ bar|b| + ½ Σ ridge b².

    Descent finds which coefficients are not 0 and their signs, and the linear equations that hold
    for these give them to rounding.

    Parameters
    ----------
    Q, a
        (s, s) and (s,) the form; its diagonal is positive.
    bar, ridge
        (s,) weights of the absolute values and of the squares.
    edge
        (s,) how steep the form may be where a coefficient is 0: the bar, and what is taken for
        rounding.
    b
        (s,) where to begin.
    """
    b = b.copy()
    for turn in range(_TURNS):
        left = a - Q @ b
        descend(Q, bar, ridge, edge, _QUIET + turn, _ROUNDS, b, left)
        is_low = _solve(Q, a, bar, ridge, b)
        left = a - Q @ b
        if is_low and (np.abs(left[b == 0.0]) <= edge[b == 0.0]).all():
            break
    return b


def _solve(Q: Floats, a: Floats, bar: Floats, ridge: Floats, b: Floats) -> bool:
    """Go to the lowest point that has the signs of b; return whether that was reached.

    A coefficient that would change its sign becomes 0, a few of them at most.
    """
    for _ in range(_LEAVE):
        among = np.flatnonzero(b)
        if not among.size:
            return True
        mine, signs = b[among], np.sign(b[among])
        H = Q[np.ix_(among, among)]
        H[np.diag_indices(among.size)] += ridge[among]
        L, info = lapack.dpotrf(H, lower=1)
        reliable = among.size if info == 0 else info - 1
        spent = np.diag(L)[:reliable] ** 2 <= _DEPENDENT * np.diag(H)[:reliable]
        dependent = int(np.argmax(spent)) if spent.any() else reliable
        if dependent < among.size:
            way = _along(H, L, dependent)
            steep = way @ (bar[among] * signs + H @ mine - a[among])
            if abs(steep) <= 1e-10 * (np.abs(way) @ bar[among]):
                # It is level: who came last leaves.
                steep = signs[dependent]
            way *= -np.sign(steep)
        else:
            aim, _ = lapack.dpotrs(L, a[among] - bar[among] * signs, lower=1)
            if (aim * signs > 0.0).all():
                b[among] = aim
                return True
            way = aim - mine
        _step(b, among, way)
    return False


def _along(H: Floats, L: Floats, j: int) -> Floats:
    """Return along which way the form is level: a variable less what others make of it."""
    way = np.zeros(len(H))
    way[j] = 1.0
    if j:
        made, _ = lapack.dpotrs(np.ascontiguousarray(L[:j, :j]), H[:j, j].copy(), lower=1)
        way[:j] = -made
    return way


def _step(b: Floats, among: Places, way: Floats) -> None:
    """Go along a way until the first coefficient is 0."""
    mine = b[among]
    shrinks = way * np.sign(mine) < 0.0
    far = np.full(mine.size, np.inf)
    far[shrinks] = -mine[shrinks] / way[shrinks]
    first = far.min()
    if first < np.inf:
        b[among] = np.where(far <= first, 0.0, mine + first * way)
