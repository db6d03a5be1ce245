"""Components of weighted columns: canonical ridge, then principal components of what is left.

Everything is asked in the principal axes of the weighted columns, X̃D = E diag(√d) Vᵀ: whoever has
the inner products of the columns (V, from C = D R D) and whoever has those of the observations
(E, from K = X̃D(X̃D)ᵀ) has the same problem, of s axes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from streamsel.held.part import Floats

# Ridges that are tried, in mean eigenvalues.
RIDGES: Floats = 10.0 ** (np.arange(-50, 51) / 10.0)
# An axis with less than this part of the largest eigenvalue is rounding.
_SPENT = 1e-12
# Of the target no less than this is left unexplained: its logarithm is asked for.
_TINY = 1e-300


class Axes(NamedTuple):
    """The principal axes of weighted columns, and where the target stands in them.

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
        Observations less what was fitted before: the covariates.
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
        (s, q) one a column; those that do not exist are void.
    alpha
        The ridge, in mean eigenvalues.
    """

    axes: Floats
    alpha: float


def axes_of_columns(C: Floats, weighted: Floats, n: float) -> Axes:
    """Return the axes, V, of columns whose inner products are C (m, m), D R D.

    Parameters
    ----------
    weighted
        (m, r) their coordinates in the target space, weighted: D G.
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
    """Return eigenvalues, descending, and eigenvectors, without what is rounding; A is used up."""
    d, basis = eigh(A.T, overwrite_a=True, check_finite=False, driver="evd")
    d, basis = d[::-1], basis[:, ::-1]
    s = int(np.count_nonzero(d > _SPENT * d[0])) if d.size and d[0] > 0.0 else 0
    return d[:s], basis[:, :s]


def _mean(trace: float, p: int, n: float) -> float:
    return trace / max(1.0, min(p, n - 1.0))


def fit(axes: Axes, q: int, alpha: str | float, size: float) -> Fit:
    """Return q components: first those that explain the target, then those that vary most.

    With λ the ridge, S = (d + λ)^-½ h and Q the eigenvectors of SᵀS, the first min(q, r) are
    F = (d + λ)⁻¹ h Q, each of length 1: the canonical variates of ridge regression. The others are
    the leading eigenvectors of what F leaves of diag(d), made uncorrelated with F, and scaled alike
    so that none varies more than any of F: distances should be about the target first. All are then
    scaled alike, so that the variance of the one that varies most is 1: of each by itself it would
    make the last, mostly noise, as large as the first.

    Parameters
    ----------
    alpha
        "reml" or "gcv", by which the ridge is chosen, or the ridge in mean eigenvalues.
    size
        The weight of all observations: what the squares of a component's scores sum to.
    """
    d, h = axes.d, axes.h
    found = np.zeros((d.size, q))
    if not d.size or not h.size:
        return Fit(found, np.nan)
    if isinstance(alpha, str):
        alpha = float(RIDGES[CRITERIA[alpha](axes, RIDGES * axes.mean).argmax()])
    shrunk = d[:, None] + alpha * axes.mean
    # Only directions are asked for, and ridges may be of any size.
    shrunk /= shrunk[0]
    scaled = h / np.sqrt(shrunk)
    squares, Q = np.linalg.eigh(scaled.T @ scaled)
    count = min(q, int(np.count_nonzero(squares > _SPENT * squares[-1])))
    F = (h / shrunk) @ Q[:, ::-1][:, :count]
    F /= np.linalg.norm(F, axis=0)
    found[:, :count] = F
    rest = min(q, d.size) - count
    if rest > 0:
        found[:, count : count + rest] = _varying_most(d, F, rest)
    variances = np.square(found).T @ d / size
    if rest > 0:
        smaller = min(1.0, variances[:count].min() / variances[count : count + rest].max())
        found[:, count:] *= math.sqrt(smaller)
    # None of the others is larger now than all of these.
    found /= math.sqrt(variances[:count].max())
    return Fit(found, float(alpha))


def _varying_most(d: Floats, F: Floats, count: int) -> Floats:
    """Return the leading axes of what the components F leave of diag(d), uncorrelated with F."""
    DF = d[:, None] * F
    within = np.linalg.inv(F.T @ DF)
    left = -DF @ within @ DF.T
    left[np.diag_indices(d.size)] += d
    _, E = eigh(left, subset_by_index=[d.size - count, d.size - 1], check_finite=False)
    E = E[:, ::-1]
    rest: Floats = E - F @ (within @ (DF.T @ E))
    return rest


def restricted_likelihood(axes: Axes, ridges: Floats) -> Floats:
    """Return the log likelihood of the target space under I + K/λ, for each ridge λ.

    It is the restricted one (Patterson and Thompson 1971), of all r directions with one scale.
    """
    r, degrees = axes.h.shape[1], axes.n - 1.0
    explained = np.square(axes.h).sum(axis=1) / axes.d
    unexplained = max(r - explained.sum(), 0.0)
    grown = 1.0 + axes.d / ridges[:, None]
    left = np.maximum((explained / grown).sum(axis=1) + unexplained, _TINY)
    found: Floats = -0.5 * r * (np.log(grown).sum(axis=1) + degrees * np.log(left))
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
    left = axes.n - 1.0 - d.size + shrunk.sum(axis=1)
    # With as many degrees as observations nothing is left to be tested on.
    with np.errstate(divide="ignore"):
        found: Floats = np.where(left > 0.0, -np.maximum(error, 0.0) / np.square(left), -np.inf)
    return found


CRITERIA = {"reml": restricted_likelihood, "gcv": cross_validated}


def regressed(weighted: Floats, scores: Floats, n: float, others: float) -> Floats:
    """Return what makes scores (n', q) of weighted columns (m, n'), (m, q), by ridge regression.

    Each component with a ridge of its own, by generalised cross-validation: with as many columns as
    observations least squares would make of the scores whatever it is asked to, and of new rows
    nothing. And none is less than what the columns would add that are not among these, if they had
    nothing to do with each other.

    Parameters
    ----------
    n
        Observations less the covariates.
    others
        The sum of the squared weights of the columns that are not among these.
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
    """Return the sum of the squares of all columns, trace, but of these (m, n), weighted."""
    return max(trace - float(np.square(weighted).sum()), 0.0)


def as_long(loadings: Floats, weighted: Floats, scores: Floats) -> Floats:
    """Return loadings (m, q) of weighted columns (m, n) that make components as long as scores."""
    had = np.linalg.norm(weighted.T @ loadings, axis=0)
    found: Floats = loadings * np.linalg.norm(scores, axis=0) / np.where(had > 0.0, had, 1.0)
    return found


def without(loadings: Floats, products: Floats) -> Floats:
    """Return loadings (m, q) nearest to these of components that have no part in some vectors.

    Parameters
    ----------
    products
        (m, r) of the weighted columns with the vectors.
    """
    basis, lengths, _ = np.linalg.svd(products, full_matrices=False)
    basis = basis[:, lengths > _SPENT * lengths.max(initial=0.0)]
    # Twice, for the digits.
    for _ in range(2):
        loadings = loadings - basis @ (basis.T @ loadings)
    return loadings
