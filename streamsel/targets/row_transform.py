"""Transformations of the rows of columns, so that unweighted formulas are exact."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streamsel.targets.weights import ObservationWeights
from streamsel.targets.whitening import Whitening

Floats = NDArray[np.float64]


class RowTransform(Protocol):
    """An invertible transformation of columns, after which observations have equal variance.

    Transformed columns are centred. Their inner products, and their means, are those of the
    generalised least-squares problem of the observations.

    Attributes
    ----------
    n
        Number of observations.
    effective_rows
        Effective number of independent observations of equal weight.
    row_weights
        (n,) weights of mean 1; 0 for an observation that is not used.
    by_column
        Whether columns are transformed differently, by name, so that inner products of two columns
        have no meaning.
    """

    n: int
    effective_rows: float
    row_weights: Floats
    by_column: bool

    def transform(
        self, X: NDArray[Any], names: Sequence[Hashable] = (), n_jobs: int = 1
    ) -> tuple[Floats, Floats, Floats]:
        """Return columns X (b, n), one per row, transformed and centred.

        Returns
        -------
        (b, n) the columns, of mean 0 up to rounding, (b,) their means, and the rounding errors of
        these.
        """

    def reflect(self, rows: Floats) -> Floats:
        """Return rows (..., n) reflected: transformed columns become scaled residuals."""

    def inverse_transform(self, Z: Floats) -> Floats:
        """Return transformed and centred columns (n, k) on the original scale."""

    def observations(
        self, X: Floats, transformed: Floats, mean: Floats, names: Sequence[Hashable]
    ) -> Floats:
        """Return columns (b, n) whose values show their distribution about their means.

        Parameters
        ----------
        X, transformed
            (b, n) the columns before and after the transformation.
        mean
            (b,) their means.
        names
            One per column.
        """

    def to_state(self) -> dict[str, Any]:
        """Return the state for a file."""

    def same_as(self, other: RowTransform) -> bool:
        """Whether another transformation is the same."""


def transform_from_state(state: dict[str, Any], n: int) -> RowTransform | None:
    """Return the transformation of n rows in the state of a target; None for none."""
    if "target_weights" in state:
        return ObservationWeights.from_state(state, n)
    if "target_whitening" in state:
        return Whitening.from_state(state["target_whitening"], n)
    return None


def same_transform(mine: RowTransform | None, theirs: RowTransform | None) -> bool:
    """Whether two targets have the same transformation."""
    if mine is None or theirs is None:
        return mine is theirs
    return mine.same_as(theirs)
