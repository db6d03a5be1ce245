"""A Gram matrix weighted by relevance, and a pool of representatives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamsel.columns import Stats
from streamsel.held.gram import Gram
from streamsel.held.gram_and_pool import GramAndPool
from streamsel.held.part import Floats
from streamsel.held.representatives import Representatives
from streamsel.target.space import TargetSpace


def to_powers(relevance: Floats, powers: Sequence[float]) -> Floats:
    """Return relevances (m,) raised to each power, (m, powers); 0 for constant columns."""
    raised: Floats = np.maximum(relevance, 0.0)[:, None] ** np.array(powers)
    return raised


class GramPool(GramAndPool, Representatives):
    """Gram matrix over all columns, weighted by relevance, and a pool of representatives.

    Parameters
    ----------
    powers
        One matrix per power: a column of relevance ρ has weight ρ to this power.
    """

    def __init__(
        self,
        space: TargetSpace | None,
        n: int,
        limit: int,
        least: float,
        powers: tuple[float, ...],
        n_jobs: int,
    ) -> None:
        super().__init__(space, n, limit, least)
        self.powers = powers
        self._begin_gram(Gram(n, len(powers), n_jobs))

    def weights(self, stats: Stats) -> Floats:
        """Return the factors of centred columns, (b, powers); 0 for a column that does not vary."""
        assert self._space is not None  # noqa: S101
        residual_squares = self.left(stats)
        relevance = self._space.relevance(stats.m2, stats.cxy)
        length = np.sqrt(np.where(residual_squares > 0.0, residual_squares, np.inf))
        weights: Floats = to_powers(relevance, self.powers) / length[:, None]
        return weights
