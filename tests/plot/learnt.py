"""The density of relevances by arrival, counted from all relevances."""

import numpy as np

from streamsel.base.null import marginal_p_values
from streamsel.base.report import Density

BINS, ARRIVALS = 180, 64


def density_of(relevances, n, rank):
    """Count relevances, in order of arrival, as a model does."""
    relevances = np.asarray(relevances)
    edges = np.append(0.0, np.geomspace(1e-3, 1.0, BINS))
    step = 1
    while step * ARRIVALS < relevances.size:
        step *= 2
    arrivals = np.arange(relevances.size) // step
    counts, *_ = np.histogram2d(arrivals, relevances, [np.arange(arrivals.max() + 2) - 0.5, edges])
    return Density(counts.astype(np.int64), step, edges, marginal_p_values(edges, n, rank))
