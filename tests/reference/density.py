"""The histogram of relevance by arrival, by definition."""

import numpy as np

from tests.reference import target as space


def edges():
    """Return the edges of relevance bins, from 2**-12 on: sixteen per doubling, and 1."""
    found = [2.0**octave * (1.0 + k / 16) for octave in range(-12, 0) for k in range(16)]
    return np.array([*found, 1.0])


def step(p):
    """Return the smallest power of two such that 64 bins of this width contain p columns."""
    found = 1
    while 64 * found < p:
        found *= 2
    return found


def density(relevances):
    """Return counts (a, b) of relevances in order of arrival; NaN marks constant columns."""
    p, varies = len(relevances), np.isfinite(relevances)
    width, bins = step(p), edges()
    bins[0] = 0.0
    arrivals = np.arange(0, width * (-(-p // width)) + 1, width)
    shown = np.minimum(relevances[varies], 1.0)
    counts = np.histogram2d(np.flatnonzero(varies), shown, [arrivals, bins])[0]
    return counts.astype(int)


def relevances(X, y):
    """Return ‖Uᵀx̃‖ / ‖x̃‖ of every column; NaN for a constant column."""
    U = space.basis(y)
    return np.array([space.relevance(x, U) if np.ptp(x) else np.nan for x in X.T])
