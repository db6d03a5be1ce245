"""Weights of columns in a Gram matrix: equal, by length, or by relevance."""

from __future__ import annotations

import abc
from collections.abc import Sequence

import numpy as np

from streamsel.data.chunks import Stats
from streamsel.state.base import Floats
from streamsel.state.gram.view import adjusted_squares
from streamsel.targets.space import TargetSpace


class ColumnWeights(abc.ABC):
    """Weights of columns.

    Parameters
    ----------
    space
        The target space; None without a target.
    """

    def __init__(self, space: TargetSpace | None) -> None:
        self.space = space

    def squares(self, stats: Stats) -> Floats:
        """Return the sums of squares of columns after adjusting for the covariates."""
        return adjusted_squares(self.space, stats)

    @abc.abstractmethod
    def factors(self, stats: Stats) -> Floats:
        """Return the factors of centred columns, (b, q); 0 for a column that does not vary."""


class EqualWeights(ColumnWeights):
    """Weight 1 for every column, or the inverse of its length.

    Parameters
    ----------
    space
        As in `ColumnWeights`.
    scaled
        Whether columns are scaled to length 1.
    """

    def __init__(self, space: TargetSpace | None, *, scaled: bool) -> None:
        super().__init__(space)
        self.scaled = scaled

    def factors(self, stats: Stats) -> Floats:
        """Return the factors of centred columns, (b, 1); 0 for a column that does not vary."""
        squares = self.squares(stats)
        varies = squares > 0.0
        if not self.scaled:
            return varies[:, None].astype(np.float64)
        factors: Floats = 1.0 / np.sqrt(np.where(varies, squares, np.inf))[:, None]
        return factors


class RelevanceWeights(ColumnWeights):
    """Weights that are powers of the relevance, of columns of length 1.

    Parameters
    ----------
    space
        The target space.
    powers
        One weighting per power: a column of relevance ρ has weight ρ to this power.
    """

    space: TargetSpace

    def __init__(self, space: TargetSpace, powers: tuple[float, ...]) -> None:
        super().__init__(space)
        self.powers = powers

    def factors(self, stats: Stats) -> Floats:
        """Return the factors of centred columns, (b, powers); 0 for one that does not vary."""
        squares = self.squares(stats)
        relevance = self.space.relevance(stats.m2, stats.cxy)
        length = np.sqrt(np.where(squares > 0.0, squares, np.inf))
        factors: Floats = to_powers(relevance, self.powers) / length[:, None]
        return factors


def to_powers(relevance: Floats, powers: Sequence[float]) -> Floats:
    """Return relevances (m,) raised to each power, (m, powers); 0 for constant columns."""
    raised: Floats = np.maximum(relevance, 0.0)[:, None] ** np.array(powers)
    return raised
