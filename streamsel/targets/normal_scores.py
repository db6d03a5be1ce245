"""Normal scores of a heavy-tailed target, for p-values and the noise floor."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel.targets.space import TargetSpace
from streamsel.targets.target import Target
from streamsel.targets.whitening import Whitening

Floats = NDArray[np.float64]

# Up to this excess kurtosis, common in normal samples of a few dozen, the target itself is used.
_MAX_KURTOSIS = 1.0


class NormalScores:
    """Normal scores of the only numeric column of a target, and products of columns with them.

    The scores are Φ⁻¹((rank - 1/2) / n) of the target's residuals on the covariates, tied values
    having their mean rank; the covariates are projected out of the scores again. There are none
    with relatedness of a variance ratio above 0: the ranks of whitened residuals are not
    independent of whitened columns.

    Attributes
    ----------
    Y
        (1, n) the scores, centred and of length 1, transformed if observations have weights.
    c
        1, the number of rows of Y.
    kurtosis
        Excess kurtosis of the target itself.
    """

    c = 1

    def __init__(self, Y: Floats, kurtosis: float) -> None:
        self.Y, self.kurtosis = Y, kurtosis

    @property
    def scan_rows(self) -> Floats:
        """The rows to multiply columns with."""
        return self.Y

    @property
    def YT(self) -> Floats:
        """Y transposed, (n, 1)."""
        return self.Y.T

    @classmethod
    def of(cls, target: Target, space: TargetSpace) -> NormalScores | None:
        """Return the scores; None for several columns, classes, light tails, and relatedness."""
        one = not target.is_class and int((~target.is_covariate).sum()) == 1
        if not one or space.kernel.name != "linear" or space.rank != 1:
            return None
        if isinstance(target.row_transform, Whitening) and not target.row_transform.is_identity:
            return None
        basis = target.basis_of(space)
        kurtosis = target.kurtosis(basis)
        if not kurtosis > _MAX_KURTOSIS:
            return None
        values, row_transform = basis[0], target.row_transform
        w = np.ones(target.n) if row_transform is None else row_transform.row_weights
        counts, root = w > 0.0, np.sqrt(w)
        if row_transform is not None:
            values = row_transform.reflect(values) / np.where(counts, root, 1.0)
        if target.order is not None:
            values = target.order.astype(np.float64)
        scores = np.zeros(target.n)
        scores[counts] = weighted_normal_scores(values[counts], w[counts])
        if row_transform is not None:
            scores = row_transform.reflect(root * scores)
        scores -= scores.mean()
        covariates = space.covariate_map @ target.Y[: target.c]
        scores -= (covariates @ scores) @ covariates
        return cls((scores / np.sqrt(scores @ scores))[None], kurtosis)

    def products(self, chunk: Any, indices: NDArray[np.intp] | None) -> Floats:
        """Return the inner products of columns of a chunk with the scores; all columns if None."""
        if indices is not None and 4 * indices.size < len(chunk.names):
            chunk, indices = chunk.subset(indices), None
        found: Floats = chunk.scan(self, 1).cxy[:, 0]
        return found if indices is None else found[indices]


def weighted_normal_scores(values: Floats, weights: Floats) -> Floats:
    """Return Φ⁻¹(share of the weight below each value + half the share at the value).

    With equal weights this is Φ⁻¹((rank - 1/2) / n), tied values having their mean rank; a value of
    weight 2 counts as two.
    """
    from scipy.special import ndtri

    # Equal values may differ by rounding of the residuals.
    rounded = np.round(values / np.abs(values).max(), 12)
    _, index = np.unique(rounded, return_inverse=True)
    weight = np.bincount(index, weights)
    scores: Floats = ndtri((np.cumsum(weight) - 0.5 * weight)[index] / weight.sum())
    return scores
