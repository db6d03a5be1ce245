"""The Gram matrix of all columns, weighted by their relevance, and a pool of representatives."""

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
    """Return relevances (m,) to some powers, (m, powers); what does not vary has none."""
    raised: Floats = np.maximum(relevance, 0.0)[:, None] ** np.array(powers)
    return raised


class GramPool(GramAndPool, Representatives):
    """All columns, weighted by their relevance, and a pool of representatives.

    Parameters
    ----------
    powers
        A column of relevance ρ counts with ρ to one of these, in a matrix each.
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
        """Return what centred columns are multiplied by, (b, powers); 0 for what does not vary."""
        assert self._space is not None  # noqa: S101
        left = self.left(stats)
        relevance = self._space.relevance(stats.m2, stats.cxy)
        length = np.sqrt(np.where(left > 0.0, left, np.inf))
        weights: Floats = to_powers(relevance, self.powers) / length[:, None]
        return weights
