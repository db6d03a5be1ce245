"""Effects of variables on a target: slopes and their standard errors, from moments."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsel.base.null import Freedom
from streamsel.state.base import Floats, Indices, VariableState


class Effects(NamedTuple):
    """Slopes of a target on variables, and their standard errors."""

    effect: Floats
    standard_error: Floats


def effects_of(view: VariableState, indices: Indices, column: int, freedom: Freedom) -> Effects:
    """Return the effects of variables on a target column, given the covariates.

    Parameters
    ----------
    view, indices
        The state, and the variables.
    column
        Index of the target column, not counting covariates.
    freedom
        Distribution of relevances under independence.

    Notes
    -----
    With x̃ and ỹ the residuals on mean and covariates, the slope is x̃ᵀỹ / x̃ᵀx̃ and its squared
    standard error ỹᵀỹ (1 - r²) / (x̃ᵀx̃ (n - 2)), or ỹᵀỹ / (x̃ᵀx̃ s) with a chi-squared statistic
    s r²: (slope / standard error)² is the statistic. In the metric of a GLM's null model these are
    the one-step estimate U / V, and 1 / V.
    """
    space, stats = view.space, view.stats(indices)
    assert space is not None  # noqa: S101 (there is a target column)
    squares = space.adjusted_squares(stats.m2, stats.cxy)
    slopes = (stats.cxy @ space.target_map[column]) / squares
    of_target = float(space.target_products[column, column])
    if freedom.chi_square_scale is not None:
        variances = of_target / (squares * freedom.chi_square_scale)
    else:
        unexplained = np.maximum(1.0 - np.square(slopes) * squares / of_target, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            variances = of_target * unexplained / (squares * max(freedom.n - 2.0, 0.0))
    return Effects(slopes, np.sqrt(variances))
