"""The space that the target variables span, and coordinates of variables in it."""

from __future__ import annotations

import math
from typing import Self

import numpy as np
from numpy.typing import NDArray

from streamsel._kernels.relevance import coordinates, relevances
from streamsel._kernels.scan import relevance_bin_if_below
from streamsel.targets.kernels import VariableKernel

Floats = NDArray[np.float64]

# A target variable whose residual on the others is below this fraction of its square adds nothing.
_RANK_TOLERANCE = 1e-10
# A residual on the covariates below this fraction of the sum of squares is rounding.
_COVARIATE_RTOL = 1e-12


class TargetSpace:
    """The span of the target variables, in the feature space of a kernel, and coordinates in it.

    With K the normalised kernel matrix of the target variables and K = L Lᵀ its pivoted Cholesky
    factorisation, the coordinates of a variable x are g = L⁻¹ K(Y_piv, x), and its relevance is
    ‖g‖. With the linear kernel that is ‖Uᵀx̃‖ / ‖x̃‖, U an orthonormal basis of the centred target
    columns.

    All results are adjusted for the covariates Z among the columns: with V = Z Wᵀ an orthonormal
    basis of their span, x̃ - V Vᵀx̃ replaces x̃, and the target likewise. Both are functions of the
    moments: Vᵀx̃ = W Zᵀx̃.

    Parameters
    ----------
    cyy
        (c, c) centred sums of products of the columns: targets and covariates.
    n
        Number of observations.
    kernel
        The kernel between variables; its gamma is fitted to the target here.
    is_covariate
        (c,) which columns are covariates; None for none.
    effective_rows
        Effective number of observations of equal weight; None for n.
    is_pair
        Whether the columns are the indicators of two classes: the first suffices.
    chi_square_scale
        Factor that makes relevance² a χ² statistic, that of a score test; None for the F test.

    Attributes
    ----------
    rank
        Dimension r of the space.
    kernel
        The fitted kernel.
    weights
        (r, c) the matrix L⁻¹, zero for target columns that are not pivots; for the linear kernel it
        also scales the target columns and projects the covariates out.
    covariate_map
        (d, c) the matrix W, d the dimension of the covariates' span.
    """

    def __init__(
        self,
        cyy: Floats,
        n: float,
        kernel: VariableKernel,
        is_covariate: NDArray[np.bool_] | None = None,
        effective_rows: float | None = None,
        *,
        is_pair: bool = False,
        chi_square_scale: float | None = None,
    ) -> None:
        self.c = len(cyy)
        self.n = n
        self.effective_rows = n if effective_rows is None else effective_rows
        self.chi_square_scale = chi_square_scale
        self._columns = cyy, is_covariate
        self.covariate_map: Floats = np.zeros((0, self.c))
        # Maps products with the columns to products with their residuals on the covariates.
        self._residual_map: Floats | None = None
        if is_covariate is not None and is_covariate.any():
            cyy = self._remove_covariates(cyy, is_covariate)
        squares = cyy.diagonal()
        self.kernel = kernel.fit_gamma(cyy, squares, n)
        self._cyy, self._squares = cyy, squares
        self.rank, weights = _inverse_factor(cyy, self.kernel, n)
        if self._residual_map is not None and self.kernel.name == "linear":
            weights = weights @ self._residual_map
        self.weights: Floats = weights
        # Whether coordinates are linear in the moments.
        self._is_plain = self._residual_map is None and self.kernel.name == "linear"
        # For two classes, products with the second are those with the first, negated.
        self._is_pair = is_pair and self._is_plain
        self._in_short: Floats = weights[:, :1] - weights[:, 1:] if self._is_pair else weights
        # Moments with known relevances, from `cache_relevance` to `clear_cache`.
        self._known: tuple[Floats, Floats, Floats] | None = None

    def __deepcopy__(self, memo: object) -> Self:
        # Target spaces are immutable.
        return self

    def _remove_covariates(self, cyy: Floats, is_covariate: NDArray[np.bool_]) -> Floats:
        """Compute the projection that removes the covariates; return the residual products."""
        targets, covariates = np.flatnonzero(~is_covariate), np.flatnonzero(is_covariate)
        rank, W = _inverse_factor(cyy[np.ix_(covariates, covariates)], VariableKernel(), self.n)
        self.covariate_map = np.zeros((rank, self.c))
        self.covariate_map[:, covariates] = W
        self._residual_map = np.zeros((targets.size, self.c))
        self._residual_map[np.arange(targets.size), targets] = 1.0
        self._residual_map -= (cyy[targets] @ self.covariate_map.T) @ self.covariate_map
        residual = self._residual_map @ cyy @ self._residual_map.T
        residual = 0.5 * (residual + residual.T)
        explained = np.diag(residual) <= _COVARIATE_RTOL * np.diag(cyy)[targets]
        residual[explained] = 0.0
        residual[:, explained] = 0.0
        return residual

    @property
    def _linear(self) -> TargetSpace:
        if self.kernel.name == "linear":
            return self
        cyy, is_covariate = self._columns
        return TargetSpace(cyy, self.n, VariableKernel(), is_covariate)

    @property
    def squares(self) -> Floats:
        """Sums of squares of the columns, targets and covariates, (c,)."""
        squares: Floats = self._columns[0].diagonal()
        return squares

    @property
    def target_map(self) -> Floats:
        """The map from all columns to those of the target, covariates projected out, (a, c)."""
        return np.eye(self.c) if self._residual_map is None else self._residual_map

    @property
    def target_products(self) -> Floats:
        """Inner products of the target's columns, covariates projected out, (a, a)."""
        return self._cyy

    @property
    def first_square(self) -> float:
        """Sum of squares of the first target column, covariates projected out."""
        return float(self._squares[0])

    @property
    def linear_rank(self) -> int:
        """Dimension of the span of the centred target columns."""
        return self._linear.rank

    def adjusted_squares(self, m2: Floats, cxy: Floats) -> Floats:
        """Return the sums of squares m2 (p,) of variables after adjusting for covariates."""
        if not len(self.covariate_map):
            return m2
        residual = m2 - np.square(_mapped(cxy, self.covariate_map)).sum(axis=1)
        return np.where(residual > _COVARIATE_RTOL * m2, residual, 0.0)

    def _kernel_products(self, m2: Floats, cxy: Floats) -> tuple[Floats, Floats]:
        """Return products or kernels with the targets (p, c), and their squared divisors."""
        m2 = self.adjusted_squares(m2, cxy)
        if not self.rank:
            # Without rows a kernel has no width, and relevances are 0.
            return np.zeros((m2.size, self.weights.shape[1])), m2
        if self.kernel.name == "linear":
            return cxy, m2
        if self._residual_map is not None:
            cxy = _mapped(cxy, self._residual_map)
        K = self.kernel.normalised(cxy, m2, self._squares, self.n)
        return K, (m2 > 0.0).astype(np.float64)

    def coordinates(self, m2: Floats, cxy: Floats) -> Floats:
        """Return the (p, r) coordinates of variables with moments m2 (p,) and cxy (p, c).

        A constant variable (m2 = 0) has coordinates zero.
        """
        G = np.empty((m2.size, self.rank))
        if not self._is_plain:
            cxy, m2 = self._kernel_products(m2, cxy)
        coordinates(cxy, np.sqrt(m2), self.weights, G)
        return G

    def relevance(self, m2: Floats, cxy: Floats, *, signed: bool = False) -> Floats:
        """Return the (p,) relevances of variables with moments m2 (p,) and cxy (p, c).

        A constant variable (m2 = 0) gets -inf. `signed` needs one target column and the linear
        kernel, and returns the correlation itself.
        """
        known = self._known
        if known is not None and known[0] is m2 and known[1] is cxy and not signed:
            return known[2].copy()
        out = np.empty(m2.size)
        if self._is_pair:
            cxy = np.ascontiguousarray(cxy[:, :1])
        elif not self._is_plain:
            cxy, m2 = self._kernel_products(m2, cxy)
        relevances(cxy, m2, self._in_short, signed, out)
        return out

    def cache_relevance(self, m2: Floats, cxy: Floats) -> Floats:
        """Return the relevances of variables, and cache them for `relevance` until `clear_cache`.

        The arrays must not be changed until then.
        """
        relevance = self.relevance(m2, cxy)
        self._known = m2, cxy, relevance
        return relevance

    def clear_cache(self) -> None:
        """Clear the cache of `cache_relevance`."""
        self._known = None

    def bin_if_below(self, x: Floats, Y: Floats, threshold: float) -> int:
        """Return the `RelevanceHistogram` bin of a column x (n,) of relevance below `threshold`.

        -1 if it is uncertain whether the relevance is below `threshold`, or in which bin. x is
        writable and contiguous; Y (c', n) are the centred target columns.
        """
        index: int = (
            relevance_bin_if_below(x, Y, self._in_short, threshold) if self._is_plain else -1
        )
        return index

    def largest_relevance(self, correlation: float) -> float:
        """Return the largest relevance of variables whose linear relevance is `correlation`.

        For a non-linear kernel, the maximum is over 4,096 directions in the linear target space:
        both signs of its first axis, and others drawn from a fixed seed. NaN for a kernel that
        depends on the scale of a variable.
        """
        linear = self._linear
        if linear is self or not linear.rank:
            return correlation
        if not self.kernel.scale:
            return float("nan")
        directions = np.random.default_rng(0).normal(size=(4096, linear.rank))
        directions[:2] = 0.0
        directions[0, 0], directions[1, 0] = 1.0, -1.0
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        # Moments of the variables x̃ = √n U g: cxy = √n Cyy Wᵀ g, for U = Y Wᵀ.
        cxy = correlation * np.sqrt(self.n) * directions @ linear.weights @ self._columns[0]
        return float(self.relevance(np.full(len(cxy), float(self.n)), cxy).max())


def _mapped(cxy: Floats, W: Floats) -> Floats:
    """Return W (r, c) times each row of cxy (p, c), each row by the same instructions."""
    found = np.empty((len(cxy), len(W)))
    coordinates(cxy, np.ones(len(cxy)), W, found)
    return found


def _inverse_factor(cyy: Floats, kernel: VariableKernel, n: float) -> tuple[int, Floats]:
    """Return rank and L⁻¹, (r, c), of the normalised kernel matrix of columns, K = L Lᵀ.

    For the linear kernel, L⁻¹ includes the scaling of the columns.
    """
    squares = np.diag(cyy).copy()
    c = squares.size
    if c == 0 or n == 0.0:
        return 0, np.zeros((0, c))
    if c == 1:
        # Nothing to factorise; on rows this runs after each of them.
        square = float(squares[0])
        rank = int(square > 0.0)
        weights: Floats = np.ones((rank, 1))
        if rank and kernel.name == "linear":
            weights[0, 0] = 1.0 / math.sqrt(square)
        return rank, weights
    # scipy.linalg takes longer to import than a few thousand columns take to learn.
    from scipy.linalg import lapack

    gram = kernel.normalised(cyy, squares, squares, n)
    L, pivots, rank, _ = lapack.dpstrf(gram, tol=_RANK_TOLERANCE, lower=1)
    rank = int(rank)
    weights = np.zeros((rank, c))
    if rank:
        # Not solve_triangular: BLAS may start threads for a matrix of any size.
        inverse, _ = lapack.dtrtri(L[:rank, :rank], lower=1)
        weights[:, pivots[:rank] - 1] = np.tril(inverse)
    if kernel.name == "linear":
        # Normalised once here, instead of for every column.
        weights[:, squares > 0.0] /= np.sqrt(squares[squares > 0.0])
    return rank, weights
