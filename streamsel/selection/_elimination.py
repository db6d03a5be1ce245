"""Backward elimination from the correlations of variables.

 With C = XᵀX + λI, G = XᵀU and B = C⁻¹G the coefficients of the target, the minimum of ‖U - XB‖² +
λ‖B‖² is r - tr GᵀB. Under the constraint b_j = 0 it increases by ‖b_j‖² / (C⁻¹)_jj: the cost of
removing variable j.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from streamsel._jit.backward import eliminate, independent
from streamsel.held.part import Floats, Places
from streamsel.held.pool import SPENT, Picks
from streamsel.ties import TIE

# A variable is dependent if its squared residual given the earlier ones is smaller, ridge included.
# Rounding errors are divided by the residuals of those: below 1e-8 the residual is not accurate.
_DEPENDENT = 1e-7
# With at least this ridge no variable is numerically dependent.
_SAFE_RIDGE = 1e-6
# The inverse is recomputed once its diagonal has fallen below this fraction of its first values.
_INACCURATE = 1e-4


def last_to_go(C: Floats, G: Floats, ridge: float) -> Picks:
    """Return the elimination order, last removed first, with the cost of each removal.

    Variables removed first, at no cost, are left out.

    Parameters
    ----------
    C
        (p, p) correlations of the variables, in order of arrival; the ridge is added in place.
    G
        (p, r) their coordinates in the target space.
    ridge
        λ.
    """
    p, r = G.shape
    C[np.arange(p), np.arange(p)] = 1.0 + ridge
    # Without a target every removal is at no cost.
    remaining: Places = np.arange(p if r else 0)
    if ridge < _SAFE_RIDGE and r:
        # Variables fully explained by earlier ones are removed first, at no cost.
        remaining = remaining[independent(C, _DEPENDENT)]
    m = remaining.size
    order, costs = np.empty(m, dtype=np.intp), np.empty(m)
    while m:
        current = remaining[:m]
        inverse, B = _inverse(C[np.ix_(current, current)], G[current])
        n_left = eliminate(inverse, B, current, TIE, _INACCURATE, costs[:m])
        order[n_left:m] = current[n_left:]
        remaining[:n_left] = np.sort(current[:n_left])
        m = n_left
    # Costs may fall again, so only removals before the first with a cost are left out.
    size = int(np.max(np.flatnonzero(costs > SPENT), initial=-1)) + 1
    return Picks(order[:size].tolist(), costs[:size].tolist(), [0] * size)


def _inverse(C: Floats, G: Floats) -> tuple[Floats, Floats]:
    """Return the lower triangle of the inverse of C, and the coefficients, (r, p)."""
    # LAPACK's upper triangle, by columns, is the lower one by rows.
    factor, _ = lapack.dpotrf(C, lower=0)
    B, _ = lapack.dpotrs(factor, G, lower=0)
    inverse, _ = lapack.dpotri(factor, lower=0)
    return inverse.T, np.ascontiguousarray(B.T)
