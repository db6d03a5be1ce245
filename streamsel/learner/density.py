"""Compute the histogram of column relevances for reports."""

from __future__ import annotations

import numpy as np

from streamsel.held.histogram import EDGES, Histogram
from streamsel.held.moments import Moments
from streamsel.held.part import Floats
from streamsel.held.permutations import PermutationNull
from streamsel.learner.noise import chance
from streamsel.learner.report import Density
from streamsel.target.space import TargetSpace


def density_of(
    counted: Histogram,
    space: TargetSpace,
    n: float,
    points: Floats | None,
    permuted: PermutationNull | None = None,
) -> Density | None:
    """Return the histogram of counted columns, of n observations; None if all are constant.

    The null distribution is that of permuted targets or of Gaussian observations; None with a
    kernel that is not linear.
    """
    counts = counted.counts
    filled = np.flatnonzero(counts.any(axis=0))
    if not filled.size:
        return None
    edges = EDGES[filled[0] :].copy()
    if not filled[0]:
        # The first bin includes all lower relevances.
        edges[0] = 0.0
    null = None
    if permuted is not None:
        null = permuted.p_values(edges)
    elif space.kernel.name == "linear":
        null = chance(edges, n - len(space.given), space.rank)
    return Density(counts[:, filled[0] :], counted.step, edges, null, points)


def counted_on_rows(moments: Moments) -> tuple[Histogram, Floats] | None:
    """Return the histogram of the variables of rows, and their relevances in order.

    The order is that of the moments. None without a target, or if a variable was evicted.
    """
    if moments.space is None or not moments.complete:
        return None
    counted, stats = Histogram(), moments.stats()
    relevance = moments.space.relevance(stats.m2, stats.cxy)
    counted.add(relevance, 0)
    return counted, np.maximum(relevance, -1.0)
