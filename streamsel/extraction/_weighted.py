"""Canonical ridge of columns weighted by their relevance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsel.extraction._canonical_ridge import (
    Axes,
    Fit,
    as_long,
    axes_of_columns,
    axes_of_rows,
    besides,
    fit,
    regressed,
)
from streamsel.held.gram_pool import GramPool, to_powers
from streamsel.held.part import Floats, Places

# Loadings within this part of the largest are equal to it.
_EQUAL_RTOL = 1e-9


class Variables(NamedTuple):
    """Variables that components are made of.

    Parameters
    ----------
    places
        (m,) their indices in the state.
    mass
        (m,) their weights, as representatives of others.
    R, G
        Their correlations, (m, m), and their coordinates in the target space, (m, r).
    """

    places: Places
    mass: Floats
    R: Floats
    G: Floats


class Solution(NamedTuple):
    """Components of weighted columns.

    Parameters
    ----------
    axes, fit
        The principal axes, and the components in terms of these.
    places, weights
        (m,) indices of the variables with loadings, and their weights, as columns of length 1.
    scales
        Factor of each power of the relevance. A weight is the root of the sum of squares over the
        powers; the mean squared weight is 1, with an equal share of each power.
    """

    axes: Axes
    fit: Fit
    places: Places
    weights: Floats
    scales: Floats

    @property
    def n_found(self) -> int:
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
    def of_target(self) -> Floats:
        """The product KU with the target, if the axes are those of rows."""
        of_target: Floats = self.axes.basis @ (np.sqrt(self.axes.d)[:, None] * self.axes.h)
        return of_target

    @property
    def duals(self) -> Floats:
        """Matrix that maps weighted columns to loadings, (n, q), if the axes are those of rows."""
        duals: Floats = self.axes.basis @ (self.fit.axes / np.sqrt(self.axes.d)[:, None])
        return duals


class Asked(NamedTuple):
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

    def of(self, axes: Axes) -> Fit:
        """Return the components in terms of principal axes."""
        return fit(axes, self.q, self.alpha, self.size)


def from_columns(known: Variables, asked: Asked) -> Solution | None:
    """Return the components by the correlations of variables; None if none is relevant."""
    powers = asked.powers
    weights = to_powers(np.linalg.norm(known.G, axis=1), powers) * np.sqrt(known.mass)[:, None]
    squares = np.square(weights).mean(axis=0)
    if not known.mass.size or not squares.all():
        return None
    scales = 1.0 / np.sqrt(len(powers) * squares)
    D = np.linalg.norm(weights * scales, axis=1)
    axes = axes_of_columns(D[:, None] * known.R * D, D[:, None] * known.G, asked.n)
    return Solution(axes, asked.of(axes), known.places, D, scales)


def from_rows(held: GramPool, asked: Asked) -> Solution | None:
    """Return the components by the Gram matrix of all columns; None if none is relevant."""
    n_powers = len(held.powers)
    scales, K = np.zeros(n_powers), np.zeros((0, 0))
    for power in range(n_powers):
        K_power = held.matrix(power)
        square = n_powers * float(np.trace(K_power)) / max(1, held.varying)
        if not square > 0.0:
            return None
        K_power /= square
        scales[power] = 1.0 / np.sqrt(square)
        K = K + K_power if power else K_power
    axes = axes_of_rows(K, held.basis.T, held.varying, asked.n)
    own = np.linalg.norm(to_powers(held.relevance(), held.powers) * scales, axis=1)
    weights, indices = own * np.sqrt(held.table["mass"]), np.arange(len(own))
    return Solution(axes, asked.of(axes), indices, weights, scales)


def of_columns(solution: Solution) -> Floats:
    """Return the loadings of the variables, of length 1; the largest is positive."""
    loadings = solution.weights[:, None] * (solution.axes.basis @ solution.fit.axes)
    return loadings * signs(loadings)


def of_pool(held: GramPool, solution: Solution) -> tuple[Floats, Floats]:
    """Return the loadings of the pool's variables, of length 1, and the signs applied to them.

    They are exact, from the Gram matrix, if the pool holds all columns. Otherwise the components
    are regressed on the pool's variables, each with its weight as a representative; the signs are
    still those of the loadings from the Gram matrix, which a second pass does not change.
    """
    unit = held.samples(solution.places)
    own = solution.weights / np.sqrt(held.table["mass"])
    loadings = own[:, None] * ((own[:, None] * unit) @ solution.duals)
    up = signs(loadings)
    if not held.complete:
        weighted = solution.weights[:, None] * unit
        residual = besides(float(solution.axes.d.sum()), weighted)
        loadings = regressed(weighted, solution.scores, solution.axes.n, residual)
        loadings = solution.weights[:, None] * as_long(loadings, weighted, solution.scores)
    return loadings * up, up


def signs(loadings: Floats) -> Floats:
    """Return the signs that make the largest entry of each column positive, (q,)."""
    sizes = np.abs(loadings)
    # The first of those that differ by rounding only.
    largest = (sizes >= (1.0 - _EQUAL_RTOL) * sizes.max(axis=0, initial=0.0)).argmax(axis=0)
    return np.where(loadings[largest, np.arange(loadings.shape[1])] < 0.0, -1.0, 1.0)
