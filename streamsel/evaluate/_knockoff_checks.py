"""Checks of the conditions under which knockoffs bound the false discovery rate."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

from streamsel.data.columns import wrong_length_error
from streamsel.stream.knockoffs import WithKnockoffs
from streamsel.targets.target import Target

Floats = NDArray[np.float64]

# Share of columns that their neighbours may explain.
_MAX_EXPLAINED = 0.5
# Share of a sample of columns that may depend on distant ones.
_MAX_DISTANT = 0.25
# Share of columns that may be relevant, and quantile of the normal distribution beyond which more
# of them surpass their knockoffs than chance permits (p = 0.005).
_MAX_RELEVANT, _QUANTILE = 0.05, 2.6
# Product of the correlations of adjacent rows, of the target and of the columns, from which on the
# variance of their correlation is larger than that of independent rows by a tenth.
_MAX_ROW_CORRELATION = 0.05


class KnockoffChecks:
    """Checks of the conditions of knockoffs, made on the pairs of one pass.

    Parameters
    ----------
    target
        The target, whose first column counts, and the covariates.
    has_covariates
        Whether its other columns are covariates.

    Attributes
    ----------
    explained
        Names of the columns that are their own knockoffs.
    """

    def __init__(self, target: Target, *, has_covariates: bool) -> None:
        self._y = target.Y[0]
        if has_covariates:
            Z = target.Y[1:].T
            self._y = self._y - Z @ np.linalg.lstsq(Z, self._y, rcond=None)[0]
        self._n = self._n_more = self._n_varying = 0
        self.explained: set[Hashable] = set()

    def record(self, names: list[Hashable], X: Floats, K: Floats) -> None:
        """Compare columns (b, n) with their knockoffs (b, n)."""
        if X.shape[1] != self._y.size:
            raise wrong_length_error(names, X.shape[1], self._y.size)
        is_same = (X == K).all(axis=1)
        varies = X.any(axis=1)
        self._n_varying += int(np.count_nonzero(varies))
        self.explained.update(names[j] for j in np.flatnonzero(is_same & varies).tolist())
        is_more = np.abs(X @ self._y) > np.abs(K @ self._y)
        self._n += int(np.count_nonzero(~is_same))
        self._n_more += int(np.count_nonzero(is_more & ~is_same))

    def run(self, pairs: WithKnockoffs) -> None:
        """Raise if the pass has shown that knockoffs are not valid."""
        n, n_explained = self._n_varying, len(self.explained)
        if n_explained > _MAX_EXPLAINED * n:
            raise ValueError(
                "Expected columns that their neighbours do not explain, for knockoffs. Got: "
                f"{n_explained:,} of {n:,} columns are explained.\n"
                "Hint: stream.prune(X, max_correlation=0.8) excludes near-duplicates; or choose a "
                "smaller window."
            )
        if pairs.distant_share > _MAX_DISTANT:
            raise ValueError(
                "Expected columns that depend on their neighbours only, for knockoffs. Got: "
                f"{pairs.distant_share:.0%} of a sample of columns correlate with columns more "
                f"than {2 * pairs.window} apart, given their neighbours.\n"
                "Hint: sort columns by position; choose a larger window; pass principal components "
                "as covariates; or use SelectKBest(permutations=1000), for any columns."
            )
        y = self._y
        of_target = float(y[1:] @ y[:-1] / (y @ y))
        if of_target * pairs.row_correlation > _MAX_ROW_CORRELATION:
            raise ValueError(
                "Expected independent rows, for knockoffs. Got: adjacent rows correlate, by "
                f"{of_target:.2f} in the target and {pairs.row_correlation:.2f} in columns given "
                "their neighbours.\n"
                "Hint: pass what rows have in common, such as batches, as covariates."
            )
        n = self._n
        if self._n_more > 0.5 * (1.0 + _MAX_RELEVANT) * n + 0.5 * _QUANTILE * np.sqrt(n):
            raise ValueError(
                "Expected about half of the columns to be more relevant than their knockoffs, for "
                f"knockoffs to be valid. Got: {self._n_more / n:.0%} of {n} columns. A confounder "
                "makes them correlate with the target, or more than a twentieth are relevant.\n"
                "Hint: pass what distinguishes the rows, such as principal components or batches, "
                "as covariates."
            )
