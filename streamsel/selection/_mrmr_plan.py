"""mRMR over a pool with samples, and the scores of other columns under its picks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from streamsel._jit.redundancy import fold
from streamsel.columns import Chunk, Stats
from streamsel.held.correlations import correlations
from streamsel.held.part import Floats, Places
from streamsel.held.plan import LEAST, origin_of
from streamsel.held.pool import units
from streamsel.held.products import TOGETHER, Products
from streamsel.held.stage_pool import StagePool
from streamsel.selection._greedy_plan import GreedyPlan
from streamsel.selection._redundancy import (
    Informations,
    Narrow,
    Relevance,
    Trade,
    codes_of_columns,
    greedy,
    shared,
)
from streamsel.target.space import TargetSpace


def _no_indices() -> Places:
    return np.empty(0, dtype=np.intp)


class Measures(NamedTuple):
    """Measures of relevance and redundancy.

    Parameters
    ----------
    relevance, trade
        Relevance of a variable, and the form of the criterion.
    n_bins
        Number of bins of variables; 0 if bins are not needed.
    target
        (1, n) codes of the target, and their number, if relevance is mutual information.
    by_bins
        Whether redundancy is mutual information.
    """

    relevance: Relevance
    trade: Trade
    n_bins: int
    target: tuple[Narrow, int] | None
    by_bins: bool

    def codes(self, X: Floats) -> Narrow | None:
        """Return the bins of variables, one per row, if needed."""
        return codes_of_columns(X, self.n_bins) if self.n_bins else None

    def found(self, space: TargetSpace, stats: Stats, codes: Narrow | None) -> Floats:
        """Return the measured relevance of variables, (p,)."""
        if self.target is None or codes is None:
            return space.relevance(stats.m2, stats.cxy)
        return shared(codes, self.target[0], self.n_bins, self.target[1])[:, 0]


class MRMRPlan(GreedyPlan):
    """Picks of mRMR, and the scores of other columns under them.

    Parameters
    ----------
    pool
        The pool it is made of.
    k
        Number of picks wanted.
    measures
        Measures of relevance and redundancy.
    before
        The previous candidate solution, to continue from.
    given
        The picks, if known.
    """

    def __init__(
        self,
        pool: StagePool,
        k: int,
        measures: Measures,
        before: MRMRPlan | None = None,
        given: Sequence[int] = (),
    ) -> None:
        assert pool.space is not None  # noqa: S101
        self._pool, self._measures = pool, measures
        origin = origin_of(pool.table["arrival"], before)
        self.codes = self._codes(before, origin)
        relevance = measures.found(pool.space, pool.stats(), self.codes)
        self._relevance = measures.relevance.of(relevance)
        rows = None if before is None else before.rows
        reuse = rows, origin, 2 * k + TOGETHER
        self.rows: Products
        if measures.by_bins and self.codes is not None:
            self.rows = Informations(self.codes, measures.n_bins, *reuse)
        else:
            self.rows = Products(pool.table["unit"], *reuse)
        errors = measures.relevance.slack(relevance)
        picks, tolerance = greedy(self._relevance, errors, measures.trade, k, self._row, given)
        self.rows.close()
        # Any relevant variable may be picked, even with a negative score.
        super().__init__(pool, picks, k, nothing=LEAST / 2.0)
        self.tolerance = np.array([*tolerance, 0.0])[: len(self.keys)]
        self._pick_indices = self.must_stay[: len(self.keys) - 1]
        self._V = pool.samples(self._pick_indices)
        self._pick_codes = None if self.codes is None else self.codes[self._pick_indices]

    def _row(self, j: int, likely: Callable[[], Places]) -> Floats:
        # For mutual information, rows computed in a batch are not cheaper than single ones.
        return self.rows.of(j, _no_indices if self._measures.by_bins else likely)

    def _codes(self, before: MRMRPlan | None, origin: Places) -> Narrow | None:
        """Return the bins of the pool's variables, if needed."""
        measures, unit = self._measures, self._pool.table["unit"]
        if before is None or before.codes is None:
            return measures.codes(unit)
        codes = before.codes[origin]
        added = np.flatnonzero(origin < 0)
        if added.size:
            codes[added] = codes_of_columns(unit[added], measures.n_bins)
        return codes

    def scores(self) -> Floats:
        """Return the (p, S) scores of the pool's variables; -inf for those already picked."""
        rows = [self.rows.of(j, _no_indices) for j in self._pick_indices.tolist()]
        redundancy = np.array(rows).reshape(-1, self._relevance.size).T
        scores = self._folded(self._relevance, np.ascontiguousarray(redundancy))
        for s, index in enumerate(self.picks.places):
            scores[index, s + 1 :] = -np.inf
        return scores

    def scores_of(
        self,
        chunk: Chunk,
        stats: Stats,
        places: Places,
        noted: Mapping[str, Floats],  # noqa: ARG002
    ) -> Floats:
        """Return the (b, S) scores of columns of a chunk."""
        space, measures = self._pool.space, self._measures
        assert space is not None  # noqa: S101
        selected_stats = Stats(*(array[places] for array in stats))
        codes = measures.codes(units(chunk, stats, places)) if measures.n_bins else None
        relevance = measures.relevance.of(measures.found(space, selected_stats, codes))
        if measures.by_bins and codes is not None:
            return self._folded(relevance, self._shared(codes))
        left = self._pool.left(stats, places)
        return self._folded(relevance, correlations(chunk, stats, places, self._V, left))

    def _shared(self, codes: Narrow) -> Floats:
        assert self._pick_codes is not None  # noqa: S101
        n_bins = self._measures.n_bins
        return shared(codes, self._pick_codes, n_bins, n_bins)

    def _folded(self, relevance: Floats, redundancy: Floats) -> Floats:
        trade = self._measures.trade
        scores = np.empty((relevance.size, len(self.keys)))
        fold(relevance, redundancy, trade.floor, trade.beta, scores)
        return scores
