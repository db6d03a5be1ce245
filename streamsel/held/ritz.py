"""Leading axes of columns, exact to rounding, from several passes over the columns."""

from __future__ import annotations

import numpy as np

from streamsel.held.inflow import Inflow
from streamsel.held.operand import Dense, Operand, Sparse
from streamsel.held.part import Floats, Places
from streamsel.held.waiting import Stored

_DENSE_BATCH, _SPARSE_BATCH = 256, 4096
_EPS = np.finfo(float).eps


class Product(Inflow):
    """The product K V = Σ w x̃ (x̃ᵀV), summed over columns as they arrive.

    Parameters
    ----------
    V
        (n, k).
    n_jobs
        Number of threads; the bits do not depend on it.
    """

    def __init__(self, V: Floats, n_jobs: int = 1) -> None:
        super().__init__(len(V), 1, n_jobs, _DENSE_BATCH)
        self.V = V
        self._sum: Floats = np.zeros_like(V)

    @property
    def _room(self) -> int:
        return _SPARSE_BATCH

    def _room_for(self, sizes: Places) -> Places:
        return np.ones_like(sizes)

    def _take_panel(self) -> None:
        self._sum = self._sum + self._of(Dense(self._panel.values[: self._filled], self.n_jobs))

    def _take_stored(self) -> None:
        self._sum = self._sum + self._of(Sparse(Stored.together(self._stored, 1), self.n))

    def _of(self, columns: Operand) -> Floats:
        return columns.along(columns.onto(self.V))

    def found(self) -> Floats:
        """Return K V, (n, k), of the columns so far."""
        if self._filled:
            self._take_panel()
        if self._stored:
            self._take_stored()
        self._drop_what_waits()
        return self._sum


def new_directions(V: Floats, basis: Floats, least: float) -> Floats:
    """Return an orthonormal basis of the part of V outside a basis, if longer than `least`."""
    from scipy.linalg import qr

    # Two rounds of orthogonalisation suffice.
    for _ in range(2):
        if not V.size:
            break
        V = V - basis @ (basis.T @ V)
        Q, R, _ = qr(V, mode="economic", pivoting=True)
        V = Q[:, np.abs(np.diag(R)) > least]
        least = 0.5
    return V


class Ritz:
    """Leading eigenpairs of K by block Rayleigh-Ritz, given K V for one block V per pass.

    Subspace iteration would replace V by K V and forget V. Here earlier blocks are kept, because K
    is known on them, and the eigenpairs are the best in their span (Rayleigh-Ritz in a block Krylov
    space). With slowly decaying variances, those of madelon, ten components converge to 1e-6 in 6
    passes; subspace iteration takes 26.

    Parameters
    ----------
    start
        (n, b) initial block: an estimate of the leading axes, each scaled by the square root of its
        eigenvalue. Its columns need not be orthogonal or independent.
    rank
        Number of axes to compute; 10 more than needed, and as many again, make convergence faster.
    q
        Number of leading axes that must converge.

    Attributes
    ----------
    asked
        (n, b) the orthonormal block to multiply in the next pass.
    settled
        Whether the last pass changed none of the leading q eigenvalues by more than 1e-9 of its
        value. The error of an axis is then at most about the square root of that.
    d, E
        The leading eigenpairs so far, descending: no eigenvalue exceeds that of K.
    axes
        (n, k) A = K E / √d, an approximation AAᵀ of K. K - AAᵀ is positive semidefinite.

    Notes
    -----
    **Cost.** 4 n rank operations per dense column and pass, 4 rank per stored value.

    **Memory.** 9 n rank numbers: three blocks, their products with K, and their rotations.

    References
    ----------
    [^1]: Musco, C., Musco, C. (2015). Randomized block Krylov methods for stronger and faster
        approximate singular value decomposition. NeurIPS 28.
    [^2]: Stathopoulos, A., Saad, Y. (1998). Restarting techniques for the (Jacobi-)Davidson
        symmetric eigenvalue methods. Electronic Transactions on Numerical Analysis 7, 163-181.
    """

    def __init__(self, start: Floats, rank: int, q: int) -> None:
        self.n, self.rank, self.q = len(start), rank, q
        # The orthonormal blocks so far, and K times them.
        self._basis: Floats = np.zeros((self.n, 0))
        self._images: Floats = np.zeros((self.n, 0))
        lengths = np.linalg.norm(start, axis=0)
        unit = start / np.where(lengths > 0.0, lengths, 1.0)
        self.asked = new_directions(unit, self._basis, 1e-12)
        self.d, self.E = np.square(lengths), np.zeros((self.n, 0))
        self.axes = start
        self.settled = not self.asked.size

    def take(self, product: Floats) -> None:
        """Update the eigenpairs with K times the requested block, (n, b)."""
        before = self.d[: self.q]
        basis = np.hstack([self._basis, self.asked])
        images = np.hstack([self._images, product])
        H = basis.T @ images
        d, W = np.linalg.eigh((H + H.T) / 2.0)
        d, W = d[::-1], W[:, ::-1]
        least = self.n * _EPS * max(0.0, d[0])
        # Keep the best two of three blocks; the next pass makes three again.
        keep = W[:, : 2 * self.rank]
        self._basis, self._images = basis @ keep, images @ keep
        real = int(np.count_nonzero(d[: self.rank] > least))
        self.d, self.E = d[:real], self._basis[:, :real]
        self.axes = self._images[:, :real] / np.sqrt(self.d)
        residuals = self._images[:, :real] - self.E * self.d
        self.asked = new_directions(residuals, self._basis, least)
        now = self.d[: self.q]
        self.settled = not self.asked.size or (
            now.size == before.size and bool((np.abs(now - before) <= 1e-9 * now).all())
        )
