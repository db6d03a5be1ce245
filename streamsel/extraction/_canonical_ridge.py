"""Canonical ridge, followed by principal components of the residual, and its solutions by state.

All follows from the inner products of the weighted columns W = X̃D: those of the columns, C = WᵀW,
or of the observations, K = WWᵀ, in tridiagonal form.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from streamsel.extraction._regressed_loadings import (
    largest_signs,
    regress_scores,
    rescale_loadings,
    residual_trace,
)
from streamsel.extraction._ridge_criteria import (
    CRITERIA,
    RIDGES,
    RidgeProblem,
    mean_eigenvalue,
)
from streamsel.state.base import Floats, Indices
from streamsel.state.gram.pivoted_factor import PivotedFactor
from streamsel.state.gram.pooled import GramState
from streamsel.state.gram.weighting import to_powers
from streamsel.state.pool.relevance_pool import RelevancePool
from streamsel.state.pool.representatives import RepresentativeSet
from streamsel.state.tridiagonal import TridiagonalForm

# A component that explains less than this part of the first is rounding.
_ZERO_TOL = 1e-12
# Fewer columns take as long by their correlations as by the factor of these.
_MIN_FACTORED = 150
# If the square of a column is below this part of the largest, the matrix of products is treated as
# singular: its smallest eigenvalue may be mere rounding (1e-12 of the largest).
_WELL_SCALED = 1e-9


class RidgeFit(NamedTuple):
    """Components; those that do not exist are 0.

    Parameters
    ----------
    weights
        (s, q) weights of the weighted columns; or weights α of the observations, by which those of
        the columns are Wᵀα.
    products
        (s, q) the matrix times the weights: the scores of the observations, if it is K.
    relevance
        (q,) relevance of each component.
    alpha
        The ridge, relative to the mean eigenvalue.
    """

    weights: Floats
    products: Floats
    relevance: Floats
    alpha: float

    @property
    def n_existing(self) -> int:
        """Number of components that exist."""
        return int(np.count_nonzero(self.weights.any(axis=0)))


def fit_canonical_ridge(problem: RidgeProblem, q: int, alpha: str | float, size: float) -> RidgeFit:
    """Return q components: first those that explain the target, then those of largest variance.

    With λ the ridge and Q the eigenvectors of UᵀW(C + λ)⁻¹WᵀU, the first min(q, r) have the weights
    F = (C + λ)⁻¹WᵀU Q, each of length 1: the canonical variates of ridge regression. The others are
    the leading eigenvectors of the residual of C after F, made uncorrelated with F, and scaled by
    one factor so that none varies more than any of F: distances should reflect the target first.
    Finally one factor scales the largest variance to 1: scaling each component to variance 1 would
    make the last ones, mostly noise, as large as the first.

    By K the weights are Wᵀα: α = (K + λ)⁻¹U Q for the first, and the scores of the others are the
    eigenvectors of K with the scores of the first projected out, times the roots of the
    eigenvalues.

    Parameters
    ----------
    alpha
        "reml" or "gcv", by which the ridge is chosen, or the ridge relative to the mean eigenvalue.
    size
        Total weight of the observations: the divisor of variances.
    """
    shape = problem.form.order, q
    found = RidgeFit(np.zeros(shape), np.zeros(shape), np.zeros(q), np.nan)
    if not problem.form.size or not problem.target.shape[1]:
        return found
    if isinstance(alpha, str):
        alpha = float(RIDGES[CRITERIA[alpha](problem, RIDGES * problem.mean).argmax()])
    if not problem.form.hides_rounding(alpha * problem.mean):
        problem = problem.truncated()
    first = _explaining(problem, q, alpha * problem.mean)
    count = first.shape[1]
    rest = _leading_uncorrelated(problem, first, min(q, problem.form.size) - count)
    W = np.hstack([first, rest])
    products = problem.form.matmul(W)
    # Sums of squares of the scores.
    squares = (np.square(products) if problem.of_rows else W * products).sum(axis=0)
    along = np.linalg.norm(problem.target.T @ (products if problem.of_rows else W), axis=0)
    largest = squares[:count].max()
    scale = np.full(W.shape[1], 1.0 / math.sqrt(largest / size))
    if rest.size:
        scale[count:] *= math.sqrt(min(1.0, squares[:count].min() / squares[count:].max()))
    found.weights[:, : scale.size] = problem.form.combine(W * scale)
    found.products[:, : scale.size] = problem.form.combine(products * scale)
    found.relevance[: scale.size] = np.minimum(along / np.sqrt(squares), 1.0)
    return found._replace(alpha=float(alpha))


def _explaining(problem: RidgeProblem, q: int, ridge: float) -> Floats:
    """Return the weights of at most q components that explain the target, (s, k)."""
    form, B = problem.form, problem.target
    # Only directions matter, and ridges may have any magnitude.
    scale = 1.0 / (form.largest + ridge)
    solved, _ = form.solve(ridge * scale, B, scale)
    squares, Q = np.linalg.eigh(solved.T @ (form.matmul(B) if problem.of_rows else B))
    count = min(q, int(np.count_nonzero(squares > _ZERO_TOL * squares[-1])))
    W = solved @ Q[:, ::-1][:, :count]
    # The weights of the columns have length 1.
    of_columns = W * form.matmul(W) if problem.of_rows else np.square(W)
    found: Floats = W / np.sqrt(of_columns.sum(axis=0))
    return found


def _leading_uncorrelated(problem: RidgeProblem, first: Floats, count: int) -> Floats:
    """Return the weights of the components of largest variance, uncorrelated with the first."""
    form = problem.form
    if count <= 0:
        return first[:, :0]
    products = form.matmul(first)
    if problem.of_rows:
        d, V = form.leading(count, np.linalg.qr(products)[0], projected=True)
        V = V / np.sqrt(d)
        within, across = products.T @ products, products.T @ form.matmul(V)
    else:
        within = first.T @ products
        root = np.linalg.cholesky(within)
        _, V = form.leading(count, np.linalg.solve(root, products.T).T, projected=False)
        across = products.T @ V
    rest: Floats = V - first @ np.linalg.solve(within, across)
    return rest


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
    problem, fit
        The problem, and its components.
    indices, weights
        (m,) indices of the variables in the state, and their weights, as columns of length 1; those
        of correlations include their weights as representatives.
    scales
        Factor of each power of the relevance. A weight is the root of the sum of squares over the
        powers; the mean squared weight is 1, with an equal share of each power.
    trace
        Sum of the squared weights of all columns.
    """

    problem: RidgeProblem
    fit: RidgeFit
    indices: Indices
    weights: Floats
    scales: Floats
    trace: float

    @property
    def scores(self) -> Floats:
        """Scores of the observations, (n, q), if the matrix is that of the observations."""
        return self.fit.products

    @property
    def duals(self) -> Floats:
        """Matrix that maps weighted columns to loadings, (n, q), if the matrix is that of rows."""
        return self.fit.weights

    @property
    def gram_times_target(self) -> Floats:
        """The product KU with the target, if the matrix is that of the observations."""
        form = self.problem.form
        return form.combine(form.matmul(self.problem.target))


Fitted = tuple[RidgeProblem, RidgeFit]


class SolveOptions(NamedTuple):
    """Options of a solution.

    Parameters
    ----------
    q, alpha
        As in `fit_canonical_ridge`.
    powers
        Powers of the relevance, by which columns are weighted.
    n
        Number of observations of equal weight, minus the rank of the covariates.
    size
        Total weight of the observations.
    rank
        How many observations matter (`bound_rank`).
    """

    q: int
    alpha: str | float
    powers: tuple[float, ...]
    n: float
    size: float
    rank: float

    def solve(self, A: Floats, target: Floats, p: int, *, of_rows: bool) -> Fitted:
        """Return the problem of `RidgeProblem.of`, and its components."""
        problem = RidgeProblem.of(A, target, p, self.n, of_rows=of_rows)
        return problem, fit_canonical_ridge(problem, self.q, self.alpha, self.size)

    def solve_columns(self, C: Floats, target: Floats) -> Fitted:
        """Return the problem of columns, and its components; C is overwritten.

        Where many columns are likely to be dependent, the factor of C replaces the observations.
        Its rank is that of C, so that no eigenvectors are needed to leave out what is rounding.
        """
        p = len(C)
        if p < _MIN_FACTORED:
            return self.solve(C, target, p, of_rows=False)
        squares = C.diagonal()
        if self.rank > p and squares.min() > _WELL_SCALED * squares.max():
            form = TridiagonalForm(C.copy())
            if form.rank() == p:
                mean = mean_eigenvalue(float(np.trace(C)), p, self.n)
                problem = RidgeProblem(form, form.coordinates(target), False, mean, self.n)
                return problem, fit_canonical_ridge(problem, self.q, self.alpha, self.size)
        factor = PivotedFactor.of(C)
        problem = RidgeProblem.of_factor(factor, target, self.n)
        fit = fit_canonical_ridge(problem, self.q, self.alpha, self.size)
        weights, products = factor.rows @ fit.weights, factor.rows @ fit.products
        return problem, fit._replace(weights=weights, products=products)


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
    C, target = D[:, None] * variables.R, D[:, None] * variables.G
    C *= D
    trace = float(np.trace(C))
    fitted = options.solve_columns(C, target)
    return WeightedSolution(*fitted, variables.indices, D, scales, trace)


def solve_by_gram(
    state: GramState[RelevancePool], options: SolveOptions
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
    trace = float(np.trace(K))
    fitted = options.solve(K, state.pool.basis.T, state.n_varying, of_rows=True)
    weights = np.linalg.norm(to_powers(state.relevance(), powers) * scales, axis=1)
    return WeightedSolution(*fitted, np.arange(weights.size), weights, scales, trace)


def solve_from_columns(solution: WeightedSolution) -> Floats:
    """Return the loadings of the variables, of length 1; the largest is positive."""
    loadings = solution.weights[:, None] * solution.fit.weights
    return loadings * largest_signs(loadings)


def loadings_by_gram(state: GramState[RelevancePool], solution: WeightedSolution) -> Floats:
    """Return the loadings of the pool's variables, of length 1, as the Gram matrix defines them."""
    squares = np.square(solution.weights)
    loadings: Floats = squares[:, None] * (state.pool.table["unit"] @ solution.duals)
    return loadings


def regressed_loadings(
    state: GramState[RelevancePool], solution: WeightedSolution, kept: RepresentativeSet
) -> Floats:
    """Return the loadings of some of the pool's variables, of length 1, that fit the scores best.

    Each variable has its weight as a representative. The signs are those of the loadings from the
    Gram matrix, which a second pass does not change.
    """
    weights = solution.weights[kept.indices] * np.sqrt(kept.weight)
    weighted = weights[:, None] * state.pool.samples(kept.indices)
    residual = residual_trace(solution.trace, weighted)
    loadings = regress_scores(weighted, solution.scores, solution.problem.n, residual)
    loadings = weights[:, None] * rescale_loadings(loadings, weighted, solution.scores)
    return loadings * largest_signs(loadings_by_gram(state, solution))
