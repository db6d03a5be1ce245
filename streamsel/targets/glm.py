"""Null models of generalised linear models (GLM): two classes by logistic regression, or counts.

With μ the means that the covariates alone predict, and w the variance function, μ(1 - μ) or μ, the
target column is (y - μ) / w and the observation weights are w. Then Σ w x (y - μ) / w is the score
U = Σ x (y - μ), and Σ w x̃², x̃ the weighted residual of x on the covariates, is its variance V.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamsel.serialization.schema import ArrayKind, StringKind, expect
from streamsel.targets.description import of_binary, of_counts
from streamsel.targets.encoding import Encoded, encode_target, only_column

Floats = NDArray[np.float64]

# Kind of target -> the kind by which its values are read.
FAMILIES = {"binary": "class", "count": "numeric"}

_MAX_ITERATIONS, _MAX_HALVINGS = 60, 30
# Largest change of a linear predictor in the last iteration, relative to it if it exceeds 1:
# Newton's error is its square.
_TOLERANCE = 1e-7
# Relative change of the dispersion in the last iteration.
_DISPERSION_RTOL = 1e-6
_MAX_EXPONENT = 300.0
# Largest mean of a class.
_LARGEST_MEAN = float(np.nextafter(1.0, 0.0))
# Least variance of an observation, relative to the mean one: residuals are divided by variances. A
# larger one would count outliers of a covariate, a smaller one lose digits of misfits.
_MIN_VARIANCE = 1e-18
# An observation whose variance is below this, relative to the mean one or 1, is certain.
_CERTAIN = 1e-13
# Covariates with a singular value below this share of the largest are linearly dependent.
_RANK_RTOL = 1e-10


class NullModel(NamedTuple):
    """Means that the covariates alone predict, and the residuals.

    Parameters
    ----------
    family
        "binary" or "count".
    mean, residual
        (n,) μ, and y - μ.
    """

    family: str
    mean: Floats
    residual: Floats

    @property
    def variance(self) -> Floats:
        """The variance function at the means, (n,), at least 1e-18 of its mean."""
        variance = _variance(self.family, self.mean)
        bounded: Floats = np.maximum(variance, _MIN_VARIANCE * variance.mean())
        return bounded

    @property
    def is_certain(self) -> NDArray[np.bool_]:
        """Which outcomes the covariates predict with certainty, and rightly, (n,).

        Such a row contributes only rounding errors to the information.
        """
        variance = _variance(self.family, self.mean)
        is_small = variance < _CERTAIN * max(1.0, float(variance.mean()))
        fits: NDArray[np.bool_] = is_small & (np.square(self.residual) < self.variance)
        return fits

    @property
    def working_residual(self) -> Floats:
        """The residuals divided by the variances, (n,)."""
        return self.residual / self.variance

    @property
    def dispersion(self) -> Floats:
        """The estimated variance of the residuals, divided by the variance function, (n,).

        1 for two classes, whose means determine their variances. For counts it is φ + αμ, which
        includes quasi-Poisson, negative binomial and zero-inflated Poisson distributions.
        """
        if self.family == "binary":
            return np.ones(self.mean.size)
        return _fitted_dispersion(self.mean, self.residual * self.working_residual)

    @property
    def pearson(self) -> float:
        """Pearson's χ² of the model, Σ (y - μ)² / w."""
        return float(self.residual @ self.working_residual)

    def to_state(self) -> dict[str, Any]:
        """Return the model for a file."""
        return {"family": self.family, "mean": self.mean, "residual": self.residual}

    @classmethod
    def restored(cls, state: dict[str, Any], n: int) -> NullModel:
        """Return the model that `to_state` saved."""
        expect(state, family=StringKind(), mean=ArrayKind((n,)), residual=ArrayKind((n,)))
        model = cls(state["family"], state["mean"], state["residual"])
        if model.family not in FAMILIES or not (_variance(*model[:2]) > 0.0).all():
            raise ValueError("Expected means with a variance above 0. Got: others.")
        return model


def encode_glm(y: Any, kind: str) -> tuple[Encoded, str]:
    """Return y as one column, 0 and 1 or counts, and its description.

    Raises
    ------
    ValueError, TypeError
        As `encode_target`, and for more or fewer than two classes, several columns, and numbers
        that are negative or not whole.
    """
    encoded = encode_target(only_column(y), FAMILIES[kind])
    columns, names = encoded.columns, encoded.names
    if kind == "binary":
        if not encoded.is_class or len(names) != 2:
            raise _not_two_classes(names, is_class=encoded.is_class)
        columns = columns[:, 1:]
        description = of_binary(names, int(columns.sum()), len(columns))
    else:
        _check_counts(columns)
        description = of_counts(columns)
    return Encoded(columns, [0], is_class=False), description


def fit_null_model(kind: str, y: Floats, Z: Floats) -> NullModel:
    """Fit a GLM of y (n,) to an intercept and covariates Z (n, d) by Newton's method.

    Raises
    ------
    ValueError
        If no finite coefficients have the largest likelihood: covariates separate the classes, or
        all counts of a group are 0.
    """
    basis = _basis(Z)
    mean = y.mean()
    predictor = np.full(y.size, np.log(mean / (1.0 - mean) if kind == "binary" else mean))
    likelihood = _log_likelihood(kind, y, predictor)
    for _ in range(_MAX_ITERATIONS):
        mean, residual = _moments(kind, y, predictor)
        step = _newton_step(kind, basis, mean, residual)
        if (np.abs(step) <= _TOLERANCE * np.maximum(1.0, np.abs(predictor))).all():
            model = NullModel(kind, *_moments(kind, y, predictor + step))
            _expect_determined(model, Z, basis.shape[1])
            return model
        for _ in range(_MAX_HALVINGS):
            after = predictor + step
            found = _log_likelihood(kind, y, after)
            if found >= likelihood - 1e-12 * abs(likelihood):
                break
            step = 0.5 * step
        predictor, likelihood = after, found
    raise _no_maximum(kind)


def _newton_step(kind: str, basis: Floats, mean: Floats, residual: Floats) -> Floats:
    """Return the change of the linear predictor in one iteration of Newton's method, (n,)."""
    # Directions whose information is 1: that of a direction along outliers is tiny compared with
    # others, and would lose its digits in a matrix of all.
    root = np.sqrt(_variance(kind, mean))[:, None]
    factor = np.asarray(np.linalg.qr(root * basis, mode="r"))
    try:
        directions = np.linalg.solve(factor.T, basis.T).T
    except np.linalg.LinAlgError:
        raise _no_maximum(kind) from None
    step: Floats = directions @ (directions.T @ residual)
    if not np.isfinite(step).all():
        raise _no_maximum(kind)
    return step


def _expect_determined(model: NullModel, Z: Floats, rank: int) -> None:
    """Raise ValueError if the rows that are not certain leave a coefficient undetermined.

    Where covariates separate the classes, an iteration moves the predictors of the separated rows
    away from 0 by about one, until their variances are rounding errors, and so is the next step. A
    row far from the boundary alone is not separation: other rows determine all coefficients.
    """
    is_certain = model.is_certain
    if not is_certain.any():
        return
    if is_certain.all() or _basis(Z[~is_certain]).shape[1] < rank:
        raise _no_maximum(model.family)


def _fitted_dispersion(mean: Floats, squares: Floats) -> Floats:
    """Return the dispersion φ + αμ that fits squared Pearson residuals, (n,).

    By least squares with the weights of squares whose standard deviations are proportional to their
    means. With φ >= 1, as the variance of a count approaches its mean as that approaches 0, and
    α >= 0.
    """
    fitted = np.full(mean.size, max(1.0, float(squares.mean())))
    for _ in range(_MAX_ITERATIONS):
        before, w = fitted, fitted**-2.0
        slope = _slope(w, mean - np.average(mean, weights=w), squares)
        constant = float(np.average(squares - slope * mean, weights=w))
        if constant < 1.0:
            constant, slope = 1.0, _slope(w, mean, squares - 1.0)
        fitted = constant + slope * mean
        if np.abs(fitted - before).max() <= _DISPERSION_RTOL * fitted.max():
            break
    return fitted


def _slope(w: Floats, x: Floats, y: Floats) -> float:
    """Return the slope of y on x through the origin, weighted, at least 0."""
    return max(0.0, float((w * x) @ y / ((w * x) @ x)))


def _basis(Z: Floats) -> Floats:
    """Return an orthonormal basis of the span of 1 and Z, (n, r)."""
    centred = Z - Z.mean(axis=0)
    scale = np.abs(centred).max(axis=0)
    centred = centred[:, scale > 0.0] / scale[scale > 0.0]
    ones: Floats = np.full((len(Z), 1), 1.0 / np.sqrt(len(Z)))
    if not centred.shape[1]:
        return ones
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    return np.hstack([ones, left[:, values > _RANK_RTOL * values[0]]])


def _variance(kind: str, mean: Floats) -> Floats:
    """Return the variance function, (n,)."""
    return mean * (1.0 - mean) if kind == "binary" else mean


def _moments(kind: str, y: Floats, predictor: Floats) -> tuple[Floats, Floats]:
    """Return the means, and y minus the means."""
    if kind == "count":
        mean = np.exp(np.clip(predictor, -_MAX_EXPONENT, _MAX_EXPONENT))
        return mean, y - mean
    # Each of μ and 1 - μ without cancellation; both are above 0.
    small = 1.0 / (1.0 + np.exp(np.minimum(np.abs(predictor), _MAX_EXPONENT)))
    mean = np.where(predictor > 0.0, np.minimum(1.0 - small, _LARGEST_MEAN), small)
    residual = np.where((y > 0.0) == (predictor > 0.0), small, 1.0 - small)
    return mean, np.where(y > 0.0, residual, -residual)


def _log_likelihood(kind: str, y: Floats, predictor: Floats) -> float:
    if kind == "count":
        return float(np.sum(y * predictor - np.exp(np.minimum(predictor, _MAX_EXPONENT))))
    return float(np.sum(y * predictor - np.logaddexp(0.0, predictor)))


def _check_counts(columns: Floats) -> None:
    if columns.shape[1] != 1:
        raise ValueError(
            f"Expected one column of counts, as target_type='count' requires. Got: "
            f"{columns.shape[1]} columns.\nHint: learn one model per column."
        )
    y = columns[:, 0]
    bad = np.flatnonzero(~((y >= 0.0) & (y < 2.0**53) & (y == np.floor(y))))
    if bad.size:
        hint = (
            "learn_target(y, missing='drop') excludes rows with a missing target."
            if np.isnan(y[bad[0]])
            else "target_type='numeric' accepts any numbers."
        )
        raise ValueError(
            "Expected counts, whole numbers of at least 0, as target_type='count' requires. Got: "
            f"{y[bad[0]]:g} in row {bad[0]}.\nHint: {hint}"
        )
    if not (y != y[0]).any():
        raise ValueError(
            f"Expected a target that varies. Got: one value in all {y.size} rows.\n"
            "Hint: check that the target is the right column."
        )


def _not_two_classes(names: list[Hashable], *, is_class: bool) -> ValueError:
    got = f"{len(names)} class{'' if len(names) == 1 else 'es'}" if is_class else "several columns"
    return ValueError(
        f"Expected two classes, as target_type='binary' requires. Got: {got}.\n"
        "Hint: target_type='class' accepts any number of classes."
    )


def _no_maximum(kind: str) -> ValueError:
    if kind == "binary":
        return ValueError(
            "Expected covariates that do not separate the two classes, as target_type='binary' "
            "requires. Got: a logistic regression without finite coefficients.\n"
            "Hint: merge groups in which all rows are of one class, or omit the covariate that "
            "predicts the class; target_type='class' needs no regression."
        )
    return ValueError(
        "Expected covariates without a group whose counts are all 0, as target_type='count' "
        "requires. Got: a Poisson regression without finite coefficients.\n"
        "Hint: merge such groups, or omit their covariate; target_type='numeric' needs no "
        "regression."
    )
