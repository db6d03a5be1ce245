"""Coders of the online factorisations: Gaussian posterior, robust to outliers, and lasso."""

from __future__ import annotations

import numpy as np

from streamsel._kernels.lasso import find_outliers, lasso_codes
from streamsel.state.base import Floats
from streamsel.state.factorization.model import Codes, FactorAxes, FactorModel, solve_components

# Least noise variance, as a share of the mean square of a value.
_MIN_NOISE_SHARE = 1e-6
# A component is zero if its standard deviation is below this part of the largest.
_ZERO_TOL = 1e-6
# With missing values, the prior variance of a component is the mean square of a value over this.
_PRIOR_DIVISOR = 100.0
# On rows, a component is zero if the sum of its squared loadings is below this part of the noise.
_MIN_LOADING_SHARE = 1e-2
# Number of alternations between codes and outliers of a column.
_ALTERNATIONS = 4
# Standard deviation of normal values, relative to their median and their mean absolute value.
_PER_MEDIAN, _PER_MEAN = 1.482602218505602, 1.2533141373155001
# Part of a sum of squares that is rounding.
_ROUNDING = 1e-14
# A component whose share of the codes is below this part of the largest is not updated.
_UNUSED_TOL = 1e-12
# Number of iterations for the principal axes that the lasso starts from.
_PCA_ITERATIONS = 30


class GaussianCoder:
    """Posterior of normal codes, of variance 1, with normal noise, given the observed values.

    Parameters
    ----------
    takes_missing
        Whether columns may have missing values; rows may.
    """

    scale_power = 1

    def __init__(self, *, takes_missing: bool) -> None:
        self.takes_missing = takes_missing

    def initialise(self, fit: FactorModel, X: Floats) -> FactorModel:  # noqa: ARG002
        """Return the fit to start from: the random one."""
        return fit

    def encode(self, fit: FactorModel, X: Floats) -> Codes:
        """Return the codes of columns, (b, n)."""
        return _encode(fit.D, noise_of(fit), X, None)

    def update(self, fit: FactorModel) -> FactorModel:
        """Return the fit with the components, and the noise, of largest likelihood."""
        # Centring takes one degree of freedom of a column.
        return _most_likely(fit, len(fit.D) - 1.0)

    def axes(self, fit: FactorModel) -> FactorAxes:
        """Return the principal axes of the columns as reconstructed from the codes."""
        n, q = fit.D.shape
        weight = max(fit.weight, 1.0)
        values, vectors = np.linalg.eigh(fit.A)
        E, spread, _ = np.linalg.svd(
            fit.D @ (vectors * np.sqrt(np.maximum(values, 0.0))), full_matrices=False
        )
        nonzero = spread > _ZERO_TOL * spread.max(initial=0.0)
        E, spread = np.where(nonzero, E, 0.0), np.where(nonzero, spread, 0.0)
        # Fewer variables than components.
        E = np.hstack([E, np.zeros((n, q - E.shape[1]))])
        spread = np.append(spread, np.zeros(q - spread.size))
        root = np.sqrt(n)
        return FactorAxes(E * root, (E.T @ fit.D).T / root, E * spread / np.sqrt(weight))

    def encode_rows(self, fit: FactorModel, X: Floats, spread: Floats, weights: Floats) -> Codes:  # noqa: ARG002
        """Return the codes of rows, (b, m), by the loadings of their variables."""
        return _encode(fit.D, noise_of(fit), X, weights)

    def update_rows(self, fit: FactorModel) -> FactorModel:
        """Return the fit with the loadings, and the noise, of largest likelihood."""
        return _along_axes(_most_likely(fit, float(len(fit.D))))

    def weights(self, W: Floats, noise: float) -> Floats:
        """Return the matrix that maps a row to the posterior means of its components."""
        inner = W.T @ W
        min_noise = _ZERO_TOL**2 * inner.diagonal().max(initial=0.0)
        if min_noise == 0.0:
            return np.zeros_like(W)
        return solve_components(inner + max(noise, min_noise) * np.eye(len(inner)), W.T).T


class RobustCoder(GaussianCoder):
    """Gaussian codes of columns whose outliers are subtracted.

    An outlier is the part of a residual beyond a threshold, as with an l1 penalty.

    Parameters
    ----------
    threshold
        In standard deviations of the noise: of the column, estimated from the median, or of all
        columns, if that is larger.
    """

    def __init__(self, threshold: float) -> None:
        super().__init__(takes_missing=False)
        self.threshold = threshold

    def encode(self, fit: FactorModel, X: Floats) -> Codes:
        """Return the codes of columns, (b, n)."""
        D, noise = fit.D, noise_of(fit)
        inner = D.T @ D + noise * np.eye(D.shape[1])
        off = np.zeros_like(X)
        solved = solve_components(inner, D.T)
        thresholds = self.threshold * _PER_MEDIAN, np.sqrt(noise) / _PER_MEDIAN
        find_outliers(X, D.T.copy(), solved, *thresholds, _ALTERNATIONS, off)
        return _encode_whole(D, noise, _centred(X - off), None)._replace(outliers=off)

    def encode_rows(self, fit: FactorModel, X: Floats, spread: Floats, weights: Floats) -> Codes:
        """Return the codes of rows, (b, m), by the loadings of their variables."""
        D, noise = fit.D, noise_of(fit)
        inner = D.T @ D + noise * np.eye(D.shape[1])
        X = np.nan_to_num(X, nan=0.0)
        off = np.zeros_like(X)
        typical = np.maximum(_PER_MEAN * spread, np.sqrt(noise))
        for _ in range(_ALTERNATIONS):
            off = self._outliers(X - _codes(D, inner, X - off) @ D.T, typical)
        return _encode_whole(D, noise, X - off, weights)._replace(outliers=off)

    def _outliers(self, residual: Floats, typical: Floats) -> Floats:
        outliers: Floats = residual - np.clip(
            residual, -self.threshold * typical, self.threshold * typical
        )
        return outliers


class LassoCoder(GaussianCoder):
    """Sparse codes, by the lasso.

    Parameters
    ----------
    alpha
        The penalty, relative to the root mean square of a value.
    """

    scale_power = 0

    def __init__(self, alpha: float) -> None:
        super().__init__(takes_missing=False)
        self.alpha = alpha

    def initialise(self, fit: FactorModel, X: Floats) -> FactorModel:
        """Return the fit to start from: principal components."""
        start = fit._replace(weight=float(len(X)), squares=float(np.square(X).sum()))
        for _ in range(_PCA_ITERATIONS):
            coded = super().encode(start, X)
            start = super().update(start._replace(A=coded.A, B=coded.B))
        axes = super().axes(start)
        return fit._replace(D=np.where(axes.scores.any(axis=0), axes.scores, fit.D))

    def encode(self, fit: FactorModel, X: Floats) -> Codes:
        """Return the codes of columns, (b, n)."""
        D, n = fit.D, len(fit.D)
        codes = np.zeros((len(X), D.shape[1]))
        lasso_codes(D.T @ D / n, X @ D / n, self.alpha * np.sqrt(fit.mean_square), codes)
        return Codes(codes, codes.T @ codes, X.T @ codes, np.square(X).sum(axis=0), X)

    def update(self, fit: FactorModel) -> FactorModel:
        """Return the fit after one block coordinate step; components have mean square at most 1."""
        D, A, B = fit.D.copy(), fit.A, fit.B
        used = _UNUSED_TOL * A.diagonal().max()
        for k in range(len(A)):
            if A[k, k] > used:
                D[:, k] += (B[:, k] - D @ A[:, k]) / A[k, k]
                D[:, k] /= max(1.0, np.sqrt(np.square(D[:, k]).mean()))
        residual = fit.squares - 2.0 * np.vdot(D, B) + np.vdot(D @ A, D)
        fit = fit._replace(D=D, noise=float(residual) / (fit.weight * (len(D) - 1.0)))
        return fit._replace(noise=noise_of(fit))

    def axes(self, fit: FactorModel) -> FactorAxes:
        """Return the components, scaled, by decreasing contribution to the columns."""
        lengths, used = np.square(fit.D).mean(axis=0), fit.A.diagonal()
        sizes = lengths * used
        sizes = np.where(sizes > _ZERO_TOL**2 * sizes.max(initial=0.0), sizes, 0.0)
        order = np.argsort(-sizes, kind="stable")
        D, nonzero = fit.D[:, order], sizes[order] > 0.0
        roots = np.sqrt(np.where(nonzero, lengths[order], 1.0))
        rotation = np.zeros(fit.A.shape)
        rotation[order, np.arange(order.size)] = np.where(nonzero, roots, 0.0)
        scale = np.sqrt(np.where(nonzero, used[order], 0.0) / max(fit.weight, 1.0))
        return FactorAxes(np.where(nonzero, D / roots, 0.0), rotation, D * scale)

    def update_rows(self, fit: FactorModel) -> FactorModel:
        """Return the fit with loadings by the lasso, on components of mean square 1."""
        roots = np.sqrt(fit.A.diagonal() / fit.weight)
        nonzero = roots > _UNUSED_TOL * roots.max()
        scale = np.where(nonzero, 1.0 / np.where(nonzero, roots, 1.0), 0.0)
        A, B = fit.A * scale * scale[:, None], fit.B * scale
        W = np.zeros_like(B)
        lasso_codes(A / fit.weight, B / fit.weight, self.alpha * np.sqrt(fit.mean_square), W)
        residual = fit.squares - 2.0 * np.vdot(W, B) + np.vdot(W @ A, W)
        noise = max(0.0, float(residual)) / (fit.weight * len(W))
        fit = fit._replace(D=W, A=A, B=B, noise=noise)
        return fit._replace(noise=noise_of(fit))

    def weights(self, W: Floats, noise: float) -> Floats:  # noqa: ARG002
        """Return weights along the loadings, which give components about the fitted scale."""
        lengths = np.square(W).sum(axis=0)
        return W / np.where(lengths > 0.0, lengths, 1.0)


def noise_of(fit: FactorModel) -> float:
    """Return the residual variance, at least a small share of the mean square of a value."""
    return max(fit.noise, _MIN_NOISE_SHARE * fit.mean_square)


def _most_likely(fit: FactorModel, values: float) -> FactorModel:
    """Return the fit with D = B (A + τ I)⁻¹, and the noise, for `values` degrees of freedom.

    The prior grows with the share of columns with missing values. Without it, an observation with a
    few outlying values would get its own component, which nothing constrains in columns where this
    observation is missing.
    """
    prior = _PRIOR_DIVISOR * noise_of(fit) / fit.mean_square * (fit.n_incomplete / fit.weight)
    # Codes that are tiny compared with the largest are rounding.
    rounding = _ROUNDING * fit.A.diagonal().max()
    D = solve_components(fit.A + (prior + rounding) * np.eye(len(fit.A)), fit.B.T).T
    residual = fit.squares - float(np.vdot(D, fit.B)) - prior * float(np.vdot(D, D))
    fit = fit._replace(D=D, noise=residual / (fit.weight * values))
    return fit._replace(noise=noise_of(fit))


def _along_axes(fit: FactorModel) -> FactorModel:
    """Return the fit with loadings along their principal axes, negligible axes set to 0.

    The directions of the codes without loadings are then exactly zero. Otherwise those with
    loadings far below the noise would be determined by rounding, and grow at every refresh.
    """
    m, q = fit.D.shape
    D = np.vstack([fit.D, np.zeros((max(0, q - m), q))])
    _, sizes, rotation = np.linalg.svd(D, full_matrices=False)
    threshold = max(_ZERO_TOL * sizes[0], np.sqrt(_MIN_LOADING_SHARE * noise_of(fit)))
    is_zero = sizes <= threshold
    D, A, B = fit.D @ rotation.T, rotation @ fit.A @ rotation.T, fit.B @ rotation.T
    # Codes without loadings have their prior variance, 1.
    D[:, is_zero] = B[:, is_zero] = A[is_zero] = A[:, is_zero] = 0.0
    A[is_zero, is_zero] = fit.weight
    return fit._replace(D=D, A=A, B=B)


def _centred(X: Floats) -> Floats:
    centred: Floats = X - X.mean(axis=1)[:, None]
    return centred


def _codes(D: Floats, inner: Floats, X: Floats) -> Floats:
    return solve_components(inner, D.T @ X.T).T


def _encode(D: Floats, noise: float, X: Floats, weights: Floats | None) -> Codes:
    missing = np.isnan(X)
    some = missing.any(axis=1)
    if not some.any():
        return _encode_whole(D, noise, X, weights)
    mine, theirs = (None, None) if weights is None else (weights[~some], weights[some])
    whole = _encode_whole(D, noise, X[~some], mine)
    part = _encode_observed(D, noise, X[some], theirs)
    codes, values = np.empty((len(X), D.shape[1])), np.empty_like(X)
    codes[~some], codes[some] = whole.codes, part.codes
    values[~some], values[some] = whole.values, part.values
    A, B = whole.A + part.A, whole.B + part.B
    squares = whole.squares + part.squares
    return Codes(codes, A, B, squares, values, n_incomplete=part.n_incomplete)


def _encode_whole(D: Floats, noise: float, X: Floats, weights: Floats | None) -> Codes:
    inner = D.T @ D + noise * np.eye(D.shape[1])
    codes = _codes(D, inner, X)
    weighted = codes if weights is None else codes * weights[:, None]
    total = len(X) if weights is None else weights.sum()
    squares = np.einsum("ij,ij->j", X, X if weights is None else X * weights[:, None])
    A = weighted.T @ codes + total * noise * np.linalg.inv(inner)
    return Codes(codes, A, X.T @ weighted, squares, X)


def _encode_observed(D: Floats, noise: float, X: Floats, weights: Floats | None) -> Codes:
    """Return the codes of columns with missing values, and the expectation of the latter."""
    missing = np.isnan(X)
    b, q = len(X), D.shape[1]
    w = np.ones(b) if weights is None else weights
    pairs = (D[:, :, None] * D[:, None, :]).reshape(len(D), -1)
    inner = ((~missing).astype(float) @ pairs).reshape(b, q, q) + noise * np.eye(q)
    spread = noise * np.linalg.inv(inner)
    X = np.where(missing, 0.0, X)
    codes = solve_components(inner, (X @ D)[:, :, None])[:, :, 0]
    filled = np.where(missing, codes @ D.T, X)
    # The variance of a missing value is the noise plus that of its prediction from the codes.
    gaps = missing * w[:, None]
    extra = np.einsum("ikl,il->ik", (gaps.T @ spread.reshape(b, -1)).reshape(-1, q, q), D)
    squares = w @ np.square(filled) + noise * gaps.sum(axis=0) + np.einsum("ik,ik->i", extra, D)
    weighted = codes * w[:, None]
    A = weighted.T @ codes + np.einsum("i,ikl->kl", w, spread)
    return Codes(codes, A, filled.T @ weighted + extra, squares, filled, n_incomplete=b)
