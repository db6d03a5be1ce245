"""Normal scores of a heavy-tailed target: what p-values and the noise floor go by."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel.target.space import TargetSpace
from streamsel.target.target import Target

Floats = NDArray[np.float64]

# An excess kurtosis up to which the target itself is used: normal samples of a few dozen reach it.
_HEAVY = 1.0


class NormalScores:
    """Normal scores of the one numeric column of a target, and products of columns with them.

    The scores are Φ⁻¹((rank - 1/2) / n) of what the covariates leave of the target, tied values
    having their mean rank; the covariates are taken out of the scores again.

    Attributes
    ----------
    Y
        (1, n) the scores, centred and of length 1, turned if observations have weights.
    c
        1, the number of rows of Y.
    kurtosis
        Excess kurtosis of the target itself.
    """

    c = 1

    def __init__(self, Y: Floats, kurtosis: float) -> None:
        self.Y, self.kurtosis = Y, kurtosis

    @property
    def scanned(self) -> Floats:
        """The rows that columns are multiplied with."""
        return self.Y

    @property
    def YT(self) -> Floats:
        """Y transposed, (n, 1)."""
        return self.Y.T

    @classmethod
    def of(cls, target: Target, space: TargetSpace) -> NormalScores | None:
        """Return the scores of a target; None for several columns, classes, and normal tails."""
        one = not target.is_class and int((~target.is_given).sum()) == 1
        if not one or space.kernel.name != "linear" or space.rank != 1:
            return None
        basis = target.basis_of(space)
        kurtosis = target.kurtosis(basis)
        if not kurtosis > _HEAVY:
            return None
        residuals, weights = basis[0], target.weights
        if weights is None:
            scores = normal_scores(residuals, np.ones(target.n))
        else:
            counts, root = weights.w > 0.0, np.sqrt(weights.w)
            scores = np.zeros(target.n)
            scores[counts] = weights.reflected(residuals)[counts] / root[counts]
            scores[counts] = normal_scores(scores[counts], weights.w[counts])
            scores = weights.reflected(root * scores)
        scores -= scores.mean()
        covariates = space.given @ target.Y[: target.c]
        scores -= (covariates @ scores) @ covariates
        return cls((scores / np.sqrt(scores @ scores))[None], kurtosis)

    def products(self, chunk: Any, places: NDArray[np.intp] | None) -> Floats:
        """Return the inner products of columns of a chunk with the scores; None for all of them."""
        if places is not None and 4 * places.size < len(chunk.names):
            chunk, places = chunk.subset(places), None
        found: Floats = chunk.scan(self, 1).cxy[:, 0]
        return found if places is None else found[places]


def normal_scores(values: Floats, weights: Floats) -> Floats:
    """Return Φ⁻¹ of the share of the weight that lies below each value, or at it by half.

    Of equal weights that is Φ⁻¹((rank - 1/2) / n), tied values having their mean rank; a value of
    weight 2 counts as two.
    """
    from scipy.special import ndtri

    # Equal values may differ by the rounding of what was taken from them.
    rounded = np.round(values / np.abs(values).max(), 12)
    _, place = np.unique(rounded, return_inverse=True)
    weight = np.bincount(place, weights)
    scores: Floats = ndtri((np.cumsum(weight) - 0.5 * weight)[place] / weight.sum())
    return scores
