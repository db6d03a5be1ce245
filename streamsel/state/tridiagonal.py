"""Tridiagonal form of a symmetric matrix, in which shifted systems and eigenvalues are cheap."""

from __future__ import annotations

import functools
from typing import Self

import numpy as np
from scipy.linalg import eigh, eigh_tridiagonal, lapack, solve_banded
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from streamsel._kernels.lapack import (
    multiply_by_reflectors,
    tridiagonal_eigenpairs,
    tridiagonalize,
)
from streamsel.state.base import Floats

# An eigenvalue below this fraction of the largest is rounding.
ZERO_TOL = 1e-12
# A shift above this fraction of the largest eigenvalue hides rounding errors of the smallest ones.
_SAFE_SHIFT = 1e-9
# A smaller matrix, or a larger share of its eigenvectors, is decomposed as a dense matrix.
_LARGE_SIZE, _SMALL_SHARE = 150, 0.05
# Number of Lanczos vectors, at least and per eigenvector.
_MIN_LANCZOS_VECTORS, _VECTORS_PER_PAIR = 20, 3
# Eigenvalues within this relative distance may be equal.
_EQUAL_RTOL = 1e-9


class TridiagonalForm:
    """A symmetric positive semidefinite matrix as A = QTQᵀ, QᵀQ = I, T tridiagonal.

    Parameters
    ----------
    A
        (n, n), C-contiguous; it is overwritten.

    Attributes
    ----------
    diagonal, off_diagonal
        (s,) and (s - 1,) entries of T.
    is_truncated
        Whether Q (n, s) has only the eigenvectors that are not rounding; T is diagonal then.

    Notes
    -----
    The reduction takes 4n³/3 operations, an eigendecomposition five times as many. It replaces the
    latter for functions of A + λI, whose systems are solved in O(s) operations per vector, and for
    few eigenvectors.
    """

    def __init__(self, A: Floats) -> None:
        self._reflectors = A
        self.diagonal, self.off_diagonal, self._scales = tridiagonalize(A)
        self._rotation: Floats | None = None

    @property
    def size(self) -> int:
        """The order of T."""
        return self.diagonal.size

    @property
    def order(self) -> int:
        """The order of A."""
        return len(self._reflectors)

    @property
    def is_truncated(self) -> bool:
        """Whether only the eigenvectors that are not rounding are left."""
        return self._rotation is not None

    @functools.cached_property
    def largest(self) -> float:
        """The largest eigenvalue; 0 if there is none."""
        last = self.size - 1
        if last < 1:
            return float(self.diagonal.max(initial=0.0))
        values = eigh_tridiagonal(
            self.diagonal, self.off_diagonal, True, select="i", select_range=(last, last)
        )
        return max(0.0, float(values[0]))

    def rank(self) -> int:
        """Return the number of eigenvalues that are not rounding."""
        return self._count_above(ZERO_TOL * self.largest) if self.largest else 0

    def _count_above(self, shift: float) -> int:
        """Return the number of eigenvalues above a number, by Sturm's sequence."""
        count, pivot = 0, 1.0
        tiny = np.finfo(float).tiny
        squares = np.append(0.0, np.square(self.off_diagonal)).tolist()
        for value, square in zip(self.diagonal.tolist(), squares, strict=True):
            pivot = value - shift - square / pivot
            if pivot == 0.0:
                pivot = -tiny
            count += int(pivot > 0.0)
        return count

    def truncated(self) -> Self:
        """Return the form without the eigenvectors that are rounding; T is diagonal then."""
        if self.is_truncated:
            return self
        form = object.__new__(type(self))
        vars(form).update(vars(self))
        if self.size > 1:
            span = (ZERO_TOL * self.largest, np.inf)
            form.diagonal, form._rotation = eigh_tridiagonal(
                self.diagonal, self.off_diagonal, select="v", select_range=span
            )
        else:
            real = self.diagonal > 0.0
            form.diagonal, form._rotation = self.diagonal[real], np.eye(self.size)[:, real]
        form.off_diagonal = np.zeros(max(0, form.size - 1))
        return form

    # Coordinates

    def coordinates(self, V: Floats) -> Floats:
        """Return QᵀV, (s, k), for V (n, k)."""
        found = multiply_by_reflectors(self._reflectors, self._scales, V, transposed=True)
        return found if self._rotation is None else self._rotation.T @ found

    def combine(self, W: Floats) -> Floats:
        """Return QW, (n, k), for W (s, k)."""
        if self._rotation is not None:
            W = self._rotation @ W
        return multiply_by_reflectors(self._reflectors, self._scales, W, transposed=False)

    # Products and systems

    def matmul(self, W: Floats) -> Floats:
        """Return TW, (s, k), for W (s, k)."""
        found: Floats = self.diagonal[:, None] * W
        found[1:] += self.off_diagonal[:, None] * W[:-1]
        found[:-1] += self.off_diagonal[:, None] * W[1:]
        return found

    def hides_rounding(self, shift: float) -> bool:
        """Whether systems with this shift are solved accurately in spite of rounding errors."""
        return self.is_truncated or shift >= _SAFE_SHIFT * self.largest

    def solve(self, shift: float, W: Floats, scale: float = 1.0) -> tuple[Floats, Floats]:
        """Return (T + λI)⁻¹W for a shift λ, and the pivots of the elimination, (s,).

        `scale` multiplies T, to avoid overflow.
        """
        shifted = self.diagonal * scale + shift
        if self.size < 2:
            return W / shifted[:, None], shifted
        pivots, multipliers, _ = lapack.dpttrf(shifted, self.off_diagonal * scale)
        found, _ = lapack.dpttrs(pivots, multipliers, W)
        return found, pivots

    def trace_of_inverse(self, shift: float, pivots: Floats) -> float:
        """Return the trace of (T + λI)⁻¹, given the pivots of `solve`."""
        shifted = self.diagonal + shift
        if self.size < 2:
            return float((1.0 / shifted).sum())
        upward, _, _ = lapack.dpttrf(shifted[::-1], self.off_diagonal[::-1])
        return float((1.0 / (pivots + upward[::-1] - shifted)).sum())

    # Eigenvectors

    def eigenpairs(self, first: int, last: int) -> tuple[Floats, Floats]:
        """Return the eigenvalues of A from index `first` to `last`, ascending, and (n, k) vectors.

        The form must not be truncated.
        """
        d, W = tridiagonal_eigenpairs(self.diagonal, self.off_diagonal, first, last)
        return d, self.combine(W)

    def leading(self, k: int, X: Floats, *, projected: bool) -> tuple[Floats, Floats]:
        """Return leading eigenpairs of T modified by X, (s, r): values, descending, and vectors.

        Parameters
        ----------
        k
            Maximum number of eigenpairs; those that are rounding are left out.
        X, projected
            With `projected`, X is orthonormal, and the matrix is (I - XXᵀ)T(I - XXᵀ); otherwise T -
            XXᵀ, which is positive semidefinite.
        """
        k = min(k, self.size)
        found = None
        if self.size > _LARGE_SIZE and k <= _SMALL_SHARE * self.size:
            found = self._lanczos(k, X, projected=projected)
        d, V = found or self._dense(k, X, projected=projected)
        real = d > ZERO_TOL * self.largest
        return d[real], V[:, real]

    def _dense(self, k: int, X: Floats, *, projected: bool) -> tuple[Floats, Floats]:
        A = self.matmul(np.eye(self.size))
        if projected:
            A -= X @ (X.T @ A)
            A -= (A @ X) @ X.T
        else:
            A -= X @ X.T
        last = self.size - 1
        d, V = eigh(A, subset_by_index=[last + 1 - k, last], check_finite=False)
        return d[::-1], V[:, ::-1]

    def _lanczos(self, k: int, X: Floats, *, projected: bool) -> tuple[Floats, Floats] | None:
        """Return leading eigenpairs by Lanczos iteration; None unless they are certain."""
        s, diagonal, off_diagonal, XT = self.size, self.diagonal, self.off_diagonal, X.T

        def product(v: Floats) -> Floats:
            v = v.ravel()
            if projected:
                v = v - X @ (XT @ v)
            found = diagonal * v
            found[1:] += off_diagonal * v[:-1]
            found[:-1] += off_diagonal * v[1:]
            out: Floats = found - X @ (XT @ (found if projected else v))
            return out

        # Reproducible, and in general position to all eigenspaces.
        start = np.random.default_rng(0).normal(size=s)
        n_vectors = min(s - 1, max(_MIN_LANCZOS_VECTORS, _VECTORS_PER_PAIR * k))
        operator = LinearOperator((s, s), matvec=product, dtype=np.float64)
        try:
            d, V = eigsh(operator, k=k, which="LA", v0=start, ncv=n_vectors)
        except ArpackError:
            return None
        order = np.argsort(-d, kind="stable")
        d, V = d[order], V[:, order]
        # An iteration may miss one of several equal eigenvalues.
        is_certain = self._count_above_modified(
            d[-1] * (1.0 - _EQUAL_RTOL), X, projected=projected
        ) == len(d)
        return (d, V) if is_certain else None

    def _count_above_modified(self, shift: float, X: Floats, *, projected: bool) -> int:
        """Return the number of eigenvalues above a number, of T modified by X as in `leading`.

        Computed from the inertia of the bordered matrix [[T - μI, X], [Xᵀ, H]], where H is 0 for a
        projection and I otherwise, by either of its Schur complements.
        """
        r: int = X.shape[1]
        bands = np.zeros((3, self.size))
        bands[0, 1:] = bands[2, :-1] = self.off_diagonal
        bands[1] = self.diagonal - shift
        H = (0.0 if projected else np.eye(r)) - X.T @ solve_banded((1, 1), bands, X)
        n_positive = int(np.count_nonzero(np.linalg.eigvalsh(H) > 0.0))
        return self._count_above(shift) + n_positive - r
