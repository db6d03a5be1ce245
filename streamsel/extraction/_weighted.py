"""Columns weighted by their relevance, and what canonical ridge makes of them."""

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

# Loadings within this part of the largest are as large.
_EQUAL = 1e-9


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
    places, weights
        (m,) which of the variables held have loadings, and what each counts with, as a column of
        length 1.
    scales
        One a power: what the relevance to that power is multiplied by. Weights are the roots of the
        sums of the squares; the mean of their squares is 1, and each power has an equal part in it.
    """

    axes: Axes
    fit: Fit
    places: Places
    weights: Floats
    scales: Floats

    @property
    def n_found(self) -> int:
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
    def of_target(self) -> Floats:
        """What the weighted columns make of the target, KU, where the axes are those of rows."""
        of_target: Floats = self.axes.basis @ (np.sqrt(self.axes.d)[:, None] * self.axes.h)
        return of_target

    @property
    def duals(self) -> Floats:
        """What turns weighted columns into loadings, (n, q), where the axes are those of rows."""
        duals: Floats = self.axes.basis @ (self.fit.axes / np.sqrt(self.axes.d)[:, None])
        return duals


class Asked(NamedTuple):
    """What components are asked for.

    Parameters
    ----------
    q, alpha
        As `fit` has them.
    powers
        Of the relevance, by which columns are weighted.
    n
        Observations of equal weight, less the covariates.
    size
        The weight of all observations.
    """

    q: int
    alpha: str | float
    powers: tuple[float, ...]
    n: float
    size: float

    def of(self, axes: Axes) -> Fit:
        """Return the components in some axes."""
        return fit(axes, self.q, self.alpha, self.size)


def from_columns(known: Variables, asked: Asked) -> Solution | None:
    """Return the components of variables that are known one by one; None if nothing is relevant."""
    powers = asked.powers
    parts = to_powers(np.linalg.norm(known.G, axis=1), powers) * np.sqrt(known.mass)[:, None]
    squares = np.square(parts).mean(axis=0)
    if not known.mass.size or not squares.all():
        return None
    scales = 1.0 / np.sqrt(len(powers) * squares)
    D = np.linalg.norm(parts * scales, axis=1)
    axes = axes_of_columns(D[:, None] * known.R * D, D[:, None] * known.G, asked.n)
    return Solution(axes, asked.of(axes), known.places, D, scales)


def from_rows(held: GramPool, asked: Asked) -> Solution | None:
    """Return the components of all columns, as observations see them; None if none is relevant."""
    parts = len(held.powers)
    scales, K = np.zeros(parts), np.zeros((0, 0))
    for which in range(parts):
        part = held.matrix(which)
        square = parts * float(np.trace(part)) / max(1, held.varying)
        if not square > 0.0:
            return None
        part /= square
        scales[which] = 1.0 / np.sqrt(square)
        K = K + part if which else part
    axes = axes_of_rows(K, held.basis.T, held.varying, asked.n)
    own = np.linalg.norm(to_powers(held.relevance(), held.powers) * scales, axis=1)
    weights, places = own * np.sqrt(held.table["mass"]), np.arange(len(own))
    return Solution(axes, asked.of(axes), places, weights, scales)


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
        others = besides(float(solution.axes.d.sum()), weighted)
        loadings = regressed(weighted, solution.scores, solution.axes.n, others)
        loadings = solution.weights[:, None] * as_long(loadings, weighted, solution.scores)
    return loadings * up, up


def signs(loadings: Floats) -> Floats:
    """Return what makes the largest of each column positive, (q,)."""
    sizes = np.abs(loadings)
    # Of those that rounding parts the first.
    largest = (sizes >= (1.0 - _EQUAL) * sizes.max(axis=0, initial=0.0)).argmax(axis=0)
    return np.where(loadings[largest, np.arange(loadings.shape[1])] < 0.0, -1.0, 1.0)
