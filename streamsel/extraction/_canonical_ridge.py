"""Canonical ridge on weighted columns, followed by principal components of the residual.

All computations are in the s principal axes of the weighted columns, X̃D = E diag(√d) Vᵀ, which
follow from the inner products of the columns (V, from C = D R D) as well as from those of the
observations (E, from K = X̃D(X̃D)ᵀ).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from streamsel.held.part import Floats

# Grid of ridges, relative to the mean eigenvalue.
RIDGES: Floats = 10.0 ** (np.arange(-50, 51) / 10.0)
# An axis whose eigenvalue is below this part of the largest is rounding.
_ZERO_TOL = 1e-12
# Least unexplained part of the target, because its logarithm is taken.
_MIN_UNEXPLAINED = 1e-300


class Axes(NamedTuple):
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


class Fit(NamedTuple):
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


def axes_of_columns(C: Floats, weighted: Floats, n: float) -> Axes:
    """Return the axes, V, of columns whose inner products are C (m, m), D R D.

    Parameters
    ----------
    weighted
        (m, r) weighted coordinates of the columns in the target space: D G.
    """
    mean = _mean(float(np.trace(C)), len(C), n)
    d, V = _descending(C)
    return Axes(d, V, V.T @ weighted, mean, n)


def axes_of_rows(K: Floats, U: Floats, p: int, n: float) -> Axes:
    """Return the axes, E, of n' observations whose inner products are K (n', n'), of p columns.

    Parameters
    ----------
    U
        (n', r) orthonormal basis of the target space.
    """
    mean = _mean(float(np.trace(K)), p, n)
    d, E = _descending(K)
    return Axes(d, E, np.sqrt(d)[:, None] * (E.T @ U), mean, n)


def _descending(A: Floats) -> tuple[Floats, Floats]:
    """Return eigenvalues, descending, and eigenvectors, without rounding ones; A is overwritten."""
    d, basis = eigh(A.T, overwrite_a=True, check_finite=False, driver="evd")
    d, basis = d[::-1], basis[:, ::-1]
    s = int(np.count_nonzero(d > _ZERO_TOL * d[0])) if d.size and d[0] > 0.0 else 0
    return d[:s], basis[:, :s]


def _mean(trace: float, p: int, n: float) -> float:
    return trace / max(1.0, min(p, n - 1.0))


def fit(axes: Axes, q: int, alpha: str | float, size: float) -> Fit:
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
        return Fit(found, np.nan)
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
    return Fit(found, float(alpha))


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


def restricted_likelihood(axes: Axes, ridges: Floats) -> Floats:
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


def cross_validated(axes: Axes, ridges: Floats) -> Floats:
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


def regressed(weighted: Floats, scores: Floats, n: float, others: float) -> Floats:
    """Return loadings (m, q) that reproduce scores (n', q) from weighted columns (m, n'), by ridge.

    Each component has its own ridge, chosen by generalised cross-validation: with as many columns
    as observations, least squares would fit the scores exactly and new rows not at all. The ridge
    is at least the contribution of the other columns if they were uncorrelated.

    Parameters
    ----------
    n
        Number of observations minus the rank of the covariates.
    others
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
        found[:, k] = axes.h[:, k] / (axes.d + max(ridge, others / len(scores)))
    loadings: Floats = V @ found
    return loadings


def besides(trace: float, weighted: Floats) -> float:
    """Return the sum of squares of all columns, trace, minus that of these (m, n), weighted."""
    return max(trace - float(np.square(weighted).sum()), 0.0)


def as_long(loadings: Floats, weighted: Floats, scores: Floats) -> Floats:
    """Return loadings (m, q) of weighted columns (m, n), rescaled to scores of the same length."""
    length = np.linalg.norm(weighted.T @ loadings, axis=0)
    found: Floats = loadings * np.linalg.norm(scores, axis=0) / np.where(length > 0.0, length, 1.0)
    return found


def without(loadings: Floats, products: Floats) -> Floats:
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
