"""When a variable counts as independent of the target, given some others or none."""

from __future__ import annotations

import functools
import math

import numpy as np

from streamsel.held.decided import Decided
from streamsel.held.part import Floats
from streamsel.learner.noise import chance
from streamsel.ties import TIE

# What the target explains of a variable beyond this is all of it: the rest is rounding.
_IN_FULL = math.sqrt(1.0 - 1e-10)


@functools.lru_cache(maxsize=64)
def bars(n: float, r: int, depth: int, level: float) -> Floats:
    """Return up to which relevance² a variable counts as independent of the target.

    Parameters
    ----------
    n, r
        Observations, less those that covariates use up, and rank of the target.
    depth
        Most variables that may be given.
    level
        The chance of a variable that is independent to count as dependent, in a single test.

    Returns
    -------
    (d + 1, r + 1) for each number of variables given, d = depth or as many as the observations
    allow, and each rank of what they leave of the target; of nothing that is left everything is
    independent. Without rows where there are too few observations for any test.

    Notes
    -----
    A target of rank 1 is tested by Fisher's z, atanh |ρ| · √(n - s - 3) ~ N(0, 1) for s given;
    another by the F test of what it explains of the variable beyond those given, ρ² ~ Beta(q/2,
    (n - 1 - s - q)/2) for a rest of rank q.
    """
    from scipy.special import betainccinv, ndtri

    given = np.arange(depth + 1)
    found = np.full((depth + 1, r + 1), np.inf)
    if r == 1:
        free = n - given - 3
        found[:, 1] = np.tanh(-ndtri(level / 2.0) / np.sqrt(np.maximum(free, 1))) ** 2
    else:
        free = n - 1 - given - r
        for q in range(1, r + 1):
            rest = np.maximum(n - 1 - given - q, 1)
            found[:, q] = betainccinv(q / 2.0, rest / 2.0, level)
    found = np.ascontiguousarray(found[free >= 1] + TIE)
    found.flags.writeable = False
    return found


def freedom(held: Decided) -> tuple[float, int]:
    """Return observations, less those that covariates use up, and the rank of the target."""
    assert held.space is not None  # noqa: S101
    return held.space.effective_rows - len(held.space.given), held.space.rank


def least_relevance(up_to: Floats) -> float:
    """Return the relevance that a variable must exceed, given none; see `bars`."""
    return math.sqrt(up_to[0, -1]) if len(up_to) else math.inf


def p_value(relevance: float, n: float, r: int) -> float:
    """Return the chance of a variable that is independent to be as relevant, given none.

    Parameters
    ----------
    relevance, n, r
        As in `bars`.
    """
    if n <= (3 if r == 1 else r + 1):
        return 1.0
    if relevance > _IN_FULL:
        return 0.0
    if r > 1:
        return float(chance(np.array([relevance]), n, r)[0])
    return math.erfc(math.atanh(relevance) * math.sqrt((n - 3) / 2.0))
