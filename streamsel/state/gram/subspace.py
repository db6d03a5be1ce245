"""Leading axes of columns, in place of a large Gram matrix: streaming, and block Rayleigh-Ritz."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np

from streamsel._utils.numeric import leading_axes
from streamsel.serialization.invariants import expect_bounded, expect_sums
from streamsel.serialization.schema import expect_shapes
from streamsel.state.base import Floats, Indices
from streamsel.state.gram.block_lanczos import leading_eigenpairs_of, new_directions
from streamsel.state.gram.buffers import (
    BufferedAccumulator,
    CenteredColumns,
    DenseCentered,
    SparseBuffer,
    SparseCentered,
    over_rows,
)
from streamsel.state.gram.view import residual

# Sparse columns in a batch, and dense ones as a multiple of the rank.
_SPARSE_BATCH, _BATCH_PER_RANK = 512, 4
# Stored values, and columns, that are buffered before any column is reduced to axes: 200 MB.
_MAX_STORED = 1 << 24
# A residual below this fraction is rounding.
_ZERO_TOL = 1e-10


def _rest(axes: Floats, V: Floats, images: Floats) -> Floats:
    """Return F (n, k) with FFᵀ V = (K - AAᵀ) V, the part of K known from K V beyond AAᵀ."""
    rest = images - axes @ (axes.T @ V)
    c, W = np.linalg.eigh(_symmetric(V.T @ rest))
    is_real = c > _ZERO_TOL * np.linalg.eigvalsh(_symmetric(V.T @ images)).max(initial=0.0)
    factor: Floats = rest @ W[:, is_real] / np.sqrt(c[is_real])
    return factor


def _symmetric(A: Floats) -> Floats:
    return (A + A.T) / 2.0


class Subspace(BufferedAccumulator):
    """Leading axes of K = Σ w x̃ x̃ᵀ over centred columns x̃, by incremental SVD.

    The state is A (n, rank) with orthogonal columns, and AAᵀ replaces K. Batches of columns X̃ are
    added by the singular value decomposition of [A, X̃], whose leading part is the next A; it is
    computed from the inner products of these few columns.

    Directions that depend on the target may have little variance and would be truncated. So K V is
    also summed, exactly, for a few directions V that are known in advance. With R = K - AAᵀ, the
    part RV (VᵀRV)⁻¹ VᵀR of R is then known (Nyström), and results are exact on V.

    Sparse columns are buffered as stored, up to 16.8 million values. Until then the leading axes of
    sparse columns are exact, by block Lanczos iteration.

    Parameters
    ----------
    n
        Number of observations.
    rank
        Number of axes.
    n_jobs
        Number of threads; it does not change the result.
    max_stored
        Number of stored values, and columns, that are buffered.

    Notes
    -----
    **Truncation.** Components beyond the leading axes are dropped at every batch. If K has at most
    this rank, AAᵀ is K to rounding. Otherwise K - AAᵀ is positive semidefinite: no eigenvalue
    exceeds that of the same index in K, and the subspace is not exactly the leading one. The error
    is small if the variances decay quickly. 30 axes miss this share of the sum of the ten largest:
    .002 on Isolet and mnist, .01 on Basehock, .17 on noise. An axis that explains less than 1e-15
    of the first is rounding. `SubspaceIteration` removes the error by further passes over the
    columns.

    **Cost.** About 9 n rank operations per dense column, where a Gram matrix takes n²; per sparse
    column, rank operations per stored value, plus n rank / 8.

    **Memory.** n rank numbers, and as many for each different state that an undo can restore; a
    panel of 4 rank columns, and 12 bytes for each of at most `max_stored` values.

    References
    ----------
    [^1]: Brand, M. (2002). Incremental singular value decomposition of uncertain data with missing
        values. ECCV 2002, 707-720.
    [^2]: Ross, D., Lim, J., Lin, R.-S., Yang, M.-H. (2008). Incremental learning for robust visual
        tracking. International Journal of Computer Vision 77, 125-141.
    """

    # Sparse columns of any density are buffered as stored, so that they remain known.
    _dense_share = 1.0

    def __init__(self, n: int, rank: int, n_jobs: int = 1, max_stored: int = _MAX_STORED) -> None:
        super().__init__(n, 1, n_jobs, _BATCH_PER_RANK * rank)
        self.rank: int = rank
        self._max_stored = max_stored
        # A, V and K V; replaced, never changed in place.
        self._axes: Floats = np.zeros((n, 0))
        self._directions: Floats = np.zeros((n, 0))
        self._images: Floats = np.zeros((n, 0))

    @property
    def _sparse_capacity(self) -> int:
        return self._max_stored

    def _sparse_use(self, sizes: Indices) -> Indices:
        return sizes + 1

    def _flush_dense(self) -> None:
        self._take(self._dense())

    def _flush_sparse(self) -> None:
        for stored in SparseBuffer.concatenate(self._stored, 1).batches(_SPARSE_BATCH):
            self._take(SparseCentered(stored, self.n))

    def _take(self, columns: CenteredColumns) -> None:
        self._axes = self._extended(self._axes, columns)
        if self._directions.size:
            self._images = self._images + columns.matmul(columns.rmatmul(self._directions))

    def track_exactly(self, V: Floats) -> None:
        """Sum K V of all columns from now on, for orthonormal directions V, (n, k)."""
        self._directions, self._images = V, np.zeros_like(V)

    def _dense(self) -> CenteredColumns:
        return DenseCentered(self._panel.values[: self._n_buffered], self.n_jobs)

    @property
    def _n_stored_columns(self) -> int:
        """Number of sparse columns that are buffered."""
        return sum(stored.means.size for stored in self._stored)

    @property
    def is_exact(self) -> bool:
        """Whether `axes` are the leading ones of K to rounding: no column was reduced to axes."""
        at_once = self._n_stored_columns > _SPARSE_BATCH or not (self._stored and self._n_buffered)
        return not self._axes.size and at_once

    def _buffered(self) -> list[CenteredColumns]:
        """Return the buffered columns."""
        columns: list[CenteredColumns] = []
        if self._stored:
            # As one piece, so that the result does not depend on how the columns arrived.
            stored = SparseBuffer.concatenate(self._stored, 1)
            self._stored = (stored,)
            columns.append(SparseCentered(stored, self.n))
        return [*columns, self._dense()] if self._n_buffered else columns

    def _extended(self, axes: Floats, columns: CenteredColumns) -> Floats:
        """Return the leading axes of the given axes and columns together."""
        k = axes.shape[1]
        across = columns.rmatmul(axes)
        own_gram = DenseCentered(axes.T, self.n_jobs).gram()
        products = np.block([[own_gram, across.T], [across, columns.gram()]])
        W = leading_axes(products, self.rank)
        new = columns.matmul(W[k:])

        def add(part: slice) -> None:
            new[part] += axes[part] @ W[:k]

        over_rows(add, self.n, self.n_jobs)
        return new

    # Results

    def _flushed(self) -> Self:
        """Return a copy with the buffers flushed."""
        now = copy.copy(self)
        if self._n_buffered:
            now._flush_dense()
        if self._stored:
            now._flush_sparse()
        now._clear_buffers()
        return now

    def axes(
        self, projected_out: Floats | None = None, count: int | None = None
    ) -> tuple[Floats, Floats]:
        """Return the leading eigenvalues of K, descending, and its eigenvectors, (n, len(d)).

        There are at most `rank` plus the number of directions V, without those that are rounding.

        Parameters
        ----------
        projected_out
            (g, n), orthonormal and orthogonal to V: directions to project out of all columns.
        count
            Number of axes that are needed; None for `rank`. Others may be missing.
        """
        if self._n_stored_columns > _SPARSE_BATCH:
            axes, images = self._axes_of_all(projected_out, count or self.rank), self._all_images()
        else:
            now = self._flushed()
            axes, images = now._axes, now._images
        axes, images = (residual(V, projected_out) for V in (axes, images))
        if images.size:
            axes = np.hstack([axes, _rest(axes, self._directions, images)])
        E, lengths, _ = np.linalg.svd(axes, full_matrices=False)
        d = np.square(lengths)
        is_real = d > self.n * np.finfo(float).eps * d.max(initial=0.0)
        return d[is_real], E[:, is_real]

    def _axes_of_all(self, projected_out: Floats | None, count: int) -> Floats:
        """Return the leading axes of AAᵀ and the buffered columns together, (n, count)."""
        columns = self._buffered()

        def product(V: Floats) -> Floats:
            V = residual(V, projected_out)
            found: Floats = self._axes @ (self._axes.T @ V)
            for part in columns:
                found += part.matmul(part.rmatmul(V))
            return residual(found, projected_out)

        d, E = leading_eigenpairs_of(product, self.n, count)
        axes: Floats = E * np.sqrt(np.maximum(d, 0.0))
        return axes

    def _all_images(self) -> Floats:
        """Return K V over the columns so far."""
        images = self._images
        if self._directions.size:
            for part in self._buffered():
                images = images + part.matmul(part.rmatmul(self._directions))
        return images

    def exact_products(self) -> tuple[Floats, Floats]:
        """Return V, and K V over the columns so far."""
        return self._directions, self._all_images()

    def replace_axes(self, axes: Floats, V: Floats, images: Floats) -> None:
        """Replace A, V and K V of the columns so far by more exact ones."""
        self._axes, self._directions, self._images = axes, V, images
        self._clear_buffers()

    def merge(self, other: Self) -> None:
        """Add the columns of another state with as many rows and the same rank."""
        if other._axes.size:
            self._axes = self._extended(self._axes, DenseCentered(other._axes.T, self.n_jobs))
        # Directions that only one of the two has tracked are dropped.
        k = min(self._directions.shape[1], other._directions.shape[1])
        same = (self._directions[:, :k] == other._directions[:, :k]).all(axis=0)
        k = int(np.append(same, False).argmin())
        self._directions = self._directions[:, :k]
        self._images = self._images[:, :k] + other._images[:, :k]
        super().merge(other)

    def trace(self) -> float:
        """Return the sum of squares of all columns along the kept axes."""
        return float(np.square(self._axes).sum()) + self._buffered_trace()

    def expect_valid(self) -> None:
        """Raise ValueError for values that no data can produce, as a file may hold."""
        super().expect_valid()
        expect_bounded("axes", self._axes, self._directions)
        expect_sums("images", self._images)

    # Files

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file, as arrays and JSON-compatible values."""
        arrays = {"axes": self._axes, "directions": self._directions, "images": self._images}
        return arrays | super().to_state()

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from `to_state`, in a new object with the same parameters."""
        axes = np.asarray(state["axes"])
        expect_shapes(state, axes=(self.n, min(axes.shape[-1], self.rank)))
        V = np.asarray(state["directions"])
        k = V.shape[-1]
        expect_shapes(state, directions=(self.n, k), images=(self.n, k))
        self._axes, self._directions, self._images = axes, V, np.asarray(state["images"])
        super().set_state(state)


_PRODUCT_DENSE_BATCH, _PRODUCT_SPARSE_BATCH = 256, 4096
_EPS = np.finfo(float).eps


class GramProduct(BufferedAccumulator):
    """The product K V = Σ w x̃ (x̃ᵀV), summed over columns as they arrive.

    Parameters
    ----------
    V
        (n, k).
    n_jobs
        Number of threads; it does not change the result.
    """

    def __init__(self, V: Floats, n_jobs: int = 1) -> None:
        super().__init__(len(V), 1, n_jobs, _PRODUCT_DENSE_BATCH)
        self.V = V
        self._sum: Floats = np.zeros_like(V)

    @property
    def _sparse_capacity(self) -> int:
        return _PRODUCT_SPARSE_BATCH

    def _sparse_use(self, sizes: Indices) -> Indices:
        return np.ones_like(sizes)

    def _flush_dense(self) -> None:
        self._sum = self._sum + self._of(
            DenseCentered(self._panel.values[: self._n_buffered], self.n_jobs)
        )

    def _flush_sparse(self) -> None:
        self._sum = self._sum + self._of(
            SparseCentered(SparseBuffer.concatenate(self._stored, 1), self.n)
        )

    def _of(self, columns: CenteredColumns) -> Floats:
        return columns.matmul(columns.rmatmul(self.V))

    def result(self) -> Floats:
        """Return K V, (n, k), of the columns so far."""
        if self._n_buffered:
            self._flush_dense()
        if self._stored:
            self._flush_sparse()
        self._clear_buffers()
        return self._sum


class SubspaceIteration:
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
        Number of axes to compute; 2q + 10 converge faster than q.
    q
        Number of leading axes that must converge.

    Attributes
    ----------
    block
        (n, b) the orthonormal block to multiply in the next pass.
    is_converged
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
        self.block = new_directions(unit, self._basis, 1e-12)
        self.d, self.E = np.square(lengths), np.zeros((self.n, 0))
        self.axes = start
        self.is_converged = not self.block.size

    def update(self, product: Floats) -> None:
        """Update the eigenpairs with K times the requested block, (n, b)."""
        before = self.d[: self.q]
        basis = np.hstack([self._basis, self.block])
        images = np.hstack([self._images, product])
        H = basis.T @ images
        d, W = np.linalg.eigh((H + H.T) / 2.0)
        d, W = d[::-1], W[:, ::-1]
        tolerance = self.n * _EPS * max(0.0, d[0])
        # Keep the best two of three blocks; the next pass makes three again.
        keep = W[:, : 2 * self.rank]
        self._basis, self._images = basis @ keep, images @ keep
        real = int(np.count_nonzero(d[: self.rank] > tolerance))
        self.d, self.E = d[:real], self._basis[:, :real]
        self.axes = self._images[:, :real] / np.sqrt(self.d)
        residuals = self._images[:, :real] - self.E * self.d
        self.block = new_directions(residuals, self._basis, tolerance)
        now = self.d[: self.q]
        self.is_converged = not self.block.size or (
            now.size == before.size and bool((np.abs(now - before) <= 1e-9 * now).all())
        )
