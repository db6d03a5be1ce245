"""Variance components of a mixed model by restricted maximum likelihood (REML).

The model is y = Xb + u + e with Var(u) = σ_u² K and Var(e) = σ_e² I, so Var(y) = σ_e² (λK + I) with
the variance ratio λ = σ_u² / σ_e². With K = E diag(ω) Eᵀ the likelihood of a λ costs O(n d²).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# The range of λ times the mean diagonal of K that is searched, and the number of steps of the grid.
_SEARCH_RANGE = (1e-5, 1e5)
_STEPS = 101
# A residual on the fixed effects below this fraction of the sum of squares is rounding.
_DETERMINED_RTOL = 1e-12
# A smaller gain in log-likelihood is rounding, as if K is a multiple of I.
_MIN_GAIN = 1e-6


class VarianceComponents(NamedTuple):
    """Variance components of a target given relatedness.

    Parameters
    ----------
    ratio
        The ratio λ of the variance of relatedness to the residual variance, per unit of K.
    heritability
        h² = λk / (λk + 1), k the mean diagonal of K after its rows and columns are centred: the
        share of the variance that relatedness explains, "pve" of GEMMA.
    sigma2_u, sigma2_e
        The variance λσ² of relatedness per unit of K, and the residual variance σ², one of each per
        target column.
    log_likelihood
        Restricted log-likelihood at λ, the sum over the target columns.
    """

    ratio: float
    heritability: float
    sigma2_u: list[float]
    sigma2_e: list[float]
    log_likelihood: float


class Spectrum(NamedTuple):
    """Eigendecomposition of a relatedness matrix, K = E diag(ω) Eᵀ.

    Parameters
    ----------
    values, vectors
        (n,) ω, none negative, and (n, n) E.
    mean_diagonal
        Mean diagonal of K after its rows and columns are centred.
    """

    values: Floats
    vectors: Floats
    mean_diagonal: float

    @classmethod
    def of(cls, K: Floats, tolerance: float) -> Spectrum:
        """Return the eigendecomposition of a symmetric matrix.

        ValueError if an eigenvalue is below minus `tolerance` times the largest.
        """
        from scipy.linalg import eigh

        values, vectors = eigh(K, check_finite=False, driver="evd")
        if values[0] < -tolerance * max(0.0, values[-1]):
            raise ValueError(
                "Expected a positive semi-definite relatedness matrix. Got: eigenvalues from "
                f"{values[0]:.3g} to {values[-1]:.3g}.\n"
                "Hint: K = X @ X.T / p of centred columns is positive semi-definite."
            )
        diagonal = float(K.diagonal().mean()) - float(K.mean())
        return cls(np.maximum(values, 0.0), vectors, diagonal)

    def inverse_root(self, ratio: float) -> Floats:
        """Return (λK + I)^-½, symmetric."""
        scaled = self.vectors / np.sqrt(np.sqrt(ratio * self.values + 1.0))
        root: Floats = scaled @ scaled.T
        return root


class Reml:
    """Restricted likelihood of variance ratios.

    Parameters
    ----------
    spectrum
        Eigendecomposition of K.
    Y
        (n, c) the target columns.
    basis
        (n, d) orthonormal basis of the fixed effects, intercept included.
    """

    def __init__(self, spectrum: Spectrum, Y: Floats, basis: Floats) -> None:
        n, d = basis.shape
        self._omega, self._scale = spectrum.values, spectrum.mean_diagonal
        self._free = n - d
        # In units of the largest values, whose squares cannot overflow.
        units = np.abs(Y).max(axis=0, initial=0.0)
        units[units == 0.0] = 1.0
        residual = Y / units
        residual -= residual.mean(axis=0)
        squares = np.square(residual).sum(axis=0)
        residual = residual - basis @ (basis.T @ residual)
        # Fixed effects that determine a column leave it no variance.
        is_free = np.square(residual).sum(axis=0) > _DETERMINED_RTOL * squares
        residual, self._units = residual[:, is_free], units[is_free]
        self._X: Floats = spectrum.vectors.T @ basis
        self._Y: Floats = spectrum.vectors.T @ residual

    def at(self, ratio: float) -> tuple[float, float, Floats]:
        """Return the log-likelihood, its derivative by λ, and yᵀPy of each column, (c,).

        The columns are in units of their largest values.
        """
        from scipy.linalg import cho_factor, cho_solve

        s, X, Y, free = 1.0 / (ratio * self._omega + 1.0), self._X, self._Y, self._free
        factor = cho_factor(X.T @ (s[:, None] * X), lower=True)
        sX = s[:, None] * X
        PY = s[:, None] * Y - sX @ cho_solve(factor, sX.T @ Y)
        squares = np.einsum("ij,ij->j", Y, PY)
        logdet = -np.log(s).sum() + 2.0 * np.log(factor[0].diagonal()).sum()
        c = Y.shape[1]
        constant = c * free * (np.log(max(1, free) / (2.0 * np.pi)) - 1.0)
        likelihood = 0.5 * (constant - c * logdet - free * np.log(squares).sum())
        trace = s @ self._omega
        trace -= np.trace(cho_solve(factor, sX.T @ (self._omega[:, None] * sX)))
        slopes = np.einsum("i,ij,ij->j", self._omega, PY, PY) / squares
        derivative = 0.5 * (free * slopes.sum() - c * trace)
        return float(likelihood), float(derivative), squares

    def best_ratio(self) -> float:
        """Return λ of the largest likelihood; 0 if none is more likely than no relatedness.

        The search covers λk from 1e-5 to 1e5, k the mean diagonal of K, on a grid, then between the
        neighbours of its best point.
        """
        from scipy.optimize import brentq

        if not self._scale > 0.0 or not self._Y.shape[1] or self._free < 1:
            return 0.0
        grid = np.geomspace(*_SEARCH_RANGE, _STEPS) / self._scale
        likelihoods = np.array([self.at(ratio)[0] for ratio in grid])
        best = int(likelihoods.argmax())

        def slope(log_ratio: float) -> float:
            return self.at(np.exp(log_ratio))[1]

        low, high = np.log(grid[max(0, best - 1)]), np.log(grid[min(_STEPS - 1, best + 1)])
        if slope(low) > 0.0 > slope(high):
            found = float(np.exp(brentq(slope, low, high, xtol=1e-12, rtol=1e-14)))
        else:
            found = float(grid[best])
        return found if self.at(found)[0] > self.at(0.0)[0] + _MIN_GAIN else 0.0

    def components(self, ratio: float) -> VarianceComponents:
        """Return the variance components at a ratio."""
        likelihood, _, squares = self.at(ratio)
        with np.errstate(over="ignore"):
            residual = squares / max(1, self._free) * np.square(self._units)
        likelihood -= self._free * float(np.log(self._units).sum())
        scaled = ratio * self._scale
        return VarianceComponents(
            ratio,
            scaled / (scaled + 1.0),
            (ratio * residual).tolist(),
            residual.tolist(),
            likelihood,
        )
