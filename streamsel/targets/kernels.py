"""Kernels between variables, as functions of their moments.

A kernel compares two *variables* (columns), not two samples: kappa(u, v) of two centred vectors of
n observations. The linear, polynomial and RBF kernels depend on u and v only through <u, u>, <v, v>
and <u, v>, so moments suffice for all methods built on them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# A squared distance below this fraction of the product of the lengths is 0.
_DISTANCE_RTOL = 1e-12
# Largest change of the kernel by rounding that is tolerated.
_KERNEL_TOL = 1e-6


@dataclass(frozen=True)
class VariableKernel:
    """A kernel between variables, normalised to 1 for a variable with itself.

    Parameters
    ----------
    name
        "linear", "poly" or "rbf".
    degree, gamma, coef0
        poly: (gamma <u, v> + coef0)^degree; rbf: exp(-gamma |u - v|^2). gamma None is 1/n for poly,
        so that gamma <u, v> is the correlation of scaled variables, and 1/(2 sigma^2) for rbf, with
        sigma = sqrt(2n), the distance of uncorrelated variables of unit variance.
    scale
        Whether variables are first scaled to unit variance. It makes no difference for the linear
        kernel.
    """

    name: str = "linear"
    degree: int = 3
    gamma: float | None = None
    coef0: float = 0.0
    scale: bool = True

    def normalised(self, inner: Floats, uu: Floats, vv: Floats, n: float) -> Floats:
        """Return kappa(u, v) / sqrt(kappa(u, u) kappa(v, v)) for every pair.

        Parameters
        ----------
        inner
            (a, b) inner products <u_i, v_j> of centred variables.
        uu, vv
            (a,) and (b,) squared lengths; a pair with a constant variable gets 0.0.
        n
            Number of observations.
        """
        lengths = np.sqrt(uu)[:, None] * np.sqrt(vv)[None, :]
        with np.errstate(divide="ignore", invalid="ignore"):
            cosine = np.where(lengths > 0.0, inner / lengths, 0.0)
        return self.of_cosine(cosine, uu, vv, n)

    def of_cosine(self, cosine: Floats, uu: Floats, vv: Floats, n: float) -> Floats:
        """Return the result of `normalised` from (a, b) cosines <u_i, v_j> / (|u_i| |v_j|)."""
        if self.name == "linear":
            return cosine
        a, b = (np.full(uu.size, n), np.full(vv.size, n)) if self.scale else (uu, vv)
        if self.name == "poly":
            gamma = 1.0 / n if self.gamma is None else self.gamma
            root_a, root_b = gamma * a + self.coef0, gamma * b + self.coef0
            norm = np.sqrt(root_a)[:, None] * np.sqrt(root_b)[None, :]
            across = gamma * cosine * (np.sqrt(a)[:, None] * np.sqrt(b)[None, :]) + self.coef0
            with np.errstate(divide="ignore", invalid="ignore"):
                result = (across / norm) ** self.degree
        else:
            gamma = 0.25 / n if self.gamma is None else self.gamma
            # (|u| - |v|)^2 + 2 |u||v| (1 - cos): no cancellation for long, similar u and v
            root_a, root_b = np.sqrt(a)[:, None], np.sqrt(b)[None, :]
            distance = (root_a - root_b) ** 2 + 2.0 * root_a * root_b * (1.0 - cosine)
            # The computed distance of a variable to itself is rounding, possibly below 0; with a
            # large gamma, the kernel would differ from 1, or exp overflow.
            rounding = _DISTANCE_RTOL * root_a * root_b
            distance[(distance < rounding) & (gamma * rounding > _KERNEL_TOL)] = 0.0
            result = np.exp(-gamma * distance)
        return np.where((uu > 0.0)[:, None] & (vv > 0.0)[None, :], result, 0.0)

    def fit_gamma(self, inner: Floats, squares: Floats, n: float) -> VariableKernel:
        """Return the kernel with rbf's gamma set from the mean distance of these variables.

        Parameters
        ----------
        inner
            (c, c) inner products of the centred target variables.
        squares
            (c,) their squared lengths.
        n
            Number of observations.
        """
        if self.name != "rbf" or self.gamma is not None:
            return self
        varies = squares > 0.0
        if varies.sum() < 2:
            return self
        inner, squares = inner[np.ix_(varies, varies)], squares[varies]
        lengths = np.sqrt(squares)
        cosine = inner / lengths[:, None] / lengths[None, :]
        if self.scale:
            lengths = np.full(squares.size, np.sqrt(n))
        u, v = lengths[:, None], lengths[None, :]
        distance = (u - v) ** 2 + 2.0 * u * v * (1.0 - cosine)
        # The computed distance of a variable to itself is rounding.
        distance[distance < _DISTANCE_RTOL * u * v] = 0.0
        sigma = float(np.sqrt(distance[np.triu_indices(squares.size, 1)]).mean())
        if sigma == 0.0:
            return self
        return VariableKernel(
            self.name, self.degree, 1.0 / (2.0 * sigma**2), self.coef0, self.scale
        )
