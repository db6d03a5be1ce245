"""What an online factorisation knows: components, and sums over what was gone over."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from streamsel.held.part import Floats
from streamsel.held.possible import expect_bounded, expect_products, expect_sums
from streamsel.shapes import expect_shapes

# How often the first columns are gone over; and any others.
_FIRST, _FURTHER = 30, 3
# What is smaller than this part of a unit that has grown is gone.
_GONE = 2.0**-30
# Codes of less than this part of the largest's variance do not vary.
_SPENT = 1e-12


class Coded(NamedTuple):
    """What columns are in terms of the components.

    Parameters
    ----------
    codes
        (b, q).
    A, B, squares
        Σ w wᵀ, (q, q), Σ x wᵀ, (n, q), and Σ x², (n,), of the columns x and their codes w: as
        expected, where something of these is not known.
    values
        (b, n) the columns, filled where something lacks, and without what is off.
    off
        (b, n) outliers, 0 where a value is none; None where none is looked for.
    lacking
        How many of the columns have gaps.
    """

    codes: Floats
    A: Floats
    B: Floats
    squares: Floats
    values: Floats
    off: Floats | None = None
    lacking: int = 0


class Fit(NamedTuple):
    """Components, and the sums that they make the most of.

    Parameters
    ----------
    D
        (n, q) the components.
    A, B, squares, weight
        Sums over columns, as `Coded` has them, and how many these are: a column counts with
        √(t/p), t being how many there were when it was gone over, for the components of the first
        were none yet.
    noise
        The variance that the components leave.
    unit
        The power of two in which everything is measured.
    columns
        p, how many were gone over.
    odd
        How many of their values were taken for outliers.
    lacking
        How many of the columns have gaps, weighted as the sums.
    """

    D: Floats
    A: Floats
    B: Floats
    squares: float
    weight: float
    noise: float
    unit: float
    columns: int
    odd: float
    lacking: float = 0.0

    @property
    def typical(self) -> float:
        """The mean square of a value."""
        return self.squares / (self.weight * len(self.D))

    def expect_possible(self) -> None:
        """Raise ValueError for numbers that no data lead to: a file may hold any."""
        expect_bounded("components", self.D, self.unit, self.noise)
        expect_products(self.A, "codes")
        expect_sums("sums over columns", self.B, self.squares, self.weight, self.odd, self.lacking)

    @classmethod
    def from_state(cls, state: dict[str, Any], n: int, q: int) -> Self:
        """Return what a file says, if it fits together."""
        expect_shapes(state, D=(n, q), A=(q, q), B=(n, q))
        D, A, B = (np.array(state[name], dtype=float) for name in ("D", "A", "B"))
        named = ("squares", "weight", "noise", "unit", "odd", "lacking")
        numbers = {name: float(state[name]) for name in named}
        columns = state["columns"]
        if type(columns) is not int or min(columns, *numbers.values()) < 0.0:
            raise ValueError(
                f"Expected sums over columns. Got: {columns!r} of {numbers['squares']!r}."
            )
        return cls(D, A, B, columns=columns, **numbers)


class Axes(NamedTuple):
    """Components as they are shown, the largest first.

    Parameters
    ----------
    scores
        (n, q) them, each of mean square 1; 0 for one that is none.
    turn
        (q, q) codes times this are the loadings on them.
    loadings
        (n, q) where rows were coded, on loadings: those of the n variables on them.
    """

    scores: Floats
    turn: Floats
    loadings: Floats


class Code(Protocol):
    """What a method makes of a column, and of the components.

    Attributes
    ----------
    takes_missing
        Whether a column may have values that were not observed.
    carries
        Whether the components carry the scale of the columns: 1, or 0 where the codes do.
    """

    takes_missing: bool
    carries: int

    def start(self, fit: Fit, X: Floats) -> Fit:
        """Return the components to begin with, as the first columns ask for."""

    def encode(self, fit: Fit, X: Floats) -> Coded:
        """Return the codes of columns, (b, n), a row each."""

    def renew(self, fit: Fit) -> Fit:
        """Return the fit with the components, and the noise, that its sums ask for."""

    def axes(self, fit: Fit) -> Axes:
        """Return the components as they are shown."""

    def encode_rows(self, fit: Fit, X: Floats, spread: Floats, weights: Floats) -> Coded:
        """Return the codes of rows of m variables, (b, m), on their loadings, the fit's D.

        Parameters
        ----------
        fit, X
            As `encode` has them.
        spread
            (m,) what a variable is typically off by.
        weights
            (b,) for how much each counts in the sums.
        """

    def renew_rows(self, fit: Fit) -> Fit:
        """Return the fit with the loadings, and the noise, that the sums over rows ask for."""

    def weights(self, W: Floats, noise: float) -> Floats:
        """Return what turns a row into its components, (s, q), for loadings of as many."""


def begin(n: int, q: int, seed: int) -> Fit:
    """Return components drawn at random, of mean 0 and variance 1, which know of no column."""
    D = np.random.default_rng(seed).standard_normal((n, q))
    D -= D.mean(axis=0)
    D /= np.sqrt(np.square(D).mean(axis=0))
    return Fit(D, np.zeros((q, q)), np.zeros((n, q)), 0.0, 0.0, 1.0, 0.0, 0, 0.0)


def learn(fit: Fit, X: Floats, code: Code, seed: int) -> Fit:
    """Return what a fit becomes by columns, (b, n), a row each, centred; NaN where not observed.

    They are gone over a few times: coded, with the components that there are; then these are
    renewed, as the codes of these columns and of all before ask for.
    """
    fit = in_unit(fit, unit_of(X), code, seed)
    X = X / fit.unit
    if not fit.columns:
        fit = code.start(fit, X)
    b, before = len(X), fit
    keep = math.sqrt(fit.columns / (fit.columns + b))
    weight = keep * before.weight + b
    squares = keep * before.squares + float(np.nansum(np.square(X)))
    rounds = _FURTHER if before.columns else _FIRST
    for done in range(1, rounds + 1):
        coded = code.encode(fit._replace(squares=squares, weight=weight), X)
        A, B = keep * before.A + coded.A, keep * before.B + coded.B
        gone_over = keep * before.squares + float(coded.squares.sum())
        odd = before.odd + (0.0 if coded.off is None else float(np.count_nonzero(coded.off)))
        # What gaps ask for comes in by degrees: the first codes are of random components.
        lacking = keep * before.lacking + coded.lacking * done / rounds
        fit = fit._replace(A=A, B=B, squares=gone_over, weight=weight, odd=odd, lacking=lacking)
        fit = code.renew(fit)
    # In one layout, as copies and files have it: BLAS rounds by it.
    return fit._replace(D=np.ascontiguousarray(fit.D), columns=before.columns + b)


def solve(A: Floats, B: Floats) -> Floats:
    """Return A⁻¹ B."""
    return np.asarray(np.linalg.solve(A, B), dtype=np.float64)


def whitened(fit: Fit) -> Fit:
    """Return a fit whose codes are uncorrelated and of variance 1, if they vary at all."""
    values, vectors = np.linalg.eigh(fit.A / fit.weight)
    there = values > _SPENT * values[-1]
    roots = np.where(there, 1.0 / np.sqrt(np.where(there, values, 1.0)), 0.0)
    turn = (vectors * roots) @ vectors.T
    return fit._replace(A=fit.weight * np.eye(len(values)), B=fit.B @ turn)


def unit_of(X: Floats) -> float:
    """Return the power of two above the root mean square of values of which not all are 0."""
    largest = float(np.nanmax(np.abs(X)))
    root: float = np.sqrt(np.nanmean(np.square(X / largest))) * largest
    return float(2.0 ** np.frexp(root)[1])


def in_unit(fit: Fit, unit: float, code: Code, seed: int) -> Fit:
    """Return a fit in another unit, if that is larger."""
    if unit <= fit.unit:
        return fit
    by = fit.unit / unit
    if by < _GONE:
        n, q = fit.D.shape
        return begin(n, q, seed)._replace(unit=unit, odd=fit.odd)
    D, A = by**code.carries, by ** (2 - 2 * code.carries)
    return fit._replace(
        D=fit.D * D,
        A=fit.A * A,
        B=fit.B * (by * by / D),
        squares=fit.squares * by * by,
        noise=fit.noise * by * by,
        unit=unit,
    )
