"""Pivoted Cholesky factor of a positive semidefinite matrix, and inner products by it."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from scipy.linalg import solve_triangular

from streamsel._kernels.lapack import lower_products, pivoted_cholesky
from streamsel.state.base import Floats, Indices

# A row fades to rounding after so many times the effective number of rows, (2 - f) / f with a
# fading factor f: (1 - f)^(15 · 2 / f) is 1e-13.
_ROWS_PER_EFFECTIVE_ROW = 15.0
_EQUAL_RTOL = 1e-9


def bound_rank(n: float, effective: float) -> float:
    """Return how many rows are above rounding, given their total weight and effective number.

    It is all rows if weights are equal, and otherwise the number for fading rows. It bounds the
    rank of sums of products of the rows.
    """
    are_equal = abs(effective - n) <= _EQUAL_RTOL * n
    return n if are_equal else _ROWS_PER_EFFECTIVE_ROW * effective


class PivotedFactor(NamedTuple):
    """A matrix C (m, m) as FFᵀ, of rank r.

    F replaces the observations, up to a rotation: C has the inner products of the variables, and
    FᵀF those of r observations.

    Parameters
    ----------
    rows
        F, (m, r).
    pivots
        (r,) the pivots: F has a lower triangle in these rows.
    triangle
        (r, r) that triangle.
    """

    rows: Floats
    pivots: Indices
    triangle: Floats

    @classmethod
    def of(cls, C: Floats) -> Self:
        """Return the factor of C, symmetric and positive semidefinite, which is overwritten.

        The residual diagonal is below 1e-16 m times the largest value of the diagonal.
        """
        C = np.ascontiguousarray(C)
        pivots, rank = pivoted_cholesky(C)
        found, order = C.T, pivots - 1
        triangle = np.tril(found[:rank, :rank])
        F = np.empty((len(C), rank))
        F[order[:rank]], F[order[rank:]] = triangle, found[rank:, :rank]
        return cls(F, order[:rank].astype(np.intp), triangle)

    def products(self) -> Floats:
        """Return FᵀF, (r, r)."""
        if 2 * len(self.pivots) < len(self.rows):
            found: Floats = self.rows.T @ self.rows
            return found
        # The product of the triangle alone takes a third of the operations.
        found = lower_products(self.triangle)
        found += np.tril(found, -1).T
        others = np.ones(len(self.rows), dtype=bool)
        others[self.pivots] = False
        rest = self.rows[others]
        found += rest.T @ rest
        return found

    def coordinates(self, A: Floats) -> Floats:
        """Return the solution u (r, k) of A = Fu, (m, k), whose columns lie in the span of F."""
        found: Floats = solve_triangular(self.triangle, A[self.pivots], lower=True)
        return found
