"""Inner products of observations over all columns: the input of linear methods."""

from __future__ import annotations

import functools
from typing import NamedTuple, Protocol

import numpy as np

from streamsel.data.chunks import Stats
from streamsel.state.base import Floats, Indices, VariableState
from streamsel.targets.space import TargetSpace

# An axis whose eigenvalue is below this fraction of the largest is rounding.
_ZERO_TOL = 1e-12
# A larger matrix is not fully decomposed if a smaller share of eigenvectors is needed.
_LARGE_SIZE, _SMALL_SHARE = 1500, 0.05
# For more variables a factor of their products, which is faster, replaces principal axes.
_MIN_FACTORED = 150
# Least number of Lanczos vectors: fewer cause restarts, which cost more.
_MIN_LANCZOS_VECTORS = 60
# A smaller matrix is decomposed by a dense routine at once. For a larger one, few iterations and a
# test of their result suffice if eigenvalues decay; otherwise these add a third to the cost.
_MEDIUM_SIZE, _FEW_PAIRS = 700, 30
_N_RESTARTS = 3
# A smaller matrix is decomposed within a millisecond or two.
_MIN_REDUCED = 200
# Relative distance of the eigenvalues that are found from all others.
_GAP = 1e-9


class GramScale(NamedTuple):
    """Scale and counts that accompany the inner products.

    Parameters
    ----------
    n
        Number of observations, of equal weight, minus the rank of the covariates.
    rows
        Total weight of the observations; the newest has weight 1.
    weight
        Sum of squares of a variable of variance 1.
    p
        Number of columns that vary.
    n_effective_columns
        Number of columns of equal variance that would vary as evenly: (Σv)² / Σv², v the variances.
    cyy
        (c, c) inner products of the target's columns.
    """

    n: float
    rows: float
    weight: float
    p: int
    n_effective_columns: float
    cyy: Floats


class GramView:
    """Inner products of observations, K = X̃D²X̃ᵀ, and those with the target.

    On columns, K is the (n, n) sum over all of them. With few columns, or on rows, the principal
    axes replace the observations: K is diagonal, and inner products are unchanged. A method that
    only needs inner products therefore works the same on both axes.

    Parameters
    ----------
    K
        (s, s) the matrix, or (s,) its diagonal, descending, if it is diagonal.
    U
        (s, r) orthonormal basis of the target space, or its coordinates along the principal axes. r
        = 0 without a target.
    Y
        (s, c) the target's columns, centred; or their coordinates.
    about
        Scale and counts.
    trace
        Trace of K before truncation to the leading axes; None if there was none.
    """

    def __init__(
        self, K: Floats, U: Floats, Y: Floats, about: GramScale, trace: float | None = None
    ) -> None:
        self.K, self.U, self.Y = K, U, Y
        self.n, self.rows, self.weight, self.p, self.n_effective_columns, self.cyy = about
        if trace is None:
            trace = float(K.sum() if K.ndim == 1 else K.trace())
        self.trace = trace

    @property
    def size(self) -> int:
        """The number of observations, or of axes that replace them."""
        return len(self.K)

    def matmul(self, V: Floats) -> Floats:
        """Return K V, (s, k)."""
        product: Floats = self.K[:, None] * V if self.K.ndim == 1 else self.K @ V
        return product

    def axes(self, q: int | None = None) -> tuple[Floats, Floats]:
        """Return the leading eigenvalues (k,), descending, and eigenvectors (s, k).

        Parameters
        ----------
        q
            Largest number to return; None for all that exceed rounding.
        """
        if q == 0:
            return np.zeros(0), np.zeros((self.size, 0))
        if self.K.ndim == 1:
            k = _substantial(self.K, self.trace)
            k = k if q is None else min(q, k)
            return self.K[:k], np.eye(self.size, k)
        if q is None:
            d, E = self._all
        elif self.size > _LARGE_SIZE and q < _SMALL_SHARE * self.size:
            d, E = self._leading(q)
        elif "_all" in vars(self):
            d, E = self._all
        else:
            d, E = self._verified_leading(q) or self._dense_leading(q)
        k = _substantial(d, self.trace)
        k = k if q is None else min(q, k)
        return d[:k], E[:, :k]

    def values(self) -> Floats:
        """Return all eigenvalues that exceed rounding, descending."""
        if self.K.ndim == 1:
            d = self.K
        else:
            from scipy.linalg import eigh

            d = eigh(self.K, eigvals_only=True, check_finite=False)[::-1]
        return d[: _substantial(d, self.trace)]

    @functools.cached_property
    def _all(self) -> tuple[Floats, Floats]:
        from scipy.linalg import eigh

        d, E = eigh(self.K, check_finite=False, driver="evd")
        return d[::-1], E[:, ::-1]

    def _dense_leading(self, q: int) -> tuple[Floats, Floats]:
        from scipy.linalg import eigh  # selectors import this module, and need no spectra

        span = max(0, self.size - q), self.size - 1
        if self.size < _MIN_REDUCED:
            d, E = eigh(self.K, subset_by_index=span, check_finite=False)
        else:
            from streamsel.state.tridiagonal import TridiagonalForm

            # SciPy's eigh does the same, but lets no other thread of Python run meanwhile.
            d, E = TridiagonalForm(np.array(self.K, order="C")).eigenpairs(*span)
        return d[::-1], E[:, ::-1]

    def _verified_leading(self, q: int) -> tuple[Floats, Floats] | None:
        """Return the leading eigenpairs if few iterations find them, and no other is as large."""
        from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

        from streamsel._kernels.lapack import is_positive_definite, symmetric_product

        if self.size < _MEDIUM_SIZE or q > _FEW_PAIRS:
            return None
        K = np.ascontiguousarray(self.K)
        product = LinearOperator(
            K.shape, matvec=functools.partial(symmetric_product, K), dtype=np.float64
        )
        start = np.random.default_rng(0).normal(size=self.size)
        n_vectors = 2 * q + 10
        try:
            d, E = eigsh(product, k=q, which="LA", v0=start, ncv=n_vectors, maxiter=_N_RESTARTS)
        except ArpackError:
            return None
        order = np.argsort(-d, kind="stable")
        d, E = d[order], E[:, order]
        # All other eigenvalues are smaller, if a number minus the matrix is positive definite
        # without these axes.
        rest = (E * (2.0 * d)) @ E.T
        rest -= self.K
        rest[np.diag_indices(self.size)] += d[-1] * (1.0 - _GAP)
        return (d, E) if is_positive_definite(rest) else None

    def _leading(self, q: int) -> tuple[Floats, Floats]:
        from scipy.sparse.linalg import ArpackError, eigsh

        # A fixed start vector, which lies in no eigenspace.
        start = np.random.default_rng(0).normal(size=self.size)
        try:
            d, E = eigsh(
                self.K, k=q, which="LA", v0=start, ncv=max(2 * q + 1, _MIN_LANCZOS_VECTORS)
            )
        except ArpackError:
            return self._all
        order = np.argsort(-d, kind="stable")
        return d[order], E[:, order]


def _substantial(d: Floats, trace: float) -> int:
    """Return the number of eigenvalues, descending, that exceed rounding."""
    if not d.size or not trace > 0.0:
        return 0
    return int(np.count_nonzero(d > _ZERO_TOL * d[0]))


class ScaledRows(NamedTuple):
    """A matrix whose rows have factors, without a copy of it.

    Parameters
    ----------
    rows, factors
        (m, s) and (m,).
    """

    rows: Floats
    factors: Floats

    def __matmul__(self, V: Floats) -> Floats:
        """Return the product with V, (m, k)."""
        product: Floats = self.rows @ V
        product *= self.factors[:, None]
        return product

    def combine(self, W: Floats) -> Floats:
        """Return the product of the transpose with W, (s, k)."""
        product: Floats = self.rows.T @ (self.factors[:, None] * W)
        return product


class InnerProducts(NamedTuple):
    """Inner products of observations, or along axes, with those of individual variables.

    Parameters
    ----------
    view
        The inner products.
    variables
        (m, s) the coordinates of the variables.
    axes
        (n, s) the axes in terms of the observations of all columns; None for no such axes.
    """

    view: GramView
    variables: Floats | ScaledRows
    axes: Floats | None = None


class JointState(Protocol):
    """State of variables with their joint moments, on columns or on rows."""

    @property
    def space(self) -> TargetSpace | None:
        """The target space; None without a target."""

    def stats(self, indices: Indices | None = None) -> Stats:
        """Return the moments of variables; of all variables if `indices` is None."""

    def products(self, indices: Indices | int) -> Floats:
        """Return the (p, s) correlations of all variables with some, or (p,) with one."""

    def coordinates(self, indices: Indices | None = None) -> Floats:
        """Return the (p, r) coordinates of variables in the target space."""


def among(products: Floats, indices: Indices) -> Floats:
    """Return the rows of distinct variables, (s, s), of products of all with them, (p, s).

    All variables in order are not copied.
    """
    if indices.size == len(products) and (np.diff(indices) == 1).all():
        return products
    found: Floats = products[indices]
    return found


def adjusted_squares(space: TargetSpace | None, stats: Stats) -> Floats:
    """Return the sums of squares of columns after adjusting for the covariates."""
    return stats.m2 if space is None else space.adjusted_squares(stats.m2, stats.cxy)


def residual(V: Floats, basis: Floats | None) -> Floats:
    """Return V, (n, k), with an orthonormal basis (d, n) projected out; None projects nothing."""
    return V if basis is None else V - basis.T @ (basis @ V)


def residual_squares(state: VariableState, indices: Indices | None = None) -> Floats:
    """Return the sums of squares of variables after adjusting for covariates; all if None."""
    return adjusted_squares(state.space, state.stats(indices))


def gram_of_variables(
    state: JointState, indices: Indices, scale: Floats, about: GramScale
) -> InnerProducts:
    """Return the inner products of individual variables, along their principal axes.

    Parameters
    ----------
    state
        A state with joint moments of its variables.
    indices, scale
        (m,) indices of the variables, and their scale factors.
    about
        Scale and counts; those that follow from the variables are replaced.

    """
    from scipy.linalg import eigh

    C, length, about = _products_of_scaled(state, indices, scale, about)
    d, V = eigh(C, check_finite=False, driver="evd")
    k = int(np.count_nonzero(d > _ZERO_TOL * d[-1])) if d[-1] > 0.0 else 0
    d, V = d[::-1][:k], V[:, ::-1][:, :k]
    root = np.sqrt(d)
    U, Y = np.zeros((k, 0)), np.zeros((k, 0))
    if state.space is not None:
        of_basis, of_target = _products_with_target(state, indices, scale, length)
        U = V.T @ of_basis / root[:, None]
        Y = V.T @ of_target / root[:, None]
    return InnerProducts(GramView(d, U, Y, about), V * root)


def gram_along_some_axes(
    state: JointState,
    indices: Indices,
    scale: Floats,
    about: GramScale,
    n_needed: int | None = None,
) -> InnerProducts:
    """Return the inner products of individual variables, along axes that are fast to compute.

    These are the principal axes of few variables. A pivoted Cholesky factor of the products of
    many gives other axes, in a fraction of the time.

    Parameters
    ----------
    state, indices, scale, about
        As in `gram_of_variables`.
    n_needed
        Number of leading principal axes that suffice if there is no target; None for all.
    """
    from streamsel.state.gram.pivoted_factor import PivotedFactor, bound_rank

    if indices.size < _MIN_FACTORED:
        return gram_of_variables(state, indices, scale, about)
    space = state.space
    effective_rows = about.n + (0 if space is None else len(space.covariate_map))
    C, length, about = _products_of_scaled(state, indices, scale, about)
    trace = float(np.trace(C))
    is_low_rank = bound_rank(about.rows, effective_rows) < len(C)
    if n_needed is not None and space is None and not is_low_rank:
        none = np.zeros((0, 0))
        d, V = GramView(C, none, none, about).axes(n_needed)
        none = np.zeros((d.size, 0))
        return InnerProducts(GramView(d, none, none, about, trace), V * np.sqrt(d))
    factor = PivotedFactor.of(C)
    U = Y = np.zeros((factor.pivots.size, 0))
    if space is not None:
        of_basis, of_target = _products_with_target(state, indices, scale, length)
        U, Y = factor.coordinates(of_basis), factor.coordinates(of_target)
    return InnerProducts(GramView(factor.products(), U, Y, about, trace), factor.rows)


def _products_of_scaled(
    state: JointState, indices: Indices, scale: Floats, about: GramScale
) -> tuple[Floats, Floats, GramScale]:
    """Return the products of scaled variables, (m, m), their lengths, (m,), and the counts."""
    length = np.sqrt(adjusted_squares(state.space, state.stats(indices))) * scale
    C = among(state.products(indices), indices) * length
    C *= length[:, None]
    parts = np.square(length / length.max())
    n_effective = float(parts.sum()) ** 2 / float(parts @ parts)
    return C, length, about._replace(p=indices.size, n_effective_columns=n_effective)


def _products_with_target(
    state: JointState, indices: Indices, scale: Floats, length: Floats
) -> tuple[Floats, Floats]:
    """Return the products of scaled variables with the basis, (m, r), and the target, (m, c)."""
    assert state.space is not None  # noqa: S101
    of_basis = length[:, None] * state.coordinates(indices)
    of_target = scale[:, None] * (state.stats(indices).cxy @ state.space.target_map.T)
    return of_basis, of_target
