"""Backward elimination over variables of which the products are known.

 With C = XᵀX + λI, G = XᵀU and B = C⁻¹G the coefficients of the target, the least of ‖U - XB‖² +
λ‖B‖² is r - tr GᵀB. Without variable j it is the least under b_j = 0, which is ‖b_j‖² / (C⁻¹)_jj
more: what it costs to remove it.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from streamsel._jit.backward import eliminate, independent
from streamsel.held.part import Floats, Places
from streamsel.held.pool import SPENT, Picks
from streamsel.ties import TIE

# Where those before it leave less of a variable, the ridge included, it has nothing to say. What is
# left is known to rounding over what is left of those: of less than 1e-8 it would not be known.
_LEFT = 1e-7
# With a ridge of so much rounding cannot make a variable one of those.
_SURE = 1e-6
# An inverse whose diagonal has fallen below this part of itself is made anew.
_WORN = 1e-4


def last_to_go(C: Floats, G: Floats, ridge: float) -> Picks:
    """Return who goes, the last first, each with what it cost to remove it.

    Those who go first, at no cost, are left out.

    Parameters
    ----------
    C
        (p, p) correlations of the variables, in order of arrival; the ridge is added to them.
    G
        (p, r) their coordinates in the target space.
    ridge
        λ.
    """
    p, r = G.shape
    C[np.arange(p), np.arange(p)] = 1.0 + ridge
    # Without a target all go at no cost.
    left: Places = np.arange(p if r else 0)
    if ridge < _SURE and r:
        # So does what earlier ones explain in full, and first.
        left = left[independent(C, _LEFT)]
    m = left.size
    order, costs = np.empty(m, dtype=np.intp), np.empty(m)
    while m:
        now = left[:m]
        inverse, B = _inverse(C[np.ix_(now, now)], G[now])
        rest = eliminate(inverse, B, now, TIE, _WORN, costs[:m])
        order[rest:m] = now[rest:]
        left[:rest] = np.sort(now[:rest])
        m = rest
    # Costs may fall again: none is free before the last that is not.
    size = int(np.max(np.flatnonzero(costs > SPENT), initial=-1)) + 1
    return Picks(order[:size].tolist(), costs[:size].tolist(), [0] * size)


def _inverse(C: Floats, G: Floats) -> tuple[Floats, Floats]:
    """Return the inverse, its lower triangle, and the coefficients, (r, p)."""
    # LAPACK's upper triangle, by columns, is the lower one by rows.
    factor, _ = lapack.dpotrf(C, lower=0)
    B, _ = lapack.dpotrs(factor, G, lower=0)
    inverse, _ = lapack.dpotri(factor, lower=0)
    return inverse.T, np.ascontiguousarray(B.T)
