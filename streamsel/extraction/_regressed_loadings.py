"""Loadings of few columns that reproduce given scores, and operations on loadings."""

from __future__ import annotations

import numpy as np

from streamsel.extraction._ridge_criteria import RIDGES, RidgeProblem, cross_validated
from streamsel.state.base import Floats

# A direction that is shorter than this part of the longest is rounding.
_ZERO_TOL = 1e-12
# Loadings within this part of the largest are equal to it.
_EQUAL_RTOL = 1e-9


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
    m, n_rows = weighted.shape
    of_rows = m > n_rows
    length = np.linalg.norm(scores, axis=0)
    exists = np.flatnonzero(length)
    units = scores[:, exists] / length[exists]
    A = weighted.T @ weighted if of_rows else weighted @ weighted.T
    problem = RidgeProblem.of(A, units if of_rows else weighted @ units, m, n, of_rows=of_rows)
    ridges = RIDGES * problem.mean
    found = np.zeros((problem.form.size, length.size))
    if problem.form.size:
        best = ridges[cross_validated(problem, ridges).argmax(axis=0)]
        for k, ridge in enumerate(np.maximum(best, other_weight / n_rows).tolist()):
            target = length[exists[k]] * problem.target[:, k : k + 1]
            found[:, exists[k]] = problem.form.solve(ridge, target)[0][:, 0]
    loadings = problem.form.combine(found)
    return weighted @ loadings if of_rows else loadings


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


def largest_signs(loadings: Floats) -> Floats:
    """Return the signs that make the largest entry of each column positive, (q,)."""
    sizes = np.abs(loadings)
    # The first of those that differ by rounding only.
    largest = (sizes >= (1.0 - _EQUAL_RTOL) * sizes.max(axis=0, initial=0.0)).argmax(axis=0)
    return np.where(loadings[largest, np.arange(loadings.shape[1])] < 0.0, -1.0, 1.0)
