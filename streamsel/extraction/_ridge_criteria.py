"""Choice of a ridge: restricted likelihood and generalised cross-validation on a grid."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from streamsel.state.base import Floats
from streamsel.state.gram.pivoted_factor import PivotedFactor
from streamsel.state.tridiagonal import TridiagonalForm

# Grid of ridges, relative to the mean eigenvalue.
RIDGES: Floats = 10.0 ** (np.arange(-50, 51) / 10.0)
# Least unexplained part of the target, because its logarithm is taken.
_MIN_UNEXPLAINED = 1e-300
# An unexplained part of a target of length 1 below this is rounding.
_ZERO_TOL = 1e-12


def mean_eigenvalue(trace: float, p: int, n: float) -> float:
    """Return the mean eigenvalue of the products of p columns over n observations."""
    return trace / max(1.0, min(p, n - 1.0))


class RidgeProblem(NamedTuple):
    """Ridge regression of orthonormal targets U on weighted columns W, in a tridiagonal form.

    The form is that of the inner products of the observations, K = WWᵀ, or of the columns, C = WᵀW.

    Parameters
    ----------
    form
        The form of K or C.
    target
        (s, r) the coordinates of U, or of WᵀU.
    of_rows
        Whether the matrix is K.
    mean
        The mean eigenvalue.
    n
        Number of observations minus the rank of the covariates.
    """

    form: TridiagonalForm
    target: Floats
    of_rows: bool
    mean: float
    n: float

    @classmethod
    def of(cls, A: Floats, target: Floats, p: int, n: float, *, of_rows: bool) -> RidgeProblem:
        """Return the problem of K or C, which is overwritten, of p columns; target is U or WᵀU."""
        mean = mean_eigenvalue(float(np.trace(A)), p, n)
        form = TridiagonalForm(A)
        # Rounding errors of an expected null space are harmless: the target has no part in it.
        if form.rank() < (min(form.size, n - 1.0) if of_rows else form.size):
            form = form.truncated()
        return cls(form, form.coordinates(target), of_rows, mean, n)

    @classmethod
    def of_factor(cls, factor: PivotedFactor, target: Floats, n: float) -> RidgeProblem:
        """Return the problem of columns whose products are FFᵀ; target is WᵀU.

        It is that of the observations F. Small eigenvalues of FᵀF are no rounding.
        """
        K = factor.products()
        mean = mean_eigenvalue(float(np.trace(K)), len(factor.rows), n)
        form = TridiagonalForm(K)
        return cls(form, form.coordinates(factor.coordinates(target)), True, mean, n)

    def truncated(self) -> RidgeProblem:
        """Return the problem without the eigenvectors that are rounding."""
        if self.form.is_truncated:
            return self
        target, form = self.form.combine(self.target), self.form.truncated()
        return self._replace(form=form, target=form.coordinates(target))

    def _unit_targets(self) -> tuple[Floats, Floats | None]:
        """Return the coordinates of U, and the squares of its parts outside the form, (r,).

        None if the coordinates are those of WᵀU.
        """
        form, V = self.form, self.target
        if not (form.is_truncated or self.of_rows):
            return V, None
        V = V if self.of_rows else V / np.sqrt(form.diagonal)[:, None]
        outside = np.maximum(1.0 - np.square(V).sum(axis=0), 0.0)
        outside[outside < _ZERO_TOL] = 0.0
        return V, outside

    def fits(self, ridges: Floats) -> Iterator[RidgeFitStatistics]:
        """Yield the statistics of the fit for each ridge."""
        form = self.form
        V, outside = self._unit_targets()
        for ridge in ridges.tolist():
            found, pivots = form.solve(ridge, V)
            energy, squares = (V * found).sum(axis=0), np.square(found).sum(axis=0)
            if outside is None:
                residual = 1.0 - energy
                squared_residual = residual - ridge * squares
            else:
                residual = ridge * energy + outside
                squared_residual = ridge * ridge * squares + outside
            yield RidgeFitStatistics(self, ridge, pivots, residual, squared_residual)


class RidgeFitStatistics(NamedTuple):
    """The fit of targets of length 1 for one ridge λ.

    Parameters
    ----------
    problem, ridge
        The problem, and λ.
    pivots
        The pivots of T + λI.
    residual, squared_residual
        (r,) uᵀ(I + K/λ)⁻¹u of each target, and the sum of the squared residuals.
    """

    problem: RidgeProblem
    ridge: float
    pivots: Floats
    residual: Floats
    squared_residual: Floats

    @property
    def log_determinant(self) -> float:
        """The logarithm of |I + K/λ|."""
        return float(np.log(self.pivots / self.ridge).sum())

    @property
    def residual_degrees(self) -> float:
        """Degrees of freedom of the residual."""
        form = self.problem.form
        left = self.ridge * form.trace_of_inverse(self.ridge, self.pivots)
        return self.problem.n - 1.0 - form.size + left


def log_likelihood(log_determinant: Floats, residual: Floats, r: int, n: float) -> Floats:
    """Return the restricted log likelihood of r targets under I + K/λ (Patterson, Thompson 1971).

    With one scale for all dimensions.

    Parameters
    ----------
    log_determinant
        That of I + K/λ.
    residual
        Sum of uᵀ(I + K/λ)⁻¹u over the targets.
    r, n
        Number of targets; number of observations minus the rank of the covariates.
    """
    clipped_residual = np.maximum(residual, _MIN_UNEXPLAINED)
    found: Floats = -0.5 * r * (log_determinant + (n - 1.0) * np.log(clipped_residual))
    return found


def restricted_likelihood(problem: RidgeProblem, ridges: Floats) -> Floats:
    """Return the restricted log likelihood of all targets, for each ridge, (L,)."""
    fits = [(fit.log_determinant, fit.residual.sum()) for fit in problem.fits(ridges)]
    log_determinants, residuals = np.array(fits).T
    return log_likelihood(log_determinants, residuals, problem.target.shape[1], problem.n)


def cross_validated(problem: RidgeProblem, ridges: Floats) -> Floats:
    """Return minus the generalised cross-validation error of each target, (L, r).

    For each ridge (Golub, Heath and Wahba 1979).
    """
    errors = []
    for fit in problem.fits(ridges):
        degrees = fit.residual_degrees
        # Without residual degrees of freedom the error cannot be estimated.
        never = np.full(fit.squared_residual.size, -np.inf)
        error = np.maximum(fit.squared_residual, 0.0)
        errors.append(-error / degrees**2 if degrees > 0.0 else never)
    return np.array(errors)


def total_cross_validated(problem: RidgeProblem, ridges: Floats) -> Floats:
    """Return minus the generalised cross-validation error of all targets, for each ridge, (L,)."""
    total: Floats = cross_validated(problem, ridges).sum(axis=1)
    return total


CRITERIA = {"reml": restricted_likelihood, "gcv": total_cross_validated}
