"""The fit of an online factorisation: components, and sums over the columns processed."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from streamsel.serialization.invariants import expect_bounded, expect_products, expect_sums
from streamsel.serialization.schema import expect_shapes
from streamsel.state.base import Floats

# Number of iterations over the first columns, and over any others.
_FIRST_ITERATIONS, _ITERATIONS = 30, 3
# A fit starts again when its unit falls below this fraction of the new one.
_UNIT_RTOL = 2.0**-30
# Codes whose variance is below this fraction of the largest do not vary.
_ZERO_TOL = 1e-12


class Codes(NamedTuple):
    """Columns, expressed in the components.

    Parameters
    ----------
    codes
        (b, q).
    A, B, squares
        Σ w wᵀ, (q, q), Σ x wᵀ, (n, q), and Σ x², (n,), over columns x and their codes w; expected
        sums where values are missing.
    values
        (b, n) the columns, missing values filled in and outliers removed.
    outliers
        (b, n) outliers, 0 for other values; None if the method does not look for any.
    n_incomplete
        Number of columns with missing values.
    """

    codes: Floats
    A: Floats
    B: Floats
    squares: Floats
    values: Floats
    outliers: Floats | None = None
    n_incomplete: int = 0


class FactorModel(NamedTuple):
    """Components, and the sums that they maximise.

    Parameters
    ----------
    D
        (n, q) the components.
    A, B, squares, weight
        Sums over columns, as in `Codes`, and their total weight. A column is weighted by √(t/p),
        where t is the number of columns when it was processed, because early components were poor.
    noise
        The residual variance.
    unit
        The power of two that is the unit of all values.
    columns
        p, the number of columns processed.
    n_outliers
        Number of their values that were treated as outliers.
    n_incomplete
        Number of columns with missing values, weighted like the sums.
    """

    D: Floats
    A: Floats
    B: Floats
    squares: float
    weight: float
    noise: float
    unit: float
    columns: int
    n_outliers: float
    n_incomplete: float = 0.0

    @property
    def mean_square(self) -> float:
        """The mean square of a value."""
        return self.squares / (self.weight * len(self.D))

    def expect_valid(self) -> None:
        """Raise ValueError for values that no data can produce, as a file may hold."""
        expect_bounded("components", self.D, self.unit, self.noise)
        expect_products(self.A, "codes")
        expect_sums(
            "sums over columns",
            self.B,
            self.squares,
            self.weight,
            self.n_outliers,
            self.n_incomplete,
        )

    @classmethod
    def from_state(cls, state: dict[str, Any], n: int, q: int) -> Self:
        """Return the fit in a file, if its parts are consistent."""
        expect_shapes(state, D=(n, q), A=(q, q), B=(n, q))
        D, A, B = (np.array(state[name], dtype=float) for name in ("D", "A", "B"))
        named = ("squares", "weight", "noise", "unit", "n_outliers", "n_incomplete")
        numbers = {name: float(state[name]) for name in named}
        columns = state["columns"]
        if type(columns) is not int or min(columns, *numbers.values()) < 0.0:
            raise ValueError(
                f"Expected non-negative sums over columns. Got: {columns!r} columns, "
                f"sum of squares {numbers['squares']!r}."
            )
        return cls(D, A, B, columns=columns, **numbers)


class FactorAxes(NamedTuple):
    """Components as reported to the user, the largest first.

    Parameters
    ----------
    scores
        (n, q) components scaled to mean square 1; 0 for a component of zeros.
    rotation
        (q, q) matrix that maps codes to loadings.
    loadings
        (n, q) where rows were coded: loadings of the n variables.
    """

    scores: Floats
    rotation: Floats
    loadings: Floats


class Coder(Protocol):
    """How a method codes a column, and updates the components.

    Attributes
    ----------
    takes_missing
        Whether a column may have missing values.
    scale_power
        1 if the components carry the scale of the columns, 0 if the codes do.
    """

    takes_missing: bool
    scale_power: int

    def initialise(self, fit: FactorModel, X: Floats) -> FactorModel:
        """Return the initial components for the first columns."""

    def encode(self, fit: FactorModel, X: Floats) -> Codes:
        """Return the codes of columns (b, n), one per row."""

    def update(self, fit: FactorModel) -> FactorModel:
        """Return the fit with components and noise updated from its sums."""

    def axes(self, fit: FactorModel) -> FactorAxes:
        """Return the components as reported to the user."""

    def encode_rows(self, fit: FactorModel, X: Floats, spread: Floats, weights: Floats) -> Codes:
        """Return the codes of rows of m variables, (b, m), given their loadings, the fit's D.

        Parameters
        ----------
        fit, X
            As in `encode`.
        spread
            (m,) typical absolute residual of each variable.
        weights
            (b,) weights of the rows in the sums.
        """

    def update_rows(self, fit: FactorModel) -> FactorModel:
        """Return the fit with loadings and noise updated from the sums over rows."""

    def weights(self, W: Floats, noise: float) -> Floats:
        """Return the matrix from a row to its components, (s, q), for loadings W (s, q)."""


def initial_factors(n: int, q: int, seed: int) -> FactorModel:
    """Return random components of mean 0 and variance 1, before any column."""
    D = np.random.default_rng(seed).standard_normal((n, q))
    D -= D.mean(axis=0)
    D /= np.sqrt(np.square(D).mean(axis=0))
    return FactorModel(D, np.zeros((q, q)), np.zeros((n, q)), 0.0, 0.0, 1.0, 0.0, 0, 0.0)


def learn_factors(fit: FactorModel, X: Floats, code: Coder, seed: int) -> FactorModel:
    """Return the fit updated with columns (b, n), one per row, centred; NaN where not observed.

    A few iterations alternate between coding the columns and updating the components from the codes
    of these columns and of all before.
    """
    fit = rescale_model(fit, scale_unit(X), code, seed)
    X = X / fit.unit
    if not fit.columns:
        fit = code.initialise(fit, X)
    b, before = len(X), fit
    keep = math.sqrt(fit.columns / (fit.columns + b))
    weight = keep * before.weight + b
    squares = keep * before.squares + float(np.nansum(np.square(X)))
    rounds = _ITERATIONS if before.columns else _FIRST_ITERATIONS
    for done in range(1, rounds + 1):
        coded = code.encode(fit._replace(squares=squares, weight=weight), X)
        A, B = keep * before.A + coded.A, keep * before.B + coded.B
        squares_coded = keep * before.squares + float(coded.squares.sum())
        n_outliers = before.n_outliers + (
            0.0 if coded.outliers is None else float(np.count_nonzero(coded.outliers))
        )
        # The correction for missing values grows with the iterations, as the first components are
        # random.
        n_incomplete = keep * before.n_incomplete + coded.n_incomplete * done / rounds
        fit = fit._replace(
            A=A,
            B=B,
            squares=squares_coded,
            weight=weight,
            n_outliers=n_outliers,
            n_incomplete=n_incomplete,
        )
        fit = code.update(fit)
    # One memory layout, as after a copy or a load: BLAS rounds differently by layout.
    return fit._replace(D=np.ascontiguousarray(fit.D), columns=before.columns + b)


def solve_components(A: Floats, B: Floats) -> Floats:
    """Return A⁻¹ B."""
    return np.asarray(np.linalg.solve(A, B), dtype=np.float64)


def whiten(fit: FactorModel) -> FactorModel:
    """Return a fit with uncorrelated codes of variance 1, except constant ones."""
    values, vectors = np.linalg.eigh(fit.A / fit.weight)
    varies = values > _ZERO_TOL * values[-1]
    roots = np.where(varies, 1.0 / np.sqrt(np.where(varies, values, 1.0)), 0.0)
    whitening = (vectors * roots) @ vectors.T
    return fit._replace(A=fit.weight * np.eye(len(values)), B=fit.B @ whitening)


def scale_unit(X: Floats) -> float:
    """Return the smallest power of two above the root mean square of values that are not all 0."""
    largest = float(np.nanmax(np.abs(X)))
    root: float = np.sqrt(np.nanmean(np.square(X / largest))) * largest
    return float(2.0 ** np.frexp(root)[1])


def rescale_model(fit: FactorModel, unit: float, code: Coder, seed: int) -> FactorModel:
    """Return a fit converted to another unit, if that is larger."""
    if unit <= fit.unit:
        return fit
    ratio = fit.unit / unit
    if ratio < _UNIT_RTOL:
        n, q = fit.D.shape
        return initial_factors(n, q, seed)._replace(unit=unit, n_outliers=fit.n_outliers)
    D, A = ratio**code.scale_power, ratio ** (2 - 2 * code.scale_power)
    return fit._replace(
        D=fit.D * D,
        A=fit.A * A,
        B=fit.B * (ratio * ratio / D),
        squares=fit.squares * ratio * ratio,
        noise=fit.noise * ratio * ratio,
        unit=unit,
    )
