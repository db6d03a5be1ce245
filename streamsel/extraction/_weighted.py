"""Columns weighted by their relevance, and what canonical ridge makes of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsel.extraction._canonical_ridge import Axes, Fit, axes_of_columns, axes_of_rows, fit
from streamsel.held.gram_pool import GramPool
from streamsel.held.loadings import regressed
from streamsel.held.part import Floats, Places


class Variables(NamedTuple):
    """Variables of which components are made.

    Parameters
    ----------
    places
        (m,) which they are of those held.
    mass
        (m,) for how many each stands.
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
        The principal axes, and the components in these.
    power
        The power of the relevance by which columns were weighted.
    places, weights
        (m,) which of the variables held have loadings, and what each counts with, as a column of
        length 1.
    scale
        What all weights were multiplied by: the mean of their squares is 1.
    """

    axes: Axes
    fit: Fit
    power: float
    places: Places
    weights: Floats
    scale: float

    @property
    def count(self) -> int:
        """How many components there are; the others are void."""
        return int(np.count_nonzero(self.fit.axes.any(axis=0)))

    @property
    def relevance(self) -> Floats:
        """Relevance of each component, (q,); 0 of one that is void."""
        A, axes = self.fit.axes, self.axes
        length = np.sqrt(np.square(A).T @ axes.d)
        along = np.linalg.norm(axes.h.T @ A, axis=0)
        relevance: Floats = along / np.where(length > 0.0, length, 1.0)
        return np.minimum(relevance, 1.0)

    @property
    def scores(self) -> Floats:
        """The components of the observations, (n, q), where the axes are those of rows."""
        scores: Floats = self.axes.basis @ (np.sqrt(self.axes.d)[:, None] * self.fit.axes)
        return scores

    @property
    def duals(self) -> Floats:
        """What turns weighted columns into loadings, (n, q), where the axes are those of rows."""
        duals: Floats = self.axes.basis @ (self.fit.axes / np.sqrt(self.axes.d)[:, None])
        return duals


def from_columns(
    known: Variables, power: float, n: float, q: int, alpha: str | float
) -> Solution | None:
    """Return the components of variables that are known one by one; None if nothing is relevant.

    Parameters
    ----------
    n
        Observations of equal weight, less the covariates.
    """
    weights = np.linalg.norm(known.G, axis=1) ** power * np.sqrt(known.mass)
    square = float(np.square(weights).mean())
    if not square > 0.0:
        return None
    scale = 1.0 / np.sqrt(square)
    D = scale * weights
    axes = axes_of_columns(D[:, None] * known.R * D, D[:, None] * known.G, n)
    return Solution(axes, fit(axes, q, alpha), power, known.places, D, scale)


def from_rows(held: GramPool, which: int, n: float, q: int, alpha: str | float) -> Solution | None:
    """Return the components of all columns, as observations see them; None if none is relevant.

    Parameters
    ----------
    which
        The place of the power among those of which a matrix is held.
    """
    K, power = held.matrix(which), held.powers[which]
    square = float(np.trace(K)) / max(1, held.varying)
    if not square > 0.0:
        return None
    scale, places = 1.0 / np.sqrt(square), np.arange(len(held.names))
    axes = axes_of_rows(K / square, held.basis.T, held.varying, n)
    weights = scale * held.relevance() ** power * np.sqrt(held.table["mass"])
    return Solution(axes, fit(axes, q, alpha), power, places, weights, scale)


def of_columns(solution: Solution) -> Floats:
    """Return the loadings of the variables, of length 1, signed: the largest is positive."""
    loadings = solution.weights[:, None] * (solution.axes.basis @ solution.fit.axes)
    return loadings * signs(loadings)


def of_pool(held: GramPool, solution: Solution) -> tuple[Floats, Floats]:
    """Return the loadings of the pool's variables, of length 1, and what they were signed by.

    They are what the Gram matrix says if the pool holds all columns. Otherwise the components are
    regressed on its variables, each weighted by all it stands for; but it is what these have among
    all columns that says which way is up, for it does not change at a second reading.
    """
    unit = held.samples(solution.places)
    own = solution.weights / np.sqrt(held.table["mass"])
    loadings = own[:, None] * ((own[:, None] * unit) @ solution.duals)
    up = signs(loadings)
    if not held.complete:
        weighted = solution.weights[:, None] * unit
        loadings = solution.weights[:, None] * regressed(weighted, solution.scores)
    return loadings * up, up


def signs(loadings: Floats) -> Floats:
    """Return what makes the largest of each column positive, (q,)."""
    largest = np.abs(loadings).argmax(axis=0)
    return np.where(loadings[largest, np.arange(loadings.shape[1])] < 0.0, -1.0, 1.0)
