"""Test of a group of variables against a target space: Pillai's trace, and its relevance.

With Q an orthonormal basis of the group's span, q its dimension, and U one of the target space, of
dimension r, Pillai's trace is V = ‖UᵀQ‖². With s = min(q, r), V / s is compared with a beta
distribution, that of the F approximation of Pillai's trace, which is exact for s = 1. The relevance
of a group is that of a single variable with the same p-value, so that groups of any size, single
variables and the noise floor have one scale.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel._kernels.beta_tail import log_upper_tails, rests_of_log_tails
from streamsel.targets.space import TargetSpace

Floats = NDArray[np.float64]

# Below this logarithm, p-values are computed as logarithms.
_LOG_SMALL = -600.0


class GroupTest(NamedTuple):
    """Null distribution of the traces of groups.

    Parameters
    ----------
    n, rank
        Number of observations minus covariates, and dimension of the target space.
    """

    n: float
    rank: int

    @classmethod
    def of(cls, space: TargetSpace) -> GroupTest:
        """Return the distribution for the observations of a target."""
        return cls(space.effective_rows - len(space.covariate_map), space.rank)

    def _beta(self, q: Floats) -> tuple[Floats, Floats, Floats]:
        """Return s, and the parameters of the distribution of V / s, for groups of dimension q."""
        s = np.minimum(q, self.rank)
        return s, 0.5 * q * self.rank, 0.5 * s * (self.n - 1.0 - np.maximum(q, self.rank))

    def f_statistics(self, trace: Floats, q: Floats) -> Floats:
        """Return the F statistics of groups, of q r and s (n - 1 - max(q, r)) degrees of freedom.

        0 where there are not enough observations for a test.
        """
        s, a, b = self._beta(q)
        share = np.minimum(trace / np.maximum(s, 1.0), 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(b > 0.0, b / a * share / (1.0 - share), 0.0)
        return np.nan_to_num(found, nan=0.0, posinf=np.inf)

    def relevance(self, trace: Floats, q: Floats) -> Floats:
        """Return the relevances of single variables with the same p-values, (g,); 0 if p is 1.

        Parameters
        ----------
        trace, q
            (g,) Pillai's traces and dimensions of groups, the latter above 0.
        """
        found = np.sqrt(np.clip(trace, 0.0, 1.0))
        s, a, b = self._beta(q)
        several = np.flatnonzero(q > 1.0)
        found[several[b[several] <= 0.0]] = 0.0
        several = several[b[several] > 0.0]
        if several.size:
            share = np.clip(trace[several] / s[several], 0.0, 1.0)
            found[several] = self._relevance_of_shares(share, a[several], b[several])
        return found

    def _relevance_of_shares(self, share: Floats, a: Floats, b: Floats) -> Floats:
        """Return the relevances of groups whose V / s has a Beta(a, b) distribution."""
        from scipy.special import betaincc, betainccinv, betaln

        own = 0.5 * self.rank, 0.5 * (self.n - 1.0 - self.rank)
        if own[1] <= 0.0:
            return np.zeros(share.size)
        p = betaincc(a, b, share)
        found: Floats = np.sqrt(betainccinv(*own, p))
        small = np.flatnonzero((p < np.exp(_LOG_SMALL)) & (share < 1.0))
        if small.size:
            log_p, rest = np.empty(small.size), np.empty(small.size)
            of_groups = a[small], b[small]
            log_upper_tails(1.0 - share[small], *of_groups, betaln(*of_groups), log_p)
            rests_of_log_tails(log_p, *own, float(betaln(*own)), rest)
            found[small] = np.sqrt(1.0 - rest)
        found[share >= 1.0] = 1.0
        return found
