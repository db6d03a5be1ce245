"""Eigenvectors of similarity matrices and graph Laplacians, and subspace refinement.

Subspace refinement improves the leading axes of the Gram matrix in further passes over the columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array, diags_array, eye_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh, splu

from streamsel._utils.numeric import TIE_RTOL
from streamsel.extraction._loadings import Scan
from streamsel.state.base import Floats
from streamsel.state.gram.block_lanczos import new_directions
from streamsel.state.gram.pooled import SharedGram
from streamsel.state.gram.subspace import GramProduct, SubspaceIteration
from streamsel.state.gram.weighting import ColumnWeights
from streamsel.state.source_check import source_changed_error
from streamsel.stream import ColumnStream

# An axis whose eigenvalue is below this part of the largest is rounding.
_ZERO_TOL = 1e-12
# Eigenvalues that differ by less than this part of the largest are equal.
_EQUAL_RTOL = 1e-9
# Number of additional eigenpairs computed, so that spaces of equal eigenvalues are complete.
_N_EXTRA = 6
# A larger matrix is not fully decomposed for a smaller share of its eigenvectors.
_LARGE_SIZE, _SMALL_SHARE = 1500, 0.05
# Multiple of the largest degree added to the diagonal of a Laplacian before its factorisation.
_SHIFT = 1e-9


def leading_eigenpairs(K: Floats, q: int, rounding: float) -> tuple[Floats, Floats]:
    """Return the leading eigenvalues (k,), descending, and eigenvectors (n, k), k at most q.

    Parameters
    ----------
    K
        (n, n) symmetric and positive semi-definite up to rounding; it is overwritten.
    q
        Maximum number of eigenpairs; those that are rounding are left out.
    rounding
        Eigenvalues up to this are rounding, whatever the largest is.
    """
    count = min(len(K), q + _N_EXTRA)

    def dense() -> tuple[Floats, Floats]:
        some = [len(K) - count, len(K) - 1]
        found: tuple[Floats, Floats] = eigh(
            K, subset_by_index=some, check_finite=False, overwrite_a=True
        )
        return found

    d, E = _leading(K, count, dense)
    d, E = d[::-1], E[:, ::-1]
    substantial = d > max(rounding, _ZERO_TOL * d[0])
    d, E = d[substantial], E[:, substantial]
    return d[:q], _canonical_basis(d, E, d[:1].sum())[:, :q]


def lowest_laplacian_eigenpairs(A: csr_array, q: int) -> tuple[Floats, Floats]:
    """Return the lowest eigenvalues (k,) and eigenvectors (n, k) of L = D - A, except the constant.

    Parameters
    ----------
    A
        (n, n) weights of the edges, symmetric, without loops.
    q
        Number of eigenpairs; there are no more than n - 1.
    """
    n = A.shape[0]
    q = min(q, n - 1)
    n_parts, part_of = connected_components(A, directed=False)
    null_space = _component_vectors(part_of, n_parts, q)
    n_further = min(q - null_space.shape[1], n - n_parts)
    if n_further <= 0:
        return np.zeros(null_space.shape[1]), null_space
    degrees = np.asarray(A.sum(axis=1))
    count = min(n - n_parts, n_further + _N_EXTRA)
    sizes = np.bincount(part_of)

    def dense() -> tuple[Floats, Floats]:
        # The null space, vectors constant on each connected component, is shifted to the top.
        together = part_of[:, None] == part_of
        L = np.diag(degrees) - A.toarray() + together * (3.0 * degrees.max() / sizes[part_of])
        found: tuple[Floats, Floats] = eigh(
            L, subset_by_index=[0, count - 1], check_finite=False, overwrite_a=True
        )
        return found

    def without_means(v: Floats) -> Floats:
        v = v.ravel()
        levels: Floats = (np.bincount(part_of, weights=v) / sizes)[part_of]
        return v - levels

    if n <= _LARGE_SIZE or count > _SMALL_SHARE * n:
        d, E = dense()
    else:
        d, E = _lanczos(diags_array(degrees) - A, degrees.max(), count, without_means, dense)
    E = _canonical_basis(d, E, 2.0 * degrees.max())
    return np.append(np.zeros(null_space.shape[1]), d[:n_further]), np.hstack(
        [null_space, E[:, :n_further]]
    )


def _leading(
    K: Floats, count: int, dense: Callable[[], tuple[Floats, Floats]]
) -> tuple[Floats, Floats]:
    """Return leading eigenvalues, ascending, and eigenvectors."""
    if len(K) <= _LARGE_SIZE or count > _SMALL_SHARE * len(K):
        return dense()
    try:
        d, E = eigsh(K, k=count, which="LA", v0=_start_vector(len(K)))
    except ArpackError:
        return dense()
    order = np.argsort(d, kind="stable")
    return d[order], E[:, order]


def _lanczos(
    L: Any,
    scale: float,
    count: int,
    without_means: Callable[[Floats], Floats],
    dense: Callable[[], tuple[Floats, Floats]],
) -> tuple[Floats, Floats]:
    """Return the lowest eigenpairs of a Laplacian outside its null space, by shift and invert."""
    n = L.shape[0]
    inverse = splu((L + _SHIFT * scale * eye_array(n)).tocsc(), permc_spec="MMD_AT_PLUS_A")

    def solved(v: Floats) -> Floats:
        return without_means(inverse.solve(without_means(v)))

    operator = LinearOperator((n, n), matvec=solved, dtype=np.float64)
    try:
        _, E = eigsh(operator, k=count, which="LA", v0=without_means(_start_vector(n)))
    except ArpackError:
        return dense()
    # Eigenvalues by Rayleigh-Ritz in L itself: those of the shifted inverse are less accurate.
    E = np.linalg.qr(E)[0]
    d, rotation = np.linalg.eigh(E.T @ (L @ E))
    return d, E @ rotation


def _start_vector(n: int) -> Floats:
    # Reproducible, and in general position to all eigenspaces.
    return np.random.default_rng(0).normal(size=n)


def _component_vectors(part_of: NDArray[Any], n_parts: int, q: int) -> Floats:
    """Return orthonormal vectors, constant on each connected component, that separate these.

    Pivoted Cholesky of the projector on them, (n, k), k <= q: the first vector separates the
    smallest component from the others.
    """
    k, n = min(q, n_parts - 1), part_of.size
    sizes = np.bincount(part_of)
    residual = 1.0 / sizes - 1.0 / n
    levels = np.zeros((n_parts, k))
    for j in range(k):
        pivot = int((residual >= residual.max() * (1.0 - _EQUAL_RTOL)).argmax())
        level = -1.0 / n - levels[:, :j] @ levels[pivot, :j]
        level[pivot] += 1.0 / sizes[pivot]
        levels[:, j] = level / np.sqrt(level[pivot])
        residual = residual - np.square(levels[:, j])
        residual[pivot] = -1.0
    vectors: Floats = levels[part_of]
    return vectors


def _canonical_basis(d: Floats, E: Floats, scale: float) -> Floats:
    """Return eigenvectors whose signs and bases of equal eigenvalues do not depend on rounding.

    In a space of equal eigenvalues, the first vector is the one with the largest entry, the first
    such entry; the others are 0 there, and so on. The largest entry of a vector is positive; of
    equal ones the first.
    """
    E = E.copy()
    starts = np.flatnonzero(np.append(True, np.abs(np.diff(d)) > _EQUAL_RTOL * scale))
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(d)], strict=True):
        if stop - start > 1:
            E[:, start:stop] = _pivoted(E[:, start:stop])
    size = np.abs(E)
    first = (size >= size.max(axis=0, initial=0.0) * (1.0 - _EQUAL_RTOL)).argmax(axis=0)
    up = np.where(E[first, np.arange(E.shape[1])] < 0.0, -1.0, 1.0)
    oriented: Floats = E * up
    return oriented


def _pivoted(B: Floats) -> Floats:
    """Return the basis of the space of B (n, g) in which each vector is largest at its pivot."""
    out = np.empty_like(B)
    for j in range(B.shape[1]):
        squares = np.square(B).sum(axis=1)
        pivot = int((squares >= squares.max() * (1.0 - _EQUAL_RTOL)).argmax())
        towards = B[pivot] / np.sqrt(squares[pivot])
        out[:, j] = B @ towards
        B = B - np.outer(out[:, j], towards)
    return out


def nearest_mask(squares: Floats, k: int) -> NDArray[np.bool_]:
    """Return a mask of the entries up to the k-th smallest of each row of squared distances (b, m).

    Infinite ones are excluded. Distances are tied if they differ by less than 1e-12 of the largest
    of the row, to allow for rounding.
    """
    near: NDArray[np.bool_] = np.isfinite(squares)
    if squares.shape[1] > k:
        threshold = np.partition(squares, k - 1, axis=1)[:, k - 1]
        threshold += TIE_RTOL * squares.max(axis=1, where=near, initial=0.0)
        near &= squares <= threshold[:, None]
    return near


# A new direction shorter than this part of the images is rounding.
_DIRECTION_TOL = 1e-10
# Maximum number of passes.
_MAX_PASSES = 12


class SubspaceRefinement:
    """Subspace refinement: vectors to multiply by the Gram matrix K in additional passes.

    Each pass computes two products: K times the block that improves the leading axes, and K times
    the image of the target from the previous pass, K² U after K U and so on. Partial least squares
    depends on these powers alone, so q components are exact after q - 1 passes.

    Parameters
    ----------
    state
        The state after the first pass.
    q
        The number of components.
    """

    def __init__(self, state: SharedGram, q: int) -> None:
        self.state, self.q, self.n_passes = state, q, 0
        subspace = state.subspace
        d, E = subspace.axes(state.pool.covariate_basis)
        axes = (E * np.sqrt(d))[:, : subspace.rank]
        self._ritz = SubspaceIteration(axes, subspace.rank, q)
        self._V, images = subspace.exact_products()
        self._images = state.project_out(images)
        self._n_powers = 1
        self._next = self._power(self._images)

    def _power(self, images: Floats) -> Floats:
        """Return the new directions of the last power, to be multiplied; none after q powers."""
        if self._n_powers >= self.q:
            return images[:, :0]
        tolerance = _DIRECTION_TOL * np.linalg.norm(self._images, axis=0).max(initial=0.0)
        return new_directions(images, self._V, tolerance)

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left to compute, or the maximum number of passes is reached."""
        return self.n_passes >= _MAX_PASSES or (self._ritz.is_converged and not self._next.size)

    @property
    def requested(self) -> Floats:
        """The vectors that the next pass multiplies by K, (n, b)."""
        axes = self._ritz.block[:, :0] if self._ritz.is_converged else self._ritz.block
        return np.hstack([axes, self._next])

    def accept_product(self, product: Floats) -> None:
        """Accept K times the requested vectors, (n, b)."""
        self.n_passes += 1
        product = self.state.project_out(product)
        b = product.shape[1] - self._next.shape[1]
        if b:
            self._ritz.update(product[:, :b])
        images = product[:, b:]
        self._V = np.hstack([self._V, self._next])
        self._images = np.hstack([self._images, images])
        self._n_powers += 1
        self._next = self._power(images)

    def store(self) -> None:
        """Write the axes and images into the state."""
        self.state.replace_axes(self._ritz.axes, self._V, self._images)


class GramImage:
    """Products of K with vectors, for the columns of one part.

    Attributes
    ----------
    n_read
        Number of columns read.
    product
        (n, b) K times the vectors, K of these columns.
    total
        Sum of their squares.
    """

    def __init__(self, product: Floats, n_read: int, total: float) -> None:
        self.product, self.n_read, self.total = product, n_read, total

    def merge(self, other: GramImage) -> None:
        """Add the result for the columns that come directly after."""
        self.product = self.product + other.product
        self.n_read += other.n_read
        self.total += other.total

    def expect_all(self, n_columns: int, total: float) -> None:
        """Raise ValueError unless these are `n_columns` columns with this sum of squares."""
        if self.n_read != n_columns:
            raise source_changed_error(f"{self.n_read} columns, after {n_columns}")
        if not np.isclose(self.total, total, rtol=1e-6, atol=0.0):
            raise source_changed_error("columns of other values")


class RefinementPass:
    """A pass over columns that multiplies vectors by their Gram matrix.

    Parameters
    ----------
    scan
        Validates the columns of a stream, and returns them with their moments.
    weights
        The weights of the columns.
    vectors
        (n, b) the vectors.
    n_jobs
        Number of threads.
    """

    def __init__(self, scan: Scan, weights: ColumnWeights, vectors: Floats, n_jobs: int) -> None:
        self._scan, self._weights = scan, weights
        self._vectors, self._n_jobs = vectors, n_jobs

    def read(self, stream: ColumnStream, arrival: int = 0) -> GramImage:
        """Return the product for the columns of a part; `arrival` is unused."""
        del arrival
        product, n_read, total = GramProduct(self._vectors, self._n_jobs), 0, 0.0
        for chunk, stats in self._scan(stream):
            squares = np.square(self._weights.factors(stats))
            product.add(chunk, stats, squares)
            n_read += stats.m2.size
            total += float(squares[:, 0] @ self._weights.squares(stats))
        return GramImage(product.result(), n_read, total)
