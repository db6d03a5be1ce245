"""Tests of independence of the target, marginal or conditional on other variables."""

from __future__ import annotations

import functools
import math

import numpy as np

from streamsel._utils.numeric import TIE_RTOL
from streamsel.base.null import marginal_p_values
from streamsel.state.base import Floats
from streamsel.targets.space import TargetSpace

# A variable of larger relevance is fully explained by the target, up to rounding.
_FULL_RELEVANCE = math.sqrt(1.0 - 1e-10)


@functools.lru_cache(maxsize=64)
def critical_values(n: float, r: int, depth: int, level: float) -> Floats:
    """Return the critical squared relevance up to which a variable counts as independent.

    Parameters
    ----------
    n, r
        Observations minus covariates, and rank of the target.
    depth
        Maximum number of variables conditioned on.
    level
        Probability that an independent variable counts as dependent, in a single test.

    Returns
    -------
    (d + 1, r + 1) for each number of variables conditioned on, d = depth or as many as the
    observations allow, and each rank of the target's residual; inf for rank 0. No rows if there are
    too few observations for any test.

    Notes
    -----
    A target of rank 1 is tested by Fisher's z, atanh |ρ| · √(n - s - 3) ~ N(0, 1) given s
    variables; others by the F test of the share they explain beyond the variables given, ρ² ~
    Beta(q/2, (n - 1 - s - q)/2) for a residual of rank q.
    """
    from scipy.special import betainccinv, ndtri

    n_given = np.arange(depth + 1)
    critical = np.full((depth + 1, r + 1), np.inf)
    if r == 1:
        dof = n - n_given - 3
        critical[:, 1] = np.tanh(-ndtri(level / 2.0) / np.sqrt(np.maximum(dof, 1))) ** 2
    else:
        dof = n - 1 - n_given - r
        for q in range(1, r + 1):
            dof_residual = np.maximum(n - 1 - n_given - q, 1)
            critical[:, q] = betainccinv(q / 2.0, dof_residual / 2.0, level)
    critical = np.ascontiguousarray(critical[dof >= 1] + TIE_RTOL)
    critical.flags.writeable = False
    return critical


def degrees_of_freedom(space: TargetSpace) -> tuple[float, int]:
    """Return the observations minus covariates, and the rank of the target."""
    return space.effective_rows - len(space.covariate_map), space.rank


def min_relevance(up_to: Floats) -> float:
    """Return the critical relevance with no variable conditioned on; see `critical_values`."""
    return math.sqrt(up_to[0, -1]) if len(up_to) else math.inf


def independence_p_value(relevance: float, n: float, r: int) -> float:
    """Return the marginal p-value of a relevance under independence.

    Parameters
    ----------
    relevance, n, r
        As in `critical_values`.
    """
    if n <= (3 if r == 1 else r + 1):
        return 1.0
    if relevance > _FULL_RELEVANCE:
        return 0.0
    if r > 1:
        return float(marginal_p_values(np.array([relevance]), n, r)[0])
    return math.erfc(math.atanh(relevance) * math.sqrt((n - 3) / 2.0))
