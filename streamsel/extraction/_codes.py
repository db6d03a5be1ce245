"""What the factorisations make of a column: Gaussian posteriors, without outliers, or lasso."""

from __future__ import annotations

import numpy as np

from streamsel._jit.factorisation import find_outliers, lasso_codes
from streamsel.held.fit import Axes, Coded, Fit, solve
from streamsel.held.part import Floats

# No noise is less than this part of the mean square of a value.
_LEAST = 1e-6
# Components of less than this part of the largest's standard deviation are none.
_VOID = 1e-6
# Where values lack, a component has a priori one part in so many of the mean square of a value.
_PARTS = 100.0
# On rows loadings whose squares sum to less than this part of the noise are none.
_FAINT = 1e-2
# How often a column and its outliers are told apart, one by the other.
_ALTERNATIONS = 4
# The standard deviation of normal values in units of their median and of their mean size.
_OF_MEDIAN, _OF_MEAN = 1.482602218505602, 1.2533141373155001
# Of sums of squares less than this part is rounding.
_ROUNDING = 1e-14
# A component that so small a part of the codes is made of is left as it is.
_UNUSED = 1e-12
# How often principal axes are sought that the lasso begins with.
_BEGIN = 30


class GaussianCode:
    """The posterior of normal codes, of variance 1, beside normal noise, given what was observed.

    Parameters
    ----------
    takes_missing
        Whether values of a column may lack; those of a row may.
    """

    carries = 1

    def __init__(self, *, takes_missing: bool) -> None:
        self.takes_missing = takes_missing

    def start(self, fit: Fit, X: Floats) -> Fit:  # noqa: ARG002
        """Return the components to begin with: those drawn."""
        return fit

    def encode(self, fit: Fit, X: Floats) -> Coded:
        """Return the codes of columns, (b, n), a row each."""
        return _encode(fit.D, noise_of(fit), X, None)

    def renew(self, fit: Fit) -> Fit:
        """Return the fit with the components, and the noise, of the largest likelihood."""
        # A centred column has one value less to tell.
        return _most_likely(fit, len(fit.D) - 1.0)

    def axes(self, fit: Fit) -> Axes:
        """Return the principal axes of what the components make of columns."""
        n, q = fit.D.shape
        weight = max(fit.weight, 1.0)
        values, vectors = np.linalg.eigh(fit.A)
        E, spread, _ = np.linalg.svd(
            fit.D @ (vectors * np.sqrt(np.maximum(values, 0.0))), full_matrices=False
        )
        there = spread > _VOID * spread.max(initial=0.0)
        E, spread = np.where(there, E, 0.0), np.where(there, spread, 0.0)
        # Fewer variables than components.
        E = np.hstack([E, np.zeros((n, q - E.shape[1]))])
        spread = np.append(spread, np.zeros(q - spread.size))
        root = np.sqrt(n)
        return Axes(E * root, (E.T @ fit.D).T / root, E * spread / np.sqrt(weight))

    def encode_rows(self, fit: Fit, X: Floats, spread: Floats, weights: Floats) -> Coded:  # noqa: ARG002
        """Return the codes of rows, (b, m), on the loadings of their variables."""
        return _encode(fit.D, noise_of(fit), X, weights)

    def renew_rows(self, fit: Fit) -> Fit:
        """Return the fit with the loadings, and the noise, of the largest likelihood."""
        return _along_axes(_most_likely(fit, float(len(fit.D))))

    def weights(self, W: Floats, noise: float) -> Floats:
        """Return what turns a row into the posterior means of its components."""
        inner = W.T @ W
        least = _VOID**2 * inner.diagonal().max(initial=0.0)
        if least == 0.0:
            return np.zeros_like(W)
        return solve(inner + max(noise, least) * np.eye(len(inner)), W.T).T


class RobustCode(GaussianCode):
    """The same of what is left of a column when outliers are taken off.

    An outlier takes what a value is off by beyond the threshold, as an l1 penalty has it.

    Parameters
    ----------
    threshold
        In standard deviations of the noise: of the column's as its median tells it, or of all, if
        that is more.
    """

    def __init__(self, threshold: float) -> None:
        super().__init__(takes_missing=False)
        self.threshold = threshold

    def encode(self, fit: Fit, X: Floats) -> Coded:
        """Return the codes of columns, (b, n), a row each."""
        D, noise = fit.D, noise_of(fit)
        inner = D.T @ D + noise * np.eye(D.shape[1])
        off = np.zeros_like(X)
        solved = solve(inner, D.T)
        bars = self.threshold * _OF_MEDIAN, np.sqrt(noise) / _OF_MEDIAN
        find_outliers(X, D.T.copy(), solved, *bars, _ALTERNATIONS, off)
        return _encode_whole(D, noise, _centred(X - off), None)._replace(off=off)

    def encode_rows(self, fit: Fit, X: Floats, spread: Floats, weights: Floats) -> Coded:
        """Return the codes of rows, (b, m), on the loadings of their variables."""
        D, noise = fit.D, noise_of(fit)
        inner = D.T @ D + noise * np.eye(D.shape[1])
        X = np.nan_to_num(X, nan=0.0)
        off = np.zeros_like(X)
        typical = np.maximum(_OF_MEAN * spread, np.sqrt(noise))
        for _ in range(_ALTERNATIONS):
            off = self._off(X - _codes(D, inner, X - off) @ D.T, typical)
        return _encode_whole(D, noise, X - off, weights)._replace(off=off)

    def _off(self, left: Floats, typical: Floats) -> Floats:
        off: Floats = left - np.clip(left, -self.threshold * typical, self.threshold * typical)
        return off


class SparseCode(GaussianCode):
    """The lasso: few components for each column.

    Parameters
    ----------
    alpha
        The penalty, in root mean squares of a value.
    """

    carries = 0

    def __init__(self, alpha: float) -> None:
        super().__init__(takes_missing=False)
        self.alpha = alpha

    def start(self, fit: Fit, X: Floats) -> Fit:
        """Return the components to begin with: principal ones."""
        found = fit._replace(weight=float(len(X)), squares=float(np.square(X).sum()))
        for _ in range(_BEGIN):
            coded = super().encode(found, X)
            found = super().renew(found._replace(A=coded.A, B=coded.B))
        axes = super().axes(found)
        return fit._replace(D=np.where(axes.scores.any(axis=0), axes.scores, fit.D))

    def encode(self, fit: Fit, X: Floats) -> Coded:
        """Return the codes of columns, (b, n), a row each."""
        D, n = fit.D, len(fit.D)
        codes = np.zeros((len(X), D.shape[1]))
        lasso_codes(D.T @ D / n, X @ D / n, self.alpha * np.sqrt(fit.typical), codes)
        return Coded(codes, codes.T @ codes, X.T @ codes, np.square(X).sum(axis=0), X)

    def renew(self, fit: Fit) -> Fit:
        """Return the fit with better components, one after another, of mean square 1 at most."""
        D, A, B = fit.D.copy(), fit.A, fit.B
        used = _UNUSED * A.diagonal().max()
        for k in range(len(A)):
            if A[k, k] > used:
                D[:, k] += (B[:, k] - D @ A[:, k]) / A[k, k]
                D[:, k] /= max(1.0, np.sqrt(np.square(D[:, k]).mean()))
        left = fit.squares - 2.0 * np.vdot(D, B) + np.vdot(D @ A, D)
        fit = fit._replace(D=D, noise=float(left) / (fit.weight * (len(D) - 1.0)))
        return fit._replace(noise=noise_of(fit))

    def axes(self, fit: Fit) -> Axes:
        """Return the components themselves, those that make most of the columns first."""
        lengths, used = np.square(fit.D).mean(axis=0), fit.A.diagonal()
        sizes = lengths * used
        sizes = np.where(sizes > _VOID**2 * sizes.max(initial=0.0), sizes, 0.0)
        order = np.argsort(-sizes, kind="stable")
        D, there = fit.D[:, order], sizes[order] > 0.0
        roots = np.sqrt(np.where(there, lengths[order], 1.0))
        turn = np.zeros(fit.A.shape)
        turn[order, np.arange(order.size)] = np.where(there, roots, 0.0)
        scale = np.sqrt(np.where(there, used[order], 0.0) / max(fit.weight, 1.0))
        return Axes(np.where(there, D / roots, 0.0), turn, D * scale)

    def renew_rows(self, fit: Fit) -> Fit:
        """Return the fit with the lasso's loadings, on components of mean square 1."""
        roots = np.sqrt(fit.A.diagonal() / fit.weight)
        there = roots > _UNUSED * roots.max()
        scale = np.where(there, 1.0 / np.where(there, roots, 1.0), 0.0)
        A, B = fit.A * scale * scale[:, None], fit.B * scale
        W = np.zeros_like(B)
        lasso_codes(A / fit.weight, B / fit.weight, self.alpha * np.sqrt(fit.typical), W)
        left = fit.squares - 2.0 * np.vdot(W, B) + np.vdot(W @ A, W)
        noise = max(0.0, float(left)) / (fit.weight * len(W))
        fit = fit._replace(D=W, A=A, B=B, noise=noise)
        return fit._replace(noise=noise_of(fit))

    def weights(self, W: Floats, noise: float) -> Floats:  # noqa: ARG002
        """Return weights along the loadings, for components of about the scale of those learnt."""
        lengths = np.square(W).sum(axis=0)
        return W / np.where(lengths > 0.0, lengths, 1.0)


def noise_of(fit: Fit) -> float:
    """Return the variance that the components leave, or what is too little for any."""
    return max(fit.noise, _LEAST * fit.typical)


def _most_likely(fit: Fit, values: float) -> Fit:
    """Return the fit with D = B (A + τ I)⁻¹, and the noise left of so many values of a column.

    The prior is as strong as columns have gaps. Without it an observation with a few values far
    off has a component of its own, and where it lacks nothing holds what that makes of a column.
    """
    prior = _PARTS * noise_of(fit) / fit.typical * (fit.lacking / fit.weight)
    # Beside a code that is large beyond measure others are rounding.
    least = _ROUNDING * fit.A.diagonal().max()
    D = solve(fit.A + (prior + least) * np.eye(len(fit.A)), fit.B.T).T
    left = fit.squares - float(np.vdot(D, fit.B)) - prior * float(np.vdot(D, D))
    fit = fit._replace(D=D, noise=left / (fit.weight * values))
    return fit._replace(noise=noise_of(fit))


def _along_axes(fit: Fit) -> Fit:
    """Return the fit with loadings along their principal axes, and of no others.

    Which directions of the codes have no loadings is then exactly known. Of others whose loadings
    are small beside the noise rounding would decide, and grow from one renewal to the next.
    """
    m, q = fit.D.shape
    D = np.vstack([fit.D, np.zeros((max(0, q - m), q))])
    _, sizes, turn = np.linalg.svd(D, full_matrices=False)
    least = max(_VOID * sizes[0], np.sqrt(_FAINT * noise_of(fit)))
    lost = sizes <= least
    D, A, B = fit.D @ turn.T, turn @ fit.A @ turn.T, fit.B @ turn.T
    # Of codes that nothing is made of nothing is known but that their variance is 1.
    D[:, lost] = B[:, lost] = A[lost] = A[:, lost] = 0.0
    A[lost, lost] = fit.weight
    return fit._replace(D=D, A=A, B=B)


def _centred(X: Floats) -> Floats:
    centred: Floats = X - X.mean(axis=1)[:, None]
    return centred


def _codes(D: Floats, inner: Floats, X: Floats) -> Floats:
    return solve(inner, D.T @ X.T).T


def _encode(D: Floats, noise: float, X: Floats, weights: Floats | None) -> Coded:
    lacking = np.isnan(X)
    some = lacking.any(axis=1)
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
    return Coded(codes, A, B, squares, values, lacking=part.lacking)


def _encode_whole(D: Floats, noise: float, X: Floats, weights: Floats | None) -> Coded:
    inner = D.T @ D + noise * np.eye(D.shape[1])
    codes = _codes(D, inner, X)
    weighted = codes if weights is None else codes * weights[:, None]
    total = len(X) if weights is None else weights.sum()
    squares = np.einsum("ij,ij->j", X, X if weights is None else X * weights[:, None])
    A = weighted.T @ codes + total * noise * np.linalg.inv(inner)
    return Coded(codes, A, X.T @ weighted, squares, X)


def _encode_observed(D: Floats, noise: float, X: Floats, weights: Floats | None) -> Coded:
    """Return the codes of columns with gaps, and what is expected of what lacks."""
    lacking = np.isnan(X)
    b, q = len(X), D.shape[1]
    w = np.ones(b) if weights is None else weights
    pairs = (D[:, :, None] * D[:, None, :]).reshape(len(D), -1)
    inner = ((~lacking).astype(float) @ pairs).reshape(b, q, q) + noise * np.eye(q)
    spread = noise * np.linalg.inv(inner)
    X = np.where(lacking, 0.0, X)
    codes = solve(inner, (X @ D)[:, :, None])[:, :, 0]
    filled = np.where(lacking, codes @ D.T, X)
    # What lacks is known to within the noise, and to what its codes are known.
    gaps = lacking * w[:, None]
    beside = np.einsum("ikl,il->ik", (gaps.T @ spread.reshape(b, -1)).reshape(-1, q, q), D)
    squares = w @ np.square(filled) + noise * gaps.sum(axis=0) + np.einsum("ik,ik->i", beside, D)
    weighted = codes * w[:, None]
    A = weighted.T @ codes + np.einsum("i,ikl->kl", w, spread)
    return Coded(codes, A, filled.T @ weighted + beside, squares, filled, lacking=b)
