"""Canonical ridge, followed by principal components of the residual, and its solutions by state.

All computations are in the s principal axes of the weighted columns, X̃D = E diag(√d) Vᵀ, which
follow from the inner products of the columns (V, from C = D R D) as well as from those of the
observations (E, from K = X̃D(X̃D)ᵀ).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from streamsel.state.base import Floats, Indices
from streamsel.state.gram.pooled import GramState
from streamsel.state.gram.weighting import to_powers
from streamsel.state.pool.representatives import Representatives

# Grid of ridges, relative to the mean eigenvalue.
RIDGES: Floats = 10.0 ** (np.arange(-50, 51) / 10.0)
# An axis whose eigenvalue is below this part of the largest is rounding.
_ZERO_TOL = 1e-12
# Least unexplained part of the target, because its logarithm is taken.
_MIN_UNEXPLAINED = 1e-300


class PrincipalAxes(NamedTuple):
    """The principal axes of weighted columns, and the coordinates of the target in them.

    Parameters
    ----------
    d
        (s,) eigenvalues, descending.
    basis
        (m, s) the axes themselves: V, or E.
    h
        (s, r) √d EᵀU, U the orthonormal basis of the target space.
    mean
        The mean eigenvalue.
    n
        Number of observations minus the rank of the covariates.
    """

    d: Floats
    basis: Floats
    h: Floats
    mean: float
    n: float


class RidgeFit(NamedTuple):
    """Components in the principal axes.

    Parameters
    ----------
    axes
        (s, q) one per column; those that do not exist are 0.
    alpha
        The ridge, relative to the mean eigenvalue.
    """

    axes: Floats
    alpha: float


def axes_of_columns(C: Floats, weighted: Floats, n: float) -> PrincipalAxes:
    """Return the axes, V, of columns whose inner products are C (m, m), D R D.

    Parameters
    ----------
    weighted
        (m, r) weighted coordinates of the columns in the target space: D G.
    """
    mean = _mean(float(np.trace(C)), len(C), n)
    d, V = _descending(C)
    return PrincipalAxes(d, V, V.T @ weighted, mean, n)


def axes_of_rows(K: Floats, U: Floats, p: int, n: float) -> PrincipalAxes:
    """Return the axes, E, of n' observations whose inner products are K (n', n'), of p columns.

    Parameters
    ----------
    U
        (n', r) orthonormal basis of the target space.
    """
    mean = _mean(float(np.trace(K)), p, n)
    d, E = _descending(K)
    return PrincipalAxes(d, E, np.sqrt(d)[:, None] * (E.T @ U), mean, n)


def _descending(A: Floats) -> tuple[Floats, Floats]:
    """Return eigenvalues, descending, and eigenvectors, without rounding ones; A is overwritten."""
    d, basis = eigh(A.T, overwrite_a=True, check_finite=False, driver="evd")
    d, basis = d[::-1], basis[:, ::-1]
    s = int(np.count_nonzero(d > _ZERO_TOL * d[0])) if d.size and d[0] > 0.0 else 0
    return d[:s], basis[:, :s]


def _mean(trace: float, p: int, n: float) -> float:
    return trace / max(1.0, min(p, n - 1.0))


def fit_canonical_ridge(axes: PrincipalAxes, q: int, alpha: str | float, size: float) -> RidgeFit:
    """Return q components: first those that explain the target, then those of largest variance.

    With λ the ridge, S = (d + λ)^-½ h and Q the eigenvectors of SᵀS, the first min(q, r) are F = (d
    + λ)⁻¹ h Q, each of length 1: the canonical variates of ridge regression. The others are the
    leading eigenvectors of the residual of diag(d) after F, made uncorrelated with F, and scaled by
    one factor so that none varies more than any of F: distances should reflect the target first.
    Finally one factor scales the largest variance to 1: scaling each component to variance 1 would
    make the last ones, mostly noise, as large as the first.

    Parameters
    ----------
    alpha
        "reml" or "gcv", by which the ridge is chosen, or the ridge relative to the mean eigenvalue.
    size
        Total weight of the observations: the divisor of variances.
    """
    d, h = axes.d, axes.h
    found = np.zeros((d.size, q))
    if not d.size or not h.size:
        return RidgeFit(found, np.nan)
    if isinstance(alpha, str):
        alpha = float(RIDGES[CRITERIA[alpha](axes, RIDGES * axes.mean).argmax()])
    shrunk = d[:, None] + alpha * axes.mean
    # Only directions matter, and ridges may have any magnitude.
    shrunk /= shrunk[0]
    scaled = h / np.sqrt(shrunk)
    squares, Q = np.linalg.eigh(scaled.T @ scaled)
    count = min(q, int(np.count_nonzero(squares > _ZERO_TOL * squares[-1])))
    F = (h / shrunk) @ Q[:, ::-1][:, :count]
    F /= np.linalg.norm(F, axis=0)
    found[:, :count] = F
    n_rest = min(q, d.size) - count
    if n_rest > 0:
        found[:, count : count + n_rest] = _varying_most(d, F, n_rest)
    variances = np.square(found).T @ d / size
    if n_rest > 0:
        smaller = min(1.0, variances[:count].min() / variances[count : count + n_rest].max())
        found[:, count:] *= math.sqrt(smaller)
    # The others now vary no more than these.
    found /= math.sqrt(variances[:count].max())
    return RidgeFit(found, float(alpha))


def _varying_most(d: Floats, F: Floats, count: int) -> Floats:
    """Return the leading axes of the residual of diag(d) after F, uncorrelated with F."""
    DF = d[:, None] * F
    within = np.linalg.inv(F.T @ DF)
    residual = -DF @ within @ DF.T
    residual[np.diag_indices(d.size)] += d
    _, E = eigh(residual, subset_by_index=[d.size - count, d.size - 1], check_finite=False)
    E = E[:, ::-1]
    rest: Floats = E - F @ (within @ (DF.T @ E))
    return rest


def restricted_likelihood(axes: PrincipalAxes, ridges: Floats) -> Floats:
    """Return the log likelihood of the target space under I + K/λ, for each ridge λ.

    It is the restricted likelihood (Patterson and Thompson 1971), with one scale for all r
    dimensions.
    """
    r, degrees = axes.h.shape[1], axes.n - 1.0
    explained = np.square(axes.h).sum(axis=1) / axes.d
    unexplained = max(r - explained.sum(), 0.0)
    grown = 1.0 + axes.d / ridges[:, None]
    residual = np.maximum((explained / grown).sum(axis=1) + unexplained, _MIN_UNEXPLAINED)
    found: Floats = -0.5 * r * (np.log(grown).sum(axis=1) + degrees * np.log(residual))
    return found


def cross_validated(axes: PrincipalAxes, ridges: Floats) -> Floats:
    """Return minus the generalised cross-validation error for each ridge λ (Golub et al. 1979)."""
    r, d = axes.h.shape[1], axes.d
    squares = np.square(axes.h).sum(axis=1)
    shrunk = ridges[:, None] / (d + ridges[:, None])
    unexplained = r - (squares / d).sum()
    if unexplained < 1e-12 * r:
        unexplained = 0.0
    error = unexplained + (squares / d * np.square(shrunk)).sum(axis=1)
    degrees = axes.n - 1.0 - d.size + shrunk.sum(axis=1)
    # Without residual degrees of freedom the error cannot be estimated.
    with np.errstate(divide="ignore"):
        found: Floats = np.where(
            degrees > 0.0, -np.maximum(error, 0.0) / np.square(degrees), -np.inf
        )
    return found


CRITERIA = {"reml": restricted_likelihood, "gcv": cross_validated}


def regress_scores(weighted: Floats, scores: Floats, n: float, other_weight: float) -> Floats:
    """Return loadings (m, q) that reproduce scores (n', q) from weighted columns (m, n'), by ridge.

    Each component has its own ridge, chosen by generalised cross-validation: with as many columns
    as observations, least squares would fit the scores exactly and new rows not at all. The ridge
    is at least the contribution of the other columns if they were uncorrelated.

    Parameters
    ----------
    n
        Number of observations minus the rank of the covariates.
    other_weight
        Sum of the squared weights of the other columns.
    """
    if len(weighted) <= len(scores):
        axes = axes_of_columns(weighted @ weighted.T, weighted @ scores, n)
        V = axes.basis
    else:
        axes = axes_of_rows(weighted.T @ weighted, scores, len(weighted), n)
        V = weighted @ (axes.basis / np.sqrt(axes.d))
    length = np.linalg.norm(scores, axis=0)
    found = np.zeros_like(axes.h)
    for k in np.flatnonzero(length):
        h = axes.h[:, k : k + 1] / length[k]
        ridges = RIDGES * axes.mean
        ridge = ridges[cross_validated(axes._replace(h=h), ridges).argmax()]
        found[:, k] = axes.h[:, k] / (axes.d + max(ridge, other_weight / len(scores)))
    loadings: Floats = V @ found
    return loadings


def residual_trace(trace: float, weighted: Floats) -> float:
    """Return the sum of squares of all columns, trace, minus that of these (m, n), weighted."""
    return max(trace - float(np.square(weighted).sum()), 0.0)


def rescale_loadings(loadings: Floats, weighted: Floats, scores: Floats) -> Floats:
    """Return loadings (m, q) of weighted columns (m, n), rescaled to scores of the same length."""
    length = np.linalg.norm(weighted.T @ loadings, axis=0)
    found: Floats = loadings * np.linalg.norm(scores, axis=0) / np.where(length > 0.0, length, 1.0)
    return found


def project_out(loadings: Floats, products: Floats) -> Floats:
    """Return loadings (m, q) projected so that their components are orthogonal to some vectors.

    Parameters
    ----------
    products
        (m, r) products of the weighted columns with the vectors.
    """
    basis, lengths, _ = np.linalg.svd(products, full_matrices=False)
    basis = basis[:, lengths > _ZERO_TOL * lengths.max(initial=0.0)]
    # Twice, for full precision.
    for _ in range(2):
        loadings = loadings - basis @ (basis.T @ loadings)
    return loadings


# Loadings within this part of the largest are equal to it.
_EQUAL_RTOL = 1e-9


class WeightedVariables(NamedTuple):
    """Variables that components are made of.

    Parameters
    ----------
    indices
        (m,) their indices in the state.
    weights
        (m,) their weights, as representatives of others.
    R, G
        Their correlations, (m, m), and their coordinates in the target space, (m, r).
    """

    indices: Indices
    weights: Floats
    R: Floats
    G: Floats


class WeightedSolution(NamedTuple):
    """Components of weighted columns.

    Parameters
    ----------
    axes, fit
        The principal axes, and the components in terms of these.
    indices, weights
        (m,) indices of the variables with loadings, and their weights, as columns of length 1.
    scales
        Factor of each power of the relevance. A weight is the root of the sum of squares over the
        powers; the mean squared weight is 1, with an equal share of each power.
    """

    axes: PrincipalAxes
    fit: RidgeFit
    indices: Indices
    weights: Floats
    scales: Floats

    @property
    def n_existing(self) -> int:
        """Number of components that exist; the others are 0."""
        return int(np.count_nonzero(self.fit.axes.any(axis=0)))

    @property
    def relevance(self) -> Floats:
        """Relevance of each component, (q,); 0 for one that does not exist."""
        A, axes = self.fit.axes, self.axes
        length = np.sqrt(np.square(A).T @ axes.d)
        along = np.linalg.norm(axes.h.T @ A, axis=0)
        relevance: Floats = along / np.where(length > 0.0, length, 1.0)
        return np.minimum(relevance, 1.0)

    @property
    def scores(self) -> Floats:
        """Scores of the observations, (n, q), if the axes are those of rows."""
        scores: Floats = self.axes.basis @ (np.sqrt(self.axes.d)[:, None] * self.fit.axes)
        return scores

    @property
    def gram_times_target(self) -> Floats:
        """The product KU with the target, if the axes are those of rows."""
        of_target: Floats = self.axes.basis @ (np.sqrt(self.axes.d)[:, None] * self.axes.h)
        return of_target

    @property
    def duals(self) -> Floats:
        """Matrix that maps weighted columns to loadings, (n, q), if the axes are those of rows."""
        duals: Floats = self.axes.basis @ (self.fit.axes / np.sqrt(self.axes.d)[:, None])
        return duals


class SolveOptions(NamedTuple):
    """Options of a solution.

    Parameters
    ----------
    q, alpha
        As in `fit`.
    powers
        Powers of the relevance, by which columns are weighted.
    n
        Number of observations of equal weight, minus the rank of the covariates.
    size
        Total weight of the observations.
    """

    q: int
    alpha: str | float
    powers: tuple[float, ...]
    n: float
    size: float

    def solve(self, axes: PrincipalAxes) -> RidgeFit:
        """Return the components in terms of principal axes."""
        return fit_canonical_ridge(axes, self.q, self.alpha, self.size)


def solve_by_correlations(
    variables: WeightedVariables, options: SolveOptions
) -> WeightedSolution | None:
    """Return the components by the correlations of variables; None if none is relevant."""
    powers = options.powers
    if not variables.weights.size:
        return None
    weights = (
        to_powers(np.linalg.norm(variables.G, axis=1), powers) * np.sqrt(variables.weights)[:, None]
    )
    squares = np.square(weights).mean(axis=0)
    if not squares.all():
        return None
    scales = 1.0 / np.sqrt(len(powers) * squares)
    D = np.linalg.norm(weights * scales, axis=1)
    axes = axes_of_columns(D[:, None] * variables.R * D, D[:, None] * variables.G, options.n)
    return WeightedSolution(axes, options.solve(axes), variables.indices, D, scales)


def solve_by_gram(
    state: GramState[Representatives], options: SolveOptions
) -> WeightedSolution | None:
    """Return the components by the Gram matrix of all columns; None if none is relevant."""
    powers = options.powers
    n_powers = len(powers)
    scales, K = np.zeros(n_powers), np.zeros((0, 0))
    for power in range(n_powers):
        K_power = state.matrix(power)
        square = n_powers * float(np.trace(K_power)) / max(1, state.n_varying)
        if not square > 0.0:
            return None
        K_power /= square
        scales[power] = 1.0 / np.sqrt(square)
        K = K + K_power if power else K_power
    axes = axes_of_rows(K, state.pool.basis.T, state.n_varying, options.n)
    own = np.linalg.norm(to_powers(state.relevance(), powers) * scales, axis=1)
    weights, indices = own * np.sqrt(state.pool.table["weight"]), np.arange(len(own))
    return WeightedSolution(axes, options.solve(axes), indices, weights, scales)


def solve_from_columns(solution: WeightedSolution) -> Floats:
    """Return the loadings of the variables, of length 1; the largest is positive."""
    loadings = solution.weights[:, None] * (solution.axes.basis @ solution.fit.axes)
    return loadings * largest_signs(loadings)


def pool_loadings(
    state: GramState[Representatives], solution: WeightedSolution
) -> tuple[Floats, Floats]:
    """Return the loadings of the pool's variables, of length 1, and the signs applied to them.

    They are exact, from the Gram matrix, if the pool holds all columns. Otherwise the components
    are regressed on the pool's variables, each with its weight as a representative; the signs are
    still those of the loadings from the Gram matrix, which a second pass does not change.
    """
    unit = state.pool.samples(solution.indices)
    own = solution.weights / np.sqrt(state.pool.table["weight"])
    loadings = own[:, None] * ((own[:, None] * unit) @ solution.duals)
    up = largest_signs(loadings)
    if not state.complete:
        weighted = solution.weights[:, None] * unit
        residual = residual_trace(float(solution.axes.d.sum()), weighted)
        loadings = regress_scores(weighted, solution.scores, solution.axes.n, residual)
        loadings = solution.weights[:, None] * rescale_loadings(loadings, weighted, solution.scores)
    return loadings * up, up


def largest_signs(loadings: Floats) -> Floats:
    """Return the signs that make the largest entry of each column positive, (q,)."""
    sizes = np.abs(loadings)
    # The first of those that differ by rounding only.
    largest = (sizes >= (1.0 - _EQUAL_RTOL) * sizes.max(axis=0, initial=0.0)).argmax(axis=0)
    return np.where(loadings[largest, np.arange(loadings.shape[1])] < 0.0, -1.0, 1.0)
